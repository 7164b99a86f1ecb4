"""Units of the suite, and their distribution over processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from conformance import published, rapids, report
from conformance.against_cugraph import CALLS, Comparison, compare_with_cugraph, graphs
from conformance.compare import DTYPES, Result, available, compare, library_for, prepare
from conformance.forced import FORCED
from conformance.options import Choice, choices
from conformance.probes import Finding, findings
from conformance.shapes import SHAPES
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = ["JOBS", "Unit", "UnitResult", "run_units", "units"]

JOBS = min(4, this_machine().threads)
"""Default number of processes. A GPU runs one process at a time, so that additional ones would only wait."""

QUICK_STRIDE = 4
"""With ``quick``, each case of a graph runs with another 1 / QUICK_STRIDE of the methods and dtypes, in turn."""

SLOW_ALPHA = 0.999
"""Alpha from which a case takes tens of thousands of iterations. Of the GPU methods only `REPRESENTATIVES` run with it,
since all GPU methods share the loop and the end of each step."""

REPRESENTATIVES = "warp", "persistent"


class Unit(NamedTuple):
    """Work of one process at a time: a case with all methods, a graph compared with cuGraph, or all probes."""

    choice: Choice | None = None
    forced: bool = False
    file: Path | None = None
    graph: str = ""
    call: str = ""
    number: int = 0

    def __str__(self) -> str:
        if self.choice is not None:
            return f"{self.choice}, forced options" if self.forced else str(self.choice)
        return (self.file and self.file.stem) or (f"{self.graph}, {self.call}" if self.graph else "probes")


class UnitResult(NamedTuple):
    """Results of a unit."""

    reference_results: list[report.ReferenceResult]
    results: list[Result]
    comparisons: list[Comparison]
    findings: Sequence[Finding] = ()


def units() -> list[Unit]:
    """Return every unit, in the order of the report."""
    numbers = {shape: count() for shape in {choice.shape for choice in choices()}}
    found = [Unit(choice=choice, number=next(numbers[choice.shape])) for choice in choices()]
    # From random ranks, since uniform ones are the solution on regular shapes.
    found += [
        Unit(choice=Choice(shape, nstart="random"), forced=True, number=number) for number, shape in enumerate(SHAPES)
    ]
    found += [Unit(file=file, number=number) for number, file in enumerate(published.files())]
    if rapids.missing("cugraph") is None:
        found += [Unit(graph=graph, call=call) for graph in graphs() for call in CALLS] + [Unit()]
    return found


def run_units(
    units: list[Unit], jobs: int, quick: bool, only: tuple[str, ...] = ()
) -> Iterator[tuple[Unit, UnitResult]]:
    """Run all units and yield their results. Slow units start first, so that no process runs one at the end.

    With `quick`, each unit runs with a part of the methods and dtypes: see `QUICK_STRIDE` and `compare_with_cugraph`.
    With `only`, methods of other names are skipped.
    """
    run = partial(_run, quick=quick, only=only)
    if jobs == 1:
        yield from ((unit, run(unit)) for unit in units)
        return
    # The processes use all cores: threads of BLAS would oversubscribe them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A CUDA context does not survive a fork.
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        futures = {pool.submit(run, unit): unit for unit in sorted(units, key=_priority)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:  # after an interrupt, pending units are cancelled, and running ones are not awaited
        pool.shutdown(wait=False, cancel_futures=True)


def _priority(unit: Unit) -> tuple[bool, bool, float]:
    """Return a sort key: large graphs, then cases of alpha close to 1, then comparisons with cuGraph."""
    if unit.choice is not None:
        return False, unit.choice.shape != "large", -unit.choice.alpha
    return bool(unit.graph), True, 0.0


def _run(unit: Unit, quick: bool, only: tuple[str, ...]) -> UnitResult:
    if unit.choice is not None:
        case = prepare(unit.choice)
    elif unit.file is not None:
        case = published.read(unit.file)
    elif not unit.graph:
        return UnitResult([], [], [], findings())
    else:
        return UnitResult([], [], [compare_with_cugraph(unit.graph, unit.call, quick=quick, only=only)])
    available_methods = [
        name
        for name, unavailable_reason in available().items()
        if unavailable_reason is None and name in (only or methods())
    ]
    runs = [
        (method, dtype, library_for(method), options)
        for method in available_methods
        for options in (FORCED.get(method, ()) if unit.forced else (None,))
        for dtype in DTYPES
    ]
    if quick:
        runs = runs[unit.number % QUICK_STRIDE :: QUICK_STRIDE]
    if case.equation.alpha >= SLOW_ALPHA:
        runs = [run for run in runs if methods()[run[0]].runs_on == "cpu" or run[0] in REPRESENTATIVES]
    return UnitResult(report.reference_results(case), [compare(case, *run) for run in runs], [])
