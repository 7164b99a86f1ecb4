"""polars frames, pyarrow tables, DuckDB relations and the Arrow C interface: one suite, with pandas as the reference."""

from __future__ import annotations

import datetime
import sys
import uuid
from decimal import Decimal
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from subprocesses import run_python

import prplugin
from prplugin.methods.registry import methods
from prplugin.sources import reading_for

pl = pytest.importorskip("polars")

duckdb = pytest.importorskip("duckdb") if find_spec("duckdb") else None


class ArrowStream:
    """A table that supports only the Arrow C stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def chunked(table):
    chunks = [table.slice(row, 1) for row in range(table.num_rows)]
    return pa.concat_tables(chunks) if chunks else table


def sliced(table):
    rows = table.num_rows
    return pa.concat_tables([table, table, table]).combine_chunks().slice(rows, rows)


class Library:
    """The conversion of a pyarrow table to a frame of a library, and the type of the library's result."""

    name = ""

    def __init__(self, convert, result=pa.Table):
        self.convert, self.result = convert, result


LIBRARIES = {
    "polars": Library(pl.from_arrow, pl.DataFrame),
    "polars, in chunks": Library(lambda table: pl.from_arrow(chunked(table), rechunk=False), pl.DataFrame),
    "polars, lazy": Library(lambda table: pl.from_arrow(table).lazy(), pl.DataFrame),
    "pyarrow": Library(lambda table: table),
    "pyarrow, in chunks": Library(chunked),
    "pyarrow, sliced": Library(sliced),
    "pyarrow, a reader": Library(lambda table: table.to_reader()),
    "Arrow's C interface": Library(ArrowStream),
    "duckdb": Library(lambda table: duckdb.from_arrow(table)),  # noqa: PLW0108  # duckdb may be None
}
NEEDS_DUCKDB = pytest.mark.skipif(duckdb is None, reason="duckdb is not installed: pip install duckdb")


@pytest.fixture(params=[pytest.param(name, marks=[NEEDS_DUCKDB] if name == "duckdb" else []) for name in LIBRARIES])
def library(request):
    library = LIBRARIES[request.param]
    library.name = request.param
    return library


def as_arrow(frame):
    return frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame


def reference(table, *args, **options):
    return table.to_pandas(types_mapper=pd.ArrowDtype).pagerank(*args, **options)


def assert_same(found, expected, result):
    """Assert that a frame is of type `result`, and has the ids and the bits of the ranks of a pandas frame."""
    assert type(found) is result
    table = as_arrow(found)
    assert table.column_names == list(expected.columns)
    for name in table.column_names:
        assert table[name].to_pylist() == expected[name].tolist()


# Edges d-b, a-d, d-a, c-b.
SOURCES, TARGETS = [3, 0, 3, 2], [1, 3, 0, 1]


def edges_of(ids, **columns):
    endpoints = {
        name: pa.chunked_array([ids.slice(position, 1) for position in rows])
        for name, rows in (("src", SOURCES), ("dst", TARGETS))
    }
    return pa.table({**endpoints, **columns}).combine_chunks()


