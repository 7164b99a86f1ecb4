"""Report the progress of a ranking: by a bar on a terminal or in a notebook, by lines, or by calls of a function."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

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

LINE_SECONDS = 5.0
"""Interval in seconds between lines about the progress where there is no terminal."""


@dataclass(frozen=True, slots=True)
class Progress:
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
    done, total : int
        In the stage "vertices", how much of the input has been read or, with the unit "ids", factorized; 0 and 0 where
        that is not known.
    unit : str
        What `done` and `total` count: bytes of a file, as it is stored, rows, or ids.
    """

    stage: Literal["vertices", "edges", "iterations"]
    iterations: int
    expected: int | None
    error_bound: float
    seconds: float
    done: int = 0
    total: int = 0
    unit: str = ""


ProgressCallback: TypeAlias = Callable[[Progress], object]
ProgressOption: TypeAlias = bool | ProgressCallback


_reading: ContextVar[Watch | None] = ContextVar("reading", default=None)
"""The watch of the call of this thread, if it reports."""


def counting(total: int, unit: str) -> Callable[[int], None]:
    """Return a function that readers call with the number of bytes or rows that they have read so far, of `total`."""
    if (watch := _reading.get()) is None or total <= 0:
        return lambda done: None
    watch.read(0, total, unit)
    return lambda done: watch.read(min(done, total), total, unit)


class _Ids:
    """Number of ids that threads have factorized, of so many."""

    def __init__(self, watch: Watch, total: int) -> None:
        self._watch, self._total, self._done, self._lock = watch, total, 0, threading.Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self._done = min(self._done + count, self._total)
            self._watch.read(self._done, self._total, "ids")


_ids: ContextVar[_Ids | None] = ContextVar("ids", default=None)


@contextmanager
def factorizing(total: int) -> Iterator[None]:
    """Report what `counted_ids` counts, in this context and in copies of it, of so many ids."""
    watch = _reading.get()
    before = _ids.set(None if watch is None else _Ids(watch, total))
    try:
        yield
    finally:
        _ids.reset(before)


def counted_ids(count: int) -> None:
    """Report that so many more ids have been factorized."""
    if (ids := _ids.get()) is not None:
        ids.add(count)


class Watch:
    """Record of the stages and error bounds of one ranking, which passes each state to `report` if that is given.

    `begun`: Time by `time.perf_counter` at which each stage began.
    `bounds`: Number of iterations and error bound, after each iteration.
    `made`: Number of iterations of rankings of groups before the present one.
    """

    def __init__(self, report: ProgressCallback | None) -> None:
        self.report, self.made = report, 0
        self._began = time.perf_counter()
        self.begun: dict[str, float] = {}
        self.bounds: list[tuple[int, float]] = []

    def stage(self, stage: Literal["vertices", "edges"]) -> None:
        """Record that a stage begins."""
        self.begun[stage] = time.perf_counter()
        if self.report is not None:
            self.report(Progress(stage, 0, None, math.inf, time.perf_counter() - self._began))

    def read(self, done: int, total: int, unit: str) -> None:
        """Report how much of the input has been read."""
        if self.report is not None:
            self.report(Progress("vertices", 0, None, math.inf, time.perf_counter() - self._began, done, total, unit))

    def stages(self, reading: float) -> tuple[tuple[str, float], ...]:
        """Return name and seconds of each stage of a ranking that has just ended; `reading`: those of its graph."""
        prepared = self.begun.get("iterations", now := time.perf_counter())
        return tuple(zip(STAGES, (reading, prepared - self.begun["edges"], now - prepared), strict=True))

    def iterations(self, options: Options, budget: int, made: int = 0) -> Callable[[int, float, Sequence[float]], None]:
        """Return the function that the loop calls after each step; without a tolerance it uses the whole budget.

        `made`: Number of iterations before those that it is called with, beside `self.made`.
        """
        made += self.made
        tol = options.tol if options.rule.proves else 0.0
        self.begun.setdefault("iterations", time.perf_counter())  # called once per batch of seeds
        first: tuple[int, float] | None = None

        def step_done(iterations: int, error_bound: float, earlier: Sequence[float] = ()) -> None:
            nonlocal first
            iterations += made
            self.bounds += enumerate(earlier, iterations - len(earlier))
            self.bounds.append((iterations, error_bound))
            if self.report is None:
                return
            if first is None and error_bound < 1:  # larger bounds tell little, since no error exceeds 2
                first = (iterations, error_bound)
            expected = _expected(first, iterations, error_bound, tol, budget + made)
            seconds = time.perf_counter() - self._began
            self.report(Progress("iterations", iterations, expected, error_bound, seconds))

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


