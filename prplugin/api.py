"""The whole way on one page: read the frame, build the graph, choose a method, iterate, write the frame."""

from __future__ import annotations

import time
from collections.abc import Hashable
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from prplugin.errors import (
    InvalidEdgesError,
    InvalidOptionError,
    MethodUnavailableError,
    NotConvergedError,
    counted,
    listed,
)
from prplugin.frames import adapter_for, cugraph, dask, matrices
from prplugin.frames.columns import resolve
from prplugin.frames.seeds import SeedValues
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.dedup import both_ways, one_edge_a_pair
from prplugin.graph.equal_ranks import Twins
from prplugin.graph.problem import Problem, Seeds, normalised, sums_of_runs
from prplugin.machine import this_machine
from prplugin.methods.base import Method
from prplugin.methods.estimates import Estimate, of_a_plan, of_an_ingest, of_graph, of_many_seeds, telling
from prplugin.methods.measured import Kept, fastest, measured
from prplugin.methods.reasons import reasons
from prplugin.methods.registry import choose, choose_batch, compile_ahead
from prplugin.options import Duplicates, Options, Stop, check_choice
from prplugin.progress import ProgressOption, Watch, watching
from prplugin.result.ranking import Ranking, Rankings, highest_of_each
from prplugin.solver.batch import batches
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Loop, Outcome
from prplugin.solver.slow import Patience, direct_solver
from prplugin.solver.stopping import step_budget
from prplugin.solver.top_k import Equal, OrderProof, order_of
from prplugin.types.arrays import gpu_of, moved, namespace
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Floats
from prplugin.types.history import History

if TYPE_CHECKING:
    from prplugin.distributed.run import SpreadGraph

__all__ = ["Graph", "pagerank"]

STAGES = "frame read, vertices numbered", "method chosen, edges laid out", "iterations"
"""Of a ranking, in their order."""


