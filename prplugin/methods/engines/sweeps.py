"""Where plain steps lead to, found in fewer passes over the edges: sweeps in place, in float32, extrapolated.

If a plain step changed x by r, the exact ranks are x + d, where

    d = alpha * (P^T d + D(d) * w) + r.

Solved to a few digits, that is a start from which one more plain step proves as many digits more: so d may be found in
any way. Here it is by Gauss-Seidel: a sweep goes through the rows, and uses at once what it has found. Edges from a
vertex to itself are solved for. What d sums to, which is 0 but for rounding, is put back in proportion to v. Nobody
reads a dangling vertex: so none is swept, and what they get together is known from those that they get it from. The
others are numbered anew, in the order in which they are swept.

**The same bits for any number of threads.** The rows are cut into `STREAMS` runs, and each of these into `TURNS`
pieces. All first pieces are swept first, then all second ones, and so on. A piece reads new values of its own, as far
as it has come, and of pieces at least `STREAMS` before it; of all others it reads old ones. So it waits for no more
than those before it, and as many threads as there are runs hardly ever wait for each other.

**Windows.** Contributions of one sweep lie behind those of the one before. `WINDOW` sweeps are then extrapolated, as
plain steps are: see `prplugin.numerics.extrapolation`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from prplugin.cpu.crew import Crew, Piece
from prplugin.cpu.sums import total
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.numerics.extrapolation import leap_weights
from prplugin.types.edges import Floats, Integers

__all__ = ["Sweeps", "worth_from"]

STREAMS = 4
TURNS = 8
WINDOW = 10
"""Sweeps between extrapolations: docs/decisions/0012-sweeps-between-plain-steps.md."""

MOST = 6.7
"""Decimal digits that float32 gives of the solution, about."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The in-edges of vertices that have out-edges, in the order in which these are swept.

    Attributes
    ----------
    live : array of uint32
        The vertices, in that order.
    pieces : list of (int, int)
        The first of each piece, as they are swept, and the one after its last.
    ends : array of offsets
        Where the places of each vertex begin, and where those of the last one end, in whole groups.
    places : array of uint32
        Where each edge's source is read.
    shares : array of float32, or None
        What each place is multiplied by; None: 1.
    out : array of float32
        What a vertex's contribution is multiplied by to be its value: its out-weight, or 1 where edges have shares.
    lost : array of float32, or of one that stands for all
        What a vertex's contribution is multiplied by to be what dangling ones get of it.
    loops : array of float32, or None
        What share of a vertex's rank goes to itself. None: nowhere any.
    """

    live: Integers
    pieces: list[Piece]
    ends: Integers
    places: Integers
    shares: Any
    out: Any
    lost: Any
    loops: Any


_layouts: WeakKeyDictionary[Adjacency, _Layout] = WeakKeyDictionary()


class Sweeps:
    """Solves for what is left after a step.

    Parameters
    ----------
    target, teleport : arrays of n float64, or of one that stands for all
        w, and (1 - alpha) * v.
    """

    def __init__(self, problem: Problem, target: Floats, teleport: Floats, threads: int) -> None:
        from prplugin.cpu import sweep_kernels as kernels  # imports Numba

        self._kernels = kernels
        adjacency = problem.adjacency
        layout = _layouts.get(adjacency)
        if layout is None:
            layout = _layouts[adjacency] = _laid_out(adjacency, threads, kernels)
        self._layout, self.live = layout, layout.live
        self._crew = Crew([(turn, turn + 1) for turn in range(len(layout.pieces))], threads)
        self._alpha = problem.alpha
        self._target, self._target_lost = self._parted(target, adjacency.n)
        self._teleport, self._teleport_lost = self._parted(teleport, adjacency.n)
        # What stays is solved for: c * out = alpha * (sum + loops * c * out) + ...
        stays = layout.loops
        whole = layout.out if stays is None else layout.out * (1 - problem.alpha * stays.astype(np.float64))
        self._scale = np.reciprocal(whole).astype(np.float32, copy=False)

    def _parted(self, vector: Floats, n: int) -> tuple[Floats, float]:
        """Give the entries of the vertices that are swept, and the sum of the others."""
        if vector.size == 1:
            return vector, float(vector[0]) * (n - self.live.size)
        own = vector[self.live]
        return own, total(vector) - total(own)

    def solve(self, ranks: Floats, moves: Any, goal: float, limit: int) -> tuple[Floats, float, int]:
        """Find d.

        Parameters
        ----------
        ranks : array of n float64
            x + r.
        moves : array of n float32
            r.
        goal : float
            What a sweep may change to be the last, if float32 can tell.
        limit : int
            The most sweeps.

        Returns
        -------
        ranks : array of n float64
            x + d, but x + r of dangling vertices.
        gained : float
            What d is more than r on all of these together.
        count : int
            How many sweeps that took.
        """
        left = np.empty(self.live.size, np.float32)
        self._share(lambda _, *own: np.take(moves, self.live[slice(*own)], out=left[slice(*own)]))
        gained, count = self._solve(left, float(moves.sum(dtype=np.float64)), goal, limit)
        further = ranks.copy()

        def add(_: int, first: int, last: int) -> None:
            further[self.live[first:last]] += left[first:last]

        self._share(add)
        return further, gained, count

    def _solve(self, left: Any, whole: float, goal: float, limit: int) -> tuple[float, int]:
        """Replace r of the vertices that are swept by d - r; `whole` is the sum of r of all."""
        layout, n = self._layout, self.live.size
        iterates = np.empty((WINDOW + 1, n + 1), np.float32)
        iterates[:, n] = 0
        sums = np.empty((len(layout.pieces), 2))

        def begin(piece: int, first: int, last: int) -> None:
            own = left[first:last]
            np.divide(own, layout.out[first:last], out=iterates[0, first:last])
            sums[piece] = own.sum(dtype=np.float64), np.abs(own).sum(dtype=np.float64)

        self._share(begin)
        flowing, norm = (float(column.sum()) for column in sums.T)
        of_dangling = whole - flowing
        values = [(flowing, of_dangling)]
        # In as many stages, of equally many digits each, as float32 needs.
        digits = math.log10(norm / goal) if 0 < goal < norm else MOST
        goal = max(goal, norm / 10 ** (digits / math.ceil(digits / MOST)))
        at, last, before = 0, 0.0, np.inf
        count = 0
        while count < limit:
            count += 1
            change, flowing, dangling = self._sweep(iterates[at : at + 2].reshape(-1), left, *values[-1])
            values.append((flowing, dangling + of_dangling))
            at += 1
            # The next would change as much less as this one has.
            pace = change / last if 0 < change < last else 1.0
            if change * pace <= goal:
                break
            last = change
            if at == WINDOW:
                if change > before / 2:
                    break
                before = change
                self._leap(iterates, values, pace < 1 and math.log(goal / change) / math.log(pace) > WINDOW / 2)
                at, last = 0, 0.0

        def end(_: int, first: int, last: int) -> None:
            own = left[first:last]
            np.subtract(iterates[at, first:last] * layout.out[first:last], own, out=own)

        self._share(end)
        return values[-1][1] - of_dangling, count

    def _sweep(self, iterates: Any, left: Any, flowing: float, dangling: float) -> tuple[float, float, float]:
        kernels, layout, alpha = self._kernels, self._layout, self._alpha
        sums = np.empty((len(layout.pieces), 3))
        base = alpha * dangling * self._target + (flowing + dangling) * self._teleport
        if base.size > 1:
            base, left = np.zeros(1), (left + base).astype(np.float32)
        only = np.float32(base[0])

        def sweep(piece: int, first: int, last: int) -> None:
            kernels.sweep(
                first, last, layout.ends, layout.places, layout.shares, iterates, np.float32(alpha), only, left,
                self._scale, layout.out, layout.lost, sums[piece],
            )  # fmt: skip

        self._share(sweep, STREAMS)
        change, now_flowing, leaking = (float(column.sum()) for column in sums.T)
        lost = alpha * dangling * self._target_lost + (flowing + dangling) * self._teleport_lost
        return change, now_flowing, alpha * leaking + lost

    def _leap(self, iterates: Any, values: list[Any], pays: bool) -> None:
        """Begin a window with the end of the last one, or with what comes of extrapolating it."""
        kernels, pieces = self._kernels, self._layout.pieces
        weights = None
        if pays:
            sums, room = np.zeros((len(pieces), WINDOW, WINDOW)), (WINDOW, kernels.ROOM)
            self._share(lambda piece, *own: kernels.products(*own, iterates, np.empty(room), sums[piece]))
            weights = leap_weights(sums.sum(axis=0))
        if weights is None:
            iterates[0] = iterates[WINDOW]
            values[:] = values[-1:]
            return
        self._share(lambda _, *own: kernels.combine(*own, iterates, weights, np.empty(kernels.ROOM)))
        table = np.array(values[-WINDOW:])
        values[:] = [tuple(table[-1] - weights @ np.diff(table, axis=0))]

    def _share(self, do: Callable[..., object], apart: int | None = None) -> None:
        """Call ``do(piece, first, last)`` for each piece."""
        pieces = self._layout.pieces
        self._crew.work(lambda piece, _: do(piece, *pieces[piece]), apart)


def worth_from(adjacency: Adjacency) -> float:
    """Give how many steps of those left a layout and a few sweeps are worth; infinity where 32 bits hold no place.

    The second term is for their compilation, once a machine: it would be most of a first call on a million edges.
    """
    size = adjacency.m + adjacency.n
    return 12 + min(1e7 / size, 138) if 2 * (adjacency.n + 1) <= 2**32 else math.inf


def _laid_out(adjacency: Adjacency, threads: int, kernels: Any) -> _Layout:
    offsets, sources, weights = adjacency.csc
    offsets, sources = offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")
    out_weight = adjacency.out_weight
    rows = np.flatnonzero(out_weight).astype(np.uint32)
    n, count = rows.size, STREAMS * TURNS
    # Of about equal work, where a row is worth four edges, and of whole groups of rows.
    work = int(offsets[-1]) + 4 * n
    bounds = [
        bisect_left(range(n), work * place // count, key=lambda row: int(offsets[rows[row]]) + 4 * row)
        for place in range(count)
    ]
    runs = list(pairwise([*(bound // kernels.FEW * kernels.FEW for bound in bounds), n]))
    runs = [runs[stream * TURNS + turn] for turn in range(TURNS) for stream in range(STREAMS)]
    pieces = list(pairwise(accumulate((last - first for first, last in runs), initial=0)))
    live, out, loops = np.empty(n, np.uint32), np.empty(n, np.float32), np.empty(n, np.float32)
    places_at_most = adjacency.m + (kernels.GROUP - 1) * n
    ends = np.zeros(n + 1, np.uint32 if places_at_most < 2**32 else np.uint64)
    place = np.full(adjacency.n, n, np.uint32)
    crew = Crew([(turn, turn + 1) for turn in range(count)], threads)
    crew.work(
        lambda turn, _: kernels.arrange(
            *runs[turn], pieces[turn][0], rows, offsets, out_weight, adjacency.weighted, live, place, ends, out
        )
    )
    dangling = np.flatnonzero(out_weight == 0).astype(np.uint32)
    lost = np.zeros(n if dangling.size else 1, np.float32)
    kernels.leak(dangling, place, offsets, sources, weights, out_weight, lost)
    begins = list(accumulate((int(ends[last]) if first < last else 0 for first, last in pieces), initial=0))
    places = np.empty(begins[-1], np.uint32)
    shares = None if weights is None else np.empty(places.size, np.float32)
    looped = []

    def lay_out(turn: int, _: int) -> None:
        first, last = pieces[turn]
        own = ends[first + 1 : last + 1]
        np.add(own, begins[turn], out=own)
        ready = pieces[turn - STREAMS][1] if turn >= STREAMS else 0
        looped.append(
            kernels.lay_out(
                first, last, ready, begins[turn], live, place, offsets, sources, weights, out_weight, places, shares,
                loops,
            )
        )  # fmt: skip

    crew.work(lay_out)
    return _Layout(live, pieces, ends, places, shares, out, lost, loops if any(looped) else None)
