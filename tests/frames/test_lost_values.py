"""Values that other libraries lose on the way, and errors that they raise: none is ranked, none comes as it is."""

from __future__ import annotations

import datetime
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from shown_text import error_message

import prplugin

TIMES = pl.Series([1000, 1500, 10**6 + 1])  # nanoseconds, two in one microsecond
DTYPES = {
    "time": pl.Time,
    "datetime": pl.Datetime("ns"),
    "zoned": pl.Datetime("ns", "UTC"),
    "duration": pl.Duration("ns"),
}
LIBRARIES = {
    "polars": lambda frame: frame,
    "pyarrow": pl.DataFrame.to_arrow,
    "pandas": lambda frame: frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
}


def cycle(ids):
    return pl.DataFrame({"src": ids, "dst": ids.gather([*range(1, len(ids)), 0])})


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", DTYPES)
def test_ids_finer_than_a_microsecond(kind, library, several):
    edges, ends = cycle(TIMES.cast(DTYPES[kind])), ("src", "dst")
    if several:
        edges, ends = edges.with_columns(s=pl.lit(1), d=pl.lit(1)), (["src", "s"], ["dst", "d"])
    graph = prplugin.Graph(LIBRARIES[library](edges), *ends)
    name = "src" if several else "vertex"

    def asked(*values, **more):
        own = {name: pl.Series(values).cast(DTYPES[kind]), **({"s": [1] * len(values)} if several else {}), **more}
        return LIBRARIES[library](pl.DataFrame(own))

    found = graph.rank(among=asked(1500)).frame
    ids = pa.array(found[name]) if library == "pandas" else pl.DataFrame(found)[name].to_arrow()
    assert ids.cast("int64").to_pylist() == [1500]
    assert len(graph.rank(exclude=asked(1000, 1500)).frame) == 1
    assert graph.rank(personalization=asked(1500, values=[1.0])).converged
    assert "1 vertex not in the graph" in error_message(lambda: graph.rank(among=asked(1001)))
    assert "1 vertex not in the graph" in error_message(lambda: graph.rank(personalization=asked(1001, values=[1.0])))
    assert "1 vertex not in the graph" in error_message(lambda: graph.rank(seeds=asked(1001, seed=[1])))
    assert len(graph.rank(exclude=asked(1001)).frame) == 3


@pytest.mark.parametrize("kind", DTYPES)
def test_finer_ids_as_objects_of_python(kind):
    ids = TIMES.cast(DTYPES[kind])
    ranking = prplugin.Graph(cycle(ids)).rank()
    if kind == "time":
        expected = "2 ids of this ranking, in rows 1, 2 of its frame (counted from 0), have nanoseconds"
        for call in (ranking.to_dict, lambda: list(ranking), lambda: ranking[datetime.time(0, 0, 0, 1)]):
            assert expected in error_message(call)
        integers = prplugin.Graph(cycle(ids).cast(pl.Int64)).rank()  # the remedy
        assert list(integers) == TIMES.to_list()
        return
    found = ranking.to_dict()
    assert len(found) == 3
    assert sum(found.values()) == pytest.approx(1)
    assert found == {key: ranking[key] for key in ids.to_arrow().to_pylist()}
    rankings = prplugin.Graph(cycle(ids)).rank(seeds=ids)
    assert len(rankings) == 3
    assert len(rankings.to_dict()) == 3


def test_dates_beyond_the_years_of_python():
    for ids in (
        pl.Series([1, 10**9, 2 * 10**9], dtype=pl.Int32).cast(pl.Date),
        pl.Series([1, 10**18]).cast(pl.Datetime("us")),
    ):
        graph = prplugin.Graph(cycle(ids))
        assert len(graph.rank().to_dict()) == len(ids)
        assert len(graph.rank(among=ids[1:]).frame) == len(ids) - 1


# --- Parquet ----------------------------------------------------------------------------------------------------------


def times(*years):
    return pa.array([datetime.datetime(year, 1, 2, 3, 4, 5, 6) for year in years], pa.timestamp("us"))


@pytest.fixture
def far(tmp_path):
    path = tmp_path / "far.parquet"
    table = pa.table(
        {"src": [1, 2], "dst": [2, 1], "at": times(2020, 9999), "day": times(2020, 1600), "to": times(1600, 2020)}
    )
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    return path


@pytest.mark.parametrize("given", [
    lambda path: path, lambda path: [path, path], ds.dataset, lambda path: path.parent,
])  # fmt: skip
def test_int96_times_that_nanoseconds_do_not_hold(far, given):
    assert len(prplugin.pagerank(given(far), "src", "dst")) == 2
    message = error_message(lambda: prplugin.pagerank(given(far), "src", "dst", time="at", half_life="1D"))
    assert "column 'at'" in message
    assert "has 1 INT96 time before 1677 or after 2262" in message
    assert "the first 9999-01-02 03:04:05" in message
    assert "column 'day'" in error_message(lambda: prplugin.pagerank(given(far), "day", "to"))
    table = pq.read_table(far, coerce_int96_timestamp_unit="us")  # the remedy
    found = prplugin.pagerank(table, "day", "to")
    assert sorted(found["vertex"].to_pylist()) == sorted(times(1600, 2020).to_pylist())
    assert prplugin.pagerank(table, "src", "dst", time="at", half_life=datetime.timedelta(days=10**6)).num_rows == 2


