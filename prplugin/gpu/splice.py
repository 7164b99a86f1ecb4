"""Edges that are found, added and removed in a CSC on the GPU: see splice.cu. Changes are NumPy arrays."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from prplugin.gpu import runtime
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Edges, Integers, offset_dtype


def find_edges(present: Compressed, wanted: Edges, nth: Integers) -> Integers:
    """Return the entry of each wanted edge, number `nth` of those that match it, or -1; without weights, any match."""
    found = cupy.empty(wanted.m, np.int64)
    source, target, nth = (cupy.asarray(array, np.int64) for array in (wanted.source, wanted.destination, nth))
    weights = None if present.weights is None or wanted.weights is None else cupy.asarray(wanted.weights)
    _launch("find_edges", present, 32 * wanted.m, wanted.m, *present, source, target, weights, nth, found)
    return found.get()  # type: ignore[no-any-return]


def spliced(present: Compressed, removed: Integers, added: Edges) -> Compressed:
    """Return a CSC without some entries, and with added edges after the last entry of their row."""
    m = present.indices.size - removed.size + added.m
    dtype = np.result_type(present.offsets, offset_dtype(m))
    present = present._replace(offsets=present.offsets.astype(dtype, copy=False))
    added = added.take(np.argsort(added.destination, kind="stable"))
    target = cupy.asarray(added.destination, np.int64)
    removed = cupy.asarray(np.sort(removed), np.int64)
    before = present.offsets[target + 1].astype(np.int64)
    source = cupy.asarray(added.source, present.indices.dtype)
    offsets, sources = cupy.empty(present.offsets.size, dtype), cupy.empty(m, present.indices.dtype)
    weights = None if present.weights is None else cupy.empty(m)
    added_weights = None if weights is None or added.weights is None else cupy.asarray(added.weights)
    changes = removed.size, removed, added.m
    size, additions = present.indices.size, (before, source, added_weights)
    _launch("splice_entries", present, size + added.m, size, *present[1:], *changes, *additions, sources, weights)
    _launch("splice_offsets", present, offsets.size, offsets.size - 1, present.offsets, *changes, target, offsets)
    return Compressed(offsets, sources, weights)


def _launch(name: str, present: Compressed, threads: int, *arguments: Any) -> None:
    kernel = runtime.kernel("gpu/splice.cu", name, index_t=present.indices.dtype, offset_t=present.offsets.dtype)
    runtime.launch(kernel, runtime.blocks_for(threads, runtime.THREADS), runtime.THREADS, *arguments)
