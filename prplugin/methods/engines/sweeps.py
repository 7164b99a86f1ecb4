"""Gauss-Seidel sweeps in float32, extrapolated: an approximate solution in fewer edge passes than plain steps take.

If a plain step changes x by r, the exact ranks are x + d, where

    d = alpha * (P^T d + D(d) * w) + r.

If d is accurate to a few digits, the next plain step proves as many digits more, so any approximate solver may be used.
A Gauss-Seidel sweep updates the rows in order and uses new values at once. Self-loops are solved for exactly. The sum
of d, which is 0 but for rounding, is put back in proportion to v. Dangling vertices are not swept, since nothing reads
them: the sum of their values follows from the others. Positions of swept vertices follow the order of the sweep.

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

from prplugin.cpu import mixing_kernels
from prplugin.cpu import sweep_kernels as kernels
from prplugin.cpu.sums import total
from prplugin.cpu.threads import Piece, Threads, cut
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.numerics.extrapolation import Depth, depth_for, mixing_weights, symmetric
from prplugin.types.edges import Floats, Integers

STREAMS = 2
TURNS = 16
FLOAT32_DIGITS = 7.2
"""Decimal digits of the solution that float32 resolves, about."""

STAGNATION_RATIO = 0.8
"""Largest ratio of the changes at the ends of two successive cycles for which sweeping continues.

Above it the sweeps stagnate at rounding level, or a plain step is as good.
"""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The in-edges of vertices with out-edges, in the order in which these are swept; positions are uint32."""

    swept: Integers  # the swept vertices, in that order
    pieces: list[Piece]  # vertices of each piece, as positions in `swept`, in the order of the sweep
    ends: Integers  # offsets of the vertices in `source_indices`; the edges of each vertex are padded to whole groups
    source_indices: Integers  # for each edge, the index in two consecutive iterates from which its source is read
    normalized_weights: Any  # float32 factor of each entry of `source_indices`; None: 1
    value_factor: Any  # value of a vertex divided by its contribution: its out-weight, or 1 in weighted graphs
    # Fraction of a vertex's contribution that goes to dangling vertices (unweighted: number of such out-edges); one
    # entry for all vertices if there are none.
    dangling_fraction: Any
    loop_positions: Integers  # positions in `swept` of vertices with self-loops
    loop_fractions: Any  # float32 fraction of their ranks that the self-loops carry


_layouts: WeakKeyDictionary[Adjacency, _Layout] = WeakKeyDictionary()