DAYS = [datetime.date(2026, 1, 1), datetime.date(2024, 2, 29), datetime.date(2025, 3, 1), datetime.date(1969, 7, 20)]
NOONS = [datetime.datetime(day.year, day.month, day.day, 12, 30) for day in DAYS]
STRINGS = ["x", "ä", "", "long " * 50]
IDS = {
    **{str(kind): pa.array([90, 100, 3, 126], kind) for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()
    )},
    "negative": pa.array([-5, 2**62, 0, -(2**63)]),
    "past 2**63": pa.array([2**64 - 1, 2**63, 0, 1], pa.uint64()),
    "string": pa.array(STRINGS),
    "large_string": pa.array(STRINGS, pa.large_string()),
    "string_view": pa.array(STRINGS, pa.string_view()),
    "dictionary": pa.array(STRINGS).dictionary_encode(),
    "dictionary of large strings": pa.array(STRINGS, pa.large_string()).cast(pa.dictionary(pa.uint32(), pa.large_string())),
    "binary": pa.array([b"x", b"", b"y", b"\xff"]),
    "date32": pa.array(DAYS),
    "timestamp[us]": pa.array(NOONS, pa.timestamp("us")),
    "timestamp[ns]": pa.array(NOONS, pa.timestamp("ns")),
    "timestamp with a zone": pa.array(NOONS, pa.timestamp("us", "Europe/Berlin")),
    "duration": pa.array([day - DAYS[0] for day in DAYS], pa.duration("ms")),
    "time": pa.array([noon.time() for noon in NOONS[:1]] + [datetime.time(1), datetime.time(2), datetime.time(3)], pa.time64("ns")),
    "decimal": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("-3.00"), Decimal("0.00")], pa.decimal128(9, 2)),
}  # fmt: skip
IDS["uuid"] = pa.ExtensionArray.from_storage(
    pa.uuid(), pa.array([bytes([9 - i] * 16) for i in range(4)], pa.binary(16))
)
UNSUPPORTED = {("polars", "uuid"), ("duckdb", "uuid"), ("duckdb", "duration")}
"""Types that a library converts to another type; a duration becomes months, days and nanoseconds in DuckDB."""


@pytest.mark.parametrize("name", IDS)
def test_ids_of_any_type_keep_their_order_and_type(library, name):
    if (library.name.partition(",")[0], name) in UNSUPPORTED:
        pytest.skip(f"{library.name} converts {name} to another type")
    table = edges_of(IDS[name], w=pa.array([1.0, 2.0, 0.5, 3.0]))
    frame = library.convert(table)
    ranks = prplugin.pagerank(frame, weight="w", tol=1e-12)
    comparable = {
        "string_view": pa.string(),
        "dictionary": pa.string(),
        "dictionary of large strings": pa.string(),
        "uuid": pa.binary(16),
    }.get(name)
    ids = IDS[name] if comparable is None else IDS[name].cast(comparable)
    expected = reference(edges_of(ids, w=table["w"]), weight="w", tol=1e-12)
    if name == "uuid":
        expected["vertex"] = [uuid.UUID(bytes=vertex) for vertex in expected["vertex"]]
    assert_same(ranks, expected, library.result)
    if library.result is pl.DataFrame:
        assert ranks.schema["vertex"] == frame.lazy().collect_schema()["src"]
    elif isinstance(frame, pa.Table):
        assert ranks.schema.field("vertex").type == table.schema.field("src").type


def test_bool_ids(library):
    table = pa.table({"src": [True, False], "dst": [False, False]})
    assert_same(prplugin.pagerank(library.convert(table)), reference(table), library.result)


def test_polars_enums_and_categoricals():
    for dtype in (pl.Enum(["z", "b", "a", "c"]), pl.Categorical):
        edges = pl.DataFrame({"src": ["a", "b", "a"], "dst": ["b", "c", "c"]}, schema={"src": dtype, "dst": dtype})
        ranks = edges.pagerank()
        assert ranks["vertex"].to_list() == ["a", "b", "c"]
        assert ranks.schema["vertex"] == dtype
        assert edges.pagerank(top=1)["vertex"].to_list() == ["c"]
        assert ranks["pagerank"].to_list() == edges.cast(pl.String).pagerank()["pagerank"].to_list()
        # Two types, or further vertices, need a common type: the ids are strings.
        assert edges.with_columns(pl.col("dst").cast(pl.String)).pagerank()["vertex"].to_list() == ["a", "b", "c"]
        assert edges.pagerank(vertices=["new"])["vertex"].to_list() == ["a", "b", "c", "new"]


