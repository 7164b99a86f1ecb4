"""Many seeds in one call: the same ranks as one ranking per seed, whatever the other seeds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from method_params import examples, param
from rational_pagerank import distance, solve
from solver_graphs import communities

import prplugin
from conformance import rapids
from prplugin import queries as queries_module
from prplugin.graph.teleports import Seeds
from prplugin.methods import native
from prplugin.methods.engines import native_batch
from prplugin.methods.registry import methods
from prplugin.result.selection import highest_of_each
from prplugin.solver import batch as batch_module
from prplugin.types.arrays import highest

BATCH_METHODS = [name for name, method in methods().items() if hasattr(method, "batch_cost")]
each_batch_method = pytest.mark.parametrize("method", [param(name) for name in BATCH_METHODS])

EDGES = pd.DataFrame({"src": ["ann", "bob", "cat", "ann", "dan"], "dst": ["bob", "cat", "bob", "cat", "ann"]})


BATCH_FROM = native.batch_from


@pytest.fixture(scope="module", autouse=True)
def batches_of_few_seeds():
    """Rank few seeds in a batch too, which otherwise takes longer than one ranking per seed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "batch_from", 1)
        yield


def skewed(n: int = 1500, m: int = 9000, *, weighted: bool = False) -> pd.DataFrame:
    """Return edges with a hub, vertices without in-edges, self-loops, dangling vertices and parallel edges."""
    rng = np.random.default_rng(7)
    source, target = (n * rng.random(m) ** 2).astype(np.int64), (n * rng.random(m) ** 3).astype(np.int64)
    frame = pd.DataFrame({"src": source, "dst": np.where(rng.random(m) < 0.2, 3, target)})
    return frame.assign(w=rng.integers(0, 4, m) / 4) if weighted else frame


def skewed_graph(n: int = 1500, m: int = 9000, *, weighted: bool = False) -> prplugin.Graph:
    return prplugin.Graph(skewed(n, m, weighted=weighted), weight="w" if weighted else None, vertices=list(range(n)))


def rank_one_by_one(graph, personalizations, **options):
    return [graph.rank(personalization=one, **options) for one in personalizations]


# --- compared with one ranking per seed ---------------------------------------------------------------------------


@each_batch_method
@pytest.mark.parametrize(("weighted", "dangling"), [(False, {5: 1.0, 6: 3.0}), (True, None), (True, {5: 1.0, 6: 3.0})])
def test_each_seed_agrees_with_separate_ranking(method, weighted, dangling):
    graph = skewed_graph(weighted=weighted)
    seeds = [{seed: 1.0} for seed in range(0, 80, 4)] + [{1: 1.0, 9: 2.5}, dict.fromkeys(range(100), 1.0)]
    for tol in (1e-6, 1e-11):
        many = graph.rank(seeds=seeds, dangling=dangling, tol=tol, method=method)
        assert many.converged
        assert many.method == method
        assert many.error_bound == many.each_error_bound.max() <= tol
        assert many.iterations == many.each_iterations.max()
        separate = rank_one_by_one(graph, seeds, dangling=dangling, tol=tol)
        for ranks, bound, one in zip(many.ranks, many.each_error_bound, separate, strict=True):
            assert np.abs(ranks - one.ranks).sum() <= bound + one.error_bound


@each_batch_method
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=14),
    alpha=st.sampled_from([0.0, 0.3, 0.85, 0.95]),
    weighted=st.booleans(),
    dangling_vertex=st.none() | st.integers(0, 5),
    seeds=st.lists(
        st.dictionaries(st.integers(0, 5), st.floats(0.001, 5), min_size=1, max_size=6), min_size=1, max_size=11
    ),
)
@hypothesis_settings(max_examples=examples(60), deadline=None)
def test_each_error_bound_covers_true_error(method, rows, alpha, weighted, dangling_vertex, seeds):
    frame = pd.DataFrame(rows, columns=["src", "dst", "w"])
    graph = prplugin.Graph(frame, weight="w" if weighted else None, vertices=list(range(6)))
    dangling = None if dangling_vertex is None else {dangling_vertex: 1.0}
    many = graph.rank(seeds=seeds, dangling=dangling, alpha=alpha, tol=1e-10, method=method)
    edges = [(u, v, Fraction(w) if weighted else Fraction(1)) for u, v, w in rows]
    for ranks, bound, one in zip(many.ranks, many.each_error_bound, seeds, strict=True):
        assert distance(ranks, solve(6, edges, alpha, one, dangling)) <= bound <= 1e-10


