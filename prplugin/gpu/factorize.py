"""Factorization of integer ids in ascending order, on the GPU, and edges of columns of them: see grouped.cu."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

import cupy
import numpy as np

from prplugin.gpu import blocks, group, runtime
from prplugin.gpu.runtime import THREADS, blocks_for_each, padded
from prplugin.gpu.sort import SORTING, TILE, TILED, distances, sorted_by, state_type
from prplugin.gpu.structs import COLUMNS, Argument
from prplugin.types.arrays import Array, fill_bytes
from prplugin.types.edges import (
    ANY,
    MAX_NARROW,
    Coo,
    Csc,
    Floats,
    Grouped,
    Integers,
    bits_of,
    index_dtype,
    offset_dtype,
)

ONE_BLOCK = TILE  # number of ids up to which one block factorizes all of them
DENSE = 16  # ids of a range below this many times their number are dense: a bitmap takes at most 6 bytes per id
WORDS = 4 * THREADS  # words of marks per tile of `count_marks`, as in dense_ids.cu
SKETCHED = 1 << 20  # ids from which distinct ones are estimated: a hash table for fewer takes at most 16 MiB
REGISTERS = 1 << 12  # registers of the HyperLogLog sketch, whose standard error is 1.6 %: see sparse_ids.cu
SLOTS_PER_ID = 1.7  # slots of the hash table per distinct id
FIRST_SLOTS = 1 << 24  # slots of a hash table that grows with the number of distinct ids
INDEX, STATE = np.dtype(np.int32), np.dtype(np.uint32)  # types in kernels without positions or look-back states


def factorize_ids(columns: list[Integers], known: tuple[int, int] | None = None) -> tuple[list[Integers], Integers]:
    """Replace ids by their rank among the distinct ids; `known` are the least and the greatest, if already computed."""
    dtype = columns[0].dtype
    count = sum(column.size for column in columns)
    if not count:
        return [cupy.empty(0, np.int32) for _ in columns], cupy.empty(0, dtype)
    ready = as_kernel_ids(columns)
    if count <= ONE_BLOCK:
        codes, ids = _factorize_one_block(ready, count)
    else:
        low, high = known or extremes(ready)[:2]
        codes, ids = _dense(ready, low, high) if high - low < DENSE * count else _sparse(ready, low, high)
    return codes, ids.astype(dtype, copy=False)


def by_first_appearance(
    codes: list[Integers], n: int, scales: Sequence[tuple[int, int]]
) -> tuple[list[Integers], Integers, Integers]:
    """Renumber codes by the first appearance of each.

    `scales`: a and b for each array of codes, whose entry at row r has the place a * r + b. Return the codes, the old
    code of each new one, and the place of the first appearance of each new one.
    """
    first = cupy.full(n, np.iinfo(np.int64).max, np.int64)
    for array, (scale, shift) in zip(codes, scales, strict=False):
        if array.size:
            grid = blocks_for_each(array.size), THREADS
            arguments = array.size, array, scale, shift, first
            runtime.run("gpu/first_places.cu", "first_places", *grid, *arguments, index_t=array.dtype)
    order = cupy.argsort(first)
    renumbered = cupy.empty(n, codes[0].dtype)
    renumbered[order] = cupy.arange(n, dtype=renumbered.dtype)
    return [renumbered[array] for array in codes], order, first[order]


def as_kernel_ids(columns: list[Integers]) -> list[Integers]:
    """Convert ids to a type of 4 or 8 bytes, which the kernels take; copy only if needed."""
    dtype = columns[0].dtype
    return [cupy.ascontiguousarray(column, dtype if dtype.itemsize >= 4 else np.int32) for column in columns]


def _factorize_one_block(columns: list[Integers], count: int) -> tuple[list[Integers], Integers]:
    """Factorize all ids in one launch."""
    codes, ids = runtime.allocate((count + 1, INDEX), (count, columns[0].dtype))
    types: dict[str, runtime.Macro] = {"id_t": ids.dtype, "value_t": INDEX, **TILED}
    runtime.run("gpu/one_block.cu", "factorize_one_block", 1, SORTING, *_arguments(columns), codes, ids, **types)
    ends = accumulate((column.size for column in columns), initial=0)
    parts = [codes[start:end] for start, end in pairwise(ends)]
    return parts, ids[: int(codes[count])]


def extremes(columns: list[Integers], weights: Floats | None = None) -> tuple[int, int, float, float]:
    """Return the least and the greatest of all ids, the least weight above 0 and the greatest weight, in one launch.

    Without ids, low and high are meaningless; without weights above 0, the others are 0. The greatest weight is
    infinite or NaN if some weight is not a finite number of at least 0.
    """
    found = cupy.zeros(4, np.uint64)
    dtype = columns[0].dtype if columns else np.dtype(np.int64)
    weighed: list[Array] = [] if weights is None else [weights]
    blocks = min(_blocks([*columns, *weighed]), 8 * runtime.multiprocessors())
    of_weights = (0, 0) if weights is None else (weights, weights.size)
    _run_dense("extremes", dtype, blocks, _columns(columns, dtype), *of_weights, found)
    bits = found.get()
    bits[[0, 2]] ^= np.uint64(2**64 - 1)  # stored as complements
    low, high = bits[:2].tolist()
    least, most = bits[2:].view(np.float64).tolist()
    bias = 1 << 63 if dtype.kind == "i" else 0
    return low - bias, high - bias, 0.0 if most == 0 else least, math.inf if bits[3] >> np.uint64(63) else most


def _dense(columns: list[Integers], low: int, high: int) -> tuple[list[Integers], Integers]:
    """Factorize ids by a bitmap of their range; temporary memory is 3 / 8 byte per id of the range."""
    span = high - low + 1
    dtype = columns[0].dtype
    least = np.uint64(low % 2**64)
    blocks, given = _blocks(columns), _columns(columns, dtype)

    def mark(bits: Integers) -> None:
        _run_dense("mark", dtype, blocks, given, least, bits)

    marks, n = counted_marks(mark, span, dtype)
    words, bits = (n, 0) if n == span else (marks.size, marks)
    codes = [cupy.empty(column.size, index_dtype(n)) for column in columns]
    ids = cupy.empty(n, dtype)
    blocks = max(blocks, runtime.blocks_for(words, THREADS))
    arguments = given, least, words, bits, *padded(codes, 3), ids
    _run_dense("encode", dtype, blocks, *arguments, index_t=index_dtype(n))
    return codes, ids


def counted_marks(mark: Callable[[Integers], None], span: int, dtype: np.dtype[np.generic]) -> tuple[Integers, int]:
    """Mark the ids of a range that occur, and count the marks before each word of 32 bits.

    `mark` sets the bit of each id in zeroed words; `dtype`, the type of the ids, selects the compiled module. Return
    8 bytes of marks per word (see marks.cuh), and the number of ids that occur.
    """
    words = -(-span // 32)
    tiles = -(-words // WORDS)
    state = state_type(span)
    total, states, ticket, bits, marks = runtime.allocate(
        (1, np.int64), (tiles, state), (1, np.uint32), (words, np.uint32), (words, np.uint64), cleared=True
    )
    mark(bits)
    _run_dense("count_marks", dtype, tiles, words, bits, marks, ticket, states, total, state_t=state)
    return marks, int(total.item())


def _sparse(columns: list[Integers], low: int, high: int) -> tuple[list[Integers], Integers]:
    """Factorize ids by a hash table; temporary memory is up to 38 bytes per distinct id."""
    dtype = columns[0].dtype
    least = np.uint64(low % 2**64)
    table = _empty_table(slots_needed(columns))
    codes, n, failures = _insert(columns, dtype, least, table)
    if failures:
        return _by_sort(columns)
    ids, _, positions = _ordered(table, n, dtype, least, (high - low).bit_length(), reuse=True)
    _run_sparse("recode", dtype, codes[0].dtype, _blocks(columns), *_arguments(codes), positions)
    return [code.astype(index_dtype(n), copy=False) for code in codes], ids


def _empty_table(capacity: int) -> Integers:
    table: Integers = cupy.empty(capacity + 1, np.uint64)
    fill_bytes(table, 0xFF)
    return table


def _insert(
    columns: list[Integers], dtype: np.dtype[np.generic], least: np.uint64, table: Integers
) -> tuple[list[Integers], int, int]:
    """Insert ids into a hash table; return the slots, the number of new ids, and whether it was too full for some."""
    capacity = table.size - 1
    slots = [cupy.empty(column.size, index_dtype(capacity)) for column in columns]
    found = cupy.zeros(3, np.uint64)
    arguments = _columns(columns, dtype), least, capacity, table, *padded(slots, 3), found
    _run_sparse("insert", dtype, slots[0].dtype, min(_blocks(columns), 8 * runtime.multiprocessors()), *arguments)
    added, failures, _ = found.get().tolist()
    return slots, added, failures


def _collected(table: Integers, count: int, dtype: np.dtype[np.generic]) -> tuple[Integers, Integers]:
    """Return the keys of a table and their slots, in no particular order; `dtype` selects the compiled module."""
    capacity = table.size - 1
    keys, slots = cupy.empty(count, np.uint64), cupy.empty(count, index_dtype(capacity))
    arguments = capacity, table, cupy.zeros(1, np.uint64), keys, slots
    _run_sparse("collect", dtype, slots.dtype, blocks_for_each(capacity + 1), *arguments)
    return keys, slots


def _ordered(
    table: Integers, count: int, dtype: np.dtype[np.generic], least: np.uint64, bits: int, *, reuse: bool
) -> tuple[Integers, Integers, Integers]:
    """Return the ids in a table, ascending, their slots, and the position of the id of each slot.

    `reuse`: Whether the positions may take the memory of the table, whose type they do not have.
    """
    keys, slots = _collected(table, count, dtype)
    keys, slots = sorted_by(keys, bits, slots)
    positions = table if reuse else cupy.zeros(table.size, slots.dtype)
    ids = cupy.empty(count, dtype)
    _run_sparse("place", dtype, slots.dtype, blocks_for_each(count), count, keys, slots, least, positions, ids)
    return ids, slots, positions


def slots_needed(columns: list[Integers]) -> int:
    """Return the number of slots of a hash table for the distinct ids, whose number is estimated for many ids."""
    count = sum(column.size for column in columns)
    return int(SLOTS_PER_ID * min(count, _estimate(columns) if count > SKETCHED else count)) + 1


def _estimate(columns: list[Integers]) -> int:
    """Estimate the number of distinct ids by HyperLogLog, plus three standard deviations."""
    ranks = cupy.zeros(REGISTERS, np.uint32)
    blocks = min(_blocks(columns), 4 * runtime.multiprocessors())
    _run_sparse("sketch", columns[0].dtype, INDEX, blocks, _columns(columns, columns[0].dtype), ranks)
    found = ranks.get()
    estimate = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / (0.5**found).sum()
    empty = REGISTERS - np.count_nonzero(found)
    if estimate <= 2.5 * REGISTERS and empty:
        estimate = REGISTERS * np.log(REGISTERS / empty)
    return int(1.05 * estimate) + REGISTERS


def _blocks(columns: list[Integers]) -> int:
    return blocks_for_each(max(column.size for column in columns))


def _columns(columns: Sequence[Array], dtype: np.dtype[np.generic]) -> Argument:
    """Return the kernel argument for up to three columns of this type."""
    absent = 3 - len(columns)
    a, b, c = [*columns] + [None] * absent
    in_a, in_b, in_c = [column.size for column in columns] + [0] * absent
    return COLUMNS({"id_t": dtype}, a=a, b=b, c=c, in_a=in_a, in_b=in_b, in_c=in_c)


def _arguments(columns: list[Integers]) -> list[object]:
    """Return the kernel's arguments for three columns and their lengths; 0 for those that are absent."""
    return padded([argument for column in columns for argument in (column, column.size)], 6)


