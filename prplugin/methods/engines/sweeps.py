"""Gauss-Seidel sweeps in float32, extrapolated: an approximate solution in fewer edge passes than plain steps take.

If a plain step changes x by r, the exact ranks are x + d, where

    d = alpha * (P^T d + D(d) * w) + r.

If d is accurate to a few digits, the next plain step proves as many digits more, so any approximate solver may be used.
A Gauss-Seidel sweep updates the rows in order and uses new values at once. Self-loops are solved for exactly. The sum
of d, which is 0 but for rounding, is put back in proportion to v. Dangling vertices are not swept, since nothing reads
them: the sum of their values follows from the others. The swept vertices are renumbered in the order of the sweep.

**The same bits for any number of threads.** The rows are split into `STREAMS` streams, and each stream into `TURNS`
pieces. All first pieces are swept first, then all second ones, and so on. A piece reads new values of its own earlier
vertices, and of pieces at least `STREAMS` before it; of all others it reads old values. It waits only for those pieces,
so that as many threads as there are streams rarely wait for each other.

**Mixing.** A sweep is an affine map too, and its iterates are mixed as those of plain steps: see
`prplugin.numerics.extrapolation`. The iterates of a cycle are contiguous, so that a sweep reads one and writes the
next; the previous cycle is kept as well.
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
from prplugin.numerics.extrapolation import Depth, depth_for, mixing_weights
from prplugin.types.edges import Floats, Integers

__all__ = ["Sweeps", "room_for", "worth_from"]

STREAMS = 2
TURNS = 16
MOST = 7.2
"""Decimal digits of the solution that float32 resolves, about."""

SLOW = 0.8
"""Largest ratio of the changes at the ends of two successive cycles for which sweeping continues.

Above it the sweeps stagnate at rounding level, or a plain step is as good.
"""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The in-edges of vertices with out-edges, in the order in which these are swept.

    Attributes
    ----------
    live : array of uint32
        The swept vertices, in that order.
    pieces : list of (int, int)
        First and last + 1 of the vertices of each piece, as positions in `live`, in the order of the sweep.
    ends : array of offsets
        Offsets of the vertices in `places`; the edges of each vertex are padded to whole groups.
    places : array of uint32
        For each edge, the index in two consecutive iterates from which its source is read.
    normalized_weights : array of float32, or None
        Factor of each entry of `places`; None: 1.
    out : array of float32
        Value of a vertex divided by its contribution: its out-weight, or 1 in weighted graphs.
    lost : array of float32, or of one for all vertices
        Fraction of a vertex's contribution that goes to dangling vertices (unweighted: number of such out-edges).
    looping : array of uint32
        Positions in `live` of vertices with self-loops.
    loops : array of float32
        Fraction of their ranks that the self-loops carry.
    """

    live: Integers
    pieces: list[Piece]
    ends: Integers
    places: Integers
    normalized_weights: Any
    out: Any
    lost: Any
    looping: Integers
    loops: Any


_layouts: WeakKeyDictionary[Adjacency, _Layout] = WeakKeyDictionary()


