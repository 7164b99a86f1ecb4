"""Saved graphs: round trips, damaged and hostile folders, processes that share a folder."""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import multiprocessing
import os
import pickle
import shutil
import struct
import threading
import uuid
import zlib
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from shown_text import error_message
from timed_edges import random_edges

import prplugin
from prplugin import folders
from prplugin.folders import signed
from prplugin.gpu.runtime import unavailable_reason

narwhals = pytest.importorskip("narwhals")
stable = pytest.importorskip("narwhals.stable.v1")

PLACES = [0, 1, 2, 3, 1, 0], [1, 2, 0, 0, 3, 2]
"""Positions of the endpoints of six edges."""


def edges_of(ids):
    return pd.DataFrame({
        name: pd.Series(ids.take(places).array, dtype=ids.dtype)
        for name, places in zip(("src", "dst"), PLACES, strict=True)
    })  # fmt: skip


def saved_and_loaded(graph, path):
    graph.save(path / "graph")
    return prplugin.Graph.load(path / "graph")


def assert_same(one, other):
    """Compare ranks, vertices and edges bit by bit."""
    found, expected = one.rank(), other.rank()
    assert found.ranks.tobytes() == expected.ranks.tobytes()
    assert (found.error_bound, found.iterations) == (expected.error_bound, expected.iterations)
    assert_same_frames(found.frame, expected.frame)
    for mine, others in zip(one.csc(), other.csc(), strict=True):
        np.testing.assert_array_equal(mine, others)


def assert_same_frames(found, expected):
    assert type(found) is type(expected)
    if isinstance(found, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
        for name in found.columns:
            assert list(map(type, found[name])) == list(map(type, expected[name]))
    else:
        assert (
            found.equals(expected)
            if not hasattr(found, "to_native")
            else found.to_native().equals(expected.to_native())
        )


DAYS = pd.to_datetime(["2026-01-01", "2024-02-29", "2025-03-01", "1969-07-20"])
OBJECTS = {
    "strings": ["x", "ä", "", "long " * 50],
    "strings with a lone surrogate": ["x", "\ud800", "\0", "\0a"],
    "bytes": [b"x", b"", b"\xff", b"z"],
    "integers": [30, 10, 20, 40],
    "integers of 64 bits": [2**64 - 1, 3, 2, 1],
    "booleans": [True, False, True, False],
    "decimals": [Decimal("1.50"), Decimal(2), Decimal("-3E+5"), Decimal(4)],
    "fractions": [Fraction(1, k) for k in range(2, 6)],
    "uuids": [uuid.UUID(int=k) for k in (9, 1, 5, 2)],
    "dates": [day.date() for day in DAYS],
    "times of day": [datetime.time(k, 0, 1, k) for k in range(4)],
    "datetimes": [day.to_pydatetime() for day in DAYS],
    "datetimes of several zones": [
        datetime.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
        datetime.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5.5))),
    ],
    "timestamps of several zones": [
        DAYS[0].tz_localize("UTC"),
        *(day.tz_localize(ZoneInfo("Asia/Tokyo")) for day in DAYS[1:]),
    ],
    "timedeltas": [datetime.timedelta(days=k, microseconds=1) for k in range(4)],
    "tuples": [(1, "a"), (1, ("b", b"c")), (2, None), ()],
}
COLUMNS = {
    **{name: pd.Series(values, dtype=object) for name, values in OBJECTS.items()},
    **{
        str(dtype): pd.Series([30, 10, 20, 40], dtype=dtype)
        for dtype in (
            *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)),
            *(f"{u}Int{bits}" for u in ("", "U") for bits in (8, 16, 32, 64)),
            *(pd.ArrowDtype(kind) for kind in (pa.int8(), pa.int64(), pa.uint64())),
        )
    },
    **{f"str {dtype}": pd.Series(["x", "ä", "", "long"], dtype=dtype) for dtype in (
        "str", "string[python]", "string[pyarrow]", pd.ArrowDtype(pa.string()), pd.ArrowDtype(pa.large_string()),
    )},
    "category": pd.Series(pd.Categorical(["x", "y", "z", "u"], categories=list("wvuzyx"), ordered=True)),
    "category of integers": pd.Series(pd.Categorical([30, 10, 20, 40], categories=[40, 30, 20, 10, 5])),
    "category of days": pd.Series(DAYS).astype("category"),
    "category of intervals": pd.cut(pd.Series([3.5, 1.5, 2.5, 4.5]), range(6)),
    "bool": pd.Series([True, False, True, False]),
    "boolean": pd.Series([True, False, True, False], dtype="boolean"),
    "datetime": pd.Series(DAYS),
    "datetime in seconds": pd.Series(DAYS.as_unit("s")),
    "datetime with a zone": pd.Series(DAYS.tz_localize("Europe/Berlin")),
    "datetime with an offset": pd.Series(DAYS.tz_localize(datetime.timezone(datetime.timedelta(hours=-3)))),
    "timedelta": pd.Series(DAYS - DAYS[0]),
    "period": pd.Series(DAYS.to_period("D")),
    "interval": pd.Series(pd.interval_range(0, 4, closed="left")),
    "interval of times with a zone": pd.Series(pd.interval_range(DAYS[0].tz_localize("Europe/Berlin"), periods=4)),
    **{f"arrow {kind}": pd.Series(values).astype(pd.ArrowDtype(kind)) for kind, values in (
        (pa.timestamp("us"), DAYS), (pa.timestamp("ns", "Europe/Berlin"), DAYS.tz_localize("UTC")),
        (pa.date32(), DAYS.date), (pa.time64("ns"), OBJECTS["times of day"]), (pa.duration("ms"), DAYS - DAYS[0]),
        (pa.decimal128(9, 2), [Decimal(1), Decimal("2.5"), Decimal(3), Decimal(4)]), (pa.binary(), OBJECTS["bytes"]),
        (pa.bool_(), [True, False, True, False]),
    )},
}  # fmt: skip


