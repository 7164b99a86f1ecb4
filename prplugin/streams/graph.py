"""A graph in the memory of this process whose edges change between rankings."""

from __future__ import annotations

import math
import threading
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from prplugin.cpu import library
from prplugin.cpu.sums import total
from prplugin.errors import InvalidEdgesError, MethodUnavailableError, counted, listed
from prplugin.frames import FrameEdges, read_edges
from prplugin.frames.vertices import Vertices, format_ids
from prplugin.graph.adjacency import Adjacency, rows_of
from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.stored import restored, stored
from prplugin.numerics.rounding import StepRounding
from prplugin.options import EdgeOptions, Options
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Outcome
from prplugin.streams.changes import ChangeError
from prplugin.streams.decay import weights_at
from prplugin.streams.device_edges import rebuilt
from prplugin.streams.host_edges import ChangingEdges
from prplugin.streams.residual import Residual
from prplugin.types.arrays import expand_values, namespace, to_host
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges, Floats, Integers

if TYPE_CHECKING:
    from prplugin.frames.times import Clock
    from prplugin.frames.vertex_index import VertexIndex

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


Equation: TypeAlias = tuple[float, Floats | None, Floats | None]
"""Alpha, v and w of `prplugin.graph.problem.Problem`."""


class LastRanks(NamedTuple):
    """Solution of an equation that a ranking found: n ranks of sum 1, or instead a residual, which follows updates.

    `passes`: Passes over the edges that a method takes to find it without a start vector; 0 if unknown.
    """

    equation: Equation
    ranks: Any
    passes: int = 0
    residual: Residual | None = None

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


class State(NamedTuple):
    """State of a graph that an update replaces in one assignment.

    `edges`: The graph itself; if it is on the host, from the first update on its edges in a form that can be changed.
    `vertex_index`: None until the first update.
    """

    edges: Adjacency | ChangingEdges
    vertices: Vertices
    vertex_index: VertexIndex | None
    aging: Aging | None


class Snapshot(NamedTuple):
    """All that determines the rankings and updates of a graph, in arrays that no update alters."""

    adjacency: Adjacency
    vertices: Vertices
    schema: EdgeOptions
    aging: Aging | None
    last: LastRanks | None

    def __reduce__(self) -> Any:
        """Pickle the graph as plain arrays."""
        return _unpickled, (stored(self.adjacency), *self[1:])


def _unpickled(parts: tuple[dict[str, Any], dict[str, Any]], *others: Any) -> Snapshot:
    return Snapshot(restored(*parts).on(parts[1]["memory_space"]), *others)


