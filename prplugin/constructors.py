"""Graphs made of other things than frames: the constructors of `prplugin.Graph`."""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any, Self

from prplugin.local import LocalGraph
from prplugin.options import Duplicates, EdgeOptions
from prplugin.prepared import PreparedGraph, read_file

__all__ = ["Constructors"]


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
        """Make a graph on the vertices 0..n-1 from compressed rows or a sparse matrix, whose rows are sources.

        Parallel entries are parallel edges; explicit zeros are edges of weight 0. Rankings have pandas frames. CuPy
        arrays stay on the GPU, and rankings have cuDF frames where cuDF is loaded.

        Parameters
        ----------
        offsets : array of n + 1 integers, or sparse matrix
            The out-edges of vertex i are the entries ``offsets[i]:offsets[i + 1]`` of `indices`. Or a square matrix of
            `scipy.sparse` or `cupyx.scipy.sparse`, in CSR, CSC or COO format.
        indices : array of m integers
            Targets.
        weights : array of m numbers, optional
            Finite and non-negative. Default: every edge counts 1.

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
        """Make a graph from a file: Parquet, CSV, TSV, SNAP text or Matrix Market, with .gz or .zst after it or not.

        Parameters
        ----------
        source, destination, weight, directed, duplicates
            As for `pagerank`. Text without a header has the columns source, destination and weight. Values of a Matrix
            Market file are weights, and a symmetric one is undirected.
        **text
            `format` ("parquet", "csv", "tsv", "snap" or "mtx"; default: by the end of the name), `header` (whether the
            first line names the columns; default: unless it is all numbers) and `ids` ("auto", "integer", "string").

        Raises
        ------
        InvalidEdgesError, ColumnNotFoundError
            If the file cannot be read as edges: the message names the file, and of text the line.
        """
        how = EdgeOptions(source, destination, weight, directed, None, duplicates)
        return cls._of(read_file(path, how, lasting=True, **text))

    @classmethod
    def from_cugraph(cls, graph: Any) -> Self:
        """Make a graph from a `cugraph.Graph` or `cugraph.MultiGraph` on one GPU, with the edges that cuGraph ranks by.

        Edges of an undirected graph count both ways; of repeated pairs a `cugraph.Graph` keeps one. Rankings have cuDF
        frames; ids that are not integers are in the order of the sorted edges.
        """
        from prplugin.frames.cugraph import edges_of

        return cls(**edges_of(graph))

    @classmethod
    def from_networkx(cls, graph: Any, weight: Hashable = "weight") -> Self:
        """Make a graph from a NetworkX graph or view: all nodes, each edge of a multigraph, undirected edges both ways.

        Edges without the attribute `weight` count 1, as in NetworkX; with None, every edge does. Rankings have pandas
        frames: nodes that are integers ascend, others are in the order of the graph. Nodes of mixed kinds, which no
        column holds, raise InvalidEdgesError (``nx.pagerank(graph, backend="prplugin")`` takes them).
        """
        return cls._of(LocalGraph.from_networkx(graph, weight))

    @classmethod
    def from_igraph(cls, graph: Any, weights: str | None = "weight") -> Self:
        """Make a graph from an `igraph.Graph`: all vertices, parallel edges, undirected edges both ways.

        With None, or the default where the edges have no such attribute, every edge counts 1. Rankings have pandas
        frames. The ids are the vertex attribute "name" if all have different ones, else igraph's own, 0..n-1.
        """
        return cls._of(LocalGraph.from_igraph(graph, weights))
