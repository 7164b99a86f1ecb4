"""Factorization of integer ids: codes 0..n-1 in ascending order of id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from prplugin.cpu.library import use_compiled
from prplugin.cpu.threads import Threads
from prplugin.machine import this_machine
from prplugin.types.arrays import namespace
from prplugin.types.edges import Edges, GroupedEdges, Integers, index_dtype

DENSE = 4
"""Ids are dense if their range is less than this many times their count. Dense ids are factorized with a bitmap."""

Dictionary: TypeAlias = Callable[[Integers], tuple[Integers, Integers]]
"""Factorizes ids by hashing: returns codes, and the distinct ids in any order."""


def edges_by_id(
    columns: list[Integers], dictionary: Dictionary, *, grouped: bool, lasting: bool
) -> tuple[Edges | GroupedEdges, Integers]:
    """Factorize the endpoints of edges on the host; return unweighted edges, and ids as `factorize_ids`.

    `columns`: Sources, destinations and, optionally, more vertices, in one integer type.
    `grouped`: Whether to prefer edges grouped by target to an edge list.
    `lasting`: Whether the graph outlives the columns. If not, it may alias them.
    """
    if grouped and len(columns) == 2 and use_compiled(columns[0].size):
        from prplugin.cpu import factorize

        return factorize.edges_by_id(columns, lasting=lasting)
    codes, ids = factorize_ids(columns, dictionary)
    return Edges(codes[0], codes[1], None, ids.size), ids


def factorize_ids(columns: list[Integers], dictionary: Dictionary) -> tuple[list[Integers], Integers]:
    """Factorize columns of ids of one integer type together; return codes of each, and the distinct ids ascending.

    Codes are of type `index_dtype(ids.size)`. `dictionary` is used for ids that are not dense, on the host.
    """
    if namespace(columns[0]) is not np:
        from prplugin.gpu.factorize import factorize_ids as factorize_on_gpu  # imports CuPy, which holds the ids

        return factorize_on_gpu(columns)
    count = sum(column.size for column in columns)
    if use_compiled(count // 2):
        from prplugin.cpu.factorize import factorize_ids as factorize_on_cpu

        return factorize_on_cpu(columns, Threads(this_machine().threads_for(count // 2)))
    filled = [column for column in columns if column.size]
    if not filled:
        return [column.astype(np.int32) for column in columns], columns[0][:0]
    # Python integers: the range of 64-bit ids does not fit in 64 bits.
    low = min(int(column.min()) for column in filled)
    high = max(int(column.max()) for column in filled)
    if high - low < DENSE * count:
        return _by_bitmap(columns, low, high)
    codes, ids = dictionary(np.concatenate(columns))
    order = np.argsort(ids)
    position = np.empty(order.size, index_dtype(order.size))
    position[order] = np.arange(order.size)
    ends = np.cumsum([column.size for column in columns])
    return np.split(position.take(codes), ends[:-1].tolist()), ids.take(order)


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
