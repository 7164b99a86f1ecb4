"""Graph in the memory of this process, on the host or on one GPU: read edges, choose a method, solve, write ranks."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import PageRankError, counted, overflow_error
from prplugin.frames import FrameAdapter, rows_and_types
from prplugin.frames.columns import resolve
from prplugin.frames.remedies import advising, library_of
from prplugin.frames.vertices import Labels, Vertices, format_ids
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.graph.equal_ranks import EqualRanks
from prplugin.graph.memory import Counts
from prplugin.graph.problem import Problem, normalised
from prplugin.machine import Machine, this_machine
from prplugin.methods.base import Method
from prplugin.methods.estimates import (
    Estimate,
    describe_ingest_memory,
    describe_method_memory,
    describe_seeds_memory,
    estimate_graph,
)
from prplugin.methods.registry import ChoiceCache, choose, choose_batch, compile_ahead, reasons
from prplugin.options import EdgeOptions, Options, Unknown, excluded_by_seed
from prplugin.progress import Watch
from prplugin.result.ranking import Ranking, Rankings
from prplugin.result.selection import remaining
from prplugin.solver.loop import Outcome
from prplugin.solver.solve import solve_by
from prplugin.streams.decay import decay_weights
from prplugin.streams.graph import Access, Aging, ChangingGraph, LastRanks, Snapshot, normalized_start
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
from prplugin.types.edges import Compressed, Floats, Integers
from prplugin.types.records import Considered, History

if TYPE_CHECKING:
    from prplugin.solver.top_k import OrderProof
    from prplugin.streams.host_edges import HostEdges
    from prplugin.streams.local import LocalQueries, LocalRanks

# Modules that few calls need are imported where they are used.

ON_HOST = nullcontext()
"""Context of allocations on the host, where there is nothing to do."""


class LocalGraph:
    """Graph of one process: adjacency and vertex ids.

    `snapshot`: Its arrays are shared and not altered.
    `weights`, `weights_label`: Name of the weights, for messages.
    `unused_weight`: Column of the frame that seems to hold weights, if the user did not name a weight column.
    `lasting`: Whether more than one ranking may follow. If not, no history of the ranking is recorded.
    `began`: Time by `time.perf_counter` at which reading started; None for the state of another graph, or a saved one.
    `check`: Raises an error if arrays in a file are damaged; called before an edge is read for the first time.
    """

    def __init__(
        self, snapshot: Snapshot, weights: str, *, unused_weight: Hashable = None, lasting: bool = True,
        began: float | None = None, check: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        adjacency = snapshot.adjacency
        self._changing = ChangingGraph(snapshot)
        self.memory_space, self._weighted, self.weights_label = adjacency.memory_space, adjacency.weighted, weights
        self.unused_weight, self._lasting, self._check, self._access = unused_weight, lasting, check, Access()
        self._cheapest: ChoiceCache = {}
        self._reasons: dict[tuple[str, ...], Callable[[], tuple[Considered, ...]]] = {}
        self._reading = 0.0
        if began is not None:
            if (overflowing := adjacency.overflowing_vertices()).size:
                raise overflow_error(weights, format_ids(snapshot.vertices.plain_ids, overflowing))
            self._reading = time.perf_counter() - began

    def snapshot(self) -> Snapshot:
        """Return the present state of the graph."""
        with self._access.reading(), self._allocating():
            self._checked()
            return self._changing.snapshot()

    def packed(self) -> LocalGraph:
        """Return the graph with its edges packed on the host."""
        from prplugin.methods.engines.packed import packed_graph

        snapshot = self.snapshot()
        with self._allocating():
            snapshot = snapshot._replace(adjacency=packed_graph(snapshot.adjacency))
        return LocalGraph(snapshot, self.weights_label, unused_weight=self.unused_weight)

    def __reduce__(self) -> Any:
        """Pickle the state; locks and choices are made anew."""
        return partial(LocalGraph, unused_weight=self.unused_weight), (self.snapshot(), self.weights_label)

    def __copy__(self, memo: object = None) -> LocalGraph:
        """Return an independent graph; arrays that no update alters are shared."""
        return LocalGraph(self.snapshot(), self.weights_label, unused_weight=self.unused_weight)

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
        columns = resolve(labels, how.source, how.destination, how.weight, how.time, clock, frame)
        if how.missing != "error":
            columns = columns._replace(missing=how.missing)
        weighted, aging = columns.weight is not None, None
        with (
            explain_oom(lambda: describe_ingest_memory(rows_and_types(frame)[0], weighted, memory_space)),
            _allocating(memory_space, wait=lasting),
        ):
            if memory_space == "device":
                compile_ahead(weighted=weighted)
            rows: Any  # Edges where how.edge_list
            read_on_device = getattr(adapter, "read_on_device", lambda *_: None)
            rows, vertices = read_on_device(frame, columns, how) or adapter.read(
                frame, columns, how.vertices, edge_list=how.edge_list, lasting=lasting
            )
            if how.edge_list and not rows.packed_only:
                rows = drop_duplicates(rows, how.duplicates, directed=how.directed)
                rows = rows if how.directed else with_reverse_edges(rows)
            if clock is not None and how.half_life is not None:
                rows, references = decay_weights(rows)
                aging = Aging(clock, references)
            if lasting:  # else no update follows
                how = replace(how, source=columns.source_names, destination=columns.destination_names, vertices=None)
            snapshot = Snapshot(Adjacency(rows, symmetric=not how.directed), vertices, how, aging)
            unused = columns.unused_weight if unused_weight is None else unused_weight
            return cls(snapshot, f"column {how.weight!r}", unused_weight=unused, lasting=lasting, began=began)

    @classmethod
    def from_csr(cls, offsets: object, indices: object, weights: object, vertices: object = None) -> LocalGraph:
        """Read CSR arrays, or a sparse matrix of SciPy or CuPy; `vertices` holds the ids of the rows."""
        from prplugin.frames import matrices  # lazy import: few graphs need it

        began = time.perf_counter()
        with advising(library_of(offsets)):
            matrix = matrices.read_matrix(offsets, indices, weights)
        with runtime.device_allocation(memory_space_of(matrix.offsets), gpu_of(matrix.offsets)):
            adjacency, known = matrices.adjacency(matrix, vertices)
            schema = EdgeOptions(weight="weight" if adjacency.weighted else None)
            return cls(Snapshot(adjacency, known, schema), matrix.names[2], began=began)

    @property
    def adjacency(self) -> Adjacency:
        """Current graph, for methods."""
        self._checked()
        return self._changing.adjacency

    def _checked(self) -> None:
        """Check the arrays of a saved graph once, before they are used."""
        if (check := self._check) is not None:
            check()
            self._check = None

    @property
    def _vertices(self) -> Vertices:
        return self._changing.state.vertices

    @property
    def n(self) -> int:
        """Number of vertices."""
        with self._access.reading():
            return self._changing.state.edges.n

    @property
    def m(self) -> int:
        """Number of directed edges."""
        with self._access.reading():
            return self._changing.state.edges.m

    def update(self, add: object, remove: object, *, wait: bool) -> None:
        """Remove and add edges; on any error, change nothing."""
        explanation = "An update holds the old and the new edges at the same time. Nothing was changed."
        with self._access.updating(wait=wait), explain_oom(lambda: explanation), self._allocating():
            self._checked()
            if "_queries" in vars(self):
                self._queries.forget_edges()
            self._changing.update(add, remove)
            self._cheapest.clear()
            self._reasons.clear()

    def vertices(self) -> Any:
        """Return the ids in the order of the ranks."""
        with self._access.reading(), self._allocating():
            return self._vertices.write_ids()

    def csr(self) -> Compressed:
        """Return the out-edges by source."""
        with self._access.reading(), self._allocating():
            return self._changing.with_current_weights(self.adjacency.csr, by_target=False).read_only()

    def csc(self) -> Compressed:
        """Return the in-edges by target."""
        with self._access.reading(), self._allocating():
            return self._changing.with_current_weights(self.adjacency.csc, by_target=True).read_only()

    def estimate(self) -> Estimate:
        """Estimate memory and time of a ranking by each method."""
        with self._access.reading():
            return estimate_graph(self._changing.adjacency, this_machine())

    def facts(self) -> tuple[int, str, dict[str, str]]:
        """Return n, the edges and more properties of the graph for its representation, all of the same state."""
        how, times = self._changing.schema, {}
        with self._access.reading():
            n, chosen, edges = self.n, self.estimate().chosen, counted(self.m, "directed edge")
            packed = self._changing.adjacency.edges
            if not how.directed and not (packed.packed_only or packed.packed_rows):  # a self-loop has no reverse edge
                known = self.adjacency.edges
                edges = counted((self.m + int((known.source == known.destination).sum())) // 2, "undirected edge")
        if how.time is not None:
            limits = {"half-life": how.half_life, "window": how.window}
            given = [f"{name} {value}" for name, value in limits.items() if value is not None]
            times["times"] = f"column {how.time!r}, {', '.join(given)}"
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
            if not unknown.counts or found._history is None:
                return found
            return replace(found, _history=found._history._replace(unknown=unknown.found()))

    def _rank_one(self, options: Options, watch: Watch, unknown: Unknown) -> Ranking:
        began, machine, (edges, vertices, *_) = time.perf_counter(), this_machine(), self._changing.state
        with self._allocating(wait=False):  # only this call reads the vectors, on this stream
            pushes = options.personalization is not None and self._local_edges(options, 1) is not None
            by_seed = options.personalization is not None and excluded_by_seed(options.exclude)
            entries = vertices.read_teleports(options, unknown) if pushes or by_seed else None
            v = self._vector(options, "personalization", unknown) if entries is None else None
            w, start = self._vector(options, "dangling", unknown), self._vector(options, "nstart", unknown)
            among = excluded = None
            if options.among is not None or options.exclude is not None:
                among, excluded = self._selection(options, entries, unknown)
            watch.stage("edges")
            local = None
            if entries is not None and w is None and start is None:
                local = self._rank_locally(entries, options, among, excluded)
            if local is not None and local.met:
                outcome = Outcome(False, True, local.passes, local.error_bound, order=local.order)
                selected = None if local.shown is not None else remaining(edges.n, among, excluded)
                why = "few vertices near the seeds have most of the ranks"
                return self._pushed(local, outcome, why, options, began, selected, (options.alpha, entries, None))
            if entries is not None:
                v = normalised(expand_values(entries[1], edges.n, entries[0], 0.0), "personalization")
            selected = among if excluded is None else remaining(edges.n, among, excluded)
            equation = options.alpha, v, w
            begin: Any = start
            tol, pushed = options.tol, None
            if options.rule.proves and start is None:
                begin, tol, pushed = self._changing.push(equation, options)
            if pushed is not None:
                why = "the ranks have changed little since the last ranking"
                return self._pushed(options.requested(begin), pushed, why, options, began, selected, equation)
            if local is not None and begin is None:
                begin = normalized_start(local.dense())
            adjacency = self._changing.adjacency
            problem = Problem(adjacency, *equation)
            method = choose(options.method, adjacency, machine, options.method_options, self._cheapest)
        memory_space: MemorySpace = "device" if method.runs_on == "gpu" else adjacency.memory_space
        planned = partial(describe_method_memory, adjacency, method.name, machine)
        with explain_oom(planned), _allocating(memory_space, adjacency):
            order = _order_proof(adjacency, vertices, options, selected) if options.certified else None
            ranks, outcome = solve_by(method, problem, options, machine, watch, begin, closer=tol, order=order)
            if self._lasting and outcome.converged and options.rule.proves:
                last = LastRanks(equation, to_memory(ranks, self.memory_space), int(outcome.iterations))
                self._changing.keep(last)
            outcome.iterations += 0 if local is None else local.passes
            ranks = to_memory(options.requested(ranks), adjacency.memory_space)
        record = None
        if self._lasting or not outcome.converged:  # otherwise nobody sees the history
            considered = self._considered(method, options, machine)
            record = self._history(options, considered, watch.stages(self._reading), watch.bounds, outcome.notes)
        return self._ranking(ranks, outcome, method.name, options, began, record, selected, equation)

    def _rank_many(self, options: Options, watch: Watch, unknown: Unknown) -> Rankings:
        """Compute one ranking per seed, and keep only the ranks selected by `among`, `exclude` and `top`."""
        from prplugin.frames.exclusion import read_selection
        from prplugin.frames.seeds import read_seeds, seed_ids
        from prplugin.queries import SeedRanks
        from prplugin.solver.batch import batches

        began, machine = time.perf_counter(), this_machine()
        with self._allocating():
            seeds, labels = read_seeds(self._vertices, options.seeds, unknown)
            w, start = self._vector(options, "dangling", unknown), self._vector(options, "nstart", unknown)
            among, exclusion = read_selection(self._vertices, options, unknown, self.memory_space, labels)
            own = exclusion.by_seed(seeds, self._out_neighbours)
            watch.stage("edges")
        found = SeedRanks(seeds, options, (among, exclusion.common), own, self._changing.state.edges.n)
        edges = self._local_edges(options, seeds.rows.size // seeds.count)
        left, name = np.arange(seeds.count), "push"
        if w is None and start is None and edges is not None:
            left = found.push(self._queries, edges, machine.threads)
        if left.size:
            adjacency = self.adjacency
            with self._allocating():
                method = choose_batch(options.method, adjacency, machine, options.method_options, left.size)
            adjacency.layout = None  # frees its memory
            name = method.name
            memory_space: MemorySpace = "device" if method.runs_on == "gpu" else adjacency.memory_space
            planned = partial(describe_seeds_memory, seeds.count, adjacency.n)
            with explain_oom(planned), _allocating(memory_space, adjacency):
                problem = Problem(adjacency, options.alpha, None, w)
                for batch in batches(method, problem, seeds.take(left), start, options, machine, watch.iterations):
                    left = found.keep(left, batch, adjacency.memory_space)
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

    def _local_edges(self, options: Options, seeds: int) -> Adjacency | HostEdges | None:
        """Return the edges of the graph if pushes from so many seeds may rank faster than iterations, else None."""
        edges = self._changing.state.edges
        return edges if self._lasting and self._queries.may_pay(edges, options, seeds) else None

    @cached_property
    def _queries(self) -> LocalQueries:
        from prplugin.streams.local import LocalQueries

        return LocalQueries()

    def _rank_locally(
        self, entries: tuple[Integers, Floats], options: Options, among: Integers | None, excluded: Integers | None
    ) -> LocalRanks | None:
        """Rank by pushes from the seeds; None if that is not expected to pay."""
        rows, values = entries
        edges = self._local_edges(options, rows.size)
        if edges is None or self._changing.follows(rows):
            return None
        from prplugin.streams.local import Wanted

        equal, wanted = None, Wanted(options.top, among, excluded)
        if options.certified:
            known: dict[int, float] = defaultdict(float, zip(rows.tolist(), values.tolist(), strict=True))
            equal = EqualRanks(self.adjacency, lambda: [known], alpha=options.alpha).equal
        seeds = rows, normalised(values, "personalization")
        return self._queries.rank(edges, seeds, options, wanted, equal=equal)

    def contributions(
        self, updates: int, terms: tuple[Any, ...], labels: Labels | None, ranks: Array, vertex: object,
        top: int | None,
    ) -> Any:  # fmt: skip
        """Return the contributions to a rank of the graph as it was after that number of updates."""
        from prplugin.queries import Terms, contributions  # few rankings need it

        with self._access.reading(), self._allocating():
            if self._changing.updates != updates:
                raise PageRankError("the graph has been updated since it was ranked so: rank it again.")
            return contributions(self.adjacency, self._vertices, vertex, ranks, Terms(*terms), top, labels)

    def _why(self, terms: tuple[Any, ...], labels: Labels | None = None) -> Callable[..., Any] | None:
        """Return what `Ranking.contributions` calls; None for a one-shot graph, whose edges are the caller's."""
        return partial(self.contributions, self._changing.updates, terms, labels) if self._lasting else None

    def _pushed(
        self, ranks: Any, outcome: Outcome, why: str, options: Options, began: float, selected: Integers | None,
        terms: tuple[Any, ...],
    ) -> Ranking:  # fmt: skip
        """Return the ranking that pushes of residuals have proved."""
        stages = (("residuals pushed", time.perf_counter() - began),)
        bounds = [(outcome.iterations, outcome.error_bound)]
        record = self._history(options, (Considered("push", None, why),), stages, bounds)
        return self._ranking(ranks, outcome, "push", options, began, record, selected, terms)

    def _ranking(
        self, ranks: Any, outcome: Outcome, name: str, options: Options, began: float, record: History | None,
        selected: Integers | None, terms: tuple[Any, ...],
    ) -> Ranking:  # fmt: skip
        # Without a record only the frame is returned. Ids on the GPU are never those of the user's columns.
        owned = record is None and self.memory_space == "device"
        write = partial(self._vertices.write, owned=True) if owned else self._vertices.write
        return Ranking(
            ranks, bool(outcome.converged), int(outcome.iterations), float(outcome.error_bound), name,
            time.perf_counter() - began, write, options.top, outcome.order, record, selected, self._vertices.plain_ids,
            self._why(terms),
        )  # fmt: skip

    def _allocating(self, *, wait: bool = True) -> AbstractContextManager[None]:
        return _allocating(self.memory_space, self._changing.state.edges, wait=wait)

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

        return out_neighbours(self.adjacency.csr, rows)

    def _vector(self, options: Options, what: str, unknown: Unknown) -> Floats | None:
        """Return a distribution given by vertex as n float64 with sum 1, or None."""
        values = getattr(options, what)
        return None if values is None else normalised(self._vertices.read_values(values, what, unknown), what)

    def _considered(self, method: Method, options: Options, machine: Machine) -> Callable[[], tuple[Considered, ...]]:
        """Return a function that tells why this method was chosen and others were not, without the edges."""
        key = (method.name, options.method, *options.method_options)
        if key not in self._reasons:
            graph = Counts.of(self._changing.adjacency)
            self._reasons[key] = partial(reasons, key[0], key[1], graph, machine, options.method_options)
        return self._reasons[key]

    def _history(
        self, options: Options, considered: tuple[Considered, ...] | Callable[[], tuple[Considered, ...]],
        stages: tuple[tuple[str, float], ...], bounds: list[tuple[int, float]], notes: tuple[str, ...] = (),
    ) -> History:  # fmt: skip
        """Return the record of a ranking that has just ended."""
        edges = self._changing.state.edges
        return History(
            edges.n, edges.m, self._weighted, options.alpha, options.tol, options.stop, considered, stages,
            tuple(bounds), self.unused_weight, notes,
        )  # fmt: skip


def _order_proof(adjacency: Adjacency, vertices: Vertices, options: Options, selected: Integers | None) -> OrderProof:
    from prplugin.queries import order_proof  # few rankings need it

    return order_proof(adjacency, vertices, options, selected)


def _allocating(memory_space: MemorySpace, edges: object = None, *, wait: bool = True) -> AbstractContextManager[None]:
    """Return a context manager that allocates on the GPU of the edges, or that has no effect on the host."""
    if memory_space == "host":
        return ON_HOST
    return runtime.device_allocation(memory_space, getattr(edges, "gpu", None), wait=wait)
