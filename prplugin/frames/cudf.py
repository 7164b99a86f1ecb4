"""cuDF frames: edges in, ranks out, and all between them on the GPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames import base, narwhals
from prplugin.frames.base import SEED, Labels, SeedValues, converted, seed_names
from prplugin.frames.columns import Columns
from prplugin.frames.pandas import id_columns, ids_and_values, numbers_of_array, positions_of
from prplugin.gpu import runtime
from prplugin.graph.adjacency import group_sizes
from prplugin.types.arrays import copied, moved, namespace
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    import cudf

    from prplugin.gpu.edges import GivenWeights

__all__ = [
    "Vertices",
    "accepts",
    "column_of",
    "on_cudf_stream",
    "opened",
    "place",
    "read",
    "read_positions",
    "read_seeds",
    "read_values",
    "write",
    "write_ids",
]

place = "device"


@dataclass(frozen=True)
class Vertices:
    """The vertices in the order of the result.

    Attributes
    ----------
    names : list of column labels
        How the result names the columns.
    ids : list of cuDF Series or CuPy arrays, of n ids each
        Arrays where plain integers are held: most graphs need no Series of them.
    kinds : list of str
        What each column holds: "integer", "string", ...
    """

    names: list[Hashable]
    ids: list[Any]
    kinds: list[str]

    def __len__(self) -> int:
        return len(self.ids[0])

    @cached_property
    def columns(self) -> list[cudf.Series]:
        """The ids, as Series."""
        from prplugin.frames._cudf_arrays import as_series  # imports cuDF

        return [as_series(ids) if namespace(ids) is not np else ids for ids in self.ids]

    def described(self, rows: Integers) -> list[str]:
        """Spell out the ids of some vertices for a message."""
        with on_cudf_stream():
            return _described(self.columns, rows)


def accepts(frame: object) -> bool:
    """Say whether this is a cuDF frame."""
    frame_type = getattr(sys.modules.get("cudf"), "DataFrame", None)
    return frame_type is not None and isinstance(frame, frame_type)


def opened(frame: cudf.DataFrame) -> tuple[cudf.DataFrame, list[Hashable]]:
    """Give the frame, and the names of its columns."""
    return frame, list(frame.columns)


def read(
    frame: cudf.DataFrame, columns: Columns, vertices: object, *, by_row: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, Vertices | narwhals.Vertices]:
    """Replace the ids of a frame by positions in the order of the result.

    That order is ascending for integers; else the order of first appearance: row by row, source before destination,
    then `vertices`. Where the GPU has no room for the edges, the columns come to the host as Arrow has them, and edges
    are made there.

    Parameters
    ----------
    by_row : bool, default False
        Whether the rows will be worked on before edges are brought together by target.
    lasting : bool, default True
        Of no account on the GPU: there edges never come back to the frame.

    Raises
    ------
    InvalidEdgesError
        For nulls, floats or mixed kinds among the ids, and for weights that are not finite numbers of at least 0.
    """
    # Two positions an edge, as much again while they are found, and its weight; what more it takes, the ids decide.
    an_edge = 16 if columns.weight is None else 24
    if runtime.holds(an_edge * len(frame)):
        with suppress(MemoryError):
            return _read_there(frame, columns, vertices, by_row=by_row)
    opened_, _ = narwhals.opened(frame)
    edges, known = narwhals.read(opened_, columns, _on_host(vertices), by_row=by_row, lasting=lasting)
    return edges.as_spilled(), known


def _read_there(
    frame: cudf.DataFrame, columns: Columns, vertices: object, *, by_row: bool
) -> tuple[Edges | GroupedEdges, Vertices]:
    several = len(columns.source) > 1
    labels = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
    with on_cudf_stream():
        ends = [[column_of(frame, position) for position in end] for end in (columns.source, columns.destination)]
        if vertices is not None:
            ends.append(_id_columns(vertices, columns.source_names if several else None, "vertices"))
            labels.append(["vertices" if not several else f"vertices[{name!r}]" for name in columns.source_names])
        edges, arrays, kinds = _ids().encode(ends, labels, lambda: _weights(frame, columns), grouped=not by_row)
    return edges, Vertices(columns.vertex_names, arrays, kinds)


def read_values(given: object, vertices: Vertices | narwhals.Vertices, what: str) -> Floats:
    """Return a distribution given by vertex as an array over all vertices; what is given may be cuDF's or pandas'."""
    if isinstance(vertices, narwhals.Vertices):
        return narwhals.read_values(_on_host(given), vertices, what)
    with on_cudf_stream():
        return base.read_values(_Columns(), given, vertices, what)


def read_seeds(given: Any, vertices: Vertices | narwhals.Vertices, what: str) -> SeedValues:
    """Return the distributions of many seeds; what is given may be cuDF's or pandas'."""
    if isinstance(vertices, narwhals.Vertices):
        return narwhals.read_seeds(converted(given, _on_host), vertices, what)
    with on_cudf_stream():
        return base.read_seeds(_Columns(), given, vertices, what)


def read_positions(given: Any, vertices: Vertices | narwhals.Vertices, what: str) -> Integers:
    """Return the positions of the vertices asked for, in the order given."""
    if isinstance(vertices, narwhals.Vertices):
        return narwhals.read_positions(_on_host(given), vertices, what)
    with on_cudf_stream():
        return base.read_positions(_Columns(), given, vertices, what)


class _Columns(base.IdColumns):
    """Columns of ids as cuDF Series, or as pandas Series where they are in host memory."""

    def __init__(self) -> None:
        import cudf
        import cupy
        import pandas as pd

        self.xp = cupy
        self.indexes = (cudf.Index, pd.Index, pd.api.extensions.ExtensionArray)
        self.series, self.frames = (cudf.Series, pd.Series), (cudf.DataFrame, pd.DataFrame)

    def id_columns(self, given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
        return _id_columns(given, names, what)

    def ids_and_values(self, given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Any]:
        return _ids_and_values(given, names, what)

    def numbers(self, column: Any, label: str, noun: str, error: type[PageRankError]) -> Floats:
        return _numbers(column, label, noun, error)

    def numbers_of_array(self, given: Any, label: str) -> Floats:
        values: Floats = moved(numbers_of_array(given, label, InvalidOptionError), "device")
        return values

    def located(self, vertices: Vertices, columns: list[Any], what: str) -> Integers:
        ids = _ids()
        for column, kind in zip(columns, vertices.kinds, strict=True):
            ids.check_kind(column, kind, what)
        found: Integers = ids.located(vertices.columns, columns, vertices.kinds, what)
        return found

    def described(self, columns: list[Any], rows: Integers) -> list[str]:
        return _described(columns, rows)

    def one_column(self, columns: list[Any], what: str) -> Any:
        return _ids().one_column(columns, what)

    def ids_at(self, vertices: Vertices, rows: Integers) -> list[Any]:
        return [_ids().taken(column, rows) for column in vertices.columns]

    def grouped_by_seed(
        self, given: Any, names: list[Hashable], what: str
    ) -> tuple[Integers, Any, list[Any], Floats | None]:
        import cudf
        import cupy

        given = given if isinstance(given, cudf.DataFrame) else cudf.from_pandas(given)
        weighted = "values" in given.columns
        seed, *columns = _columns_of(given, [SEED, *names, *(["values"] if weighted else [])], what)
        base.refuse_absent_seeds(_ids().missing_rows(seed), what)
        codes, first = _ids().numbered_rows([seed])
        order = cupy.argsort(codes, kind="stable")
        values = _numbers(columns.pop(), what, "entry", InvalidOptionError)[order] if weighted else None
        sizes, labels = moved(group_sizes(codes, len(first)), "host"), _ids().taken(seed, first)
        return sizes, labels, [_ids().taken(column, order) for column in columns], values

    def numbered(self, count: int) -> Any:
        import cudf
        import cupy

        return cudf.Series(cupy.arange(count))


def write(
    vertices: Vertices | narwhals.Vertices, ranks: Any, rows: Integers | None, labels: Labels | None = None
) -> cudf.DataFrame:
    """Put the ranks of all vertices, or of those at `rows`, in a frame; of many seeds, as the pandas adapter does."""
    if isinstance(vertices, narwhals.Vertices):
        return narwhals.write(vertices, ranks, rows, labels)
    import cudf
    import cupy  # loaded with cuDF

    from prplugin.frames._cudf_arrays import as_frame, as_series  # imports cuDF

    with on_cudf_stream():
        ranks, rows = cupy.asarray(ranks), moved(rows, "device")
        if labels is not None:
            return _of_seeds(vertices, ranks, rows, labels)
        ranks = copied(ranks)  # what a frame holds is its own
        if namespace(ids := vertices.ids[0]) is not np:
            return as_frame({"vertex": copied(ids) if rows is None else ids[rows], "pagerank": ranks})
        if rows is None:
            columns = [column.copy(deep=True) for column in vertices.columns]
        else:
            columns = [_ids().taken(column, rows) for column in vertices.columns]
        return cudf.DataFrame(dict(zip([*vertices.names, "pagerank"], [*columns, as_series(ranks)], strict=True)))


def _of_seeds(vertices: Vertices, ranks: Any, rows: Integers | None, labels: Labels) -> cudf.DataFrame:
    """Put a row for each seed and vertex in a frame."""
    import cudf
    import cupy

    from prplugin.frames._cudf_arrays import as_frame, as_series  # imports cuDF

    count, width = ranks.shape
    rows = cupy.tile(cupy.arange(width), count) if rows is None else rows.reshape(-1)
    each = cupy.repeat(cupy.arange(count), width)
    ranks = copied(ranks.reshape(-1))
    names: list[Any] = [*seed_names(vertices.names, labels), *vertices.names, "pagerank"]
    if namespace(ids := vertices.ids[0]) is not np and labels.rows is not None:
        return as_frame(dict(zip(names, [ids[labels.rows][each], ids[rows], ranks], strict=True)))
    take = _ids().taken
    if labels.rows is None:
        seeds = [take(labels.column, each)]
    else:
        seeds = [take(column, labels.rows[each]) for column in vertices.columns]
    columns = [*seeds, *(take(column, rows) for column in vertices.columns), as_series(ranks)]
    return cudf.DataFrame(dict(zip(names, columns, strict=True)))


def write_ids(vertices: Vertices | narwhals.Vertices) -> Any:
    """Return the vertices as a Series, or as a frame where they have several columns."""
    if isinstance(vertices, narwhals.Vertices):
        return narwhals.write_ids(vertices)
    import cudf

    with on_cudf_stream():
        columns = [column.copy(deep=True) for column in vertices.columns]
        frame = cudf.DataFrame(dict(zip(vertices.names, columns, strict=True)))
        return frame if len(vertices.names) > 1 else frame[vertices.names[0]]


def _on_host(given: object) -> Any:
    """Give what lies on the GPU as pandas or NumPy have it, and anything else as it is."""
    import cudf  # loaded with the frame

    if isinstance(given, (cudf.DataFrame, cudf.Series, cudf.Index)):
        return given.to_pandas()
    return moved(given, "host") if namespace(given) is not np else given


@contextmanager
def on_cudf_stream() -> Iterator[None]:
    """Put CuPy's work on the stream that cuDF works on, after all that the caller's stream has been given.

    cuDF knows no current stream: its work goes on the default one, ours on the caller's, and neither waits for the
    other. Within this context there is one stream; before and after it, where the caller's is another, the host waits.
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


