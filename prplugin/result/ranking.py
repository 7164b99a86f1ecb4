"""What a ranking is: the ranks, and how they came about."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prplugin.errors import InvalidOptionError, NotConvergedError, PageRankError
from prplugin.gpu import runtime
from prplugin.options import Options
from prplugin.result.explain import explain
from prplugin.result.plot import plot
from prplugin.types.arrays import gpu_of, memory_space_of, namespace, to_host, to_memory
from prplugin.types.edges import Integers
from prplugin.types.history import History
from prplugin.types.order import Order

__all__ = ["DistributedRanking", "Ranking", "Rankings", "Tie", "highest", "highest_of_each", "require_converged"]


class Tie(NamedTuple):
    """Vertices among the highest whose order is not proved, or that are proved equal.

    Attributes
    ----------
    places : range
        Which rows of the ranking's frame they take; beyond its end, others could be in it as well.
    equal : bool
        Whether their exact ranks are proved to be equal; else they are nearer than the error bound can tell apart.
    frame : frame
        The vertices, with their ranks.
    """

    places: range
    equal: bool
    frame: Any


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
    _order: Order | None = field(default=None, repr=False)
    _history: History | None = field(default=None, repr=False)
    _among: Integers | None = field(default=None, repr=False)

    @cached_property
    def frame(self) -> Any:
        """The ranks as a frame of the kind that the edges came in: columns `vertex` and `pagerank`.

        Vertices of several columns come back under the names of the source's columns. With ``top=k``, the k highest,
        in falling order.
        """
        began = time.perf_counter()
        with runtime.allocating(memory_space_of(self.ranks), gpu_of(self.ranks)):
            frame = self._write(self.ranks, None) if (rows := self._rows()) is None else self._written(rows)
        self.__dict__["_writing"] = time.perf_counter() - began  # kept as the frame is
        return frame

    def _rows(self) -> Integers | None:
        """Return the positions of the rows of the frame: None for all."""
        if self._order is not None:
            return self._order.rows
        if self._among is None:
            return None if self._top is None else highest(self.ranks, self._top)
        if self._top is None:
            return self._among
        rows: Integers = self._among[highest(self.ranks[self._among], self._top)]
        return rows

    @property
    def certified(self) -> bool:
        """Whether the order of the `frame` is proved, but for vertices that are proved equal: see `ties`."""
        return self._order is not None and self._order.proved

    @property
    def vertex_bound(self) -> float:
        """Proved: no rank is further from the exact one than this, in the measure of `error_bound`, before any cast."""
        return self.error_bound if self._order is None else self._order.margin

    @cached_property
    def ties(self) -> tuple[Tie, ...]:
        """What an order that was to be certified leaves open, from the top down: empty where it is strict.

        The last tie may go on past the end of the `frame`. Without ``certified=True`` nothing is known of ties, and
        this raises InvalidOptionError.
        """
        if self._order is None:
            raise InvalidOptionError("ties are known of a certified order alone: ask for top=k, certified=True.")
        with runtime.allocating(memory_space_of(self.ranks), gpu_of(self.ranks)):
            return tuple(
                Tie(range(first, first + rows.size), equal, self._written(rows))
                for first, rows, equal in self._order.ties
            )

    def explain(self, file: IO[str] | None = None) -> None:
        """Print what was done and what it cost: stages, methods and reasons, passes, bytes, bounds.

        Parameters
        ----------
        file : file, optional
            Where to; standard output if not given. What is no terminal gets plain text.
        """
        explain(str(self), self.iterations, self._record, self._order, self.__dict__.get("_writing"), file)

    def plot(self) -> Any:
        """Draw the error bound against passes over the edges, and the distribution of ranks.

        Returns
        -------
        matplotlib.figure.Figure
            Shown by a notebook; ``figure.savefig(path)`` writes it.

        Raises
        ------
        MissingLibraryError
            If matplotlib is not installed.
        """
        return plot(to_host(self.ranks), self._record)

    @property
    def _record(self) -> History:
        if self._history is None:
            raise PageRankError("this ranking keeps no record of how it came about.")
        return self._history

    def _written(self, rows: Integers) -> Any:
        rows = to_memory(rows, memory_space_of(self.ranks))
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
class DistributedRanking(Ranking):
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


@dataclass(frozen=True, eq=False)
class Rankings(Ranking):
    """The rankings of a graph from several seeds, that is with as many personalizations.

    `ranks` is a matrix with a row a seed: k x n, or with ``top=t`` k x t, the highest of each in falling order. The
    attributes that are one number hold for all: `converged` says whether all have, `iterations` is the most, and
    `error_bound` the greatest of any.

    Attributes
    ----------
    each_converged, each_iterations, each_error_bound : arrays of k
        The same of each seed.
    rows : array of k x t int64, or None
        With ``top=t``, the positions of those vertices in the order of the result.
    """

    each_converged: NDArray[np.bool_] = field(kw_only=True)
    each_iterations: NDArray[np.int64] = field(kw_only=True)
    each_error_bound: NDArray[np.float64] = field(kw_only=True)
    rows: Integers | None = field(kw_only=True, default=None)

    @cached_property
    def frame(self) -> Any:
        """The ranks as a frame of the kind that the edges came in: one row for each seed and vertex.

        Its columns are `seed`, `vertex` and `pagerank`; seeds and vertices of several columns have the source's names,
        those of seeds with "seed_" before them. With ``top=t``, the t highest of each seed, in falling order.
        """
        with runtime.allocating(memory_space_of(self.ranks), gpu_of(self.ranks)):
            return self._write(self.ranks, self.rows)

    def __str__(self) -> str:
        how = "converged" if self.converged else f"{int((~self.each_converged).sum()):,} not converged"
        return (
            f"PageRank from {len(self.ranks):,} seeds: {how} after at most {self.iterations} iterations of "
            f"{self.method}, each error at most {self.error_bound:.2g}, {self.seconds:.3g} s"
        )


MOST_IN_A_BLOCK = 64
"""Entries of which the greatest stands for all in a first look for the highest, at most."""


def highest_of_each(ranks: NDArray[np.floating[Any]], k: int) -> Integers:
    """Give the positions of the k highest of each row of a matrix, as `highest` does of a vector."""
    xp: Any = namespace(ranks)
    count, n = ranks.shape
    found: Integers
    if k >= n:
        found = xp.argsort(-ranks, axis=1, kind="stable")
        return found
    # The k-th greatest of the greatest of some blocks is no greater than the k-th of all: few are as great. A block's
    # entries lie far apart, for neighbours are often alike.
    block = max(1, min(MOST_IN_A_BLOCK, n // (4 * k)))
    threshold = xp.sort(ranks[:, : n // block * block].reshape(count, block, -1).max(axis=1), axis=1)[:, -k]
    # Zeros are many where few vertices can be reached.
    rows, columns = xp.nonzero((ranks >= threshold[:, None]) & (ranks > 0))
    order = xp.lexsort(xp.stack([columns, -ranks[rows, columns], rows]))
    begins = xp.searchsorted(rows, xp.arange(count + 1))
    found = xp.append(columns[order], xp.zeros(k, columns.dtype))[begins[:-1, None] + xp.arange(k)]
    for row in xp.flatnonzero(begins[1:] - begins[:-1] < k).tolist():
        found[row] = highest(ranks[row], k)
    return found


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


def require_converged(ranking: Ranking, options: Options) -> Ranking:
    """Return the ranking; raise NotConvergedError if it did not meet its stopping rule, unless ``tol=0``."""
    if ranking.converged or options.tol == 0:
        return ranking
    rule = {
        "error": f"a proved error of {options.tol:g}",
        "delta": f"an L1 change of {options.tol:g}",
        "vertex": f"no vertex moving by more than {options.tol:g}",
        "networkx": f"an L1 change of n * {options.tol:g}",
    }[options.stop]
    more = "Allow a larger max_iter or tol." if options.max_iter is not None else "More would not: allow a larger tol."
    raise NotConvergedError(
        f"{ranking.iterations} iterations did not reach {rule}; the error is at most {ranking.error_bound:.2g}. {more} "
        "The ranks reached are in this error's .ranking.",
        ranking,
    )