def test_run_end_encoded_columns_are_decoded():
    table = edges_of(IDS["string"], w=pa.array([1.0, 1.0, 2.0, 2.0]))
    runs = pa.table({name: pc.run_end_encode(table[name].combine_chunks()) for name in table.column_names})
    expected = prplugin.pagerank(table, weight="w")
    assert prplugin.pagerank(runs, weight="w").equals(expected)
    assert prplugin.pagerank(runs.to_reader(), weight="w").equals(expected)
    frame = pd.DataFrame({name: pd.arrays.ArrowExtensionArray(runs[name]) for name in runs.column_names})
    assert frame.pagerank(weight="w")["vertex"].tolist() == expected["vertex"].to_pylist()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2]], pa.list_view(pa.int8())),
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
        pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "b"]).dictionary_encode()),
    ],
    ids=lambda column: str(column.type).partition("<")[0],
)
def test_types_without_a_pandas_equivalent_are_refused(column):
    table = pa.table({"src": column, "dst": column, "a": [1, 2], "b": [2, 1]})
    pandas = pd.DataFrame({name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names})
    for frame in (table, pandas):
        with pytest.raises(prplugin.InvalidEdgesError, match=r"column 'src' holds .*, which pandas does not have"):
            prplugin.pagerank(frame)
        with pytest.raises(prplugin.InvalidEdgesError, match=r"column 'src' holds .*, which pandas does not have"):
            prplugin.pagerank(frame, "a", "b", weight="src")


def test_decimals_of_32_bits():
    ids = IDS["decimal"].cast(pa.decimal32(9, 2))
    assert prplugin.pagerank(edges_of(ids))["vertex"].type == ids.type


def test_dictionaries_with_repeated_and_unused_values():
    keys = pa.array([0, 1, 2], pa.int8())
    repeated = pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b", "a", "unused"]))
    table = pa.table({"src": repeated, "dst": pa.array(["b", "c", "c"])})
    assert prplugin.pagerank(table)["vertex"].to_pylist() == ["a", "b", "c"]


def test_integers_of_different_widths(library):
    table = pa.table({"src": pa.array([1, 2], pa.int8()), "dst": pa.array([300, 1], pa.uint16())})
    assert_same(prplugin.pagerank(library.convert(table)), reference(table), library.result)


WEIGHTS = [
    pa.array([1, 2, 3, 4], kind) for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64()
    )
] + [pa.array([True, False, True, True]), pa.array([Decimal("1.5"), Decimal(2), Decimal(3), Decimal(4)], pa.decimal128(9, 2))]  # fmt: skip


@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda weights: str(weights.type))
def test_weights_of_any_numeric_type(library, weights):
    table = edges_of(pa.array([4, 3, 2, 1]), w=weights)
    ranks = prplugin.pagerank(library.convert(table), weight="w")
    assert_same(ranks, reference(table, weight="w"), library.result)


