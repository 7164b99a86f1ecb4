"""Readable report of the stages, choices and costs of a ranking: `Ranking.explain`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from typing import IO

from prplugin.errors import counted
from prplugin.tables import console, table
from prplugin.types.records import History, Order


def explain(summary: str, lines: Iterable[str], history: History, writing: float | None, file: IO[str] | None) -> None:
    """Print `summary`, `lines`, and the stages, methods and error bounds of a ranking.

    `writing`: Seconds in which the frame was created; None if it was not.
    """
    from rich.console import Group
    from rich.text import Text

    stages = [*history.stages, *([] if writing is None else [("frame of ranks written", writing)])]
    tables = [
        (["stage", "seconds"], [[name, f"{seconds:.3g}"] for name, seconds in stages]),
        (["method", "seconds", "reason"], _methods(history)),
    ]
    if history.bounds:
        milestones = [[str(count), f"{bound:.2e}"] for count, bound in _milestones(history)]
        tables.append((["passes", "error bound"], milestones))
    parts = [Text(line) for line in [summary, *_of_graph(history), *history.notes, *lines]]
    for head, rows in tables:
        text = [place for place, name in enumerate(head) if name in ("stage", "method", "reason")]
        parts += [Text(""), table(head, rows, left=text)]
    # In one call: a notebook shows the output of each call of `print` separately.
    notebook = file is None and console(None).is_jupyter
    console(None if notebook else file or sys.stdout).print(Group(*parts))


def _of_graph(history: History) -> Iterator[str]:
    edges = counted(history.m, "weighted edge" if history.weighted else "edge")
    yield f"graph: {counted(history.n, 'vertex', 'vertices')}, {edges}"
    if history.unused_weight is not None:
        weight = history.unused_weight
        yield f"column {weight!r} is not used: every edge counts 1. Pass weight={weight!r} to weigh the edges by it."
    for argument, count in history.unknown:
        vertices = counted(count, "vertex", "vertices")
        yield f"ignored: {vertices} of {argument}, which the graph lacks"
    yield f"requested: alpha {history.alpha:g}, tol {history.tol:g}, stop {history.stop!r}"


def of_passes(passes: int, history: History) -> Iterator[str]:
    """Return lines on the speed of a number of passes over the edges."""
    _, seconds = history.stages[-1]
    if passes and seconds:
        yield f"time per pass over the edges: {1e3 * seconds / passes:.3g} ms on average"
        yield f"bytes per pass, if each array is read or written once: {history.bytes_per_pass:,}"
        yield f"bandwidth at that number of bytes: {history.bytes_per_pass * passes / seconds / 1e9:.3g} GB/s"


def of_order(order: Order) -> Iterator[str]:
    """Return lines on a certified order."""
    equal = sum(tie.equal for tie in order.ties)
    yield f"order of the {order.rows.size:,} highest: {'proved' if order.proved else 'not proved'}"
    yield f"ties: {equal} between vertices proved equal, {len(order.ties) - equal} between others of unproved order"
    yield f"the error of each rank is at most {order.margin:.2g}"


def _methods(history: History) -> list[list[str]]:
    """Return a row per method; methods without seconds share one row per reason."""
    rows = [[one.method, f"{one.seconds:.2g}", one.reason] for one in history.considered if one.seconds is not None]
    unmeasured: dict[str, list[str]] = {}
    for one in history.considered:
        if one.seconds is None:
            unmeasured.setdefault(one.reason, []).append(one.method)
    return rows + [[", ".join(names), "", reason] for reason, names in unmeasured.items()]


def _milestones(history: History) -> list[tuple[int, float]]:
    """Return the first bound of each power of ten, and the last."""
    kept: dict[float, tuple[int, float]] = {}
    for passes, bound in history.bounds:
        power = math.ceil(math.log10(bound)) if bound > 0 else -math.inf
        if power < min(kept, default=math.inf):
            kept[power] = passes, bound
    return list(dict.fromkeys([*kept.values(), history.bounds[-1]]))
