"""Error bounds in rational arithmetic, derived a second time: each term of docs/semantics.md is a function here.

The functions take what prplugin measures and what its methods state, and return exact values, or infinity. They share
no code with prplugin: tests/solver/test_bounds.py compares its bounds with these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple, TypeAlias

Bound: TypeAlias = Fraction | float
"""A fraction, or infinity."""

U, U32 = Fraction(1, 2**53), Fraction(1, 2**24)
"""Unit roundoffs of float64 and float32."""

LN2 = Fraction(6931471805599453094172321214581765680755001343602553, 10**52)
"""ln 2, rounded up in the last digit."""


class Depths(NamedTuple):
    """Rounding depths that a method states of its step; docs/semantics.md defines each."""

    row: int = 0
    edge: int = 0
    dangling: int = 0
    vectors: int = 0
    norm: int = 0
    single: int = 0


def gamma(k: Bound, unit: Fraction = U) -> Bound:
    """Return the bound of the relative error of k roundings."""
    return k * unit / (1 - k * unit) if k * unit < 1 else math.inf


# --- depths ------------------------------------------------------------------------------------------------------


def grouped_sum(terms: int) -> int:
    """Return the depth of a sum in groups of 32, level by level."""
    return 31 + grouped_sum(_parts(terms, 32)) if terms > 32 else max(terms - 1, 0)


def row_sum(terms: int) -> int:
    """Return the depth of a sum in three levels."""
    fan_in = max(32, next(f for f in range(round(terms ** (1 / 3)) - 1, terms + 2) if f**3 >= terms))
    return min(terms, fan_in) + min(_parts(terms, fan_in), fan_in) + _parts(terms, fan_in**2)


def interleaved_sum(terms: int) -> int:
    """Return the depth of a sum in blocks of 256 rows, eight sums each."""
    return min(terms, 32 + 3 + grouped_sum(_parts(terms, 256)) + 8)


def compensated_sum(terms: int) -> Bound:
    """Return the depth of a compensated sum."""
    return 1 + gamma(terms) ** 2 / U


def lumped_sum(terms: int, edges: int) -> Bound:
    """Return the depth of the sum of b_j x_j over so many vertices, beyond that of a term of a row sum."""
    return interleaved_sum(terms) + compensated_sum(edges) + 1


def packed_row(edges: int) -> Bound:
    """Return the depth of a row sum of packed edges, of which the graph has so many."""
    return row_sum(2048) + compensated_sum(_parts(edges, 2048) + 1)


def blocked_sum(terms: int) -> int:
    """Return the depth of a sum in blocks of 1,024 terms."""
    return 1024 + _parts(terms, 1024)


def decayed_weight(half_lives: Bound) -> Bound:
    """Return the depth of a weight so many half-lives old."""
    return 4 * LN2 * abs(Fraction(half_lives)) + 8


def vector_entry(values: int) -> int:
    """Return the depth of an entry of v or w, given as so many values."""
    value, terms, quotient = 1, 1, 1
    return value + terms + grouped_sum(values) + quotient


def contribution(depth_of_sum: int, depth_of_weight: int) -> int:
    """Return the depth of a contribution in a push."""
    return 5 + depth_of_sum + 2 * depth_of_weight


# --- a step ------------------------------------------------------------------------------------------------------


def rank(depths: Depths) -> int:
    """Return the depth of a rank."""
    through_edge = depths.edge + depths.row + 1 + 2
    through_dangling = depths.dangling + 1 + depths.vectors + 1 + 2
    return max(through_edge, through_dangling)


def mass(alpha: float, depths: Depths) -> Bound:
    """Return the bound of the sum of every iterate."""
    a, of_rank, of_single = Fraction(alpha), gamma(rank(depths)), gamma(depths.single, U32)
    if math.inf in (of_rank, of_single) or (left := 1 - a * (1 + of_rank) * (1 + of_single)) <= 0:
        return math.inf
    return (1 + of_rank) * (1 - a) / left


def step_rounding(alpha: float, depths: Depths) -> Bound:
    """Return the bound of the L1 error of a step."""
    bound = mass(alpha, depths)
    if bound == math.inf:
        return math.inf
    of_rank, of_single = gamma(rank(depths)), gamma(depths.single, U32)
    return (of_rank + Fraction(alpha) * of_single * (1 + of_rank)) * bound


def change(measured: float, depths: Depths) -> Bound:
    """Return the bound of the change of a step, given as computed."""
    return Fraction(measured) * (1 + gamma(depths.norm))


def cast(alpha: float, depths: Depths, dtype: str, scale: object) -> Bound:
    """Return the bound of the error of scaling and casting ranks."""
    bound = mass(alpha, depths)
    scaling = U * bound if scale == "n" else Fraction(0)
    return scaling + (U32 * bound if dtype == "float32" else 0)


def step(alpha: float, measured: float, depths: Depths, dtype: str = "float64", scale: object = 1) -> Bound:
    """Return the bound of the result of a step."""
    return _of_residual(alpha, Fraction(alpha) * change(measured, depths), depths, dtype, scale)


def start(alpha: float, measured: float, depths: Depths, dtype: str = "float64", scale: object = 1) -> Bound:
    """Return the bound of what a step starts from."""
    return _of_residual(alpha, change(measured, depths), depths, dtype, scale)


def _of_residual(alpha: float, residual: Bound, depths: Depths, dtype: str, scale: object) -> Bound:
    of_residual = (residual + step_rounding(alpha, depths)) / (1 - Fraction(alpha))
    return min(of_residual, 1 + mass(alpha, depths)) + cast(alpha, depths, dtype, scale)


def sweep(alpha: float, moved: Fraction, before: Fraction, after: Fraction) -> Fraction:
    """Return the change of a sweep that moves the ranks by `moved`, given their sums before and after it."""
    a = Fraction(alpha)
    return (moved + (1 - a) / a * abs(after - before)) / after


def one_rank(bound: float, sum_: float, n: int) -> Bound:
    """Return the bound of the error of each of n ranks, given that of their L1 error and their sum as computed."""
    sum_error = abs(1 - Fraction(sum_)) + gamma(grouped_sum(n)) * Fraction(sum_)
    return min(Fraction(bound), (Fraction(bound) + sum_error) / 2)


def group(
    alpha: float, measured: tuple[float, float], depths: Depths, depth_of_sum: int, dtype: str = "float64",
    scale: object = 1,
) -> Bound:  # fmt: skip
    """Return the bound of the ranks of a group after a step, given the change of the step in it and its sum."""
    of_rank, of_sum = gamma(rank(depths)), gamma(depth_of_sum + 1)
    if math.inf in (of_rank, of_sum) or of_rank >= 1 or of_sum >= 1:
        return math.inf
    moved, least_sum = Fraction(measured[0]) * (1 + of_sum), Fraction(measured[1]) * (1 - of_sum)
    step_error = Fraction(alpha) * moved / least_sum + of_rank / (1 - of_rank)
    of_result = (U if scale == "n" else 0) + (U32 if dtype == "float32" else 0)
    return min(2 * step_error / (1 - Fraction(alpha)), Fraction(2)) + of_sum + of_result * (1 + of_sum)


# --- rounding errors of a residual -------------------------------------------------------------------------------


def pushed_at_vertex(pushed: float) -> Fraction:
    """Return what a push adds at its vertex."""
    return U * abs(Fraction(pushed))


def pushed_along_edges(alpha: float, pushed: float, depth: int, out_weight: float, after: Iterable[float]) -> Fraction:
    """Return what a push adds along the edges, given the entries of r after each addition."""
    contributions = Fraction(alpha) * abs(Fraction(pushed)) * (1 + depth)
    return U * (contributions + _magnitudes(after)) + _underflow(out_weight)


def computed_anew(alpha: float, y: float, depth: int, out_weight: float, after: Iterable[float]) -> Fraction:
    """Return what the contributions of a vertex add to a residual that is computed from y."""
    contributions = Fraction(alpha) * abs(Fraction(y)) * depth
    return U * (contributions + _magnitudes(after)) + _underflow(out_weight)


def seeded(depth_of_v: int) -> Fraction:
    """Return the rounding errors of a residual that begins as v."""
    return U * depth_of_v


def changed_row(
    alpha: float, before: float, after: float, depth: int, out_weights: tuple[float, float], left: float,
    additions: Iterable[float],
) -> Fraction:  # fmt: skip
    """Return what a change of the out-edges of a vertex adds, where y_u changes from `before` to `after`."""
    a, b = Fraction(before), Fraction(after)
    contributions = Fraction(alpha) * depth * (abs(a) + 3 * abs(b))
    at_vertex = abs(Fraction(left)) + abs(b - a)
    return U * (at_vertex + contributions + _magnitudes(additions)) + sum(map(_underflow, out_weights), Fraction(0))


def centered(norm: float, norm_step: float, depth_of_v: int) -> Fraction:
    """Return what a change of c adds."""
    return U * (Fraction(norm_step) + (2 + depth_of_v) * Fraction(norm))


def _magnitudes(values: Iterable[float]) -> Fraction:
    return sum((abs(Fraction(value)) for value in values), Fraction(0))


def _underflow(out_weight: float) -> Fraction:
    return Fraction(out_weight) / 2**1075


# --- bounds of a residual and of pushes --------------------------------------------------------------------------


def residual_norm(alpha: float, norm_step: float, sum_y: float) -> Fraction:
    """Return the bound without rounding."""
    a = Fraction(alpha)
    return a * Fraction(norm_step) / (Fraction(sum_y) * (1 - a))


def residual_sums(alpha: float, n: int, norm: float, sum_y: float, depth_of_v: int) -> Fraction:
    """Return what the rounding of the sums and of the ranks adds."""
    d = U * (blocked_sum(n) + 8 + depth_of_v)
    return 3 * d * Fraction(norm) / (Fraction(sum_y) * (1 - Fraction(alpha))) + d


def residual_rounding(alpha: float, rho: Fraction, sum_y: float) -> Fraction:
    """Return what the rounding errors of r add."""
    return 2 * rho / (Fraction(sum_y) * (1 - Fraction(alpha)))


def residual(alpha: float, n: int, sums: tuple[float, float, float], rho: Fraction, depth_of_v: int) -> Fraction:
    """Return the bound of the ranks of a residual, given the sums of y, |r| and |r - R v|."""
    sum_y, norm, norm_step = sums
    of_sums = residual_sums(alpha, n, norm, sum_y, depth_of_v)
    return residual_norm(alpha, norm_step, sum_y) + of_sums + residual_rounding(alpha, rho, sum_y)


def pushed_residual(alpha: float, touched: int, sum_r: float) -> Fraction:
    """Return E."""
    a = Fraction(alpha)
    return a * Fraction(sum_r) * (1 + U * (blocked_sum(touched) + 2)) / (1 - a)


def pushed_rounding(alpha: float, touched: int, sum_: float, rho: Fraction) -> Fraction:
    """Return F."""
    return rho / (1 - Fraction(alpha)) + U * Fraction(sum_) * (1 + U * (blocked_sum(touched) + 2))


def pushed_gap(alpha: float, touched: int, sums: tuple[float, float], rho: Fraction) -> Bound:
    """Return the difference of two entries of y + r above which their order is proved, given R and Q."""
    of_rounding = pushed_rounding(alpha, touched, sums[1], rho)
    if of_rounding > Fraction(sums[1]) / 2**21:
        return math.inf
    return pushed_residual(alpha, touched, sums[0]) + of_rounding


def pushed(alpha: float, touched: int, sums: tuple[float, float], rho: Fraction) -> Bound:
    """Return the bound of ranks by pushes."""
    d = U * (blocked_sum(touched) + 4)
    return min(Fraction(2), 2 * (1 + d) * pushed_gap(alpha, touched, sums, rho) / Fraction(sums[1]) + d)


def _parts(terms: int, size: int) -> int:
    return -(-terms // size)
