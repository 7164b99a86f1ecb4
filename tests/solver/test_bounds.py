"""Bounds of the package, compared with those of `conformance.bounds` over measurements of every magnitude."""

from __future__ import annotations

import inspect
import math
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from adjacencies import adjacency_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from method_params import examples

import prplugin
from conformance import bounds as exact
from prplugin.cpu.sums import norm_depth, packed_depth
from prplugin.graph.edges import Edges, PartOfProblem, Problem
from prplugin.machine import this_machine
from prplugin.methods import native as native_method
from prplugin.methods.registry import methods
from prplugin.numerics import StepRounding, compensated_depth, group_sum_depth, rounding_depth
from prplugin.options import Options
from prplugin.solver.certificate import Certificate
from prplugin.solver.groups import bounds_of_groups
from prplugin.solver.top_k import order_of
from prplugin.streams import bounds
from prplugin.streams.decay import roundings_of
from prplugin.streams.host_edges import HostEdges
from prplugin.streams.local_pushes import OutEdges
from prplugin.streams.residual import Residual
from prplugin.types.edges import Coo

DOCS = Path(__file__).parents[2] / "docs" / "semantics.md"

EXPONENTS = st.integers(0, 40)
sizes = st.one_of(st.integers(1, 100), EXPONENTS.map(lambda k: 2**k), st.integers(1, 2**40))
depths = st.one_of(st.integers(0, 100), EXPONENTS.map(lambda k: 2**k - 1), st.integers(0, 2**40))
alphas = st.one_of(
    st.sampled_from([0.0, 5e-324, 1e-300, 0.5, 0.85, 0.99, 1 - 2.0**-40]),
    st.integers(1, 40).map(lambda k: 1 - 2.0**-k),
    st.floats(0, 1 - 2.0**-40),
)
changes = st.one_of(st.sampled_from([0.0, 5e-324, 1e-310, 2.0]), st.floats(0, 2), st.floats(1e-18, 1e-9))
norms = st.one_of(st.just(0.0), st.integers(-60, 40).map(lambda k: 2.0**k), st.floats(0, 1e12))
positive = st.one_of(st.integers(-40, 40).map(lambda k: 2.0**k), st.floats(1e-12, 1e12))
steps = st.builds(
    StepRounding, row=depths, edge=depths, dangling=depths, vectors=depths, norm=depths,
    single=st.sampled_from([0, 0, 1, 2]),
)  # fmt: skip
results = st.tuples(st.sampled_from(["float64", "float32"]), st.sampled_from([1, "n"]))


def assert_tight(found, derived):
    """Check that a bound is at least the derived one, and hardly more."""
    assert found >= derived  # Python compares floats and fractions exactly
    if math.isfinite(derived):
        assert found <= derived * Fraction(1001, 1000) + Fraction(math.ulp(float(derived)))


def test_terms_of_the_documentation_are_those_of_the_derivation():
    section = DOCS.read_text().partition("### Its terms")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    functions = [
        name
        for name, value in vars(exact).items()
        if inspect.isfunction(value) and value.__module__ == exact.__name__ and not name.startswith("_")
    ]
    assert sorted(documented) == sorted(set(functions) - {"gamma"})
    assert not re.search(r"^ *(import|from) prplugin", Path(exact.__file__).read_text(), re.MULTILINE), "it shares code"


# --- depths -------------------------------------------------------------------------------------------------------


@given(terms=sizes)
@settings(max_examples=examples(400), deadline=None)
def test_depths_of_sums(terms):
    assert rounding_depth(terms) == exact.grouped_sum(terms)
    assert norm_depth(terms) == exact.interleaved_sum(terms)
    assert exact.row_sum(terms) <= group_sum_depth(terms) <= exact.row_sum(terms) + 2
    for found, derived in (
        (compensated_depth(terms), exact.compensated_sum(terms)),
        (packed_depth(terms), exact.packed_row(terms)),
    ):
        assert derived <= found <= derived * Fraction(1001, 1000) + 3
    assert bounds.depth_of_sum(terms) == exact.blocked_sum(terms)


