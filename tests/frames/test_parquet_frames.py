"""Parquet files as edges: reading by row groups has the result of reading the whole table, in less host memory."""

from __future__ import annotations

import sys
import tracemalloc
import types
from decimal import Decimal
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import prplugin
from prplugin.frames import device_files, row_groups
from prplugin.gpu import runtime
from prplugin.machine import this_machine

ROWS, GROUP = 2_000, 170


def random_edges() -> pd.DataFrame:
    random = np.random.default_rng(0)
    src, dst = random.integers(-300, 300, (2, ROWS)) * 7
    return pd.DataFrame({"src": src, "dst": dst, "w": random.random(ROWS)})


def dates(ids: pd.Series) -> pd.Series:
    return pd.Timestamp("2020-01-01") + pd.to_timedelta(ids, unit="s")


KINDS = {
    "integers": lambda ids: ids,
    "small integers": lambda ids: ids.astype("int16"),
    "strings": lambda ids: "v" + ids.astype(str),
    "categories": lambda ids: ids.astype(str).astype("category"),
    "dates": dates,
    "booleans": lambda ids: ids % 2 == 0,
}
ARGUMENTS = {
    "unweighted": {},
    "weighted": {"weight": "w"},
    "undirected": {"weight": "w", "directed": False},
    "first": {"duplicates": "first"},
    "top": {"top": 5},
}

QUICK = set(zip(KINDS, cycle(ARGUMENTS)))
"""Each type of ids with one set of arguments; tests of the other pairs are slow."""


@pytest.fixture
def by_row_groups(monkeypatch):
    """Simulate memory that does not suffice for the whole table."""
    monkeypatch.setattr(row_groups, "PEAK", np.inf)


READERS = ("one table", "row groups", "row groups in NumPy")


@pytest.fixture(params=READERS)
def each_reader(request, monkeypatch, group_in_numpy):
    """Read files as one table, or by row groups: to a CSC, or without compiled kernels to an edge list."""
    if request.param != "one table":
        monkeypatch.setattr(row_groups, "PEAK", np.inf)
    if request.param == "row groups in NumPy":
        group_in_numpy()


def assert_same(found: pd.DataFrame | pa.Table, expected: pa.Table, names=("vertex",), result=pd.DataFrame) -> None:
    """Compare ranks: of a path, a pandas frame with the types that Arrow gives those of its table."""
    assert isinstance(found, result)
    if result is pd.DataFrame:
        if not any(map(pa.types.is_dictionary, expected.schema.types)):  # paths give the values of dictionaries
            assert found.dtypes.equals(expected.to_pandas(ignore_metadata=True).dtypes)
        found = pa.Table.from_pandas(found, preserve_index=False)
    for name in names:
        assert found.column(name).to_pylist() == expected.column(name).to_pylist()
    assert np.abs(found.column("pagerank").to_numpy() - expected.column("pagerank").to_numpy()).sum() <= 2e-11


def every_pair():
    """Return every pair of reader, type of ids and arguments: of the others one, whose tests are slow."""
    for row, kind in enumerate(KINDS):
        for column, name in enumerate(ARGUMENTS):
            quick = (kind, name) in QUICK
            for reader in READERS if quick else [READERS[(row + column) % len(READERS)]]:
                marks = [] if quick else [pytest.mark.slow]
                yield pytest.param(reader, KINDS[kind], ARGUMENTS[name], id=f"{kind}-{name}-{reader}", marks=marks)


@pytest.mark.usefixtures("each_reader")
@pytest.mark.parametrize(("each_reader", "kind", "arguments"), list(every_pair()), indirect=["each_reader"])
def test_file_has_the_ranks_of_its_table(tmp_path, kind, arguments):
    frame = random_edges()
    frame = frame.assign(src=kind(frame["src"]), dst=kind(frame["dst"]))
    frame.to_parquet(tmp_path / "edges.parquet", row_group_size=GROUP)
    expected = prplugin.pagerank(pq.read_table(tmp_path / "edges.parquet"), tol=1e-11, **arguments)
    assert_same(prplugin.pagerank(str(tmp_path / "edges.parquet"), tol=1e-11, **arguments), expected)
    given = ds.dataset(tmp_path / "edges.parquet")
    assert_same(prplugin.pagerank(given, tol=1e-11, **arguments), expected, result=pa.Table)


