"""Factorization of integer ids: codes 0..n-1 in ascending order of id."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prplugin.cpu.sorting import run_starts
from prplugin.cpu.threads import Threads
from prplugin.machine import count_processed_edges, this_machine, use_compiled
from prplugin.types.arrays import namespace
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

DENSE = 4
"""Ids are dense if their range is less than this many times their count. Dense ids are factorized with a bitmap."""

SORTED = 1 << 11
"""Rows up to which sorting the ids is faster than a hash table of the caller."""

HASHED = 1 << 19
"""Rows up to which a hash table of the ids fits in the cache and is faster than sorting."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: the upper bits of a product with it are a hash (Fibonacci hashing)."""


Dictionary = Callable[[list[Integers]], tuple[list[Integers], Integers]]
"""Factorizes columns together: returns the codes of each column, and the distinct ids in any order."""


def edges_by_id(
    columns: list[Integers], *, grouped: bool, lasting: bool, dictionary: Dictionary | None = None
) -> tuple[Edges | GroupedEdges, Integers]:
    """Factorize the endpoints of edges on the host; return unweighted edges, and ids as `factorize_ids`.

    `columns`: Sources, destinations and, optionally, more vertices, in one integer type.
    `grouped`: Whether to prefer edges grouped by target to an edge list.
    `lasting`: Whether the graph outlives the columns. If not, it may alias them.
    """
    count_processed_edges(columns[0].size)
    if grouped and len(columns) == 2 and use_compiled(columns[0].size):
        from prplugin.cpu import factorize  # imports Numba

        return factorize.edges_by_id(columns, lasting=lasting)
    codes, ids = factorize_ids(columns, dictionary)
    return Edges(codes[0], codes[1], None, ids.size), ids


def factorize_ids(columns: list[Integers], dictionary: Dictionary | None = None) -> tuple[list[Integers], Integers]:
    """Factorize columns of ids of one integer type together; return codes of each, and the distinct ids ascending.

    Codes are of type `index_dtype(ids.size)`. `dictionary` factorizes by hashing. It is used for ids that are not
    dense, in at most `HASHED` rows altogether.
    """
    if namespace(columns[0]) is not np:
        from prplugin.gpu.factorize import factorize_ids as factorize_on_gpu  # imports CuPy, which holds the ids

        return factorize_on_gpu(columns)
    count = sum(column.size for column in columns)
    if use_compiled(count // 2):
        from prplugin.cpu.factorize import factorize_ids as factorize_on_cpu  # imports Numba

        return factorize_on_cpu(columns, Threads(this_machine().threads_for(count // 2)))
    filled = [column for column in columns if column.size]
    if not filled:
        return [column.astype(np.int32) for column in columns], columns[0][:0]
    # Python integers: the range of 64-bit ids does not fit in 64 bits.
    low = min(int(column.min()) for column in filled)
    high = max(int(column.max()) for column in filled)
    if high - low < DENSE * count:
        return _by_bitmap(columns, low, high)
    if count <= SORTED:
        ids, positions = np.unique(np.concatenate(columns), return_inverse=True)
        return _split(positions.astype(index_dtype(ids.size)), columns), ids
    if dictionary is not None and count <= HASHED:
        return _ascending(*dictionary(columns))
    return _by_runs(columns)


def _ascending(codes: list[Integers], ids: Integers) -> tuple[list[Integers], Integers]:
    """Reorder distinct ids in ascending order, and their codes accordingly."""
    order = np.argsort(ids)
    position = np.empty(order.size, index_dtype(order.size))
    position[order] = np.arange(order.size)
    return [position.take(column) for column in codes], ids.take(order)


def _by_bitmap(columns: list[Integers], low: int, high: int) -> tuple[list[Integers], Integers]:
    """Factorize dense ids: mark them in a bitmap of their range; the code of an id is the number of marks before it."""
    dtype = columns[0].dtype
    shifted = [_shifted(column, low) for column in columns]
    seen = np.zeros(high - low + 1, np.bool_)
    for column in shifted:
        seen[column] = True
    ids = np.flatnonzero(seen)
    narrow = index_dtype(ids.size)
    if ids.size == seen.size:
        codes: list[Integers] = [column.astype(narrow) for column in shifted]  # a copy: the graph outlives the frame
    else:
        position = np.cumsum(seen, dtype=narrow)
        position -= 1
        codes = [position[column] for column in shifted]
    # Added modulo 2**64 and cast to the type of the ids: exact, since every id fits that type.
    return codes, (ids.view(np.uint64) + np.uint64(low % 2**64)).astype(dtype)


def _shifted(column: Integers, low: int) -> Integers:
    """Subtract the smallest id. The difference of dense ids fits in 63 bits, even if the ids themselves do not."""
    if low == 0:
        return column.view(np.int64) if column.dtype == np.uint64 else column
    wide = column.astype(np.int64) if column.dtype != np.uint64 else column.view(np.int64)
    return wide - np.uint64(low % 2**64).astype(np.int64)


def _by_runs(columns: list[Integers]) -> tuple[list[Integers], Integers]:
    """Factorize by sorting hashes: group equal ids, then sort one id of each group.

    The sort key holds the hash of an id and its row in one 64-bit integer, which takes half the time of an argsort of
    the ids. If ids collide, an id may occupy several runs; these get the same code when the runs are sorted by id.
    """
    keys = np.concatenate(columns)
    bits = np.uint64(keys.size.bit_length())
    packed = keys.astype(np.uint64)
    packed *= GOLDEN
    packed >>= bits
    packed <<= bits
    packed |= np.arange(keys.size, dtype=np.uint64)
    packed.sort()
    packed &= (np.uint64(1) << bits) - np.uint64(1)
    order = packed.view(np.int64)
    first = np.flatnonzero(run_starts(keys[order]))
    runs = keys[order[first]]
    by_id = np.argsort(runs)
    ranked = runs[by_id]
    new = run_starts(ranked)
    ids = ranked[new]
    position = np.empty(runs.size, index_dtype(ids.size))
    position[by_id] = np.cumsum(new) - 1
    codes = np.empty(order.size, position.dtype)
    codes[order] = np.repeat(position, np.diff(first, append=order.size))
    return _split(codes, columns), ids


def _split(codes: Integers, columns: list[Integers]) -> list[Integers]:
    """Return the codes of each of several concatenated columns."""
    return np.split(codes, np.cumsum([column.size for column in columns])[:-1].tolist())