TWO_COLUMNS = ("strings", "tuples", "int8", "UInt64", "str str", "category", "boolean", "datetime with a zone")
"""Kinds of ids that are also restored beside a second column: each column is written by itself."""


@pytest.mark.parametrize(
    ("name", "several"),
    [
        *(pytest.param(name, False, id=f"{name}, one column") for name in COLUMNS),
        *(pytest.param(name, True, id=f"{name}, two columns") for name in TWO_COLUMNS),
    ],
)
def test_every_kind_of_ids_is_restored(tmp_path, name, several):
    edges = edges_of(COLUMNS[name])
    ends = [["src", "a"], ["dst", "b"]] if several else ["src", "dst"]
    graph = prplugin.Graph(edges.assign(a=list("xyzxyz"), b=list("yzxyzx")), *ends)
    loaded = saved_and_loaded(graph, tmp_path)
    assert_same(loaded, graph)
    assert loaded.rank().to_dict() == graph.rank().to_dict()
    more = edges.assign(a="new", b="x").iloc[:2]
    for each in (graph, loaded):
        each.update(add=more)
    assert_same_frames(loaded.rank().frame, graph.rank().frame)
    assert loaded.rank().ranks.tobytes() == graph.rank().ranks.tobytes()


LIBRARIES = {
    "pandas": lambda frame: frame,
    "pandas of Arrow types": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "polars, lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "pyarrow dictionary": lambda frame: pa.Table.from_pandas(
        frame.astype({"src": "str", "dst": "str"}).astype({"src": "category", "dst": "category"}), preserve_index=False
    ),
    "narwhals": lambda frame: narwhals.from_native(pl.from_pandas(frame)),
    "narwhals.stable.v1": lambda frame: stable.from_native(pa.Table.from_pandas(frame, preserve_index=False)),
}
GRAPHS = {
    "plain": {},
    "weights": {"weight": "w"},
    "undirected": {"directed": False},
    "undirected weights, last": {"directed": False, "weight": "w", "duplicates": "last"},
    "half-life": {"weight": "w", "time": "t", "half_life": 10**5, "now": Fraction(3 * 10**6, 2)},
    "half-life of days": {"time": "day", "half_life": datetime.timedelta(days=3000)},
    "half-life of NumPy": {"time": "day", "half_life": np.timedelta64(3000, "D"), "now": np.datetime64("2090-01-01")},
    "half-life of pandas": {"time": "day", "half_life": pd.Timedelta(3000, "D"), "now": pd.Timestamp("2090-01-01")},
}


