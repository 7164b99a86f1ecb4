"""A solution and its residual that follow a changing graph: local pushes reduce the residual, which proves the ranks.

Let alpha be the damping factor, v the teleport distribution, P the matrix of the normalized weights (the row of a
dangling vertex is empty), and let the dangling mass be distributed by v as well. The PageRank x* of the graph is then
y* / sum(y*), where for any constant c > 0

    y* = c v + alpha P^T y*.                                                                                 (1)

For any y, let r = c v + alpha P^T y - y be its residual, R = sum(r), S = sum(y), and D(y) the sum of y over the
dangling vertices. Summing r gives (1 - alpha) S + alpha D(y) = c - R. One step G of the power iteration from
x = y / S therefore satisfies G x - x = (r - R v) / S, and as G is a contraction with factor alpha in L1,

    ||x - x*|| <= ||G x - x|| / (1 - alpha) = ||r - R v|| / (S (1 - alpha)) <= (||r|| + |R|) / (S (1 - alpha)).  (2)

When out-edges of u are added or removed, y_u is multiplied by the ratio of the new and the old out-weight of u. The
contributions along the remaining edges then stay the same, so that r changes only at u and at the targets of the edges
that are added or removed. When vertices are added, c v is extended to each new vertex (by 0 if v is given), which
changes no other entry. A push of vertex u adds r_u to y_u, sets r_u to 0 and adds alpha P_ut r_u to r_t for each target
t, so that ||r|| falls by at least (1 - alpha) |r_u|. Neither an update nor a push takes a pass over all edges.

Pushes are made in rounds. The threshold of the first rounds falls from the largest residual per edge, so that a few
large residuals spread to the vertices near them. Later rounds are Gauss-Seidel sweeps over all vertices, over-relaxed
as long as that converges faster. Their thresholds leave a part of ||r|| to vertices that are not pushed, so that each
round without relaxation reduces ||r|| by a constant factor.

The slowest mode of a sweep is the stationary vector of P, along which entries of r have the same sign. The solution x*
does not depend on c, and a change of c by -R changes r to r - R v, of sum 0: the same bound (2) with less of that mode.
As this changes all of r, it is done only after rounds that pushed a large part of the graph.

The stored r differs from the exact residual of y in L1 by at most the sum of the rounding errors of all additions to it
since it was last computed from y, and of the terms added; the kernels accumulate bounds of these. The part of
r_u that rounding does not add to y_u remains in r_u. This module imports Numba.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prplugin.cpu import push_kernels
from prplugin.cpu.sums import total
from prplugin.graph.changes import expand_values
from prplugin.graph.update import ChangingEdges, Plan
from prplugin.numerics.rounding import rounding_depth
from prplugin.types.edges import Floats, Integers

UNIT_ROUNDOFF = 2.0**-53

THRESHOLD_FACTOR = 0.4
"""Factor by which the threshold of a push falls from one round to the next."""

CANDIDATE_FACTOR = 4.0
"""Multiple of the mean residual at the tolerance above which a vertex is a candidate for the first rounds.

