"""Why a method was chosen, and others were not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from prplugin.graph.adjacency import Adjacency
from prplugin.machine import Machine
from prplugin.methods.base import Method
from prplugin.methods.registry import SIDE, _ShortRows, candidates, methods, options_of
from prplugin.types.arrays import Place
from prplugin.types.history import Considered

__all__ = ["reasons"]

VARIES = "its last bits vary from run to run"
WHERE = {
    "cpu": "runs on the CPU, and the frame lies on the GPU",
    "gpu": "runs on the GPU, and the frame does not lie there",
}


def reasons(
    chosen: Method,
    asked: str,
    adjacency: Adjacency,
    machine: Machine,
    options: Mapping[str, Any],
    measured: Mapping[str, float],
) -> tuple[Considered, ...]:
    """Give what speaks for the method chosen, and against each other, from what is known without a pass over the edges.

    Parameters
    ----------
    asked : str
        The method asked for: a name, "auto" or "measured".
    measured : dict
        Seconds of a ranking, where they were measured.
    """
    if asked not in ("auto", "measured"):
        return (Considered(chosen.name, None, "asked for by name"),)
    short: Any = _ShortRows(adjacency)
    able = candidates(adjacency)
    against = []
    own = able[chosen.name].cost(short, machine)
    for name, method in able.items():
        seconds = None
        if name == chosen.name:
            continue
        if unknown := set(options) - set(options_of(method)):
            reason = f"takes no option {', '.join(sorted(unknown))}"
        elif name in measured:
            seconds, reason = measured[name], "measured: slower here"
        elif measured:
            reason = "not timed: a much higher estimate, or it refused"
        else:
            seconds = method.cost(short, machine)
            # What costs less was asked whether it can run here; what costs more need not be.
            unfit = method.unfit(adjacency, machine) if seconds < own else None
            reason = unfit or ("its longest row makes it slower" if seconds < own else "a higher estimate")
        against.append(Considered(name, seconds, reason))
    against.sort(key=lambda one: math.inf if one.seconds is None else one.seconds)
    won = "measured: the fastest here" if chosen.name in measured else "the least estimate"
    return (Considered(chosen.name, measured.get(chosen.name, own), won), *against, *_never(adjacency.place))


@cache
def _never(place: Place) -> tuple[Considered, ...]:
    """Give the methods that "auto" takes for no graph that lies there."""
    side = SIDE[place]
    return tuple(
        Considered(name, None, VARIES if method.runs_on == side else WHERE[method.runs_on])
        for name, method in methods().items()
        if method.runs_on != side or getattr(method, "varies", False)
    )
