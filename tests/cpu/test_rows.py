"""Rows of a sparse matrix in a buffer, compared with lists."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from kernel_calls import named

from prplugin.cpu import kernels
from prplugin.cpu.sorting import offsets_of

ROWS = [0, 1, 2, 3, 40]
INDEX = [np.int32, np.int64]


def random_rows(n, index, *, weighted=True, seed=0):
    """Return the positions, indices and weights of n rows that lie in the buffer in any order, with gaps."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 9, n)
    places = random.permutation(n)
    gaps = random.integers(0, 3, n)
    begins = np.empty(n, np.int64)
    begins[places] = np.append(0, np.cumsum((lengths + gaps)[places]))[:n]
    size = int((lengths + gaps).sum()) + 400
    indices = random.integers(0, max(n, 1), size).astype(index)
    weights = random.integers(1, 4, size).astype(float) if weighted else None
    return begins, begins + lengths, indices, weights


def entries(begins, ends, indices, weights, row):
    of = slice(begins[row], ends[row])
    return list(
        zip(indices[of].tolist(), [1.0] * (ends[row] - begins[row]) if weights is None else weights[of], strict=True)
    )


@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("n", ROWS)
def test_pairs_are_found(n, index):
    begins, ends, indices, _ = random_rows(n, index)
    pairs = np.indices((n, n)).reshape(2, -1)
    found = np.ones(n * n, np.bool_)
    kernels.find_pairs(*map(np.ascontiguousarray, pairs), begins, ends, indices, found)
    assert found.tolist() == [column in indices[begins[row] : ends[row]] for row, column in pairs.T]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("n", ROWS)
def test_rows_are_rewritten(n, index, weighted):
    random = np.random.default_rng(n)
    begins, ends, indices, weights = buffer = random_rows(n, index, weighted=weighted, seed=n)
    expected, rows = [], np.arange(0, n, 2)
    removals, additions = [], []
    for row in rows.tolist():
        left = entries(*buffer, row)
        gone = sorted((left[k] for k in random.permutation(len(left))[: len(left) // 2]), key=lambda entry: entry[0])
        for column, weight in gone:
            left.remove((column, weight))
        removals.append(gone)
        additions.append([(int(column), 0.5) for column in random.integers(0, n, row % 4)])
        expected.append(sorted([*left, *additions[-1]]))

    def compressed(parts):
        flat = [entry for part in parts for entry in part]
        at = offsets_of(np.array([len(part) for part in parts], np.int64))
        return at, np.array([column for column, _ in flat], np.int64), np.array([weight for _, weight in flat], float)

    removed_at, removed, removed_weights = compressed(removals)
    added_at, added, added_weights = compressed(additions)
    found, used = np.zeros(removed.size, np.bool_), int(ends.max(initial=0))
    new_begins, new_ends = np.empty((2, rows.size), np.int64)
    before = indices[:used].copy()
    at = named(
        kernels.rewrite_rows, rows, begins, ends, indices, weights, removed_at, removed, removed_weights if weighted else None, found,
        added_at, added, added_weights if weighted else None, used, new_begins, new_ends, sums := np.empty(rows.size),
    )  # fmt: skip
    assert found.all()
    assert (indices[:used] == before).all()
    assert new_begins.tolist() == [used, *new_ends.tolist()][: rows.size]
    assert at == ([used, *new_ends.tolist()])[-1]
    for i, row in enumerate(expected):
        assert sorted(column for column, _ in entries(new_begins, new_ends, indices, weights, i)) == [c for c, _ in row]
        if weighted:
            assert sorted(entries(new_begins, new_ends, indices, weights, i)) == row
        assert sums[i] == pytest.approx(sum(weight for _, weight in row) if weighted else len(row), rel=1e-15)


def test_any_weight_is_removed_and_reported():
    indices, weights = np.array([5, 7, 5, 0, 0, 0], np.int32), np.array([2.0, 1.0, 3.0, 0, 0, 0])
    found, removed_weights = np.zeros(3, np.bool_), np.array([np.nan, 3.0, 1.0])
    ends, zero = np.array([3]), np.zeros(1, np.int64)
    new_begins, new_ends = np.empty((2, 1), np.int64)
    at = named(
        kernels.rewrite_rows, zero, zero, ends, indices, weights, np.array([0, 3]), np.array([5, 5, 9]), removed_weights, found,
        np.zeros(2, np.int64), np.empty(0, np.int64), np.empty(0), 3, new_begins, new_ends, np.empty(1),
    )  # fmt: skip
    assert (at, found.tolist(), removed_weights.tolist()) == (4, [True, True, False], [2.0, 3.0, 1.0])
    assert indices[3] == 7


@pytest.mark.parametrize("to", INDEX)
@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [*ROWS, 16_383, 16_384, 16_385, 40_000])
def test_rows_are_copied_in_order(n, index, to, weighted):
    begins, ends, indices, weights = random_rows(n, index, weighted=weighted)
    offsets = offsets_of(ends - begins)
    for threads in (1, 3):
        copied = np.empty(offsets[-1] + 5, to), np.empty(offsets[-1] + 5) if weighted else None
        kernels.compact_rows(begins, ends, indices, weights, offsets, *copied, threads)
        edges = np.repeat(begins - offsets[:-1], ends - begins) + np.arange(offsets[-1])
        assert (copied[0][:-5] == indices[edges]).all()
        assert weights is None or (copied[1][:-5] == weights[edges]).all()


@pytest.mark.parametrize("n", ROWS)
def test_row_sums_are_compensated(n):
    begins, ends, indices, _ = random_rows(n, np.int32)
    used = int(ends.max(initial=0))
    weights = np.tile(10.0 ** np.random.default_rng(1).uniform(-12, 12, used), 2)
    sums, nothing, none = np.empty(n), np.empty(0, np.int64), np.zeros(n + 1, np.int64)
    named(
        kernels.rewrite_rows, np.arange(n), begins, ends, np.tile(indices[:used], 2), weights, none, nothing, np.empty(0),
        np.empty(0, np.bool_), none, nothing, np.empty(0), used, *np.empty((2, n), np.int64), sums,
    )  # fmt: skip
    for row in range(n):
        exact = sum(map(Fraction, weights[begins[row] : ends[row]].tolist()), Fraction(0))
        assert abs(Fraction(sums[row]) - exact) <= exact * Fraction(2, 2**53)


@pytest.mark.parametrize("n", ROWS)
def test_change_is_committed(n):
    begins, ends, _, _ = random_rows(n, np.int32)
    rows, count = np.arange(0, n, 2), np.array([10])
    for references in (None, np.zeros(n, np.int64)):
        new, values = rows + 1000, np.zeros(n)
        kernels.commit_rows(
            rows,
            new,
            new + 1,
            begins,
            ends,
            values,
            new / 2,
            references,
            None if references is None else new,
            count,
            -3,
        )
        for changed, expected in ((begins, new), (ends, new + 1), (values, new / 2), (references, new)):
            assert changed is None or (changed[rows] == expected).all()
        assert not values[1::2].any()
    assert count[0] == 4