@pytest.mark.usefixtures("each_reader")
def test_vertices_personalization_and_vertices_of_several_columns(tmp_path):
    frame = random_edges().assign(bank=lambda rows: "b" + (rows["src"] % 3).astype(str), to="b1")
    path = tmp_path / "edges.parquet"
    frame.to_parquet(path, row_group_size=GROUP)
    table = pq.read_table(path)
    for arguments in ({"vertices": [5, 10**12, 7]}, {"personalization": {int(frame["dst"][3]): 1.0}}):
        assert_same(prplugin.pagerank(path, tol=1e-11, **arguments), prplugin.pagerank(table, tol=1e-11, **arguments))
    endpoints = (["bank", "src"], ["to", "dst"])
    assert_same(
        prplugin.pagerank(path, *endpoints, tol=1e-11),
        prplugin.pagerank(table, *endpoints, tol=1e-11),
        names=("bank", "src"),
    )


def test_files_of_a_folder_are_concatenated(tmp_path):
    frame = random_edges()
    for part in range(4):
        frame.iloc[part * 500 : (part + 1) * 500].to_parquet(tmp_path / f"{part}.parquet")
    graph = prplugin.Graph(tmp_path)
    assert graph.number_of_edges == ROWS
    assert_same(graph.rank(tol=1e-11).frame, prplugin.pagerank(pa.table(frame), tol=1e-11))


def test_file_without_rows(tmp_path):
    random_edges().iloc[:0].to_parquet(tmp_path / "edges.parquet")
    assert prplugin.pagerank(tmp_path / "edges.parquet").empty
    assert prplugin.pagerank(tmp_path / "edges.parquet", vertices=[4, 5])["vertex"].tolist() == [4, 5]


@pytest.mark.usefixtures("each_reader")
def test_arrays_of_a_graph_by_row_groups(tmp_path):
    frame = random_edges()
    frame.to_parquet(tmp_path / "edges.parquet", row_group_size=GROUP)
    one, other = prplugin.Graph(tmp_path / "edges.parquet", weight="w"), prplugin.Graph(frame, weight="w")
    for compressed, expected in ((one.csc(), other.csc()), (one.csr(), other.csr())):
        assert (compressed.offsets == expected.offsets).all()
        for row in range(one.number_of_vertices):
            in_row = slice(expected.offsets[row], expected.offsets[row + 1])
            found, wanted = (
                sorted(zip(c.indices[in_row].tolist(), c.weights[in_row].tolist(), strict=True))
                for c in (compressed, expected)
            )
            assert found == wanted


@pytest.mark.usefixtures("by_row_groups")
def test_input_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(prplugin.InvalidEdgesError, match=r"ann: No such file or directory in "):
        prplugin.pagerank("ann")
    (tmp_path / "text.parquet").write_text("src,dst\n")
    with pytest.raises(prplugin.InvalidEdgesError, match="where no Parquet can be read"):
        prplugin.pagerank(tmp_path / "text.parquet")
    pyarrow.csv.write_csv(pa.table(random_edges()), tmp_path / "edges.csv")
    with pytest.raises(prplugin.InvalidEdgesError, match="not of Parquet files"):
        prplugin.pagerank(ds.dataset(tmp_path / "edges.csv", format="csv"))
    frame = random_edges()
    frame.to_parquet(tmp_path / "edges.parquet")
    with pytest.raises(prplugin.ColumnNotFoundError, match="no column 'clicks'"):
        prplugin.pagerank(tmp_path / "edges.parquet", weight="clicks")
    frame.loc[3 * GROUP + 4, "w"] = -1.0
    frame.to_parquet(tmp_path / "edges.parquet", row_group_size=GROUP)
    message = r"in the row group that begins with row 510, .*: column 'w' has 1 value below 0: -1\.0 in row 4 "
    with pytest.raises(prplugin.InvalidEdgesError, match=message):
        prplugin.pagerank(tmp_path / "edges.parquet", weight="w")


