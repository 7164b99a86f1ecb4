"""Teleport distributions: one, divided by its sum, and those of many seeds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from prplugin.cpu.sorting import stable_order
from prplugin.cpu.sums import total
from prplugin.errors import InvalidOptionError, counted, listed
from prplugin.types.arrays import MemorySpace, expand_values, is_host, namespace, to_host, to_memory
from prplugin.types.edges import Floats, Integers


@dataclass(slots=True, eq=False, repr=False)
class Seeds:
    """Personalizations of k rankings, as a sparse n x k matrix by columns."""

    bounds: Integers  # offsets: k + 1 int64, on the host
    rows: Integers  # positions of vertices, each once per seed
    values: Floats  # float64, with sum 1 per seed

    @classmethod
    def normalized(cls, bounds: Integers, rows: Integers, values: Floats) -> Seeds:
        """Divide the values of each seed by their sum; raise InvalidOptionError if that is 0 or infinite."""
        with np.errstate(over="ignore"):
            sums = sums_of_runs(values, bounds)
        on_host = to_host(sums)
        if (none := np.flatnonzero(on_host == 0)).size:
            raise InvalidOptionError(
                f"seeds: the values of {counted(none.size, 'seed')} sum to 0, the one at {listed(none)} (counted from "
                "0): at least one vertex needs a positive value."
            )
        if (past := np.flatnonzero(~np.isfinite(on_host))).size:
            raise InvalidOptionError(
                f"seeds: the values of {counted(past.size, 'seed')} sum to more than float64 holds, the one at "
                f"{listed(past)} (counted from 0). Divide them by the greatest."
            )
        return cls(bounds, rows, values / namespace(sums).asarray(np.repeat(on_host, np.diff(bounds))))

    @property
    def count(self) -> int:
        """Number of seeds."""
        return self.bounds.size - 1

    def take(self, which: Integers) -> Seeds:
        """Return some of the seeds, by positions in ascending order."""
        if which.size == self.count:
            return self
        sizes = np.diff(self.bounds)[which]
        bounds = np.append(0, np.cumsum(sizes))
        at = np.repeat(self.bounds[which] - bounds[:-1], sizes) + np.arange(bounds[-1])
        at = namespace(self.rows).asarray(at)
        return Seeds(bounds, self.rows[at], self.values[at])

    def slice(self, first: int, last: int) -> Seeds:
        """Return the seeds `first` to `last` - 1."""
        begin, end = self.bounds[first], self.bounds[last]
        return Seeds(self.bounds[first : last + 1] - begin, self.rows[begin:end], self.values[begin:end])

    def within(self, first: int, past: int) -> Seeds:
        """Return the entries of consecutive vertices alone, with positions that count from the first of them."""
        kept = namespace(self.rows).flatnonzero((self.rows >= first) & (self.rows < past))
        sizes = np.bincount(to_host(self._seeds()[kept]), minlength=self.count)
        return Seeds(np.append(0, np.cumsum(sizes)), self.rows[kept] - first, self.values[kept])

    def by_group(self, offsets: Integers) -> list[tuple[int, Integers]]:
        """Return each group of consecutive vertices in which seeds have positive values, and these seeds."""
        each, rows = map(to_host, self.support())
        groups = np.searchsorted(offsets, rows, "right") - 1
        pairs = np.unique(groups * self.count + each)
        found, begins = np.unique(pairs // self.count, return_index=True)
        return list(zip(found.tolist(), np.split(pairs % self.count, begins[1:]), strict=True))

    def on(self, memory_space: MemorySpace) -> Seeds:
        """Return the same seeds in "host" or "device" memory."""
        return Seeds(self.bounds, to_memory(self.rows, memory_space), to_memory(self.values, memory_space))

    def entries_by_vertex(self) -> tuple[Integers, Integers, Floats]:
        """Return vertex, seed and value of each entry, sorted by vertex and then by seed."""
        order = stable_order(self.rows)
        return self.rows[order], self._seeds()[order], self.values[order]

    def support(self) -> tuple[Integers, Integers]:
        """Return the seed and the vertex of each positive value."""
        positive = namespace(self.values).flatnonzero(self.values)
        return self._seeds()[positive], self.rows[positive]

    def _seeds(self) -> Integers:
        """Return the seed of each entry."""
        seeds: Integers = namespace(self.rows).asarray(np.repeat(np.arange(self.count), np.diff(self.bounds)))
        return seeds

    def vector(self, seed: int, n: int) -> Floats:
        """Return one seed as a dense vector of n float64."""
        one = self.slice(seed, seed + 1)
        spread: Floats = expand_values(one.values, n, one.rows, 0.0)
        return spread


def sums_of_runs(values: Floats, bounds: Integers) -> Floats:
    """Sum consecutive runs of non-negative values. `bounds` holds the offsets of the runs, on the host."""
    if is_host(values):
        return np.array([total(values[first:last]) for first, last in pairwise(bounds.tolist())])
    from prplugin.gpu import group  # imports CuPy, which holds the values

    return group.run_sums(values, namespace(values).asarray(bounds))


def normalised(values: Floats, what: str, sum_of: Callable[[Floats], float] = total) -> Floats:
    """Divide non-negative values by their sum; raise InvalidOptionError if that is 0 or infinite."""
    with np.errstate(over="ignore"):
        sum_ = sum_of(values)
    if sum_ == 0:
        raise InvalidOptionError(f"{what} sums to 0: at least one vertex needs a positive value.")
    if not math.isfinite(sum_):
        raise InvalidOptionError(f"{what} sums to more than float64 holds. Divide its values by the greatest.")
    return values / sum_