@pytest.mark.parametrize(
    ("library", "options"),
    [
        *(("pandas", options) for options in GRAPHS),
        *((library, "undirected weights, last") for library in LIBRARIES if library != "pandas"),
        ("polars", "half-life of days"), ("pyarrow", "half-life"),
    ],
)  # fmt: skip
def test_rankings_and_updates_are_those_of_the_graph(tmp_path, library, options):
    edges, more = random_edges(), random_edges(90, 20, seed=1).assign(t=10**6)
    edges, more = (one.assign(day=pd.to_datetime(one["t"], unit="h")) for one in (edges, more))
    graph = prplugin.Graph(LIBRARIES[library](edges), "src", "dst", **GRAPHS[options])
    graph.rank()
    loaded = saved_and_loaded(graph, tmp_path)
    assert repr(loaded) == repr(graph)
    assert_same(loaded, graph)
    more = LIBRARIES[library](more)
    for each in (graph, loaded):
        each.update(add=more)
    found, expected = loaded.rank(), graph.rank()
    assert found.method == expected.method
    assert found.ranks.tobytes() == expected.ranks.tobytes()
    assert_same_frames(found.frame, expected.frame)
    again = saved_and_loaded(loaded, tmp_path)  # replaces the folder that it is mapped from
    for each in (loaded, again):
        each.update(remove=more)
    assert again.rank().error_bound <= 1e-6
    np.testing.assert_allclose(again.rank().ranks, loaded.rank().ranks, rtol=0, atol=2e-6)
    np.testing.assert_array_equal(again.csc().offsets, loaded.csc().offsets)


def test_ranks_that_the_user_has_altered_are_not_saved(tmp_path):
    graph = prplugin.Graph(random_edges())
    graph.rank().ranks[:] = np.nan
    assert_same(saved_and_loaded(graph, tmp_path), graph)


def test_window_other_labels_and_vertices(tmp_path):
    edges = random_edges().rename(columns={"src": ("u", 1), "dst": 2})
    graph = prplugin.Graph(edges, ("u", 1), 2, time="t", window=5 * 10**5, vertices=[1000])
    loaded = saved_and_loaded(graph, tmp_path)
    assert_same(loaded, graph)
    assert error_message(lambda: loaded.update(add=edges)) == error_message(lambda: graph.update(add=edges))
    empty = prplugin.Graph(pd.DataFrame({"src": [], "dst": []}))
    assert saved_and_loaded(empty, tmp_path).number_of_vertices == 0
    isolated = prplugin.Graph(pd.DataFrame({"src": [], "dst": []}), vertices=["a", "b"])
    assert saved_and_loaded(isolated, tmp_path).rank().to_dict() == {"a": 0.5, "b": 0.5}


def test_graphs_of_other_libraries(tmp_path):
    nx, sparse = pytest.importorskip("networkx"), pytest.importorskip("scipy.sparse")
    matrix = sparse.random_array((9, 9), density=0.4, rng=np.random.default_rng(0), format="csr")
    graphs = [
        prplugin.Graph(nx.karate_club_graph()),
        prplugin.Graph.from_csr(matrix),
        prplugin.Graph.from_csr(matrix.tocsc(), vertices=list("abcdefghi")),
    ]
    for graph in graphs:
        loaded = saved_and_loaded(graph, tmp_path)
        assert_same(loaded, graph)
        assert_same(saved_and_loaded(loaded, tmp_path), graph)


def test_dask_frames_that_were_read_in_this_process(tmp_path):
    dataframe = pytest.importorskip("dask.dataframe")
    edges = random_edges().astype({"src": str, "dst": str})
    graph = prplugin.Graph(dataframe.from_pandas(edges, npartitions=2), "src", "dst", weight="w")
    loaded = saved_and_loaded(graph, tmp_path)
    assert isinstance(loaded.rank().frame, dataframe.DataFrame)
    pd.testing.assert_frame_equal(loaded.rank().frame.compute(), graph.rank().frame.compute())


def test_last_ranks_are_saved_and_start_the_next_ranking(tmp_path):
    edges = random_edges(5000, 60_000)
    graph = prplugin.Graph(edges, weight="w")
    graph.rank(personalization={0: 1, 5: 2})
    loaded = saved_and_loaded(graph, tmp_path)
    for each in (graph, loaded):
        each.update(add=edges.iloc[:1])
        assert each.rank(personalization={0: 1, 5: 2}).method == "push"


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "graph"
    edges = random_edges().astype({"src": str, "dst": str})
    graph = prplugin.Graph(edges, weight="w", time="t", half_life=10**5)
    graph.rank(personalization=["1"])
    graph.save(path)
    return path


