"""When a ranking ends: the stopping rule, and what a step may change for it to be met."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prplugin.errors import InvalidOptionError
from prplugin.methods.base import Sums
from prplugin.options import Options, proves
from prplugin.solver.certificate import Certificate

__all__ = ["goal_in_float32", "goal_of", "is_met", "step_budget", "steps_left"]

ROUNDINGS = 1 / 4
"""Part of the largest change by roundings to float32 that they make about, at most."""


def is_met(options: Options, sums: Sums, bound: Any, n: int) -> Any:
    """Say whether the rule is met by what a step measured, and the error bound after it."""
    match options.stop:
        case "error":
            return bound <= options.tol
        case "vertex":
            return sums.largest <= options.tol
        case "networkx":
            return sums.change < n * options.tol  # strictly, as in NetworkX
    return sums.change <= options.tol


def goal_of(options: Options, certificate: Certificate) -> float:
    """Return the L1 change of a step at which the rule is met, about; below 0 where the change does not decide."""
    if options.tol == 0 or options.stop == "vertex":
        return -1.0
    match options.stop:
        case "error":
            return certificate.change_for(options.tol)
        case "networkx":
            return certificate.n * options.tol
    return options.tol


def goal_in_float32(options: Options, rough: Certificate, exact: Certificate) -> float:
    """Return the change at which float64 takes over from float32, if nothing is proved yet.

    It is the change that proves the tolerance, unless roundings keep changes from becoming so small. So the precision
    in which a ranking ends, and with it the memory that it takes, is known beforehand.
    """
    goal = goal_of(options, rough)
    least = ROUNDINGS * rough.noise
    if options.stop != "error" or goal >= least:
        return goal
    # From the first on float64 needs a step, about; past the second, changes are but those of roundings.
    return max(exact.change_for(options.tol), least)


def step_budget(certificate: Certificate, options: Options) -> int:
    """Return the number of steps allowed: `max_iter`, or as many as the contraction needs for the tolerance.

    Raises
    ------
    InvalidOptionError
        If no number of steps could prove the tolerance.
    """
    if proves(options) and not options.tol >= certificate.provable:
        raise InvalidOptionError(
            f"tol={options.tol:g} cannot be proved for this graph in {options.dtype} at alpha={options.alpha:g}, "
            f"for rounding: the least that can is {certificate.provable:.2g}. Ask for that or more"
            + (", or for dtype='float64'." if options.dtype == "float32" else ".")
        )
    if options.max_iter is not None:
        return options.max_iter
    if not proves(options):
        return certificate.moves(options.tol)
    # As many accelerated passes as the contraction needs, as many plain steps, those whose mean is taken, and the last.
    return 2 * certificate.steps(options.tol) + math.ceil(8 / (1 - certificate.alpha)) + 1


def steps_left(before: Any, change: Any, goal: float) -> Any:
    """Return how many plain steps a change is away from its goal at the pace of the last two, or infinity."""
    with np.errstate(all="ignore"):
        left = np.log(goal / np.asarray(change)) / np.log(change / np.asarray(before))
    return np.where((change < before) & np.isfinite(before) & (goal > 0), np.maximum(left, 0.0), math.inf)[()]
