"""Rounding errors of a residual, as the kernels of pushes bound them, compared with exact ones and with their terms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from kernel_calls import named

from conformance import bounds as exact
from prplugin.cpu import kernels

SLACK = Fraction(1, 10**9)  # for the sums of the kernels, which `prplugin.streams.bounds` covers
NONE = np.empty(0, np.int64)


class Coo:
    """Out-edges of a graph; stated out-weights are off by up to `depth` roundings, as sums of weights may be."""

    def __init__(self, rows, weights=None, depth=0, seed=0):
        """`rows`: The targets of each vertex; `weights`: their weights."""
        self.rows, self.weights = rows, weights
        self.begins = np.append(0, np.cumsum([len(row) for row in rows]))[:-1]
        self.ends = self.begins + [len(row) for row in rows]
        self.indices = np.array([target for row in rows for target in row], np.int32)
        ones = [[1.0] * len(row) for row in rows]
        self.flat = None if weights is None else np.array([weight for row in weights for weight in row])
        self.exact = [[Fraction(weight) for weight in row] for row in (ones if weights is None else weights)]
        self.sums = [sum(row, Fraction(0)) for row in self.exact]
        off = np.random.default_rng(seed).choice([-depth, depth], len(rows)).tolist() if weights else [0] * len(rows)
        self.out_weight = np.array([float(w * (1 + k * exact.U)) for w, k in zip(self.sums, off, strict=True)])
        self.depth = exact.contribution(depth, 0)

    def arguments(self):
        return self.begins, self.ends, self.indices, self.flat, self.out_weight

    def sent(self, y, alpha):
        """Return alpha P^T y, exactly."""
        found = [Fraction(0)] * len(self.rows)
        for u, row in enumerate(self.rows):
            for target, weight in zip(row, self.exact[u], strict=True):
                found[target] += Fraction(alpha) * y[u] * weight / self.sums[u] if self.sums[u] else 0
        return found

    def add(self, u, per_weight, r):
        """Add the contributions of a vertex as the kernels do; return the new entries of r."""
        added = []
        for k, target in enumerate(self.rows[u]):
            r[target] += per_weight if self.weights is None else per_weight * self.weights[u][k]
            added.append(r[target])
        return added


def random_edges(*, weighted, seed, depth=0):
    random = np.random.default_rng(seed)
    rows = [random.integers(0, 60, size).tolist() for size in random.integers(0, 7, 60)]
    weights = [(random.exponential(size=len(row)) + 0.01).tolist() for row in rows] if weighted else None
    return Coo(rows, weights, depth, seed), random


def fractions(values):
    return [Fraction(value) for value in np.asarray(values).tolist()]


def distance(found, expected):
    return sum((abs(a - b) for a, b in zip(fractions(found), expected, strict=True)), Fraction(0))


def push_all(edges, y, alpha, r, *, threshold=0.0, relaxation=1.0):
    """Push by the kernel and in Python; return the error of r, the bound of the kernel, and the terms of the bound."""
    y, r, rho = np.array(y), np.array(r), np.zeros(1)
    before, old_r, expected, expected_y = fractions(y), fractions(r), r.tolist(), y.tolist()
    costs = (edges.ends - edges.begins + kernels.PUSH_COST).astype(np.float32)
    selected = np.flatnonzero(np.abs(r) > threshold * costs).tolist()
    at_vertices = along_edges = Fraction(0)
    for u in selected:
        value, weight = expected[u], float(edges.out_weight[u])
        if abs(value) <= threshold * (len(edges.rows[u]) + kernels.PUSH_COST):
            continue
        old = expected_y[u]
        expected_y[u] = old + (value * relaxation if weight > 0 else value)
        pushed = expected_y[u] - old
        expected[u] = value - pushed
        at_vertices += exact.pushed_at_vertex(pushed)
        if weight > 0:
            added = edges.add(u, alpha * pushed / weight, expected)
            along_edges += exact.pushed_along_edges(alpha, pushed, edges.depth, weight, added)
    named(
        kernels.push_all,
        costs,
        np.empty(r.size, np.int32),
        threshold,
        relaxation,
        *edges.arguments(),
        y,
        alpha,
        r,
        edges.depth,
        rho,
    )
    assert (y.tolist(), r.tolist()) == (expected_y, expected)
    gained = [a - b for a, b in zip(fractions(y), before, strict=True)]
    exact_r = [a - b + c for a, b, c in zip(old_r, gained, edges.sent(gained, alpha), strict=True)]
    return distance(r, exact_r), exact.U * Fraction(rho[0]), (at_vertices, along_edges)


def assert_bound(error, found, derived):
    """Check that a bound is that of its terms, and holds."""
    assert error <= found * (1 + SLACK)
    assert derived * (1 - SLACK) <= found <= derived * Fraction(1001, 1000)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 0.99])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_pushes_are_those_of_their_terms(weighted, alpha, seed):
    edges, random = random_edges(weighted=weighted, seed=seed, depth=2)
    y, r = random.random(60) * 10.0 ** random.integers(-18, 1, 60), random.normal(size=60)
    error, found, terms = push_all(edges, y, alpha, r, threshold=0.05, relaxation=1.1)
    assert_bound(error, found, sum(terms))
    # In sweeps over a list, of all vertices, until no residual is left.
    y, r, sums, listed = np.zeros(60), np.abs(r), np.zeros(3), np.arange(60, dtype=np.int32)
    before = fractions(r)
    named(
        kernels.push_listed, listed, np.array([60]), np.ones(60, np.bool_), 0.0, 0.0, 1e-3, 1e9, 1e9, *edges.arguments(), y, alpha, r,
        edges.depth, sums,
    )  # fmt: skip
    exact_r = [a - b + c for a, b, c in zip(before, fractions(y), edges.sent(fractions(y), alpha), strict=True)]
    pushed = [value * (weight > 0) for value, weight in zip(y.tolist(), edges.out_weight, strict=True)]
    least = sum(map(exact.pushed_at_vertex, y.tolist()))
    least += sum(exact.pushed_along_edges(alpha, value, edges.depth, 0.0, []) for value in pushed)
    # Beside the entries of r after each addition, which sum to at most that of all contributions for each edge.
    most = least + exact.U * 6 * 40 * sum(fractions(y))
    assert max(distance(r, exact_r), least * (1 - SLACK)) <= exact.U * Fraction(sums[2]) <= most


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 0.99])
def test_bound_of_a_residual_computed_anew(weighted, alpha):
    edges, random = random_edges(weighted=weighted, seed=1, depth=2)
    y, r, rho = random.random(60), random.normal(size=60), np.zeros(1)
    expected, derived = r.tolist(), Fraction(0)
    exact_r = [a + b for a, b in zip(fractions(r), edges.sent(fractions(y), alpha), strict=True)]
    for u, weight in enumerate(edges.out_weight.tolist()):
        if weight > 0:
            added = edges.add(u, alpha * y[u] / weight, expected)
            derived += exact.computed_anew(alpha, y[u], edges.depth, weight, added)
    kernels.add_contributions(*edges.arguments(), y, alpha, r, edges.depth, rho)
    assert r.tolist() == expected
    assert_bound(distance(r, exact_r), exact.U * Fraction(rho[0]), derived)


def change_row(old, new, y, alpha, r, kept):
    """Change the out-edges of vertex 0, of which `kept` stay; return error, bound and its term of contributions."""
    y, r, rho = np.array(y), np.array(r), np.zeros(1)
    before, old_r, expected = fractions(y), fractions(r), r.tolist()
    removed, added = slice(kept, None), slice(kept, None)
    old_weight, new_weight, a = float(old.out_weight[0]), float(new.out_weight[0]), float(y[0])
    parts = [
        (np.array([0, len(edges.rows[0][some])]), np.array(edges.rows[0][some], np.int64),
         None if edges.weights is None else np.array(edges.weights[0][some]))
        for edges, some in ((old, removed), (new, added))
    ]  # fmt: skip
    b, additions = a * (new_weight / old_weight), []
    for edges, per_weight in ((old, -alpha * a / old_weight), (new, alpha * b / new_weight)):
        if edges is new:
            expected[0] -= b - a
            left = expected[0]
        for k, target in enumerate(edges.rows[0][kept:], kept):
            expected[target] += per_weight * (1.0 if edges.weights is None else edges.weights[0][k])
            additions.append(expected[target])
    named(
        kernels.change_rows,
        np.zeros(1, np.int64),
        *parts[0],
        *parts[1],
        old.out_weight[:1],
        new.out_weight[:1],
        y,
        alpha,
        r,
        old.depth,
        rho,
    )
    assert (y[0], r.tolist()) == (b, expected)
    sent = zip(new.sent(fractions(y), alpha), old.sent(before, alpha), strict=True)
    gained = [c - d - (e - f) for (c, d), e, f in zip(sent, fractions(y), before, strict=True)]
    exact_r = [x + change for x, change in zip(old_r, gained, strict=True)]
    derived = exact.changed_row(alpha, a, b, old.depth, (old_weight, new_weight), left, additions)
    without = exact.changed_row(alpha, a, b, 0, (0.0, 0.0), left, additions)
    error, found = distance(r, exact_r), exact.U * Fraction(rho[0])
    assert_bound(error, found, derived)
    return error, without


@pytest.mark.parametrize("alpha", [0.3, 0.99])
@pytest.mark.parametrize("ratio", [1.0, 1000.0])
def test_bound_of_a_changed_row(alpha, ratio):
    random = np.random.default_rng(3)
    empty = [[]] * 5
    kept, removed, added = random.exponential(size=4), random.exponential(size=1), ratio * random.exponential(size=3)
    rows = [[1, 2, 3, 4, 5], *empty], [[1, 2, 3, 4, 2, 0, 5], *empty]
    weights = [[*kept, *removed], *empty], [[*kept, *added], *empty]
    old, new = (Coo(row, weight, 2, seed) for row, weight, seed in zip(rows, weights, (0, 1), strict=True))
    change_row(old, new, random.random(6), alpha, random.normal(size=6) / ratio, 4)


# --- terms without which a bound fails ----------------------------------------------------------------------------

STAR = [[1, 2, 3, 4], [], [], [], []]
"""A vertex with four out-edges."""

ROUNDED = Coo(STAR, [[0.3, 0.1, 0.7, 0.2], *[[]] * 4], depth=1000)
"""The star with an out-weight that a long sum has rounded."""


def test_out_weights_are_the_largest_error_of_a_push():
    error, found, (at_vertices, along_edges) = push_all(ROUNDED, [0.0] * 5, 0.5, [1.0, 0, 0, 0, 0])
    of_contributions = exact.pushed_along_edges(0.5, 1.0, ROUNDED.depth, 0.0, [])
    assert at_vertices + along_edges - of_contributions < error / 100 < error <= found


def test_out_weights_are_the_largest_error_of_sweeps_over_a_list():
    y, r, sums = np.zeros(5), np.array([1.0, 0, 0, 0, 0]), np.zeros(3)
    named(
        kernels.push_listed, np.zeros(5, np.int32), np.array([1]), np.array([True, *[False] * 4]), 0.0, 0.0, 1e-3, 1e9, 1e9,
        *ROUNDED.arguments(), y, 0.5, r, ROUNDED.depth, sums,
    )  # fmt: skip
    q = [Fraction(1), *ROUNDED.sent([Fraction(1), *[Fraction(0)] * 4], 0.5)[1:]]
    error = distance(y + r, q)
    assert exact.U * 10 < error <= exact.U * Fraction(sums[2])


def test_out_weights_are_the_largest_error_of_a_residual_computed_anew():
    y, r, rho = np.array([1.0, 0, 0, 0, 0]), np.zeros(5), np.zeros(1)
    kernels.add_contributions(*ROUNDED.arguments(), y, 0.5, r, ROUNDED.depth, rho)
    error = distance(r, ROUNDED.sent(fractions(y), 0.5))
    assert exact.computed_anew(0.5, 1.0, 0, 0.0, r[1:].tolist()) < error / 100 < error <= exact.U * Fraction(rho[0])


@pytest.mark.parametrize("kept", [0, 4])
def test_out_weights_are_the_largest_error_of_a_changed_row(kept):
    """Edges are replaced, or others added, and the contributions of the old ones are those by another out-weight."""
    rows = [[1, 2, 3, 4, 1, 2, 3, 4], *[[]] * 4]
    new = Coo(rows, [[*ROUNDED.weights[0], 0.5, 0.2, 0.6, 0.4], *[[]] * 4], 1000, seed=2)
    error, without = change_row(ROUNDED, new, [1.0] * 5, 0.5, [0.0] * 5, kept)
    assert without < error / 10


def test_what_y_hides_is_the_largest_error_of_a_push():
    """A residual of 1 is added to half of its last bit, and the sum is rounded up by that much."""
    no_edges = Coo([[]])
    error, found, terms = push_all(no_edges, [1.5 * 2.0**-53], 0.5, [1.0])
    assert error == Fraction(2.0**-54)
    assert error <= found == terms[0]


@pytest.mark.parametrize("weight", [2.0**1022, 1e307])
def test_underflow_is_the_largest_error_of_contributions_by_large_out_weights(weight):
    edges = Coo([[1, 2], [], []], [[weight, weight / 4], [], []])
    error, found, (at_vertices, along_edges) = push_all(edges, [0.0] * 3, 0.5, [3e-16, 0, 0])
    without = exact.pushed_along_edges(0.5, 3e-16, edges.depth, 0.0, [])
    assert_bound(error, found, at_vertices + along_edges)
    assert at_vertices + without < error / 100
    y, r, rho = np.array([3e-16, 0, 0]), np.zeros(3), np.zeros(1)
    kernels.add_contributions(*edges.arguments(), y, 0.5, r, edges.depth, rho)
    error = distance(r, edges.sent(fractions(y), 0.5))
    assert exact.computed_anew(0.5, 3e-16, edges.depth, 0.0, []) < error / 100 < error <= exact.U * Fraction(rho[0])


@pytest.mark.parametrize("given_v", [False, True])
def test_bound_of_a_change_of_c(given_v):
    random = np.random.default_rng(4)
    n, c, sums, rho = 50, 2.0, np.empty(5), np.zeros(1)
    y, r, v = random.random(n), random.random(n) * 10.0 ** random.integers(-17, 2, n), random.random(n)
    v, before = (v / v.sum() if given_v else None), fractions(r)
    kernels.residual_norms(y, r, v, c, True, rho, sums)
    change = Fraction(c) - Fraction(sums[0])
    exact_r = [a - change * b for a, b in zip(before, fractions(v) if given_v else [1] * n, strict=True)]
    assert_bound(distance(r, exact_r), exact.U * Fraction(rho[0]), exact.centered(sums[2], sums[3], 0))
    assert distance(r, exact_r) > exact.U * Fraction(sums[3]) / 10
