"""Convergence and distribution of a ranking as a figure: `Ranking.plot`."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.errors import MissingLibraryError
from prplugin.types.edges import Floats
from prplugin.types.history import History

__all__ = ["plot"]

POINTS = 2000
"""Of the curve of ranks, at most: more are not to be told apart."""


def plot(ranks: Floats, history: History) -> Any:
    """Draw the error bound against passes over the edges, and the share of vertices of at least each rank.

    Raises
    ------
    MissingLibraryError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingLibraryError("plot() draws with matplotlib: pip install 'prplugin[plot]'") from error
    figure = Figure(figsize=(9, 3.6), layout="constrained")  # of no window: whoever wants one shows it
    convergence, distribution = figure.subplots(1, 2)
    _convergence(convergence, history)
    _distribution(distribution, ranks)
    return figure


def _convergence(axes: Any, history: History) -> None:
    passes = [count for count, bound in history.bounds if bound > 0]
    bounds = [bound for _, bound in history.bounds if bound > 0]
    axes.plot(passes, bounds, marker=".", markersize=4, linewidth=1)
    if bounds:
        axes.set_yscale("log")
    if history.tol > 0 and history.stop == "error":
        axes.axhline(history.tol, color="grey", linestyle="--", linewidth=1, label=f"tol {history.tol:g}")
        axes.legend(frameon=False)
    axes.set_xlabel("passes over the edges")
    axes.set_ylabel("proved error bound")
    axes.set_title(f"{history.considered[0].method}, alpha {history.alpha:g}")


def _distribution(axes: Any, ranks: Floats) -> None:
    """Draw the complementary cumulative distribution, at places that are even on its logarithmic scale."""
    falling = np.sort(ranks[ranks > 0])[::-1]
    if falling.size:
        places = np.unique(np.geomspace(1, falling.size, POINTS).astype(np.int64)) - 1
        axes.plot(falling[places], (places + 1) / ranks.size, linewidth=1.5)
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel("PageRank")
    axes.set_ylabel("share of vertices of at least that")
    axes.set_title(f"{ranks.size:,} vertices")
