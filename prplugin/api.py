"""The public functions: `pagerank`, and `Graph` with `rank`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, Unpack

from prplugin.calls import explained, keeps_frame
from prplugin.constructors import Constructors
from prplugin.errors import counted
from prplugin.methods.estimates import Estimate
from prplugin.options import Duplicates, EdgeOptions, GivenByVertex, MethodOptions, Options, Stop
from prplugin.prepared import prepare
from prplugin.progress import ProgressOption, watching
from prplugin.result.ranking import Ranking
from prplugin.tables import Display, Displayed
from prplugin.types.compressed import Compressed

__all__ = ["Graph", "pagerank"]


@keeps_frame
@explained
def pagerank(
    edges: Any,
    source: Hashable | list[Hashable] = None,
    destination: Hashable | list[Hashable] = None,
    weight: Hashable = None,
    *,
    time: Hashable = None,
    half_life: Any = None,
    window: Any = None,
    now: Any = None,
    directed: bool = True,
    vertices: Any = None,
    duplicates: Duplicates = "sum",
    alpha: float = 0.85,
    personalization: Any = None,
    seeds: Any = None,
    among: Any = None,
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
    **method_options: Unpack[MethodOptions],
) -> Any:
    """Rank the vertices of a graph given by its edges, to a proved accuracy.

    The ranks x solve ``x = alpha * (P^T x + D * w) + (1 - alpha) * v`` and sum to 1. P: the normalized weights, each
    weight divided by the out-weight of its source. D: the dangling mass, the ranks' sum over vertices of out-weight 0.
    v: `personalization`, else uniform. w: `dangling`, else v.

    Parameters
    ----------
    edges : DataFrame of cuDF, pandas, polars or Dask, another table, path, or graph
        One row per edge; never altered. Tables of pyarrow and of whatever narwhals or Arrow's C interface knows are
        read too; of a lazy one the columns in use are collected. A path or a `pyarrow.dataset.Dataset` of Parquet files
        is read by row groups; the path of a text file as by `Graph.from_file`. Partitions of a Dask frame stay on the
        workers of the `distributed.Client` in use. A graph of NetworkX or igraph, or a sparse matrix, is read as by
        `Graph.from_networkx`, `Graph.from_igraph` or `Graph.from_csr`, and ranked in a pandas frame.
    source, destination : column label, or list of column labels, optional
        The endpoints; lists where a vertex has several columns. Default: the first pair present of src/dst,
        source/destination, source/target, from/to; else the only one that is present in another case.
    weight : column label, optional
        Finite non-negative numbers. Default: every edge counts 1.
    time : column label, optional
        Time of each edge: timestamps, dates or numbers.
    half_life : str, timedelta or number, optional
        Multiply the weight of each edge by ``2 ** (-(now - time) / half_life)``. A string such as "7D" or a timedelta;
        if the times are numbers, a number in their unit. Requires `time`.
    window : str, timedelta or number, optional
        Ignore rows with ``now - time >= window``, as if the frame did not have them. Requires `time`.
    now : timestamp or number, optional
        Reference time of `half_life` and `window`. Default: the latest time. Later times raise InvalidEdgesError.
    directed : bool, default True
        False: each row is an edge both ways; a self-loop counts once.
    vertices : list, array, Series or frame, optional
        More vertices, isolated ones included. For vertices of several columns a frame with the source's columns, or a
        list of tuples.
    duplicates : {"sum", "first", "last", "error"}
        Rows with the same endpoints: "sum" counts each (weights add); "first" and "last" keep one; "error" refuses.
    alpha : float, default 0.85
        Damping factor, at least 0 and less than 1.
    personalization : dict, Series, frame, list, set or array, optional
        The teleport distribution, divided by its sum. Values by vertex: a dict, a Series indexed by vertex, or a frame
        with the columns `vertex` and `values`; other vertices have 0. A list, set, tuple or index of vertices: uniform
        over them. An array of n numbers: a value per vertex, in the order of `Graph.vertices`.
    seeds : list, frame or array, optional
        Many rankings in one call, which takes much less time than one call each: a list of vertices, each a seed; a
        list of what `personalization` takes, each a distribution; a frame with one more column `seed` (`values` may be
        left out if all are 1); or an array of k x n numbers. Not together with `personalization`.
    among : list, Series, index or array of vertices, optional
        Return the ranks of these alone, in this order, or with `top` the highest of them. Ranks are of the whole graph.
    dangling, nstart : optional
        As `personalization`: where the dangling mass goes; the ranks to start from.
    tol : float, default 1e-6
        Threshold of the `stop` rule. 0, with `max_iter`: the `max_iter`-th iterate of the power method.
    max_iter : int, optional
        Budget of iterations. Default: as many as the contraction by `alpha` needs for `tol`.
    stop : {"error", "delta", "vertex", "networkx"}
        "error": the L1 distance to the exact PageRank is proved to be at most `tol`. "delta": an iteration's L1 change
        is at most `tol`. "vertex": no vertex moves by more than `tol`. "networkx": the L1 change is below n * `tol`.
    scale : {1, "n"}
        Sum of the ranks. `tol` and the error bound refer to ranks that sum to 1.
    dtype : {"float64", "float32"}
        Type of the ranks returned.
    method : str, default "auto"
        A method by name (`prplugin methods` lists them); "auto" takes the one of least estimated cost; "measured" times
        those that "auto" may choose on this graph and takes the fastest; a `Graph` stores the choice.
    top : int, optional
        Return only the `top` highest ranks, in descending order; ties in the order of the result.
    certified : bool, default False
        With `top`: stop as soon as the order of the highest ranks is proved, or at `tol`. Vertices with equal in-edges,
        and others like them, are proved equal. `Ranking.ties` lists those, and vertices that cannot be told apart.
        Weights are compared as float64: those that are equal only after rounding count as equal.
    progress : bool or function, default False
        True: a progress bar after two seconds, on a terminal or in a notebook's cell. A function is called with a
        `prplugin.Progress` at each stage and iteration.
    **method_options
        Options of the method, such as ``threads=`` of "numba"; "auto" and "measured" choose among those that take them.

    Returns
    -------
    frame
        Of the kind of `edges` (a `polars.DataFrame` for a LazyFrame; a `pyarrow.Table` for Parquet, a relation of
        DuckDB and what has Arrow's C interface alone), one row per vertex: `vertex` (or the source's columns, where a
        vertex has several) and `pagerank`. Integer ids ascend; others are in the order of first appearance, row by row,
        source before destination, then `vertices`. With `seeds`, a row per seed and vertex, and a first column `seed`:
        the vertex (of several columns: theirs, after "seed_"), the position in the list from 0 on, or the frame's.

    Raises
    ------
    InvalidEdgesError, ColumnNotFoundError
        If the frame cannot be read as edges: nulls, ids of mixed kinds, negative weights, absent columns.
    InvalidOptionError
        If an argument is invalid, or `tol` is below what rounding allows to prove.
    MethodUnavailableError, OutOfMemoryError, WorkerLostError
        If the named method cannot run here, memory runs out, or a worker of the Dask cluster is lost.
    NotConvergedError
        If `max_iter` iterations were not enough; it carries the `Ranking` reached.

    See Also
    --------
    Graph : Prepare once, rank often; `Graph.rank` returns the error bound with the ranks.

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
    options = Options(
        alpha=alpha, tol=tol, max_iter=max_iter, stop=stop, scale=scale, dtype=dtype, method=method, top=top,
        certified=certified, method_options=method_options,
    )  # fmt: skip
    given = GivenByVertex(personalization, seeds, among, dangling, nstart)
    how = EdgeOptions(source, destination, weight, directed, vertices, duplicates, time, half_life, window, now)
    with watching(progress) as watch:
        watch.stage("vertices")
        return prepare(edges, how, lasting=False).rank(options, given, watch).frame