def _run_dense(
    name: str, ids: np.dtype[np.generic], blocks: int, *arguments: object, **types: np.dtype[np.generic]
) -> None:
    types = {"index_t": INDEX, "state_t": STATE} | types
    runtime.run("gpu/dense_ids.cu", name, blocks, THREADS, *arguments, id_t=ids, **types)


def _run_sparse(
    name: str, ids: np.dtype[np.generic], index: np.dtype[np.generic], blocks: int, *arguments: object
) -> None:
    runtime.run("gpu/sparse_ids.cu", name, blocks, THREADS, *arguments, id_t=ids, index_t=index)


def _by_sort(columns: list[Integers]) -> tuple[list[Integers], Integers]:
    """Factorize ids by sorting, if they overflow the hash table."""
    ids, codes = cupy.unique(cupy.concatenate(columns), return_inverse=True)
    codes = codes.astype(index_dtype(ids.size), copy=False)
    return cupy.split(codes, np.cumsum([column.size for column in columns])[:-1].tolist()), ids


# --- part by part -----------------------------------------------------------------------------------------------------


class PartwiseFactorizer:
    """Factorizes the endpoints of up to m edges, which are read twice: see `prplugin.frames.parts`.

    It sums the out-weights of the vertices. Ids, of 4 or 8 bytes and from `low` to `high`, are places in an array if
    their range is at most about m, and else slots of a hash table. It takes up to 13 bytes per place, or up to 60 per
    distinct id.
    """

    def __init__(self, dtype: np.dtype[np.generic], low: int, high: int, m: int) -> None:
        self._dtype, self._low, self._bits = dtype, low, (high - low).bit_length()
        self._least = np.uint64(low % 2**64)
        span = high - low + 1
        self._marks: Integers | None = None
        self._count = 0
        if span <= min(max(m, FIRST_SLOTS), MAX_NARROW):
            self._marks, places = cupy.zeros(-(-span // 32), np.uint32), span
        else:
            self._table, places = _empty_table(min(2 * m, FIRST_SLOTS)), min(2 * m, FIRST_SLOTS) + 1
        self._positions: Integers | None = None
        self.out_weight: Floats = cupy.zeros(places)  # of each place; after `vertices`, of each vertex
        self.rounding_depth = 0

    def add(
        self, source: Integers, destination: Integers | None = None, weights: Floats | None = None, own: object = None
    ) -> None:
        """Add the ids of a part, and the out-weights of its edges; ids without `destination` are of vertices."""
        columns = [source] if destination is None else [source, destination]
        if self._marks is not None:
            blocks = blocks_for_each(source.size)
            _run_dense("mark", self._dtype, blocks, _columns(columns, self._dtype), self._least, self._marks)
        places = self._places(columns)[0]
        if destination is None:
            return
        if weights is None:
            self.out_weight += group.degrees(places, self.out_weight.size)
        else:
            sums, depth = group.sums_by(places, weights, self.out_weight.size, ANY)
            self.out_weight += sums
            self.rounding_depth = max(self.rounding_depth, depth) + 1

    def vertices(self) -> Integers:
        """Return the distinct ids, ascending."""
        if self._marks is not None:
            span = self.out_weight.size
            seen = cupy.unpackbits(self._marks.view(np.uint8), bitorder="little")[:span]
            places = cupy.flatnonzero(seen)
            ids: Integers = places.astype(self._dtype)
            ids += ids.dtype.type(self._low)
            if places.size < span:
                self._positions = cupy.cumsum(seen, dtype=np.int32)
                self._positions -= 1
        else:
            ids, places, self._positions = _ordered(
                self._table, self._count, self._dtype, self._least, self._bits, reuse=False
            )
        if places.size < self.out_weight.size:
            self.out_weight = self.out_weight[places]
        return ids

    def reorder(self, position: Integers) -> None:
        """Replace the position of each vertex by another, which `positions_of` returns from now on."""
        self._positions = position if self._positions is None else position[self._positions]

    def positions_of(self, ends: list[Integers], own: object = None) -> list[Integers]:
        """Return the position of each id, all of which have been added, after `vertices`."""
        places = self._places(ends)
        return places if self._positions is None else [self._positions[place] for place in places]

    def _places(self, columns: list[Integers]) -> list[Integers]:
        if self._marks is None:
            return self._slots(columns)
        if self._low == 0 and self._dtype == np.int32:
            return columns
        found = [cupy.empty(column.size, np.int32) for column in columns]
        for column, place in zip(columns, found, strict=True):
            cupy.subtract(column, self._dtype.type(self._low), out=place, casting="unsafe")
        return found

    def _slots(self, columns: list[Integers]) -> list[Integers]:
        """Return the slots of ids, and insert them; the table grows unless it remains sparse."""
        while True:
            slots, added, failures = _insert(columns, self._dtype, self._least, self._table)
            self._count += added
            if not failures and SLOTS_PER_ID * self._count <= self._table.size:
                return slots
            keys, before = _collected(self._table, self._count, self._dtype)
            self._table = _empty_table(2 * self._table.size)
            (after,), _, _ = _insert([keys], keys.dtype, np.uint64(0), self._table)
            out_weight = cupy.zeros(self._table.size)
            out_weight[after] = self.out_weight[before]
            self.out_weight = out_weight


# --- edges ----------------------------------------------------------------------------------------------------------

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
        _launch_grouped("compact_codes", dtype, grid, sources.size, sources, marks, **macros)
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
        _launch_grouped("mark_endpoints", dtype, grid, span, ins, outs, bits, **macros)

    marks, n = counted_marks(mark, span, dtype)
    ids = cupy.empty(n, dtype)
    found, out_weight = runtime.allocate((n + (not degrees), ins.dtype), (n, np.float64))
    least = np.uint64(low % 2**64)
    _launch_grouped("compact", dtype, grid, span, n, least, marks, ins, outs, ids, found, out_weight, **macros)
    return marks, ids, found, out_weight


def _launch_grouped(
    name: str, ids: np.dtype[np.generic], grid: int, *arguments: object, weighted: bool, degrees: bool
) -> None:
    macros: dict[str, runtime.Macro] = {"id_t": ids, "WEIGHTED": int(weighted), "DEGREES": int(degrees)}
    runtime.run("gpu/grouped.cu", name, grid, THREADS, *arguments, **macros)
