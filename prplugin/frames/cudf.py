"""Adapter of cuDF frames. Edges and ranks stay in device memory."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, counted, listed
from prplugin.frames import base, narwhals, pandas
from prplugin.frames.columns import Columns
from prplugin.frames.ids import described, plain_ids
from prplugin.frames.wrapped import WrappedVertices
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace, copied, namespace, to_device, to_host
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    import cudf

    from prplugin.gpu.edges import GivenWeights

__all__ = ["Vertices", "accepts", "column_of", "memory_space", "on_cudf_stream", "opened", "read"]

memory_space: MemorySpace = "device"

opened = base.opened


@contextmanager
def on_cudf_stream() -> Iterator[None]:
    """Make the default stream, which cuDF uses, CuPy's current stream.

    cuDF ignores CuPy's current stream, and the two streams are not ordered. If the current stream is not the default
    one, the host synchronizes it on entry, and the default stream on exit.
    """
    import cupy  # loaded with cuDF

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
class Vertices(base.ColumnVertices):
    """Vertices as cuDF Series, or as a CuPy array of integers, with the kind of ids of each, such as "integer"."""

    names: list[Hashable]
    ids: list[Any]
    kinds: list[str]

    def __len__(self) -> int:
        return len(self.ids[0])

    @cached_property
    def columns(self) -> list[cudf.Series]:
        """Ids as cuDF Series."""
        from prplugin.frames._cudf_arrays import as_series  # imports cuDF

        return [as_series(ids) if namespace(ids) is not np else ids for ids in self.ids]

    @property
    def xp(self) -> Any:
        import cupy  # loaded with cuDF

        return cupy

    @property
    def types(self) -> base.GivenTypes:
        import cudf
        import pandas as pd

        indexes = (cudf.Index, pd.Index, pd.api.extensions.ExtensionArray)
        return base.GivenTypes(indexes, (cudf.Series, pd.Series), (cudf.DataFrame, pd.DataFrame))

    @on_cudf_stream()
    def described(self, rows: Integers) -> list[str]:
        return described(self.columns, rows)

    @on_cudf_stream()
    def plain_ids(self, rows: Integers) -> list[Any]:
        return plain_ids(self.columns, rows)

    @on_cudf_stream()
    def read_values(self, given: Any, what: str) -> Floats:
        return super().read_values(given, what)

    @on_cudf_stream()
    def read_seeds(self, given: Any, what: str) -> base.SeedValues:
        import cudf
        import pandas as pd

        return super().read_seeds(cudf.from_pandas(given) if isinstance(given, pd.DataFrame) else given, what)

    @on_cudf_stream()
    def read_positions(self, given: Any, what: str) -> Integers:
        return super().read_positions(given, what)

    def id_columns(self, given: Any, what: str) -> list[Any]:
        return _id_columns(given, self.names if len(self.names) > 1 else None, what)

    def columns_of(self, frame: Any, names: list[Hashable], what: str) -> list[Any]:
        return _columns_of(frame, names, what)

    def numbers(self, column: Any, what: str) -> Floats:
        from prplugin.frames._cudf_arrays import numbers  # imports cuDF

        return numbers(column, what, "entry", InvalidOptionError)

    def numbers_of_array(self, given: Any, what: str) -> Floats:
        return to_device(pandas.numbers_of_array(given, what, InvalidOptionError))

    def located(self, columns: list[Any], what: str) -> Integers:
        return _ids().located(self.columns, columns, self.kinds, what)

    def one_column(self, columns: list[Any], what: str) -> Any:
        return _ids().one_column(columns, what)

    def taken(self, column: Any, rows: Integers) -> Any:
        return _ids().taken(column, rows)

    def missing_rows(self, column: Any) -> Integers:
        from prplugin.frames._cudf_arrays import missing_rows  # imports cuDF

        return missing_rows(column)

    def factorized(self, column: Any) -> tuple[Integers, Integers]:
        return _ids().factorize_rows([column])

    def numbered(self, count: int) -> Any:
        import cudf

        return cudf.Series(self.xp.arange(count))

    @on_cudf_stream()
    def write(self, ranks: Any, rows: Integers | None, labels: base.Labels | None = None) -> cudf.DataFrame:
        import cudf

        from prplugin.frames._cudf_arrays import as_frame, as_series  # imports cuDF

        ranks, rows = self.xp.asarray(ranks), to_device(rows)
        names: list[Any] = [*self.names, "pagerank"]
        of_seeds: list[Any] = []
        ids = self.ids
        on_device = namespace(ids[0]) is not np
        if labels is not None:
            each, rows = base.rows_of_seeds(ranks, rows)
            names = [*self.seed_names(labels), *names]
            if labels.rows is None:
                on_device, of_seeds = False, [self.taken(labels.column, each)]
            elif on_device:
                of_seeds = [ids[0][labels.rows][each]]
            else:
                of_seeds = [self.taken(column, labels.rows[each]) for column in self.columns]
        ranks = copied(ranks.reshape(-1))  # a frame must not alias the ranks
        if on_device:
            arrays = [*of_seeds, copied(ids[0]) if rows is None else ids[0][rows], ranks]
            return as_frame(dict(zip(names, arrays, strict=True)))
        if rows is None:
            columns = [column.copy(deep=True) for column in self.columns]
        else:
            columns = [self.taken(column, rows) for column in self.columns]
        return cudf.DataFrame(dict(zip(names, [*of_seeds, *columns, as_series(ranks)], strict=True)))

    @on_cudf_stream()
    def write_ids(self) -> Any:
        import cudf

        columns = [column.copy(deep=True) for column in self.columns]
        frame = cudf.DataFrame(dict(zip(self.names, columns, strict=True)))
        return frame if len(self.names) > 1 else frame[self.names[0]]


@dataclass(frozen=True)
class SpilledVertices(WrappedVertices):
    """Vertices of a cuDF frame whose edges do not fit in device memory, and are on the host."""

    inner: narwhals.Vertices

    def convert(self, given: Any, what: str) -> Any:
        return _on_host(given)


def accepts(frame: object) -> bool:
    """Return whether a frame is a cuDF DataFrame."""
    return base.is_a(frame, "cudf", "DataFrame")


def read(
    frame: cudf.DataFrame, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, Vertices | SpilledVertices]:
    """Factorize the endpoints: see `prplugin.frames.base.FrameAdapter.read`. Edges never alias the columns.

    If the edges do not fit in device memory, or have times, the columns are copied to the host as Arrow tables and
    factorized there.
    """
    # Lower bound per edge: two codes, as much again during factorization, and the weight. Ids may need more.
    edge_bytes = 16 if columns.weight is None else 24
    if columns.time is None and runtime.fits(edge_bytes * len(frame)):
        with suppress(MemoryError):
            return _read_on_device(frame, columns, vertices, edge_list=edge_list)
    opened_, _ = narwhals.opened(frame)
    edges, known = narwhals.read(opened_, columns, _on_host(vertices), edge_list=edge_list, lasting=lasting)
    return edges.as_spilled(), SpilledVertices(known)


@on_cudf_stream()
def _read_on_device(
    frame: cudf.DataFrame, columns: Columns, vertices: object, *, edge_list: bool
) -> tuple[Edges | GroupedEdges, Vertices]:
    several = len(columns.source) > 1
    labels = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
    endpoints = [[column_of(frame, position) for position in end] for end in (columns.source, columns.destination)]
    if vertices is not None:
        endpoints.append(_id_columns(vertices, columns.source_names if several else None, "vertices"))
        labels.append(["vertices" if not several else f"vertices[{name!r}]" for name in columns.source_names])
    edges, arrays, kinds = _ids().encode(endpoints, labels, lambda: _weights(frame, columns), grouped=not edge_list)
    return edges, Vertices(columns.vertex_names, arrays, kinds)


def _on_host(given: object) -> Any:
    """Convert cuDF objects to pandas and CuPy arrays to NumPy; return other objects unchanged."""
    import cudf  # loaded with the frame

    if isinstance(given, (cudf.DataFrame, cudf.Series, cudf.Index)):
        return given.to_pandas()
    return to_host(given)


def _ids() -> Any:
    # Imports cuDF, so only when there is a cuDF frame.
    from prplugin.frames import _cudf_ids

    return _cudf_ids


def _weights(frame: cudf.DataFrame, columns: Columns) -> GivenWeights | None:
    if columns.weight is None:
        return None
    from prplugin.frames._cudf_arrays import unchecked  # imports cuDF

    return unchecked(column_of(frame, columns.weight), f"column {columns.weight_name!r}", "row", InvalidEdgesError)


def column_of(frame: cudf.DataFrame, position: int) -> cudf.Series:
    """Return a column by position. Its index is arbitrary."""
    from cudf import RangeIndex  # loaded with the frame

    label = frame.columns[position]
    if isinstance(label, str) and isinstance(frame.index, RangeIndex):
        return frame[label]  # ten times faster
    return frame.iloc[:, position].reset_index(drop=True)


def _id_columns(given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
    """Return a list, array, Series, Index or frame of ids as a list of Series, one per column.

    `names` holds the column names of vertices with several columns; None for a single column. Ids in host memory stay
    there, as pandas Series.
    """
    import cudf
    import cupy

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
        return _columns_of(given, names, what)
    if isinstance(given, cudf.MultiIndex) and given.nlevels == len(names):
        return [cudf.Series(given.get_level_values(level)).reset_index(drop=True) for level in range(len(names))]
    levels = given.nlevels if isinstance(given, cudf.MultiIndex) else 1
    raise InvalidOptionError(
        f"{what} must hold tuples of {len(names)} ids, one for each of {listed([repr(name) for name in names])}; "
        f"{counted(len(given), 'entry is', 'entries are')} not, but of {levels}."
    )


def _columns_of(frame: Any, names: list[Hashable], what: str) -> list[Any]:
    import cudf

    if not isinstance(frame, cudf.DataFrame):
        return pandas.columns_of(frame, names, what)
    return [column_of(frame, position) for position in pandas.positions_of(list(frame.columns), names, what)]
