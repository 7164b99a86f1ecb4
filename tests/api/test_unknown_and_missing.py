"""Vertices that a graph lacks, rows without an endpoint, and the forms in which people hold vertices and values."""

from __future__ import annotations

import copy

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from shown_text import error_message, explanation

import prplugin

EDGES = pd.DataFrame({"src": list("abcabd"), "dst": list("bcacad")})
GRAPH = prplugin.Graph(EDGES)
GAPS = pd.DataFrame({"src": ["a", "b", None, "a", "c"], "dst": ["b", None, "c", "a", "b"], "w": [1, 2, 3, 4, -1.0]})


def converted(library, frame):
    if library == "pandas":
        return frame
    pl = pytest.importorskip("polars")
    return {"polars": pl.from_pandas, "pyarrow": lambda frame: pl.from_pandas(frame).to_arrow()}[library](frame)


def same(one, other):
    assert one.to_dict() == other.to_dict()


# --- unknown vertices -------------------------------------------------------------------------------------------------

WITH_UNKNOWN = {
    "personalization": (["a", "z", "y"], ["a"]),
    "dangling": ({"a": 1, "z": 3}, {"a": 1}),
    "nstart": (pd.DataFrame({"vertex": ["z", "a"], "values": [1, 2]}), {"a": 2}),
    "seeds": (["z", "b", "a"], ["b", "a"]),
    "among": (pd.Series(["c", "z", "a"]), ["c", "a"]),
}


@pytest.mark.parametrize("argument", WITH_UNKNOWN)
def test_unknown_vertices_are_refused_or_ignored_and_counted(argument):
    given, known = WITH_UNKNOWN[argument]
    assert "pass unknown='ignore'" in error_message(lambda: GRAPH.rank(**{argument: given}))
    options = {"tol": 0, "max_iter": 3, "stop": "delta"} if argument == "nstart" else {}
    found = GRAPH.rank(**{argument: given}, unknown="ignore", **options)
    same(found, GRAPH.rank(**{argument: known}, **options))
    count = len(given) - len(known) if argument != "nstart" else 1
    assert found.unknown == {argument: count}
    assert f"ignored: {count} vert" in explanation(found)
    assert GRAPH.rank(unknown="ignore").unknown == {}
    pd.testing.assert_frame_equal(EDGES.pagerank(**{argument: given}, unknown="ignore", **options), found.frame)


def test_unknown_vertices_of_exclude_are_always_ignored():
    found = GRAPH.rank(exclude=["z", "a", "y"])
    same(found, GRAPH.rank(exclude=["a"]))
    assert found.unknown == {"exclude": 2}
    assert GRAPH.rank(exclude=["z"]).frame["vertex"].tolist() == GRAPH.rank().frame["vertex"].tolist()
    same(GRAPH.rank(seeds=["a"], exclude=["z", "seeds"]), GRAPH.rank(seeds=["a"], exclude="seeds"))
    assert "kind integer" in error_message(lambda: GRAPH.rank(exclude=[1]))


@pytest.mark.parametrize("argument", ["personalization", "dangling", "nstart", "seeds"])
def test_unknown_vertices_alone_are_refused(argument):
    message = error_message(lambda: GRAPH.rank(**{argument: ["z", "y"]}, unknown="ignore"))
    assert message.startswith(f"{argument} names 2 vertices")
    assert "the graph has none of them" in message


def test_seeds_without_known_vertices_are_left_out():
    lists = GRAPH.rank(seeds=[["a", "z"], ["z"], {"b": 1}], unknown="ignore")
    assert list(lists) == [0, 2]
    assert lists.unknown == {"seeds": 2}
    expected = GRAPH.rank(seeds=["a", "b"])
    assert lists.ranks.tolist() == expected.ranks.tolist()
    frame = pd.DataFrame({"seed": ["x", "y", "y", "x"], "vertex": ["a", "z", "z2", "z"], "values": [1, 2, 3, 4]})
    of_frame = GRAPH.rank(seeds=frame, unknown="ignore")
    assert list(of_frame) == ["x"]
    assert of_frame["x"] == GRAPH.rank(seeds=["a"])["a"]


def test_known_vertices_that_are_repeated_are_refused_beside_unknown_ones():
    message = error_message(lambda: GRAPH.rank(personalization=["z", "b", "a", "b"], unknown="ignore"))
    assert message.startswith("personalization names 1 vertex more than once: 'b'.")


def test_unknown_vertices_of_a_certified_order():
    found = GRAPH.rank(personalization=["a", "z"], dangling={"b": 1, "y": 1}, top=2, certified=True, unknown="ignore")
    same(found, GRAPH.rank(personalization=["a"], dangling={"b": 1}, top=2, certified=True))
    assert found.unknown == {"personalization": 1, "dangling": 1}
    assert len(GRAPH.rank(among=["z"], unknown="ignore")) == 0