OPTIONS = {
    "vertices": {"vertices": ["z", "x"]},
    "undirected": {"directed": False},
    "last duplicate": {"duplicates": "last", "weight": "w"},
    "top": {"top": 2},
    "float32": {"dtype": "float32"},
    "personalization": {"personalization": {"x": 1, "": 2}, "dangling": {"x": 1}, "nstart": {"ä": 1}, "scale": "n"},
    "endpoints": {"source": "src", "destination": "dst"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(library, name):
    table = edges_of(IDS["string"], w=pa.array([1.0, 2.0, 0.5, 3.0]))
    ranks = prplugin.pagerank(library.convert(table), **OPTIONS[name])
    assert_same(ranks, reference(table, **OPTIONS[name]), library.result)


def test_vertices_of_several_columns(library):
    table = pa.table({"ns": ["x", "x", "y"], "from": [1, 2, 1], "to_ns": ["y", "x", "x"], "to": [1, 1, 2]})
    endpoints, more = (["ns", "from"], ["to_ns", "to"]), pa.table({"from": [9], "ns": ["z"]})
    frame = library.convert(table)
    if not isinstance(frame, pa.RecordBatchReader):  # a reader can be read only once
        assert_same(prplugin.pagerank(frame, *endpoints), reference(table, *endpoints), library.result)
    graph = prplugin.Graph(library.convert(table), *endpoints, vertices=library.convert(more))
    expected = prplugin.Graph(table.to_pandas(types_mapper=pd.ArrowDtype), *endpoints, vertices=[("z", 9)])
    assert_same(graph.rank().frame, expected.rank().frame, library.result)
    values = pa.table({"ns": ["z", "x"], "from": [9, 2], "values": [1, 3]})
    ranks = graph.rank(personalization=library.convert(values)).frame
    assert_same(ranks, expected.rank(personalization={("z", 9): 1, ("x", 2): 3}).frame, library.result)


@pytest.mark.parametrize("ids", ["string", "int64", "date32", "dictionary"])
def test_personalization_in_frames_of_any_library(library, ids):
    table = edges_of(IDS[ids])
    graph = prplugin.Graph(table)
    seed = pa.table({"vertex": IDS[ids].take(pa.array([2, 0])), "values": [1.0, 3.0]})
    expected = graph.rank(personalization=dict(zip(seed["vertex"].to_pylist(), [1.0, 3.0], strict=True)))
    for given in (library.convert(seed), seed.to_pandas()):
        ranking = graph.rank(personalization=given)
        assert ranking.ranks.tolist() == expected.ranks.tolist()
    vertices = library.convert(seed.select(["vertex"]))
    assert prplugin.Graph(table, vertices=vertices).number_of_vertices == 4


@pytest.mark.parametrize("more", [
    pl.Series([3, 9]), pa.array([3, 9]), pa.chunked_array([[3], [9]]), [3, 9], np.array([3, 9]), pd.Series([3, 9]), pd.Index([3, 9]),
], ids=lambda more: f"{type(more).__module__}.{type(more).__name__}")  # fmt: skip
def test_more_vertices_from_any_container(more):
    assert pl.DataFrame({"src": [1], "dst": [2]}).pagerank(vertices=more)["vertex"].to_list() == [1, 2, 3, 9]


@pytest.mark.parametrize(
    "column",
    [pl.Series([1.0, 2.0]), pa.array([1.0, 2.0]), pa.chunked_array([[1.0, 2.0]])],
    ids=lambda c: type(c).__name__,
)
def test_personalization_as_a_column_without_an_index_is_refused(column):
    with pytest.raises(prplugin.InvalidOptionError, match="personalization is a column without an index"):
        pl.DataFrame({"src": [0], "dst": [1]}).pagerank(personalization=column)


class TestBadInput:
    """Messages are those of the pandas adapter, except for the code that they advise, which is that of the library."""

    def error_message(self, library, table, **options):
        with pytest.raises(prplugin.PageRankError) as caught:
            prplugin.pagerank(library.convert(table), **options)
        with pytest.raises(type(caught.value)) as expected:
            reference(table, **options)
        message = str(caught.value).replace("large_string", "string")  # all strings of polars are large
        assert message.rstrip(".").partition(": edges.")[0] == str(expected.value).rstrip(".").partition(": edges.")[0]
        return str(caught.value)

    @pytest.mark.parametrize("ids", [[1, None, 3, None], ["a", None, "b", None], [None] * 4])
    def test_nulls(self, library, ids):
        table = pa.table({"src": pa.array(ids), "dst": [1, 1, 1, 1] if ids[0] == 1 else ["a"] * 4})
        assert "column 'src' has" in self.error_message(library, table)
        assert "(counted from 0): a vertex needs an id" in self.error_message(library, table)

    @pytest.mark.parametrize(
        "weights", [[1.0, None, 2.0], [1.0, float("nan"), 2.0], [1, -1, -2], [1.0, float("inf"), 0.0]]
    )
    def test_weights(self, library, weights):
        table = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1], "w": weights})
        assert "column 'w' has" in self.error_message(library, table, weight="w")

    def test_weights_that_are_not_numbers(self, library):
        table = pa.table({"src": [1], "dst": [2], "w": ["heavy"]})
        assert "column 'w' holds" in self.error_message(library, table, weight="w")

    @pytest.mark.parametrize(
        "kind", [pa.float32(), pa.float64(), pa.list_(pa.int64()), pa.struct({"a": pa.int64()})], ids=str
    )
    def test_ids_of_unsupported_types(self, library, kind):
        values = (
            [[1], [2]] if pa.types.is_list(kind) else [{"a": 1}, {"a": 2}] if pa.types.is_struct(kind) else [1.0, 2.0]
        )
        column = pa.array(values, kind)
        with pytest.raises(prplugin.InvalidEdgesError, match="column 'src' holds"):
            prplugin.pagerank(library.convert(pa.table({"src": column, "dst": column})))

    def test_ids_of_different_types(self, library):
        assert "kind string" in self.error_message(library, pa.table({"src": [1], "dst": ["a"]}))

    def test_missing_columns(self, library):
        table = pa.table({"a": [1], "b": [2]})
        assert "Its columns are 'a', 'b'." in self.error_message(library, table)
        assert "no column 'w'" in self.error_message(library, table, source="a", destination="b", weight="w")

    def test_unknown_vertices(self, library):
        table = edges_of(IDS["string"])
        message = self.error_message(library, table, personalization={"nobody": 1})
        assert "not in the graph: 'nobody'" in message

    def test_repeated_columns(self):
        table = pa.Table.from_arrays([pa.array([1])] * 3, names=["src", "dst", "src"])
        with pytest.raises(prplugin.InvalidEdgesError, match="column 'src' is in the frame 2 times"):
            prplugin.pagerank(table)
        assert (
            prplugin.pagerank(pa.Table.from_arrays([pa.array([1])] * 4, names=["src", "dst", "x", "x"])).num_rows == 1
        )

    def test_polars_objects(self):
        edges = pl.DataFrame({"src": [object()], "dst": [object()]}, schema={"src": pl.Object, "dst": pl.Object})
        with pytest.raises(
            prplugin.InvalidEdgesError, match="column 'src' is of type Object, which Arrow does not have"
        ):
            edges.pagerank()

    @NEEDS_DUCKDB
    def test_duckdb_intervals(self):
        with pytest.raises(prplugin.InvalidEdgesError, match="column 'src' holds month_day_nano_interval"):
            prplugin.pagerank(duckdb.sql("select interval 1 day as src, interval 1 day as dst"))

    @pytest.mark.parametrize("dtype", [pl.Int128, pl.UInt128], ids=str)
    def test_integers_of_128_bits(self, dtype):
        edges = pl.DataFrame({"src": [1], "dst": [2]}, schema={"src": dtype, "dst": dtype})
        with pytest.raises(prplugin.InvalidEdgesError, match="cannot be held by Arrow"):
            edges.pagerank()

    @pytest.mark.parametrize("edges", [pl.Series([1]), pa.array([1]), pa.chunked_array([[1]]), pa.schema([]), 7, [1]])
    def test_edges_that_are_not_a_table(self, edges):
        with pytest.raises(prplugin.InvalidEdgesError, match="edges must be a DataFrame of cuDF, pandas, polars"):
            prplugin.pagerank(edges)

    def test_stream_that_is_not_a_table(self):
        with pytest.raises(prplugin.InvalidEdgesError, match="ArrowStream are not a table"):
            prplugin.pagerank(ArrowStream(pa.chunked_array([[1]])))


