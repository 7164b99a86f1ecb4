"""Distributed factorization: assign each vertex a key, in the order of the result, and a rank that owns it.

No rank holds the ids of all vertices.

**Integer ids** are their own keys. Ranks own ranges of ids between splitters, which are quantiles of samples of both
endpoints. The sorted ids of an owner are its part of the result.

**Other ids** get keys in the order of first appearance. Each rank factorizes its rows and sends the distinct ids to the
rank selected by a hash. That rank receives all occurrences of an id, and determines its first place in the frame.
This place is the key of the id, and is returned to the ranks that sent it. Splitters of places, weighted by degree,
determine the owner of an id. The owner sorts its ids by place.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from prplugin.distributed.communicator import Communicator
from prplugin.frames.ids import Ids
from prplugin.frames.partitions import CommonType, concat_columns, distinct, factorize_part, hash_ranks, take
from prplugin.graph.adjacency import group_sizes
from prplugin.types.arrays import Array, namespace, to_host
from prplugin.types.edges import Integers

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
    additional_offset: int  # offset of this rank's part of the additional vertices

    def places_of(self, local: Integers) -> Integers:
        """Convert places in the rows of this rank to places in the frame: see `factorize_part`."""
        begins = 2 * np.cumsum([0, *self.lengths])  # of the partitions, and of the additional vertices
        shifts = np.array([*(2 * start for start in self.starts), 2 * self.rows + self.additional_offset]) - begins
        # With side="right" the last of equal begins is found: an empty partition is never selected.
        places: Integers = local + shifts[np.searchsorted(begins, local, side="right") - 1]
        return places


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


def runs_of(keys: Integers, splitters: Integers) -> list[slice]:
    """Return the slices of the keys of each owner in an ascending array of keys."""
    xp = namespace(keys)
    cuts = xp.searchsorted(keys, xp.asarray(splitters, keys.dtype)).tolist()
    return [slice(*cut) for cut in pairwise([0, *cuts, keys.size])]


def keys_of_integers(communicator: Communicator, part: Part, endpoints: list[Integers]) -> Integers:
    """Choose splitters of integer ids: quantiles of a sample of all ranks.

    The sample does not depend on which rank holds which partition. `endpoints` are sources, destinations and,
    optionally, additional vertices of this rank.
    """
    xp = namespace(endpoints[0])
    stride = max(1, part.rows // SAMPLES)
    rows = np.concatenate(
        [
            begin + np.arange(-start % stride, length, stride)
            for begin, start, length in zip(np.cumsum([0, *part.lengths]), part.starts, part.lengths, strict=False)
        ]
    )
    samples = [ids[xp.asarray(rows)] for ids in endpoints[:2]] + [
        ids[:: max(1, ids.size // QUANTILES)] for ids in endpoints[2:]
    ]
    sample = np.sort(np.concatenate(communicator.all_gather(to_host(xp.concatenate(samples)))))
    if not sample.size:
        return np.zeros(communicator.size - 1, sample.dtype)
    splitters: Integers = sample[sample.size * np.arange(1, communicator.size) // communicator.size]
    return splitters


def keys_by_appearance(
    communicator: Communicator,
    ids: Ids,
    part: Part,
    endpoints: list[list[Any]],
    labels: list[list[str]],
    shared: list[CommonType],
) -> tuple[list[Integers], Integers, list[Any]]:
    """Factorize ids of any type over all ranks, in the order of first appearance in the frame.

    Return the keys of the ids of this rank per endpoint, the splitters, and the columns of the ids that this rank owns.
    """
    size = communicator.size
    codes, arrays, places = factorize_part(ids, endpoints, labels, shared)
    places = part.places_of(places)
    occurrences = np.zeros(places.size)
    for code in codes:
        occurrences += to_host(group_sizes(code, places.size))

    # 1. Send distinct ids to the rank selected by their hash, which determines their first places: their keys.
    rows, order = pieces_of(hash_ranks(arrays, shared, size), size)
    received = communicator.all_to_all([(take(arrays, r), places[r], occurrences[r]) for r in rows])
    pieces, places_received, counts = zip(*received, strict=True)
    numbers, found_ids = distinct(concat_columns(list(pieces), shared), shared)
    first = np.full(len(found_ids[0]), np.iinfo(np.int64).max)
    np.minimum.at(first, numbers, np.concatenate(places_received))
    # Load of a vertex: 1 + degree. The 1 is added here, once per vertex, since several ranks may have sent the id.
    loads = 1.0 + np.bincount(numbers, np.concatenate(counts), first.size)

    # 2. Send each id to its owner.
    by_place = np.argsort(first)
    keys = first[by_place]
    splitters = _weighted_splitters(communicator, keys, loads[by_place])
    runs = runs_of(keys, splitters)
    received = communicator.all_to_all([(take(found_ids, by_place[run]), keys[run]) for run in runs])
    pieces, keys_owned = zip(*received, strict=True)
    owned = take(concat_columns(list(pieces), shared), np.argsort(np.concatenate(keys_owned)))

    # 3. Return the keys to the ranks that sent the ids.
    found = np.empty(order.size, np.int64)
    found[order] = np.concatenate(communicator.all_to_all(split(first[numbers], [count.size for count in counts])))
    return [namespace(code).asarray(found)[code] for code in codes], splitters, owned


def split(array: Array, sizes: list[int]) -> list[Any]:
    """Split an array into consecutive pieces of the given sizes."""
    ends = np.cumsum(sizes).tolist()
    return [array[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _weighted_splitters(communicator: Communicator, places: Integers, weights: Array) -> Integers:
    """Choose splitters that divide the places of all ranks into ranges of approximately equal weight.

    `places` are ascending on each rank.
    """
    cumulative = np.cumsum(weights)
    total = float(cumulative[-1]) if cumulative.size else 0.0
    positions = np.searchsorted(cumulative, total * (np.arange(QUANTILES) + 0.5) / QUANTILES)
    quantiles = places[np.minimum(positions, places.size - 1)] if places.size else places
    of_ranks, loads = zip(*communicator.all_gather((quantiles, total / QUANTILES)), strict=True)
    samples = np.concatenate(of_ranks)
    if not samples.size:
        return np.zeros(communicator.size - 1, np.int64)
    sample_weights = np.repeat(loads, [of_rank.size for of_rank in of_ranks])
    order = np.argsort(samples, kind="stable")
    cumulative = np.cumsum(sample_weights[order])
    cuts = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, communicator.size) / communicator.size)
    splitters: Integers = samples[order][np.minimum(cuts, samples.size - 1)]
    return splitters
