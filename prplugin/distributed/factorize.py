"""Distributed factorization: assigns each vertex a key, in the order of the result, and a rank that owns it.

No rank holds the ids of all vertices.

**Integer ids** are their own keys. Ranks own ranges of ids between splitters, which are quantiles of samples of both
endpoints. The sorted ids of an owner are its part of the result.

**Other ids** get keys in the order of first appearance. Each rank factorizes its rows and sends the distinct ids to the
rank selected by a hash. That rank receives all occurrences of an id, and determines its first place in the frame.
Splitters of places, weighted by degree, determine the owner of an id. The owner sorts its ids by place and numbers them
from the number of vertices of lower ranks on. Keys are returned along the same path.
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
from prplugin.types.arrays import namespace, to_host
from prplugin.types.edges import Integers

__all__ = [
    "Directory",
    "Part",
    "keys_by_appearance",
    "keys_of_integers",
    "owners_of",
    "pieces_of",
    "runs_of",
    "split",
]

SAMPLES = 1 << 16
"""Number of rows of the frame, over all ranks, that are sampled for splitters of ids."""

QUANTILES = 1 << 12
"""Number of quantiles that each rank contributes to the splitters of places."""


@dataclass(frozen=True)
class Part:
    """The partitions of the frame that a rank holds."""

    partitions: list[int]  # numbers of the partitions, ascending
    starts: list[int]  # first row of each partition in the frame
    lengths: list[int]  # number of rows of each partition
    rows: int  # number of rows of the whole frame
    more: int = 0  # offset of this rank's part of the additional vertices

    def rows_of(self, local: Integers) -> Integers:
        """Convert row numbers of this rank to row numbers of the frame."""
        begins = np.cumsum([0, *self.lengths])[:-1]
        shifts = np.asarray(self.starts, np.int64) - begins
        nth = np.searchsorted(begins, local, side="right") - 1
        # With side="right" the last of equal begins is found: an empty partition is never selected.
        rows: Integers = np.asarray(local, np.int64) + shifts[nth]
        return rows

    def places_of(self, local: Integers) -> Integers:
        """Convert places in the rows of this rank to places in the frame: see `by_first_appearance`."""
        mine = sum(self.lengths)
        places = np.asarray(local, np.int64)
        found = np.empty_like(places)
        edges = places < 2 * mine
        found[edges] = 2 * self.rows_of(places[edges] // 2) + places[edges] % 2
        found[~edges] = places[~edges] - 2 * mine + 2 * self.rows + self.more
        return found


class Directory:
    """Distributed map from ids to keys, for arguments given by vertex after the graph has been built.

    Parameters
    ----------
    parts : module
        Operations on ids: `prplugin.frames._pandas_parts` or `_cudf_parts`.
    shared : list of Shared
        Common type of each column of the vertices.
    arrays : list of arrays
        Ids whose hash selects this rank, column by column; [] if ids are keys.
    keys : array or None
        Keys of these ids; None if ids are keys.
    owned : list of arrays
        Ids that this rank owns, in the order of the result; [] if ids are keys.
    """

    def __init__(self, parts: Any, shared: list[Shared], arrays: list[Any], keys: Any, owned: list[Any]) -> None:
        self._parts, self.shared = parts.__name__, shared  # the name, since modules cannot be pickled
        self._arrays, self._keys, self._owned = arrays, keys, owned

    @property
    def parts(self) -> Any:
        """Module of the operations on ids."""
        return importlib.import_module(self._parts)

    @property
    def ids_are_keys(self) -> bool:
        """Whether ids are their own keys."""
        return self._keys is None

    def columns(self, keys: Integers) -> list[Any]:
        """Return the id columns of the vertices that this rank owns; `keys` are their keys."""
        return list(self.parts.named([keys] if self.ids_are_keys else self._owned, self.shared))

    def spelt(self, keys: Integers, rows: Integers) -> list[str]:
        """Return the ids at `rows` of the vertices that this rank owns as text, for messages."""
        return list(self.parts.spelt([keys] if self.ids_are_keys else self._owned, rows))

    def keys_of(self, communicator: Communicator, arrays: list[Any]) -> Integers:
        """Return the keys of ids, -1 for ids not in the graph. Collective: each rank passes ids of its own."""
        assert not self.ids_are_keys
        owner = self.parts.owners(arrays, self.shared, communicator.size)
        pieces, order = pieces_of(owner, communicator.size)
        asked = communicator.exchange([self.parts.taken(arrays, rows) for rows in pieces])
        known = np.append(self._keys, -1)  # entry -1, for ids that are not found
        answers = [known[self.parts.located(self._arrays, ids, self.shared)] for ids in asked]
        keys = np.empty(order.size, np.int64)
        keys[order] = np.concatenate(communicator.exchange(answers))
        return keys


def owners_of(keys: Integers, splitters: Integers) -> Integers:
    """Return the rank that owns each key: rank r owns splitters[r - 1] <= key < splitters[r]."""
    xp = namespace(keys)
    if xp is np:
        found: Integers = np.searchsorted(splitters, keys, side="right")
        return found
    owner: Integers = xp.zeros(keys.size, np.int32)
    for splitter in splitters:
        owner += keys >= splitter
    return owner


def pieces_of(owner: Integers, size: int) -> tuple[list[Integers], Integers]:
    """Return the rows of each owner, ascending, and the concatenation of these arrays."""
    if namespace(owner) is np:
        pieces = [np.flatnonzero(owner == rank) for rank in range(size)]
        return pieces, np.concatenate(pieces)
    from prplugin.gpu.sort import bits_for, order_of  # imports CuPy, which holds the rows

    ordered, order = order_of(owner, bits_for(size), owned=True)
    xp = namespace(owner)
    cuts = xp.searchsorted(ordered, xp.arange(1, size, dtype=ordered.dtype)).tolist()
    return [order[begin:end] for begin, end in pairwise([0, *cuts, owner.size])], order


def runs_of(keys: Integers, splitters: Integers) -> list[tuple[int, int]]:
    """Return begin and end of the keys of each owner in an ascending array of keys."""
    xp = namespace(keys)
    cuts = xp.searchsorted(keys, xp.asarray(splitters, keys.dtype)).tolist()
    return list(pairwise([0, *cuts, keys.size]))


def keys_of_integers(communicator: Communicator, part: Part, endpoints: list[Integers]) -> Integers:
    """Choose splitters of integer ids: quantiles of a sample of all ranks.

    The sample does not depend on which rank holds which partition.

    Parameters
    ----------
    endpoints : list of arrays
        Sources, destinations and, optionally, additional vertices of this rank.
    """
    xp = namespace(endpoints[0])
    stride = max(1, part.rows // SAMPLES)
    rows = np.concatenate(
        [
            begin + np.arange(-start % stride, length, stride)
            for begin, start, length in zip(np.cumsum([0, *part.lengths]), part.starts, part.lengths, strict=False)
        ]
        or [np.empty(0, np.int64)]
    )
    samples = [end[xp.asarray(rows)] for end in endpoints[:2]] + [
        end[:: max(1, end.size // QUANTILES)] for end in endpoints[2:]
    ]
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
    endpoints: list[list[Any]],
    labels: list[list[str]],
    shared: list[Shared],
) -> tuple[list[Integers], Integers, Directory]:
    """Factorize ids of any type over all ranks, in the order of first appearance in the frame.

    Returns
    -------
    keys : list of arrays
        Keys of the ids of this rank, per endpoint.
    splitters : array of int64
        First key of each rank but the first.
    directory : Directory
    """
    size = communicator.size
    codes, arrays, places = parts.by_first_appearance(endpoints, labels, shared)
    places = part.places_of(places)
    occurrences = np.zeros(places.size)
    for code in codes:
        occurrences += to_host(group_sizes(code, places.size))

    # 1. Send distinct ids to the rank selected by their hash, which determines their first places.
    rows, order = pieces_of(parts.owners(arrays, shared, size), size)
    brought = communicator.exchange([(parts.taken(arrays, r), places[r], occurrences[r]) for r in rows])
    counts = [found.size for _, found, _ in brought]
    numbers, ids = parts.distinct(parts.together([piece for piece, _, _ in brought], shared), shared)
    first = np.full(len(ids[0]), np.iinfo(np.int64).max)
    np.minimum.at(first, numbers, np.concatenate([found for _, found, _ in brought]))
    # Load of a vertex: 1 + degree. The 1 is added here, once per vertex, since several ranks may have sent the id.
    loads = 1.0 + np.bincount(numbers, np.concatenate([found for _, _, found in brought]), first.size)

    # 2. Send each id to its owner, and receive its key.
    by_place = np.argsort(first)
    places_between = _weighted_splitters(communicator, first[by_place], loads[by_place])
    runs = runs_of(first[by_place], places_between)
    owned = communicator.exchange(
        [(parts.taken(ids, by_place[begin:end]), first[by_place[begin:end]]) for begin, end in runs]
    )
    places = np.concatenate([found for _, found in owned])
    in_order = np.argsort(places)
    offsets = offsets_of_ranks(communicator, places.size)
    codes_of_owned = np.empty(places.size, np.int64)
    codes_of_owned[in_order] = np.arange(offsets[communicator.rank], offsets[communicator.rank + 1])
    mine = parts.together([piece for piece, _ in owned], shared)
    keys = np.empty(first.size, np.int64)
    keys[by_place] = np.concatenate(communicator.exchange(split(codes_of_owned, [found.size for _, found in owned])))

    # 3. Return the keys to the ranks that sent the ids.
    answers = communicator.exchange(split(keys[numbers], counts))
    position = np.empty(order.size, np.int64)
    position[order] = np.concatenate(answers)
    directory = Directory(parts, shared, ids, keys, parts.taken(mine, in_order))
    return [namespace(code).asarray(position)[code] for code in codes], np.array(offsets[1:-1], np.int64), directory


def split(array: Any, sizes: list[int]) -> list[Any]:
    """Split an array into consecutive pieces of the given sizes."""
    ends = np.cumsum(sizes).tolist()
    return [array[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _weighted_splitters(communicator: Communicator, places: Integers, weights: Any) -> Integers:
    """Choose splitters that divide the places of all ranks into ranges of about equal weight.

    `places` are ascending on each rank.
    """
    heavy = np.cumsum(weights)
    total = float(heavy[-1]) if heavy.size else 0.0
    at = np.searchsorted(heavy, total * (np.arange(QUANTILES) + 0.5) / QUANTILES)
    mine = places[np.minimum(at, places.size - 1)] if places.size else places
    gathered = communicator.gather((mine, total / QUANTILES))
    everyone = np.concatenate([found for found, _ in gathered])
    each = np.concatenate([np.full(found.size, weight) for found, weight in gathered])
    if not everyone.size:
        return np.zeros(communicator.size - 1, np.int64)
    order = np.argsort(everyone, kind="stable")
    heavy = np.cumsum(each[order])
    cuts = np.searchsorted(heavy, heavy[-1] * np.arange(1, communicator.size) / communicator.size)
    splitters: Integers = everyone[order][np.minimum(cuts, everyone.size - 1)]
    return splitters
