"""A graph in the memory of this process whose edges change between rankings."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prplugin.cpu.sums import total
from prplugin.errors import InvalidEdgesError, MethodUnavailableError, PageRankError, counted, listed
from prplugin.frames.base import Vertices
from prplugin.frames.changes import KnownIds, Named, Rows, read_rows
from prplugin.frames.times import Clock
from prplugin.graph.adjacency import Adjacency, rows_of
from prplugin.graph.decay import Decaying, shown
from prplugin.graph.dedup import one_edge_a_pair
from prplugin.graph.update import (
    ChangingEdges,
    MissingEdgesError,
    Pairs,
    RefusedError,
    RepeatedEdgesError,
    VanishedEdgesError,
    placed,
)
from prplugin.machine import COMPILED_AFTER, record_work
from prplugin.numerics.rounding import StepRounding
from prplugin.options import Options
from prplugin.result.ranking import Ranking
from prplugin.solver.certificate import Certificate
from prplugin.solver.residual import Residual
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Floats, Integers
from prplugin.types.history import Considered, History

__all__ = ["Access", "Aging", "ChangingGraph", "LastRanks", "Pushed"]

PUSHED = 1 / (1 << 16)
"""Of the edges, as many as may have changed since the last ranking for pushes to be tried."""

SLOWER = 5
"""Times that a pushed edge takes as long as one of a pass, about."""

BEFORE = 2
"""Passes that it takes as long as to prepare a method, about."""

AHEAD = 1 / 2
"""Of the tolerance, what a method is to reach where few edges change at a time, so that the next few need no other."""

RENEWED = 1 / 10
"""Of the tolerance, as much as the roundings of a residual may take before it is computed anew."""


class Access:
    """Many rankings at a time, or one update: which does not wait for them, since a ranking may be what called it."""

    def __init__(self) -> None:
        self._lock, self._rankings = threading.Lock(), 0

    @contextmanager
    def ranking(self) -> Iterator[None]:
        """Enter a ranking, after an update that is under way."""
        with self._lock:
            self._rankings += 1
        try:
            yield
        finally:
            with self._lock:
                self._rankings -= 1

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Enter an update.

        Raises
        ------
        PageRankError
            If a ranking is under way.
        """
        with self._lock:
            if self._rankings:
                raise PageRankError("this graph is being ranked: update it when that has ended.")
            yield


Equation: TypeAlias = tuple[float, Floats | None, Floats | None]
"""Alpha, v and w of `prplugin.graph.problem.Problem`."""


class LastRanks(NamedTuple):
    """Ranks of sum 1, what they solve, and passes over the edges that a method needs for them without a start."""

    equation: Equation
    ranks: Floats
    passes: int


class Pushed(NamedTuple):
    """Ranks found by pushes alone, and proved."""

    ranks: Floats
    error_bound: float
    passes: int

    def ranking(self, options: Options, graph: ChangingGraph, began: float, among: Integers | None) -> Ranking:
        """Return the ranking that began then."""
        n, m = self.ranks.size, graph.edges.m
        ranks = self.ranks if options.scale == 1 else self.ranks * n
        seconds = time.perf_counter() - began
        history = History(
            n, m, graph.edges.out.weights is not None, "host", options.alpha, options.tol, options.stop,
            (Considered("push", None, "few edges have changed since the last ranking"),),
            (("residuals pushed", seconds),), ((self.passes, self.error_bound),),
        )  # fmt: skip
        return Ranking(
            ranks.astype(options.dtype, copy=False), True, self.passes, self.error_bound, "push", seconds,
            graph.vertices.write, options.top, None, history, among,
        )  # fmt: skip


class Aging(NamedTuple):
    """How the weights of a graph decay, and by which power of 2 those that leave each vertex are divided."""

    clock: Clock
    references: Integers

    def present(self, edges: Compressed, *, by_target: bool) -> Compressed:
        """Return edges with the weights that they have now."""
        assert edges.weights is not None
        sources = edges.indices if by_target else rows_of(edges.offsets, edges.indices.size)
        return edges._replace(weights=shown(edges.weights, self.references.take(sources), self.clock.shift()))


class _State(NamedTuple):
    """What an update replaces at once."""

    edges: ChangingEdges
    known: KnownIds
    clock: Clock | None


