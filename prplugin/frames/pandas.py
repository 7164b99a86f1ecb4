"""pandas frames: edges in, ranks out."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames import base
from prplugin.frames.base import SEED, Labels, SeedValues, seed_names
from prplugin.frames.columns import Columns, positions
from prplugin.types.arrays import moved, place_of
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Vertices",
    "accepts",
    "id_columns",
    "ids_and_numbers",
    "ids_and_values",
    "numbers_of_array",
    "opened",
    "place",
    "positions_of",
    "read",
    "read_positions",
    "read_seeds",
    "read_values",
    "write",
    "write_ids",
]

place = "host"


@dataclass(frozen=True)
class Vertices:
    """The vertices in the order of the result.

    Attributes
    ----------
    names : list of column labels
        How the result names the columns.
    columns : list of pandas arrays, of n ids each
    kinds : list of str
        What each column holds: "integer", "string", ...
    """

    names: list[Hashable]
    columns: list[Any]
    kinds: list[str]

    def __len__(self) -> int:
        return len(self.columns[0])

    def described(self, rows: Integers) -> list[str]:
        """Spell out the ids of some vertices for a message."""
        return _described(self.columns, rows)

    def locate(self, columns: list[pd.Series]) -> Integers:
        """Give the position of each id, -1 where it is no vertex."""
        found: Integers = _ids().located(self.columns, columns, self.kinds)
        return found


def accepts(frame: object) -> bool:
    """Say whether this is a pandas frame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(frame, pandas.DataFrame)


def opened(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[Hashable]]:
    """Give the frame, and the names of its columns."""
    return frame, list(frame.columns)


def read(
    frame: pd.DataFrame, columns: Columns, vertices: object, *, by_row: bool = False, lasting: bool = True
) -> tuple[Edges | GroupedEdges, Vertices]:
    """Replace the ids of a frame by positions in the order of the result.

    That order is ascending for integers; else the order of first appearance: row by row, source before destination,
    then `vertices`.

    Parameters
    ----------
    by_row : bool, default False
        Whether the rows will be worked on before edges are brought together by target.
    lasting : bool, default True
        Whether the edges last longer than the frame, or it may change meanwhile.

    Raises
    ------
    InvalidEdgesError
        For nulls, floats or mixed kinds among the ids, and for weights that are not finite numbers of at least 0.
    """
    ids = _ids()
    several = len(columns.source) > 1

    labels = frame.columns
    plain_labels = labels.nlevels == 1 and labels.is_unique

    def take(position: int) -> pd.Series:
        label = labels[position]
        # By name in half the time, where there can be no doubt about it.
        found = frame[label] if plain_labels and isinstance(label, str) else frame.iloc[:, position]
        column: pd.Series = ids.stored_plainly(found)
        return column

    ends = [[take(position) for position in end] for end in (columns.source, columns.destination)]
    said = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
    if vertices is not None:
        ends.append(id_columns(vertices, columns.source_names if several else None, "vertices"))
        said.append(["vertices" if not several else f"vertices[{name!r}]" for name in columns.source_names])
    edges, arrays, kinds = ids.encode(ends, said, grouped=columns.weight is None and not by_row, lasting=lasting)
    if columns.weight is not None:
        label = f"column {columns.weight_name!r}"
        edges = replace(edges, weights=_numbers(take(columns.weight), label, "row", InvalidEdgesError))
    return edges, Vertices(columns.vertex_names, arrays, kinds)


def read_values(given: object, vertices: Vertices, what: str) -> Floats:
    """Return a distribution given by vertex as an array over all vertices: see `prplugin.frames.base.read_values`."""
    return base.read_values(_Columns(), given, vertices, what)


def read_seeds(given: object, vertices: Vertices, what: str) -> SeedValues:
    """Return the distributions of many seeds: see `prplugin.frames.base.read_seeds`."""
    return base.read_seeds(_Columns(), given, vertices, what)


def read_positions(given: object, vertices: Vertices, what: str) -> Integers:
    """Return the positions of the vertices asked for, in the order given."""
    return base.read_positions(_Columns(), given, vertices, what)


def ids_and_numbers(given: object, names: list[Hashable], what: str) -> tuple[list[Any], Floats]:
    """Return columns of ids, and their values: 1 each where vertices alone are given."""
    return base.ids_and_numbers(_Columns(), given, names, what)


