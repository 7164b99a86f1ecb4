"""Weights of decaying edges as they are stored, compared with rational and integer arithmetic."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from prplugin.streams.decay import (
    ZERO_EXPONENT,
    ScaledWeights,
    decay_weights,
    roundings_of,
    times_of_stored,
    weights_at,
)
from prplugin.types.edges import Coo

LEAST_NORMAL = sys.float_info.min
WEIGHTS = np.array([1.0, 0.75, 5e-324, 1e300, 3.0, 0.0])


def values(scaled):
    """Return significand * 2**exponent exactly; 0 for weights without an exponent."""
    pairs = zip(scaled.significands.tolist(), scaled.exponents.tolist(), strict=True)
    return [
        0 if exponent == ZERO_EXPONENT else Fraction(digits) * Fraction(2) ** exponent for digits, exponent in pairs
    ]


@pytest.mark.parametrize("time", [0.0, 7.0, -3.0, 4000.0, -5000.0])
def test_weights_of_whole_half_lives_are_exact(time):
    times = np.full(WEIGHTS.size, time)
    expected = [Fraction(weight) * Fraction(2) ** int(time) for weight in WEIGHTS.tolist()]
    assert values(ScaledWeights.of(WEIGHTS, times)) == expected
    assert values(ScaledWeights.of(None, times)) == [Fraction(2) ** int(time)] * WEIGHTS.size
    assert (ScaledWeights.of(WEIGHTS, times).exponents[-1]) == ZERO_EXPONENT  # of a weight of 0


def test_fractions_of_half_lives_are_powers_of_2():
    times = np.array([0.5, -0.25, 10.125, -7.75])
    found = [float(value) for value in values(ScaledWeights.of(np.full(4, 3.0), times))]
    np.testing.assert_allclose(found, 3 * 2**times, rtol=1e-15)


def fingerprint(significand, exponent):
    """Return what is stored of a faint weight, by integers: the digits of its fraction, and its exponent, spread."""
    fraction, power = math.frexp(significand)
    digits = int(np.float64(fraction).view(np.uint64)) & ((1 << 52) - 1)
    number = (digits + (power + exponent) % 2**64 * 0x9E3779B97F4A7) % 2**64 % ((1 << 52) - 1) + 1
    return float(np.uint64(number).view(np.float64))


def test_stored_weights_are_divided_exactly_or_are_fingerprints():
    significands = np.array([0.5, 0.75, 0.5, 0.5, 0.625, 0.5, 1.25, 1.5])
    exponents = np.array([0, 3, -1021, -1022, -1500, -3000, -1501, ZERO_EXPONENT])
    for reference in (0, 2, -40):
        found = ScaledWeights(significands, exponents).stored(np.full(8, reference)).tolist()
        for significand, exponent, one in zip(significands.tolist(), exponents.tolist(), found, strict=True):
            exact = Fraction(significand) * Fraction(2) ** (exponent - reference) if exponent > ZERO_EXPONENT else None
            if exact is None:
                assert one == significand  # as it was stored
            elif exact < Fraction(LEAST_NORMAL):
                assert one == fingerprint(significand, exponent)
                assert 0 < one < LEAST_NORMAL
            else:
                assert Fraction(one) == exact
    huge = ScaledWeights(np.array([0.5]), np.array([5000])).stored(np.array([0]))
    assert huge.tolist() == [math.inf]


def test_what_is_stored_is_read_again():
    stored, references = np.array([1.0, 1.5, LEAST_NORMAL, 5e-324, 3e-310, 0.0]), np.full(6, -77)
    assert times_of_stored(stored, references).tolist() == [-77.0] * 3 + [float(ZERO_EXPONENT)] * 3
    again = ScaledWeights.of_stored(stored, references)
    assert again.stored(references).tolist() == stored.tolist()
    assert again.exponents[3:].tolist() == [ZERO_EXPONENT] * 3
    assert (again.stored(references + 4)[:2] * 16).tolist() == [1.0, 1.5]


@pytest.mark.parametrize("shift", [0.0, 3.0, -2.0, 0.5])
def test_weights_at_a_time(shift):
    stored, references = np.array([1.0, 1.5, 0.75, LEAST_NORMAL, 5e-324, 0.0]), np.array([0, 5, -9, 1000, 1000, 1000])
    found = weights_at(stored, references, shift)
    expected = [1.0, 48.0, 0.75 / 512, LEAST_NORMAL * 2.0**1000, 0.0, 0.0] / np.exp2(shift)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert weights_at(np.array([1.0]), np.array([-3999]), 0.0).tolist() == [0.0]
    assert weights_at(np.array([1.0]), np.array([-9000]), 0.0).tolist() == [0.0]


def test_edges_are_divided_by_the_highest_power_of_their_source():
    source, times = np.array([0, 0, 1, 2, 2], np.int32), np.array([0.0, -1200.0, -50.0, 3.0, 1.0])
    for weights in (None, np.array([1.0, 4.0, 1.0, 0.0, 1.0])):
        edges = Coo(source, source[::-1].copy(), weights, 4, times=times)
        found, references = decay_weights(edges)
        exact = [
            Fraction(w) * Fraction(2) ** int(t)
            for w, t in zip([1] * 5 if weights is None else weights, times, strict=True)
        ]
        assert found.times is None
        assert (found.extent, found.roundings) == ((5e-324, 2.0), math.ceil(2.773 * 1200) + 8)
        assert references[3] == ZERO_EXPONENT
        for at, (vertex, one) in enumerate(zip(source, found.weights.tolist(), strict=True)):
            if at == 1:
                assert 0 < one < LEAST_NORMAL
            else:
                assert Fraction(one) * Fraction(2) ** int(references[vertex]) == exact[at]
                assert one <= 2.0
        assert max(found.weights[source == 2]) >= 0.5


@pytest.mark.parametrize(("times", "roundings"), [([], 8), ([0.0], 8), ([1.0], 11), ([-10.0, 2.0], 36), ([100.0], 286)])
def test_roundings_grow_with_the_age(times, roundings):
    assert roundings_of(np.array(times, float)) == roundings
