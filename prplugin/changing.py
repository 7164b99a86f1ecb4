"""A graph in the memory of this process whose edges change between rankings."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prplugin.cpu.sums import total
from prplugin.errors import InvalidEdgesError, MethodUnavailableError, PageRankError, counted, listed
from prplugin.frames.changes import FrameEdges, read_edges
from prplugin.frames.times import Clock
from prplugin.frames.vertex_index import VertexIndex
from prplugin.frames.vertices import Vertices, format_ids
from prplugin.graph.adjacency import Adjacency, rows_of
from prplugin.graph.decay import weights_at
from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.rebuild import RebuiltEdges
from prplugin.graph.update import ChangeError, ChangingEdges, expand_values
from prplugin.numerics.rounding import StepRounding
from prplugin.options import EdgeOptions, Options
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Outcome
from prplugin.solver.residual import Residual
from prplugin.types.arrays import namespace, to_host
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges, Floats, Integers

__all__ = ["Access", "Aging", "ChangingGraph", "LastRanks"]

VERTEX_COST = 8
"""Approximate time per vertex of an iteration of a method, which mixes iterates, relative to the time per edge."""

PUSH_SLOWDOWN = 3
"""Approximate time per pushed edge, relative to the time per edge of an iteration of a method."""

PREPARATION_PASSES = 14
"""Approximate time to group the edges by target and to prepare a method, in passes over the edges."""

CALL_COST = 1_000_000
"""Approximate time of the calls that prepare a method and run it on a small graph, in pushed edges."""

TOL_FRACTION = 1 / 2
"""Fraction of the tolerance that a method is to attain if few edges changed, so that pushes suffice afterwards."""

MAX_ROUNDING_FRACTION = 1 / 10
"""Fraction of the tolerance that the rounding errors of a residual may take before it is computed anew."""


class Access:
    """Lock that admits either any number of rankings or one update.

    An update does not wait for rankings to end, but is refused: its caller may be a callback of the ranking.
    """

    def __init__(self) -> None:
        self._lock, self._rankings = threading.Lock(), 0

    @contextmanager
    def ranking(self) -> Iterator[None]:
        """Enter a ranking, once no update is running."""
        with self._lock:
            self._rankings += 1
        try:
            yield
        finally:
            with self._lock:
                self._rankings -= 1

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Enter an update; raise PageRankError if a ranking is running."""
        with self._lock:
            if self._rankings:
                raise PageRankError("this graph is being ranked: update it after the ranking has ended.")
            yield


Equation: TypeAlias = tuple[float, Floats | None, Floats | None]
"""Alpha, v and w of `prplugin.graph.problem.Problem`."""


class LastRanks(NamedTuple):
    """Solution of an equation that a ranking found: n ranks of sum 1, or a residual if it can follow updates.

    `passes`: Passes over the edges that a method takes to find it without a start vector; 0 if unknown.
    """

    equation: Equation
    solution: Floats | Residual
    passes: int

    def is_of(self, equation: Equation) -> bool:
        """Return whether an equation has the same alpha, v and w."""
        vectors: Any = zip(self.equation[1:], equation[1:], strict=True)
        return self.equation[0] == equation[0] and all(
            old is new if old is None or new is None else bool(namespace(old).array_equal(old, new))
            for old, new in vectors
        )


class Aging(NamedTuple):
    """The clock of a graph whose weights decay, and the reference exponent of each vertex."""

    clock: Clock
    references: Integers

    def with_current_weights(self, edges: Compressed, *, by_target: bool) -> Compressed:
        """Return the edges with their weights at the latest time of the clock."""
        assert edges.weights is not None
        sources = edges.indices if by_target else rows_of(edges.offsets, edges.indices.size)
        return edges._replace(weights=weights_at(edges.weights, self.references.take(sources), self.clock.shift()))


class _State(NamedTuple):
    """State of a graph that an update replaces in one assignment."""

    edges: ChangingEdges | RebuiltEdges  # on the host, or in GPU memory
    vertex_index: VertexIndex
    clock: Clock | None


