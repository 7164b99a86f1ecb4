"""Figure of the ratios of the other libraries' times to prplugin's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers._cases import ALONE, ASKED, FRAME_TO_FRAME
from benchmarks.peers._libraries import PEERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw one line per graph with one marker per library: filled for the first required error, else hollow."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator

    timed = [row for row in results if row.get("ratio", "") != "" and "what" in row]
    graphs = list(dict.fromkeys(row["graph"] for row in timed))[::-1]
    colours = {name: f"C{place}" for place, name in enumerate(PEERS)}
    drawing = Figure(figsize=(12, 2 + 0.4 * len(graphs)), layout="constrained")
    for panel, what in zip(drawing.subplots(1, 2, sharey=True), (FRAME_TO_FRAME, ALONE), strict=True):
        for row in (row for row in timed if row["what"] == what):
            first = row["required error"] == ASKED[0]
            colour, line = colours[row["peer"]], graphs.index(row["graph"]) + (0.13 if first else -0.13)
            panel.plot(row["ratio"], line, "o", color=colour, markerfacecolor=colour if first else "white")
        panel.set_yticks(range(len(graphs)), graphs, fontsize="small")
        panel.grid(axis="y", linewidth=0.4)
        panel.axvline(1, color="black", linewidth=0.8)
        panel.set(title=what, xlabel="time of the library / time of prplugin", xscale="log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter("")
    seen = [name for name in PEERS if any(row["peer"] == name for row in timed)]
    marks = [Line2D([], [], marker="o", linestyle="", color=colours[name], label=name) for name in seen]
    marks += [
        Line2D([], [], marker="o", linestyle="", color="k", markerfacecolor=face, label=f"error {asked:g}")
        for face, asked in zip(("k", "white"), ASKED, strict=True)
    ]
    drawing.legend(handles=marks, loc="outside lower center", ncols=6, fontsize="small")
    return drawing
