"""The model of docs/scaling.md, beside what was measured."""

from __future__ import annotations

from typing import Any

__all__ = ["beside", "predicted_ms", "sent_bytes"]

CONTRIBUTION = 4
"""Bytes of one that is sent, in float32."""


def sent_bytes(vertices: int, workers: int) -> float:
    """Bound what a worker sends in an iteration: the contributions of its vertices to each of the others."""
    return CONTRIBUTION * vertices / workers * (workers - 1)


def predicted_ms(alone_ms: float, workers: int, sent: float, rate: float) -> float:
    """Predict an iteration: one worker's, divided among so many, and what is sent at so many bytes a second."""
    return alone_ms / workers + (1e3 * sent / rate if sent else 0.0)


def beside(steps: list[dict[str, Any]], seconds: dict[tuple[str, int], float]) -> list[dict[str, Any]]:
    """Put what more workers made of it beside what the model predicts.

    Parameters
    ----------
    steps : list of rows
        Of iterations.
    seconds : dict
        Seconds from frame to ranks, by graph and workers.
    """
    alone = {row["graph"]: row["prplugin ms"] for row in steps if row["workers"] == 1}
    found = []
    for row in sorted(steps, key=lambda row: (row["graph"], row["workers"])):
        graph, workers = row["graph"], row["workers"]
        if workers == 1 or graph not in alone:
            continue
        rate = _rate([other for other in steps if other["workers"] == workers])
        one, several = seconds.get((graph, 1)), seconds.get((graph, workers))
        sent = row["MB sent"] * 1e6
        found.append(
            {
                "graph": graph,
                "workers": workers,
                "frame to ranks": one / several if one and several else "",
                "speed-up per iteration": alone[graph] / row["prplugin ms"],
                "ms per iteration": row["prplugin ms"],
                "predicted ms": predicted_ms(alone[graph], workers, sent, rate) if rate else "",
                "communication": row["communication"],
                "MB sent": row["MB sent"],
                "MB sent at the most": sent_bytes(row["vertices"], workers) / 1e6,
            }
        )
    return found


def _rate(steps: list[dict[str, Any]]) -> float:
    """Return the bytes a second that the largest graph was sent at, by the worker that sent most."""
    largest = max(steps, key=lambda row: row["vertices"])
    seconds = largest["communication"] * largest["prplugin ms"] / 1e3
    return float(largest["MB sent"] * 1e6 / seconds) if seconds > 0 else 0.0
