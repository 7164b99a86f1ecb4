"""Edges from columns of integer ids and weights, on the GPU: see grouped.cu."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import cupy
import numpy as np

from prplugin.gpu import blocks, group, runtime
from prplugin.gpu.factorize import ONE_BLOCK, as_kernel_ids, counted_marks, extremes, factorize_ids
from prplugin.gpu.runtime import THREADS, blocks_for_each
from prplugin.gpu.sort import distances, sorted_by
from prplugin.types.edges import ANY, Coo, Csc, Floats, Grouped, Integers, bits_of, offset_dtype

# Number of edges, and range of ids, from which unweighted edges are arranged in blocks, which is faster than sorting
# them. Among fewer vertices, whose contributions are cached, methods on sorted edges are faster.
BLOCKED, BLOCKED_RANGE = 1 << 25, 1 << 16

# Peak memory of `_grouped` in bytes per edge, per weighted edge, and per id of the range.
EDGE_BYTES, WEIGHTED_EDGE_BYTES, ID_BYTES = 17, 33, 24


class GivenWeights(NamedTuple):
    """Weights that have not been validated."""

    floats: Floats
    owned: bool  # a copy that the graph may keep
    refuse: Callable[[Floats], None]  # raises the error for invalid weights


def edges_by_id(
    columns: list[Integers], weights: GivenWeights | None = None, *, grouped: bool
) -> tuple[Coo | Grouped, Integers]:
    """Factorize the endpoints of edges in ascending order of id.

    `columns`, of one integer type, are sources, destinations, and additional vertices, if any. `grouped`: whether to
    group the edges by target if that is fast and fits in memory. Return the edges, and the distinct ids, ascending, in
    the type of the columns.
    """
    m, dtype, known, extent = columns[0].size, columns[0].dtype, None, None
    columns = as_kernel_ids(columns)
    if grouped and len(columns) == 2 and 2 * m > ONE_BLOCK and offset_dtype(m).itemsize == 4:
        low, high, least, most = extremes(columns, None if weights is None else weights.floats)
        known, extent = (low, high), (least, most)
        span = high - low + 1
        if (
            weights is None
            and m >= BLOCKED
            and BLOCKED_RANGE <= span <= m // 4
            and not blocks.unavailable_reason(span, span, m, weighted=False)
        ):
            arranged, ids = _in_blocks(columns, low, span)
            return arranged, ids.astype(dtype, copy=False)
        held = (EDGE_BYTES if weights is None else WEIGHTED_EDGE_BYTES) * m + ID_BYTES * span
        if span <= m and runtime.fits(held):
            edges, ids = _grouped(columns, low, span, None if weights is None else _checked(weights, extent), extent)
            return edges, ids.astype(dtype, copy=False)
    codes, ids = factorize_ids(columns, known)
    listed = with_weights(Coo(codes[0], codes[1], None, ids.size), weights, extent)
    return _by_target(listed) if grouped and 2 * m <= ONE_BLOCK else listed, ids.astype(dtype, copy=False)


def _by_target(edges: Coo) -> Grouped:
    in_edges = Csc(*group.grouped(edges.destination, edges.source, edges.weights, edges.n))
    if edges.weights is None:
        out_weight, depth = group.degrees(edges.source, edges.n).astype(np.float64), 0
    else:
        out_weight, depth = group.sums_by(edges.source, edges.weights, edges.n, edges.extent)
    return Grouped(in_edges, out_weight, edges.m, None, depth, edges.extent)


def with_weights(edges: Coo, weights: GivenWeights | None, extent: tuple[float, float] | None = None) -> Coo:
    """Add weights to edges; `extent` is the result of `extremes` for them, if already computed."""
    if weights is None:
        return edges
    extent = extent or extremes([], weights.floats)[2:]
    floats = _checked(weights, extent)
    return replace(edges, weights=floats if weights.owned else floats.copy(), extent=extent)


def _checked(weights: GivenWeights, extent: tuple[float, float]) -> Floats:
    if not extent[1] < math.inf:
        weights.refuse(weights.floats)
    return weights.floats


def _grouped(
    columns: list[Integers], low: int, span: int, weights: Floats | None, extent: tuple[float, float]
) -> tuple[Grouped, Integers]:
    """Sort edges by the target's id - low, and factorize afterwards."""
    dtype = columns[0].dtype
    source, target = (distances(column, low) for column in columns)
    outs: Floats | Integers
    if weights is not None:
        outs, rounding_depth = group.sums_by(source, weights, span, extent, absent=-1.0)
    targets, sources, weights = sorted_by(target, bits_of(span), source, weights)
    begins = group.offsets_of(targets, span)
    del targets
    if weights is None:
        outs, rounding_depth, extent = group.degrees(sources, span), 0, ANY
    marks, ids, offsets, out_weight = _compacted(low, span, begins, outs, dtype)
    if ids.size < span:
        grid, macros = blocks_for_each(sources.size), {"weighted": weights is not None, "degrees": False}
        _launch("compact_codes", dtype, grid, sources.size, sources, marks, **macros)
    return Grouped(Csc(offsets, sources, weights), out_weight, sources.size, None, rounding_depth, extent), ids


def _in_blocks(columns: list[Integers], low: int, span: int) -> tuple[Grouped, Integers]:
    """Arrange unweighted edges in blocks by id - low, and factorize afterwards."""
    source, target = columns
    layout, outs = blocks.build(source, target, low, span, span, *blocks.bits(span), ordered=False)
    marks, ids, in_degrees, out_weight = _compacted(low, span, layout.in_degrees, outs, source.dtype, degrees=True)
    return Grouped(replace(layout, marks=marks, in_degrees=in_degrees), out_weight, source.size), ids


def _compacted(
    low: int, span: int, ins: Integers, outs: Integers | Floats, dtype: np.dtype[np.generic], *, degrees: bool = False
) -> tuple[Integers, Integers, Integers, Floats]:
    """Return the marks of the ids of a range that occur, these ids, and `ins` and out-weights by position.

    `ins`, `outs`: Offsets of the in-edges, or `degrees`, and out-degrees or out-weights, by id - low.
    """
    grid, macros = runtime.blocks_for(span + 1, THREADS), {"weighted": outs.dtype == np.float64, "degrees": degrees}

    def mark(bits: Integers) -> None:
        _launch("mark_endpoints", dtype, grid, span, ins, outs, bits, **macros)

    marks, n = counted_marks(mark, span, dtype)
    ids = cupy.empty(n, dtype)
    found, out_weight = runtime.allocate((n + (not degrees), ins.dtype), (n, np.float64))
    least = np.uint64(low % 2**64)
    _launch("compact", dtype, grid, span, n, least, marks, ins, outs, ids, found, out_weight, **macros)
    return marks, ids, found, out_weight


def _launch(name: str, ids: np.dtype[np.generic], grid: int, *arguments: object, weighted: bool, degrees: bool) -> None:
    macros: dict[str, runtime.Macro] = {"id_t": ids, "WEIGHTED": int(weighted), "DEGREES": int(degrees)}
    runtime.run("gpu/grouped.cu", name, grid, THREADS, *arguments, **macros)
