"""Parts of queries: the order to prove, and the ranks of many seeds, by pushes or by iterations over all edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.frames.exclusion import excluded_of
from prplugin.frames.vertices import Vertices
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.equal_ranks import EqualRanks
from prplugin.graph.problem import Seeds
from prplugin.machine import mapping_on
from prplugin.options import Options, Unknown
from prplugin.result.selection import remaining, select_ranks
from prplugin.solver.batch import Batch
from prplugin.solver.top_k import OrderProof
from prplugin.streams.host_edges import HostEdges
from prplugin.streams.local import LocalQueries, LocalRanks, Wanted
from prplugin.types.arrays import MemorySpace, namespace, to_host, to_memory
from prplugin.types.edges import Floats, Integers

TRIED_AT_A_TIME = 8
"""Number of seeds, none of which pushes rank in time, after which no more are tried."""


def order_proof(adjacency: Adjacency, vertices: Vertices, options: Options, selected: Integers | None) -> OrderProof:
    """Return the proof of the order of the vertices to return, by default of all that are selected."""

    def read_vectors() -> list[Floats]:
        names = ("personalization", "dangling") if options.alpha else ("personalization",)
        given = {what: getattr(options, what) for what in names}
        unknown = Unknown(options.unknown)
        return [vertices.read_values(values, what, unknown) for what, values in given.items() if values is not None]

    rows = None if selected is None else to_host(selected)
    k = options.top or (0 if rows is None else rows.size) or 1
    return OrderProof(k, EqualRanks(adjacency, read_vectors, alpha=options.alpha).equal, options.tol, rows)


class SeedRanks:
    """The ranks to return of k seeds: matrices with a row per seed, and how each seed was ranked.

    `selection`: Positions to return, and to leave out. `own`: Vertices to leave out by seed; None without.
    `ranks`, `rows`: Ranks and their positions, None for all vertices; None before the first are stored.
    """

    def __init__(
        self, seeds: Seeds, options: Options, selection: tuple[Integers | None, Integers | None], own: Seeds | None,
        n: int,
    ) -> None:  # fmt: skip
        self._seeds, self._options, self._selection, self._own = seeds, options, selection, own
        self._selected = remaining(n, *selection)
        self.ranks: Any = None
        self.rows: Any = None
        self.converged = np.ones(seeds.count, np.bool_)
        self.iterations, self.bounds = np.zeros(seeds.count, np.int64), np.zeros(seeds.count)

    def keep(self, left: Integers, batch: Batch, memory_space: MemorySpace) -> Integers:
        """Store the ranks of all vertices for the first seeds in `left`; return the others."""
        which, left = np.split(left, [len(batch.ranks)])
        self.converged[which], self.iterations[which], self.bounds[which] = batch[1:]
        excluded = None if self._own is None else self._own.take(which).support()
        wanted = self._selected, self._options.top
        found = select_ranks(self._options.requested(batch.ranks), *wanted, excluded)
        self._store(which, *(to_memory(array, memory_space) for array in found))
        return left

    def _store(self, which: Integers, ranks: Any, rows: Any) -> None:
        if which.size == self._seeds.count and type(ranks) is np.ndarray and ranks.flags.c_contiguous:
            self.ranks, self.rows = ranks, rows  # of the only batch, which nothing overwrites
            return
        if self.ranks is None:
            shape = self._seeds.count, ranks.shape[1]
            self.ranks = namespace(ranks).empty(shape, ranks.dtype)
            self.rows = None if rows is None else namespace(rows).empty(shape, rows.dtype)
        self.ranks[which] = ranks
        if rows is not None:
            self.rows[which] = rows

    def counts(self) -> list[int]:
        """Return the number of ranks to return of each seed, without those of excluded vertices."""
        if self.rows is None:
            return [self.ranks.shape[1]] * self._seeds.count
        counts: list[int] = (self.rows >= 0).sum(axis=1).tolist()
        return counts

    def push(self, queries: LocalQueries, edges: Adjacency | HostEdges, threads: int) -> Integers:
        """Rank the seeds by pushes, each on one thread; return those that iterations over all edges are to rank."""
        every, left = np.arange(self._seeds.count), []

        def rank(seed: int) -> LocalRanks | None:
            part = self._seeds.slice(seed, seed + 1)
            among, excluded = self._selection
            if self._options.top is not None:
                excluded = excluded_of(excluded, self._own, seed)
            wanted = Wanted(self._options.top, among, excluded)
            return queries.rank(edges, (part.rows, part.values), self._options, wanted)

        with mapping_on(threads) as run:
            for first in range(0, every.size, TRIED_AT_A_TIME):
                some = every[first : first + TRIED_AT_A_TIME]
                for seed, found in zip(some.tolist(), run(rank, some.tolist()), strict=True):
                    if found is None or not found.met:
                        left.append(seed)
                    else:
                        self._keep_local(seed, found)
                if left[-some.size :] == some.tolist():
                    return np.append(left, every[first + some.size :]).astype(np.int64)
        return np.array(left, np.int64)

    def _keep_local(self, seed: int, found: LocalRanks) -> None:
        self.iterations[seed], self.bounds[seed] = found.passes, found.error_bound
        which, top = np.array([seed]), self._options.top
        if found.shown is None or (self._own is not None and top is None):
            excluded = None if self._own is None else self._own.take(which).support()
            self._store(which, *select_ranks(found.dense()[None], self._selected, None, excluded))
            return
        size = found.n if self._selected is None else self._selected.size
        width = size if top is None else min(top, size)
        rows, ranks = np.full((1, width), -1), np.zeros((1, width), found.values.dtype)
        rows[0, : found.shown[0].size], ranks[0, : found.shown[1].size] = found.shown
        self._store(which, ranks, rows)
