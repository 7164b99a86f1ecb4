"""Results of `Graph.rank`: the ranks, their error bound and how they were computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from prplugin.calls import explain_unknown_arguments
from prplugin.errors import InvalidOptionError, MissingLibraryError, NotConvergedError, PageRankError, counted
from prplugin.gpu import runtime
from prplugin.options import Options, validate_int
from prplugin.result.by_vertex import BySeed, Lookups, name_of
from prplugin.result.explain import explain, of_order, of_passes
from prplugin.result.selection import select_ranks
from prplugin.tables import Display, Displayed, upward
from prplugin.types.array_module import Ranks
from prplugin.types.arrays import (
    Array,
    explain_oom,
    gpu_of,
    highest,
    memory_space_of,
    namespace,
    on_host,
    to_host,
    to_memory,
)
from prplugin.types.edges import Integers
from prplugin.types.records import Order


class Tie(NamedTuple):
    """Vertices among the highest whose order is not proved, or that are proved equal.

    Attributes
    ----------
    places : range
        Their rows in the frame of the ranking. If it exceeds that frame, the choice among them is not proved.
    equal : bool
        Whether their exact ranks are proved equal. If not, the error bound exceeds the differences of their ranks.
    frame : frame
        The vertices, with their ranks.
    """

    places: range
    equal: bool
    frame: Any


SHOWN = 10  # number of highest ranks, or of seeds, in the representation of a ranking

SHOWN_OF_A_SEED = 3  # number of highest ranks of each seed in the representation


class Touched(Protocol):
    """Ranks that pushes found: `prplugin.streams.local_pushes.LocalRanks`."""

    @property
    def shown(self) -> tuple[Integers, Ranks] | None:
        """Positions and ranks of the vertices to return; None for all."""

    def dense(self) -> Ranks:
        """Return the ranks of all vertices."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Lookups, Displayed):
    """The ranks of a graph's vertices, with a proved bound on their error.

    ``ranking[vertex]`` is a rank in `frame`, or raises VertexNotFoundError, a KeyError. A vertex of several columns is
    a tuple. `in`, `len` and iteration are about the vertices in `frame`.

    Attributes
    ----------
    ranks : array of n float64 or float32
        One rank per vertex, in the order of the result. Their sum is 1, or n with ``scale="n"``. A CuPy array if the
        edges are a cuDF frame.
    converged : bool
        Whether the stopping rule was met. It is not inferred from the number of iterations.
    iterations : int
        Number of passes over the edges.
    error_bound : float
        Proved upper bound of the L1 distance to the exact PageRank, rounding included. It refers to ranks of sum 1:
        with ``scale="n"``, to the ranks divided by n.
    method : str
        Method that computed the ranks; with "auto", the one chosen.
    seconds : float
        Time of `rank`, reading the frame not included: layout, iterations and proof.
    """

    _given: Ranks | Touched
    converged: bool
    iterations: int
    error_bound: float
    method: str
    seconds: float
    _write: Callable[[NDArray[np.floating], Integers | None], Any]
    _top: int | None = None
    _order: Order | None = None
    _history: Any = None  # a History; None for the ranking of a one-shot graph, of which only the frame is returned
    _among: Integers | None = None
    _ids: Callable[[Integers], list[Hashable]] | None = None
    _contributions: Callable[..., Any] | None = None  # holds the graph; None without it

    @cached_property
    def ranks(self) -> NDArray[np.floating]:
        """Ranks of all vertices, in the order of the result."""
        # Not by `is_array`: those of a Dask cluster are a Series.
        return cast(Touched, self._given).dense() if hasattr(self._given, "dense") else self._given

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return `ranks` as a NumPy array."""
        return np.array(to_host(self.ranks), dtype=dtype, copy=copy)

    @cached_property
    def frame(self) -> Any:
        """Ranks as a frame of the same kind as the edges, with columns `vertex` and `pagerank`.

        If a vertex has several columns, they have the names of the source's columns. With ``top=k``, the frame has the
        k highest ranks in descending order.
        """
        began = time.perf_counter()
        with _allocating(self.ranks):
            if self._shown is not None:
                return self._write(self._shown[1], self._shown[0])
            rows = self._rows(self._top)
            frame = self._write(self.ranks, None) if rows is None else self._written(rows)
        self.__dict__["_writing"] = time.perf_counter() - began  # cached like the frame
        return frame

    @property
    def _shown(self) -> tuple[Integers, NDArray[np.floating]] | None:
        """Positions and ranks in the frame, if pushes have ranked few vertices; None: see `_rows`."""
        return cast(Touched, self._given).shown if hasattr(self._given, "dense") else None

    def _rows(self, top: int | None) -> Integers | None:
        """Return the positions of the vertices that are asked for, all (None) or the `top` highest."""
        if self._shown is not None:
            return self._shown[0]
        if self._order is not None:
            return self._order.rows
        if top is None:
            return self._among
        if self._among is None:
            return highest(self.ranks, top)
        found: Integers = self._among[highest(self.ranks[self._among], top)]
        return found

    @property
    def unknown(self) -> dict[str, int]:
        """Number of vertices that the graph lacks and that were ignored, by argument, such as "exclude"."""
        return {} if self._history is None else dict(self._history.unknown)

    @property
    def certified(self) -> bool:
        """Return whether the order of the `frame` is proved, except between vertices proved equal: see `ties`."""
        return self._order is not None and self._order.proved

    @property
    def vertex_bound(self) -> float:
        """Proved upper bound of the error of each rank before any cast, for ranks of sum 1."""
        return self.error_bound if self._order is None else self._order.margin

    @cached_property
    def ties(self) -> tuple[Tie, ...]:
        """Ties of a certified order, highest ranks first; empty if the order is strict.

        The last tie may exceed the end of the `frame`.

        Raises
        ------
        InvalidOptionError
            If the ranking was made without ``certified=True``.
        """
        if self._order is None:
            raise InvalidOptionError("only a certified order has ties: pass top=k, certified=True.")
        with _allocating(self.ranks):
            return tuple(
                Tie(range(first, first + rows.size), equal, self._written(rows))
                for first, rows, equal in self._order.ties
            )

    def explain(self, file: IO[str] | None = None) -> None:
        """Print the stages and their times, the methods and why one was chosen, passes, bytes and error bounds.

        For many seeds it prints the range of passes and bounds; for a Dask frame on several workers, the stages of the
        slowest worker.

        Parameters
        ----------
        file : file, optional
            File to print to. Default: standard output, or the cell of a notebook. Files other than terminals get plain
            text.
        """
        if file is not None and not hasattr(file, "write"):
            raise InvalidOptionError(
                f"explain takes a file to print to, not {file!r}. Why a vertex has its rank: contributions(vertex)."
            )
        explain(str(self), self._details(), self._history, self.__dict__.get("_writing"), file)

    @explain_unknown_arguments
    def contributions(self, vertex: object, top: int | None = None) -> Any:
        """Return why a vertex has its rank: what its in-neighbours, dangling mass and teleport contribute.

        No ranking is computed. The ranking keeps its graph in memory for this; a pickled or copied one does not.

        Parameters
        ----------
        vertex : vertex
            One vertex; a tuple if vertices have several columns.
        top : int, optional
            Return only the `top` largest contributions; for many seeds, of each.

        Returns
        -------
        frame
            Frame of the kind of `frame`, in descending order of the column `contribution`, which is `pagerank` times
            `share`. For an in-neighbour the `kind` is "edge", `pagerank` its rank and `share` the part of it that goes
            to the vertex: alpha * w / W, parallel edges together. Two more rows have the vertex itself as `vertex`: of
            kind "dangling", with the dangling mass as `pagerank`, and of kind "teleport", with the sum of all ranks.
            The contributions sum to the rank within `error_bound` (times n with ``scale="n"``). For many seeds, a
            first column `seed`.

        Raises
        ------
        VertexNotFoundError
            If the graph does not have the vertex.
        PageRankError
            If the edges are gone or have been updated since, or ranks that are needed were not kept.
        """
        top = None if top is None else validate_int("top", top)
        if self._contributions is None:
            raise PageRankError(
                "this ranking does not have its edges, since it was made in one call, pickled, copied, or made on a "
                "Dask cluster. Keep a graph in this process, and ask its ranking: "
                "prplugin.Graph(edges).rank().contributions(vertex)."
            )
        return self._contributions(self._all_ranks(), vertex, top)

    def _all_ranks(self) -> Array:
        """Return the ranks of all vertices."""
        return self.ranks

    def _details(self) -> Iterator[str]:
        """Return lines for `explain` that only this kind of ranking has."""
        yield from of_passes(self.iterations, self._history)
        if self._order is not None:
            yield from of_order(self._order)

    @explain_unknown_arguments
    def plot(self, *, top: int = SHOWN, labels: object = None, ax: object = None) -> Any:
        """Draw the highest vertices, the error bound against passes over the edges, and the distribution of ranks.

        For many seeds, draw the vertices of the highest mean rank, and the passes and the error bound of each. For a
        Dask frame on several workers the distribution is omitted, since no process has all ranks.

        Parameters
        ----------
        top : int, default 10
            Number of highest vertices.
        labels : dict or Series, optional
            Names of vertices, by vertex or indexed by vertex. Default, and for those that it lacks: their ids.
        ax : matplotlib.axes.Axes or sequence of them, optional
            Axes to draw in: one for the bars of the highest vertices alone, or one per panel. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure of `ax`, or a new one. A notebook shows it; ``figure.savefig(path)`` writes it.

        Raises
        ------
        InvalidOptionError
            If `top` is not a positive integer, `labels` gives no names by vertex, or `ax` is neither one Axes nor
            one per panel.
        MissingLibraryError
            If matplotlib is not installed.
        """
        try:
            from prplugin.result import plot  # imports matplotlib, which is optional
        except ModuleNotFoundError as error:
            raise MissingLibraryError("plot() draws with matplotlib: pip install 'prplugin[plot]'") from error
        return self._figure(plot, plot.labelled(self._highest(validate_int("top", top)), labels), ax)

    def _figure(self, plot: Any, highest: list[tuple[str, float]], ax: Any) -> Any:
        return plot.plot_ranking(to_host(self.ranks), self._history, highest, ax)

    def _highest(self, top: int = SHOWN) -> list[tuple[str, float]]:
        """Return the names and the ranks of the highest vertices of the frame."""
        with _allocating(self.ranks):
            found: Any = self._rows(self._top or top)
            rows = to_memory(found[:top], memory_space_of(self.ranks))
            ranks = to_host(self.ranks[rows]).tolist()
        return list(zip(self._names(rows), ranks, strict=True))

    def _names(self, rows: Integers) -> list[str]:
        """Return the ids of some vertices as people write them; their positions where no ids are known."""
        return [name_of(one) for one in (rows.tolist() if self._ids is None else self._ids(rows))]

    def _display(self) -> Display:
        shown = self._highest()
        rows = [[name, f"{rank:#.6g}"] for name, rank in shown]
        return Display(str(self), ["vertex", "pagerank"], rows, left=[0])

    def _written(self, rows: Integers) -> Any:
        rows = to_memory(rows, memory_space_of(self.ranks))
        return self._write(self.ranks[rows], rows)

    def __str__(self) -> str:
        return self._described(self.ranks.size)

    def _described(self, n: int) -> str:
        how = "converged" if self.converged else "not converged"
        return (
            f"PageRank of {counted(n, 'vertex', 'vertices')}: {how} after {counted(self.iterations, 'iteration')} of "
            f"{self.method}, error at most {upward(self.error_bound)}, {self.seconds:.3g} s"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistributedRanking(Ranking):
    """A ranking whose ranks are on the workers of a Dask cluster.

    `ranks` is a Dask Series, and `frame` a Dask DataFrame.

    Attributes
    ----------
    n : int
        Number of vertices.
    workers : int
        Number of workers that ranked.
    stages : dict
        Seconds of each stage on the slowest worker, construction of the graph included. "communication" is the time
        that a worker waited for others while it ranked; it is part of other stages as well.
    bytes_sent : list of int
        Approximate number of bytes that each worker sent to others while it ranked.
    """

    n: int
    workers: int
    stages: Mapping[str, float]
    bytes_sent: list[int]

    @cached_property
    def frame(self) -> Any:
        """Ranks as a Dask DataFrame: see `Ranking.frame`, and `Rankings.frame` for many seeds."""
        return self._write(self.ranks, None)

    def _written(self, rows: Integers) -> Any:
        return self._write(self.ranks, rows)

    def __str__(self) -> str:
        return self._described(self.n) + f" on {counted(self.workers, 'worker')}"

    def _details(self) -> Iterator[str]:
        yield f"bytes sent by each worker while it ranked, about: {', '.join(f'{one:,}' for one in self.bytes_sent)}"
        if self._order is not None:
            yield from of_order(self._order)

    def _figure(self, plot: Any, highest: list[tuple[str, float]], ax: Any) -> Any:
        return plot.plot_ranking(None, self._history, highest, ax)

    def _highest(self, top: int = SHOWN) -> list[tuple[str, float]]:
        found = on_host(self.frame.nlargest(top, "pagerank").compute())
        return [(name_of(ids[0] if len(ids) == 1 else ids), rank) for *ids, rank in found.itertuples(index=False)]

    def _display(self) -> Display:
        remark = f"ranking.frame.nlargest({SHOWN}, 'pagerank').compute() fetches the highest ranks from the workers."
        return Display(str(self), [], [], remark=remark)


@dataclass(frozen=True, eq=False, repr=False)
class Rankings(Ranking):
    """Rankings of a graph for k seeds, each with its own personalization.

    `ranks` is a matrix with one row per seed: k x n, or with ``top=t`` k x t, the highest ranks in descending order.
    Ranks that `exclude` leaves out for some seeds alone are 0, and their positions in `rows` -1.
    `converged` tells whether all seeds converged; `iterations` and `error_bound` are the maxima over the seeds.
    ``rankings[seed]`` is a dict by vertex; `in`, `len` and iteration are about the seeds.

    Attributes
    ----------
    each_converged, each_iterations, each_error_bound : arrays of k
        `converged`, `iterations` and `error_bound` of each seed.
    rows : array of k x t int64, or None
        Positions of these vertices in the order of the result; None for all vertices.
    """

    each_converged: NDArray[np.bool_] = field(kw_only=True)
    each_iterations: Integers = field(kw_only=True)
    each_error_bound: NDArray[np.float64] = field(kw_only=True)
    rows: Integers | None = field(kw_only=True, default=None)
    _seeds: Callable[[int], list[Hashable]] = field(kw_only=True)
    _counts: list[int] = field(kw_only=True)  # of the rows of each seed in the frame

    @cached_property
    def _by_vertex(self) -> BySeed:
        with _allocating(self.ranks):
            return BySeed(self.frame, self._seeds(len(self._counts)), self._counts)

    @cached_property
    def frame(self) -> Any:
        """Ranks as a frame of the same kind as the edges, with one row per seed and vertex.

        Its columns are `seed`, `vertex` and `pagerank`. If a vertex has several columns, they have the names of the
        source's columns, prefixed with "seed_" for seeds. With ``top=t``, the frame has the t highest ranks of each
        seed in descending order; fewer if `exclude` leaves fewer than t vertices.
        """
        with _allocating(self.ranks):
            return self._write(self.ranks, self.rows)

    def _all_ranks(self) -> Array:
        if self.rows is not None:
            raise PageRankError(
                "these rankings kept the ranks of some vertices only: rank without top=, among= and exclude=, and "
                "groups by personalization= instead of seeds=."
            )
        return self.ranks

    def __str__(self) -> str:
        return self._of_each(f"PageRank from {counted(self.each_converged.size, 'seed')}: {{}} after at most")

    def _of_each(self, begin: str) -> str:
        """Return a line that begins so, with whether all converged in place of the braces."""
        how = "converged" if self.converged else f"{int((~self.each_converged).sum()):,} not converged"
        return (
            f"{begin.format(how)} {counted(self.iterations, 'iteration')} of {self.method}, each error at most "
            f"{upward(self.error_bound)}, {self.seconds:.3g} s"
        )

    def _details(self) -> Iterator[str]:
        counts, bounds = self.each_iterations, self.each_error_bound
        yield f"passes over the edges: {counts.min()} to {counts.max()} per seed, {np.median(counts):g} in the median"
        yield f"error bounds: {upward(bounds.min())} to {upward(bounds.max())}"

    def _figure(self, plot: Any, highest: list[tuple[str, float]], ax: Any) -> Any:
        return plot.plot_seeds(self.each_iterations, self.each_error_bound, self._history, highest, ax)

    def _highest(self, top: int = SHOWN) -> list[tuple[str, float]]:
        """Return the names and the mean ranks of the vertices that are highest on average over the seeds."""
        xp = namespace(self.ranks)
        with _allocating(self.ranks):
            if self.rows is None:
                known, sums = None, self.ranks.sum(axis=0)
            else:  # ranks below the highest of a seed are unknown and count as 0
                returned = self.rows >= 0
                known, places = xp.unique(self.rows[returned], return_inverse=True)
                sums = xp.bincount(places.reshape(-1), weights=self.ranks[returned])
            found = highest(sums, top)
            means = to_host(sums[found]) / len(self.ranks)
            return list(zip(self._names(found if known is None else known[found]), means.tolist(), strict=True))

    def _display(self) -> Display:
        xp = namespace(self.ranks)
        with _allocating(self.ranks):
            ranks, places = select_ranks(self.ranks[:SHOWN], None, SHOWN_OF_A_SEED)
            assert places is not None
            found = places if self.rows is None else xp.take_along_axis(self.rows[:SHOWN], places, axis=1)
            names, ranks = [self._names(row[row >= 0]) for row in found], to_host(ranks)
        rows = [
            [
                name_of(seed),
                ", ".join(f"{name} ({rank:.3g})" for name, rank in zip(named, of_seed, strict=False)),
                str(self.each_iterations[place]),
                upward(self.each_error_bound[place]),
            ]
            for place, (seed, named, of_seed) in enumerate(zip(self._seeds(SHOWN), names, ranks.tolist(), strict=True))
        ]
        more = len(self.ranks) - len(rows)
        head = ["seed", "highest (pagerank)", "iterations", "error at most"]
        return Display(str(self), head, rows, left=[0, 1], remark=f"and {counted(more, 'more seed')}" if more else "")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistributedRankings(DistributedRanking, Rankings):
    """Rankings for many seeds, whose ranks are on the workers of a Dask cluster.

    `ranks` is a Dask Series, and `frame` a Dask DataFrame, as described for `Rankings`; `rows` is None.
    """

    _figure = Rankings._figure

    def __str__(self) -> str:
        return Rankings.__str__(self) + f" on {counted(self.workers, 'worker')}"

    def _details(self) -> Iterator[str]:
        yield from Rankings._details(self)
        yield from DistributedRanking._details(self)

    def _highest(self, top: int = SHOWN) -> list[tuple[str, float]]:
        names = list(self.frame.columns)
        ids = names[1 if names[0] == "seed" else (len(names) - 1) // 2 : -1]
        means = on_host(self.frame.groupby(ids)["pagerank"].sum().compute()) / len(self._counts)
        found = means.sort_values(ascending=False, kind="stable")[:top]
        return list(zip(map(name_of, found.index.tolist()), found.tolist(), strict=True))


def _allocating(ranks: Array) -> AbstractContextManager[None]:
    """Return a context manager that allocates in the memory of the ranks."""
    if memory_space_of(ranks) == "host":
        return explain_oom(lambda: "The ranks are kept: free memory, and ask again.")
    return runtime.device_allocation("device", gpu_of(ranks))


def not_converged(ranking: Ranking, options: Options) -> NotConvergedError:
    """Return the error for a ranking that did not meet its stopping rule."""
    rule, made = options.rule, ranking.iterations
    return NotConvergedError(
        f"{made} iterations did not reach {rule.unmet()}; the error is at most {ranking.error_bound:.2g}. "
        f"{rule.remedy(made, options.max_iter)} "
        "The ranks reached are in this error's .ranking.",
        ranking,
    )