@pytest.mark.usefixtures("by_row_groups")
def test_ids_without_a_common_integer_type_are_refused(tmp_path):
    frame = pd.DataFrame({"src": np.array([1, 2**63 + 1], np.uint64), "dst": np.array([-1, 1])})
    frame.to_parquet(tmp_path / "edges.parquet", row_group_size=1)
    with pytest.raises(prplugin.InvalidEdgesError, match="no one integer type holds"):
        prplugin.pagerank(tmp_path / "edges.parquet")


def write_files(folder: Path, *tables: pa.Table) -> Path:
    """Write tables to the files 0.parquet, 1.parquet, ... and return the folder."""
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


def edges_of_type(kind: pa.DataType, *ids: object) -> pa.Table:
    """Return two edges: from the first id to the second, and from the second to the third."""
    return pa.table({"src": pa.array(ids[:2], kind), "dst": pa.array(ids[1:], kind)})


def test_weights_of_files_are_not_cast(tmp_path):
    edges = edges_of_type(pa.int64(), 1, 2, 3).append_column("w", pa.array([1.0, 1.0], pa.float32()))
    more = pa.table({"src": [1, 1, 2], "dst": [3, 1, 1], "w": [0.1, 1 / 3, 0.7]})
    folder = write_files(tmp_path, edges, more)
    combined = pa.concat_tables([edges, more], promote_options="permissive")
    ranks = prplugin.pagerank(folder, weight="w", tol=1e-12)["pagerank"].to_numpy()
    exact = prplugin.pagerank(combined, weight="w", tol=1e-12)["pagerank"].to_numpy()
    assert np.abs(ranks - exact).sum() <= 2e-12
    small = edges.set_column(2, "w", pa.array([1, 2], pa.int8()))
    large = more.set_column(2, "w", pa.array([300, 2, 1]))
    ranks = prplugin.pagerank(write_files(tmp_path, small, large), weight="w", tol=1e-12)
    combined = pa.concat_tables([small, large], promote_options="permissive")
    assert_same(ranks, prplugin.pagerank(combined, weight="w", tol=1e-12))


COMMON_TYPES = {
    "integers": (edges_of_type(pa.int8(), 1, 2, 3), edges_of_type(pa.int64(), 1, 2000, 3), pa.int64()),
    "signed and unsigned": (
        edges_of_type(pa.int64(), 1, 2, 3),
        edges_of_type(pa.uint64(), 1, 2**63, 2**64 - 1),
        pa.uint64(),
    ),
    "strings": (
        edges_of_type(pa.string(), "a", "b", "c"),
        edges_of_type(pa.large_string(), "a", "b", "d"),
        pa.large_string(),
    ),
    "string views": (
        edges_of_type(pa.string_view(), "a", "b", "c"),
        edges_of_type(pa.string(), "a", "b", "d"),
        pa.large_string(),
    ),
    "dictionaries": (
        edges_of_type(pa.string(), "a", "b", "c"),
        pa.table({name: pa.array(["a", "d"]).dictionary_encode() for name in ("src", "dst")}),
        pa.string(),
    ),
    "units of timestamps": (
        edges_of_type(pa.timestamp("ms"), 0, 1, 2),
        edges_of_type(pa.timestamp("ns"), 0, 10**6, 7),
        pa.timestamp("ns"),
    ),
    "time zones": (
        edges_of_type(pa.timestamp("us", "UTC"), 0, 1, 2),
        edges_of_type(pa.timestamp("us", "Europe/Berlin"), 0, 1, 7),
        pa.timestamp("us", "UTC"),
    ),
    "decimals": (
        edges_of_type(pa.decimal128(9, 2), 1, 2, 3),
        edges_of_type(pa.decimal128(20, 4), 1, 2, Decimal("0.0001")),
        pa.decimal128(20, 4),
    ),
    "no rows": (edges_of_type(pa.string(), "a", "b", "c").slice(0, 0), edges_of_type(pa.int32(), 1, 2, 3), pa.int32()),
}


