"""A solution and its residual that follow a changing graph: local pushes reduce the residual, which proves the ranks.

Let alpha be the damping factor, v the teleport distribution, P the matrix of the normalized weights (the row of a
dangling vertex is empty), and let the dangling mass be distributed by v as well. The PageRank x* of the graph is then
y* / sum(y*), where for any constant c > 0

    y* = c v + alpha P^T y*.                                                                                 (1)

For any y, let r = c v + alpha P^T y - y be its residual, R = sum(r), S = sum(y), and D(y) the sum of y over the
dangling vertices. Summing r gives (1 - alpha) S + alpha D(y) = c - R. One step G of the power iteration from
x = y / S therefore satisfies G x - x = (r - R v) / S, and as G is a contraction with factor alpha in L1,

    ||x - x*|| <= ||G x - x|| / (1 - alpha) = ||r - R v|| / (S (1 - alpha)) <= (||r|| + |R|) / (S (1 - alpha)).  (2)

When the out-edges of u change, r changes only at the old and new targets of u. When vertices are added, c v is extended
by 1 per new vertex (0 if v is given), which changes no other entry. A push of vertex u adds r_u to y_u, sets r_u to 0
and adds alpha P_ut r_u to r_t for each target t, so that ||r|| falls by at least (1 - alpha) |r_u|. Neither an update
nor a push takes a pass over all edges.

Pushes are made in rounds, as Gauss-Seidel sweeps, and over-relaxed as long as that converges fast. The threshold of a
round falls from the largest residual per edge, so that a few large residuals spread to the vertices near them before a
round examines all vertices. Later thresholds leave less than half of ||r|| to vertices that are not pushed, so that
each round without relaxation reduces ||r|| by a constant factor.

The stored r differs from the exact residual of y in L1 by at most the sum of the rounding errors of all additions to it
since it was last computed from y, and of the terms added; the kernels accumulate bounds of these. What rounding keeps
from y_u stays in r_u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.update import ChangingEdges, expand_values
from prplugin.numerics.rounding import rounding_depth
from prplugin.types.edges import Floats, Integers

__all__ = ["Residual"]

UNIT_ROUNDOFF = 2.0**-53

THRESHOLD_FACTOR = 0.4
"""Factor by which the threshold of a push falls from one round to the next."""

CANDIDATE_FACTOR = 4.0
"""Multiple of the mean residual at the tolerance above which a vertex is a candidate for the first rounds.

