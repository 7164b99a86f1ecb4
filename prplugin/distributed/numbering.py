"""Vertices as numbers that sort as the result does, and which rank owns which: no rank ever holds the ids of all.

**Integers** are such numbers as they are. Ranks own ranges of them, between splitters taken from samples of both ends,
so that each owner's ids, sorted, are its part of the result.

**Others** are numbered by where they first appear. Each rank numbers its own rows, and sends what is distinct in them
to the rank that a hash gives, which so sees every part of an id, and finds the least of its places. Splitters of
places, weighted by how many edges an id has, then say which rank owns it: that sorts its ids by place and counts on
from where the rank before it ends. Numbers go back the same way.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from prplugin.distributed.communicator import Communicator, offsets_of_ranks
from prplugin.frames.parts import Shared
from prplugin.graph.adjacency import group_sizes
from prplugin.types.arrays import moved, namespace
from prplugin.types.edges import Integers

__all__ = ["Directory", "Part", "keys_by_appearance", "keys_of_integers", "owners_of", "pieces_of", "runs_of"]

SAMPLES = 1 << 16
"""Rows whose ends are looked at for splitters, over all ranks."""

QUANTILES = 1 << 12
"""That each rank brings to find splitters of places."""


@dataclass(frozen=True)
class Part:
    """Which rows of the frame a rank holds.

    `partitions`: Ascending.
    `starts`: The row of the frame at which each of them begins.
    `rows`: Of the whole frame.
    `more`: At which of more vertices those of this rank begin.
    """

    partitions: list[int]
    starts: list[int]
    lengths: list[int]
    rows: int
    more: int = 0

    def rows_of(self, local: Integers) -> Integers:
        """Give the rows of the frame of some rows of this rank."""
        begins = np.cumsum([0, *self.lengths])[:-1]
        shifts = np.asarray(self.starts, np.int64) - begins
        nth = np.searchsorted(begins, local, side="right") - 1
        # An empty partition begins where the next does, which is found: the last of equal ones.
        rows: Integers = np.asarray(local, np.int64) + shifts[nth]
        return rows

    def places_of(self, local: Integers) -> Integers:
        """Give the places in the frame of places in this rank's rows: see `by_first_appearance`."""
        mine = sum(self.lengths)
        places = np.asarray(local, np.int64)
        found = np.empty_like(places)
        edges = places < 2 * mine
        found[edges] = 2 * self.rows_of(places[edges] // 2) + places[edges] % 2
        found[~edges] = places[~edges] - 2 * mine + 2 * self.rows + self.more
        return found


class Directory:
    """Finds vertices by their ids, after they have been numbered: kept for what is given by vertex later.

    `parts` (module): What handles ids: `prplugin.frames._pandas_parts` or `_cudf_parts`.
    `shared` (list of Shared): What each column of a vertex is.
    `arrays`, `keys` (list of arrays, array): Ids that this rank looks after, and their numbers; none where ids are
    numbers.
    `owned`: The ids that this rank owns, in the order of the result; none where ids are numbers.
    """

    def __init__(self, parts: Any, shared: list[Shared], arrays: list[Any], keys: Any, owned: list[Any]) -> None:
        self._parts, self.shared = parts.__name__, shared  # by name: a module cannot be sent or stored
        self._arrays, self._keys, self._owned = arrays, keys, owned

    @property
    def parts(self) -> Any:
        """What handles ids."""
        return importlib.import_module(self._parts)

    @property
    def by_number(self) -> bool:
        """Whether ids are the numbers."""
        return self._keys is None

    def columns(self, keys: Integers) -> list[Any]:
        """Give the columns of the vertices that this rank owns, whose numbers these are."""
        return list(self.parts.named([keys] if self.by_number else self._owned, self.shared))

    def spelt(self, keys: Integers, rows: Integers) -> list[str]:
        """Spell out a few of the vertices that this rank owns."""
        return list(self.parts.spelt([keys] if self.by_number else self._owned, rows))

    def keys_of(self, communicator: Communicator, arrays: list[Any]) -> Integers:
        """Give the numbers of ids, -1 where the graph does not have one; every rank asks for its own."""
        assert not self.by_number
        owner = self.parts.owners(arrays, self.shared, communicator.size)
        pieces, order = pieces_of(owner, communicator.size)
        asked = communicator.exchange([self.parts.taken(arrays, rows) for rows in pieces])
        answers = []
        for ids in asked:
            rows = self.parts.located(self._arrays, ids, self.shared)
            known = np.append(self._keys, -1)  # at place -1
            answers.append(known[rows])
        keys = np.empty(order.size, np.int64)
        keys[order] = np.concatenate(communicator.exchange(answers))
        return keys


def owners_of(keys: Integers, splitters: Integers) -> Integers:
    """Say which rank owns each number: rank r from splitters[r - 1] on, and below splitters[r]."""
    xp = namespace(keys)
    if xp is np:
        found: Integers = np.searchsorted(splitters, keys, side="right")
        return found
    owner: Integers = xp.zeros(keys.size, np.int32)
    for splitter in splitters:
        owner += keys >= splitter
    return owner


def pieces_of(owner: Integers, size: int) -> tuple[list[Integers], Integers]:
    """Give the rows of each owner, in their order, and all of these one after the other."""
    pieces = [np.flatnonzero(owner == rank) for rank in range(size)]
    return pieces, np.concatenate(pieces)


def runs_of(keys: Integers, splitters: Integers) -> list[tuple[int, int]]:
    """Cut ascending numbers by owner: where those of each begin and end."""
    xp = namespace(keys)
    cuts = xp.searchsorted(keys, xp.asarray(splitters, keys.dtype)).tolist()
    return list(pairwise([0, *cuts, keys.size]))


def keys_of_integers(communicator: Communicator, part: Part, ends: list[Integers]) -> Integers:
    """Choose splitters of integer ids: what they are does not depend on which rank holds which partition.

    `ends`: Sources, destinations and more vertices of this rank.
    """
    xp = namespace(ends[0])
    stride = max(1, part.rows // SAMPLES)
    rows = np.concatenate(
        [
            begin + np.arange(-start % stride, length, stride)
            for begin, start, length in zip(np.cumsum([0, *part.lengths]), part.starts, part.lengths, strict=False)
        ]
        or [np.empty(0, np.int64)]
    )
    samples = [end[xp.asarray(rows)] for end in ends[:2]] + [end[:: max(1, end.size // QUANTILES)] for end in ends[2:]]
    mine = xp.concatenate(samples)
    everyone = np.sort(np.concatenate(communicator.gather(mine if xp is np else mine.get())))
    if not everyone.size:
        return np.zeros(communicator.size - 1, everyone.dtype)
    splitters: Integers = everyone[everyone.size * np.arange(1, communicator.size) // communicator.size]
    return splitters


def keys_by_appearance(
    communicator: Communicator,
    parts: Any,
    part: Part,
    ends: list[list[Any]],
    labels: list[list[str]],
    shared: list[Shared],
) -> tuple[list[Integers], Integers, Directory]:
    """Number vertices of any kind in the order in which they first appear in the frame.

    Returns `keys` (list of arrays): Of each end of this rank's rows.
    Returns `splitters` (array).
    Returns `directory` (Directory).
    """
    size = communicator.size
    codes, arrays, places = parts.by_first_appearance(ends, labels, shared)
    places = part.places_of(places)
    weights = np.ones(places.size)
    for code in codes:
        weights += moved(group_sizes(code, places.size), "host")

    # To the rank that looks after the id.
    rows, order = pieces_of(parts.owners(arrays, shared, size), size)
    brought = communicator.exchange([(parts.taken(arrays, r), places[r], weights[r]) for r in rows])
    counts = [found.size for _, found, _ in brought]
    numbers, ids = parts.distinct(parts.together([piece for piece, _, _ in brought], shared), shared)
    first = np.full(len(ids[0]), np.iinfo(np.int64).max)
    np.minimum.at(first, numbers, np.concatenate([found for _, found, _ in brought]))
    degrees = np.bincount(numbers, np.concatenate([found for _, _, found in brought]), first.size)

    # To the rank that owns it, and its number back.
    by_place = np.argsort(first)
    places_between = _weighted_splitters(communicator, first[by_place], degrees[by_place])
    runs = runs_of(first[by_place], places_between)
    owned = communicator.exchange(
        [(parts.taken(ids, by_place[begin:end]), first[by_place[begin:end]]) for begin, end in runs]
    )
    places = np.concatenate([found for _, found in owned])
    in_order = np.argsort(places)
    offsets = offsets_of_ranks(communicator, places.size)
    number = np.empty(places.size, np.int64)
    number[in_order] = np.arange(offsets[communicator.rank], offsets[communicator.rank + 1])
    mine = parts.together([piece for piece, _ in owned], shared)
    keys = np.empty(first.size, np.int64)
    keys[by_place] = np.concatenate(communicator.exchange(_cut(number, [found.size for _, found in owned])))

    # To those who asked.
    answers = communicator.exchange(_cut(keys[numbers], counts))
    position = np.empty(order.size, np.int64)
    position[order] = np.concatenate(answers)
    directory = Directory(parts, shared, ids, keys, parts.taken(mine, in_order))
    return [namespace(code).asarray(position)[code] for code in codes], np.array(offsets[1:-1], np.int64), directory


def _cut(array: Integers, sizes: list[int]) -> list[Integers]:
    return np.split(array, np.cumsum(sizes)[:-1])


def _weighted_splitters(communicator: Communicator, places: Integers, weights: Any) -> Integers:
    """Split ascending places of all ranks into as many ranges of about the same weight."""
    heavy = np.cumsum(weights)
    whole = float(heavy[-1]) if heavy.size else 0.0
    at = np.searchsorted(heavy, whole * (np.arange(QUANTILES) + 0.5) / QUANTILES)
    mine = places[np.minimum(at, places.size - 1)] if places.size else places
    gathered = communicator.gather((mine, whole / QUANTILES))
    everyone = np.concatenate([found for found, _ in gathered])
    each = np.concatenate([np.full(found.size, weight) for found, weight in gathered])
    if not everyone.size:
        return np.zeros(communicator.size - 1, np.int64)
    order = np.argsort(everyone, kind="stable")
    heavy = np.cumsum(each[order])
    cuts = np.searchsorted(heavy, heavy[-1] * np.arange(1, communicator.size) / communicator.size)
    splitters: Integers = everyone[order][np.minimum(cuts, everyone.size - 1)]
    return splitters
