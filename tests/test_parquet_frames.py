"""Parquet files as edges: row group by row group, with what the whole table gives; and how much the host holds."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import prplugin
from prplugin.frames import parquet

ROWS, GROUP = 2_000, 170


def edges() -> pd.DataFrame:
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


@pytest.fixture(params=["few edges", "many edges"])
def both_ways(request, monkeypatch):
    """Edges are put in their places row by row, or by target."""
    if request.param == "many edges":
        monkeypatch.setattr(parquet, "COMPILED_FROM", 0)


def assert_same(found: pa.Table, expected: pa.Table, names=("vertex",)) -> None:
    assert isinstance(found, pa.Table)
    for name in names:
        assert found.column(name).to_pylist() == expected.column(name).to_pylist()
    assert np.abs(found.column("pagerank").to_numpy() - expected.column("pagerank").to_numpy()).sum() <= 2e-11


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_row_groups_give_what_the_table_gives(tmp_path, kind, arguments):
    frame = edges()
    frame = frame.assign(src=kind(frame["src"]), dst=kind(frame["dst"]))
    frame.to_parquet(tmp_path / "edges.parquet", row_group_size=GROUP)
    expected = prplugin.pagerank(pq.read_table(tmp_path / "edges.parquet"), tol=1e-11, **arguments)
    for given in (tmp_path / "edges.parquet", str(tmp_path / "edges.parquet"), ds.dataset(tmp_path / "edges.parquet")):
        assert_same(prplugin.pagerank(given, tol=1e-11, **arguments), expected)


@pytest.mark.usefixtures("both_ways")
def test_more_vertices_and_several_columns(tmp_path):
    frame = edges().assign(bank=lambda rows: "b" + (rows["src"] % 3).astype(str), to="b1")
    path = tmp_path / "edges.parquet"
    frame.to_parquet(path, row_group_size=GROUP)
    table = pq.read_table(path)
    for arguments in ({"vertices": [5, 10**12, 7]}, {"personalization": {int(frame["dst"][3]): 1.0}}):
        assert_same(prplugin.pagerank(path, tol=1e-11, **arguments), prplugin.pagerank(table, tol=1e-11, **arguments))
    ends = (["bank", "src"], ["to", "dst"])
    assert_same(
        prplugin.pagerank(path, *ends, tol=1e-11), prplugin.pagerank(table, *ends, tol=1e-11), names=("bank", "src")
    )


def test_the_files_of_a_folder_are_one_after_the_other(tmp_path):
    frame = edges()
    for part in range(4):
        frame.iloc[part * 500 : (part + 1) * 500].to_parquet(tmp_path / f"{part}.parquet")
    graph = prplugin.Graph(tmp_path)
    assert graph.number_of_edges == ROWS
    assert_same(graph.rank(tol=1e-11).frame, prplugin.pagerank(pa.table(frame), tol=1e-11))


def test_no_rows_are_no_vertices(tmp_path):
    edges().iloc[:0].to_parquet(tmp_path / "edges.parquet")
    assert prplugin.pagerank(tmp_path / "edges.parquet").num_rows == 0
    assert prplugin.pagerank(tmp_path / "edges.parquet", vertices=[4, 5]).column("vertex").to_pylist() == [4, 5]


@pytest.mark.usefixtures("both_ways")
def test_a_graph_of_row_groups_has_its_rows(tmp_path):
    frame = edges()
    frame.to_parquet(tmp_path / "edges.parquet", row_group_size=GROUP)
    one, other = prplugin.Graph(tmp_path / "edges.parquet", weight="w"), prplugin.Graph(frame, weight="w")
    for compressed, expected in ((one.csc(), other.csc()), (one.csr(), other.csr())):
        assert (compressed.offsets == expected.offsets).all()
        for row in range(one.number_of_vertices):
            its = slice(expected.offsets[row], expected.offsets[row + 1])
            found, wanted = (
                sorted(zip(c.indices[its].tolist(), c.weights[its].tolist(), strict=True))
                for c in (compressed, expected)
            )
            assert found == wanted


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(prplugin.InvalidEdgesError, match=r"the path 'ann', where there is no file\."):
        prplugin.pagerank("ann")
    with pytest.raises(prplugin.InvalidEdgesError, match="where no Parquet can be read"):
        prplugin.pagerank(Path(__file__))
    pyarrow.csv.write_csv(pa.table(edges()), tmp_path / "edges.csv")
    with pytest.raises(prplugin.InvalidEdgesError, match="not of Parquet files"):
        prplugin.pagerank(ds.dataset(tmp_path / "edges.csv", format="csv"))
    frame = edges()
    frame.to_parquet(tmp_path / "edges.parquet")
    with pytest.raises(prplugin.ColumnNotFoundError, match="no column 'clicks'"):
        prplugin.pagerank(tmp_path / "edges.parquet", weight="clicks")
    frame.loc[3 * GROUP + 4, "w"] = -1.0
    frame.to_parquet(tmp_path / "edges.parquet", row_group_size=GROUP)
    message = r"in the row group that begins with row 510, .*: column 'w' has 1 value below 0: -1\.0 in row 4 "
    with pytest.raises(prplugin.InvalidEdgesError, match=message):
        prplugin.pagerank(tmp_path / "edges.parquet", weight="w")


def test_ids_that_no_integer_type_holds(tmp_path):
    frame = pd.DataFrame({"src": np.array([1, 2**63 + 1], np.uint64), "dst": np.array([-1, 1])})
    frame.to_parquet(tmp_path / "edges.parquet", row_group_size=1)
    with pytest.raises(prplugin.InvalidEdgesError, match="no one integer type holds"):
        prplugin.pagerank(tmp_path / "edges.parquet")


def test_the_host_holds_a_position_an_edge(tmp_path, monkeypatch):
    """Arrow's memory for a row group is not Python's, and is counted by Arrow."""
    monkeypatch.setattr(parquet, "COMPILED_FROM", 0)
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


def test_many_seeds(tmp_path):
    pq.write_table(pa.table({"src": [1, 2, 3], "dst": [2, 1, 1]}), tmp_path / "edges.parquet")
    many = prplugin.pagerank(tmp_path / "edges.parquet", seeds=[3, 1], top=2)
    expected = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}).pagerank(seeds=[3, 1], top=2)
    pd.testing.assert_frame_equal(many.to_pandas(), expected)
