"""Reader of NetworkX graphs: nodes and edges as arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import chain, compress
from typing import Any

import networkx as nx
import numpy as np

from prplugin.cpu.sorting import offsets_of, rows_of
from prplugin.errors import InvalidOptionError
from prplugin.frames.nodes import NodeGraph
from prplugin.types.edges import Integers, index_dtype

SPARSE = 16
"""Ratio of the range of integer nodes to their number up to which a table maps nodes to positions."""


def read(graph: nx.Graph, weight: Hashable) -> NodeGraph:
    """Read a NetworkX graph for `prplugin.Graph`, with the edges in the order of ``graph.edges``."""
    if callable(weight) or not isinstance(weight, Hashable):
        raise InvalidOptionError(f"weight must be the name of an attribute of the edges, or None, not {weight!r}.")
    nodes, offsets, targets, edges = compressed(graph)
    sources = rows_of(offsets)
    weights = None
    if weight is not None and any(edges()):
        weights = [attributes.get(weight, 1) for attributes in edges()]
    if not graph.is_directed():
        upper_triangle = sources <= targets
        sources, targets = sources[upper_triangle], targets[upper_triangle]
        weights = None if weights is None else list(compress(weights, upper_triangle))
    return NodeGraph(nodes, sources, targets, weights, f"attribute {weight!r} of the edges", graph.is_directed())


def compressed(graph: nx.Graph) -> tuple[list[Hashable], Integers, Integers, Callable[[], Iterable[Any]]]:
    """Return nodes, CSR offsets and indices of the edges, and a function that iterates over edge attributes."""
    if hasattr(graph, "_graph"):
        # A change of the graph does not clear the cache of a view, so the cache is disabled for views.
        graph.__networkx_cache__ = None
    if not isinstance(graph._adj, dict):
        graph = _plain(graph)
    adjacency, nodes = graph._adj, list(graph)
    rows = [adjacency[node] for node in nodes]
    offsets = offsets_of(np.fromiter(map(len, rows), np.int64, len(rows)))
    indices = _positions(nodes, rows, int(offsets[-1]))
    entries = rows
    if graph.is_multigraph():
        # In a multigraph, each entry of a row is a dict of parallel edges.
        entries = list(chain.from_iterable(row.values() for row in rows))
        counts = np.fromiter(map(len, entries), np.int64, len(entries))
        offsets, indices = offsets_of(counts)[offsets], np.repeat(indices, counts)
    return nodes, offsets, indices, lambda: chain.from_iterable(entry.values() for entry in entries)


def _plain(view: nx.Graph) -> nx.Graph:
    """Copy a view to a plain graph by iteration over its nodes and edges, as NetworkX's PageRank does.

    The rows of a view cannot be used directly. The length of a filtered row counts entries that iteration skips. The
    rows of an undirected view may be asymmetric, if it is a view of a directed graph, or if its filter depends on the
    order of its arguments.
    """
    graph = empty(view)
    graph.add_nodes_from(view)
    graph.add_edges_from(view.edges(data=True))
    return graph


def empty(like: Any) -> nx.Graph:
    """Return an empty `Graph`, `DiGraph`, `MultiGraph` or `MultiDiGraph`, of the kind of `like`."""
    kinds = ((nx.Graph, nx.MultiGraph), (nx.DiGraph, nx.MultiDiGraph))
    return kinds[like.is_directed()][like.is_multigraph()]()


def _positions(nodes: list[Hashable], rows: list[Any], count: int) -> Integers:
    """Return the positions in `nodes` of the `count` neighbours in all rows."""
    neighbours = chain.from_iterable(rows)
    dtype = index_dtype(len(nodes))
    known = np.array(nodes) if nodes and all(type(node) is int for node in nodes) else None
    if known is not None and known.dtype.kind == "i":  # integers beyond 64 bits give an object array
        low, extent = int(known.min()), int(known.max()) - int(known.min()) + 1
        if extent <= SPARSE * len(nodes):
            table = np.empty(extent, dtype)
            table[known - low] = np.arange(len(nodes), dtype=dtype)
            return table[np.fromiter(neighbours, np.int64, count) - low]
    positions = dict(zip(nodes, range(len(nodes)), strict=True))
    return np.array(list(map(positions.__getitem__, neighbours)), dtype)
