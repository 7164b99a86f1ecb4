"""Graph.update of cuDF graphs: the same edges, errors and ranks as with pandas."""

from __future__ import annotations

import gc
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cudf_frames import REQUIRES_CUDF, as_list, cudf, cupy, on_gpu, run
from limits import limited_memory

import prplugin

pytestmark = REQUIRES_CUDF


def ids_of(graph) -> list:
    ids = graph.vertices
    ids = ids.to_pandas() if hasattr(ids, "to_pandas") else ids
    return ids.tolist() if isinstance(ids, pd.Series) else list(ids.itertuples(index=False, name=None))


def edges_of(graph) -> Counter:
    """Return the edges as triples of ids and weight."""
    ids = ids_of(graph)
    offsets, targets, weights = (getattr(array, "get", lambda array=array: array)() for array in graph.csr())
    sources = np.repeat(np.arange(len(ids)), np.diff(offsets))
    weights = np.ones(targets.size) if weights is None else weights
    return Counter(
        (ids[source], ids[target], weight)
        for source, target, weight in zip(sources, targets, weights.tolist(), strict=True)
    )


def error_of(graph, **change) -> str | None:
    """Update a graph; return the error, or None."""
    try:
        graph.update(**change)
    except prplugin.PageRankError as error:
        return f"{type(error).__name__}: {error}"
    return None


def assert_same_graph(device, host, tol=1e-9):
    assert ids_of(device) == ids_of(host)
    assert device.number_of_edges == host.number_of_edges
    ranking = device.rank(tol=tol)
    assert ranking.error_bound <= tol
    assert np.abs(ranking.ranks.get() - host.rank(tol=tol).ranks).sum() <= 2 * tol


