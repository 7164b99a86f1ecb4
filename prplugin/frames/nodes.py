"""Graphs of graph libraries: nodes, and edges by position; their ranks come in a frame of pandas."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from prplugin.errors import InvalidEdgesError
from prplugin.frames import pandas
from prplugin.frames.base import full_name, is_a
from prplugin.frames.columns import resolve
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.dedup import both_ways
from prplugin.types.edges import Edges, Integers, index_dtype

__all__ = ["NodeGraph", "adjacency", "check_type"]


@dataclass(frozen=True)
class NodeGraph:
    """A graph of a graph library.

    Attributes
    ----------
    nodes : list
        Each once.
    sources, targets : arrays
        Positions in `nodes`, per edge; of an undirected graph each edge one way.
    weights : list, optional
        Not checked yet. None: every edge counts 1.
    label : str
        Name of the weights, for messages.
    """

    nodes: list[Hashable]
    sources: Integers
    targets: Integers
    weights: list[Any] | None
    label: str
    directed: bool


def check_type(graph: object, library: str, constructor: str) -> None:
    """Raise unless this is a `Graph` of a library, which is loaded if it is."""
    if not is_a(graph, library, "Graph"):
        raise InvalidEdgesError(f"{constructor} takes a graph of {library}, not {full_name(graph)}.")


def adjacency(graph: NodeGraph) -> tuple[Adjacency, pandas.Vertices]:
    """Return the edges with the nodes in the order of the result, ascending for integers; check the weights.

    Raises
    ------
    InvalidEdgesError
        For nodes of mixed kinds, and others that no column of ids holds; for weights that are not finite numbers of at
        least 0.
    """
    import pandas as pd  # for the ids, and the frame of the result

    from prplugin.frames._pandas_numbers import numbers  # imports pandas

    edgeless = pd.DataFrame({"src": [], "dst": []})
    try:
        _, vertices = pandas.read(edgeless, resolve(list(edgeless.columns), None, None, None), graph.nodes)
    except InvalidEdgesError as error:
        raise InvalidEdgesError(f"the nodes of the graph cannot be the ids of one column: {error}") from error
    weights = None
    if graph.weights is not None:
        given = np.array(graph.weights) if {type(weight) for weight in graph.weights} <= {bool, int, float} else None
        if given is None or given.dtype.kind not in "biuf":
            given = np.empty(len(graph.weights), object)
            given[:] = graph.weights
        weights = numbers(pd.Series(given), graph.label, "edge", InvalidEdgesError)
        if (weights == 1).all():
            weights = None
    n = len(graph.nodes)
    places = np.arange(n, dtype=index_dtype(n))
    if vertices.kinds == ["integer"]:
        places = vertices.located(vertices.id_columns(graph.nodes, "vertices"), "vertices").astype(places.dtype)
    edges = Edges(places[graph.sources], places[graph.targets], weights, n)
    return Adjacency(edges if graph.directed else both_ways(edges)), vertices
