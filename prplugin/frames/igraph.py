"""Reader of igraph graphs."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain
from typing import Any

import numpy as np

from prplugin.errors import ColumnNotFoundError, InvalidOptionError, listed
from prplugin.frames.nodes import NodeGraph, check_type

__all__ = ["read"]

DEFAULT = "weight"
"""Edge attribute that is used as weight by default, if the graph has it."""


def read(graph: Any, weights: str | None) -> NodeGraph:
    """Read an `igraph.Graph`; the edges may lack the attribute `weights` if it is the default.

    Vertex ids are the names if these are hashable, complete and distinct, else 0..n-1.
    """
    check_type(graph, "igraph", "from_igraph")
    if not (weights is None or isinstance(weights, str)):
        raise InvalidOptionError(f"weights must be the name of an attribute of the edges, or None, not {weights!r}.")
    present = graph.edge_attributes()
    if weights not in (None, DEFAULT, *present):
        attributes = listed([repr(name) for name in present], 20) or "none"
        raise ColumnNotFoundError(
            f"the edges of the graph have no attribute {weights!r}; they have: {attributes}. "
            "Name one of those, or pass weights=None to count every edge 1."
        )
    names: list[Any] = graph.vs["name"] if "name" in graph.vertex_attributes() else []
    ids = all(name is not None and isinstance(name, Hashable) for name in names) and len(set(names)) == len(names)
    endpoints = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * graph.ecount())
    return NodeGraph(
        (ids and names) or list(range(graph.vcount())),
        endpoints[::2],
        endpoints[1::2],
        graph.es[weights] if weights in present else None,
        f"attribute {weights!r} of the edges",
        graph.is_directed(),
    )
