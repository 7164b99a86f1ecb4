"""Sorting and compression of in-edges, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from packed_pieces import unpack

from prplugin.cpu import packing
from prplugin.cpu.sorting import offsets_of
from prplugin.types.edges import PackedRows

LENGTHS = [0, 1, 2, 3, 0, 47, 48, 49, 50, 255, 256, 257, 1000, 70_000]


@pytest.mark.parametrize("largest", [1, 255, 256, 70_000, 2**31 - 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("lengths", [[], [0], [1], LENGTHS, LENGTHS * 40])
def test_rows_are_sorted_stably(lengths, index, weighted, largest):
    random = np.random.default_rng(0)
    lengths = np.minimum(lengths, 3000 if len(lengths) > 20 else 70_000).astype(np.int64)
    offsets, rows = offsets_of(lengths), random.permutation(lengths.size)
    sources = random.integers(0, largest, offsets[-1], endpoint=True).astype(index)
    weights = np.arange(sources.size, dtype=float) if weighted else None
    starts = offsets_of(lengths[rows])
    for threads in (1, 3):
        found, found_weights = packing.sort_rows(rows, starts, offsets, sources, None, weights, threads)
        for k, row in enumerate(rows.tolist()):
            of = slice(offsets[row], offsets[row + 1])
            order = np.argsort(sources[of], kind="stable")
            assert (found[starts[k] : starts[k + 1]] == sources[of][order]).all()
            assert weights is None or (found_weights[starts[k] : starts[k + 1]] == weights[of][order]).all()


def test_sources_are_mapped():
    offsets, sources = np.array([0, 3, 3]), np.array([0, 1, 0], np.int32)
    found, _ = packing.sort_rows(
        np.array([1, 0]), np.array([0, 0, 3]), offsets, sources, np.array([5, 2], np.int32), None, 1
    )
    assert found.tolist() == [2, 5, 5]


@pytest.mark.parametrize("bits", [1, 7, 31])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 2047, 2048, 2049, 5000])
def test_parts_are_packed(size, index, bits):
    random = np.random.default_rng(size)
    # All rows in ascending order, many of them empty, the last of several parts.
    starts = np.sort(np.concatenate([[0, 0, size], random.integers(0, size, 50)]))
    sources = random.integers(0, 2**bits, size).astype(index)
    begins = np.unique(np.append(random.integers(0, size, 3), [0, size]))
    results = []
    for threads in (1, 2, 5):
        parts = packing.pack(starts, sources, bits, begins, threads)
        results.append([(data.tobytes(), table.tobytes()) for data, table in parts])
        rows, decoded = [], []
        for data, table in parts:
            ends = [*table[1:, 0].tolist(), data.size]
            for (offset, row), end in zip(table.tolist(), ends, strict=True):
                piece_rows, piece_sources = unpack(data[offset:end], bits)
                rows += (row + piece_rows).tolist()
                decoded += piece_sources.tolist()
        assert decoded == sources.tolist()
        assert rows == (np.searchsorted(starts, np.arange(size), "right") - 1).tolist()
    assert results[0] == results[1] == results[2]


def test_nothing_is_packed():
    assert packing.pack(np.zeros(3, np.int64), np.empty(0, np.int32), 1, np.zeros(1, np.int64), 2) == []


@pytest.mark.parametrize("row", [2**63 - 1, -(2**63), 2**63 - 2**33, 2**62 + 1])
def test_rows_that_overflow_are_refused(row):
    """Gaps are added to the first row of a piece, which is only then compared with the number of rows."""
    starts, sources = np.array([0, 1, 1, 1, 2]), np.array([1, 2], np.int32)
    [(data, table)] = packing.pack(starts, sources, 2, np.array([0, 2]), 1)
    whole = np.append(data, np.zeros(packing.SPARE, np.uint8)), np.append(table[:, 0], data.size)
    sound = PackedRows(*whole, table[:, 1].copy())
    packing.check(sound, 4, 2, 1)
    in_degrees = np.zeros(4, np.int64)
    with pytest.raises(ValueError, match="are damaged"):
        packing.check(sound._replace(rows=np.array([row])), 4, 2, 1, None, in_degrees)
    assert not in_degrees.any()
