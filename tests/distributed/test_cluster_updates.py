"""Updates and times on workers that are threads, compared with one pandas frame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from distributed_ranks import KINDS, assert_same_ranks, edge_frames, rank_distributed
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from method_params import examples

import prplugin
from prplugin.errors import InvalidEdgesError

SIZES = st.integers(1, 4)


def ranks_of(edges, changes, **options):
    """Rank a graph in this process after changes, pairs of frames to add and to remove."""
    graph = prplugin.Graph(edges, **options)
    for add, remove in changes:
        graph.update(add=add, remove=remove)
    return graph.rank(tol=1e-10).frame


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), size=SIZES, kind=st.sampled_from(["integers", "sparse", "strings", "nullable", "dates"]))
def test_updates_agree_with_one_machine(data, size, kind):
    ids, dtype = KINDS[kind]
    weighted = data.draw(st.booleans())
    frames = edge_frames(ids, weighted, dtype)
    edges = data.draw(frames)
    assume(len(edges))
    duplicates = data.draw(st.sampled_from(["sum", "first", "last"]))
    options = {"weight": "w" if weighted else None, "directed": data.draw(st.booleans()), "duplicates": duplicates}
    changes, present = [], edges
    for _ in range(data.draw(st.integers(1, 3))):
        removed = present.take(data.draw(st.lists(st.integers(0, len(present) - 1), unique=True, max_size=5)))
        if duplicates != "sum":
            removed = removed.iloc[:0]
        added = data.draw(frames)
        changes.append((added, removed))
        present = pd.concat([present.drop(removed.index), added], ignore_index=True)
        if not len(present):
            break
    expected = ranks_of(edges, changes, **options)
    found, _ = rank_distributed(edges, size, changes=changes, tol=1e-10, **options)
    assert_same_ranks(found, expected, 3e-10)


HOURS = st.integers(0, 400)


def timed(frames):
    return st.tuples(frames, st.lists(HOURS, min_size=25, max_size=25)).map(
        lambda pair: pair[0].assign(t=pd.to_datetime("2026-01-01") + pd.to_timedelta(pair[1][: len(pair[0])], unit="h"))
    )


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), size=SIZES, kind=st.sampled_from(["integers", "strings"]))
def test_decaying_weights_agree_with_one_machine(data, size, kind):
    ids, dtype = KINDS[kind]
    weighted = data.draw(st.booleans())
    frames = timed(edge_frames(ids, weighted, dtype))
    edges = data.draw(frames)
    assume(len(edges))
    options = {
        "weight": "w" if weighted else None, "directed": data.draw(st.booleans()), "time": "t",
        "half_life": data.draw(st.sampled_from(["1h", "50h", "20D"])),
        "duplicates": data.draw(st.sampled_from(["sum", "last"])),
    }  # fmt: skip
    changes = []
    if data.draw(st.booleans()):
        removed = edges.take(data.draw(st.lists(st.integers(0, len(edges) - 1), unique=True, max_size=3)))
        changes = [(data.draw(frames), removed if options["duplicates"] == "sum" else None)]
    try:
        expected = ranks_of(edges, changes, **options)
    except InvalidEdgesError:
        with pytest.raises(InvalidEdgesError, match="hundreds of half-lives older"):
            rank_distributed(edges, size, changes=changes, tol=1e-10, **options)
        return
    found, _ = rank_distributed(edges, size, changes=changes, tol=1e-10, **options)
    assert_same_ranks(found, expected, 3e-10)


@settings(max_examples=examples(30), deadline=None)
@given(data=st.data(), size=SIZES, kind=st.sampled_from(["integers", "strings"]))
def test_window_agrees_with_one_machine(data, size, kind):
    ids, dtype = KINDS[kind]
    edges = data.draw(timed(edge_frames(ids, True, dtype)))
    assume(len(edges))
    options = {"weight": "w", "time": "t", "window": "100h", "half_life": data.draw(st.sampled_from([None, "70h"]))}
    options["now"] = data.draw(st.sampled_from([None, "2026-02-01"]))
    assert_same_ranks(
        rank_distributed(edges, size, tol=1e-10, **options)[0], edges.pagerank(tol=1e-10, **options), 3e-10
    )


def warm_case(kind, weighted, seed):
    """Return edges, and changes of few of them, of which one adds vertices before, between and after the others."""
    rng = np.random.default_rng(seed)
    n, m = 3000, 20_000
    pairs = pd.DataFrame({"src": rng.integers(0, n, m) ** 2 // n, "dst": rng.integers(0, n, m)}) * 10
    pairs = pairs.drop_duplicates(ignore_index=True)
    more = pd.DataFrame({"src": [-5, 70, 15, 40_000, 70], "dst": [70, 40_000, -5, 200, 15]})
    pairs, more = (one.assign(w=rng.random(len(one)) + 0.5) if weighted else one for one in (pairs, more))
    pairs, more = (one.astype({"src": str, "dst": str}) if kind == "strings" else one for one in (pairs, more))
    return pairs, [(more, pairs.iloc[:5]), (None, pairs.iloc[5:8]), (pairs.iloc[:2], more.iloc[:1])]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["integers", "strings"])
@pytest.mark.parametrize("size", [1, 3])
def test_ranking_after_updates_starts_from_last_ranks(kind, weighted, size):
    edges, changes = warm_case(kind, weighted, size)
    options = {"weight": "w" if weighted else None, "tol": 1e-8}
    expected = ranks_of(edges, changes, weight=options["weight"])
    cold, from_scratch = rank_distributed(edges, size, changes=changes, **options)
    warm, report = rank_distributed(edges, size, changes=changes, ranked_before={"tol": 1e-8}, **options)
    (cold_outcome,), (warm_outcome,) = from_scratch.outcomes, report.outcomes
    assert warm_outcome.iterations < cold_outcome.iterations
    assert warm_outcome.converged
    assert warm_outcome.error_bound <= 1e-8
    difference = np.abs(warm["pagerank"].to_numpy() - cold["pagerank"].to_numpy()).sum()
    assert difference <= warm_outcome.error_bound + cold_outcome.error_bound
    error = np.abs(warm["pagerank"].to_numpy() - expected["pagerank"].to_numpy()).sum()
    assert error <= warm_outcome.error_bound + 1e-10
    assert_same_ranks(warm, expected, 1e-8)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"alpha": 0.5}, {}),
        ({}, {"personalization": {70: 1.0}}),
        ({"dangling": {70: 1.0}}, {}),
        ({"max_iter": 1}, {}),
        ({"seeds": [70]}, {"personalization": {70: 1.0}}),
        ({}, {"seeds": [70, 200]}),
        ({}, {"stop": "networkx"}),
    ],
    ids=str,
)
def test_ranks_of_another_equation_are_not_started_from(before, after):
    edges, changes = warm_case("integers", False, 0)
    cold, from_scratch = rank_distributed(edges, 3, changes=changes, **after)
    warm, report = rank_distributed(edges, 3, changes=changes, ranked_before=before, **after)
    pd.testing.assert_frame_equal(warm, cold)
    assert [one.iterations for one in report.outcomes] == [one.iterations for one in from_scratch.outcomes]


def test_personalized_ranking_starts_from_last_ranks():
    edges, _ = warm_case("integers", False, 0)
    options = {"personalization": {70: 1.0, 200: 2.0}, "dangling": {70: 1.0}, "tol": 1e-8}
    few = [(None, edges.iloc[5:8])]
    cold, from_scratch = rank_distributed(edges, 3, changes=few, **options)
    warm, report = rank_distributed(edges, 3, changes=few, ranked_before=options, **options)
    assert report.outcomes[0].iterations < from_scratch.outcomes[0].iterations
    assert_same_ranks(warm, cold, 2e-8)


def test_last_ranks_that_were_altered_are_normalized():
    edges, changes = warm_case("integers", True, 0)
    options = {"weight": "w", "tol": 1e-8, "changes": changes}
    cold, from_scratch = rank_distributed(edges, 3, **options)

    def scale(ranks):
        ranks *= 7
        ranks[-1] = np.nan
        ranks[-2] = -1.0

    def clear(ranks):
        ranks[:] = 0

    scaled, report = rank_distributed(edges, 3, ranked_before={}, altering=scale, **options)
    assert report.outcomes[0].iterations < from_scratch.outcomes[0].iterations
    assert_same_ranks(scaled, cold, 2e-8)
    pd.testing.assert_frame_equal(rank_distributed(edges, 3, ranked_before={}, altering=clear, **options)[0], cold)


EDGES = pd.DataFrame({"src": [1, 2, 3, 3, 3], "dst": [2, 3, 1, 4, 4], "w": [1.0, 2.0, 3.0, 4.0, 5.0]})


@pytest.mark.parametrize(
    ("add", "remove", "options"),
    [
        (None, {"src": [9], "dst": [1]}, {}),
        (None, {"src": [1, 1], "dst": [2, 2]}, {}),
        (None, {"src": [1, 3], "dst": [2, 4], "w": [1.0, 6.0]}, {"weight": "w"}),
        (None, {"src": ["a"], "dst": ["b"]}, {}),
        ({"src": ["a"], "dst": ["b"]}, None, {}),
        ({"src": [2], "dst": [1]}, None, {"directed": False, "duplicates": "error"}),
        ({"src": [1], "dst": [9], "w": [-1.0]}, None, {"weight": "w"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("strings", [False, True])
def test_errors_are_those_of_one_machine(add, remove, options, strings):
    def typed(frame):
        return frame.astype({"src": str, "dst": str}) if strings else frame

    kinds = "a" in str(add) + str(remove)
    change = [
        None if one is None else (pd.DataFrame if kinds else lambda f: typed(pd.DataFrame(f)))(one)
        for one in (add, remove)
    ]
    if strings and kinds:
        change = [None if one is None else one.assign(src=[1], dst=[2]) for one in change]
    edges = typed(EDGES.iloc[:4])
    with pytest.raises(InvalidEdgesError) as expected:
        ranks_of(edges, [change], **options)
    with pytest.raises(InvalidEdgesError) as raised:
        rank_distributed(edges, 2, changes=[change], **options)
    assert str(raised.value) == str(expected.value)


def test_parallel_edges_are_removed_in_order():
    change = [(None, pd.DataFrame({"src": [3], "dst": [4]})), (None, EDGES.iloc[[4]])]
    found, _ = rank_distributed(EDGES, 2, changes=change, weight="w", tol=1e-10)
    assert_same_ranks(found, EDGES.iloc[:3].pagerank(weight="w", tol=1e-10, vertices=[4]))
    falling = pd.concat([EDGES, EDGES.iloc[1:2]]).assign(w=[6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    for change in ([(None, EDGES.iloc[4:][["src", "dst"]])], [(None, EDGES.iloc[1:2][["src", "dst"]])]):
        found, _ = rank_distributed(falling, 2, changes=change, weight="w", tol=1e-10)
        assert_same_ranks(found, ranks_of(falling, change, weight="w"))


def test_types_of_ids_widen():
    narrow = EDGES.astype({"src": "int8", "dst": "int8"})
    more = pd.DataFrame({"src": [1000], "dst": [1]}, dtype="int64")
    found, _ = rank_distributed(narrow, 2, changes=[(more, None)], tol=1e-10)
    assert_same_ranks(found, ranks_of(narrow, [(more, None)]))


def test_integers_of_several_columns_widen():
    """Regression test: signed ids and new unsigned ones became floats."""
    edges = pd.DataFrame({"a": ["x", "y"], "n": [1, 2], "b": ["y", "x"], "m": [2, 1]})
    add = pd.DataFrame({"a": ["z"], "n": [2**63 + 5], "b": ["x"], "m": [1]}).astype({"n": "uint64", "m": "uint64"})
    options = {"source": ["a", "n"], "destination": ["b", "m"]}
    found, _ = rank_distributed(edges, 2, changes=[(add, None)], tol=1e-10, **options)
    assert_same_ranks(found.reset_index(drop=True), ranks_of(edges, [(add, None)], **options))


def test_negative_integers_of_several_columns_are_not_widened():
    """Regression test: only the first and last ids were looked at, and -5 became 2**64 - 5."""
    edges = pd.DataFrame({"a": ["x", "y", "z"], "n": [1, -5, 2], "b": ["y", "z", "x"], "m": [-5, 2, 1]})
    add = pd.DataFrame({"a": ["w"], "n": [2**63 + 5], "b": ["x"], "m": [1]}).astype({"n": "uint64", "m": "uint64"})
    with pytest.raises(InvalidEdgesError, match="negative ids and ids past"):
        rank_distributed(edges, 1, changes=[(add, None)], source=["a", "n"], destination=["b", "m"])


def test_all_edges_are_removed_and_vertices_remain():
    found, _ = rank_distributed(EDGES, 3, changes=[(None, EDGES), (EDGES.iloc[:1], None)], tol=1e-10)
    assert_same_ranks(found, ranks_of(EDGES, [(None, EDGES), (EDGES.iloc[:1], None)]))


def test_graph_without_edges_is_extended():
    empty = EDGES.iloc[:0]
    for added in (EDGES, EDGES.astype({"src": str, "dst": str})):
        found, _ = rank_distributed(empty.astype(added.dtypes), 2, changes=[(added, None)], tol=1e-10)
        assert_same_ranks(found, added.pagerank(tol=1e-10))


def test_edges_that_underflow_are_refused():
    at = [0.0, 0.0, 5000.0, 1.0]
    edges = pd.DataFrame({"src": [1, 2, 1, 3], "dst": [2, 1, 3, 1], "t": at})
    change = [(None, edges.iloc[[2]])]
    with pytest.raises(InvalidEdgesError, match=r"1 vertex \(1\) with edges that are hundreds of half-lives older"):
        rank_distributed(edges, 2, time="t", half_life=1.0, changes=change)
