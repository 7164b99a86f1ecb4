"""A stable radix sort on the GPU, by only the bits in use: see sort.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np

from prplugin.gpu import runtime
from prplugin.types.edges import Integers, index_dtype

__all__ = ["Column", "bits_for", "distances", "order_of", "partitioned", "sorted_by", "state_type", "three"]

SORTING = 256
"""Threads of a block that sorts."""

ITEMS = 16
TILE = SORTING * ITEMS
"""Keys that such a block has, 16 a thread."""

DIGIT_BITS = 8
BINS = 1 << DIGIT_BITS
"""Of a digit of keys."""

NARROW = 1 << 30
"""Counts below this fit a 32-bit word of look-back, beside its two flags."""

COUNTING = 512
"""Threads of a block that counts digits; two such blocks at once keep a multiprocessor's memory busy."""

KEYS = {4: "unsigned int", 8: "unsigned long long"}
VALUES = {4: "int", 8: "long long"}
"""By bytes: a kernel that moves values does not ask what they are."""


def bits_for(n: int) -> int:
    """Give the bits of the positions of n vertices."""
    return max(n - 1, 0).bit_length()


def state_type(count: int) -> np.dtype[Any]:
    """Give the type of the words of look-back over so many items."""
    return np.dtype(np.uint32 if count < NARROW else np.uint64)


class Column(NamedTuple):
    """An array to sort, and how it is read.

    `array` (array, or 0): 0: the numbers of the items.
    `dtype` (type): Of what is read, and of what becomes of it.
    `step`, `low`: How many of that type apart items are, and what is taken off each.
    """

    array: Any
    dtype: np.dtype[Any]
    step: int = 1
    low: int = 0


def distances(ids: Integers, low: int) -> Column:
    """Read ids of 4 or 8 bytes as distances from the least, all below 2**31."""
    return Column(ids, np.dtype(np.int32), ids.itemsize // 4, low % 2**32)


def sorted_by(keys: Integers | Column, bits: int, *payloads: Any) -> tuple[Any, ...]:
    """Sort keys, and what goes with them, stably. While it works, two copies of each are held, and one at the end.

    `keys` (array of 4 or 8 bytes an entry, or Column): Not negative, and below ``2**bits``. Like the payloads, read and
    left as they are.
    `*payloads` (up to two arrays or columns): Of 4 or 8 bytes an entry; the second, of float64. None is no payload.

    Returns `keys, *payloads` (arrays): A new one for each; None for None.
    """
    moved, _ = _passes(_columns(keys, *(payload for payload in payloads if payload is not None)), bits)
    rest = iter(moved[1:])
    return (moved[0], *(None if payload is None else next(rest) for payload in payloads))


def order_of(keys: Integers, bits: int, *, owned: bool = False) -> tuple[Integers, Integers]:
    """Sort keys as `sorted_by` does; also give the permutation that sorts them.

    `owned`: Whether the keys need not be left as they are: then one copy less is held.
    """
    (keys, order), _ = _passes([*_columns(keys), Column(0, index_dtype(keys.size))], bits, owned=owned)
    return keys, order


def partitioned(keys: Integers | Column, bits: int, *payloads: Any) -> tuple[list[Any], Integers, int]:
    """Bring keys together by the greatest of their bits, as many as one pass takes.

    Returns `keys, *payloads` (list of arrays): A new one for each.
    Returns `starts` (array of `BINS`): Where those of each value of these bits begin.
    Returns `skipped` (int): How many bits are below.
    """
    skipped = max(bits - DIGIT_BITS, 0)
    moved, starts = _passes(_columns(keys, *payloads), bits, skipped=skipped)
    return moved, starts[:BINS], skipped


def _columns(*given: Any) -> list[Column]:
    return [column if isinstance(column, Column) else Column(column, column.dtype) for column in given]


def _passes(columns: list[Column], bits: int, *, skipped: int = 0, owned: bool = False) -> tuple[list[Any], Any]:
    """Sort by all bits of the first column, that of the keys, but the least, those skipped.

    What is `owned` need not be left as it is: further passes write over it.

    Returns `arrays` (list): Keys and payloads.
    Returns `starts` (array): For each pass, where each of its digits begins; and what kernels count beside.
    """
    keys, *payloads = columns
    count = keys.array.size
    passes = max(1, -(-(bits - skipped) // DIGIT_BITS))
    state = state_type(count)
    macros: dict[str, Any] = {
        "key_t": KEYS[keys.dtype.itemsize],
        "value_t": VALUES[payloads[0].dtype.itemsize] if payloads else "int",
        "state_t": KEYS[state.itemsize],
        "PAYLOADS": len(payloads),
        "THREADS": SORTING,
        "ITEMS": ITEMS,
    }
    tiles = max(1, -(-count // TILE))
    starts = cupy.zeros(passes * (BINS + 1) + 1, state)  # where digits begin; then tickets, and blocks that are done
    tickets, done = starts[passes * BINS : -1], starts[-1:]
    states = cupy.empty((2, tiles * BINS), state)
    blocks = min(runtime.blocks_for(count, COUNTING), 2 * runtime.multiprocessors())
    digits = np.int32(skipped), np.int32(bits), np.int32(passes)
    reading = [(np.int32(column.step), np.uint32(column.low)) for column in (keys, (payloads or columns)[0])]
    runtime.kernel("gpu/sort.cu", "digit_counts", **macros)(
        (blocks,), (COUNTING,), (count, *digits, keys.array, *reading[0], starts, done, states[0].size, states[0])
    )
    launch = runtime.kernel("gpu/sort.cu", "sort_pass", **macros)
    arrays: list[Any] = [column.array for column in columns]
    spare: list[Any] = [None] * len(columns)
    for number in range(passes):
        to = [cupy.empty(count, c.dtype) if room is None else room for room, c in zip(spare, columns, strict=True)]
        launch(
            (tiles,),
            (SORTING,),
            (
                count, *digits, np.int32(number), *three(arrays), *three(to), *reading[0], *reading[1],
                starts[number * BINS :], tickets, states[number % 2], states[1 - number % 2],
            ),
        )  # fmt: skip
        if number or owned:
            spare = [None if isinstance(array, int) else array for array in arrays]
        arrays = to
        reading = [(np.int32(1), np.uint32(0))] * 2
    return arrays, starts


def three(arrays: list[Any]) -> list[Any]:
    """Give the three arrays that a kernel takes, null where there is none."""
    return [*arrays, *[0] * (3 - len(arrays))]