@pytest.mark.parametrize("name", COMMON_TYPES)
def test_ids_of_files_are_cast_to_their_common_type(tmp_path, name):
    first, second, kind = COMMON_TYPES[name]
    folder = write_files(tmp_path, first, second)
    ranks = prplugin.pagerank(ds.dataset(folder))
    plain = [
        pd.DataFrame({name: table[name].to_pylist() for name in ("src", "dst")}, dtype=object)
        for table in (first, second)
    ]
    expected = pd.concat(plain, ignore_index=True).pagerank()
    assert ranks["vertex"].type == kind
    assert ranks["vertex"].to_pylist() == expected["vertex"].tolist()
    assert ranks["pagerank"].to_pylist() == pytest.approx(expected["pagerank"].tolist(), abs=2e-6)
    pd.testing.assert_frame_equal(prplugin.pagerank(folder), ranks.to_pandas())


@pytest.mark.usefixtures("by_row_groups")
def test_common_integer_type_of_vertices_of_several_columns(tmp_path):
    first = pa.table({"a": [1], "b": ["x"], "c": [2], "d": ["y"]})
    second = pa.table(
        {"a": pa.array([2**63 + 1], pa.uint64()), "b": ["x"], "c": pa.array([2], pa.uint64()), "d": ["y"]}
    )
    ranks = prplugin.pagerank(write_files(tmp_path, first, second), ["a", "b"], ["c", "d"])
    assert ranks["a"].tolist() == [1, 2, 2**63 + 1]


@pytest.mark.parametrize(
    ("second", "kinds"),
    [
        (edges_of_type(pa.string(), "007", "7", "8"), ("int64", "string")),
        (edges_of_type(pa.bool_(), True, False, True), ("int64", "bool")),
        (edges_of_type(pa.float64(), 1.0, 2.0, 3.0), ("int64", "double")),
        (edges_of_type(pa.timestamp("us"), 1, 2, 3), ("int64", "timestamp[us]")),
        (edges_of_type(pa.date32(), 1, 2, 3), ("int64", "date32[day]")),
        (edges_of_type(pa.binary(), b"1", b"2", b"3"), ("int64", "binary")),
    ],
    ids=lambda value: str(value[1]) if isinstance(value, tuple) else "",
)
def test_files_without_a_common_type_are_refused_by_name(tmp_path, second, kinds):
    folder = write_files(tmp_path, edges_of_type(pa.int64(), 1, 2, 3), second)
    with pytest.raises(prplugin.InvalidEdgesError) as raised:
        prplugin.pagerank(folder)
    for number, kind in enumerate(kinds):
        assert f"column 'src' of file '{folder / str(number)}.parquet' ({kind}) " in str(raised.value)