@each_batch_method
@pytest.mark.parametrize("stop", ["delta", "vertex", "networkx"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_other_stop_rules_agree_with_separate_rankings(method, stop, dtype):
    graph, seeds = skewed_graph(), [{1: 1.0}, {2: 1.0, 40: 1.0}, {77: 1.0}]
    many = graph.rank(seeds=seeds, stop=stop, tol=1e-7, dtype=dtype, method=method)
    assert many.ranks.dtype == dtype
    assert many.converged
    separate = rank_one_by_one(graph, seeds, stop=stop, tol=1e-7, dtype=dtype)
    for ranks, bound, one in zip(many.ranks, many.each_error_bound, separate, strict=True):
        assert np.abs(ranks - one.ranks).sum() <= bound + one.error_bound


@each_batch_method
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("stop", "tol", "iterations"), [("delta", 0.25, 1), ("networkx", 0.125, 2)])
def test_change_equal_to_tol_meets_delta_but_not_networkx(method, stop, tol, iterations, dtype):
    graph = prplugin.Graph(pd.DataFrame({"src": [0, 0, 1], "dst": [0, 1, 0]}))
    uniform = {0: 1.0, 1: 1.0}  # the first step changes it by exactly 1/4
    many = graph.rank(seeds=[uniform] * 3, alpha=0.5, tol=tol, stop=stop, method=method, dtype=dtype)
    assert many.each_iterations.tolist() == [iterations] * 3


@each_batch_method
@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("nstart", [None, {4: 1.0, 5: 1.0}])
def test_tol_0_returns_kth_iterate(method, steps, nstart):
    graph, seeds = skewed_graph(), [{1: 1.0}, {2: 1.0, 40: 1.0}, {77: 1.0}]
    many = graph.rank(seeds=seeds, tol=0, max_iter=steps, nstart=nstart, method=method)
    assert many.each_iterations.tolist() == [steps] * 3
    for ranks, one in zip(many.ranks, rank_one_by_one(graph, seeds, tol=0, max_iter=steps, nstart=nstart), strict=True):
        np.testing.assert_allclose(ranks, one.ranks, rtol=1e-12, atol=1e-18)


def test_proof_without_an_iteration_is_of_the_personalizations():
    seeds = [{1: 1.0, 2: 3.0}, *({seed: 1.0} for seed in range(8))]
    many = skewed_graph().rank(seeds=seeds, max_iter=0, tol=3.0, method="native")
    assert many.converged
    assert many.each_iterations.tolist() == [0] * 9
    expected = np.zeros((9, 1500))
    expected[0, [1, 2]] = 0.25, 0.75
    expected[np.arange(1, 9), np.arange(8)] = 1
    np.testing.assert_array_equal(many.ranks, expected)


@each_batch_method
def test_not_converged_error_carries_rankings(method):
    graph, seeds = skewed_graph(), [{1: 1.0}, {3: 1.0}]
    with pytest.raises(
        prplugin.NotConvergedError, match="3 iterations did not reach a proved error of 1e-06"
    ) as caught:
        graph.rank(seeds=seeds, max_iter=3, method=method)
    many = caught.value.ranking
    assert not many.converged
    exact = rank_one_by_one(graph, seeds, tol=1e-12)
    for ranks, bound, one in zip(many.ranks, many.each_error_bound, exact, strict=True):
        assert np.abs(ranks - one.ranks).sum() <= bound + 1e-12


@each_batch_method
def test_smallest_provable_tol_is_met_at_stagnation(method):
    graph = prplugin.Graph(pd.DataFrame({"src": range(7), "dst": [*range(1, 7), 0]}))
    with pytest.raises(prplugin.InvalidOptionError, match="cannot be proved") as caught:
        graph.rank(seeds=[0, 3], tol=1e-18, alpha=0.99, method=method)
    smallest_tol = float(str(caught.value).split("the smallest provable tol is ")[1].split(". Ask")[0]) * 1.1
    many = graph.rank(seeds=[0, 3], tol=smallest_tol, alpha=0.99, method=method)
    assert many.error_bound <= smallest_tol


def test_nstart_scale_dtype_and_top():
    graph, options = skewed_graph(), {"scale": "n", "nstart": {3: 1}, "dtype": "float32"}
    full = graph.rank(seeds=[4, 9, 1], **options)
    np.testing.assert_allclose(full.ranks.sum(axis=1, dtype=np.float64), graph.number_of_vertices, rtol=1e-5)
    top = graph.rank(seeds=[4, 9, 1], top=5, **options)
    assert top.ranks.shape == top.rows.shape == (3, 5)
    for row, ranks, rows in zip(full.ranks, top.ranks, top.rows, strict=True):
        assert rows.tolist() == highest(row, 5).tolist()
        assert ranks.tolist() == row[rows].tolist()


@given(st.integers(1, 4), st.integers(1, 700), st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**32 - 1))
@hypothesis_settings(max_examples=examples(200), deadline=None)
def test_highest_of_each_agrees_with_highest(count, n, k, levels, seed):
    ranks = np.random.default_rng(seed).integers(0, levels, (count, n)) / 4
    assert highest_of_each(ranks, k).tolist() == [highest(row, k).tolist() for row in ranks]


