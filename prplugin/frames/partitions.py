"""Distinct ids that workers exchange, and the futures of partitions and of results. Imports pandas.

Workers exchange `ColumnInfo` of their partitions and derive common types from them (`prplugin.frames.parts`). Distinct
ids of other kinds than integer are arrays in host memory, also of partitions of cuDF.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from prplugin.errors import InvalidOptionError
from prplugin.frames.columns import Column, Columns, Frame, computed, places_of, transposed
from prplugin.frames.host_columns import in_utc
from prplugin.frames.ids import HOST, Ids
from prplugin.frames.kinds import ZONED
from prplugin.frames.parts import CommonType
from prplugin.frames.vertices import format_ids, plain_ids
from prplugin.options import Options
from prplugin.types.arrays import is_a, namespace, plain_array, to_host
from prplugin.types.edges import Integers


def factorize_part(
    ids: Ids, endpoints: list[list[Column]], labels: list[list[str]], shared: list[CommonType]
) -> tuple[list[Integers], list[Column], Integers]:
    """Factorize the vertices of a part in the common types: see `prplugin.frames.ids.Ids.factorize_endpoints`.

    The codes are in the memory space of the part, the distinct vertices and their places on the host.
    """
    parts: list[list[Any]] = [[ids.deduplicate(column) for column in part] for part in transposed(endpoints)]
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


def cast_ids(array: Column, shared: CommonType) -> Any:
    """Cast an array of ids, without categories, to the common type."""
    if shared.kind == "integer":
        return np.asarray(array).astype(shared.dtype_sample.dtype, copy=False)
    if array.dtype == shared.dtype_sample.dtype:
        return array
    return HOST.concatenate([shared.dtype_sample, array], "vertices")[len(shared.dtype_sample) :]


def concat_columns(pieces: Iterable[list[Column]]) -> list[Column]:
    """Concatenate vertices in the common types, column by column."""
    return [HOST.concatenate(list(parts), "vertices") for parts in zip(*pieces, strict=True)]


def take(arrays: list[Column], rows: Integers) -> list[Column]:
    """Return a copy of the given rows of each column."""
    return [array.take(rows) for array in arrays]


def match_rows(wanted: Sequence[Column], present: Sequence[Column]) -> Integers:
    """Return the position of a different present row for each wanted row of the same values, or -1."""

    def numbered(columns: Sequence[Column]) -> pd.MultiIndex:
        rows = pd.DataFrame(dict(enumerate(columns)))
        return pd.MultiIndex.from_arrays([*columns, rows.groupby(list(rows), sort=False).cumcount()])

    return numbered(present).get_indexer(numbered(wanted))


def format_vertices(arrays: list[Column], rows: Integers) -> list[str]:
    """Return the vertices at `rows`, of NumPy, pandas or CuPy arrays, as text, for messages."""
    ids_at_rows = [to_host(array[namespace(array).asarray(rows)]) for array in arrays]
    return format_ids(partial(plain_ids, ids_at_rows), np.arange(len(rows)))


# --- owners of vertices -------------------------------------------------------------------------------------------

PANDAS_HASHED = ("string", "bytes", "boolean", "datetime", ZONED, "timedelta")
"""Kinds of ids whose pandas hash is the same in every process."""

PYTHON_HASHED = ("decimal.Decimal", "fractions.Fraction", "uuid.UUID")
"""Kinds of ids whose Python hash is the same in every process. The hash of dates, for example, is salted."""


def hash_ranks(arrays: list[Column], shared: list[CommonType], size: int) -> Integers:
    """Return the worker, 0 .. size - 1, responsible for each vertex, from a hash that is the same on all workers."""
    hashes = {place: _hashes(*pair) for place, pair in enumerate(zip(arrays, shared, strict=True))}
    mixed = pd.util.hash_pandas_object(pd.DataFrame(hashes), index=False).to_numpy()
    mixed = mixed ^ (mixed >> np.uint64(32))  # the low bits of a vertex of equal ids cancel
    return (mixed % np.uint64(size)).astype(np.int64)


def _hashes(array: Column, shared: CommonType) -> Integers:
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


def write(ids: Ids, names: list[Hashable], columns: list[Column], first: int) -> Frame:
    """Return a frame of columns of ids and a last one of ranks, with an index that starts at `first`."""
    frame = ids.frame_of([*names, "pagerank"], columns)
    frame.index = type(frame.index)(first, first + len(frame))
    return frame


# --- a cluster --------------------------------------------------------------------------------------------------------


def futures_of(client: Any, frame: Frame, columns: Columns) -> tuple[list[Any], Any, Columns]:
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


def _persisted(client: Any, frame: Frame) -> list[Any] | None:
    """Return the futures of a persisted frame; None if some partitions are not futures of this client."""
    graph = dict(frame.__dask_graph__())

    def resolve_alias(key: Any) -> Any:
        task = graph[key]
        return resolve_alias(task.target) if hasattr(task, "target") and task.target in graph else task

    found = [resolve_alias(key) for key in frame.__dask_keys__()]
    return found if all(getattr(task, "client", None) is client for task in found) else None


def given_ids(given: object, names: list[Hashable] | None, what: str) -> list[Column]:
    """Convert ids to a list of pandas Series, one per column, and check their kinds."""
    columns = HOST.id_columns(computed(given, what), names, what)
    for column in columns:
        HOST.kind_of(column, what)
    return columns


def joined_ids(columns: list[Column], names: list[Hashable] | None) -> Any:
    """Return vertices of `given_ids` as one object: a Series, or a frame of several columns."""
    return columns[0] if names is None else pd.concat(columns, axis=1, keys=names)


def converted(options: Options) -> Options:
    """Return options with arguments by vertex as pandas objects."""
    names = ("personalization", "seeds", "among", "exclude", "dangling", "nstart")
    found: dict[str, Any] = {
        name: _converted(value, name) for name in names if (value := getattr(options, name)) is not None
    }
    return replace(options, **found)


def _converted(given: object, what: str) -> Any:
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


def frame_of(futures: list[Any], rows: list[int], like: Frame) -> Any:
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
