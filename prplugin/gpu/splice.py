"""Edges that are found, added and removed in a CSC on the GPU: see splice.cu. Changes are NumPy arrays."""

from __future__ import annotations

import cupy
import numpy as np

from prplugin.gpu import runtime
from prplugin.types.edges import Compressed, Coo, Floats, Integers, offset_dtype

PIECE = 4096  # entries of a row that one warp searches for an edge
TILE = 8  # entries that one thread copies


def find_edges(present: Compressed, wanted: Coo, nth: Integers) -> Integers:
    """Return the entry of each wanted edge, number `nth` of those that match it, or -1; without weights, any match."""
    found = cupy.empty(wanted.m, np.int64)
    rows = np.stack([wanted.destination, wanted.destination + 1])
    begins, ends = present.offsets[cupy.asarray(rows)].get().astype(np.int64)
    first_pieces = np.append(0, np.cumsum(-(-(ends - begins) // PIECE)))
    counts = cupy.empty(int(first_pieces[-1]), np.int32)
    source, begins, ends, nth = cupy.asarray(np.stack([wanted.source, begins, ends, nth]))
    weights = None if present.weights is None or wanted.weights is None else cupy.asarray(wanted.weights)
    searched = wanted.m, *present[1:], cupy.asarray(first_pieces), source, begins, ends, weights
    _launch("count_matches", present, 32 * counts.size, *searched, counts)
    _launch("find_edges", present, 32 * wanted.m, *searched, counts, nth, found)
    return found.get()  # type: ignore[no-any-return]


def spliced(present: Compressed, removed: Integers, added: Coo, out_degrees: Floats | None) -> Compressed:
    """Return a CSC without some entries, and with added edges, ordered by target, after the last entry of their row.

    `out_degrees`, if given, is updated in place.
    """
    m = present.indices.size - removed.size + added.m
    dtype = np.result_type(present.offsets, offset_dtype(m))
    present = present._replace(offsets=present.offsets.astype(dtype, copy=False))
    target = cupy.asarray(added.destination, np.int64)
    removed = cupy.asarray(np.sort(removed), np.int64)
    before = present.offsets[target + 1].astype(np.int64)
    source = cupy.asarray(added.source, present.indices.dtype)
    offsets, sources = cupy.empty(present.offsets.size, dtype), cupy.empty(m, present.indices.dtype)
    weights = None if present.weights is None else cupy.empty(m)
    added_weights = None if weights is None or added.weights is None else cupy.asarray(added.weights)
    changes = removed.size, removed, added.m
    size, written = present.indices.size, (before, source, added_weights, sources, weights, out_degrees)
    _launch("splice_entries", present, -(-size // TILE), size, *present[1:], *changes, *written)
    _launch("splice_offsets", present, offsets.size, offsets.size - 1, present.offsets, *changes, target, offsets)
    return Compressed(offsets, sources, weights)


def _launch(name: str, present: Compressed, threads: int, *arguments: object) -> None:
    types = {"index_t": present.indices.dtype, "offset_t": present.offsets.dtype}
    blocks = runtime.blocks_for(threads, runtime.THREADS)
    runtime.run("gpu/splice.cu", name, blocks, runtime.THREADS, *arguments, **types, PIECE=PIECE, TILE=TILE)