@pytest.mark.parametrize("method", ["numpy", "native"])
def test_few_seeds_are_ranked_as_alone(method, monkeypatch):
    monkeypatch.setattr(native, "batch_from", 4)
    graph, seeds = skewed_graph(weighted=True), [{1: 1.0}, {2: 1.0, 40: 1.0}, {77: 1.0}]
    many = graph.rank(seeds=seeds, method=method)
    separate = rank_one_by_one(graph, seeds, method=method)
    assert [row.tobytes() for row in many.ranks] == [one.ranks.tobytes() for one in separate]
    assert many.each_iterations.tolist() == [one.iterations for one in separate]
    assert many.each_error_bound.tolist() == [one.error_bound for one in separate]


def test_bits_of_a_seed_do_not_depend_on_the_number_of_seeds(monkeypatch):
    """Regression test: fewer than eight seeds were ranked one after another, in up to ten times the time of eight."""
    monkeypatch.setattr(native, "batch_from", BATCH_FROM)
    graph, seeds = skewed_graph(weighted=True), [{seed: 1.0, seed + 40: 2.0} for seed in range(18)]
    whole = graph.rank(seeds=seeds, method="native")
    for count in (2, 3, 7, 8, 9, 17):
        some = graph.rank(seeds=seeds[:count], method="native")
        assert some.ranks.tobytes() == whole.ranks[:count].tobytes()
        assert some.each_iterations.tolist() == whole.each_iterations[:count].tolist()


# --- independence of seeds ----------------------------------------------------------------------------------------


@each_batch_method
@pytest.mark.parametrize(
    "options",
    [{}, {"tol": 1e-12}, {"alpha": 0.5, "tol": 1e-7}, {"stop": "delta"}, {"max_iter": 200}, {"dangling": {8: 1}}],
)
def test_bits_do_not_depend_on_other_seeds(method, options):
    graph, seeds = skewed_graph(), list(range(0, 100, 2))
    together = graph.rank(seeds=seeds, method=method, **options)
    for positions in ([7], [49, 7, 3], [*range(5, 45)]):
        separate = graph.rank(seeds=[seeds[position] for position in positions], method=method, **options)
        assert [row.tobytes() for row in separate.ranks] == [
            together.ranks[position].tobytes() for position in positions
        ]
        assert separate.each_iterations.tolist() == together.each_iterations[positions].tolist()


def test_bits_do_not_depend_on_thread_count():
    graph, seeds = skewed_graph(40_000, 200_000), list(range(40))
    one, three = (graph.rank(seeds=seeds, method="native", threads=count) for count in (1, 3))
    assert one.ranks.tobytes() == three.ranks.tobytes()
    assert one.each_iterations.tolist() == three.each_iterations.tolist()


