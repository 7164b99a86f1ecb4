"""CPU kernels of `cpu-split`, and of `segmented` with ``cpu=True``; they release the GIL.

The tail of a vertex is its in-edges from the N-th on. Tails longer than `RUN` are split into runs that are summed
separately, so that several threads share the tail of a hub. The split does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from prplugin.cpu.memory import compiled

__all__ = ["RUN", "join_runs", "sum_runs"]

RUN = 1 << 14
"""Edges per run, at most: about ten microseconds of work."""


@compiled
def sum_runs(first, last, bounds, places, normalized_weights, contributions, high, low, sums):
    """Sum the runs first..last; run r is the edges bounds[r]..bounds[r + 1].

    Knuth's TwoSum gives the rounding error of each addition; the errors are summed beside the terms, as in sums.cuh.
    The first ``high.size`` runs are parts of long tails and keep sum and error separate; each later run is a whole
    tail.
    Terms are computed in float64 for any type of contributions and normalized weights.
    """
    parts = high.size
    for run in range(first, last):
        total, errors = 0.0, 0.0
        for edge in range(bounds[run], bounds[run + 1]):
            term = np.float64(contributions[places[edge]])
            if normalized_weights is not None:
                term *= np.float64(normalized_weights[edge])
            before = total
            total = before + term
            added = total - before
            errors += (before - (total - added)) + (term - added)
        if run < parts:
            high[run] = total
            low[run] = errors
        else:
            sums[run - parts] = total + errors


@compiled
def join_runs(runs_of, high, low, sums):
    """Add up the runs of each long tail in order; those of tail t are runs_of[t]..runs_of[t + 1]."""
    for tail in range(runs_of.size - 1):
        total, errors = 0.0, 0.0
        for run in range(runs_of[tail], runs_of[tail + 1]):
            before = total
            total = before + high[run]
            added = total - before
            errors += (before - (total - added)) + (high[run] - added) + low[run]
        sums[tail] = total + errors
