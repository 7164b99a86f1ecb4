"""The benchmarks of the papers: quick runs on the CPU, runs with a stubbed GPU, and reports of given rows."""

from __future__ import annotations

import gzip
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from benchmarks import memory, report
from benchmarks.__main__ import BENCHMARKS, PAPERS, main
from benchmarks.generate import rmat, uniform
from benchmarks.papers import bowen, cpu_peers, graphs, kim, kumar, sides, swaroop, wu
from benchmarks.papers.google import BlasRounds, HostRounds, google_matrix
from benchmarks.papers.tables import Claim, absent_together, row, verdicts
from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.types.edges import Edges

NO_GPU = runtime.missing()


def adjacency(frame, n):
    return Adjacency(Edges(*(frame[end].to_numpy().astype(np.int32) for end in ("src", "dst")), None, n))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_a_quick_run_of_each_paper(name, tmp_path):
    done = CliRunner().invoke(main, [name, "--quick", "--data", str(tmp_path), "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["finished"]
    assert written["command"] == f"python -m benchmarks {name} --quick --data DIR"
    module = BENCHMARKS[name]
    for line in written["rows"]:
        assert set(module.TABLES[line["table"]]) <= set(line)
        assert "samples" in line or line["note"] or line["table"] in (wu.SIZES, kumar.SPLIT), line
    timed = [line for line in written["rows"] if "samples" in line]
    assert timed
    if NO_GPU:
        assert any("GPU" in line["note"] for line in written["rows"])
    assert {line["table"] for line in written["rows"]} == set(module.TABLES)
    assert list(tmp_path.glob(f"{name}-*.svg"))
    assert "reversed" not in (tmp_path / f"{name}.md").read_text() or not NO_GPU


def test_sides_agree_on_the_ranks():
    edges = uniform(3000, 9000)
    here = adjacency(edges, 3000)
    ranks = [kim.SIDES[what](here, here.csc).ranks for what in (kim.ONE, kim.ALL, kim.HAND)]
    for other in ranks[1:]:
        assert np.abs(other - ranks[0]).sum() < 1e-14


def test_the_papers_loop_is_the_power_method():
    n = 300
    here = adjacency(uniform(n, 900), n)
    matrix = google_matrix(here, sides.ALPHA)
    loop, library = HostRounds(matrix), BlasRounds(matrix)
    exact = sides.prepared("numpy", here)
    exact.start(1 / n)
    for _ in range(10):
        assert loop() == pytest.approx(library(), rel=0.01)
        exact()
    for rounds in (loop, library):
        assert np.abs(rounds.ranks - exact.ranks()).sum() < 1e-5


def test_full_runs_stop_by_the_papers_rule():
    here = adjacency(rmat(8), 256)
    known = row(bowen.FULL, bowen.TABLES[bowen.FULL], {"graph": "g", "what": sides.ONE.label})
    [found] = bowen._timed(here, known, "numba", {"threads": 1})
    assert found["GTEPS"] == pytest.approx(here.m * found["iterations"] / found["s"] / 1e9)
    step = sides.prepared("numba", here, threads=1)
    step.start(1 / here.n)
    moves = [step().largest for _ in range(found["iterations"])]
    assert moves[-1] <= bowen.TOL < moves[-2]


def test_a_library_of_the_cpu_takes_its_time_by_passes(monkeypatch):
    def rank(graph, alpha, tol):
        assert (len(graph), alpha) == (9000, sides.ALPHA)
        return np.ones(3), 1000

    here = adjacency(uniform(3000, 9000), 3000)
    library = SimpleNamespace(threads=1, build=lambda edges: (None, edges), rank=rank)
    monkeypatch.setattr(cpu_peers, "peer", lambda name: library)
    seconds, note = cpu_peers.FASTEST.seconds(here)
    assert max(seconds) < 1
    assert note.endswith(": 1 thread, one of the 1000 passes of a ranking")
    monkeypatch.setattr(cpu_peers, "MOST_EDGES", 8999)
    with pytest.raises(MethodUnavailableError, match="not asked of more than 8,999 edges"):
        cpu_peers.SIDES[0].seconds(here)


def test_absent_libraries_of_the_cpu_are_one_row(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(cpu_peers, "peer", absent)
    here = adjacency(uniform(3000, 9000), 3000)
    [line] = absent_together(sides.beside(here, cpu_peers.SIDES))
    assert line["what"] == "; ".join(cpu_peers.LIBRARIES)
    assert "pip install 'prplugin[peers]'" in line["note"]
    with pytest.raises(MethodUnavailableError, match="graph_mate: not installed"):
        cpu_peers.FASTEST.seconds(here)


# --- what the papers print ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", wu.DATASETS, ids=lambda known: known.name)
def test_the_papers_table_two_agrees_with_itself(known):
    speed_up = wu.ROUNDS * known.cpu / (known.preparing + wu.ROUNDS * known.round)
    assert speed_up == pytest.approx(known.times, abs=0.06)
    assert 4 * (2 * known.non_zeros + known.rows) / wu.MB == pytest.approx(known.csr, rel=0.01)
    assert known.after - known.csr == pytest.approx(8 * known.rows / wu.MB, abs=0.15)


def test_the_papers_gflops_follow_from_its_times():
    printed = {"wikipedia-20051105": 2.095, "wikipedia-20060925": 1.989, "wikipedia-20061104": 1.983}  # Table III, IL
    for known in wu.DATASETS:
        if known.name in printed:
            gflops = (2 * known.non_zeros - known.rows) / known.spmv / 1e6
            assert gflops == pytest.approx(printed[known.name], rel=0.01)


def test_the_papers_speed_ups_follow_from_its_times():
    for sequential, parallel, times in swaroop.PAPER.values():
        assert sequential / parallel == pytest.approx(times, rel=0.01)


# --- the GPU's part, without one ----------------------------------------------------------------------------------


@pytest.fixture
def stubbed(monkeypatch):
    """Let every side take a time of its own."""
    seconds = {}

    def timed(side, adjacency):
        taken = seconds.setdefault(side.label, (1 + len(seconds)) * 1e-3)
        yield {"what": side.label, "ms": taken * 1e3, "samples": [taken] * 3, "note": ""}

    monkeypatch.setattr(sides, "_timed", timed)
    monkeypatch.setattr(runtime, "missing", lambda: None)
    monkeypatch.setattr(sides, "require_gpu", lambda: None)
    monkeypatch.setattr(sides, "prepared", lambda name, adjacency, **options: options)
    monkeypatch.setattr(sides, "iteration", lambda step, n: [1e-3 * (1 + len(str(step))), 2e-3 * (1 + len(str(step)))])
    monkeypatch.setattr(graphs, "memory_space", lambda: "host")


def rows_of(parts):
    return [line for part in parts for line in part.rows()]


def check_report(module, results):
    words, table = module.summary(results)
    assert words
    assert all(line["verdict"] for line in table)
    drawn = report._figures(module, results)
    for figure in drawn.values():
        figure.draw_without_rendering()
    return {line["the claim"]: line for line in table}, set(drawn)


def test_kumar_with_a_stubbed_gpu(stubbed, monkeypatch):
    monkeypatch.setattr(kumar, "_by_itself", lambda adjacency: 5)
    monkeypatch.setattr(kumar, "GRAPHS", (("eu-2005", 300, 2000),))
    results = rows_of(kumar.parts(None, quick=False))
    split = [line for line in results if line["table"] == kumar.SPLIT]
    assert [line["N"] for line in split if line["choice"]] == [5]
    assert split[0]["tail edges"] == 2000
    assert split[-1]["N"] == "all"
    claims, drawn = check_report(kumar, results)
    assert claims["GPU and CPU together compared with one CPU, eu-2005"]["found"] == pytest.approx(1 / 8)
    assert claims["GPU and CPU together compared with one CPU, eu-2005"]["verdict"] == "reversed"
    assert drawn == {"-sides", "-split"}


def test_wu_with_a_stubbed_gpu(stubbed, monkeypatch):
    monkeypatch.setattr(
        wu, "PRODUCTS", {what: lambda adjacency, k=k: [k * 1e-3] for k, what in enumerate(wu.PRODUCTS, 1)}
    )
    monkeypatch.setattr(wu, "_streaming", lambda *_: [])
    monkeypatch.setattr(wu, "_prepared", lambda adjacency: None)
    monkeypatch.setattr(wu, "_on_the_gpu", lambda make, adjacency: [1e-3, 2e-3])
    monkeypatch.setattr(wu, "DATASETS", wu.DATASETS[:3])
    monkeypatch.setattr(wu, "_generated", lambda n, m, instead="": graphs.generated(
        f"web{instead}", n // 100, m // 100, lambda memory_space: uniform(n // 100, m // 100)
    ))  # fmt: skip
    results = rows_of(wu.parts(None, quick=False))
    first = next(line for line in results if line["table"] == wu.ROUND)
    assert first["graph"] == "web in place of su"
    assert first["x for 500"] == pytest.approx(500 * first["CPU ms"] / (first["prep. ms"] + 500 * first["round ms"]))
    products = [line for line in results if line["table"] == wu.SPMV]
    hybrid = next(line for line in products if line["what"] == wu.HYBRID)
    assert hybrid["paper GFLOP/s"] == pytest.approx(1.585, abs=1e-3)
    assert hybrid["GFLOP/s"] == pytest.approx((2 * 23_124 - 2819) / 5e-3 / 1e9)
    assert next(line["ms"] for line in products if line["what"] == wu.OURS) == first["prplugin auto ms"]
    claims, drawn = check_report(wu, results)
    assert claims[f"the hybrid's SpMV compared with {wu.THREAD}, on the middle graph"]["found"] == pytest.approx(2 / 5)
    assert drawn == {"-gflops", "-thresholds"}


def test_bowen_with_stubbed_rows():
    full = bowen.TABLES[bowen.FULL]
    results = [
        row(bowen.FULL, full, {
            "graph": bowen.PAPER_GRAPH, "vertices": 8, "edges": 128, "longest row": 32, "what": what, "GTEPS": x,
            "x one CPU version": x, "note": "24 warp", "CPU segments": 3, "samples": [1],
        })
        for what, x in {sides.ONE.label: 1.0, **bowen.PAPER}.items()
    ] + [
        row(bowen.SWEEP, bowen.TABLES[bowen.SWEEP], {
            "graph": bowen.PAPER_GRAPH, "segments": count, "ms per iteration": ms, "GTEPS": 1 / ms, "schedule": f"of {count}", "kernels": f"{count} warp",
        })
        for count, ms in ((1, 2.0), (24, 1.0), (64, 3.0))
    ]  # fmt: skip
    words, _ = bowen.summary(results)
    assert "24 segments" in words
    assert "of 24" in words
    assert "PR GPU one-to-one 256 1024 [0.63 ms]" in words
    claims, drawn = check_report(bowen, results)
    assert {line["verdict"] for line in claims.values()} == {"holds"}
    assert claims["24 segments compared with one"]["found"] == 2
    assert claims["24 segments compared with any other number"]["found"] == 2
    help_ = "heterogeneous without the CPU, relative to with the CPU"
    for line in results:
        line |= {"CPU segments": 0}
    assert check_report(bowen, results)[0][help_]["verdict"] == "no difference"
    assert claims["24 segments compared with one"]["why"].endswith(
        "The best are 24: 1 ms, 24 warp. From 24 to 64 segments, each additional one adds 50 microseconds."
    )
    assert (
        "A row has 16 edges on average, and the longest 32."
        in claims[f"{bowen.WARP}, compared with one CPU version"]["why"]
    )
    assert drawn == {"-gteps", "-segments"}


def test_kim_with_stubbed_rows():
    results = [
        row(kim.TEN, kim.TABLES[kim.TEN], {"graph": graph, "what": what, "transfers ms": ms / 2, "in all ms": ms})
        for graph in ("uniform 2,000,000 x 10,000,000", "uniform 4,000,000 x 4,000,000", "cit-Patents")
        for what, ms in {kim.ONE: 8.0, kim.ALL: 4.0, kim.NODE: 2.0, kim.EDGE: 5.0}.items()
    ] + [
        row(kim.SWEEP, kim.TABLES[kim.SWEEP], {"graph": "g", "method": name, "blocks": blocks, "threads": threads, "ms per iteration": 1.0 + threads})
        for name in (kim.NODE, kim.EDGE) for blocks in (64, 1000) for threads in (32, 1000)
    ]  # fmt: skip
    claims, drawn = check_report(kim, results)
    assert [(line["paper"], line["found"], line["verdict"]) for line in claims.values()] == [
        (1.96, 2.0, "holds"), (2.82, 2.5, "holds"), ("ahead", 1.25, "holds"), ("ahead", 0.8, "reversed"),
    ]  # fmt: skip
    assert drawn == {"-bars", "-sweep"}


def test_swaroop_with_a_stubbed_gpu(stubbed, monkeypatch):
    monkeypatch.setattr(swaroop, "_matrix", lambda adjacency, where: None)
    monkeypatch.setattr(swaroop, "GpuRounds", lambda matrix, threads: threads)
    monkeypatch.setattr(swaroop, "_sampled", lambda threads: ([threads * 1e-3], ""))
    results = list(swaroop._threads(swaroop.SWEPT // 32))
    assert [line["threads"] for line in results] == list(swaroop.PAPER_THREADS)
    assert [line["dense ms"] == "" for line in results] == [threads % 32 > 0 for threads in swaroop.PAPER_THREADS]
    claims, drawn = check_report(swaroop, results)
    assert claims["32 threads per block compared with 1024"]["found"] == 32
    assert drawn == {"-threads"}


@pytest.mark.parametrize(
    ("found", "verdict", "why"),
    [(None, "not measured", ""), (2, "holds", "mass. 3 kg."), (1.01, "no difference", "rest. 3 kg."),
     (0.5, "reversed", "heat. 3 kg.")],
)  # fmt: skip
def test_verdicts(found, verdict, why):
    claim = Claim(
        what="a compared with b", paper=2, where="Table I", found=lambda _: found, ahead="mass.", behind="heat.", level="rest.",
        figures=lambda _: "3 kg.",
    )  # fmt: skip
    words, [line] = verdicts([claim], [])
    assert (line["verdict"], line["why"]) == (verdict, why)
    assert ("heat" in words) == (verdict == "reversed")


# --- graphs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place", ["roadNet-CA.txt", "graphs/roadNet-CA.txt.gz", "roadNet-CA/roadNet-CA.mtx", "graphs/roadNet-CA.parquet"]
)
def test_real_graphs_are_found_by_their_usual_names(tmp_path, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    if place.endswith(".mtx"):
        path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n")
    elif place.endswith(".parquet"):
        pd.DataFrame({"src": [0, 1], "dst": [1, 2], "weight": [5.0, 6.0]}).to_parquet(path)
    else:
        text = "# Nodes: 3 Edges: 2\n0\t1\n1\t2\n"
        path.write_bytes(gzip.compress(text.encode()) if place.endswith(".gz") else text.encode())
    graph = graphs.real(tmp_path, "roadNet-CA", 3, 2)
    read = graph.adjacency()
    assert (read.n, read.m, read.weighted) == (3, 2, False)
    assert graphs.real(tmp_path, "cit-Patents", 3, 2) is None
    assert graphs.real(None, "roadNet-CA", 3, 2) is None


def test_the_users_graph_is_taken_instead_of_a_generated_one(tmp_path):
    (tmp_path / "eu-2005.txt").write_text("0 1\n1 2\n")
    assert [part.name for part in kumar.parts(tmp_path, quick=False)][1] == "eu-2005"
    assert "in place of eu-2005" in [part.name for part in kumar.parts(None, quick=False)][1]


def test_a_graph_that_does_not_fit_is_a_row_that_says_so(monkeypatch):
    monkeypatch.setattr(memory, "bytes_available", lambda memory_space: 10**9)
    [line] = kim._ten(kim._uniform(8_000_000, 10))
    assert "needs about 8.8 GB" in line["note"]
    assert line["what"] == ""


def test_a_retweet_network_of_the_users_own(tmp_path):
    pd.DataFrame({"src": ["ann", "bob"], "dst": ["bob", "cat"], "retweets": [3, 1]}).to_parquet(
        tmp_path / "retweets.parquet"
    )
    lines = list(swaroop._tweets(tmp_path))
    assert [line["weight"] for line in lines] == ["none", "retweets"]
    assert all(line["first three"].startswith("cat") and line["note"] == "converged" for line in lines)
