"""Properties of the machine on which the choice of a method depends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple, TypeVar

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


Item, Result = TypeVar("Item"), TypeVar("Result")


def on_threads(threads: int, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the results of a function for each item, computed by this thread and up to ``threads - 1`` others.

    Where no thread can be started, this one computes all. An error ends all of them, and is raised.
    """
    given, errors, lock = list(items), list[BaseException](), Lock()
    places, results = iter(range(len(given))), dict[int, Result]()

    def work() -> None:
        while not errors:
            with lock:
                place = next(places, None)
            if place is None:
                return
            try:
                results[place] = function(given[place])
            except BaseException as error:  # raised below, by the thread of the caller
                errors.append(error)

    started: list[Thread] = []
    try:
        with suppress(RuntimeError):  # the limit of threads, or of their memory
            while len(started) + 1 < min(threads, len(given)):
                thread = Thread(target=copy_context().run, args=(work,), name="prplugin")
                thread.start()
                started.append(thread)
        work()
        for thread in started:
            thread.join()
    except BaseException as error:  # an interrupt
        errors.append(error)
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(given))]


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
