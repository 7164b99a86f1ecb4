"""What a ranking is: the ranks, and how they came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prplugin import cuda
from prplugin.graph.arrays import gpu_of, namespace, place_of
from prplugin.graph.edges import Integers

__all__ = ["Ranking", "SpreadRanking", "highest"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The ranks of a graph's vertices, with a proved bound on their error.

    Attributes
    ----------
    ranks : array of n float64 or float32
        One a vertex, in the order of the result; they sum to 1, or with ``scale="n"`` to n. Of a cuDF frame, a CuPy
        array.
    converged : bool
        Whether the stopping rule was met; never inferred from the count of iterations.
    iterations : int
        Power steps from the start to these ranks.
    error_bound : float
        Proved: the sum over all vertices of the distance to the exact PageRank is at most this, rounding included, in
        the measure of ranks that sum to 1 (with ``scale="n"``: that of the ranks divided by n).
    method : str
        The method that computed them: with "auto" and "measured", the one chosen.
    seconds : float
        Time that `rank` took: layout, iteration and proof, with ``method="measured"`` also the timing of methods; not
        the reading of the frame.
    """

    ranks: NDArray[np.floating[Any]]
    converged: bool
    iterations: int
    error_bound: float
    method: str
    seconds: float
    _write: Callable[[NDArray[np.floating[Any]], Integers | None], Any] = field(repr=False)
    _top: int | None = field(default=None, repr=False)

    @cached_property
    def frame(self) -> Any:
        """The ranks as a frame of the kind that the edges came in: columns `vertex` and `pagerank`.

        Vertices of several columns come back under the names of the source's columns. With ``top=k``, the k highest,
        in falling order.
        """
        with cuda.allocating(place_of(self.ranks), gpu_of(self.ranks)):
            if self._top is None:
                return self._write(self.ranks, None)
            rows = highest(self.ranks, self._top)
            return self._write(self.ranks[rows], rows)

    def __str__(self) -> str:
        return self._described(self.ranks.size)

    def _described(self, n: int) -> str:
        how = "converged" if self.converged else "not converged"
        return (
            f"PageRank of {n:,} vertices: {how} after {self.iterations} iterations of "
            f"{self.method}, error at most {self.error_bound:.2g}, {self.seconds:.3g} s"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SpreadRanking(Ranking):
    """A ranking whose ranks lie on the workers of a Dask cluster.

    `ranks` is a Series of Dask, and `frame` a frame of Dask.

    Attributes
    ----------
    n : int
        Vertices.
    workers : int
        How many ranked.
    stages : dict
        Seconds of each stage, those that made the graph included, on the slowest worker. Of "communication", the time
        that a worker waited for others while it ranked, the others include their part.
    bytes_sent : list of int
        By each worker to others while it ranked, about.
    """

    n: int
    workers: int
    stages: Mapping[str, float]
    bytes_sent: list[int]

    @cached_property
    def frame(self) -> Any:
        """The ranks as a frame of Dask: see `Ranking.frame`."""
        return self._write(self.ranks, None)

    def __str__(self) -> str:
        return self._described(self.n) + f" on {self.workers} workers"


def highest(ranks: NDArray[np.floating[Any]], k: int) -> Integers:
    """Give the positions of the k highest ranks, falling; equal ranks in the order of their positions."""
    xp = namespace(ranks)
    if k < ranks.size:
        # Everything above the k-th value, and as many of those equal to it as there is room for.
        threshold = xp.partition(ranks, ranks.size - k)[ranks.size - k]
        above = xp.flatnonzero(ranks > threshold)
        level = xp.flatnonzero(ranks == threshold)[: k - above.size]
        rows = xp.sort(xp.concatenate([above, level]))
    else:
        rows = xp.arange(ranks.size)
    falling: Integers = rows[xp.argsort(-ranks[rows], kind="stable")]
    return falling
