"""Figure of strong scaling: times and fraction of communication by number of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.papers.plots import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw seconds from frame to ranks, milliseconds per iteration, and the fraction of communication."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 3.8), layout="constrained")
    panels = (
        ("Frame to ranks", "s", "seconds, frame to ranks"),
        ("Time per iteration", "ms", "milliseconds per iteration"),
        ("Time per iteration", None, "fraction of communication per iteration"),
    )
    handles: dict[str, Any] = {}
    graphs = sorted({row["graph"] for row in results})
    counts = sorted({row["workers"] for row in results})
    for panel, (table, unit, label) in zip(drawing.subplots(1, len(panels)), panels, strict=True):
        columns = [("prplugin", f"prplugin {unit}", "-o"), ("cuGraph", f"cuGraph {unit}", "--s")] if unit else []
        for library, column, style in columns or [("prplugin", "communication", "-o")]:
            rows = [row for row in results if row["table"] == table and row[column] != ""]
            for place, graph in enumerate(graphs):
                points = sorted((row["workers"], row[column]) for row in rows if row["graph"] == graph)
                if points:
                    [line] = panel.plot(*zip(*points, strict=True), style, color=f"C{place}")
                    handles[f"{graph}, {library}"] = line
        panel.set(xlabel="workers", ylabel=label, xscale="log", xlim=(0.85 * counts[0], 1.18 * counts[-1]))
        panel.set_xticks(counts, [str(count) for count in counts])
        panel.minorticks_off()
        if unit and panel.lines:
            panel.set_yscale("log")
            plain(panel.yaxis)
        elif not unit:
            panel.set_ylim(0, 1)
    drawing.legend(handles.values(), handles, loc="outside lower center", ncols=3, fontsize="small")
    return drawing
