"""A graph in the memory of this process whose edges change between rankings."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from threading import Condition, RLock, get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from prplugin.cpu import library
from prplugin.cpu.sums import total
from prplugin.errors import MethodUnavailableError, PageRankError
from prplugin.frames.vertices import Vertices
from prplugin.graph.adjacency import Adjacency, rows_of
from prplugin.graph.stored import restored, stored
from prplugin.options import EdgeOptions, Options
from prplugin.solver.loop import Outcome
from prplugin.streams.decay import weights_at
from prplugin.types.arrays import Array, expand_values, namespace
from prplugin.types.edges import Compressed, Floats, Integers

if TYPE_CHECKING:
    from prplugin.frames.times import Clock
    from prplugin.frames.vertex_index import VertexIndex
    from prplugin.streams.device_edges import DeviceEdges
    from prplugin.streams.host_edges import HostEdges
    from prplugin.streams.residual import Residual

# Approximate times, relative to the time per edge of an iteration of a method.
VERTEX_COST = 8  # per vertex of an iteration, which mixes iterates
PUSH_SLOWDOWN = 3  # per pushed edge
PREPARATION_PASSES = 14  # per edge, to group the edges by target and to prepare a method
CALL_COST = 1_000_000  # of the calls that prepare a method and run it on a small graph, in pushed edges

# Fractions of the tolerance.
TOL_FRACTION = 1 / 2  # that a method is to attain if few edges changed, so that pushes suffice afterwards
MAX_ROUNDING_FRACTION = 1 / 10  # that the rounding errors of a residual may take before it is computed anew

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

    def with_vertices(self, n: int, positions: Integers | None) -> LastRanks:
        """Return the ranks extended to n vertices by vertices without edges; see `expand_values`."""
        if self.residual is None:
            return self._replace(ranks=expand_values(self.ranks, n, positions, 0.0))
        self.residual.add_vertices(n, positions)
        return self


class Aging(NamedTuple):
    """The clock of a graph whose weights decay, and the reference exponent of each vertex."""

    clock: Clock
    references: Integers


class State(NamedTuple):
    """State of a graph that an update replaces in one assignment."""

    edges: Adjacency | HostEdges | DeviceEdges  # from the first update on in a form that can be changed
    vertices: Vertices
    vertex_index: VertexIndex | None  # None until the first update
    aging: Aging | None


class Snapshot(NamedTuple):
    """All that determines the rankings and updates of a graph, in arrays that no update alters."""

    adjacency: Adjacency
    vertices: Vertices
    schema: EdgeOptions
    aging: Aging | None = None
    last: LastRanks | None = None

    def __reduce__(self) -> Any:
        """Pickle the graph as plain arrays."""
        return _unpickled, (stored(self.adjacency), *self[1:])


def _unpickled(parts: tuple[dict[str, Any], dict[str, Any]], *others: Any) -> Snapshot:
    return Snapshot(restored(*parts).on(parts[1]["memory_space"]), *others)


class ChangingGraph:
    """A static graph whose edges updates change, and its last ranks, from which the next ranking starts.

    `schema` holds the columns of the frames of edges to add and to remove. `aging` is given if weights decay.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        adjacency, vertices, self.schema, aging, last = snapshot
        self.state = State(adjacency, vertices, None, aging)
        self._adjacency: Adjacency | None = adjacency
        self._lock = threading.Lock()
        self._last = last
        self._passes = 0
        self.updates = 0  # number of completed updates

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
        adjacency, (_, vertices, _, aging) = self.adjacency, self.state
        with self._lock:
            if (last := self._last) is not None:
                ranks = last.ranks if last.residual is None else normalized_start(last.residual.ranks())
                last = LastRanks(last.equation, ranks, max(last.passes, self._passes))
        if aging is not None:
            aging = aging._replace(references=aging.references.copy())
        return Snapshot(adjacency, vertices, self.schema, aging, last)

    def with_current_weights(self, edges: Compressed, *, by_target: bool) -> Compressed:
        """Return the edges of the graph; if weights decay, with their weights at the latest time of the clock."""
        if (aging := self.state.aging) is None:
            return edges
        assert edges.weights is not None
        sources = edges.indices if by_target else rows_of(edges.offsets, edges.indices.size)
        return edges._replace(weights=weights_at(edges.weights, aging.references.take(sources), aging.clock.shift()))

    def update(self, add: object, remove: object) -> None:
        """Remove and add edges; on any error, change nothing."""
        from prplugin.streams.changes import Change, ChangeError, read_changes  # lazy import: few graphs change

        index, before = self._index_and_edges()
        clock = None if self.state.aging is None else self.state.aging.clock
        names = index.vertices.names
        added, removed, clock = read_changes(add, remove, self.schema, clock, index.memory_space, names)
        try:
            change = Change.of(added, removed, index, self.schema)
            index = change.vertices
            edges = before.with_vertices(len(index), change.old_positions)
            plan: Any = edges.plan(change.added, change.removed, self.schema.duplicates, directed=self.schema.directed)
        except ChangeError as error:
            raise error.explained(added, removed, index.vertices) from None
        # From here on nothing raises an error. A KeyboardInterrupt loses no more than the last ranks.
        self._adjacency, last, self._last = None, self._last, None
        if last is not None and edges.n > before.n:
            last = None if before.n == 0 else last.with_vertices(edges.n, change.old_positions)
        self.updates += 1
        edges.commit(plan)
        aging = None if clock is None or edges.references is None else Aging(clock, edges.references)
        self.state = State(edges, index.vertices, index, aging)
        if last is not None and last.residual is not None:
            last.residual.apply(edges, plan)  # type: ignore[arg-type]  # a residual has edges on the host
        self._last = last

    def _index_and_edges(self) -> tuple[VertexIndex, HostEdges | DeviceEdges]:
        """Return the index of the vertices, and the edges in a form that can be changed, made at the first update."""
        static, vertices, index, aging = self.state
        if index is not None:
            assert not isinstance(static, Adjacency)
            return index, static
        from prplugin.frames.vertex_index import VertexIndex  # imports pandas, which every library of vertices needs
        from prplugin.streams.changes import refuse_window
        from prplugin.streams.device_edges import DeviceEdges
        from prplugin.streams.host_edges import HostEdges

        refuse_window(self.schema)
        index = VertexIndex(vertices)
        assert isinstance(static, Adjacency)
        if index.memory_space != static.memory_space:
            raise MethodUnavailableError(
                "update needs cuDF for the vertices of a graph in GPU memory: import cudf before you make the graph."
            )
        edges: HostEdges | DeviceEdges
        if static.memory_space == "device":
            edges = DeviceEdges(static)
        elif reason := library.unavailable_reason():
            raise MethodUnavailableError(f"update needs the compiled CPU kernels: {reason}.")
        else:
            edges, self._adjacency = HostEdges(static, None if aging is None else aging.references), None
        self.state = State(edges, vertices, index, aging)
        if self._last is not None:
            self.keep(self._last)
        return index, edges

    def keep(self, last: LastRanks) -> None:
        """Store ranks for the next ranking to start from."""
        with self._lock:
            if self.state.vertex_index is not None:
                self._passes = max(self._passes, last.passes)
                last = last._replace(ranks=last.ranks / last.ranks.sum())  # the user may alter the ranks
            self._last = last

    def follows(self, seeds: Integers) -> bool:
        """Return whether the last ranks are of a personalization by these vertices, and the edges have changed."""
        last = self._last
        if last is None or self.state.vertex_index is None or (v := last.equation[1]) is None:
            return False
        return v.size == self.state.edges.n and bool((v[seeds] > 0).all())

    def push(self, equation: Equation, options: Options) -> tuple[Any, float, Outcome | None]:
        """Rank by pushes alone, unless a method is expected to take less time: return the ranks, and their outcome.

        Without an outcome, a method is to start from the ranks, or from its own if they are None, and to attain the
        tolerance that is returned.
        """
        with self._lock:
            last, edges, tol = self._last, self.state.edges, options.tol
            if self.state.vertex_index is None or edges.n == 0 or last is None or not last.is_of(equation):
                return None, tol, None
            from prplugin.streams import bounds
            from prplugin.streams.host_edges import HostEdges
            from prplugin.streams.residual import Residual

            if not isinstance(edges, HostEdges):
                return last.ranks, tol, None  # a residual has edges on the host
            by_default = options.method == "auto" and options.max_iter is None and not options.certified
            may_push = by_default and equation[2] is None
            residual, passes = last.residual, 0
            if residual is None:
                if not may_push:
                    return last.ranks, tol, None
                residual, passes = Residual(edges, *equation[:2], last.ranks), 1
            self._last = None  # until the pushes are complete
            if residual.rounding > MAX_ROUNDING_FRACTION * tol:
                residual.recompute(edges)
                passes += 1
            if may_push:
                of_cast = bounds.of_cast(edges.n, options)
                spent = residual.push(edges, tol - of_cast, self._max_pushes(residual.bound, tol))
                bound = residual.bound + of_cast
                if bound <= tol:
                    self._last = LastRanks(equation, None, residual=residual)
                    passes += -(-spent // max(edges.m, 1))
                    return residual.ranks(), tol, Outcome(False, True, iterations=passes, error_bound=bound)
            start = normalized_start(residual.ranks())
            self._last = LastRanks(equation, start)
            return start, tol * TOL_FRACTION if may_push else tol, None

    def _max_pushes(self, error: float, tol: float) -> float:
        """Return how many edges pushes may take until a method would take less time.

        A method converges geometrically, from an error of 2 to tol in ``self._passes`` passes without a start vector.
        """
        error = min(error, 2.0)
        fraction = math.log(error / tol) / math.log(2 / tol) if error > tol else 0.0
        passes = PREPARATION_PASSES + self._passes * fraction
        return CALL_COST + passes * (self.state.edges.m + VERTEX_COST * self.state.edges.n) / PUSH_SLOWDOWN


def normalized_start(ranks: Array) -> Floats:
    """Return a copy of the ranks, which the user may alter, that is finite, not negative and of sum 1."""
    xp = namespace(ranks)
    ranks = xp.maximum(xp.nan_to_num(ranks, posinf=0.0), 0.0)
    sum_ranks = total(ranks)
    return ranks / sum_ranks if sum_ranks > 0 else xp.full(ranks.size, 1 / max(ranks.size, 1))


class Access:
    """Readers-writer lock: any number of threads read and rank a graph, or one thread updates it.

    Rankings and updates are served in the order of their arrival, so that neither can hold up the other for ever. Other
    readings are short, and may be part of a ranking, as in its callbacks: they wait only for an update that has begun.
    A thread that would wait for itself gets a PageRankError instead.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._condition = Condition(self._lock)
        self._depth: defaultdict[int, int] = defaultdict(int)  # by reading thread: number of its nested readings
        self._rankings = 0
        self._updating: int | None = None  # the thread that updates, or that will when the last reader has left
        self._waiting: dict[object, bool] = {}  # rankings and updates by arrival; whether it is an update

    def reading(self, *, ranking: bool = False) -> Reading:
        """Return a context manager in which no other thread updates the graph."""
        return Reading(self, ranking)

    @contextmanager
    def updating(self, *, wait: bool) -> Iterator[None]:
        """Return a context manager in which no other thread uses the graph; wait for rankings, or raise an error."""
        thread, entered, place = get_ident(), False, object()
        try:
            with self._condition:
                own = self._updating == thread or thread in self._depth
                if own and not self._rankings:
                    raise PageRankError("this graph is in use by this very thread: update it afterwards.")
                self._waiting[place] = True
                while self._rankings or self._updating is not None or next(iter(self._waiting)) is not place:
                    if self._rankings and (own or not wait):
                        raise PageRankError("this graph is being ranked: update it after the ranking has ended.")
                    self._condition.wait()
                self._updating, entered = thread, True
                self._condition.wait_for(lambda: not self._depth)
            yield
        finally:
            with self._condition:
                self._waiting.pop(place, None)
                if entered:
                    self._updating = None
                self._condition.notify_all()

    def may_rank(self, ranking: Reading) -> bool:
        """Return whether no update came before a ranking that waits."""
        return not any(self._waiting[one] for one in takewhile(lambda one: one is not ranking, self._waiting))


class Reading:
    """Context manager of one reading; a generator would take twice as long."""

    _entered = False

    def __init__(self, access: Access, ranking: bool) -> None:
        self._access, self._ranking, self._thread = access, ranking, get_ident()

    def __enter__(self) -> None:
        access, thread = self._access, self._thread
        with access._lock:
            if access._waiting:
                self._wait()
            access._depth[thread] += 1
            access._rankings += self._ranking
            self._entered = True

    def _wait(self) -> None:
        """Wait for updates, unless they may be waiting for an outer reading of this thread."""
        access, thread = self._access, self._thread
        if access._updating == thread:
            raise PageRankError("this graph is being updated by this very thread: use it after the update.")
        if thread in access._depth:
            return
        if not self._ranking:
            access._condition.wait_for(lambda: access._updating is None)
            return
        access._waiting[self] = False
        try:
            access._condition.wait_for(lambda: access.may_rank(self))
        finally:
            access._waiting.pop(self, None)
            access._condition.notify_all()  # an update after this ranking may raise an error now

    def __exit__(self, *_: object) -> None:
        access, thread = self._access, self._thread
        with access._lock:
            if access._waiting:
                access._condition.notify_all()  # they wake when the lock is released
            # Signal handlers run in calls, of which there is none from here on.
            self._entered = False
            access._rankings -= self._ranking
            access._depth[thread] -= 1
            if not access._depth[thread]:
                del access._depth[thread]

    def __del__(self) -> None:
        if self._entered:  # an interrupt came between entering and leaving
            self.__exit__()
