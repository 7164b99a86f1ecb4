"""Parts of queries: the order to prove, and the ranks of many seeds, by pushes or by iterations over all edges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prplugin.cpu import packing
from prplugin.cpu.sums import total
from prplugin.frames.exclusion import excluded_of
from prplugin.frames.groups import inverse
from prplugin.frames.vertices import Labels, Vertices
from prplugin.graph.edges import Edges, PartOfProblem, Problem, normalized_weights
from prplugin.graph.equal_ranks import EqualRanks
from prplugin.graph.teleports import Seeds
from prplugin.machine import Machine, mapping_on
from prplugin.methods.estimates import describe_seeds_memory
from prplugin.methods.registry import choose_batch
from prplugin.options import Options, Unknown
from prplugin.progress import Watch
from prplugin.result.selection import remaining, select_ranks
from prplugin.solver.batch import Batch, batches
from prplugin.solver.top_k import OrderProof
from prplugin.streams.host_edges import HostEdges
from prplugin.streams.local_pushes import LocalPushes, LocalRanks, Wanted
from prplugin.types.array_module import Ranks
from prplugin.types.arrays import Array, MemorySpace, all_to_memory, explain_oom, namespace, to_host, to_memory
from prplugin.types.edges import Coo, Csc, Floats, Integers, PackedRows

CHECKED_EARLY = 1 << 26
"""Edges of a graph on a GPU from which an order is checked before the tolerance is met; below a check takes longer."""

TRIED_AT_A_TIME = 8
"""Number of seeds, none of which pushes rank in time, after which no more are tried."""


def order_proof(adjacency: Edges, vertices: Vertices, options: Options, selected: Integers | None) -> OrderProof:
    """Return the proof of the order of the vertices to return, by default of all that are selected."""

    def read_vectors() -> list[Floats]:
        names = ("personalization", "dangling") if options.alpha else ("personalization",)
        given = {what: getattr(options, what) for what in names}
        unknown = Unknown(options.unknown)
        return [vertices.read_values(values, what, unknown) for what, values in given.items() if values is not None]

    rows = None if selected is None else to_host(selected)
    k = options.top or (0 if rows is None else rows.size) or 1
    early = adjacency.memory_space == "host" or adjacency.m >= CHECKED_EARLY
    equal = EqualRanks(adjacency, read_vectors, alpha=options.alpha).equal
    return OrderProof(k, equal, options.tol, rows, early=early)


class SeedRanks:
    """The ranks to return of k seeds: matrices with a row per seed, and how each seed was ranked.

    `selection`: Positions to return, and to leave out. `own`: Vertices to leave out by seed; None without.
    `ranks`, `rows`: Ranks and their positions, None for all vertices; empty before the first are stored.
    """

    def __init__(
        self, seeds: Seeds, options: Options, selection: tuple[Integers | None, Integers | None], own: Seeds | None,
        n: int,
    ) -> None:  # fmt: skip
        self._seeds, self._options, self._selection, self._own = seeds, options, selection, own
        self._selected = remaining(n, *selection)
        self.ranks: Ranks = np.empty((0, 0))
        self.rows: Integers | None = None
        self.converged = np.ones(seeds.count, np.bool_)
        self.iterations, self.bounds = np.zeros(seeds.count, np.int64), np.zeros(seeds.count)

    def keep(self, left: Integers, batch: Batch, memory_space: MemorySpace) -> Integers:
        """Store the ranks of all vertices for the first seeds in `left`; return the others."""
        which, left = np.split(left, [len(batch.ranks)])
        self.converged[which], self.iterations[which], self.bounds[which] = batch[1:]
        excluded = None if self._own is None else self._own.take(which).support()
        wanted = self._selected, self._options.top
        found = select_ranks(self._options.requested(batch.ranks), *wanted, excluded)
        self._store(which, *all_to_memory(memory_space, *found))
        return left

    def _store(self, which: Integers, ranks: Ranks, rows: Integers | None) -> None:
        if which.size == self._seeds.count and type(ranks) is np.ndarray and ranks.flags.c_contiguous:
            self.ranks, self.rows = ranks, rows  # of the only batch, which nothing overwrites
            return
        if len(self.ranks) < self._seeds.count:
            shape = self._seeds.count, ranks.shape[1]
            self.ranks = namespace(ranks).empty(shape, ranks.dtype)
            self.rows = None if rows is None else namespace(rows).empty(shape, rows.dtype)
        self.ranks[which] = ranks
        if rows is not None and self.rows is not None:
            self.rows[which] = rows

    @classmethod
    def joined(cls, parts: list[tuple[int, SeedRanks]], order: Integers, options: Options) -> SeedRanks:
        """Return the ranks of seeds of several groups in one order; parts have the position of the first vertex."""
        ranks, xp = [part.ranks for _, part in parts], namespace(parts[0][1].ranks)
        width, places, end = max(own.shape[1] for own in ranks), inverse(order), 0
        found = cls(Seeds(np.zeros(order.size + 1, np.int64), order[:0], np.empty(0)), options, (None, None), None, 0)
        found.ranks = xp.zeros((order.size, width), ranks[0].dtype)
        found.rows = xp.full(found.ranks.shape, -1)
        for first, part in parts:
            at = places[end : (end := end + len(part.ranks))]
            found.converged[at], found.iterations[at], found.bounds[at] = part.converged, part.iterations, part.bounds
            own, at = part.ranks.shape[1], xp.asarray(at)
            found.ranks[at, :own] = part.ranks
            found.rows[at, :own] = (
                xp.arange(first, first + own) if part.rows is None else xp.where(part.rows < 0, -1, part.rows + first)
            )
        return found

    def counts(self) -> list[int]:
        """Return the number of ranks to return of each seed, without those of excluded vertices."""
        if self.rows is None:
            return [self.ranks.shape[1]] * self._seeds.count
        counts: list[int] = (self.rows >= 0).sum(axis=1).tolist()
        return counts

    def push(self, pushes: LocalPushes, edges: Edges | HostEdges, threads: int) -> Integers:
        """Rank the seeds by pushes, each on one thread; return those that iterations over all edges are to rank."""
        every, left = np.arange(self._seeds.count), []

        def rank(seed: int) -> LocalRanks | None:
            part = self._seeds.slice(seed, seed + 1)
            among, excluded = self._selection
            if self._options.top is not None:
                excluded = excluded_of(excluded, self._own, seed)
            wanted = Wanted(self._options.top, among, excluded)
            return pushes.rank(edges, (part.rows, part.values), self._options, wanted)

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


Allocating: TypeAlias = Callable[[MemorySpace, Edges], AbstractContextManager[None]]
"""Returns a context manager that allocates in a memory space, on the GPU of the edges."""


class Iterating(NamedTuple):
    """Rank seeds by iterations over all edges, with these options."""

    options: Options
    machine: Machine
    watch: Watch
    allocating: Allocating

    def rank(self, found: SeedRanks, left: Integers, problem: Problem, seeds: Seeds, start: Floats | None) -> str:
        """Rank the seeds that are `left`, in batches; return the name of the method."""
        options, adjacency = self.options, problem.adjacency
        with self.allocating(adjacency.memory_space, adjacency):
            method = choose_batch(options.method, adjacency, self.machine, options.method_options, left.size)
        adjacency.keep(None)  # frees its memory
        memory_space: MemorySpace = "device" if method.runs_on == "gpu" else adjacency.memory_space
        planned = partial(describe_seeds_memory, seeds.count, adjacency.n)
        with explain_oom(planned), self.allocating(memory_space, adjacency):
            some = seeds.take(left)
            for batch in batches(method, problem, some, start, options, self.machine, self.watch.iterations):
                left = found.keep(left, batch, adjacency.memory_space)
        name: str = method.name
        return name

    def rank_in_groups(
        self, problem: Problem, offsets: Integers, seeds: Seeds, selection: tuple[Integers | None, Integers | None],
        own: Seeds | None, start: Floats | None,
    ) -> tuple[SeedRanks, Integers, str]:  # fmt: skip
        """Rank the seeds of each group of vertices by itself; a seed with vertices of several groups in each of them.

        Return the ranks, the seed of each ranking, in the order of seeds and groups, and the name of a method.
        """
        parts, ranked, name = [], [], ""
        for group, which in seeds.by_group(offsets):
            first, past = offsets[group : group + 2].tolist()
            given = seeds.take(which).within(first, past)
            given = Seeds.normalized(given.bounds, given.rows, given.values)
            among, excluded = (
                None if rows is None else rows[(rows >= first) & (rows < past)] - first for rows in selection
            )
            mine = None if own is None else own.take(which).within(first, past)
            begin = None if start is None or not (ours := start[first:past]).any() else ours / total(ours)
            found = SeedRanks(given, self.options, (among, excluded), mine, past - first)
            posed = PartOfProblem(problem.adjacency.part(first, past), problem.alpha)
            name = self.rank(found, np.arange(which.size), posed, given, begin)
            parts.append((first, found))
            ranked.append((which, np.full(which.size, group)))
        each, of_group = map(np.concatenate, zip(*ranked, strict=True))
        order = np.lexsort((of_group, each))
        return SeedRanks.joined(parts, order, self.options), each[order], name


# --- contributions to a rank --------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """The equation of a ranking, or of one per seed.

    `teleport`: n values, the positions and values of some vertices, or those of seeds; None: uniform.
    """

    alpha: float
    teleport: Floats | tuple[Integers, Floats] | Seeds | None
    dangling: Floats | None

    def of(self, row: int, n: int, count: int) -> tuple[Floats, Floats]:
        """Return the entries v and w of a vertex in each of `count` rankings, on the host."""
        v = np.full(count, 1 / n)
        if isinstance(self.teleport, Seeds):
            v = np.array([float(self.teleport.vector(seed, n)[row]) for seed in range(count)])
        elif isinstance(self.teleport, tuple):
            rows, values = self.teleport
            v[:] = float(values[rows == row].sum()) / float(values.sum())
        elif self.teleport is not None:
            v[:] = float(self.teleport[row])
        return v, v if self.dangling is None else np.full(count, float(self.dangling[row]))


def contributions(
    adjacency: Edges, vertices: Vertices, vertex: object, ranks: Array, terms: Terms, top: int | None,
    labels: Labels | None,
) -> Any:  # fmt: skip
    """Return the frame of `Ranking.contributions`, by the equation of the rank of one vertex i.

        x_i = sum over j of x_j * (alpha * w_ji / W_j) + D * (alpha * w_i) + S * ((1 - alpha) * v_i)

    with the dangling mass D and the sum S of all ranks.
    """
    row, n, dangling = vertices.position_of(vertex), adjacency.n, adjacency.dangling
    ranks, own = ranks.reshape(-1, n), ranks.reshape(-1, n)
    count, alpha = len(ranks), terms.alpha
    sources, shares = in_shares(adjacency, row)
    if getattr(vertices, "by", 0):  # the masses are those of its group
        first, past = vertices.part_of(row)  # type: ignore[attr-defined]
        dangling, own = dangling[(dangling >= first) & (dangling < past)], ranks[:, first:past]
    v, w = terms.of(row, n, count)
    v, w = v * (n / own.shape[1]), w * (n / own.shape[1])
    given = [ranks[:, to_memory(rows, adjacency.memory_space)] for rows in (sources, dangling)]
    of_sources, of_dangling = (to_host(part).astype(np.float64) for part in given)
    masses = of_dangling.sum(axis=1), to_host(own.sum(axis=1, dtype=np.float64))
    mass = np.column_stack([of_sources, *masses])
    share = np.column_stack([np.tile(alpha * shares, (count, 1)), alpha * w, (1 - alpha) * v])
    order = np.argsort(-(mass * share), axis=1, kind="stable")[:, :top]
    kinds = np.array(["edge"] * sources.size + ["dangling", "teleport"])[order].reshape(-1).tolist()
    rows = np.append(sources, [row, row])[order]
    mass, share = (np.take_along_axis(array, order, axis=1).reshape(-1) for array in (mass, share))
    columns = {"kind": kinds, "pagerank": mass, "share": share, "contribution": mass * share}
    return vertices.write_columns(rows if labels is not None else rows[0], columns, labels)


def in_shares(adjacency: Edges, row: int) -> tuple[Integers, Floats]:
    """Return the in-neighbours of a vertex, ascending, and the fraction w / W of each one's out-weight, on the host."""
    csc, packed, weights = adjacency.held(Csc), adjacency.held(PackedRows), None
    if csc is None and packed is not None:
        sources = _unpacked_row(packed, row, adjacency.n)
    elif csc is not None or adjacency.given is not Coo:
        offsets, indices, weights = adjacency.get(Csc)
        entries = slice(int(offsets[row]), int(offsets[row + 1]))
        sources, weights = indices[entries], None if weights is None else weights[entries]
    else:  # one pass over the edges, which takes less time and memory than to group them
        edges = adjacency.get(Coo)
        at = namespace(edges.destination).flatnonzero(edges.destination == row)
        sources, weights = edges.source[at], None if edges.weights is None else edges.weights[at]
    out_weight = to_host(adjacency.out_weight[sources])
    sources = to_host(sources).astype(np.int64)
    weights = np.ones(sources.size) if weights is None else to_host(weights)
    fractions = normalized_weights(weights, np.arange(sources.size), out_weight)
    neighbours, places = np.unique(sources, return_inverse=True)
    sums: Floats = np.bincount(places.reshape(-1), fractions, neighbours.size).astype(np.float64, copy=False)
    return neighbours, sums


def _unpacked_row(packed: PackedRows, row: int, n: int) -> Integers:
    """Return the sources of one row of packed in-edges, from the pieces that may have edges of it."""
    data, begins, rows = packed
    first_rows = np.where(rows < 0, ~rows, rows)
    first, last = max(int(np.searchsorted(first_rows, row)) - 1, 0), int(np.searchsorted(first_rows, row, "right"))
    while first and rows[first] < 0:  # begin where a row does
        first -= 1
    if first >= last:
        return np.empty(0, np.int64)
    some = data[begins[first] : begins[last] + packing.SPARE]
    starts = begins[first : last + 1] - begins[first]
    count = int((some[starts[:-1]] + 256 * some[starts[:-1] + 1].astype(np.int64)).sum())
    offsets, sources = packing.unpack(PackedRows(some, starts, rows[first:last]), n, count, 1)
    return sources[offsets[row] : offsets[row + 1]]
