"""Compensated sums of rows by several threads: see run_sums.cpp.

Rows longer than `RUN` are split into runs that are summed separately, so that several threads share a long row; the
split does not depend on their number.
"""

from __future__ import annotations

import numpy as np

from prplugin.cpu import kernels
from prplugin.cpu.threads import equal_work
from prplugin.types.edges import Floats, Integers

RUN = 1 << 14
"""Edges per run, at most: about ten microseconds of work."""


class ThreadedSums:
    """Row sums by several threads, in pieces of about equal work; the bits do not depend on their number.

    `bounds`: Row k has the edges ``bounds[k]:bounds[k + 1]``; longest rows first.
    `places`: Position of the contribution of each edge.
    """

    def __init__(self, bounds: Integers, places: Integers, threads: int) -> None:
        lengths = np.diff(bounds)
        self._long = int(np.count_nonzero(lengths > RUN))
        runs = -(-lengths[: self._long] // RUN)
        self._runs_of = np.append(0, np.cumsum(runs))
        cuts = [np.arange(bounds[row], bounds[row + 1], RUN) for row in range(self._long)]
        every = np.concatenate([*cuts, bounds[self._long :]])
        parts = int(self._runs_of[-1])
        self._edges = every[: parts + 1], every[parts:], places
        self._part_sums = np.empty((parts, 2))
        runs_of_work = (int(every[-1]) + 4 * every.size) // RUN
        self._pieces = equal_work(every, min(8 * threads, 1 + runs_of_work))
        # Starting a thread takes about as long as the sum of two runs.
        self._threads = min(threads, 1 + runs_of_work // 4)

    def __call__(self, contributions: Floats, weights: Floats | None, sums: Floats) -> None:
        """Write the sum of each row; weights have the type of the contributions."""
        kernels.sum_runs(
            self._pieces, *self._edges, weights, contributions, self._runs_of, self._part_sums, sums[: self._long],
            sums[self._long :], self._threads,
        )  # fmt: skip