def pagerank(
    edges: Any,
    source: Hashable | list[Hashable] = None,
    destination: Hashable | list[Hashable] = None,
    weight: Hashable = None,
    *,
    directed: bool = True,
    vertices: Any = None,
    duplicates: Duplicates = "sum",
    alpha: float = 0.85,
    personalization: Any = None,
    dangling: Any = None,
    nstart: Any = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    stop: Stop = "error",
    scale: Literal[1, "n"] = 1,
    dtype: Any = "float64",
    method: str = "auto",
    top: int | None = None,
    certified: bool = False,
    progress: ProgressOption = False,
    **method_options: Any,
) -> Any:
    """Rank the vertices of a graph given by its edges, to a proved accuracy.

    The ranks x solve ``x = alpha * (P^T x + D * w) + (1 - alpha) * v`` and sum to 1. P: each edge's share of the
    out-weight of its source. D: the rank of dangling vertices, which have no out-weight. v: `personalization`, else
    uniform. w: `dangling`, else v.

    Parameters
    ----------
    edges : cudf.DataFrame, pandas.DataFrame, polars.DataFrame, a frame of Dask or another table
        One row an edge. It is not altered. Tables of pyarrow and whatever else narwhals or Arrow's C interface knows go
        in as well. Of a lazy one, such as a `polars.LazyFrame`, the columns in use are collected. Also the path of a
        Parquet file, or of a folder of them, or a `pyarrow.dataset.Dataset` of such: row groups are read one after
        another, twice, and the graph holds 4 bytes an edge (12 with a weight) beside what it knows of the vertices. The
        partitions of a frame of Dask, of pandas or cuDF, stay on the workers of the `distributed.Client` in use, which
        rank together; without one they are brought into this process.
    source, destination : column name, or list of column names, optional
        The two ends of the edges; lists, where a vertex has several columns. Not given: the first pair present of
        src/dst, source/destination, source/target, from/to.
    weight : column name, optional
        Finite numbers of at least 0. Not given: every edge counts 1.
    directed : bool, default True
        False: each row is an edge both ways; a self-loop counts once.
    vertices : list, array, Series or frame, optional
        More vertices, isolated ones included: the graph has these and the ends of the edges. For vertices of several
        columns a frame with the source's columns, or a list of tuples.
    duplicates : {"sum", "first", "last", "error"}
        Rows with the same pair of ends: "sum" counts each (weights add); "first" and "last" keep one; "error" refuses.
    alpha : float, default 0.85
        Damping, at least 0 and less than 1.
    personalization : dict, Series or frame, optional; or a list
        Values of at least 0 by vertex: a dict, a Series indexed by vertex, or a frame with the columns `vertex` and
        `values`. They are divided by their sum; vertices without one have 0. For many seeds at once, whose rankings
        take much less time together: a list of those; or of vertices, each of which is a seed; or a frame with one
        more column, `seed`, where `values` may be left out if all are 1.
    dangling : dict, Series or frame, optional
        The same, for where the rank of dangling vertices goes.
    nstart : dict, Series or frame, optional
        The same, for the ranks to start from. Not given: uniform.
    tol : float, default 1e-6
        What the `stop` rule compares with. 0, with `max_iter`: the `max_iter`-th iterate of the power method.
    max_iter : int, optional
        Budget of steps. Not given: as many as the contraction by `alpha` needs for `tol`.
    stop : {"error", "delta", "vertex", "networkx"}
        "error": the L1 distance to the exact PageRank is proved to be at most `tol`. "delta": a step's L1 change is at
        most `tol`. "vertex": no vertex moved by more than `tol`. "networkx": a step's L1 change is at most n * `tol`.
    scale : {1, "n"}
        What the ranks sum to. `tol` and the error bound stay those of ranks that sum to 1.
    dtype : {"float64", "float32"}
        Of the ranks that are returned.
    method : str, default "auto"
        A method by name (`prplugin methods` lists them); "auto" takes the one of least estimated cost; "measured" first
        times those that "auto" may choose on this very graph, and takes the fastest. A `Graph` keeps what it timed.
    top : int, optional
        Return only the `top` highest ranks, in falling order; ties in the order of the result.
    certified : bool, default False
        With `top`: stop as soon as the order of the highest ranks is proved, or, where it is not before, at `tol`.
        Vertices that have the same in-edges, and others like them, are proved equal. `Ranking.ties` has those, and
        vertices that cannot be told apart.
    progress : bool or function, default False
        True: a bar on the terminal, once the work has taken two seconds. A function is called with a
        `prplugin.Progress` after each stage and iteration.
    **method_options
        Options of the method, such as ``threads=`` of "numba"; "auto" and "measured" choose among those that take them.

    Returns
    -------
    frame
        Of the kind of `edges` (a frame of Dask of one partition a worker; a `polars.DataFrame` for a LazyFrame, a
        `pyarrow.Table` for a relation of DuckDB, for Parquet, and for what has Arrow's C interface alone), one row a
        vertex: the columns `vertex` (or the source's, where a vertex has several) and `pagerank`. Integer ids ascend;
        others come in the order in which they first appear, row by row, source before destination, then `vertices`.
        For many seeds, one row for each seed and vertex, in the order in which seeds were given, and one more column
        before the others: `seed`, a vertex (of several columns: theirs, after "seed_"), the place in a list from 0 on,
        or what was in the column of that name.

    Raises
    ------
    InvalidEdgesError, ColumnNotFoundError
        If the frame cannot be read as edges: nulls, ids of mixed kinds, negative weights, absent columns.
    InvalidOptionError
        If an argument has no meaning, or `tol` is below what rounding lets anyone prove.
    MethodUnavailableError
        If the named method cannot run here.
    OutOfMemoryError
        If the memory runs out all the same; it says what was needed, and which methods need less.
    WorkerLostError
        If a worker of the Dask cluster is lost meanwhile; another call works with those that are left.
    NotConvergedError
        If `max_iter` steps were not enough; it carries the `Ranking` reached.

    See Also
    --------
    Graph : prepare once, rank often; its `rank` returns the error bound with the ranks.

    References
    ----------
    .. [1] L. Page, S. Brin, R. Motwani and T. Winograd, "The PageRank citation ranking: bringing order to the web",
       Stanford InfoLab, 1999.
    .. [2] A. N. Langville and C. D. Meyer, "Deeper inside PageRank", Internet Mathematics 1(3), 2004, section 3.

    Examples
    --------
    >>> import pandas as pd, prplugin
    >>> edges = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "a", "a"]})
    >>> edges.pagerank(top=1)
      vertex  pagerank
    0      a  0.486486
    """
    options = Options(
        alpha=alpha, tol=tol, max_iter=max_iter, stop=stop, scale=scale, dtype=dtype, method=method, top=top,
        certified=certified, method_options=method_options,
    )  # fmt: skip
    with watching(progress) as watch:
        watch.stage("vertices")
        graph = _Passing(
            edges, source, destination, weight, directed=directed, vertices=vertices, duplicates=duplicates
        )
        return graph._rank(options, personalization, dangling, nstart, watch).frame