class Sweeps:
    """Approximate solver for the error that is left after a step.

    Parameters
    ----------
    target, teleport : arrays of n float64, or of one for all vertices
        w, and (1 - alpha) * v.
    """

    def __init__(self, problem: Problem, target: Floats, teleport: Floats, threads: int) -> None:
        from prplugin.cpu import mixing_kernels  # imports Numba
        from prplugin.cpu import sweep_kernels as kernels

        self._kernels, self._mixing = kernels, mixing_kernels
        self._depth: Depth = depth_for(problem.alpha)
        adjacency = problem.adjacency
        layout = _layouts.get(adjacency)
        if layout is None:
            layout = _layouts[adjacency] = _laid_out(adjacency, threads, kernels)
        self._layout, self.live = layout, layout.live
        self._crew = Crew([(turn, turn + 1) for turn in range(len(layout.pieces))], threads)
        self._alpha = problem.alpha
        self._target, self._target_lost = self._parted(target, adjacency.n)
        self._teleport, self._teleport_lost = self._parted(teleport, adjacency.n)
        # Self-loops are solved for: c * out = alpha * (sum + loops * c * out) + ...
        self._scale = np.reciprocal(layout.out)
        divisor = layout.out[layout.looping] * (1 - problem.alpha * layout.loops.astype(np.float64))
        self._scale[layout.looping] = np.reciprocal(divisor)

    def _parted(self, vector: Floats, n: int) -> tuple[Floats, float]:
        """Return the entries of the swept vertices, and the sum of the others."""
        if vector.size == 1:
            return vector, float(vector[0]) * (n - self.live.size)
        own = vector[self.live]
        return own, total(vector) - total(own)

    def solve(
        self, ranks: Floats, moves: Any, dangling: float, goal: float, limit: int, room: Any
    ) -> tuple[float, int]:
        """Solve for d, and replace the ranks x + r by x + d, except those of dangling vertices.

        Parameters
        ----------
        ranks : array of n float64
            x + r.
        moves : array of n float32
            r.
        dangling : float
            Sum of r over the vertices that are not swept.
        goal : float
            Change of a sweep, in L1, at which to stop, as far as float32 resolves it.
        limit : int
            The most sweeps.
        room : array of at least `room_for` float32
            Buffer for the iterates. It may overlap `moves`.

        Returns
        -------
        gained : float
            Sum of d - r over the vertices that are not swept.
        count : int
            Number of sweeps.
        """
        left = np.empty(self.live.size, np.float32)
        self._for_each(lambda _, *own: np.take(moves, self.live[slice(*own)], out=left[slice(*own)]))
        gained, count = self._solve(left, dangling, goal, limit, room)

        def add(_: int, first: int, last: int) -> None:
            ranks[self.live[first:last]] += left[first:last]

        self._for_each(add)
        return gained, count

    def _solve(self, left: Any, of_dangling: float, goal: float, limit: int, room: Any) -> tuple[float, int]:
        """Replace r of the swept vertices by d - r; `of_dangling` is the sum of r over the others."""
        layout, n, depth = self._layout, self.live.size, self._depth
        # Per cycle, its start and its sweeps.
        iterates = room[: room_for(n, depth)].reshape(depth.cycles, depth.period + 1, n + 1)
        iterates[:, :, n] = 0
        sums = np.empty((len(layout.pieces), 2))

        def begin(piece: int, first: int, last: int) -> None:
            own = left[first:last]
            np.divide(own, layout.out[first:last], out=iterates[0, 0, first:last])
            sums[piece] = own.sum(dtype=np.float64), np.abs(own).sum(dtype=np.float64)

        self._for_each(begin)
        flowing, norm = (float(column.sum()) for column in sums.T)
        # Per iterate, the sum of its values, and the sum over dangling vertices.
        table = np.empty((depth.cycles, depth.period + 1, 2))
        table[0, 0] = flowing, of_dangling
        # Float32 limits the digits per call: split the goal into stages of equally many digits, and solve the first.
        # Rounding is relative to d, whose ratio to its residual grows as alpha approaches 1.
        most = MOST + math.log10(1 - self._alpha) / 2
        digits = math.log10(norm / goal) if 0 < goal < norm else most
        goal = max(goal, norm / 10 ** (digits / math.ceil(digits / most)))
        cycle, at, before, last = 0, 0, 0.0, math.inf
        cycles, count = [0], 0
        while count < limit:
            count += 1
            change, flowing, dangling = self._sweep(iterates[cycle, at : at + 2].reshape(-1), left, *table[cycle, at])
            at += 1
            table[cycle, at] = flowing, dangling + of_dangling
            # The next change is expected to shrink by the same ratio; after a mix, by alpha at least.
            pace = min(change / before, 1.0) if before > 0 else self._alpha
            if change * pace <= goal:
                break
            before = change
            if at == depth.period:
                if change > SLOW * last:
                    break
                last = change
                following = (cycle + 1) % depth.cycles
                self._mix(iterates, table, cycles, following)
                cycles = [*cycles[max(0, len(cycles) + 1 - depth.cycles) :], following]
                cycle, at, before = following, 0, 0.0

        def end(_: int, first: int, last: int) -> None:
            own = left[first:last]
            np.subtract(iterates[cycle, at, first:last] * layout.out[first:last], own, out=own)

        self._for_each(end)
        return float(table[cycle, at, 1]) - of_dangling, count

    def _mix(self, iterates: Any, table: Any, cycles: list[int], following: int) -> None:
        """Write the Anderson mix of the sweeps of `cycles`, the latest last, as the start of cycle `following`."""
        kernels, pieces, length = self._mixing, self._layout.pieces, self._depth.period + 1
        after = np.array([cycle * length + at for cycle in cycles for at in range(1, length)])
        sums, rows = np.zeros((len(pieces), after.size, after.size)), iterates.reshape(-1, iterates.shape[-1])
        room = after.size, kernels.ROOM
        self._for_each(lambda piece, *own: kernels.products(*own, rows, after, after - 1, np.empty(room), sums[piece]))
        lower = sums.sum(axis=0)
        weights = mixing_weights(lower + np.tril(lower, -1).T)
        begun = iterates[following, 0]
        self._for_each(lambda _, *own: kernels.combine(*own, rows, after, weights, np.empty(kernels.ROOM), begun))
        table[following, 0] = weights @ table.reshape(-1, 2)[after]

    def _sweep(self, iterates: Any, left: Any, flowing: float, dangling: float) -> tuple[float, float, float]:
        kernels, layout, alpha = self._kernels, self._layout, self._alpha
        sums = np.empty((len(layout.pieces), 3))
        base = alpha * dangling * self._target + (flowing + dangling) * self._teleport
        if base.size > 1:
            base, left = np.zeros(1), (left + base).astype(np.float32)
        only = np.float32(base[0])

        def sweep(piece: int, first: int, last: int) -> None:
            kernels.sweep(
                first, last, layout.ends, layout.places, layout.normalized_weights, iterates, np.float32(alpha), only,
                left,
                self._scale, layout.out, layout.lost, sums[piece],
            )  # fmt: skip

        self._for_each(sweep, STREAMS)
        change, now_flowing, leaking = (float(column.sum()) for column in sums.T)
        lost = alpha * dangling * self._target_lost + (flowing + dangling) * self._teleport_lost
        return change, now_flowing, alpha * leaking + lost

    def _for_each(self, do: Callable[..., object], apart: int | None = None) -> None:
        """Call ``do(piece, first, last)`` for each piece."""
        pieces = self._layout.pieces
        self._crew.work(lambda piece, _: do(piece, *pieces[piece]), apart)


