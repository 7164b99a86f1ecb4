"""A stable radix sort on the GPU, by only the used bits: see sort.cu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cupy
import numpy as np

from prplugin.gpu import runtime
from prplugin.gpu.runtime import launch
from prplugin.gpu.structs import DIGITS, SORTED, Argument
from prplugin.types.arrays import Array
from prplugin.types.edges import Integers, index_dtype

SORTING = 256  # threads per block of the sort

ITEMS = 16
TILE = SORTING * ITEMS  # keys per block, 16 per thread
TILED = {"THREADS": SORTING, "ITEMS": ITEMS}  # macros of the kernels that sort tiles

DIGIT_BITS = 8
BINS = 1 << DIGIT_BITS  # values of a digit of a key
NARROW = 1 << 30  # counts below this fit in a 32-bit look-back state, beside its two flag bits
COUNTING = 512  # threads per block that counts digits; two such blocks saturate a multiprocessor's memory bandwidth


def state_type(count: int) -> np.dtype[np.generic]:
    """Return the type of look-back states over `count` items."""
    return np.dtype(np.uint32 if count < NARROW else np.uint64)


class SortColumn(NamedTuple):
    """An array to sort, and how to read it."""

    array: Any  # 0: the positions of the items
    dtype: np.dtype[np.generic]  # as read and as written
    step: int = 1  # stride, in items of this type
    low: int = 0  # subtracted from each


def distances(ids: Integers, low: int) -> SortColumn:
    """Return a column that reads ids of 4 or 8 bytes as their distances from `low`, which must be below 2**31."""
    return SortColumn(ids, np.dtype(np.int32), ids.itemsize // 4, low % 2**32)


def sorted_by(keys: Integers | SortColumn, bits: int, *payloads: object, owned: bool = False) -> tuple[Any, ...]:
    """Sort keys and payloads stably, into new arrays; peak memory is two copies of each, or one if they are `owned`.

    Arrays that are `owned` may be overwritten.

    `keys` (array of 4 or 8 bytes per entry, or SortColumn): at least 0, and below ``2**bits``.
    `*payloads` (up to two arrays or columns): of 4 or 8 bytes per entry; the second of float64. None is returned
    for None.
    """
    arrays, _ = _passes(_columns(keys, *(payload for payload in payloads if payload is not None)), bits, owned=owned)
    rest = iter(arrays[1:])
    return (arrays[0], *(None if payload is None else next(rest) for payload in payloads))


def order_of(keys: Integers, bits: int, *, owned: bool = False) -> tuple[Integers, Integers]:
    """Sort keys as `sorted_by` does, and also return the permutation; keys that are `owned` may be overwritten."""
    (keys, order), _ = _passes([*_columns(keys), SortColumn(0, index_dtype(keys.size))], bits, owned=owned)
    return keys, order


def partitioned(keys: Integers | SortColumn, bits: int, *payloads: object) -> tuple[list[Array], Integers, int]:
    """Partition keys by their highest bits, as many as one pass processes.

    Return new keys and payloads, the begin of each of the `BINS` partitions, and the number of lower bits that are not
    sorted.
    """
    skipped = max(bits - DIGIT_BITS, 0)
    arrays, starts = _passes(_columns(keys, *payloads), bits, skipped=skipped)
    return arrays, starts[:BINS], skipped


def _columns(*given: Any) -> list[SortColumn]:
    return [column if isinstance(column, SortColumn) else SortColumn(column, column.dtype) for column in given]


def _passes(
    columns: list[SortColumn], bits: int, *, skipped: int = 0, owned: bool = False
) -> tuple[list[Array], Integers]:
    """Sort by the bits of the first column, the keys, except for the lowest `skipped`.

    Return keys and payloads; and for each pass the begin of each digit, then counters of the kernels.
    """
    keys, *payloads = columns
    count = keys.array.size
    passes = max(1, -(-(bits - skipped) // DIGIT_BITS))
    state = state_type(count)
    key_t, value_t = np.dtype(f"u{keys.dtype.itemsize}"), np.dtype(f"i{payloads[0].dtype.itemsize if payloads else 4}")
    macros: dict[str, runtime.Macro] = {
        "key_t": key_t,
        "value_t": value_t,
        "state_t": state,
        "PAYLOADS": len(payloads),
        **TILED,
    }
    digit_counts, sort_pass = (runtime.kernel("gpu/sort.cu", name, **macros) for name in ("digit_counts", "sort_pass"))
    tiles = max(1, -(-count // TILE))
    begins = cupy.zeros(passes * (BINS + 1) + 1, state)  # of digits, then tickets, and the number of finished blocks
    starts = [begins.data + number * BINS * state.itemsize for number in range(passes + 1)]
    done = starts[-1] + passes * state.itemsize
    blocks = min(runtime.blocks_for(count, COUNTING), 2 * runtime.multiprocessors())
    arrays: list[Array | int] = [column.array for column in columns]
    # Passes write to two sets of arrays in turn, the last to that of the result. One allocation has all that is freed
    # with the keys: the states of tiles, the keys, and the payloads of the other set.
    given = [array if owned and not isinstance(array, int) else None for array in arrays]
    empty: list[Any] = [None] * len(columns)
    sets = [empty, given][: min(passes, 2)]
    result = sets[(passes - 1) % 2]
    result[1:] = [cupy.empty(count, c.dtype) if a is None else a for a, c in zip(result[1:], payloads, strict=True)]
    wanted = [(count, c.dtype) for one in sets for array, c in zip(one, columns, strict=True) if array is None]
    even, odd, *rest = runtime.allocate((tiles * BINS, state), (tiles * BINS, state), *wanted)
    states, temporary = (even, odd), iter(rest)
    sets = [[next(temporary) if array is None else array for array in one] for one in sets]
    digits = DIGITS({}, skipped=skipped, bits=bits, passes=passes)
    reading = np.int32(keys.step), np.uint32(keys.low)
    launch(digit_counts, blocks, COUNTING, count, digits, keys.array, *reading, begins, done, even.size, even)
    read = _items(arrays, keys, (payloads or columns)[0])
    written = [_items(each, *[SortColumn(None, keys.dtype)] * 2) for each in sets]
    for number in range(passes):
        launch(
            sort_pass, tiles, SORTING, count, digits, np.int32(number), read, written[number % 2], starts[number],
            starts[-1], states[number % 2], states[1 - number % 2],
        )  # fmt: skip
        read = written[number % 2]
    return sets[(passes - 1) % 2], begins


def _items(arrays: Sequence[Array | int], keys: SortColumn, values: SortColumn) -> Argument:
    """Return the kernel argument for keys and payloads; arrays that are 0 or absent are null."""
    a, b, c = [None if isinstance(array, int) else array for array in arrays] + [None] * (3 - len(arrays))
    return SORTED(
        {}, keys=a, values=b, weights=c, step=keys.step, low=keys.low, value_step=values.step, value_low=values.low
    )
