"""Ranks that follow a graph whose edges change: a residual that is kept, pushed locally, and proves the ranks.

Where the dangling mass goes where everybody teleports to, w = v, the PageRank x of a graph is y / sum(y) with

    y = c v + alpha P^T y                                                                                    (1)

for any c > 0; P has empty rows for dangling vertices. For every y, let r = c v + alpha P^T y - y, R its sum and S that
of y. One exact step G from x = y / S gives G x - x = (r - R v) / S, for (1 - alpha) S + alpha D(y) = c - R, and so

    ||x - x*|| <= ||G x - x|| / (1 - alpha) <= (||r|| + |R|) / (S (1 - alpha)).                              (2)

Other out-edges of u change r at its old and new targets alone, and with c v = 1 for each vertex a new one changes no
other entry. To push v, y_v takes r_v, and r_t of each target t what v sends it of that: ||r|| falls by (1 - alpha)
times as much at least. So neither a change nor a push takes a pass over all edges.

What is kept is r as computed. It is off by no more, in L1, than the roundings of all additions to it since it was
computed from y, and of what was added: the kernels add up bounds of these. Where y_v takes r_v, what rounding keeps
from it stays in r_v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from prplugin.cpu.sums import total
from prplugin.graph.update import ChangingEdges, placed
from prplugin.numerics.rounding import rounding_depth
from prplugin.types.edges import Floats, Integers

__all__ = ["Residual"]

U = 2.0**-53

SLICES = 8
"""Of a pass, what is pushed before it is asked whether that is worth it."""

LEAST = 1 << 14
"""Edges that are pushed before that is asked, whatever the graph."""

NEARLY = 0.95
"""Of the tolerance, the bound at which pushes aim."""

SLACK = 1 + 2.0**-20
"""Covers the roundings of what is computed here, and of bounds added up in the kernels."""


@dataclass
class Residual:
    """A solution y of (1) so far, and its residual.

    Attributes
    ----------
    teleport : array of n float64, or None
        c v; None: 1 for each vertex.
    scale : float
        c.
    noise : array of one float64
        What r can be off by, in L1 and units of 2**-53.
    """

    alpha: float
    teleport: Floats | None
    y: Floats
    r: Floats
    noise: Floats
    scale: float

    @property
    def _shares(self) -> Floats | None:
        """The vector v, of sum 1."""
        return None if self.teleport is None else self.teleport / self.scale

    @classmethod
    def of(cls, edges: ChangingEdges, alpha: float, personalization: Floats | None, ranks: Floats) -> Residual:
        """Begin from ranks of sum 1, with one pass over the edges."""
        n = edges.n
        dangling = total(ranks[edges.out_weight == 0])
        y = ranks * (n / (1 - alpha + alpha * dangling))
        teleport = None if personalization is None else personalization * n
        residual = cls(alpha, teleport, y, np.empty(n), np.zeros(1), n)
        residual.renew(edges)
        return residual

    def renew(self, edges: ChangingEdges) -> None:
        """Compute r from y, with one pass over the edges."""
        self.r = (1.0 if self.teleport is None else self.teleport) - self.y
        # Given values of v were added up and divided; a subtraction rounds once.
        off = total(np.abs(self.r)) + (
            0.0 if self.teleport is None else (rounding_depth(self.y.size) + 4) * self.y.size
        )
        self.noise = np.array([off])
        self.add(edges, np.arange(self.y.size), 1.0)

    def add(self, edges: ChangingEdges, rows: Integers, times: float) -> None:
        """Add what some vertices send along their out-edges, so many times."""
        from prplugin.cpu import push_kernels  # imports Numba

        out = edges.out
        push_kernels.transfer(
            rows, out.begins, out.ends, out.members, out.weights, edges.out_weight,
            self.y, times * self.alpha, self.r, edges.depth, self.noise,
        )  # fmt: skip

    def grow(self, n: int, positions: Integers | None) -> None:
        """Make room for new vertices, which have no edges yet."""
        new = 1.0 if self.teleport is None else 0.0
        self.y, self.r = placed(self.y, n, positions, new), placed(self.r, n, positions, 0.0)
        if self.teleport is not None:
            self.teleport = placed(self.teleport, n, positions, 0.0)

    def push(self, edges: ChangingEdges, tol: float, most: int) -> tuple[float, float, int]:
        """Push until (2) is at most `tol`, unless that is likely to take more than `most` edges.

        Returns
        -------
        bound, whole : float
            The first and the last of `bounds`.
        spent : int
            Edges.
        """
        from prplugin.cpu import push_kernels  # imports Numba

        out = edges.out
        slice_, spent, goal = edges.m // SLICES + LEAST, 0, NEARLY * tol
        bound, _, whole = self.bounds()
        while bound > tol and spent < most + LEAST:
            used: int = push_kernels.push(
                out.begins, out.ends, out.members, out.weights, edges.out_weight, self.y, self.alpha, self.r,
                edges.depth, self.noise, goal * whole * (1 - self.alpha), slice_,
            )  # fmt: skip
            spent, before = spent + used, bound
            bound, _, whole = self.bounds()
            if used < slice_:
                goal *= min(0.9, 0.9 * tol / bound)  # ||r|| has come down to it, but (2) has more than that
            elif bound >= before or spent + slice_ * math.log(tol / bound) / math.log(bound / before) > most + LEAST:
                break
        return bound, whole, spent

    def bounds(self) -> tuple[float, float, float]:
        """Return a bound on ||x - x*|| by (2), how much of it is due to the roundings of r, and the sum of y."""
        from prplugin.cpu import push_kernels  # imports Numba

        sums = np.empty(4)
        push_kernels.norms(self.y, self.r, self._shares, sums)
        whole, _, size, moved = sums.tolist()
        depth = (push_kernels.BLOCK + -(-self.r.size // push_kernels.BLOCK) + 4) * U
        scale = whole * (1 - self.alpha)
        # R is off by what r is, and as v sums to 1, so is R v in L1; roundings of the sums count twice as well.
        noise = 2 * (U * float(self.noise[0]) + depth * size) / scale * SLACK
        # The sum of y rounds, and so does each quotient by it.
        return moved / scale * SLACK + noise + depth, noise, whole

    def ranks(self, whole: float) -> Floats:
        """Return y, divided by its sum."""
        ranks: Any = np.maximum(self.y, 0.0)  # entries below 0 are further from x*, which has none
        ranks /= whole
        return ranks  # type: ignore[no-any-return]