def room_for(live: int, depth: Depth) -> int:
    """Return the number of entries of the iterates of `live` swept vertices, each followed by a 0."""
    return depth.cycles * (depth.period + 1) * (live + 1)


def worth_from(adjacency: Adjacency) -> float:
    """Return the number of remaining steps from which sweeps pay off; infinity where 32-bit indices overflow.

    The layout and a few sweeps cost about 12 steps. The second term accounts for compilation, once per machine, which
    would dominate the first call on a graph of a million edges.
    """
    size = adjacency.m + adjacency.n
    return 12 + min(4e6 / size, 138) if 2 * (adjacency.n + 1) <= 2**32 else math.inf


def _laid_out(adjacency: Adjacency, threads: int, kernels: Any) -> _Layout:
    offsets, sources, weights = adjacency.csc
    offsets, sources = offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")
    out_weight = adjacency.out_weight
    rows = np.flatnonzero(out_weight).astype(np.uint32)
    n, count = rows.size, STREAMS * TURNS
    # Streams of about equal work, where a row costs as four edges, and of whole red-black groups.
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
    normalized_weights = None if weights is None else np.empty(places.size, np.float32)

    def lay_out(turn: int, _: int) -> None:
        first, last = pieces[turn]
        own = ends[first + 1 : last + 1]
        np.add(own, begins[turn], out=own)
        ready = pieces[turn - STREAMS][1] if turn >= STREAMS else 0
        kernels.lay_out(
            first,
            last,
            ready,
            begins[turn],
            live,
            place,
            offsets,
            sources,
            weights,
            out_weight,
            places,
            normalized_weights,
            loops,
        )

    crew.work(lay_out)
    looping = np.flatnonzero(loops).astype(np.uint32)
    return _Layout(live, pieces, ends, places, normalized_weights, out, lost, looping, loops[looping])
