"""Groups on the workers of a Dask cluster: each worker gets whole groups, and ranks them as one process does.

The rows of a group may be in several partitions. Workers exchange the groups of their partitions, so that all know them
in the order of the result; consecutive ones, with about as many rows per worker, go to one worker, in the order of the
frame. Arguments that name groups are divided in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from distributed import get_worker

from prplugin.cpu import library
from prplugin.distributed.communicator import Communicator, call_on_all, gather_results
from prplugin.distributed.shard import Stages, partitions_of
from prplugin.errors import WorkerLostError, rows_of_frame
from prplugin.frames.columns import Column, Columns, Frame, check_kinds, same_kind
from prplugin.frames.ids import HOST, Ids
from prplugin.frames.parts import Parts
from prplugin.frames.vertices import ids_in, plain_ids
from prplugin.graph.edges import factorize_ids
from prplugin.options import EdgeOptions, Options, excluded_by_seed
from prplugin.progress import ProgressCallback, Watch
from prplugin.types.arrays import MemorySpace, to_host
from prplugin.types.edges import Integers
from prplugin.types.records import Considered, History


def complete(columns: list[Column]) -> Integers:
    """Return the rows of columns that have no missing value."""
    missing = [HOST.missing_rows(column) for column in columns]
    return np.setdiff1d(np.arange(len(columns[0])), np.concatenate(missing))


class Groups(NamedTuple):
    """All groups in the order of the result, on the host, and the worker that owns each."""

    columns: list[Column]
    kinds: list[str]
    owners: Integers

    def owners_of(self, columns: list[Column], what: str) -> Integers:
        """Return the owner of the group of each row; the first worker refuses those without one, or of an unknown."""
        owners = np.zeros(len(columns[0]), np.int64)
        kept = complete(columns)
        columns = [HOST.take(column, kept) for column in columns]
        check_kinds([HOST.kind_of(column, what) for column in columns], self.kinds, what)
        if self.owners.size:
            at = HOST.positions(self.columns, columns, self.kinds, what)
            owners[kept] = np.where(at < 0, 0, self.owners[at])
        return owners

    def extended(self, columns: list[Column], labels: list[str]) -> Groups:
        """Return the groups with new ones, which the owner of the group before owns."""
        joined = [_joined(pair, label) for *pair, label in zip(self.columns, columns, labels, strict=True)]
        (codes,), found, kinds = HOST.codes_of([joined], [labels], factorize_ids)
        owners = np.zeros(len(found[0]), np.int64)
        owners[codes[: self.owners.size]] = self.owners
        return Groups(found, kinds, np.maximum.accumulate(owners))


@dataclass(frozen=True)
class GroupsPart:
    """The groups of one worker, as a graph of this process, and facts about those of all."""

    graph: Any  # a `prplugin.local.LocalGraph`
    groups: Groups
    rank: int
    by: list[Hashable]  # names of the columns of groups
    n: int
    m: int
    seconds: dict[str, float]
    clock: None = None

    def options(self, options: Options, threads: int) -> Options:
        """Return the options for the groups of this worker."""
        given = {what: getattr(options, what) for what in ("personalization", "nstart", "among", "exclude")}
        own = {what: self._own(value, what) for what, value in given.items() if value is not None}
        more = dict(options.method_options)
        if library.is_available() and options.method in ("auto", "native") and self.graph.memory_space == "host":
            more.setdefault("threads", threads)
        return replace(options, **own, method_options=more)

    def _own(self, given: Any, what: str) -> Any:
        vertices = self.graph.state().vertices
        if isinstance(given, str) or not self.graph.n:
            return given if isinstance(given, str) else None
        words = excluded_by_seed(given) if what == "exclude" and isinstance(given, (list, tuple)) else frozenset()
        rest = [one for one in given if not (isinstance(one, str) and one in words)] if words else given
        with vertices.reading(rest, what):
            rest = vertices.converted(rest, what)
            if (words and not rest) or not vertices.names_groups(rest):
                return given
            numbers = None
            if what in ("among", "exclude"):
                columns = vertices.id_columns(rest, what)
            else:
                columns, numbers = vertices.ids_and_numbers(rest, what)
            columns = list(map(_on_host, columns))
            rows = np.flatnonzero(self.groups.owners_of(columns[: len(self.by)], what) == self.rank)
            if not rows.size and what in ("exclude", "nstart"):
                return sorted(words) or None
            if not rows.size and what == "personalization":
                vertices.shares(vertices.ids.xp.zeros(len(vertices)), what)  # raises
            own = [HOST.take(column, rows) for column in columns]
            if words:
                return [*words, *plain_ids(own, np.arange(rows.size))]
            named = [*vertices.names, *([] if numbers is None else ["values"])]
            return HOST.frame_of(named, own if numbers is None else [*own, to_host(numbers)[rows]])


@dataclass(frozen=True)
class GroupsReport:
    """Results of a ranking other than the frames, of all workers: see `prplugin.distributed.ranks.Report`."""

    history: History
    rows: list[int]
    like: Any
    bytes_sent: list[int]
    by: int
    counts: list[int]
    names: list[Hashable]
    converged: Any
    iterations: Any
    bounds: Any


def _joined(columns: list[Column], label: str) -> Any:
    return HOST.as_column(HOST.concatenate([HOST.without_categories(each) for each in columns], label))


def _on_host(column: Any) -> Any:
    """Return a column of any library, or an array, as a Series of pandas."""
    column = column.to_pandas() if hasattr(column, "to_pandas") else to_host(column)
    return HOST.as_column(getattr(column, "array", column))


def build_groups(
    communicator: Communicator, memory_space: MemorySpace, frames: list[Frame], partitions: list[int], columns: Columns,
    additional: list[Column] | None, *, read: Callable[..., Any], how: EdgeOptions,
) -> GroupsPart:  # fmt: skip
    """Build the graph of the groups that this worker owns; collective.

    `read`: Returns the graph of a list of frames, given the options of edges. The other parameters are those of
    `prplugin.distributed.shard.build`.
    """
    stages, ids, by = Stages(), ids_in(memory_space), columns.source_names[: columns.by]
    parts = partitions_of(communicator, ids, frames, partitions, columns)
    kept, keys = zip(*call_on_all(communicator, lambda: _keys_of(ids, parts)), strict=True)
    labels = columns.id_labels()[0][: columns.by]
    given = [(number, each) for number, each in zip(partitions, keys, strict=True) if len(each[0])]
    if additional is not None and communicator.rank == 0:
        given.append((parts.rows + len(partitions), additional[: columns.by]))  # after all partitions
    groups = _groups_of(communicator, given, labels)
    if how.time is not None and how.now is None:
        latest = call_on_all(communicator, lambda: _latest(ids, frames, parts.own_columns))
        how = replace(how, now=max((one for one in communicator.all_gather(latest) if one is not None), default=None))
    sent: list[list[Frame]] = [[] for _ in range(communicator.size)]
    for number, start, frame, complete_rows, own in zip(partitions, parts.starts, frames, kept, keys, strict=True):
        owners = groups.owners_of(own, "by")
        for rank, pieces in enumerate(sent):
            rows = complete_rows[owners == rank]
            pieces.append((number, frame.iloc[ids.xp.asarray(rows)], start + rows))
    received = sorted((piece for pieces in communicator.all_to_all(sent) for piece in pieces), key=lambda one: one[0])
    stages.done("shuffle")
    if additional is not None:
        rows = np.flatnonzero(groups.owners_of(additional[: columns.by], "vertices") == communicator.rank)
        how = replace(how, vertices=HOST.frame_of(columns.vertex_names, [HOST.take(one, rows) for one in additional]))
    how = replace(how, by=by, **columns.id_names)

    def read_own() -> Any:
        with rows_of_frame(np.concatenate([rows for _, _, rows in received])):
            return read([frame for _, frame, _ in received], how)

    graph = call_on_all(communicator, read_own)
    stages.done("groups")
    n, m = map(sum, zip(*communicator.all_gather((graph.n, graph.m)), strict=True))
    return GroupsPart(graph, groups, communicator.rank, by, n, m, stages.seconds)


def _keys_of(ids: Ids, parts: Parts) -> list[tuple[Integers, list[Column]]]:
    """Return the rows of each part that are not dropped, and their groups, on the host."""
    found = []
    for frame, own in zip(parts.frames, parts.own_columns, strict=True):
        rows = ids.complete_rows(frame, own)
        rows = np.arange(len(frame)) if rows is None else to_host(rows)
        columns = (ids.column_of(frame, at) for at in own.source[: own.by])
        found.append((rows, [HOST.take(_on_host(column), rows) for column in columns]))
    return found


def _groups_of(communicator: Communicator, of_parts: list[tuple[int, list[Column]]], labels: list[str]) -> Groups:
    """Return all groups, of the columns of groups of numbered parts; collective."""

    def distinct() -> list[Any]:
        found = []
        for number, columns in of_parts:
            given = [HOST.take(column, complete(columns)) for column in columns]
            (codes,), own, kinds = HOST.codes_of([given], [labels], factorize_ids)
            order = np.unique(codes, return_index=True)[1].argsort(kind="stable")  # of first appearance
            sizes = np.bincount(codes, minlength=len(own[0]))
            found.append((number, kinds, [HOST.take(one, order) for one in map(HOST.as_column, own)], sizes[order]))
        return found

    of_ranks = gather_results(communicator, distinct)
    parts = sorted((part for parts in of_ranks for part in parts), key=lambda part: part[0])
    if not parts:
        return Groups([np.empty(0, object) for _ in labels], ["empty" for _ in labels], np.empty(0, np.int64))
    for at, label in enumerate(labels):
        same_kind([kinds[at] for _, kinds, _, _ in parts], [f"{label} of partition {number}" for number, *_ in parts])
    joined = [_joined([each[at] for *_, each, _ in parts], label) for at, label in enumerate(labels)]
    (codes,), found, kinds = HOST.codes_of([joined], [labels], factorize_ids)
    sizes = np.bincount(codes, np.concatenate([sizes for *_, sizes in parts]), len(found[0]))
    middle = np.cumsum(sizes) - sizes / 2
    owners = np.minimum(middle * communicator.size // max(sizes.sum(), 1), communicator.size - 1).astype(np.int64)
    return Groups(found, kinds, owners)


def _latest(ids: Ids, frames: list[Frame], own: list[Columns]) -> Any:
    """Return the latest time in frames; None without rows."""
    times = [ids.column_of(frame, one.time) for frame, one in zip(frames, own, strict=True) if one.time is not None]
    return max((time.max() for time in times if len(time)), default=None)


def rank_groups(
    communicator: Communicator, part: GroupsPart, names: list[Hashable], options: Options, threads: int,
    report: ProgressCallback | None = None,
) -> tuple[list[Any], GroupsReport]:  # fmt: skip
    """Rank the groups of this worker; collective. Return their frame, and a report; see `rank_shard`."""
    stages = Stages()

    def own() -> Any:
        asked, wanted = part.options(options, threads), True
        if asked.among is not None and not len(asked.among):  # of other workers alone
            asked, wanted = replace(asked, among=None, top=1), False
        ranking = part.graph.rank(asked, Watch(report))
        frame = ranking.frame
        return (ranking, frame, ranking._counts) if wanted else (ranking, frame.iloc[:0], [0] * len(ranking._counts))

    ranking, frame, counts = call_on_all(communicator, own)
    stages.done("iterations")
    facts = len(frame), frame.iloc[:0], counts, ranking._seeds(len(ranking._counts)), ranking._history.unknown
    arrays = ranking.each_converged, ranking.each_iterations, ranking.each_error_bound
    of_ranks = communicator.all_gather((*facts, *arrays, part.seconds | stages.seconds, ranking.method))
    rows, likes, counts, groups, unknown, converged, iterations, bounds, seconds, found = zip(*of_ranks, strict=True)
    filled = next((rank for rank, count in enumerate(rows) if count), 0)
    first = sum(rows[: communicator.rank])
    frame.index = type(frame.index)(first, first + len(frame))
    ignored: dict[str, int] = {}
    for what, count in (pair for each in unknown for pair in each):
        ignored[what] = ignored.get(what, 0) + count
    history = ranking._history._replace(
        n=part.n, m=part.m, choice=(Considered(found[filled], None, "on each worker for its groups"),),
        stages=tuple((stage, max(each[stage] for each in seconds)) for stage in seconds[0]), bounds=(),
        unknown=tuple(ignored.items()),
    )  # fmt: skip
    sent = communicator.all_gather(communicator.bytes_sent)
    joined = (list(chain.from_iterable(each)) for each in (counts, groups))
    return [frame], GroupsReport(
        history,
        list(rows),
        likes[filled],
        sent,
        len(part.by),
        *joined,
        *map(np.concatenate, (converged, iterations, bounds)),
    )


def update_groups(communicator: Communicator, key: str, add: Frame | None, remove: Frame | None) -> GroupsPart:
    """Change the edges of the groups of this worker, in a copy of its graph; collective. Return the new part."""
    part: GroupsPart | None = get_worker().data.get(key)
    if part is None:
        raise WorkerLostError("a part of the graph is lost: build the graph again.")
    known = part

    def changed() -> tuple[Any, Groups]:
        groups, frames, rows = known.groups, [], None
        for what, frame in (("add", add), ("remove", remove)):
            if frame is not None and all(name in frame.columns for name in known.by):  # else the graph refuses it
                columns = [_on_host(frame[name]) for name in known.by]
                if what == "add":
                    own = [HOST.take(column, complete(columns)) for column in columns]
                    groups = groups.extended(own, [f"column {name!r}" for name in known.by])
                rows = np.flatnonzero(groups.owners_of(columns, what) == known.rank)
                frame = frame.iloc[rows]  # noqa: PLW2901
            frames.append(frame)
        graph = copy(known.graph)
        with nullcontext() if rows is None or all(each is not None for each in frames) else rows_of_frame(rows):
            graph.update(*frames, wait=True)
        return graph, groups

    graph, groups = call_on_all(communicator, changed)
    n, m = map(sum, zip(*communicator.all_gather((graph.n, graph.m)), strict=True))
    return replace(known, graph=graph, groups=groups, n=n, m=m)
