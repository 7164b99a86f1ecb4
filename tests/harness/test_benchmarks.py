"""Running, resuming and comparing benchmarks. No test depends on measured times."""

from __future__ import annotations

import io
import itertools
import json
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib import rc_context
from matplotlib.figure import Figure

import prplugin
from benchmarks import __main__ as command_line
from benchmarks import compare, gap, measure, report, retrieval, run
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.generate import rmat, uniform
from benchmarks.measure import repeatedly
from benchmarks.run import Part


@pytest.fixture(autouse=True)
def _no_garbage_collection(monkeypatch):
    """Skip the garbage collection after each part, which takes seconds with the heap of all tests of a process."""
    monkeypatch.setattr(run, "gc", SimpleNamespace(collect=lambda: None))


def figures(results):
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([row["value"] for row in results])
    return {"values": figure}


class RecordingBenchmark:
    """A benchmark that records which of its parts are run, and can be interrupted in one."""

    def __init__(self, interrupted_in=None):
        self.ran = []
        self.interrupted_in = interrupted_in

    def module(self):
        return SimpleNamespace(
            __doc__="A benchmark.\n\nWith words.", COLUMNS=("graph", "value"), parts=self.parts, figures=figures,
            summary=lambda results: (f"{len(results)} rows.", []),
        )  # fmt: skip

    def parts(self, data, quick):
        return [Part(name, lambda name=name: self.rows(name)) for name in ("one", "two", "three")]

    def rows(self, name):
        self.ran.append(name)
        yield {"graph": name, "value": 1.0, "samples": [1.0, 1.1]}
        if name == self.interrupted_in:
            raise KeyboardInterrupt
        yield {"graph": name, "value": 2.0, "samples": [2.0, 2.1]}


def run_benchmark(benchmark, tmp_path, command="python -m benchmarks counting"):
    return run.run("counting", benchmark.module(), None, True, {}, tmp_path, command)


def test_rows_page_and_figure_are_written(tmp_path):
    run_benchmark(RecordingBenchmark(), tmp_path)
    written = json.loads((tmp_path / "counting.json").read_text())
    assert written["finished"]
    assert written["command"] == "python -m benchmarks counting"
    assert written["machine"]["cores"] >= 1
    assert [row["part"] for row in written["rows"]] == ["one", "one", "two", "two", "three", "three"]
    page = (tmp_path / "counting.md").read_text()
    assert "With words." in page
    assert "6 rows." in page
    assert "| three | 2 |" in page
    assert "![counting-values](counting-values.svg)" in page
    assert (tmp_path / "counting-values.svg").read_text().startswith("<?xml")
    assert b"<svg" in (tmp_path / "counting-values.svg").read_bytes()


def test_figures_are_reproducible(tmp_path):
    for folder in ("a", "b"):
        run_benchmark(RecordingBenchmark(), tmp_path / folder)
    one, other = ((tmp_path / folder / "counting-values.svg").read_bytes() for folder in ("a", "b"))
    assert one == other


def test_compact_svg_keeps_texts_and_rounds_coordinates():
    figure = Figure()
    figure.subplots().plot([1, 3, 2])
    figure.suptitle("1.23456 < 2.5")
    file = io.StringIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    small = report.compact_svg(file.getvalue())
    texts, small_texts = (
        [text.text for text in ElementTree.fromstring(one).iter("{http://www.w3.org/2000/svg}text")]
        for one in (file.getvalue(), small)
    )
    assert small_texts == texts
    assert "1.23456 < 2.5" in texts
    assert len(small) < 0.7 * len(file.getvalue())