@pytest.mark.parametrize("n", [1, 2, 32, 33, 5000])
def test_depth_of_vectors(n):
    none = np.empty(0, np.int32)
    adjacency = Edges(Coo(none, none, None, n))
    assert Problem(adjacency, 0.85).vector_depth == exact.vector_entry(n)
    # Of a group: the values have the roundings of an entry, and what is added are those of a mean and a quotient.
    assert PartOfProblem(adjacency, 0.85, np.full(n, 1 / n)).vector_depth == exact.vector_entry(n) + 4


@given(
    half_lives=st.one_of(st.floats(0, 2.0**39), st.integers(0, 39).map(lambda k: 2.0**k)), sign=st.sampled_from([-1, 1])
)
@settings(max_examples=examples(200), deadline=None)
def test_depth_of_decayed_weights(half_lives, sign):
    derived = exact.decayed_weight(half_lives)
    assert derived <= roundings_of(np.array([0.0, sign * half_lives])) <= derived * Fraction(1001, 1000) + 1


@pytest.mark.parametrize("roundings", [0, 11])
def test_depth_of_contributions(roundings):
    source, target, none = np.array([0, 0, 1]), np.array([1, 2, 2]), np.empty(0, np.int64)
    edges = Coo(source, target, np.array([1.0, 2.0, 3.0]), 3, roundings=roundings)
    adjacency = Edges(edges)
    adjacency.set_out_weight(np.array([3.0, 3.0, 0.0]), 1)
    changing = HostEdges(adjacency, None)
    assert OutEdges.of(adjacency).depth == OutEdges.of(changing).depth == exact.contribution(1, roundings)
    assert changing.adjacency.out_weight_depth == adjacency.out_weight_depth == 1 + 2 * roundings
    # The sums of changed rows are compensated, and added weights may have more roundings.
    added = Coo(np.array([1]), np.array([0]), np.array([2.0]), 3, roundings=roundings + 3)
    changing.commit(changing.plan(added, Coo(none, none, np.empty(0), 3), "sum", directed=True))
    of_sum = math.ceil(exact.compensated_sum(4))
    assert changing.depth == OutEdges.of(changing).depth == exact.contribution(of_sum, roundings + 3)
    assert changing.adjacency.out_weight_depth == of_sum + 2 * (roundings + 3)


@pytest.mark.parametrize("weighted", [False, True])
def test_depths_of_methods_are_those_of_their_sums(weighted):
    n, m = 700, 5000
    edges = random_edges(n, m, weighted=weighted, seed=3).assign(dst=lambda frame: frame["dst"] % 40)
    graph = prplugin.Graph(edges, weight="w" if weighted else None, vertices=range(n))
    problem = Problem(adjacency_of(graph), 0.85)
    row = exact.row_sum(int(edges["dst"].value_counts().max()))
    out_weight = math.ceil(exact.compensated_sum(m)) if weighted else 0
    plain, native = (methods()[name].prepare(problem, this_machine()).rounding for name in ("numpy", "native"))
    # The weight, those of the sum, their sum, quotient and product; or the quotient, and, in `native`, the product.
    assert plain.edge == (out_weight + 4 if weighted else 1)
    assert native.edge == (out_weight + 4 if weighted else 2)
    assert row <= plain.row <= row + 2
    # Ranks of a sweep are divided by their sum, and the norm of one is of three terms more.
    assert row + 1 <= native.row <= row + 3
    assert plain.dangling == exact.grouped_sum(n)
    assert native.dangling == 1 + max(exact.grouped_sum(n), exact.interleaved_sum(n))
    assert plain.norm >= n - 1
    assert native.norm == exact.interleaved_sum(n) + 5
    assert {plain.vectors, native.vectors} == {exact.vector_entry(n)}
    lumped = native_method.rounding_of(problem, lumps=True)
    assert lumped.norm == native.norm + 1
    assert lumped.row == 1 + max(native.row - 1, math.ceil(exact.lumped_sum(n, m)))
    # Many seeds: x is the contribution times the rounded inverse of its factor.
    assert methods()["native"].batch(problem, this_machine(), 20).rounding == native._replace(edge=native.edge + 1)


