"""Running, resuming and comparing benchmarks. No time decides anything here."""

from __future__ import annotations

import itertools
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from benchmarks import compare, memory, retrieval, run
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.measure import repeatedly
from benchmarks.run import Part


@pytest.fixture(autouse=True)
def _no_garbage_collection(monkeypatch):
    """Skip the collection after each part: of the heap of all tests of a process, it takes seconds."""
    monkeypatch.setattr(run, "gc", SimpleNamespace(collect=lambda: None))


def drawn(results):
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([row["value"] for row in results])
    return {"values": figure}


class Counting:
    """A benchmark that counts how often its parts are run, and is interrupted once."""

    def __init__(self, interrupted_in=None):
        self.ran = []
        self.interrupted_in = interrupted_in

    def module(self):
        return SimpleNamespace(
            __doc__="A benchmark.\n\nWith words.", COLUMNS=("graph", "value"), parts=self.parts, figures=drawn,
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


def started(counting, tmp_path, command="python -m benchmarks counting"):
    return run.run("counting", counting.module(), None, True, {}, tmp_path, command)


def test_all_is_written(tmp_path):
    started(Counting(), tmp_path)
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


def test_figures_are_the_same_bytes_again(tmp_path):
    for folder in ("a", "b"):
        started(Counting(), tmp_path / folder)
    one, other = ((tmp_path / folder / "counting-values.svg").read_bytes() for folder in ("a", "b"))
    assert one == other


def test_pages_are_written_anew_from_the_rows(tmp_path, monkeypatch):
    counting = Counting()
    started(counting, tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path in files:
        if path.suffix != ".json":
            path.unlink()
    monkeypatch.setitem(BENCHMARKS, "counting", counting.module())
    done = CliRunner().invoke(main, ["pages", str(tmp_path / "counting.json")])
    assert done.exit_code == 0, done.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    (tmp_path / "other.json").write_text("{}")
    assert (
        "other.json is named after none of" in CliRunner().invoke(main, ["pages", str(tmp_path / "other.json")]).output
    )


def test_an_interrupted_run_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        started(Counting("two"), tmp_path)
    again = Counting()
    results = started(again, tmp_path)
    assert again.ran == ["two", "three"]
    assert [row["graph"] for row in results] == ["one", "one", "two", "two", "three", "three"]
    anew = Counting()
    started(anew, tmp_path)  # the last was finished
    assert anew.ran == ["one", "two", "three"]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """Return what a benchmark has written when it is interrupted in its last part."""
    folder = tmp_path_factory.mktemp("interrupted")
    with pytest.raises(KeyboardInterrupt):
        started(Counting("three"), folder)
    return json.loads((folder / "counting.json").read_text())


@pytest.mark.parametrize("what", ["command", "commit", "machine", "versions", "code"])
def test_nothing_is_kept_of_another_run(tmp_path, interrupted, what):
    changed = interrupted | {what: {"python": "2.7"} if what == "versions" else "another"}
    (tmp_path / "counting.json").write_text(json.dumps(changed))
    again = Counting()
    started(again, tmp_path)
    assert again.ran == ["one", "two", "three"]


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
def test_noise_is_judged_by_the_samples(one, other, verdict):
    assert compare.beyond_noise(one, other)[0] == verdict


def test_two_runs_are_compared(tmp_path):
    def written(name, **samples):
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
    first = written("a.json", stays=fast, slower=fast, faster=slow, gone=fast)
    second = written("b.json", stays=fast, slower=slow, faster=fast, new=fast)
    differences, rows = compare.compared(tmp_path / "a.json", tmp_path / "b.json")
    assert differences == ["commit: a.json -> b.json", "version of numpy: a.json -> b.json"]
    assert {row["row"]: row["verdict"] for row in rows} == {
        "slower": "changed", "faster": "changed", "stays": "same", "gone": "only in A", "new": "only in B",
    }  # fmt: skip
    done = CliRunner().invoke(main, ["compare", first, second])
    assert done.exit_code == 0, done.output
    assert "2 changed, 1 same, 1 only in A, 1 only in B" in done.output
    assert "stays" not in done.output


@pytest.mark.parametrize(
    ("limit", "samples", "calls"),
    [(1000, [20] * 5, 6), (50, [20] * 3, 4), (10, [20], 2), (1, [20], 1)],
    ids=["quick", "slow", "slower", "too slow for twice"],
)
def test_slow_things_are_sampled_less_often(monkeypatch, limit, samples, calls):
    times = itertools.count(0, 20)
    monkeypatch.setattr("benchmarks.measure.time.perf_counter", lambda: next(times))
    called = []
    assert repeatedly(lambda: called.append(1), runs=5, limit=limit) == samples
    assert len(called) == calls


def test_what_does_not_fit_is_not_begun(monkeypatch):
    monkeypatch.setattr(memory, "bytes_available", lambda memory_space: 10**9)
    memory.require(10**9, "host", "a graph")
    with pytest.raises(memory.NoRoomError, match=r"a graph needs about 2\.0 GB, and this machine has 1\.0 GB free"):
        memory.require(2e9, "host", "a graph")


def test_there_is_memory():
    assert 10**6 < memory.bytes_available("host") < 10**15


@pytest.mark.slow
def test_a_quick_run_of_retrieval(tmp_path):
    pytest.importorskip("igraph")
    done = CliRunner().invoke(main, ["retrieval", "--quick", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "retrieval.json").read_text())["rows"]
    on_cpu = {row["library"]: row for row in rows if row["processor"] == "CPU"}
    assert set(on_cpu) == {"igraph", "NetworkX", "SciPy", "prplugin, one by one"}
    assert {name: row["queries"] for name, row in on_cpu.items() if row["queries"] != 1} == {
        "prplugin, one by one": retrieval.QUICK_QUERIES
    }
    for row in rows:
        assert row["L1 apart"] <= retrieval.MOST_APART
        assert row["ratio"] == row["library ms"] / row["prplugin ms"]
        assert row["library least"] == 1e3 * min(row["samples"]["library"])


def test_retrieval_names_an_absent_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "igraph", None)
    rows = {row["library"]: row for row in retrieval._single(*retrieval.SIZES[0], "host", 1)}
    assert set(rows) == {"igraph", "NetworkX", "SciPy"}
    assert "igraph" in rows["igraph"]["note"]
    assert rows["SciPy"]["ratio"] > 0


def test_retrieval_times_only_results_that_agree():
    ranks, moved = np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[0, 0], [0, 4e-6]])
    near, far = ranks + moved, ranks + 2 * moved
    assert retrieval.check({"prplugin": ranks, "near": near}) == {"prplugin": 0, "near": pytest.approx(4e-6)}
    assert retrieval.check({"prplugin": ranks, "far": far})["far"] == pytest.approx(8e-6)
    with pytest.raises(ValueError, match=r"the ranks of low and far are 1\.2e-05 apart"):
        retrieval.check({"prplugin": ranks, "low": ranks - moved, "far": far})
    with pytest.raises(ValueError, match="nan apart"):
        retrieval.check({"prplugin": ranks, "other": np.full((2, 2), np.nan)})


@pytest.mark.parametrize(("n", "m"), retrieval.SIZES)
def test_graphs_of_retrieval_have_no_self_loops_and_no_isolated_vertices(n, m):
    edges = retrieval._edges(n, m)
    assert len(edges) == m
    assert (edges["src"] != edges["dst"]).all()
    assert np.array_equal(np.unique(edges[["src", "dst"]]), np.arange(n))
