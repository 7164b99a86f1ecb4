"""A stable radix sort on the GPU, by only the bits in use: see sort.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np

from prplugin import cuda
from prplugin.graph.edges import Integers, index_dtype

__all__ = ["SortedIds", "bits_for", "order_of", "partitioned", "sort_ids", "sorted_by", "state_type", "three"]

THREADS = 256
ITEMS = 16
TILE = THREADS * ITEMS
DIGIT_BITS = 8
BINS = 1 << DIGIT_BITS
COUNTING = 512
"""Threads of a block that counts digits; two such blocks at once keep a multiprocessor's memory busy."""

NARROW = 1 << 30
"""Counts below this fit a 32-bit word of look-back, beside its two flags."""

KEYS = {4: "unsigned int", 8: "unsigned long long"}
VALUES = {4: "int", 8: "long long"}
"""By bytes: a kernel that moves values does not ask what they are."""


def bits_for(n: int) -> int:
    """Give the bits of the positions of n vertices."""
    return max(n - 1, 0).bit_length()


def state_type(count: int) -> np.dtype[Any]:
    """Give the type of the words of look-back over so many items."""
    return np.dtype(np.uint32 if count < NARROW else np.uint64)


def sorted_by(keys: Integers, bits: int, *payloads: Any) -> tuple[Any, ...]:
    """Sort keys, and what goes with them, stably. While it works, two copies of each are held, and one at the end.

    Parameters
    ----------
    keys : array of 4 or 8 bytes an entry
        Not negative, and below ``2**bits``. Like the payloads, read and left as they are.
    *payloads : up to two arrays
        Of 4 or 8 bytes an entry; the second, of float64. None is no payload.

    Returns
    -------
    keys, *payloads : arrays
        A new one for each; None for None.
    """
    held = [payload for payload in payloads if payload is not None]
    moved, _ = _passes(keys, bits, held, [payload.dtype for payload in held])
    rest = iter(moved[1:])
    return (moved[0], *(None if payload is None else next(rest) for payload in payloads))


def order_of(keys: Integers, bits: int) -> tuple[Integers, Integers]:
    """Sort keys as `sorted_by` does; also give the permutation that sorts them."""
    (keys, order), _ = _passes(keys, bits, [0], [index_dtype(keys.size)])
    return keys, order


def partitioned(keys: Integers, bits: int) -> tuple[Integers, Integers, int]:
    """Bring keys together by the greatest of their bits, as many as one pass takes.

    Returns
    -------
    keys : array
        A new one.
    starts : array of `BINS`
        Where those of each value of these bits begin.
    skipped : int
        How many bits are below.
    """
    skipped = max(bits - DIGIT_BITS, 0)
    (keys,), starts = _passes(keys, bits, [], [], skipped=skipped)
    return keys, starts[:BINS], skipped


class SortedIds(NamedTuple):
    """Edges sorted by target; the ends of all are int32 distances from the least id.

    Attributes
    ----------
    targets, sources : arrays of m
        In the order of the targets, and within that of the rows.
    source, destination : arrays of m
        In the order of the rows.
    """

    targets: Integers
    sources: Integers
    source: Integers
    destination: Integers


def sort_ids(source: Integers, destination: Integers, low: int, span: int) -> SortedIds:
    """Sort edges by target, straight from columns of ids: all at least `low`, and below ``low + span``.

    While it works it holds 24 bytes an edge.
    """
    m = source.size
    ids = _Ids(low, cupy.empty(m, np.int32), cupy.empty(m, np.int32))
    (targets, sources), _ = _passes(destination, bits_for(span), [source], [np.dtype(np.int32)], ids)
    return SortedIds(targets, sources, ids.values, ids.keys)


class _Ids(NamedTuple):
    """Of keys and values that are ids: the least, and where to keep distances from it."""

    low: int
    keys: Integers
    values: Integers


def _passes(
    keys: Integers,
    bits: int,
    payloads: list[Any],
    dtypes: list[np.dtype[Any]],
    ids: _Ids | None = None,
    *,
    skipped: int = 0,
) -> tuple[list[Any], Any]:
    """Sort by all bits but the least, those skipped; a payload of 0 is the number of each item.

    Returns
    -------
    arrays : list
        Keys and payloads.
    starts : array
        For each pass, where each of its digits begins; and what kernels count beside.
    """
    count = keys.size
    passes = max(1, -(-(bits - skipped) // DIGIT_BITS))
    state = state_type(count)
    macros: dict[str, Any] = {
        "key_t": KEYS[keys.itemsize if ids is None else 4],
        "value_t": VALUES[dtypes[0].itemsize] if dtypes else "int",
        "state_t": KEYS[state.itemsize],
        "PAYLOADS": len(payloads),
        "THREADS": THREADS,
        "ITEMS": ITEMS,
    }
    tiles = max(1, -(-count // TILE))
    starts = cupy.zeros(passes * (BINS + 1) + 1, state)  # where digits begin; then tickets, and blocks that are done
    tickets, done = starts[passes * BINS : -1], starts[-1:]
    states = cupy.empty((2, tiles * BINS), state)
    blocks = min(cuda.blocks_for(count, COUNTING), 2 * cuda.multiprocessors())
    digits = np.int32(skipped), np.int32(bits), np.int32(passes)
    found = starts, done, states[0].size, states[0]
    plain: tuple[Any, ...] = np.int32(1), np.uint32(0), 0
    if ids is None:
        reading = plain
        cuda.kernel("graph/sort.cu", "digit_counts", **macros)((blocks,), (COUNTING,), (count, *digits, keys, *found))
    else:
        step, low = np.int32(keys.itemsize // 4), np.uint32(ids.low % 2**32)
        reading = step, low, ids.values
        cuda.kernel("graph/sort.cu", "digit_counts_of_ids", **macros)(
            (blocks,), (COUNTING,), (count, *digits, keys, step, low, ids.keys, *found)
        )
        keys = ids.keys
    launch = cuda.kernel("graph/sort.cu", "sort_pass", **macros)
    arrays: list[Any] = [keys, *payloads]
    spare: list[Any] = []
    for number in range(passes):
        to = spare or [cupy.empty(count, dtype) for dtype in (keys.dtype, *dtypes)]
        launch(
            (tiles,),
            (THREADS,),
            (
                count, *digits, np.int32(number), *three(arrays), *three(to), *(plain if number else reading),
                starts[number * BINS :], tickets, states[number % 2], states[1 - number % 2],
            ),
        )  # fmt: skip
        spare, arrays = arrays if number else [], to
    return arrays, starts


def three(arrays: list[Any]) -> list[Any]:
    """Give the three arrays that a kernel takes, null where there is none."""
    return [*arrays, *[0] * (3 - len(arrays))]