def test_bits_do_not_depend_on_batch_size(monkeypatch):
    graph, seeds = skewed_graph(), list(range(30))
    wide = graph.rank(seeds=seeds, method="native")
    monkeypatch.setattr(native_batch, "MOST_BYTES", 1)
    narrow = graph.rank(seeds=seeds, method="native")
    assert wide.ranks.tobytes() == narrow.ranks.tobytes()


def test_bits_do_not_depend_on_extrapolated_seeds():
    random = np.random.default_rng(3)
    sources, targets = random.integers(0, 300, 900), random.integers(0, 300, 900)
    graph = prplugin.Graph(pd.DataFrame({"src": [*sources, 1000, 1001], "dst": [*targets, 1001, 1000]}))
    seeds = [*pd.unique(sources)[:12].tolist(), 1000]
    many = graph.rank(seeds=seeds, method="native", tol=1e-9)
    alone = [graph.rank(seeds=[seed], method="native", tol=1e-9).ranks[0] for seed in seeds]
    assert many.ranks.tobytes() == np.stack(alone).tobytes()


def test_top_is_selected_per_batch(monkeypatch):
    sizes, batches = [], queries_module.batches

    def record_batches(*arguments):
        for batch in batches(*arguments):
            sizes.append(batch.ranks.shape)
            yield batch

    monkeypatch.setattr(queries_module, "batches", record_batches)
    many = skewed_graph().rank(seeds=list(range(70)), top=2, method="native", threads=2)
    assert sizes == [(35, 1500), (35, 1500)]
    assert many.ranks.shape == (70, 2)


def test_unconverged_seeds_continue_in_narrower_panels():
    """Check that seeds which converge late get the same bits as without the seeds that converge early."""
    graph = prplugin.Graph(
        pd.DataFrame({"src": [*range(1, 900), 0, *range(1000, 1400)], "dst": [*range(900), *range(1001, 1401)]})
    )
    seeds = [*range(1380, 1400), *range(5)]
    together = graph.rank(seeds=seeds, method="native", tol=1e-11)
    separate = graph.rank(seeds=seeds[-5:], method="native", tol=1e-11)
    assert together.each_iterations[:5].max() < together.each_iterations[-5:].min()
    assert together.ranks[-5:].tobytes() == separate.ranks.tobytes()


@pytest.mark.parametrize("method", [param(name) for name in BATCH_METHODS if hasattr(methods()[name], "batch")])
def test_acceleration_saves_iterations(method):
    graph, seeds = prplugin.Graph(communities(), vertices=range(480)), [1, 2, 300]
    many = graph.rank(seeds=seeds, alpha=0.95, tol=1e-8, method=method)
    plain = graph.rank(seeds=seeds, alpha=0.95, tol=1e-8 * 0.05, stop="delta", method=method)
    assert many.error_bound <= 1e-8
    assert many.iterations < 0.7 * plain.iterations


# --- frames -------------------------------------------------------------------------------------------------------


def test_seeds_are_the_columns_of_a_matrix():
    """Compare every selection with that of a dense matrix, some of whose entries are stored zeros."""
    random, n = np.random.default_rng(0), 7
    sizes = np.array([3, 1, 7, 2, 4])
    rows = np.concatenate([random.permutation(n)[:size] for size in sizes])
    values, bounds = random.integers(1, 5, rows.size) * 1.0, np.append(0, np.cumsum(sizes))
    values[[1, 5]] = 0.0
    seeds = Seeds.normalized(bounds, rows, values)
    dense = np.zeros((n, sizes.size))
    dense[rows, np.repeat(np.arange(sizes.size), sizes)] = values
    dense /= dense.sum(axis=0)

    def assert_equal(found, expected):
        assert found.count == expected.shape[1]
        assert found.bounds[0] == 0 < found.bounds[-1] == found.rows.size == found.values.size
        columns = [found.vector(seed, n) for seed in range(found.count)]
        np.testing.assert_allclose(np.transpose(columns), expected, rtol=1e-15)
        vertices, of, entries = found.entries_by_vertex()
        assert sorted(zip(vertices, of, strict=True)) == list(zip(vertices, of, strict=True))
        np.testing.assert_allclose(entries, expected[vertices, of], rtol=1e-15)
        of, vertices = found.support()
        assert sorted(zip(vertices, of, strict=True)) == [*map(tuple, np.argwhere(expected))]

    assert_equal(seeds, dense)
    assert_equal(seeds.on("host"), dense)
    for first in range(5):
        for last in range(first + 1, 6):
            assert_equal(seeds.slice(first, last), dense[:, first:last])
    for some in ([0], [4], [1, 3], [0, 2, 4], [0, 1, 2, 3, 4]):
        assert_equal(seeds.take(np.array(some)), dense[:, some])
    assert seeds.take(np.arange(5)) is seeds