IDS = {
    "integers": lambda low, high: pd.DataFrame({"a": low, "c": high}),
    "strings": lambda low, high: pd.DataFrame({"a": [f"v{one}" for one in low], "c": [f"v{one}" for one in high]}),
    "two columns": lambda low, high: pd.DataFrame(
        {"a": [f"x{one % 3}" for one in low], "b": low // 3, "c": [f"x{one % 3}" for one in high], "d": high // 3}
    ),
}


@pytest.mark.parametrize("duplicates", ["sum", "first", "last", "error"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", IDS)
def test_random_updates_equal_those_of_pandas_graphs(kind, directed, duplicates):
    ends = (["a", "b"], ["c", "d"]) if kind == "two columns" else ("a", "c")
    names = list(np.ravel(ends))
    succeeded = failed = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)

        def frame(m, low=0, high=8, rng=rng):
            edges = IDS[kind](rng.integers(low, high, m), rng.integers(low, high, m))
            return edges.assign(w=rng.choice([0.0, 0.25, 1.0, 3.0], m))

        rows = frame(1 if duplicates == "error" else int(rng.integers(1, 12)))
        options = {"weight": "w" if seed % 2 else None, "directed": directed, "duplicates": duplicates}
        host, device = prplugin.Graph(rows, *ends, **options), prplugin.Graph(on_gpu(rows), *ends, **options)
        for number in range(6):
            added = frame(int(rng.integers(1, 4)), -3 if number % 3 == 1 else 0, 12 if number % 3 else 8)
            chosen = rng.permutation(len(rows))[: rng.integers(0, 3)]
            removed = rows.iloc[chosen].reset_index(drop=True) if number != 4 else frame(1, 0, 12)
            if number % 2:
                removed = removed[names]
            errors = [
                error_of(host, add=added, remove=removed),
                error_of(device, add=on_gpu(added), remove=on_gpu(removed)),
            ]
            assert errors[0] == errors[1]
            succeeded, failed = succeeded + (errors[0] is None), failed + (errors[0] is not None)
            if errors[0] is None:
                rows = pd.concat([rows, added], ignore_index=True)
            assert edges_of(device) == edges_of(host)
            assert_same_graph(device, host)
    assert succeeded > 10
    assert failed > 3


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("directed", [True, False])
def test_large_updates(directed, weight):
    rng = np.random.default_rng(1)
    n, m = 30_000, 400_000
    rows = pd.DataFrame({"src": rng.integers(0, n, m), "dst": rng.integers(0, n, m), "w": rng.random(m)})
    device = prplugin.Graph(on_gpu(rows), weight=weight, directed=directed)
    for batch in (3, 400, 40_000):
        removed = rows.iloc[rng.choice(len(rows), batch, replace=False)]
        added = pd.DataFrame(
            {"src": rng.integers(-9, n + 9, batch), "dst": rng.integers(0, n, batch), "w": rng.random(batch)}
        )
        device.update(add=on_gpu(added), remove=on_gpu(removed.reset_index(drop=True)))
        rows = pd.concat([rows.drop(removed.index), added], ignore_index=True)
        ids = as_list(device.vertices)
        host = prplugin.Graph(rows, weight=weight, directed=directed, vertices=ids)
        assert_same_graph(device, host)
        for found, expected in zip(device.csc(), host.csc(), strict=True):
            assert (found is None) == (expected is None)
        assert (device.csc().offsets.get() == host.csc().offsets).all()


def test_next_ranking_starts_from_the_last_ranks():
    rng = np.random.default_rng(2)
    edges = on_gpu(pd.DataFrame({"src": rng.integers(0, 50_000, 500_000), "dst": rng.integers(0, 50_000, 500_000)}))
    graph = prplugin.Graph(edges)
    for options in ({}, {"personalization": {3: 1.0, 7: 2.0}}):
        first = graph.rank(tol=1e-8, **options)
        graph.update(add=on_gpu(pd.DataFrame({"src": [1, 60_000], "dst": [60_000, 2]})))
        second = graph.rank(tol=1e-8, **options)
        assert second.iterations < first.iterations
        assert second.error_bound <= 1e-8


CONVERSIONS = {
    "int8": lambda ids: np.array(ids, np.int8),
    "uint64": lambda ids: np.array(ids, np.uint64),
    "nullable": lambda ids: pd.array(ids, dtype="Int32"),
    "categories": lambda ids: pd.Categorical([f"v{one}" for one in ids], categories=[f"v{one}" for one in range(9)]),
    "datetimes": lambda ids: pd.to_datetime(ids, unit="D"),
}


@pytest.mark.parametrize("kind", CONVERSIONS)
def test_ids_of_any_kind(kind):
    convert = CONVERSIONS[kind]
    first, more, removed = (
        pd.DataFrame({"src": convert(source), "dst": convert(target)})
        for source, target in (([5, 2, 6], [2, 5, 5]), ([7, 2], [5, 8]), ([6], [5]))
    )
    host, device = prplugin.Graph(first), prplugin.Graph(on_gpu(first))
    before = device.vertices.dtype
    device.update(add=on_gpu(more), remove=on_gpu(removed))
    host.update(add=more, remove=removed)
    assert device.vertices.dtype == before
    assert_same_graph(device, host)


def test_wider_ids_widen_the_vertices():
    graph = prplugin.Graph(on_gpu(pd.DataFrame({"src": [1, 2], "dst": [2, 1]}, dtype="int32")))
    graph.update(add=on_gpu(pd.DataFrame({"src": [1 << 40], "dst": [2]})))
    assert as_list(graph.rank().frame["vertex"]) == [1, 2, 1 << 40]
    with pytest.raises(prplugin.InvalidEdgesError, match="add names vertices by ids of kind string"):
        graph.update(add=on_gpu(pd.DataFrame({"src": ["a"], "dst": ["b"]})))


def test_empty_graph_and_empty_frames():
    graph = prplugin.Graph(on_gpu(pd.DataFrame({"src": [], "dst": []})))
    rows = on_gpu(pd.DataFrame({"src": ["a", "b"], "dst": ["b", "c"]}))
    graph.update(add=rows)
    graph.update(add=rows.head(0), remove=rows.head(0))
    graph.update()
    assert as_list(graph.rank().frame["vertex"]) == ["a", "b", "c"]
    graph.update(remove=rows)
    assert (graph.number_of_edges, graph.number_of_vertices) == (0, 3)
    assert graph.rank().ranks.get().tolist() == [1 / 3] * 3


def test_failed_update_changes_nothing():
    rows = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1], "w": [1.0, 1.0, 1e308]})
    graph = prplugin.Graph(on_gpu(rows), weight="w")
    before = graph.rank(tol=1e-9).ranks.get()
    for change, message in (
        ({"remove": rows.assign(w=1.0)}, r"remove has 1 edge that the graph does not have: 3 -> 1 of weight 1\."),
        ({"remove": rows.assign(dst=[2, 7, 1])}, "remove has 1 edge that the graph does not have: 2 -> 7"),
        ({"add": rows, "remove": rows.iloc[[0, 0]].reset_index(drop=True)}, "1 edge that the graph does not have"),
        ({"add": rows.iloc[[2, 2]].reset_index(drop=True)}, r"leave 1 vertex \(3\) sum to more than float64 holds"),
        ({"add": pd.DataFrame({"src": [5], "dst": [6], "w": [-1.0]})}, "column 'w' has 1 value below 0"),
    ):
        with pytest.raises(prplugin.InvalidEdgesError, match=message):
            graph.update(**{name: on_gpu(frame) for name, frame in change.items()})
        assert edges_of(graph) == edges_of(prplugin.Graph(rows, weight="w"))
        assert ids_of(graph) == [1, 2, 3]
        assert np.abs(graph.rank(tol=1e-9).ranks.get() - before).sum() <= 2e-9


