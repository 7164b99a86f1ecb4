"""The benchmark against other libraries: equal errors, complete tables, and a row with the reason if one is missing."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from benchmarks import peers
from benchmarks.__main__ import main
from benchmarks.peers._cases import cases
from benchmarks.peers._fit import Fit, _loosest
from benchmarks.peers._libraries import PEERS
from benchmarks.peers._memory import peak_bytes


def rows_of(*only, quick=True):
    return [row for part in peers.parts(None, quick, only) for row in part.rows()]


@pytest.mark.slow
def test_errors_are_at_most_the_requested_error():
    rows = rows_of("grid", "strings ids, SciPy loop", "str ids, SciPy loop")
    assert {row["peer"] for row in rows if "peer" in row} == set(PEERS)
    timed = [row for row in rows if row.get("ratio", "") != ""]
    assert {row["peer"] for row in timed} >= {"SciPy loop", "SciPy loop, tuned", "NetworkX"}
    assert len({row["graph"] for row in timed}) == 3
    for row in timed:
        assert max(row["peer error"], row["prplugin error"]) <= row["required error"]
        assert row["ratio"] == row["peer s"] / row["prplugin s"]
    assert all(row["note"] for row in rows if row.get("ratio") == "")


@pytest.mark.slow
def test_quick_run_writes_all_tables(tmp_path):
    only = ("--only", "int64 ids, SciPy loop,", "--only", "int64 ids, ours")
    done = CliRunner().invoke(main, ["peers", "--quick", *only, "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "peers.json").read_text())
    assert written["finished"]
    assert {row["table"] for row in written["rows"]} == set(peers.TABLES)
    text = (tmp_path / "peers.md").read_text()
    assert all(f"## {title}\n" in text for title in peers.TABLES)
    assert (tmp_path / "peers.svg").stat().st_size > 0


def test_missing_libraries_and_data_are_rows_with_the_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    monkeypatch.delitem(sys.modules, "benchmarks.peers.networkx", raising=False)
    [row] = rows_of("grid 30 x 30, dense ids, NetworkX, compute")
    assert row["peer"] == "NetworkX"
    assert "pip install" in row["note"]
    [row] = rows_of("web-NotreDame", quick=False)
    assert "PRPLUGIN_DATA" in row["note"]


def test_rows_are_selected_by_listed_names():
    listed = CliRunner().invoke(main, ["peers", "--list"]).output.splitlines()
    assert len(set(listed)) == len(listed)
    for name in PEERS:
        assert f"R-MAT 18, sparse int64 ids, {name}, compute alone" in listed
    [part] = peers.parts(None, True, ("GRID 30 x 30, dense ids, igraph, frame to frame",))
    assert part.name == "grid 30 x 30, dense ids"
    with pytest.raises(ValueError, match="--list"):
        peers.parts(None, True, ("no such peer",))


def test_string_ids_are_the_sparse_ids_as_text():
    sparse, strings, arrow, _ = cases(None, quick=True)
    dense = sparse.dense()
    expected = sparse.frame(dense).astype(str).astype(object)
    pd.testing.assert_frame_equal(strings.frame(dense), expected, check_dtype=False)
    assert strings.frame(dense).dtypes.eq(object).all()
    assert not arrow.frame(dense).dtypes.eq(object).any()


@pytest.mark.parametrize(("factor", "tol"), [(0.3, 2e-6), (1.0, 1e-6), (30.0, 2**-5 * 1e-6)])
def test_loosest_tolerance_is_found_by_doubling_and_halving(factor, tol):
    found = _loosest(lambda tol: Fit(tol, 1, tol * factor), 1e-6, adjustable=True)
    assert found == Fit(tol, 1, tol * factor)


def test_search_ends_at_the_smallest_error():
    found = _loosest(lambda tol: Fit(tol, 1, max(tol, 3e-7)), 1e-10, adjustable=True)
    assert found.error == 3e-7


def test_peak_memory_includes_numpy():
    assert 8e6 <= peak_bytes(lambda: np.ones(1_000_000).sum()) < 9e6
