"""Distributed factorization: assign each vertex a key, in the order of the result, and a rank that owns it.

No rank holds the ids of all vertices.

**Integer ids** are their own keys. The sorted ids of an owner are its part of the result.

**Other ids** get keys in the order of first appearance. Each rank factorizes its rows and sends the distinct ids to the
rank selected by a hash. That rank receives all occurrences of an id, and determines its first place in the frame.
This place is the key of the id, and is returned to the ranks that sent it. The owner sorts its ids by place.

Ranks own ranges of keys between splitters, which are quantiles of samples of both endpoints.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prplugin.distributed.communicator import Communicator, call_on_all
from prplugin.errors import InvalidEdgesError, refusal
from prplugin.frames.columns import Column
from prplugin.frames.ids import HOST
from prplugin.frames.partitions import concat_columns, factorize_part, hash_ranks, take
from prplugin.frames.parts import CommonType, Parts
from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.edges import factorize_ids
from prplugin.options import Duplicates
from prplugin.types.array_module import Scalar
from prplugin.types.arrays import all_to_memory, is_host, memory_space_of, namespace, to_host
from prplugin.types.edges import Coo, Floats, Integers, bits_of

SAMPLES = 1 << 16  # number of rows of the frame, over all ranks, that are sampled for splitters
MORE_SAMPLES = 1 << 12  # number of additional vertices of each rank that are sampled for splitters


def owners_of(keys: Integers, splitters: Integers) -> Integers:
    """Return the rank that owns each key: rank r owns splitters[r - 1] <= key < splitters[r]."""
    if is_host(keys):
        return np.searchsorted(splitters, keys, side="right")
    owner: Integers = namespace(keys).zeros(keys.size, np.int32)
    for splitter in splitters:
        owner += keys >= splitter
    return owner


def pieces_of(owner: Integers, size: int) -> tuple[list[Integers], Integers]:
    """Return the rows of each owner, ascending, and the concatenation of these arrays."""
    if is_host(owner):
        pieces: list[Integers] = [np.flatnonzero(owner == rank) for rank in range(size)]
        return pieces, np.concatenate(pieces)
    from prplugin.gpu.sort import order_of  # imports CuPy, which holds the rows

    ordered, order = order_of(owner, bits_of(size), owned=True)
    xp = namespace(owner)
    cuts = xp.searchsorted(ordered, xp.arange(1, size, dtype=ordered.dtype)).tolist()
    return [order[begin:end] for begin, end in pairwise([0, *cuts, owner.size])], order


def runs_of(keys: Integers, splitters: Integers) -> list[slice]:
    """Return the slices of the keys of each owner in an ascending array of keys."""
    xp = namespace(keys)
    cuts = xp.searchsorted(keys, xp.asarray(splitters, keys.dtype)).tolist()
    return [slice(*cut) for cut in pairwise([0, *cuts, keys.size])]


def splitters_of(communicator: Communicator, parts: Parts, endpoints: list[Integers]) -> Integers:
    """Choose splitters of keys: quantiles of a sample of all ranks.

    The sample does not depend on which rank holds which partition. `endpoints` are the keys of sources, destinations
    and, optionally, additional vertices of this rank.
    """
    xp = namespace(endpoints[0])
    stride = max(1, parts.rows // SAMPLES)
    rows = np.concatenate(
        [
            begin + np.arange(-start % stride, length, stride)
            for begin, start, length in zip(np.cumsum([0, *parts.lengths]), parts.starts, parts.lengths, strict=False)
        ]
    )
    samples = [ids[xp.asarray(rows)] for ids in endpoints[:2]] + [
        ids[:: max(1, ids.size // MORE_SAMPLES)] for ids in endpoints[2:]
    ]
    sample = np.sort(np.concatenate(communicator.all_gather(to_host(xp.concatenate(samples)))))
    if not sample.size:
        return np.zeros(communicator.size - 1, sample.dtype)
    splitters: Integers = sample[sample.size * np.arange(1, communicator.size) // communicator.size]
    return splitters


def keys_by_appearance(
    communicator: Communicator, parts: Parts, endpoints: list[list[Column]], labels: list[list[str]],
    shared: list[CommonType],
) -> tuple[list[Integers], Integers, list[Column]]:  # fmt: skip
    """Factorize ids of any type over all ranks, in the order of first appearance in the frame.

    Return the keys of the ids of this rank per endpoint, the splitters, and the columns of the ids that this rank owns.
    """
    codes, arrays, places = factorize_part(parts.ids, endpoints, labels, shared)
    places = parts.places_of(places)

    # 1. Send distinct ids to the rank selected by their hash, which determines their first places: their keys.
    rows, order = pieces_of(hash_ranks(arrays, shared, communicator.size), communicator.size)
    pieces, received = zip(*communicator.all_to_all([(take(arrays, r), places[r]) for r in rows]), strict=True)
    kinds, names = [like.kind for like in shared], ["vertices"] * len(shared)
    numbers, _, found_ids = HOST.factorize(concat_columns(pieces), kinds, names)
    first = np.full(len(found_ids[0]), np.iinfo(np.int64).max)
    np.minimum.at(first, numbers, np.concatenate(received))

    # 2. Return the keys to the ranks that sent the ids.
    found = np.empty(order.size, np.int64)
    found[order] = np.concatenate(communicator.all_to_all(split(first[numbers], [each.size for each in received])))
    keys: list[Integers] = [namespace(code).asarray(found)[code] for code in codes]
    splitters = splitters_of(communicator, parts, keys)

    # 3. Send each id to its owner.
    by_place = np.argsort(first)
    runs = [by_place[run] for run in runs_of(first[by_place], splitters)]
    pieces, received = zip(*communicator.all_to_all([(take(found_ids, run), first[run]) for run in runs]), strict=True)
    return keys, splitters, take(concat_columns(pieces), np.argsort(np.concatenate(received)))


def split(array: NDArray[Scalar], sizes: list[int]) -> list[NDArray[Scalar]]:
    """Split an array into consecutive pieces of the given sizes."""
    ends = np.cumsum(sizes).tolist()
    return [array[end - size : end] for end, size in zip(ends, sizes, strict=True)]


# --- exchange of edges ------------------------------------------------------------------------------------------------


class EdgeRows(NamedTuple):
    """Edges by the keys of their endpoints, in the order of the frame."""

    source: Integers
    target: Integers
    weights: Floats | None
    times: Floats | None = None  # in half-lives since the origin, on the host: see `prplugin.streams.decay`
    rows: Integers | None = None  # row numbers in the frame, for messages


def edges_of_owned_targets(
    communicator: Communicator, parts: Parts, rows: EdgeRows, splitters: Integers, *, directed: bool,
    duplicates: Duplicates,
) -> EdgeRows:  # fmt: skip
    """Send each edge to the owner of its target; return the edges received, in the order of the frame.

    Apply `duplicates`. If not `directed`, add the reverse edges after all others.
    """
    source, target, weights, times, _ = rows
    partitions: list[Any] = parts.numbers
    lengths = parts.lengths
    xp = namespace(source)
    if duplicates != "sum":
        # All rows of a pair go to the same rank, which detects duplicates; (b, a) too if the graph is undirected.
        in_frame = xp.asarray(parts.row_numbers()) if duplicates == "error" else None
        owner = owners_of(target if directed else xp.maximum(source, target), splitters)
        rows = _shuffle(communicator, partitions, lengths, EdgeRows(source, target, weights, times, in_frame), owner)
        rows = call_on_all(communicator, partial(_drop_duplicates, rows, duplicates, directed=directed))
        if directed:
            return rows
        source, target, weights, times, _ = rows
        partitions, lengths = [communicator.rank], [source.size]
    if not directed:
        # The target of a reverse edge is the source of the row. Self-loops have no reverse edge.
        back = xp.flatnonzero(source != target)
        partitions = [(reverse, partition) for reverse in range(2) for partition in partitions]
        lengths = [*lengths, *_counts_below(back, lengths)]
        source, target = xp.concatenate([source, target[back]]), xp.concatenate([target, source[back]])
        weights = None if weights is None else xp.concatenate([weights, weights[back]])
        times = None if times is None else np.concatenate([times, times[to_host(back)]])
    rows = EdgeRows(source, target, weights, times)
    return _shuffle(communicator, partitions, lengths, rows, owners_of(target, splitters))


def _counts_below(rows: Integers, lengths: list[int]) -> list[int]:
    """Count ascending row numbers of this rank per partition; `lengths` are the lengths of the partitions."""
    ends = namespace(rows).asarray(np.cumsum(lengths, dtype=np.int64).astype(rows.dtype))
    counts: list[int] = np.diff(to_host(namespace(rows).searchsorted(rows, ends)), prepend=0).tolist()
    return counts


def _shuffle(
    communicator: Communicator, partitions: list[Any], lengths: list[int], rows: EdgeRows, owner: Integers
) -> EdgeRows:
    """Send rows to their owners; return the rows received, in the order of the partitions.

    The result does not depend on which rank held which partition.
    """
    size = communicator.size
    if size == 1:
        return rows
    pieces, order = pieces_of(owner, size)
    sizes = [piece.size for piece in pieces]
    of_ranks = communicator.all_gather((partitions, [_counts_below(piece, lengths) for piece in pieces]))
    received = []  # partition, rank that held it, begin and end of its rows in the data from that rank
    for rank, (sent_partitions, counts) in enumerate(of_ranks):
        ends = accumulate(counts[communicator.rank], initial=0)
        received += [(partition, rank, *cut) for partition, cut in zip(sent_partitions, pairwise(ends), strict=True)]
    received.sort()

    def shuffle(column: NDArray[np.generic] | None) -> Any:
        if column is None:
            return None
        there = to_host(order) if is_host(column) else order
        arrays = communicator.all_to_all_arrays(split(column[there], sizes))
        return namespace(column).concatenate([arrays[rank][begin:end] for _, rank, begin, end in received])

    return EdgeRows(*map(shuffle, rows))


def _drop_duplicates(rows: EdgeRows, duplicates: Duplicates, *, directed: bool) -> EdgeRows:
    (source, target), ids = factorize_ids([rows.source, rows.target])
    edges = Coo(source, target, rows.weights, ids.size, times=rows.times)
    edges = edges if rows.times is None else edges.on_host()
    try:
        kept = drop_duplicates(edges, duplicates, directed=directed)
    except InvalidEdgesError as error:
        if rows.rows is None or error.refused is None:
            raise
        found = to_host(rows.rows)[error.refused.rows].tolist()
        raise refusal(InvalidEdgesError, replace(error.refused, rows=found)) from None
    source, target, weights = all_to_memory(memory_space_of(ids), kept.source, kept.destination, kept.weights)
    return EdgeRows(ids[source], ids[target], weights, kept.times)
