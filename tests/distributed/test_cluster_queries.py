"""Seeds, `among`, `exclude` and certified orders on workers that are threads, compared with one pandas frame."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from distributed_ranks import KINDS, assert_same_ranks, edge_frames, rank_distributed
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from method_params import examples

import prplugin
from prplugin.errors import InvalidOptionError

SIZES = st.integers(1, 4)


def vertices_of(edges):
    return edges.pagerank()["vertex"].tolist()


@settings(max_examples=examples(30), deadline=None)
@given(data=st.data(), size=SIZES, kind=st.sampled_from(["integers", "strings", "nullable", "categories"]))
def test_vertices_are_selected_as_on_one_machine(data, size, kind):
    ids, dtype = KINDS[kind]
    edges = data.draw(edge_frames(ids, True, dtype))
    assume(len(edges))
    options = {"weight": data.draw(st.sampled_from([None, "w"])), "tol": 1e-10}
    some = st.lists(st.sampled_from(vertices_of(edges)), min_size=1, unique=True)
    if data.draw(st.booleans()):
        options["among"] = data.draw(some)
    if data.draw(st.booleans()):
        options["exclude"] = data.draw(some)
    if data.draw(st.booleans()):
        options["personalization"] = {vertex: 1.0 + at for at, vertex in enumerate(data.draw(some))}
        options["exclude"] = data.draw(st.sampled_from([options.get("exclude"), "seeds"]))
    expected, top = edges.pagerank(**options), data.draw(st.sampled_from([None, 1, 3, 100]))
    found, _ = rank_distributed(edges, size, **options, top=top)
    if top is None:
        assert_same_ranks(found, expected, 2e-10)
        return
    # The order of equal ranks depends on rounding.
    highest = edges.pagerank(**options, top=top)
    np.testing.assert_allclose(found["pagerank"], highest["pagerank"], atol=2e-10)
    assert (found["pagerank"].diff().dropna() <= 0).all()
    ranks = dict(zip(expected["vertex"], expected["pagerank"], strict=True))
    np.testing.assert_allclose(found["pagerank"], [ranks[vertex] for vertex in found["vertex"]], atol=2e-10)
    assert found["vertex"].dtype == expected["vertex"].dtype


@settings(max_examples=examples(30), deadline=None)
@given(data=st.data(), size=SIZES, kind=st.sampled_from(["integers", "strings"]))
def test_seeds_are_ranked_as_on_one_machine(data, size, kind):
    ids, dtype = KINDS[kind]
    edges = data.draw(edge_frames(ids, True, dtype))
    assume(len(edges))
    known = vertices_of(edges)
    some = st.lists(st.sampled_from(known), min_size=1, unique=True, max_size=4)
    options = {"weight": data.draw(st.sampled_from([None, "w"])), "tol": 1e-10}
    options["exclude"] = data.draw(st.one_of(st.none(), st.just("seeds"), some))
    options["among"] = data.draw(st.one_of(st.none(), some))
    if data.draw(st.booleans()):
        options["dangling"] = {known[0]: 1.0}
    listed = data.draw(some)
    seeds = data.draw(
        st.sampled_from(
            [
                listed,
                pd.Series(listed, dtype=dtype),
                [{vertex: 1.0} for vertex in listed],
                [listed, listed[:1]],
                pd.DataFrame({"seed": ["x", "y"], "vertex": pd.Series([listed[0]] * 2, dtype=dtype), "values": [1, 2]}),
            ]
        )
    )
    expected = edges.pagerank(seeds=seeds, **options)
    found, report = rank_distributed(edges, size, seeds=seeds, **options)
    assert_same_ranks(found, expected, 2e-10)
    assert found.index.tolist() == list(range(len(expected)))
    assert all(outcome.error_bound <= 1e-10 for outcome in report.outcomes)
    top, _ = rank_distributed(edges, size, seeds=seeds, **options, top=2)
    highest = edges.pagerank(seeds=seeds, **options, top=2)
    assert top["seed"].tolist() == highest["seed"].tolist()
    np.testing.assert_allclose(top["pagerank"], highest["pagerank"], atol=2e-10)


@settings(max_examples=examples(16), deadline=None)
@given(data=st.data(), size=SIZES)
def test_seeds_of_several_columns(data, size):
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, 2), st.sampled_from("ab")] * 2), min_size=1, max_size=20))
    edges = pd.DataFrame(rows, columns=["a", "b", "c", "d"])
    seed = rows[0][:2]
    options = {"source": ["a", "b"], "destination": ["c", "d"], "seeds": [seed], "tol": 1e-10}
    assert_same_ranks(rank_distributed(edges, size, **options)[0], prplugin.pagerank(edges, **options))


def twins_and_others(rng):
    """Return edges of which many vertices have equal ranks, by equal in-edges or by symmetry."""
    core = pd.DataFrame({"src": rng.integers(0, 12, 30), "dst": rng.integers(0, 12, 30)})
    fan = pd.DataFrame({"src": rng.integers(0, 12, 1).repeat(5), "dst": np.arange(20, 25)})
    pairs = pd.DataFrame({"src": [20, 21, 30, 31], "dst": [40, 41, 31, 30]})
    return pd.concat([core, fan, pairs], ignore_index=True)


@pytest.mark.parametrize(("size", "strings", "seed"), [(1, False, 0), (3, False, 1), (3, True, 2), (1, True, 1)])
def test_certified_order_is_that_of_one_machine(size, strings, seed):
    rng = np.random.default_rng(seed)
    edges = twins_and_others(rng)
    weighted = edges.assign(w=rng.integers(1, 3, len(edges)).astype(float))
    edges = edges.astype(str) if strings else edges
    vertex = str if strings else int
    asked = [vertex(v) for v in rng.permutation([20, 21, 22, 30, 31, 40, 41])]
    for frame, options in (
        (edges, {"top": 9}),
        (edges, {"top": 9, "exclude": asked[:3]}),
        (edges, {"among": asked}),
        (edges, {"among": asked, "top": 3, "exclude": asked[:1]}),
        (edges, {"top": 6, "personalization": {vertex(20): 1, vertex(21): 1}, "dangling": {vertex(30): 1}}),
        (weighted.astype({"src": edges["src"].dtype, "dst": edges["dst"].dtype}), {"top": 9, "weight": "w"}),
    ):
        given = options | {"certified": True, "tol": 1e-12}
        weight = given.pop("weight", None)
        expected = prplugin.Graph(frame, weight=weight).rank(**given)
        found, report = rank_distributed(frame, size, weight=weight, **given)
        order = report.outcomes[0].order
        assert order.proved == expected.certified
        if not order.proved:  # by neither: the order is that of rounding errors
            continue
        pd.testing.assert_frame_equal(found[["vertex"]], expected.frame[["vertex"]])
        assert [(tie.first, tie.rows.tolist(), tie.equal) for tie in order.ties] == [
            (tie.first, tie.rows.tolist(), tie.equal) for tie in expected._order.ties
        ]


def test_certified_order_ends_before_tolerance():
    rng = np.random.default_rng(3)
    edges = pd.DataFrame({"src": rng.integers(0, 300, 3000) ** 2 // 300, "dst": rng.integers(0, 300, 3000) ** 2 // 300})
    proved = rank_distributed(edges, 3, top=5, certified=True, tol=1e-12)[1].outcomes[0]
    assert proved.order.proved
    assert proved.iterations < rank_distributed(edges, 3, top=5, tol=1e-12)[1].outcomes[0].iterations


def test_at_alpha_zero_all_vertices_are_tied():
    edges = pd.DataFrame({"src": [0, 0, 1], "dst": [1, 2, 2]})
    _, report = rank_distributed(edges, 2, alpha=0.0, dangling={0: 1, 1: 2}, top=2, certified=True)
    assert [(tie.rows.tolist(), tie.equal) for tie in report.outcomes[0].order.ties] == [([0, 1, 2], True)]


def test_nothing_is_left_to_return():
    edges = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1]})
    for options in ({}, {"top": 2}, {"top": 2, "certified": True}, {"among": [1, 2]}):
        found, _ = rank_distributed(edges, 2, exclude=[1, 2, 3], **options)
        expected = prplugin.pagerank(edges, exclude=[1, 2, 3], **options)
        assert_same_ranks(found, expected)


@pytest.mark.parametrize(
    "options",
    [
        {"among": [1, 99]},
        {"among": []},
        {"among": {1: 2}},
        {"exclude": [1, 1]},
        {"exclude": ["a"]},
        {"seeds": [1, 98, 99]},
        {"seeds": []},
        {"seeds": [{1: 0.0}]},
        {"seeds": [1, {2: 1}]},
        {"seeds": [{1: 1}, {77: 1}]},
        {"seeds": pd.DataFrame({"vertex": [1], "values": [1.0]})},
        {"seeds": pd.DataFrame({"seed": [1, None], "vertex": [1, 2]})},
        {"seeds": 5},
        {"personalization": {99: 1}},
        {"tol": 1e-17},
    ],
    ids=str,
)
def test_errors_are_those_of_one_machine(options):
    edges = pd.DataFrame({"src": [1, 2, 3, 4], "dst": [2, 3, 1, 4]})
    with pytest.raises(InvalidOptionError) as expected:
        prplugin.pagerank(edges, **options)
    with pytest.raises(InvalidOptionError) as raised:
        rank_distributed(edges, 2, **options)
    # The smallest provable tolerance depends on the number of workers.
    assert re.sub(r"provable tol is \S+", "", str(raised.value)) == re.sub(
        r"provable tol is \S+", "", str(expected.value)
    )


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("nothing", [set(), pd.DataFrame()])
def test_excluded_vertices_may_be_a_set_or_none(size, nothing):
    edges = pd.DataFrame({"src": list("abcda"), "dst": list("bcdac")})
    assert_same_ranks(rank_distributed(edges, size, exclude={"a", "d"})[0], edges.pagerank(exclude={"a", "d"}), 2e-6)
    assert_same_ranks(rank_distributed(edges, size, exclude=nothing)[0], edges.pagerank(), 2e-6)


@pytest.mark.parametrize("size", [1, 3])
def test_at_alpha_zero_vertices_of_equal_teleport_are_tied(size):
    edges = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 3]})
    _, report = rank_distributed(edges, size, alpha=0.0, personalization={1: 2, 2: 1, 3: 1}, top=3, certified=True)
    (tie,) = report.outcomes[0].order.ties
    assert (tie.first, tie.rows.tolist(), tie.equal) == (1, [2, 3], True)


def test_vertices_are_left_out_by_seed_as_on_one_machine():
    edges = pd.DataFrame({"src": list("abcabde"), "dst": list("bcacade"), "w": [1.0, 2, 3, 4, 5, 6, 0]})
    edges.loc[7] = [None, "a", 1.0]
    seen = pd.DataFrame({"seed": ["a", "b", "z", "a"], "vertex": ["c", "b", "a", "z"]})
    for options in (
        {"seeds": ["a", "d"], "exclude": "neighbors"},
        {"seeds": {"x": ["a", "d"], "y": ["a"]}, "exclude": ["neighbors", "seeds", "e"]},
        {"seeds": ["b", "a"], "exclude": seen, "top": 2},
        {"personalization": ["a", "d"], "exclude": ["neighbors", "e", "z"]},
        {"personalization": {"a": 2, "z": 1}, "dangling": ["z", "b"], "unknown": "ignore"},
        {"seeds": [["a", "z"], ["z"], {"b": 1}], "unknown": "ignore", "among": ["c", "z", "a"]},
        {"personalization": (pd.DataFrame({"id": ["a", "b"], "n": [1, 2]}), "id", "n")},
        {"personalization": edges.dropna().pagerank()},
    ):
        expected = edges.pagerank(weight="w", missing="drop", **options)
        found, report = rank_distributed(edges, 3, weight="w", missing="drop", **options)
        assert_same_ranks(found, expected, 2e-6)
        assert dict(report.history.unknown) == prplugin.Graph(edges, weight="w", missing="drop").rank(**options).unknown
