"""The suite cut into units, and spread over processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from conformance import published, rapids, report
from conformance.against_cugraph import WAYS, Beside, beside, graphs
from conformance.compare import DTYPES, Result, available, compare, library_for, prepare
from conformance.options import Choice, choices
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = ["JOBS", "Done", "Unit", "all_done", "units"]

JOBS = min(4, this_machine().threads)
"""More processes than this get in each other's way on one GPU, which works for one of them at a time."""

QUICK_STRIDE = 4
"""With ``quick``, a case gets a QUICK_STRIDE-th of the methods and types, and the next case of its graph the next."""

STEPS_ON_GPU = 0.999
"""An alpha at which a case takes tens of thousands of steps. One method of each kind stands for those on the GPU: they
share the loop and the end of each step."""

STAND_FOR_ALL = "warp", "persistent"


class Unit(NamedTuple):
    """What one process does at a time: a case by all methods, or a graph beside cuGraph."""

    choice: Choice | None = None
    file: Path | None = None
    graph: str = ""
    way: str = ""
    turn: int = 0

    def __str__(self) -> str:
        return str(self.choice or (self.file and self.file.stem) or f"{self.graph}, {self.way}")


class Done(NamedTuple):
    """What came of a unit."""

    answers: list[report.Answer]
    results: list[Result]
    besides: list[Beside]


def units() -> list[Unit]:
    """Return every unit, in the order of the report."""
    turns = {shape: count() for shape in {choice.shape for choice in choices()}}
    found = [Unit(choice=choice, turn=next(turns[choice.shape])) for choice in choices()]
    found += [Unit(file=file, turn=turn) for turn, file in enumerate(published.files())]
    if rapids.missing("cugraph") is None:
        found += [Unit(graph=graph, way=way) for graph in graphs() for way in WAYS]
    return found


def all_done(units: list[Unit], jobs: int, quick: bool, only: tuple[str, ...] = ()) -> Iterator[tuple[Unit, Done]]:
    """Do all units, the slow ones first, so that no process is left with one in the end.

    With `quick`, each by a part of the methods and types: see `QUICK_STRIDE` and `conformance.against_cugraph.beside`.
    With
    `only`, by the methods of these names alone.
    """
    do = partial(_do, quick=quick, only=only)
    if jobs == 1:
        yield from ((unit, do(unit)) for unit in units)
        return
    # The processes are the parallelism: solvers that start threads of their own would crowd the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A CUDA context does not live through a fork.
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        futures = {pool.submit(do, unit): unit for unit in sorted(units, key=_haste)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:  # after an interrupt, too: what has not begun never does, and nobody waits for the rest
        pool.shutdown(wait=False, cancel_futures=True)


def _haste(unit: Unit) -> tuple[bool, bool, float]:
    """Order by expected time, falling, cases before graphs beside cuGraph: large ones, then an alpha next to 1."""
    if unit.choice is not None:
        return False, unit.choice.shape != "large", -unit.choice.alpha
    return bool(unit.graph), True, 0.0


def _do(unit: Unit, quick: bool, only: tuple[str, ...]) -> Done:
    if unit.choice is not None:
        case = prepare(unit.choice)
    elif unit.file is not None:
        case = published.read(unit.file)
    else:
        return Done([], [], [beside(unit.graph, unit.way, quick=quick, only=only)])
    able = [
        name
        for name, unavailable_reason in available().items()
        if unavailable_reason is None and name in (only or methods())
    ]
    runs = [(method, dtype) for method in able for dtype in DTYPES]
    if quick:
        runs = runs[unit.turn % QUICK_STRIDE :: QUICK_STRIDE]
    if case.equation.alpha >= STEPS_ON_GPU:
        runs = [run for run in runs if methods()[run[0]].runs_on == "cpu" or run[0] in STAND_FOR_ALL]
    return Done(report.answers(case), [compare(case, *run, library_for(run[0])) for run in runs], [])
