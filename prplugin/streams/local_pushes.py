"""Personalized ranks by pushes from the seeds, which touch only vertices near them, with a proved error bound.

Let alpha be the damping factor, v the teleport distribution, P the matrix of the normalized weights (the row of a
dangling vertex is empty), and let the dangling mass be distributed by v as well. As in `prplugin.streams.residual`, the
PageRank is x* = z / sum(z), where z = v + alpha P^T z. Pushes (Andersen, Chung and Lang 2006, "Local graph partitioning
using PageRank vectors") keep y >= 0 and r >= 0, at first 0 and v, such that

    z = y + (I - alpha P^T)^-1 r = q + e,   q = y + r,   e = sum over k >= 1 of (alpha P^T)^k r >= 0.             (1)

Let R be the sum of r over the vertices that have out-edges; r of the others adds nothing to e. Each factor alpha P^T
multiplies a sum by at most alpha, so that

    sum(e) <= E = alpha R / (1 - alpha).                                                                          (2)

With Q = sum(q), the ranks are q / Q. As z / sum(z) - q / Q = (e - sum(e) q / Q) / (Q + sum(e)),

    ||q / Q - x*|| <= 2 sum(e) / (Q + sum(e)) <= 2 E / Q.                                                         (3)

Two exact ranks are in the order of z, and q_i <= z_i <= q_i + E. If q_i - q_j > E, vertex i is higher than vertex j.

**Rounding.** The stored r differs in L1 from the residual of the stored y by at most rho, which the kernels accumulate
(`prplugin.streams.residual`), and the sums q by at most u Q. In (1), z therefore differs from q + e by some f with
||f|| <= F = rho / (1 - alpha) + u Q, and (3) becomes 2 (E + F) / Q. Two entries of f differ by at most F, so that
q_i - q_j has to exceed E + F. The quotients q / Q add the rounding depth of the sum Q and one rounding.

**Work.** Sweeps push what is large per edge; they end when they are expected to take longer than iterations over all
edges, which then start from (q + E / n) / (Q + E) (Wu and others 2021, "Unifying the global and local approaches: an
efficient power iteration with forward push"). Arrays of one entry per vertex are kept between queries, and only touched
entries are cleared: a query takes time in proportion to the edges that it pushes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from prplugin.cpu import kernels, library
from prplugin.graph.edges import Edges
from prplugin.numerics import rounding_depth
from prplugin.options import Options
from prplugin.solver.top_k import Equal, least_gap, order_of
from prplugin.streams import bounds
from prplugin.streams.host_edges import HostEdges
from prplugin.types.array_module import Booleans, Ranks
from prplugin.types.arrays import expand_values, highest
from prplugin.types.edges import Csr, Floats, Integers, PackedRows
from prplugin.types.records import Order

MIN_EDGES = 60_000  # edges below which iterations over all of them take about as long as the calls of a query
PUSH_SLOWDOWN = 6  # approximate time per pushed edge, relative to the time per edge of an iteration over all edges
MAX_SEEDS_FRACTION = 1 / 16  # maximum number of seeds, as a fraction of the budget in pushed edges

# Iterations over all edges where ranks spread fast, and more of them per factor e of the tolerance; pushed edges, as a
# fraction of those of such iterations, after which the rest must be expected to pay.
MIN_STEPS, STEPS_PER_FACTOR, TRIAL_FRACTION = 4, 0.5, 0.06

TOL_FRACTION = 0.98  # fraction of the tolerance that is to be left to the residual; the rest is for rounding errors

# Ratio of the residuals at two checks of a certified order, and number of checks before the tolerance is met.
CHECK_FACTOR, CHECKS = 1 / 8, 4

MAX_OUT_WEIGHT = 2.0**500  # above it, or below its inverse, quotients overflow or lose digits to underflow


class OutEdges(NamedTuple):
    """Out-edges of a graph, as kernels take them."""

    begins: Integers
    ends: Integers
    indices: Integers
    weights: Floats | None
    out_weight: Floats
    depth: int  # most roundings in a contribution
    m: int
    usual: bool  # whether no quotient of a rank and an out-weight overflows or loses digits to underflow

    @classmethod
    def of(cls, edges: Edges | HostEdges) -> OutEdges:
        """Return the out-edges of a graph on the host; they are grouped by source if that was not done before."""
        out_weight, usual = edges.out_weight, True
        if isinstance(edges, Edges):
            (offsets, indices, weights), depth = edges.get(Csr), edges.out_weight_depth + 5
            begins, ends = offsets[:-1], offsets[1:]
        else:
            rows, depth = edges.out_edges, edges.depth
            begins, ends, indices, weights = rows.begins, rows.ends, rows.indices, rows.weights
        if weights is not None:
            positive = out_weight[out_weight > 0]
            usual = not positive.size or bool(positive.max() <= MAX_OUT_WEIGHT and positive.min() >= 1 / MAX_OUT_WEIGHT)
        return cls(begins, ends, indices, weights, out_weight, depth, edges.m, usual)


class _Arrays(NamedTuple):
    """y and r, a mark of the listed vertices, and their list; all but the list are 0 between queries."""

    y: Floats
    r: Floats
    is_listed: Booleans
    listed: Integers


class LocalPushes:
    """Queries of one graph, with the arrays that they share: those of the graph, and as many others as run at once."""

    def __init__(self) -> None:
        self._free: list[_Arrays] = []
        self._edges: OutEdges | None = None

    @staticmethod
    def may_pay(edges: Edges | HostEdges, options: Options, seeds: int) -> bool:
        """Return whether so many seeds may be ranked faster than by iterations over all edges, with a proof."""
        return (
            edges.m >= MIN_EDGES
            and options.rule.proves
            and (options.method, options.max_iter, len(options.method_options)) == ("auto", None, 0)
            # Pushes need the edges by source on the host.
            and (isinstance(edges, HostEdges) or (edges.memory_space == "host" and edges.given is not PackedRows))
            and library.is_available()
            and seeds * kernels.PUSH_COST <= MAX_SEEDS_FRACTION * _budget(edges.n, edges.m, options)
        )

    def forget_edges(self) -> None:
        """Read the edges of the graph again at the next query; the other arrays are kept."""
        self._edges = None

    def rank(
        self, edges: Edges | HostEdges, seeds: tuple[Integers, Floats], options: Options, wanted: Wanted, *,
        equal: Equal | None = None,
    ) -> LocalRanks | None:  # fmt: skip
        """Rank by pushes, until iterations over all edges are expected to take less time; None if weights are extreme.

        `seeds`: Positions, and positive teleport probabilities of sum 1.
        `equal`: Proves that two vertices have equal ranks. If given, the order of the vertices to return is proved.
        """
        if (out := self._edges) is None:
            out = self._edges = OutEdges.of(edges)
        if not out.usual:
            return None
        with self._arrays(edges.n, out.indices.dtype) as arrays:
            return _Pushes(out, options, arrays, *seeds).rank(wanted, equal, _budget(edges.n, out.m, options))

    @contextmanager
    def _arrays(self, n: int, dtype: np.dtype[np.generic]) -> Iterator[_Arrays]:
        """Return a context manager for arrays that the caller clears; after an exception they are not used again."""
        try:
            arrays = self._free.pop()
        except IndexError:
            arrays = None
        if arrays is None or arrays.y.size != n or arrays.listed.dtype != dtype:
            arrays = _Arrays(np.zeros(n), np.zeros(n), np.zeros(n, np.bool_), np.empty(n, dtype))
        yield arrays
        self._free.append(arrays)


class Wanted(NamedTuple):
    """The vertices to return: the highest `top` of `among`, or of all, without `excluded`; None for all of them."""

    top: int | None = None
    among: Integers | None = None
    excluded: Integers | None = None


class LocalRanks(NamedTuple):
    """Ranks of n vertices, of which those at `rows` were touched.

    `met`: Whether the tolerance is met, or the order proved. If not, multiples of ranks for iterations to start from.
    """

    n: int
    rows: Integers
    values: Ranks  # their ranks, in the requested scale and type
    shown: tuple[Integers, Ranks] | None  # positions and ranks of the vertices to return; None for all
    error_bound: float  # proved bound of the L1 error
    passes: int  # pushed edges, in passes over all edges
    met: bool
    order: Order | None
    elsewhere: float  # the rank of every other vertex

    def dense(self) -> Ranks:
        """Return the ranks of all vertices."""
        return expand_values(self.values, self.n, self.rows, self.elsewhere)


def _budget(n: int, m: int, options: Options) -> float:
    """Return the number of edges whose pushes take about as long as iterations over all edges."""
    return options.rule.likely_steps(options.alpha, options.max_iter) * (n + m) / PUSH_SLOWDOWN


class _Pushes:
    """State of one query."""

    residual: float  # R
    sum: float  # Q

    def __init__(self, edges: OutEdges, options: Options, arrays: _Arrays, rows: Integers, values: Floats) -> None:
        self._edges, self._options, self._arrays = edges, options, arrays
        self.n = n = edges.out_weight.size
        arrays.r[rows], arrays.is_listed[rows], arrays.listed[: rows.size] = values, True, rows
        self._count, self._sums, self._spent = np.array([rows.size]), np.zeros(3), 0
        self._sums[2] = rounding_depth(rows.size) + 3  # of the entries of v: their sum, quotient and conversion
        self._cast = bounds.of_cast(options)
        alpha, tol = options.alpha, options.tol - self._cast
        # Ratio R / Q at which (3) is the tolerance; 0 if rounding makes that impossible.
        self.goal = max(tol, 0.0) * TOL_FRACTION * (1 - alpha) / (2 * alpha) if alpha else np.inf
        steps = MIN_STEPS - STEPS_PER_FACTOR * math.log(min(options.tol, 1.0))
        # Pushed edges after which pushes end unless the rest is expected to be within the budget.
        self.trial = TRIAL_FRACTION * steps * (n + edges.m)

    def rank(self, wanted: Wanted, equal: Equal | None, budget: float) -> LocalRanks:
        """Push until the tolerance is met, an order is proved, or `budget` edges are expected not to suffice."""
        order = None
        for check in range(0 if equal is None else CHECKS, -1, -1):
            goal = self.goal / CHECK_FACTOR**check
            self.push(goal, budget if goal > 0 else 0.0)
            if not self.residual <= goal * self.sum:
                break  # iterations are expected to take less time
            if equal is not None:
                order = self.order(wanted, equal, last=check == 0)
                if order is not None:
                    break
        bound = self.bound()
        within = bound <= self._options.tol
        met = within if equal is None else order is not None and (order.proved or within)
        return self.result(wanted, order if met else None, bound, met=met)

    def push(self, ratio: float, budget: float) -> None:
        """Push until R / Q is at most `ratio`, `budget` edges are spent, or a trial shows that more are needed."""
        edges, arrays = self._edges, self._arrays
        self._spent += kernels.push_listed(
            listed=arrays.listed, count=self._count, is_listed=arrays.is_listed, listed_from=0.0, goal=0.0, ratio=ratio,
            budget=budget - self._spent, trial=self.trial - self._spent, begins=edges.begins, ends=edges.ends,
            indices=edges.indices, weights=edges.weights, out_weight=edges.out_weight, y=arrays.y,
            alpha=self._options.alpha, r=arrays.r, depth=edges.depth, sums=self._sums,
        )  # fmt: skip
        self.residual, self.sum = float(self._sums[0]), float(self._sums[1])

    @property
    def rows(self) -> Integers:
        """Positions of the touched vertices."""
        return self._arrays.listed[: self._count[0]]

    @property
    def _measured(self) -> tuple[float, int, tuple[float, float], float]:
        """Arguments of the bounds of `prplugin.streams.bounds`."""
        return self._options.alpha, int(self._count[0]), (self.residual, self.sum), float(self._sums[2])

    def bound(self) -> float:
        """Return the bound (3) with rounding errors, those of scaling and casting included."""
        return bounds.of_pushes(*self._measured) + self._cast

    def _asked(self, wanted: Wanted) -> tuple[Integers, Floats]:
        """Return positions and q of the vertices to choose from; of all vertices those that were touched."""
        rows, arrays = self.rows if wanted.among is None else wanted.among, self._arrays
        kept = None if wanted.excluded is None else ~np.isin(rows, wanted.excluded)
        if wanted.among is None:
            values = np.empty(rows.size)
            kernels.collect_listed(rows, arrays.is_listed, arrays.y, arrays.r, 0, values)
        else:
            values = self[rows]
        return (rows, values) if kept is None else (rows[kept], values[kept])

    def __getitem__(self, rows: Integers) -> Floats:
        """Return q = y + r at some positions."""
        return self._arrays.y[rows] + self._arrays.r[rows]

    def order(self, wanted: Wanted, equal: Equal, *, last: bool) -> Order | None:
        """Return the order of the vertices to return if it is proved, or if it is the last; None if it needs others."""
        gap, (rows, values) = bounds.of_gap(*self._measured), self._asked(wanted)
        k = wanted.top or max(1, rows.size)
        if wanted.among is None:
            if k > rows.size:
                return None
            lowest = np.partition(values, rows.size - k)[rows.size - k] - gap
            if not lowest > 0:
                return None  # vertices that are not touched may be as high
            near = np.flatnonzero(values >= lowest)
            near = near[np.argsort(rows[near])]
            rows, values = rows[near], values[near]
        if not last and not least_gap(values, min(k, rows.size), gap / 2) > gap:
            return None
        positions = rows.astype(np.int64)

        def both_equal(a: int, b: int, _: Floats) -> bool:
            return equal(int(positions[a]), int(positions[b]), self)  # type: ignore[arg-type]  # only entries are read

        order = order_of(values, k, gap / 2, both_equal).at(positions)
        if not order.proved and not last:
            return None
        return replace(order, margin=self.bound())

    def result(self, wanted: Wanted, order: Order | None, bound: float, *, met: bool) -> LocalRanks:
        """Return the ranks, and clear the arrays."""
        arrays, rows, alpha = self._arrays, self.rows.astype(np.int64), self._options.alpha
        ranks: Ranks
        values, shown = np.empty(rows.size), None
        if met and order is not None:
            shown = order.rows, self._requested(self[order.rows])
        elif met and (wanted.among is not None or wanted.top is not None):
            shown = self._highest(wanted)
        kernels.collect_listed(self.rows, arrays.is_listed, arrays.y, arrays.r, 1, values)
        elsewhere = 0.0
        if met:
            ranks = self._requested(values)
        else:
            # z is q + e; the vertices of e are not known, and its sum is at most E.
            elsewhere = alpha * self.residual / (1 - alpha) / self.n
            ranks = values + elsewhere
        passes = -(-self._spent // max(self._edges.m, 1))
        return LocalRanks(self.n, rows, ranks, shown, bound, passes, met, order, elsewhere)

    def _requested(self, values: Floats) -> Ranks:
        ranks = values / self.sum
        return (ranks if self._options.scale == 1 else ranks * self.n).astype(self._options.dtype, copy=False)

    def _highest(self, wanted: Wanted) -> tuple[Integers, Ranks]:
        """Return the vertices to return, in their order; vertices that are not touched follow in order of position."""
        (rows, values), top = self._asked(wanted), wanted.top
        ranks = self._requested(values)
        if wanted.among is not None:
            chosen = slice(None) if top is None else highest(ranks, top)
            return rows[chosen], ranks[chosen]
        assert top is not None
        if top < rows.size:
            near = ranks >= np.partition(ranks, rows.size - top)[rows.size - top]
            rows, ranks = rows[near], ranks[near]
        positive = ranks > 0
        rows, ranks = rows[positive].astype(np.int64), ranks[positive]
        order = np.lexsort((rows, -ranks))[:top]
        rows, ranks = rows[order], ranks[order]
        if rows.size < top:
            known = rows if wanted.excluded is None else np.append(rows, wanted.excluded)
            more = np.setdiff1d(np.arange(min(self.n, known.size + top)), known)[: top - rows.size]
            rows, ranks = np.append(rows, more), np.append(ranks, np.zeros(more.size, ranks.dtype))
        return rows, ranks