def test_list_of_vertices_returns_row_per_seed_and_vertex():
    many = EDGES.pagerank(seeds=["dan", "bob"])
    assert many.columns.tolist() == ["seed", "vertex", "pagerank"]
    assert many["seed"].tolist() == ["dan"] * 4 + ["bob"] * 4
    assert many["vertex"].tolist() == ["ann", "bob", "cat", "dan"] * 2
    assert many["seed"].dtype == many["vertex"].dtype
    single = EDGES.pagerank(personalization={"dan": 1})
    np.testing.assert_allclose(many["pagerank"][:4], single["pagerank"], atol=1e-6)
    assert EDGES.pagerank(seeds=("dan", "bob")).equals(many)


def test_seed_may_be_dict_series_or_frame():
    frame = pd.DataFrame({"vertex": ["ann", "bob"], "values": [1, 3]})
    given = [{"ann": 1, "bob": 3}, frame.set_index("vertex")["values"], frame]
    many = EDGES.pagerank(seeds=given, top=3)
    assert many["seed"].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    parts = [part.drop(columns="seed").reset_index(drop=True) for _, part in many.groupby("seed")]
    assert parts[0].equals(parts[1])
    assert parts[0].equals(parts[2])


def test_seed_column_separates_seeds():
    frame = pd.DataFrame(
        {"seed": ["y", "x", "y"], "values": [2.0, 1.0, 6.0], "vertex": ["ann", "cat", "bob"], "other": 1}
    )
    before = frame.copy()
    many = EDGES.pagerank(seeds=frame)
    assert many["seed"].tolist() == ["y"] * 4 + ["x"] * 4
    listed = EDGES.pagerank(seeds=[{"ann": 2, "bob": 6}, {"cat": 1}])
    assert many["pagerank"].tolist() == listed["pagerank"].tolist()
    without = EDGES.pagerank(seeds=frame[["seed", "vertex"]])
    equal = EDGES.pagerank(seeds=[{"ann": 1, "bob": 1}, {"cat": 1}])
    assert without["pagerank"].tolist() == equal["pagerank"].tolist()
    assert frame.equals(before)


def test_seeds_of_several_columns_keep_vertex_names():
    edges = pd.DataFrame({"bank": [1, 1, 2], "no": ["a", "b", "a"], "to": [1, 2, 1], "to_no": ["b", "a", "a"]})
    arguments = (["bank", "no"], ["to", "to_no"])
    many = edges.pagerank(*arguments, seeds=[(2, "a"), (1, "a")], top=1)
    assert many.columns.tolist() == ["seed_bank", "seed_no", "bank", "no", "pagerank"]
    assert many[["seed_bank", "seed_no"]].to_numpy().tolist() == [[2, "a"], [1, "a"]]
    by_frame = pd.DataFrame({"seed": [7, 5], "bank": [2, 1], "no": ["a", "a"]})
    other = edges.pagerank(*arguments, seeds=by_frame, top=1)
    assert other.columns.tolist() == ["seed", "bank", "no", "pagerank"]
    assert other["pagerank"].tolist() == many["pagerank"].tolist()


