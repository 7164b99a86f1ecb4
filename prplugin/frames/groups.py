"""Vertices that are pairs: of a group and an id, or of a side of a bipartite graph and an id.

A vertex is a pair of a group and an id. Groups are in the order of the result that ids of their columns alone would
have, and the vertices of each group in the order of a graph that is the group alone, so that groups are contiguous.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidOptionError, MethodUnavailableError, VertexNotFoundError, counted, listed
from prplugin.frames.columns import Column, Columns, Frame
from prplugin.frames.vertices import Vertices, format_ids, names_columns, plain_ids
from prplugin.graph import teleports
from prplugin.graph.edges import factorize_ids
from prplugin.options import Unknown
from prplugin.types.arrays import namespace, to_host
from prplugin.types.edges import Coo, Floats, Grouped, Integers, index_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from prplugin.frames.columns import EdgesById
    from prplugin.frames.ids import Ids

SAMPLED = 1 << 16  # rows that are looked at first for an id in two groups

SIDE = "side"  # name of the column that says which of two columns of endpoints a vertex is from


def encoder(ids: Ids, by: int) -> Callable[..., tuple[Coo | Grouped, list[Column], list[str]]]:
    """Return a function like `Ids.encode` for endpoints whose first `by` columns are groups, the same at both ends.

    It factorizes groups and ids by themselves, and then pairs of their codes, always by its argument `edges_by_id`.
    """

    def encode(
        endpoints: list[list[Column]], labels: list[list[str]], edges_by_id: EdgesById
    ) -> tuple[Coo | Grouped, list[Column], list[str]]:
        # The third endpoint, additional vertices, comes after the rows of the second.
        xp, own = ids.xp, [0, 0, 2] if len(endpoints) > 2 else [0]
        own_columns, own_labels = [endpoints[end][:by] for end in own], [labels[end][:by] for end in own]
        (first, *more), groups, group_kinds = ids.codes_of(own_columns, own_labels, factorize_ids)
        of_group = [first, first, *more[1:]]
        codes, found, kinds = ids.codes_of([end[by:] for end in endpoints], [end[by:] for end in labels], factorize_ids)
        n = max(len(found[0]), 1)
        pairs: Any = None
        keys = [group.astype(np.int64) * n + code for code, group in zip(codes, of_group, strict=True)]
        only = only_groups(codes, keys, n)
        if only is not None:
            order = xp.argsort(only[: len(found[0])] // n, kind="stable")
            pairs, keys = only[order], [inverse(order)[code] for code in codes]
        elif kinds != ["integer"]:
            keys, columns, _ = ids.factorize_endpoints([keys], [["pairs"] * len(keys)], ["integer"])
            order = xp.argsort(ids.integers(columns[0]) // n, kind="stable")
            pairs, keys = ids.integers(columns[0])[order], [inverse(order)[key] for key in keys]
        edges, distinct = edges_by_id(keys)
        pairs = distinct if pairs is None else pairs
        vertices = [ids.take(column, pairs // n) for column in groups] + [ids.take(one, pairs % n) for one in found]
        return edges, vertices, group_kinds + kinds

    return encode


def only_groups(codes: list[Integers], keys: list[Integers], n: int) -> Integers | None:
    """Return the only key of each of n codes, or None if a code has several; some rows tell for most frames."""
    found = None
    for most in (SAMPLED, None) if codes[0].size > SAMPLED else (None,):
        found = namespace(codes[0]).zeros(n, np.int64)
        pairs = [(code[:most], key[:most]) for code, key in zip(codes, keys, strict=True)]
        for code, key in pairs:
            found[code] = key
        if not all(bool((found[code] == key).all()) for code, key in pairs):
            return None
    return found


def inverse(order: Integers) -> Integers:
    """Return the position of each entry after a permutation by `order`."""
    xp = namespace(order)
    positions: Integers = xp.empty(order.size, np.int64)
    positions[order] = xp.arange(order.size)
    return positions


def in_pairs(edges: Coo | Grouped, vertices: Vertices, columns: Columns) -> tuple[Coo | Grouped, Vertices]:
    """Return edges and vertices of a frame, with the side of each vertex, or in the order of its groups."""
    if not columns.bipartite:
        return in_groups(edges, vertices, columns.by)
    if not isinstance(edges, Coo):
        raise MethodUnavailableError("bipartite=True needs all edges in memory at once, and these do not fit.")
    return by_side(edges, vertices, columns)


def by_side(edges: Coo, vertices: Vertices, columns: Columns) -> tuple[Coo, Vertices]:
    """Return edges in the order of the rows, and vertices, whose endpoints in two columns are different vertices.

    Vertices have one more column, `side`: the label of that column. Sources come first.
    """
    if SIDE in vertices.names:
        raise InvalidOptionError(f"bipartite=True adds a column {SIDE!r}, and the vertices have one: rename it.")
    ids, ends, found = vertices.ids, [edges.source, edges.destination], []
    with vertices.active():
        for side, end in enumerate(ends):
            if vertices.kinds == ["integer"]:
                (ends[side],), distinct = factorize_ids([end])
            else:
                own = ids.xp.asarray(end)
                (ends[side],), (known,), _ = ids.factorize_endpoints([[own]], [["pairs"]], ["integer"])
                distinct = ids.integers(known)
            found.append(distinct)
        xp = namespace(edges.source)
        n, split = sum(map(len, found)), len(found[0])
        of_side = ids.xp.asarray(np.repeat([0, 1], [split, n - split]))
        labels = [", ".join(map(str, names)) for names in columns.id_names.values()]
        sides = ids.take(ids.text(labels), of_side if ids.memory_space == "device" else to_host(of_side))
        rows = ids.xp.concatenate([ids.xp.asarray(each) for each in found])
        own_columns: list[Column] = [getattr(sides, "array", sides) if ids.memory_space == "host" else sides]
        own_columns += [ids.take(column, rows) for column in vertices.columns]
    boundary: Any = vertices.boundary
    if hasattr(boundary, "fields"):  # a `prplugin.frames.narwhals.Output`
        dtypes = [own_columns[0].dtype, *boundary.dtypes]
        boundary = replace(boundary, fields=[None, *boundary.fields], dtypes=dtypes)
    names = [SIDE, *vertices.names]
    pairs = Vertices(names, own_columns, ["string", *vertices.kinds], vertices.memory_space, boundary=boundary)
    source, destination = (xp.asarray(end).astype(index_dtype(n), copy=False) for end in ends)
    return replace(edges, source=source, destination=destination + split, n=n), pairs


def positions_of_side(vertices: Vertices, side: str, what: str) -> Integers:
    """Return the positions of the vertices of one side; raise InvalidOptionError if there are none."""
    with vertices.active():
        sides = vertices.ids.as_column(vertices.series[0])
        found: Integers = vertices.ids.xp.flatnonzero(vertices.ids.xp.asarray(sides == side))
        known = [] if len(found) else sorted(map(str, vertices.ids.to_host(sides.drop_duplicates())))
    if known:
        raise InvalidOptionError(
            f"{what}={side!r} is no side of this graph: they are {listed(list(map(repr, known)))}."
        )
    return found


def in_groups(edges: Coo | Grouped, vertices: Vertices, by: int) -> tuple[Coo | Grouped, Vertices]:
    """Return edges and vertices of a frame in the order of groups, which the first `by` columns of vertices are."""
    names, columns, kinds, space = vertices.names, vertices.columns, vertices.kinds, vertices.memory_space
    grouped = GroupedVertices(names, columns, kinds, space, boundary=vertices.boundary, by=by)
    with grouped.active():
        if (order := grouped.order()) is None:
            return edges, grouped
        grouped = replace(grouped, columns=[grouped.ids.take(column, order) for column in columns])
        assert isinstance(edges, Coo)
        position = namespace(edges.source).asarray(inverse(order)).astype(edges.source.dtype)
    edges = replace(edges, source=position[edges.source], destination=position[edges.destination])
    return edges, grouped


def normalised(vertices: Vertices, values: Floats, what: str) -> Floats:
    """Divide values by vertex by their sum; those of a personalization of groups so that each has its share."""
    if what == "personalization" and getattr(vertices, "by", None):
        return vertices.shares(values, what)  # type: ignore[attr-defined]  # perhaps of a saved graph
    return teleports.normalised(values, what)


def read_distribution(vertices: Vertices, given: object, what: str, unknown: Unknown) -> Floats:
    """Return a distribution that is given by vertex, as `Vertices.read_values` takes it, as n float64 with sum 1."""
    if (
        type(given) is list
        and given
        and all(type(each) in (int, str) for each in given)
        and not hasattr(vertices, "by")
    ):
        rows = vertices.boundary.values(vertices.read_positions(given, what, unknown))
        if rows.size:
            uniform: Floats = namespace(rows).zeros(len(vertices))
            uniform[rows] = 1 / rows.size
            return uniform
    return normalised(vertices, vertices.read_values(given, what, unknown), what)


def offsets_of(vertices: Vertices) -> Integers:
    """Return the attribute `offsets` of vertices with groups."""
    with vertices.active():
        offsets: Integers = vertices.offsets  # type: ignore[attr-defined]  # perhaps of a saved graph
    return offsets


@dataclass(eq=False, repr=False)
class GroupedVertices(Vertices):
    """Vertices whose first `by` columns are groups.

    Per-vertex arguments have the columns of groups, or name vertices that every group has.
    """

    by: int = field(kw_only=True)

    @cached_property
    def offsets(self) -> Integers:
        """Position of the first vertex of each group, and their number, on the host."""
        codes = self._codes()
        changes = to_host(namespace(codes).flatnonzero(codes[1:] != codes[:-1]))
        return np.concatenate([[0], changes + 1, [len(self)]]) if len(self) else np.zeros(1, np.int64)

    def part_of(self, row: int) -> tuple[int, int]:
        """Return the first position of the group of a vertex, and the one past its last."""
        at = int(np.searchsorted(self.offsets, row, "right"))
        return int(self.offsets[at - 1]), int(self.offsets[at])

    def first_groups(self, count: int) -> list[Hashable]:
        """Return the first groups as Python objects."""
        return self._group_ids(np.arange(min(count, self.offsets.size - 1)))

    def _group_ids(self, groups: Integers) -> list[Any]:
        """Return groups as Python objects, as tuples if they have several columns."""
        ids: list[Any] = self.plain_ids(self.offsets[groups])
        return [one[0] for one in ids] if self.by == 1 else [one[: self.by] for one in ids]

    def shares(self, values: Floats, what: str) -> Floats:
        """Return a distribution in which each group has its number of vertices, of those in the values of the group.

        Raises InvalidOptionError: if the values of a group sum to 0.
        """
        xp, sizes = namespace(values), np.diff(self.offsets)
        greatest = np.maximum.reduceat(to_host(values), self.offsets[:-1]) if len(self) else np.zeros(0)
        if (none := np.flatnonzero(greatest == 0)).size:
            names = listed([repr(group) for group in self._group_ids(none[:6])] + [""] * (none.size - 6))
            raise InvalidOptionError(
                f"{what} has no positive value in {counted(none.size, 'group')}: {names}. Each group needs a vertex."
            )
        values = values / xp.asarray(np.repeat(greatest, sizes))
        sums = np.add.reduceat(to_host(values), self.offsets[:-1])
        found: Floats = values / xp.asarray(np.repeat(sums * len(self) / sizes, sizes))
        return found

    def order(self) -> Integers | None:
        """Return the order of the result of vertices in any order, groups being new or in that of the result."""
        if not len(self):
            return None
        codes, xp = self._codes(), self.ids.xp
        if self.kinds[self.by :] == ["integer"]:
            ids = self.ids.integers(self.columns[self.by])
            after = (codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (ids[1:] > ids[:-1]))
            if after.all():
                return None
            order = xp.argsort(ids, kind="stable")
            order = order[xp.argsort(codes[order], kind="stable")]
        elif (codes[1:] >= codes[:-1]).all():
            return None
        else:
            order = xp.argsort(codes, kind="stable")
        found: Integers = order
        return found

    def _codes(self) -> Integers:
        """Return the place of the group of each vertex in the order of groups."""
        if not len(self):
            return self.ids.xp.empty(0, np.int64)
        if self.kinds[: self.by] == ["integer"]:
            return factorize_ids([self.ids.integers(self.columns[0])])[0][0]
        labels = [str(name) for name in self.names[: self.by]]
        return self.ids.factorize(self.series[: self.by], self.kinds[: self.by], labels)[0]

    # --- arguments -------------------------------------------------------------------------------------------------

    @property
    def _alone(self) -> Vertices:
        """The vertices without their groups."""
        by, space = self.by, self.memory_space
        return Vertices(self.names[by:], self.columns[by:], self.kinds[by:], space, boundary=self.boundary)

    def id_columns(self, given: object, what: str) -> list[Column]:
        if self.names_groups(given):
            return super().id_columns(given, what)
        return self._in_each_group(self._alone.id_columns(given, what))

    def ids_and_numbers(self, given: object, what: str) -> tuple[list[Column], Floats]:
        if self.names_groups(given):
            return super().ids_and_numbers(given, what)
        columns, numbers = self._alone.ids_and_numbers(given, what)
        return self._in_each_group(columns), self.ids.xp.tile(numbers, self.offsets.size - 1)

    def names_groups(self, given: Frame) -> bool:
        """Return whether an argument names the group of each vertex."""
        width, types = len(self.names), self.ids.types
        if names_columns(given, types.frames):
            return isinstance(given[1], list) and len(given[1]) == width
        if isinstance(given, types.frames):
            return all(name in given.columns for name in self.names[: self.by])
        if isinstance(given, types.series):
            first = given.iloc[0] if len(given) else None
            return bool(given.index.nlevels == width) or (isinstance(first, tuple) and len(first) == width)
        if hasattr(given, "nlevels"):
            return bool(given.nlevels == width)
        if isinstance(given, (Mapping, list, tuple, set, frozenset)) or hasattr(given, "__len__"):
            first = next(iter(given), None)
            return isinstance(first, tuple) and len(first) == width
        return False

    def _in_each_group(self, columns: list[Column]) -> EachGroup:
        """Return the ids of vertices, each in every group, group by group."""
        ids, xp, groups, count = self.ids, self.ids.xp, self.offsets.size - 1, len(columns[0])
        rows = xp.asarray(np.repeat(self.offsets[:-1], count))
        each = xp.asarray(np.tile(np.arange(count), groups))
        own = [ids.as_column(ids.take(column, rows)) for column in self.series[: self.by]]
        return EachGroup([*own, *(ids.take(column, to_host(each)) for column in columns)])

    def known_positions(
        self, columns: list[Column], what: str, unknown: Unknown | None = None, sizes: Integers | None = None
    ) -> tuple[Integers, Integers | None]:
        if isinstance(columns, EachGroup) and (unknown is None or not unknown.ignores(what)):
            groups = self.offsets.size - 1
            absent = (to_host(self.find_positions(columns, what)) < 0).reshape(groups, -1)
            if (lacking := np.flatnonzero(absent.any(axis=1))).size:
                first = int(lacking[0])
                at = np.flatnonzero(absent[first]) + first * absent.shape[1]
                names = listed(format_ids(partial(plain_ids, columns[self.by :]), at))
                raise InvalidOptionError(
                    f"{what} names no groups, and {counted(lacking.size, 'group')} of {groups:,} "
                    f"{'lacks' if lacking.size == 1 else 'lack'} some of its vertices: group "
                    f"{self._group_ids(lacking[:1])[0]!r} lacks {names}. Pass a frame with the columns "
                    f"{listed(list(map(repr, self.names)))}, or unknown='ignore'."
                )
        return super().known_positions(columns, what, unknown, sizes)

    def position_of(self, vertex: object) -> int:
        if not isinstance(vertex, tuple) or len(vertex) != len(self.names):
            raise VertexNotFoundError(
                f"{vertex!r} names no vertex of one group: pass a tuple of {listed(list(map(repr, self.names)))}."
            )
        return super().position_of(vertex)


class EachGroup(list[Column]):
    """Columns of ids of vertices that were given without their groups, repeated in each."""
