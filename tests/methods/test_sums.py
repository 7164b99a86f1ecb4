"""Grouped sums: right, and in chains no longer than they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from method_params import examples

from prplugin.cpu import compensated
from prplugin.cpu import pull_kernels as kernels
from prplugin.cpu.sums import GroupSums, group_sum_depth, total
from prplugin.numerics.rounding import FAN_IN, rounding_depth

U = Fraction(1, 2**53)


def exactly(terms):
    return sum((Fraction(float(term)) for term in terms), Fraction(0))


def assert_within_depth(computed, terms, links):
    exact = exactly(terms)
    assert abs(Fraction(float(computed)) - exact) <= links * U / (1 - links * U) * exact


def longest_path(sizes):
    """Count additions by adding counters instead of numbers: a sum's counter is its terms' greatest plus one."""
    depth = 0
    while sizes > 1:
        depth += min(sizes, FAN_IN) - 1
        sizes = -(-sizes // FAN_IN)
    return depth


@pytest.mark.parametrize("terms", [0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 32**3, 32**3 + 1, 10**7])
def test_rounding_depth_is_the_longest_path_up_the_levels(terms):
    assert rounding_depth(terms) == longest_path(terms)
    assert rounding_depth(terms) <= rounding_depth(terms + 1)


@given(size=st.integers(0, 5000), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60), deadline=None)
def test_total(size, seed):
    terms = np.random.default_rng(seed).pareto(0.3, size).clip(max=1e200)
    assert_within_depth(total(terms), terms, rounding_depth(size))


LENGTHS = st.lists(st.sampled_from([0, 1, 2, 31, 32, 33, 64, 65, 500, 1024, 1025, 3000]), max_size=6)


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
    pulled, one = np.zeros(n), np.ones(1)
    if n:
        kernels.step(
            0, -(-n // kernels.BLOCK), offsets.astype(np.uint64), np.arange(offsets[-1]).astype(np.uint32), None,
            np.uint64(fan_in), np.ones(n), terms, 1.0, 0.0, 0 * one, 0 * one, pulled, np.empty(n), kernels.NO_MOVES, False,
            np.empty((-(-n // kernels.BLOCK), 3)),
        )  # fmt: skip
    for row, length in enumerate(lengths):
        part = terms[offsets[row] : offsets[row + 1]]
        assert_within_depth(sums[row], part, group_sum_depth(length))
        assert_within_depth(
            pulled[row], part, kernels.group_sum_depth(length) if fan_in >= kernels.fan_in_for(length) else length
        )


@given(lengths=LENGTHS, seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_sums_of_groups_have_the_same_bits_in_any_order_of_the_groups_and_in_the_kernel(lengths, seed, weighted):
    random = np.random.default_rng(seed)
    offsets, n = np.cumsum([0, *lengths]), len(lengths)
    rows = np.repeat(np.arange(n), lengths)
    terms = random.pareto(0.3, rows.size).clip(max=1e200)
    weights = random.random(rows.size) if weighted else None
    products = terms if weights is None else terms * weights
    sums = GroupSums(rows, n)(products)
    mixed = random.permutation(rows)  # groups in any order, each with its terms in their order
    own = np.empty_like(mixed)
    own[np.argsort(mixed, kind="stable")] = np.arange(rows.size)
    assert GroupSums(mixed, n)(products[own]).tobytes() == sums.tobytes()
    pulled = np.empty(n)
    kernels.row_sums(
        0, n, offsets.astype(np.uint64), np.arange(rows.size).astype(np.uint32), weights,
        np.uint64(kernels.fan_in_for(max(lengths, default=0))), terms, pulled,
    )  # fmt: skip
    assert pulled.tobytes() == sums.tobytes()


@pytest.mark.parametrize("in_degree", [0, 1, 32, 33, 1024, 1025, 32**3, 32**3 + 1, 10**6, 10**9])
def test_the_rounding_depth_of_the_kernel(in_degree):
    """Follow its loops with counters for numbers: how often is a term added before the sum is whole?"""
    fan_in = kernels.fan_in_for(in_degree)
    assert fan_in == 32 or (fan_in - 1) ** 3 < in_degree <= fan_in**3
    groups = -(-in_degree // fan_in)
    wide = -(-groups // fan_in)
    assert min(in_degree, fan_in) + min(groups, fan_in) + wide <= kernels.group_sum_depth(in_degree) <= 3 * fan_in + 2


@given(size=st.integers(0, 3000), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(30), deadline=None)
def test_compensated_sums(size, seed):
    random = np.random.default_rng(seed)
    groups = random.integers(0, 3, size).astype(np.int32)
    terms = random.pareto(0.3, size).clip(max=1e200)
    sums, links = compensated.compensated_sums(groups, terms, 4)
    for group in range(4):
        assert_within_depth(sums[group], terms[groups == group], links)
    assert sums[3] == 0


def test_the_kernels_grouping_is_as_deep_as_it_says():
    # Each addition loses half a unit at the worst: one large term, then many that vanish one by one in a plain sum.
    size = 100_000
    terms = np.full(size, 2.0**-53)
    terms[0] = 1.0
    assert abs(exactly(terms) - 1) > 1000 * U
    for links, computed in (
        (rounding_depth(size), total(terms)),
        (group_sum_depth(size), GroupSums(np.zeros(size, int), 1)(terms)[0]),
    ):
        assert_within_depth(computed, terms, links)
    assert float(np.add.accumulate(terms)[-1]) == 1.0