# --- steps and batches --------------------------------------------------------------------------------------------


@given(alpha=alphas, n=sizes, rounding=steps, result=results, measured=st.lists(changes, min_size=1, max_size=3))
@example(1 - 2.0**-15, 9, StepRounding(1, 1, 1, 1, 1, single=2), ("float32", "n"), [1e-9])  # roundings to float32 count
@example(1 - 2.0**-15, 9, StepRounding(2**34, 1, 1, 1, 1), ("float64", "n"), [1e-9])  # and so do those to float64
@settings(max_examples=examples(800), deadline=None)
def test_bounds_of_steps(alpha, n, rounding, result, measured):
    certificate, stated = Certificate(alpha, n, rounding, *result), exact.Depths(*rounding)
    assert_tight(certificate.cast, exact.cast(alpha, stated, *result))
    assert_tight(certificate.noise, exact.step_rounding(alpha, stated))
    for change in measured:
        assert_tight(certificate.of_step(change), exact.step(alpha, change, stated, *result))
        assert_tight(certificate.of_start(change), exact.start(alpha, change, stated, *result))
    of_seeds = certificate.of_step(np.array(measured)).tolist()
    assert of_seeds == [certificate.of_step(change) for change in measured]
    again = Certificate(alpha, n, StepRounding(1, 1, 1, 1, 1), *result).for_rounding(rounding)
    assert again.of_step(measured[0]) == of_seeds[0]


@pytest.mark.parametrize("alpha", [0.5, 0.85, 0.99])
@pytest.mark.parametrize("result", [("float64", 1), ("float64", "n"), ("float32", 1)])
@pytest.mark.parametrize("above", [1.0001, 2, 1e3])
def test_the_announced_number_of_steps_attains_the_tolerance(alpha, result, above):
    """Of the slowest start: a first change of 2, of which each step leaves alpha times."""
    certificate = Certificate(alpha, 1000, StepRounding(2, 20, 20, 20, 2), *result)
    tol = certificate.of_step(0.0) * above
    steps = certificate.steps(tol)
    assert certificate.of_step(2 * alpha ** (steps - 1)) <= tol * (1 + 1e-9)
    assert certificate.of_step(2 * alpha ** (steps - 2)) > tol


@given(
    n=sizes,
    bound=st.one_of(st.floats(2.0**-55, 2.0), st.floats(2.0**-55, 1e-9)),
    total=st.floats(0, 3),
    near=st.integers(-9, 9),
)
@settings(max_examples=examples(400), deadline=None)
def test_bound_of_one_rank(n, bound, total, near):
    certificate = Certificate(0.85, n, StepRounding(0, 0, 0, 0, 0), "float64", 1)
    for sum_ in (total, 1 + near * 2.0**-52):
        assert_tight(certificate.of_vertex(bound, sum_), exact.one_rank(bound, sum_, n))


@example(0.5, StepRounding(2**52, 1, 1, 1, 1), ("float64", 1), 9, [(0.0, 1.0)])
@example(0.5, StepRounding(1, 1, 1, 1, 1), ("float64", 1), 2**52, [(0.0, 1.0), (1.0, 0.5)])
@given(
    alpha=alphas, rounding=steps, result=results, depth=depths,
    measured=st.lists(st.tuples(changes, st.floats(1e-12, 1.0)), min_size=1, max_size=3),
)  # fmt: skip
@settings(max_examples=examples(400), deadline=None)
def test_bounds_of_groups(alpha, rounding, result, depth, measured):
    rounding = rounding._replace(single=0)
    moved, sums = np.array(measured).T
    found = bounds_of_groups(alpha, moved, sums, rounding, depth, *result)
    for bound, one in zip(found.tolist(), measured, strict=True):
        assert_tight(bound, exact.group(alpha, one, exact.Depths(*rounding), depth, *result))


