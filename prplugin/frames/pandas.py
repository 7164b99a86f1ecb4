"""Adapter of pandas frames. Imports pandas."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
from pandas.api import types

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, RefusedRows, counted, listed, refusal
from prplugin.frames import _pandas_ids as ids
from prplugin.frames import base
from prplugin.frames._pandas_ids import decode_storage, one_column  # noqa: F401  # one_column of `Vertices.library`
from prplugin.frames._pandas_kinds import cast_to, format_values
from prplugin.frames._pandas_objects import deduplicate_objects, missing_rows
from prplugin.frames.columns import Columns, columns_of, endpoints_of
from prplugin.frames.factorize import EdgesById, encode
from prplugin.frames.vertices import GivenTypes, finite_numbers, to_python
from prplugin.frames.vertices import Vertices as BaseVertices
from prplugin.graph.factorize import edges_by_id
from prplugin.types.arrays import MemorySpace, memory_space_of, namespace, plain_array, to_host, to_memory
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

memory_space: MemorySpace = "host"
open_frame = base.open_frame

MOST_IN_MATRIX = 1 << 11
"""Rows of a change up to which both columns are read as one matrix, which takes long for ids that are not integers."""

Refuse: TypeAlias = Callable[[Integers, str, str], None]
"""Function that raises an error about rows, with the arguments rows, fault and remedy."""


@dataclass(frozen=True)
class Vertices(BaseVertices):
    """Vertices as pandas arrays."""

    library: ClassVar[Any] = sys.modules[__name__]
    xp: ClassVar[Any] = np

    def convert(self, given: Any, what: str) -> Any:
        return from_other_libraries(given, what)


def read(
    frame: pd.DataFrame, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True,
    by_id: EdgesById | None = None,
) -> tuple[Edges | GroupedEdges, Vertices]:  # fmt: skip
    """Factorize the endpoints: see `prplugin.frames.base.FrameAdapter.read`.

    `by_id`: Factorizes integer ids, instead of `prplugin.graph.factorize.edges_by_id`.
    """
    if columns.clock is not None and columns.time is not None:
        times, rows = columns.clock.read(frame.iloc[:, columns.time], f"column {columns.time_name!r}")
        untimed = replace(columns, time=None)
        try:
            part = frame if rows is None else frame.iloc[rows]
            edges, known = read(part, untimed, vertices, edge_list=edge_list, lasting=lasting, by_id=by_id)
        except PageRankError as error:
            from prplugin.frames.times import with_frame_rows  # loaded with the clock

            raise error if rows is None else with_frame_rows(error, rows) from None
        return (edges if times is None else replace(edges, times=times)), known  # type: ignore[type-var]
    endpoints = [
        [deduplicate_objects(column) for column in end]
        for end in endpoints_of(Vertices.library, frame, columns, vertices)
    ]
    labels = columns.id_labels(vertices=vertices is not None)
    grouped = columns.weight is None and not edge_list
    by_id = by_id or partial(edges_by_id, grouped=grouped, lasting=lasting)
    edges, arrays, kinds = encode(ids, endpoints, labels, by_id)
    if columns.weight is not None:
        label = f"column {columns.weight_name!r}"
        weights = numbers(column_of(frame, columns.weight), label, "row", InvalidEdgesError)
        edges = replace(edges, weights=weights)  # type: ignore[type-var]
    return edges, Vertices(columns.vertex_names, arrays, kinds)


def read_changes(frame: pd.DataFrame, columns: Columns) -> tuple[Edges | GroupedEdges, Vertices]:
    """Read edges to add or to remove; the type of their vertices may be wider than that of the columns."""
    plain = frame.shape[1] == 2 and len(columns.source) == 1 and columns.weight is None and columns.time is None
    if plain and len(frame) <= MOST_IN_MATRIX:
        matrix = frame.to_numpy()  # takes a third of the time of reading two columns
        if matrix.dtype.kind in "iu" and matrix.dtype.isnative:
            endpoints = [matrix[:, columns.source[0]], matrix[:, columns.destination[0]]]
            edges, found = edges_by_id(endpoints, grouped=False, lasting=True)
            return edges, Vertices(columns.vertex_names, [ids.integers_like(found, [found.dtype])], ["integer"])
    return read(frame, columns, None, edge_list=True, lasting=True)


def from_other_libraries(given: Any, what: str) -> Any:
    """Convert frames and columns of cuDF, polars, Arrow and others to pandas; return other objects unchanged."""
    if type(given).__module__.partition(".")[0] in ("builtins", "numpy", "pandas"):
        return given
    from prplugin.frames.arrow import as_pandas  # imports narwhals and pyarrow

    return as_pandas(given, what)


# --- operations on columns: see `prplugin.frames.vertices.Vertices` ---------------------------------------------------


def given_types() -> GivenTypes:
    """Return the types of pandas that are accepted for per-vertex arguments."""
    return GivenTypes((pd.Index, pd.api.extensions.ExtensionArray), (pd.Series,), (pd.DataFrame,))


def take(column: Any, rows: Integers | None) -> Any:
    """Return a copy of the given rows of a Series or an array; of all rows for None."""
    if rows is None:
        return column.copy()
    taken = column.take(rows)
    return taken.reset_index(drop=True) if isinstance(taken, pd.Series) else taken


def frame_of(names: list[Hashable], columns: list[Any]) -> pd.DataFrame:
    """Return a frame of columns, without a copy."""
    if names == ["vertex", "pagerank"] and columns[0].dtype != object:
        # Setting the names afterwards takes a quarter of the time of a dict of Series.
        frame = pd.DataFrame(dict(enumerate(columns)), copy=False)
        frame.columns = _result_columns().view()  # a view, so that users may set its `name`
        return frame
    # With an explicit dtype, since pandas infers its string type for objects that are all strings.
    named = zip(names, columns, strict=True)
    return pd.DataFrame({name: pd.Series(column, dtype=column.dtype) for name, column in named}, copy=False)


@cache
def _result_columns() -> pd.Index:
    return pd.Index(["vertex", "pagerank"])  # not a constant: with cudf.pandas it would be a proxy


def numbers_of_array(given: Any, label: str, error: type[PageRankError]) -> Any:
    """Return a copy of an array as float64, in its memory space; raise unless all are finite and non-negative."""
    if (floats := finite_numbers(given)) is not None:
        return floats
    found = numbers(pd.Series(to_host(given).reshape(-1)), label, "entry", error)
    return to_memory(found.reshape(given.shape), memory_space_of(given))


def id_columns(given: Any, names: list[Hashable] | None, what: str) -> list[pd.Series]:
    """Convert a list, array, Series, Index or frame of ids to a list of Series, one per column.

    `names` holds the column names of vertices with several columns; None for a single column.
    """
    given = from_other_libraries(plain_array(given, what), what)
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidOptionError(f"{what} must be a list, an array, a Series or a frame of ids, not {given!r}.")
    if isinstance(given, (set, frozenset)):
        raise InvalidOptionError(f"{what} is a set, which has no order: pass a list, for instance sorted(...).")
    if names is None:
        require_one_column(given, pd, what)
        if isinstance(given, pd.DataFrame):
            return [decode_storage(given.iloc[:, 0])]
        if isinstance(given, (pd.Series, pd.Index, np.ndarray, pd.api.extensions.ExtensionArray)):
            return [decode_storage(pd.Series(given).reset_index(drop=True))]
        # As objects, since pandas would convert [1, None] to floats.
        return [_objects(list(given))]
    if isinstance(given, pd.DataFrame):
        return columns_of(Vertices.library, given, names, what)
    rows = list(given)
    invalid = [row for row, item in enumerate(rows) if not isinstance(item, tuple) or len(item) != len(names)]
    if invalid:
        raise InvalidOptionError(
            f"{what} must hold tuples of {len(names)} ids, one for each of {listed([repr(n) for n in names])}; "
            f"{counted(len(invalid), 'entry is', 'entries are')} not: {listed([repr(rows[row]) for row in invalid])}."
        )
    return [_objects([item[part] for item in rows]) for part in range(len(names))]


def require_one_column(given: Any, library: Any, what: str) -> None:
    """Raise if a frame, an index or an array of ids, of pandas or cuDF, has several columns."""
    if isinstance(given, library.DataFrame):
        if given.shape[1] != 1:
            raise InvalidOptionError(
                f"{what} is a frame of {given.shape[1]} columns, but the vertices of this graph have one."
            )
    elif isinstance(given, library.MultiIndex):
        raise InvalidOptionError(
            f"{what} has an index of {given.nlevels} levels, but the vertices of this graph have one column."
        )
    elif getattr(given, "ndim", 1) != 1:
        raise InvalidOptionError(f"{what} is an array of {given.ndim} dimensions: pass one with one dimension.")


def column_of(frame: pd.DataFrame, position: int) -> pd.Series:
    """Return a column by position."""
    # By name, pandas would first build a hash table of the labels; ``iloc[:, position]`` takes twice the time.
    return decode_storage(frame.iloc(axis=1)[position])


def _objects(items: list[Any]) -> pd.Series:
    """Return a Series of dtype object, or of the inferred dtype for dates, times and intervals."""
    objects = np.empty(len(items), object)
    objects[:] = items
    series = pd.Series(objects, dtype=object)
    temporal = pd.api.types.infer_dtype(series, skipna=True).startswith(("datetime", "timedelta", "period", "interval"))
    return series.infer_objects() if temporal else series


# --- columns of numbers -------------------------------------------------------------------------------------------


def numbers(column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
    """Return a column as float64; raise `error` unless all values are finite and non-negative.

    `label` names the column in messages, and `noun` an entry, such as "row".
    """
    column = decode_storage(column)
    refuse = refusing(column, label, noun, error)
    dtype = column.dtype
    if types.is_object_dtype(dtype):
        values = column.tolist()
        invalid = np.flatnonzero([not _is_number(value) for value in values])
        if invalid.size:
            fault = "that is not a number" if invalid.size == 1 else "that are not numbers"
            refuse(invalid, fault, "Cast or drop them.")
        floats = np.array([_float(value) for value in values], np.float64)
    elif types.is_complex_dtype(dtype) or not (
        types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype) or str(dtype).startswith("decimal")
    ):
        raise error(f"{label} holds {dtype}, not real numbers. Cast it, for instance with {cast_to('number')}.")
    else:
        missing = missing_rows(column)
        if missing.size:
            refuse(missing, "missing or NaN", "Drop or fill them.")
        with np.errstate(over="ignore", under="ignore"):  # values lost by narrowing are detected below
            floats = column.to_numpy(np.float64, copy=True)  # a copy: the graph outlives the frame
    check_range(floats, refuse)
    if types.is_object_dtype(dtype) or getattr(dtype, "itemsize", 8) > 8:
        # The error bound allows for a relative error of 2**-53, which a cast to a denormal float64 may exceed.
        small = np.flatnonzero(floats < np.finfo(np.float64).tiny)
        lost = [row for row in small.tolist() if column.iloc[row] != floats[row].item()]
        if lost:
            refuse(np.array(lost), "too near to 0 for float64", "Scale or drop them.")
    return floats


def refusing(column: Any, label: str, noun: str, error: type[PageRankError]) -> Refuse:
    """Return a function that raises `error` for rows of a column; the message shows their values."""

    def refuse(rows: Integers, fault: str, remedy: str) -> None:
        first = rows[:3].tolist()
        shown = [repr(to_python(column.iloc[row])) for row in first]
        raise refusal(error, RefusedRows(partial(format_values, label, noun, fault, remedy), rows.size, first, shown))

    return refuse


def check_range(floats: Floats, refuse: Refuse) -> None:
    """Call `refuse` if values of a NumPy or CuPy array are not finite and non-negative."""
    xp = namespace(floats)
    if not floats.size or (floats.min() >= 0 and floats.max() < np.inf):
        return
    if (rows := xp.flatnonzero(xp.isnan(floats))).size:
        refuse(rows, "missing or NaN", "Drop or fill them.")
    if (rows := xp.flatnonzero(floats < 0)).size:
        refuse(rows, "below 0", "PageRank needs values of at least 0.")
    refuse(xp.flatnonzero(xp.isinf(floats)), "infinite, or past the range of float64", "Scale or drop them.")


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal, np.bool_)) or value is None or value is pd.NA


def _float(value: Any) -> float:
    """Cast a number to float: infinite on overflow, NaN for missing values."""
    if value is None or value is pd.NA or (isinstance(value, Decimal) and value.is_nan()):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
