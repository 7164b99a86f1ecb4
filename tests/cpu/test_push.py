"""Kernels of pushes, compared with plain Python."""

from __future__ import annotations

import math
import signal
from functools import partial

import numpy as np
import pytest
from kernel_calls import named

from prplugin.cpu import kernels

SIZES = [0, 1, 2, 7, 8, 9, 1023, 1024, 1025, 5000]
INDEX = [np.int32, np.int64]


def random_edges(n, index, *, weighted, seed=0):
    """Return the out-edges of a graph as the kernels take them, and the out-weights."""
    random = np.random.default_rng(seed)
    ends = np.cumsum(random.integers(0, 6, n))
    begins = np.append(0, ends)[:n]
    indices = random.integers(0, max(n, 1), int(ends[-1]) if n else 0).astype(index)
    weights = random.exponential(size=indices.size) if weighted else None
    ones = np.ones(indices.size) if weights is None else weights
    out_weight = np.bincount(np.repeat(np.arange(n), ends - begins), ones, n).astype(float)
    return begins, ends, indices, weights, out_weight


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("n", SIZES)
def test_contributions_are_added(n, index, weighted):
    begins, ends, indices, weights, out_weight = edges = random_edges(n, index, weighted=weighted)
    random = np.random.default_rng(1)
    y, r, error = random.random(n), random.normal(size=n), np.zeros(1)
    source = np.repeat(np.arange(n), ends - begins)
    contributions = 0.85 * y[source] * (1.0 if weights is None else weights) / out_weight[source]
    expected, rounded = r.copy(), 3 * 0.85 * y[out_weight > 0].sum()
    for target, contribution in zip(indices.tolist(), contributions.tolist(), strict=True):
        expected[target] += contribution
        rounded += abs(expected[target])
    kernels.add_contributions(*edges, y, 0.85, r, 3, error)
    np.testing.assert_allclose(r, expected, rtol=1e-13, atol=1e-13)
    assert error[0] == pytest.approx(rounded, rel=1e-12)


def push_in_python(selected, edges, y, alpha, r, threshold, relaxation, depth):
    """Push as push.cpp documents it; return the edges spent, and the bound of the rounding errors."""
    begins, ends, indices, weights, out_weight = edges
    spent, rounded = 0, 0.0
    for u in selected:
        degree, value = int(ends[u] - begins[u]), r[u]
        if abs(value) <= threshold * (degree + kernels.PUSH_COST):
            continue
        spent += degree + kernels.PUSH_COST
        old = y[u]
        y[u] = old + (value * relaxation if out_weight[u] > 0 else value)
        pushed = y[u] - old
        r[u] = value - pushed
        rounded += abs(pushed) * (1 + alpha * (1 + depth) * (out_weight[u] > 0))
        for edge in range(begins[u], ends[u]):
            if out_weight[u] > 0:
                per_weight = alpha * pushed / out_weight[u]
                target = int(indices[edge])
                r[target] += per_weight if weights is None else per_weight * weights[edge]
                rounded += abs(r[target])
    return spent, rounded


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("n", SIZES)
def test_pushes_of_all_vertices_are_those_of_python(n, index, weighted):
    edges = random_edges(n, index, weighted=weighted)
    random = np.random.default_rng(2)
    y, r, error, threshold = random.random(n), random.normal(size=n), np.zeros(1), 0.05
    costs = (edges[1] - edges[0] + kernels.PUSH_COST).astype(np.float32)
    expected_y, expected_r = y.copy(), r.copy()
    selected = np.flatnonzero(np.abs(r) > threshold * costs).tolist()
    spent, rounded = push_in_python(selected, edges, expected_y, 0.9, expected_r, threshold, 1.1, 4)
    assert spent == named(kernels.push_all, costs, np.empty(n, index), threshold, 1.1, *edges, y, 0.9, r, 4, error)
    assert (y.tolist(), r.tolist()) == (expected_y.tolist(), expected_r.tolist())
    assert error[0] == pytest.approx(rounded, rel=1e-12)


