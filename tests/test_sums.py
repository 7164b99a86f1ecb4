"""Grouped sums: right, and in chains no longer than they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prplugin.cpu import compensated
from prplugin.cpu import pull_kernels as kernels
from prplugin.cpu.sums import RowSums, total
from prplugin.numerics.rounding import FAN, chain

U = Fraction(1, 2**53)


def exactly(terms):
    return sum((Fraction(float(term)) for term in terms), Fraction(0))


def assert_within_chain(computed, terms, links):
    exact = exactly(terms)
    assert abs(Fraction(float(computed)) - exact) <= links * U / (1 - links * U) * exact


def longest_chain(sizes):
    """Count additions by adding counters instead of numbers: a sum's counter is its terms' greatest plus one."""
    depth = 0
    while sizes > 1:
        depth += min(sizes, FAN) - 1
        sizes = -(-sizes // FAN)
    return depth


@pytest.mark.parametrize("terms", [0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 32**3, 32**3 + 1, 10**7])
def test_chain_is_the_longest_way_up_the_levels(terms):
    assert chain(terms) == longest_chain(terms)
    assert chain(terms) <= chain(terms + 1)


@given(size=st.integers(0, 5000), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_total(size, seed):
    terms = np.random.default_rng(seed).pareto(0.3, size).clip(max=1e200)
    assert_within_chain(total(terms), terms, chain(size))


LENGTHS = st.lists(st.sampled_from([0, 1, 2, 31, 32, 33, 64, 65, 500, 1024, 1025, 3000]), max_size=6)


@pytest.mark.parametrize("fan", [2, 7, 32])
@given(lengths=LENGTHS, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_row_sums_of_both_methods(fan, lengths, seed):
    offsets = np.cumsum([0, *lengths])
    terms = np.random.default_rng(seed).pareto(0.3, offsets[-1]).clip(max=1e200)
    grouped = RowSums(offsets)
    sums = grouped(terms)
    assert grouped.chain == chain(max(lengths, default=0))
    assert sums.dtype == np.float64
    n = len(lengths)
    pulled, one = np.zeros(n), np.ones(1)
    if n:
        kernels.sweep(
            0, -(-n // kernels.BLOCK), offsets.astype(np.uint64), np.arange(offsets[-1]).astype(np.uint32), None,
            np.uint64(fan), np.ones(n), terms, 1.0, 0.0, 0 * one, 0 * one, pulled, np.empty(n), None,
            np.empty((-(-n // kernels.BLOCK), 3)),
        )  # fmt: skip
    for row, length in enumerate(lengths):
        part = terms[offsets[row] : offsets[row + 1]]
        assert_within_chain(sums[row], part, chain(length))
        assert_within_chain(pulled[row], part, kernels.pull_chain(length) if fan >= kernels.fan_for(length) else length)


@pytest.mark.parametrize("in_degree", [0, 1, 32, 33, 1024, 1025, 32**3, 32**3 + 1, 10**6, 10**9])
def test_the_chains_of_the_kernel(in_degree):
    """Follow its loops with counters for numbers: how often is a term added before the sum is whole?"""
    fan = kernels.fan_for(in_degree)
    assert fan == 32 or (fan - 1) ** 3 < in_degree <= fan**3
    groups = -(-in_degree // fan)
    wide = -(-groups // fan)
    assert min(in_degree, fan) + min(groups, fan) + wide <= kernels.pull_chain(in_degree) <= 3 * fan + 2


@given(size=st.integers(0, 3000), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_compensated_sums(size, seed):
    random = np.random.default_rng(seed)
    groups = random.integers(0, 3, size).astype(np.int32)
    terms = random.pareto(0.3, size).clip(max=1e200)
    sums, links = compensated.compensated_sums(groups, terms, 4)
    for group in range(4):
        assert_within_chain(sums[group], terms[groups == group], links)
    assert sums[3] == 0


def test_the_kernels_grouping_is_as_deep_as_it_says():
    # Each addition loses half a unit at the worst: one large term, then many that vanish one by one in a plain sum.
    size = 100_000
    terms = np.full(size, 2.0**-53)
    terms[0] = 1.0
    assert abs(exactly(terms) - 1) > 1000 * U
    for links, computed in ((chain(size), total(terms)), (chain(size), RowSums(np.array([0, size]))(terms)[0])):
        assert_within_chain(computed, terms, links)
    assert float(np.add.accumulate(terms)[-1]) == 1.0