class Graph:
    """A graph made ready for ranking: prepare once, ask often.

    Parameters
    ----------
    edges, source, destination, weight, directed, vertices, duplicates
        As for `pagerank`.

    Examples
    --------
    >>> import pandas as pd, prplugin
    >>> graph = prplugin.Graph(pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}))
    >>> ranking = graph.rank(alpha=0.9)
    >>> ranking.converged, ranking.error_bound <= 1e-6
    (True, True)
    """

    _lasting = True
    _spread: SpreadGraph | None = None
    """The graph, where it lies on the workers of a cluster."""

    def __init__(
        self,
        edges: Any,
        source: Hashable | list[Hashable] = None,
        destination: Hashable | list[Hashable] = None,
        weight: Hashable = None,
        *,
        directed: bool = True,
        vertices: Any = None,
        duplicates: Duplicates = "sum",
    ) -> None:
        began = time.perf_counter()
        if not isinstance(directed, (bool, np.bool_)):
            raise InvalidOptionError(f"directed must be True or False, not {directed!r}.")
        check_choice("duplicates", duplicates, ("sum", "first", "last", "error"))
        adapter = adapter_for(edges)
        frame, labels = adapter.opened(edges)
        columns = resolve(labels, source, destination, weight)
        if dask.accepts(edges) and (client := dask.client()) is not None:
            from prplugin.distributed.run import SpreadGraph  # imports distributed, which has a client

            self._spread = SpreadGraph(client, frame, columns, vertices, directed=bool(directed), duplicates=duplicates)
            if self._lasting:
                self._spread.wait()
            return
        made_of = partial(of_an_ingest, frame, weight is not None, adapter.place)
        with telling(made_of), runtime.allocating(adapter.place):
            if adapter.place == "device":
                compile_ahead(weighted=weight is not None)
            by_row = not directed or duplicates != "sum"
            rows, known = adapter.read(frame, columns, vertices, by_row=by_row, lasting=self._lasting)
            rows = one_edge_a_pair(rows, duplicates, directed=bool(directed))
            self._hold(adapter, Adjacency(rows if directed else both_ways(rows)), known, f"column {weight!r}")
        self._reading = time.perf_counter() - began

    @classmethod
    def from_csr(cls, offsets: Any, indices: Any = None, weights: Any = None) -> Graph:
        """Make a graph of arrays, or of a sparse matrix, whose vertices are 0..n-1: all of them, isolated ones too.

        Rows are sources, as in adjacency matrices. Parallel entries are parallel edges, those of value 0 edges of
        weight 0. What a graph needs of the arrays is copied: they may change later.

        Parameters
        ----------
        offsets : array of n + 1 integers, or sparse matrix
            The edges from vertex i are the entries ``offsets[i]:offsets[i + 1]`` of `indices`. Or, alone, a square
            matrix or array of `scipy.sparse` or `cupyx.scipy.sparse`, in CSR, CSC or COO format.
        indices : array of m integers
            Targets.
        weights : array of m numbers, optional
            Finite and at least 0. Not given, or all 1: every edge counts 1.

        Returns
        -------
        Graph
            Its rankings have pandas frames. Arrays of CuPy stay on the GPU, and rankings have cuDF frames where cuDF
            is loaded. `rank` takes arrays of n numbers as well for `personalization`, `dangling` and `nstart`.

        Raises
        ------
        InvalidEdgesError
            For lengths that do not agree, offsets that fall, indices out of range, a matrix that is not square, and
            weights that are not finite numbers of at least 0.

        Examples
        --------
        >>> import prplugin
        >>> graph = prplugin.Graph.from_csr([0, 1, 2, 2], [1, 0])
        >>> graph.rank(alpha=0.5).frame["vertex"].tolist()
        [0, 1, 2]
        """
        began = time.perf_counter()
        matrix = matrices.given_as(offsets, indices, weights)
        graph = cls.__new__(cls)
        with runtime.allocating(matrix.place, gpu_of(matrix.rows)):
            adjacency, vertices = matrices.adjacency(matrix)
            graph._hold(matrices, adjacency, vertices, matrix.names[2])
        graph._reading = time.perf_counter() - began
        return graph

    @classmethod
    def from_cugraph(cls, graph: Any) -> Graph:
        """Make a graph of a `cugraph.Graph` or `cugraph.MultiGraph` on one GPU.

        It has the edges that cuGraph ranks by: those of an undirected graph both ways, and of repeated pairs in a
        `cugraph.Graph` the one that cuGraph kept; its weights, if it has any, and its isolated vertices.

        Parameters
        ----------
        graph : cugraph.Graph
            It is not altered.

        Returns
        -------
        Graph
            Its rankings have cuDF frames, with the ids that the graph was made with. Those that are not integers come
            in the order of edges sorted by them.

        Raises
        ------
        InvalidEdgesError
            If it is something else, or spread over several GPUs.
        """
        return cls(**cugraph.edges_of(graph))

    def _hold(self, adapter: ModuleType, adjacency: Adjacency, vertices: Any, weights: str) -> None:
        self._adapter, self._adjacency, self._vertices = adapter, adjacency, vertices
        self._timings: Kept = {}
        self._check_out_weights(weights)

    @property
    def number_of_vertices(self) -> int:
        """How many vertices there are, isolated ones included."""
        return self._adjacency.n if self._spread is None else self._spread.number_of_vertices

    @property
    def number_of_edges(self) -> int:
        """How many directed edges there are; parallel ones count each, and both ways of an undirected one."""
        return self._adjacency.m if self._spread is None else self._spread.number_of_edges

    def csr(self) -> Compressed:
        """Give the out-edges by source.

        Returns
        -------
        Compressed
            ``offsets, indices, weights``: n + 1 int64, m positions of targets in the order of the result, and m float64
            or None where the graph has no weights. They are the graph's own, and read-only; of a cuDF frame's graph,
            copies on the GPU.
        """
        self._require_one_memory()
        with runtime.allocating(self._adjacency.place, self._adjacency.gpu):
            return _read_only(self._adjacency.csr)

    def csc(self) -> Compressed:
        """Give the in-edges by target: as `csr`, with the positions of sources for indices."""
        self._require_one_memory()
        with runtime.allocating(self._adjacency.place, self._adjacency.gpu):
            return _read_only(self._adjacency.csc)

    def estimate(self) -> Estimate:
        """Estimate what each method would take to rank the graph: bytes, seconds, and which "auto" would choose.

        Nothing is allocated, and no GPU is needed to know what a method takes on one.

        Returns
        -------
        Estimate
            Printed, a table; ``estimate["numba"]`` has one method's ``device`` and ``host`` bytes, and ``seconds``.

        See Also
        --------
        estimate : the same from counts alone, before there is a graph.

        Examples
        --------
        >>> import pandas as pd, prplugin
        >>> graph = prplugin.Graph(pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}))
        >>> graph.estimate().chosen.method
        'numpy'
        """
        self._require_one_memory()
        return of_graph(self._adjacency, this_machine())

    def rank(
        self,
        *,
        alpha: float = 0.85,
        personalization: Any = None,
        dangling: Any = None,
        nstart: Any = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        stop: Stop = "error",
        scale: Literal[1, "n"] = 1,
        dtype: Any = "float64",
        method: str = "auto",
        top: int | None = None,
        certified: bool = False,
        progress: ProgressOption = False,
        **method_options: Any,
    ) -> Ranking:
        """Rank the vertices: as `pagerank`, whose parameters and errors these are.

        Returns
        -------
        Ranking
            `frame`, `converged`, `iterations`, `error_bound`, `method`, `seconds`; of a certified order, `ties`. For
            many seeds, `Rankings`.
        """
        options = Options(
            alpha=alpha, tol=tol, max_iter=max_iter, stop=stop, scale=scale, dtype=dtype, method=method, top=top,
            certified=certified, method_options=method_options,
        )  # fmt: skip
        with watching(progress) as watch:
            return self._rank(options, personalization, dangling, nstart, watch)

    def _rank(self, options: Options, personalization: Any, dangling: Any, nstart: Any, watch: Watch) -> Ranking:
        began = time.perf_counter()
        if self._spread is not None:
            if options.certified:
                raise MethodUnavailableError(
                    "certified=True looks at all ranks in one memory, and those of this graph lie on several workers: "
                    "make the graph of frame.compute(), if its edges fit one memory."
                )
            given = {"personalization": personalization, "dangling": dangling, "nstart": nstart}
            return _checked(self._spread.rank(options, given, watch), options)
        adjacency = self._adjacency
        if personalization is not None:
            with runtime.allocating(adjacency.place, adjacency.gpu):
                many = self._adapter.read_seeds(personalization, self._vertices, "personalization")
            if many is not None:
                if options.certified:
                    raise InvalidOptionError(
                        "certified=True proves the order of one ranking, and personalization gives many seeds: rank "
                        "each by a call of its own, or leave certified out."
                    )
                return self._rank_many(options, many, dangling, nstart, watch, began)
        with runtime.allocating(adjacency.place, adjacency.gpu):
            problem = Problem(
                adjacency,
                options.alpha,
                self._vector("personalization", personalization),
                self._vector("dangling", dangling),
            )
            start = self._vector("nstart", nstart)
            watch.stage("edges")
            if options.method == "measured":
                method = fastest(problem, this_machine(), options, self._timings)
            else:
                method = choose(options.method, adjacency, this_machine(), options.method_options)
        place = "device" if method.runs_on == "gpu" else adjacency.place
        planned = partial(of_a_plan, adjacency, method.name, this_machine())
        with telling(planned), runtime.allocating(place, adjacency.gpu):
            equal = self._equal(personalization, dangling) if options.certified else None
            ranks, outcome = _iterated(method, problem, start, options, watch, equal)
            ranks = ranks if options.scale == 1 else ranks * adjacency.n
            ranks = moved(ranks.astype(options.dtype, copy=False), adjacency.place)
        ranking = Ranking(
            ranks,
            bool(outcome.converged),
            int(outcome.iterations),
            float(outcome.error_bound),
            method.name,
            time.perf_counter() - began,
            partial(self._adapter.write, self._vertices),
            options.top,
            outcome.order,
            # Of a passing graph nobody sees the ranking, but in an error.
            self._history(method, options, watch) if self._lasting or not outcome.converged else None,
        )
        return _checked(ranking, options)

    def _rank_many(
        self, options: Options, many: SeedValues, dangling: Any, nstart: Any, watch: Watch, began: float
    ) -> Rankings:
        """Rank from each of many seeds, some of them side by side; with ``top=`` no more ranks are kept."""
        adjacency = self._adjacency
        with runtime.allocating(adjacency.place, adjacency.gpu):
            seeds = Seeds(many.bounds, many.rows, _shares(many))
            problem = Problem(adjacency, options.alpha, None, self._vector("dangling", dangling))
            start = self._vector("nstart", nstart)
            watch.stage("edges")
            method = choose_batch(options.method, adjacency, this_machine(), options.method_options, seeds.count)
        first, done = 0, []
        kept: Any = None
        positions: Any = None
        place = "device" if method.runs_on == "gpu" else adjacency.place
        planned = partial(of_many_seeds, seeds.count, adjacency.n)
        with telling(planned), runtime.allocating(place, adjacency.gpu):
            for batch in batches(method, problem, seeds, start, options, this_machine(), watch.iterations):
                ranks = batch.ranks if options.scale == 1 else batch.ranks * adjacency.n
                ranks = ranks.astype(options.dtype, copy=False)
                if options.top is not None:
                    rows = highest_of_each(ranks, options.top)
                    ranks = namespace(ranks).take_along_axis(ranks, rows, axis=1)
                    positions = _with_rows(positions, moved(rows, adjacency.place), first, seeds.count)
                kept = _with_rows(kept, moved(ranks, adjacency.place), first, seeds.count)
                first += len(ranks)
                done.append(batch[1:])
            converged, iterations, bounds = (np.concatenate(each) for each in zip(*done, strict=True))
            rankings = Rankings(
                kept,
                bool(converged.all()),
                int(iterations.max()),
                float(bounds.max()),
                method.name,
                time.perf_counter() - began,
                partial(self._adapter.write, self._vertices, labels=many.labels),
                options.top,
                each_converged=converged,
                each_iterations=iterations,
                each_error_bound=bounds,
                rows=positions,
            )
        if not rankings.converged and options.tol > 0:
            raise NotConvergedError(_shortfall(rankings, options), rankings)
        return rankings

    def _vector(self, what: str, given: Any) -> Floats | None:
        """Spread values given by vertex over all vertices, divided by their sum."""
        if given is None:
            return None
        values: Floats = self._adapter.read_values(given, self._vertices, what)
        with np.errstate(over="ignore"):
            vector, sum_ = normalised(values)
        if sum_ == 0:
            raise InvalidOptionError(f"{what} sums to 0: at least one vertex needs a positive value.")
        if not np.isfinite(sum_):
            raise InvalidOptionError(f"{what} sums to more than float64 holds. Divide its values by the greatest.")
        return vector

    def _history(self, method: Method, options: Options, watch: Watch) -> History:
        """Note how a ranking came about that has just ended."""
        adjacency, machine = self._adjacency, this_machine()
        prepared = watch.begun.get("iterations", now := time.perf_counter())
        stages = (
            (STAGES[0], self._reading),
            (STAGES[1], prepared - watch.begun["edges"]),
            (STAGES[2], now - prepared),
        )
        timings = measured(machine, options, self._timings) if options.method == "measured" else {}
        return History(
            adjacency.n, adjacency.m, adjacency.weighted, "device" if method.runs_on == "gpu" else "host",
            options.alpha, options.tol, options.stop,
            reasons(method, options.method, adjacency, machine, options.method_options, timings),
            stages, tuple(watch.bounds),
        )  # fmt: skip

    def _equal(self, personalization: Any, dangling: Any) -> Equal:
        """Prepare to prove vertices equal: from the values as they were given, which division may make so."""

        @cache
        def twins() -> Twins:
            given = {"personalization": personalization, "dangling": dangling}
            vectors = [
                self._adapter.read_values(values, self._vertices, what)
                for what, values in given.items()
                if values is not None
            ]
            return Twins(self._adjacency, vectors)

        return lambda a, b, ranks: twins().equal(a, b, ranks)

    def _require_one_memory(self) -> None:
        if self._spread is not None:
            raise MethodUnavailableError(
                "the edges of this graph lie on several workers, and no one of them holds its arrays: "
                "make the graph of frame.compute(), if its edges fit one memory."
            )

    def _check_out_weights(self, weights: str) -> None:
        rows = self._adjacency.past_range()
        if rows.size:
            raise InvalidEdgesError(
                f"{weights}: the weights that leave {counted(rows.size, 'vertex', 'vertices')} "
                f"({listed(self._vertices.described(rows))}) sum to more than float64 holds. "
                f"Divide {weights} by its greatest value."
            )


