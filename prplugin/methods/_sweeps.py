"""Where plain steps lead to, found in fewer passes over the edges: sweeps in place, in float32, extrapolated.

If a plain step changed x by r, the exact ranks are x + d, where

    d = alpha * (P^T d + D(d) * w) + r.

Solved to a few digits, that is a start from which one more plain step proves as many digits more: so d may be found in
any way. Here it is by Gauss-Seidel: a sweep goes through the rows, and uses at once what it has found. Edges from a
vertex to itself are solved for. What d sums to, which is 0 but for rounding, is put back in proportion to v.

**The same bits for any number of threads.** The rows are cut into `STREAMS` runs, and each of these into `TURNS`
pieces. All first pieces are swept first, then all second ones, and so on. A piece reads new values of its own, as far
as it has come, and of pieces at least `STREAMS` before it; of all others it reads old ones. So it waits for no more
than those before it, and as many threads as there are runs hardly ever wait for each other.

**Windows.** Contributions of one sweep lie behind those of the one before. `WINDOW` sweeps are then extrapolated, as
plain steps are: see `prplugin.extrapolate`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from prplugin.extrapolate import leap_weights
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.edges import Floats, Integers
from prplugin.graph.sums import total
from prplugin.methods._threads import Crew, Piece
from prplugin.problem import Problem

__all__ = ["MOST", "STREAMS", "Layout", "Sweeps", "layout_of", "sweep_order", "worth_from"]

STREAMS = 4
TURNS = 16
WINDOW = 10
"""Sweeps between extrapolations: docs/decisions/0012-sweeps-between-plain-steps.md."""

MOST = 6.7
"""Decimal digits that float32 gives of the solution, about."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The in-edges, each with the place where its source is read.

    Attributes
    ----------
    pieces : list of (int, int)
        Rows, in the order in which they are swept.
    begins : list of int
        Where the places of each piece begin.
    ends : list of arrays of offsets
        Where those of its rows end, in whole groups, in the order in which rows are swept.
    places : array of uint32
    shares : array of float32, or None
        What each place is multiplied by; None: 1.
    loops : array of n float32
        What share of a vertex's rank goes to itself.
    """

    pieces: list[Piece]
    begins: list[int]
    ends: list[Integers]
    places: Integers
    shares: Any
    loops: Any


_layouts: WeakKeyDictionary[Adjacency, Layout] = WeakKeyDictionary()


class Sweeps:
    """Solves for what is left after a step.

    Parameters
    ----------
    target, teleport : arrays of n float64, or of one that stands for all
        w, and (1 - alpha) * v.
    """

    def __init__(self, problem: Problem, target: Floats, teleport: Floats, threads: int) -> None:
        from prplugin.methods import _sweep_kernels as kernels  # imports Numba

        self._kernels = kernels
        adjacency = problem.adjacency
        self._n = adjacency.n
        self._layout = layout = layout_of(adjacency, threads)
        self._crew = Crew([(turn, turn + 1) for turn in range(len(layout.pieces))], threads)
        self._alpha, self._target, self._teleport = problem.alpha, target, teleport
        # A contribution is x / W where all edges count the same, and x where each has its share, or the vertex none.
        out_weight = adjacency.out_weight
        self._dangling = out_weight == 0
        self._out = (out_weight if not adjacency.weighted else ~self._dangling).astype(np.float32)
        self._whole = np.where(self._dangling, np.float32(1), self._out)
        self._scale = (1 / (self._whole * (1 - problem.alpha * layout.loops.astype(np.float64)))).astype(np.float32)
        self._iterates = np.zeros((WINDOW + 1, self._n + 1), np.float32)

    def solve(self, moves: Any, goal: float, limit: int) -> tuple[Any, int]:
        """Give d for a step that changed x by `moves`, and how many sweeps that took.

        Parameters
        ----------
        moves : array of n float32
        goal : float
            What a sweep may change to be the last, if float32 can tell.
        limit : int
            The most sweeps.
        """
        iterates, n = self._iterates, self._n
        np.divide(moves, self._whole, out=iterates[0, :n])
        dangling = total(moves[self._dangling].astype(np.float64))
        values = [(total(moves.astype(np.float64)) - dangling, dangling)]
        # In as many stages, of equally many digits each, as float32 needs.
        norm = float(np.abs(moves).sum(dtype=np.float64))
        digits = math.log10(norm / goal) if 0 < goal < norm else MOST
        goal = max(goal, norm / 10 ** (digits / math.ceil(digits / MOST)))
        at, last, before = 0, 0.0, np.inf
        count = 0
        while count < limit:
            count += 1
            change, *value = self._sweep(at, moves, *values[-1])
            values.append(tuple(value))
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
                self._leap(values, pace < 1 and math.log(goal / change) / math.log(pace) > WINDOW / 2)
                at, last = 0, 0.0
        return iterates[at, :n] * self._whole, count

    def _sweep(self, at: int, moves: Any, flowing: float, dangling: float) -> Any:
        kernels, layout, alpha = self._kernels, self._layout, self._alpha
        pieces, iterates = layout.pieces, self._iterates.reshape(-1)[at * (self._n + 1) : (at + 2) * (self._n + 1)]
        sums = np.empty((len(pieces), 3))
        base = alpha * dangling * self._target + (flowing + dangling) * self._teleport
        if base.size > 1:
            base, moves = np.zeros(1), (moves + base).astype(np.float32)
        only = np.float32(base[0])

        def sweep(turn: int, _: int) -> None:
            kernels.sweep(
                *pieces[turn], layout.begins[turn], layout.ends[turn], layout.places, layout.shares, iterates,
                np.float32(alpha), only, moves, self._scale, self._out, sums[turn],
            )  # fmt: skip

        self._crew.work(sweep, STREAMS)
        return [float(column.sum()) for column in sums.T]

    def _leap(self, values: list[Any], pays: bool) -> None:
        """Begin a window with the end of the last one, or with what comes of extrapolating it."""
        kernels, iterates = self._kernels, self._iterates
        pieces = self._layout.pieces
        weights = None
        if pays:
            sums, room = np.zeros((len(pieces), WINDOW, WINDOW)), np.empty((len(pieces), WINDOW, kernels.ROOM))
            self._crew.work(lambda piece, _: kernels.products(*pieces[piece], iterates, room[piece], sums[piece]))
            weights = leap_weights(sums.sum(axis=0))
        if weights is None:
            iterates[0] = iterates[WINDOW]
            values[:] = values[-1:]
            return
        self._crew.work(lambda piece, _: kernels.combine(*pieces[piece], iterates, weights, room[piece, 0]))
        table = np.array(values[-WINDOW:])
        values[:] = [tuple(table[-1] - weights @ np.diff(table, axis=0))]


def worth_from(adjacency: Adjacency) -> float:
    """Give how many steps of those left a layout and a few sweeps are worth; infinity where 32 bits hold no place.

    The second term is for their compilation, once a machine: it would be most of a first call on a million edges.
    """
    size = adjacency.m + adjacency.n
    return 12 + min(1e7 / size, 138) if 2 * (adjacency.n + 1) <= 2**32 else math.inf


def sweep_order(rows: Integers) -> Integers:
    """Give numbers that ascend in the order in which the rows of a piece are swept: see `_sweep_kernels`."""
    from prplugin.methods._sweep_kernels import FEW  # imports Numba

    order: Integers = rows // FEW * FEW + rows % 2 * (FEW // 2) + rows % FEW // 2
    return order


def layout_of(adjacency: Adjacency, threads: int) -> Layout:
    """Give the layout of a graph, made when first asked for, by so many threads."""
    layout = _layouts.get(adjacency)
    if layout is None:
        layout = _layouts[adjacency] = _laid_out(adjacency, threads)
    return layout


def _laid_out(adjacency: Adjacency, threads: int) -> Layout:
    from prplugin.methods import _sweep_kernels as kernels  # imports Numba

    n = adjacency.n
    offsets, sources, weights = adjacency.csc
    count = STREAMS * TURNS
    # Of equal work, where a row is worth four edges.
    work = int(offsets[-1]) + 4 * n
    bounds = [
        bisect_left(range(n), work * place // count, key=lambda row: int(offsets[row]) + 4 * row)
        for place in range(count + 1)
    ]
    runs = list(pairwise(bounds))
    places_of_runs = [stream * TURNS + turn for turn in range(TURNS) for stream in range(STREAMS)]
    pieces = [runs[place] for place in places_of_runs]
    turns = np.empty(n, np.uint8)
    for turn, (first, last) in enumerate(pieces):
        turns[first:last] = turn
    # A row takes up to GROUP - 1 places more than it has edges; what is not needed is never touched.
    more, room = kernels.GROUP - 1, int(offsets[-1]) + (kernels.GROUP - 1) * n
    begins = [-(-(int(offsets[first]) + more * first) // kernels.GROUP) * kernels.GROUP for first, _ in pieces]
    wide = np.uint32 if room < 2**32 else np.uint64
    ends = [np.empty(last - first, wide) for first, last in pieces]
    places = np.empty(room + kernels.GROUP, np.uint32)
    shares = None if weights is None else np.empty(places.size, np.float32)
    loops = np.empty(n, np.float32)

    def lay_out(turn: int, _: int) -> None:
        kernels.lay_out(
            *pieces[turn], max(turn - STREAMS + 1, 0), turns, offsets.view(np.uint64),
            sources.view(f"u{sources.itemsize}"), weights, adjacency.out_weight, begins[turn], ends[turn], places,
            shares, loops,
        )  # fmt: skip

    Crew([(turn, turn + 1) for turn in range(count)], threads).work(lay_out)
    return Layout(pieces, begins, ends, places, shares, loops)