@given(
    ranks=st.lists(st.integers(0, 20), min_size=1, max_size=9), k=st.integers(1, 9), margin=st.integers(0, 6),
    scale=st.integers(-60, -5),
)  # fmt: skip
@settings(max_examples=examples(800), deadline=None)
def test_ranks_are_separated_by_more_than_twice_the_margin(ranks, k, margin, scale):
    """Gaps are multiples of one number, and often equal to twice the margin, which proves nothing."""
    unit, falling, k = 2.0**scale, sorted(ranks, reverse=True), min(k, len(ranks))
    order = order_of(np.array(ranks) * unit, k, margin * unit / 2, lambda a, b, ranks: False)
    # Those that could take place k, or the next one at least.
    some = falling[: max(k + 1, sum(value >= falling[k - 1] - margin for value in ranks))]
    begins = [0, *(i for i in range(1, len(some)) if some[i - 1] - some[i] > margin), len(some)]
    ties = [(first, some[first:end]) for first, end in pairwise(begins) if first < k and end - first > 1]
    assert [ranks[row] for row in order.rows] == falling[:k]
    assert [(tie.first, [ranks[row] for row in tie.rows]) for tie in order.ties] == ties
    assert order.proved == (not ties)


# --- residuals and pushes -----------------------------------------------------------------------------------------


@given(alpha=alphas, n=sizes, sums=st.tuples(positive, norms, norms), rho=norms, depth_of_v=depths)
@settings(max_examples=examples(800), deadline=None)
def test_bounds_of_residuals(alpha, n, sums, rho, depth_of_v):
    error = exact.U * Fraction(rho)
    assert_tight(bounds.of_residual(alpha, n, sums, rho, depth_of_v), exact.residual(alpha, n, sums, error, depth_of_v))


@given(alpha=alphas, count=sizes, sums=st.tuples(norms, positive), rho=norms)
@settings(max_examples=examples(800), deadline=None)
def test_bounds_of_pushes(alpha, count, sums, rho):
    error = exact.U * Fraction(rho)
    assert_tight(bounds.of_gap(alpha, count, sums, rho), exact.pushed_gap(alpha, count, sums, error))
    assert_tight(bounds.of_pushes(alpha, count, sums, rho), exact.pushed(alpha, count, sums, error))


@pytest.mark.parametrize("result", [("float64", 1), ("float32", 1), ("float64", "n"), ("float32", "n")])
def test_bound_of_a_cast_without_steps(result):
    dtype, scale = result
    options = Options(alpha=0.85, dtype=dtype, scale=scale)
    assert_tight(bounds.of_cast(options), exact.cast(0.85, exact.Depths(), *result))


def random_edges(n, m, *, weighted, seed):
    random = np.random.default_rng(seed)
    edges = pd.DataFrame({"src": random.integers(0, n - 1, m), "dst": random.integers(0, n, m)})
    return edges.assign(w=random.exponential(size=m) if weighted else 1.0)


