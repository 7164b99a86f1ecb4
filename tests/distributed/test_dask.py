"""Dask frames, with and without a cluster of worker processes."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from shown_text import error_message
from worker_kill import worker_killed

import prplugin

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

# Dask and its event loops leave resources open when a worker is killed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("on_all_workers"),
]

QUIET = {
    "distributed.logging.distributed": "critical",
    "distributed.worker.memory.terminate": False,
    "distributed.comm.timeouts.connect": "5s",
    "distributed.worker.profile.enabled": False,  # it samples the threads of every worker, for a fifth of all time
    "distributed.worker.multiprocessing-method": "forkserver",
}
IMPORTS = ["distributed", "dask.dataframe", "pyarrow.dataset", "prplugin.distributed.run", "prplugin.frames.pandas"]
"""Modules that the server of worker processes imports once, before it forks them."""


@contextmanager
def started(workers):
    """Start a cluster of worker processes, and yield its client."""
    with dask.config.set(QUIET):
        distributed.utils.get_mp_context().set_forkserver_preload(IMPORTS)
    with (
        dask.config.set(QUIET),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with started(3) as client:
        yield client


def edges_of(seed=0, n=60, m=400):
    rng = np.random.default_rng(seed)
    edges = pd.DataFrame({"src": rng.integers(0, n, m) ** 2 // n, "dst": rng.integers(0, n, m)})
    return edges.assign(w=rng.random(m))


def assert_same_ranks(found, expected, atol=2e-6):
    found = found.compute()
    pd.testing.assert_frame_equal(found.drop(columns="pagerank"), expected.drop(columns="pagerank"))
    np.testing.assert_allclose(found["pagerank"], expected["pagerank"], rtol=0, atol=atol)


def test_accessor_is_pagerank_function():
    assert dd.DataFrame.pagerank is prplugin.pagerank


def test_partitions_without_cluster_are_computed_in_process():
    edges = edges_of()
    ranks = dd.from_pandas(edges, npartitions=4, sort=False).pagerank(weight="w", personalization={3: 1}, top=7)
    assert isinstance(ranks, dd.DataFrame)
    assert_same_ranks(ranks, edges.pagerank(weight="w", personalization={3: 1}, top=7), 0)


def test_vertices_without_cluster_keep_dtype_of_ids():
    with dask.config.set({"dataframe.convert-string": False}):
        edges = dd.from_pandas(pd.DataFrame({"src": ["a", "b"], "dst": ["b", "a"]}, dtype=object), npartitions=1)
    assert prplugin.Graph(edges).vertices.compute().dtype == object


def test_seeds_without_cluster():
    edges = edges_of()
    frame = dd.from_pandas(edges, npartitions=4, sort=False)
    assert_same_ranks(frame.pagerank(seeds=[1, 2], top=5), edges.pagerank(seeds=[1, 2], top=5))
    given = pd.DataFrame({"vertex": [1, 2], "values": [1.0, 3.0]})
    values = [dd.from_pandas(given, npartitions=1), {3: 1}]
    assert_same_ranks(frame.pagerank(seeds=values), edges.pagerank(seeds=[given, {3: 1}]))


def test_persisted_frame_is_not_computed_again(client, monkeypatch):
    edges = edges_of().assign(more="x")[["more", "w", "dst", "src"]]
    frame = dd.from_pandas(edges, npartitions=5, sort=False)
    persisted = frame.persist()

    def refused(*arguments, **options):
        raise AssertionError("the frame is computed")

    monkeypatch.setattr(distributed.Client, "compute", refused)
    ranks = persisted.pagerank(weight="w")
    with pytest.raises(AssertionError, match="the frame is computed"):
        frame.pagerank(weight="w")
    monkeypatch.undo()
    assert_same_ranks(ranks, edges.pagerank(weight="w"))
    assert_same_ranks(frame.pagerank(weight="w"), edges.pagerank(weight="w"))


def test_result_is_partitioned_dask_frame(client):
    edges = edges_of()
    ranks = dd.from_pandas(edges, npartitions=5, sort=False).pagerank()
    assert isinstance(ranks, dd.DataFrame)
    assert ranks.npartitions == 3
    assert ranks.columns.tolist() == ["vertex", "pagerank"]
    assert ranks.known_divisions
    assert ranks.loc[5:6].compute()["vertex"].tolist() == edges.pagerank()["vertex"].tolist()[5:7]
    assert_same_ranks(ranks, edges.pagerank())
    assert ranks["pagerank"].sum().compute() == pytest.approx(1)


@pytest.mark.parametrize(
    "options",
    [
        {"weight": "w", "alpha": 0.95, "scale": "n", "dtype": "float32", "tol": 1e-5},
        {"directed": False, "duplicates": "first", "vertices": [1000, 7, -5], "top": 5},
        {
            "personalization": pd.Series([1.0, 2.0], index=pd.Index([3, 5], name="id")),
            "dangling": {4: 1},
            "nstart": {1: 1, 2: 3},
        },
        {"tol": 0, "max_iter": 5, "method": "native", "threads": 2},
    ],
    ids=str,
)
def test_options(client, options):
    edges = edges_of(1)
    frame = dd.from_pandas(edges, npartitions=4, sort=False)
    assert_same_ranks(frame.pagerank(**options), edges.pagerank(**options), 1e-4 if "scale" in options else 2e-6)


def explained(ranking):
    file = io.StringIO()
    ranking.explain(file)
    return " ".join(file.getvalue().split())


def test_one_worker_ranks_edges_that_fit(client, one_worker):
    """Check that one worker runs what one process runs: the same bits, methods and orders."""
    frame = dd.from_pandas(edges_of(1).astype({"src": str, "dst": str}), npartitions=4, sort=False).persist()
    edges = frame.compute()
    single = prplugin.Graph(edges, weight="w", vertices=["more"])
    graph = prplugin.Graph(frame, weight="w", vertices=["more"])
    ranking, expected = graph.rank(personalization={"3": 1}), single.rank(personalization={"3": 1})
    assert "ranked on 1 of 3 workers, as in one process" in explained(ranking)
    assert "on 1 worker" in str(ranking)
    assert (ranking.iterations, ranking.error_bound) == (expected.iterations, expected.error_bound)
    assert ranking.frame.npartitions == 1
    assert_same_ranks(ranking.frame, expected.frame, 0)
    assert_same_ranks(frame.pagerank(weight="w", vertices=["more"]), single.rank().frame, 0)
    assert_same_ranks(frame.pagerank(method="numpy", top=5), edges.pagerank(method="numpy", top=5), 0)
    assert_same_ranks(graph.rank(seeds=["1", "3"], top=4).frame, single.rank(seeds=["1", "3"], top=4).frame, 0)
    assert graph.rank(seeds=["1", "3"])["3"] == single.rank(seeds=["1", "3"])["3"]
    orders = [one.rank(top=3, certified=True) for one in (graph, single)]
    assert orders[0].certified
    assert_same_ranks(orders[0].frame, orders[1].frame, 0)
    assert [tie.places for tie in orders[0].ties] == [tie.places for tie in orders[1].ties]
    assert graph.vertices.compute().tolist() == single.vertices.tolist()
    for one in (graph, single):
        one.rank(tol=1e-9)
        one.update(add=edges.iloc[:5], remove=edges.iloc[7:9])
    assert graph.number_of_edges == single.number_of_edges
    again, expected = graph.rank(tol=1e-9), single.rank(tol=1e-9)
    assert again.iterations == expected.iterations
    assert_same_ranks(again.frame, expected.frame, 0)
    with pytest.raises(prplugin.InvalidEdgesError, match="remove has 1 edge that the graph does not have"):
        graph.update(remove=pd.DataFrame({"src": ["1"], "dst": ["no"]}))
    with pytest.raises(prplugin.NotConvergedError) as raised:
        frame.pagerank(max_iter=1, tol=1e-9)
    assert len(raised.value.ranking.frame) == len(single.vertices) - 1


def test_number_of_workers(client, one_worker, monkeypatch):
    edges = edges_of(1)
    frame = dd.from_pandas(edges, npartitions=5, sort=False).persist()
    for count in (1, 2, 3):
        ranking = prplugin.Graph(frame, workers=count).rank()
        assert ranking.workers == ranking.frame.npartitions == count
        assert f"ranked on {count} of 3 workers, as requested" in explained(ranking)
        assert_same_ranks(ranking.frame, edges.pagerank())
        assert_same_ranks(frame.pagerank(workers=count), edges.pagerank())
    of_groups = prplugin.Graph(frame.assign(group=frame["src"] % 5), by="group", workers=2).rank()
    assert of_groups.workers == of_groups.frame.npartitions == 2
    monkeypatch.setattr("prplugin.distributed.workers.MOST_THREADS", 2)
    ranking = prplugin.Graph(frame).rank()
    assert "ranked on 3 workers: their 3 threads are more than 2 times those of one" in explained(ranking)
    monkeypatch.setattr("prplugin.distributed.workers.MEMORY_SHARE", 1 << 40)
    assert "ranked on 3 workers, since one has too little memory: the edges take" in explained(
        prplugin.Graph(frame).rank()
    )
    with pytest.raises(prplugin.InvalidOptionError, match="workers=4, but the Dask cluster has 3 workers"):
        frame.pagerank(workers=4)
    with pytest.raises(prplugin.InvalidOptionError, match="workers must be a whole number of at least 1, not 0"):
        frame.pagerank(workers=0)
    with pytest.raises(prplugin.InvalidOptionError, match="workers= selects workers of a Dask cluster"):
        edges.pagerank(workers=1)


def test_other_ids_are_ordered_by_first_appearance(client):
    edges = edges_of(2).astype({"src": str, "dst": str})
    frame = dd.from_pandas(edges, npartitions=4, sort=False)
    assert_same_ranks(frame.pagerank(), frame.compute().pagerank())
    edges = pd.DataFrame({"a": [3, 1, 3, 2] * 5, "b": list("xyzx") * 5, "c": [1, 2, 2, 9] * 5, "d": list("yxxy") * 5})
    frame = dd.from_pandas(edges, npartitions=3, sort=False)
    assert_same_ranks(frame.pagerank(["a", "b"], ["c", "d"]), frame.compute().pagerank(["a", "b"], ["c", "d"]))


def test_empty_partitions(client):
    edges = edges_of(3)
    frame = dd.from_pandas(edges, npartitions=6, sort=False)
    few = frame[frame["src"] < 2]
    assert min(len(part) for part in dask.compute(*few.to_delayed())) < 400
    assert_same_ranks(few.pagerank(), few.compute().pagerank())
    none = frame[frame["src"] < 0].pagerank().compute()
    assert len(none) == 0
    assert none.columns.tolist() == ["vertex", "pagerank"]


def test_graph_is_reused_by_rankings(client):
    edges = edges_of(4)
    graph = prplugin.Graph(dd.from_pandas(edges, npartitions=4, sort=False), weight="w")
    single = prplugin.Graph(edges, weight="w")
    assert graph.number_of_vertices == single.number_of_vertices
    assert graph.number_of_edges == single.number_of_edges
    ranking = graph.rank(alpha=0.9)
    assert ranking.converged
    assert ranking.error_bound <= 1e-6
    assert ranking.method == "native"
    assert ranking.stages["iterations"] > 0
    assert all(sent > 0 for sent in ranking.bytes_sent)
    assert "on 3 workers" in str(ranking)
    assert_same_ranks(ranking.frame, single.rank(alpha=0.9).frame)
    again = graph.rank(alpha=0.9)
    assert (
        again.frame.compute()["pagerank"].to_numpy().tobytes()
        == ranking.frame.compute()["pagerank"].to_numpy().tobytes()
    )
    with pytest.raises(prplugin.MethodUnavailableError, match="workers of a Dask cluster"):
        graph.csr()


def test_rankings_of_seeds(client):
    edges = edges_of(4)
    graph = prplugin.Graph(dd.from_pandas(edges, npartitions=4, sort=False), weight="w")
    single = prplugin.Graph(edges, weight="w")
    for options in ({}, {"top": 3}, {"top": 3, "exclude": "seeds"}, {"among": [7, 5]}):
        found, expected = graph.rank(seeds=[3, 1], **options), single.rank(seeds=[3, 1], **options)
        assert isinstance(found, prplugin.Rankings)
        assert isinstance(found.frame, dd.DataFrame)
        assert_same_ranks(found.frame, expected.frame)
        assert found.frame.npartitions == (1 if options else 6)
        assert found.each_converged.all()
        assert found.each_error_bound.max() == found.error_bound <= 1e-6
        assert (list(found), len(found)) == ([3, 1], 2)
        assert found[1] == pytest.approx(expected[1], abs=2e-6)
    assert str(found).startswith("PageRank from 2 seeds: converged after at most ")
    assert "nlargest" in found._repr_html_()
    file = io.StringIO()
    found.explain(file)
    assert "passes over the edges" in file.getvalue()
    assert found._highest() == [(name, pytest.approx(rank, abs=2e-6)) for name, rank in expected._highest()]
    frame = dd.from_pandas(edges, npartitions=4, sort=False)
    many = dd.from_pandas(pd.DataFrame({"seed": ["x", "x", "y"], "vertex": [1, 2, 5]}), npartitions=2)
    assert_same_ranks(frame.pagerank(seeds=many), edges.pagerank(seeds=many.compute()))
    with pytest.raises(prplugin.InvalidOptionError, match="the vertices of this graph are on several workers"):
        graph.rank(seeds=np.ones((2, 3)))


def test_certified_order(client):
    edges = pd.concat([edges_of(4), pd.DataFrame({"src": [0, 0, 1], "dst": [100, 101, 102], "w": [9.0, 9.0, 9.0]})])
    graph = prplugin.Graph(dd.from_pandas(edges, npartitions=4, sort=False), weight="w")
    single = prplugin.Graph(edges, weight="w")
    for options in ({"top": 12}, {"among": [101, 4, 100, 2]}, {"top": 2, "exclude": [4, 5]}):
        found, expected = (one.rank(certified=True, tol=1e-12, **options) for one in (graph, single))
        assert found.certified
        assert isinstance(found.frame, dd.DataFrame)
        assert_same_ranks(found.frame, expected.frame, 1e-3)
        assert found.vertex_bound < 1e-3
        assert len(found.ties) == len(expected.ties)
        for tie, other in zip(found.ties, expected.ties, strict=True):
            assert (tie.places, tie.equal) == (other.places, other.equal)
            assert_same_ranks(tie.frame, other.frame, 1e-3)
    assert any(tie.equal for tie in graph.rank(certified=True, among=[101, 100]).ties)
    assert found[found.frame.compute()["vertex"][0]] > 0
    for options, message in (({}, "pass their number as top=k"), ({"top": 1, "seeds": [1]}, "several: rank each")):
        with pytest.raises(prplugin.InvalidOptionError, match=message):
            graph.rank(certified=True, **options)


def test_repr_explain_and_plot_of_distributed_ranking(client):
    edges = edges_of(4)
    graph = prplugin.Graph(dd.from_pandas(edges, npartitions=4, sort=False))
    assert "3 workers of a Dask cluster" in repr(graph)
    assert "<table>" in graph._repr_html_()
    ranking = graph.rank()
    assert repr(ranking).startswith(str(ranking))
    assert "nlargest" in ranking._repr_html_()
    file = io.StringIO()
    ranking.explain(file)
    text = file.getvalue()
    assert all(word in text for word in (str(ranking), "communication", "bytes sent by each worker", "requested"))
    assert f"{ranking.error_bound:.2e}" in text
    bars, convergence = ranking.plot().axes
    assert convergence.lines[0].get_ydata()[-1] == ranking.error_bound
    highest = prplugin.Graph(edges).rank().frame.nlargest(10, "pagerank")["vertex"]
    assert [label.get_text() for label in bars.get_yticklabels()] == highest.astype(str).tolist()


def test_graphs_on_workers_refuse_to_be_copied_or_saved(client, tmp_path):
    graph = prplugin.Graph(dd.from_pandas(edges_of(), npartitions=2))
    for call in (copy.copy, copy.deepcopy, pickle.dumps, lambda graph: graph.save(tmp_path / "graph")):
        assert "Dask cluster" in error_message(lambda call=call: call(graph))


@pytest.mark.parametrize("scatter_bytes", [0, 1 << 20])
def test_values_in_dask_frame(client, scatter_bytes, monkeypatch):
    monkeypatch.setattr("prplugin.distributed.workers.SCATTER_BYTES", scatter_bytes)
    edges = edges_of(5)
    frame = dd.from_pandas(edges, npartitions=2, sort=False)
    values = pd.DataFrame({"vertex": [1, 2, 3], "values": [1.0, 2.0, 3.0]})
    expected = edges.pagerank(personalization=values)
    assert_same_ranks(frame.pagerank(personalization=dd.from_pandas(values, npartitions=2)), expected)
    more = dd.from_pandas(pd.DataFrame({"vertex": [100, 3, 80, 90]}), npartitions=2)
    assert_same_ranks(frame.pagerank(vertices=more), edges.pagerank(vertices=[100, 3, 80, 90]))
    before = frame.pagerank().rename(columns={"pagerank": "values"})
    assert_same_ranks(frame.pagerank(nstart=before), edges.pagerank())


def test_updates(client):
    edges = edges_of(4).astype({"src": str, "dst": str})
    more = edges_of(5, n=80, m=50).astype({"src": str, "dst": str})
    graph = prplugin.Graph(dd.from_pandas(edges, npartitions=4, sort=False), weight="w")
    edges = dd.from_pandas(edges, npartitions=4, sort=False).compute()
    single = prplugin.Graph(edges, weight="w")
    before = graph.rank()
    for add, remove in ((more, edges.iloc[:30]), (None, more.iloc[:10][["src", "dst"]]), (edges.iloc[:5], None)):
        given = add if add is None else dd.from_pandas(add, npartitions=2, sort=False)
        graph.update(add=given, remove=remove)
        single.update(add=add, remove=remove)
        assert graph.number_of_edges == single.number_of_edges
        assert_same_ranks(graph.rank().frame, single.rank().frame)
    assert graph.vertices.compute().tolist() == single.vertices.tolist()
    assert len(before.frame) < graph.number_of_vertices
    with pytest.raises(
        prplugin.InvalidEdgesError, match=r"remove has 1 edge that the graph does not have: '1' -> 'no'"
    ):
        graph.update(add=more, remove=pd.DataFrame({"src": ["1"], "dst": ["no"]}))
    assert_same_ranks(graph.rank(top=5).frame, single.rank(top=5).frame)


def test_ranking_after_update_starts_from_last_ranks(client):
    edges = edges_of(4, n=3000, m=20_000)
    change = {"add": edges_of(5, n=3010, m=5), "remove": edges.iloc[:5]}
    frame, options = dd.from_pandas(edges, npartitions=4, sort=False), {"tol": 1e-8}
    graph, other = (prplugin.Graph(frame, weight="w") for _ in range(2))
    before = graph.rank(**options)
    assert graph.rank(**options).iterations == before.iterations  # nothing has changed: equal calls, equal ranks
    assert len(graph.vertices) == graph.number_of_vertices  # no ranking to start from
    for one in (graph, other):
        one.update(**change)
    warm, cold = graph.rank(**options), other.rank(**options)
    assert warm.iterations < cold.iterations
    assert warm.converged
    assert warm.error_bound <= 1e-8
    found, expected = (one.frame.compute() for one in (warm, cold))
    pd.testing.assert_series_equal(found["vertex"], expected["vertex"])
    assert np.abs(found["pagerank"] - expected["pagerank"]).sum() <= warm.error_bound + cold.error_bound
    # The ranks before two updates serve the ranking after both.
    graph.update(remove=edges.iloc[5:8])
    graph.update(add=edges.iloc[:2])
    present, vertices = pd.concat([edges.iloc[8:], change["add"], edges.iloc[:2]]), found["vertex"]
    again, exact = graph.rank(**options), prplugin.Graph(present, weight="w", vertices=vertices).rank(tol=1e-10)
    assert again.iterations < cold.iterations
    found = again.frame.compute()
    pd.testing.assert_series_equal(found["vertex"], exact.frame["vertex"])
    assert np.abs(found["pagerank"] - exact.frame["pagerank"]).sum() <= again.error_bound + exact.error_bound


def test_times(client):
    edges = edges_of(4).assign(t=np.arange(400.0))
    frame = dd.from_pandas(edges, npartitions=4, sort=False)
    options = {"time": "t", "half_life": 50, "weight": "w"}
    assert_same_ranks(frame.pagerank(**options, window=200, now=500), edges.pagerank(**options, window=200, now=500))
    graph, single = prplugin.Graph(frame, **options), prplugin.Graph(edges, **options)
    late = edges_of(5, m=20).assign(t=600)
    for one in (graph, single):
        one.update(add=late, remove=edges.iloc[:100])
        one.update(add=edges.iloc[:3], remove=late.iloc[:3])
    assert_same_ranks(graph.rank(seeds=[1, 2]).frame, single.rank(seeds=[1, 2]).frame)
    with pytest.raises(prplugin.MethodUnavailableError, match="update does not support a graph with window="):
        prplugin.Graph(frame, time="t", window=50).update(add=edges)
    with pytest.raises(prplugin.InvalidEdgesError, match="after now=100"):
        frame.pagerank(**options, now=100)


def test_times_without_cluster(monkeypatch):
    monkeypatch.setattr("prplugin.frames.dask.client", lambda: None)
    edges = edges_of(4).assign(t=np.arange(400.0))
    frame = dd.from_pandas(edges, npartitions=4, sort=False)
    options = {"time": "t", "half_life": 50, "window": 300, "weight": "w"}
    assert_same_ranks(frame.pagerank(**options), edges.pagerank(**options), 0)


USER_ERRORS = """
import logging, warnings
import numpy as np, pandas as pd
import dask, dask.dataframe as dd, distributed
import prplugin