class ChangingGraph:
    """The edges and vertices of a graph, and its last ranks.

    Parameters
    ----------
    adjacency, vertices
        The graph before the first update.
    columns : Named
        The columns of frames of edges.
    aging : Aging, optional
        Of weights that decay.
    last : LastRanks, optional
    """

    def __init__(
        self,
        adjacency: Adjacency,
        vertices: Vertices,
        columns: Named,
        aging: Aging | None,
        last: LastRanks | None,
    ) -> None:
        if adjacency.memory_space != "host" or adjacency.spilled:
            raise MethodUnavailableError(
                "update changes graphs of frames on the host: make this one of edges.to_pandas()."
            )
        if columns.windowed:
            raise MethodUnavailableError(
                "update changes no graph with a window=: leave it out, and remove the edges that are too old."
            )
        record_work(COMPILED_AFTER)  # changes take Numba, and so other work may
        clock, references = (None, None) if aging is None else aging
        self._state = _State(ChangingEdges.of(adjacency, references), KnownIds(vertices), clock)
        self._columns = columns
        self._adjacency: Adjacency | None = None
        self._lock = threading.Lock()
        self._last = None if last is None else last._replace(ranks=_start(last.ranks))
        self._passes = 0 if last is None else last.passes
        self._residual: tuple[Equation, Residual] | None = None
        self._changed = 0

    @property
    def edges(self) -> ChangingEdges:
        """The edges."""
        return self._state.edges

    @property
    def vertices(self) -> Vertices:
        """The vertices."""
        return self._state.known.vertices

    @property
    def aging(self) -> Aging | None:
        """How weights decay, if they do."""
        clock, references = self._state.clock, self.edges.references
        return None if clock is None or references is None else Aging(clock, references)

    @property
    def adjacency(self) -> Adjacency:
        """The graph as it is now, with edges one after the other."""
        with self._lock:
            if self._adjacency is None:
                self._adjacency = self.edges.adjacency()
            return self._adjacency

    def update(self, add: Any, remove: Any) -> None:
        """Remove and add edges: all of them, or on any error none."""
        edges, known, clock = self._state
        clock, how = copy(clock), self._columns
        removed = None if remove is None else read_rows(remove, how, clock, removed=True)
        added = None if add is None else read_rows(add, how, clock, removed=False)
        minus, plus, positions = _NO_PAIRS, _NO_PAIRS, None
        if removed is not None:
            rows = known.located(removed.vertices, "remove")
            absent = (rows[removed.edges.source] < 0) | (rows[removed.edges.destination] < 0)
            if absent.any():
                raise _not_there(removed, np.flatnonzero(absent))
            minus = _pairs(removed, rows)
        if added is not None:
            added = added._replace(edges=one_edge_a_pair(added.edges, how.duplicates, directed=how.directed))
            rows = known.located(added.vertices, "add")
            if (rows < 0).any():
                known, rows, positions = known.grown(added.vertices, rows)
                edges = edges.grown(len(known), positions)
                if positions is not None:
                    minus = Pairs(positions[minus.source], positions[minus.target], minus.weights)
            plus = _pairs(added, rows)
            edges.roundings = max(edges.roundings, added.edges.roundings)
        try:
            plan = edges.plan(plus, minus, how.duplicates, directed=how.directed)
        except RefusedError as refused:
            raise _refusal(refused, added, removed, known.vertices) from None
        # From here on nothing fails. An interrupt costs the last ranks at most.
        self._adjacency, residual, self._residual, last, self._last = None, self._residual, None, self._last, None
        n = edges.n
        if self.edges.n == 0:
            residual = last = None
        elif n > self.edges.n:
            if residual is not None:
                residual[1].grow(n, positions)
            if last is not None:
                last = last._replace(ranks=placed(last.ranks, n, positions, 0.0))
        if residual is not None:
            residual[1].add(edges, plan.out.rows, -1.0)
        edges.commit(plan)
        self._state = _State(edges, known, clock)
        if residual is not None:
            residual[1].add(edges, plan.out.rows, 1.0)
        self._residual, self._last = residual, last
        self._changed += plus.source.size + minus.source.size

    def keep(self, last: LastRanks) -> None:
        """Keep ranks for the next ranking to start from."""
        with self._lock:
            self._passes = max(self._passes, last.passes)
            self._last, self._residual, self._changed = last._replace(ranks=_start(last.ranks)), None, 0

    def pushed(self, equation: Equation, options: Options) -> tuple[Pushed | None, Floats | None, float]:
        """Return ranks by pushes alone, or None, where a method is to start from, and the tolerance it is to reach."""
        with self._lock:
            held, last, tol = self._residual, self._last, options.tol
            self._residual = None
            start = last.ranks if last is not None and _same(last.equation, equation) else None
            residual = held[1] if held is not None and _same(held[0], equation) else None
            few, passes, edges = self._is_for_pushes(equation, options), 0, self.edges
            if edges.n == 0:
                return None, None, tol
            if residual is None:
                if start is None or not few:
                    return None, start, tol
                residual, passes = Residual.of(edges, *equation[:2], start), 1
            bound, noise, whole = residual.bounds()
            if noise > RENEWED * tol:
                residual.renew(edges)
                passes += 1
                bound, _, whole = residual.bounds()
            cast = _cast(options, edges.n)
            if bound + cast > tol and few:
                left = BEFORE + self._passes * math.log(bound / tol) / math.log(2 / tol)
                bound, whole, spent = residual.push(edges, tol - cast, int(left * edges.m / SLOWER))
                passes += -(-spent // max(edges.m, 1))
            ranks = residual.ranks(whole)
            if bound + cast > tol or not few:
                self._last = LastRanks(equation, _start(ranks), 0)
                return None, self._last.ranks, tol * AHEAD if few else tol
            self._residual, self._last, self._changed = (equation, residual), None, 0
            return Pushed(ranks, bound + cast, passes), None, tol

    def _is_for_pushes(self, equation: Equation, options: Options) -> bool:
        plain = options.method == "auto" and options.max_iter is None and not options.certified
        return plain and equation[2] is None and self._changed <= PUSHED * self.edges.m + 16


def _same(one: Equation, other: Equation) -> bool:
    """Return whether two equations are the same, but for vertices that came later."""
    if one[0] != other[0]:
        return False
    for mine, its in zip(one[1:], other[1:], strict=True):
        if (mine is None) != (its is None):
            return False
        if mine is not None and its is not None and not np.array_equal(mine, its):
            return False
    return True


def _start(ranks: Floats) -> Floats:
    """Copy ranks, which a user may have altered."""
    ranks = np.maximum(np.nan_to_num(ranks, posinf=0.0), 0.0)
    whole = total(ranks)
    return ranks / whole if whole > 0 else np.full(ranks.size, 1 / max(ranks.size, 1))


def _cast(options: Options, n: int) -> float:
    """Bound the roundings of a result that is scaled or cast: see `prplugin.solver.certificate`."""
    rounding = StepRounding(row=0, edge=0, dangling=0, vectors=0, norm=0)
    return Certificate(options.alpha, n, 0, rounding, options.dtype, options.scale).cast


def _pairs(rows: Rows, positions: Integers) -> Pairs:
    edges = rows.edges
    weights: Any = edges.weights
    if edges.times is not None:
        weights = Decaying.of(weights, edges.times)
    return Pairs(positions[edges.source], positions[edges.destination], weights)


_NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), None)


