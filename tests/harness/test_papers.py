"""Benchmarks of the papers: quick runs on the CPU, runs with a stubbed GPU, and reports of given rows."""

from __future__ import annotations

import gzip
import json
import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from adjacencies import adjacency_of
from click.testing import CliRunner
from fake_gpu import install
from listings import OURS
from listings import PAPERS as LISTINGS

import prplugin
from benchmarks import measure, report
from benchmarks.__main__ import BENCHMARKS, PAPERS, main
from benchmarks.generate import rmat, uniform, web
from benchmarks.papers import (
    bowen,
    claims,
    cpu_peers,
    graphs,
    host_segments,
    implementations,
    in_place,
    kim,
    kumar,
    pages,
    swaroop,
    tweetrank,
    wu,
)
from benchmarks.papers.google import BlasRounds, HostRounds, google_matrix
from benchmarks.papers.tables import ClaimTest, grade, merge_absent, row, verdicts
from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.edges import Edges
from prplugin.papers import cpu_split
from prplugin.papers.segmented import Segment
from prplugin.types.edges import Coo, Csc

NO_GPU = runtime.unavailable_reason()


def adjacency(frame, n):
    src, dst = (frame[name].to_numpy().astype(np.int32) for name in ("src", "dst"))
    return Edges(Coo(src, dst, None, n))


