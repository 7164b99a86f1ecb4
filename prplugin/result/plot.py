"""Figures of a ranking: `Ranking.plot`. Imports matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from prplugin.types.edges import Floats, Integers
from prplugin.types.history import History

__all__ = ["RankingFigure", "plot_ranking", "plot_seeds"]

POINTS = 2000
"""Points of the curve of ranks, at most: more cannot be told apart."""

LETTERS = 24
"""Letters of the name of a vertex that are shown, at most."""


class RankingFigure(Figure):
    """A figure that a notebook shows as a picture, with or without ``%matplotlib inline``.

    It is in no window of pyplot, which would show it a second time; ``figure.savefig(path)`` writes it.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()


def plot_ranking(ranks: Floats | None, history: History, highest: Sequence[tuple[str, float]]) -> RankingFigure:
    """Draw the error bound against passes over the edges, the distribution of ranks, and the highest vertices.

    The distribution is left out where `ranks` is None, since the ranks are on other machines.
    """
    figure, panels = _panels(2 if ranks is None else 3)
    _convergence(panels[0], history)
    if ranks is not None:
        _distribution(panels[1], ranks)
    _bars(panels[-1], highest, "PageRank")
    return figure


def plot_seeds(
    iterations: Integers, bounds: Floats, history: History, highest: Sequence[tuple[str, float]]
) -> RankingFigure:
    """Draw the passes and the error bound of each of many seeds, and the vertices that are highest on average."""
    figure, (passes, errors, bars) = _panels(3)
    counts, seeds = np.unique(iterations, return_counts=True)
    passes.bar(counts, seeds)
    _whole_numbers(passes.xaxis)
    _whole_numbers(passes.yaxis)
    title = f"{history.considered[0].method}, alpha {history.alpha:g}"
    passes.set(xlabel="passes over the edges", ylabel="seeds", title=title)
    errors.plot(np.arange(1, bounds.size + 1), np.sort(bounds), marker=".", linewidth=1)
    _whole_numbers(errors.xaxis)
    _tolerance(errors, history)
    errors.set_ylim(bottom=0)
    errors.set(xlabel="seeds of at most that", ylabel="proved error bound", title=f"{bounds.size:,} seeds")
    errors.yaxis.set_major_formatter("{x:.2g}")
    _bars(bars, highest, "mean PageRank over the seeds")
    return figure


def _panels(count: int) -> tuple[RankingFigure, Any]:
    figure = RankingFigure(figsize=(4.4 * count, 3.6), layout="constrained")
    return figure, figure.subplots(1, count)


def _convergence(axes: Axes, history: History) -> None:
    """Draw the error bound against passes over the edges."""
    bounds = [point for point in history.bounds if point[1] > 0]
    axes.plot(*np.array(bounds).reshape(-1, 2).T, marker=".", markersize=4, linewidth=1)
    if bounds:
        axes.set_yscale("log")
    _tolerance(axes, history)
    _whole_numbers(axes.xaxis)
    title = f"{history.considered[0].method}, alpha {history.alpha:g}"
    axes.set(xlabel="passes over the edges", ylabel="proved error bound", title=title)


def _tolerance(axes: Axes, history: History) -> None:
    if history.tol > 0 and history.stop == "error":
        axes.axhline(history.tol, color="grey", linestyle="--", linewidth=1, label=f"tol {history.tol:g}")
        axes.legend(frameon=False)


def _distribution(axes: Axes, ranks: Floats) -> None:
    """Draw the complementary cumulative distribution of ranks, at places that are even on its logarithmic scale."""
    falling = np.sort(ranks[ranks > 0])[::-1]
    if falling.size:
        places = np.unique(np.geomspace(1, falling.size, POINTS).astype(np.int64)) - 1
        axes.plot(falling[places], (places + 1) / ranks.size, linewidth=1.5)
        axes.set_yscale("log")
        if falling[0] >= 10 * falling[-1]:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        else:  # a logarithmic axis of less than a decade has labels that collide, or none
            _few_numbers(axes)
    axes.set(xlabel="PageRank", ylabel="share of vertices of at least that", title=f"{ranks.size:,} vertices")


def _bars(axes: Axes, highest: Sequence[tuple[str, float]], what: str) -> None:
    """Draw a bar for each of the highest vertices, the first at the top, with its name beside it."""
    names = [name if len(name) <= LETTERS else name[: LETTERS - 1] + "…" for name, _ in highest]
    places = np.arange(len(highest))
    axes.barh(places, [rank for _, rank in highest])
    axes.set_yticks(places, [name.replace("$", r"\$") for name in names])  # else text between two $ is a formula
    axes.invert_yaxis()
    _few_numbers(axes)
    axes.set(xlabel=what, title=f"the {len(highest)} highest" if highest else "no vertices")


def _few_numbers(axes: Axes) -> None:
    """Label a linear axis of ranks so that the numbers have room."""
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter("{x:g}")


def _whole_numbers(axis: Any) -> None:
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
