"""Explanation of the choice of a method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from prplugin.graph.adjacency import Adjacency
from prplugin.machine import Machine
from prplugin.methods.base import Method
from prplugin.methods.registry import candidates, methods, options_of, with_short_rows
from prplugin.types.history import Considered

__all__ = ["reasons"]

NONDETERMINISTIC = "its last bits vary from run to run"
OTHER_PROCESSOR = {
    "cpu": "runs on the CPU; this frame is ranked on the GPU",
    "gpu": "runs on the GPU; this frame is ranked on the CPU",
}


def reasons(
    chosen: Method,
    asked: str,
    adjacency: Adjacency,
    machine: Machine,
    options: Mapping[str, Any],
    measured: Mapping[str, float],
) -> tuple[Considered, ...]:
    """Return the reasons why `chosen` was chosen and each other method was not, without a pass over the edges.

    `asked` is the value of the argument `method`; `measured` maps methods to the seconds of their timed rankings.
    """
    if asked not in ("auto", "measured"):
        return (Considered(chosen.name, None, "asked for by name"),)
    short = with_short_rows(adjacency)
    eligible, chosen_cost = candidates(adjacency), chosen.cost(short, machine)

    def reason_against(name: str, method: Method) -> Considered:
        if name not in eligible:
            here = method.runs_on == chosen.runs_on and getattr(method, "nondeterministic", False)
            return Considered(name, None, NONDETERMINISTIC if here else OTHER_PROCESSOR[method.runs_on])
        if unknown := set(options) - set(options_of(method)):
            return Considered(name, None, f"takes no option {', '.join(sorted(unknown))}")
        if name in measured:
            return Considered(name, measured[name], "measured: slower here")
        if measured:
            return Considered(name, None, "not timed: its estimate is much higher, or it failed")
        seconds = method.cost(short, machine)
        if seconds >= chosen_cost:
            return Considered(name, seconds, "a higher estimate")
        return Considered(
            name, seconds, method.unavailable_reason(adjacency, machine) or "its longest row makes it slower"
        )

    others = [reason_against(name, method) for name, method in methods().items() if name != chosen.name]
    others.sort(key=lambda one: math.inf if one.seconds is None else one.seconds)
    won = "measured: the fastest here" if chosen.name in measured else "the least estimate"
    return (Considered(chosen.name, measured.get(chosen.name, chosen_cost), won), *others)