class ChangingGraph:
    """The `state` of a graph, and its last ranks, from which the first ranking after an update starts.

    `schema` holds the columns of the frames of edges to add and to remove. `aging` is given if weights decay.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        adjacency, vertices, self.schema, aging, last = snapshot
        self.state = State(adjacency, vertices, None, aging)
        self._adjacency: Adjacency | None = adjacency
        self._lock = threading.Lock()
        self._last = last
        self._passes = 0

    @property
    def adjacency(self) -> Adjacency:
        """The graph in its present state, for methods."""
        if (adjacency := self._adjacency) is not None:
            return adjacency
        with self._lock:
            if self._adjacency is None:
                edges = self.state.edges
                self._adjacency = edges if isinstance(edges, Adjacency) else edges.adjacency()
            return self._adjacency

    def snapshot(self) -> Snapshot:
        """Return the present state; of the last ranks without their residual, which is computed from them."""
        adjacency, state = self.adjacency, self.state
        with self._lock:
            last, aging = self._last, state.aging
            if last is not None:
                ranks = last.ranks if last.residual is None else _normalized_start(last.residual.ranks())
                last = LastRanks(last.equation, ranks, max(last.passes, self._passes))
        if aging is not None and isinstance(state.edges, ChangingEdges):
            aging = aging._replace(references=aging.references.copy())
        return Snapshot(adjacency, state.vertices, self.schema, aging, last)

    def with_current_weights(self, edges: Compressed, *, by_target: bool) -> Compressed:
        """Return the edges of the graph; if weights decay, with their weights at the latest time of the clock."""
        if (aging := self.state.aging) is None:
            return edges
        assert edges.weights is not None
        sources = edges.indices if by_target else rows_of(edges.offsets, edges.indices.size)
        return edges._replace(weights=weights_at(edges.weights, aging.references.take(sources), aging.clock.shift()))

    def _index(self) -> VertexIndex:
        """Return the index of the vertices; at the first update, copy the edges to a form that can be changed."""
        adjacency, vertices, index, aging = self.state
        if index is not None:
            return index
        if self.schema.window is not None:
            raise MethodUnavailableError(
                "update does not support a graph with window=: leave it out, and remove edges that are too old."
            )
        from prplugin.frames.vertex_index import VertexIndex  # imports pandas, which every library of vertices needs

        index = VertexIndex(vertices)
        assert isinstance(adjacency, Adjacency)
        if index.memory_space != adjacency.memory_space:
            raise MethodUnavailableError(
                "update needs cuDF for the vertices of a graph in GPU memory: import cudf before you make the graph."
            )
        edges: Adjacency | ChangingEdges = adjacency
        if adjacency.memory_space == "host":
            if reason := library.unavailable_reason():
                raise MethodUnavailableError(f"update needs the compiled CPU kernels: {reason}.")
            edges, self._adjacency = ChangingEdges(adjacency, None if aging is None else aging.references), None
        self.state = State(edges, vertices, index, aging)
        if self._last is not None:
            self.keep(self._last)
        return index

    def update(self, add: Any, remove: Any) -> None:
        """Remove and add edges; on any error, change nothing."""
        index, schema = self._index(), self.schema
        before = self.state
        n, on_gpu = before.edges.n, isinstance(before.edges, Adjacency)
        clock = None if before.aging is None else copy(before.aging.clock)
        removed = None if remove is None else read_edges(remove, schema, clock, index.memory_space, removed=True)
        added = None if add is None else read_edges(add, schema, clock, index.memory_space, removed=False)
        removals, additions, old_positions = _NO_EDGES, _NO_EDGES, None
        if removed is not None:
            positions = index.positions_of(removed.vertices, "remove")
            missing = (positions[removed.edges.source] < 0) | (positions[removed.edges.destination] < 0)
            if missing.any():
                raise _invalid_edges_error(ChangeError("missing", missing.nonzero()[0]), None, removed, before.vertices)
            removals = _moved(removed.edges, positions)
        if added is not None:
            added = added._replace(edges=drop_duplicates(added.edges, schema.duplicates, directed=schema.directed))
            positions = index.positions_of(added.vertices, "add")
            if (positions < 0).any():
                index, positions, old_positions = index.extend(added.vertices, positions)
                n = len(index)
                if old_positions is not None and removed is not None:
                    removals = _moved(removed.edges, index.positions_of(removed.vertices, "remove"))
            additions = _moved(added.edges, positions)
        edges: Any = before.edges
        change: Any = additions, removals, schema.duplicates
        try:
            if on_gpu:
                edges = rebuilt(edges, n, old_positions, *change, directed=schema.directed)
            else:
                edges = edges.with_vertices(n, old_positions) if n > edges.n else edges
                edges.roundings = max(edges.roundings, additions.roundings)
                plan = edges.plan(*change, directed=schema.directed)
        except ChangeError as error:
            raise _invalid_edges_error(error, added, removed, index.vertices) from None
        # From here on nothing raises an error. A KeyboardInterrupt loses no more than the last ranks.
        self._adjacency, last, self._last = None, self._last, None
        if before.edges.n == 0:
            last = None
        residual = None if last is None else last.residual
        if n > before.edges.n and residual is not None:
            residual.add_vertices(n, old_positions)
        elif n > before.edges.n and last is not None:
            last = last._replace(ranks=expand_values(last.ranks, n, old_positions, 0.0))
        if not on_gpu:
            edges.commit(plan)
        self.state = State(edges, index.vertices, index, None if clock is None else Aging(clock, edges.references))
        if residual is not None:
            residual.apply(edges, plan)
        self._last = last

    def keep(self, last: LastRanks) -> None:
        """Store ranks for the next ranking to start from."""
        with self._lock:
            if self.state.vertex_index is not None:
                self._passes = max(self._passes, last.passes)
                last = last._replace(ranks=last.ranks / last.ranks.sum())  # the user may alter the ranks
            self._last = last

    def try_push(self, equation: Equation, options: Options) -> tuple[Outcome | None, Floats | None, float]:
        """Rank by pushes alone, unless a method is expected to take less time; return outcome, ranks and tolerance.

        Without an outcome, a method is needed: the ranks are its start, unless none of the same equation are known, and
        the tolerance is the error bound that it is to attain.
        """
        with self._lock:
            last, edges, tol, passes = self._last, self.state.edges, options.tol, 0
            if self.state.vertex_index is None or edges.n == 0 or last is None or not last.is_of(equation):
                return None, None, tol
            if isinstance(edges, Adjacency):
                return None, last.ranks, tol  # a residual has edges on the host
            default = options.method == "auto" and options.max_iter is None and not options.certified
            may_push = default and equation[2] is None
            if (residual := last.residual) is None:
                if not may_push:
                    return None, last.ranks, tol
                residual, passes = Residual(edges, *equation[:2], last.ranks), 1
            self._last = None  # until the pushes are complete
            if residual.rounding > MAX_ROUNDING_FRACTION * tol:
                residual.recompute(edges)
                passes += 1
            # Of scaling and casting the result: the steps' own rounding errors do not count.
            exact = StepRounding(row=0, edge=0, dangling=0, vectors=0, norm=0)
            cast_error = Certificate(options.alpha, edges.n, 0, exact, options.dtype, options.scale).cast
            if may_push:
                spent = residual.push(edges, tol - cast_error, self._max_pushes(residual.bound, tol))
                passes += -(-spent // max(edges.m, 1))
            ranks, bound = residual.ranks(), residual.bound + cast_error
            if not bound <= tol or not may_push:
                start = _normalized_start(ranks)
                self._last = LastRanks(equation, start)
                return None, start, tol * TOL_FRACTION if may_push else tol
            self._last = LastRanks(equation, None, residual=residual)
            return Outcome(live=False, converged=True, iterations=passes, error_bound=bound), ranks, tol

    def _max_pushes(self, error: float, tol: float) -> float:
        """Return how many edges pushes may take until a method would take less time.

        A method converges geometrically, from an error of 2 to tol in ``self._passes`` passes without a start vector.
        """
        error = min(error, 2.0)
        fraction = math.log(error / tol) / math.log(2 / tol) if error > tol else 0.0
        passes = PREPARATION_PASSES + self._passes * fraction
        return CALL_COST + passes * (self.state.edges.m + VERTEX_COST * self.state.edges.n) / PUSH_SLOWDOWN


def _normalized_start(ranks: Any) -> Floats:
    """Return a copy of the ranks, which the user may alter, that is finite, not negative and of sum 1."""
    xp = namespace(ranks)
    ranks = xp.maximum(xp.nan_to_num(ranks, posinf=0.0), 0.0)
    sum_ranks = total(ranks)
    start: Floats = ranks / sum_ranks if sum_ranks > 0 else xp.full(ranks.size, 1 / max(ranks.size, 1))
    return start


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