Later rounds examine all vertices.
"""

MAX_CANDIDATE_FRACTION = 1 / 8
"""Fraction of the vertices that are candidates above which all vertices are examined, in their order."""

UNPUSHED_FRACTION = 0.9
"""Maximum fraction of ||r|| that a round over all vertices leaves on vertices that are not pushed."""

FIRST_UNPUSHED_FRACTION = 2.0
"""The same for the first of these rounds. It takes less time, and suffices if the bound is just above the tolerance."""

FAST_RATIO = 0.5
"""Ratio of the bounds after and before a round without relaxation above which it is not fast enough."""

SLOW_RATIO = 0.8
"""Ratio of the bounds after and before a round above which relaxation is reduced."""

MIN_CENTERED_FRACTION = 1 / 4
"""Fraction of the edges that a round spends above which c is changed afterwards."""

ROUNDING_MARGIN = 1 + 2.0**-20
"""Factor that covers the rounding errors of the bounds computed here and accumulated in the kernels."""


class Residual:
    """An approximate solution y of (1) and its residual.

    `v`: The teleport distribution; None if it is uniform.
    `r`: The residual as computed.
    `rounding_error`: Bound on its L1 difference from the exact residual, in units of 2**-53; an array of one.
    `c`: The constant of (1), per vertex if v is uniform.
    `costs`: Cost of a push of each vertex in edges; float32.
    """

    def __init__(self, edges: ChangingEdges, alpha: float, personalization: Floats | None, ranks: Floats) -> None:
        """Compute the residual of ranks of sum 1 with one pass over the edges."""
        self.alpha, self.v = alpha, personalization
        self.c = 1.0 if personalization is None else float(edges.n)
        self.y: Floats = ranks * (edges.n / (1 - alpha + alpha * total(ranks[edges.out_weight == 0])))
        self.recompute(edges)

    @property
    def _depth_of_v(self) -> int:
        """Upper bound of the roundings in an entry of v: those of the sum of the given values and of a division."""
        return 0 if self.v is None else rounding_depth(self.y.size) + 3

    def recompute(self, edges: ChangingEdges) -> None:
        """Compute r from y, with one pass over the edges."""
        self.r: Floats = (self.c if self.v is None else self.c * self.v) - self.y
        # The subtraction rounds once, and so does c v if v is given.
        self.rounding_error = np.array([total(np.abs(self.r)) + (self._depth_of_v + 1) * self.c])
        out = edges.out_edges
        self.costs: Any = (out.ends - out.begins + push_kernels.PUSH_COST).astype(np.float32)
        push_kernels.add_contributions(
            out.begins, out.ends, out.indices, out.weights, edges.out_weight, self.y, self.alpha, self.r, edges.depth,
            self.rounding_error,
        )  # fmt: skip

    def apply(self, edges: ChangingEdges, plan: Plan) -> None:
        """Update r for a plan that was committed to the edges."""
        self.costs[plan.rows] = plan.ends - plan.begins + push_kernels.PUSH_COST
        push_kernels.change_rows(
            plan.rows, *plan.removed, *plan.added, plan.old_out_weight, plan.out_weight,
            self.y, self.alpha, self.r, edges.depth, self.rounding_error,
        )  # fmt: skip

    def add_vertices(self, n: int, positions: Integers | None) -> None:
        """Extend y and r to n vertices by vertices without edges; see `expand_values`."""
        new = self.c if self.v is None else 0.0
        self.costs = expand_values(self.costs, n, positions, push_kernels.PUSH_COST)
        self.y, self.r = expand_values(self.y, n, positions, new), expand_values(self.r, n, positions, 0.0)
        if self.v is not None:
            self.v = expand_values(self.v, n, positions, 0.0)

    def push(
        self, edges: ChangingEdges, tol: float, max_edges: float, bound: float, sum_y: float
    ) -> tuple[float, float, int]:
        """Push until bound (2) is at most `tol`, or until that is expected to take more than `max_edges` edges.

        `bound` and `sum_y` are the first and the last value of `bounds`. Return their new values, and the number of
        edges spent.
        """
        out, spent, n = edges.out_edges, 0, edges.n
        scale = sum_y * (1 - self.alpha)
        candidates = np.empty(n, out.indices.dtype)
        candidate_min = CANDIDATE_FACTOR * tol * scale / n

        def push(count: int, is_candidate: Any, threshold: float, relaxation: float) -> tuple[int, float, int]:
            return push_kernels.push(  # type: ignore[no-any-return]
                candidates, count, is_candidate, candidate_min, out.begins, out.ends, out.indices, out.weights,
                edges.out_weight, self.y, self.alpha, self.r, edges.depth, self.rounding_error, threshold, relaxation,
            )  # fmt: skip

        is_candidate = np.zeros(n, np.bool_)
        count, largest = push_kernels.find_candidates(self.r, candidate_min, candidates, is_candidate)
        threshold = largest * THRESHOLD_FACTOR / push_kernels.PUSH_COST
        while (
            bound > tol
            and spent < n
            and count < MAX_CANDIDATE_FRACTION * n
            and threshold * push_kernels.PUSH_COST > candidate_min
        ):
            round_edges, norm_change, count = push(count, is_candidate, threshold, 1.0)
            spent += round_edges
            bound += norm_change / scale  # an estimate suffices
            threshold *= THRESHOLD_FACTOR
        # A push with more than the least relaxation could increase ||r||; the greatest is about the mean of that and
        # the optimum for symmetric matrices.
        least = 2 / (1 + self.alpha)
        greatest, relaxation = least / 2 + 1 / (1 + math.sqrt(1 - self.alpha**2)), 1.0
        if spent > 0:
            bound, _, sum_y = self.bounds()
        unpushed = FIRST_UNPUSHED_FRACTION if bound < FIRST_UNPUSHED_FRACTION * tol else UNPUSHED_FRACTION
        while bound > tol and spent < max_edges:
            scale = sum_y * (1 - self.alpha)
            threshold = unpushed * bound * scale / (edges.m + push_kernels.PUSH_COST * n)
            count = push_kernels.select(self.r, self.costs, threshold, candidates)
            round_edges, _, _ = push(count, None, threshold, relaxation)
            spent, previous_bound = spent + round_edges, bound
            bound, _, sum_y = self.bounds(center=round_edges > MIN_CENTERED_FRACTION * edges.m)
            ratio = bound / previous_bound
            if not ratio < 1:
                if unpushed == UNPUSHED_FRACTION and relaxation <= least:
                    break
                relaxation = min(relaxation, least)
            # The bound falls geometrically, after a few rounds.
            elif spent > max_edges / 4 and spent + round_edges * math.log(tol / bound) / math.log(ratio) > max_edges:
                break
            elif relaxation == 1.0 and ratio > FAST_RATIO:
                relaxation = greatest
            elif ratio > SLOW_RATIO:
                relaxation = (relaxation + least) / 2
            unpushed = UNPUSHED_FRACTION
        return bound, sum_y, spent

    def bounds(self, *, center: bool = False) -> tuple[float, float, float]:
        """Return the bound (2) on ||x - x*||, the part of it due to the rounding errors of r, and the sum of y.

        If `center`, change c afterwards, so that R is about 0.
        """
        sums = np.empty(4)
        push_kernels.norms(self.y, self.r, self.v, self.c, center, self.rounding_error, sums)
        self.c, sum_y, norm_r, norm_step = sums.tolist()
        if not sum_y > 0:
            return math.inf, math.inf, 1.0
        if center:
            self.rounding_error += self._depth_of_v * norm_r
        depth = (push_kernels.BLOCK_TERMS + -(-self.r.size // push_kernels.BLOCK_TERMS) + 4) * UNIT_ROUNDOFF
        scale = sum_y * (1 - self.alpha)
        # An error of r changes R by at most its own L1 norm, and R v, as v sums to 1, by as much in L1. So it counts
        # twice, and so do the rounding errors of the sums.
        rounding = 2 * (UNIT_ROUNDOFF * float(self.rounding_error[0]) + depth * norm_r) / scale * ROUNDING_MARGIN
        # The last term covers the rounding errors of sum(y) and of each quotient by it.
        return norm_step / scale * ROUNDING_MARGIN + rounding + depth, rounding, sum_y

    def ranks(self, sum_y: float) -> Floats:
        """Return y divided by its sum."""
        # Replacing a negative entry by 0 moves it closer to x*, whose entries are not negative.
        ranks: Any = np.maximum(self.y, 0.0)
        ranks /= sum_y
        return ranks  # type: ignore[no-any-return]