def test_incompatible_files_are_refused_by_name(tmp_path):
    edges = edges_of_type(pa.int64(), 1, 2, 3)
    with pytest.raises(prplugin.ColumnNotFoundError, match=r"no column 'dst' in file '.*1\.parquet'.* are 'src'"):
        prplugin.pagerank(write_files(tmp_path, edges, edges.select(["src"])))
    repeated = pa.Table.from_arrays([pa.array([1])] * 3, names=["src", "dst", "src"])
    with pytest.raises(prplugin.InvalidEdgesError, match=r"column 'src' is in file '.*1\.parquet' 2 times"):
        prplugin.pagerank(write_files(tmp_path, edges, repeated))
    weighted = [edges.append_column("w", pa.array(weights)) for weights in ([1.0, 2.0], ["a", "b"])]
    with pytest.raises(prplugin.InvalidEdgesError, match=r"with row 2, .*1\.parquet': column 'w' holds string"):
        prplugin.pagerank(write_files(tmp_path, *weighted), weight="w")
    too_large = edges_of_type(pa.timestamp("ms"), 2**45, 1, 2)
    with pytest.raises(
        prplugin.InvalidEdgesError, match=r"0\.parquet' \(timestamp\[ms\]\) holds values that timestamp\[ns\]"
    ):
        prplugin.pagerank(write_files(tmp_path, too_large, edges_of_type(pa.timestamp("ns"), 1, 2, 3)))
    signed, unsigned = edges_of_type(pa.int64(), -1, 2, 3), edges_of_type(pa.uint64(), 1, 2**63, 3)
    with pytest.raises(prplugin.InvalidEdgesError, match="no one integer type holds"):
        prplugin.pagerank(write_files(tmp_path, signed, unsigned))


@pytest.mark.usefixtures("by_row_groups")
def test_unreadable_files_are_named(tmp_path):
    edges = edges_of_type(pa.int64(), 1, 2, 3)
    with pytest.raises(prplugin.InvalidEdgesError, match="a folder in which there is no Parquet file"):
        prplugin.pagerank(tmp_path)
    write_files(tmp_path, edges, edges)
    dataset = ds.dataset(tmp_path)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(prplugin.InvalidEdgesError, match=r"file '.*1\.parquet' cannot be read"):
        prplugin.pagerank(dataset)
    many = pa.table({"src": range(10_000), "dst": range(10_000)})
    write_files(tmp_path, edges, many)
    content = bytearray((tmp_path / "1.parquet").read_bytes())
    content[100:2000] = b"\xff" * 1900
    (tmp_path / "1.parquet").write_bytes(content)
    with pytest.raises(prplugin.InvalidEdgesError, match=r"file '.*1\.parquet' cannot be read"):
        prplugin.pagerank(tmp_path)
    invalid = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], "i4")), pa.py_buffer(b"\xff")])
    with pytest.raises(prplugin.InvalidEdgesError, match="text that is not UTF-8"):
        prplugin.pagerank(write_files(tmp_path, *[pa.table({"src": invalid, "dst": ["a"]})] * 2))


def test_datasets_with_a_filter_or_another_schema_are_refused(tmp_path):
    dataset = ds.dataset(write_files(tmp_path, edges_of_type(pa.int64(), 1, 2, 3)))
    with pytest.raises(prplugin.InvalidEdgesError, match=r"has a filter.*dataset\.to_table\(\)"):
        prplugin.pagerank(dataset.filter(ds.field("src") > 1))
    schema = pa.schema({"src": pa.string(), "dst": pa.string()})
    with pytest.raises(prplugin.InvalidEdgesError, match=r"\(int64\) .* of the dataset's schema \(string\)"):
        prplugin.pagerank(ds.dataset(tmp_path, schema=schema))
    wide = ds.dataset(tmp_path, schema=pa.schema({"src": pa.int64(), "dst": pa.int64(), "w": pa.int8()}))
    with pytest.raises(prplugin.ColumnNotFoundError, match=r"no column 'w' in file"):
        prplugin.pagerank(wide, weight="w")


def test_times_of_day_that_differ_by_nanoseconds(tmp_path):
    folder = write_files(tmp_path, edges_of_type(pa.time64("ns"), 1, 2, 3))
    vertices = pa.array(prplugin.pagerank(folder)["vertex"])
    assert vertices.cast(pa.int64()).to_pylist() == [1, 2, 3]


def test_names_of_partition_folders_are_columns(tmp_path):
    for name in ("src=1", "src=2"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"dst": [5, 6]}), tmp_path / name / "part.parquet")
    ranks = prplugin.pagerank(tmp_path, tol=1e-12)
    assert_same(ranks, prplugin.pagerank(pa.table({"src": [1, 1, 2, 2], "dst": [5, 6, 5, 6]}), tol=1e-12))
    (tmp_path / "src=1").rename(tmp_path / "src=002")
    with pytest.raises(prplugin.InvalidEdgesError, match=r"id 2 from the name of the folder of file '.*src=002"):
        prplugin.pagerank(tmp_path)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