def test_pages_are_regenerated_from_the_rows(tmp_path, monkeypatch):
    benchmark = RecordingBenchmark()
    run_benchmark(benchmark, tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path in files:
        if path.suffix != ".json":
            path.unlink()
    monkeypatch.setitem(BENCHMARKS, "counting", benchmark.module())
    done = CliRunner().invoke(main, ["pages", str(tmp_path / "counting.json")])
    assert done.exit_code == 0, done.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    (tmp_path / "other.json").write_text("{}")
    assert (
        "other.json is not named after any of"
        in CliRunner().invoke(main, ["pages", str(tmp_path / "other.json")]).output
    )


def test_interrupted_run_is_resumed(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(RecordingBenchmark("two"), tmp_path)
    resumed = RecordingBenchmark()
    results = run_benchmark(resumed, tmp_path)
    assert resumed.ran == ["two", "three"]
    assert [row["graph"] for row in results] == ["one", "one", "two", "two", "three", "three"]
    restarted = RecordingBenchmark()
    run_benchmark(restarted, tmp_path)  # the previous run was finished
    assert restarted.ran == ["one", "two", "three"]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """Return what a benchmark has written that was interrupted in its last part."""
    folder = tmp_path_factory.mktemp("interrupted")
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(RecordingBenchmark("three"), folder)
    return json.loads((folder / "counting.json").read_text())


@pytest.mark.parametrize("field", ["command", "commit", "machine", "versions", "code"])
def test_run_is_not_resumed_if_its_circumstances_changed(tmp_path, interrupted, field):
    changed = interrupted | {field: {"python": "2.7"} if field == "versions" else "another"}
    (tmp_path / "counting.json").write_text(json.dumps(changed))
    benchmark = RecordingBenchmark()
    run_benchmark(benchmark, tmp_path)
    assert benchmark.ran == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ([1.0, 1.01, 0.99, 1.0, 1.02], [1.0, 1.02, 1.01, 0.99, 1.0], "same"),
        ([1.0, 1.01, 0.99, 1.0, 1.02], [1.3, 1.31, 1.29, 1.3, 1.32], "changed"),
        ([1.0, 1.01, 0.99, 1.0, 1.02], [0.8, 0.81, 0.79, 0.8, 0.82], "changed"),
        ([1.0, 1.5, 0.7, 1.2, 0.9], [1.1, 1.6, 0.8, 1.3, 1.0], "same"),
        ([1.0, 1.0, 1.0, 1.0, 9.0], [1.2, 1.2, 1.2, 1.2, 1.2], "changed"),
        ([1.0, 1.4], [1.3, 1.3], "same"),
        ([1.0], [2.0, 2.0], "not judged"),
    ],
)
def test_verdicts_by_noise_of_the_samples(one, other, verdict):
    assert compare.beyond_noise(one, other)[0] == verdict


def test_comparison_of_two_runs(tmp_path):
    def write_run(name, **samples):
        about = {
            "command": "c",
            "commit": name,
            "machine": {"device": "d"},
            "versions": {"numpy": name},
            "keys": ["graph"],
        }
        rows = [{"graph": graph, "value": 1.0, "samples": {"ours": values}} for graph, values in samples.items()]
        (tmp_path / name).write_text(json.dumps({**about, "rows": rows}))
        return str(tmp_path / name)

    slow, fast = [2.0, 2.01, 2.02], [1.0, 1.01, 1.02]
    first = write_run("a.json", unchanged=fast, slower=fast, faster=slow, removed=fast)
    second = write_run("b.json", unchanged=fast, slower=slow, faster=fast, added=fast)
    differences, rows = compare.compared(tmp_path / "a.json", tmp_path / "b.json")
    assert differences == ["commit: a.json -> b.json", "version of numpy: a.json -> b.json"]
    assert {row["row"]: row["verdict"] for row in rows} == {
        "slower": "changed", "faster": "changed", "unchanged": "same", "removed": "only in A", "added": "only in B",
    }  # fmt: skip
    done = CliRunner().invoke(main, ["compare", first, second])
    assert done.exit_code == 0, done.output
    assert "2 changed, 1 same, 1 only in A, 1 only in B" in done.output
    assert "unchanged" not in done.output


@pytest.mark.parametrize(
    ("limit", "samples", "calls"),
    [(1000, [20] * 5, 6), (50, [20] * 3, 4), (10, [20], 2), (1, [20], 1)],
    ids=["quick", "slow", "slower", "too slow for two samples"],
)
def test_slow_calls_are_sampled_less_often(monkeypatch, limit, samples, calls):
    times = itertools.count(0, 20)
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: next(times))
    called = []
    assert repeatedly(lambda: called.append(1), runs=5, limit=limit) == samples
    assert len(called) == calls


def test_work_that_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr(measure, "bytes_available", lambda memory_space: 10**9)
    measure.require(10**9, "host", "a graph")
    with pytest.raises(
        measure.InsufficientMemoryError, match=r"a graph needs about 2\.0 GB, and this machine has 1\.0 GB free"
    ):
        measure.require(2e9, "host", "a graph")


def test_available_memory_is_plausible():
    assert 10**6 < measure.bytes_available("host") < 10**15