class _Passing(Graph):
    """A graph that is gone before its frame can change, and so may come back to it for what it did not keep."""

    _lasting = False


def _iterated(
    method: Method, problem: Problem, start: Floats | None, options: Options, watch: Watch, equal: Equal | None
) -> tuple[Floats, Outcome]:
    """Make the method's plan and iterate; both are gone, and their memory free, when this returns or raises."""
    adjacency = problem.adjacency
    if adjacency.n == 0:
        none = adjacency.out_weight
        return none, Outcome(False, True, 0, 0.0, order=None if equal is None else order_of(none, 1, 0.0, equal))
    step = method.prepare(problem, this_machine(), **options.method_options)
    certificate = Certificate(options.alpha, adjacency.n, adjacency.m, step.chain, options.dtype, options.scale)
    budget = step_budget(certificate, options)
    watched = watch.iterations(options.tol if options.stop == "error" else 0.0, budget)
    order = None if equal is None or options.top is None else OrderProof(options.top, equal)
    loop = Loop(certificate, options, budget, watched, order, Patience(direct_solver(problem)))
    outcome = loop.run(step, 1.0 / adjacency.n if start is None else start)
    return step.ranks(), outcome


def _checked(ranking: Ranking, options: Options) -> Ranking:
    if not ranking.converged and options.tol > 0:
        raise NotConvergedError(_shortfall(ranking, options), ranking)
    return ranking


