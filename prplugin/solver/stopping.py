"""Stopping rules, and the L1 change of a step at which each is met."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prplugin.errors import InvalidOptionError
from prplugin.methods.base import Sums
from prplugin.options import Options, proves
from prplugin.solver.certificate import Certificate
from prplugin.types.arrays import Array

FLOAT32_CHANGE_FRACTION = 1 / 4
"""Largest L1 change that float32 rounding is expected to cause, as a fraction of its proved bound."""


def is_met(options: Options, sums: Sums, bound: float | Array, n: int) -> Any:
    """Return whether a step with these sums, and with this error bound after it, meets the stopping rule."""
    match options.stop:
        case "error":
            return bound <= options.tol
        case "vertex":
            return sums.largest <= options.tol
        case "networkx":
            return sums.change < n * options.tol  # strictly, as in NetworkX
    return sums.change <= options.tol


def goal_of(options: Options, certificate: Certificate) -> float:
    """Return approximately the L1 change at which the rule is met; negative if the rule is not about that change."""
    if options.tol == 0 or options.stop == "vertex":
        return -1.0
    match options.stop:
        case "error":
            return certificate.change_for(options.tol)
        case "networkx":
            return certificate.n * options.tol
    return options.tol


def goal_in_float32(options: Options, in_float32: Certificate, in_float64: Certificate) -> float:
    """Return the L1 change at which the float32 phase ends.

    It is the change that meets the rule by the certificate `in_float32`. If float32 rounding keeps changes above that,
    float64 takes over at the returned change. So whether a ranking ends in float32 or in float64, and how much memory
    it takes, is known before it starts.
    """
    goal = goal_of(options, in_float32)
    least = FLOAT32_CHANGE_FRACTION * in_float32.noise
    if options.stop != "error" or goal >= least:
        return goal
    # At the first, about one float64 step proves the tolerance. Below the second, changes are mostly rounding errors.
    return max(in_float64.change_for(options.tol), least)


def step_budget(certificate: Certificate, options: Options) -> int:
    """Return the maximum number of passes: `max_iter`, or as many as contraction by alpha needs for the tolerance.

    Raises InvalidOptionError if the tolerance is not provable.
    """
    if proves(options) and not options.tol >= certificate.provable:
        raise InvalidOptionError(
            f"tol={options.tol:g} cannot be proved for this graph in {options.dtype} at alpha={options.alpha:g}, "
            f"because of rounding: the smallest provable tol is {certificate.provable:.2g}. Ask for that or more"
            + (", or for dtype='float64'." if options.dtype == "float32" else ".")
        )
    if options.max_iter is not None:
        return options.max_iter
    if not proves(options):
        return certificate.moves(options.tol)
    # Accelerated passes, as many plain steps, and the step that proves.
    return 2 * certificate.steps(options.tol) + 1


def steps_left(live: Array, before: Array, change: Array, goal: float) -> Any:
    """Estimate the plain steps until the change reaches its goal, from the ratio of the last two changes.

    Infinity if the changes do not decrease, or if there is no goal; 0 for a seed whose iteration has ended.
    """
    with np.errstate(all="ignore"):
        left = np.log(goal / np.asarray(change)) / np.log(change / np.asarray(before))
    left = np.where((change < before) & np.isfinite(before) & (goal > 0), np.maximum(left, 0.0), math.inf)
    return np.where(live, left, 0.0)[()]
