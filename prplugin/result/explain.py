"""What a ranking did and what it cost, for people to read: `Ranking.explain`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from time import perf_counter
from typing import IO, Any

import numpy as np

from prplugin.cpu.threads import Threads
from prplugin.gpu import runtime
from prplugin.machine import this_machine
from prplugin.types.arrays import Place, settle
from prplugin.types.history import History
from prplugin.types.order import Order

__all__ = ["explain"]

UNLIMITED = 1 << 16
"""Columns of what is no terminal: nothing is cut or wrapped."""

NUMBERS = ("seconds", "passes", "error bound")
"""Columns that are set to the right."""

COPIED = 1 << 27
"""Bytes of the array whose copy measures the bandwidth: more than caches hold."""

TIMES = 4
"""Copies, of which the fastest counts: the first finds no page in place."""


def explain(
    summary: str, passes: int, history: History, order: Order | None, writing: float | None, file: IO[str] | None
) -> None:
    """Print what was done and what it cost, to a file or to standard output.

    Parameters
    ----------
    summary : str
        The first line.
    writing : float, optional
        Seconds that the frame of ranks took, if it was made.
    """
    from rich.console import Console
    from rich.text import Text

    file = sys.stdout if file is None else file
    console = Console(file=file, width=None if file.isatty() else UNLIMITED, highlight=False)
    for line in [summary, *_graph(history), *_cost(passes, history), *_certified(order)]:
        console.print(Text(line))
    for table in _tables(history, writing):
        console.print()
        console.print(table)


def _tables(history: History, writing: float | None) -> Iterator[Any]:
    stages = [*history.stages, *([] if writing is None else [("frame of ranks written", writing)])]
    yield _table(["stage", "seconds"], [[name, f"{seconds:.3g}"] for name, seconds in stages])
    yield _table(["method", "seconds", "why, or why not"], _methods(history))
    if history.bounds:
        yield _table(["passes", "error bound"], [[str(count), f"{bound:.2e}"] for count, bound in _milestones(history)])


def _graph(history: History) -> list[str]:
    kind = "weighted edges" if history.weighted else "edges"
    return [
        f"graph: {history.n:,} vertices, {history.m:,} {kind}",
        f"asked for: alpha {history.alpha:g}, tol {history.tol:g}, stop {history.stop!r}",
    ]


def _cost(passes: int, history: History) -> list[str]:
    """Say what a pass took, and what part of the memory's bandwidth that is."""
    _, seconds = history.stages[-1]
    if not passes or not seconds:
        return []
    rate = history.bytes_a_pass * passes / seconds
    lines = [
        f"a pass over the edges: {1e3 * seconds / passes:.3g} ms on average",
        f"bytes a pass, by a model in which all that is read or written is so once: {history.bytes_a_pass:,}",
        f"bandwidth, by that model: {rate / 1e9:.3g} GB/s",
    ]
    if peak := _bandwidth(history.place):
        lines[-1] += f", {rate / peak:.0%} of the {peak / 1e9:.3g} GB/s that copying here reaches now"
    return lines


def _certified(order: Order | None) -> list[str]:
    if order is None:
        return []
    how, equal = "proved" if order.proved else "not proved", sum(tie.equal for tie in order.ties)
    return [
        f"order of the {order.rows.size:,} highest: {how}",
        f"ties: {equal} of vertices proved equal, {len(order.ties) - equal} of others that cannot be told apart",
        f"no rank is off by more than {order.margin:.2g}",
    ]


def _methods(history: History) -> list[list[str]]:
    """Give the methods, those of which nobody asked how long they take in one line for each reason."""
    rows = [[one.method, f"{one.seconds:.2g}", one.reason] for one in history.considered if one.seconds is not None]
    unasked: dict[str, list[str]] = {}
    for one in history.considered:
        if one.seconds is None:
            unasked.setdefault(one.reason, []).append(one.method)
    return rows + [[", ".join(names), "", reason] for reason, names in unasked.items()]


def _milestones(history: History) -> list[tuple[int, float]]:
    """Give the first bound of each power of ten, and the last."""
    kept: list[tuple[int, float]] = []
    power = math.inf
    for passes, bound in history.bounds:
        here = math.ceil(math.log10(bound)) if bound > 0 else -math.inf
        if here < power:
            power = here
            kept.append((passes, bound))
    if kept[-1] != history.bounds[-1]:
        kept.append(history.bounds[-1])
    return kept


@cache
def _bandwidth(place: Place) -> float | None:
    """Measure the bytes a second of a copy, in and out, on all threads or on the GPU; None where that has no room."""
    if place == "device":
        return _bandwidth_of_gpu()
    pieces = 8 * this_machine().threads
    source = np.ones(COPIED // 8)
    copy = np.empty_like(source)
    bounds = np.linspace(0, source.size, pieces + 1).astype(int).tolist()
    runs = [(slice(*run),) for run in pairwise(bounds)]
    threads = Threads(this_machine().threads)

    def copy_all() -> None:
        threads.share(runs, lambda run: np.copyto(copy[run], source[run]))

    return max(_rate(copy_all, "host") for _ in range(TIMES))


def _bandwidth_of_gpu() -> float | None:
    if runtime.missing() or not runtime.holds(2 * COPIED):
        return None
    import cupy  # there: `runtime.missing` has looked

    source, copy = cupy.ones(COPIED // 8), cupy.empty(COPIED // 8)

    def copy_all() -> None:
        copy.data.copy_from_device_async(source.data, COPIED)

    return max(_rate(copy_all, "device") for _ in range(TIMES))


def _rate(copy: Callable[[], object], place: Place) -> float:
    settle(place)
    began = perf_counter()
    copy()
    settle(place)
    return 2 * COPIED / (perf_counter() - began)


def _table(head: list[str], rows: list[list[str]]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in head:
        table.add_column(Text(name), justify="right" if name in NUMBERS else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