if __name__ == "__main__":
    warnings.simplefilter("error")
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "500kB"})  # 10 MB by default
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:
            n = 15_000
            edges = pd.DataFrame({"src": np.arange(n), "dst": np.arange(n)[::-1], "name": "a name"})
            graph = prplugin.Graph(dd.from_pandas(edges, npartitions=2, sort=False), "src", "dst")
            given = pd.Series(1.0, pd.Index(np.arange(n), name="vertex"))
            prplugin.pagerank(dd.from_pandas(edges.astype({"src": str, "dst": str}), npartitions=2), max_iter=1, tol=0)
            graph.rank(personalization=given, top=1)
            graph.update(add=edges, remove=edges)
            for options in ({"seeds": [-1]}, {"tol": 1e-17}, {"among": [-1]}, {"personalization": {-1: 1}}):
                try:
                    graph.rank(**options)
                except prplugin.InvalidOptionError as error:
                    frame = error.__traceback__
                    while frame.tb_next:
                        frame = frame.tb_next
                    print(frame.tb_frame.f_code.co_filename.rpartition("/")[2], error)
            try:
                graph.update(remove=pd.DataFrame({"src": [1], "dst": [1]}))
            except prplugin.InvalidEdgesError as error:
                print(error)
"""


def test_user_errors_and_large_arguments_print_nothing(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(USER_ERRORS)
    environment = os.environ | {"DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "forkserver"}
    run = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == 5
    assert all(line.startswith("workers.py ") for line in run.stdout.splitlines()[:4])
    # Dask warns if a busy worker ends slowly.
    assert [line for line in run.stderr.splitlines() if "distributed.nanny" not in line] == []


def test_progress_is_reported_to_client(client):
    states = []
    dd.from_pandas(edges_of(6), npartitions=2, sort=False).pagerank(progress=states.append)
    assert {state.stage for state in states} == {"vertices", "edges", "iterations"}
    assert states[-1].error_bound <= 1e-6


@pytest.mark.parametrize("workers", [1, 3])
def test_factorization_on_workers_is_reported_to_client(client, workers):
    rng, states = np.random.default_rng(0), []
    edges = pd.DataFrame(rng.integers(0, 9_000, (90_000, 2)).astype(str), columns=["src", "dst"])
    frame = dd.from_pandas(edges, npartitions=12, sort=False)  # so that the first worker, which reports, has some
    frame.pagerank(progress=states.append, workers=workers)
    counted = [state for state in states if state.unit == "ids"]
    if prplugin.Graph(edges[:9]).rank().method == "native":  # else there are no kernels
        assert any(state.done == state.total > 10_000 for state in counted)


def test_errors_name_rows_of_whole_frame(client):
    edges = edges_of(7)
    edges.loc[[50, 350], "w"] = -1
    frame = dd.from_pandas(edges, npartitions=4, sort=False)
    with pytest.raises(prplugin.InvalidEdgesError, match=r"2 values below 0: -1.0 in row 50, -1.0 in row 350"):
        frame.pagerank(weight="w")
    with pytest.raises(prplugin.ColumnNotFoundError, match="nowhere"):
        frame.pagerank(weight="nowhere")
    with pytest.raises(prplugin.InvalidOptionError, match="not in the graph: 12345"):
        frame.pagerank(personalization={12345: 1})
    with pytest.raises(prplugin.NotConvergedError) as raised:
        frame.pagerank(max_iter=1, tol=1e-9)
    assert isinstance(raised.value.ranking.frame, dd.DataFrame)
    assert_same_ranks(frame.pagerank(), edges.pagerank())


def test_methods_unavailable_on_cluster_raise(client):
    frame = dd.from_pandas(edges_of(8), npartitions=2, sort=False)
    with pytest.raises(prplugin.MethodUnavailableError, match="Dask frames"):
        frame.pagerank(method="persistent")
    with pytest.raises(prplugin.InvalidOptionError):
        frame.pagerank(method="nonsense")
    with pytest.raises(prplugin.InvalidOptionError):
        frame.pagerank(method="numpy", threads=3)


@pytest.mark.parametrize("part", [pd.Series([1, 2]), 3, None, np.ones((2, 2))], ids=lambda part: type(part).__name__)
def test_partitions_that_are_no_frames(client, part):
    frame = pd.DataFrame({"src": [1, 2], "dst": [2, 1]})
    parts = [dask.delayed(frame), dask.delayed(lambda: part)()]
    edges = dask.dataframe.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(prplugin.InvalidEdgesError, match=rf"partition 1 is of .*{type(part).__name__}, not a frame"):
        edges.pagerank()


def test_error_of_frame_computation_is_the_cause(client):
    def broken(part):
        raise RuntimeError("this partition cannot be read")

    frame = dd.from_pandas(edges_of(9), npartitions=2, sort=False)
    broken_frame = frame.map_partitions(broken, meta=frame._meta)
    with pytest.raises(prplugin.InvalidEdgesError, match=r"the Dask frame of edges .*: this partition") as caught:
        broken_frame.pagerank()
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_graph_can_be_ranked_after_failed_ranking(client):
    edges = edges_of(14)
    graph = prplugin.Graph(dd.from_pandas(edges, npartitions=3, sort=False))
    with pytest.raises(prplugin.InvalidOptionError, match="not in the graph: 12345"):
        graph.rank(personalization={12345: 1})
    assert_same_ranks(graph.rank().frame, edges.pagerank())


def unfinished_tasks(dask_worker):
    return [key for key, task in dask_worker.state.tasks.items() if task.state in ("long-running", "cancelled")]


def test_workers_stop_when_client_disconnects(client, monkeypatch):
    frame = dd.from_pandas(edges_of(15), npartitions=3, sort=False)
    errors = []

    def rank(other):
        monkeypatch.setattr("prplugin.frames.dask.client", lambda: other)
        try:
            frame.pagerank(tol=0, max_iter=100_000_000)
        except (distributed.client.FuturesCancelledError, prplugin.PageRankError) as error:
            errors.append(error)

    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        thread = threading.Thread(target=rank, args=(other,))
        thread.start()
        while not all(client.run(unfinished_tasks).values()):
            time.sleep(0.1)
    thread.join()
    assert errors
    start = time.monotonic()
    while any(client.run(unfinished_tasks).values()):
        assert time.monotonic() - start < 20
        time.sleep(0.1)


def test_concurrent_rankings(client):
    frames = [edges_of(seed) for seed in (10, 11)]
    results = [None, None]

    def rank(index):
        results[index] = dd.from_pandas(frames[index], npartitions=3, sort=False).pagerank()

    threads = [threading.Thread(target=rank, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for edges, ranks in zip(frames, results, strict=True):
        assert_same_ranks(ranks, edges.pagerank())


@pytest.fixture(params=["no cluster", "cluster", "persisted on cluster"])
def make_frame(request, monkeypatch):
    """Return a function that makes a Dask frame of partitions that may differ from its metadata.

    Some tests of it have a kind of partitions for each of their parameters: a ranking on the cluster takes a second.
    """
    if request.param == "no cluster":
        monkeypatch.setattr("prplugin.frames.dask.client", lambda: None)
    else:
        request.getfixturevalue("client")

    def from_parts(*parts):
        frame = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0], verify_meta=False)
        return frame.persist() if request.param.startswith("persisted") else frame

    return from_parts


PART = pd.DataFrame({"src": [1, 2, 2], "dst": [2, 3, 1], "w": [1.0, 2.0, 0.5]})


def test_columns_of_partitions_are_read_by_name(make_frame):
    combined = pd.concat([PART, PART + 1], ignore_index=True)
    for names in (["src", "dst", "w"], ["src", "dst"]):  # some columns are used, or all
        first, second = PART[names], (PART + 1)[names[::-1]]
        assert_same_ranks(make_frame(first, second).pagerank(), combined.pagerank())
    assert_same_ranks(
        make_frame(PART, (PART + 1)[["w", "dst", "src"]]).pagerank(weight="w"), combined.pagerank(weight="w")
    )
    assert_same_ranks(make_frame(PART, (PART + 1)[["dst", "src"]]).pagerank(), combined.pagerank())


@pytest.mark.parametrize("make_frame", ["no cluster", "cluster"], indirect=True)
def test_partitions_that_lack_a_column_are_named(make_frame):
    with pytest.raises(
        prplugin.ColumnNotFoundError, match=r"no column 'src' in partition 1. Its columns are 'dst', 'w'"
    ):
        make_frame(PART, PART[["dst", "w"]]).pagerank()
    with pytest.raises(prplugin.ColumnNotFoundError, match="no column 'w' in partition 2"):
        make_frame(PART, PART, PART[["dst", "src"]]).pagerank(weight="w")
    with pytest.raises(prplugin.InvalidEdgesError, match="column 'src' is in partition 1 2 times"):
        make_frame(PART, pd.concat([PART, PART[["src"]]], axis=1)).pagerank()


@pytest.mark.parametrize("make_frame", ["no cluster", "persisted on cluster"], indirect=True)
def test_partitions_of_one_kind_are_read_in_common_dtype(make_frame):
    ids = PART[["src", "dst"]]
    assert_same_ranks(make_frame(ids.astype("int8"), ids + 1000).pagerank(), pd.concat([ids, ids + 1000]).pagerank())
    large = ids.astype("uint64") + 2**63
    assert_same_ranks(make_frame(ids, large).pagerank(), pd.concat([ids.astype("uint64"), large]).pagerank())
    with pytest.raises(prplugin.InvalidEdgesError, match="no one integer type holds"):
        make_frame(ids - 5, large).pagerank()
    assert_same_ranks(make_frame(PART.iloc[:0].astype(str), ids).pagerank(), ids.pagerank())
    wide = PART.assign(w=[0.1, 0.2, 0.3])
    expected = pd.concat([PART, wide]).pagerank(weight="w", tol=1e-12)
    assert_same_ranks(make_frame(PART.astype({"w": "float32"}), wide).pagerank(weight="w", tol=1e-12), expected, 2e-12)
    days = ids.apply(lambda column: pd.to_datetime(column, unit="D", utc=True))
    in_berlin = days.apply(lambda column: column.dt.tz_convert("Europe/Berlin"))
    assert_same_ranks(make_frame(days, in_berlin).pagerank(), pd.concat([days, days]).pagerank())


@pytest.mark.parametrize(
    ("make_frame", "dtype", "kind"),
    [("no cluster", str, "string"), ("cluster", bool, "boolean"), ("persisted on cluster", "M8[ns]", "datetime")],
    indirect=["make_frame"],
)
def test_partitions_of_two_kinds_raise(make_frame, dtype, kind):
    other = PART.astype({"src": dtype, "dst": dtype})
    message = rf"column 'src' of partition 0 \(int64\) .* integer, but .* of partition 2 \(.*\) of kind {kind}"
    with pytest.raises(prplugin.InvalidEdgesError, match=message):
        make_frame(PART, PART, other).pagerank()
    with pytest.raises(prplugin.InvalidEdgesError, match=r"in partition 1: column 'w' holds .* not real numbers"):
        make_frame(PART, PART.astype({"w": "M8[ns]"})).pagerank(weight="w")


def test_invalid_rows_of_all_partitions_are_reported(make_frame):
    bad = PART.assign(w=[-1.0, 1.0, -2.0])
    with pytest.raises(
        prplugin.InvalidEdgesError, match=r"3 values below 0: -1.0 in row 3, -2.0 in row 5, -1.0 in row 6"
    ) as raised:
        make_frame(PART, bad, bad.iloc[:1]).pagerank(weight="w")
    assert "partition" not in str(raised.value)


def test_workers_are_found_during_scheduler_info_update(client, monkeypatch):
    update = client._update_scheduler_info
    # Dask's periodic update, which omits the workers, runs between the client's query and its result.
    monkeypatch.setattr(client, "_update_scheduler_info", lambda n_workers=0: update())
    edges = edges_of(13)
    assert_same_ranks(dd.from_pandas(edges, npartitions=3, sort=False).pagerank(), edges.pagerank())


def test_lost_scheduler_raises(client, monkeypatch):
    async def identity(n_workers):
        raise OSError("connection closed")

    frame = dd.from_pandas(edges_of(13), npartitions=3, sort=False)
    monkeypatch.setattr(client.scheduler, "identity", identity)
    with pytest.raises(prplugin.WorkerLostError, match="the Dask scheduler cannot be reached: connection closed"):
        frame.pagerank()


def out_of_memory(*arguments, **options):
    raise MemoryError("no room for the ranks")


def test_worker_out_of_memory_raises(client):
    def put(name, value):
        from prplugin.distributed import ranks

        before = getattr(ranks, name)
        setattr(ranks, name, value)
        return before

    edges = edges_of(12)
    frame = dd.from_pandas(edges, npartitions=3, sort=False)
    worker = sorted(client.scheduler_info()["workers"])[1]
    before = client.run(put, "write", out_of_memory, workers=[worker])[worker]
    try:
        start = time.monotonic()
        with pytest.raises(MemoryError, match="no room"):
            frame.pagerank()
        assert time.monotonic() - start < 20
    finally:
        client.run(put, "write", before, workers=[worker])
    assert_same_ranks(frame.pagerank(), edges.pagerank())


def test_worker_lost_during_update_leaves_graph(client):
    edges = edges_of(14)
    graph = prplugin.Graph(dd.from_pandas(edges, npartitions=3, sort=False))
    before = graph.number_of_edges
    victim = sorted(client.scheduler_info(n_workers=-1)["workers"])[1]

    def hang(*arguments, **options):
        time.sleep(60)

    def put():
        from prplugin.distributed import update

        update.assemble = hang

    client.run(put, workers=[victim])
    with worker_killed(client, victim, 1), pytest.raises(prplugin.WorkerLostError, match=victim):
        graph.update(add=edges)
    assert graph.number_of_edges == before
    with pytest.raises(prplugin.WorkerLostError, match=victim):
        graph.rank()


def test_killed_worker_raises(client):
    client.wait_for_workers(3)  # an earlier test killed one, which the cluster starts again
    edges = edges_of(13)
    frame = dd.from_pandas(edges, npartitions=6, sort=False).persist()
    kept = frame.pagerank()
    assert_same_ranks(kept, edges.pagerank())
    victim = sorted(client.scheduler_info(n_workers=-1)["workers"])[0]
    start = time.monotonic()
    with worker_killed(client, victim, 0.7), pytest.raises(prplugin.WorkerLostError, match=victim):
        frame.pagerank(tol=0, max_iter=10_000_000)
    assert time.monotonic() - start < 30
    assert_same_ranks(frame.pagerank(), edges.pagerank())
    # Part of the earlier result was lost with the worker and cannot be recomputed: raise instead of waiting.
    with pytest.raises(prplugin.WorkerLostError):
        kept.compute()


def test_killed_only_worker_raises():
    with started(1) as client:
        frame = dd.from_pandas(edges_of(14), npartitions=2, sort=False).persist()
        frame.pagerank()
        (victim,) = client.scheduler_info(n_workers=-1)["workers"]
        with worker_killed(client, victim, 0.7), pytest.raises(prplugin.WorkerLostError, match=victim):
            frame.pagerank(tol=0, max_iter=10_000_000)


def test_worker_killed_during_setup_raises(monkeypatch):
    with started(1) as client:
        frame = dd.from_pandas(edges_of(14), npartitions=2, sort=False).persist()
        (victim,) = client.scheduler_info(n_workers=-1)["workers"]
        register = client.register_plugin

        def killing(plugin):
            with worker_killed(client, victim, 0):
                pass  # killed at the end
            return register(plugin)

        monkeypatch.setattr(client, "register_plugin", killing)
        with pytest.raises(prplugin.WorkerLostError, match=victim):
            frame.pagerank()