class ChangingGraph:
    """The edges and vertices of a graph, and its last ranks.

    `adjacency` and `vertices` are the graph before the first update, and `schema` the columns of the frames of edges to
    add and to remove. `aging` is given if weights decay. The next ranking starts from `last`.
    """

    def __init__(
        self,
        adjacency: Adjacency,
        vertices: Vertices,
        schema: EdgeOptions,
        aging: Aging | None,
        last: LastRanks | None,
    ) -> None:
        if schema.window is not None:
            raise MethodUnavailableError(
                "update does not support a graph with window=: leave it out, and remove edges that are too old."
            )
        index = VertexIndex(vertices)
        if index.memory_space != adjacency.memory_space:
            raise MethodUnavailableError(
                "update needs cuDF for the vertices of a graph in GPU memory: import cudf before you make the graph."
            )
        clock, references = (None, None) if aging is None else aging
        on_gpu = adjacency.memory_space == "device"
        edges = RebuiltEdges(adjacency, adjacency.n) if on_gpu else ChangingEdges.of(adjacency, references)
        self._state = _State(edges, index, clock)
        self._schema = schema
        self._adjacency: Adjacency | None = None
        self._lock = threading.Lock()
        self._last: LastRanks | None = None
        self._passes = 0
        if last is not None:
            self.keep(last)

    @property
    def edges(self) -> ChangingEdges | RebuiltEdges:
        """The edges."""
        return self._state.edges

    @property
    def vertices(self) -> Vertices:
        """The vertices."""
        return self._state.vertex_index.vertices

    @property
    def aging(self) -> Aging | None:
        """The clock and the reference exponents, if weights decay."""
        clock, references = self._state.clock, self.edges.references
        return None if clock is None or references is None else Aging(clock, references)

    @property
    def adjacency(self) -> Adjacency:
        """The graph in its present state, for methods."""
        with self._lock:
            if self._adjacency is None:
                self._adjacency = self.edges.adjacency()
            return self._adjacency

    def update(self, add: Any, remove: Any) -> None:
        """Remove and add edges; on any error, change nothing."""
        edges, index, clock = self._state
        clock, schema = copy(clock), self._schema
        removed = None if remove is None else read_edges(remove, schema, clock, index.memory_space, removed=True)
        added = None if add is None else read_edges(add, schema, clock, index.memory_space, removed=False)
        removals, additions, old_positions = _NO_EDGES, _NO_EDGES, None
        if removed is not None:
            positions = index.positions_of(removed.vertices, "remove")
            missing = (positions[removed.edges.source] < 0) | (positions[removed.edges.destination] < 0)
            if missing.any():
                raise _invalid_edges_error(ChangeError("missing", missing.nonzero()[0]), None, removed, self.vertices)
            removals = _moved(removed.edges, positions)
        if added is not None:
            added = added._replace(edges=drop_duplicates(added.edges, schema.duplicates, directed=schema.directed))
            positions = index.positions_of(added.vertices, "add")
            if (positions < 0).any():
                index, positions, old_positions = index.extend(added.vertices, positions)
                edges = edges.with_vertices(len(index), old_positions)
                if old_positions is not None and removed is not None:
                    removals = _moved(removed.edges, index.positions_of(removed.vertices, "remove"))
            additions = _moved(added.edges, positions)
            edges.roundings = max(edges.roundings, added.edges.roundings)
        plan: Any  # as `edges.commit` takes it
        try:
            plan = edges.plan(additions, removals, schema.duplicates, directed=schema.directed)
        except ChangeError as error:
            raise _invalid_edges_error(error, added, removed, index.vertices) from None
        # From here on nothing raises an error. A KeyboardInterrupt loses no more than the last ranks.
        self._adjacency, last, self._last = None, self._last, None
        n = edges.n
        if self.edges.n == 0:
            last = None
        residual: Any = last.solution if last is not None and isinstance(last.solution, Residual) else None
        if n > self.edges.n and residual is not None:
            residual.add_vertices(n, old_positions)
        elif n > self.edges.n and last is not None:
            last = last._replace(solution=expand_values(last.solution, n, old_positions, 0.0))
        edges.commit(plan)
        self._state = _State(edges, index, clock)
        if residual is not None:
            residual.apply(edges, plan)
        self._last = last

    def keep(self, last: LastRanks) -> None:
        """Store ranks for the next ranking to start from."""
        with self._lock:
            self._passes = max(self._passes, last.passes)
            solution: Any = last.solution
            self._last = last._replace(solution=solution / solution.sum())  # the user may alter the ranks

    def try_push(self, equation: Equation, options: Options) -> tuple[Outcome | None, Floats | None, float]:
        """Rank by pushes alone, unless a method is expected to take less time; return outcome, ranks and tolerance.

        Without an outcome, a method is needed: the ranks are its start, unless none of the same equation are known, and
        the tolerance is the error bound that it is to attain.
        """
        with self._lock:
            last, edges, tol, passes = self._last, self.edges, options.tol, 0
            if edges.n == 0 or last is None or not last.is_of(equation):
                return None, None, tol
            residual = last.solution
            if isinstance(edges, RebuiltEdges):
                return None, residual, tol  # type: ignore[return-value]  # a residual has edges on the host
            default = options.method == "auto" and options.max_iter is None and not options.certified
            may_push = default and equation[2] is None
            if not isinstance(residual, Residual):
                if not may_push:
                    return None, residual, tol
                residual, passes = Residual.of(edges, *equation[:2], residual), 1
            self._last = None  # until the pushes are complete
            bound, rounding, sum_y = residual.bounds()
            if rounding > MAX_ROUNDING_FRACTION * tol:
                residual.recompute(edges)
                passes += 1
                bound, _, sum_y = residual.bounds()
            cast_error = _cast_error(options, edges.n)
            if bound + cast_error > tol and may_push:
                max_edges = self._max_pushes(bound, tol)
                bound, sum_y, spent = residual.push(edges, tol - cast_error, max_edges, bound, sum_y)
                passes += -(-spent // max(edges.m, 1))
            ranks = residual.ranks(sum_y)
            if not bound + cast_error <= tol or not may_push:
                start = _normalized_start(ranks)
                self._last = LastRanks(equation, start, 0)
                return None, start, tol * TOL_FRACTION if may_push else tol
            self._last = LastRanks(equation, residual, 0)
            return Outcome(live=False, converged=True, iterations=passes, error_bound=bound + cast_error), ranks, tol

    def _max_pushes(self, error: float, tol: float) -> float:
        """Return how many edges pushes may take until a method would take less time.

        A method converges geometrically, from an error of 2 to tol in ``self._passes`` passes without a start vector.
        """
        error = min(error, 2.0)
        fraction = math.log(error / tol) / math.log(2 / tol) if error > tol else 0.0
        passes = PREPARATION_PASSES + self._passes * fraction
        return CALL_COST + passes * (self.edges.m + VERTEX_COST * self.edges.n) / PUSH_SLOWDOWN


def _normalized_start(ranks: Any) -> Floats:
    """Return a copy of the ranks, which the user may alter, that is finite, not negative and of sum 1."""
    xp = namespace(ranks)
    ranks = xp.maximum(xp.nan_to_num(ranks, posinf=0.0), 0.0)
    sum_ranks = total(ranks)
    start: Floats = ranks / sum_ranks if sum_ranks > 0 else xp.full(ranks.size, 1 / max(ranks.size, 1))
    return start


def _cast_error(options: Options, n: int) -> float:
    """Return a bound on the error of scaling and casting a result: see `prplugin.solver.certificate`."""
    rounding = StepRounding(row=0, edge=0, dangling=0, vectors=0, norm=0)
    return Certificate(options.alpha, n, 0, rounding, options.dtype, options.scale).cast


def _moved(edges: Edges, positions: Integers) -> Edges:
    """Return the same edges with their vertices at other positions."""
    return replace(edges, source=positions[edges.source], destination=positions[edges.destination])


_NO_EDGES = Edges(np.empty(0, np.int64), np.empty(0, np.int64), None, 0)


def _invalid_edges_error(
    error: ChangeError, added: FrameEdges | None, removed: FrameEdges | None, vertices: Vertices
) -> InvalidEdgesError:
    """Return the error for the user that names the edges or vertices of a `ChangeError`."""
    which = error.positions
    if error.kind == "missing" and removed is not None:
        return InvalidEdgesError(
            f"remove has {counted(len(which), 'edge')} that the graph does not have: "
            f"{listed(_format_edges(removed, which))}. Nothing was changed."
        )
    if error.kind == "repeated" and added is not None:
        return InvalidEdgesError(
            f"add has {counted(len(which), 'edge')} that the graph has already: {listed(_format_edges(added, which))}. "
            "Leave them out, or make the graph with duplicates='sum', 'first' or 'last'."
        )
    named = f"{counted(len(which), 'vertex', 'vertices')} ({listed(format_ids(vertices.plain_ids, which))})"
    if error.kind == "underflow":
        return InvalidEdgesError(
            f"remove leaves {named} with edges that are hundreds of half-lives older than those removed, which exceeds "
            "the range of the weights: make the graph anew."
        )
    return InvalidEdgesError(
        f"the weights of the edges that leave {named} sum to more than float64 holds. Divide all weights."
    )


def _format_edges(frame: FrameEdges, which: Integers) -> list[str]:
    endpoints = [
        format_ids(frame.vertices.plain_ids, end[which]) for end in (frame.edges.source, frame.edges.destination)
    ]
    weights = None if frame.edges.weights is None else to_host(frame.edges.weights[which])
    return [
        f"{source} -> {target}" + ("" if weights is None else f" of weight {weights[row]:g}") if source else ""
        for row, (source, target) in enumerate(zip(*endpoints, strict=True))
    ]
