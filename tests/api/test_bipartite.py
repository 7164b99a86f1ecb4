"""Graphs whose two columns of endpoints hold ids of different vertices."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

import prplugin
from prplugin import InvalidOptionError


def ratings(ids="integer", m=200):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"user": rng.integers(0, 30, m), "film": rng.integers(-5, 20, m), "stars": rng.random(m)})
    if ids == "string":
        frame["user"], frame["film"] = ("v" + frame[end].astype(str) for end in ("user", "film"))
    return frame


def distinct(frame):
    """Return the same edges with ids that tell the sides apart."""
    return frame.assign(**{end: end + "/" + frame[end].astype(str) for end in ("user", "film")})


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize(
    "options",
    [{}, {"directed": False}, {"weight": "stars"}, {"directed": False, "duplicates": "last", "weight": "stars"}],
    ids=["plain", "undirected", "weighted", "last"],
)
def test_ids_of_both_columns_are_different_vertices(ids, options):
    frame = ratings(ids)
    found = frame.pagerank("user", "film", bipartite=True, tol=1e-9, **options)
    expected = distinct(frame).pagerank("user", "film", tol=1e-9, **options).set_index("vertex")["pagerank"]
    assert list(found.columns) == ["side", "vertex", "pagerank"]
    for side in ("user", "film"):
        own = found[found["side"] == side]
        order = np.sort(frame[side].unique()) if ids == "integer" else frame[side].unique()
        assert own["vertex"].tolist() == order.tolist()
        assert np.allclose(own["pagerank"], expected[side + "/" + own["vertex"].astype(str)], atol=2e-9)
    assert found["side"].tolist() == sorted(found["side"], reverse=True)  # sources come first
    assert len(found) == len(expected)


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize("kind", ["polars", "dask", "list", "parquet", "csv"])
def test_other_libraries_and_files(kind, ids, tmp_path):
    frame, path = ratings(ids), tmp_path / f"edges.{kind}"
    frame.to_parquet(path, row_group_size=50) if kind == "parquet" else frame.to_csv(path, index=False)
    given = {
        "polars": lambda: pl.from_pandas(frame),
        "dask": lambda: dd.from_pandas(frame, npartitions=3, sort=False),
        "list": lambda: [frame[:90], frame[90:]],
    }.get(kind, lambda: path)()
    found = prplugin.pagerank(given, "user", "film", bipartite=True)
    found = found.compute() if hasattr(found, "compute") else found
    found = found.to_pandas() if kind == "polars" else found
    expected = frame.pagerank("user", "film", bipartite=True)
    assert found.drop(columns="pagerank").to_dict("list") == expected.drop(columns="pagerank").to_dict("list")
    assert np.allclose(found["pagerank"], expected["pagerank"], atol=2e-6)


def test_vertices_with_their_side(tmp_path):
    frame = ratings()
    graph = prplugin.Graph(frame, "user", "film", bipartite=True, directed=False)
    every = graph.rank(personalization=[("user", 3)])
    films = graph.rank(personalization=pd.DataFrame({"side": ["user"], "vertex": [3]}), among="film").frame
    assert films["vertex"].tolist() == sorted(set(frame["film"]))
    assert set(films["side"]) == {"film"}
    assert every["film", 7] == pytest.approx(films.set_index("vertex")["pagerank"][7], abs=2e-6)
    seen = set(frame["film"][frame["user"] == 3])
    unseen = graph.rank(seeds=[("user", 3)], among="film", exclude="neighbors").frame["vertex"]
    assert set(unseen) == set(frame["film"]) - seen
    for what in ("among", "exclude"):
        with pytest.raises(InvalidOptionError, match=rf"{what}='films' is no side of this graph: .* 'film', 'user'"):
            graph.rank(**{what: "films"})
    assert graph.rank(exclude="user").frame.equals(graph.rank(among="film").frame)
    assert set(graph.rank(seeds=[("user", 3)], exclude="user").frame["vertex"]) == set(frame["film"])
    with pytest.raises(InvalidOptionError, match=r"exclude must be a list.* not 'user'"):
        prplugin.Graph(frame, "user", "film").rank(seeds=[3], exclude="user")
    parts = graph.rank().contributions(("film", 7))
    assert set(parts["side"][parts["kind"] == "edge"]) == {"user"}
    graph.save(tmp_path / "graph")
    loaded = prplugin.Graph.load(tmp_path / "graph")
    assert loaded.rank(among="user").frame["vertex"].tolist() == sorted(set(frame["user"]))
    for changed in (graph, loaded):
        changed.update(add=pd.DataFrame({"user": [500], "film": [500]}), remove=frame[["user", "film"]][:1])
        added = pd.DataFrame({"user": [500], "film": [500]})
        fresh = pd.concat([frame[1:], added]).pagerank("user", "film", bipartite=True, directed=False)
        found = changed.rank()
        for side, vertex, rank in fresh.itertuples(index=False):
            assert found[side, vertex] == pytest.approx(rank, abs=2e-6)


def test_arguments_that_do_not_go_together():
    frame = ratings()
    for given in ({"by": "stars"}, {"vertices": [1]}):
        with pytest.raises(InvalidOptionError, match="is not supported with bipartite=True"):
            frame.pagerank("user", "film", bipartite=True, **given)
    with pytest.raises(InvalidOptionError, match="adds a column 'side', and the vertices have one"):
        frame.assign(side="a").pagerank(["side", "user"], ["side", "film"], bipartite=True)


def rectangular():
    dense = np.zeros((5, 3))
    dense[[0, 0, 1, 2, 4], [0, 2, 2, 1, 1]] = [1.0, 2, 1, 0.5, 3]
    return dense  # row 3 has no entry


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_rectangular_matrices(layout, directed):
    sparse = pytest.importorskip("scipy.sparse")
    dense, given = rectangular(), getattr(sparse, f"{layout}_array")(rectangular())
    rows, columns = np.nonzero(dense)
    edges = pd.DataFrame({"src": rows, "dst": columns, "weight": dense[rows, columns]})
    expected = distinct(edges.rename(columns={"src": "user", "dst": "film"}))
    ends = {"user": "user/", "film": "film/"}
    every = [
        "user/3",
        *(f"{end}{at}" for end, count in zip(ends.values(), dense.shape, strict=True) for at in range(count)),
    ]
    expected = expected.pagerank("user", "film", "weight", directed=directed, vertices=every).set_index("vertex")
    graph = prplugin.Graph.from_csr(given, bipartite=True, directed=directed)
    found = graph.rank().frame
    assert found["side"].tolist() == ["src"] * 5 + ["dst"] * 3
    assert found["vertex"].tolist() == [*range(5), *range(3)]
    names = found["side"].map({"src": "user/", "dst": "film/"}) + found["vertex"].astype(str)
    assert np.allclose(expected["pagerank"][names], found["pagerank"], atol=2e-6)
    pd.testing.assert_frame_equal(prplugin.pagerank(given, bipartite=True, directed=directed), found)
    assert graph.rank(among="dst").frame["vertex"].tolist() == [0, 1, 2]
    graph.update(add=pd.DataFrame({"src": [3], "dst": [7], "weight": [1.0]}))
    assert len(graph.rank()) == 9
    with pytest.raises(prplugin.InvalidEdgesError, match=r"shape \(5, 3\).*bipartite=True"):
        prplugin.Graph.from_csr(given)


@pytest.mark.parametrize("kind", ["integer", "string"])
def test_wide_frames_and_ids_of_rectangular_matrices(kind):
    sparse = pytest.importorskip("scipy.sparse")
    ids = {"integer": ([30, 10, 20, 50, 40], [3, 1, 2]), "string": (list("abcde"), list("cab"))}[kind]
    wide = pd.DataFrame(rectangular(), index=ids[0], columns=ids[1])
    found = prplugin.Graph.from_csr(wide, bipartite=True, directed=False).rank()
    long = wide.stack().rename_axis(["src", "dst"]).reset_index(name="w").query("w > 0")
    expected = long.pagerank(weight="w", bipartite=True, directed=False)
    for side, vertex, rank in prplugin.pagerank(long, weight="w", bipartite=True, directed=False).itertuples(
        index=False
    ):
        assert found[side, vertex] > 0
        assert rank > 0
    order = [sorted(each) if kind == "integer" else each for each in ids]
    assert found.frame["vertex"].tolist() == [vertex for each in order for vertex in each]
    assert len(expected) == len(found) - 1  # without the empty row
    matrix = sparse.csr_array(rectangular())
    same = prplugin.Graph.from_csr(matrix, vertices=ids, bipartite=True, directed=False).rank()
    pd.testing.assert_frame_equal(same.frame, found.frame)
    for given, message in (
        (ids[0], "must be a tuple of two"),
        ((ids[0][:4], ids[1]), "5 distinct ids are needed, one for each of the rows"),
        ((ids[0], ids[1][:1] * 3), "3 distinct ids are needed, one for each of the columns"),
    ):
        with pytest.raises(InvalidOptionError, match=message):
            prplugin.Graph.from_csr(matrix, vertices=given, bipartite=True)
    with pytest.raises(InvalidOptionError, match="directed=False needs bipartite=True"):
        prplugin.Graph.from_csr(matrix, directed=False)
    with pytest.raises(InvalidOptionError, match="bipartite=True supports sparse matrices and frames"):
        prplugin.Graph.from_csr([0, 1], [0], bipartite=True)
    with pytest.raises(prplugin.InvalidEdgesError, match="name a vertex twice"):
        prplugin.Graph.from_csr(pd.concat([wide, wide]), bipartite=True)