def test_frames_on_the_host_are_copied_to_the_gpu(tmp_path):
    rows = pd.DataFrame({"src": ["a", "b"], "dst": ["b", "c"], "w": [1.0, 2.0]})
    graph = prplugin.Graph(on_gpu(rows), weight="w", duplicates="last")
    more = pd.DataFrame({"src": ["c", "a"], "dst": ["d", "b"], "w": [3.0, 4.0]})
    more.to_parquet(tmp_path / "more.parquet")
    expected = Counter({("b", "c", 2.0): 1, ("c", "d", 3.0): 1, ("a", "b", 4.0): 1})
    for frame in (more, pa.Table.from_pandas(more), str(tmp_path / "more.parquet")):
        graph.update(add=frame)
        assert edges_of(graph) == expected
    graph.update(remove=more[["src", "dst"]])
    assert edges_of(graph) == Counter({("b", "c", 2.0): 1})


def test_decaying_weights():
    rng = np.random.default_rng(8)
    edges = pd.DataFrame({"src": rng.integers(0, 30, 200), "dst": rng.integers(0, 30, 200), "w": rng.random(200)})
    edges["at"] = np.sort(rng.integers(0, 5000, 200))
    options = {"weight": "w", "time": "at", "half_life": 7}
    host, device = prplugin.Graph(edges[:150], **options), prplugin.Graph(on_gpu(edges[:150]), **options)
    for first in range(150, 200, 10):
        added, removed = edges[first : first + 10], edges[first - 150 : first - 147]
        host.update(add=added, remove=removed)
        device.update(add=on_gpu(added), remove=on_gpu(removed))
        assert edges_of(device) == edges_of(host)
        found, expected = device.rank(tol=1e-8), host.rank(tol=1e-8)
        assert type(found.frame) is cudf.DataFrame
        assert np.abs(found.ranks - expected.ranks).sum() <= 2e-8


def test_update_of_a_sparse_matrix():
    from cupyx.scipy import sparse

    graph = prplugin.Graph.from_csr(sparse.csr_matrix(cupy.array([[0.0, 0.5], [2.0, 0.0]])))
    graph.update(
        add=on_gpu(pd.DataFrame({"src": [1, 4], "dst": [0, 1], "weight": [1.5, 1.0]})),
        remove=on_gpu(pd.DataFrame({"src": [1], "dst": [0], "weight": [2.0]})),
    )
    assert edges_of(graph) == Counter({(0, 1, 0.5): 1, (1, 0, 1.5): 1, (4, 1, 1.0): 1})
    assert as_list(graph.rank().frame["vertex"]) == [0, 1, 4]


