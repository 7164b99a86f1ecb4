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

from prplugin import cuda
from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames import narwhals
from prplugin.frames.columns import Columns
from prplugin.frames.pandas import id_columns, ids_and_values, positions_of
from prplugin.graph.arrays import copied, moved, namespace
from prplugin.graph.edges import Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    import cudf

    from prplugin.graph.device_edges import GivenWeights

__all__ = [
    "Vertices",
    "accepts",
    "column_of",
    "on_cudf_stream",
    "opened",
    "place",
    "read",
    "read_values",
    "write",
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
    if cuda.holds(an_edge * len(frame)):
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
    """Spread values given for some vertices over all of them, 0 for the others.

    Parameters
    ----------
    given : dict, Series indexed by vertex, or frame
        Of cuDF or of pandas. A frame has the columns `vertex` (for vertices of several columns: theirs) and `values`.
    what : str
        The name of the argument, for messages.

    Raises
    ------
    InvalidOptionError
        If an id is unknown or repeated or of another kind, or a value not a finite number of at least 0.
    """
    if isinstance(vertices, narwhals.Vertices):
        return narwhals.read_values(_on_host(given), vertices, what)
    import cupy  # loaded with cuDF

    ids = _ids()
    with on_cudf_stream():
        columns, values = _ids_and_values(given, vertices.names, what)
        for column, kind in zip(columns, vertices.kinds, strict=True):
            ids.check_kind(column, kind, what)
        try:
            rows = ids.located(vertices.columns, columns, vertices.kinds, what)
        except InvalidEdgesError as error:
            raise InvalidOptionError(str(error)) from error
        if (unknown := cupy.flatnonzero(rows < 0)).size:
            raise InvalidOptionError(
                f"{what} gives values to {counted(unknown.size, 'vertex', 'vertices')} not in the graph: "
                f"{listed(_described(columns, unknown))}. Remove them, or add them to the graph with vertices=."
            )
        order = cupy.argsort(rows)  # stable: after the first of equal rows come the later ones
        again = rows[order[1:]] == rows[order[:-1]]
        if (repeated := cupy.sort(order[1:][again])).size:
            raise InvalidOptionError(
                f"{what} gives more than one value to "
                f"{counted(cupy.unique(rows[repeated]).size, 'vertex', 'vertices')}: "
                f"{listed(_described(columns, repeated))}. Add them up or drop all but one."
            )
        spread = cupy.zeros(len(vertices))
        spread[rows] = _numbers(values, what, "entry", InvalidOptionError)
        return spread


def write(vertices: Vertices | narwhals.Vertices, ranks: Any, rows: Integers | None) -> cudf.DataFrame:
    """Put the ranks of all vertices, or of those at `rows`, in a frame."""
    if isinstance(vertices, narwhals.Vertices):
        return narwhals.write(vertices, ranks, rows)
    import cudf
    import cupy  # loaded with cuDF

    from prplugin.frames._cudf_arrays import as_frame, as_series  # imports cuDF

    with on_cudf_stream():
        ranks, rows = copied(cupy.asarray(ranks)), moved(rows, "device")  # what a frame holds is its own
        if namespace(ids := vertices.ids[0]) is not np:
            return as_frame({"vertex": copied(ids) if rows is None else ids[rows], "pagerank": ranks})
        if rows is None:
            columns = [column.copy(deep=True) for column in vertices.columns]
        else:
            columns = [_ids().taken(column, rows) for column in vertices.columns]
        return cudf.DataFrame(dict(zip([*vertices.names, "pagerank"], [*columns, as_series(ranks)], strict=True)))


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
    if not len(values):
        raise InvalidOptionError(f"{what} is empty: it must give a positive value to at least one vertex.")
    return columns, values


def _columns_of(frame: cudf.DataFrame, names: list[Hashable], what: str) -> list[cudf.Series]:
    return [column_of(frame, position) for position in positions_of(list(frame.columns), names, what)]


def _described(columns: list[Any], rows: Integers) -> list[str]:
    """Spell out the ids in some rows: the first few, for a message will show no more; "" for the rest."""
    from prplugin.frames._pandas_ids import plain_value  # imports pandas, as cuDF has

    ids = [tuple(plain_value(column.iloc[row]) for column in columns) for row in rows[:6].tolist()]
    shown = [repr(parts[0]) if len(parts) == 1 else repr(parts) for parts in ids]
    return shown + [""] * (rows.size - len(shown))
