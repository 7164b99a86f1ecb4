"""The SPMD program of `prplugin.distributed`, run on workers that are threads and compared with one pandas frame."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from distributed_ranks import KINDS, assert_same_ranks, edge_frames, rank_distributed
from hypothesis import given, settings
from hypothesis import strategies as st
from method_params import examples

import prplugin
from prplugin.errors import InvalidEdgesError, InvalidOptionError, MethodUnavailableError
from prplugin.frames.partitions import hash_ranks
from prplugin.frames.parts import CommonType

SIZES = st.integers(1, 5)


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_all_workers_own_vertices_of_two_equal_columns(workers):
    ids = np.arange(10_000)
    column = CommonType("integer", ids[:1], [ids.dtype])
    counts = np.bincount(hash_ranks([ids, ids], [column, column], workers), minlength=workers)
    assert counts.min() > 0.8 * ids.size / workers


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(24), deadline=None)
@given(data=st.data(), size=SIZES)
def test_partitioned_ranks_agree_with_pandas(kind, data, size):
    ids, dtype = KINDS[kind]
    weighted = data.draw(st.booleans())
    edges = data.draw(edge_frames(ids, weighted, dtype))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(edges)), max_size=6)))
    cuts = [0, *cuts, len(edges)]
    holders = data.draw(st.lists(st.integers(0, size - 1), min_size=len(cuts) - 1, max_size=len(cuts) - 1))
    options = {
        "weight": "w" if weighted else None,
        "directed": data.draw(st.booleans()),
        "duplicates": data.draw(st.sampled_from(["sum", "first", "last"])),
        "tol": 1e-9,
    }
    expected = edges.pagerank(**options)
    found, report = rank_distributed(edges, size, cuts, holders, **options)
    assert_same_ranks(found, expected, 2e-9)
    assert report.outcomes[0].error_bound <= 1e-9
    assert found.index.tolist() == list(range(len(expected)))
    # The bits do not depend on which worker holds which partition.
    others = holders[1:] + holders[:1]
    again, _ = rank_distributed(edges, size, cuts, others, **options)
    assert again["pagerank"].to_numpy().tobytes() == found["pagerank"].to_numpy().tobytes()


def test_bits_do_not_depend_on_workers_that_hold_an_id():
    """Check that the owner of a vertex does not depend on how many workers hold rows with its id."""
    edges = pd.DataFrame({"src": ["a", "a", "a", "b"], "dst": ["", "ab", "b", "é"]}, dtype=object)
    cuts, options = [0, 0, 0, 1, 4], {"directed": False, "tol": 1e-9}
    bits = {
        rank_distributed(edges, 2, cuts, h, **options)[0]["pagerank"].to_numpy().tobytes()
        for h in ([0, 0, 1, 0], [0, 1, 0, 0])
    }
    assert len(bits) == 1


@settings(max_examples=examples(24), deadline=None)
@given(data=st.data(), size=SIZES)
def test_vertices_of_several_columns(data, size):
    edges = pd.DataFrame(
        data.draw(st.lists(st.tuples(*[st.integers(0, 2), st.sampled_from("ab")] * 2), min_size=1, max_size=20)),
        columns=["a", "b", "c", "d"],
    )
    more_vertices = data.draw(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), max_size=5))
    endpoints = {"source": ["a", "b"], "destination": ["c", "d"], "vertices": more_vertices or None, "tol": 1e-10}
    assert_same_ranks(rank_distributed(edges, size, **endpoints)[0], prplugin.pagerank(edges, **endpoints))


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), size=SIZES, strings=st.booleans())
def test_values_by_vertex_and_extra_vertices(data, size, strings):
    ids = st.integers(0, 8).map(str) if strings else st.integers(0, 8)
    edges = data.draw(edge_frames(ids, weighted=False, dtype=object if strings else "int64"))
    more_vertices = data.draw(st.lists(ids, min_size=1, max_size=6))
    options = {"vertices": more_vertices, "tol": 1e-9}
    known = prplugin.pagerank(edges, vertices=more_vertices)["vertex"].tolist()
    values = st.dictionaries(st.sampled_from(known), st.floats(0.1, 5), min_size=1)
    for name in ("personalization", "dangling", "nstart"):
        if data.draw(st.booleans()):
            options[name] = data.draw(values)
    assert_same_ranks(rank_distributed(edges, size, **options)[0], prplugin.pagerank(edges, **options), 2e-9)


def path_graph(n):
    return pd.DataFrame({"src": np.arange(n - 1), "dst": np.arange(1, n)})


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.0},
        {"alpha": 0.99, "tol": 1e-10},
        {"tol": 0, "max_iter": 7},
        {"tol": 0, "max_iter": 0},
        {"stop": "delta"},
        {"stop": "vertex"},
        {"stop": "networkx"},
        {"scale": "n", "dtype": "float32"},
        {"method": "native"},
        {"method": "numpy"},
        {"method": "native", "weight": "w"},
        {"method": "numpy", "weight": "w"},
        {"method": "native", "alpha": 0.99, "tol": 1e-10},
    ],
    ids=str,
)
def test_options(size, options):
    rng = np.random.default_rng(1)
    edges = pd.DataFrame({"src": rng.integers(0, 300, 2000) ** 2 // 300, "dst": rng.integers(0, 400, 2000)})
    edges["w"] = rng.random(2000)
    expected = edges.pagerank(**options)
    found, report = rank_distributed(edges, size, **options)
    plain = options.get("tol") == 0
    assert_same_ranks(found, expected, 1e-13 if plain else 2e-6)
    if options.get("stop", "error") == "error" and not plain:
        assert report.outcomes[0].converged
        assert report.outcomes[0].error_bound <= options.get("tol", 1e-6)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("stop", "tol", "iterations"), [("delta", 0.25, 1), ("networkx", 0.125, 2)])
def test_change_equal_to_tol_meets_delta_but_not_networkx(size, stop, tol, iterations):
    edges = pd.DataFrame({"src": [0, 0, 1], "dst": [0, 1, 0]})  # the first step changes uniform ranks by exactly 1/4
    assert rank_distributed(edges, size, alpha=0.5, tol=tol, stop=stop)[1].outcomes[0].iterations == iterations


def test_extrapolation_uses_all_workers():
    # A long cycle over two workers: the convergence rate has to be computed from the moves of both.
    n = 400
    edges = pd.DataFrame({"src": np.arange(n), "dst": (np.arange(n) + 1) % n})
    edges = pd.concat([edges, pd.DataFrame({"src": [0] * 3, "dst": [5, 50, 100]})])
    _, report = rank_distributed(edges, 2, alpha=0.999, tol=1e-8)
    assert report.outcomes[0].converged


def test_all_workers_use_kernels_that_all_have(monkeypatch):
    edges = pd.DataFrame({"src": [0, 1, 2, 3, 3], "dst": [1, 2, 3, 0, 1]})
    assert rank_distributed(edges, 2)[1].history.considered[0].method == "native"
    reasons = [None, "no kernels"] * 2  # of two workers and two rankings
    monkeypatch.setattr("prplugin.distributed.ranks.library", SimpleNamespace(unavailable_reason=reasons.pop))
    found, report = rank_distributed(edges, 2)
    assert report.history.considered[0].method == "numpy"
    assert_same_ranks(found, edges.pagerank(method="numpy"), 2e-6)
    with pytest.raises(MethodUnavailableError, match="'native' cannot run on 1 worker: no kernels"):
        rank_distributed(edges, 2, method="native")


@pytest.mark.parametrize("method", ["numpy", "native"])
def test_bits_do_not_depend_on_thread_count(method):
    rng = np.random.default_rng(2)
    edges = pd.DataFrame({"src": rng.integers(0, 3000, 20000), "dst": rng.integers(0, 3000, 20000)})
    one, _ = rank_distributed(edges, 2, method=method, method_options={"threads": 1})
    other, _ = rank_distributed(edges, 2, method=method, method_options={"threads": 3})
    assert one["pagerank"].to_numpy().tobytes() == other["pagerank"].to_numpy().tobytes()


@pytest.mark.parametrize("top", [1, 4, 100])
@pytest.mark.parametrize("size", [1, 3])
def test_top(size, top):
    edges = pd.DataFrame({"src": list("abcdefgh") * 2, "dst": list("bbccddaa") + list("cacacaca")})
    expected = edges.pagerank(top=top, tol=1e-12)
    found, _ = rank_distributed(edges, size, top=top, tol=1e-12)
    assert_same_ranks(found, expected, 1e-11)


def test_nulls_are_reported_by_row_of_whole_frame():
    edges = pd.DataFrame({"src": ["a", None, "b", "c", None, "d"], "dst": list("bcdefg")})
    with pytest.raises(InvalidEdgesError, match=r"column 'src' has 2 nulls, in rows 1, 4 \(counted from 0\)"):
        rank_distributed(edges, 3, cuts=[0, 2, 4, 6], holders=[2, 0, 1])


def test_weights_of_all_partitions_are_checked():
    edges = pd.DataFrame({"src": range(6), "dst": range(6), "w": [1, -1, 2, 3, -4, np.inf]})
    with pytest.raises(InvalidEdgesError, match=r"column 'w' has 2 values below 0: -1.0 in row 1, -4.0 in row 4"):
        rank_distributed(edges, 3, weight="w")
    edges["w"] = [1e308] * 6
    edges["src"] = 1
    with pytest.raises(InvalidEdgesError, match=r"the weights that leave 1 vertex \(1\) sum to more"):
        rank_distributed(edges, 3, weight="w")


def test_repeated_pairs_are_reported_by_row_of_whole_frame():
    edges = pd.DataFrame({"src": [1, 2, 1, 3, 2], "dst": [2, 3, 2, 4, 1]})
    with pytest.raises(InvalidEdgesError, match=r"1 row of the edge frame repeats a pair .* has: 2 "):
        rank_distributed(edges, 3, duplicates="error", cuts=[0, 1, 2, 3, 5])
    with pytest.raises(InvalidEdgesError, match=r"2 rows of the edge frame repeat a pair .* has: 2, 4 "):
        rank_distributed(edges, 3, duplicates="error", directed=False)


def test_mixed_kinds_of_ids_raise():
    edges = pd.DataFrame({"src": [1, 2, "a", "b"], "dst": [1, 2, 3, 4]})
    with pytest.raises(InvalidEdgesError, match="kind"):
        rank_distributed(edges, 2)


def test_values_for_unknown_and_repeated_vertices():
    edges = path_graph(6)
    with pytest.raises(InvalidOptionError, match="names 2 vertices not in the graph: 77, 99"):
        rank_distributed(edges, 3, personalization={1: 1, 77: 1, 2: 1, 99: 1})
    twice = pd.Series([1.0, 2.0, 3.0], index=[1, 2, 1])
    with pytest.raises(InvalidOptionError, match="names 1 vertex more than once: 1"):
        rank_distributed(edges, 3, dangling=twice)
    with pytest.raises(InvalidOptionError, match="sums to 0"):
        rank_distributed(edges.astype(str), 3, nstart={"1": 0})
    with pytest.raises(InvalidOptionError, match="not in the graph: 'z'"):
        rank_distributed(edges.astype(str), 2, nstart={"1": 1, "z": 0})


@pytest.mark.parametrize("vertex", ["1", True, pd.Timestamp("2020-01-01")], ids=str)
def test_values_for_vertices_of_another_kind_raise(vertex):
    with pytest.raises(InvalidOptionError, match="but the graph's are of kind integer"):
        rank_distributed(path_graph(6), 2, personalization={vertex: 1})


def test_max_iter_counts_every_iteration():
    _, report = rank_distributed(path_graph(50), 3, max_iter=2, tol=1e-12)
    assert not report.outcomes[0].converged
    assert report.outcomes[0].iterations == 2


def test_graph_without_edges():
    empty = pd.DataFrame({"src": np.empty(0, np.int64), "dst": np.empty(0, np.int64)})
    found, _ = rank_distributed(empty, 3)
    assert len(found) == 0
    found, _ = rank_distributed(empty, 3, vertices=[4, 2])
    assert found["vertex"].tolist() == [2, 4]