def test_columns_of_files_take_precedence_over_names_of_folders(tmp_path, kind):
    (tmp_path / "src=1").mkdir()
    pq.write_table(edges_of_type(kind, 1, 2, 3), tmp_path / "src=1" / "part.parquet")
    assert_same(prplugin.pagerank(tmp_path, tol=1e-12), prplugin.pagerank(edges_of_type(kind, 1, 2, 3), tol=1e-12))


@pytest.mark.usefixtures("by_row_groups")
def test_memory_by_row_groups_is_one_index_per_edge(tmp_path):
    """tracemalloc does not count the memory that Arrow allocates for a row group."""
    n, m, group = 1_000, 1_000_000, 10_000
    random = np.random.default_rng(0)
    pq.write_table(
        pa.table({"src": random.integers(0, n, m), "dst": random.integers(0, n, m)}),
        tmp_path / "edges.parquet",
        row_group_size=group,
    )
    prplugin.Graph(pa.table({"src": [0], "dst": [1]}))
    tracemalloc.start()
    graph = prplugin.Graph(tmp_path / "edges.parquet")
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert graph.number_of_edges == m
    assert held <= 4 * m + 200 * n + 2**20
    assert peak <= 4 * m + 200 * n + 100 * group + 2**20


@pytest.mark.usefixtures("by_row_groups")
@pytest.mark.parametrize("types", [("int64", "int64"), ("int8", "int32"), ("uint64", "uint64"), ("uint32", "int64")])
def test_integers_of_every_row_group_get_the_codes_of_the_table(tmp_path, types):
    random = np.random.default_rng(0)
    columns = {}
    for name, dtype in zip(("src", "dst"), types, strict=True):
        info = np.iinfo(dtype)  # so many that hash tables grow in several row groups
        ids = random.integers(info.min, info.max, 150_000, dtype, endpoint=True)
        ids[[0, 1, 70_000]] = info.max, info.min, info.min
        columns[name] = ids
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "edges.parquet", row_group_size=20_000)
    by_groups, at_once = prplugin.Graph(ds.dataset(tmp_path / "edges.parquet")), prplugin.Graph(table)
    assert by_groups.vertices.type == at_once.vertices.type
    assert by_groups.vertices.equals(at_once.vertices)
    for found, expected in zip(by_groups.csc()[:2], at_once.csc()[:2], strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("available", "as_one_table"), [(1 << 30, True), (100_000, False)])
def test_files_are_read_as_one_table_if_memory_suffices(tmp_path, monkeypatch, available, as_one_table):
    table = pa.table({"src": np.arange(4000) % 7, "dst": np.arange(4000) % 5})
    pq.write_table(table, tmp_path / "edges.parquet", row_group_size=500)
    monkeypatch.setattr(row_groups, "bytes_available", lambda: available)
    groups, read = [], row_groups.read
    monkeypatch.setattr(row_groups, "read", lambda *of, **how: groups.append(of) or read(*of, **how))
    assert_same(prplugin.pagerank(tmp_path / "edges.parquet", tol=1e-12), prplugin.pagerank(table, tol=1e-12))
    assert (not groups) == as_one_table


def test_many_seeds(tmp_path):
    pq.write_table(pa.table({"src": [1, 2, 3], "dst": [2, 1, 1]}), tmp_path / "edges.parquet")
    many = prplugin.pagerank(tmp_path / "edges.parquet", seeds=[3, 1], top=2)
    expected = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}).pagerank(seeds=[3, 1], top=2)
    pd.testing.assert_frame_equal(many, expected)


# --- on the GPU -------------------------------------------------------------------------------------------------------


