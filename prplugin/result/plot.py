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
    """Draw the error bound against passes over the edges, and the part of the vertices of at least each rank."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingLibraryError("plot() draws with matplotlib: pip install 'prplugin[plot]'") from error
    figure = Figure(figsize=(9, 3.6), layout="constrained")  # of no window: whoever wants one shows it
    convergence, distribution = figure.subplots(1, 2)
    bounds = [point for point in history.bounds if point[1] > 0]
    convergence.plot(*np.array(bounds).reshape(-1, 2).T, marker=".", markersize=4, linewidth=1)
    if bounds:
        convergence.set_yscale("log")
    if history.tol > 0 and history.stop == "error":
        convergence.axhline(history.tol, color="grey", linestyle="--", linewidth=1, label=f"tol {history.tol:g}")
        convergence.legend(frameon=False)
    title = f"{history.considered[0].method}, alpha {history.alpha:g}"
    convergence.set(xlabel="passes over the edges", ylabel="proved error bound", title=title)
    # The complementary cumulative distribution, at places that are even on its logarithmic scale.
    falling = np.sort(ranks[ranks > 0])[::-1]
    if falling.size:
        places = np.unique(np.geomspace(1, falling.size, POINTS).astype(np.int64)) - 1
        distribution.plot(falling[places], (places + 1) / ranks.size, linewidth=1.5)
        distribution.set(xscale="log", yscale="log")
    distribution.set(xlabel="PageRank", ylabel="share of vertices of at least that", title=f"{ranks.size:,} vertices")
    return figure
