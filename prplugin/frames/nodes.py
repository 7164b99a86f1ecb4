"""Readers of graphs of NetworkX, igraph, rustworkx, NetworKit and cuGraph, which are not imported before their use.

Ranks are in a pandas frame, and those of cuGraph graphs in a cuDF frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prplugin.cpu.sorting import offsets_of, rows_of
from prplugin.errors import ColumnNotFoundError, InvalidEdgesError, InvalidOptionError, counted, full_name, listed
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


class NodeGraph(NamedTuple):
    """A graph of another library after it has been read."""

    adjacency: Edges
    vertices: Vertices  # in the order of the result: integers ascending, others as in the graph
    directed: bool
    label: str  # of the weights, for messages


def check_type(graph: object, library: str, constructor: str, *names: str) -> None:
    """Raise unless an object is a `Graph` of a library, or of one of its classes `names`, without importing it."""
    if not any(is_a(graph, library, name) for name in names or ("Graph",)):
        raise InvalidEdgesError(f"{constructor} takes a graph of {library}, not {full_name(graph)}.")


def label_of(weight: object) -> str:
    """Return the name of an attribute of the edges, for messages."""
    return f"attribute {weight!r} of the edges"


def _node_graph(
    nodes: list[Hashable], sources: Integers, targets: Integers, values: list[Any] | None, label: str, *, directed: bool
) -> NodeGraph:
    """Return a graph of nodes and edges.

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
        found = with_ids(Edges(edges if directed else with_reverse_edges(edges)), nodes, ("integer",))
    except InvalidEdgesError as error:
        raise InvalidEdgesError(f"the nodes of the graph cannot be the ids of one column: {error}") from error
    return NodeGraph(*found, directed, label)


def _fault_of(ids: list[Hashable]) -> str | None:
    """Return why values cannot be the ids of the vertices, in their order, or None."""
    if missing := [
        at for at, vertex in enumerate(ids) if vertex is None or (isinstance(vertex, float) and math.isnan(vertex))
    ]:
        return f"has no value for {counted(len(missing), 'vertex', 'vertices')}: {listed(missing)} (counted from 0)"
    first: dict[Hashable, int] = {}
    try:
        repeated = {vertex: None for at, vertex in enumerate(ids) if first.setdefault(vertex, at) != at}
    except TypeError as error:  # a list, or a tuple of lists
        return f"has values that cannot be ids ({error})"
    if repeated:
        return f"has {counted(len(repeated), 'value')} more than once: {listed([repr(vertex) for vertex in repeated])}"
    return None


# --- NetworkX ---------------------------------------------------------------------------------------------------------


def read_networkx(graph: Any, weight: Hashable) -> NodeGraph:
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
    return _node_graph(nodes, sources, targets, weights, label_of(weight), directed=graph.is_directed())


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


def _positions(nodes: list[Hashable], rows: Sequence[Iterable[Hashable]], count: int) -> Integers:
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


# --- igraph, rustworkx, NetworKit and cuGraph -------------------------------------------------------------------------


def read_igraph(graph: Any, weights: str | None, ids: str | None = "name") -> NodeGraph:
    """Read an `igraph.Graph`; the attributes may be absent if they are the defaults."""
    check_type(graph, "igraph", "from_igraph")
    _check_attribute("weights", weights, "weight", graph.edge_attributes(), "edges")
    _check_attribute("ids", ids, "name", graph.vertex_attributes(), "vertices")
    nodes: list[Hashable] = list(range(graph.vcount()))
    if ids in graph.vertex_attributes():
        values = graph.vs[ids]
        if (fault := _fault_of(values)) is None:
            nodes = values
        elif ids != "name":
            raise InvalidOptionError(
                f"ids names attribute {ids!r} of the vertices, which {fault}. Each vertex needs its own id; with "
                "ids=None the ids are igraph's indices."
            )
    endpoints = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * graph.ecount())
    values = graph.es[weights] if weights in graph.edge_attributes() else None
    return _node_graph(nodes, endpoints[::2], endpoints[1::2], values, label_of(weights), directed=graph.is_directed())


def _check_attribute(argument: str, name: object, default: str, present: list[str], owners: str) -> None:
    """Raise unless an argument of `from_igraph` is None, its default, or an attribute that the graph has."""
    if not (name is None or isinstance(name, str)):
        raise InvalidOptionError(f"{argument} must be the name of an attribute of the {owners}, or None, not {name!r}.")
    if name not in (None, default, *present):
        attributes = listed([repr(known) for known in present], 20) or "none"
        without = "to count every edge 1" if owners == "edges" else "for igraph's indices"
        raise ColumnNotFoundError(
            f"the {owners} of the graph have no attribute {name!r}; they have: {attributes}. "
            f"Name one of those, or pass {argument}=None {without}."
        )


def read_rustworkx(graph: Any, weight_fn: object, ids: object = None) -> NodeGraph:
    """Read a `PyGraph` or `PyDiGraph` of rustworkx; functions of their data return weights and ids."""
    check_type(graph, "rustworkx", "from_rustworkx", "PyDiGraph", "PyGraph")
    for name, function, data in (("weight_fn", weight_fn, "an edge"), ("ids", ids, "a node")):
        if not (function is None or callable(function)):
            raise InvalidOptionError(f"{name} must be a function of the data of {data}, or None, not {function!r}.")
    indices = np.fromiter(graph.node_indices(), np.int64, graph.num_nodes())  # ascending, perhaps with gaps
    nodes: list[Hashable] = list(map(ids, graph.nodes())) if callable(ids) else indices.tolist()
    if callable(ids) and (fault := _fault_of(nodes)) is not None:
        raise InvalidOptionError(f"ids {fault}. Each node needs its own id; with ids=None the ids are its indices.")
    rows = graph.weighted_edge_list()
    endpoints = np.fromiter(chain.from_iterable(row[:2] for row in rows), np.int64, 2 * len(rows))
    values = [weight_fn(row[2]) for row in rows] if callable(weight_fn) else None
    sources, targets = np.searchsorted(indices, endpoints[::2]), np.searchsorted(indices, endpoints[1::2])
    return _node_graph(nodes, sources, targets, values, "weight_fn", directed=is_a(graph, "rustworkx", "PyDiGraph"))


def read_networkit(graph: Any) -> NodeGraph:
    """Read a `networkit.Graph`, with its weights if it has some."""
    check_type(graph, "networkit", "from_networkit")
    nodes = np.fromiter(graph.iterNodes(), np.int64, graph.numberOfNodes())  # ascending, perhaps with gaps
    endpoints = np.fromiter(chain.from_iterable(graph.iterEdges()), np.int64, 2 * graph.numberOfEdges())
    values = [weight for _, _, weight in graph.iterEdgesWeights()] if graph.isWeighted() else None
    sources, targets = np.searchsorted(nodes, endpoints[::2]), np.searchsorted(nodes, endpoints[1::2])
    return _node_graph(nodes.tolist(), sources, targets, values, "weight", directed=graph.isDirected())


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
