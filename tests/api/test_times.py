"""Edges with timestamps: `time`, `half_life`, `window` and `now`."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def as_table(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "duration",
    [
        "7D", "7d", "168h", "168H", "1W", "1 week", "0.5 weeks 84 hours", "6 days 24:00:00", "7 days, 0:00:00", "+7D",
        "10080m", "10080min", "604800 s", "6D1440min", "604800000ms", "604800000000us",
        "604800000000\u00b5s", "604800000000\u03bcs", "604800000000000ns", "P7D", "P1W", "PT168H", "P6.5DT12H", "PT10080M",
        "P6DT23H59M60.0S", WEEK, dt.timedelta(days=7), np.timedelta64(7, "D"), np.timedelta64(168 * 3600, "s"),
    ],
)  # fmt: skip
def test_durations_of_any_type(duration):
    """Regression test: pandas read "P1M" as a minute and "P6.5D" as 6 days, and "7d" and "1H" raised its warnings."""
    frame = edges()
    expected = prplugin.pagerank(frame, time="at", half_life="7D", window="30D")
    assert l1_distance(prplugin.pagerank(frame, time="at", half_life=duration, window="30D"), expected) == 0
    week = prplugin.Graph(frame, time="at", window="7D")
    assert prplugin.Graph(frame, time="at", window=duration).number_of_edges == week.number_of_edges


with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of later versions of NumPy
    WITHOUT_UNIT = np.timedelta64(7)


@pytest.mark.parametrize(
    "duration",
    [
        "P1M", "P1Y", "P1Y2M", "1M", "1MS", "1y", "1Y", "1mo", "1 month", "2 years", "1Q", "1T", "1B", "7", "7.5", "", "D",
        "P", "PT", "P7", "P1DT", "P1H", "PT7D", "1,5h", "1e3s", "1.2.3D", "7 D ago", "02:03", "nan", "NaT",
        np.timedelta64(1, "M"), np.timedelta64(1, "Y"), WITHOUT_UNIT, np.timedelta64("NaT", "D"), pd.NaT, 7, True,
    ],
    ids=repr,
)  # fmt: skip
def test_durations_without_a_fixed_length_are_refused(duration):
    message = (
        r"be a string such as '7D' or a timedelta, as column 'at' .* Units are W, D, h, min, s, ms, us and ns; months"
    )
    for name in ("half_life", "window"):
        with pytest.raises(prplugin.InvalidOptionError, match=f"{name} must {message}"):
            prplugin.Graph(edges(4), time="at", **{name: duration})


def test_units_that_the_message_names_are_accepted():
    for unit in ("W", "D", "h", "min", "s", "ms", "us", "ns"):
        prplugin.Graph(edges(4), time="at", window=f"3{unit}")


@pytest.mark.parametrize("duration", ["0D", "-7D", "-P7D", dt.timedelta(0), np.timedelta64(-7, "D")])
def test_durations_that_are_not_positive_are_refused(duration):
    with pytest.raises(prplugin.InvalidOptionError, match="window must be positive, not"):
        prplugin.Graph(edges(4), time="at", window=duration)


def test_durations_of_more_than_292_years():
    at = np.array(["1200-01-01", "2000-01-01", "2001-01-01"], "datetime64[s]")
    assert kept_rows(at, window="109500D") == [1, 2]
    assert kept_rows(at, window="300000D") == [0, 1, 2]


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame.assign(at=frame["at"].astype("datetime64[s]")),
        lambda frame: frame.assign(
            at=frame["at"].dt.tz_localize("Europe/Luxembourg", ambiguous=True, nonexistent="NaT")
        ),
        lambda frame: frame.assign(at=frame["at"].dt.tz_localize(dt.timezone(dt.timedelta(hours=1, seconds=30)))),
        lambda frame: frame.assign(at=frame["at"].astype(object)),
        lambda frame: frame.assign(at=frame["at"].astype(pd.ArrowDtype(pa.timestamp("us")))),
        lambda frame: frame.assign(at=frame["at"].astype(pd.ArrowDtype(pa.timestamp("ms", "UTC")))),
        lambda frame: pa.concat_tables([as_table(frame[:2]), as_table(frame[2:])]).to_pandas(
            types_mapper=pd.ArrowDtype
        ),
        pl.from_pandas,
        lambda frame: pl.from_pandas(frame).lazy(),
        as_table,
    ],
    ids=[
        "seconds",
        "time zone",
        "offset of seconds",
        "objects",
        "arrow",
        "arrow with a zone",
        "two chunks",
        "polars",
        "lazy",
        "pyarrow",
    ],
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
    assert l1_distance(found, prplugin.pagerank(edges(), time="at", half_life="7D", weight="w")) == 0


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
        (None, {"window": np.timedelta64(1 << 62, "D")}, prplugin.InvalidOptionError, "window is longer than pandas"),
        (None, {"half_life": "7D", "now": np.datetime64(1500, "ps")}, prplugin.InvalidOptionError, "now must be a timestamp"),
        (None, with_now_before_the_latest, prplugin.InvalidEdgesError, "column 'at' has 1 time after now=2024-03"),
        ("numbers", {"half_life": "7D"}, prplugin.InvalidOptionError, "half_life must be a number, as column 'at' holds numbers"),
        ("numbers", {"half_life": 0}, prplugin.InvalidOptionError, "half_life must be a number, as .*, positive and finite, not 0"),
        ("numbers", {"half_life": True}, prplugin.InvalidOptionError, "half_life must be a number, as .*, not True"),
        ("numbers", {"window": np.timedelta64(7, "s")}, prplugin.InvalidOptionError, "window must be a number, as column 'at'"),
        ("numbers", {"half_life": 7, "now": np.bool_(True)}, prplugin.InvalidOptionError, "now must be a finite number"),
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


@pytest.mark.parametrize(("dtype", "wrong"), [("int64", "7D"), ("datetime64[ns]", 3), ("object", None)])
def test_an_empty_column_with_a_type_says_what_durations_are(dtype, wrong):
    frame = pd.DataFrame({"src": [], "dst": []}, dtype="int64").assign(at=pd.Series([], dtype=dtype))
    for half_life in ("7D", 3):
        if half_life == wrong:
            with pytest.raises(prplugin.InvalidOptionError, match="half_life must be"):
                prplugin.Graph(frame, time="at", half_life=half_life)
        else:
            assert prplugin.Graph(frame, time="at", half_life=half_life).number_of_vertices == 0


def test_times_of_an_empty_frame():
    frame = pd.DataFrame({"src": [], "dst": [], "at": []})
    assert prplugin.Graph(frame, time="at", half_life=7).number_of_vertices == 0
    assert len(frame.astype({"at": object}).pagerank(time="at", half_life="7D")) == 0


def kept_rows(at, **options) -> list[int]:
    """Return the rows within the window; row k is an edge from vertex 2k to vertex 2k + 1."""
    rows = np.arange(len(at))
    graph = prplugin.Graph(pd.DataFrame({"src": 2 * rows, "dst": 2 * rows + 1, "at": at}), time="at", **options)
    return [vertex // 2 for vertex in graph.vertices.tolist() if vertex % 2 == 0]


def weights_of(at, **options) -> list[float]:
    """Return the decayed weight of each row."""
    rows = np.arange(len(at))
    frame = pd.DataFrame({"src": rows, "dst": rows, "at": at})
    return prplugin.Graph(frame, time="at", **options).csr().weights.tolist()


CENTURIES = np.array(["1700-01-01", "2020-01-01", "2019-12-31"], "datetime64[s]")


@pytest.mark.parametrize(
    "convert",
    [
        *(lambda at, unit=unit: at.astype(f"datetime64[{unit}]") for unit in ("s", "ms", "us", "ns")),
        lambda at: pd.DatetimeIndex(at).as_unit("ns").tz_localize("UTC").tz_convert("Asia/Tokyo"),
        lambda at: pd.array(at.astype("datetime64[ns]")).astype(pd.ArrowDtype(pa.timestamp("ns"))),
        lambda at: pd.array(at.astype("datetime64[ns]")).astype(pd.ArrowDtype(pa.date32())),
        lambda at: pd.Series(at.astype("datetime64[us]").tolist(), dtype=object),
    ],
    ids=["s", "ms", "us", "ns", "time zone", "arrow", "dates", "objects"],
)
def test_ages_of_more_than_292_years(convert):
    """Regression test: differences of nanoseconds overflowed, so that the oldest edges counted as the latest."""
    at, days = convert(CENTURIES), (CENTURIES[1] - CENTURIES) / np.timedelta64(1, "D")
    assert kept_rows(at, window="365D") == [1, 2]
    assert kept_rows(at, window=dt.timedelta(days=days[0])) == [1, 2]
    assert kept_rows(at, window=dt.timedelta(days=days[0], microseconds=1)) == [0, 1, 2]
    np.testing.assert_allclose(weights_of(at, half_life="36500D"), 2.0 ** -(days / 36500), rtol=1e-13)


def test_ages_of_polars_and_pyarrow_frames_of_more_than_292_years():
    frame = pd.DataFrame({"src": [1, 3], "dst": [2, 4], "at": CENTURIES[:2].astype("datetime64[ns]")})
    for other in (pl.from_pandas(frame), pl.from_pandas(frame).lazy(), pa.Table.from_pandas(frame)):
        assert prplugin.Graph(other, time="at", window="365D").number_of_vertices == 2


@pytest.mark.parametrize("exponent", [1, 53, 62, 63, 64, 80, 1000])
def test_integers_beside_a_fraction_of_a_unit(exponent):
    """The fraction, of another frame, is the latest time, and the origin if it comes first; integers are multiples of it."""
    half_life = 2.0**-exponent
    whole, fraction = ({"src": [0, 1], "dst": [1, 0], "at": [0, 0]}, {"src": [0], "dst": [2], "at": [half_life]})
    frames = [pd.DataFrame(whole), pd.DataFrame(fraction)]
    expected = pd.DataFrame({"src": [0, 1, 0], "dst": [1, 0, 2], "w": [0.5, 0.5, 1.0]}).pagerank(weight="w")
    for first, then in (frames, frames[::-1]):
        updated = prplugin.Graph(first, time="at", half_life=half_life)
        updated.update(add=then)
        for graph in (prplugin.Graph([first, then], time="at", half_life=half_life), updated):
            assert graph.rank().ranks.tolist() == pytest.approx(expected["pagerank"].tolist(), abs=2e-6)


def test_now_beyond_the_unit_of_the_times():
    """Regression test: `now` overflowed, and times before it were refused as later."""
    at = CENTURIES.astype("datetime64[ns]")
    for now in ("9999-01-01", np.datetime64("20000000-01-01")):
        days = (np.datetime64(now, "s") - CENTURIES) / np.timedelta64(1, "D")
        assert kept_rows(at, window="365D", now=now) == []
        assert weights_of(at, half_life="36500D", now=now) == pytest.approx(2.0 ** -(days / 36500), rel=1e-10)
        assert l1_distance(
            prplugin.pagerank(edges(), time="at", half_life="7D", now=now),
            prplugin.pagerank(edges(), time="at", half_life="7D"),
        ) == 0  # fmt: skip


@pytest.mark.parametrize(
    ("at", "window", "kept"),
    [
        ([0, 1 << 60, (1 << 60) + 1, (1 << 60) + 2], 2, [2, 3]),
        ([0, 1, (1 << 53) + 1], (1 << 53) + 1, [1, 2]),
        ([0, 1, (1 << 53) + 1], Fraction((1 << 54) + 3, 2), [0, 1, 2]),
        ([0, 1, (1 << 53) + 1], 10**400, [0, 1, 2]),
        ([0, 1, (1 << 64) - 1], (1 << 64) - 1, [1, 2]),
        ([-(1 << 63), 1 - (1 << 63), (1 << 63) - 1], (1 << 64) - 1, [1, 2]),
        ([-1e308, 1e308, 0.0], 1e308, [1]),
        ([-1e308, 1e308, 0.0], 2 * 10**308, [1, 2]),
        ([-1e308, 1e308, 0.0], 3 * 10**308, [0, 1, 2]),
        ([0.1, 0.2, 0.3], 0.3 - 0.2, [2]),
        ([0.0, 5e-324], 5e-324, [1]),
        ([0.1, 1.0], 1 - Fraction(0.1) + Fraction(1, 10**30), [0, 1]),
        ([0.1, 1.0], 1 - Fraction(0.1) - Fraction(1, 10**30), [1]),
        ([0.1, 1.0], 1 - Fraction(0.1), [1]),
        ([-2, -3, 0], Fraction(5, 2), [0, 2]),
        ([1, 2, 4], Fraction(5, 2), [1, 2]),
    ],
)  # fmt: skip
def test_windows_of_numbers_are_exact(at, window, kept):
    """Regression test: differences and windows above 2**53 were rounded, and others overflowed."""
    assert kept_rows(at, window=window) == kept


@given(st.data())
def test_times_of_any_unit_are_exact(data):
    """Compare with integers of Python: which rows a window keeps, and the weights."""
    dtype = data.draw(st.sampled_from(["int64", "uint64", "datetime64[s]", "datetime64[us]", "datetime64[ns]"]))
    tick = {"datetime64[s]": 10**9, "datetime64[us]": 1000}.get(dtype, 1)
    least, most = (0, (1 << 64) - 1) if dtype == "uint64" else (1 - (1 << 63), (1 << 63) - 1)
    values = data.draw(st.lists(st.integers(least, most), min_size=1, max_size=5))
    at = np.array(values, dtype if dtype == "uint64" else "int64").astype(dtype)
    ages = [(max(values) - value) * tick for value in values]
    number = "int" in dtype
    age = data.draw(st.sampled_from(ages)) + data.draw(st.integers(-1, 1))
    if age > 0 and (number or age < 1 << 63):
        expected = [row for row in range(len(ages)) if ages[row] < age]
        assert kept_rows(at, window=age if number else np.timedelta64(age, "ns")) == expected
    half_life = data.draw(st.integers(max(ages) // 1000 + 1, 2 * max(ages) + 1))
    if number:
        found = weights_of(at, half_life=half_life)
    else:
        seconds = half_life // 10**9 + 1
        half_life = seconds * 10**9
        found = weights_of(at, half_life=np.timedelta64(seconds, "s"))
    np.testing.assert_allclose(found, [2.0 ** -float(Fraction(age, half_life)) for age in ages], rtol=1e-12)


def test_times_of_floats_count_from_an_integer_beyond_them():
    """The origin, 2**53 + 1, is no float64: its second part is subtracted as well."""
    graph = prplugin.Graph(pd.DataFrame({"src": [1], "dst": [2], "at": [(1 << 53) + 1]}), time="at", half_life=1)
    graph.update(add=pd.DataFrame({"src": [1], "dst": [1], "at": [2.0**53]}))
    assert sorted(graph.csr().weights) == [0.5, 1.0]


ZONED = pd.Timestamp("2020", tz="UTC")


def test_objects_of_several_time_zones():
    """Regression test: they raised a ValueError of pandas."""
    at = pd.Series([ZONED, pd.Timestamp("2020-01-01 02:00", tz="Europe/Paris")], dtype=object)  # one hour apart
    assert kept_rows(at, window="1h") == [1]
    assert weights_of(at, half_life="1h") == [0.5, 1.0]


@pytest.mark.parametrize(
    ("at", "options", "message"),
    [
        ([0, 1, 1 << 40], {"half_life": 1}, "2 times more than 549,755,813,888 half-lives .*: 0 in row 0, 1 in row 1"),
        ([1.0, 2.0], {"half_life": 5e-324}, r"1 time more than .* half-lives .*: 1\.0 in row 0 .* Pass a longer half_life"),
        ([1e308, -1e308], {"half_life": 1.0}, r"1 time more than .* half-lives .*: -1e\+308 in row 1"),
        ([1e308, -1e308], {"half_life": 1e308}, r"1 time more than .* half-lives .*: -1e\+308 in row 1"),
        ([0, 9, 1 << 50], {"half_life": 1, "window": (1 << 50) - 1}, "1 time more than .*: 9 in row 1"),
        ([0, 1], {"half_life": 1, "now": Fraction(1, 2)}, "1 time after now=1/2: 1 in row 1"),
        (CENTURIES, {"half_life": "1ns"}, "2 times more than .*: 1700-01-01 .* in row 0"),
        ([ZONED, pd.Timestamp("2020"), ZONED], {"window": "1h"}, "1 time without a time zone, and others .* in row 1"),
        ([pd.Timestamp(1), dt.datetime(1, 1, 1)], {"window": "1h"}, r"no common unit: .*astype\('datetime64\[us\]'\)"),
        (pd.array([Decimal(1), Decimal(2)], pd.ArrowDtype(pa.decimal128(30, 2))), {"window": 1}, "holds decimal.*, which are no times: cast it to integers"),
        (np.array([1, 2], np.longdouble) / 3, {"window": 1}, "holds float128, which are no times"),
    ],
)  # fmt: skip
def test_times_that_cannot_be_represented_are_refused(at, options, message):
    """Regression test: these raised errors of Python or Arrow, or were rounded."""
    if isinstance(at, np.ndarray) and at.dtype == np.float64:
        pytest.skip("long double is float64 on this platform")
    with pytest.raises(prplugin.InvalidEdgesError, match=message):
        weights_of(pd.Series(at, dtype=object if isinstance(at, list) and at[0] is ZONED else None), **options)