# --- rows without an endpoint -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_rows_without_an_endpoint_are_dropped_on_request(library, tmp_path):
    frame = converted(library, GAPS[:4])
    assert "To drop such rows pass missing='drop'." in error_message(lambda: prplugin.pagerank(frame))
    expected = GAPS[:4].dropna().pagerank(weight="w").to_dict("list")
    for given in (frame, [frame, frame][:1]):
        found = prplugin.pagerank(given, weight="w", missing="drop")
        assert prplugin.Graph(given, weight="w", missing="drop").number_of_edges == 2
        assert [list(found[name].to_pylist() if library == "pyarrow" else found[name]) for name in expected] == list(
            expected.values()
        )
    both = prplugin.Graph([frame, frame], missing="drop")
    assert (both.number_of_edges, both.number_of_vertices) == (4, 2)
    GAPS[:4].to_parquet(tmp_path / "gaps.parquet")
    pd.testing.assert_frame_equal(
        prplugin.pagerank(tmp_path / "gaps.parquet", missing="drop"), GAPS[:4].dropna().pagerank(), check_dtype=False
    )


def test_errors_beside_dropped_rows_count_the_rows_of_the_frame():
    text = "column 'w' has 1 value below 0: -1.0 in row 4"
    assert text in error_message(lambda: GAPS.pagerank(weight="w", missing="drop"))
    timed = GAPS.assign(at=[1.0, 2, 3, np.nan, 5])
    assert "in row 3 " in error_message(lambda: timed.pagerank(time="at", half_life=1, missing="drop"))
    before = GAPS.copy()
    GAPS.pagerank(missing="drop")
    pd.testing.assert_frame_equal(GAPS, before)
    assert "missing must be one of 'error', 'drop'" in error_message(lambda: GAPS.pagerank(missing="skip"))


def test_a_graph_drops_rows_of_updates_as_of_its_frame():
    graph = prplugin.Graph(GAPS[:4], missing="drop")
    graph.update(add=GAPS[:4])
    assert graph.number_of_edges == 4
    copy.copy(graph).update(remove=GAPS[1:4])
    with pytest.raises(prplugin.InvalidEdgesError, match="has 1 null"):
        prplugin.Graph(GAPS[:1]).update(add=GAPS)


def test_dask_frames_without_endpoints():
    frame = pytest.importorskip("dask.dataframe").from_pandas(GAPS[:4], npartitions=2)
    found = frame.pagerank(missing="drop").compute()
    assert found["pagerank"].tolist() == GAPS[:4].dropna().pagerank()["pagerank"].tolist()


# --- forms of arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("argument", ["personalization", "dangling", "nstart", "seeds", "among", "exclude", "vertices"])
def test_frames_of_one_column_are_vertices(argument, library):
    frame = converted(library, pd.DataFrame({"any": ["b", "a"]}))
    if argument == "vertices":
        frame = converted(library, pd.DataFrame({"any": ["z"]}))
        assert prplugin.Graph(EDGES, vertices=frame).number_of_vertices == 5
        return
    options = {"tol": 0, "max_iter": 2, "stop": "delta"}
    same(GRAPH.rank(**{argument: frame}, **options), GRAPH.rank(**{argument: ["b", "a"]}, **options))


def test_frames_of_vertices_of_several_columns():
    edges = EDGES.assign(k="x")
    graph = prplugin.Graph(edges, ["k", "src"], ["k", "dst"])
    vertices = pd.DataFrame({"src": ["b", "a"], "k": "x"})
    tuples = [("x", "b"), ("x", "a")]
    same(graph.rank(personalization=vertices), graph.rank(personalization=tuples))
    same(graph.rank(seeds=vertices), graph.rank(seeds=tuples))
    values = pd.DataFrame({"kind": ["x", "x"], "id": ["a", "b"], "n": [1, 3]})
    same(
        graph.rank(personalization=(values, ["kind", "id"], "n")),
        graph.rank(personalization={("x", "a"): 1, ("x", "b"): 3}),
    )
    assert "1 column of ids" in error_message(lambda: graph.rank(personalization=(values, "id", "n")))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_rankings_and_their_frames_are_values(library):
    edges = converted(library, EDGES)
    ranking = prplugin.Graph(edges).rank(alpha=0.5)
    by_vertex = ranking.to_dict()
    for argument in ("personalization", "dangling", "nstart"):
        expected = GRAPH.rank(**{argument: by_vertex}, tol=0, max_iter=2, stop="delta")
        for given in (ranking, ranking.frame):
            found = GRAPH.rank(**{argument: given}, tol=0, max_iter=2, stop="delta")
            assert found.ranks.tolist() == expected.ranks.tolist()
    top = prplugin.Graph(edges).rank(alpha=0.5, top=2)
    same(GRAPH.rank(personalization=top), GRAPH.rank(personalization=top.to_dict()))
    seeded = prplugin.Graph(edges).rank(seeds=["a", "b"])
    assert GRAPH.rank(seeds=seeded).ranks.tolist() == GRAPH.rank(seeds=[*seeded.to_dict().values()]).ranks.tolist()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_two_named_columns_are_values(library):
    frame = converted(library, pd.DataFrame({"id": ["a", "b"], "other": [7, 7], "score": [1.0, 3.0]}))
    for argument in ("personalization", "dangling"):
        same(GRAPH.rank(**{argument: (frame, "id", "score")}), GRAPH.rank(**{argument: {"a": 1, "b": 3}}))
    same(GRAPH.rank(seeds=[(frame, "id", "score"), ["c"]]), GRAPH.rank(seeds=[{"a": 1, "b": 3}, {"c": 1}]))
    assert "has no column 'rank'" in error_message(lambda: GRAPH.rank(personalization=(frame, "id", "rank")))