class Graph(Constructors, Displayed):
    """A graph prepared for ranking: prepare once, rank often.

    Parameters
    ----------
    edges : frame or graph
        Edges, one per row, or a graph of another library, as for `pagerank`.
    source, destination, weight : column or list of columns, optional
        Columns of the endpoints and of edge weights. Default: every edge counts 1.
    time, half_life, window, now : optional
        Weights that decay with age, as for `pagerank`.
    directed, vertices, duplicates : optional
        Whether edges lead one way; additional vertices; treatment of rows that repeat a pair of vertices.

    Examples
    --------
    >>> import pandas as pd, prplugin
    >>> graph = prplugin.Graph(pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}))
    >>> ranking = graph.rank(alpha=0.9)
    >>> ranking.converged, ranking.error_bound <= 1e-6
    (True, True)
    """

    @explained
    def __init__(
        self,
        edges: Any,
        source: Hashable | list[Hashable] = None,
        destination: Hashable | list[Hashable] = None,
        weight: Hashable = None,
        *,
        time: Hashable = None,
        half_life: Any = None,
        window: Any = None,
        now: Any = None,
        directed: bool = True,
        vertices: Any = None,
        duplicates: Duplicates = "sum",
    ) -> None:
        how = EdgeOptions(source, destination, weight, directed, vertices, duplicates, time, half_life, window, now)
        self._graph = prepare(edges, how, lasting=True)

    @property
    def number_of_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return self._graph.n

    @property
    def number_of_edges(self) -> int:
        """Number of directed edges; parallel edges count each, and both ways of an undirected one."""
        return self._graph.m

    def _display(self) -> Display:
        n, m = self.number_of_vertices, self.number_of_edges
        title = f"Graph of {counted(n, 'vertex', 'vertices')} and {counted(m, 'directed edge')}"
        return Display(title, [], [list(fact) for fact in self._graph.facts().items()], left=[0, 1])

    @property
    def vertices(self) -> Any:
        """Ids in the order of `Ranking.ranks`: a Series of the frame's library; of several columns, a frame."""
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
            As of `csr`, for the in-edges of each vertex: `indices` holds the positions of the sources.
        """
        return self._graph.csc()

    def update(self, add: Any = None, remove: Any = None) -> None:
        """Remove and add edges; on any error, change nothing.

        The next `rank` with the same options starts from the last ranks. New vertices follow the existing ones, except
        that integer ids stay in ascending order. Vertices are never removed. While a ranking of this graph runs, an
        update raises PageRankError.

        Parameters
        ----------
        add : frame, optional
            Edges to add after the removals, with the columns that the graph was read from; src, dst and, in a weighted
            graph, weight if it was not made from a frame. `duplicates` applies to edges that the graph has already.
        remove : frame, optional
            Edges to remove, one per row. If the frame has the columns of weights or times, these must match as well.
            An edge that the graph does not have raises InvalidEdgesError.

        Examples
        --------
        >>> import pandas as pd, prplugin
        >>> graph = prplugin.Graph(pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}))
        >>> graph.update(add=pd.DataFrame({"src": [4], "dst": [3]}))
        >>> graph.rank(top=1).frame["vertex"].tolist()
        [1]
        """
        self._graph.update(add, remove)

    def estimate(self) -> Estimate:
        """Estimate bytes and seconds of each method on this graph, and the choice of "auto"; allocate nothing.

        Returns
        -------
        Estimate
            Prints as a table; ``estimate["numba"]`` has ``device`` and ``host`` bytes and ``seconds`` of a method.
        """
        return self._graph.estimate()

    @explained
    def rank(
        self,
        *,
        alpha: float = 0.85,
        personalization: Any = None,
        seeds: Any = None,
        among: Any = None,
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
        **method_options: Unpack[MethodOptions],
    ) -> Ranking:
        """Rank the vertices; errors are those of `pagerank`, which describes the parameters at length.

        Parameters
        ----------
        alpha, personalization : optional
            Damping factor, and the teleport distribution.
        seeds, among : optional
            Many personalizations: a ranking of each. Vertices whose ranks alone are returned.
        dangling, nstart : optional
            As `personalization`: where the dangling mass goes; the ranks to start from.
        tol, max_iter, stop : optional
            Threshold, by default of the proved L1 error; budget of iterations; what `tol` bounds.
        scale, dtype, method : optional
            Sum and type of the ranks; a method by name, "auto" or "measured".
        top, certified : optional
            Return only the highest ranks; stop as soon as their order is proved.
        progress : bool or function, default False
            Show a progress bar, or call the function with a `prplugin.Progress`.
        **method_options
            Options of the method.

        Returns
        -------
        Ranking or Rankings
            `frame`, `ranks`, `converged`, `iterations`, `error_bound`, `method`, `seconds`; with `seeds`, of each.
        """
        options = Options(
            alpha=alpha, tol=tol, max_iter=max_iter, stop=stop, scale=scale, dtype=dtype, method=method, top=top,
            certified=certified, method_options=method_options,
        )  # fmt: skip
        with watching(progress) as watch:
            return self._graph.rank(options, GivenByVertex(personalization, seeds, among, dangling, nstart), watch)
