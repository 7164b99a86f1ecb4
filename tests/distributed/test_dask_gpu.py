"""Frames of dask_cudf on all GPUs of this machine, against one cuDF frame on one of them."""

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
    pytest.mark.filterwarnings("ignore"),  # those of RAPIDS and Dask
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


def spread_of(edges, npartitions=5):
    return dask_cudf.from_cudf(edges, npartitions=npartitions, sort=False)


def same(found, expected, atol=2e-6):
    found = found.compute()
    assert isinstance(found, cudf.DataFrame)
    found, expected = found.to_pandas(), expected.to_pandas()
    pd.testing.assert_frame_equal(found.drop(columns="pagerank"), expected.drop(columns="pagerank"))
    np.testing.assert_allclose(found["pagerank"], expected["pagerank"], rtol=0, atol=atol)
    assert np.abs(found["pagerank"].to_numpy() - expected["pagerank"].to_numpy()).sum() <= 2 * atol


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32"])
def test_partitions_in_partitions_out(client, dtype):
    edges = edges_of(dtype=dtype)
    ranks = spread_of(edges).pagerank()
    assert type(ranks).__module__.startswith("dask_cudf")
    assert ranks.npartitions == len(client.scheduler_info()["workers"])
    same(ranks, edges.pagerank())


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
        {"method": "propagation-blocking", "weight": "w", "tile": 96, "piece": 256},
    ],
    ids=str,
)
def test_options(client, options):
    edges = edges_of(1)
    one = {name: value for name, value in options.items() if name not in ("method", "tile", "piece")}
    same(spread_of(edges).pagerank(**options), edges.pagerank(**one), 1e-2 if "scale" in options else 2e-6)


def test_sparse_ids_and_few_partitions(client):
    edges = edges_of(2, stretch=10**13)
    same(spread_of(edges, 1).pagerank(), edges.pagerank())


def test_a_larger_graph(client):
    edges = edges_of(3, n=300_000, m=4_000_000)
    graph = prplugin.Graph(spread_of(edges, 7))
    one = prplugin.Graph(edges)
    assert (graph.number_of_vertices, graph.number_of_edges) == (one.number_of_vertices, one.number_of_edges)
    ranking = graph.rank(tol=1e-9)
    assert ranking.error_bound <= 1e-9
    assert ranking.stages["iterations"] > 0
    same(ranking.frame, one.rank(tol=1e-9).frame, 2e-9)
    again = graph.rank(tol=1e-9)
    assert (
        again.frame.compute()["pagerank"].to_numpy().tobytes()
        == ranking.frame.compute()["pagerank"].to_numpy().tobytes()
    )


@pytest.mark.parametrize("kind", ["strings", "dates", "categories", "several"])
def test_other_ids_come_as_they_first_appear(client, kind):
    edges = edges_of(4, n=200, m=2000)[["src", "dst"]]
    if kind == "several":
        edges = edges.assign(a=edges["dst"] % 3, b=edges["src"] % 5)
        endpoints = (["src", "a"], ["dst", "b"])
        same(spread_of(edges).pagerank(*endpoints), prplugin.pagerank(edges, *endpoints))
        return
    types = {"strings": "str", "dates": "datetime64[s]", "categories": cudf.CategoricalDtype(list(range(200)))}
    spread = spread_of(edges.astype(types[kind]))
    # As from one frame of the partitions: on their way Dask may change what stands for a missing string.
    same(spread.pagerank(), spread.compute().pagerank())


def test_empty_partitions(client):
    edges = edges_of(5, n=50, m=500)
    spread = spread_of(edges, 6)
    few = spread[spread["src"] < 2]
    same(few.pagerank(), few.compute().pagerank())
    assert len(spread[spread["src"] < 0].pagerank().compute()) == 0


def test_errors_name_rows_of_the_whole_frame(client):
    edges = edges_of(6, m=4000)
    edges.loc[[50, 3500], "w"] = -1.0
    with pytest.raises(prplugin.InvalidEdgesError, match=r"2 values below 0: -1.0 in row 50, -1.0 in row 3500"):
        spread_of(edges).pagerank(weight="w")
    with pytest.raises(prplugin.InvalidOptionError, match="not in the graph: 123456"):
        spread_of(edges).pagerank(personalization={123456: 1})
    with pytest.raises(prplugin.MethodUnavailableError, match="frames of Dask"):
        spread_of(edges).pagerank(method="numba")
    same(spread_of(edges).pagerank(), edges.pagerank())


def test_without_a_cluster(monkeypatch):
    monkeypatch.setattr("prplugin.frames.dask.client", lambda: None)
    edges = edges_of(7)
    ranks = spread_of(edges).pagerank()
    assert type(ranks).__module__.startswith("dask_cudf")
    same(ranks, edges.pagerank(), 0)


def test_workers_that_share_a_gpu_are_an_error():
    from distributed import Client, LocalCluster

    edges = edges_of(8)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster, set_as_default=True),
    ):
        began = time.monotonic()
        with pytest.raises(prplugin.MethodUnavailableError, match="same GPU"):
            spread_of(edges).pagerank()
        assert time.monotonic() - began < 60


def test_a_worker_killed_in_the_middle(client):
    edges = edges_of(9, n=300_000, m=3_000_000)
    spread = spread_of(edges, 4)
    expected = edges.pagerank()
    same(spread.pagerank(), expected)
    victim = sorted(client.scheduler_info(n_workers=-1)["workers"])[-1]
    began = time.monotonic()
    with worker_killed(client, victim, 3), pytest.raises(prplugin.WorkerLostError, match=victim):
        spread.pagerank(tol=0, max_iter=100_000_000)
    assert time.monotonic() - began < 60
    client.wait_for_workers(1, timeout=60)
    same(spread.pagerank(), expected)