class _Columns(base.IdColumns):
    """Columns of ids as pandas Series."""

    xp = np

    def __init__(self) -> None:
        import pandas as pd

        self.indexes = (pd.Index, pd.api.extensions.ExtensionArray)
        self.series, self.frames = (pd.Series,), (pd.DataFrame,)

    def id_columns(self, given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
        return id_columns(given, names, what)

    def ids_and_values(self, given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Any]:
        return ids_and_values(given, names, what)

    def numbers(self, column: Any, label: str, noun: str, error: type[PageRankError]) -> Floats:
        return _numbers(column, label, noun, error)

    def numbers_of_array(self, given: Any, label: str) -> Floats:
        values: Floats = numbers_of_array(given, label, InvalidOptionError)
        return values

    def located(self, vertices: Vertices, columns: list[Any], what: str) -> Integers:
        ids = _ids()
        for column, kind in zip(columns, vertices.kinds, strict=True):
            ids.check_kind(column, kind, what, ids.kind_of)
        return vertices.locate(columns)

    def described(self, columns: list[Any], rows: Integers) -> list[str]:
        return _described([column.array for column in columns], rows)

    def one_column(self, columns: list[Any], what: str) -> Any:
        return _ids().one_column(columns)

    def ids_at(self, vertices: Vertices, rows: Integers) -> list[Any]:
        import pandas as pd

        return [pd.Series(column.take(rows)) for column in vertices.columns]

    def grouped_by_seed(
        self, given: Any, names: list[Hashable], what: str
    ) -> tuple[Integers, Any, list[Any], Floats | None]:
        import pandas as pd

        weighted = "values" in given.columns
        seed, *columns = _columns_of(given, [SEED, *names, *(["values"] if weighted else [])], what)
        base.refuse_absent_seeds(np.flatnonzero(seed.isna()), what)
        codes, _ = pd.factorize(seed)
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes)
        values = _numbers(columns.pop(), what, "entry", InvalidOptionError)[order] if weighted else None
        labels = seed.array.take(order[np.cumsum(sizes) - sizes])
        return sizes, labels, [column.take(order).reset_index(drop=True) for column in columns], values

    def numbered(self, count: int) -> Any:
        import pandas as pd

        return pd.array(np.arange(count), dtype=np.dtype(np.int64))


def ids_and_values(given: object, names: list[Hashable], what: str) -> tuple[list[pd.Series], pd.Series]:
    """Take apart values given by vertex: the columns of ids, and the values."""
    import pandas as pd

    parts = names if len(names) > 1 else None
    if isinstance(given, Mapping):
        columns = id_columns(list(given), parts, what)
        values = pd.Series(list(given.values()), dtype=object)
    elif isinstance(given, pd.Series):
        columns = id_columns(given.index, parts, what)
        values = given
    elif isinstance(given, pd.DataFrame):
        *columns, values = _columns_of(given, [*names, "values"], what)
    else:
        raise InvalidOptionError(
            f"{what} must be a dict of vertex: value, a Series indexed by vertex, a frame with the columns "
            f"{listed([repr(name) for name in [*names, 'values']])}, a list of vertices, or an array with a number per "
            f"vertex, not {type(given).__name__}."
        )
    return columns, values


def write(vertices: Vertices, ranks: np.ndarray, rows: Integers | None, labels: Labels | None = None) -> pd.DataFrame:
    """Put the ranks of all vertices, or of those at `rows`, in a frame.

    Parameters
    ----------
    labels : Labels, optional
        Of many seeds: then `ranks`, and `rows` if not None, have a row for each of them.
    """
    import pandas as pd

    names, columns = list(vertices.names), vertices.columns
    if labels is not None:
        count, width = ranks.shape
        rows = np.tile(np.arange(width), count) if rows is None else rows.reshape(-1)
        each = np.repeat(np.arange(count), width)
        if labels.rows is None:
            seeds = [labels.column.take(each)]
        else:
            seeds = [column.take(labels.rows[each]) for column in columns]
        names = [*seed_names(names, labels), *names]
        columns, ranks = [*seeds, *(column.take(rows) for column in columns)], ranks.reshape(-1)
    elif rows is not None:
        columns = [column.take(rows) for column in columns]
    names, columns = [*names, "pagerank"], [*columns, ranks]
    if names == ["vertex", "pagerank"] and columns[0].dtype != object:
        # Names that are set afterwards, and copies made here, take a quarter of the time that a dict of Series does.
        frame = pd.DataFrame({place: column.copy() for place, column in enumerate(columns)}, copy=False)
        frame.columns = _names().view()  # a view has a name of its own, which the user may change
        return frame
    # The type is said: pandas takes objects that are all strings for its string type.
    named = zip(names, columns, strict=True)
    return pd.DataFrame({name: pd.Series(column, dtype=column.dtype) for name, column in named})


@cache
def _names() -> pd.Index:
    import pandas as pd

    return pd.Index(["vertex", "pagerank"])


