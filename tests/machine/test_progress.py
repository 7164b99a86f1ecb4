"""Progress of reading and of iterations: states, their description, and lines where there is no terminal."""

from __future__ import annotations

import gzip
import io
import math
import re
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import prplugin
from prplugin import progress
from prplugin.cli import main
from prplugin.progress import Progress

EDGES = pd.DataFrame({"src": np.arange(9_000) % 700, "dst": np.arange(9_000) % 500})


def written(folder, name):
    """Write the edges to a file, in pieces where its format has them."""
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pandas(EDGES), path, row_group_size=1_000)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(EDGES.to_csv(index=False).encode()))
    else:
        EDGES.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("name", "unit", "memory"),
    [
        ("e.csv", "bytes", 1 << 40),
        ("e.csv.gz", "bytes", 1 << 40),
        ("e.parquet", "rows", 1 << 40),
        ("e.parquet", "rows, each read twice", 50_000),
    ],
)
def test_what_has_been_read_is_reported_of_all(tmp_path, monkeypatch, name, unit, memory):
    path = written(tmp_path, name)
    monkeypatch.setattr("prplugin.io.text_blocks.PIECE_BYTES", 8_192)
    monkeypatch.setattr("prplugin.frames.row_groups.bytes_available", lambda: memory)
    states = []
    ranks = prplugin.pagerank(str(path), progress=states.append)
    pd.testing.assert_frame_equal(ranks, EDGES.pagerank())
    reading = [state for state in states if state.unit == unit]
    total = path.stat().st_size if unit == "bytes" else 9_000 * (1 + ("twice" in unit))
    assert {state.total for state in reading} == {total}
    done = [state.done for state in reading]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == total
    assert len({*done}) >= (2 if name.endswith("gz") else 9)  # Arrow decompresses 64 kB at a time
    assert states[-1].stage == "iterations"
    assert progress._reading.get() is None
    prplugin.pagerank(str(path))
    assert len(states) < 200


def test_ids_that_are_factorized_are_reported_of_all():
    text = EDGES.astype(str).sample(30_000, replace=True, random_state=0)
    states = []
    pd.testing.assert_frame_equal(text.pagerank(progress=states.append), text.pagerank())
    counted = [(state.done, state.total) for state in states if state.unit == "ids"]
    if prplugin.Graph(EDGES).rank().method == "native":  # else there are no kernels
        assert [done for done, _ in counted] == sorted(done for done, _ in counted)
        assert counted[-1] == (60_000, 60_000)
    state = progress.Progress("vertices", 0, None, math.inf, 2.0, 15_000, 60_000, "ids")
    assert progress._Outlook()(state)[0] == "factorizing 25 % of 60,000 ids"


def test_a_state_is_described_with_percent_and_the_time_left():
    described = progress._Outlook()
    assert described(Progress("vertices", 0, None, math.inf, 0.0))[0] == "preparing vertices"
    assert described(Progress("vertices", 0, None, math.inf, 1.0, 0, 8 * 10**9, "bytes"))[0] == "reading"
    text, done, total = described(Progress("vertices", 0, None, math.inf, 11.0, 2 * 10**9, 8 * 10**9, "bytes"))
    assert (text, done, total) == ("reading 25 % of 8 GB, 30 s left", 2 * 10**9, 8 * 10**9)
    assert (
        described(Progress("vertices", 0, None, math.inf, 41.0, 8 * 10**9, 8 * 10**9, "bytes"))[0]
        == "preparing vertices"
    )
    assert described(Progress("edges", 0, None, math.inf, 42.0)) == ("preparing edges", 0, None)
    described(Progress("iterations", 1, 11, 0.5, 50.0))
    assert described(Progress("iterations", 3, 11, 0.125, 90.0))[0] == "iteration 3, error at most 1.2e-01, 3 min left"
    described = progress._Outlook()
    described(Progress("vertices", 0, None, math.inf, 0.0, 0, 4_000, "rows"))
    assert described(Progress("vertices", 0, None, math.inf, 4e3, 1_000, 4_000, "rows"))[0] == (
        "reading 25 % of 4,000 rows, 3 h 20 min left"
    )


def test_lines_are_printed_where_there_is_no_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)
    read = prplugin.io.read_edges

    def slowly(*args, **options):
        progress.counting(100, "bytes")(40)
        time.sleep(0.2)
        return read(*args, **options)

    monkeypatch.setattr("prplugin.cli.read_edges", slowly)
    path = str(written(tmp_path, "e.csv"))
    done = CliRunner().invoke(main, ["rank", path, "--progress"], catch_exceptions=False)
    assert done.exit_code == 0
    lines = done.stderr.splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"\d+ s: (reading|preparing|iteration).*", line) for line in lines), lines
    assert any(re.fullmatch(r"0 s: reading 40 % of 100 bytes, .* left", line) for line in lines), lines
    assert not [line for line in done.stdout.splitlines() if " s: " in line]
    assert not CliRunner().invoke(main, ["rank", path], catch_exceptions=False).stderr


def test_a_line_tells_the_last_state():
    file = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "LINE_SECONDS", 0.01)
        with progress.lines(file) as report:
            report(Progress("iterations", 7, None, 1e-3, 1.0))
            time.sleep(0.1)
    assert file.getvalue().splitlines()[-1] == "0 s: iteration 7, error at most 1.0e-03"
