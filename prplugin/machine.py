"""Facts about the machine that the choice of a method rests on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["COMPILED_FROM", "Machine", "bytes_available", "compiles", "this_machine", "worked_on"]

CGROUP = Path("/sys/fs/cgroup")

COMPILED_FROM = 1 << 20
"""Edges from which Numba's kernels are worth the start of Numba, and once a machine their compilation.

Measured in docs/decisions/0002-numpy-numba-threshold.md.
"""

COMPILED_AFTER = 4 * COMPILED_FROM
"""Edges that a process has factorized or ranked by then, for the kernels to be worth their start for smaller frames."""

COMPILED_AT_LEAST = 1 << 15
"""Edges below which NumPy is as fast as the kernels once they are compiled."""

_worked_on = 0


@dataclass(frozen=True, slots=True)
class Machine:
    """What a method may use.

    Attributes
    ----------
    threads : int
        How many threads this process may run at once.
    """

    threads: int


def worked_on(edges: int) -> None:
    """Count edges that are about to be factorized or ranked in this process: `compiles` goes by all of them."""
    global _worked_on  # noqa: PLW0603  # a count is all that the process keeps
    _worked_on += edges


def compiles(edges: int) -> bool:
    """Return whether work on so many edges goes to Numba's kernels rather than to NumPy.

    The first few frames of less than a million edges do not wait for a compiler. Where this is asked for less than
    `COMPILED_FROM` edges, both ways give the same bits, since the answer depends on what the process did before.
    """
    return edges >= COMPILED_FROM or (edges >= COMPILED_AT_LEAST and _worked_on >= COMPILED_AFTER)


def this_machine() -> Machine:
    """Return the resources that this process may use."""
    try:
        threads = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity
        threads = os.cpu_count() or 1
    return Machine(threads=threads)


def bytes_available() -> float:
    """Return the available memory in bytes, within the limit of the container."""
    return min(_of_the_machine(), _of_the_container())


def _of_the_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux: all memory
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_the_container() -> float:
    """Return what the limit of the control group (version 2) leaves; inactive page cache counts as available."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    except OSError:
        return float("inf")
    return float("inf") if limit == "max" else int(limit) - used + int(stat.get("inactive_file", 0))
