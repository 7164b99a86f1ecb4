"""State of a graph in the memory of this process, and the lock under which threads rank and update it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from threading import Condition, RLock, get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from prplugin.cpu import library
from prplugin.cpu.sums import total
from prplugin.errors import MethodUnavailableError, PageRankError
from prplugin.frames.vertices import Vertices
from prplugin.graph.edges import Edges, rows_of
from prplugin.graph.stored import restored, stored
from prplugin.options import EdgeOptions
from prplugin.streams.decay import weights_at
from prplugin.types.arrays import Array, expand_values, namespace
from prplugin.types.edges import Compressed, Floats, Integers

if TYPE_CHECKING:
    from prplugin.frames.times import Clock
    from prplugin.frames.vertex_index import VertexIndex
    from prplugin.streams.changes import Change
    from prplugin.streams.host_edges import HostEdges
    from prplugin.streams.residual import Residual

Equation: TypeAlias = tuple[float, Floats | None, Floats | None]
"""Alpha, v and w of `prplugin.graph.teleports.Problem`."""


class LastRanks(NamedTuple):
    """Solution of an equation that a ranking found: n ranks of sum 1, or instead a residual, which follows updates.

    `passes`: The most passes over the edges that a method has taken for a ranking; 0 if unknown.
    """

    equation: Equation
    ranks: Any
    passes: int = 0
    residual: Residual | None = None

    def is_of(self, equation: Equation) -> bool:
        """Return whether an equation has the same alpha, v and w."""
        vectors = zip(self.equation[1:], equation[1:], strict=True)
        return self.equation[0] == equation[0] and all(
            old is new if old is None or new is None else bool(namespace(old).array_equal(old, new))
            for old, new in vectors
        )

    def as_ranks(self) -> LastRanks:
        """Return the ranks without their residual, which is computed from them."""
        if self.residual is None:
            return self
        return LastRanks(self.equation, normalized_start(self.residual.ranks()), self.passes)

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


class GraphState(NamedTuple):
    """All that determines the rankings and updates of a graph.

    `edges`: On the host, from the first update on in a form that can be changed in place.
    `schema`: Columns of the frames of edges to add and to remove.
    `aging`: None unless weights decay.
    `last`: None before the first ranking.
    `vertex_index`: None before the first update.
    `updates`: Number of updates.
    """

    edges: Edges | HostEdges
    vertices: Vertices
    schema: EdgeOptions
    aging: Aging | None = None
    last: LastRanks | None = None
    vertex_index: VertexIndex | None = None
    updates: int = 0

    @property
    def adjacency(self) -> Edges:
        """The edges for methods."""
        edges = self.edges
        return edges if isinstance(edges, Edges) else edges.adjacency

    def at_rest(self) -> GraphState:
        """Return the state in arrays that no update alters."""
        aging = None if self.aging is None else self.aging._replace(references=self.aging.references.copy())
        last = None if self.last is None else self.last.as_ranks()
        return GraphState(self.adjacency, self.vertices, self.schema, aging, last)

    def __reduce__(self) -> Any:
        """Pickle a state at rest as plain arrays."""
        return _unpickled, (stored(self.adjacency), self.vertices, self.schema, self.aging, self.last)

    def with_current_weights(self, edges: Compressed, *, by_target: bool) -> Compressed:
        """Return the edges of the graph; if weights decay, with their weights at the latest time of the clock."""
        if (aging := self.aging) is None:
            return edges
        assert edges.weights is not None
        sources = edges.indices if by_target else rows_of(edges.offsets, edges.indices.size)
        return edges._replace(weights=weights_at(edges.weights, aging.references.take(sources), aging.clock.shift()))

    def with_last(self, last: LastRanks) -> GraphState:
        """Return the state with ranks for the next ranking to start from."""
        if self.vertex_index is not None:
            passes = last.passes if self.last is None else max(last.passes, self.last.passes)
            last = last._replace(ranks=last.ranks / last.ranks.sum(), passes=passes)  # the user may alter the ranks
        # `_replace` takes three times as long.
        return GraphState(self.edges, self.vertices, self.schema, self.aging, last, self.vertex_index, self.updates)

    def follows(self, seeds: Integers) -> bool:
        """Return whether the last ranks are of a personalization by these vertices, and the edges have changed."""
        if self.vertex_index is None or self.last is None or (v := self.last.equation[1]) is None:
            return False
        return v.size == self.edges.n and bool((v[seeds] > 0).all())

    def changeable(self) -> GraphState:
        """Return the state with an index of the vertices, and on the host with edges that can be changed."""
        if self.vertex_index is not None:
            return self
        from prplugin.frames.vertex_index import VertexIndex  # imports pandas, which every library of vertices needs
        from prplugin.streams.changes import refuse_window  # lazy imports: few graphs change
        from prplugin.streams.host_edges import HostEdges

        refuse_window(self.schema)
        index, edges = VertexIndex(self.vertices), self.adjacency
        if index.memory_space != edges.memory_space:
            raise MethodUnavailableError(
                "update needs cuDF for the vertices of a graph in GPU memory: import cudf before you make the graph."
            )
        if edges.memory_space == "host" and (reason := library.unavailable_reason()):
            raise MethodUnavailableError(f"update needs the compiled CPU kernels: {reason}.")
        on_host = edges.memory_space == "host"
        references = None if self.aging is None else self.aging.references
        state = self._replace(edges=HostEdges(edges, references) if on_host else edges, vertex_index=index)
        return state if self.last is None else state.with_last(self.last)

    def planned(self, add: object, remove: object) -> Callable[[], GraphState]:
        """Return a function that removes and adds edges and returns the next state; raise if the change is invalid.

        Until the function is called nothing is changed.
        """
        from prplugin.streams import device_edges
        from prplugin.streams.changes import Change, ChangeError, read_changes
        from prplugin.streams.host_edges import HostEdges

        index, schema, before = self.vertex_index, self.schema, self.edges
        assert index is not None
        clock = None if self.aging is None else self.aging.clock
        added, removed, clock = read_changes(add, remove, schema, clock, index.memory_space, index.vertices.names)
        try:
            change = Change.of(added, removed, index, schema)
            index = change.vertices
            how = change.added, change.removed, schema.duplicates
            if not isinstance(before, HostEdges):
                changed = device_edges.changed(before, len(index), change.old_positions, *how, directed=schema.directed)
                return partial(self._after, change, clock, changed)
            edges = before.with_vertices(len(index), change.old_positions)
            plan = edges.plan(*how, directed=schema.directed)
        except ChangeError as error:
            raise error.explained(added, removed, index.vertices) from None
        return partial(self._after, change, clock, edges, plan)

    def _after(
        self, change: Change[VertexIndex], clock: Clock | None, edges: Edges | HostEdges, plan: Any = None
    ) -> GraphState:
        """Make a planned change of edges on the host, and return the state with the changed edges."""
        last = self.last
        if last is not None and edges.n > self.edges.n:
            last = None if self.edges.n == 0 else last.with_vertices(edges.n, change.old_positions)
        aging = None
        if not isinstance(edges, Edges):
            edges.commit(plan)
            if last is not None and last.residual is not None:
                last.residual.apply(edges, plan)
            aging = None if clock is None or edges.references is None else Aging(clock, edges.references)
        return GraphState(edges, change.vertices.vertices, self.schema, aging, last, change.vertices, self.updates + 1)


def _unpickled(parts: tuple[dict[str, Any], dict[str, Any]], *others: Any) -> GraphState:
    return GraphState(restored(*parts).on(parts[1]["memory_space"]), *others)


def normalized_start(ranks: Array) -> Floats:
    """Return a copy of the ranks, which the user may alter, that is finite, not negative and of sum 1."""
    ranks = finite_ranks(ranks)
    sum_ranks = total(ranks)
    return ranks / sum_ranks if sum_ranks > 0 else namespace(ranks).full(ranks.size, 1 / max(ranks.size, 1))


def finite_ranks(ranks: Array) -> Floats:
    """Return a copy of the ranks, which the user may alter, that is finite and not negative."""
    xp = namespace(ranks)
    finite: Floats = xp.maximum(xp.nan_to_num(ranks, posinf=0.0), 0.0)
    return finite


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
                while self._rankings or next(iter(self._waiting)) is not place:  # an update stays there until it ends
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
