"""The processor's part of `cpu-split`: the in-edges of each vertex from the N-th on, and threads that sum them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prplugin.cpu.crew import Crew, equal_work
from prplugin.graph.adjacency import Adjacency
from prplugin.methods.engines import gpu_pull
from prplugin.types.arrays import moved, namespace
from prplugin.types.edges import Floats, Integers

__all__ = ["TailSums", "Tails", "cut_tails"]


class Tails(NamedTuple):
    """The last in-edges of some rows, longest first; t is a tail.

    `rows` (array of positions): The row of each tail, where the graph lies.
    `sources` (array of positions): The distinct sources that tails read, where the graph lies.
    `bounds` (array of offsets, on the host): Tail t is ``places[bounds[t]:bounds[t + 1]]``.
    `places`: array of positions in `sources`, on the host.
    `shares`: array of float64, or None, on the host.
    """

    rows: Integers
    sources: Integers
    bounds: Integers
    places: Integers
    shares: Floats | None


def cut_tails(adjacency: Adjacency, rows: Integers, lengths: Integers) -> Tails:
    """Take the last `lengths` in-edges of each of some rows."""
    offsets, sources, weights = adjacency.csc
    xp = namespace(offsets)
    longest_first = xp.argsort(-lengths, kind="stable")
    rows, lengths = rows[longest_first].astype(sources.dtype), lengths[longest_first]
    bounds = xp.zeros(rows.size + 1, np.int64)
    xp.cumsum(lengths, dtype=np.int64, out=bounds[1:])
    # The e-th edge of all tails, put end to end, is as far from the end of its tail as from the end of its row.
    edges = xp.arange(int(bounds[-1]))
    edges += (offsets[rows + 1] - bounds[1:])[xp.searchsorted(bounds[1:], edges, side="right")]
    read = sources[edges]
    needed = xp.zeros(adjacency.n, np.bool_)
    needed[read] = True
    places = (xp.cumsum(needed, dtype=sources.dtype) - 1)[read]
    shares = None
    if weights is not None:
        shares = gpu_pull.Shares(weights[edges], adjacency, read).of(np.float64)
    distinct = xp.flatnonzero(needed).astype(sources.dtype)
    return Tails(rows, distinct, moved(bounds, "host"), moved(places, "host"), moved(shares, "host"))


class TailSums:
    """Sums tails in several threads, which take pieces of about equal work as they come: the bits are those of one."""

    def __init__(self, bounds: Integers, places: Integers, threads: int) -> None:
        from prplugin.cpu import tail_kernels as kernels  # imports Numba

        self._kernels, self._places = kernels, places
        lengths = np.diff(bounds)
        long = int(np.count_nonzero(lengths > kernels.RUN))  # they come first
        runs = -(-lengths[:long] // kernels.RUN)
        self._runs_of = np.append(0, np.cumsum(runs))
        cuts = [np.arange(bounds[tail], bounds[tail + 1], kernels.RUN) for tail in range(long)]
        self._bounds = np.concatenate([*cuts, bounds[long:]])
        self._high, self._low = np.empty(int(runs.sum())), np.empty(int(runs.sum()))
        work = int(self._bounds[-1]) + 4 * self._bounds.size
        # Pieces shorter than a run are not worth handing to another thread.
        pieces = equal_work(self._bounds, 1, min(8 * threads, 1 + work // kernels.RUN))
        self._crew = Crew(pieces, threads)

    def __call__(self, contributions: Floats, shares: Floats | None, sums: Floats) -> None:
        """Write the sum of each tail."""
        long = self._runs_of.size - 1

        def sum_piece(first: int, last: int) -> None:
            self._kernels.sum_runs(
                first, last, self._bounds, self._places, shares, contributions, self._high, self._low, sums[long:]
            )

        self._crew.work(sum_piece)
        self._kernels.join_runs(self._runs_of, self._high, self._low, sums)
