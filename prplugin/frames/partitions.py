"""Partitions of a distributed frame: their columns, the common types of their ids, and the ids that workers exchange.

Workers exchange `ColumnInfo` of their partitions and derive common types from them (`common_type_of`). Distinct ids of
other kinds than integer are arrays in host memory, also of partitions of cuDF. Imports pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, merged, refusal
from prplugin.frames.columns import (
    Column,
    ColumnInfo,
    Columns,
    Frame,
    computed,
    has_width,
    in_one_type,
    places_of,
    same_kind,
    transposed,
)
from prplugin.frames.host_columns import in_utc
from prplugin.frames.ids import HOST, Ids
from prplugin.frames.kinds import ZONED
from prplugin.frames.vertices import format_ids, plain_ids
from prplugin.options import Options
from prplugin.types.arrays import is_a, namespace, plain_array, to_host
from prplugin.types.edges import Floats, Integers


@dataclass(frozen=True)
class CommonType:
    """Common type of one column of the vertices, over all parts and both endpoints.

    `dtype_sample` holds at most one id, in the type in which ids are compared, and `part_types` the types of the column
    in the parts that have rows, at least one per endpoint.
    """

    kind: str
    dtype_sample: Any
    part_types: list[Any]


@dataclass(frozen=True)
class Partitions:
    """Partitions of a frame.

    `numbers`: Their numbers in the frame, ascending; `starts`: the first row of each in it.
    `columns`: The columns of the frame; those of a partition are found by name.
    `lengths`: Number of rows of each partition, and `rows`: of the whole frame. Only those of workers have both.
    """

    ids: Ids
    frames: list[Frame]
    numbers: list[int]
    starts: list[int]
    columns: Columns
    lengths: list[int] = field(default_factory=list)
    rows: int = 0

    @cached_property
    def own_columns(self) -> list[Columns]:
        """The positions of the columns in each partition."""
        pairs = zip(self.frames, self.numbers, strict=True)
        return [self.columns.within(list(frame.columns), f"partition {number}") for frame, number in pairs]

    def places_of(self, local: Integers) -> Integers:
        """Convert places in the rows of these partitions to places in the frame: see `factorize_part`."""
        begins = 2 * np.cumsum([0, *self.lengths])  # of the partitions, and of the additional vertices
        shifts = np.array([*(2 * start for start in self.starts), 2 * self.rows]) - begins
        # With side="right" the last of equal begins is found: an empty partition is never selected.
        places: Integers = local + shifts[np.searchsorted(begins, local, side="right") - 1]
        return places

    def map(self, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        """Apply a function to an item of each partition; raise errors with the partition, or with rows of the frame.

        The first error is raised, merged over all partitions if it is about rows.
        """
        results, errors = [], []
        for item, number, start in zip(items, self.numbers, self.starts, strict=True):
            try:
                results.append(function(item))
            except PageRankError as error:
                refused = error.refused
                errors.append(
                    type(error)(f"in partition {number}: {error}")
                    if refused is None
                    else refusal(type(error), replace(refused, rows=[start + row for row in refused.rows]))
                )
        if errors:
            raise merged(errors)
        return results

    def endpoints(self) -> list[Any]:
        """Return source and destination columns of each partition."""
        return [self.ids.endpoints_of(*pair) for pair in zip(self.frames, self.own_columns, strict=True)]

    def infos(self, endpoints: list[Any], labels: list[list[str]]) -> list[list[list[ColumnInfo]]]:
        """Return the `ColumnInfo` of the id columns of each partition."""
        found = self.map(
            lambda pair: [
                [self.ids.column_info(column, name) for column, name in zip(end, label, strict=True)]
                for end, label in zip(pair, labels, strict=False)  # no additional vertices here
            ],
            endpoints,
        )
        return [
            [[info._replace(where=f"partition {number}") for info in end] for end in infos]
            for infos, number in zip(found, self.numbers, strict=True)
        ]

    def concat(self, pieces: list[Any], shared: list[CommonType], labels: list[list[str]]) -> list[list[Any]]:
        """Concatenate the columns from `endpoints`; return source columns and destination columns."""
        ids = self.ids

        def concat(columns: list[Any], common_type: CommonType, label: str) -> Any:
            if any(column.dtype != columns[0].dtype for column in columns):
                if common_type.kind == "integer":  # pandas and cuDF would convert some integers to floats
                    integers = [integers_of(ids, column, label, common_type) for column in columns]
                    return ids.as_column(ids.xp.concatenate(integers))
                return ids.as_column(ids.concatenate([ids.without_categories(column) for column in columns], label))
            return columns[0] if len(columns) == 1 else ids.concat(columns)

        return [
            [
                concat([endpoints[end][column] for endpoints in pieces], common_type, labels[end][column])
                for column, common_type in enumerate(shared)
            ]
            for end in range(2)
        ]

    def weights(self) -> Floats | None:
        """Return the concatenated weights as float64; None for unweighted edges."""
        if self.columns.weight is None:
            return None
        ids, label = self.ids, f"column {self.columns.weight_name!r}"
        weights: list[Floats] = self.map(
            lambda pair: ids.numbers(ids.column_of(pair[0], pair[1].weight), label, "row", InvalidEdgesError),
            list(zip(self.frames, self.own_columns, strict=True)),
        )
        joined: Floats = weights[0] if len(weights) == 1 else ids.xp.concatenate(weights)
        return joined


# --- common types -------------------------------------------------------------------------------------------------


def common_type_of(endpoints: list[list[ColumnInfo]], labels: list[str]) -> CommonType:
    """Return the common kind and type of one column of the vertices, over all parts and both endpoints."""
    named = [(info, label) for end, label in zip(endpoints, labels, strict=True) for info in end]
    filled = [(info, label) for info, label in named if info.rows] or named[:1]
    part_labels = [f"{label} of {info.where} ({info.dtype})" if info.where else label for info, label in filled]
    kind = same_kind([info.kind for info, _ in filled], part_labels)
    samples = [info.sample for info, _ in filled]
    if kind == "integer":
        widths = [has_width(info.dtype) for info, _ in filled]
        common: Any = in_one_type(samples, widths, list(dict.fromkeys(label for _, label in filled)))[0][:0]
    else:
        common = HOST.concatenate(samples, labels[0])[:1]
    part_types = [info.dtype for end in endpoints for info in ([info for info in end if info.rows] or end[:1])]
    return CommonType(kind, common, part_types)


def integers_of(ids: Ids, column: Column, label: str, shared: CommonType) -> Integers:
    """Return integer ids as an array of the common type."""
    return ids.integers(column, label).astype(shared.dtype_sample.dtype, copy=False)


def factorize_part(
    ids: Ids, endpoints: list[list[Column]], labels: list[list[str]], shared: list[CommonType]
) -> tuple[list[Integers], list[Any], Integers]:
    """Factorize the vertices of a part in the common types: see `prplugin.frames.ids.Ids.factorize_endpoints`.

    The codes are in the memory space of the part, the distinct vertices and their places on the host.
    """
    parts = [[ids.deduplicate(column) for column in part] for part in transposed(endpoints)]
    codes, columns, places = ids.factorize_endpoints(parts, transposed(labels), [like.kind for like in shared])
    arrays = [cast_ids(ids.to_host(column), like) for column, like in zip(columns, shared, strict=True)]
    if places is None:
        places = np.full(len(arrays[0]), np.iinfo(np.int64).max)
        # `unique` sorts stably, so its indices are the first rows.
        found = [ids.xp.unique(code, return_index=True) if code.size else (code, code) for code in codes]
        first_places = places_of([rows for _, rows in found], len(endpoints[0][0]))
        for code, place in zip([to_host(code) for code, _ in found], first_places, strict=True):
            places[code] = np.minimum(places[code], to_host(place))
    return codes, arrays, to_host(places)


def cast_ids(array: Any, shared: CommonType) -> Any:
    """Cast an array of ids, without categories, to the common type."""
    if shared.kind == "integer":
        return np.asarray(array).astype(shared.dtype_sample.dtype, copy=False)
    if array.dtype == shared.dtype_sample.dtype:
        return array
    return HOST.concatenate([shared.dtype_sample, array], "vertices")[len(shared.dtype_sample) :]


def concat_columns(pieces: Iterable[list[Any]]) -> list[Any]:
    """Concatenate vertices in the common types, column by column."""
    return [HOST.concatenate(list(parts), "vertices") for parts in zip(*pieces, strict=True)]


def take(arrays: list[Any], rows: Integers) -> list[Any]:
    """Return a copy of the given rows of each column."""
    return [array.take(rows) for array in arrays]


def match_rows(wanted: list[Any], present: list[Any]) -> Integers:
    """Return the position of a different present row for each wanted row of the same values, or -1."""

    def numbered(columns: list[Any]) -> pd.MultiIndex:
        rows = pd.DataFrame(dict(enumerate(columns)))
        return pd.MultiIndex.from_arrays([*columns, rows.groupby(list(rows), sort=False).cumcount()])

    return numbered(present).get_indexer(numbered(wanted))


def format_vertices(arrays: list[Any], rows: Integers) -> list[str]:
    """Return the vertices at `rows`, of NumPy, pandas or CuPy arrays, as text, for messages."""
    ids_at_rows = [to_host(array[namespace(array).asarray(rows)]) for array in arrays]
    return format_ids(partial(plain_ids, ids_at_rows), np.arange(len(rows)))


# --- owners of vertices -------------------------------------------------------------------------------------------

PANDAS_HASHED = ("string", "bytes", "boolean", "datetime", ZONED, "timedelta")
"""Kinds of ids whose pandas hash is the same in every process."""

PYTHON_HASHED = ("decimal.Decimal", "fractions.Fraction", "uuid.UUID")
"""Kinds of ids whose Python hash is the same in every process. The hash of dates, for example, is salted."""


def hash_ranks(arrays: list[Any], shared: list[CommonType], size: int) -> Integers:
    """Return the worker, 0 .. size - 1, responsible for each vertex, from a hash that is the same on all workers."""
    hashes = {place: _hashes(*pair) for place, pair in enumerate(zip(arrays, shared, strict=True))}
    mixed = pd.util.hash_pandas_object(pd.DataFrame(hashes), index=False).to_numpy()
    mixed = mixed ^ (mixed >> np.uint64(32))  # the low bits of a vertex of equal ids cancel
    return (mixed % np.uint64(size)).astype(np.int64)


def _hashes(array: Any, shared: CommonType) -> Any:
    kind = shared.kind
    if kind == "integer":
        return np.asarray(array).astype(np.int64, copy=False).view(np.uint64)
    if kind in PANDAS_HASHED:
        series = HOST.as_column(in_utc(array, kind) if pd.api.types.is_object_dtype(array.dtype) else array)
        hashed = partial(pd.util.hash_pandas_object, index=False, categorize=False)
        try:
            return hashed(series).to_numpy()
        except UnicodeError:  # a lone surrogate; pandas hashes the bytes of text
            return hashed(series.map(lambda text: text.encode("utf-8", "surrogatepass"))).to_numpy()
    if kind in PYTHON_HASHED:
        return np.array([hash(value) for value in array], np.int64).view(np.uint64)
    return np.zeros(len(array), np.uint64)  # all on one worker: correct, and slow only for these rare kinds


# --- the result -----------------------------------------------------------------------------------------------------


def in_edge_types(ids: Ids, arrays: list[Any], shared: list[CommonType]) -> list[Column]:
    """Return distinct vertices in the types of the edge columns."""
    return [ids.from_host(array, one.kind, one.part_types) for array, one in zip(arrays, shared, strict=True)]


def write(ids: Ids, names: list[Hashable], columns: list[Any], first: int) -> Frame:
    """Return a frame of columns of ids and a last one of ranks, with an index that starts at `first`."""
    frame = ids.frame_of([*names, "pagerank"], columns)
    frame.index = type(frame.index)(first, first + len(frame))
    return frame


# --- a cluster --------------------------------------------------------------------------------------------------------


def futures_of(client: Any, frame: Any, columns: Columns) -> tuple[list[Any], Any, Columns]:
    """Return futures of the partitions, an empty frame of their type, and the positions of the columns in it.

    Persisted partitions are used unchanged, since a task that selects their columns takes 18 ms, because the scheduler
    delays messages. For other frames only the columns in use are computed.
    """
    if (futures := _persisted(client, frame)) is not None:
        return futures, frame._meta, columns
    import dask

    frame, columns = columns.restricted(frame)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"}):  # the frame is not ours to change
        return client.compute(frame.to_delayed(), sync=False), frame._meta, columns


def _persisted(client: Any, frame: Any) -> list[Any] | None:
    """Return the futures of a persisted frame; None if some partitions are not futures of this client."""
    graph = dict(frame.__dask_graph__())

    def resolve_alias(key: Any) -> Any:
        task = graph[key]
        return resolve_alias(task.target) if hasattr(task, "target") and task.target in graph else task

    found = [resolve_alias(key) for key in frame.__dask_keys__()]
    return found if all(getattr(task, "client", None) is client for task in found) else None


def given_ids(given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
    """Convert ids to a list of pandas Series, one per column, and check their kinds."""
    columns = HOST.id_columns(computed(given, what), names, what)
    for column in columns:
        HOST.kind_of(column, what)
    return columns


def converted(options: Options) -> Options:
    """Return options with arguments by vertex as pandas objects."""
    names = ("personalization", "seeds", "among", "exclude", "dangling", "nstart")
    found: dict[str, Any] = {
        name: _converted(value, name) for name in names if (value := getattr(options, name)) is not None
    }
    return replace(options, **found)


def _converted(given: Any, what: str) -> Any:
    if what in ("among", "seeds") and isinstance(given, (set, frozenset)):
        return given  # refused

    def convert(given: object) -> Any:
        given = getattr(given, "frame", given) if is_a(given, "prplugin.result.ranking", "Ranking") else given
        if isinstance(given, tuple):  # of vertices, or of a frame and the names of two columns
            return tuple(convert(each) if hasattr(each, "columns") else each for each in given)
        given = HOST.convert(plain_array(computed(given, what), what), what)
        # A set may have another order on each worker.
        return list(given) if isinstance(given, (set, frozenset)) else given

    given = convert(given)
    if what in ("among", "exclude"):
        return given
    entries = [given]
    if what == "seeds" and isinstance(given, (list, tuple)):
        entries = given = list(map(convert, given))
    elif what == "seeds" and isinstance(given, dict):
        given = {label: convert(entry) for label, entry in given.items()}
        entries = [*given.values()]
    # A one-dimensional array of seeds names vertices.
    if any(isinstance(entry, np.ndarray) and (what, entry.ndim, entries) != ("seeds", 1, [entry]) for entry in entries):
        raise InvalidOptionError(
            f"{what} is an array, and the vertices of this graph are on several workers: pass a Series indexed by "
            "vertex."
        )
    return given


def frame_of(futures: list[Any], rows: list[int], like: Any) -> Any:
    """Return a Dask frame of results on the workers, with a continuous index."""
    import dask
    import dask.dataframe

    filled = [(future, count) for future, count in zip(futures, rows, strict=True) if count]
    divisions = None
    if filled:
        ends = np.cumsum([count for _, count in filled]).tolist()
        divisions = (0, *ends[:-1], ends[-1] - 1)
    parts = [future for future, _ in filled] or futures[:1]
    with dask.config.set({"dataframe.convert-string": False}):  # keep the types of the parts
        return dask.dataframe.from_delayed(parts, meta=like, divisions=divisions, verify_meta=False)
