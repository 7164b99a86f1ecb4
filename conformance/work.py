"""The suite cut into units, and spread over processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from conformance import published, rapids, report
from conformance.against_cugraph import WAYS, Beside, beside, graphs
from conformance.compare import DTYPES, Result, available, compare, library_for, prepare
from conformance.options import Choice, choices
from prplugin.machine import this_machine

__all__ = ["JOBS", "Done", "Unit", "all_done", "units"]

JOBS = min(8, this_machine().threads)
"""More processes than this get in each other's way on one GPU."""


class Unit(NamedTuple):
    """What one process does at a time: a case by all methods, or a graph beside cuGraph."""

    choice: Choice | None = None
    file: Path | None = None
    graph: str = ""
    way: str = ""

    def __str__(self) -> str:
        return str(self.choice or (self.file and self.file.stem) or f"{self.graph}, {self.way}")


class Done(NamedTuple):
    """What came of a unit."""

    answers: list[report.Answer]
    results: list[Result]
    besides: list[Beside]


def units() -> list[Unit]:
    """Give every unit, in the order of the report."""
    found = [Unit(choice=choice) for choice in choices()] + [Unit(file=file) for file in published.files()]
    if rapids.missing("cugraph") is None:
        found += [Unit(graph=graph, way=way) for graph in graphs() for way in WAYS]
    return found


def all_done(units: list[Unit], jobs: int) -> Iterator[tuple[Unit, Done]]:
    """Do all units, the slow ones first, so that no process is left with one in the end."""
    if jobs == 1:
        yield from ((unit, _do(unit)) for unit in units)
        return
    # The processes are the parallelism: solvers that start threads of their own would crowd the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A CUDA context does not live through a fork.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_do, unit): unit for unit in sorted(units, key=_haste)}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _haste(unit: Unit) -> tuple[bool, float]:
    """Order by expected time, falling: large graphs, then the many steps that an alpha next to 1 takes."""
    if unit.choice is not None:
        return unit.choice.shape != "large", -unit.choice.alpha
    return not unit.graph, 0.0


def _do(unit: Unit) -> Done:
    if unit.choice is not None:
        case = prepare(unit.choice)
    elif unit.file is not None:
        case = published.read(unit.file)
    else:
        return Done([], [], [beside(unit.graph, unit.way)])
    results = [
        compare(case, method, dtype, library_for(method))
        for method, unfit in available().items()
        if unfit is None
        for dtype in DTYPES
    ]
    return Done(report.answers(case), results, [])