class TestSmallGraphs:
    @pytest.mark.parametrize("kind", [pa.int32(), pa.string(), pa.null(), pa.float64(), pa.date32()], ids=str)
    def test_no_rows(self, library, kind):
        table = pa.table({"src": pa.array([], kind), "dst": pa.array([], kind)})

        def converted():
            edges = library.convert(table)
            if isinstance(edges, pa.RecordBatchReader):  # one without batches may have been read
                return pa.RecordBatchReader.from_batches(table.schema, [pa.RecordBatch.from_pylist([], table.schema)])
            return edges

        ranks = as_arrow(prplugin.pagerank(converted()))
        assert ranks.num_rows == 0
        assert ranks.column_names == ["vertex", "pagerank"]
        assert ranks.schema.field("pagerank").type == pa.float64()
        if kind in (pa.int32(), pa.date32()):
            assert ranks.schema.field("vertex").type == kind
        if kind != pa.date32():
            more = prplugin.pagerank(converted(), vertices=["b", "a"] if kind == pa.string() else [2, 1])
            assert as_arrow(more)["pagerank"].to_pylist() == [0.5, 0.5]

    def test_one_row(self, library):
        ranks = as_arrow(prplugin.pagerank(library.convert(pa.table({"src": ["a"], "dst": ["a"]}))))
        assert ranks.to_pydict() == {"vertex": ["a"], "pagerank": [1.0]}