GRADED_ON_A_CPU = ("| rounds of the", "| eight CPU threads", "| every other version")
"""Claims that a run without a GPU grades."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_quick_run_of_each_paper(name, tmp_path, monkeypatch):
    for module in (implementations, cpu_peers):
        monkeypatch.setattr(module, "RUNS", 2)  # samples of each time
    done = CliRunner().invoke(main, [name, "--quick", "--data", str(tmp_path), "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["finished"]
    assert written["command"] == f"python -m benchmarks {name} --quick --data DIR"
    module = BENCHMARKS[name]
    for line in written["rows"]:
        assert set(module.TABLES[line["table"]]) <= set(line)
        assert "samples" in line or line["note"] or line["table"] in (wu.SIZES, kumar.SPLIT, bowen.ROUNDS), line
    timed = [line for line in written["rows"] if "samples" in line]
    assert timed
    if NO_GPU:
        assert any("GPU" in line["note"] for line in written["rows"])
    assert {line["table"] for line in written["rows"]} == set(module.TABLES)
    assert list(tmp_path.glob(f"{name}-*.svg"))
    reversed_ = [line for line in (tmp_path / f"{name}.md").read_text().splitlines() if "| reversed |" in line]
    assert not NO_GPU or all(line.startswith(GRADED_ON_A_CPU) for line in reversed_)


def test_implementations_agree_on_the_ranks():
    graph = adjacency(uniform(3000, 9000), 3000)
    ranks = [kim.IMPLEMENTATIONS[name](kim.Inputs(graph)).ranks for name in (kim.ONE, kim.ALL, kim.SCIPY)]
    for other in ranks[1:]:
        assert np.abs(other - ranks[0]).sum() < 1e-14


def both_ways(frame):
    reverse = frame[frame["src"] != frame["dst"]].rename(columns={"src": "dst", "dst": "src"})
    return pd.concat([frame, reverse])


@pytest.mark.gpu
@pytest.mark.skipif(bool(NO_GPU), reason=str(NO_GPU))
@pytest.mark.parametrize(
    "what",
    [what for what in kim.IMPLEMENTATIONS if what not in (kim.PEER, kim.BASIC) and what not in kim.COUNTED.values()],
)
def test_implementations_agree_on_the_ranks_of_an_undirected_graph(what):
    inputs = kim.Inputs(adjacency(both_ways(uniform(3000, 9000)), 3000))
    exact = kim.IMPLEMENTATIONS[kim.BASIC if what in kim.FORMS.values() else kim.ONE](inputs).ranks
    assert np.abs(kim.IMPLEMENTATIONS[what](inputs).ranks - exact).sum() < 2e-6


def test_one_row_per_undirected_edge():
    n = 50
    frame = uniform(n, 400)  # with parallel edges and self-loops
    graph = adjacency(both_ways(frame), n)
    ends, others = kim.Inputs(graph).pairs
    assert ends.size == 400
    loops = ends == others
    assert 0 < loops.sum() == (frame["src"] == frame["dst"]).sum()
    contributions = np.random.default_rng(1).random(n)
    # The additions of the kernel.
    sums = np.bincount(others, contributions[ends], n) + np.bincount(ends, contributions[others] * ~loops, n)
    expected = np.bincount(graph.get(Coo).destination, contributions[graph.get(Coo).source], n)
    assert sums == pytest.approx(expected)


def test_page_locked_copies_are_made_once(monkeypatch):
    made = []

    def empty_pinned(shape, dtype=float):
        made.append(np.empty(shape, dtype))
        return made[-1]

    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(empty_pinned=empty_pinned))
    inputs = kim.Inputs(adjacency(both_ways(uniform(50, 400)), 50))
    for what, edges in ((kim.NODE, inputs.here.m), (kim.EDGE, inputs.here.m), (kim.EDGE_PAPER, 2 * 400)):
        first = inputs.page_locked(what)
        assert first is inputs.page_locked(what)
        *copies, room = first
        assert copies[0].size == edges
        assert room.dtype == (np.float32 if what == kim.EDGE_PAPER else np.float64)
        for copy, array in zip(copies, inputs.arrays(what), strict=True):
            assert copy.dtype == array.dtype
            assert (copy == array).all()
        assert room.shape == (50,)
    assert len(made) == 4 + 4 + 5


def test_directed_graphs_have_no_undirected_edges():
    assert kim.Inputs(adjacency(uniform(50, 400), 50)).pairs is None
    cycle = pd.DataFrame({"src": [0, 1, 2, 3], "dst": [1, 0, 3, 1]})  # as many edges upward as downward
    assert kim.Inputs(adjacency(cycle, 4)).pairs is None


def test_generated_undirected_graph_has_both_directions():
    graph = kim._undirected(100, 300)
    frame = both_ways(uniform(100, 300))
    made = graph.adjacency().on("host")
    assert graph.edges == 600
    assert sorted(zip(made.get(Coo).source, made.get(Coo).destination, strict=True)) == sorted(
        zip(frame["src"], frame["dst"], strict=True)
    )


def test_loop_of_the_paper_is_the_power_method():
    n = 300
    graph = adjacency(uniform(n, 900), n)
    matrix = google_matrix(graph, implementations.ALPHA)
    loop, library = HostRounds(matrix), BlasRounds(matrix)
    exact = implementations.prepared("numpy", graph)
    exact.start(1 / n)
    for _ in range(10):
        assert loop() == pytest.approx(library(), rel=0.01)
        exact()
    for rounds in (loop, library):
        assert np.abs(rounds.ranks - exact.ranks()).sum() < 1e-5


def test_full_runs_stop_by_the_rule_of_the_paper():
    graph = adjacency(rmat(8), 256)
    known = row(bowen.FULL, bowen.TABLES[bowen.FULL], {"graph": "g", "what": implementations.ONE.label})
    [found] = bowen._timed(graph, known, "native", {"threads": 1})
    assert found["GTEPS"] == pytest.approx(graph.m * found["iterations"] / found["s"] / 1e9)
    step = implementations.prepared("native", graph, threads=1)
    step.start(1 / graph.n)
    changes = [step().largest for _ in range(found["iterations"])]
    assert changes[-1] <= bowen.TOL < changes[-2]


def test_seconds_of_cpu_libraries_are_per_iteration(monkeypatch):
    def rank(graph, alpha, tol):
        assert (len(graph), alpha) == (9000, implementations.ALPHA)
        return np.ones(3), 1000

    graph = adjacency(uniform(3000, 9000), 3000)
    library = SimpleNamespace(threads=1, build=lambda edges: (None, edges), rank=rank)
    monkeypatch.setattr(cpu_peers, "peer", lambda name: library)
    seconds, note = cpu_peers.FASTEST.seconds(graph)
    assert max(seconds) < 1
    assert note.endswith(": 1 thread, one of the 1000 passes of a ranking")
    monkeypatch.setattr(cpu_peers, "MOST_EDGES", 8999)
    with pytest.raises(MethodUnavailableError, match="not run on more than 8,999 edges"):
        cpu_peers.IMPLEMENTATIONS[0].seconds(graph)


def test_missing_cpu_libraries_are_one_row(monkeypatch):
    def raise_not_found(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(cpu_peers, "peer", raise_not_found)
    graph = adjacency(uniform(3000, 9000), 3000)
    [line] = merge_absent(implementations.time_each(graph, cpu_peers.IMPLEMENTATIONS))
    assert line["what"] == "; ".join(cpu_peers.LIBRARIES)
    assert "pip install 'prplugin[peers]'" in line["note"]
    with pytest.raises(MethodUnavailableError, match="graph_mate: not installed"):
        cpu_peers.FASTEST.seconds(graph)


# --- figures printed in the papers --------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", wu.DATASETS, ids=lambda dataset: dataset.name)
def test_table_two_of_the_paper_is_consistent(dataset):
    speed_up = wu.ROUNDS * dataset.cpu / (dataset.preparing + wu.ROUNDS * dataset.round)
    assert speed_up == pytest.approx(dataset.times, abs=0.06)
    assert 4 * (2 * dataset.non_zeros + dataset.rows) / wu.MB == pytest.approx(dataset.csr, rel=0.01)
    assert dataset.after - dataset.csr == pytest.approx(8 * dataset.rows / wu.MB, abs=0.15)


def test_gflops_of_the_paper_follow_from_its_times():
    printed = {"wikipedia-20051105": 2.095, "wikipedia-20060925": 1.989, "wikipedia-20061104": 1.983}  # Table III, IL
    for dataset in wu.DATASETS:
        if dataset.name in printed:
            gflops = (2 * dataset.non_zeros - dataset.rows) / dataset.spmv / 1e6
            assert gflops == pytest.approx(printed[dataset.name], rel=0.01)


def test_speed_ups_of_the_paper_follow_from_its_times():
    for sequential, parallel, times in swaroop.PAPER.values():
        assert sequential / parallel == pytest.approx(times, rel=0.01)


# --- benchmarks of the GPU, with a stubbed GPU --------------------------------------------------------------------


@pytest.fixture
def stubbed_gpu(monkeypatch):
    """Simulate a GPU; every implementation takes a different time."""
    seconds = {}

    def timed(side, adjacency):
        taken = seconds.setdefault(side.label, (1 + len(seconds)) * 1e-3)
        yield {"what": side.label, "ms": taken * 1e3, "samples": [taken] * 3, "note": ""}

    monkeypatch.setattr(implementations, "_timed", timed)
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(implementations, "require_gpu", lambda: None)
    monkeypatch.setattr(implementations, "prepared", lambda name, adjacency, **options: options)
    monkeypatch.setattr(
        implementations, "iteration", lambda step, n: [1e-3 * (1 + len(str(step))), 2e-3 * (1 + len(str(step)))]
    )
    monkeypatch.setattr(implementations, "short_iteration", implementations.iteration)
    monkeypatch.setattr(graphs, "memory_space", lambda: "host")


def rows_of(parts):
    return [line for part in parts for line in part.rows()]


def check_report(module, results):
    """Check summary, verdicts and figures; return the verdicts by claim, and the names of the figures."""
    text, table = module.summary(results)
    assert text
    assert all(line["verdict"] for line in table)
    figures = report._figures(module, results)
    for figure in figures.values():
        figure.draw_without_rendering()
    return {line["claim"]: line for line in table}, set(figures)


def test_kumar_with_a_stubbed_gpu(stubbed_gpu, monkeypatch):
    monkeypatch.setattr(kumar, "_chosen_split", lambda adjacency, form: ((5,), "N = 5, found by 2 timings in 1 s"))
    monkeypatch.setattr(kumar, "GRAPHS", (("eu-2005", 300, 2000),))
    results = rows_of(kumar.parts(None, quick=False))
    split = [line for line in results if line["table"] == kumar.SPLIT]
    auto = [(line["form"], line["N"], line["note"]) for line in split if line["choice"]]
    assert auto == [(form, 5, "N = 5, found by 2 timings in 1 s") for form in (kumar.OURS, kumar.PAPERS)]
    assert split[0]["tail edges"] == 2000
    assert [line["form"] for line in split if line["N"] == "all"] == list(kumar.FORMS)
    own = min(line["ms per iteration"] for line in split if line["form"] == kumar.PAPERS)
    assert [line["ms"] for line in results if line.get("what") == kumar.PAPER_LABEL] == [own]
    blocks = [line for line in results if line["table"] == kumar.BLOCKS]
    assert {line["form"] for line in blocks} == {kumar.SORTED, kumar.PAPERS}
    assert all(line["speed-up over the best single N"] for line in blocks)
    text, _ = kumar.summary(results)
    assert "With N by auto, the CPU" in text
    by_claim, figures = check_report(kumar, results)
    claim = by_claim["GPU and CPU together, the paper's form, compared with one CPU, eu-2005"]
    assert claim["measured"] == pytest.approx(1 / own)
    assert claim["verdict"] == "reversed"
    helped = by_claim["GPU and CPU together, the paper's form with its best N, compared with all edges on the GPU"]
    everything = next(line["ms per iteration"] for line in split if (line["form"], line["N"]) == (kumar.PAPERS, "all"))
    others = [line["ms per iteration"] for line in split if line["form"] == kumar.PAPERS and line["N"] != "all"]
    assert helped["measured"] == pytest.approx(everything / min(others))
    assert helped["kind"] == "processors"
    assert by_claim["CUDA compared with the Cell BE, eu-2005"]["verdict"] == "not testable here"
    assert figures == {"-sides", "-split"}


@pytest.mark.parametrize("chosen", [("all",), (8, 4, 4)])
def test_gain_of_auto_counts_every_choice(chosen):
    columns = kumar.TABLES[kumar.SPLIT]
    results = [
        row(kumar.SPLIT, columns, {"graph": "cnr-2000", "form": form, "N": n, "choice": choice, "ms per iteration": ms})
        for form, n, choice, ms in (
            (kumar.OURS, 4, "", 4.0), (kumar.OURS, "all", "auto" * (chosen == ("all",)), 6.0), (kumar.PAPERS, 4, "", 12.0),
            (kumar.PAPERS, "all", "", 24.0), *([(kumar.OURS, "8/4", "auto", 3.0)] if len(chosen) > 1 else []),
        )
    ]  # fmt: skip
    assert kumar._gains(results) == {"cnr-2000": 1.0 if chosen == ("all",) else 2.0}
    assert kumar._gains(results, best=True, form=kumar.PAPERS) == {"cnr-2000": 2.0}
    text, _ = kumar.summary(results)
    assert ("It does not on: cnr-2000 (1)" in text) == (chosen == ("all",))


@pytest.mark.parametrize("equal_size", [False, True])
@pytest.mark.parametrize("count", [1, 7, 64, 1001])
def test_limits_by_block_are_those_of_both_forms(count, equal_size):
    degrees = np.sort(np.random.default_rng(0).integers(0, 99, 1001))[::-1]
    limits, block = kumar.block_limits(degrees, count, 90, equal_size=equal_size)
    heads = np.minimum(degrees, limits[block])
    if equal_size:
        rows_per_block = -(-degrees.size // limits.size)
        assert np.minimum(degrees, limits[np.arange(degrees.size) // rows_per_block]).tolist() == heads.tolist()
    else:
        assert cpu_split.head_lengths(degrees, limits.tolist()).tolist() == heads.tolist()
    for k, limit in enumerate(limits):
        part = degrees[block == k]
        assert (part <= limit).mean() >= 0.9
        assert limit in part


def test_wu_with_a_stubbed_gpu(stubbed_gpu, monkeypatch):
    monkeypatch.setattr(
        wu, "PRODUCTS", {what: lambda adjacency, k=k: [k * 1e-3] for k, what in enumerate(wu.PRODUCTS, 1)}
    )
    monkeypatch.setattr(wu, "_streaming", lambda *_: [])
    monkeypatch.setattr(wu, "_prepared", lambda adjacency: None)
    monkeypatch.setattr(wu, "_on_the_gpu", lambda make, adjacency, sums: [1e-3, 2e-3])
    monkeypatch.setattr(wu, "DATASETS", wu.DATASETS[:3])
    monkeypatch.setattr(wu, "_generated", lambda n, m, instead="": graphs.generated(
        f"web{instead}", n // 100, m // 100, lambda memory_space: uniform(n // 100, m // 100)
    ))  # fmt: skip
    results = rows_of(wu.parts(None, quick=False))
    first = next(line for line in results if line["table"] == wu.ROUND)
    assert first["graph"] == "web in place of su"
    assert first["speed-up, 500 rounds"] == pytest.approx(
        500 * first["CPU ms"] / (first["prep. ms"] + 500 * first["round ms"])
    )
    products = [line for line in results if line["table"] == wu.SPMV]
    assert first[wu.SPEED_UP_PAPER]
    hybrid = next(line for line in products if line["what"] == wu.HYBRID)
    assert hybrid["paper GFLOP/s"] == pytest.approx(1.585, abs=1e-3)
    assert hybrid["GFLOP/s"] == pytest.approx((2 * 23_124 - 2819) / 10e-3 / 1e9)
    assert next(line["ms"] for line in products if line["what"] == wu.OURS) == first["prplugin auto ms"]
    by_claim, figures = check_report(wu, results)
    assert by_claim["SpMV: the hybrid compared with 1T1R, every graph"]["measured"] == pytest.approx(3 / 6)
    size = next(line for line in results if line["table"] == wu.SIZES)
    below = 100 * np.mean(np.bincount(uniform(2819, 23_124)["dst"], minlength=2819) < 2)
    assert size["below 2 %"] == pytest.approx(below)
    assert size["distribution"][1] == pytest.approx(below)
    assert figures == {"-gflops", "-rows", "-thresholds"}


def test_only_real_graphs_are_evidence_of_short_rows():
    rows = [
        row(wu.SIZES, wu.TABLES[wu.SIZES], {"graph": graph, "below 2 %": below, "below 64 %": 99.0})
        for graph, below in {"crawl 9 x 99 in place of su": 61.0, "cnr-2000": 42.0, "web-NotreDame": 60.0}.items()
    ]
    assert wu.TESTS["rows below 2"].ratios(rows) == {
        "cnr-2000": pytest.approx(42 / 58),
        "web-NotreDame": pytest.approx(60 / 40),
    }


def test_real_crawls_are_measured_and_swept(tmp_path):
    for name, *_ in wu.CRAWLS:
        (tmp_path / f"{name}.txt").write_text("0 1\n1 2\n")
    names = [part.name for part in wu.parts(tmp_path, quick=False)]
    assert names[7:] == [
        "cnr-2000", "web-NotreDame", f"thresholds, {names[2]}", "thresholds, cnr-2000", "thresholds, web-NotreDame",
        "vector operations",
    ]  # fmt: skip
    assert names[2] == "crawl 1,634,989 x 19,753,078 in place of wikipedia-20051105"


GRAPH_OF_BOWEN = bowen.UNDIRECTED.format(bowen.PAPER_GRAPH)


def test_bowen_with_stubbed_rows():
    full = bowen.TABLES[bowen.FULL]
    results = [
        row(bowen.FULL, full, {
            "graph": GRAPH_OF_BOWEN, "vertices": 8, "edges": 128, "longest row": 32, "what": bowen.FORMS.get(what, what), "GTEPS": x,
            "speed-up over one CPU thread": x, "s": 1 / x, "note": "24 warp", "CPU segments": 0, "samples": [1],
        })
        for what, x in {implementations.ONE.label: 1.0, bowen.CPU_ONE: 1.0, bowen.CPU_VERSION: 8.0, **bowen.PAPER}.items()
    ] + [
        row(bowen.SWEEP, bowen.TABLES[bowen.SWEEP], {
            "graph": GRAPH_OF_BOWEN, "what": bowen.FORMS[bowen.HETERO], "segments": count, "ms per iteration": ms, "GTEPS": 1 / ms, "schedule": f"of {count}", "kernels": f"{count} warp",
        })
        for count, ms in ((1, 2.0), (24, 1.0), (64, 3.0))
    ]  # fmt: skip
    text, _ = bowen.summary(results)
    assert "24 segments" in text
    assert "of 24" in text
    assert "PR GPU one-to-one 256 1024 [0.63 ms]" in text
    by_claim, figures = check_report(bowen, results)
    block = by_claim["Block Sum compared with the CPU version, all threads"]
    assert block["measured"] == pytest.approx(1.84 / 8)
    assert block["verdict"] == "hardware"
    assert block["note"] == (
        "The CPU has twice as many cores as the paper's. By run time: 0.23. Compared with one thread: 1.84."
    )
    assert (
        by_claim["heterogeneous with CPU compared with the CPU version, all threads"]["verdict"] == "not measured yet"
    )
    assert by_claim["memory that 64 segments need compared with the GPU's"]["verdict"] == "hardware"
    assert by_claim["Warp Sum compared with Block Sum"]["measured"] == pytest.approx(27 / 1.84)
    assert by_claim["24 segments compared with one"]["measured"] == 2
    assert by_claim["24 segments compared with the best other number"]["measured"] == 2
    assert by_claim["24 segments compared with the best other number"]["note"] == (
        "The best are 24: 1 ms, 24 warp. From 24 to 64 segments, each additional one adds 50 microseconds."
    )
    assert figures == {"-gteps", "-segments"}
    assert bowen.files(results) == {}


def test_verdicts_on_cpu_segments_are_of_the_fastest_run_with_some():
    results = [
        row(bowen.HOST, bowen.TABLES[bowen.HOST], {"graph": GRAPH_OF_BOWEN, "CPU segments": count, "s": s, "GTEPS": 1 / s})
        for count, s in ((0, 0.001), (1, 0.002), (8, 0.004))
    ] + [
        row(bowen.FULL, bowen.TABLES[bowen.FULL], {"graph": GRAPH_OF_BOWEN, "what": what, "s": 0.005, "GTEPS": 200.0})
        for what in (bowen.ALL, bowen.CPU_VERSION)
    ]  # fmt: skip
    _, table = bowen.summary(results)
    found = {
        line["claim"]: (line["measured"], line["verdict"], line["note"]) for line in table if line["measured"] != ""
    }
    note = "ms by number of CPU segments: 0: 1, 1: 2, 8: 4."
    assert found == {
        "heterogeneous with CPU compared with the CPU version, all threads": (2.5, "direction only", note),
        "heterogeneous without the CPU compared with heterogeneous with CPU": (2.0, "reached", note),
    }


def test_cpu_version_of_bowen_follows_the_rule_of_the_paper():
    graph = in_place.graph_of_the_paper(adjacency(rmat(8), 256))
    one, several = (next(bowen._cpu_version(graph, {}, threads)) for threads in (1, 3))
    expected = in_place.scores(graph, bowen.TOL)
    assert one["iterations"] == expected[0]
    np.testing.assert_array_equal(one["ranks"], expected[1])
    assert np.abs(several["ranks"] - expected[1]).max() < bowen.WITHIN
    assert one["GTEPS"] == pytest.approx(graph.m * one["iterations"] / one["s"] / 1e9)


def test_bowen_in_the_papers_form_on_a_fake_gpu(monkeypatch):
    install(monkeypatch, {**OURS, **LISTINGS})
    # Threads write scores in place in any order, and so results differ by several times TOL, which WITHIN allows as it is.
    for name, value in {"TOL": 1e-5, "BEST": 3, "FORCED": (0, 1, 2)}.items():
        monkeypatch.setattr(bowen, name, value)
    monkeypatch.setattr(implementations, "RUNS", 1)
    graph = in_place.graph_of_the_paper(adjacency(rmat(5, 4), 32))
    _, expected = in_place.scores(graph, bowen.TOL)
    for what in bowen.IN_FORM:
        name, options = bowen.METHODS[what]
        [found] = bowen._timed(graph, {}, name, options | ({"segments": 3} if name == "segmented" else {}))
        assert np.abs(found["ranks"] - expected).max() < 2 * bowen.TOL
        assert found["GTEPS"] == pytest.approx(graph.m * found["iterations"] / found["s"] / 1e9)
    rows = list(bowen._on_the_cpu({}, lambda: (graph, None, None)))
    assert [line["CPU segments"] for line in rows] == [0, 1, 2]
    assert not any("WRONG" in line["note"] for line in rows)


def test_claims_are_graded_on_the_paper_form_and_the_paper_graph():
    columns = bowen.TABLES[bowen.FULL]
    results = [
        row(bowen.FULL, columns, {"graph": graph, "what": what, "GTEPS": gteps, "s": 1.0})
        for graph, scale in ((bowen.PAPER_GRAPH, 10), (GRAPH_OF_BOWEN, 1))
        for what, gteps in (
            (bowen.WARP, 9.0), (bowen.HETERO, 9.0), (bowen.FORMS[bowen.WARP], 2.0 * scale), (bowen.FORMS[bowen.HETERO], 3.0),
        )
    ]  # fmt: skip
    assert bowen._gteps_ratios(bowen.WARP, bowen.HETERO, results) == {bowen.PAPER_GRAPH: 1.5}
    assert bowen._gteps_ratios(bowen.WARP, bowen.HETERO, results[:4]) == {}


def test_schedules_and_yaml_of_measured_segments():
    def kernels(*ms):
        return tuple(
            Segment(method=method, threads=64, lanes=lanes, blocks=blocks, ms=time)
            for (method, lanes, blocks), time in zip((("node", None, 7), ("warp", 32, 600)), ms, strict=False)
        )

    measured = [
        host_segments.MeasuredSegment(0, 2, 10, 7, 3, kernels(3.0, 2.0), (replace(kernels(3.0, 2.0)[1], blocks=256, ms=1.0),), 9.0),
        host_segments.MeasuredSegment(2, 7, 11, 3, 0, kernels(2.0, 4.0), (), 8.0),
    ]  # fmt: skip
    chosen = host_segments.schedules(SimpleNamespace(n=7, m=21), measured)
    assert {name: [segment.ms for segment in schedule.segments] for name, schedule in chosen.items()} == {
        "best single kernel: node, 64 threads": [3.0, 2.0],
        "fastest kernel": [2.0, 2.0],
        "fastest kernel and grid": [1.0, 2.0],
    }
    rows = [
        row(
            bowen.KERNELS, bowen.TABLES[bowen.KERNELS], {"measured": json.loads(json.dumps(host_segments.fields(each)))}
        )
        for each in measured
    ]
    documents = list(yaml.safe_load_all(bowen.files(rows)["segments.yaml"]))
    assert [document["config"] for document in documents] == [
        {"device": "GPU", "kernel": "node, 64 threads, as many blocks as needed"},
        {"device": "GPU", "kernel": "warp/32, 64 threads, as many blocks as needed"},
        {"device": "GPU", "kernel": "warp/32, 64 threads, 256 blocks"},
        {"device": "CPU", "kernel": "CPU, all threads"},
    ]
    [results] = documents[0]["results"]
    assert [segment.pop("gteps") for segment in results["segments"]] == pytest.approx([10 / 3e6, 11 / 2e6])
    assert results["segments"] == [
        {"start": 0, "end": 2, "avg_deg": 5, "min_deg": 3, "max_deg": 7, "num_edges": 10, "millis": 3},
        {"start": 2, "end": 7, "avg_deg": 2.2, "min_deg": 0, "max_deg": 3, "num_edges": 11, "millis": 2},
    ]


def paper_rounds(graph, epsilon, keep):
    """Iterate scores in place in plain Python, vertex by vertex."""
    offsets, sources, _ = graph.get(Csc)
    out_degrees, scores = graph.out_weight, [1 / graph.n] * graph.n
    for count in range(1, 99):
        moved = 0
        for vertex in range(graph.n):
            total = sum(scores[u] / out_degrees[u] for u in sources[offsets[vertex] : offsets[vertex + 1]].tolist())
            new = 0.15 / graph.n + 0.85 * total
            moves = abs(new - scores[vertex]) > epsilon
            moved += moves
            if moves or not keep:
                scores[vertex] = new
        if not moved:
            return count, sum(scores)
    raise AssertionError


@pytest.mark.parametrize("keep", [False, True])
def test_rounds_in_place_are_those_of_a_plain_loop(keep):
    graph = in_place.by_out_degree(in_place.undirected(adjacency(rmat(7, 4), 128)))
    assert (np.diff(graph.out_weight) <= 0).all()
    count, total = in_place.rounds(graph, 1e-5, in_place=True, keep=keep, spread=False)
    expected, expected_total = paper_rounds(graph, 1e-5, keep)
    assert (count, total) == (expected, pytest.approx(expected_total, rel=1e-5))


def test_rounds_with_old_scores_and_dangling_mass_are_the_power_method():
    graph = in_place.by_out_degree(adjacency(rmat(8), 256))
    count, total = in_place.rounds(graph, 1e-5, in_place=False, keep=False, spread=True)
    step = implementations.prepared("native", graph, threads=1)
    step.start(1 / graph.n)
    changes = [step().largest for _ in range(count)]
    assert changes[-1] <= 1e-5 < changes[-2]
    assert total == pytest.approx(1, rel=1e-5)


def test_undirected_graph_has_both_directions_once():
    edges = Coo(np.array([0, 1, 2, 2, 0]), np.array([1, 0, 2, 3, 1]), None, 4)
    graph = in_place.undirected(Edges(edges))
    pairs = sorted(zip(graph.get(Coo).source.tolist(), graph.get(Coo).destination.tolist(), strict=True))
    assert pairs == [(0, 1), (1, 0), (2, 3), (3, 2)]


def test_kim_with_stubbed_rows():
    results = [
        row(kim.TEN, kim.TABLES[kim.TEN], {"graph": graph, "what": what, "transfers ms": ms / 2, "iterations ms": ms / 2, "total ms": ms})
        for graph in ("uniform 2,000,000 x 10,000,000", "uniform 4,000,000 x 4,000,000", "cit-Patents")
        for what, ms in {
            kim.ONE: 8.0, kim.ALL: 4.0, kim.NODE_PAPER: 2.0, kim.EDGE_PAPER: 5.0, kim.LOCKED.format(kim.NODE_PAPER): 1.0,
            kim.NODE: 9.0,
        }.items()
    ] + [
        row(kim.TEN, kim.TABLES[kim.TEN], {"graph": "cit-HepTh", "edges": 352_807, "what": what, "total ms": ms})
        for what, ms in {kim.ONE: 8.0, kim.NODE_PAPER: 3.0, kim.EDGE_PAPER: 2.0}.items()
    ] + [
        row(kim.SWEEP, kim.TABLES[kim.SWEEP], {"graph": "g", "method": name, "blocks": blocks, "threads": threads, "ms per iteration": 1.0 + threads})
        for name in (kim.NODE, kim.EDGE) for blocks in (64, 1000) for threads in (32, 1000)
    ]  # fmt: skip
    by_claim, figures = check_report(kim, results)
    assert [(line["paper"], line["measured"], line["verdict"]) for line in by_claim.values()] == [
        (1.96, 2.0, "reached"), (2.82, 2.5, "reached"), ("", 2.0, "confirmed"),
        ("", 1.25, "confirmed"), ("", 0.8, "reversed"), ("", 2.0, "confirmed"),
        ("", "", "not measured yet"), ("", "", "not measured yet"), ("", "", "not measured yet"),
        (1.0, "", "not measured yet"), (1.83, "", "not testable here"),
    ]  # fmt: skip
    notes = [line["note"] for line in by_claim.values()]
    assert notes[0] == (
        "Transfers are 50% to 50% of node's time, 50% to 50% from page-locked memory. From page-locked "
        "memory: 4 to 4. Without transfers: 2 to 2."
    )
    too_small = "too small to compare: cit-HepTh has 352,807 edges, cit-Patents 16,518,948."
    assert notes[2].endswith(too_small)  # no verdict on its speed
    assert figures == {"-bars", "-sweep"}


def test_swaroop_with_a_stubbed_gpu(stubbed_gpu, monkeypatch):
    monkeypatch.setattr(swaroop, "_matrix", lambda adjacency, where: None)
    monkeypatch.setattr(swaroop, "GpuRounds", lambda matrix, threads: threads)
    monkeypatch.setattr(swaroop, "_sampled", lambda threads: ([threads * 1e-3], ""))
    results = list(swaroop._threads(swaroop.SWEPT // 32))
    assert [line["threads"] for line in results] == list(swaroop.PAPER_THREADS)
    assert all(line["dense ms"] for line in results)
    by_claim, figures = check_report(swaroop, results)
    assert by_claim["32 threads per block compared with 1024"]["measured"] == 32
    assert by_claim["32 threads per block compared with 8"]["measured"] == 1 / 4
    more = by_claim["each number of threads per block compared with twice as many"]
    assert (more["measured"], more["verdict"]) == (2, "confirmed")
    assert figures == {"-threads"}


@pytest.mark.parametrize(
    ("ratio", "paper", "verdict"),
    [
        (1.6, 2, "reached"), (9, 2, "reached"), (1.59, 2, "direction only"), (0.99, 2, "reversed"), (0.9, 1.1, "reached"),
        (1.01, None, "confirmed"), (9, None, "confirmed"), (1, None, "reversed"),
    ],
)  # fmt: skip
def test_grades(ratio, paper, verdict):
    assert grade(ratio, claims.Claim("", "", "", paper)) == verdict
    on_hardware = claims.Claim("", "", "", paper, contrary="hardware")
    assert grade(ratio, on_hardware) == verdict.replace("reversed", "hardware")


@pytest.mark.parametrize(("ratio", "verdict"), [(1.5, "confirmed"), (0.81, "confirmed"), (0.79, "reversed")])
def test_a_best_value_may_be_behind_by_the_tolerance(ratio, verdict):
    assert grade(ratio, claims.Claim("", "", "", best=True)) == verdict


def test_results_on_other_data_are_not_graded():
    assert verdict_on({"mine": 0.5}, ratio=1, sets=("theirs",))[1]["verdict"] == "other data"
    assert verdict_on({"theirs": 0.5}, ratio=1, sets=("theirs",))[1]["verdict"] == "reversed"


def test_a_contrary_result_has_its_reason():
    _, line = verdict_on({"g": 0.5}, contrary="hardware", why="Other times.")
    assert (line["verdict"], line["note"]) == ("hardware", "Other times. 3 kg.")
    assert verdict_on({"g": 1.5}, why="Other times.")[1]["note"] == "3 kg."


@pytest.mark.parametrize(
    ("ratio", "paper", "verdict"),
    [
        (1.2, 1, "reached"),
        (0.85, 1, "reached"),
        (1.1, None, "confirmed"),
        (1.3, None, "reversed"),
        (0.0, 1, "reversed"),
    ],
)
def test_similarity_is_graded_both_ways(ratio, paper, verdict):
    assert grade(ratio, claims.Claim("", "", "", paper, similar=True)) == verdict


def verdict_on(ratios, **stated):
    """Return the summary and the row of one claim, measured as these ratios by graph."""
    claim = claims.Claim("a/b", "a compared with b", "Table I", **stated)
    text, [line] = verdicts([claim], {"a/b": ClaimTest(lambda _: ratios, lambda _: "3 kg.")}, [])
    return text, line


def test_verdicts_by_median_or_by_worst_graph():
    ratios = {"g": 4.0, "h": 0.5, "i": 1.5}
    text, line = verdict_on(ratios, ratio=3.0)
    assert (line["measured"], line["verdict"]) == (1.5, "direction only")
    assert line["range over graphs"] == "0.5 (h) to 4 (g)"
    assert line["note"] == "Above 1 on 2 of 3 graphs. 3 kg."
    assert "Direction only: a compared with b (3 in the paper, 1.5 here)." in text
    assert verdict_on(ratios, ratio=3.0, scope="every")[1]["verdict"] == "reversed"
    assert verdict_on(ratios, ratio=4.5, scope="up to")[1]["verdict"] == "reached"
    assert verdict_on({"g": 1.1, "h": 0.5, "i": 1.5}, ratio=1, scope="every", similar=True)[1]["measured"] == 0.5


def test_untestable_claims_have_a_reason():
    text, line = verdict_on({}, ratio=3.0, untestable="no scales.")
    assert (line["measured"], line["verdict"], line["note"]) == ("", "not testable here", "no scales. 3 kg.")
    assert text == "Of the paper's 1 claims, 0 can be tested with this run."
    assert verdict_on({})[1]["verdict"] == "not measured yet"


def test_claims_about_processors_are_counted_apart():
    several = [claims.Claim("a", "a", "", 2, kind=kind) for kind in ("processors", "designs", "designs")]
    text, _ = verdicts(several, {"a": ClaimTest(lambda _: {"g": 3.0})}, [])
    assert text == "Of the paper's 3 claims, 3 can be tested with this run; processors: 1 reached; designs: 2 reached."


CLAIMS = {kim: claims.KIM, kumar: claims.KUMAR, wu: claims.WU, bowen: claims.BOWEN, swaroop: claims.SWAROOP}


@pytest.mark.parametrize("module", CLAIMS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_claims_have_a_test_or_a_reason(module):
    keys = [claim.key for claim in CLAIMS[module]]
    assert len(set(keys)) == len(keys)
    assert set(module.TESTS) <= set(keys)
    assert {claim.key for claim in CLAIMS[module] if not claim.untestable} <= set(module.TESTS)
    assert all(claim.untestable[-1:] in ("", ".") for claim in CLAIMS[module])


def test_claims_agree_with_the_tables_of_the_papers():
    stated = {claim.key: claim.ratio for of_paper in CLAIMS.values() for claim in of_paper}
    expected = {
        **{f"500 {dataset.name}": dataset.times for dataset in wu.DATASETS},
        **{f"{what} {entries}": il / cpu for (what, entries), (cpu, il, _) in wu.OPERATIONS.items()},
        **{
            f"SpMV {data.name}": (2 * data.non_zeros - data.rows) / data.spmv / 1e6 / wu.CPU_SPMV[data.name]
            for data in wu.DATASETS if data.name in wu.CPU_SPMV
        },
        **{f"bus {name}": appetite / wu.PAPER_BUS for name, appetite in wu.PAPER_SPMV_BANDWIDTH.items()},
        "SpMV/rest": 92 / 8, "rows below 2": 50 / 50, "rows below 64": 95 / 5,
        **{str(nodes): times if times > 1 else 1 / times for nodes, (_, _, times) in swaroop.PAPER.items()},
        str(swaroop.PAPER_LARGEST[0]): swaroop.PAPER_LARGEST[1] / swaroop.PAPER_LARGEST[2],
        "notebook": (17 * 60 + 12) / 25,
        **{f"32/{threads}": us / swaroop.PAPER_THREADS[32] for threads, us in swaroop.PAPER_THREADS.items() if threads != 32},
        "One to One": bowen.PAPER[bowen.ONE_TO_ONE], "Warp Sum": bowen.PAPER[bowen.WARP],
        "Block Sum": bowen.PAPER[bowen.BLOCK], "heterogeneous": bowen.PAPER[bowen.HETERO],
        "heterogeneous with CPU": bowen.PAPER[bowen.HETERO_CPU],
        "heterogeneous/Warp Sum": 42 / 27, "without/with CPU": 42 / 32,
        "Warp Sum/One to One": 27 / 1.77, "Warp Sum/Block Sum": 27 / 1.84,
    }  # fmt: skip
    for key, ratio in expected.items():
        assert stated[key] == pytest.approx(ratio, rel=0.01), key
    # The other ratios do not follow from any figures that the papers print.
    others = {"node/all", "node/edge", "green-marl/basic", "eu", "cuda/cell", "cell/buehrer",
              "xeon/buehrer", "row array", "Warp Sum/1", "iterations", "memory", "top three",
              *(claim.key for claim in claims.WU if claim.key.startswith("IL/OpenCL"))}  # fmt: skip
    assert {key for key, ratio in stated.items() if ratio is not None} == set(expected) | others


GRADES = (
    "reached", "confirmed", "direction only", "reversed", "hardware", "other data|not measured yet", "not testable here",
)  # fmt: skip
KINDS = "processors", "designs", "other"

RESULTS = sorted(
    path for folder in ("gpu", "2-cores") for path in (Path(report.__file__).parent / "results" / folder).glob("*.md")
    if path.stem in PAPERS
)  # fmt: skip


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_verdicts_of_committed_pages_follow_from_their_tables(path):
    def judged(page):  # measurements of a run have more digits than its page
        return [cells[::6] for line in page.splitlines() if len(cells := line.split(" | ")) == 8]

    page = path.read_text()
    assert judged(pages.rejudged(page, PAPERS[path.stem])) == judged(page)


def test_page_on_papers_has_the_counts_of_the_gpus():
    text = (Path(report.__file__).parents[1] / "docs" / "papers.md").read_text()
    totals = {name: np.zeros(len(GRADES), int) for name in ("all", *KINDS)}

    def cells(counts):
        return " | ".join(map(str, (sum(counts), *counts)))

    for path in RESULTS[-len(PAPERS) :]:
        judged = [line.split(" | ") for line in path.read_text().splitlines() if line.count(" | ") == 7][1:]
        grades = [(kind, verdict) for _, kind, *_, verdict, _ in judged]
        counts = np.array([sum(verdict in grade.split("|") for _, verdict in grades) for grade in GRADES])
        assert f"results/gpu/{path.stem}.md) | {cells(counts)} |" in text, path.stem
        totals["all"] += counts
        for kind in KINDS:
            totals[kind] += [sum(grades.count((kind, one)) for one in grade.split("|")) for grade in GRADES]
    for name, counts in totals.items():
        assert re.search(rf"^\| {name}.* \| {re.escape(cells(counts))} \|$", text, re.MULTILINE), name


NUMBER = re.compile(r"(?<![\w,.])\d[\d,]*(?:\.\d+)?(?!\w)")
DERIVED = {
    "wu": {"1.5", "1.7"}, "swaroop": {"3.3", "4.5", "0.09"}, "bowen": {"1.7", "4.8"}, "cpu-split": {"18.5", "19.2", "3.2", "1.62", "20"},
}  # fmt: skip
"""Numbers that follow from figures of a page, or from samples: to be computed anew after each run."""


def numbers_by_page():
    """Return the texts of the documentation whose numbers are those of a page, by section."""
    docs = Path(report.__file__).parents[1] / "docs"
    _, *parts = re.split(r"^### (\w+) \d{4}$", (docs / "papers.md").read_text(), flags=re.MULTILINE)
    found = {name.lower(): (name.lower(), text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    found = {name: (page, text.partition("\n## ")[0].partition("**Today**")[2]) for name, (page, text) in found.items()}
    of_cpu_split = (docs / "cpu-split.md").read_text().partition("## When the CPU helps")[2]
    return found | {"cpu-split": ("kumar", of_cpu_split.partition("One thread per vertex is slow")[0])}


@pytest.mark.parametrize("section", numbers_by_page())
def test_numbers_of_the_documentation_are_on_the_pages(section):
    page, text = numbers_by_page()[section]
    measured = set(NUMBER.findall((Path(report.__file__).parent / "results" / "gpu" / f"{page}.md").read_text()))
    stated = set(NUMBER.findall(re.sub(r"\]\([^)]*\)|`[^`]*`", "", text)))
    assert stated - measured == DERIVED.get(section, set())


def test_contrary_claims_of_the_documentation_are_those_of_the_pages():
    text = (Path(report.__file__).parents[1] / "docs" / "papers.md").read_text()
    stated = {}
    for line in text.partition("## What came out the other way")[2].partition("\n## ")[0].splitlines():
        if found := re.match(r"\| (\w+): ", line):
            here = line.split(" | ")[2]
            ratio = 0 if here == "they run" else float(NUMBER.search(here)[0])
            stated.setdefault(found[1].lower(), []).append(1 / ratio if "times as fast" in here else ratio)
    for path in RESULTS[-len(PAPERS) :]:
        judged = [line.split(" | ") for line in path.read_text().splitlines() if line.count(" | ") == 7][1:]
        contrary = [float(measured) for *_, measured, _, verdict, _ in judged if verdict in ("reversed", "hardware")]
        assert sorted(stated.get(path.stem, [])) == pytest.approx(sorted(contrary), rel=0.01), path.stem


def test_gain_of_the_literal_hybrid_is_that_of_the_page():
    page = (Path(report.__file__).parent / "results" / "gpu" / "wu.md").read_text()
    ms = {}
    for line in pages.rows_of_page(page, wu):
        if line["table"] == wu.SPMV and line["what"] in (wu.HYBRID, wu.FORMS[wu.HYBRID]):
            ms.setdefault(line["graph"], {})[line["what"]] = line["ms"]
    gains = [of_graph[wu.HYBRID] / of_graph[wu.FORMS[wu.HYBRID]] for of_graph in ms.values()]
    assert len(gains) == 9
    stated = f"{min(gains):.3g} to {max(gains):.3g} times as fast as `binned`"
    root = Path(report.__file__).parents[1]
    for path in (root / "docs" / "papers.md", root / "prplugin" / "papers" / "wu.cu"):
        assert stated in path.read_text().replace("\n", " "), (path.name, stated)


def test_picture_of_the_claims_is_up_to_date():
    pictures = Path(report.__file__).parents[1] / "docs" / "pictures"
    drawn = runpy.run_path(str(pictures / "papers.py"))["drawn"]()
    assert (pictures / "papers.svg").read_text() == drawn, "python docs/pictures/papers.py"


def test_page_on_papers_is_read_in_five_minutes():
    page = Path(report.__file__).parents[1] / "docs" / "papers.md"
    assert len(page.read_text().split()) <= 1800


def test_papers_have_pages_of_both_machines():
    assert len(RESULTS) == 2 * len(PAPERS)


def test_numbers_of_a_page_are_parsed():
    page = "# T\n\n## Ten iterations\n\n| graph | edges | total ms | note |\n|---|---|---|---|\n| web 1,000 | 2,500 | 1.2e+03 |  |\n"
    [line] = pages.rows_of_page(page, kim)
    assert (line["graph"], line["edges"], line["total ms"], line["note"], line["what"]) == (
        "web 1,000",
        2500,
        1200.0,
        "",
        "",
    )
    with pytest.raises(ValueError, match="no verdicts"):
        pages.rejudged(page, kim)


def test_packed_bytes_per_edge_are_those_of_the_documentation():
    text = (Path(report.__file__).parents[1] / "docs" / "methods.md").read_text()
    least, most = map(float, re.search(r"- Moves: (\S+) to (\S+) bytes per edge over the bus", text).groups())
    for n, frame in ((30_000, web(30_000, 240_000)), (100_000, uniform(100_000, 1_000_000)), (4096, rmat(12, 16))):
        graph = adjacency(frame, n)
        assert 0.9 * least < implementations.packed_bytes(graph) / graph.m < 1.1 * most
    note = implementations.streamed_note(8, 6_000_000, 8_000_000)
    assert note == "75% of 8 MB of packed edges copied per iteration, in 8 chunks"


NAME = "crawl 9 x 9 in place of edu-2001"


def test_streamed_rounds_are_compared_only_if_most_edges_are_copied():
    def ratios(note):
        line = row(wu.STREAM, wu.TABLES[wu.STREAM], {"graph": NAME, "streamed ms": 3.0, "round ms": 2.0, "note": note})
        return wu.TESTS["streaming"].ratios([line])

    assert ratios(implementations.streamed_note(8, 75, 100)) == {NAME: 1.5}
    assert ratios(implementations.streamed_note(3, 33, 100)) == {}
    assert ratios("chunks sized at 4 bytes per edge") == {}


# --- examples of the papers ---------------------------------------------------------------------------------------


KIM_FIGURE_1 = [(0, 1), (0, 2), (0, 4), (0, 5), (2, 3), (4, 5), (4, 6), (5, 6), (3, 7), (6, 7), (7, 9), (8, 9)]
"""Ten nodes and 12 undirected edges. The text states only the degrees of vertices 0, 1, 2, 4, 5 and 8."""


@pytest.mark.parametrize("method", ["numpy", "native", "node", "edge"])
def test_one_iteration_of_the_example_of_kim(method):
    """Section 2.2: 0.85 * (0.1 / 1 + 0.1 / 2 + 0.1 / 3 + 0.1 / 3) + 0.15 / 10 is about 0.199."""
    if method in ("node", "edge") and NO_GPU:
        pytest.skip(NO_GPU)
    frame = pd.DataFrame(KIM_FIGURE_1, columns=["src", "dst"])
    graph = adjacency_of(prplugin.Graph(frame, directed=False))
    assert [int(graph.out_weight[vertex]) for vertex in (0, 1, 2, 4, 5, 8)] == [4, 1, 2, 3, 3, 1]
    step = implementations.prepared(method, graph)
    step.start(1 / graph.n)
    step()
    assert float(step.ranks()[0]) == pytest.approx(0.19917, abs=5e-6)


# --- graphs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["roadNet-CA.txt", "graphs/roadNet-CA.txt.gz", "roadNet-CA/roadNet-CA.mtx", "graphs/roadNet-CA.parquet"]
)
def test_real_graphs_are_found_by_their_usual_names(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if name.endswith(".mtx"):
        path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n")
    elif name.endswith(".parquet"):
        pd.DataFrame({"src": [0, 1], "dst": [1, 2], "weight": [5.0, 6.0]}).to_parquet(path)
    else:
        text = "# Nodes: 3 Edges: 2\n0\t1\n1\t2\n"
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    graph = graphs.real(tmp_path, "roadNet-CA", 3, 2)
    read = graph.adjacency()
    assert (read.n, read.m, read.weighted) == (3, 2, False)
    assert graphs.real(tmp_path, "cit-Patents", 3, 2) is None
    assert graphs.real(None, "roadNet-CA", 3, 2) is None


def test_parts_are_selected_by_their_names():
    assert [part.name for part in kim.parts(None, quick=True, only=("undirected", "blocks x"))] == [
        "undirected uniform 20,000 x 50,000", "blocks x threads, uniform 20,000 x 100,000",
    ]  # fmt: skip
    assert [part.name for part in bowen.parts(None, quick=True, only=("duplicates, full",))] == [
        "Kronecker 12, degree 16, undirected, no duplicates, full runs"
    ]


def test_graph_of_the_user_replaces_the_generated_one(tmp_path):
    (tmp_path / "eu-2005.txt").write_text("0 1\n1 2\n")
    assert [part.name for part in kumar.parts(tmp_path, quick=False)][1] == "eu-2005"
    assert "in place of eu-2005" in [part.name for part in kumar.parts(None, quick=False)][1]


def test_graph_that_does_not_fit_into_memory_is_a_row_with_the_reason(monkeypatch):
    monkeypatch.setattr(measure, "bytes_available", lambda memory_space: 10**9)
    [line] = kim._ten(kim._uniform(8_000_000, 10))
    assert "needs about 8.8 GB" in line["note"]
    assert line["what"] == ""


def test_changes_by_round_of_the_loop_of_the_paper():
    rows = [report.complete(tweetrank, line) for line in rows_of(tweetrank.parts(None, quick=True))]
    ended = {(line["network"], line["version"]): line for line in rows if line["note"]}
    assert len(ended) == 6
    for line in ended.values():
        assert line["note"] == "converged"
        assert line["changes"][-1] < 1e-6 <= line["changes"][-2]
    rounds = {line["round"] for line in ended.values() if line["network"].startswith("retweets")}
    assert len(rounds) == 1  # float32 makes no difference for a small network
    text, _ = tweetrank.summary(rows)
    assert text.count("converged on 2 of 2 networks") == 3
    report._figures(tweetrank, rows)[""].draw_without_rendering()


def test_rounds_by_columns_have_the_bits_of_the_loop_of_the_paper():
    graph = adjacency(uniform(500, 20_000), 500)  # with parallel edges
    by_columns, by_rows = (
        tweetrank.Rounds(graph, normalize=False),
        HostRounds(google_matrix(graph, implementations.ALPHA)),
    )
    for _ in range(20):
        by_columns()
        by_rows()
        assert (by_columns.ranks == by_rows.ranks).all()


def test_loop_of_the_paper_ends_at_the_maximum_of_rounds():
    trace = tweetrank.traced(lambda: (2e-6, 1.0))
    assert len(trace) == tweetrank.MAX_ITER
    assert tweetrank._least((3e-6, 2e-6, 4e-6)) == "least change 2e-06, in round 2"


def test_ranks_of_the_normalized_version_sum_to_one():
    graph = adjacency(web(3000, 24_000), 3000)
    sums = {
        version: [total for _, total in tweetrank.traced(tweetrank._round(graph, version))][-1]
        for version in (tweetrank.PAPER, tweetrank.NORMALIZED, tweetrank.FLOAT64)
    }
    assert abs(sums[tweetrank.FLOAT64] - 1) < 1e-13
    assert abs(sums[tweetrank.NORMALIZED] - 1) < 1e-6 < abs(sums[tweetrank.PAPER] - 1)


def test_retweet_network_of_the_user(tmp_path):
    pd.DataFrame({"src": ["ann", "bob"], "dst": ["bob", "cat"], "retweets": [3, 1]}).to_parquet(
        tmp_path / "retweets.parquet"
    )
    lines = list(swaroop._tweets(tmp_path))
    assert [line["weight"] for line in lines] == ["none", "retweets"]
    assert all(line["first three"].startswith("cat") and line["note"] == "converged" for line in lines)
