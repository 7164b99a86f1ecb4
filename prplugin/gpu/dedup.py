"""Deduplication of edges by their pair of vertices, on the GPU: see pairs.cu."""

from __future__ import annotations

import cupy
import numpy as np

from prplugin.gpu import runtime
from prplugin.gpu.runtime import THREADS, blocks_for_each
from prplugin.gpu.sort import order_of, state_type
from prplugin.types.edges import Coo, Integers, bits_of, index_dtype


def mark_repeated(edges: Coo, *, last: bool, directed: bool) -> tuple[Integers, int]:
    """Mark all rows of each pair but the first, or the last, with a byte of 1 per row; also return their number.

    Peak memory is 17 bytes per edge.
    """
    m, bits = edges.m, bits_of(edges.n)
    if not m:
        return cupy.zeros(0, np.uint8), 0
    endpoints, way = (edges.source, edges.destination), (np.int32(directed), np.int32(bits))
    keys: Integers = cupy.empty(m, np.uint32)
    _launch("pair_keys", edges, m, *endpoints, *way, keys)
    keys, rows = order_of(keys, min(2 * bits, 32), owned=True)
    marks, count = cupy.zeros(m, np.uint8), cupy.zeros(1, np.uint64)
    _launch("mark_repeated", edges, m, keys, rows, *endpoints, *way, np.int32(last), marks, count)
    return marks, int(count[0])


def drop_marked(edges: Coo, marks: Integers, count: int) -> Coo:
    """Copy the rows that are not marked, in their order; `count` is the number of marked rows."""
    blocks, kept = blocks_for_each(edges.m), edges.m - count
    states = cupy.zeros(blocks + 1, state_type(edges.m))
    source, destination = (cupy.empty(kept, edges.source.dtype) for _ in range(2))
    weights = None if edges.weights is None else cupy.empty(kept)
    _launch(
        "keep_rows", edges, edges.m, marks, states[blocks:], states, edges.source, edges.destination,
        0 if edges.weights is None else edges.weights, source, destination, 0 if weights is None else weights,
    )  # fmt: skip
    return Coo(source, destination, weights, edges.n, edges.extent)


def _launch(name: str, edges: Coo, *arguments: object) -> None:
    runtime.run(
        "gpu/pairs.cu", name, blocks_for_each(edges.m), THREADS, *arguments, index_t=edges.source.dtype,
        order_t=index_dtype(edges.m), state_t=state_type(edges.m), WEIGHTED=int(edges.weights is not None),
    )  # fmt: skip
