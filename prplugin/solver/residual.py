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

The stored r differs from the exact residual of y in L1 by at most the sum of the rounding errors of all additions to it
since it was last computed from y, and of the terms added; the kernels accumulate bounds of these. If rounding prevents
y_u from taking all of r_u, the remainder stays in r_u.
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

SLICES_PER_PASS = 8
"""Number of slices into which pushes worth one pass over the edges are divided; progress is checked after each."""

MIN_SLICE_EDGES = 1 << 14
"""Number of edges added to each slice, so that checks stay cheap on small graphs."""

GOAL_FRACTION = 0.95
"""Fraction of the tolerance that pushes aim at, so that the bound computed afterwards meets it."""

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

    def push(self, edges: ChangingEdges, tol: float, max_edges: int) -> tuple[float, float, int]:
        """Push until bound (2) is at most `tol`, or until that is expected to take more than `max_edges` edges.

        Return the first and the last value of `bounds`, and the number of edges spent.
        """
        from prplugin.cpu import push_kernels  # imports Numba

        out = edges.out_edges
        slice_edges, spent, goal = edges.m // SLICES_PER_PASS + MIN_SLICE_EDGES, 0, GOAL_FRACTION * tol
        bound, _, sum_y = self.bounds()
        while bound > tol and spent < max_edges + MIN_SLICE_EDGES:
            slice_spent: int = push_kernels.push(
                out.begins, out.ends, out.indices, out.weights, edges.out_weight, self.y, self.alpha, self.r,
                edges.depth, self.rounding_error, goal * sum_y * (1 - self.alpha), slice_edges,
            )  # fmt: skip
            spent, previous_bound = spent + slice_spent, bound
            bound, _, sum_y = self.bounds()
            if slice_spent < slice_edges:
                # ||r|| has reached the goal, but (2) also has R and the rounding errors.
                goal *= min(0.9, 0.9 * tol / bound)
            elif (
                bound >= previous_bound
                # The bound falls geometrically per slice.
                or spent + slice_edges * math.log(tol / bound) / math.log(bound / previous_bound)
                > max_edges + MIN_SLICE_EDGES
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
