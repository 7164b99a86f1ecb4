"""The public functions: `pagerank`, and `Graph` with `rank`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, overload

from prplugin.calls import explain_unknown_arguments, preserves_frame_type
from prplugin.constructors import Constructors
from prplugin.methods.estimates import Estimate
from prplugin.options import (
    Duplicates,
    EdgeOptions,
    FileOptions,
    Ids,
    Missing,
    Options,
    Unknowns,
    of_arguments,
    validate_bool,
)
from prplugin.progress import ProgressOption, Watch, watching
from prplugin.result.ranking import Ranking, Rankings, not_converged
from prplugin.sources import PreparedGraph, prepare, reading_for
from prplugin.stopping import Stop
from prplugin.types.edges import Compressed


@preserves_frame_type  # type: ignore[arg-type]  # `edges` by name is in its protocol
@explain_unknown_arguments
def pagerank(
    edges: object,
    source: Hashable | list[Hashable] = None,
    destination: Hashable | list[Hashable] = None,
    weight: Hashable = None,
    *,
    by: Hashable | list[Hashable] = None,
    time: Hashable = None,
    half_life: object = None,
    window: object = None,
    now: object = None,
    directed: bool = True,
    bipartite: bool = False,
    vertices: object = None,
    duplicates: Duplicates = "sum",
    missing: Missing = "error",
    workers: int | None = None,
    format: str | None = None,  # noqa: A002 - the name that users know it by
    ids: Ids = "auto",
    header: bool | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
    skip: int = 0,
    null: str | Sequence[str] = (),
    alpha: float = 0.85,
    personalization: object = None,
    seeds: object = None,
    among: object = None,
    exclude: object = None,
    dangling: object = None,
    nstart: object = None,
    unknown: Unknowns = "error",
    tol: float = 1e-6,
    max_iter: int | None = None,
    stop: Stop = "error",
    scale: Literal[1, "n"] = 1,
    dtype: Any = "float64",
    method: str = "auto",
    top: int | None = None,
    certified: bool = False,
    progress: ProgressOption = False,
    **method_options: object,
) -> Any:
    """Rank the vertices of a graph given by its edges, with a proved error bound.

    The ranks x solve ``x = alpha * (P^T x + D * w) + (1 - alpha) * v`` and sum to 1. P holds the normalized weights:
    each weight divided by the out-weight of its source. D is the dangling mass: the sum of the ranks of the vertices of
    out-weight 0. v is `personalization`, by default uniform; w is `dangling`, by default v.

    Parameters
    ----------
    edges : DataFrame of cuDF, pandas, polars or Dask, another table, path, or graph
        One row per edge; never altered. A list of frames, or another object that yields the same frames whenever it is
        iterated, is read as one frame; cuDF frames one at a time if they do not fit in one. Every table that narwhals
        or Arrow's C interface supports is accepted; of a lazy table only the required columns are collected. Parquet
        files (a path, a list of paths or a `pyarrow.dataset.Dataset`) are read by row groups, those of a path on the
        GPU if there is one; others as by `Graph.from_file`. Partitions of a Dask frame stay on the workers of the
        active `distributed.Client`. A graph of NetworkX, igraph, rustworkx or NetworKit, or a sparse
        matrix, is read as by `Graph.from_networkx` and its like or `Graph.from_csr`, and the result is a pandas frame.
    source, destination : column label, or list of column labels, optional
        Columns of the endpoints; lists if a vertex has several columns. Default: the first pair present of src/dst,
        source/destination, source/target, from/to; if there is none, the only pair that matches without regard to case.
    weight : column label, optional
        Finite non-negative numbers. Default: every edge counts 1.
    by : column label, or list of column labels, optional
        Rank the rows of each value of these columns as a graph of its own, all in one call. Each group sums to 1, and
        `tol` bounds the proved error of each. `personalization`, `nstart`, `among` and `exclude` name the group of each
        vertex by these columns, or in tuples before the id; or they name vertices that every group must have.
        `vertices` is a frame with these columns and `vertex`. `top` is the number for each group. `seeds` are ranked in
        their group alone, not on a Dask cluster. Not with `dangling`, `certified` or, without `seeds`, another `stop`
        than "error".
    time : column label, optional
        Time of each edge: timestamps, dates or numbers.
    half_life : str, timedelta or number, optional
        Multiply the weight of each edge by ``2 ** (-(now - time) / half_life)``. A string such as "7D", "2 weeks",
        "36h" or "P7D", or a timedelta; if the times are numbers, a number in their unit. Units are W, D, h, min, s, ms,
        us and ns. Requires `time`. Times more than 2**39 half-lives before the latest one raise InvalidEdgesError.
    window : str, timedelta or number, optional
        Ignore rows with ``now - time >= window``, decided without rounding, as if the frame did not have them.
        Requires `time`.
    now : timestamp or number, optional
        Reference time of `half_life` and `window`. Default: the latest time. Later times raise InvalidEdgesError.
    directed : bool, default True
        If False, each row is an edge in both directions; a self-loop counts once.
    bipartite : bool, default False
        If True, ids of the two columns are of different vertices, such as users and films: results have a column `side`
        before `vertex`, with the label of the column, and the vertices of `source` come first. Vertices are named by
        frames with `side` and `vertex`, or by tuples; ``among="film"`` and ``exclude="film"`` are one side. Not with
        `by` or `vertices`, nor on a Dask cluster. A sparse matrix of any shape has the sides "src" and "dst".
    vertices : list, array, Series or frame, optional
        Additional vertices, such as isolated ones. If a vertex has several columns: a frame with the source's columns,
        or a list of tuples.
    duplicates : {"sum", "first", "last", "error"}
        Treatment of rows with the same endpoints: "sum" counts each (weights add), "first" and "last" keep one, and
        "error" raises InvalidEdgesError.
    missing : {"error", "drop"}
        Treatment of rows with a missing endpoint, null or NaN, and in text empty or one of `null`: raise
        InvalidEdgesError, or leave them out.
    workers : int, optional
        Number of workers of a Dask cluster that rank a Dask frame. By default one, which then runs what one process
        runs, if the edges fit in its memory with room to spare and the others have few threads beside it; else all.
    format, ids, header, delimiter, comment, skip, null : optional
        How to read a file, above all one of text: as for `Graph.from_file`.
    alpha : float, default 0.85
        Damping factor, at least 0 and less than 1.
    personalization : dict, Series, frame, list, set, array or ranking, optional
        The teleport distribution, divided by its sum. A dict, a Series indexed by vertex, or a frame with the columns
        `vertex` and `values` holds values by vertex, and so does a ranking, or its frame; ``(frame, "id", "score")``
        names two columns. Other vertices have 0. A list, set, tuple, index or frame of one column of vertices is the
        uniform distribution over them. An array of n numbers holds values in the order of `Graph.vertices`. A Series
        whose index has no name and is the default one, or a part of it, may hold vertices or values, and raises
        InvalidOptionError.
    seeds : list, Series, index, frame, dict or array, optional
        Compute one ranking per seed in one call, much faster than in separate calls. A list, Series, index, array or
        frame of one column of vertices; a list of distributions, each as for `personalization`; a dict of them, or a
        Series of lists, by label; a frame with an additional column `seed` (without further columns, all `values` are
        1); or a k x n array. Cannot be combined with `personalization`.
    among : list, Series, index, frame or array of vertices, optional
        Return only the ranks of these vertices in the whole graph, in this order, or with `top` the highest of them.
    exclude : list, set, Series, index, frame or array of vertices, "seeds" or "neighbors", optional
        Do not return these vertices; the ranks of others do not change. "seeds": those to which a ranking teleports.
        "neighbors": the targets of their edges. A list may have both beside vertices. A frame with the columns `seed`
        and `vertex` leaves out vertices of single seeds.
    dangling, nstart : optional
        As for `personalization`: the distribution of the dangling mass, and the initial ranks.
    unknown : {"error", "ignore"}
        Treatment of vertices that the graph lacks, in all of these arguments: raise InvalidOptionError, or ignore them
        and count them in `Ranking.unknown`. A seed with no other vertices is left out. `exclude` always ignores them.
    tol : float, default 1e-6
        Threshold of the `stop` rule. 0, with `max_iter`: the `max_iter`-th iterate of the power method.
    max_iter : int, optional
        Maximum number of iterations. Default: the number after which contraction by `alpha` guarantees `tol`; 1,000,000
        at most for rules other than "error".
    stop : {"error", "delta", "vertex", "networkx"}
        "error": the L1 distance to the exact PageRank is proved to be at most `tol`. "delta": the L1 change of an
        iteration is at most `tol`. "vertex": no rank changes by more than `tol`. "networkx": the L1 change is below
        n * `tol`.
    scale : {1, "n"}
        Sum of the ranks. `tol` and the error bound refer to ranks that sum to 1.
    dtype : {"float64", "float32"}
        Type of the ranks returned.
    method : str, default "auto"
        Name of a method (`prplugin methods` lists them). "auto" chooses the method of least estimated cost.
    top : int, optional
        Return only the `top` highest ranks, in descending order; ties in the order of the result.
    certified : bool, default False
        With `top`, or with `among`, whose vertices are then returned in descending order: stop as soon as the order of
        the ranks returned is proved, or at `tol`. Vertices with equal in-edges,
        and some others, are proved to have equal ranks. `Ranking.ties` lists them, and vertices whose order is not
        proved. Weights are compared as float64: weights that round to the same float64 are equal.
    progress : bool or function, default False
        If True, show a progress bar after two seconds, on a terminal or in a notebook, with the time left where rows
        of Parquet or bytes of text are read, and in iterations. A function is called with a `prplugin.Progress` at
        each stage and iteration, and as a file is read.
    **method_options
        Options of the method, such as ``threads=`` of "native"; "auto" chooses a method that has them.

    Returns
    -------
    frame
        Frame of the type of `edges`, also of narwhals (a `polars.DataFrame` for a LazyFrame; a `pyarrow.Table` for a
        dataset, a DuckDB relation and an object with only Arrow's C interface; a pandas frame for a path), with one row
        per vertex and the columns `vertex` (or the source's columns if a vertex has several) and `pagerank`. Integer
        ids ascend; others are in the order of first appearance, row by row, source before destination, then `vertices`.
        With `by`, its columns come first, and rows are in the order of groups, which is that of ids of these columns.
        With `seeds`, one row per seed and vertex, and a first column `seed`: the vertex (its columns with the prefix
        "seed_" if it has several), the position in the list, counted from 0, or the value in the frame.

    Raises
    ------
    InvalidEdgesError, ColumnNotFoundError
        If the frame cannot be read as edges: nulls, ids of mixed kinds, negative weights, absent columns.
    InvalidOptionError
        If an argument is invalid, or rounding makes `tol` too small to prove.
    MethodUnavailableError, OutOfMemoryError, WorkerLostError
        If the named method cannot run here, memory runs out, or a worker of the Dask cluster is lost.
    NotConvergedError
        If `max_iter` iterations were not enough; its attribute `ranking` is the last `Ranking`.

    See Also
    --------
    Graph : A graph prepared for several rankings; `Graph.rank` returns the error bound with the ranks.

    References
    ----------
    .. [1] A. N. Langville and C. D. Meyer, "Deeper inside PageRank", Internet Mathematics 1(3), 2004, section 3.

    Examples
    --------
    >>> import pandas as pd, prplugin
    >>> edges = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "a", "a"]})
    >>> edges.pagerank(top=1)
      vertex  pagerank
    0      a  0.486486
    """
    arguments = locals()
    options, how = of_arguments(Options, arguments), of_arguments(EdgeOptions, arguments)
    with watching(progress) as watch:
        watch.stage("vertices")
        with reading_for(edges, method):
            graph = prepare(edges, how, of_arguments(FileOptions, arguments), lasting=False)
        return _rank(graph, options, watch).frame


class Graph(Constructors):
    """A graph prepared for several rankings.

    Parameters
    ----------
    edges : frame or graph
        Edges, one per row, or a graph of another library, as for `pagerank`.
    source, destination, weight : column or list of columns, optional
        Columns of the endpoints and of edge weights. Default: every edge counts 1.
    by, time, half_life, window, now, directed, bipartite, vertices, duplicates, missing, workers : optional
        Groups, each ranked as a graph of its own; weights that decay with age; direction; two kinds of ids; additional
        vertices; rows with the same endpoints, or without one; workers of a Dask cluster: as for `pagerank`.
    format, ids, header, delimiter, comment, skip, null : optional
        How to read a file: as for `Graph.from_file`.

    Examples
    --------
    >>> import pandas as pd, prplugin
    >>> graph = prplugin.Graph(pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}))
    >>> ranking = graph.rank(alpha=0.9)
    >>> ranking.converged, ranking.error_bound <= 1e-6
    (True, True)
    """

    @explain_unknown_arguments
    def __init__(
        self,
        edges: object,
        source: Hashable | list[Hashable] = None,
        destination: Hashable | list[Hashable] = None,
        weight: Hashable = None,
        *,
        by: Hashable | list[Hashable] = None,
        time: Hashable = None,
        half_life: object = None,
        window: object = None,
        now: object = None,
        directed: bool = True,
        bipartite: bool = False,
        vertices: object = None,
        duplicates: Duplicates = "sum",
        missing: Missing = "error",
        workers: int | None = None,
        format: str | None = None,  # noqa: A002 - the name that users know it by
        ids: Ids = "auto",
        header: bool | None = None,
        delimiter: str | None = None,
        comment: str | None = None,
        skip: int = 0,
        null: str | Sequence[str] = (),
    ) -> None:
        arguments = locals()
        how, file = of_arguments(EdgeOptions, arguments), of_arguments(FileOptions, arguments)
        self._graph = prepare(edges, how, file, lasting=True)

    @property
    def number_of_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return self._graph.n

    @property
    def number_of_edges(self) -> int:
        """Number of directed edges; each parallel edge counts, and so do both directions of an undirected edge."""
        return self._graph.m

    @property
    def vertices(self) -> Any:
        """Ids in the order of `Ranking.ranks`: a Series of the frame's library, or a frame of several columns."""
        return self._graph.vertices()

    def csr(self) -> Compressed:
        """Return the out-edges by source, as read-only views of the graph, or as CuPy copies if it is on the GPU.

        Returns
        -------
        offsets : array of n + 1 integers
            The out-edges of vertex i are the entries ``offsets[i]:offsets[i + 1]`` of the other two arrays.
        indices : array of m integers
            Positions of the targets in the order of `vertices`.
        weights : array of m float64, or None
            Edge weights; None if the graph has none.
        """
        return self._graph.csr()

    def csc(self) -> Compressed:
        """Return the in-edges by target.

        Returns
        -------
        Compressed
            As returned by `csr`, but with the in-edges of each vertex: `indices` holds the positions of the sources.
        """
        return self._graph.csc()

    @explain_unknown_arguments
    def update(self, add: object = None, remove: object = None, *, wait: bool = True) -> None:
        """Remove and add edges; on any error, change nothing.

        The next `rank` with the same options starts from the last ranks. New vertices follow the existing ones, except
        that integer ids stay in ascending order. Vertices are never removed. Other threads see the graph before or
        after an update, and wait meanwhile.

        Parameters
        ----------
        add : frame, optional
            Edges to add after the removals, with the same columns as the original frame; if the graph was not built
            from a frame, with src, dst and, in a weighted graph, weight. `duplicates` also applies to existing edges.
        remove : frame, optional
            Edges to remove, one per row. If the frame has the columns of weights or times, these must match as well.
            An edge that the graph does not have raises InvalidEdgesError.
        wait : bool, default True
            Wait for the rankings of other threads; those that begin later wait for the update. If False, or if the
            ranking would wait for the update, as in its callbacks, a ranking that runs raises PageRankError.

        Examples
        --------
        >>> import pandas as pd, prplugin
        >>> graph = prplugin.Graph(pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}))
        >>> graph.update(add=pd.DataFrame({"src": [4], "dst": [3]}))
        >>> graph.rank(top=1).frame["vertex"].tolist()
        [1]
        """
        validate_bool("wait", wait)
        self._graph.update(add, remove, wait=wait)

    @explain_unknown_arguments
    def estimate(self) -> Estimate:
        """Estimate memory and time of each method on this graph, and the choice of "auto"; allocate nothing.

        Returns
        -------
        Estimate
            Prints as a table; ``estimate["native"]`` has the ``device`` and ``host`` bytes and ``seconds`` of a method.
        """
        return self._graph.estimate()

    @overload
    def rank(self, *, seeds: None = None, **arguments: Any) -> Ranking: ...
    @overload
    def rank(self, *, seeds: object, **arguments: Any) -> Rankings: ...
    @explain_unknown_arguments
    def rank(
        self,
        *,
        alpha: float = 0.85,
        personalization: object = None,
        seeds: object = None,
        among: object = None,
        exclude: object = None,
        dangling: object = None,
        nstart: object = None,
        unknown: Unknowns = "error",
        tol: float = 1e-6,
        max_iter: int | None = None,
        stop: Stop = "error",
        scale: Literal[1, "n"] = 1,
        dtype: Any = "float64",
        method: str = "auto",
        top: int | None = None,
        certified: bool = False,
        progress: ProgressOption = False,
        **method_options: object,
    ) -> Ranking:
        """Rank the vertices; see `pagerank` for details of the parameters and for the errors raised.

        Parameters
        ----------
        alpha, personalization : optional
            Damping factor; teleport distribution.
        seeds, among, exclude : optional
            Distributions to compute one ranking of each; vertices to return the ranks of; vertices not to return.
        dangling, nstart, unknown : optional
            As for `personalization`: the distribution of the dangling mass, and the initial ranks; treatment of
            vertices that the graph lacks.
        tol, max_iter, stop : optional
            Threshold, by default of the proved L1 error; maximum number of iterations; quantity that `tol` bounds.
        scale, dtype, method : optional
            Sum and type of the ranks; name of a method, or "auto".
        top, certified : optional
            Return only the highest ranks; stop as soon as their order is proved.
        progress : bool or function, default False
            Show a progress bar, or call the function with a `prplugin.Progress`.
        **method_options
            Options of the method.

        Returns
        -------
        Ranking or Rankings
            `Rankings` if `seeds` is given; `GroupRankings`, which are `Rankings`, if the graph has groups.
        """
        options = of_arguments(Options, locals())
        with watching(progress) as watch:
            return _rank(self._graph, options, watch)


def _rank(graph: PreparedGraph, options: Options, watch: Watch) -> Ranking:
    """Rank a graph; raise `NotConvergedError` if the ranking did not meet its stopping rule."""
    ranking = graph.rank(options, watch)
    if not ranking.converged and options.tol > 0:
        raise not_converged(ranking, options)
    return ranking