def test_frames_of_two_unknown_columns_are_refused_with_what_to_pass():
    frame = pd.DataFrame({"who": ["a"], "n": [1]})
    assert "personalization=(personalization, 'who', 'n')" in error_message(lambda: GRAPH.rank(personalization=frame))
    indexed = pd.DataFrame({"pagerank": [1.0]}, index=pd.Index(["a"], name="vertex"))
    assert "'vertex' is a level of its index" in error_message(lambda: GRAPH.rank(personalization=indexed))


NAMED = {
    "dict": {"q1": ["a", "b"], "q2": {"c": 2.0}},
    "dict of Series": {"q1": pd.Series([1, 1], index=["b", "a"]), "q2": pd.Series([5], index=["c"])},
    "Series of lists": pd.Series([["b", "a"], ["c"]], index=["q1", "q2"]),
    "Series of dicts": pd.Series([{"a": 2, "b": 2}, {"c": 1}], index=["q1", "q2"]),
    "grouped": pd.DataFrame({"q": ["q1", "q2", "q1"], "v": ["a", "c", "b"]}).groupby("q")["v"].apply(list),
    "arrays": pd.DataFrame({"q": ["q1", "q2", "q1"], "v": ["a", "c", "b"]}).groupby("q")["v"].unique(),
    "Arrow lists": pd.Series([["a", "b"], ["c"]], index=["q1", "q2"]).convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("name", NAMED)
def test_seeds_by_name(name):
    found = GRAPH.rank(seeds=NAMED[name], top=2)
    expected = GRAPH.rank(seeds=[["a", "b"], ["c"]], top=2)
    assert found.ranks.tolist() == expected.ranks.tolist()
    assert list(found) == ["q1", "q2"]
    assert found.frame["seed"].tolist() == ["q1", "q1", "q2", "q2"]


def test_seeds_as_a_polars_column_of_lists():
    pl = pytest.importorskip("polars")
    graph = prplugin.Graph(pl.from_pandas(EDGES))
    assert list(graph.rank(seeds=pl.Series([["a"], ["b", "c"]]), top=1)) == [0, 1]
    assert graph.rank(seeds={"q": ["a"]}, top=1).frame["seed"].to_list() == ["q"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q": 3}, "seeds must be a list of vertices or of distributions, a dict of distributions by name"),
        ({}, "seeds must be a list"),
        (
            {"p": ["a"], "q": "a"},
            "seeds is a dict of distributions by name, and that of 'q' is 'a': write ['a'] for one",
        ),
        ({"q": ["z"]}, "seeds names 1 vertex not in the graph: 'z'"),
        ({"q": ["a"], 1: ["b"]}, "the names of seeds cannot be a column"),
        (pd.Series([["a"], None]), "seeds[1] must be a dict of vertex: value"),
    ],
)
def test_bad_seeds_by_name_are_refused(given, message):
    assert message in error_message(lambda: GRAPH.rank(seeds=given))


# --- exclude ----------------------------------------------------------------------------------------------------------

NEIGHBOURS = {"a": {"b", "c"}, "b": {"c", "a"}, "c": {"a"}, "d": {"d"}}


