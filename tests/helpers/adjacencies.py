"""The adjacency of a prepared graph, which tests of methods and kernels rank or sum directly."""

from __future__ import annotations

import prplugin
from prplugin.graph.edges import Edges

__all__ = ["adjacency_of"]


def adjacency_of(graph: prplugin.Graph) -> Edges:
    """Return what a graph holds of its edges; no other test looks for it inside."""
    return graph._graph.adjacency