def test_vertex_column_named_seed_raises():
    edges = pd.DataFrame({"seed": [1, 2], "no": [1, 1], "to": [2, 1], "to_no": [1, 1]})
    arguments = (["seed", "no"], ["to", "to_no"])
    one = edges.pagerank(*arguments, personalization=pd.DataFrame({"seed": [1], "no": [1], "values": [1]}))
    assert len(one) == 2
    with pytest.raises(prplugin.InvalidOptionError, match="the result of many seeds has a column 'seed'"):
        edges.pagerank(*arguments, seeds=[{(1, 1): 1}, {(2, 1): 1}])
    assert edges.pagerank(*arguments, seeds=[(1, 1)]).columns[0] == "seed_seed"


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_result_is_frame_of_same_library(library):
    pl = pytest.importorskip("polars")

    def wrap(frame):
        return pl.DataFrame(frame) if library == "polars" else pa.Table.from_pandas(frame, preserve_index=False)

    def plain(frame):
        return [tuple(row.values()) for row in (frame.to_dicts() if library == "polars" else frame.to_pylist())]

    def expected(**options):
        return list(EDGES.pagerank(**options).itertuples(index=False, name=None))

    many = prplugin.pagerank(wrap(EDGES), seeds=["cat", "ann"], top=2)
    assert type(many) is type(wrap(EDGES))
    assert plain(many) == expected(seeds=["cat", "ann"], top=2)
    given = pd.DataFrame({"seed": [9, 9, 8], "vertex": ["cat", "bob", "ann"], "values": [1, 2, 3]})
    assert plain(prplugin.pagerank(wrap(EDGES), seeds=wrap(given))) == expected(seeds=given)
    if library == "pyarrow":
        stream = wrap(given).to_reader()
        assert plain(prplugin.pagerank(wrap(EDGES), seeds=stream)) == expected(seeds=given)
    entries = [wrap(given.iloc[:2, 1:]), {"ann": 1}]
    assert plain(prplugin.pagerank(wrap(EDGES), seeds=entries)) == expected(seeds=[given.iloc[:2, 1:], {"ann": 1}])


def test_seeds_of_matrix_graph_may_be_arrays():
    matrix = scipy.sparse.random(30, 30, 0.1, format="csr", random_state=np.random.default_rng(0))
    graph = prplugin.Graph.from_csr(matrix)
    by_array = graph.rank(seeds=[np.eye(30)[4], np.arange(30)])
    by_dict = graph.rank(seeds=[{4: 1}, {vertex: vertex for vertex in range(1, 30)}])
    assert by_array.ranks.tobytes() == by_dict.ranks.tobytes()
    assert graph.rank(seeds=[4, 7]).ranks[0].tobytes() == by_array.ranks[0].tobytes()
    with pytest.raises(prplugin.InvalidOptionError, match=r"seeds\[1\] is an array of shape \(3,\)"):
        graph.rank(seeds=[np.ones(30), np.ones(3)])
    with pytest.raises(prplugin.InvalidOptionError, match="values of 1 seed sum to 0, the one at 0"):
        graph.rank(seeds=[np.zeros(30)])


@pytest.mark.parametrize("ids", [np.int16, "category", "datetime64[ns]", "str", "Int64"])
def test_seeds_keep_dtype_of_vertices(ids):
    numbers = pd.Series([1, 2, 3])
    column = (numbers.astype("str") if ids == "category" else numbers).astype(ids)
    edges = pd.DataFrame({"src": column, "dst": column.iloc[[1, 2, 0]].array})
    many = edges.pagerank(seeds=[column.iloc[2], column.iloc[0]], top=1)
    assert many["seed"].dtype == many["vertex"].dtype == column.dtype
    assert many["seed"].tolist() == [column.iloc[2], column.iloc[0]]