def test_updates_on_a_stream_of_the_caller():
    rng = np.random.default_rng(7)
    rows = pd.DataFrame({"src": rng.integers(0, 9000, 300_000), "dst": rng.integers(0, 9000, 300_000)})
    host = prplugin.Graph(rows, vertices=range(9010))
    stream = cupy.cuda.Stream(non_blocking=True)
    device = prplugin.Graph(on_gpu(rows), vertices=range(9010))
    for first in range(0, 5000, 1000):
        part = rows[first : first + 1000].reset_index(drop=True)
        more = part.assign(dst=part["src"] % 9010)
        host.update(add=more, remove=part)
        with stream:
            device.update(add=on_gpu(more), remove=on_gpu(part))
            ranks = device.rank(tol=1e-9).ranks
            stream.synchronize()
        assert np.abs(ranks.get() - host.rank(tol=1e-9).ranks).sum() <= 2e-9


def test_memory_does_not_grow_with_updates():
    import rmm

    rng = np.random.default_rng(9)
    rows = on_gpu(pd.DataFrame({"src": rng.integers(0, 9000, 200_000), "dst": rng.integers(0, 9000, 200_000)}))
    upstream = rmm.mr.get_current_device_resource()
    statistics = rmm.mr.StatisticsResourceAdaptor(upstream)
    rmm.mr.set_current_device_resource(statistics)
    try:
        graph, sizes = prplugin.Graph(rows), []
        for number in range(12):
            part = rows[number * 100 : number * 100 + 100].reset_index(drop=True)
            graph.update(add=part, remove=part)
            graph.rank()
            gc.collect()
            sizes.append(statistics.allocation_counts.current_bytes)
        assert sizes[-1] == sizes[2]
        del graph, part
    finally:
        gc.collect()
        rmm.mr.set_current_device_resource(upstream)


def test_lack_of_memory_changes_nothing():
    rng = np.random.default_rng(10)
    rows = on_gpu(pd.DataFrame({"src": rng.integers(0, 9000, 200_000), "dst": rng.integers(0, 9000, 200_000)}))
    graph = prplugin.Graph(rows)
    before = graph.rank(tol=1e-9).ranks.get()
    message = r"old and the new edges at the same time\. Nothing"
    with limited_memory(200_000), pytest.raises(prplugin.OutOfMemoryError, match=message):
        graph.update(add=rows)
    assert graph.number_of_edges == 200_000
    assert np.abs(graph.rank(tol=1e-9).ranks.get() - before).sum() <= 2e-9


PROXIES = """
import cudf.pandas
cudf.pandas.install()
import pandas as pd
import prplugin

for ids in ([1, 2, 3, 4], ["a", "b", "c", "d"]):
    a, b, c, d = ids
    graph = prplugin.Graph(pd.DataFrame({"src": [a, b, c], "dst": [b, c, a]}))
    graph.rank()
    graph.update(add=pd.DataFrame({"src": [d], "dst": [b]}), remove=pd.DataFrame({"src": [c], "dst": [a]}))
    frame = graph.rank().frame
    assert cudf.pandas.is_proxy_object(frame)
    assert frame["vertex"].tolist() == ids, frame
    assert graph.number_of_edges == 3
    aging = prplugin.Graph(pd.DataFrame({"src": [a, b], "dst": [b, c], "at": [0, 1]}), time="at", half_life=1)
    aging.update(add=pd.DataFrame({"src": [d], "dst": [b], "at": [2]}), remove=pd.DataFrame({"src": [a], "dst": [b]}))
    assert aging.rank().frame["vertex"].tolist() == ids
    assert aging.number_of_edges == 2
"""


def test_proxies_of_cudf_pandas():
    run("-c", PROXIES)
