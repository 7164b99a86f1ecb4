"""The one loop: step, measure, certify, stop. It knows no method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from prplugin.certificate import Certificate
from prplugin.errors import InvalidOptionError
from prplugin.graph.edges import Floats
from prplugin.methods import Step, Sums
from prplugin.options import Options

__all__ = ["Outcome", "iterate", "step_budget"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the loop ended.

    Attributes
    ----------
    ranks : array of n float64
    converged : bool
        Whether the stopping rule was met.
    iterations : int
        Steps from the start to `ranks`.
    error_bound : float
        Proved: the L1 distance of `ranks`, scaled and cast as asked, to the exact PageRank is no more.
    """

    ranks: Floats
    converged: bool
    iterations: int
    error_bound: float


def iterate(
    step: Step,
    start: Floats,
    certificate: Certificate,
    options: Options,
    budget: int,
    watch: Callable[[int, float], object],
) -> Outcome:
    """Apply `step` until the stopping rule of `options` is met or `budget` steps are spent.

    Parameters
    ----------
    start : array of n float64, of sum 1
    watch : function
        Called after each step with the count of steps and the error bound.
    """
    dangling = step.start(start)
    if budget == 0:
        bound = certificate.of_start(step(dangling).change)
        return Outcome(start, options.stop == "error" and bound <= options.tol, 0, bound)
    for iterations in count(1):
        sums = step(dangling)
        dangling = sums.dangling
        bound = certificate.of_step(sums.change)
        watch(iterations, bound)
        # tol=0 asks for the k-th iterate, also of an iteration that stands still before.
        met = _met(options, sums, bound, start.size)
        if (met and options.tol > 0) or iterations == budget:
            return Outcome(step.ranks(), met, iterations, bound)
    raise AssertionError("unreachable")


def step_budget(certificate: Certificate, options: Options) -> int:
    """Give the number of steps allowed: `max_iter`, or as many as the contraction needs for the tolerance.

    Raises
    ------
    InvalidOptionError
        If no number of steps could prove the tolerance.
    """
    if options.stop == "error" and 0 < options.tol <= certificate.floor:
        raise InvalidOptionError(
            f"tol={options.tol:g} cannot be proved for this graph: rounding alone may account for "
            f"{certificate.floor:.2g} in {options.dtype} at alpha={options.alpha:g}. Ask for a tol above that"
            + (", or for dtype='float64'." if options.dtype == "float32" else ".")
        )
    if options.max_iter is not None:
        return options.max_iter
    if options.stop == "error":
        return max(1, certificate.steps(options.tol))
    return certificate.moves(options.tol)


def _met(options: Options, sums: Sums, bound: float, n: int) -> bool:
    match options.stop:
        case "error":
            return bound <= options.tol
        case "delta":
            return sums.change <= options.tol
        case "vertex":
            return sums.largest <= options.tol
        case "networkx":
            return sums.change <= n * options.tol