@pytest.mark.parametrize("name", ["polars", "pyarrow"])
def test_many_rows(name):
    random = np.random.default_rng(1)
    table = pa.table(
        {"src": random.integers(0, 5000, 40_000), "dst": random.integers(0, 5000, 40_000), "w": random.random(40_000)}
    )
    library = LIBRARIES[name]
    assert_same(prplugin.pagerank(library.convert(table), weight="w"), reference(table, weight="w"), library.result)


def test_the_method_of_frames():
    edges = pl.DataFrame({"src": ["a", "b"], "dst": ["b", "a"]})
    assert pl.DataFrame.pagerank is prplugin.pagerank
    assert edges.pagerank().equals(edges.lazy().pagerank())
    assert edges.lazy().select("src", "dst", pl.lit(1).alias("w")).pagerank(weight="w").height == 2
    if duckdb is not None:
        assert duckdb.sql("select 1 as src, 2 as dst").pagerank().num_rows == 2


def test_methods_of_the_gpu_collect_by_the_gpu_engine_of_polars(tmp_path, monkeypatch):
    """A stand-in of cudf-polars records the query and leaves it to polars, as the real one does with what it lacks."""
    stand_in = (
        "calls = []\n\ndef execute_with_cudf(query, *arguments, **options):\n    calls.append(options['config'])\n"
    )
    (tmp_path / "cudf_polars.py").write_text(stand_in)
    lazy = pl.LazyFrame({"src": [1, 2, 2], "dst": [2, 1, 3]})
    expected = lazy.collect().pagerank()
    on_gpu = next(name for name in methods() if methods().runs_on(name) == "gpu")
    with reading_for(lazy, on_gpu):
        assert prplugin.Graph(lazy).rank().frame.equals(expected)  # without cudf-polars
    monkeypatch.syspath_prepend(tmp_path)
    import cudf_polars

    monkeypatch.delitem(sys.modules, "cudf_polars")
    monkeypatch.delenv("POLARS_ENGINE_AFFINITY", raising=False)
    for no_gpu, named, engine, calls in (
        (None, on_gpu, "auto", 1),
        (None, on_gpu, "streaming", 0),
        (None, "native", "auto", 0),
        (None, "auto", "auto", 0),
        ("there is none", on_gpu, "auto", 0),
    ):
        monkeypatch.setattr("prplugin.gpu.runtime.unavailable_reason", lambda no_gpu=no_gpu: no_gpu)
        monkeypatch.setitem(sys.modules, "cudf_polars", cudf_polars)
        cudf_polars.calls.clear()
        with reading_for(lazy, named), pl.Config(engine_affinity=engine):
            graph = prplugin.Graph(lazy)
        assert len(cudf_polars.calls) == calls, (no_gpu, named, engine)
        monkeypatch.setattr("prplugin.gpu.runtime.unavailable_reason", lambda: "there is none")
        assert graph.rank().frame.equals(expected)
    (tmp_path / "cudf_polars.py").write_text("raise ImportError('needs another version of polars')")
    monkeypatch.setattr("prplugin.gpu.runtime.unavailable_reason", lambda: None)
    monkeypatch.delitem(sys.modules, "cudf_polars")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with reading_for(lazy, on_gpu):
        assert prplugin.Graph(lazy).number_of_edges == 3


