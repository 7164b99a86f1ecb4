"""Graphs of cuGraph: the edges that it ranks by, as a cuDF frame with the ids that the graph was made with."""

from __future__ import annotations

from typing import Any

from prplugin.errors import InvalidEdgesError
from prplugin.frames.base import full_name, is_a

__all__ = ["edges_of"]


def edges_of(graph: Any) -> dict[str, Any]:
    """Return the arguments of `prplugin.Graph` for a graph of cuGraph.

    `view_edge_list` has the rows that the graph was made of: pairs that a `cugraph.Graph` has dropped, and of an
    undirected graph one way. `decompress_to_edgelist` has what is in the graph.

    Raises
    ------
    InvalidEdgesError
        If it is no graph of cuGraph, or spread over several GPUs, or has no list of edges.
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
    if graph.is_directed() and not _among(edges, graph.edgelist.edgelist_df):
        # Of a graph that is stored transposed, as cugraph.pagerank stores it, cuGraph 26.10 gives edges reversed.
        edges = edges.rename(columns={"src": "dst", "dst": "src"})
    if graph.is_renumbered():
        for end in ("src", "dst"):
            edges = graph.renumber_map.unrenumber(edges, end)
        # The ids were joined to cuGraph's numbers, which leaves the rows in any order.
        edges = edges.sort_values(list(edges.columns), ignore_index=True)
    source: Any = "src"
    destination: Any = "dst"
    if source not in edges.columns:  # a vertex of several columns: 0_src, 1_src, ..., 0_dst, 1_dst, ...
        source = list(graph.source_columns)
        destination = [f"{part}_dst" for part in range(len(source))]
        edges = edges.rename(columns={f"{part}_src": name for part, name in enumerate(source)})
        vertices = vertices.rename(columns={f"{part}_vertex": name for part, name in enumerate(source)})
    weight = "weight" if "weight" in edges.columns else None
    return {"edges": edges, "source": source, "destination": destination, "weight": weight, "vertices": vertices}


def _among(edges: Any, given: Any) -> bool:
    """Return whether all edges of a graph are among those that it was made of, both by cuGraph's numbers."""
    columns = ["src", "dst"]
    if "weight" in edges.columns:
        columns.append("weight")
        given = given.rename(columns={"weights": "weight"}).astype({"weight": edges["weight"].dtype})
    distinct = edges[columns].drop_duplicates()
    return len(distinct.merge(given[columns].drop_duplicates(), on=columns)) == len(distinct)
