"""Adapter of pandas frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames.base import ColumnVertices, GivenTypes, Labels, is_a, opened, rows_of_seeds
from prplugin.frames.columns import Columns, positions
from prplugin.frames.ids import described, plain_ids
from prplugin.frames.times import with_frame_rows
from prplugin.types.arrays import MemorySpace, memory_space_of, to_host, to_memory
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Vertices",
    "accepts",
    "columns_of",
    "id_columns",
    "memory_space",
    "numbers_of_array",
    "opened",
    "positions_of",
    "read",
    "require_one_column",
]

memory_space: MemorySpace = "host"


@dataclass(frozen=True)
class Vertices(ColumnVertices):
    """Vertices as pandas arrays, with the kind of ids of each, such as "integer"."""

    names: list[Hashable]
    columns: list[Any]
    kinds: list[str]

    xp = np

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def types(self) -> GivenTypes:
        import pandas as pd

        return GivenTypes((pd.Index, pd.api.extensions.ExtensionArray), (pd.Series,), (pd.DataFrame,))

    def id_columns(self, given: Any, what: str) -> list[Any]:
        return id_columns(given, self.names if len(self.names) > 1 else None, what)

    def columns_of(self, frame: Any, names: list[Hashable], what: str) -> list[Any]:
        return columns_of(frame, names, what)

    def numbers(self, column: Any, what: str) -> Floats:
        return _numbers(column, what, "entry", InvalidOptionError)

    def numbers_of_array(self, given: Any, what: str) -> Floats:
        values: Floats = numbers_of_array(given, what, InvalidOptionError)
        return values

    def located(self, columns: list[Any], what: str) -> Integers:
        from prplugin.frames._pandas_kinds import check_kind, kind_of  # imports pandas

        for column, kind in zip(columns, self.kinds, strict=True):
            check_kind(column, kind, what, kind_of)
        found: Integers = _ids().located(self.columns, columns, self.kinds)
        return found

    def described(self, rows: Integers) -> list[str]:
        return described(self.columns, rows)

    def plain_ids(self, rows: Integers) -> list[Any]:
        return plain_ids(self.columns, rows)

    def one_column(self, columns: list[Any], what: str) -> Any:
        return _ids().one_column(columns)

    def taken(self, column: Any, rows: Integers) -> Any:
        import pandas as pd

        return pd.Series(column.take(rows), dtype=column.dtype).reset_index(drop=True)

    def missing_rows(self, column: Any) -> Integers:
        return np.flatnonzero(column.isna())

    def factorized(self, column: Any) -> tuple[Integers, Integers]:
        import pandas as pd

        from prplugin.frames._pandas_objects import first_rows  # imports pandas

        codes, found = pd.factorize(column)
        return codes, first_rows(codes, len(found))

    def numbered(self, count: int) -> Any:
        import pandas as pd

        return pd.Series(np.arange(count))

    def write(self, ranks: Any, rows: Integers | None, labels: Labels | None = None) -> pd.DataFrame:
        import pandas as pd

        names, columns = list(self.names), self.columns
        if labels is not None:
            each, rows = rows_of_seeds(ranks, rows)
            if labels.rows is None:
                seeds = [labels.column.array.take(each)]
            else:
                seeds = [column.take(labels.rows[each]) for column in columns]
            names = [*self.seed_names(labels), *names]
            columns, ranks = [*seeds, *(column.take(rows) for column in columns)], ranks.reshape(-1)
        elif rows is not None:
            columns = [column.take(rows) for column in columns]
        names, columns = [*names, "pagerank"], [*columns, ranks]
        if names == ["vertex", "pagerank"] and columns[0].dtype != object:
            # Setting the names afterwards and copying here take a quarter of the time of a dict of Series.
            frame = pd.DataFrame({place: column.copy() for place, column in enumerate(columns)}, copy=False)
            frame.columns = _names().view()  # a view, so that users may set its `name`
            return frame
        # With an explicit dtype, since pandas infers its string type for objects that are all strings.
        named = zip(names, columns, strict=True)
        return pd.DataFrame({name: pd.Series(column, dtype=column.dtype) for name, column in named})

    def write_ids(self) -> Any:
        import pandas as pd

        named = zip(self.names, self.columns, strict=True)
        columns = {name: pd.Series(ids.copy(), dtype=ids.dtype, name=name) for name, ids in named}
        return pd.DataFrame(columns) if len(columns) > 1 else columns[self.names[0]]


def accepts(frame: object) -> bool:
    """Return whether a frame is a pandas DataFrame."""
    return is_a(frame, "pandas", "DataFrame")


def read(
    frame: pd.DataFrame, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, Vertices]:
    """Factorize the endpoints: see `prplugin.frames.base.FrameAdapter.read`."""
    if columns.clock is not None and columns.time is not None:
        times, rows = columns.clock.read(frame.iloc[:, columns.time], f"column {columns.time_name!r}")
        untimed = replace(columns, time=None)
        try:
            part = frame if rows is None else frame.iloc[rows]
            edges, known = read(part, untimed, vertices, edge_list=edge_list, lasting=lasting)
        except PageRankError as error:
            raise error if rows is None else with_frame_rows(error, rows) from None
        return (edges if times is None else replace(edges, times=times)), known  # type: ignore[type-var]
    ids = _ids()
    several = len(columns.source) > 1

    labels = frame.columns
    plain_labels = labels.nlevels == 1 and labels.is_unique

    def take(position: int) -> pd.Series:
        label = labels[position]
        # Selection by name takes half the time; it needs unambiguous labels.
        found = frame[label] if plain_labels and isinstance(label, str) else frame.iloc[:, position]
        column: pd.Series = ids.stored_plainly(found)
        return column

    endpoints = [[take(position) for position in end] for end in (columns.source, columns.destination)]
    said = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
    if vertices is not None:
        endpoints.append(id_columns(vertices, columns.source_names if several else None, "vertices"))
        said.append(["vertices" if not several else f"vertices[{name!r}]" for name in columns.source_names])
    edges, arrays, kinds = ids.encode(
        endpoints, said, grouped=columns.weight is None and not edge_list, lasting=lasting
    )
    if columns.weight is not None:
        label = f"column {columns.weight_name!r}"
        edges = replace(edges, weights=_numbers(take(columns.weight), label, "row", InvalidEdgesError))
    return edges, Vertices(columns.vertex_names, arrays, kinds)


@cache
def _names() -> pd.Index:
    import pandas as pd

    return pd.Index(["vertex", "pagerank"])


def numbers_of_array(given: Any, label: str, error: type[PageRankError]) -> Any:
    """Return a copy of an array as float64, in its memory space; raise unless all are finite and non-negative."""
    if given.dtype.kind in "biuf" and given.dtype.itemsize <= 8:
        floats: Floats = given.astype(np.float64)
        if not floats.size or (floats.min() >= 0 and floats.max() < np.inf):
            return floats
    import pandas as pd  # reports invalid values as for columns, and reads wider types

    found = _numbers(pd.Series(to_host(given).reshape(-1)), label, "entry", error)
    return to_memory(found.reshape(given.shape), memory_space_of(given))


def _ids() -> Any:
    # Imports pandas, so only when there is a pandas frame.
    from prplugin.frames import _pandas_ids

    return _pandas_ids


def _numbers(column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
    from prplugin.frames._pandas_numbers import numbers  # imports pandas

    return numbers(column, label, noun, error)


def id_columns(given: Any, names: list[Hashable] | None, what: str) -> list[pd.Series]:
    """Return a list, array, Series, Index or frame of ids as a list of Series, one per column.

    `names` holds the column names of vertices with several columns; None for a single column.
    """
    import pandas as pd

    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidOptionError(f"{what} must be a list, an array, a Series or a frame of ids, not {given!r}.")
    if isinstance(given, (set, frozenset)):
        raise InvalidOptionError(f"{what} is a set, which has no order: pass a list, for instance sorted(...).")
    if names is None:
        require_one_column(given, pd, what)
        if isinstance(given, pd.DataFrame):
            return [_ids().stored_plainly(given.iloc[:, 0])]
        if isinstance(given, (pd.Series, pd.Index, np.ndarray, pd.api.extensions.ExtensionArray)):
            return [_ids().stored_plainly(pd.Series(given).reset_index(drop=True))]
        # As objects, since pandas would convert [1, None] to floats.
        return [_objects(list(given))]
    if isinstance(given, pd.DataFrame):
        return columns_of(given, names, what)
    rows = list(given)
    odd = [row for row, item in enumerate(rows) if not isinstance(item, tuple) or len(item) != len(names)]
    if odd:
        raise InvalidOptionError(
            f"{what} must hold tuples of {len(names)} ids, one for each of {listed([repr(n) for n in names])}; "
            f"{counted(len(odd), 'entry is', 'entries are')} not: {listed([repr(rows[row]) for row in odd])}."
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


def columns_of(frame: pd.DataFrame, names: list[Hashable], what: str) -> list[pd.Series]:
    """Return columns of a frame by name; raise if one is absent or repeated."""
    positions = positions_of(list(frame.columns), names, what)
    return [_ids().stored_plainly(frame.iloc[:, position]) for position in positions]


def positions_of(labels: list[Hashable], names: list[Hashable], what: str) -> list[int]:
    """Return the positions of columns among `labels`; raise if one is absent or repeated."""
    found = [positions(labels, name) for name in names]
    if absent := [name for name, places in zip(names, found, strict=True) if not places]:
        raise InvalidOptionError(
            f"{what} has no column {listed([repr(name) for name in absent])}: it needs the columns "
            f"{listed([repr(name) for name in names])}."
        )
    if repeated := [name for name, places in zip(names, found, strict=True) if len(places) > 1]:
        raise InvalidOptionError(f"{what} has column {repeated[0]!r} more than once. Rename or drop all but one.")
    return [places[0] for places in found]


def _objects(items: list[Any]) -> pd.Series:
    """Return a Series of dtype object; of dates, times and intervals, in the type that pandas infers."""
    import pandas as pd

    objects = np.empty(len(items), object)
    objects[:] = items
    series = pd.Series(objects, dtype=object)
    temporal = pd.api.types.infer_dtype(series, skipna=True).startswith(("datetime", "timedelta", "period", "interval"))
    return series.infer_objects() if temporal else series