@pytest.fixture
def logged(caplog):
    caplog.set_level("INFO", logger="prplugin")
    return caplog


@pytest.mark.parametrize(
    ("loaded", "installed", "gpu", "method", "reason"),
    [
        ((), False, True, "auto", "cuDF is not installed"),
        ((), True, False, "auto", "there is no NVIDIA GPU"),
        (
            (),
            True,
            True,
            "auto",
            f"its import pays for files of {110_000_000 * this_machine().threads:,} bytes or more",
        ),
        (("cudf",), True, True, "native", "the call reads on the host"),
        (("cudf", "cudf.pandas"), True, True, "auto", "cudf.pandas is in use"),
        (("cudf",), True, True, "auto", "no GPU here"),
        ((), True, True, "persistent", "no GPU here"),
    ],
)
def test_reason_why_a_file_is_read_on_the_host_is_logged(
    tmp_path, monkeypatch, logged, loaded, installed, gpu, method, reason
):
    path = tmp_path / "edges.parquet"
    random_edges().to_parquet(path)
    expected = prplugin.pagerank(path, method="native")
    for name in ("cudf", "cudf.pandas"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    find = device_files.find_spec
    monkeypatch.setattr(device_files, "find_spec", lambda name: (installed or None) if name == "cudf" else find(name))
    monkeypatch.setattr(device_files, "GPUS", (tmp_path,) if gpu else ())
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: "no GPU here.")
    logged.clear()
    with monkeypatch.context() as patched:
        for name in loaded:
            patched.setitem(sys.modules, name, types.ModuleType(name))
        try:
            found = prplugin.pagerank(path, method=method)
        except prplugin.MethodUnavailableError:
            assert method == "persistent"
        else:
            pd.testing.assert_frame_equal(found, expected)
    (message,) = [record.getMessage() for record in logged.records if "read on the host" in record.getMessage()]
    assert message.startswith(str(path))
    assert reason in message


GPU_KINDS = KINDS | {"zoned": lambda ids: dates(ids).dt.tz_localize("UTC"), "floats": lambda ids: ids.astype(float)}


def outcome(path: Path, **arguments) -> object:
    try:
        return prplugin.pagerank(path, tol=1e-11, **arguments)
    except prplugin.PageRankError as error:
        return str(error)


@pytest.mark.gpu
@pytest.mark.cudf
@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("kind", GPU_KINDS)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "row groups"])
def test_gpu_reads_files_as_the_host_does(tmp_path, monkeypatch, kind, name, at_once):
    pytest.importorskip("cudf")
    if not at_once:
        monkeypatch.setattr(device_files, "PEAK", 10**9)
    frame = random_edges()
    path = tmp_path / "edges.parquet"
    frame.assign(src=GPU_KINDS[kind](frame["src"]), dst=GPU_KINDS[kind](frame["dst"])).to_parquet(
        path, row_group_size=GROUP
    )
    found, expected = (outcome(path, method=method, **ARGUMENTS[name]) for method in ("auto", "native"))
    if isinstance(expected, str):
        assert found == expected
    else:
        pd.testing.assert_frame_equal(found, expected, rtol=0, atol=1e-10)
    if kind == "integers":
        graph = prplugin.Graph(path)
        assert graph.rank().method not in ("native", "numpy")
        assert isinstance(graph.vertices, pd.Series)
        graph.save(tmp_path / "saved")
        assert isinstance(prplugin.Graph.load(tmp_path / "saved").rank().frame, pd.DataFrame)


@pytest.mark.gpu
@pytest.mark.cudf
def test_gpu_reports_nulls_as_the_host_does(tmp_path):
    pytest.importorskip("cudf")
    frame = random_edges().astype({"src": "Int64"})
    frame.loc[[3, 700], "src"] = pd.NA
    frame.to_parquet(tmp_path / "edges.parquet")
    found, expected = (outcome(tmp_path / "edges.parquet", method=method) for method in ("auto", "native"))
    assert found == expected
