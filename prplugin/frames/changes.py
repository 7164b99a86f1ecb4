"""Frames of edges to add to a graph or to remove from it, and the ids of a graph that gets more vertices."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from prplugin.errors import InvalidEdgesError, MethodUnavailableError
from prplugin.frames import adapter_for, matrices, pandas
from prplugin.frames.base import Vertices
from prplugin.frames.columns import positions, resolve
from prplugin.frames.times import Clock
from prplugin.frames.wrapped import WrappedVertices
from prplugin.options import Duplicates
from prplugin.types.edges import Edges, Integers, index_dtype

__all__ = ["Growth", "KnownIds", "Named", "Rows", "read_rows"]


@dataclass(frozen=True)
class Named:
    """Names of the columns that a graph was read from, None where that was no frame; and how they are read."""

    source: list[Hashable] | None = None
    destination: list[Hashable] | None = None
    weight: Hashable = None
    time: Hashable = None
    directed: bool = True
    duplicates: Duplicates = "sum"
    windowed: bool = False


class Rows(NamedTuple):
    """Edges by position among the distinct vertices of their frame."""

    edges: Edges
    vertices: pandas.Vertices


class Growth(NamedTuple):
    """A graph's vertices with those of a frame.

    Attributes
    ----------
    known : KnownIds
    rows : array of int64
        Positions of the frame's vertices.
    positions : array, or None
        Positions of those that the graph had before; None: they are the first.
    """

    known: KnownIds
    rows: Integers
    positions: Integers | None


def read_rows(frame: Any, named: Named, clock: Clock | None, *, removed: bool) -> Rows:
    """Read edges by the columns of the graph; those to remove may be without weights and times."""
    if type(frame).__module__.partition(".")[0] in ("cudf", "dask_cudf"):
        frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    adapter = adapter_for(frame)
    opened, labels = adapter.opened(frame)
    weight, time = named.weight, named.time
    if removed and not any(positions(labels, name) for name in (weight, time) if name is not None):
        weight = time = None
    source, destination = (None if names is None else list(names) for names in (named.source, named.destination))
    columns = resolve(labels, source, destination, weight, time, None if time is None else clock)
    edges, vertices = adapter.read(opened, columns, None, edge_list=True, lasting=True)
    assert isinstance(edges, Edges)
    return Rows(edges, _on_host(vertices))


class KnownIds:
    """The vertices of a graph, with a way to find them that grows as they do."""

    def __init__(self, vertices: Vertices) -> None:
        self.vertices = vertices
        self._plain = _on_host(vertices)
        self._table: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._plain)

    def located(self, asked: pandas.Vertices, what: str) -> Integers:
        """Return the position of each vertex of a frame, -1 where there is none."""
        for known, kind in zip(self._plain.kinds, asked.kinds, strict=True):
            if "empty" not in (known, kind) and known != kind:
                raise InvalidEdgesError(
                    f"{what} names vertices by ids of kind {kind}, but the graph's are of kind {known}: cast them."
                )
        if not len(self) or not len(asked):
            return np.full(len(asked), -1)
        if self._plain.kinds == ["integer"]:
            ids, wanted = self._integers, _integers(asked.columns[0])
            if wanted.dtype != ids.dtype:  # those that do not fit are none of the graph's
                info = np.iinfo(ids.dtype)
                fit = (wanted >= info.min) & (wanted <= info.max)
                found = np.full(wanted.size, -1)
                found[fit] = _searched(ids, wanted[fit].astype(ids.dtype))
                return found
            return _searched(ids, wanted)
        if len(self._table) != len(self):
            self._table = dict(zip(_keys(self._plain.columns), range(len(self)), strict=True))
        return np.array([self._table.get(key, -1) for key in _keys(asked.columns)], np.int64)

    def grown(self, asked: pandas.Vertices, rows: Integers) -> Growth:
        """Return the vertices with those of a frame that are new, given by the -1 in `rows`."""
        ids, new = _ids(), np.flatnonzero(rows < 0)
        old = self._plain
        kinds = [other if kind == "empty" else kind for kind, other in zip(old.kinds, asked.kinds, strict=True)]
        rows, before = rows.copy(), None
        if kinds == ["integer"]:
            both = ids.in_one_type(
                [self._integers, _integers(asked.columns[0])[new]], [True, True], ["add", "the graph"]
            )
            where = np.searchsorted(both[0], both[1]) + np.arange(new.size)  # those of one frame ascend
            joined = np.insert(both[0], where - np.arange(new.size), both[1])
            rows[new] = where
            if new.size and len(old) and where[0] < len(old):
                kept = np.ones(joined.size, np.bool_)
                kept[where] = False
                before = np.flatnonzero(kept).astype(index_dtype(joined.size))
            known = np.flatnonzero(rows >= 0)
            if before is not None:
                known = np.setdiff1d(known, new)
                rows[known] = before[rows[known]]
            like = asked.columns if old.kinds == ["empty"] else old.columns
            columns = [ids.integers_like(joined, [_series(like[0])])]
        else:
            rows[new] = np.arange(len(old), len(old) + new.size)
            columns = [
                _appended(one, other.take(new), kind)
                for one, other, kind in zip(old.columns, asked.columns, kinds, strict=True)
            ]
        plain = pandas.Vertices(old.names, columns, kinds)
        known_ids = KnownIds(_rewrapped(self.vertices, plain))
        if self._table and before is None:
            added = zip(_keys([column[len(old) :] for column in columns]), range(len(old), len(plain)), strict=True)
            self._table.update(added)
            known_ids._table = self._table
        return Growth(known_ids, rows, before)

    @property
    def _integers(self) -> Integers:
        if "_ids" not in self.__dict__:
            self.__dict__["_ids"] = _integers(self._plain.columns[0])
        found: Integers = self.__dict__["_ids"]
        return found


def _on_host(vertices: Any) -> pandas.Vertices:
    while isinstance(vertices, WrappedVertices):
        vertices = vertices.inner
    if not isinstance(vertices, pandas.Vertices):
        raise MethodUnavailableError(
            "update changes graphs on the host, and this one is on the GPU: make it from edges.to_pandas()."
        )
    return vertices


def _rewrapped(vertices: Any, plain: pandas.Vertices) -> Any:
    """Return other vertices that are written as these are."""
    if not isinstance(vertices, WrappedVertices) or isinstance(vertices, matrices.Vertices):
        return plain
    changed: dict[str, Any] = {"inner": _rewrapped(vertices.inner, plain)}
    if hasattr(vertices, "fields"):
        pairs = zip(_on_host(vertices).columns, plain.columns, vertices.fields, strict=True)
        changed["fields"] = [field if old.dtype == new.dtype else None for old, new, field in pairs]
    return replace(vertices, **changed)  # type: ignore[type-var]


def _searched(ids: Integers, wanted: Integers) -> Integers:
    """Return the positions of integers among ascending ones, -1 where they are none of them."""
    found = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
    return np.where(ids[found] == wanted, found, -1)


def _keys(columns: list[Any]) -> Any:
    """Return ids as Python's objects, those of several columns as tuples."""
    held = [np.asarray(_ids().plain(column), object).tolist() for column in columns]
    return held[0] if len(held) == 1 else list(zip(*held, strict=True))


def _appended(old: Any, new: Any, kind: str) -> Any:
    ids = _ids()
    if not len(old) or not len(new):
        return old if len(old) else new
    if kind == "integer":
        joined = np.concatenate(ids.in_one_type([_integers(old), _integers(new)], [True, True], ["add", "the graph"]))
        return ids.integers_like(joined, [_series(old)])
    joined = ids.in_common([ids.plain(old), ids.plain(new)], "add")
    categories = getattr(old.dtype, "categories", None)
    return (
        ids.like_categories(joined, [_series(old)])
        if categories is not None and _series(joined).isin(categories).all()
        else joined
    )


def _integers(column: Any) -> Integers:
    found: Integers = _ids().integers(_series(column), "")
    return found


def _series(array: Any) -> Any:
    import pandas as pd

    return pd.Series(array, dtype=array.dtype)


def _ids() -> Any:
    from prplugin.frames import _pandas_ids  # imports pandas

    return _pandas_ids
