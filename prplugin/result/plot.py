"""Figures of a ranking: `Ranking.plot`. Imports matplotlib."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Any

import numpy as np
from matplotlib import font_manager, rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from prplugin.errors import InvalidOptionError, counted, full_name
from prplugin.result.by_vertex import name_of
from prplugin.stopping import rule_of
from prplugin.types.arrays import on_host
from prplugin.types.edges import Floats, Integers
from prplugin.types.records import History

POINTS = 2000  # maximum number of points of the curve of ranks; more would not be visible

LETTERS = 24  # maximum number of letters of a vertex name that are shown, if they distinguish it from the others

WIDTH, HEIGHT, HEIGHT_OF_BAR = 5.0, 2.2, 0.25  # in inches; on a telephone, the text has its usual size


class RankingFigure(Figure):
    """A figure that notebooks display, with or without ``%matplotlib inline``; ``figure.savefig(path)`` writes it.

    It is not registered with pyplot, which would display it a second time.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()


def labelled(highest: Sequence[tuple[str, float]], labels: object) -> list[tuple[str, float]]:
    """Replace the ids of vertices by their names, where a dict or an indexed Series has one that is not missing.

    Equal names, and names that differ in spaces only, are followed by the id.
    """
    if labels is None:
        return list(highest)
    if not isinstance(labels, Mapping) and not (getattr(labels, "ndim", 0) == 1 and hasattr(labels, "to_dict")):
        raise InvalidOptionError(
            f"labels must be a dict of names by vertex, or a Series indexed by vertex, not {full_name(labels)}."
        )
    given = on_host(labels.dropna() if hasattr(labels, "dropna") else labels).items()
    known = {
        name_of(vertex): str(name)
        for vertex, name in given
        if name is not None and not (isinstance(name, float) and math.isnan(name))
    }
    names = [known.get(vertex, vertex) for vertex, _ in highest]
    return [
        (f"{name} ({vertex})" if count > 1 and name != vertex else name, rank)
        for (name, count), (vertex, rank) in zip(_alike(names), highest, strict=True)
    ]


def plot_ranking(
    ranks: Floats | None, history: History, highest: Sequence[tuple[str, float]], ax: object = None
) -> Any:
    """Draw the highest vertices, the error bound against passes over the edges, and the distribution of ranks.

    The distribution is omitted if `ranks` is None, since the ranks are on other machines.
    """
    figure, panels = _panels(2 if ranks is None else 3, len(highest), ax)
    if len(panels) > 1:
        _convergence(panels[1], history)
    if len(panels) > 2 and ranks is not None:
        _distribution(panels[2], ranks)
    _bars(panels[0], highest, "PageRank")
    return figure


def plot_seeds(
    iterations: Integers, bounds: Floats, history: History, highest: Sequence[tuple[str, float]], ax: object = None
) -> Any:
    """Draw the vertices that are highest on average, and the passes and the error bound of each of many seeds."""
    figure, panels = _panels(3, len(highest), ax)
    _bars(panels[0], highest, "mean PageRank over the seeds")
    if len(panels) == 1:
        return figure
    _, passes, errors = panels
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
    errors.set(xlabel="seeds with at most this bound", ylabel="proved error bound", title=counted(bounds.size, "seed"))
    errors.yaxis.set_major_formatter("{x:.2g}")
    return figure


def _panels(count: int, bars: int, ax: Any) -> tuple[Any, Any]:
    """Return the figure and the axes of `count` panels: those of `ax`, or new ones in a column if it is None.

    The first panel is that of the bars, and the highest. An `ax` that is one Axes is that panel, and the others are
    omitted. A figure without a layout gets one, so that names of vertices are not cut off at its edge.
    """
    if ax is not None:
        panels = np.ravel(ax)
        if not (panels.size == count or isinstance(ax, Axes)) or not all(isinstance(one, Axes) for one in panels):
            raise InvalidOptionError(
                f"ax must be one Axes, for the bars of the highest vertices, or {count}, one per panel; not {ax!r}."
            )
        whole = panels[0].figure.figure  # that of a part of a figure is the whole
        if whole.get_layout_engine() is None:
            whole.set_layout_engine("constrained")
        return panels[0].figure, panels
    heights = [max(HEIGHT, 0.8 + HEIGHT_OF_BAR * bars), *[HEIGHT] * (count - 1)]
    figure = RankingFigure(figsize=(WIDTH, sum(heights)), layout="constrained")
    return figure, figure.subplots(count, 1, height_ratios=heights)


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
    if rule_of(history.stop, history.tol).proves:
        axes.axhline(history.tol, color="grey", linestyle="--", linewidth=1, label=f"tol {history.tol:g}")
        axes.legend(frameon=False)