def write_ids(vertices: Vertices) -> Any:
    """Return the vertices as a Series, or as a frame where they have several columns."""
    import pandas as pd

    frame = pd.DataFrame(
        {name: pd.Series(ids.copy()) for name, ids in zip(vertices.names, vertices.columns, strict=True)}
    )
    return frame if len(vertices.names) > 1 else frame[vertices.names[0]]


def numbers_of_array(given: Any, label: str, error: type[PageRankError]) -> Any:
    """Return an array of finite non-negative numbers as float64, in the memory that it is in; a copy."""
    if given.dtype.kind in "biuf" and given.dtype.itemsize <= 8:
        floats: Floats = given.astype(np.float64)
        if not floats.size or (floats.min() >= 0 and floats.max() < np.inf):
            return floats
    import pandas as pd  # names what is wrong as for columns, and reads wider numbers

    found = _numbers(pd.Series(moved(given, "host").reshape(-1)), label, "entry", error)
    return moved(found.reshape(given.shape), place_of(given))


def _ids() -> Any:
    # Imports pandas, so only when there is a pandas frame.
    from prplugin.frames import _pandas_ids

    return _pandas_ids


def _numbers(column: pd.Series, label: str, noun: str, error: type[PageRankError]) -> Floats:
    from prplugin.frames._pandas_numbers import numbers  # imports pandas

    return numbers(column, label, noun, error)


def id_columns(given: Any, names: list[Hashable] | None, what: str) -> list[pd.Series]:
    """Bring a list, array, Series, Index or frame of ids to one Series a column; `names` if they have several."""
    import pandas as pd

    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidOptionError(f"{what} must be a list, an array, a Series or a frame of ids, not {given!r}.")
    if isinstance(given, (set, frozenset)):
        raise InvalidOptionError(f"{what} is a set, which has no order: pass a list, for instance sorted(...).")
    if names is None:
        if isinstance(given, pd.DataFrame):
            if given.shape[1] != 1:
                raise InvalidOptionError(
                    f"{what} is a frame of {given.shape[1]} columns, but the vertices of this graph have one."
                )
            return [_ids().stored_plainly(given.iloc[:, 0])]
        if isinstance(given, pd.MultiIndex):
            raise InvalidOptionError(
                f"{what} has an index of {given.nlevels} levels, but the vertices of this graph have one column."
            )
        if isinstance(given, (pd.Series, pd.Index, np.ndarray, pd.api.extensions.ExtensionArray)):
            if getattr(given, "ndim", 1) != 1:
                raise InvalidOptionError(f"{what} is an array of {given.ndim} dimensions: pass one of one.")
            return [_ids().stored_plainly(pd.Series(given).reset_index(drop=True))]
        # As objects: pandas would turn [1, None] into floats.
        return [_objects(list(given))]
    if isinstance(given, pd.DataFrame):
        return _columns_of(given, names, what)
    rows = list(given)
    odd = [row for row, item in enumerate(rows) if not isinstance(item, tuple) or len(item) != len(names)]
    if odd:
        raise InvalidOptionError(
            f"{what} must hold tuples of {len(names)} ids, one for each of {listed([repr(n) for n in names])}; "
            f"{counted(len(odd), 'entry is', 'entries are')} not: {listed([repr(rows[row]) for row in odd])}."
        )
    return [_objects([item[part] for item in rows]) for part in range(len(names))]


def _columns_of(frame: pd.DataFrame, names: list[Hashable], what: str) -> list[pd.Series]:
    positions = positions_of(list(frame.columns), names, what)
    return [_ids().stored_plainly(frame.iloc[:, position]) for position in positions]


def positions_of(labels: list[Hashable], names: list[Hashable], what: str) -> list[int]:
    """Find columns by name, each of which must be there once."""
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
    """Hold items as they are, tuples included; only dates and times take the type that pandas has for them."""
    import pandas as pd

    objects = np.empty(len(items), object)
    objects[:] = items
    series = pd.Series(objects, dtype=object)
    temporal = pd.api.types.infer_dtype(series, skipna=True).startswith(("datetime", "timedelta", "period", "interval"))
    return series.infer_objects() if temporal else series


def _described(columns: list[Any], rows: Integers) -> list[str]:
    """Spell out the ids in some rows: the first few, for a message will show no more; "" for the rest."""
    ids = [tuple(_ids().plain_value(column[row]) for column in columns) for row in rows[:6].tolist()]
    shown = [repr(parts[0]) if len(parts) == 1 else repr(parts) for parts in ids]
    return shown + [""] * (rows.size - len(shown))
