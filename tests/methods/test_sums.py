"""Grouped sums: their errors are within their rounding depths."""

from __future__ import annotations

import weakref
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_calls import named
from method_params import examples

from prplugin.cpu import kernels
from prplugin.cpu.packing import PIECE
from prplugin.cpu.sums import BLOCK_ROWS, GroupSums, compensated_sums, packed_depth, total
from prplugin.methods.engines.packed_rows import Rows, joined
from prplugin.methods.native import Pull
from prplugin.numerics import FAN_IN, fan_in_for, group_sum_depth, rounding_depth

U = Fraction(1, 2**53)


def exact_sum(terms):
    return sum((Fraction(float(term)) for term in terms), Fraction(0))


def assert_within_depth(computed, terms, depth):
    exact = exact_sum(terms)
    assert abs(Fraction(float(computed)) - exact) <= depth * U / (1 - depth * U) * exact


def longest_path(sizes):
    """Return the maximum number of additions that a term passes through, summed over the levels."""
    depth = 0
    while sizes > 1:
        depth += min(sizes, FAN_IN) - 1
        sizes = -(-sizes // FAN_IN)
    return depth


@pytest.mark.parametrize("terms", [0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 32**3, 32**3 + 1, 10**7])
def test_rounding_depth_is_longest_path_of_additions(terms):
    assert rounding_depth(terms) == longest_path(terms)
    assert rounding_depth(terms) <= rounding_depth(terms + 1)


@given(size=st.integers(0, 5000), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60), deadline=None)
def test_total(size, seed):
    terms = np.random.default_rng(seed).pareto(0.3, size).clip(max=1e200)
    assert_within_depth(total(terms), terms, rounding_depth(size))


LENGTHS = st.lists(st.sampled_from([0, 1, 2, 31, 32, 33, 64, 65, 500, 1024, 1025, 3000]), max_size=6)


class FailingArray:
    """Array on a device without memory for the sum."""

    def __len__(self):
        return 3

    def __array_ufunc__(self, *arguments, **options):
        raise MemoryError

    def sum(self, axis):
        raise MemoryError


def test_total_releases_its_argument_if_allocation_fails():
    # NumPy's reductions never release an argument whose override raises.
    terms = FailingArray()
    reference = weakref.ref(terms)
    with pytest.raises(MemoryError):
        total(terms)
    del terms
    assert reference() is None


@pytest.mark.parametrize("fan_in", [2, 7, 32])
@given(lengths=LENGTHS, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40), deadline=None)
def test_row_sums_of_both_methods(fan_in, lengths, seed):
    offsets = np.cumsum([0, *lengths])
    terms = np.random.default_rng(seed).pareto(0.3, offsets[-1]).clip(max=1e200)
    n = len(lengths)
    rows = np.repeat(np.arange(n), lengths)
    grouped = GroupSums(rows, n)
    sums = grouped(terms)
    assert grouped.depth == group_sum_depth(max(lengths, default=0))
    assert sums.dtype == np.float64
    kernel_sums, one, padded = np.zeros(n), np.ones(1), np.append(terms, np.zeros(n))
    if n:
        named(
            kernels.step_rows,
            offsets, np.arange(offsets[-1], dtype=np.int32), None, np.ones(n), 0 * one, 0 * one, 1.0, fan_in, 0.0,
            kernel_sums, padded, np.empty_like(padded), None, np.empty((-(-n // BLOCK_ROWS), 4)), 1,
        )  # fmt: skip
    for row, length in enumerate(lengths):
        part = terms[offsets[row] : offsets[row + 1]]
        assert_within_depth(sums[row], part, group_sum_depth(length))
        assert_within_depth(kernel_sums[row], part, group_sum_depth(length) if fan_in >= fan_in_for(length) else length)


@given(lengths=LENGTHS, seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_group_sums_have_same_bits_in_any_order(lengths, seed, weighted):
    random = np.random.default_rng(seed)
    n = len(lengths)
    rows = np.repeat(np.arange(n), lengths)
    terms = random.pareto(0.3, rows.size).clip(max=1e200)
    weights = random.random(rows.size) if weighted else None
    products = terms if weights is None else terms * weights
    sums = GroupSums(rows, n)(products)
    shuffled = random.permutation(rows)  # shuffle the groups; each keeps the order of its terms
    order = np.empty_like(shuffled)
    order[np.argsort(shuffled, kind="stable")] = np.arange(rows.size)
    assert GroupSums(shuffled, n)(products[order]).tobytes() == sums.tobytes()


@pytest.mark.parametrize("in_degree", [0, 1, 32, 33, 1024, 1025, 32**3, 32**3 + 1, 10**6, 10**9])
def test_rounding_depth_of_kernel(in_degree):
    """Count the additions that a term passes through in the loops of the kernel."""
    fan_in = fan_in_for(in_degree)
    assert fan_in == 32 or (fan_in - 1) ** 3 < in_degree <= fan_in**3
    groups = -(-in_degree // fan_in)
    wide = -(-groups // fan_in)
    assert min(in_degree, fan_in) + min(groups, fan_in) + wide <= group_sum_depth(in_degree) <= 3 * fan_in + 2


@given(size=st.integers(0, 3000), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(30), deadline=None)
def test_compensated_sums(size, seed):
    random = np.random.default_rng(seed)
    groups = random.integers(0, 3, size).astype(np.int32)
    terms = random.pareto(0.3, size).clip(max=1e200)
    sums, depth = compensated_sums(groups, terms, 4)
    for group in range(4):
        assert_within_depth(sums[group], terms[groups == group], depth)
    assert sums[3] == 0


def test_grouped_sums_keep_terms_that_plain_sum_loses():
    # Worst case of a plain sum: every small term is lost when it is added to the large one.
    size = 100_000
    terms = np.full(size, 2.0**-53)
    terms[0] = 1.0
    exact = 1 + (size - 1) * U
    sums, compensated_depth = compensated_sums(np.zeros(size, np.int32), terms, 1)
    assert compensated_depth == 2
    for depth, computed in (
        (rounding_depth(size), total(terms)),
        (group_sum_depth(size), GroupSums(np.zeros(size, int), 1)(terms)[0]),
        (compensated_depth, sums[0]),
    ):
        assert abs(Fraction(float(computed)) - exact) <= depth * U * exact
    assert float(np.add.accumulate(terms)[-1]) == 1.0


def test_long_rows_of_packed_edges_are_summed_with_compensation():
    """A row of 400 pieces, each of which is lost when it is added to the first."""
    pieces, small = 400, 2.0**-54
    offsets, sources = np.array([0, pieces * PIECE, pieces * PIECE]), np.ones(pieces * PIECE, np.int32)
    sources[0] = 0
    packed = joined([Rows(offsets, sources, None)], 1)
    summed = Pull(packed, None, np.ones(2), np.zeros(1), np.zeros(1), 0.5, fan_in_for(PIECE), 1)
    ranks = np.array([1.0, small / PIECE])
    summed.start(ranks)
    summed.iterate(1)
    exact = 1 + Fraction(ranks[1]) * (sources.size - 1)
    depth = packed_depth(sources.size)
    assert 2 * depth * U < exact - 1  # what plain additions of the pieces lose
    assert abs(2 * Fraction(summed.ranks[0]) - exact) <= depth * U * exact
