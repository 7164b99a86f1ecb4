"""Error bounds of a residual and of local pushes, from measured sums; docs/semantics.md names their terms.

`prplugin.streams.residual` and `prplugin.streams.local_pushes` derive them. All sums are measured in blocks
(`depth_of_sum`), and what the rounding errors of r are at most, in L1 and in units of 2**-53, is accumulated by the
kernels of push.cpp.
"""

from __future__ import annotations

import math

from prplugin.cpu.kernels import BLOCK_TERMS
from prplugin.options import Options
from prplugin.solver.certificate import U, rounding_of_result

ROUND_UP = 1 + 2.0**-20
"""Covers the rounding errors of the bounds computed here and of those in the kernels."""

MAX_ROUNDING = 2.0**-21
"""Largest F / Q for which `ROUND_UP` covers F in the denominator of `pushed`."""


def of_cast(options: Options) -> float:
    """Bound the error of scaling and casting ranks, whose sum is 1 but for rounding errors."""
    return rounding_of_result(options.dtype, options.scale) * ROUND_UP


def of_residual(
    alpha: float, n: int, sums: tuple[float, float, float], rounding_error: float, depth_of_v: int
) -> float:
    """Bound ||G x - x*|| by (2) of `prplugin.streams.residual`, for `sums` of y, of |r|, and of |r - R v|.

    An error of r changes R by at most its own L1 norm, and R v, as v sums to 1, by as much in L1. So it counts twice in
    ||r - R v|| and in G x; their factors alpha / (1 - alpha) and 1 sum to 1 / (1 - alpha). So do the rounding errors of
    R, which count once, and those of ||r - R v||, which is at most 2 ||r||. The last term covers the rounding errors of
    sum(y) and of the entries of G x.
    """
    sum_y, norm_r, norm_step = sums
    depth = (depth_of_sum(n) + depth_of_v + 8) * U
    norm = (alpha * norm_step + 3 * depth * norm_r) / (sum_y * (1 - alpha))
    return (norm + depth) * ROUND_UP + rounding_of_residual(alpha, sum_y, rounding_error)


def rounding_of_residual(alpha: float, sum_y: float, rounding_error: float) -> float:
    """Return the part of `of_residual` that is due to the rounding errors of r."""
    return 2 * U * rounding_error / (sum_y * (1 - alpha)) * ROUND_UP


def of_gap(alpha: float, count: int, sums: tuple[float, float], rounding_error: float) -> float:
    """Return E + F of `prplugin.streams.local_pushes`, given R, Q, and the number of touched vertices.

    It is infinite if F is large. A difference of two entries of q that exceeds it proves their order.
    """
    residual, sum_ = sums
    depth = (depth_of_sum(count) + 2) * U
    rounding = U * rounding_error / (1 - alpha) + U * sum_ * (1 + depth)
    if not rounding <= sum_ * MAX_ROUNDING:
        return math.inf
    return (alpha * residual * (1 + depth) / (1 - alpha) + rounding) * ROUND_UP


def of_pushes(alpha: float, count: int, sums: tuple[float, float], rounding_error: float) -> float:
    """Bound the L1 error of q / Q by (3) of `prplugin.streams.local_pushes`; parameters are those of `of_gap`."""
    depth = (depth_of_sum(count) + 4) * U
    gap = of_gap(alpha, count, sums, rounding_error)
    return min(2.0, (2 * gap / sums[1] * (1 + depth) + depth) * ROUND_UP)


def depth_of_sum(terms: int) -> int:
    """Return the additions that a term of a sum in blocks goes through: those of its block, and those of the blocks."""
    return BLOCK_TERMS + -(-terms // BLOCK_TERMS)