def sweep_in_python(listed, marks, listed_from, edges, y, alpha, r, threshold, depth):
    """Sweep over the list as push.cpp documents it, and append new vertices; return as `push_in_python`."""
    begins, ends, indices, weights, out_weight = edges
    spent, rounded = 0, 0.0
    for u in listed:  # grows
        degree, value, sends = int(ends[u] - begins[u]), r[u], out_weight[u] > 0
        if value == 0 or (sends and abs(value) <= threshold * (degree + kernels.PUSH_COST)):
            continue
        spent += kernels.PUSH_COST + degree * sends
        old = y[u]
        y[u] = old + value
        pushed = y[u] - old
        r[u] = value - pushed
        rounded += abs(pushed) * (1 + alpha * (1 + depth) * (out_weight[u] > 0))
        for edge in range(begins[u], ends[u] if sends else begins[u]):
            target = int(indices[edge])
            r[target] += alpha * pushed / out_weight[u] * (1.0 if weights is None else weights[edge])
            rounded += abs(r[target])
            if abs(r[target]) > listed_from and not marks[target]:
                listed.append(target)
                marks[target] = True
    return spent, rounded


@pytest.mark.parametrize("listed_from", [0.0, 0.001])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("n", SIZES)
def test_sweeps_over_a_list_are_those_of_python(n, index, weighted, listed_from):
    edges = random_edges(n, index, weighted=weighted)
    degrees, sends = edges[1] - edges[0], edges[4] > 0
    random = np.random.default_rng(2)
    y, r = np.zeros(n), np.zeros(n)
    seeds = random.permutation(n)[: max(n // 100, 1)].tolist()
    r[seeds] = random.random(len(seeds)) + 0.01
    expected_y, expected_r, listed, done, ratio = y.copy(), r.copy(), list(seeds), np.zeros(2), 0.01
    marks = np.zeros(n, np.bool_)
    marks[seeds] = True
    found, count, is_listed, sums = np.zeros(n, index), np.array([len(seeds)]), marks.copy(), np.zeros(3)
    found[: len(seeds)] = seeds
    while True:
        sending = [u for u in listed if sends[u]]
        residual, total = np.abs(expected_r[sending]).sum(), (expected_y + expected_r)[listed].sum()
        if residual <= ratio * total:
            break
        threshold = 0.9 * residual / sum(degrees[u] + kernels.PUSH_COST for u in sending)
        done += sweep_in_python(listed, marks, listed_from, edges, expected_y, 0.9, expected_r, threshold, 4)
    arguments = *edges, y, 0.9, r, 4, sums
    assert done[0] == named(kernels.push_listed, found, count, is_listed, listed_from, 0.0, ratio, 1e9, 1e9, *arguments)
    assert (y.tolist(), r.tolist()) == (expected_y.tolist(), expected_r.tolist())
    assert found[: count[0]].tolist() == listed
    assert is_listed.tolist() == marks.tolist()
    np.testing.assert_allclose(sums, [residual, total, done[1]], rtol=1e-12)
    values = np.empty(len(listed))
    kernels.collect_listed(found[: len(listed)], is_listed, y, r, 1, values)
    assert values.tolist() == (expected_y + expected_r)[listed].tolist()
    assert not is_listed.any()
    assert not y[listed].any()
    assert not r[listed].any()


def test_sweeps_end_when_their_budget_is_not_expected_to_suffice():
    edges = random_edges(5000, np.int32, weighted=False)
    y, r, marks, sums, count = np.zeros(5000), np.zeros(5000), np.zeros(5000, np.bool_), np.zeros(3), np.array([1])
    seed = int(np.argmax(edges[4]))
    r[seed], marks[seed] = 1.0, True
    found = np.full(5000, seed, np.int32)
    spent = named(kernels.push_listed, found, count, marks, 0.0, 0.0, 1e-12, 2e4, 2e3, *edges, y, 0.99, r, 4, sums)
    assert 2_000 <= spent < 20_000
    assert sums[0] > 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_contributions_follow_changed_rows(weighted):
    # Vertices 0 .. 2 send to 3 .. 6: 0 loses an edge and gains one, 1 gets its first, 2 loses its last.
    y, r, error, alpha = np.arange(1.0, 8.0), np.zeros(7), np.zeros(1), 0.5
    rows, weights = np.arange(3), np.array([2.0, 3.0]) if weighted else None
    one = 1.0 if weights is None else 2.0
    old, new = np.array([4.0, 0.0, 3.0 if weighted else 1.0]), np.array([5.0, one, 0.0])
    named(
        kernels.change_rows, rows, np.array([0, 1, 1, 2]), np.array([3, 4]), weights, np.array([0, 1, 2, 2]), np.array([5, 6]),
        None if weights is None else np.array([3.0, 2.0]), old, new, y, alpha, r, 2, error,
    )  # fmt: skip
    first, more = 1.0 if weights is None else 2.0, 1.0 if weights is None else 3.0
    expected = [-0.25, 0, 0, -alpha * first / 4, -alpha * 3, alpha * 1.25 * more / 5, alpha * 2]
    np.testing.assert_allclose(r, expected, rtol=1e-15)
    assert y.tolist() == [1.25, *range(2, 8)]
    # Each new r rounds once; 2 roundings of contributions along removed and added edges, and twice along the others.
    of_y = sum(abs(before) + 3 * abs(after) for before, after in ((1, 1.25), (2, 2), (3, 3)))
    assert error[0] == pytest.approx(np.abs(expected).sum() + 0.25 + 2 * alpha * of_y, rel=1e-12)


@pytest.mark.parametrize(("old", "new"), [(np.nan, 1.0), (1.0, 2.0**21), (2.0**21, 1.0)])
def test_extreme_changes_make_residual_unknown(old, new):
    y, r, error, none = np.ones(1), np.ones(1), np.zeros(1), np.zeros(2, np.int64)
    no_edges = none, np.empty(0, np.int64), None
    named(kernels.change_rows, none[:1], *no_edges, *no_edges, np.array([old]), np.array([new]), y, 0.85, r, 2, error)
    assert (error[0], y[0], r[0]) == (math.inf, 1.0, 1.0)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_norms_and_ranks(n, given, center):
    random = np.random.default_rng(3)
    y, r = random.random(n), random.normal(size=n)
    v = random.random(n) if given else None
    sums, error, before = np.empty(5), np.zeros(1), r.copy()
    kernels.residual_norms(y, r, v, 2.0, center, error, sums)
    sum_r = math.fsum(before) / (1 if given or not n else n)
    centered = before - sum_r * (1.0 if v is None else v)
    expected = [2.0 - sum_r * center, y.sum(), np.abs(before).sum(), np.abs(centered).sum(), sum_r * (not center)]
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(r, centered if center else before, rtol=1e-12, atol=1e-12)
    assert error[0] == pytest.approx((expected[3] + 2 * expected[2]) * center, rel=1e-12)
    ranks = np.empty(n)
    kernels.residual_ranks(y, before, v, sum_r, 3.0, ranks)
    np.testing.assert_allclose(ranks, np.maximum(y + centered, 0) / 3.0, rtol=1e-12, atol=1e-12)


class InterruptError(Exception):
    """Raised by the handler of a signal."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timer")
@pytest.mark.parametrize("pushes", [False, True])
def test_signal_ends_long_kernels(pushes):
    # A million vertices with the same thousand out-edges to vertex 0.
    n, degree = 1_000_000, 1000
    y, r, error, ends = np.ones(n), np.zeros(n), np.zeros(1), np.full(n, degree)
    edges = np.zeros(n, np.int64), ends, np.zeros(degree, np.int32), None, ends.astype(float)
    long_call = partial(kernels.add_contributions, *edges, y, 0.85, r, 2, error)
    if pushes:
        r[1:] = 1e6
        costs, selected = np.full(n, 1004, np.float32), np.empty(n, np.int32)
        long_call = partial(named, kernels.push_all, costs, selected, 1.0, 1.0, *edges, y, 0.85, r, 2, error)

    def handle(signum, frame):
        raise InterruptError

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(InterruptError):
            long_call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    done = np.count_nonzero(y > 1) if pushes else r[0] / 0.85
    assert 0 < done < n / 2