@contextmanager
def watching(progress: ProgressOption) -> Iterator[Watch]:
    """Return the `Watch` for a `progress` argument, which must be a bool or a function; remove the bar at the end."""
    reporting: AbstractContextManager[ProgressCallback | None]
    if callable(progress):
        reporting = nullcontext(progress)
    elif isinstance(progress, (bool, np.bool_)):
        reporting = _bar() if progress else nullcontext()
    else:
        raise InvalidOptionError(f"progress must be True, False or a function of the state, not {progress!r}.")
    with reporting as report:
        watch = Watch(report)
        before = _reading.set(watch if report is not None else None)
        try:
            yield watch
        finally:
            _reading.reset(before)


class _Outlook:
    """Describes states in a line, with percent and the time left at the pace of the same count so far."""

    def __init__(self) -> None:
        self._count: tuple[str, int] | None = None
        self._first = 0, 0.0

    def __call__(self, state: Progress) -> tuple[str, int, int | None]:
        """Return the line, how much of the count is done, and its total or None."""
        if state.stage == "iterations":
            done, total, text = state.iterations, state.expected or 0, f"iteration {state.iterations}"
            note = f", error at most {state.error_bound:.1e}"
        elif 0 < state.done < state.total:
            done, total, text = state.done, state.total, "factorizing" if state.unit == "ids" else "reading"
            note = f" of {_amount(state.total, state.unit)}"
        else:
            done, total, note = 0, 0, ""
            text = "reading" if state.total and not state.done else f"preparing {state.stage}"
        count = state.stage, state.total
        if self._count != count:
            self._count, self._first = count, (done, state.seconds)
        first, began = self._first
        if state.stage == "vertices" and total:
            text += f" {100 * done // total} %"
        left = ""
        if first < done < total:
            left = f", {_duration((state.seconds - began) * (total - done) / (done - first))} left"
        return text + note + left, done, total or None


def _amount(count: int, unit: str) -> str:
    """Return a count with its unit; bytes in powers of 1000."""
    if unit != "bytes":
        return f"{count:,} {unit}"
    power = min(max(count, 1).bit_length() // 10, 4)
    return f"{count / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"


def _duration(seconds: float) -> str:
    """Return a time in seconds, minutes or hours."""
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def lines(file: IO[str]) -> Iterator[ProgressCallback]:
    """Return a function of the state, and print a line about the last one to a file every `LINE_SECONDS`."""
    outlook, began, done = _Outlook(), time.perf_counter(), threading.Event()
    latest = "reading"

    def report(state: Progress) -> None:
        nonlocal latest
        latest = outlook(state)[0]

    def show() -> None:
        while not done.wait(LINE_SECONDS):
            print(f"{time.perf_counter() - began:.0f} s: {latest}", file=file, flush=True)

    with _beside(show, done):
        yield report


@contextmanager
def _bar() -> Iterator[ProgressCallback | None]:
    """Show a bar after `QUIET_SECONDS`, in a notebook's cell, or on standard error if that is a terminal."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield None
        return
    columns = progress.TextColumn("{task.description}"), progress.BarColumn(), progress.TimeElapsedColumn()
    bar = progress.Progress(*columns, console=console, transient=True, disable=console.is_jupyter)
    task, outlook = bar.add_task("reading", total=None), _Outlook()

    def report(state: Progress) -> None:
        description, completed, total = outlook(state)
        bar.update(task, description=description, completed=completed)
        bar.tasks[0].total = total  # `update` ignores None, which makes the bar a pulse

    done = threading.Event()
    with _beside(partial(_show, bar, done), done):
        yield report


@contextmanager
def _beside(show: Callable[[], None], done: threading.Event) -> Iterator[None]:
    """Run a function in a thread of its own, which ends once `done` is set on leaving."""
    showing = threading.Thread(target=show, daemon=True)
    showing.start()
    try:
        yield
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
