"""Constructors of `prplugin.Graph` from files, arrays and graphs of other libraries."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any, Self

from prplugin.frames.nodes import read_cugraph, read_igraph, read_networkx
from prplugin.local import LocalGraph
from prplugin.options import Duplicates, EdgeOptions
from prplugin.prepared import PreparedGraph, read_file


class Constructors:
    """The constructors of `prplugin.Graph` that take files, arrays and graphs of other libraries."""

    _graph: PreparedGraph

    @classmethod
    def _of(cls, prepared: PreparedGraph) -> Self:
        graph = cls.__new__(cls)
        graph._graph = prepared
        return graph

    @classmethod
    def from_csr(cls, offsets: Any, indices: Any = None, weights: Any = None) -> Self:
        """Build a graph on the vertices 0..n-1 from CSR arrays or a sparse matrix, whose rows are sources.

        Parallel entries are parallel edges; explicit zeros are edges of weight 0. Rankings have pandas frames. CuPy
        arrays stay on the GPU, and their rankings have cuDF frames if cuDF is loaded.

        Parameters
        ----------
        offsets : array of n + 1 integers, or sparse matrix
            The out-edges of vertex i are the entries ``offsets[i]:offsets[i + 1]`` of `indices`. Alternatively, a
            square matrix of `scipy.sparse` or `cupyx.scipy.sparse`, in CSR, CSC or COO format.
        indices : array of m integers
            Targets.
        weights : array of m numbers, optional
            Finite and non-negative. Default: every edge counts 1.

        Returns
        -------
        Graph
            The prepared graph.

        Examples
        --------
        >>> import prplugin
        >>> graph = prplugin.Graph.from_csr([0, 1, 2, 2], [1, 0])
        >>> graph.rank(alpha=0.5).frame["vertex"].tolist()
        [0, 1, 2]
        """
        return cls._of(LocalGraph.from_csr(offsets, indices, weights))

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        source: Hashable | list[Hashable] = None,
        destination: Hashable | list[Hashable] = None,
        weight: Hashable = None,
        *,
        directed: bool = True,
        duplicates: Duplicates = "sum",
        **text: Any,
    ) -> Self:
        """Build a graph from a file: Parquet, CSV, TSV, SNAP text or Matrix Market, also compressed as .gz or .zst.

        Parameters
        ----------
        path : str or path
            File of edges.
        source, destination, weight : column label, optional
            As for `pagerank`. Text without a header has the columns source, destination and weight. Values of a Matrix
            Market file are weights.
        directed : bool, default True
            If False, each row is an edge in both directions, as in a symmetric Matrix Market file.
        duplicates : {"sum", "first", "last", "error"}
            As for `pagerank`.
        **text
            `format` ("parquet", "csv", "tsv", "snap" or "mtx"; default: by the suffix), `header` (whether the first
            line names the columns; default: unless it is all numbers) and `ids` ("auto", "integer", "string").

        Returns
        -------
        Graph
            The prepared graph.

        Raises
        ------
        InvalidEdgesError, ColumnNotFoundError
            If the file cannot be read as edges. The message names the file and, in text, the line.
        """
        how = EdgeOptions(source, destination, weight, directed, None, duplicates)
        return cls._of(read_file(path, how, lasting=True, **text))

    @classmethod
    def from_cugraph(cls, graph: Any) -> Self:
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
        return cls(**read_cugraph(graph))

    @classmethod
    def from_networkx(cls, graph: Any, weight: Hashable = "weight") -> Self:
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
        return cls._of(LocalGraph.from_nodes(read_networkx, graph, weight))

    @classmethod
    def from_igraph(cls, graph: Any, weights: str | None = "weight") -> Self:
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
        return cls._of(LocalGraph.from_nodes(read_igraph, graph, weights))
