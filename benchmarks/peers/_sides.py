"""Ours and the peers, in one shape."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

import prplugin

__all__ = ["PEERS", "Ranks", "Side", "ours", "peer"]

PEERS = {
    "SciPy loop": "scipy_by_hand",
    "SciPy loop, tuned": "scipy_tuned",
    "python-graphblas": "graphblas",
    "NetworKit": "networkit",
    "igraph": "igraph",
    "NetworkX": "networkx",
    "scikit-network": "scikit_network",
    "graph_mate": "graph_mate",
}
"""The module of each."""

Ranks: TypeAlias = tuple[np.ndarray, int | None]
"""One a vertex, and the passes over the edges that they took, where that is known."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """What ranks frames.

    Attributes
    ----------
    name : str
    threads : int, optional
        How many it uses; None: all that there are.
    frame_to_frame : function of edges, alpha, tol
        From a frame to a frame with the columns `vertex` and `pagerank`.
    build : function of edges
        To ids and a graph.
    rank : function of a graph, alpha, tol
        To ranks in the order of the ids.
    tolerance : bool
        Whether `rank` heeds its tol.
    most_edges : int, optional
        Beyond which it is not asked.
    """

    name: str
    threads: int | None
    frame_to_frame: Callable[[pd.DataFrame, float, float], pd.DataFrame]
    build: Callable[[pd.DataFrame], tuple[Any, Any]]
    rank: Callable[[Any, float, float], Ranks]
    tolerance: bool = True
    most_edges: int | None = None


def peer(name: str) -> Side:
    """Load a peer.

    Raises
    ------
    ModuleNotFoundError
        If its library is not installed.
    """
    module = importlib.import_module(f"benchmarks.peers.{PEERS[name]}")

    def frame_to_frame(edges: pd.DataFrame, alpha: float, tol: float) -> pd.DataFrame:
        ids, graph = module.build(edges)
        ranks, _ = module.rank(graph, alpha, tol)
        return pd.DataFrame({"vertex": ids, "pagerank": ranks})

    return Side(
        name=name,
        threads=module.THREADS,
        frame_to_frame=frame_to_frame,
        build=module.build,
        rank=module.rank,
        tolerance=getattr(module, "TOLERANCE", True),
        most_edges=getattr(module, "MOST_EDGES", None),
    )


def ours(**options: Any) -> Side:
    """Return prplugin, with options of its method."""

    def frame_to_frame(edges: pd.DataFrame, alpha: float, tol: float) -> pd.DataFrame:
        return prplugin.pagerank(edges, alpha=alpha, tol=tol, **options)

    def build(edges: pd.DataFrame) -> tuple[Any, Any]:
        graph = prplugin.Graph(edges)
        return graph.rank(**options).frame["vertex"], graph

    def rank(graph: Any, alpha: float, tol: float) -> Ranks:
        ranking = graph.rank(alpha=alpha, tol=tol, **options)
        return ranking.ranks, ranking.iterations

    return Side(name="ours", threads=options.get("threads"), frame_to_frame=frame_to_frame, build=build, rank=rank)