# --- errors -------------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"seed": [1, 1, 2], "vertex": ["ann", "bob", "ann"], "values": [1.0, 0.0, 0.0]})
INVALID_SEEDS = {
    "empty list": ([], "seeds is empty: it must name at least one seed."),
    "unknown": (["ann", "eve"], "seeds names 1 vertex not in the graph: 'eve'."),
    "unknown in dict": ([{"ann": 1}, {"eve": 1}], "1 vertex not in the graph: 'eve'."),
    "repeated": (["ann", "bob", "ann"], "seeds names 1 vertex more than once: 'ann'. Drop all but one"),
    "mixed kinds": ([{"ann": 1}, "bob"], "1 entry is not: 'bob'. Write {vertex: 1} for a seed that is a vertex"),
    "other id kind": ([1, 2], "seeds names vertices by ids of kind integer, but the graph's are of kind string"),
    "sum 0": ([{"ann": 1}, {"bob": 0}], "the values of 1 seed sum to 0, the one at 1 (counted from 0)"),
    "sum 0 in frame": (FRAME, "the values of 1 seed sum to 0, the one at 1 (counted from 0)"),
    "sum overflows": ([{"ann": 1e308, "bob": 1e308}], "the values of 1 seed sum to more than float64 holds, the one at 0"),
    "negative": ([{"ann": 1}, {"bob": -1}], "seeds[1] has 1 value below 0: -1 in entry 0"),
    "empty dict": ([{"ann": 1}, {}], "seeds[1] is empty: it must give a positive value to at least one vertex."),
    "repeated in one seed": (
        pd.DataFrame({"seed": [1, 1], "vertex": ["ann", "ann"]}), "seeds names 1 vertex more than once: 'ann'",
    ),
    "null seed": (FRAME.assign(seed=[1, None, 2]), "seeds has 1 row without a seed: 1 (counted from 0)"),
    "values by another name": (
        FRAME.rename(columns={"values": "score"}),
        "has no column 'values': it needs the columns 'seed', 'vertex', 'values'. Its columns are 'seed', 'vertex', 'score'.",
    ),
    "values by another name in one frame of a list": (
        [FRAME[["vertex", "values"]].rename(columns={"values": "weight"})],
        "seeds[0] has no column 'values': it needs the columns 'vertex', 'values'. Its columns are 'vertex', 'weight'.",
    ),
    "no vertex column": (FRAME[["seed", "values"]], "seeds has no column 'vertex'"),
    "null": (["ann", None], "seeds has 1 null, in row 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID_SEEDS)
def test_invalid_seeds_raise(name):
    given, message = INVALID_SEEDS[name]
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        EDGES.pagerank(seeds=given)
    assert message in str(caught.value)


def test_method_without_batch_raises(monkeypatch):
    graph = prplugin.Graph(EDGES)
    with pytest.raises(prplugin.InvalidOptionError, match="no method that ranks many personalizations at once takes"):
        graph.rank(seeds=["ann"], lanes=4)
    monkeypatch.delattr(methods()["numpy"], "batch_cost")
    with pytest.raises(prplugin.MethodUnavailableError, match="'numpy' ranks one personalization at a time"):
        graph.rank(seeds=["ann"], method="numpy")
    assert graph.rank(seeds=["ann"]).method == "native"


def test_seeds_are_ranked_by_numpy_without_compiled_kernels(hide_kernels):
    expected = prplugin.Graph(EDGES).rank(seeds=["ann", "bob"], method="numpy")
    hide_kernels("there is no compiler")
    with pytest.warns(prplugin.PageRankWarning, match="ranking by the slower method 'numpy': there is no compiler"):
        found = prplugin.Graph(EDGES).rank(seeds=["ann", "bob"])
    assert found.method == "numpy"
    assert found.ranks.tolist() == expected.ranks.tolist()


def test_certified_with_seeds_raises():
    graph = prplugin.Graph(EDGES)
    with pytest.raises(prplugin.InvalidOptionError, match="certified=True proves the order of one ranking"):
        graph.rank(seeds=["ann", "bob"], top=2, certified=True)


def test_out_of_memory_error_names_bytes_of_result(monkeypatch):
    def fail(*_, **__):
        raise MemoryError("none left")

    monkeypatch.setattr(methods()["numpy"], "prepare", fail)
    with pytest.raises(
        prplugin.OutOfMemoryError, match=r"none left\. The ranks of 4 vertices from 2 seeds take 64 bytes"
    ):
        prplugin.Graph(EDGES).rank(seeds=["ann", "bob"], method="numpy")


def test_row_with_all_edges_leaves_other_pieces_empty():
    graph = prplugin.Graph.from_csr([0, 300, *[300] * 4], [4] * 300)
    seeds = [np.array([1, 0, 0, 0, 0]), np.array([0, 2, 0, 1, 0]), np.array([0, 0, 0, 0, 1])]
    many = graph.rank(seeds=seeds, method="native", tol=1e-10)
    for ranks, one in zip(many.ranks, rank_one_by_one(graph, seeds, tol=1e-10), strict=True):
        assert np.abs(ranks - one.ranks).sum() <= 2e-10


def test_progress_and_str():
    seen = []
    many = prplugin.Graph(EDGES).rank(seeds=["ann", "bob"], progress=seen.append)
    assert [state.stage for state in seen[:2]] == ["edges", "iterations"]
    assert str(many).startswith("PageRank from 2 seeds: converged after at most ")
    assert isinstance(many, prplugin.Ranking)


# --- on the GPU ---------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.skipif(bool(rapids.missing("cudf")), reason=str(rapids.missing("cudf")))
@pytest.mark.filterwarnings("default")  # cuDF raises warnings of its own
def test_seeds_of_cudf_frame():
    import cudf

    names = cudf.DataFrame(EDGES)
    for edges, seeds in ((names, ["dan", "bob"]), (cudf.DataFrame(skewed()), [5, 3, 60])):
        expected = edges.to_pandas().pagerank(seeds=seeds)
        many = edges.pagerank(seeds=seeds)
        assert isinstance(many, cudf.DataFrame)
        for column in ("seed", "vertex"):
            assert many[column].to_pandas().tolist() == expected[column].tolist()
        np.testing.assert_allclose(many["pagerank"].to_pandas(), expected["pagerank"], atol=2e-6)
        top = edges.pagerank(seeds=seeds, top=3).to_pandas()
        assert top["seed"].tolist() == [seed for seed in seeds for _ in range(3)]
        ordered = expected.sort_values(["pagerank"], ascending=False, kind="stable").groupby("seed", sort=False).head(3)
        for seed in seeds:
            np.testing.assert_allclose(
                top.loc[top["seed"] == seed, "pagerank"], ordered.loc[ordered["seed"] == seed, "pagerank"], atol=2e-6
            )


@pytest.mark.gpu
@pytest.mark.skipif(bool(rapids.missing("cudf")), reason=str(rapids.missing("cudf")))
@pytest.mark.filterwarnings("default")
def test_seed_values_of_cudf_frame_and_errors():
    import cudf

    names = cudf.DataFrame(EDGES)
    given = pd.DataFrame({"seed": ["y", "x", "y"], "vertex": ["ann", "cat", "bob"], "values": [2.0, 1.0, 6.0]})
    expected = EDGES.pagerank(seeds=given)
    entries = [cudf.DataFrame(given.iloc[[0, 2], 1:]), {"cat": 1}]
    for one in (given, cudf.DataFrame(given), entries):
        many = names.pagerank(seeds=one).to_pandas()
        np.testing.assert_allclose(many["pagerank"], expected["pagerank"], atol=2e-6)
        assert many["seed"].tolist() == ([0] * 4 + [1] * 4 if one is entries else expected["seed"].tolist())
    for bad, message in INVALID_SEEDS.values():
        with pytest.raises(prplugin.InvalidOptionError) as caught:
            names.pagerank(seeds=bad)
        assert message in str(caught.value)


@pytest.mark.parametrize("few", [True, False], ids=["individually", "batch"])
def test_small_slow_graph_is_solved_directly_for_each_seed(monkeypatch, few):
    monkeypatch.setattr(native, "batch_from", 100 if few else 1)
    n, alpha = 1000, 0.99999
    graph = prplugin.Graph(pd.DataFrame({"src": (np.arange(n) + 1) % n, "dst": np.arange(n)}))
    vertices = range(0, n, 100)
    rankings = graph.rank(seeds=list(vertices), alpha=alpha, method="native")
    assert (rankings.each_iterations > 2000).all()
    assert (rankings.each_iterations < 2400).all()
    exact = (1 - alpha) * alpha ** np.arange(n) / (1 - alpha**n)
    for ranks, bound, vertex in zip(rankings.ranks, rankings.each_error_bound, vertices, strict=True):
        assert np.abs(ranks - np.roll(exact[-np.arange(n)], vertex)).sum() <= bound <= 1e-6


def test_slow_seeds_of_a_large_graph_stay_in_their_batch(monkeypatch):
    """None is ranked individually, since there is no direct solution."""
    monkeypatch.setattr(batch_module, "is_small", lambda problem: False)
    monkeypatch.setattr(batch_module, "DIRECT_AFTER", 5)

    def prepare(problem, machine, *, threads=None):
        raise AssertionError("a seed is ranked individually")

    monkeypatch.setattr(native, "prepare", prepare)
    rankings = skewed_graph().rank(seeds=list(range(9)), method="native")
    assert rankings.converged
    assert (rankings.each_iterations > 5).all()
