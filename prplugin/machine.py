"""Properties of the machine on which the choice of a method depends."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from math import ceil, inf
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

CGROUP = Path("/sys/fs/cgroup")
PROC = Path("/proc")

MIN_THREADED_EDGES = 3 << 17
"""Number of edges below which one pass over the edges takes less time than the start of other threads."""


class Machine(NamedTuple):
    """Resources that a method may use.

    `threads`: Number of threads that this process may run at once.
    """

    threads: int

    def threads_for(self, edges: int) -> int:
        """Return the number of threads to use for passes over this number of edges."""
        return self.threads if edges >= MIN_THREADED_EDGES else 1


def this_machine() -> Machine:
    """Return the resources that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        threads = len(os.sched_getaffinity(0))
    else:  # macOS and Windows have no affinity
        threads = os.cpu_count() or 1
    return Machine(threads=min(threads, _cores_in_cgroup(PROC, CGROUP)))


@contextmanager
def mapping_on(threads: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Return a context manager with a function like `map`, on this number of threads if so many can be started.

    If not, it uses those that can; with one or none it is `map` itself.
    """
    with _started(threads) if threads > 1 else nullcontext() as pool:
        yield map if pool is None else pool.map


def _started(threads: int) -> AbstractContextManager[ThreadPoolExecutor | None]:
    """Return a pool whose threads have started, since a later failure would leave tasks in its queue."""
    pool, ready = ThreadPoolExecutor(threads, "prplugin"), Event()
    started = 0
    try:
        for started in range(threads):  # noqa: B007 - also used after the loop
            pool.submit(ready.wait)
        return pool
    except RuntimeError:  # the limit of threads, or of memory for them
        ready.set()
        pool.shutdown()
        return _started(started) if started > 1 else nullcontext()
    finally:
        ready.set()


def bytes_available() -> float:
    """Return the available memory in bytes, within the limit of the container."""
    return min(_bytes_on_machine(), _bytes_in_cgroup())


def _bytes_on_machine() -> float:
    for line in "".join(_read(PROC, "meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    # Not Linux.
    if windows := getattr(ctypes, "windll", None):
        # MEMORYSTATUSEX: size and load of 32 bits each, total and available physical memory, and five more sizes.
        status = (ctypes.c_uint64 * 8)(64)
        if windows.kernel32.GlobalMemoryStatusEx(status):
            return int(status[2])
    elif hasattr(os, "sysconf"):  # all memory
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return inf


@cache
def _cores_in_cgroup(proc: Path, cgroup: Path) -> int:
    """Return the cores that the quotas of the control groups allow, rounded up.

    They are read once per process: reading takes several percent of the time of ranking a small frame.
    """
    cores = sys.maxsize
    for folder in _control_groups(proc, cgroup, "cpu"):
        texts = _read(folder, "cpu.max") or _read(folder, "cpu.cfs_quota_us", "cpu.cfs_period_us")
        quota, period = " ".join(texts).split() or ("max", "")
        if quota not in ("max", "-1"):
            cores = min(cores, ceil(int(quota) / int(period)))
    return cores


def _bytes_in_cgroup() -> float:
    """Return the bytes left below the limits of the control groups; inactive page cache counts as left."""
    left = inf
    for folder in _control_groups(PROC, CGROUP, "memory"):
        version_2 = _read(folder, "memory.max", "memory.current", "memory.stat")
        texts = version_2 or _read(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
        limit, used, lines = texts or ("max", "", "")
        if limit.strip() != "max":
            stat = dict(line.split() for line in lines.splitlines())
            inactive = stat.get("inactive_file" if version_2 else "total_inactive_file", 0)
            left = min(left, int(limit) - int(used) + int(inactive))
    return left


def _control_groups(proc: Path, cgroup: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control group and of those above it, of version 1 or 2.

    In a container they may be named as on its host; then the root is the group of the container.
    """
    for text in _read(proc / "self", "cgroup"):
        for _, controllers, path in (line.split(":", 2) for line in text.splitlines()):
            if not controllers or controller in controllers.split(","):
                root = cgroup / controller if controllers else cgroup
                group = root / path.lstrip("/")
                yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(root))


def _read(folder: Path, *names: str) -> list[str]:
    """Return the texts of files, or none if one of them cannot be read."""
    try:
        return [(folder / name).read_text(encoding="utf-8") for name in names]
    except OSError:
        return []