class Sweeps:
    """Approximate solver for the error that is left after a step.

    `target` and `teleport` are w and (1 - alpha) * v: arrays of n float64, or of one for all vertices.
    """

    def __init__(self, problem: Problem, target: Floats, teleport: Floats, threads: int) -> None:
        self._depth: Depth = depth_for(problem.alpha)
        adjacency = problem.adjacency
        layout = _layouts.get(adjacency)
        if layout is None:
            layout = _layouts[adjacency] = _layout_of(adjacency, threads)
        self._layout, self.swept = layout, layout.swept
        self._threads, self._pieces = Threads(threads), [(nth, *piece) for nth, piece in enumerate(layout.pieces)]
        self._alpha = problem.alpha
        self._target, self._target_dangling = self._split_by_swept(target, adjacency.n)
        self._teleport, self._teleport_dangling = self._split_by_swept(teleport, adjacency.n)
        # Self-loops are solved for: c * value_factor = alpha * (sum + loop_fractions * c * value_factor) + ...
        self._scale = np.reciprocal(layout.value_factor)
        divisor = layout.value_factor[layout.loop_positions] * (
            1 - problem.alpha * layout.loop_fractions.astype(np.float64)
        )
        self._scale[layout.loop_positions] = np.reciprocal(divisor)

    def _split_by_swept(self, vector: Floats, n: int) -> tuple[Floats, float]:
        """Return the entries of the swept vertices, and the sum of the others."""
        if vector.size == 1:
            return vector, float(vector[0]) * (n - self.swept.size)
        own = vector[self.swept]
        return own, total(vector) - total(own)

    def solve(
        self, ranks: Floats, moves: Any, dangling: float, goal: float, limit: int, buffer: Any
    ) -> tuple[float, int]:
        """Solve for d, and replace the `ranks` x + r by x + d, except those of dangling vertices.

        `moves` is r in float32, `dangling` its sum over the vertices that are not swept. End at an L1 change of `goal`
        per sweep, as far as float32 resolves it, or after `limit` sweeps. `buffer` holds at least `iterates_size`
        float32, and may overlap `moves`. Return the sum of d - r over the vertices that are not swept, and the number
        of sweeps.
        """
        layout, n, depth = self._layout, self.swept.size, self._depth
        left = np.empty(n, np.float32)
        # All of `moves` is read before the iterates, which may overlap it, are written.
        self._for_each(lambda _, *own: np.take(moves, self.swept[slice(*own)], out=left[slice(*own)]))
        # Per cycle, its start and its sweeps.
        iterates = buffer[: iterates_size(n, depth)].reshape(depth.cycles, depth.period + 1, n + 1)
        iterates[:, :, n] = 0
        sums = np.empty((len(layout.pieces), 2))

        def begin(piece: int, first: int, last: int) -> None:
            own = left[first:last]
            np.divide(own, layout.value_factor[first:last], out=iterates[0, 0, first:last])
            sums[piece] = own.sum(dtype=np.float64), np.abs(own).sum(dtype=np.float64)

        self._for_each(begin)
        mass, norm = (float(column.sum()) for column in sums.T)
        # Per iterate, the sum of its values, and the sum over dangling vertices.
        table = np.empty((depth.cycles, depth.period + 1, 2))
        table[0, 0] = mass, dangling
        # Float32 limits the digits per call: split the goal into stages of equally many digits, and solve the first.
        # Rounding is relative to d, whose ratio to its residual grows as alpha approaches 1.
        most = FLOAT32_DIGITS + math.log10(1 - self._alpha) / 2
        digits = math.log10(norm / goal) if 0 < goal < norm else most
        goal = max(goal, norm / 10 ** (digits / math.ceil(digits / most)))
        cycle, at, before, last = 0, 0, 0.0, math.inf
        cycles, count = [0], 0
        while count < limit:
            count += 1
            change, mass, to_dangling = self._sweep(iterates[cycle, at : at + 2].reshape(-1), left, *table[cycle, at])
            at += 1
            table[cycle, at] = mass, to_dangling + dangling
            # The next change is expected to shrink by the same ratio; after a mix, by alpha at least.
            ratio = min(change / before, 1.0) if before > 0 else self._alpha
            if change * ratio <= goal:
                break
            before = change
            if at == depth.period:
                if change > STAGNATION_RATIO * last:
                    break
                last = change
                next_cycle = (cycle + 1) % depth.cycles
                self._mix(iterates, table, cycles, next_cycle)
                cycles = [*cycles[max(0, len(cycles) + 1 - depth.cycles) :], next_cycle]
                cycle, at, before = next_cycle, 0, 0.0

        def add(_: int, first: int, last: int) -> None:
            correction = iterates[cycle, at, first:last] * layout.value_factor[first:last]
            ranks[self.swept[first:last]] += np.subtract(correction, left[first:last], out=correction)

        self._for_each(add)
        return float(table[cycle, at, 1]) - dangling, count

    def _mix(self, iterates: Any, table: Any, cycles: list[int], next_cycle: int) -> None:
        """Write the Anderson mix of the sweeps of `cycles`, the latest last, as the start of cycle `next_cycle`."""
        length = self._depth.period + 1
        pieces = [(nth, *columns) for nth, columns in enumerate(cut(self.swept.size, mixing_kernels.PIECE))]
        after = np.array([cycle * length + at for cycle in cycles for at in range(1, length)])
        sums, rows = np.zeros((len(pieces), after.size, after.size)), iterates.reshape(-1, iterates.shape[-1])

        def multiply(piece: int, first: int, last: int) -> None:
            # Replace the sweeps y_1, y_2, ... of the latest cycle, which began from s, by s, y_1 - s, y_2 - y_1, ...
            for at in reversed(range(1, length)):
                iterates[cycles[-1], at, first:last] -= iterates[cycles[-1], at - 1, first:last]
            mixing_kernels.products(first, last, rows, after, sums[piece])

        self._threads.for_each(pieces, multiply)
        weights = mixing_weights(symmetric(sums.sum(axis=0)))
        table[next_cycle, 0] = weights @ table.reshape(-1, 2)[after]
        # The sum of the w_j y_j of a cycle is that of w_j for s, and of w_j, w_{j+1}, ... for y_j - y_{j-1}.
        by_cycle = np.cumsum(weights.reshape(len(cycles), -1)[:, ::-1], axis=1)[:, ::-1]
        factors = np.concatenate([by_cycle[:, :1], by_cycle], axis=1).ravel()
        of = np.array([cycle * length + at for cycle in cycles for at in range(length)])
        start = iterates[next_cycle, 0]

        def combine(_: int, first: int, last: int) -> None:
            start[first:last] = mixing_kernels.combined(first, last, rows, of, factors)

        self._threads.for_each(pieces, combine)

    def _sweep(self, iterates: Any, left: Any, mass: float, dangling: float) -> tuple[float, float, float]:
        layout, alpha = self._layout, self._alpha
        sums = np.empty((len(layout.pieces), 3))
        base = alpha * dangling * self._target + (mass + dangling) * self._teleport
        if base.size > 1:
            base, left = np.zeros(1), (left + base).astype(np.float32)
        only = np.float32(base[0])

        def sweep(piece: int, first: int, last: int) -> None:
            kernels.sweep(
                first, last, layout.ends, layout.source_indices, layout.normalized_weights, iterates,
                np.float32(alpha), only, left, self._scale, layout.value_factor, layout.dangling_fraction, sums[piece],
            )  # fmt: skip

        self._threads.for_each_in_order(self._pieces, sweep, STREAMS)
        change, next_mass, to_dangling = (float(column.sum()) for column in sums.T)
        base_to_dangling = alpha * dangling * self._target_dangling + (mass + dangling) * self._teleport_dangling
        return change, next_mass, alpha * to_dangling + base_to_dangling

    def _for_each(self, do: Callable[[int, int, int], object]) -> None:
        """Call ``do(piece, first, last)`` for each piece."""
        self._threads.for_each(self._pieces, do)


