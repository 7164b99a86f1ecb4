"""Many seeds side by side: an edge brings a line of contributions, a seed a lane of the processor's vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from prplugin.certificate import StepChain
from prplugin.graph.edges import Floats
from prplugin.graph.sums import chain, totals
from prplugin.methods._host_batch import HostBatch, width_for
from prplugin.methods._numba_kernels import edge_shares, fan_for, pull_chain
from prplugin.methods._threads import Crew, equal_work
from prplugin.problem import Problem, Seeds

__all__ = ["NumbaBatch"]

BYTES = 8 + 2 * 8
"""Of a rank and its contributions, in this step and the next."""

BLOCKS_ONCE = 8
"""Pieces of the work for each thread."""


class NumbaBatch(HostBatch):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v for some v at once."""

    narrow_pays = True

    def __init__(self, problem: Problem, seeds: int, threads: int) -> None:
        from prplugin.methods import _batch_kernels as kernels

        self._kernels = kernels
        adjacency = problem.adjacency
        n = adjacency.n
        super().__init__(problem, width_for(seeds, n, BYTES))
        self._edges = offsets, sources, weights = adjacency.csc
        self._offsets, self._sources = offsets.view(np.uint64), sources.view(f"u{sources.itemsize}")
        self._out_weight = adjacency.out_weight
        # As in `numba`: 1 / W; 1 where the edge has its share w / W; 0 where the vertex is dangling.
        flowing = ~self._dangling
        if weights is None:
            self._outflow = np.divide(1.0, self._out_weight, out=np.zeros(n), where=flowing)
        else:
            self._outflow = flowing.astype(np.float64)
        blocks = -(-n // kernels.BLOCK)
        self._bounds = np.minimum(np.arange(blocks + 1) * kernels.BLOCK, n)
        self._sums = np.empty((blocks, 3, self.width))
        self._crew = Crew(equal_work(offsets, kernels.BLOCK, BLOCKS_ONCE * threads), threads)
        self._lanes = (np.uint8(0),) * self.width
        largest = adjacency.largest_in_degree
        self._fan = np.uint64(fan_for(largest))
        in_a_block = 2 * kernels.GROUP
        self._chain = StepChain(
            row=pull_chain(largest),
            edge=2 if weights is None else adjacency.out_weight_chain + 4,
            dangling=max(chain(n), in_a_block + chain(blocks)),
            vectors=problem.vector_chain,
            norm=in_a_block + chain(blocks) + 1,
        )
        self.contribute_in("float64")

    def contribute_in(self, dtype: str) -> None:
        self._dtype: Any = np.dtype(dtype)
        _, sources, weights = self._edges
        self.chain = replace(self._chain, single=0 if dtype == "float64" else 1 + (weights is not None))
        self._shares: Any = None
        if weights is not None:
            self._shares = np.empty(weights.size, dtype)
            edge_shares(weights, sources, self._out_weight, self._shares)

    def start(self, seeds: Seeds, ranks: Floats | float | None) -> None:
        super().start(seeds, ranks)
        rows, columns, values = self._seeds.by_row()
        self._entries = np.searchsorted(rows, self._bounds), rows.view(np.uint64), columns, values

    def _begin(self, live: Any) -> None:
        super()._begin(live)
        self._contributions: Any = np.multiply(self._ranks, self._outflow[:, None], dtype=np.float64).astype(
            self._dtype, copy=False
        )
        self._next = np.empty_like(self._contributions)

    def _step(self) -> tuple[Floats, Floats, Floats]:
        pour = self._pour

        def sweep(first: int, last: int) -> None:
            self._kernels.sweep(
                first, last, self._offsets, self._sources, self._shares, self._fan, self._outflow,
                self._contributions.reshape(-1), self._lanes, self._alpha, self._mass, self._target, pour,
                *self._entries, self._live, self._ranks.reshape(-1), self._next.reshape(-1), self._sums,
            )  # fmt: skip

        self._crew.work(sweep)
        self._contributions, self._next = self._next, self._contributions
        return totals(self._sums[:, 0]), self._sums[:, 1].max(axis=0), totals(self._sums[:, 2])