def _distribution(axes: Axes, ranks: Floats) -> None:
    """Draw the complementary cumulative distribution of ranks at points that are evenly spaced on its log scale."""
    descending = np.sort(ranks[ranks > 0])[::-1]
    if descending.size:
        places = np.unique(np.geomspace(1, descending.size, POINTS).astype(np.int64)) - 1
        axes.plot(descending[places], (places + 1) / ranks.size, linewidth=1.5)
        axes.set_yscale("log")
        if descending[0] >= 10 * descending[-1]:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        else:  # a logarithmic axis of less than a decade has labels that collide, or none
            _few_numbers(axes)
    axes.set(
        xlabel="PageRank",
        ylabel="fraction of vertices\nof at least this rank",
        title=counted(ranks.size, "vertex", "vertices"),
    )


def _bars(axes: Axes, highest: Sequence[tuple[str, float]], what: str) -> None:
    """Draw a bar with a name for each of the highest vertices, the first at the top."""
    names = _shortened([name for name, _ in highest])
    places = np.arange(len(highest))
    axes.barh(places, [rank for _, rank in highest])
    usual = font_manager.FontProperties(size=rcParams["ytick.labelsize"]).get_size_in_points()
    whole: Any = axes.figure
    points = 72 * axes.get_window_extent().height / whole.dpi  # height of the panel
    size = min(usual, 0.6 * points / max(len(names), 1))
    # matplotlib reads text between two $ as a formula
    axes.set_yticks(places, [name.replace("$", r"\$") for name in names], fontsize=size)
    axes.invert_yaxis()
    _few_numbers(axes)
    axes.set(xlabel=what, title=f"the {len(highest)} highest" if highest else "no vertices")


def _shortened(names: list[str]) -> list[str]:
    """Shorten names to `LETTERS` without their common beginning; longer ones keep both ends.

    Those that would look alike keep more letters.
    """
    names = [_seen(name) if count == 1 else repr(name) for name, count in _alike(names)]
    if max(map(len, names), default=0) > LETTERS and len(names) > 1:
        # Up to a separator, and without the last letter: no name becomes empty, and no word or number is split.
        common = commonprefix([name[:-1] for name in names])  # noqa: RUF071 - of letters; names are no paths
        begun = re.match(r".*\W|", common, re.DOTALL)
        if begun is not None and begun.end() > 1:
            names = ["…" + name[begun.end() :] for name in names]
    short, letters = [_cut(name, LETTERS) for name in names], LETTERS
    while any(count > 1 for _, count in _alike(short)) and letters < max(map(len, names)):
        letters *= 2
        short = [
            _cut(name, letters) if count > 1 else cut for name, (cut, count) in zip(names, _alike(short), strict=True)
        ]
    return short


def _seen(name: str) -> str:
    """Return what is seen of a name: spaces and line breaks look alike."""
    return " ".join(name.split())


def _alike(names: list[str]) -> list[tuple[str, int]]:
    """Return each name with the number of names that look like it."""
    seen = Counter(map(_seen, names))
    return [(name, seen[_seen(name)]) for name in names]


def _cut(name: str, letters: int) -> str:
    """Return the name without its middle if it is longer than this number of letters."""
    head = letters // 3
    return name if len(name) <= letters else f"{name[:head]}…{name[head + 1 - letters :]}"


def _few_numbers(axes: Axes) -> None:
    """Label a linear axis of ranks with few numbers, which do not overlap."""
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter("{x:g}")


def _whole_numbers(axis: Any) -> None:
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