def _refusal(refused: RefusedError, added: Rows | None, removed: Rows | None, vertices: Vertices) -> InvalidEdgesError:
    """Return the error of a change that cannot be made."""
    which = refused.args[0]
    if isinstance(refused, MissingEdgesError) and removed is not None:
        return _not_there(removed, which)
    if isinstance(refused, RepeatedEdgesError) and added is not None:
        return InvalidEdgesError(
            f"add has {counted(len(which), 'edge')} that the graph has already: {listed(_described(added, which))}. "
            "Leave them out, or make the graph with duplicates='sum', 'first' or 'last'."
        )
    named = f"{counted(len(which), 'vertex', 'vertices')} ({listed(vertices.described(which))})"
    if isinstance(refused, VanishedEdgesError):
        return InvalidEdgesError(
            f"remove leaves {named} with edges that are hundreds of half-lives older than those removed, which is more "
            "than the weights of a graph span: make it anew."
        )
    return InvalidEdgesError(f"the weights that leave {named} sum to more than float64 holds. Divide them all.")


def _described(rows: Rows, which: Integers) -> list[str]:
    ends = [rows.vertices.described(end[which]) for end in (rows.edges.source, rows.edges.destination)]
    weights = rows.edges.weights
    return [
        f"{source} -> {target}" + ("" if weights is None else f" of weight {weights[row]:g}") if source else ""
        for source, target, row in zip(*ends, which.tolist(), strict=True)
    ]


def _not_there(rows: Rows, which: Integers) -> InvalidEdgesError:
    return InvalidEdgesError(
        f"remove has {counted(len(which), 'edge')} that the graph does not have: "
        f"{listed(_described(rows, which))}. Nothing was changed."
    )
