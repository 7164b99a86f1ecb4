"""The constructors of `prplugin.Graph` that take files, arrays and graphs of other libraries."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from copy import copy
from typing import Any, Self

from prplugin.calls import explain_unknown_arguments
from prplugin.errors import InvalidOptionError, MethodUnavailableError, counted
from prplugin.folders import is_saved
from prplugin.frames.reading import reading_to
from prplugin.local import LocalGraph
from prplugin.options import Duplicates, EdgeOptions, FileOptions, Ids, Missing, of_arguments, refuse, validate_bool
from prplugin.sources import SAVED, Paths, PreparedGraph, load_saved, of_nodes, read_file, text_of
from prplugin.tables import Display, Displayed


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
    def from_csr(
        cls,
        offsets: Any,
        indices: Any = None,
        weights: Any = None,
        *,
        vertices: Any = None,
        bipartite: bool = False,
        directed: bool = True,
    ) -> Self:
        """Build a graph from CSR arrays or a sparse matrix, whose rows are sources.

        Parallel entries are parallel edges; explicit zeros are edges of weight 0. Rankings have pandas frames. CuPy
        arrays stay on the GPU, and their rankings have cuDF frames if cuDF is loaded.

        Parameters
        ----------
        offsets : array of n + 1 integers, sparse matrix, or frame
            The out-edges of vertex i are the entries ``offsets[i]:offsets[i + 1]`` of `indices`. Alternatively, a
            square matrix of `scipy.sparse` or `cupyx.scipy.sparse`, in CSR, CSC or COO format; or a frame with a row
            and a column per vertex, which its index, or its first column, names as the columns: 0 is no edge. Sparse
            columns of pandas are read without their zeros.
        indices : array of m integers
            Targets.
        weights : array of m numbers, optional
            Finite and non-negative. Default: every edge counts 1.
        vertices : list, array, Series, index or frame, optional
            Ids of the n rows, all distinct; a frame if a vertex has several columns. The graph then orders integer ids
            ascending, and others as the rows. Default: 0..n-1. With `bipartite`, a tuple of two: the ids of the rows
            and of the columns.
        bipartite : bool, default False
            If True, the rows of a sparse matrix or of a frame, of any shape, are other vertices than its columns: the
            sides "src" and "dst", as of a frame with columns of these names.
        directed : bool, default True
            If False, with `bipartite`, each entry is an edge in both directions.

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
        how = EdgeOptions(bipartite=bipartite, directed=directed)
        if not how.directed and not how.bipartite:
            raise InvalidOptionError("directed=False needs bipartite=True: otherwise add the transpose to the matrix.")
        return cls._of(LocalGraph.from_csr(offsets, indices, weights, vertices, how))

    @classmethod
    @explain_unknown_arguments
    def from_file(
        cls,
        path: Paths,
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
        by, time, half_life, window, now : optional
            As for `pagerank`. Times in text are numbers or of ISO 8601.
        directed : bool, default True
            If False, each row is an edge in both directions, as in a file that says so: a symmetric Matrix Market file,
            or text with a comment ``% sym`` (KONECT) or ``# Undirected graph`` (SNAP) above its edges.
        bipartite, vertices, duplicates : optional
            As for `pagerank`. Text with a comment ``% bip`` (KONECT) is bipartite and undirected.
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
        rows = directed, vertices, duplicates, missing
        how = EdgeOptions(source, destination, weight, *rows, time, half_life, window, now, by, bipartite)
        if isinstance(path, os.PathLike):
            path = text_of(path)
        if is_saved(path):
            refuse(given, f"says how to read a file of edges, not {SAVED}")
            graph = load_saved(path, how, lasting=True)
        else:
            with reading_to("host") if packed else nullcontext():
                graph = read_file(path, how, lasting=True, packed=packed, **given)
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
        return cls._of(of_nodes("read_networkx", graph, weight))

    @classmethod
    @explain_unknown_arguments
    def from_igraph(cls, graph: object, weights: str | None = "weight", *, ids: str | None = "name") -> Self:
        """Build a graph from an `igraph.Graph`, with all vertices, and undirected edges in both directions.

        Rankings have pandas frames: integer ids ascend, others are in the order of the graph.

        Parameters
        ----------
        graph : igraph.Graph
            Directed or undirected graph.
        weights : str, optional
            Edge attribute of weights. With None, or if the edges lack the default attribute, every edge counts 1.
        ids : str, optional
            Vertex attribute of ids, all distinct. With None, or if the vertices lack the default attribute or it is not
            distinct, the ids are igraph's indices 0..n-1.

        Returns
        -------
        Graph
            The prepared graph.
        """
        return cls._of(of_nodes("read_igraph", graph, weights, ids))

    @classmethod
    @explain_unknown_arguments
    def from_rustworkx(
        cls,
        graph: object,
        weight_fn: Callable[[Any], float] | None = None,
        *,
        ids: Callable[[Any], Hashable] | None = None,
    ) -> Self:
        """Build a graph from a `PyGraph` or `PyDiGraph` of rustworkx; undirected edges count in both directions.

        Rankings have pandas frames: integer ids ascend, others are in the order of the graph.

        Parameters
        ----------
        graph : rustworkx.PyGraph or rustworkx.PyDiGraph
            Graph, with or without parallel edges.
        weight_fn : callable, optional
            Return the weight of an edge from its data: `float` if these are numbers. Default: every edge counts 1.
        ids : callable, optional
            Return the id of a node from its data, distinct for all nodes: `str` if these are names. Default:
            rustworkx's node indices.

        Returns
        -------
        Graph
            The prepared graph.
        """
        return cls._of(of_nodes("read_rustworkx", graph, weight_fn, ids))

    @classmethod
    @explain_unknown_arguments
    def from_networkit(cls, graph: object) -> Self:
        """Build a graph from a `networkit.Graph`, with its weights, and undirected edges in both directions.

        Rankings have pandas frames of NetworKit's node ids, in ascending order.

        Parameters
        ----------
        graph : networkit.Graph
            Graph, with or without weights and parallel edges.

        Returns
        -------
        Graph
            The prepared graph.
        """
        return cls._of(of_nodes("read_networkit", graph))
