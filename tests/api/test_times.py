"""Edges with timestamps: `time`, `half_life`, `window` and `now`."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import prplugin

WEEK = pd.Timedelta("7D")


def edges(rows: int = 400, n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"src": rng.integers(0, n, rows), "dst": rng.integers(0, n, rows), "w": rng.random(rows)})
    frame["at"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 2000, rows), unit="h")
    return frame


def decayed_edges(frame: pd.DataFrame, weight: str | None = "w", window: str | None = None) -> pd.DataFrame:
    """Return the edges within the window, with their weights times 2**(-age / week) in column 'decayed'."""
    age = frame["at"].max() - frame["at"]
    frame = frame.assign(decayed=2.0 ** -(age / WEEK) * (1 if weight is None else frame[weight]))
    return frame if window is None else frame[age < pd.Timedelta(window)]


def l1_distance(one, other) -> float:
    assert list(one["vertex"]) == list(other["vertex"])
    return float(np.abs(np.asarray(one["pagerank"]) - np.asarray(other["pagerank"])).sum())


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("window", [None, "20D"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("duplicates", ["sum", "first", "last"])
def test_weights_decay_with_age(weight, window, directed, duplicates):
    frame, options = edges(), {"directed": directed, "duplicates": duplicates, "tol": 1e-9}
    found = prplugin.pagerank(frame, weight=weight, time="at", half_life="7D", window=window, **options)
    assert (
        l1_distance(found, prplugin.pagerank(decayed_edges(frame, weight, window), weight="decayed", **options)) < 2e-9
    )


@pytest.mark.parametrize(
    "half_life", ["7D", "168h", WEEK, dt.timedelta(days=7), np.timedelta64(7, "D"), np.timedelta64(168 * 3600, "s")]
)
def test_half_life_of_any_type(half_life):
    expected = prplugin.pagerank(edges(), time="at", half_life="7D")
    assert l1_distance(prplugin.pagerank(edges(), time="at", half_life=half_life), expected) == 0


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame.assign(at=frame["at"].astype("datetime64[s]")),
        lambda frame: frame.assign(
            at=frame["at"].dt.tz_localize("Europe/Luxembourg", ambiguous=True, nonexistent="NaT")
        ),
        lambda frame: frame.assign(at=frame["at"].astype(object)),
        lambda frame: frame.assign(at=frame["at"].astype(pd.ArrowDtype(pa.timestamp("us")))),
        lambda frame: frame.assign(at=frame["at"].astype(pd.ArrowDtype(pa.timestamp("ms", "UTC")))),
        pl.from_pandas,
        lambda frame: pl.from_pandas(frame).lazy(),
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    ],
    ids=["seconds", "time zone", "objects", "arrow", "arrow with a time zone", "polars", "lazy", "pyarrow"],
)
def test_timestamps_of_any_type(convert):
    frame = edges()
    frame["at"] = frame["at"].dt.floor("D") + pd.Timedelta("12h")
    found = prplugin.pagerank(convert(frame), time="at", half_life="7D", window="30D")
    found = found.to_pandas() if not isinstance(found, pd.DataFrame) else found
    # Daylight saving time changes ages in the zone by an hour.
    assert l1_distance(found, prplugin.pagerank(frame, time="at", half_life="7D", window="30D")) < 1e-3


def test_times_of_type_date_and_number():
    frame = edges()
    frame["at"] = frame["at"].dt.floor("D")
    expected = prplugin.pagerank(frame, time="at", half_life="7D", window="30D")
    days = (frame["at"] - frame["at"].min()).dt.days
    for numbers in (days, days.astype("float32"), days.astype("Int64"), days + (1 << 61)):
        found = prplugin.pagerank(frame.assign(at=numbers), time="at", half_life=7, window=30)
        assert l1_distance(found, expected) < 1e-12
    dates = pl.from_pandas(frame).with_columns(pl.col("at").cast(pl.Date))
    assert l1_distance(prplugin.pagerank(dates, time="at", half_life="7D", window="30D"), expected) < 1e-12
    assert (
        l1_distance(
            prplugin.pagerank(frame.assign(at=frame["at"].dt.date), time="at", half_life="7D", window="30D"), expected
        )
        < 1e-12
    )


def test_weights_of_parquet_files_with_times_are_not_cast(tmp_path):
    """Regression test: weights of later files were silently cast to the type of the first file."""
    for name, dtype in (("a", "float32"), ("b", "float64")):
        edges().astype({"w": dtype}).to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(prplugin.InvalidEdgesError, match=r"b\.parquet.* cast the files to one type"):
        prplugin.pagerank(tmp_path, time="at", half_life="7D", weight="w")


def test_times_of_a_parquet_file(tmp_path):
    edges().to_parquet(tmp_path / "edges.parquet")
    found = prplugin.pagerank(tmp_path / "edges.parquet", time="at", half_life="7D", weight="w")
    assert l1_distance(found.to_pandas(), prplugin.pagerank(edges(), time="at", half_life="7D", weight="w")) == 0


def test_a_later_now_changes_no_rank():
    frame = edges()
    expected = prplugin.pagerank(frame, time="at", half_life="7D")
    for now in ("2024-04-01", pd.Timestamp("2100-01-01"), dt.date(2090, 1, 1), np.datetime64("2200-01-01")):
        assert l1_distance(prplugin.pagerank(frame, time="at", half_life="7D", now=now), expected) == 0


def test_weights_older_than_thousands_of_half_lives_keep_their_ratios():
    """Vertex 3 has only edges 10,000 half-lives old: 2**-10000 underflows in float64, but normalized weights do not."""
    frame = pd.DataFrame(
        {"src": [1, 2, 3, 3], "dst": [2, 1, 1, 2], "at": [1e4, 1e4, 0.0, 1.0], "w": [1, 1, 1e-300, 1e-300]}
    )
    found = prplugin.pagerank(frame, time="at", half_life=1, weight="w", tol=1e-9)
    expected = prplugin.pagerank(frame.assign(w=[1, 1, 1, 2]), weight="w", tol=1e-9)
    assert l1_distance(found, expected) < 2e-9


def test_arrays_of_a_graph_have_decayed_weights():
    frame = edges()
    graph = prplugin.Graph(frame, weight="w", time="at", half_life="7D")
    expected = prplugin.Graph(decayed_edges(frame), weight="decayed")
    for found, other in ((graph.csr(), expected.csr()), (graph.csc(), expected.csc())):
        np.testing.assert_array_equal(found.indices, other.indices)
        np.testing.assert_allclose(found.weights, other.weights, rtol=1e-13)


def test_errors_name_rows_of_the_frame_not_of_the_window():
    frame = edges()
    frame["at"] = frame["at"].sort_values().to_numpy()
    frame.loc[399, "w"] = -1.0
    with pytest.raises(prplugin.InvalidEdgesError, match=r"-1\.0 in row 399"):
        prplugin.pagerank(frame, weight="w", time="at", window="10D")


def with_now_before_the_latest(frame):
    return {"half_life": "7D", "now": frame["at"].sort_values().iloc[-2]}


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (None, {"half_life": 7}, prplugin.InvalidOptionError, "half_life must be a string such as '7D' or a timedelta"),
        (None, {"window": "soon"}, prplugin.InvalidOptionError, "window must be a string such as '7D'"),
        (None, {"half_life": "7"}, prplugin.InvalidOptionError, "half_life must be a string such as '7D'"),
        (None, {"half_life": "-7D"}, prplugin.InvalidOptionError, "half_life must be positive"),
        (None, {}, prplugin.InvalidOptionError, "time= has no effect by itself"),
        (None, {"half_life": "7D", "now": 3}, prplugin.InvalidOptionError, "now must be a timestamp without a time zone"),
        (None, {"half_life": "7D", "now": pd.Timestamp("2030", tz="UTC")}, prplugin.InvalidOptionError, "without a time zone"),
        (None, with_now_before_the_latest, prplugin.InvalidEdgesError, "column 'at' has 1 time after now=2024-03"),
        ("numbers", {"half_life": "7D"}, prplugin.InvalidOptionError, "half_life must be a number, as column 'at' holds numbers"),
        ("numbers", {"half_life": 0}, prplugin.InvalidOptionError, "half_life must be positive and finite"),
        ("numbers", {"half_life": 7, "now": 3}, prplugin.InvalidEdgesError, "times after now=3: 4 in row 4"),
        ("strings", {"half_life": "7D"}, prplugin.InvalidEdgesError, "column 'at' holds .*, which are no times"),
        ("nulls", {"half_life": "7D"}, prplugin.InvalidEdgesError, "column 'at' has 2 nulls, in rows 3, 5"),
        ("infinite", {"half_life": 7}, prplugin.InvalidEdgesError, "column 'at' has 1 infinite time, in row 2"),
    ],
)  # fmt: skip
def test_invalid_times_and_options_are_refused(change, options, error, message):
    frame = edges()
    if change == "numbers":
        frame["at"] = np.arange(len(frame))
    elif change == "strings":
        frame["at"] = frame["at"].astype(str)
    elif change == "nulls":
        frame.loc[[3, 5], "at"] = pd.NaT
    elif change == "infinite":
        frame["at"] = np.where(np.arange(len(frame)) == 2, np.inf, 1.0)
    with pytest.raises(error, match=message):
        prplugin.pagerank(frame, time="at", **(options(frame) if callable(options) else options))


@pytest.mark.parametrize("name", ["half_life", "window", "now"])
def test_time_options_without_a_time_column_are_refused(name):
    with pytest.raises(prplugin.InvalidOptionError, match=f"{name} is given without a column of times"):
        prplugin.Graph(edges(), **{name: "7D"})


def test_missing_time_column_is_named():
    with pytest.raises(prplugin.ColumnNotFoundError, match="no column 'when'"):
        prplugin.Graph(edges(), time="when", half_life="7D")


def test_times_of_an_empty_frame():
    frame = pd.DataFrame({"src": [], "dst": [], "at": []})
    assert prplugin.Graph(frame, time="at", half_life=7).number_of_vertices == 0
    assert len(frame.astype({"at": object}).pagerank(time="at", half_life="7D")) == 0
