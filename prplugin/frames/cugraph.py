"""Reader of cuGraph graphs: their edges as a cuDF frame, with the original vertex ids."""

from __future__ import annotations

from typing import Any

from prplugin.errors import InvalidEdgesError
from prplugin.frames.base import full_name, is_a

__all__ = ["edges_of"]


def edges_of(graph: Any) -> dict[str, Any]:
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


def _contains_edges(given: Any, edges: Any) -> bool:
    """Return whether all edges are in the rows from which the graph was created, both with renumbered vertices."""
    columns = ["src", "dst"]
    if "weight" in edges.columns:
        columns.append("weight")
        given = given.rename(columns={"weights": "weight"}).astype({"weight": edges["weight"].dtype})
    distinct = edges[columns].drop_duplicates()
    return len(distinct.merge(given[columns].drop_duplicates(), on=columns)) == len(distinct)
