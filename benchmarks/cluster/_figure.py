"""Strong scaling, drawn: times by workers, and what of them is communication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure"]


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw seconds from frame to ranks, milliseconds per iteration, and the share of communication."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    drawing = Figure(figsize=(11, 4.6), layout="constrained")
    panels = (
        ("Frame to ranks", "s", "seconds from frame to ranks"),
        ("Time per iteration", "ms", "milliseconds per iteration"),
        ("Time per iteration", None, "share of communication per iteration"),
    )
    for panel, (table, unit, label) in zip(drawing.subplots(1, len(panels)), panels, strict=True):
        columns = [("prplugin", f"prplugin {unit}", "-o"), ("cuGraph", f"cuGraph {unit}", "--s")] if unit else []
        for side, column, style in columns or [("prplugin", "communication", "-o")]:
            rows = [row for row in results if row["table"] == table and row[column] != ""]
            for place, graph in enumerate(sorted({row["graph"] for row in rows})):
                points = sorted((row["workers"], row[column]) for row in rows if row["graph"] == graph)
                panel.plot(*zip(*points, strict=True), style, color=f"C{place}", label=f"{graph}, {side}")
        counts = sorted({row["workers"] for row in results})
        panel.set(xlabel="workers", ylabel=label, xscale="log", xticks=counts, xticklabels=map(str, counts))
        panel.minorticks_off()
        if unit:
            panel.set_yscale("log")
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_minor_formatter("")
        else:
            panel.set_ylim(0, 1)
        if panel.lines:
            panel.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return drawing
