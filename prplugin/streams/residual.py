"""A solution and its residual that follow a changing graph: local pushes reduce the residual, which proves the ranks.

Let alpha be the damping factor, v the teleport distribution, P the matrix of the normalized weights (the row of a
dangling vertex is empty), and let the dangling mass be distributed by v as well. The PageRank x* of the graph is then
y* / sum(y*), where for any constant c > 0

    y* = c v + alpha P^T y*.                                                                                 (1)

For any y, let r = c v + alpha P^T y - y be its residual, R = sum(r), S = sum(y), and D(y) the sum of y over the
dangling vertices. Summing r gives (1 - alpha) S + alpha D(y) = c - R. One step G of the power iteration from
x = y / S therefore satisfies G x - x = (r - R v) / S, and as G is a contraction with factor alpha in L1,

    ||x - x*|| <= ||G x - x|| / (1 - alpha) = ||r - R v|| / (S (1 - alpha)),
    ||G x - x*|| <= alpha ||x - x*|| <= alpha ||r - R v|| / (S (1 - alpha)).                                  (2)

The ranks are those of G x = (y + r - R v) / S, which takes no pass over the edges.

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
r_u that rounding does not add to y_u remains in r_u.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from prplugin.cpu import kernels
from prplugin.cpu.sums import total
from prplugin.numerics import rounding_depth
from prplugin.streams import bounds
from prplugin.streams.host_edges import HostEdges, RowChanges
from prplugin.types.arrays import Array, expand_values
from prplugin.types.edges import Floats, Integers

# A vertex is a candidate for the first rounds above this multiple of the mean residual at the tolerance.
CANDIDATE_FACTOR = 4.0

# A round over all vertices leaves at most this fraction of ||r|| on vertices that are not pushed.
UNPUSHED_FRACTION = 0.9

FAST_RATIO = 0.5  # of the bounds after and before a round, above which rounds without relaxation are not fast enough

MIN_CENTERED_FRACTION = 1 / 4  # fraction of the edges that a round spends above which c is changed afterwards


class Residual:
    """An approximate solution y of (1) and its residual.

    `v`: The teleport distribution; None if it is uniform.
    `c`: The constant of (1), per vertex if v is uniform.
    """

    r: Floats  # the residual as computed
    rounding_error: Floats  # bound on its L1 difference from the exact residual, in units of 2**-53; an array of one
    costs: NDArray[np.float32]  # cost of a push of each vertex in edges; float32
    bound: float  # the bound (2); an estimate if r has changed at the vertices in `changed` since it was computed
    changed: Integers

    def __init__(self, edges: HostEdges, alpha: float, personalization: Floats | None, ranks: Floats) -> None:
        """Compute the residual of ranks of sum 1 with one pass over the edges."""
        self.alpha, self.v = alpha, personalization
        self.c = 1.0 if personalization is None else float(edges.n)
        self.y: Floats = ranks * (edges.n / (1 - alpha + alpha * total(ranks[edges.out_weight == 0])))
        self.recompute(edges)

    @property
    def _depth_of_v(self) -> int:
        """Upper bound of the roundings in an entry of v: those of the sum of the given values and of a division."""
        return 0 if self.v is None else rounding_depth(self.y.size) + 3

    def recompute(self, edges: HostEdges) -> None:
        """Compute r from y, with one pass over the edges."""
        self.r = (self.c if self.v is None else self.c * self.v) - self.y
        # The subtraction rounds once, and so does c v if v is given.
        of_v = 0.0 if self.v is None else (self._depth_of_v + 1) * self.c
        self.rounding_error = np.array([total(np.abs(self.r)) + of_v])
        out = edges.out_edges
        self.costs = (out.ends - out.begins + kernels.PUSH_COST).astype(np.float32)
        kernels.add_contributions(**self._arrays(edges), rounding_error=self.rounding_error)
        self.measure()

    def _arrays(self, edges: HostEdges) -> dict[str, Array | float | None]:
        """Return the arguments by which kernels take the graph, y and r."""
        out = edges.out_edges
        return {
            "begins": out.begins, "ends": out.ends, "indices": out.indices, "weights": out.weights,
            "out_weight": edges.out_weight, "y": self.y, "alpha": self.alpha, "r": self.r, "depth": edges.depth,
        }  # fmt: skip

    def apply(self, edges: HostEdges, plan: RowChanges) -> None:
        """Update r for a plan that was committed to the edges."""
        self.costs[plan.rows] = plan.ends - plan.begins + kernels.PUSH_COST
        changed = np.concatenate([plan.rows, plan.removed.indices, plan.added.indices], dtype=np.int64)
        norm_before = total(np.abs(self.r[changed]))
        kernels.change_rows(
            rows=plan.rows, removed_at=plan.removed.offsets, removed=plan.removed.indices,
            removed_weights=plan.removed.weights, added_at=plan.added.offsets, added=plan.added.indices,
            added_weights=plan.added.weights, old_out_weight=plan.old_out_weight, new_out_weight=plan.out_weight,
            y=self.y, alpha=self.alpha, r=self.r, depth=edges.depth, rounding_error=self.rounding_error,
        )  # fmt: skip
        self.bound += (total(np.abs(self.r[changed])) - norm_before) / self._scale
        self.changed = np.append(self.changed, changed)

    def add_vertices(self, n: int, positions: Integers | None) -> None:
        """Extend y and r to n vertices by vertices without edges; see `expand_values`."""
        new = self.c if self.v is None else 0.0
        self.costs = expand_values(self.costs, n, positions, kernels.PUSH_COST)
        self.y, self.r = expand_values(self.y, n, positions, new), expand_values(self.r, n, positions, 0.0)
        if self.v is not None:
            self.v = expand_values(self.v, n, positions, 0.0)
        if positions is not None:
            self.changed = positions[self.changed].astype(np.int64)

    def push(self, edges: HostEdges, tol: float, max_edges: float) -> int:
        """Push until `bound` is at most `tol`, or until that is expected to take more than `max_edges` edges.

        Return the number of edges spent.
        """
        spent, n, arrays = 0, edges.n, self._arrays(edges)
        selected = np.empty(n, edges.out_edges.indices.dtype)
        if self.changed.size:
            listed_from = CANDIDATE_FACTOR * tol * self._scale / n
            near = np.unique(self.changed)
            near = near[np.abs(self.r[near]) > listed_from]
            is_listed = np.zeros(n, np.bool_)
            selected[: near.size], is_listed[near] = near, True
            norm, sums = total(np.abs(self.r[near])), np.append(np.zeros(2), self.rounding_error)
            # All other residuals together may be as large as they were before.
            goal = max(norm - (self.bound - tol) * self._scale, 0.0)
            spent = kernels.push_listed(
                listed=selected, count=np.array([near.size]), is_listed=is_listed, listed_from=listed_from, goal=goal,
                ratio=0.0, budget=float(n), trial=math.inf, **arrays, sums=sums,
            )  # fmt: skip
            self.rounding_error[0] = sums[2]
            self.measure()
        # A push with more than the least relaxation could increase ||r||; the greatest is about the mean of that and
        # the optimum for symmetric matrices.
        least = 2 / (1 + self.alpha)
        greatest, relaxation = least / 2 + 1 / (1 + math.sqrt(1 - self.alpha**2)), 1.0
        while self.bound > tol and spent < max_edges:
            threshold = UNPUSHED_FRACTION * self.bound * self._scale / (edges.m + kernels.PUSH_COST * n)
            round_edges = kernels.push_all(
                costs=self.costs, selected=selected, threshold=threshold, relaxation=relaxation, **arrays,
                rounding_error=self.rounding_error,
            )  # fmt: skip
            spent, previous_bound = spent + round_edges, self.bound
            self.measure(center=round_edges > MIN_CENTERED_FRACTION * edges.m)
            ratio = self.bound / previous_bound
            if not ratio < 1:
                if relaxation <= least:
                    break
                relaxation = min(relaxation, least)
            # The bound falls geometrically, after a few rounds.
            elif (
                spent > max_edges / 4 and spent + round_edges * math.log(tol / self.bound) / math.log(ratio) > max_edges
            ):
                break
            elif relaxation == 1.0 and ratio > FAST_RATIO:
                relaxation = greatest
        return spent

    @property
    def _scale(self) -> float:
        """Ratio of ||r - R v|| to the bound, without rounding."""
        return self.sum_y * (1 - self.alpha) / (self.alpha or 1.0)

    @property
    def rounding(self) -> float:
        """Part of the bound that is due to the rounding errors of r, which `recompute` removes."""
        return bounds.rounding_of_residual(self.alpha, self.sum_y, float(self.rounding_error[0]))

    def measure(self, *, center: bool = False) -> None:
        """Compute the bound (2) on the error of `ranks`, and the sum of y.

        If `center`, change c afterwards, so that R is about 0.
        """
        sums = np.empty(5)
        kernels.residual_norms(self.y, self.r, self.v, self.c, center, self.rounding_error, sums)
        self.c, self.sum_y, norm_r, norm_step, self.sum_r = sums.tolist()
        self.bound = math.inf
        self.changed = np.empty(0, np.int64)
        if not self.sum_y > 0:
            self.sum_y = 1.0
            return
        if center:
            self.rounding_error += self._depth_of_v * norm_r
        measured = self.sum_y, norm_r, norm_step
        self.bound = bounds.of_residual(
            self.alpha, self.r.size, measured, float(self.rounding_error[0]), self._depth_of_v
        )

    def ranks(self) -> Floats:
        """Return G x after `measure`, with 0 for negative entries, which is closer to x*."""
        ranks = np.empty(self.y.size)
        kernels.residual_ranks(self.y, self.r, self.v, self.sum_r, self.sum_y, ranks)
        return ranks
