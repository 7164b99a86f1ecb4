"""Readers of the graphs of NetworkX, igraph and cuGraph, which are not imported before they are used.

Ranks are in a pandas frame, and those of cuGraph graphs in a cuDF frame.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.cpu.sorting import offsets_of, rows_of
from prplugin.errors import ColumnNotFoundError, InvalidEdgesError, InvalidOptionError, full_name, listed
from prplugin.frames.columns import Frame
from prplugin.frames.matrices import with_ids
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.graph.dedup import with_reverse_edges
from prplugin.graph.edges import Edges
from prplugin.types.arrays import is_a
from prplugin.types.edges import Coo, Integers, index_dtype

if TYPE_CHECKING:
    import networkx as nx

SPARSE = 16
"""Ratio of the range of integer nodes of NetworkX to their number up to which a table maps nodes to positions."""


def check_type(graph: object, library: str, constructor: str) -> None:
    """Raise unless an object is a `Graph` of a library, without importing the library."""
    if not is_a(graph, library, "Graph"):
        raise InvalidEdgesError(f"{constructor} takes a graph of {library}, not {full_name(graph)}.")


def label_of(weight: object) -> str:
    """Return the name of an attribute of the edges, for messages."""
    return f"attribute {weight!r} of the edges"


def _adjacency(
    nodes: list[Hashable], sources: Integers, targets: Integers, values: list[Any] | None, label: str, *, directed: bool
) -> tuple[Edges, Vertices]:
    """Return a graph, and its vertices in the order of the result: integers ascending, others as in `nodes`.

    `sources` and `targets` are positions in `nodes`, of undirected edges in one direction; `values` are their weights.
    """
    import pandas as pd  # required for ids and results

    weights = None
    if values is not None:
        builtin = {type(weight) for weight in values} <= {bool, int, float}
        column = pd.Series(np.array(values) if builtin else values, dtype=None if builtin else object)
        weights = ids_in("host").numbers(column, label, "edge", InvalidEdgesError)
        if (weights == 1).all():
            weights = None
    n = len(nodes)
    dtype = index_dtype(n)
    edges = Coo(sources.astype(dtype, copy=False), targets.astype(dtype, copy=False), weights, n)
    try:
        return with_ids(Edges(edges if directed else with_reverse_edges(edges)), nodes, ("integer",))
    except InvalidEdgesError as error:
        raise InvalidEdgesError(f"the nodes of the graph cannot be the ids of one column: {error}") from error


# --- NetworkX ---------------------------------------------------------------------------------------------------------


def read_networkx(graph: Any, weight: Hashable) -> tuple[Edges, Vertices]:
    """Read a `networkx.Graph`, with the edges in the order of ``graph.edges``."""
    check_type(graph, "networkx", "from_networkx")
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
    return _adjacency(nodes, sources, targets, weights, label_of(weight), directed=graph.is_directed())


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


def empty(like: nx.Graph) -> nx.Graph:
    """Return an empty `Graph`, `DiGraph`, `MultiGraph` or `MultiDiGraph`, of the kind of `like`."""
    import networkx as nx

    kinds = ((nx.Graph, nx.MultiGraph), (nx.DiGraph, nx.MultiDiGraph))
    return kinds[like.is_directed()][like.is_multigraph()]()


def _positions(nodes: list[Hashable], rows: list[Any], count: int) -> Integers:
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


# --- igraph and cuGraph -----------------------------------------------------------------------------------------------


def read_igraph(graph: Any, weights: str | None) -> tuple[Edges, Vertices]:
    """Read an `igraph.Graph`; the attribute `weights` may be absent if it is the default.

    Vertex ids are the names if these are hashable, complete and distinct, else 0..n-1.
    """
    check_type(graph, "igraph", "from_igraph")
    if not (weights is None or isinstance(weights, str)):
        raise InvalidOptionError(f"weights must be the name of an attribute of the edges, or None, not {weights!r}.")
    present = graph.edge_attributes()
    if weights not in (None, "weight", *present):
        attributes = listed([repr(name) for name in present], 20) or "none"
        raise ColumnNotFoundError(
            f"the edges of the graph have no attribute {weights!r}; they have: {attributes}. "
            "Name one of those, or pass weights=None to count every edge 1."
        )
    names: list[Any] = graph.vs["name"] if "name" in graph.vertex_attributes() else []
    hashable = all(name is not None and isinstance(name, Hashable) for name in names)
    use_names = hashable and len(set(names)) == len(names)
    endpoints = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * graph.ecount())
    nodes = (use_names and names) or list(range(graph.vcount()))
    values, label = graph.es[weights] if weights in present else None, label_of(weights)
    return _adjacency(nodes, endpoints[::2], endpoints[1::2], values, label, directed=graph.is_directed())


def read_cugraph(graph: Any) -> dict[str, Any]:
    """Return the arguments of `prplugin.Graph` for a graph of cuGraph.

    The edges come from `decompress_to_edgelist`, which returns the edges of the graph. `view_edge_list` returns the
    rows from which the graph was made: they include pairs that `cugraph.Graph` drops, and only one direction of the
    edges of an undirected graph.
    """
    if not is_a(graph, "cugraph", "Graph"):
        raise InvalidEdgesError(f"from_cugraph takes a cugraph.Graph or cugraph.MultiGraph, not {full_name(graph)}.")
    if graph.is_multi_gpu():
        raise InvalidEdgesError("the graph is spread over several GPUs: from_cugraph reads graphs on one.")
    if graph.edgelist is None:
        raise InvalidEdgesError(
            "the graph has no list of edges: it was made of an adjacency list, or its edges were deleted. "
            "Graph.from_csr takes offsets, indices and weights."
        )
    edges, vertices = graph.decompress_to_edgelist(return_unrenumbered_edgelist=False), graph.nodes()
    if graph.is_directed() and not _contains_edges(graph.edgelist.edgelist_df, edges):
        # cuGraph 26.10 returns reversed edges for graphs stored transposed, as cugraph.pagerank stores them.
        edges = edges.rename(columns={"src": "dst", "dst": "src"})
    if graph.is_renumbered():
        for end in ("src", "dst"):
            edges = graph.renumber_map.unrenumber(edges, end)
        # `unrenumber` is a join, which returns the rows in arbitrary order.
        edges = edges.sort_values(list(edges.columns), ignore_index=True)
    source: Any = "src"
    destination: Any = "dst"
    if source not in edges.columns:  # vertices of several columns: 0_src, 1_src, ..., 0_dst, 1_dst, ...
        source = list(graph.source_columns)
        destination = [f"{part}_dst" for part in range(len(source))]
        edges = edges.rename(columns={f"{part}_src": name for part, name in enumerate(source)})
        vertices = vertices.rename(columns={f"{part}_vertex": name for part, name in enumerate(source)})
    weight = "weight" if "weight" in edges.columns else None
    return {"edges": edges, "source": source, "destination": destination, "weight": weight, "vertices": vertices}


def _contains_edges(given: Frame, edges: Frame) -> bool:
    """Return whether all edges are in the rows from which the graph was created, both with renumbered vertices."""
    columns = ["src", "dst"]
    if "weight" in edges.columns:
        columns.append("weight")
        given = given.rename(columns={"weights": "weight"}).astype({"weight": edges["weight"].dtype})
    distinct = edges[columns].drop_duplicates()
    return len(distinct.merge(given[columns].drop_duplicates(), on=columns)) == len(distinct)