def _ids() -> Any:
    # Imports cuDF, so only when there is a cuDF frame.
    from prplugin.frames import _cudf_ids

    return _cudf_ids


def _numbers(column: Any, label: str, noun: str, error: type[PageRankError]) -> Floats:
    from prplugin.frames._cudf_numbers import numbers  # imports cuDF

    return numbers(column, label, noun, error)


def _weights(frame: cudf.DataFrame, columns: Columns) -> GivenWeights | None:
    if columns.weight is None:
        return None
    from prplugin.frames._cudf_numbers import unchecked  # imports cuDF

    return unchecked(column_of(frame, columns.weight), f"column {columns.weight_name!r}", "row", InvalidEdgesError)


def column_of(frame: cudf.DataFrame, position: int) -> cudf.Series:
    """Take a column, with an index that is of no account."""
    from cudf import RangeIndex  # loaded with the frame

    label = frame.columns[position]
    if isinstance(label, str) and isinstance(frame.index, RangeIndex):
        return frame[label]  # in a tenth of the time
    return frame.iloc[:, position].reset_index(drop=True)


def _id_columns(given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
    """Bring a list, array, Series, Index or frame of ids to one Series a column; `names` if they have several.

    What lies on the host is left there, as Series of pandas.
    """
    import cudf
    import cupy

    if isinstance(given, cupy.ndarray):
        if given.ndim != 1:
            raise InvalidOptionError(f"{what} is an array of {given.ndim} dimensions: pass one of one.")
        given = cudf.Series(given, nan_as_null=False)
    if not isinstance(given, (cudf.DataFrame, cudf.Series, cudf.Index)):
        return id_columns(given, names, what)
    if names is None:
        if isinstance(given, cudf.DataFrame):
            if given.shape[1] != 1:
                raise InvalidOptionError(
                    f"{what} is a frame of {given.shape[1]} columns, but the vertices of this graph have one."
                )
            return [column_of(given, 0)]
        if isinstance(given, cudf.MultiIndex):
            raise InvalidOptionError(
                f"{what} has an index of {given.nlevels} levels, but the vertices of this graph have one column."
            )
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


def _ids_and_values(given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Any]:
    """Take apart values given by vertex: the columns of ids, and the values."""
    import cudf

    if isinstance(given, cudf.Series):
        columns = _id_columns(given.index, names if len(names) > 1 else None, what)
        values = given.reset_index(drop=True)
    elif isinstance(given, cudf.DataFrame):
        *columns, values = _columns_of(given, [*names, "values"], what)
    else:
        return ids_and_values(given, names, what)
    return columns, values


def _columns_of(frame: cudf.DataFrame, names: list[Hashable], what: str) -> list[cudf.Series]:
    return [column_of(frame, position) for position in positions_of(list(frame.columns), names, what)]


def _described(columns: list[Any], rows: Integers) -> list[str]:
    """Spell out the ids in some rows: the first few, for a message will show no more; "" for the rest."""
    from prplugin.frames._pandas_ids import plain_value  # imports pandas, as cuDF has

    ids = [tuple(plain_value(column.iloc[row]) for column in columns) for row in rows[:6].tolist()]
    shown = [repr(parts[0]) if len(parts) == 1 else repr(parts) for parts in ids]
    return shown + [""] * (rows.size - len(shown))