def iterates_size(swept: int, depth: Depth) -> int:
    """Return the number of entries of the iterates of `swept` swept vertices, each followed by a 0."""
    return depth.cycles * (depth.period + 1) * (swept + 1)


def least_steps_for_sweeps(adjacency: Adjacency) -> float:
    """Return the number of remaining steps from which sweeps pay off; infinity where 32-bit indices overflow.

    The layout and a few sweeps cost about 12 steps. The second term accounts for compilation, once per machine, which
    would dominate the first call on a graph of a million edges.
    """
    size = adjacency.m + adjacency.n
    return 12 + min(4e6 / size, 138) if 2 * (adjacency.n + 1) <= 2**32 else math.inf


def _layout_of(adjacency: Adjacency, threads: int) -> _Layout:
    offsets, sources, weights = adjacency.csc
    offsets, sources = offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")
    out_weight = adjacency.out_weight
    rows = np.flatnonzero(out_weight)
    n, count = rows.size, STREAMS * TURNS
    # Streams of about equal work, where a row costs as four edges, and of whole red-black groups.
    work = int(offsets[-1]) + 4 * n
    bounds = [
        bisect_left(range(n), work * part // count, key=lambda row: int(offsets[rows[row]]) + 4 * row)
        for part in range(count)
    ]
    runs = list(pairwise([*(bound // kernels.RED_BLACK_GROUP * kernels.RED_BLACK_GROUP for bound in bounds), n]))
    runs = [runs[stream * TURNS + turn] for turn in range(TURNS) for stream in range(STREAMS)]
    pieces = list(pairwise(accumulate((last - first for first, last in runs), initial=0)))
    swept, value_factor, loop_fractions = np.empty(n, np.uint32), np.empty(n, np.float32), np.empty(n, np.float32)
    most_indices = adjacency.m + (kernels.GROUP - 1) * n
    ends = np.zeros(n + 1, np.uint32 if most_indices < 2**32 else np.uint64)
    position = np.full(adjacency.n, n, np.uint32)
    pool, turns = Threads(threads), [(turn,) for turn in range(count)]
    padded = np.diff(offsets)
    padded += np.uint64(kernels.GROUP - 1)
    padded &= ~np.uint64(kernels.GROUP - 1)  # edges per vertex, in whole groups

    def order_vertices(turn: int) -> None:
        # Groups of vertices of which those of even index precede the others; the last group may be smaller.
        own, group = rows[slice(*runs[turn])], kernels.RED_BLACK_GROUP
        full = own.size // group * group
        by_parity = own[:full].reshape(-1, group // 2, 2).swapaxes(1, 2).ravel()
        vertices = np.concatenate([by_parity, own[full::2], own[full + 1 :: 2]])
        first, last = pieces[turn]
        swept[first:last], position[vertices] = vertices, np.arange(first, last, dtype=np.uint32)
        value_factor[first:last] = 1.0 if adjacency.weighted else out_weight.take(vertices)
        np.cumsum(padded.take(vertices), out=ends[first + 1 : last + 1])  # counted from the first vertex of the piece

    pool.for_each(turns, order_vertices)
    rows, padded = rows[:0].copy(), padded[:0].copy()  # frees their memory
    dangling = np.flatnonzero(out_weight == 0).astype(np.uint32)
    dangling_fraction = np.zeros(n if dangling.size else 1, np.float32)
    kernels.sum_dangling_fractions(dangling, position, offsets, sources, weights, out_weight, dangling_fraction)
    begins = list(accumulate((int(ends[last]) if first < last else 0 for first, last in pieces), initial=0))
    source_indices = np.empty(begins[-1], np.uint32)
    normalized_weights = None if weights is None else np.empty(source_indices.size, np.float32)

    def index_sources(turn: int) -> None:
        first, last = pieces[turn]
        own = ends[first + 1 : last + 1]
        np.add(own, begins[turn], out=own)
        new_below = pieces[turn - STREAMS][1] if turn >= STREAMS else 0
        kernels.index_sources(
            first, last, new_below, begins[turn], swept, position, offsets, sources, weights, out_weight,
            source_indices, normalized_weights, loop_fractions,
        )  # fmt: skip

    pool.for_each(turns, index_sources)
    loop_positions = np.flatnonzero(loop_fractions).astype(np.uint32)
    return _Layout(
        swept, pieces, ends, source_indices, normalized_weights, value_factor, dangling_fraction, loop_positions,
        loop_fractions[loop_positions],
    )  # fmt: skip
