"""Comparison of the model of docs/scaling.md with measurements."""

from __future__ import annotations

import re
from typing import Any

CONTRIBUTION_BYTES = 4
"""Bytes of a contribution in float32."""


def sent_bytes(vertices: int, workers: int) -> float:
    """Return the most bytes that a worker sends per iteration: its contributions, to every other worker."""
    return CONTRIBUTION_BYTES * vertices / workers * (workers - 1)


def predicted_ms(alone_ms: float, workers: int, sent: float, rate: float) -> float:
    """Return the predicted ms per iteration: one worker's time divided by their number, plus bytes sent / rate."""
    return alone_ms / workers + (1e3 * sent / rate if sent else 0.0)


def compare(steps: list[dict[str, Any]], seconds: dict[tuple[str, int], float]) -> list[dict[str, Any]]:
    """Return one row per graph and number of workers: measured speed-ups and predicted times.

    Parameters
    ----------
    steps : list of rows
        Rows of the table of iterations.
    seconds : dict
        Seconds from frame to ranks, by graph and workers.
    """
    alone = {row["graph"]: row["prplugin ms"] for row in steps if row["workers"] == 1}
    found = []
    for row in sorted(steps, key=lambda row: (row["graph"], row["workers"])):
        graph, workers = row["graph"], row["workers"]
        if workers == 1 or not (graph in alone or _weak(row, alone)):
            continue
        same = [other for other in steps if ("CPUs" in other["graph"]) == ("CPUs" in graph)]
        rate = _rate([other for other in same if other["workers"] == workers])
        one, several = seconds.get((graph, 1)), seconds.get((graph, workers))
        sent = row["MB sent"] * 1e6
        found.append(
            {
                "graph": graph,
                "workers": workers,
                "speed-up, frame to ranks": one / several if one and several else "",
                "speed-up per iteration": alone[graph] / row["prplugin ms"] if graph in alone else "",
                "weak scaling": _weak(row, alone),
                "ms per iteration": row["prplugin ms"],
                "predicted ms": predicted_ms(alone[graph], workers, sent, rate) if rate and graph in alone else "",
                "communication": row["communication"],
                "MB sent": row["MB sent"],
                "MB sent, bound": sent_bytes(row["vertices"], workers) / 1e6,
            }
        )
    return found


def _weak(row: dict[str, Any], alone: dict[str, float]) -> float | str:
    """Return the time of one worker by that of several, of a graph with as many times fewer edges; "" without it."""
    smaller = re.sub(r"\d+", lambda scale: str(int(scale[0]) - row["workers"].bit_length() + 1), row["graph"], count=1)
    return alone[smaller] / row["prplugin ms"] if smaller in alone else ""


def _rate(steps: list[dict[str, Any]]) -> float:
    """Return the bytes per second of communication on the largest graph, of the worker that sent most."""
    largest = max(steps, key=lambda row: row["vertices"])
    seconds = largest["communication"] * largest["prplugin ms"] / 1e3
    return float(largest["MB sent"] * 1e6 / seconds) if seconds > 0 else 0.0
