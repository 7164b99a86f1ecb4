"""Personalized queries: the vertices that are asked for, and the ranks of many seeds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from prplugin.errors import InvalidOptionError
from prplugin.frames.vertices import Vertices
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Seeds
from prplugin.options import GivenByVertex, Options
from prplugin.result.selection import select_ranks
from prplugin.streams.host_edges import HostEdges
from prplugin.streams.local import LocalQueries, LocalRanks, Wanted
from prplugin.types.arrays import MemorySpace, namespace, to_memory
from prplugin.types.edges import Floats, Integers

TRIED_AT_A_TIME = 8
"""Number of seeds, none of which pushes rank in time, after which no more are tried."""


def check_certified(options: Options, given: GivenByVertex) -> None:
    """Raise if ``certified=True`` has no order to prove."""
    if not options.certified:
        return
    if options.top is None and given.among is None:
        raise InvalidOptionError(
            "certified=True proves the order of the highest ranks: pass their number as top=k, or the vertices to "
            "compare as among=."
        )
    if given.seeds is not None:
        raise InvalidOptionError(
            "certified=True proves the order of one ranking, but seeds= requests several: rank each seed in a separate "
            "call, or omit certified."
        )


def read_entries(vertices: Vertices, given: GivenByVertex) -> tuple[Integers, Floats] | None:
    """Return the positions and the positive values of the personalization, not normalized; None without one."""
    if (values := given.personalization) is None:
        return None
    if type(values) is np.ndarray:  # faster for a graph without ids
        vector = vertices.read_values(values, "personalization")
        rows = namespace(vector).flatnonzero(vector)
        return rows, vector[rows]
    rows, entries = vertices.read_entries(values, "personalization")
    positive = namespace(entries).flatnonzero(entries)
    return rows[positive], entries[positive]


def read_selection(
    vertices: Vertices, given: GivenByVertex, own: Integers | None, memory_space: MemorySpace
) -> tuple[Integers | None, Integers | None]:
    """Return the positions of the vertices in `among`, and of those in `exclude`.

    `own`: Vertices that exclude="seeds" leaves out; None if each of several rankings has its own.
    """
    among = None if given.among is None else vertices.read_positions(given.among, "among")
    excluded = own if isinstance(given.exclude, str) else None
    if given.exclude is not None and not isinstance(given.exclude, str):
        excluded = vertices.read_positions(given.exclude, "exclude", may_be_empty=True)
    return to_memory(among, memory_space), to_memory(excluded, memory_space)


def remaining(n: int, among: Integers | None, excluded: Integers | None) -> Integers | None:
    """Return the positions in `among`, or all, without the excluded ones; None for all n."""
    if excluded is None:
        return among
    kept = namespace(excluded).ones(n, np.bool_)
    kept[excluded] = False
    found: Integers = namespace(kept).flatnonzero(kept) if among is None else among[kept[among]]
    return found


def requested(ranks: Floats, options: Options) -> Any:
    """Return ranks in the requested scale and type."""
    return (ranks if options.scale == 1 else ranks * ranks.shape[-1]).astype(options.dtype, copy=False)


class SeedRanks:
    """The ranks to return of k seeds: matrices with a row per seed, and how each seed was ranked.

    `ranks`, `rows`: Ranks and their positions, None for all vertices; None before the first are stored.
    """

    def __init__(
        self, seeds: Seeds, options: Options, selection: tuple[Integers | None, Integers | None], n: int, *, own: bool
    ) -> None:
        self._seeds, self._options, self._selection, self._own = seeds, options, selection, own
        self._selected = remaining(n, *selection)
        self.ranks: Any = None
        self.rows: Any = None
        self.converged = np.ones(seeds.count, np.bool_)
        self.iterations, self.bounds = np.zeros(seeds.count, np.int64), np.zeros(seeds.count)

    def keep(self, which: Integers, ranks: Floats, memory_space: MemorySpace) -> None:
        """Store ranks of all vertices, a row per seed in `which`."""
        excluded = self._seeds.take(which).support() if self._own else None
        wanted = self._selected, self._options.top
        found = select_ranks(requested(ranks, self._options), *wanted, excluded)
        self._store(which, *(to_memory(array, memory_space) for array in found))

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

    def push(self, queries: LocalQueries, edges: Adjacency | HostEdges, threads: int) -> Integers:
        """Rank the seeds by pushes, each on one thread; return those that iterations over all edges are to rank."""
        every, left = np.arange(self._seeds.count), []

        def rank(seed: int) -> LocalRanks | None:
            part = self._seeds.slice(seed, seed + 1)
            among, excluded = self._selection
            if self._own and self._options.top is not None:
                excluded = part.support()[1]
            wanted = Wanted(self._options.top, among, excluded)
            return queries.rank(edges, (part.rows, part.values), self._options, wanted)

        with ThreadPoolExecutor(max(1, threads)) as pool:
            for first in range(0, every.size, TRIED_AT_A_TIME):
                some = every[first : first + TRIED_AT_A_TIME]
                for seed, found in zip(some.tolist(), pool.map(rank, some.tolist()), strict=True):
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
        if found.shown is None or (self._own and top is None):
            excluded = self._seeds.take(which).support() if self._own else None
            self._store(which, *select_ranks(found.dense()[None], self._selected, None, excluded))
            return
        size = found.n if self._selected is None else self._selected.size
        width = size if top is None else min(top, size)
        rows, ranks = np.full((1, width), -1), np.zeros((1, width), found.values.dtype)
        rows[0, : found.shown[0].size], ranks[0, : found.shown[1].size] = found.shown
        self._store(which, ranks, rows)
