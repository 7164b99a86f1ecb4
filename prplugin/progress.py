"""Report the progress of a ranking: by a bar on a terminal or in a notebook, or by calls of a function."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from prplugin.errors import InvalidOptionError

if TYPE_CHECKING:
    from prplugin.options import Options

STAGES = "frame read, ids factorized", "method chosen, edges arranged", "iterations"
"""Names of the stages of a ranking, in order, in `Ranking.explain`."""

QUIET_SECONDS = 2.0
"""Delay in seconds before the bar is shown."""

REDRAWN_SECONDS = 0.2
"""Interval in seconds at which the bar in a notebook is redrawn."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a call of `pagerank` or `Graph.rank`.

    Attributes
    ----------
    stage : {"vertices", "edges", "iterations"}
        Current stage: factorization of ids, arrangement of edges, or iteration.
    iterations : int
        Number of completed iterations.
    expected : int or None
        Estimated total number of iterations, extrapolated from the error bounds; None until two bounds are known.
    error_bound : float
        Proved error bound of the current ranks; infinite before the first iteration, or if rounding allows no bound.
    seconds : float
        Time in seconds since the call began.
    """

    stage: Literal["vertices", "edges", "iterations"]
    iterations: int
    expected: int | None
    error_bound: float
    seconds: float


Report: TypeAlias = Callable[[State], object]
ProgressOption: TypeAlias = bool | Report


class Watch:
    """Record of the stages and error bounds of one ranking, which passes each state to `report` if that is given.

    `begun`: Time by `time.perf_counter` at which each stage began.
    `bounds`: Number of iterations and error bound, after each iteration.
    """

    def __init__(self, report: Report | None) -> None:
        self.report = report
        self._began = time.perf_counter()
        self.begun: dict[str, float] = {}
        self.bounds: list[tuple[int, float]] = []

    def stage(self, stage: Literal["vertices", "edges"]) -> None:
        """Record that a stage begins."""
        self.begun[stage] = time.perf_counter()
        if self.report is not None:
            self.report(State(stage, 0, None, math.inf, time.perf_counter() - self._began))

    def stages(self, reading: float) -> tuple[tuple[str, float], ...]:
        """Return name and seconds of each stage of a ranking that has just ended; `reading`: those of its graph."""
        prepared = self.begun.get("iterations", now := time.perf_counter())
        return tuple(zip(STAGES, (reading, prepared - self.begun["edges"], now - prepared), strict=True))

    def iterations(self, options: Options, budget: int) -> Callable[[int, float, Sequence[float]], None]:
        """Return the function that the loop calls after each step; without a tolerance it uses the whole budget."""
        tol = options.tol if options.rule.proves else 0.0
        self.begun.setdefault("iterations", time.perf_counter())  # called once per batch of seeds
        first: tuple[int, float] | None = None

        def step_done(iterations: int, error_bound: float, earlier: Sequence[float] = ()) -> None:
            nonlocal first
            self.bounds += enumerate(earlier, iterations - len(earlier))
            self.bounds.append((iterations, error_bound))
            if self.report is None:
                return
            if first is None and error_bound < 1:  # larger bounds tell little, since no error exceeds 2
                first = (iterations, error_bound)
            expected = _expected(first, iterations, error_bound, tol, budget)
            seconds = time.perf_counter() - self._began
            self.report(State("iterations", iterations, expected, error_bound, seconds))

        return step_done


def _expected(first: tuple[int, float] | None, now: int, bound: float, tol: float, budget: int) -> int | None:
    """Extrapolate the geometric decrease of the bound to the tolerance."""
    budget = max(budget, now)  # iterations in float32 are counted as well
    if tol <= 0:
        return budget
    if bound <= tol:
        return now
    if first is None or not 0 < bound < first[1]:
        return None
    rate = math.log(first[1] / bound) / (now - first[0])
    return min(budget, now + math.ceil(math.log(bound / tol) / rate))


def watching(progress: ProgressOption) -> AbstractContextManager[Watch]:
    """Return the `Watch` for a `progress` argument, which must be a bool or a function; remove the bar at the end."""
    if callable(progress):
        return nullcontext(Watch(progress))
    if isinstance(progress, (bool, np.bool_)):
        return _bar() if progress else nullcontext(Watch(None))
    raise InvalidOptionError(f"progress must be True, False or a function of the state, not {progress!r}.")


@contextmanager
def _bar() -> Iterator[Watch]:
    """Show a bar after `QUIET_SECONDS`, in a notebook's cell, or on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield Watch(None)
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, transient=True, disable=console.is_jupyter)
    task = bar.add_task("reading", total=None)

    def report(state: State) -> None:
        if state.stage != "iterations":
            bar.update(task, description=f"preparing {state.stage}")
        else:
            description = f"iteration {state.iterations}, error at most {state.error_bound:.1e}"
            completed = state.iterations if state.expected else 0
            bar.update(task, description=description, total=state.expected, completed=completed)

    done = threading.Event()
    showing = threading.Thread(target=_show, args=(bar, done), daemon=True)
    showing.start()
    try:
        yield Watch(report)
    finally:
        done.set()
        showing.join()


def _show(bar: Any, done: threading.Event) -> None:
    """Show a bar of rich after `QUIET_SECONDS`, until `done` is set; in a notebook's cell it remains visible."""
    if done.wait(QUIET_SECONDS):
        return
    if not bar.console.is_jupyter:
        with bar:
            done.wait()
        return
    from IPython.display import display  # there is a notebook; rich itself would need ipywidgets

    shown = display(bar.make_tasks_table(bar.tasks), display_id=True)  # type: ignore[no-untyped-call,unused-ignore]
    ended = False
    while not ended:
        ended = done.wait(REDRAWN_SECONDS)
        shown.update(bar.make_tasks_table(bar.tasks))
