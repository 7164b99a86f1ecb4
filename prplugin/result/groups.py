"""Rankings of all groups of a graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, cast

import numpy as np

from prplugin.errors import counted
from prplugin.result.by_vertex import BySeed, name_of
from prplugin.result.ranking import (
    SHOWN,
    SHOWN_OF_A_SEED,
    DistributedRanking,
    DistributedRankings,
    Ranking,
    Rankings,
    _allocating,
)
from prplugin.tables import Display, upward
from prplugin.types.arrays import Array, highest, memory_space_of, namespace, to_host, to_memory
from prplugin.types.edges import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class GroupRankings(Rankings):
    """Rankings of the groups of a graph, each a graph of its own.

    `ranks` has the ranks of all vertices, group by group, each of sum 1. `converged` tells whether all groups
    converged, and `error_bound` is the largest bound of a group. ``rankings[group]`` is a dict by vertex; `in`, `len`
    and iteration are about the groups.

    Attributes
    ----------
    each_converged, each_iterations, each_error_bound : arrays of one entry per group
        `converged`, `iterations` and `error_bound` of each group.
    rows : array of int64, or None
        Positions of the vertices in `frame`; None for all vertices.
    """

    _by: int = field(kw_only=True)  # number of columns of groups

    @cached_property
    def _by_vertex(self) -> BySeed:
        with _allocating(self.ranks):
            return BySeed(self.frame, self._seeds(len(self._counts)), self._counts, self._by)

    @cached_property
    def frame(self) -> Any:
        """Ranks as a frame of the same kind as the edges, with one row per vertex, group by group.

        Its columns are those of groups, `vertex` and `pagerank`. With ``top=t``, the frame has the t highest ranks of
        each group in descending order.
        """
        with _allocating(self.ranks):
            return self._write(self.ranks, None) if self.rows is None else self._written(self.rows)

    def _all_ranks(self) -> Array:
        return self.ranks

    def __str__(self) -> str:
        return self._described(self.ranks.size)

    def _described(self, n: int) -> str:
        groups = counted(self.each_converged.size, "group")
        return self._of_each(f"PageRank of {groups} with {counted(n, 'vertex', 'vertices')}: {{}} after")

    def _details(self) -> Iterator[str]:
        yield f"passes over the edges: {self.iterations}"
        if self.each_error_bound.size:
            yield f"error bounds: {upward(self.each_error_bound.min())} to {upward(self.each_error_bound.max())}"

    def _highest(self, top: int = SHOWN) -> list[tuple[str, float]]:
        with _allocating(self.ranks):
            ranks = self.ranks if self.rows is None else self.ranks[self.rows]
            found = highest(ranks, top)
            rows = found if self.rows is None else self.rows[found]
            return list(zip(self._names(rows), to_host(ranks[found]).tolist(), strict=True))

    def _display(self) -> Display:
        shown, end = [], 0
        with _allocating(self.ranks):
            for place, (group, count) in enumerate(zip(self._seeds(SHOWN), self._counts, strict=False)):
                part = slice(end, end := end + count)
                ranks = self.ranks[part if self.rows is None else self.rows[part]]
                found = highest(ranks, SHOWN_OF_A_SEED)
                rows = found + part.start if self.rows is None else self.rows[part][found]
                names = (
                    [name_of(cast("tuple[Hashable, ...]", one)[self._by :]) for one in self._ids(rows)]
                    if self._ids
                    else []
                )
                listed = zip(names, to_host(ranks[found]).tolist(), strict=False)
                text = ", ".join(f"{name} ({rank:.3g})" for name, rank in listed)
                shown.append([name_of(group), text, str(count), upward(self.each_error_bound[place])])
        more = len(self._counts) - len(shown)
        head = ["group", "highest (pagerank)", "vertices", "error at most"]
        return Display(str(self), head, shown, left=[0, 1], remark=f"and {counted(more, 'more group')}" if more else "")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistributedGroupRankings(DistributedRankings, GroupRankings):
    """Rankings of groups, whose ranks are on the workers of a Dask cluster: see `DistributedRanking`.

    `ranks` is a Dask Series, and `frame` a Dask DataFrame with the groups of a worker in each partition.
    """

    _display, _highest = DistributedRanking._display, DistributedRanking._highest

    def __str__(self) -> str:
        return f"{self._described(self.n)} on {self.workers} workers"

    def _details(self) -> Iterator[str]:
        yield from GroupRankings._details(self)
        yield from DistributedRanking._details(self)


def rows_of_groups(
    ranks: Array, offsets: Integers, among: Integers | None, top: int | None
) -> tuple[Integers | None, Integers]:
    """Return the positions to return, group by group, and their number in each group; None for all."""
    xp = namespace(ranks)
    if among is None and top is None:
        return None, np.diff(offsets)
    rows = xp.arange(ranks.size) if among is None else to_memory(among, memory_space_of(ranks))
    if top is not None:
        rows = rows[xp.argsort(-ranks[rows], kind="stable")]
    groups = xp.searchsorted(xp.asarray(offsets), rows, "right") - 1
    order = xp.argsort(groups, kind="stable")
    rows, groups = rows[order], groups[order]
    counts = np.bincount(to_host(groups), minlength=offsets.size - 1)
    if top is not None:
        begins = xp.asarray(np.repeat(np.cumsum(counts) - counts, counts))
        rows, counts = rows[xp.arange(rows.size) - begins < top], np.minimum(counts, top)
    return rows, counts


def by_group(ranking: Ranking, bounds: Floats, tol: float, iterations: Integers, vertices: Any) -> GroupRankings:
    """Return the rankings of groups, given one of all `prplugin.frames.groups.GroupedVertices`."""
    given = {each.name: getattr(ranking, each.name) for each in fields(Ranking) if each.name != "ranks"}
    rows, counts = rows_of_groups(ranking.ranks, vertices.offsets, ranking._among, ranking._top)
    return GroupRankings(
        **given, each_converged=bounds <= tol, each_error_bound=bounds, rows=rows,
        each_iterations=iterations, _seeds=vertices.first_groups,
        _counts=counts.tolist(), _by=vertices.by,
    )  # fmt: skip
