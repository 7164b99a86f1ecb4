"""pandas frames: edges in, ranks out."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames.columns import Columns
from prplugin.frames.seeds import (
    SEED,
    Labels,
    SeedValues,
    parted,
    refuse_absent_seeds,
    refuse_repeated_seeds,
    seed_names,
)
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Vertices",
    "accepts",
    "id_columns",
    "ids_and_values",
    "opened",
    "place",
    "positions_of",
    "read",
    "read_seeds",
    "read_values",
    "write",
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
    """Spread values given for some vertices over all of them, 0 for the others.

    Parameters
    ----------
    given : dict, Series indexed by vertex, or frame
        A frame has the columns `vertex` (for vertices of several columns: theirs) and `values`.
    what : str
        The name of the argument, for messages.

    Raises
    ------
    InvalidOptionError
        If an id is unknown or repeated or of another kind, or a value not a finite number of at least 0.
    """
    columns, values = ids_and_values(given, vertices.names, what)
    rows = _rows_of(columns, vertices, what)
    spread = np.zeros(len(vertices))
    spread[rows] = _numbers(values, what, "entry", InvalidOptionError)
    return spread


def read_seeds(given: object, vertices: Vertices, what: str) -> SeedValues | None:
    """Take apart the values of many seeds; None if they are those of one.

    Parameters
    ----------
    given : list or tuple, or frame with a column `seed`
        A list of vertices, each of which is a seed; or of what `read_values` takes, each the values of a seed. A frame
        has the columns `seed`, `vertex` (for vertices of several columns: theirs) and, unless all are 1, `values`.
    what : str
        The name of the argument, for messages.

    Raises
    ------
    InvalidOptionError
        As `read_values`; also for no seeds at all, and for lists of both kinds of entries.
    """
    import pandas as pd

    sizes: Any
    seeds = parted(given, vertices.names, what, (Mapping, pd.Series, pd.DataFrame), pd.DataFrame)
    if seeds is None:
        return None
    if isinstance(seeds, list):
        parts = [ids_and_values(item, vertices.names, f"{what}[{place}]") for place, item in enumerate(seeds)]
        columns = [_ids().one_column([part[0][place] for part in parts]) for place in range(len(vertices.names))]
        values = np.concatenate(
            [_numbers(part[1], f"{what}[{place}]", "entry", InvalidOptionError) for place, part in enumerate(parts)]
        )
        sizes, labels = [len(part[1]) for part in parts], None
    elif isinstance(seeds, tuple):
        columns = id_columns(list(seeds), vertices.names if len(vertices.names) > 1 else None, what)
        values, sizes, labels = np.ones(len(seeds)), np.ones(len(seeds), np.int64), None
    else:
        names = [name for name in [SEED, *vertices.names, "values"] if name != "values" or name in seeds.columns]
        seed, *columns = _columns_of(seeds, names, what)
        refuse_absent_seeds(np.flatnonzero(seed.isna()), what)
        codes, _ = pd.factorize(seed)
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes)
        labels = seed.array.take(order[np.cumsum(sizes) - sizes])
        values = np.ones(len(seed))
        if "values" in seeds.columns:
            values = _numbers(columns.pop(), what, "entry", InvalidOptionError)[order]
        columns = [column.take(order).reset_index(drop=True) for column in columns]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    rows = _rows_of(columns, vertices, what, np.repeat(np.arange(bounds.size - 1), np.diff(bounds)))
    if isinstance(seeds, tuple):
        refuse_repeated_seeds(rows, lambda again: _described([column.array for column in columns], again), what)
        found = Labels(rows=rows)
    else:
        numbers = pd.array(np.arange(bounds.size - 1), dtype=np.dtype(np.int64))
        found = Labels(column=numbers if labels is None else labels)
    seed_names(vertices.names, found)
    return SeedValues(bounds, rows, values, found)


def _rows_of(columns: list[pd.Series], vertices: Vertices, what: str, seeds: Integers | None = None) -> Integers:
    """Give the positions of ids, of which none may be unknown, nor come more than once (for one of `seeds`)."""
    import pandas as pd

    ids = _ids()
    for column, kind in zip(columns, vertices.kinds, strict=True):
        ids.check_kind(column, kind, what, ids.kind_of)
    rows = vertices.locate(columns)
    arrays = [column.array for column in columns]
    if (unknown := np.flatnonzero(rows < 0)).size:
        raise InvalidOptionError(
            f"{what} gives values to {counted(unknown.size, 'vertex', 'vertices')} not in the graph: "
            f"{listed(_described(arrays, unknown))}. Remove them, or add them to the graph with vertices=."
        )
    keys = pd.Series(rows) if seeds is None else pd.DataFrame({"seed": seeds, "row": rows})
    if (repeated := np.flatnonzero(keys.duplicated())).size:
        raise InvalidOptionError(
            f"{what} gives more than one value to {counted(np.unique(rows[repeated]).size, 'vertex', 'vertices')}: "
            f"{listed(_described(arrays, repeated))}. Add them up or drop all but one."
        )
    return rows


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
            f"{what} must be a dict of vertex: value, a Series indexed by vertex, or a frame with the columns "
            f"{listed([repr(name) for name in [*names, 'values']])}, not {type(given).__name__}."
        )
    if not len(values):
        raise InvalidOptionError(f"{what} is empty: it must give a positive value to at least one vertex.")
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
        frame.columns = _names()
        return frame
    # The type is said: pandas takes objects that are all strings for its string type.
    named = zip(names, columns, strict=True)
    return pd.DataFrame({name: pd.Series(column, dtype=column.dtype) for name, column in named})


@cache
def _names() -> pd.Index:
    import pandas as pd

    return pd.Index(["vertex", "pagerank"])


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
    if absent := [name for name in names if name not in labels]:
        raise InvalidOptionError(
            f"{what} has no column {listed([repr(name) for name in absent])}: it needs the columns "
            f"{listed([repr(name) for name in names])}."
        )
    if repeated := [name for name in names if labels.count(name) > 1]:
        raise InvalidOptionError(f"{what} has column {repeated[0]!r} more than once. Rename or drop all but one.")
    return [labels.index(name) for name in names]


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
