"""Vertices that are not returned: those of every ranking, and those of each."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, listed
from prplugin.frames.columns import Frame, check_kinds
from prplugin.frames.groups import SIDE, positions_of_side
from prplugin.frames.remedies import remedy
from prplugin.frames.vertices import SEED, Labels, Vertices
from prplugin.graph.teleports import Seeds
from prplugin.options import Options, Unknown, excluded_by_seed
from prplugin.types.arrays import MemorySpace, namespace, to_host, to_memory
from prplugin.types.edges import Compressed, Integers

OutNeighbours = Callable[[Integers], tuple[Integers, Integers]]
"""Returns, for positions of vertices, the place among them and the out-neighbour of each of their edges."""


class Exclusion(NamedTuple):
    """The vertices of `exclude`, in the memory space of the graph.

    `common`: Positions of those of every ranking; None without.
    `kinds`: Those of each ranking that are asked for by name: "seeds", "neighbors".
    `pairs`: Seed and position of those of each ranking; None without.
    """

    common: Integers | None = None
    kinds: frozenset[str] = frozenset()
    pairs: tuple[Integers, Integers] | None = None

    def by_seed(self, seeds: Seeds, out_neighbours: OutNeighbours) -> Seeds | None:
        """Return the vertices to leave out by seed, without values that mean anything; None if there are none."""
        if self.pairs is None and self.kinds == {"seeds"}:
            return seeds
        parts = [] if self.pairs is None else [self.pairs]
        if self.kinds:
            each, rows = seeds.support()
            parts += [(each, rows)] if "seeds" in self.kinds else []
            if "neighbors" in self.kinds:
                places, targets = out_neighbours(rows)
                parts.append((each[places], targets))
        if not parts:
            return None
        xp = namespace(parts[0][0])
        each, rows = (xp.concatenate([xp.asarray(part[at]).astype(np.int64) for part in parts]) for at in (0, 1))
        order = xp.argsort(each, kind="stable")
        sizes = np.bincount(to_host(each), minlength=seeds.count)
        return Seeds(np.append(0, np.cumsum(sizes)), rows[order], xp.ones(order.size))

    def of_one(self, rows: Integers, out_neighbours: OutNeighbours) -> Integers | None:
        """Return the vertices to leave out of a single ranking, which teleports to those at `rows`; None without."""
        if self.kinds == {"seeds"} and self.common is None:
            return rows
        one = Seeds(np.array([0, rows.size]), rows, namespace(rows).ones(rows.size))
        return excluded_of(self.common, self.by_seed(one, out_neighbours), 0)


def excluded_of(common: Integers | None, by_seed: Seeds | None, seed: int) -> Integers | None:
    """Return the vertices that one of many rankings leaves out; None without."""
    if by_seed is None:
        return common
    own = by_seed.slice(seed, seed + 1).support()[1]
    return own if common is None else namespace(own).append(common, own)


def read_selection(
    vertices: Vertices, options: Options, unknown: Unknown, memory_space: MemorySpace, labels: Labels | None = None
) -> tuple[Integers | None, Exclusion]:
    """Return the positions of the vertices in `among`, and the vertices of `exclude`.

    `labels`: Those of many seeds; None for a single ranking.
    """
    among, words = None, excluded_by_seed(options.exclude) if isinstance(options.exclude, str) else frozenset()
    if isinstance(options.among, str) and vertices.names[0] == SIDE:
        among = positions_of_side(vertices, options.among, "among")
    elif options.among is not None:
        among = _positions(vertices, options.among, "among", unknown)
    exclusion = Exclusion(kinds=words)
    if isinstance(options.exclude, str) and not words:
        if vertices.names[0] != SIDE:
            raise InvalidOptionError(
                "exclude must be a list, Series, index or array of vertices, or 'seeds' or 'neighbors', not "
                f"{options.exclude!r}."
            )
        rows = positions_of_side(vertices, options.exclude, "exclude")
        exclusion = Exclusion(to_memory(rows, memory_space))
    elif options.exclude is not None and not words:
        with vertices.reading(options.exclude, "exclude"):
            exclusion = _read_exclusion(vertices, options.exclude, unknown, labels)
        arrays = (exclusion.common, *(exclusion.pairs or (None, None)))
        common, each, rows = (to_memory(array, memory_space) for array in arrays)
        exclusion = exclusion._replace(common=common, pairs=None if each is None else (each, rows))
    return to_memory(among, memory_space), exclusion


def _positions(vertices: Vertices, given: object, what: str, unknown: Unknown) -> Integers:
    """Return the positions of vertices, which may be those of an earlier call."""
    if (found := vertices.repeated.find(given, what, unknown)) is None:
        before = unknown.counts.get(what, 0)
        found = vertices.read_positions(given, what, unknown)
        vertices.repeated.keep(given, what, unknown, found, unknown.counts.get(what, 0) - before)
    return found


def _read_exclusion(vertices: Vertices, given: object, unknown: Unknown, labels: Labels | None) -> Exclusion:
    if (found := vertices.repeated.find(given, "exclude", unknown)) is not None:
        return Exclusion(found)
    if isinstance(given, (list, tuple, set, frozenset)):
        words = excluded_by_seed(given)
        if words and vertices.kinds == ["string"]:
            rows = vertices.find_positions(vertices.id_columns(sorted(words), "exclude"), "exclude")
            if (rows >= 0).any():
                raise InvalidOptionError(
                    f"exclude is a list with {listed(sorted(map(repr, words)))}, which is a vertex as well. "
                    f"For vertices alone pass {remedy('index of vertices')}, and rename the vertex to leave out both."
                )
        rest = [vertex for vertex in given if not (isinstance(vertex, str) and vertex in words)] if words else given
        return Exclusion(_positions(vertices, rest, "exclude", unknown) if rest or not words else None, words)
    original, given = given, vertices.converted(given, "exclude")
    names: list[Hashable] = [SEED] if labels is None or labels.rows is None else vertices.seed_names(labels)
    if isinstance(given, vertices.ids.types.frames) and names[0] in given.columns and len(given.columns) > 1:
        if labels is None:
            raise InvalidOptionError("exclude is a frame of vertices by seed, and there is one ranking: pass seeds=.")
        return Exclusion(pairs=_read_pairs(vertices, vertices.ids.own_frame(given), unknown, labels, names))
    return Exclusion(_positions(vertices, original, "exclude", unknown))


def _read_pairs(
    vertices: Vertices, frame: Frame, unknown: Unknown, labels: Labels, names: list[Hashable]
) -> tuple[Integers, Integers]:
    """Return seed and position of the rows of a frame; rows of seeds that are not ranked are left out."""
    ids = vertices.ids
    columns = ids.columns_of(frame, [*names, *vertices.names], "exclude")
    seeds, excluded = columns[: len(names)], columns[len(names) :]
    xp = ids.xp
    if not len(frame):
        return xp.empty(0, np.int64), xp.empty(0, np.int64)
    try:
        if labels.rows is not None:
            of_rows = vertices.find_positions(seeds, "exclude")
            order = xp.argsort(labels.rows, kind="stable")
            places = xp.minimum(xp.searchsorted(labels.rows[order], of_rows), order.size - 1)
            each = xp.where(labels.rows[order][places] == of_rows, order[places], -1)
        else:
            known = ids.as_column(labels.column)
            kinds = [ids.kind_of(known, "seeds")]
            check_kinds([ids.kind_of(seeds[0], "exclude")], kinds, "exclude", InvalidOptionError)
            each = ids.positions([known], seeds, kinds, "exclude")
        rows = vertices.find_positions(excluded, "exclude")
    except InvalidEdgesError as error:
        raise InvalidOptionError(str(error)) from error
    if absent := int((rows < 0).sum()):
        unknown.counts["exclude"] = unknown.counts.get("exclude", 0) + absent
    kept = xp.flatnonzero((each >= 0) & (rows >= 0))
    return each[kept], rows[kept]


def out_neighbours(csr: Compressed, rows: Integers) -> tuple[Integers, Integers]:
    """Return the place among `rows` and the out-neighbour of each of the edges of vertices."""
    offsets, indices, _ = csr
    xp = namespace(offsets)
    rows = xp.asarray(rows)
    begins = to_host(offsets[rows]).astype(np.int64)
    counts = to_host(offsets[rows + 1]) - begins
    at = np.arange(counts.sum()) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
    return xp.asarray(np.repeat(np.arange(counts.size), counts)), indices[xp.asarray(at)]