def test_only_the_columns_in_use_of_a_lazy_frame_are_read():
    def fail(column):
        raise AssertionError("a column that is not in use was read")

    lazy = pl.LazyFrame({"src": [1], "dst": [2], "other": [3]}).with_columns(
        pl.col("other").map_batches(fail, return_dtype=pl.Int64)
    )
    assert lazy.pagerank().height == 2


def test_plain_columns_are_not_copied():
    """The pandas adapter factorizes a view of the column."""
    from prplugin.frames import arrow, narwhals
    from prplugin.frames.ids import HOST

    for column in (pl.Series(range(100)), pa.array(range(100))):
        frame = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pa.table({"a": column})
        table, _ = arrow.table_of(narwhals.open_frame(frame)[0], [0])
        assert np.shares_memory(HOST.integers(arrow.as_frame(table)[0], ""), column.to_numpy())


def test_input_is_not_changed():
    edges = pl.DataFrame({"src": [3, 1], "dst": [1, 2], "w": [1.5, 2.5]})
    before = edges.clone()
    graph = prplugin.Graph(edges, weight="w", directed=False, vertices=[9])
    ranking = graph.rank(personalization=pl.DataFrame({"vertex": [1], "values": [2.0]}))
    assert edges.equals(before)
    kept = ranking.frame.clone()
    ranking.ranks[:] = 0
    assert ranking.frame.equals(kept)


def test_other_dataframe_libraries_are_not_imported():
    code = (
        "import pyarrow as pa, prplugin, sys\n"
        "assert 'narwhals' not in sys.modules\n"
        "prplugin.pagerank(pa.table({'src': [1, 2], 'dst': [2, 1]}))\n"
        "print([name for name in ('polars', 'duckdb', 'modin') if name in sys.modules])"
    )
    assert run_python("-c", code) == "[]"


@pytest.mark.parametrize("convert", [pl.from_arrow, lambda table: pl.from_arrow(table).lazy(), pa.Table.to_pandas])
@pytest.mark.parametrize("narwhals", ["narwhals", "narwhals.stable.v1"])
def test_frames_of_narwhals_have_results_of_narwhals(convert, narwhals):
    library = pytest.importorskip(narwhals)
    table = pa.table({"src": SOURCES, "dst": TARGETS})
    frame = library.from_native(convert(table))
    found = prplugin.pagerank(frame)
    assert type(found) is library.DataFrame
    expected = reference(table)
    assert {name: found[name].to_list() for name in found.columns} == expected.to_dict("list")
    vertices = prplugin.Graph(frame).vertices
    assert type(vertices) is library.Series
    assert vertices.to_list() == expected["vertex"].tolist()


@pytest.mark.filterwarnings("ignore:Dask support:FutureWarning")
def test_a_narwhals_frame_of_dask_is_refused():
    dask = pytest.importorskip("dask.dataframe")
    narwhals = pytest.importorskip("narwhals")
    frame = narwhals.from_native(dask.from_pandas(pd.DataFrame({"src": [1], "dst": [2]}), npartitions=1))
    with pytest.raises(prplugin.InvalidEdgesError, match=r"pass the Dask frame itself, edges\.to_native\(\)"):
        prplugin.pagerank(frame)