@pytest.fixture
def folder(tmp_path, saved):
    """Return a copy of a saved graph."""
    return shutil.copytree(saved, tmp_path / "graph")


def test_a_saved_graph_is_accepted_as_edges(folder):
    expected = prplugin.Graph.load(folder).rank().frame
    for given in (folder, str(folder), f"{folder}{os.sep}"):
        pd.testing.assert_frame_equal(prplugin.pagerank(given), expected)
        pd.testing.assert_frame_equal(prplugin.Graph(given).rank().frame, expected)
        pd.testing.assert_frame_equal(prplugin.Graph.from_file(given).rank().frame, expected)
        assert prplugin.estimate(given).chosen.method == prplugin.Graph.load(given).estimate().chosen.method
    assert "source= applies to frames only, not to a saved graph: omit it." in error_message(
        lambda: prplugin.pagerank(folder, "src", "dst")
    )
    assert "directed=" in error_message(lambda: prplugin.Graph(folder, directed=False))
    assert "header= says how to read a file of edges, not a saved graph: omit it" in error_message(
        lambda: prplugin.Graph.from_file(folder, header=True)
    )
    assert "weight= does not apply to a saved graph" in error_message(lambda: prplugin.estimate(folder, weight="w"))


def test_replacing(folder, tmp_path):
    other = prplugin.Graph(random_edges(seed=3))
    old = prplugin.Graph.load(folder)
    expected = old.number_of_edges
    other.save(folder)
    assert old.rank().converged, "files that are mapped stay"
    assert old.number_of_edges == expected
    assert_same(prplugin.Graph.load(folder), other)
    link = tmp_path / "link"
    link.symlink_to(folder, target_is_directory=True)
    other.save(link)
    assert link.is_symlink()
    (tmp_path / "empty").mkdir()
    other.save(tmp_path / "empty")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "graph", "link"]