@pytest.mark.parametrize("top", [None, 3])
@pytest.mark.parametrize(
    "kinds", [("seeds",), ("neighbors",), ("seeds", "neighbors"), ("seeds", "d"), ("neighbors", "d")]
)
def test_exclude_by_seed(kinds, top):
    seeds = {"x": ["a", "d"], "y": ["b"]}
    exclude = kinds[0] if len(kinds) == 1 else list(kinds)
    found = GRAPH.rank(seeds=seeds, exclude=exclude, top=top)
    full = GRAPH.rank(seeds=seeds)
    for name, own in seeds.items():
        gone = {*own} if "seeds" in kinds else set()
        gone |= {vertex for seed in own for vertex in NEIGHBOURS[seed]} if "neighbors" in kinds else set()
        gone |= {"d"} if "d" in kinds else set()
        kept = {vertex: rank for vertex, rank in full[name].items() if vertex not in gone}
        assert found[name] == (kept if top is None else dict(sorted(kept.items(), key=lambda item: -item[1])[:top]))
        one = GRAPH.rank(personalization=own, exclude=exclude, top=top).to_dict()
        assert one == pytest.approx(found[name], abs=3e-6)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("top", [None, 2])
def test_exclude_by_a_frame_of_seeds_and_vertices(library, top):
    seen = converted(library, pd.DataFrame({"seed": ["a", "b", "a", "z"], "vertex": ["c", "b", "z", "a"]}))
    full, found = GRAPH.rank(seeds=["b", "a"]), GRAPH.rank(seeds=["b", "a"], exclude=seen, top=top)
    for seed, gone in {"a": "c", "b": "b"}.items():
        kept = {vertex: rank for vertex, rank in full[seed].items() if vertex != gone}
        assert found[seed] == (kept if top is None else dict(sorted(kept.items(), key=lambda item: -item[1])[:top]))
    assert found.unknown == {"exclude": 1}
    named = GRAPH.rank(seeds={"a": ["a"], "b": ["b"]}, exclude=seen)
    assert "c" not in named["a"]
    assert "b" not in named["b"]
    assert "b" in named["a"]
    none = GRAPH.rank(seeds=["a"], exclude=pd.DataFrame({"seed": [], "vertex": []}))
    assert none.to_dict() == GRAPH.rank(seeds=["a"]).to_dict()
    assert "there is one ranking" in error_message(lambda: GRAPH.rank(personalization=["a"], exclude=seen))


def test_exclude_by_seed_after_updates_and_on_weights():
    edges = pd.DataFrame({"src": [1, 2, 3, 3], "dst": [2, 3, 1, 2], "w": [1.0, 2.0, 3.0, 0.0]})
    graph = prplugin.Graph(edges, weight="w")
    assert set(graph.rank(seeds=[3], exclude="neighbors")[3]) == {3}
    graph.update(add=pd.DataFrame({"src": [3], "dst": [4], "w": [1.0]}), remove=edges.iloc[[2]])
    assert set(graph.rank(seeds=[3], exclude="neighbors")[3]) == {1, 3}
    assert set(graph.rank(personalization=[3, 1], exclude=["neighbors", 1]).to_dict()) == {3}


def test_words_of_exclude_need_seeds():
    assert "exclude='neighbors' leaves out the out-neighbours" in error_message(
        lambda: GRAPH.rank(exclude=["neighbors"])
    )
    assert "or 'seeds' or 'neighbors', not 'seed'" in error_message(lambda: GRAPH.rank(exclude="seed"))


def of_parts(rows, tmp_path):
    """Yield a name and edges in every form that counts rows."""
    rows.to_parquet(tmp_path / "e.parquet", row_group_size=50)
    rows[:90].to_parquet(tmp_path / "a.parquet")
    rows[90:].to_json(tmp_path / "b.jsonl", orient="records", lines=True)
    rows[:90].to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    yield "list", [rows[:90], rows[90:]]
    yield "polars", [pl.from_pandas(rows[:90]), pl.from_pandas(rows[90:])]
    yield "dask", dd.from_pandas(rows, npartitions=3, sort=False)
    yield "parquet", tmp_path / "e.parquet"
    yield "json lines", [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]


@pytest.mark.parametrize("ids", ["integer", "string"])
def test_messages_count_the_rows_of_the_input(ids, tmp_path):
    rows = pd.DataFrame({"src": [1, 2] * 90, "dst": [2, 3, 1] * 60, "w": 1.0}).astype({"src": "Int64"})
    if ids == "string":
        rows["src"], rows["dst"] = "v" + rows["src"].astype(str), "v" + rows["dst"].astype(str)
    rows.loc[[1, 5, 100], "src"] = None
    rows.loc[[7, 150], "w"] = -1
    for _, edges in of_parts(rows, tmp_path):
        with pytest.raises(prplugin.InvalidEdgesError, match=r"-1\.0 in row 7, -1\.0 in row 150 \(counted from 0\)"):
            prplugin.pagerank(edges, weight="w", missing="drop")