@pytest.mark.slow
def test_quick_run_of_retrieval(tmp_path):
    pytest.importorskip("igraph")
    done = CliRunner().invoke(main, ["retrieval", "--quick", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "retrieval.json").read_text())["rows"]
    on_cpu = {(row["library"], row["queries"]) for row in rows if row["processor"] == "CPU"}
    from_one = f"1 vertex, {retrieval.HOSTS[0][2]:.0%} of links leave"
    assert on_cpu == {
        *((library, 1) for library in ("igraph", "NetworkX", "SciPy")),
        *((library, from_one) for library in ("igraph", "SciPy", "prplugin, all edges")),
        ("prplugin, one by one", retrieval.QUICK_QUERIES),
    }
    for row in rows:
        assert row["L1 distance"] <= retrieval.MAX_DISTANCE
        assert row["ratio"] == row["library ms"] / row["prplugin ms"]
        assert row["library minimum ms"] == 1e3 * min(row["samples"]["library"])


def test_retrieval_notes_a_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    rows = {row["library"]: row for row in retrieval._single(*retrieval.SIZES[0], "host", 1)}
    assert set(rows) == {"igraph", "NetworkX", "SciPy"}
    assert "igraph" in rows["igraph"]["note"]
    assert rows["SciPy"]["ratio"] > 0


def test_retrieval_refuses_results_that_differ():
    ranks, difference = np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[0, 0], [0, 4e-6]])
    near, far = ranks + difference, ranks + 2 * difference
    assert retrieval.check({"prplugin": ranks, "near": near}) == {"prplugin": 0, "near": pytest.approx(4e-6)}
    assert retrieval.check({"prplugin": ranks, "far": far})["far"] == pytest.approx(8e-6)
    with pytest.raises(ValueError, match=r"the ranks of low and far are 1\.2e-05 apart"):
        retrieval.check({"prplugin": ranks, "low": ranks - difference, "far": far})
    with pytest.raises(ValueError, match="nan apart"):
        retrieval.check({"prplugin": ranks, "other": np.full((2, 2), np.nan)})


@pytest.mark.parametrize(("n", "m"), retrieval.SIZES)
def test_graphs_of_retrieval_have_no_self_loops_and_no_isolated_vertices(n, m):
    edges = retrieval._edges(n, m)
    assert len(edges) == m
    assert (edges["src"] != edges["dst"]).all()
    assert np.array_equal(np.unique(edges[["src", "dst"]]), np.arange(n))


def test_results_of_the_repository_are_written_only_on_request(monkeypatch, tmp_path):
    outputs = []
    monkeypatch.setattr(command_line, "run", lambda *arguments: outputs.append(arguments[5].resolve()))
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(command_line.main, ["kim"])
    assert str(tmp_path / "benchmark-results") in shown.stderr
    CliRunner().invoke(command_line.main, ["kim", "--output", str(tmp_path / "other")])
    assert outputs == [tmp_path / "benchmark-results", tmp_path / "other"]


def test_some_of_the_papers_benchmarks_run_by_name(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(command_line, "run", lambda name, *arguments: ran.append((name, arguments[-1])))
    assert CliRunner().invoke(command_line.main, ["all", "wu", "bowen", "--output", str(tmp_path)]).exit_code == 0
    assert ran == [("wu", "python -m benchmarks wu"), ("bowen", "python -m benchmarks bowen")]
    ran.clear()
    CliRunner().invoke(command_line.main, ["all", "--output", str(tmp_path)])
    assert [name for name, _ in ran] == list(command_line.ALL)


def test_serialized_graphs_of_gap(tmp_path):
    edges = pd.DataFrame({"src": [0, 0, 3, 3], "dst": [1, 2, 2, 0]})
    graph = prplugin.Graph(edges, directed=False, vertices=range(5))
    gap.write_serialized(graph, tmp_path / "g.sg")
    found = prplugin.pagerank(tmp_path / "g.sg")
    pd.testing.assert_frame_equal(found, graph.rank().frame, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", ["kron", "urand"])
def test_graphs_of_gap_have_each_pair_once(monkeypatch, kind):
    monkeypatch.setattr(gap, "PIECE", 1000)
    drawn = rmat(8) if kind == "kron" else uniform(256, 16 * 256)
    pairs = {(min(pair), max(pair)) for pair in drawn.itertuples(index=False) if pair[0] != pair[1]}
    frame = gap._distinct_pairs(kind, 8, "host")
    assert list(frame.itertuples(index=False, name=None)) == sorted(map(tuple, pairs))
