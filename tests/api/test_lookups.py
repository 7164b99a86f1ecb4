"""Lookups in rankings by vertex and by seed."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from shown_text import error_message

import prplugin

IDS = {
    "strings": ["a", "b", "c"],
    "integers": [3, 1, 2],
    "big integers": [2**64 - 1, 5, 2**63],
    "dates": [datetime.date(2026, 1, day) for day in (1, 2, 3)],
    "booleans": [True, False],
}
LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas of Arrow types": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
    "nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "polars": pl.DataFrame,
    "pyarrow": lambda data: pa.Table.from_pandas(pd.DataFrame(data)),
    "narwhals": lambda data: pytest.importorskip("narwhals").from_native(pl.DataFrame(data)),
}


def data_of(ids):
    return {"src": [*ids, ids[-1]], "dst": [*ids[1:], ids[0], ids[-1]]}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_ranks_by_vertex(library, kind):
    ids = IDS[kind]
    graph = prplugin.Graph(LIBRARIES[library](data_of(ids)))
    ranking = graph.rank()
    ranks = ranking.to_dict()
    assert set(ranks) == set(ids)
    assert list(ranks) == list(ranking)
    assert list(ranks.values()) == ranking.ranks.tolist()
    assert len(ranking) == len(ids) == graph.number_of_vertices
    for vertex in ids:
        assert vertex in ranking
        assert ranking[vertex] == ranks[vertex]
        assert type(ranking[vertex]) is float
    for other in ("x", 77, -1, 2**70, 1.5, float("nan"), None, [ids[0]], {ids[0]}, (ids[0],), pd.NaT):
        assert other not in ranking
        with pytest.raises(KeyError):
            ranking[other]
    few = graph.rank(top=1)
    best = max(ranking, key=ranks.get)
    assert few.to_dict() == {best: ranks[best]}
    assert best in few
    assert len(few) == 1
    rankings = graph.rank(seeds=[ids[1], ids[0]])
    assert list(rankings) == [ids[1], ids[0]]
    assert set(rankings[ids[0]]) == set(ids)
    among = graph.rank(among=[ids[1]])
    assert among.to_dict() == {ids[1]: ranks[ids[1]]}
    assert ids[0] not in among


def test_equal_keys_are_equal_vertices():
    ranking = prplugin.Graph(pd.DataFrame(data_of([3, 1, 2]))).rank()
    assert ranking[np.int8(3)] == ranking[3] == ranking[3.0]
    days = prplugin.Graph(
        pd.DataFrame(data_of([pd.Timestamp(f"2026-01-0{day}", tz="UTC") for day in (1, 2, 3)]))
    ).rank()
    assert days[pd.Timestamp("2026-01-01 01:00", tz="Europe/Berlin")] == days[pd.Timestamp("2026-01-01", tz="UTC")]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_beyond_the_years_of_python_are_those_of_numpy(library, zone):
    times = pa.array([10**15, 5000, 7000], pa.timestamp("ms", zone))
    edges: Any = pa.table({"src": times, "dst": times.take(pa.array([1, 2, 0]))})
    if library != "pyarrow":
        edges = edges.to_pandas(types_mapper=pd.ArrowDtype) if library == "pandas" else pl.from_arrow(edges)
    ranking = prplugin.Graph(edges).rank()
    far = np.datetime64(10**15, "ms")
    assert ranking[far] == ranking.to_dict()[far] == pytest.approx(1 / 3)
    assert str(far) in repr(ranking)
    near = datetime.datetime(1970, 1, 1, 0, 0, 5, tzinfo=None if zone is None else datetime.UTC)
    assert ranking[near] == pytest.approx(1 / 3)
    assert len(ranking.to_dict()) == 3


def test_vertices_of_several_columns():
    data = {"a": [1, 2, 2], "b": ["x", "y", "x"], "c": [2, 2, 1], "d": ["y", "x", "x"]}
    for frame in (pd.DataFrame(data), pl.DataFrame(data), pa.table(data)):
        graph = prplugin.Graph(frame, ["a", "b"], ["c", "d"])
        ranking = graph.rank()
        assert list(ranking) == [(1, "x"), (2, "y"), (2, "x")]
        assert ranking[1, "x"] == ranking.to_dict()[1, "x"]
        assert 1 not in ranking
        rankings = graph.rank(seeds=[(2, "y"), (1, "x")])
        assert list(rankings) == [(2, "y"), (1, "x")]
        assert rankings[1, "x"] == pytest.approx(graph.rank(personalization=[(1, "x")]).to_dict(), abs=2e-6)
        numbered = graph.rank(seeds=[{(2, "y"): 1}, {(1, "x"): 1}])
        assert numbered.to_dict() == {0: rankings[2, "y"], 1: rankings[1, "x"]}


@pytest.mark.parametrize("library", LIBRARIES)
def test_ranks_by_seed(library):
    graph = prplugin.Graph(LIBRARIES[library](data_of(["a", "b", "c"])))
    rankings = graph.rank(seeds=["c", "a"])
    assert (len(rankings), list(rankings), "a" in rankings, "b" in rankings, [] in rankings) == (
        2, ["c", "a"], True, False, False,
    )  # fmt: skip
    for seed in rankings:
        np.testing.assert_allclose(
            list(rankings[seed].values()), list(graph.rank(personalization=[seed]).to_dict().values()), atol=2e-6
        )
    assert rankings.to_dict() == {"c": rankings["c"], "a": rankings["a"]}
    assert "'b' is not among the 2 seeds of these rankings, which are like 'c'" in error_message(lambda: rankings["b"])
    top = graph.rank(seeds=["c", "a"], top=1)
    assert {seed: len(top[seed]) for seed in top} == {"c": 1, "a": 1}
    frame = LIBRARIES[library]({"seed": ["u", "u", "v"], "vertex": ["a", "b", "c"]})
    assert list(graph.rank(seeds=frame, among=["b"])["v"]) == ["b"]


def test_errors():
    ranking = prplugin.Graph(pd.DataFrame(data_of(["a", "b", "c"]))).rank()
    with pytest.raises(prplugin.VertexNotFoundError) as caught:
        ranking["d"]
    assert isinstance(caught.value, KeyError)
    assert str(caught.value) == "'d' is not among the 3 vertices of this ranking, which are like 'a'."
    assert "For the ranks of several, pass among= to rank." in error_message(lambda: ranking[["a", "b"]])
    empty = prplugin.Graph(pd.DataFrame({"src": [], "dst": []})).rank()
    assert (len(empty), bool(empty), empty.to_dict(), 1 in empty) == (0, True, {}, False)
    assert "1 is not among the 0 vertices of this ranking." in error_message(lambda: empty[1])


def test_scale_and_dtype():
    graph = prplugin.Graph(pd.DataFrame(data_of([3, 1, 2])))
    ranking = graph.rank(scale="n", dtype="float32")
    assert ranking[3] == float(ranking.ranks[2])
    assert sum(ranking.to_dict().values()) == pytest.approx(3, abs=1e-5)


@pytest.mark.parametrize("options", [{}, {"top": 2}, {"among": [1, 2, 3]}])
def test_seeds_that_are_left_out_are_not_in_their_rankings(options):
    edges = pd.DataFrame({"src": [1, 2, 3, 1, 4, 3], "dst": [2, 3, 1, 3, 1, 4]})
    graph = prplugin.Graph(edges)
    rankings = graph.rank(seeds=[1, 4], exclude="seeds", **options)
    for seed in (1, 4):
        alone = graph.rank(personalization=[seed], exclude=[seed], **options)
        assert seed not in rankings[seed]
        assert rankings[seed].keys() == alone.to_dict().keys()
        assert rankings[seed] == pytest.approx(alone.to_dict(), abs=2e-6)
