"""prplugin and the compared libraries, behind one interface."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

import prplugin

PEERS = {
    "SciPy loop": "scipy_loop",
    "SciPy loop, tuned": "scipy_loop_tuned",
    "python-graphblas": "graphblas",
    "NetworKit": "networkit",
    "igraph": "igraph",
    "NetworkX": "networkx",
    "scikit-network": "scikit_network",
    "graph_mate": "graph_mate",
}
"""Module of each library."""

Ranks: TypeAlias = tuple[np.ndarray, int | None]
"""Ranks by vertex, and the number of passes over the edges, if known."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """Library that ranks frames.

    Attributes
    ----------
    name : str
    threads : int, optional
        Number of threads it uses; None: all.
    frame_to_frame : function of edges, alpha, tol
        Returns a frame with the columns `vertex` and `pagerank`.
    build : function of edges
        Returns the ids and a graph.
    rank : function of a graph, alpha, tol
        Returns the ranks in the order of the ids.
    tolerance : bool
        Whether `rank` uses its tolerance.
    most_edges : int, optional
        Number of edges above which it is not run.
    """

    name: str
    threads: int | None
    frame_to_frame: Callable[[pd.DataFrame, float, float], pd.DataFrame]
    build: Callable[[pd.DataFrame], tuple[Any, Any]]
    rank: Callable[[Any, float, float], Ranks]
    tolerance: bool = True
    most_edges: int | None = None


def peer(name: str) -> Library:
    """Load a library by name.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed.
    """
    module = importlib.import_module(f"benchmarks.peers.{PEERS[name]}")

    def frame_to_frame(edges: pd.DataFrame, alpha: float, tol: float) -> pd.DataFrame:
        ids, graph = module.build(edges)
        ranks, _ = module.rank(graph, alpha, tol)
        return pd.DataFrame({"vertex": ids, "pagerank": ranks})

    return Library(
        name=name,
        threads=module.THREADS,
        frame_to_frame=frame_to_frame,
        build=module.build,
        rank=module.rank,
        tolerance=getattr(module, "TOLERANCE", True),
        most_edges=getattr(module, "MOST_EDGES", None),
    )


def ours(**options: Any) -> Library:
    """Return prplugin, with options of a method."""

    def frame_to_frame(edges: pd.DataFrame, alpha: float, tol: float) -> pd.DataFrame:
        return prplugin.pagerank(edges, alpha=alpha, tol=tol, **options)

    def build(edges: pd.DataFrame) -> tuple[Any, Any]:
        graph = prplugin.Graph(edges)
        return graph.rank(**options).frame["vertex"], graph

    def rank(graph: Any, alpha: float, tol: float) -> Ranks:
        ranking = graph.rank(alpha=alpha, tol=tol, **options)
        return ranking.ranks, ranking.iterations

    return Library(name="ours", threads=options.get("threads"), frame_to_frame=frame_to_frame, build=build, rank=rank)