def _shares(many: SeedValues) -> Floats:
    """Divide the values of each seed by their sum."""
    with np.errstate(over="ignore"):
        sums = sums_of_runs(many.values, many.bounds)
    on_host = moved(sums, "host")
    if (none := np.flatnonzero(on_host == 0)).size:
        raise InvalidOptionError(
            f"personalization sums to 0 for {counted(none.size, 'seed')}, the one at {listed(none)} (counted from 0): "
            "at least one vertex needs a positive value."
        )
    if (past := np.flatnonzero(~np.isfinite(on_host))).size:
        raise InvalidOptionError(
            f"personalization sums to more than float64 holds for {counted(past.size, 'seed')}, the one at "
            f"{listed(past)} (counted from 0). Divide its values by the greatest."
        )
    sizes = np.diff(many.bounds)
    shares: Floats = many.values / namespace(sums).asarray(np.repeat(on_host, sizes))
    return shares


def _with_rows(whole: Any, rows: Any, first: int, count: int) -> Any:
    """Copy rows to their place in a matrix of so many, which is made for the first of them."""
    if whole is None:
        whole = namespace(rows).empty((count, rows.shape[1]), rows.dtype)
    whole[first : first + len(rows)] = rows
    return whole


def _read_only(compressed: Compressed) -> Compressed:
    if namespace(compressed.offsets) is not np:  # CuPy's arrays cannot be made read-only
        offsets, indices, weights = compressed
        return Compressed(offsets.astype(np.int64), indices.copy(), None if weights is None else weights.copy())
    views = [None if array is None else array.view() for array in compressed]
    for view in views:
        if view is not None:
            view.flags.writeable = False
    return Compressed(*views)  # type: ignore[arg-type]  # only weights can be None


def _shortfall(ranking: Ranking, options: Options) -> str:
    rule = {
        "error": f"a proved error of {options.tol:g}",
        "delta": f"an L1 change of {options.tol:g}",
        "vertex": f"no vertex moving by more than {options.tol:g}",
        "networkx": f"an L1 change of n * {options.tol:g}",
    }[options.stop]
    more = "Allow a larger max_iter or tol." if options.max_iter is not None else "More would not: allow a larger tol."
    return (
        f"{ranking.iterations} iterations did not reach {rule}; the error is at most {ranking.error_bound:.2g}. {more} "
        "The ranks reached are in this error's .ranking."
    )
