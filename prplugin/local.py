"""Graph in the memory of this process, on the host or on one GPU: read edges, choose a method, solve, write ranks."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import OutOfMemoryError, PageRankError, counted, overflow_error
from prplugin.frames import FrameAdapter, rows_and_types
from prplugin.frames.columns import resolve
from prplugin.frames.groups import in_pairs, normalised, offsets_of, read_distribution
from prplugin.frames.remedies import advising, library_of
from prplugin.frames.vertices import Labels, Vertices, format_ids
from prplugin.gpu import runtime
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.graph.edges import Edges, Problem
from prplugin.graph.equal_ranks import EqualRanks
from prplugin.graph.memory import Counts
from prplugin.machine import this_machine
from prplugin.methods import estimates
from prplugin.methods.base import Method
from prplugin.methods.registry import ChoiceCache, choose, compile_ahead, reasons
from prplugin.options import EdgeOptions, Options, Unknown
from prplugin.progress import Watch
from prplugin.result.groups import by_group
from prplugin.result.ranking import Ranking, Rankings
from prplugin.result.selection import remaining
from prplugin.solver.groups import GroupProof, refuse_options
from prplugin.solver.solve import solve_by
from prplugin.streams.attempts import Query, Solved, Start, push_near_seeds, push_residual
from prplugin.streams.decay import decay_weights
from prplugin.streams.state import Access, Aging, GraphState, LastRanks
from prplugin.types.arrays import (
    SPACE,
    Array,
    MemorySpace,
    expand_values,
    explain_oom,
    gpu_of,
    memory_space_of,
    to_memory,
)
from prplugin.types.edges import Compressed, Coo, Csc, Csr, Floats, Grouped, Integers, PackedParts, PackedRows
from prplugin.types.records import Considered, History

if TYPE_CHECKING:
    from prplugin.streams.host_edges import HostEdges
    from prplugin.streams.local_pushes import LocalPushes

# Modules that few calls need are imported where they are used.


class LocalGraph:
    """Graph of one process, whose state rankings and updates replace; a `prplugin.Graph` holds it.

    On a Dask cluster a `prplugin.Graph` holds a `prplugin.distributed.run.DistributedGraph` in its place.

    `state`: Its arrays are shared and not altered.
    `weights`, `weights_label`: Name of the weights, for messages.
    `unused_weight`: Column of the frame that seems to hold weights, if the user did not name a weight column.
    `lasting`: Whether more than one ranking may follow. If not, no history of the ranking is recorded.
    `began`: Time by `time.perf_counter` at which reading started; None for the state of another graph, or a saved one.
    `check`: Raises an error if arrays in a file are damaged; called before an edge is read for the first time.
    """

    def __init__(
        self, state: GraphState, weights: str, *, unused_weight: Hashable = None, lasting: bool = True,
        began: float | None = None, check: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        adjacency = state.adjacency
        self._lock, self._state, self._reading, adjacency.lasting = threading.Lock(), state, 0.0, lasting
        self.memory_space, self._weighted, self.weights_label = adjacency.memory_space, adjacency.weighted, weights
        self.unused_weight, self._lasting, self._check, self._access = unused_weight, lasting, check, Access()
        self._cheapest: ChoiceCache = {}
        self._reasons: dict[tuple[str, ...], Callable[[], tuple[Considered, ...]]] = {}
        if began is not None:
            if (overflowing := adjacency.overflowing_vertices()).size:
                raise overflow_error(weights, format_ids(state.vertices.plain_ids, overflowing))
            self._reading = time.perf_counter() - began

    def state(self) -> GraphState:
        """Return the present state of the graph, in arrays that no update alters."""
        with self._access.reading(), self._allocating():
            self._checked()
            with self._lock:
                return self._state.at_rest()

    def packed(self) -> LocalGraph:
        """Return the graph with its edges packed on the host."""
        from prplugin.methods.engines.packed_rows import packed_graph

        state = self.state()
        with self._allocating():
            state = state._replace(edges=packed_graph(state.adjacency))
        return LocalGraph(state, self.weights_label, unused_weight=self.unused_weight)

    def __reduce__(self) -> Any:
        """Pickle the state; locks and choices are made anew."""
        return partial(LocalGraph, unused_weight=self.unused_weight), (self.state(), self.weights_label)

    def __copy__(self, memo: object = None) -> LocalGraph:
        """Return an independent graph; arrays that no update alters are shared."""
        return LocalGraph(self.state(), self.weights_label, unused_weight=self.unused_weight)

    __deepcopy__ = __copy__

    @classmethod
    def read(
        cls, edges: object, how: EdgeOptions, adapter: FrameAdapter, *, lasting: bool, unused_weight: Hashable = None
    ) -> LocalGraph:
        """Read a frame by its adapter; `unused_weight` is a weight column of its file that the frame lacks."""
        began, memory_space, clock = time.perf_counter(), adapter.memory_space_of(edges), None
        frame, labels = adapter.open_frame(edges)
        if how.time is not None:
            from prplugin.frames.times import Clock  # imports pandas

            clock = Clock(how.half_life, how.window, how.now)
        columns = resolve(labels, how.source, how.destination, how.weight, how.time, clock, frame, by=how.by)
        columns = columns._replace(missing=how.missing, bipartite=how.bipartite)
        weighted, aging = columns.weight is not None, None
        with (
            explain_oom(lambda: estimates.describe_ingest_memory(rows_and_types(frame)[0], weighted, memory_space)),
            _allocating(memory_space, wait=lasting),
        ):
            if memory_space == "device":
                compile_ahead(weighted=weighted)
            rows: Coo | Grouped  # packed edges although an edge list is required
            rows, vertices = adapter.read(frame, columns, how, edge_list=how.edge_list, lasting=lasting)
            if columns.by or columns.bipartite:
                rows, vertices = in_pairs(rows, vertices, columns)
            if how.edge_list and isinstance(rows, Coo):
                rows = drop_duplicates(rows, how.duplicates, directed=how.directed)
                rows = rows if how.directed else with_reverse_edges(rows)
            if clock is not None and how.half_life is not None:
                assert isinstance(rows, Coo)
                rows, references = decay_weights(rows)
                aging = Aging(clock, references)
            if lasting:  # else no update follows
                how = replace(how, **columns.id_names, vertices=None)
            state = GraphState(Edges(rows, symmetric=not how.directed), vertices, how, aging)
            unused = columns.unused_weight if unused_weight is None else unused_weight
            return cls(state, f"column {how.weight!r}", unused_weight=unused, lasting=lasting, began=began)

    @classmethod
    def from_csr(
        cls, offsets: object, indices: object, weights: object, vertices: object = None, how: EdgeOptions | None = None
    ) -> LocalGraph:
        """Read CSR arrays, or a sparse matrix of SciPy or CuPy; `vertices` holds the ids of the rows."""
        from prplugin.frames import matrices  # lazy import: few graphs need it

        began, how = time.perf_counter(), how or EdgeOptions()
        with advising(library_of(offsets)):
            matrix = matrices.read_matrix(offsets, indices, weights, bipartite=how.bipartite)
        with runtime.device_allocation(memory_space_of(matrix.offsets), gpu_of(matrix.offsets)):
            adjacency, known = matrices.adjacency(matrix, vertices, directed=how.directed)
            how = replace(how, weight="weight" if adjacency.weighted else None)
            return cls(GraphState(adjacency, known, how), matrix.names[2], began=began)

    @property
    def adjacency(self) -> Edges:
        """Current graph, for methods."""
        self._checked()
        return self._edges

    @property
    def _edges(self) -> Edges:
        """Current graph, whose arrays may have to be checked."""
        if isinstance(edges := self._state.edges, Edges):
            return edges
        with self._lock:
            return edges.adjacency

    def _checked(self) -> None:
        """Check the arrays of a saved graph once, before they are used."""
        if (check := self._check) is not None:
            check()
            self._check = None

    @property
    def _vertices(self) -> Vertices:
        return self._state.vertices

    @property
    def n(self) -> int:
        """Number of vertices."""
        with self._access.reading():
            return self._state.edges.n

    @property
    def m(self) -> int:
        """Number of directed edges."""
        with self._access.reading():
            return self._state.edges.m

    def update(self, add: object, remove: object, *, wait: bool) -> None:
        """Remove and add edges; on any error, change nothing."""
        explanation = "An update holds the old and the new edges at the same time. Nothing was changed."
        with self._access.updating(wait=wait), explain_oom(lambda: explanation), self._allocating():
            self._checked()
            if "_pushes" in vars(self):
                self._pushes.forget_edges()
            self._state = self._state.changeable()
            change = self._state.planned(add, remove)
            # From here on nothing raises an error. A KeyboardInterrupt loses no more than the last ranks.
            self._state = self._state._replace(last=None, updates=self._state.updates + 1)
            self._state = change()
            self._cheapest.clear()
            self._reasons.clear()

    def vertices(self) -> Any:
        """Return the ids in the order of the ranks."""
        with self._access.reading(), self._allocating():
            return self._vertices.write_ids()

    def csr(self) -> Compressed:
        """Return the out-edges by source."""
        with self._access.reading(), self._allocating():
            return self._state.with_current_weights(self.adjacency.get(Csr), by_target=False).read_only()

    def csc(self) -> Compressed:
        """Return the in-edges by target."""
        with self._access.reading(), self._allocating():
            return self._state.with_current_weights(self.adjacency.get(Csc), by_target=True).read_only()

    def estimate(self) -> estimates.Estimate:
        """Estimate memory and time of a ranking by each method."""
        with self._access.reading():
            return estimates.estimate_graph(self._edges, this_machine())

    def facts(self) -> tuple[int, str, dict[str, str]]:
        """Return n, the edges and more properties of the graph for its representation, all of the same state."""
        how, times = self._state.schema, {}
        with self._access.reading():
            n, chosen, edges = self.n, self.estimate().chosen, counted(self.m, "directed edge")
            if not how.directed and self._edges.given not in (PackedRows, PackedParts):
                known = self.adjacency.get(Coo)  # a self-loop has no reverse edge
                edges = counted((self.m + int((known.source == known.destination).sum())) // 2, "undirected edge")
        if how.time is not None:
            given = ("column", repr(how.time)), ("half-life", how.half_life), ("window", how.window)
            times["times"] = ", ".join(f"{name} {value}" for name, value in given if value is not None)
        facts = {
            "weights": self.weights_label if self._weighted and how.weight is not None else "every edge counts 1",
            **times,
            "edges are in": SPACE[self.memory_space],
            "auto takes": "no method: none can run here" if chosen is None else chosen.method,
        }
        return n, edges, facts

    def rank(self, options: Options, watch: Watch) -> Ranking:
        """Compute one ranking, or one per seed."""
        with self._access.reading(ranking=True):
            self._checked()
            unknown = Unknown(options.unknown)
            found = (self._rank_one if options.seeds is None else self._rank_many)(options, watch, unknown)
            history = found._history if unknown.counts else None
            return replace(found, _history=history._replace(unknown=unknown.found())) if history else found

    def _rank_one(self, options: Options, watch: Watch, unknown: Unknown) -> Ranking:
        """Compute one ranking by the first attempt that finds it; others find where the next one starts."""
        query = self._query(options, watch, unknown)
        watch.stage("edges")
        answer = self._push_near_seeds(query, Start(query.nstart, options.tol))
        if isinstance(answer, Start):
            answer = self._push_residual(query, answer)
        if isinstance(answer, Start):
            answer = self._iterate(query, answer)
        record, outcome, write = None, answer.outcome, self._vertices.write
        if self._lasting or not outcome.converged:
            record = self._history(options, *self._how(query, answer), outcome.notes)
        elif self.memory_space == "device":  # only the frame is returned, whose ids are never those of the user's frame
            write = partial(write, owned=True)
        found = Ranking(
            answer.ranks, bool(outcome.converged), int(outcome.iterations), float(outcome.error_bound), answer.method,
            time.perf_counter() - query.began, write, _top=options.top, _order=outcome.order, _history=record,
            _among=answer.selected, _ids=self._vertices.plain_ids, _contributions=self._why(answer.terms),
        )  # fmt: skip
        return found if query.groups is None else by_group(found, *query.groups.proved, self._vertices)

    def _query(self, options: Options, watch: Watch, unknown: Unknown) -> Query:
        """Read the options that are given by vertex."""
        query, teleports = Query(), options.personalization is not None
        query.options, query.watch, query.began = options, watch, time.perf_counter()
        query.groups = None if self._state.schema.by is None else GroupProof(offsets_of(self._vertices), options)
        chooses = options.among is not None or options.exclude is not None
        if not teleports and not chooses and options.dangling is None and options.nstart is None:
            return query
        with self._allocating(wait=False):  # only this call reads the vectors, on this stream
            words = self._vertices.repeated.names_seeds
            if teleports and (self._local_edges(options, 1) is not None or words(options.exclude)):
                query.seeds = self._vertices.read_teleports(options, unknown)
            else:
                query.v = self._vector(options, "personalization", unknown)
            query.w, query.nstart = (self._vector(options, what, unknown) for what in ("dangling", "nstart"))
            if chooses:
                query.among, query.excluded = self._selection(options, query.seeds, unknown)
        return query

    def _push_near_seeds(self, query: Query, start: Start) -> Solved | Start:
        """Rank by pushes from the seeds, unless they are many or were those of the last ranking."""
        if query.seeds is None:
            return start
        answer: Solved | Start = start
        (rows, values), options = query.seeds, query.options
        edges = self._local_edges(options, rows.size)
        if edges is not None and query.w is None and start.ranks is None and not self._state.follows(rows):
            equal = None
            if options.certified:
                known: dict[int, float] = defaultdict(float, zip(rows.tolist(), values.tolist(), strict=True))
                equal = EqualRanks(self.adjacency, lambda: [known], alpha=options.alpha).equal
            answer = push_near_seeds(query, start, edges, self._pushes, equal)
        if isinstance(answer, Start):
            with self._allocating(wait=False):
                dense = expand_values(values, self._state.edges.n, rows, 0.0)
                query.v = normalised(self._vertices, dense, "personalization")
        return answer

    def _push_residual(self, query: Query, start: Start) -> Solved | Start:
        """Start from the last ranks if they solve the same equation, or rank by pushes of their residual."""
        if self._state.vertex_index is None or query.nstart is not None or not query.options.rule.proves:
            return start
        with self._lock, self._allocating(wait=False):
            state, last = self._state, self._state.last
            equation = query.options.alpha, query.v, query.w
            if state.edges.n == 0 or last is None or not last.is_of(equation):
                return start
            self._state = state._replace(last=None)  # until the pushes are complete
            answer, last = push_residual(query, start, state, last)
            self._state = state._replace(last=last)
        return answer

    def _iterate(self, query: Query, start: Start) -> Solved:
        """Rank by the method that is named, or by that of least cost that does not run out of the GPU's memory."""
        options, failed = query.options, dict[str, str]()
        while True:
            with nullcontext() if self._cheapest else self._allocating(wait=False):  # it may sample the edges
                how = options.method_options, self._cheapest, failed
                method = choose(options.method, self._edges, this_machine(), *how)
            try:
                return self._iterate_by(method, query, start)
            except OutOfMemoryError as error:
                if options.method != "auto" or method.runs_on == "cpu":
                    raise
                failed[method.name] = str(error)
                query.watch.bounds.clear()

    def _iterate_by(self, method: Method, query: Query, start: Start) -> Solved:
        options, machine, vertices, adjacency = query.options, this_machine(), self._vertices, self._edges
        equation, among = (options.alpha, query.v, query.w), query.among
        memory_space: MemorySpace = "device" if method.runs_on == "gpu" else adjacency.memory_space
        planned = partial(estimates.describe_method_memory, adjacency, method.name, machine)
        with explain_oom(planned), _allocating(memory_space, adjacency):
            selected = among if query.excluded is None else remaining(adjacency.n, among, query.excluded)
            order, problem = None, Problem(adjacency, *equation)
            if options.certified:
                from prplugin.queries import order_proof  # few rankings need it

                order = order_proof(adjacency, vertices, options, selected)
            how = options, machine, query.watch, start.ranks
            more: Any = {"closer": start.tol, "order": order, "groups": query.groups, "lasting": self._lasting}
            ranks, outcome = solve_by(method, problem, *how, **more)
            if self._lasting and outcome.converged and options.rule.proves:
                whole = to_memory(ranks if query.groups is None else query.groups.as_one(ranks), self.memory_space)
                with self._lock:
                    self._state = self._state.with_last(LastRanks(equation, whole, int(outcome.iterations)))
            outcome.iterations += start.passes
            shown = options.requested(ranks) if query.groups is None else query.groups.ranks_of_each(ranks)
            shown = to_memory(shown, adjacency.memory_space)
        return Solved(shown, outcome, method.name, selected, equation)

    def _rank_many(self, options: Options, watch: Watch, unknown: Unknown) -> Rankings:
        """Compute one ranking per seed, and keep only the ranks selected by `among`, `exclude` and `top`."""
        from prplugin.frames.exclusion import read_selection
        from prplugin.frames.seeds import labels_at, read_seeds, seed_ids
        from prplugin.queries import Iterating, SeedRanks

        began, machine, by = time.perf_counter(), this_machine(), self._state.schema.by
        if by is not None:
            refuse_options(options)
        with self._allocating():
            seeds, labels = read_seeds(self._vertices, options.seeds, unknown)
            w, start = self._vector(options, "dangling", unknown), self._vector(options, "nstart", unknown)
            among, exclusion = read_selection(self._vertices, options, unknown, self.memory_space, labels)
            own = exclusion.by_seed(seeds, self._out_neighbours)
            watch.stage("edges")
        iterating, selection = Iterating(options, machine, watch, _allocating), (among, exclusion.common)
        name = "push"
        left: Integers = np.arange(seeds.count)
        if by is None:
            found = SeedRanks(seeds, options, selection, own, self._state.edges.n)
            edges = self._local_edges(options, seeds.rows.size // seeds.count)
            if w is None and start is None and edges is not None:
                left = found.push(self._pushes, edges, machine.threads)
            if left.size:
                name = iterating.rank(found, left, Problem(self.adjacency, options.alpha, None, w), seeds, start)
        else:
            posed, offsets = Problem(self.adjacency, options.alpha), offsets_of(self._vertices)
            found, which, name = iterating.rank_in_groups(posed, offsets, seeds, selection, own, start)
            labels = labels_at(self._vertices, labels, which)
        least = f"the least estimate for {counted(seeds.count, 'seed')}"
        considered = (Considered(name, None, least if options.method == "auto" else "requested by name"),)
        history = self._history(options, considered, watch.stages(self._reading), [])
        with self._allocating():
            return Rankings(
                found.ranks, bool(found.converged.all()), int(found.iterations.max()), float(found.bounds.max()), name,
                time.perf_counter() - began, partial(self._vertices.write, labels=labels), options.top,
                each_converged=found.converged, each_iterations=found.iterations, each_error_bound=found.bounds,
                rows=found.rows, _history=history, _ids=self._vertices.plain_ids, _counts=found.counts(),
                _seeds=partial(seed_ids, self._vertices, labels),
                _contributions=self._why((options.alpha, seeds, w), labels),
            )  # fmt: skip

    def _local_edges(self, options: Options, seeds: int) -> Edges | HostEdges | None:
        """Return the edges of the graph if pushes from so many seeds may rank faster than iterations, else None."""
        edges, by = self._state.edges, self._state.schema.by
        return edges if self._lasting and by is None and self._pushes.may_pay(edges, options, seeds) else None

    @cached_property
    def _pushes(self) -> LocalPushes:
        from prplugin.streams.local_pushes import LocalPushes

        return LocalPushes()

    def contributions(
        self, updates: int, terms: tuple[Any, ...], labels: Labels | None, ranks: Array, vertex: object,
        top: int | None,
    ) -> Any:  # fmt: skip
        """Return the contributions to a rank of the graph as it was after that number of updates."""
        from prplugin.queries import Terms, contributions  # few rankings need it

        with self._access.reading(), self._allocating():
            if self._state.updates != updates:
                raise PageRankError("the graph has been updated since it was ranked so: rank it again.")
            return contributions(self.adjacency, self._vertices, vertex, ranks, Terms(*terms), top, labels)

    def _why(self, terms: tuple[Any, ...], labels: Labels | None = None) -> Callable[..., Any] | None:
        """Return what `Ranking.contributions` calls; None for a one-shot graph, whose edges are the caller's."""
        return partial(self.contributions, self._state.updates, terms, labels) if self._lasting else None

    def _allocating(self, *, wait: bool = True) -> AbstractContextManager[None]:
        return _allocating(self.memory_space, self._state.edges, wait=wait)

    def _selection(
        self, options: Options, entries: tuple[Integers, Floats] | None, unknown: Unknown
    ) -> tuple[Integers | None, Integers | None]:
        """Return the positions to return and to leave out of a ranking, which teleports to those in `entries`."""
        from prplugin.frames.exclusion import read_selection  # few rankings need it

        among, exclusion = read_selection(self._vertices, options, unknown, self.memory_space)
        if entries is None or not exclusion.kinds:
            return among, exclusion.common
        return among, exclusion.of_one(entries[0], self._out_neighbours)

    def _out_neighbours(self, rows: Integers) -> tuple[Integers, Integers]:
        """Return the place among `rows` and the out-neighbour of each of their edges."""
        from prplugin.frames.exclusion import out_neighbours

        return out_neighbours(self.adjacency.get(Csr), rows)

    def _vector(self, options: Options, what: str, unknown: Unknown) -> Floats | None:
        """Return a distribution given by vertex as n float64 with sum 1, or None."""
        values = getattr(options, what)
        return None if values is None else read_distribution(self._vertices, values, what, unknown)

    def _how(self, query: Query, answer: Solved) -> tuple[Any, Any, Any]:
        """Return why the query was answered so, the stages of the ranking, and the error bounds."""
        options, watch, name, outcome = query.options, query.watch, answer.method, answer.outcome
        if answer.why is not None:
            stages = (("residuals pushed", time.perf_counter() - query.began),)
            return (Considered(name, None, answer.why),), stages, [(outcome.iterations, outcome.error_bound)]
        key = name, options.method, *options.method_options
        if key not in self._reasons:  # a function that does not hold the edges
            graph = Counts.of(self._edges)
            self._reasons[key] = partial(reasons, name, options.method, graph, this_machine(), options.method_options)
        return self._reasons[key], watch.stages(self._reading), watch.bounds

    def _history(
        self, options: Options, considered: tuple[Considered, ...] | Callable[[], tuple[Considered, ...]],
        stages: tuple[tuple[str, float], ...], bounds: list[tuple[int, float]], notes: tuple[str, ...] = (),
    ) -> History:  # fmt: skip
        """Return the record of a ranking that has just ended."""
        edges = self._state.edges
        return History(
            edges.n, edges.m, self._weighted, options.alpha, options.tol, options.stop, considered, stages,
            tuple(bounds), self.unused_weight, notes,
        )  # fmt: skip


def _allocating(memory_space: MemorySpace, edges: object = None, *, wait: bool = True) -> AbstractContextManager[None]:
    """Return a context manager that allocates on the GPU of the edges, or that has no effect on the host."""
    if memory_space == "host":
        return nullcontext()
    return runtime.device_allocation(memory_space, getattr(edges, "gpu", None), wait=wait)
