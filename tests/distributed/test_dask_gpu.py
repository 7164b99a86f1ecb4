"""dask_cudf frames on all GPUs of this machine, compared with one cuDF frame on one GPU."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from worker_kill import worker_killed

import prplugin
from prplugin.gpu.runtime import unavailable_reason

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(unavailable_reason() is not None, reason=str(unavailable_reason())),
    pytest.mark.filterwarnings("ignore"),  # RAPIDS and Dask raise warnings of their own
    pytest.mark.usefixtures("on_all_workers"),
]

CUDA = unavailable_reason() is None
cudf = pytest.importorskip("cudf") if CUDA else None
dask_cudf = pytest.importorskip("dask_cudf") if CUDA else None
dask_cuda = pytest.importorskip("dask_cuda") if CUDA else None


@pytest.fixture(scope="module")
def client():
    from distributed import Client

    with (
        dask_cuda.LocalCUDACluster(protocol="tcp", dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(len(cluster.workers), timeout=120)
        yield client


def edges_of(seed=0, n=3000, m=40_000, dtype="int64", stretch=1):
    rng = np.random.default_rng(seed)
    columns = {"src": rng.integers(0, n, m) ** 2 // n * stretch, "dst": rng.integers(0, n, m) * stretch}
    return cudf.DataFrame(columns).astype(dtype).assign(w=rng.random(m))


def dask_frame(edges, npartitions=5):
    return dask_cudf.from_cudf(edges, npartitions=npartitions, sort=False)


def assert_same_ranks(found, expected, atol=2e-6):
    found = found.compute()
    assert isinstance(found, cudf.DataFrame)
    found, expected = found.to_pandas(), expected.to_pandas()
    pd.testing.assert_frame_equal(found.drop(columns="pagerank"), expected.drop(columns="pagerank"))
    np.testing.assert_allclose(found["pagerank"], expected["pagerank"], rtol=0, atol=atol)
    assert np.abs(found["pagerank"].to_numpy() - expected["pagerank"].to_numpy()).sum() <= 2 * atol


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32"])
def test_result_is_partitioned_dask_frame(client, dtype):
    edges = edges_of(dtype=dtype)
    ranks = dask_frame(edges).pagerank()
    assert type(ranks).__module__.startswith("dask_cudf")
    assert ranks.npartitions == len(client.scheduler_info()["workers"])
    assert_same_ranks(ranks, edges.pagerank())


@pytest.mark.parametrize(
    "options",
    [
        {"weight": "w"},
        {"weight": "w", "alpha": 0.95, "scale": "n", "dtype": "float32", "tol": 1e-5},
        {"directed": False, "duplicates": "first", "weight": "w", "vertices": [10**6, 7, -5]},
        {"personalization": {3: 1.0, 5: 2.0}, "dangling": {4: 1}, "nstart": {1: 1, 2: 3}},
        {"tol": 0, "max_iter": 5},
        {"tol": 1e-11},
        {"stop": "delta"},
        {"top": 5, "tol": 1e-10},
        {"method": "persistent"},
        {"method": "propagation-blocking"},
        {"method": "propagation-blocking", "weight": "w", "tile": 64, "piece": 256},
    ],
    ids=str,
)
def test_options(client, options):
    edges = edges_of(1)
    single = {name: value for name, value in options.items() if name not in ("method", "tile", "piece")}
    assert_same_ranks(
        dask_frame(edges).pagerank(**options), edges.pagerank(**single), 1e-2 if "scale" in options else 2e-6
    )


@pytest.mark.parametrize("ids", ["int32", "int64", "str"])
def test_one_worker_ranks_edges_that_fit(client, one_worker, ids):
    """Check that the partitions of all workers reach one of them, and the bits are those of one process."""
    edges = edges_of(1, n=300, m=4000)
    edges.loc[[3, 3999], "w"] = 2.0
    frame = dask_frame(edges.astype({"src": ids, "dst": ids})).persist()
    edges = frame.compute()
    assert_same_ranks(frame.pagerank(weight="w"), edges.pagerank(weight="w"), 0)
    graph, single = (prplugin.Graph(each, weight="w") for each in (frame, edges))
    ranking = graph.rank(tol=1e-9)
    assert ranking.workers == ranking.frame.npartitions == 1
    assert_same_ranks(ranking.frame, single.rank(tol=1e-9).frame, 0)
    assert_same_ranks(graph.rank(top=5, certified=True).frame, single.rank(top=5, certified=True).frame, 0)
    for one in (graph, single):
        one.update(add=edges.iloc[:5], remove=edges.iloc[7:9])
    assert_same_ranks(graph.rank(tol=1e-9).frame, single.rank(tol=1e-9).frame, 0)
    assert graph.vertices.compute().to_pandas().tolist() == single.vertices.to_pandas().tolist()
    with pytest.raises(prplugin.InvalidEdgesError, match=r"-1\.0 in row 3, -1\.0 in row 3999"):
        frame.assign(w=frame["w"].mask(frame["w"] == 2, -1)).pagerank(weight="w")


def test_slow_convergence_mixes_over_all_workers(client):
    n = 20_000
    ring = cudf.DataFrame({"src": np.arange(n), "dst": (np.arange(n) + 1) % n})
    edges = cudf.concat([ring, edges_of(2, n=n, m=n)[["src", "dst"]]], ignore_index=True)
    for options in ({"alpha": 0.99, "tol": 1e-8}, {"alpha": 0.95, "tol": 1e-10}):
        ranking = prplugin.Graph(dask_frame(edges)).rank(**options)
        plain = np.log(options["tol"]) / np.log(options["alpha"])
        assert ranking.iterations < plain / 2
        assert ranking.error_bound <= options["tol"]
        assert_same_ranks(ranking.frame, prplugin.Graph(edges).rank(**options).frame, 2 * options["tol"])


def test_sparse_ids_and_few_partitions(client):
    edges = edges_of(2, stretch=10**13)
    assert_same_ranks(dask_frame(edges, 1).pagerank(), edges.pagerank())


@pytest.mark.parametrize("method", ["persistent", "propagation-blocking"])
def test_ranking_after_update_starts_from_last_ranks(client, method):
    edges, options = edges_of(5, stretch=10), {"tol": 1e-9, "method": method}
    more = cudf.DataFrame({"src": [-5, 70, 15, 10**6], "dst": [70, 10**6, -5, 200], "w": [1.0, 2.0, 3.0, 4.0]})
    graph, other = (prplugin.Graph(dask_frame(edges), weight="w") for _ in range(2))
    single = prplugin.Graph(edges, weight="w")
    graph.rank(**options)
    for one in (graph, other, single):
        one.update(add=more, remove=edges.iloc[:5])
    warm, cold = graph.rank(**options), other.rank(**options)
    assert warm.iterations < cold.iterations
    assert warm.error_bound <= 1e-9
    assert_same_ranks(warm.frame, cold.frame.compute(), 2e-9)
    assert_same_ranks(warm.frame, single.rank(tol=1e-9).frame, 2e-9)


def test_larger_graph(client):
    edges = edges_of(3, n=300_000, m=4_000_000)
    graph = prplugin.Graph(dask_frame(edges, 7))
    single = prplugin.Graph(edges)
    assert (graph.number_of_vertices, graph.number_of_edges) == (single.number_of_vertices, single.number_of_edges)
    ranking = graph.rank(tol=1e-9)
    assert ranking.error_bound <= 1e-9
    assert ranking.stages["iterations"] > 0
    assert_same_ranks(ranking.frame, single.rank(tol=1e-9).frame, 2e-9)
    again = graph.rank(tol=1e-9)
    assert (
        again.frame.compute()["pagerank"].to_numpy().tobytes()
        == ranking.frame.compute()["pagerank"].to_numpy().tobytes()
    )


@pytest.mark.parametrize("kind", ["strings", "dates", "categories", "several"])
def test_other_ids_are_ordered_by_first_appearance(client, kind):
    edges = edges_of(4, n=200, m=2000)[["src", "dst"]]
    if kind == "several":
        edges = edges.assign(a=edges["dst"] % 3, b=edges["src"] % 5)
        endpoints = (["src", "a"], ["dst", "b"])
        assert_same_ranks(dask_frame(edges).pagerank(*endpoints), prplugin.pagerank(edges, *endpoints))
        return
    types = {"strings": "str", "dates": "datetime64[s]", "categories": cudf.CategoricalDtype(list(range(200)))}
    frame = dask_frame(edges.astype(types[kind]))
    # Compare with the computed frame: Dask may change how a missing string is represented.
    assert_same_ranks(frame.pagerank(), frame.compute().pagerank())


def test_empty_partitions(client):
    edges = edges_of(5, n=50, m=500)
    frame = dask_frame(edges, 6)
    few = frame[frame["src"] < 2]
    assert_same_ranks(few.pagerank(), few.compute().pagerank())
    assert len(frame[frame["src"] < 0].pagerank().compute()) == 0


def test_errors_name_rows_of_whole_frame(client):
    edges = edges_of(6, m=4000)
    edges.loc[[50, 3500], "w"] = -1.0
    with pytest.raises(prplugin.InvalidEdgesError, match=r"2 values below 0: -1.0 in row 50, -1.0 in row 3500"):
        dask_frame(edges).pagerank(weight="w")
    with pytest.raises(prplugin.InvalidOptionError, match="not in the graph: 123456"):
        dask_frame(edges).pagerank(personalization={123456: 1})
    if len(client.scheduler_info(n_workers=-1)["workers"]) > 1:  # one runs all methods
        with pytest.raises(prplugin.MethodUnavailableError, match="Dask frames"):
            dask_frame(edges).pagerank(method="native")
    assert_same_ranks(dask_frame(edges).pagerank(), edges.pagerank())


def test_without_cluster(monkeypatch):
    monkeypatch.setattr("prplugin.frames.dask.client", lambda: None)
    edges = edges_of(7)
    ranks = dask_frame(edges).pagerank()
    assert type(ranks).__module__.startswith("dask_cudf")
    assert_same_ranks(ranks, edges.pagerank(), 0)


def test_workers_that_share_gpu_raise():
    from distributed import Client, LocalCluster

    edges = edges_of(8)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster, set_as_default=True),
    ):
        start = time.monotonic()
        with pytest.raises(prplugin.MethodUnavailableError, match="same GPU"):
            dask_frame(edges).pagerank()
        assert time.monotonic() - start < 60


def test_killed_worker_raises(client):
    from distributed.core import Status

    edges = edges_of(9, n=300_000, m=3_000_000)
    frame = dask_frame(edges, 4)
    expected = edges.pagerank()
    assert_same_ranks(frame.pagerank(), expected)
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    victim, start = workers[-1], time.monotonic()
    for nanny in client.cluster.workers.values():
        nanny.status = (
            Status.closing_gracefully
        )  # starts no other: beside other work that takes minutes, also at the end
    with worker_killed(client, victim, 3), pytest.raises(prplugin.WorkerLostError, match=victim):
        frame.pagerank(tol=0, max_iter=100_000_000)
    assert time.monotonic() - start < 60
    if len(workers) > 1:
        assert_same_ranks(frame.pagerank(), expected)
