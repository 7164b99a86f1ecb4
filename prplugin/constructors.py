"""Input of `prplugin.Graph` and `prplugin.pagerank`: frames, files, arrays and graphs of other libraries."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from prplugin.calls import explain_unknown_arguments
from prplugin.errors import InvalidOptionError, MethodUnavailableError, counted, full_name
from prplugin.folders import is_saved
from prplugin.frames import FIRST_ADAPTERS, LAST_ADAPTERS, FrameAdapter, adapter_for, dask, unsupported
from prplugin.frames.columns import Frame
from prplugin.frames.device_files import reading_to
from prplugin.frames.lists import FRAMES
from prplugin.frames.remedies import advising, library_of
from prplugin.local import LocalGraph
from prplugin.methods.registry import methods
from prplugin.options import (
    Duplicates,
    EdgeOptions,
    FileOptions,
    Ids,
    Missing,
    of_arguments,
    refuse,
    refuse_all_but,
    validate_bool,
)
from prplugin.streams.state import GraphState
from prplugin.tables import Display, Displayed
from prplugin.types.arrays import is_a, is_sparse

if TYPE_CHECKING:
    from prplugin.distributed.run import DistributedGraph
    from prplugin.io import EdgeFile
    from prplugin.io.adjacency import AdjacencyFile

PreparedGraph: TypeAlias = "LocalGraph | DistributedGraph"
"""Implementation of `prplugin.Graph`."""

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

SAVED = "a saved graph"  # name of the kind of input, for messages


class Source(NamedTuple):
    """A kind of input: a function that says whether it is given, and one that reads it."""

    accepts: Callable[[Any], bool]
    read: Callable[..., PreparedGraph]  # with the arguments edges, how and lasting


def prepare(edges: object, how: EdgeOptions, file: FileOptions, *, lasting: bool) -> PreparedGraph:
    """Read edges as the first of `SOURCES` that accepts them. `lasting`: whether more than one ranking may follow."""
    if isinstance(edges, os.PathLike):
        edges = _text_of(edges)
    given = file.given()
    with advising(library_of(edges)):
        for source in SOURCES:
            if source.accepts(edges):
                if given and source.read != _read_file:
                    what = SAVED if source.read == _load else full_name(edges)
                    refuse(given, f"says how to read a file of edges, not {what}")
                return source.read(edges, how, lasting=lasting, **given)
        raise unsupported(edges)


def reading_for(edges: object, method: str) -> AbstractContextManager[None]:
    """Return a context manager in which paths are read to the memory space of a method, given by name."""
    if not isinstance(edges, (str, os.PathLike, list, tuple)):
        return nullcontext()
    if method not in methods():  # "auto", or an error that is raised later
        return reading_to(None)
    return reading_to("device" if methods().runs_on(method) == "gpu" else "host")


def _of_frames(adapter: FrameAdapter) -> Source:
    return Source(adapter.accepts, partial(LocalGraph.read, adapter=adapter))


def _read_on_cluster(edges: Frame, how: EdgeOptions, *, lasting: bool) -> DistributedGraph:
    if how.by is not None or how.bipartite:
        name = "bipartite=" if how.by is None else "by="
        raise MethodUnavailableError(
            f"{name} is not supported on the workers of a Dask cluster: pass edges.compute(), or close the client."
        )
    from prplugin.distributed.run import DistributedGraph  # imports distributed, as the client did

    return DistributedGraph(dask.client(), edges, how, lasting=lasting)


def _load(path: str | os.PathLike[str], how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    refuse_all_but((), SAVED, how)
    from prplugin import saving  # lazy import: few calls need it

    return saving.load(path)


def _is_path(edges: object) -> bool:
    """Return whether edges are a path, or several."""
    paths = edges if isinstance(edges, (list, tuple)) else [edges]
    return bool(paths) and all(isinstance(path, (str, os.PathLike)) for path in paths)


def _text_of(path: str | os.PathLike[str]) -> str:
    from prplugin.io.formats import path_of  # lazy imports of what few calls need, as below

    return path_of(path)


def _read_nodes(reader: str, graph: Any, how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    """Read a graph of NetworkX or igraph."""
    refuse_all_but(("weight",), full_name(graph), how)
    return _of_nodes(reader, graph, "weight" if how.weight is None else how.weight)


def _of_nodes(reader: str, graph: Any, weight: Hashable) -> LocalGraph:
    """Read a graph of NetworkX or igraph by the function of `prplugin.frames.nodes` with this name."""
    from prplugin.frames import nodes

    began = time.perf_counter()
    adjacency, vertices = getattr(nodes, reader)(graph, weight)
    schema = EdgeOptions(weight="weight" if adjacency.weighted else None, directed=graph.is_directed())
    return LocalGraph(GraphState(adjacency, vertices, schema), nodes.label_of(weight), began=began)


def _read_matrix(matrix: object, how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    refuse_all_but((), full_name(matrix), how)
    return LocalGraph.from_csr(matrix, None, None)


def _read_file(path: Paths, how: EdgeOptions, *, lasting: bool, **options: Any) -> LocalGraph:
    """Read edges from files; `options` are further arguments of `prplugin.io.read_edges`."""
    source, destination, by = (
        labels if labels is None or isinstance(labels, list) else [labels]
        for labels in (how.source, how.destination, how.by)
    )
    from prplugin.io import read_edges

    file = read_edges(path, source, destination, how.weight, missing=how.missing, by=by, **options)
    return of_file(file, path, how, lasting=lasting)


def of_file(file: EdgeFile | AdjacencyFile, path: Paths, how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    """Return the graph of files that have been read; of `how`, the columns are those of the files."""
    from prplugin.frames.parquet import Opened
    from prplugin.io import EdgeFile

    columns = file.columns
    if how.time is not None and not (isinstance(file, EdgeFile) and isinstance(file.frame, Opened)):
        raise InvalidOptionError(
            f"time= supports frames and Parquet files only: write {path} as Parquet, or read it into a frame."
        )
    if how.vertices is not None and not (isinstance(file, EdgeFile) and file.vertices is None):
        raise InvalidOptionError(f"{path} names all vertices itself: omit vertices=.")
    by = columns.source_names[: columns.by] or None
    how = replace(how, **columns.id_names, by=by, weight=columns.weight_name)
    facts: Any = {"unused_weight": columns.unused_weight, "lasting": lasting}
    if isinstance(file, EdgeFile):
        vertices = file.vertices if how.vertices is None else how.vertices
        how = replace(how, directed=file.directed and how.directed, vertices=vertices)
        return LocalGraph.read(file.frame, how, adapter_for(file.frame), **facts)
    if how.bipartite:
        raise InvalidOptionError(f"bipartite=True supports frames and files of rows, and {path} is a whole graph.")
    began = time.perf_counter()
    adjacency = file.graph(directed=how.directed, duplicates=how.duplicates)
    how = how if adjacency.weighted else replace(how, weight=None)
    return LocalGraph(GraphState(adjacency, file.vertices, how), "column 'weight'", began=began, **facts)


def _read_frames(edges: Iterator[object], how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    """Read frames that can be iterated only once."""
    frames = list(edges)
    if not FRAMES.accepts(frames):
        raise unsupported(edges)
    return LocalGraph.read(frames, how, FRAMES, lasting=lasting)


SOURCES = (
    *map(_of_frames, FIRST_ADAPTERS),
    Source(lambda edges: dask.accepts(edges) and dask.client() is not None, _read_on_cluster),
    Source(is_saved, _load),
    Source(_is_path, _read_file),
    Source(partial(is_a, module="networkx", name="Graph"), partial(_read_nodes, "read_networkx")),
    Source(partial(is_a, module="igraph", name="Graph"), partial(_read_nodes, "read_igraph")),
    Source(is_sparse, _read_matrix),
    *map(_of_frames, LAST_ADAPTERS),
    Source(lambda edges: isinstance(edges, Iterator) and not hasattr(edges, "read"), _read_frames),  # no open file
)
"""All kinds of input, in the order in which they are asked whether they accept edges."""


class Constructors(Displayed):
    """The constructors of `prplugin.Graph` that take files, arrays and graphs of other libraries."""

    _graph: PreparedGraph

    @classmethod
    def _of(cls, prepared: PreparedGraph) -> Self:
        graph = cls.__new__(cls)
        graph._graph = prepared
        return graph

    def __copy__(self) -> Self:
        """Return an independent graph; arrays that no update alters are shared."""
        graph = self._of(copy(self._graph))
        graph.__dict__.update({name: value for name, value in self.__dict__.items() if name != "_graph"})
        return graph

    @explain_unknown_arguments
    def save(self, path: str | os.PathLike[str], *, packed: bool = False) -> None:
        """Save the graph to a folder, from which `load` maps it to memory.

        The folder has everything that rankings and updates need. A saved graph at `path` is replaced when the new one
        is complete; a process that has loaded the old one keeps it.

        Parameters
        ----------
        path : str or path
            A new or empty folder, or that of a saved graph.
        packed : bool, default False
            Pack the edges, in 1 to 2.7 bytes each instead of 4. `rank` decodes them in each iteration, from the mapped
            file, for one vector by the method "native"; updates, many seeds and other methods unpack them first. The
            last bits of the ranks are those of another order of additions. A packed graph stays one.

        Raises
        ------
        InvalidOptionError
            If the edges are to be packed and have weights, `path` is something else, or ids are Python objects that
            cannot be restored without pickle.

        Examples
        --------
        >>> import pandas as pd, prplugin, tempfile
        >>> graph = prplugin.Graph(pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "a", "a"]}))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph.save(folder)
        ...     prplugin.Graph.load(folder).rank(top=1).to_dict()
        {'a': 0.486486...}
        """
        if not isinstance(self._graph, LocalGraph):
            raise MethodUnavailableError(
                "a graph on the workers of a Dask cluster cannot be saved: make it from a frame in this process."
            )
        from prplugin import saving  # lazy import: few calls need it

        saving.save(self._graph.packed() if validate_bool("packed", packed) else self._graph, path)

    @classmethod
    @explain_unknown_arguments
    def load(cls, path: str | os.PathLike[str], *, mapped: bool = True) -> Self:
        """Load a graph that `save` has saved, without reading it: its files are mapped to memory.

        Processes that load the same folder share its memory. Nothing in it is executed. The sizes of the files are
        checked here; their content when it is first used, in one pass. Results are frames of the library that the
        graph was made from. A graph of the GPU is copied there, or stays on the host, with a PageRankWarning, if there
        is no GPU or no cuDF.

        Parameters
        ----------
        path : str or path
            Folder of a saved graph. `pagerank`, `Graph` and `from_file` also accept it instead of edges.
        mapped : bool, default True
            If False, read the files to memory at once. A file that is mapped must not be overwritten in place or
            truncated while the graph is in use, which would end the process; `save` replaces the folder instead.

        Returns
        -------
        Graph
            The graph. `update` changes it in memory; the folder changes when it is saved again.

        Raises
        ------
        InvalidEdgesError
            If the folder is not a saved graph, is damaged, or was written by a newer version; damaged content is
            reported by the first call that uses it.
        """
        from prplugin import saving  # lazy import: few calls need it

        return cls._of(saving.load(path, mapped=validate_bool("mapped", mapped)))

    def _display(self) -> Display:
        n, edges, facts = self._graph.facts()
        title = f"Graph of {counted(n, 'vertex', 'vertices')} and {edges}"
        return Display(title, [], [list(fact) for fact in facts.items()], left=[0, 1])

    @classmethod
    @explain_unknown_arguments
    def from_csr(cls, offsets: Any, indices: Any = None, weights: Any = None, *, vertices: Any = None) -> Self:
        """Build a graph from CSR arrays or a sparse matrix, whose rows are sources.

        Parallel entries are parallel edges; explicit zeros are edges of weight 0. Rankings have pandas frames. CuPy
        arrays stay on the GPU, and their rankings have cuDF frames if cuDF is loaded.

        Parameters
        ----------
        offsets : array of n + 1 integers, sparse matrix, or frame
            The out-edges of vertex i are the entries ``offsets[i]:offsets[i + 1]`` of `indices`. Alternatively, a
            square matrix of `scipy.sparse` or `cupyx.scipy.sparse`, in CSR, CSC or COO format; or a frame with a row
            and a column per vertex, which its index, or its first column, names as the columns: 0 is no edge.
        indices : array of m integers
            Targets.
        weights : array of m numbers, optional
            Finite and non-negative. Default: every edge counts 1.
        vertices : list, array, Series, index or frame, optional
            Ids of the n rows, all distinct; a frame if a vertex has several columns. The graph then orders integer ids
            ascending, and others as the rows. Default: 0..n-1.

        Returns
        -------
        Graph
            The prepared graph.

        Examples
        --------
        >>> import prplugin
        >>> graph = prplugin.Graph.from_csr([0, 1, 2, 2], [1, 0], vertices=["a", "b", "c"])
        >>> graph.rank(alpha=0.5).frame["vertex"].tolist()
        ['a', 'b', 'c']
        """
        return cls._of(LocalGraph.from_csr(offsets, indices, weights, vertices))

    @classmethod
    @explain_unknown_arguments
    def from_file(
        cls,
        path: Paths,
        source: Hashable | list[Hashable] = None,
        destination: Hashable | list[Hashable] = None,
        weight: Hashable = None,
        *,
        directed: bool = True,
        vertices: object = None,
        duplicates: Duplicates = "sum",
        missing: Missing = "error",
        format: str | None = None,  # noqa: A002 - the name that users know it by
        ids: Ids = "auto",
        header: bool | None = None,
        delimiter: str | None = None,
        comment: str | None = None,
        skip: int = 0,
        null: str | Sequence[str] = (),
        packed: bool = False,
    ) -> Self:
        """Build a graph from a file of one of many formats.

        Tables: Parquet, Feather, JSON Lines, CSV, TSV, SNAP text, Matrix Market, DIMACS (.gr), LDBC Graphalytics (.v,
        .e, .properties) and folders of Common Crawl. Adjacency lists: WebGraph (.graph, .properties, .offsets), GAP
        (.sg, .wsg), Ligra (.adj) and METIS (.graph, .metis). Most may be compressed (.gz, .zst, .bz2, .xz, .zip).

        Parameters
        ----------
        path : str or path, or list of them
            File of edges, any file of a WebGraph or LDBC graph, a folder of Parquet or of Common Crawl, or the folder
            of a saved graph, which has all that the other parameters describe. A list: files of rows with the same
            columns, read as one.
        source, destination, weight : column label or position, optional
            As for `pagerank`. In text, a number that names no column is a position, from 1. Text without a header has
            the columns source, destination and weight, and so have adjacency lists: with ``source="destination",
            destination="source"`` a file with the transpose of a graph gives the graph. Weights of Matrix Market,
            DIMACS and adjacency lists are used if no column is named.
        directed : bool, default True
            If False, each row is an edge in both directions, as in a file that says so: a symmetric Matrix Market file,
            or text with a comment ``% sym`` (KONECT) or ``# Undirected graph`` (SNAP) above its edges.
        vertices, duplicates : optional
            As for `pagerank`.
        missing : {"error", "drop"}
            Rows with a missing endpoint: empty or `null` in text, null or NaN in Parquet.
        format : str, optional
            "parquet", "feather", "jsonl", "csv", "tsv", "snap", "mtx", "webgraph", "common-crawl", "gap", "ldbc",
            "ligra", "metis" or "dimacs". Default: by name and content.
        ids : {"auto", "integer", "string"}
            Type of ids in text. "integer" also reads 007 as 7 and 7.0 as 7, which are distinct strings.
        header : bool, optional
            Whether the first line of text names the columns. Default: unless it is all numbers.
        delimiter : str, optional
            Character between fields of text.
        comment : str, optional
            Characters with which lines of text begin that are comments. Default: none in CSV and TSV. In SNAP text #
            and %, above the first edge; below it, only where a blank follows them, so that ``#a #b`` is an edge.
        skip : int, default 0
            Number of lines of text to skip at the beginning of the file.
        null : str or list of str, optional
            Fields of text that stand for a missing value, besides empty ones.
        packed : bool, default False
            Pack the edges on the host, as for `save`. A WebGraph file with the transpose of the graph is packed range
            by range, so that its edges are never all in memory.

        Returns
        -------
        Graph
            The prepared graph.

        Raises
        ------
        InvalidEdgesError, ColumnNotFoundError
            If the file cannot be read as edges. The message names the file and, in text, the line. An absent file
            raises an InvalidEdgesError that is a FileNotFoundError as well.
        """
        given = of_arguments(FileOptions, locals()).given()
        how = EdgeOptions(source, destination, weight, directed, vertices, duplicates, missing=missing)
        if isinstance(path, os.PathLike):
            path = _text_of(path)
        if is_saved(path):
            refuse(given, f"says how to read a file of edges, not {SAVED}")
            graph = _load(path, how, lasting=True)
        else:
            with reading_to("host") if packed else nullcontext():
                graph = _read_file(path, how, lasting=True, packed=packed, **given)
        return cls._of(graph.packed() if packed else graph)

    @classmethod
    @explain_unknown_arguments
    def from_cugraph(cls, graph: object) -> Self:
        """Build a graph from a `cugraph.Graph` or `cugraph.MultiGraph` on one GPU, with the edges that cuGraph uses.

        Edges of an undirected graph count in both directions; a `cugraph.Graph` has one edge per pair. Rankings have
        cuDF frames; ids that are not integers are in the order of the sorted edges.

        Parameters
        ----------
        graph : cugraph.Graph or cugraph.MultiGraph
            Graph on one GPU.

        Returns
        -------
        Graph
            The prepared graph.
        """
        from prplugin.frames.nodes import read_cugraph

        return cls(**read_cugraph(graph))

    @classmethod
    @explain_unknown_arguments
    def from_networkx(cls, graph: object, weight: Hashable = "weight") -> Self:
        """Build a graph from a NetworkX graph or view, with all nodes, and undirected edges in both directions.

        Rankings have pandas frames: integer nodes ascend, others are in the order of the graph. Nodes of mixed types,
        which one column cannot hold, raise InvalidEdgesError (``nx.pagerank(graph, backend="prplugin")`` accepts them).

        Parameters
        ----------
        graph : networkx.Graph
            Graph or view; directed or undirected, with or without parallel edges.
        weight : attribute, optional
            Edge attribute of weights; edges without it count 1, as in NetworkX. With None, every edge counts 1.

        Returns
        -------
        Graph
            The prepared graph.
        """
        return cls._of(_of_nodes("read_networkx", graph, weight))

    @classmethod
    @explain_unknown_arguments
    def from_igraph(cls, graph: object, weights: str | None = "weight") -> Self:
        """Build a graph from an `igraph.Graph`, with all vertices, and undirected edges in both directions.

        Rankings have pandas frames. The ids are the vertex attribute "name" if all names differ, else igraph's indices
        0..n-1.

        Parameters
        ----------
        graph : igraph.Graph
            Directed or undirected graph.
        weights : str, optional
            Edge attribute of weights. With None, or if the edges lack the default attribute, every edge counts 1.

        Returns
        -------
        Graph
            The prepared graph.
        """
        return cls._of(_of_nodes("read_igraph", graph, weights))
