"""Adapter of cuDF frames. Edges and ranks stay in device memory. Imports cuDF."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import cudf
import cupy
import numpy as np
import pandas as pd
import pylibcudf as plc

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames import _cudf_ids as ids
from prplugin.frames import base, narwhals, pandas
from prplugin.frames._cudf_ids import as_series, missing_rows, one_column, take  # noqa: F401  # of `Vertices.library`
from prplugin.frames.columns import Columns, columns_of, endpoints_of
from prplugin.frames.factorize import encode
from prplugin.frames.vertices import GivenTypes, SeedValues
from prplugin.frames.vertices import Vertices as BaseVertices
from prplugin.gpu import runtime
from prplugin.gpu.edges import GivenWeights, edges_by_id, with_weights
from prplugin.types.arrays import MemorySpace, namespace, to_device
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

memory_space: MemorySpace = "device"
open_frame = base.open_frame


@contextmanager
def on_cudf_stream() -> Iterator[None]:
    """Make the default stream, which cuDF uses, CuPy's current stream.

    cuDF ignores CuPy's current stream, and the two streams are not ordered. If the current stream is not the default
    one, the host synchronizes it on entry, and the default stream on exit.
    """
    stream = cupy.cuda.get_current_stream()
    default = cupy.cuda.Stream.ptds if os.environ.get("CUDF_PER_THREAD_STREAM") == "1" else cupy.cuda.Stream.null
    if stream.ptr == default.ptr:
        yield
        return
    stream.synchronize()
    with default:
        yield
        default.synchronize()


@dataclass(frozen=True)
class Vertices(BaseVertices):
    """Vertices as cuDF Series, or as a CuPy array of integers."""

    library: ClassVar[Any] = sys.modules[__name__]
    xp: ClassVar[Any] = cupy

    @cached_property
    def columns(self) -> list[cudf.Series]:
        """Ids as cuDF Series."""
        return [as_series(ids) for ids in self.ids]

    @classmethod
    @on_cudf_stream()
    def of_host(cls, vertices: BaseVertices) -> Vertices:
        """Copy vertices from pandas columns to the GPU."""
        columns = [pd.Series(column, dtype=column.dtype) for column in vertices.columns]
        return cls(vertices.names, [ids.on_device(column, "the frame") for column in columns], vertices.kinds)

    def convert(self, given: Any, what: str) -> Any:
        on_device = type(given).__module__.partition(".")[0] in ("cudf", "cupy")
        return given if on_device else pandas.from_other_libraries(given, what)

    @contextmanager
    def active(self) -> Iterator[None]:
        with super().active(), on_cudf_stream():
            yield

    def _seeds(self, given: Any, what: str) -> SeedValues:
        return super()._seeds(cudf.from_pandas(given) if isinstance(given, pd.DataFrame) else given, what)


def read(
    frame: cudf.DataFrame, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, BaseVertices]:
    """Factorize the endpoints: see `prplugin.frames.base.FrameAdapter.read`. Edges never alias the columns.

    If the edges do not fit in device memory, or have times, the columns are copied to the host as Arrow tables and
    factorized there.
    """
    # Lower bound per edge: two codes, as much again during factorization, and the weight. Ids may need more.
    edge_bytes = 16 if columns.weight is None else 24
    if columns.time is None and runtime.fits(edge_bytes * len(frame)):
        with suppress(MemoryError):
            return _read_on_device(frame, columns, vertices, edge_list=edge_list)
    opened_, _ = narwhals.open_frame(frame)
    edges, known = narwhals.read(opened_, columns, vertices, edge_list=edge_list, lasting=lasting)
    return edges.as_spilled(), known


@on_cudf_stream()
def _read_on_device(
    frame: cudf.DataFrame, columns: Columns, vertices: object, *, edge_list: bool
) -> tuple[Edges | GroupedEdges, Vertices]:
    endpoints = endpoints_of(Vertices.library, frame, columns, vertices)
    labels = columns.id_labels(vertices=vertices is not None)

    def by_id(integers: list[Integers]) -> tuple[Edges | GroupedEdges, Integers]:
        return edges_by_id(integers, _weights(frame, columns), grouped=not edge_list)

    edges, arrays, kinds = encode(ids, endpoints, labels, by_id)
    if kinds != ["integer"]:
        edges = with_weights(edges, _weights(frame, columns))  # type: ignore[arg-type]
    return edges, Vertices(columns.vertex_names, arrays, kinds)


def _weights(frame: cudf.DataFrame, columns: Columns) -> GivenWeights | None:
    if columns.weight is None:
        return None
    label = f"column {columns.weight_name!r}"
    return to_float64_unchecked(column_of(frame, columns.weight), label, "row", InvalidEdgesError)


def column_of(frame: Any, position: int) -> Any:
    """Return a column of a frame of cuDF or pandas by position. Its index is arbitrary."""
    if not isinstance(frame, cudf.DataFrame):
        return pandas.column_of(frame, position)
    label = list(frame)[position]  # `frame.columns` converts the labels to an index of pandas
    if isinstance(label, str) and isinstance(frame.index, cudf.RangeIndex):
        return frame[label]  # ten times faster
    return frame.iloc[:, position].reset_index(drop=True)


# --- operations on columns, as in `prplugin.frames.pandas` --------------------------------------------------------


def given_types() -> GivenTypes:
    """Return the types of cuDF and pandas that are accepted for per-vertex arguments."""
    indexes = (cudf.Index, pd.Index, pd.api.extensions.ExtensionArray)
    return GivenTypes(indexes, (cudf.Series, pd.Series), (cudf.DataFrame, pd.DataFrame))


def numbers_of_array(given: Any, label: str, error: type[PageRankError]) -> Floats:
    """Return a copy of an array as float64 on the GPU; raise unless all are finite and non-negative."""
    return to_device(pandas.numbers_of_array(given, label, error))


def frame_of(names: list[Any], columns: list[Any]) -> cudf.DataFrame:
    """Return a frame of columns and numeric arrays, without a copy."""
    if any(namespace(column) is np for column in columns):
        return cudf.DataFrame(dict(zip(names, map(as_series, columns), strict=True)))
    table = plc.Table([plc.Column.from_cuda_array_interface(array) for array in columns])
    return cudf.DataFrame.from_pylibcudf(table, {"columns": list(names)})


def numbers(column: Any, label: str, noun: str, error: type[PageRankError]) -> Floats:
    """Return a cuDF or pandas column as float64 on the GPU; raise `error` unless all are finite and non-negative.

    `label` names the column in messages, and `noun` an entry, such as "row".
    """
    if isinstance(column, pd.Series):
        return cupy.asarray(pandas.numbers(column, label, noun, error))
    floats, owned, refuse = to_float64_unchecked(column, label, noun, error)
    refuse(floats)
    return floats if owned else floats.copy()


def to_float64_unchecked(column: Any, label: str, noun: str, error: type[PageRankError]) -> GivenWeights:
    """Return a cuDF column as float64, without a check of the values, and without a copy if it is float64."""
    refuse = pandas.refusing(column, label, noun, error)
    dtype = column.dtype
    decimal = ids.is_decimal(dtype)
    if not decimal and dtype.kind not in "biuf":
        name = (
            "category" if isinstance(dtype, cudf.CategoricalDtype) else "string" if dtype == np.dtype(object) else dtype
        )
        raise error(f"{label} holds {name}, not real numbers. Cast it, for instance with .astype('float64').")
    if column.null_count:
        refuse(missing_rows(column), "missing or NaN", "Drop or fill them.")
    array = ids.as_array(column.astype("float64") if decimal else column)
    floats = array.astype(np.float64, copy=False)
    return GivenWeights(floats, decimal or floats is not array, partial(pandas.check_range, refuse=refuse))


def id_columns(given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
    """Convert a list, array, Series, Index or frame of ids to a list of Series, one per column.

    `names` holds the column names of vertices with several columns; None for a single column. Ids in host memory stay
    there, as pandas Series.
    """
    if isinstance(given, cupy.ndarray):
        pandas.require_one_column(given, cudf, what)
        given = cudf.Series(given, nan_as_null=False)
    if not isinstance(given, (cudf.DataFrame, cudf.Series, cudf.Index)):
        return pandas.id_columns(given, names, what)
    if names is None:
        pandas.require_one_column(given, cudf, what)
        if isinstance(given, cudf.DataFrame):
            return [column_of(given, 0)]
        return [cudf.Series(given).reset_index(drop=True)]
    if isinstance(given, cudf.DataFrame):
        return columns_of(Vertices.library, given, names, what)
    if isinstance(given, cudf.MultiIndex) and given.nlevels == len(names):
        return [cudf.Series(given.get_level_values(level)).reset_index(drop=True) for level in range(len(names))]
    levels = given.nlevels if isinstance(given, cudf.MultiIndex) else 1
    raise InvalidOptionError(
        f"{what} must hold tuples of {len(names)} ids, one for each of {listed([repr(name) for name in names])}; "
        f"{counted(len(given), 'entry is', 'entries are')} not, but of {levels}."
    )