@pytest.mark.parametrize("given_v", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_residual_has_the_bound_of_its_sums(weighted, given_v):
    n, alpha = 1500, 0.9
    graph = prplugin.Graph(
        random_edges(n, 4500, weighted=weighted, seed=1), weight="w" if weighted else None, vertices=range(n)
    )
    edges, v = HostEdges(adjacency_of(graph), None), None
    if given_v:
        v = np.random.default_rng(2).random(n)
        v /= v.sum()
    residual, depth_of_v = Residual(edges, alpha, v, np.full(n, 1 / n)), exact.vector_entry(n) if given_v else 0
    ends, out, y, after = (
        edges.out_edges.ends,
        edges.out_weight,
        residual.y.tolist(),
        residual.c * (1 if v is None else v) - residual.y,
    )
    after = (after if given_v else 1 - residual.y).tolist()
    derived = exact.U * sum(abs(Fraction(value)) for value in after)
    derived += exact.U * Fraction(residual.c) * (1 + depth_of_v) if given_v else 0
    for u in range(n):  # as `add_contributions` adds
        begin, end, added = edges.out_edges.begins[u], ends[u], []
        for edge in range(begin, end):
            target = edges.out_edges.indices[edge]
            per_weight = alpha * y[u] / out[u]
            after[target] += per_weight * edges.out_edges.weights[edge] if weighted else per_weight
            added.append(after[target])
        if end > begin:
            derived += exact.computed_anew(alpha, y[u], edges.depth, out[u], added)
    assert residual.r.tolist() == after
    assert_tight(float(residual.rounding_error[0]) * 2.0**-53 * (1 + 1e-9), derived)

    def assert_bound_is_of_sums():
        r, y, of_v = [
            [Fraction(x) for x in values]
            for values in (residual.r.tolist(), residual.y.tolist(), [1 / n] * n if v is None else v.tolist())
        ]
        sum_r = sum(r)
        of_v = [Fraction(1, n)] * n if v is None else of_v
        sums = sum(y), sum(map(abs, r)), sum(abs(x - sum_r * share) for x, share in zip(r, of_v, strict=True))
        rho = exact.U * Fraction(float(residual.rounding_error[0]))
        derived = exact.residual(alpha, n, sums, rho, depth_of_v)
        assert residual.bound == pytest.approx(float(derived), rel=1e-3, abs=0)
        of_rounding = float(exact.residual_rounding(alpha, rho, sums[0]))
        assert residual.rounding == pytest.approx(of_rounding, rel=1e-3, abs=0)

    assert_bound_is_of_sums()
    norm, before = Fraction(float(np.abs(residual.r).sum())), float(residual.rounding_error[0])
    norm_step = np.abs(residual.r - residual.r.sum() * (1 / n if v is None else v)).sum()
    residual.measure(center=True)
    added = Fraction(float(residual.rounding_error[0])) - Fraction(before)
    least = exact.centered(0.0, norm_step, depth_of_v) + exact.U * depth_of_v * norm
    assert least * (1 - Fraction(1, 10**9)) <= exact.U * added
    assert exact.U * added <= exact.centered(norm, norm_step, depth_of_v) * (1 + Fraction(1, 10**9))
    residual.push(edges, 1e-9, 1e9)
    assert residual.bound <= 1e-9
    assert_bound_is_of_sums()
    residual.r *= 2.0**-40
    for rounding_error in (0.0, 2.0**40):  # the rounding of sums is then the largest part, and that of r
        residual.rounding_error[:] = rounding_error
        residual.measure()
        assert_bound_is_of_sums()


@pytest.mark.parametrize("options", [{}, {"dtype": "float32", "tol": 1e-4}, {"scale": "n"}])
def test_a_query_has_the_bound_of_its_sums(monkeypatch, options):
    found = []

    def spy(*measured):
        found.append((measured, of_pushes(*measured)))
        return found[-1][1]

    of_pushes = bounds.of_pushes
    monkeypatch.setattr(bounds, "of_pushes", spy)
    chain = pd.DataFrame({"src": range(70_000), "dst": range(1, 70_001)})
    graph = prplugin.Graph(chain, vertices=[70_001, 70_002])
    ranking = graph.rank(personalization=[70_001, 70_002], **options)
    assert ranking.method == "push"
    assert exact.U * Fraction(found[-1][0][3]) == exact.seeded(exact.vector_entry(2))  # nothing is pushed
    ranking = graph.rank(personalization=[5, 6, 7], **options)
    assert ranking.method == "push"
    (alpha, count, (_, sum_), rho), bound = found[-1]
    result = options.get("dtype", "float64"), options.get("scale", 1)
    assert ranking.error_bound == bound + bounds.of_cast(Options(dtype=result[0], scale=result[1]))
    assert (alpha, count) == (0.85, np.count_nonzero(ranking.ranks))
    assert sum_ == pytest.approx(1 / (1 - alpha), rel=1e-2)
    # Each push adds at least the rounding errors at its vertex.
    assert exact.U * Fraction(rho) >= exact.seeded(exact.vector_entry(3)) + exact.pushed_at_vertex(sum_ / 2)