Later rounds examine all vertices.
"""

UNPUSHED_FRACTION = 0.5
"""Fraction of ||r|| that the smallest threshold leaves to vertices that are not pushed."""

SLOW_RATIO = 0.75
"""Ratio of the bounds after and before a round above which relaxation is reduced."""

LEAST_RELAXATION = 1.01
"""Relaxation that is not reduced further."""

ROUNDING_MARGIN = 1 + 2.0**-20
"""Factor that covers the rounding errors of the bounds computed here and accumulated in the kernels."""


@dataclass
class Residual:
    """An approximate solution y of (1) and its residual.

    `teleport`: c v; None if it is 1 for each vertex.
    `r`: The residual as computed.
    `rounding_error`: Bound on its L1 difference from the exact residual, in units of 2**-53; an array of one.
    `scale`: c, if `teleport` is given.
    """

    alpha: float
    teleport: Floats | None
    y: Floats
    r: Floats
    rounding_error: Floats
    scale: float

    @property
    def _distribution(self) -> Floats | None:
        """The vector v, of sum 1; None if it is uniform."""
        return None if self.teleport is None else self.teleport / self.scale

    @classmethod
    def of(cls, edges: ChangingEdges, alpha: float, personalization: Floats | None, ranks: Floats) -> Residual:
        """Return the residual of ranks of sum 1, computed with one pass over the edges."""
        n = edges.n
        dangling = total(ranks[edges.out_weight == 0])
        y = ranks * (n / (1 - alpha + alpha * dangling))
        teleport = None if personalization is None else personalization * n
        residual = cls(alpha, teleport, y, np.empty(n), np.zeros(1), n)
        residual.recompute(edges)
        return residual

    def recompute(self, edges: ChangingEdges) -> None:
        """Compute r from y, with one pass over the edges."""
        self.r = (1.0 if self.teleport is None else self.teleport) - self.y
        # The subtraction rounds once. The values of a given v carry the roundings of their sum and of a division.
        error = total(np.abs(self.r)) + (
            0.0 if self.teleport is None else (rounding_depth(self.y.size) + 4) * self.y.size
        )
        self.rounding_error = np.array([error])
        self.add_contributions(edges, np.arange(self.y.size), 1.0)

    def add_contributions(self, edges: ChangingEdges, rows: Integers, factor: float) -> None:
        """Add `factor` times the contributions of the vertices `rows` along their out-edges to r."""
        from prplugin.cpu import push_kernels  # imports Numba

        out = edges.out_edges
        push_kernels.transfer(
            rows, out.begins, out.ends, out.indices, out.weights, edges.out_weight,
            self.y, factor * self.alpha, self.r, edges.depth, self.rounding_error,
        )  # fmt: skip

    def add_vertices(self, n: int, positions: Integers | None) -> None:
        """Extend y and r to n vertices, of which the new ones have no edges yet; see `expand_values`."""
        new = 1.0 if self.teleport is None else 0.0
        self.y, self.r = expand_values(self.y, n, positions, new), expand_values(self.r, n, positions, 0.0)
        if self.teleport is not None:
            self.teleport = expand_values(self.teleport, n, positions, 0.0)

    def push(self, edges: ChangingEdges, tol: float, max_edges: float) -> tuple[float, float, int]:
        """Push until bound (2) is at most `tol`, or until that is expected to take more than `max_edges` edges.

        Return the first and the last value of `bounds`, and the number of edges spent.
        """
        from prplugin.cpu import push_kernels  # imports Numba

        out, spent, n = edges.out_edges, 0, edges.n
        bound, _, sum_y = self.bounds()
        scale = sum_y * (1 - self.alpha)
        # Above the first value, a push could increase ||r||; the second is optimal for symmetric matrices.
        relaxation = (2 / (1 + self.alpha) + 2 / (1 + math.sqrt(1 - self.alpha**2))) / 2
        candidates, is_candidate = np.empty(n, out.indices.dtype), np.zeros(n, np.bool_)
        candidate_min = CANDIDATE_FACTOR * tol * scale / n
        count, largest = push_kernels.find_candidates(self.r, candidate_min, candidates, is_candidate)
        threshold = largest / push_kernels.PUSH_COST
        while bound > tol and spent < max_edges:
            least = UNPUSHED_FRACTION * bound * scale / (edges.m + push_kernels.PUSH_COST * n)
            threshold = max(threshold * THRESHOLD_FACTOR, least)
            if threshold * push_kernels.PUSH_COST < candidate_min:  # residuals this small are numerous
                candidates, count, candidate_min = np.arange(n, dtype=candidates.dtype), n, math.inf
            round_edges, norm_change, count = push_kernels.push(
                candidates, count, is_candidate, candidate_min, out.begins, out.ends, out.indices, out.weights,
                edges.out_weight, self.y, self.alpha, self.r, edges.depth, self.rounding_error, threshold, relaxation,
            )  # fmt: skip
            spent, previous_bound = spent + round_edges, bound
            bound += norm_change / scale
            if bound > tol and threshold > least:
                continue  # an estimate suffices
            bound, _, sum_y = self.bounds()
            scale = sum_y * (1 - self.alpha)
            if threshold > least:
                continue
            if bound > SLOW_RATIO * previous_bound and relaxation > LEAST_RELAXATION:
                relaxation = 1 + (relaxation - 1) / 4
            # The bound falls geometrically.
            elif bound >= previous_bound or (
                spent + round_edges * math.log(tol / bound) / math.log(bound / previous_bound) > max_edges
            ):
                break
        return bound, sum_y, spent

    def bounds(self) -> tuple[float, float, float]:
        """Return the bound (2) on ||x - x*||, the part of it due to the rounding errors of r, and the sum of y."""
        from prplugin.cpu import push_kernels  # imports Numba

        sums = np.empty(4)
        push_kernels.norms(self.y, self.r, self._distribution, sums)
        sum_y, _, norm_r, norm_step = sums.tolist()  # norm_step = ||r - R v||
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
