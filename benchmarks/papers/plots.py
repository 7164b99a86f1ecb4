"""Plots shared by several papers."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.run import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def colours(names: Iterable[str]) -> dict[str, Any]:
    """Return a distinct colour per name, for up to twenty names."""
    from matplotlib import colormaps

    names = list(dict.fromkeys(names))
    few = colormaps["tab10" if len(names) <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    return {name: few[nth % len(few)] for nth, name in enumerate(names)}


def heat(
    panels: dict[str, list[Row]], x: str, y: str, value: str, title: str, *, marked: tuple[Any, Any] | None = None
) -> Figure:
    """Draw a value over two options, one panel per set of rows; the minimum is bold, the paper's choice framed."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    drawing = Figure(figsize=(5.5 * len(panels), 4.2), layout="constrained")
    for panel, (name, rows) in zip(drawing.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        columns, lines = (sorted({row[axis] for row in rows}) for axis in (x, y))
        table = np.full((len(lines), len(columns)), np.nan)
        for row in rows:
            table[lines.index(row[y]), columns.index(row[x])] = row[value]
        panel.imshow(table, norm=LogNorm(), cmap="viridis_r", aspect="auto", origin="lower")
        least = np.nanmin(table)
        middle = np.sqrt(least * np.nanmax(table))
        for (line, column), number in np.ndenumerate(table):
            if not np.isnan(number):
                panel.text(
                    column, line, f"{number:.3g}", ha="center", va="center", fontsize="x-small",
                    weight="bold" if number == least else "normal", color="white" if number > middle else "black",
                )  # fmt: skip
        if marked is not None and marked[0] in columns and marked[1] in lines:
            corner = columns.index(marked[0]) - 0.5, lines.index(marked[1]) - 0.5
            panel.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="red", linewidth=2))
        panel.set_xticks(range(len(columns)), [str(column) for column in columns])
        panel.set_yticks(range(len(lines)), [str(line) for line in lines])
        panel.set(xlabel=x, ylabel=y, title=name)
    drawing.suptitle(f"{title} (bold: minimum; red: the paper's choice)")
    return drawing


def plain(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers at 1, 2 and 5 of each decade, or at decades if there are many."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def sideways(
    groups: dict[str, list[tuple[str, float]]],
    label: str,
    title: str,
    kind: Callable[[str], str] = lambda what: "",
) -> Figure:
    """Draw horizontal bars on a logarithmic scale, one panel per group, with shared bar names.

    `kind` returns the group of a bar in the legend; bars of one group have one colour.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(what for values in groups.values() for what, _ in values))
    across = min(2, len(groups))
    down = -(-len(groups) // across)
    drawing = Figure(figsize=(8, 1 + down * (0.7 + 0.2 * len(names))), layout="constrained")
    panels = drawing.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    colour = colours(map(kind, names))
    for panel, (group, values) in zip(panels, groups.items(), strict=False):
        for what, value in values:
            panel.barh(names.index(what), value, color=colour[kind(what)])
            panel.text(value, names.index(what), f" {value:.3g}", va="center", fontsize="x-small")
        panel.set_title(textwrap.fill(group, 32), fontsize="small")
        panel.set(xscale="log")
        panel.margins(x=0.2)
        panel.tick_params(labelbottom=True, labelsize="small")
    panels[0].set_yticks(range(len(names)), names, fontsize="small")
    panels[0].invert_yaxis()
    plain(panels[0].xaxis)
    for panel in panels[len(groups) :]:
        panel.set_axis_off()
    drawing.suptitle(f"{title}\n{label}", fontsize="medium")
    if len(colour) > 1:
        handles = [Patch(color=shade, label=name) for name, shade in colour.items()]
        drawing.legend(handles=handles, loc="outside lower center", ncols=min(len(colour), 3), fontsize="small")
    return drawing
