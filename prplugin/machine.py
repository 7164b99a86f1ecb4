"""Properties of the machine on which the choice of a method depends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

CGROUP = Path("/sys/fs/cgroup")

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
    try:
        threads = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity
        threads = os.cpu_count() or 1
    return Machine(threads=threads)


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


def _bytes_on_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux: all memory
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _bytes_in_cgroup() -> float:
    """Return the bytes left below the limit of the control group (version 2); inactive page cache counts as left."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    except OSError:
        return float("inf")
    return float("inf") if limit == "max" else int(limit) - used + int(stat.get("inactive_file", 0))