def test_int96_times_of_these_centuries(tmp_path):
    """Nanoseconds are kept; the first and the last time that 64 bits hold are beyond the millisecond that is refused."""
    table = pa.table({name: pa.array(values, pa.timestamp("ns")) for name, values in
                      (("src", [1, 2, 2**62, -(2**63) + 2 * 10**6]), ("dst", [2, 2**63 - 3 * 10**6, 1, 1]))})  # fmt: skip
    pq.write_table(table, tmp_path / "near.parquet", use_deprecated_int96_timestamps=True)
    found = prplugin.pagerank(tmp_path / "near.parquet")
    pd.testing.assert_frame_equal(found, prplugin.pagerank(table).to_pandas(), check_dtype=False)


@pytest.mark.parametrize("form", ["file", "gzip", "row groups"])
def test_a_flipped_bit_in_a_page_with_a_checksum(tmp_path, form, set_available_bytes):
    path = tmp_path / "edges.parquet"
    table = pa.table({"src": np.arange(1000), "dst": np.arange(1000)[::-1].copy()})
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False, row_group_size=100)
    content = path.read_bytes()
    at = content.index(np.arange(100, 200).tobytes()) + 8 * 50
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    if form == "row groups":
        set_available_bytes(1)
    if form == "gzip":
        whole = path
        path = tmp_path / "edges.parquet.gz"
        path.write_bytes(gzip.compress(whole.read_bytes()))
    with pytest.raises(prplugin.PageRankError, match=r"(?i)crc|checksum"):
        prplugin.Graph.from_file(path)


# --- streams, and errors of others ------------------------------------------------------------------------------------


def test_a_reader_of_batches_is_read_once():
    table = pa.table({"src": [1, 2], "dst": [2, 1]})
    reader = table.to_reader()
    assert prplugin.pagerank(reader).num_rows == 2
    assert "that has been read already" in error_message(lambda: prplugin.pagerank(reader))
    elsewhere = table.to_reader()
    elsewhere.read_all()
    assert "that has been read already, or has no batch" in error_message(lambda: prplugin.pagerank(elsewhere))
    empty = pa.RecordBatchReader.from_batches(table.schema, [table.to_batches()[0][:0]])
    assert prplugin.pagerank(empty).num_rows == 0
    graph = prplugin.Graph(table)
    asked = table.select(["src"]).to_reader()
    graph.rank(among=asked)
    with pytest.raises(prplugin.InvalidOptionError, match=r"among are a pyarrow\.RecordBatchReader"):
        graph.rank(among=asked)


class Failing:
    """Exports a table through Arrow's C interface, or fails to."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError("no connection")


def lazy(frame):
    def fail(_):
        raise ZeroDivisionError("in the user's function")

    return frame.lazy().with_columns(pl.col("src").map_batches(fail, return_dtype=pl.Int64))


def dask_frame(_):
    dask = pytest.importorskip("dask")
    dataframe = pytest.importorskip("dask.dataframe")

    def part(number):
        raise OSError(f"part {number} is not there")

    meta = pd.DataFrame({"src": [1], "dst": [1]})
    return dataframe.from_delayed([dask.delayed(part)(0)], meta=meta, verify_meta=False)


def relation(_):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql("SELECT CAST(x AS BIGINT) AS src, 1 AS dst FROM (VALUES ('1'), ('x')) AS t(x)")


@pytest.mark.parametrize(("make", "name", "said"), [
    (lazy, "polars.lazyframe.frame.LazyFrame", "in the user's function"),
    (lambda _: Failing(), "test_lost_values.Failing", "no connection"),
    (dask_frame, "Dask frame", "part 0 is not there"),
    (relation, "DuckDBPyRelation", "Could not convert"),
])  # fmt: skip
def test_errors_of_lazy_sources_name_them_and_keep_the_cause(make, name, said):
    given = make(pl.DataFrame({"src": [1, 2], "dst": [2, 1]}))
    with pytest.raises(prplugin.InvalidEdgesError) as caught:
        prplugin.pagerank(given)
    assert name in str(caught.value)
    assert said in str(caught.value)
    assert caught.value.__cause__ is not None
    graph = prplugin.Graph(pl.DataFrame({"src": [1, 2], "dst": [2, 1]}))
    if name != "Dask frame":
        with pytest.raises(prplugin.InvalidOptionError, match="among") as caught:
            graph.rank(among=given)
        assert said in str(caught.value)


# --- DuckDB -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "values"), [
    ("UHUGEINT", ["340282366920938463463374607431768211455", "1", "170141183460469231731687303715884105728"]),
    ("TIMETZ", ["'01:00:00+01'", "'01:00:00+05'", "'02:00:00+01'"]),
])  # fmt: skip
def test_types_that_duckdb_does_not_export(kind, values):
    duckdb = pytest.importorskip("duckdb")
    rows = ", ".join(
        f"({one}::{kind}, {other}::{kind})" for one, other in zip(values, values[1:] + values[:1], strict=True)
    )
    edges = duckdb.sql(f"SELECT * FROM (VALUES {rows}) AS t(src, dst)")
    message = error_message(lambda: prplugin.pagerank(edges))
    assert "column 'src' is of DuckDB's type" in message
    assert "CAST(... AS VARCHAR)" in message
    text = duckdb.sql("SELECT CAST(src AS VARCHAR) AS src, CAST(dst AS VARCHAR) AS dst FROM edges")  # the remedy
    assert len({*prplugin.pagerank(text)["vertex"].to_pylist()}) == 3
    graph = prplugin.Graph(text)
    assert "is of DuckDB's type" in error_message(lambda: graph.rank(among=edges.project("src")))
    other = duckdb.sql("SELECT 1 AS src, 2 AS dst, src AS x FROM edges")
    assert prplugin.pagerank(other).num_rows == 2, "of columns in use alone"
