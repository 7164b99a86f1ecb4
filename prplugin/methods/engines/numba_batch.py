"""Many seeds side by side: an edge brings a line of contributions, a seed has a lane of the processor's vectors.

Where steps lead to is found as for one seed, by sweeps in place in float32: see `_sweeps`, and for where they read
`_batch_layout`. All columns are swept together, and each ends by itself; there are no windows of sweeps to extrapolate.
The last of many columns are swept in narrower matrices.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from prplugin.cpu.crew import Crew, equal_work
from prplugin.cpu.outflow import outflow
from prplugin.cpu.pull_kernels import edge_shares, fan_for, pull_chain
from prplugin.cpu.sums import totals
from prplugin.graph.problem import Problem, Seeds
from prplugin.methods.base import ForesightBatch
from prplugin.methods.engines.batch_layout import layout_of
from prplugin.methods.engines.host_batch import WIDTHS, HostBatch, width_for
from prplugin.methods.engines.sweeps import MOST, STREAMS, worth_from
from prplugin.numerics.rounding import StepChain, chain
from prplugin.types.edges import Floats

__all__ = ["NumbaBatch"]

BYTES = 3 * 8
"""Of a rank, and its contributions in this step and the next; or what it moves by, and two sweeps."""

FIRST = 3.5
"""Decimal digits to which ranks are solved for before anything is known of them. Roundings of float32 in long sums make
the greatest eigenvalue other than 1: from some digits on sweeps would only multiply all ranks."""


class _Side(NamedTuple):
    """Columns that are swept side by side.

    Attributes
    ----------
    old, new : matrices of (n + 1) rows, float32, flat
        The last sweep, and the next. Row n is all 0, for a place that is none.
    moves : matrix of n rows, float32, flat, or None
        What is to be solved for more than D and v.
    entries : arrays
        Where those of each turn begin; rows, columns and values of the v, in the order in which they are swept.
    lanes : tuple
        As long as there are columns.
    """

    old: Any
    new: Any
    moves: Any
    entries: tuple[Any, Any, Any, Any]
    lanes: tuple[Any, ...]

    @property
    def swept(self) -> _Side:
        """After a sweep."""
        return self._replace(old=self.new, new=self.old)


class NumbaBatch(HostBatch, ForesightBatch):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for some v at once."""

    def __init__(self, problem: Problem, seeds: int, threads: int) -> None:
        from prplugin.cpu import batch_kernels as kernels

        self._kernels, self._threads = kernels, threads
        self._adjacency = adjacency = problem.adjacency
        n = adjacency.n
        super().__init__(problem, width_for(seeds, n, BYTES))
        offsets, sources, weights = adjacency.csc
        self._offsets, self._sources = offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")
        out_weight = adjacency.out_weight
        self._outflow = outflow(out_weight, weighted=weights is not None)
        self._shares: Floats | None = None
        if weights is not None:
            self._shares = np.empty_like(weights)
            edge_shares(weights, sources, out_weight, self._shares)
        blocks = -(-n // kernels.BLOCK)
        self._bounds = np.minimum(np.arange(blocks + 1) * kernels.BLOCK, n)
        self._sums = np.empty((blocks, 3, self.width))
        self._crew = Crew(equal_work(offsets, kernels.BLOCK, 8 * threads), threads)
        self._to = np.zeros(1) if problem.dangling is None else problem.dangling
        self._lanes = (np.uint8(0),) * self.width
        self._foresees = False
        self._contributions: Any = None
        self._moves: Any = None
        self._few: Any = None
        largest = adjacency.largest_in_degree
        self._fan = np.uint64(fan_for(largest))
        in_a_block = 2 * kernels.GROUP
        self.chain = StepChain(
            row=pull_chain(largest),
            edge=2 if weights is None else adjacency.out_weight_chain + 4,
            dangling=max(chain(n), in_a_block + chain(blocks)),
            vectors=problem.vector_chain,
            norm=in_a_block + chain(blocks) + 1,
        )

    def start(self, seeds: Seeds, ranks: Floats | float | None) -> None:
        if self._contributions is None:
            self._contributions = np.empty((self._n + 1, self.width))  # a row more, as sweeps have it
            self._next = None if self._foresees else np.empty_like(self._contributions)
        super().start(seeds, ranks)
        rows, columns, values = self._entries
        self._by_block = np.searchsorted(rows, self._bounds), rows.view(np.uint64), columns, values
        if self._foresees:
            # By the turn of their piece, and in it in the order in which rows are swept.
            firsts, lasts = np.array(self._layout.pieces).T
            turns = np.lexsort((lasts, firsts))  # pieces of no rows before the one that begins there
            turn = turns[np.searchsorted(lasts[turns], rows, side="right")]
            swept = self._kernels.swept_at(rows.view(np.uint64))  # type: ignore[no-untyped-call]
            order = np.lexsort((columns, swept, turn))
            of_turns = np.searchsorted(turn[order], np.arange(turns.size + 1))
            self._by_turn = of_turns, rows[order].view(np.uint64), columns[order], values[order].astype(np.float32)

    def _begun(self) -> Floats:
        return self._divided_by(np.ones(self.width))

    def _divided_by(self, whole: Floats) -> Floats:
        """Divide the ranks of each column, and make their contributions; give D of each."""
        self._crew.work(
            lambda first, last: self._kernels.begin(
                first, last, self._outflow, whole, _flat(self._ranks), _flat(self._contributions), self._sums
            )
        )
        return totals(self._sums[:, 2])

    def _step(self) -> tuple[Floats, Floats, Floats]:
        pour = self._pour

        def step(first: int, last: int) -> None:
            self._kernels.step(
                first, last, self._offsets, self._sources, self._shares, self._fan, self._outflow,
                _flat(self._contributions), self._lanes, self._alpha, self._mass, self._to, pour, *self._by_block,
                self._live, _flat(self._ranks), _flat(self._next), _flat(self._moves), self._sums,
            )  # fmt: skip

        self._crew.work(step)
        if self._next is not None:
            self._contributions, self._next = self._next, self._contributions
        return totals(self._sums[:, 0]), self._sums[:, 1].max(axis=0), totals(self._sums[:, 2])

    # --- leaps ----------------------------------------------------------------------------------------------------

    def foresees(self) -> bool:
        if self._foresees or math.isinf(worth_from(self._adjacency)):
            return self._foresees
        self._layout = layout = layout_of(self._adjacency, self._threads)
        self._turns = Crew([(turn, turn + 1) for turn in range(len(layout.pieces))], self._threads)
        # As in `Sweeps`: a contribution is x / W, or x where each edge has its share, or the vertex none.
        flowing = self._outflow > 0
        self._out = np.where(flowing, 1.0 if self._adjacency.weighted else self._adjacency.out_weight, 0.0).astype(
            np.float32
        )
        self._whole = np.where(flowing, self._out, np.float32(1))
        self._scale = (1 / (self._whole * (1 - self._alpha * layout.loops.astype(np.float64)))).astype(np.float32)
        self._to32 = self._to.astype(np.float32)
        self._moves = np.empty((self._n, self.width), np.float32)
        self._foresees = True
        return True

    def leap(self, columns: Any, goal: float, limit: int) -> Any:
        live = np.zeros(self.width, np.bool_)
        live[: columns.size] = columns
        # Before the first step nothing is known of x but that it is of sum 1: it is all that is to be solved for.
        moves = None if self._state.steps.max() == 0 else _flat(self._moves)
        self._live = live
        further, passes = self._solved(moves, goal, limit)
        self._crew.work(
            lambda first, last: self._kernels.land(
                first, last, further, self._whole, moves, live, _flat(self._ranks), self._sums
            )
        )
        sums = totals(self._sums[:, 0])
        self._mass = self._alpha * self._divided_by(np.where(live, sums, 1.0))
        return passes[: columns.size]

    def _solved(self, moves: Any, goal: float, limit: int) -> tuple[Any, Any]:
        """Sweep until each live column is solved for, as `Sweeps.solve`; give the last iterate, and sweeps of each."""
        # In place of contributions, which are made anew after a leap.
        old, new = _flat(self._contributions).view(np.float32).reshape(2, -1)
        old[-self.width :], new[-self.width :] = 0, 0
        side = _Side(old, new, moves, self._by_turn, self._lanes)
        self._crew.work(
            lambda first, last: self._kernels.spread(
                first, last, self._outflow, self._whole, _flat(self._ranks) if moves is None else moves, old, self._sums
            )
        )
        norm, flowing, dangling = (totals(self._sums[:, part]) for part in range(3))
        live, passes = self._live.copy(), np.zeros(self.width, np.int64)
        if moves is None:
            goals = np.full(self.width, max(goal, 10**-FIRST))
        else:
            # In as many stages, of equally many digits each, as float32 needs.
            digits = np.array([math.log10(value / goal) if 0 < goal < value else MOST for value in norm.tolist()])
            goals = np.maximum(goal, norm / 10 ** (digits / np.ceil(digits / MOST)))
        before, columns, wide = np.zeros(self.width), np.arange(self.width), None
        for _ in range(limit):
            if np.count_nonzero(live) <= WIDTHS[0] < live.size:
                columns, wide = np.argsort(~live, kind="stable")[: WIDTHS[0]], side
                side = self._narrowed(side, columns)
                live, goals, before = live[columns], goals[columns], before[columns]
                flowing, dangling = flowing[columns], dangling[columns]
            passes[columns[live]] += 1
            change, flowing, dangling = self._sweep(side, live, flowing, dangling)
            side = side.swept
            # The next would change as much less as this one has.
            with np.errstate(divide="ignore", invalid="ignore"):
                pace = np.where((change > 0) & (change < before), change / before, 1.0)
            live &= change * pace > goals
            if not live.any():
                break
            before = change
        if wide is None:
            return side.old, passes
        self._crew.work(lambda first, last: self._kernels.widen(first, last, side.old, columns, self.width, wide.old))
        return wide.old, passes

    def _narrowed(self, side: _Side, columns: Any) -> _Side:
        """Copy some columns: sweeps of the others are saved."""
        count = columns.size
        if self._few is None:
            self._few = np.empty((3, (self._n + 1) * count), np.float32)
        old, new, moves = self._few
        old[-count:], new[-count:] = 0, 0
        self._copied(columns, side.old, old)
        if side.moves is None:
            moves = None
        else:
            moves = moves[:-count]
            self._copied(columns, side.moves, moves)
        of_turns, rows, of_columns, values = side.entries
        place = np.full(self.width, -1)
        place[columns] = np.arange(count)
        kept = place[of_columns] >= 0
        entries = np.append(0, np.cumsum(kept))[of_turns], rows[kept], place[of_columns[kept]], values[kept]
        return _Side(old, new, moves, entries, side.lanes[:count])

    def _copied(self, columns: Any, wide: Any, few: Any) -> None:
        self._crew.work(lambda first, last: self._kernels.narrow(first, last, wide, self.width, columns, few))

    def _sweep(self, side: _Side, live: Any, flowing: Floats, dangling: Floats) -> Any:
        layout, alpha = self._layout, self._alpha
        sums = np.empty((len(layout.pieces), 3, live.size))
        mass = (alpha * dangling).astype(np.float32)
        # What d sums to is put back in proportion to v.
        pour = ((1 - alpha) * (flowing + dangling)).astype(np.float32) + (mass if self._target is None else 0)
        of_turns, rows, columns, values = side.entries

        def sweep(turn: int, _: int) -> None:
            self._kernels.sweep(
                *layout.pieces[turn], self._offsets, layout.places, layout.shares, side.old, side.new, side.lanes,
                np.float32(alpha), mass, self._to32, pour, of_turns[turn], of_turns[turn + 1], rows, columns, values,
                side.moves, live, self._scale, self._out, sums[turn],
            )  # fmt: skip

        self._turns.work(sweep, STREAMS)
        return sums.sum(axis=0)

    # --- the result -----------------------------------------------------------------------------------------------

    def ranks(self) -> Floats:
        # In place of contributions, which are made anew for other seeds: memory that is new takes longer than its use.
        turned: Floats = _flat(self._contributions)[: self._seeds.count * self._n].reshape(-1, self._n)
        self._crew.work(lambda first, last: self._kernels.turn(first, last, _flat(self._ranks), self.width, turned))
        return turned


def _flat(matrix: Any) -> Any:
    return None if matrix is None else matrix.reshape(-1)
