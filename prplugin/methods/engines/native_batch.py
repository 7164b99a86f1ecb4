"""Many seeds by compiled kernels: each edge is read once for a tile of seeds, and adds one row of contributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prplugin.cpu import kernels
from prplugin.cpu.sums import BLOCK_ROWS, totals
from prplugin.graph.edges import Problem
from prplugin.graph.teleports import Seeds
from prplugin.methods.base import Passes, SeedsStep, Sums
from prplugin.numerics import StepRounding, fan_in_for
from prplugin.types.array_module import Scalar
from prplugin.types.arrays import Array, to_host
from prplugin.types.edges import Csc, Floats

LINE = 64
"""Bytes per cache line: a tile has as many columns as values in one, 16 in float32 and 8 in float64."""

SEEDS_PER_THREAD = 32
"""Seeds of a batch per thread: enough that all threads have tiles until the last one."""

BYTES_PER_RANK = 8 + 8 + 8 + 2 * 8
"""The rank, its contribution in float64, its last move, and v of the tile and for a sweep."""

MOST_BYTES = 1 << 32
"""Largest size of the matrices of a batch of more than 8 seeds."""

MOST_SWEEPS = 64
"""Sweeps after which the seeds that have not converged move to tiles of their own."""

FLOAT32_CHANGE = 3e-8
"""L1 change per sum that float32 contributions reach: about half the unit roundoff."""


class NativeBatch(SeedsStep):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for several v at once.

    The ranks have one row per seed. Contributions of live seeds are in tiles of some columns, which are rewritten from
    the ranks before sweeps, and hold x for the next step. The bits of a column do not depend on the tiles.

    `_at_seeds`: Whether x is v, and not yet the ranks.
    `_chosen`: The seed of each column of the tiles, or -1; None if they do not belong to the present ranks.
    """

    def __init__(self, problem: Problem, seeds: int, threads: int, rounding: StepRounding) -> None:
        adjacency = problem.adjacency
        self._n, self._alpha, self._threads = adjacency.n, problem.alpha, threads
        # x is the contribution times the rounded inverse of its factor: one rounding more.
        self.rounding = rounding._replace(edge=rounding.edge + 1)
        widest = max(8, min(SEEDS_PER_THREAD * max(2, threads), MOST_BYTES // (BYTES_PER_RANK * adjacency.n)))
        self.width = math.ceil(seeds / math.ceil(seeds / widest))
        offsets, sources, _ = adjacency.get(Csc)
        self._target = problem.dangling
        self._graph = {
            "offsets": offsets, "sources": sources, "weights": adjacency.normalized_weights,
            "fan_in": fan_in_for(adjacency.largest_in_degree), "alpha": problem.alpha,
            "inverse": adjacency.inverse_out_weight, "target": problem.dangling,
        }  # fmt: skip
        self._memory, self._ranks = np.empty(0, np.uint8), np.empty((0, 0))
        self._tiles: dict[str, Any] = {}

    def seed(self, seeds: Seeds) -> None:
        self.seeds = self._count = seeds.count
        seeds = seeds.on("host")
        rows = seeds.rows.astype(np.int64, copy=False)
        self._entries = {"bounds": seeds.bounds, "rows": rows, "values": seeds.values}
        # v without its rows of zeros, which are most rows of a few vertices per seed.
        self._teleport_rows = np.full(self._n, -1)
        self._teleport_rows[seeds.rows] = 0
        rows = np.flatnonzero(self._teleport_rows == 0)
        self._teleport_rows[rows] = np.arange(rows.size)
        self._teleports = rows.size

    def start(self, ranks: Floats | float | None) -> None:
        if self._ranks.shape != (shape := (self._count, self._n)):
            self._ranks = np.empty(shape)
        if ranks is not None:
            self._ranks[:] = ranks if isinstance(ranks, float) else to_host(ranks).T
        self._at_seeds = ranks is None
        self._live = np.arange(self._count)
        self._chosen: Any = None
        self._narrow = True

    def set_live(self, live: Array) -> None:
        self._live = np.flatnonzero(live)

    def _fill_tiles(self, dtype: np.dtype[np.generic]) -> None:
        """Write the contributions of the live seeds to tiles."""
        width = LINE // dtype.itemsize
        tiles = -(-self._live.size // width)
        self._chosen = np.full(tiles * width, -1)
        self._chosen[: self._live.size] = self._live
        shape = tiles, self._n, width
        size = math.prod(shape) * dtype.itemsize
        if self._memory.size < size + LINE:
            self._tiles, self._memory = {}, np.empty(0, np.uint8)  # frees it first
            self._memory = np.empty(size + LINE, np.uint8)
        first = -self._memory.ctypes.data % LINE
        self._tiles = {
            **self._graph, "teleport_rows": self._teleport_rows,
            "teleport": np.empty((tiles, self._teleports, width)), "constants": np.empty((self._n, 4), dtype),
            "contributions": self._memory[first : first + size].view(dtype).reshape(shape),
            "sums": np.empty((tiles, -(-self._n // BLOCK_ROWS), 3, width)),
        }  # fmt: skip
        ranks = None if self._at_seeds else self._ranks
        kernels.batch_begin(**self._tiles, chosen=self._chosen, **self._entries, ranks=ranks, threads=self._threads)
        self._at_seeds = False

    def _sums(self, which: int) -> Floats:
        """Return the sums over all blocks of each column."""
        sums: Floats = totals(self._tiles["sums"][:, :, which].swapaxes(0, 1)).reshape(-1)
        return sums

    def _factors(self) -> tuple[Floats, Floats]:
        """Return the factors of w and v for each column: alpha * D and 1 - alpha, or both for v where w = v."""
        mass = self._alpha * self._sums(2)
        return mass, (0 if self._target is not None else mass) + np.full(mass.size, 1 - self._alpha)

    def _per_seed(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return values per column as values per seed: 0 for a seed without a column."""
        spread = np.zeros(self._count, values.dtype)
        used = self._chosen >= 0
        spread[self._chosen[used]] = values[used]
        return spread

    def advance(self, goal: float, budget: int) -> tuple[Passes, Sums | None]:
        """Sweep the contributions, at first in float32; later calls, for what that did not prove, in float64."""
        if budget < 2:
            return 0, None
        # Whether a call is in float32 does not depend on the seeds, whose bits would differ.
        narrow, self._narrow = self._narrow, False
        self._fill_tiles(np.dtype(np.float32 if narrow else np.float64))
        sweeps, contributions = np.empty(self._chosen.size, np.int64), self._tiles["contributions"]
        moves = np.empty_like(contributions[: self._threads])
        kernels.batch_sweep(
            **self._tiles, dangling=self._sums(2), goal=max(goal, FLOAT32_CHANGE if narrow else 0.0),
            budget=min(budget - 1, MOST_SWEEPS), scratch_v=np.empty_like(moves[:, : self._teleports]),
            scratch_moves=moves, sweeps=sweeps, threads=self._threads,
        )  # fmt: skip
        return self._per_seed(sweeps), None

    def __call__(self, moves: Array | None = None) -> Sums:
        if self._chosen is None:
            self._fill_tiles(np.dtype(np.float64))
        mass, factor = self._factors()
        kernels.batch_step(
            **self._tiles, chosen=self._chosen, mass=mass, factor=factor, ranks=self._ranks, threads=self._threads
        )
        sums = Sums(self._per_seed(self._sums(0)), self._per_seed(self._tiles["sums"][:, :, 1].max(axis=1).reshape(-1)))
        self._chosen = None
        return sums

    def ranks(self) -> Floats:
        return self.transposed().T

    def transposed(self) -> Floats:
        if self._at_seeds:
            bounds, rows, values = self._entries.values()
            self._ranks[:] = 0
            self._ranks[np.repeat(np.arange(self._count), np.diff(bounds)), rows] = values
            self._at_seeds = False
        return self._ranks