def test_nothing_else_is_replaced(tmp_path):
    graph = prplugin.Graph(random_edges())
    (tmp_path / "file").write_text("mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "manifest.json").write_text('{"format": "other"}')
    assert "is a file: a graph is saved to a new folder" in error_message(lambda: graph.save(tmp_path / "file"))
    assert "is a folder with other files" in error_message(lambda: graph.save(tmp_path / "mine"))
    with pytest.raises(FileNotFoundError) as caught:
        graph.save(tmp_path / "absent" / "graph")
    assert isinstance(caught.value, prplugin.PageRankError)
    assert f"cannot be saved to {tmp_path}/absent/graph: No such file or directory" in str(caught.value)
    for path, expected in [("a\0b", "embedded null"), (3, "not 3"), ("x" * 300, "name too long")]:
        assert expected in error_message(lambda path=path: graph.save(path))
        assert expected in error_message(lambda path=path: prplugin.Graph.load(path))
    long = tmp_path / ("x" * 250)
    graph.save(long)
    assert_same(prplugin.Graph.load(long), graph)
    shutil.rmtree(long)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine"]


def test_what_appears_while_a_graph_is_saved_is_not_replaced(tmp_path, monkeypatch):
    path, original = tmp_path / "saved", folders.save_array

    def save_array(file, array):
        path.mkdir(exist_ok=True)
        (path / "notes.txt").write_text("mine")
        original(file, array)

    monkeypatch.setattr("prplugin.folders.save_array", save_array)
    graph = prplugin.Graph(pd.DataFrame({"src": [1], "dst": [2]}))
    assert "is a folder with other files" in error_message(lambda: graph.save(path))
    assert [each.name for each in tmp_path.iterdir()] == ["saved"]
    assert (path / "notes.txt").read_text() == "mine"


def test_an_error_leaves_the_saved_graph(folder, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    unsaved = prplugin.Graph(edges_of(pd.Series([frozenset([k]) for k in range(4)], dtype=object)))
    for path in (folder.parent / "new", folder):
        message = error_message(lambda path=path: unsaved.save(path))
    assert "column 'vertex' of ids holds frozenset({0}) of type builtins.frozenset" in message
    assert "cannot be saved without pickle. Cast it, for instance to strings" in message

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    graph = prplugin.Graph(random_edges())
    monkeypatch.setattr("prplugin.folders.save_array", full)
    assert f"cannot be saved to {folder}: No space left on device" in error_message(lambda: graph.save(folder))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["graph"]


# --- damaged, foreign and hostile folders -----------------------------------------------------------------------------


def use(path):
    graph = prplugin.Graph.load(path)
    ranking = graph.rank()
    _ = ranking.frame
    graph.update(add=pd.DataFrame({"src": ["1"], "dst": ["2"], "w": [1.0], "t": [10**6]}))
    graph.rank()


def test_truncated_files(folder, tmp_path):
    for name in sorted(os.listdir(folder)):
        size = (folder / name).stat().st_size
        for length in (0, 1, 5, 64, size // 2, size - 2):
            other = tmp_path / "copy"
            shutil.copytree(folder, other)
            os.truncate(other / name, length)
            assert "Save the graph again" in error_message(lambda: prplugin.Graph.load(tmp_path / "copy"))
            if length > 64:
                assert "Save the graph again" in error_message(lambda: prplugin.pagerank(tmp_path / "copy"))
            shutil.rmtree(other)
        shutil.copytree(folder, other)
        (other / name).unlink()
        expected = "is no saved graph" if name == "manifest.json" else f"it lacks {name}"
        assert expected in error_message(lambda: prplugin.Graph.load(tmp_path / "copy"))
        shutil.rmtree(other)


def test_changed_files(folder, tmp_path):
    for name in sorted({*os.listdir(folder)} - {"manifest.json"}):
        other = tmp_path / "copy"
        shutil.copytree(folder, other)
        content = bytearray((other / name).read_bytes())
        content[-9] ^= 1
        (other / name).write_bytes(content)
        assert f"{name} has changed since it was saved" in error_message(lambda: use(tmp_path / "copy"))
        shutil.rmtree(other)


def test_every_byte_of_the_manifest_counts(folder):
    path = folder / "manifest.json"
    content = path.read_bytes()
    manifest = json.loads(content)
    for at, byte in enumerate(content):
        changed = content[:at] + bytes([byte ^ 1 << at % 8]) + content[at + 1 :]
        path.write_bytes(changed)
        with contextlib.suppress(prplugin.InvalidEdgesError):
            prplugin.Graph.load(folder)
            assert json.loads(changed) == manifest, f"byte {at}"  # 1E-05 for 1e-05
    path.write_text(json.dumps(manifest | {"options": manifest["options"] | {"directed": False}}))
    assert "manifest.json has changed since it was saved" in error_message(lambda: prplugin.Graph.load(folder))
    path.write_text(json.dumps(manifest))  # the same content
    assert prplugin.Graph.load(folder).rank().converged


def test_bytes_of_files_count(folder):
    """Headers and footers are parsed before checksums are compared."""
    for path in sorted(folder.glob("*.*")):
        content = path.read_bytes()
        ends = {*range(0, 160, 7), *range(len(content) - 60, len(content), 7), *range(0, len(content), 499)}
        for at in ends if path.name != "manifest.json" else ():
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
            with pytest.raises(prplugin.InvalidEdgesError, match=r"damaged saved graph.*Save the graph again"):
                use(folder)
        path.write_bytes(content)
    use(folder)


def test_foreign_footers_and_repeated_ids(folder):
    """The checksums are right, as no accident leaves them."""
    path = folder / "vertices.arrow"
    content = path.read_bytes()
    with pa.ipc.open_file(path) as file:
        table = file.read_all()
    for at in range(len(content) - 150, len(content), 3):
        resigned(folder, path, content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with contextlib.suppress(prplugin.InvalidEdgesError):
            use(folder)
    repeated = pa.table({"0": [*table.column(0).to_pylist()[:-1], "1"]}, schema=table.schema)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(repeated)
    resigned(folder, path, path.read_bytes())
    graph = prplugin.Graph.load(folder)
    assert "repeated" in error_message(lambda: graph.rank(among=["1"]))
    assert "repeated" in error_message(lambda: use(folder))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_what_is_no_file(folder):
    """A named pipe has no end: neither it nor what a link leads to is read."""
    for name in ("in_sources.npy", "manifest.json"):
        path = folder / name
        content = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        expected = "cannot be read: it is no regular file"
        assert expected in error_message(lambda: prplugin.Graph.load(folder))
        path.unlink()
        path.symlink_to("/dev/zero")
        assert expected in error_message(lambda: prplugin.Graph.load(folder))
        path.unlink()
        path.write_bytes(content)
    use(folder)


def test_files_that_are_read_may_change(folder):
    """Of files that are mapped, a changed one would end the process."""
    graph, expected = prplugin.Graph.load(folder, mapped=False), prplugin.Graph.load(folder).rank().to_dict()
    for path in folder.iterdir():
        os.truncate(path, 1)
    assert graph.rank().to_dict() == expected
    graph.update(add=pd.DataFrame({"src": ["1"], "dst": ["2"], "w": [1.0], "t": [10**6]}))
    assert graph.rank().converged
    assert "mapped must be True or False" in error_message(lambda: prplugin.Graph.load(folder, mapped=0))


def test_foreign_folders(tmp_path, folder):
    for path in (tmp_path, tmp_path / "absent", folder / "manifest.json"):
        assert "Graph.load reads the folders of Graph.save" in error_message(lambda p=path: prplugin.Graph.load(p))
    manifest = json.loads((folder / "manifest.json").read_text())
    for text, expected in [
        (json.dumps(manifest | {"version": 3}), "version 3, and this prplugin reads versions 1 and 2. Update prplugin"),
        (json.dumps(manifest | {"version": None}), "version None"),
        (json.dumps(manifest | {"format": "other"}), "has the format 'other'"),
        ("[]", "no object"),
        ("[" * 10**5, "nested too deeply"),
        ("\xff", "manifest.json is not what Graph.save wrote"),
    ]:
        (folder / "manifest.json").write_text(text, encoding="latin-1")
        assert expected in error_message(lambda: prplugin.Graph.load(folder))


def altered(folder, *keys, value):
    """Write the manifest with another value at the end of a path of keys, and its checksum."""
    manifest = json.loads((folder / "manifest.json").read_text())
    inner = manifest
    for key in keys[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    (folder / "manifest.json").write_text(json.dumps(signed(manifest)))


HOSTILE = [
    *((("graph", name), value) for name in ("n", "m") for value in (-1, 0, 7, 2**40, 2**62, 10**30, 1.5, "9", None)),
    *((("graph", name), value) for name in ("weighted", "listed") for value in (False, None, 1)),
    *((("graph", "extent"), value) for value in ([], [0.0, 1.0], ["a", "b"], [1.0, float("inf")], [1, 2, 3], None)),
    *((("graph", name), value) for name in ("roundings", "out_weight_depth") for value in (-1, "x", 2**70)),
    (("graph", "memory_space"), "elsewhere"),
    *((("files",), value) for value in ({}, [], None, {"../../etc/passwd": {"bytes": 1, "crc32": 0}})),
    *((("files",), {name: {"bytes": 0, "crc32": 0}}) for name in ("/etc/passwd", "a/b", "..", ".", "", "a\0b", "C:\\a")),
    (("options",), {}),
    *((("options",), value) for value in ([], None, {"unknown": 1}, {"directed": 3}, {"duplicates": "all"})),
    (("options", "source"), {"pickle": "gASVAAAAAAAAAAAu"}),
    (("options", "half_life"), {"numpy": ["|O", "00"]}),
    *((("clock",), value) for value in ([], [1, 2], "x", [{"fraction": [1, 0]}] * 6)),
    *((("last",), value) for value in ([], [2.0, 1, "last_ranks"], [0.5, "x", "last_ranks"], [0.5, 1], [0.5, 1, "out_weight"],
      [0.5, 1, "last_ranks", "in_sources"], [0.5, 1, "last_ranks", "last_dangling"], "x")),
    *((("vertices",), value) for value in ({}, [], None, {"names": ["vertex"]})),
    *((("vertices", "names"), value) for value in ([], ["a", "b"], [{"tuple": 3}], "vertex")),
    *((("vertices", "kinds"), value) for value in ([], ["integer"], [["string"]], None)),
    *((("vertices", "columns", 0), value) for value in (
        {}, None, {"dtype": "O"}, {"dtype": "int64"}, {"json": True}, {"category": {}, "ordered": True},
        {"dtype": "datetime64[ns, UTC]"}, {"dtype": "Int64"}, {"dtype": "period[x]"}, {"dtype": 3},
        {"string": "elsewhere", "nan": True},
    )),
    (("unused_weight",), {"date": ["never"]}), (("unused_weight",), {"date": "never"}),
    *(((key,), ...) for key in ("graph", "options", "clock", "last", "vertices", "weights", "files")),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "value"), HOSTILE, ids=str)
def test_hostile_manifest(folder, keys, value):
    altered(folder, *keys, value=value)
    with pytest.raises(prplugin.InvalidEdgesError, match="damaged saved graph"):
        use(folder)


def hostile_array(folder, name, change):
    """Change an array, and its checksum in the manifest."""
    path = folder / f"{name}.npy"
    array = np.load(path)
    array = change(array)
    np.save(path, array, allow_pickle=True)
    resigned(folder, path, path.read_bytes())


def resigned(folder, path, content):
    """Write a file of a saved graph, and its checksum to the manifest."""
    path.write_bytes(content)
    altered(folder, "files", path.name, value={"bytes": len(content), "crc32": zlib.crc32(content)})


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


ARRAYS = [
    *(("in_offsets", put(place, value)) for place in (0, 7, -1) for value in (-1, 10**12, 2**63 - 1)),
    *((name, put(3, value)) for name in ("in_sources", "source", "destination") for value in (-1, 80, 2**31 - 1)),
    *((name, put(3, value)) for name in ("in_weights", "weights", "out_weight", "last_ranks", "last_personalization")
      for value in (-1.0, np.nan, np.inf)),
    *(("references", put(3, value)) for value in (-(2**63), 2**63 - 1)),
    *((name, lambda array: array[:-1]) for name in ("in_offsets", "in_sources", "out_weight", "references")),
    *((name, lambda array: array.astype(">i8")) for name in ("in_offsets", "in_sources")),
    *((name, lambda array: array.reshape(1, -1)) for name in ("in_offsets", "in_sources")),
    *((name, lambda array: array.astype(np.float32)) for name in ("in_weights", "out_weight")),
    *((name, lambda array: array.astype(object)) for name in ("in_weights", "in_sources")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change"), ARRAYS)
def test_hostile_arrays(folder, name, change):
    hostile_array(folder, name, change)
    message = error_message(lambda: use(folder))
    assert "damaged saved graph" in message
    assert name in message


@pytest.mark.parametrize("use_it", [
    lambda graph: graph.rank(seeds=["1"]), lambda graph: graph.csr(), lambda graph: graph.csc(),
    lambda graph: graph.update(add=None, remove=None), lambda graph: graph.rank(method="numpy"),
])  # fmt: skip
def test_edges_are_checked_before_any_use(folder, use_it):
    hostile_array(folder, "in_sources", put(3, 10**9))
    hostile_array(folder, "source", put(3, 10**9))
    graph = prplugin.Graph.load(folder)
    assert "damaged saved graph" in error_message(lambda: use_it(graph))
    assert "damaged saved graph" in error_message(lambda: use_it(graph)), "again, not only once"


def test_hostile_header(folder):
    """The header of an array claims a huge shape, or more dimensions."""
    path = folder / "in_sources.npy"
    content = path.read_bytes()
    for shape in ("(999999999999999,)", "(9, 9)", "()", "(-1,)", "__import__('os')"):
        header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + content[128:])
        assert path.stat().st_size == len(content)
        assert "damaged saved graph" in error_message(lambda: prplugin.Graph.load(folder))


# --- memory spaces ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(unavailable_reason() is None, reason="there is a GPU")
def test_a_graph_of_the_gpu_is_loaded_to_the_host(folder):
    expected = prplugin.Graph.load(folder).rank().to_dict()
    altered(folder, "graph", "memory_space", value="device")
    altered(folder, "vertices", "in_cudf", value=True)
    with pytest.warns(
        prplugin.PageRankWarning, match="saved from the memory of a GPU, and is loaded to that of the host"
    ):
        graph = prplugin.Graph.load(folder)
    assert graph.rank().to_dict() == expected


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"weight": "w"}, {"directed": False}])
@pytest.mark.parametrize("ids", [int, str])
def test_graphs_of_the_gpu(tmp_path, ids, options):
    cudf = pytest.importorskip("cudf")
    edges = random_edges().astype({"src": ids, "dst": ids})
    graph = prplugin.Graph(cudf.from_pandas(edges), "src", "dst", **options)
    for loaded in (saved_and_loaded(graph, tmp_path), pickle.loads(pickle.dumps(graph)), copy.copy(graph)):
        assert type(loaded.vertices) is type(graph.vertices)
        assert loaded.rank().to_dict() == graph.rank().to_dict()
        loaded.update(add=cudf.from_pandas(edges.iloc[:3]))
        assert loaded.number_of_edges > graph.number_of_edges
        assert loaded.rank().error_bound <= 1e-6


@pytest.mark.gpu
def test_arrays_of_the_gpu(tmp_path):
    cupy = pytest.importorskip("cupy")
    graph = prplugin.Graph.from_csr(cupy.array([0, 1, 2, 3]), cupy.array([1, 0, 0]), vertices=["a", "b", "c"])
    loaded = saved_and_loaded(graph, tmp_path)
    assert isinstance(loaded.csr().indices, cupy.ndarray)
    assert loaded.rank().to_dict() == graph.rank().to_dict()


# --- processes --------------------------------------------------------------------------------------------------------


def _rank_in_process(path):
    return prplugin.Graph.load(path).rank().ranks.tobytes()


def test_processes_share_a_folder(folder):
    expected = prplugin.Graph.load(folder).rank().ranks.tobytes()
    graph = prplugin.Graph.load(folder)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert set(pool.map(_rank_in_process, [folder] * 2)) == {expected}
    assert graph.rank().ranks.tobytes() == expected


def _save_in_process(path, seed):
    graph = prplugin.Graph(random_edges(seed=seed))
    for _ in range(50):
        graph.save(path)


def test_several_save_to_one_path_and_others_load(tmp_path):
    path = tmp_path / "graph"
    graphs = [prplugin.Graph(random_edges(seed=seed)) for seed in (0, 1)]
    graphs[0].save(path)
    expected = {graph.rank().ranks.tobytes() for graph in graphs}
    failures, loads, done = [], [], threading.Event()

    def load():
        while not done.is_set():
            try:
                loads.append(prplugin.Graph.load(path).rank().ranks.tobytes())
            except Exception as error:
                failures.append(error)

    loader = threading.Thread(target=load)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        loader.start()
        other = pool.apply_async(_save_in_process, [path, 1])
        _save_in_process(path, 0)
        other.get()
    done.set()
    loader.join()
    assert not failures
    assert loads
    assert set(loads) <= expected
    assert prplugin.Graph.load(path).rank().ranks.tobytes() in expected
    assert os.listdir(tmp_path) == ["graph"]


def test_a_save_that_was_killed_between_its_renames(folder):
    left = folder.with_name(".graph.01234567.old")
    folder.rename(left)
    assert f"has left one at {left}: rename it back" in error_message(lambda: prplugin.Graph.load(folder))
    graph = prplugin.Graph.load(left)
    graph.save(folder)
    assert_same(prplugin.Graph.load(folder), graph)


def test_a_limit_of_the_size_of_files(tmp_path):
    resource = pytest.importorskip("resource")
    graph = prplugin.Graph(random_edges(5000, 60_000))
    graph.save(tmp_path / "graph")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        message = error_message(lambda: graph.save(tmp_path / "graph"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert f"the graph cannot be saved to {tmp_path}/graph: File too large." in message
    assert_same(prplugin.Graph.load(tmp_path / "graph"), graph)
    assert os.listdir(tmp_path) == ["graph"]


def test_rankings_of_loaded_graphs_do_not_need_the_folder(folder):
    graph = prplugin.Graph.load(folder)
    rankings = [graph.rank(), graph.rank(seeds=["1", "2"]), graph.rank(top=3, certified=True)]
    expected = [ranking.to_dict() for ranking in rankings]
    pickled = pickle.dumps((graph, [graph.rank(), graph.rank(seeds=["1", "2"]), graph.rank(top=3, certified=True)]))
    shutil.rmtree(folder)
    copied, again = pickle.loads(pickled)
    assert [ranking.to_dict() for ranking in again] == expected
    assert copied.rank().to_dict() == graph.rank().to_dict() == expected[0]
