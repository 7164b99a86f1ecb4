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
    with pytest.raises(InvalidOptionError, match=r"among='films' is no side of this graph: they are 'film', 'user'"):
        graph.rank(among="films")
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
