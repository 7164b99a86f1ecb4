"""Exchange of edges between ranks: each goes to the owner of its target; repeated pairs and reverse edges."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from prplugin.distributed.communicator import Communicator, call_on_all
from prplugin.distributed.factorize import Part, owners_of, pieces_of, split
from prplugin.errors import InvalidEdgesError, refusal
from prplugin.graph.adjacency import factorize_ids
from prplugin.graph.dedup import drop_duplicates
from prplugin.options import Duplicates
from prplugin.types.arrays import Array, memory_space_of, namespace, to_host, to_memory
from prplugin.types.edges import Edges, Floats, Integers


class Rows(NamedTuple):
    """Edges by the keys of their endpoints, in the order of the frame."""

    source: Integers
    target: Integers
    weights: Floats | None
    times: Floats | None = None  # in half-lives since the origin, on the host: see `prplugin.streams.decay`
    rows: Integers | None = None  # row numbers in the frame, for messages


def edges_of_owned_targets(
    communicator: Communicator,
    part: Part,
    rows: Rows,
    splitters: Integers,
    *,
    directed: bool,
    duplicates: Duplicates,
) -> Rows:
    """Send each edge to the owner of its target; return the edges received, in the order of the frame.

    Apply `duplicates`. If not `directed`, add the reverse edges after all others.
    """
    source, target, weights, times, _ = rows
    partitions: list[Any] = part.partitions
    lengths = part.lengths
    xp = namespace(source)
    if duplicates != "sum":
        # All rows of a pair go to the same rank, which detects duplicates; (b, a) too if the graph is undirected.
        in_frame = xp.asarray(part.places_of(2 * np.arange(source.size)) // 2) if duplicates == "error" else None
        owner = owners_of(target if directed else xp.maximum(source, target), splitters)
        rows = _shuffle(communicator, partitions, lengths, Rows(source, target, weights, times, in_frame), owner)
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
    rows = Rows(source, target, weights, times)
    return _shuffle(communicator, partitions, lengths, rows, owners_of(target, splitters))


def _counts_below(rows: Integers, lengths: list[int]) -> list[int]:
    """Count ascending row numbers of this rank per partition; `lengths` are the lengths of the partitions."""
    ends = namespace(rows).asarray(np.cumsum(lengths, dtype=np.int64).astype(rows.dtype))
    counts: list[int] = np.diff(to_host(namespace(rows).searchsorted(rows, ends)), prepend=0).tolist()
    return counts


def _shuffle(
    communicator: Communicator, partitions: list[Any], lengths: list[int], rows: Rows, owner: Integers
) -> Rows:
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

    def shuffle(column: Array | None) -> Any:
        if column is None:
            return None
        there = to_host(order) if namespace(column) is np else order
        arrays = communicator.all_to_all_arrays(split(column[there], sizes))
        return namespace(column).concatenate([arrays[rank][begin:end] for _, rank, begin, end in received])

    return Rows(*map(shuffle, rows))


def _drop_duplicates(rows: Rows, duplicates: Duplicates, *, directed: bool) -> Rows:
    """Keep the first or the last row of each pair on this rank, or raise for repeated pairs."""
    (source, target), ids = factorize_ids([rows.source, rows.target])
    edges = Edges(source, target, rows.weights, ids.size, times=rows.times)
    edges = edges if rows.times is None else edges.on_host()
    try:
        kept = drop_duplicates(edges, duplicates, directed=directed)
    except InvalidEdgesError as error:
        if rows.rows is None or error.refused is None:
            raise
        found = to_host(rows.rows)[error.refused.rows].tolist()
        raise refusal(InvalidEdgesError, replace(error.refused, rows=found)) from None
    source, target, weights = (
        to_memory(of, memory_space_of(ids)) for of in (kept.source, kept.destination, kept.weights)
    )
    return Rows(ids[source], ids[target], weights, kept.times)
