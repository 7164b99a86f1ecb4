"""Ranks by vertex and by seed: lookups in the frame of a ranking, whatever its library."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np

from prplugin.errors import PageRankError, VertexNotFoundError, counted, listed
from prplugin.types.arrays import Array, far_times, on_host
from prplugin.types.edges import Integers

FINER = re.compile(r"^(Date$|Time$|Datetime\(|Duration\(|time64\[ns|timestamp\[ns|duration\[ns)")
"""Types of times of polars, and those of Arrow with nanoseconds, whose values Python may not hold."""

INTEGER_TYPE = re.compile(r"u?int(8|16|32|64)(\[pyarrow\])?", re.IGNORECASE)
"""Names of the integer types of all libraries."""


class Lookups:
    """Lookups of a ranking, in its `frame`, which is converted at the first one."""

    frame: Any

    @cached_property
    def _by_vertex(self) -> ByVertex | BySeed:
        return ByVertex(*_columns(self.frame)[1:])

    def __getitem__(self, vertex: object) -> float | dict[Hashable, float]:
        return self._by_vertex[vertex]

    def __contains__(self, vertex: object) -> bool:
        return vertex in self._by_vertex

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._by_vertex)

    def __len__(self) -> int:
        return len(self._by_vertex)

    def __bool__(self) -> bool:
        return True

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_by_vertex", "_contributions")}

    def to_dict(self) -> dict[Hashable, float] | dict[Hashable, dict[Hashable, float]]:
        """Return the ranks by vertex, in the order of `frame`; for many seeds a dict of them by seed.

        Returns
        -------
        dict
            {vertex: rank}, or {seed: {vertex: rank}}. Ids are Python objects, tuples if a vertex has several columns.
        """
        return self._by_vertex.to_dict()


class ByVertex:
    """Ids and ranks. A column of ascending integers is searched; for others a dict is built at the first lookup."""

    def __init__(self, ids: list[Any], ranks: Array) -> None:
        self._ids, self._ranks = ids, ranks

    def __len__(self) -> int:
        return len(self._ranks)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(_objects(self._ids))

    def __contains__(self, vertex: object) -> bool:
        return self._find(vertex) is not None

    def __getitem__(self, vertex: object) -> float:
        if (rank := self._find(vertex)) is not None:
            return rank
        first = _objects([column[:1] for column in self._ids])
        like = f", which are like {first[0]!r}" if first else ""
        hint = "" if isinstance(vertex, Hashable) else " For the ranks of several, pass among= to rank."
        raise VertexNotFoundError(
            f"{vertex!r} is not among the {counted(len(self), 'vertex', 'vertices')} of this ranking{like}.{hint}"
        )

    def to_dict(self) -> dict[Hashable, float]:
        """Return {vertex: rank}."""
        return dict(zip(_objects(self._ids), self._ranks.tolist(), strict=True))

    def _find(self, vertex: object) -> float | None:
        ids = self._ascending
        if ids is None:
            try:
                return self._dict.get(vertex)
            except TypeError:  # has no hash
                return None
        number: Any = vertex if isinstance(vertex, Real) else math.nan
        if not ids.size or not int(ids[0]) <= number <= int(ids[-1]):
            return None
        row = int(np.searchsorted(ids, ids.dtype.type(int(number))))
        return float(self._ranks[row]) if int(ids[row]) == number else None

    @cached_property
    def _dict(self) -> dict[Hashable, float]:
        return self.to_dict()

    @cached_property
    def _ascending(self) -> Integers | None:
        """The ids, if they are one column of ascending integers; otherwise None."""
        ids = self._ids[0]
        integers = len(self._ids) == 1 and isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"
        return ids if integers and not (ids[1:] <= ids[:-1]).any() else None


class BySeed:
    """Ids and ranks of many seeds, or of groups.

    `counts`: Number of consecutive rows of the frame of each. `groups`: Number of columns of groups; 0: of seeds.
    """

    def __init__(self, frame: Any, seeds: list[Hashable], counts: Sequence[int], groups: int = 0) -> None:
        names, ids, self._ranks = _columns(frame)
        self._what = "group" if groups else "seed"
        own = groups or (1 if names[0] == "seed" else len(ids) // 2)
        for column in ids[:own]:
            _exact(column)
        self._ids = ids[own:]
        ends = np.cumsum(counts).tolist()
        self._rows: dict[Hashable, slice] = {}
        for seed, begin, end in zip(seeds, [0, *ends], ends, strict=False):  # one seed may be ranked in several groups
            self._rows[seed] = slice(self._rows[seed].start if seed in self._rows else begin, end)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._rows)

    def __contains__(self, seed: object) -> bool:
        return isinstance(seed, Hashable) and seed in self._rows

    def __getitem__(self, seed: object) -> dict[Hashable, float]:
        if seed not in self:
            like = "".join(f", which are like {known!r}" for known in islice(self, 1))
            raise VertexNotFoundError(
                f"{seed!r} is not among the {counted(len(self), self._what)} of these rankings{like}: see the columns "
                f"of {self._what}s of their frame."
            )
        part = self._rows[seed]
        return ByVertex([column[part] for column in self._ids], self._ranks[part]).to_dict()

    def to_dict(self) -> dict[Hashable, dict[Hashable, float]]:
        """Return {seed: {vertex: rank}}."""
        return {seed: self[seed] for seed in self}


def name_of(one: object) -> str:
    """Return an id as text, without quotes; the parts of an id of several columns are separated by commas."""
    return ", ".join(map(str, one)) if isinstance(one, (tuple, list)) else str(one)


def _columns(frame: Any) -> tuple[list[Hashable], list[Any], Array]:
    """Return names and columns of the ids of a frame of ranks, and the ranks, in host memory; compute a Dask frame."""
    frame = on_host(frame.compute() if hasattr(frame, "compute") else frame)
    names = list(getattr(frame, "column_names", frame.columns))  # of pyarrow, and of others
    *ids, ranks = (frame[name] for name in names)
    return names, [_plain(column) for column in ids], np.asarray(ranks)


def _plain(column: Any) -> Any:
    """Return a column of integers as a NumPy array, and others as what slices by position."""
    if INTEGER_TYPE.fullmatch(str(getattr(column, "dtype", getattr(column, "type", "")))):
        return np.asarray(column)
    return getattr(column, "array", column)


def _objects(columns: list[Any]) -> list[Hashable]:
    """Return ids as Python objects, as tuples if there are several columns."""
    lists = [_list_of(column) for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def _list_of(column: Any) -> list[Hashable]:
    """Return the values of a column as Python objects; those beyond the range of Python as `far_times` does."""
    column = _exact(column)
    name = next((name for name in ("tolist", "to_list", "to_pylist") if hasattr(column, name)), None)
    try:
        return list(column) if name is None else getattr(column, name)()
    except (OverflowError, ValueError):
        half = len(column) // 2
        return [*_list_of(column[:half]), *_list_of(column[half:])] if half else far_times(column)


def _exact(column: object) -> Any:
    """Return times, dates and durations of polars or Arrow as an array of Arrow, whose lists lose no nanoseconds.

    Lists of polars do, and polars ends dates beyond the range of Python by a panic, which is no Exception. Other
    columns are returned unchanged.

    Raises PageRankError: for times of day with nanoseconds, which no type of Python holds.
    """
    if not FINER.search(str(getattr(column, "dtype", getattr(column, "type", "")))):
        return column
    arrow: Any = column.to_arrow() if hasattr(column, "to_arrow") else column
    arrow = arrow.__arrow_array__() if hasattr(arrow, "__arrow_array__") else arrow
    if str(getattr(arrow, "type", "")).startswith("time64[ns]"):
        lost = np.flatnonzero(np.asarray(arrow.cast("int64")) % 1000)
        if lost.size:
            raise PageRankError(
                f"{counted(lost.size, 'id')} of this ranking, in rows {listed(lost)} of its frame (counted from 0), "
                "have nanoseconds, which Python's datetime.time does not hold. Use the columns of the frame, or cast "
                "the ids to integers before you make the graph."
            )
    return arrow
