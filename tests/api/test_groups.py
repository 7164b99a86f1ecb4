"""Rankings of groups in one call, compared with rankings of each group by itself."""

from __future__ import annotations

import copy
import pickle

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import prplugin
from prplugin import (
    ColumnNotFoundError,
    InvalidEdgesError,
    InvalidOptionError,
    NotConvergedError,
    VertexNotFoundError,
)
from prplugin.methods.registry import methods


def edges_of(ids="integer", group="string", groups=7, m=400, seed=0):
    """Return edges of groups of very different sizes, whose ids repeat in others, and one of a single vertex."""
    rng = np.random.default_rng(seed)
    share = rng.integers(1, 30, groups).cumsum()
    each = rng.choice(groups, m, p=np.diff(share, prepend=0) / share[-1])
    width = 3 + 4 * each
    ends = [rng.integers(0, width) * 7 - 20 for _ in range(2)]
    frame = pd.DataFrame({"country": each, "src": ends[0], "dst": ends[1], "w": rng.random(m)})
    frame.loc[len(frame)] = [groups, 5, 5, 1.0]
    frame = frame.astype({"country": "int64", "src": "int64", "dst": "int64"})
    if ids == "string":
        frame["src"], frame["dst"] = ("v" + frame[end].astype(str) for end in ("src", "dst"))
    if group == "string":
        frame["country"] = "g" + frame["country"].astype(str)
    return frame


def one_by_one(edges, groups=None, **options):
    """Rank each group by itself, in the order of groups, and return one frame."""
    known = edges["country"]
    names = known.unique() if known.dtype.kind == "O" or str(known.dtype).startswith("str") else np.sort(known.unique())
    parts = []
    for name in names:
        frame = edges[known == name].drop(columns="country").pagerank("src", "dst", **options)
        parts.append(frame.assign(country=name))
    found = pd.concat(parts, ignore_index=True)
    return found[["country", "vertex", "pagerank"]].astype({"country": edges["country"].dtype})


def assert_same(found, expected, within):
    pd.testing.assert_frame_equal(found[["country", "vertex"]], expected[["country", "vertex"]])
    distance = (found["pagerank"] - expected["pagerank"]).abs().groupby(expected["country"]).sum()
    assert distance.max() <= within


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize("group", ["integer", "string"])
@pytest.mark.parametrize(
    "options",
    [{}, {"weight": "w", "alpha": 0.99, "tol": 1e-9}, {"directed": False}, {"duplicates": "last"}],
    ids=["plain", "weighted", "undirected", "without duplicates"],
)
def test_ranks_are_those_of_each_group(ids, group, options):
    edges = edges_of(ids, group)
    graph = {name: value for name, value in options.items() if name not in ("alpha", "tol")}
    rank = {name: value for name, value in options.items() if name in ("alpha", "tol")}
    tol = rank.get("tol", 1e-6)
    ranking = prplugin.Graph(edges, by="country", **graph).rank(**rank)
    assert ranking.converged
    assert ranking.each_error_bound.max() == ranking.error_bound <= tol
    assert_same(ranking.frame, one_by_one(edges, **options), 2 * tol)
    exact = one_by_one(edges, **options | {"tol": 1e-11})
    distance = (ranking.frame["pagerank"] - exact["pagerank"]).abs().groupby(exact["country"], sort=False).sum()
    assert (distance.to_numpy() <= ranking.each_error_bound + 1e-11).all()
    assert np.allclose(ranking.frame.groupby("country")["pagerank"].sum(), 1)
    pd.testing.assert_frame_equal(edges.pagerank(by="country", **options), ranking.frame)


EDGES = edges_of()
GRAPH = prplugin.Graph(EDGES, by="country", weight="w")


def grouped_arguments():
    """Yield arguments for the graph, and a function that returns those for one group."""
    rows = EDGES.groupby("country", sort=False)["src"].unique()
    pairs = pd.DataFrame(
        [(group, vertex, 1.0 + at) for group in rows.index for at, vertex in enumerate(rows[group][:3])]
    )
    pairs.columns = ["country", "vertex", "values"]

    def of(group):
        own = pairs[pairs["country"] == group]
        return dict(zip(own["vertex"], own["values"], strict=True))

    values = {(group, vertex): value for group, vertex, value in pairs.itertuples(index=False)}
    yield {"personalization": pairs}, lambda group: {"personalization": of(group)}
    yield {"personalization": values}, lambda group: {"personalization": of(group)}
    yield {"personalization": list(values)}, lambda group: {"personalization": list(of(group))}
    yield {"personalization": (pairs, ["country", "vertex"], "values")}, lambda group: {"personalization": of(group)}
    yield {"personalization": list(values), "exclude": "seeds"}, lambda group: {
        "personalization": list(of(group)), "exclude": "seeds"
    }  # fmt: skip
    yield {"nstart": values}, lambda group: {}
    yield {"top": 4}, lambda group: {"top": 4}
    yield {"among": list(values)[::-1]}, lambda group: {"among": list(of(group))[::-1]}
    yield {"among": list(values), "top": 2}, lambda group: {"among": list(of(group)), "top": 2}
    yield {"exclude": pairs[["country", "vertex"]]}, lambda group: {"exclude": list(of(group))}
    yield {"scale": "n", "dtype": "float32"}, lambda group: {"scale": "n", "dtype": "float32"}
    yield {"alpha": 0.0}, lambda group: {"alpha": 0.0}


@pytest.mark.parametrize(
    ("given", "of"), list(grouped_arguments()), ids=lambda one: "" if callable(one) else ",".join(one)
)
def test_options_apply_to_each_group(given, of):
    tol = 1e-6 if "dtype" in given else 1e-9
    found = GRAPH.rank(tol=tol, **given)
    parts = []
    for group in EDGES["country"].unique():
        edges = EDGES[EDGES["country"] == group]
        part = edges.pagerank("src", "dst", "w", tol=tol, **of(group))
        parts.append(part.assign(country=group))
        assert len(found[group]) == len(part)
    expected = pd.concat(parts, ignore_index=True)
    assert found.frame["pagerank"].dtype == expected["pagerank"].dtype
    largest = found.ranks.size if given.get("scale") == "n" else 1
    assert_same(found.frame, expected, 2 * tol * largest)


SEEDED = [(group, rows["src"].unique()[at]) for at in (1, 0) for group, rows in EDGES[:-1].groupby("country")]
"""Two seeds of each group but the last, which has one vertex."""


@pytest.mark.parametrize(
    ("options", "of_group"),
    [
        ({}, {}),
        ({"top": 3, "exclude": "seeds"}, {"top": 3, "exclude": "seeds"}),
        ({"exclude": "neighbors"}, {"exclude": "neighbors"}),
        ({"among": SEEDED[:9], "top": 2}, {"top": 2}),
        ({"nstart": SEEDED}, {}),
        ({"tol": 0, "max_iter": 3}, {"tol": 0, "max_iter": 3}),
        ({"tol": 0, "max_iter": 0}, {"tol": 0, "max_iter": 0}),
        ({"scale": "n", "dtype": "float32"}, {"scale": "n", "dtype": "float32"}),
    ],
    ids=["plain", "top", "neighbours", "among", "start", "power", "start alone", "type"],
)
def test_seeds_are_ranked_in_their_group(options, of_group):
    found = GRAPH.rank(seeds=SEEDED, **options)
    names = ["seed_country", "seed_vertex", "country", "vertex", "pagerank"]
    assert list(found.frame.columns) == names
    assert found.each_error_bound.max() == found.error_bound
    parts = []
    for group, vertex in SEEDED:
        among = {"among": [at for of, at in options["among"] if of == group]} if "among" in options else {}
        edges = EDGES[EDGES["country"] == group]
        alone = edges.pagerank("src", "dst", "w", personalization=[vertex], **of_group | among)
        parts.append(alone.assign(seed_country=group, seed_vertex=vertex, country=group))
    expected = pd.concat(parts, ignore_index=True)[names]
    pd.testing.assert_frame_equal(found.frame[names[:2]], expected[names[:2]])
    near = 1e-6 if "dtype" in options else 2e-6
    difference = found.frame.merge(expected, on=names[:4])
    assert len(difference) == len(expected) == len(found.frame)
    scale = EDGES["src"].nunique() if "dtype" in options else 1
    assert (difference["pagerank_x"] - difference["pagerank_y"]).abs().max() <= near * scale
    group, vertex = SEEDED[0]
    own = found.frame[(found.frame["seed_country"] == group) & (found.frame["seed_vertex"] == vertex)]
    assert found[SEEDED[0]] == {(group, at): rank for at, rank in zip(own["vertex"], own["pagerank"], strict=True)}


def test_seeds_of_several_groups():
    edges = pd.DataFrame({"g": [2, 2, 1, 1, 3], "src": ["a", "b", "b", "a", "a"], "dst": ["b", "c", "a", "d", "b"]})
    graph = prplugin.Graph(edges, by="g")
    frame = pd.DataFrame({"seed": ["x", "y", "x", "y"], "g": [2, 1, 1, 1], "vertex": ["a", "b", "d", "a"]})
    found = graph.rank(seeds=frame.assign(values=[1.0, 3.0, 2.0, 1.0])).frame
    assert list(found.columns) == ["seed", "g", "vertex", "pagerank"]
    runs = found[["seed", "g"]].drop_duplicates()
    assert list(runs.itertuples(index=False, name=None)) == [("x", 1), ("x", 2), ("y", 1)]
    for (seed, group), own in found.groupby(["seed", "g"]):
        given = {("x", 1): {"d": 1}, ("x", 2): {"a": 1}, ("y", 1): {"b": 3, "a": 1}}[seed, group]
        one = edges[edges["g"] == group].pagerank("src", "dst", personalization=given)
        assert one["vertex"].tolist() == own["vertex"].tolist()
        assert np.allclose(one["pagerank"], own["pagerank"], atol=2e-6)
    ranking = graph.rank(seeds=frame)
    assert len(ranking) == 2
    assert {group for group, _ in ranking["x"]} == {1, 2}
    assert "more" not in repr(ranking)
    each = graph.rank(
        seeds=["a", "b"], exclude=pd.DataFrame({"seed_g": [1], "seed_vertex": ["a"], "g": [1], "vertex": ["d"]})
    )
    assert list(each) == [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "a"), (3, "b")]
    assert (1, "d") not in each[1, "a"]
    assert (1, "d") in each[1, "b"]
    lists = graph.rank(seeds=[{"a": 1, "b": 2}, [(3, "b")]]).frame
    assert lists[["seed", "g"]].drop_duplicates().values.tolist() == [[0, 1], [0, 2], [0, 3], [1, 3]]
    with pytest.raises(InvalidOptionError, match=r"seeds names no groups, and 2 groups of 3 lack .*group 1 lacks 'c'"):
        graph.rank(seeds=["c"])
    with pytest.raises((InvalidOptionError, ColumnNotFoundError), match="no column 'g'"):
        graph.rank(seeds=frame.drop(columns="g"))
    with pytest.raises(prplugin.PageRankError, match="groups by personalization= instead of seeds="):
        ranking.contributions((1, "a"))


def test_vertices_that_every_group_has():
    edges = pd.DataFrame({"g": [2, 2, 1, 1], "src": ["a", "b", "b", "a"], "dst": ["b", "c", "a", "d"]})
    graph = prplugin.Graph(edges, by="g")
    one = graph.rank(personalization={"a": 3, "b": 1})
    pair = graph.rank(personalization={(g, v): x for g in (1, 2) for v, x in (("a", 3), ("b", 1))})
    assert one.frame.equals(pair.frame)
    assert graph.rank(among=["b", "a"]).frame["vertex"].tolist() == ["b", "a"] * 2
    assert graph.rank(exclude=["c", "a"]).to_dict().keys() == {1, 2}
    assert list(graph.rank(exclude=["c", "a"])[2]) == ["b"]
    with pytest.raises(
        InvalidOptionError, match=r"personalization names no groups, and 1 group of 2 lacks .* 1 lacks 'c'"
    ):
        graph.rank(personalization=["a", "c"])
    with pytest.raises(InvalidOptionError, match=r"2 groups of 2 lack some .*group 1 lacks 'x'"):
        graph.rank(among=["x"])
    with pytest.raises(InvalidOptionError, match=r"no positive value in 1 group: 1\."):
        graph.rank(personalization=["c"], unknown="ignore")
    ranking = graph.rank(personalization=["a", "c"], unknown="ignore")
    assert ranking.unknown == {"personalization": 1}
    with pytest.raises(InvalidOptionError, match=r"no positive value in 1 group: 2\."):
        graph.rank(personalization=[(1, "a")])
    with pytest.raises(VertexNotFoundError, match=r"'a' names no vertex of one group: pass a tuple of 'g', 'vertex'"):
        ranking.contributions("a")
    parts = ranking.contributions((1, "a"))
    assert abs(parts["contribution"].sum() - ranking[1]["a"]) <= ranking.error_bound
    assert {*parts["kind"]} == {"edge", "dangling", "teleport"}
    expected = edges[edges["g"] == 1].pagerank("src", "dst", personalization=["a"])
    assert np.allclose(expected["pagerank"], list(ranking[1].values()), atol=2e-6)
    assert np.allclose(parts[parts["kind"] == "teleport"]["pagerank"], 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dangling": {("g1", 1): 1}}, r"dangling= is not supported with by="),
        ({"stop": "delta"}, r"stop= is not supported with by="),
        ({"tol": 0, "max_iter": 3}, r"stop= is not supported with by="),
        ({"max_iter": 0}, r"max_iter=0 is not supported with by="),
        ({"top": 3, "certified": True}, r"certified=True is not supported with by="),
        (
            {"seeds": [(EDGES["country"][0], EDGES["src"][0])], "dangling": [-20]},
            r"dangling= is not supported with by=",
        ),
        ({"tol": 1e-15}, r"tol=1e-15 cannot be proved"),
    ],
)
def test_options_without_a_meaning_for_groups(given, message):
    with pytest.raises(InvalidOptionError, match=message):
        GRAPH.rank(**given)


def test_passes_of_all_rankings_are_counted_on():
    rng = np.random.default_rng(0)
    edges = pd.DataFrame(rng.integers(0, 9, (3000, 2)), columns=["src", "dst"]).assign(g=rng.integers(0, 1000, 3000))
    states = []
    ranking = prplugin.Graph(edges, by="g").rank(progress=states.append)
    passes = [state.iterations for state in states if state.stage == "iterations"]
    assert passes == sorted({*passes})
    assert passes[-1] == states[-1].expected == ranking.iterations
    assert states[-1].error_bound == ranking.error_bound
    assert list(ranking._history.bounds) == [
        (state.iterations, state.error_bound) for state in states if state.stage == "iterations"
    ]


@pytest.mark.parametrize("method", ["numpy", "native"])
def test_a_small_group_takes_few_passes_more(method):
    """After a first ranking, the next ones aim for the error that the ring has; by plain steps it takes 450 passes."""
    random = np.random.default_rng(0).integers(0, 2000, (12_000, 2))
    ring = np.array([[*range(30), 0], [*range(1, 31), 15]]).T % 30
    edges = pd.DataFrame(np.concatenate([random, ring]), columns=["src", "dst"]).assign(g=[0] * 12_000 + [1] * 31)
    ranking = prplugin.Graph(edges, by="g").rank(alpha=0.99, method=method)
    assert ranking.error_bound <= 1e-6
    assert ranking.iterations <= 300
    assert ranking.each_iterations.tolist() == [ranking.iterations] * 2


@pytest.mark.parametrize("weight", [None, "w"])
def test_large_groups_are_ranked_by_themselves(weight):
    rng = np.random.default_rng(0)
    sizes = [0] * 30_000 + [1] * 25_000 + [2] * 5
    edges = pd.DataFrame({
        "country": rng.permutation(sizes), "src": rng.integers(0, 3000, 55_005), "dst": rng.integers(0, 2000, 55_005),
        "w": rng.random(55_005),
    })  # fmt: skip
    states = []
    graph = prplugin.Graph(edges, by="country", weight=weight)
    ranking = graph.rank(progress=states.append)
    passes = [state.iterations for state in states if state.stage == "iterations"]
    assert passes == sorted({*passes})
    alone = [
        prplugin.Graph(edges[edges["country"] == group], "src", "dst", weight).rank() for group in range(3)
    ]  # fmt: skip
    assert ranking.each_iterations.tolist() == [one.iterations for one in alone]
    assert ranking.each_error_bound.tolist() == [one.error_bound for one in alone]
    assert ranking.error_bound == max(ranking.each_error_bound)
    assert ranking.each_error_bound.tolist() == [one.error_bound for one in alone]
    assert ranking.ranks.tolist() == np.concatenate([one.ranks for one in alone]).tolist()
    assert (ranking.iterations, passes[-1]) == (max(ranking.each_iterations), sum(ranking.each_iterations))
    given = edges.groupby("country")["src"].unique().map(lambda some: some[:3].tolist())
    seeded = graph.rank(personalization=[(group, vertex) for group in range(3) for vertex in given[group]], tol=1e-9)
    for group in range(3):
        one = edges[edges["country"] == group].pagerank("src", "dst", weight, personalization=given[group], tol=1e-9)
        assert np.abs(one["pagerank"] - list(seeded[group].values())).sum() <= 2e-9
    graph.update(remove=edges[:9])
    assert graph.rank(nstart=ranking).each_iterations.max() < max(ranking.each_iterations)
    with pytest.raises(NotConvergedError):
        graph.rank(max_iter=3, tol=1e-9)


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_iterations_that_do_not_suffice(max_iter):
    with pytest.raises(NotConvergedError) as caught:
        GRAPH.rank(max_iter=max_iter, tol=1e-9)
    ranking = caught.value.ranking
    assert ranking.iterations == max_iter
    assert not ranking.converged
    assert not ranking.each_converged.all()
    exact = GRAPH.rank(tol=1e-11).frame["pagerank"]
    distance = (ranking.frame["pagerank"] - exact).abs().groupby(ranking.frame["country"], sort=False).sum()
    assert (distance.to_numpy() <= ranking.each_error_bound + 1e-11).all()
    assert GRAPH.rank(max_iter=ranking.iterations + 200, tol=1e-9).converged


@pytest.mark.parametrize("ids", ["integer", "string"])
def test_updates(ids):
    edges = edges_of(ids, "integer")
    graph = prplugin.Graph(edges.iloc[:150], by="country")
    graph.rank()
    more = edges.iloc[150:]
    graph.update(add=more.assign(country=more["country"] - 3))  # groups before, between and after
    now = pd.concat([edges.iloc[:150], more.assign(country=more["country"] - 3)], ignore_index=True)
    found, fresh = graph.rank(), prplugin.Graph(now, by="country").rank()
    if ids == "integer":
        pd.testing.assert_frame_equal(found.frame[["country", "vertex"]], fresh.frame[["country", "vertex"]])
    for group in fresh:
        assert {*found[group]} == {*fresh[group]}
        assert sum(abs(rank - found[group][vertex]) for vertex, rank in fresh[group].items()) <= 2e-6
    graph.update(remove=now[now["country"] == 0])  # its vertices stay, without edges
    assert np.allclose(list(graph.rank()[0].values()), 1 / len(fresh[0]))


def test_copies_and_displays(tmp_path):
    expected = GRAPH.rank(top=3)
    GRAPH.save(tmp_path / "graph")
    for graph in (prplugin.Graph.load(tmp_path / "graph"), pickle.loads(pickle.dumps(GRAPH)), copy.copy(GRAPH)):
        pd.testing.assert_frame_equal(graph.rank(top=3).frame, expected.frame)
        graph.update(add=pd.DataFrame({"country": ["new"], "src": [1], "dst": [2], "w": [1.0]}))
        assert graph.rank()["new"].keys() == {1, 2}
    again = pickle.loads(pickle.dumps(expected))
    assert again.to_dict() == expected.to_dict()
    assert "PageRank of 8 groups with" in repr(expected)
    many = prplugin.Graph(pd.DataFrame({"g": range(12), "src": 1, "dst": 2}), by="g").rank()
    *_, last, more = repr(many).splitlines()
    assert last.split()[:3] == ["9", "2", "(0.649),"]
    assert more == "and 2 more groups"
    assert "more group" not in repr(expected)
    expected.explain()
    assert len(expected) == 8
    assert "g1" in expected


FRAMES = {
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "duckdb": lambda frame: pytest.importorskip("duckdb").from_df(frame),
    "list": lambda frame: [frame.iloc[:100], frame.iloc[100:]],
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3, sort=False),
}


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize("library", FRAMES)
def test_other_libraries(library, ids):
    edges = edges_of(ids, m=200)
    expected = edges.pagerank(by="country", top=5)
    found = prplugin.pagerank(FRAMES[library](edges), by="country", top=5)
    found = found.compute() if hasattr(found, "compute") else found
    found = found if isinstance(found, pd.DataFrame) else found.to_pandas()
    assert found.to_dict("list") == expected.to_dict("list")


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files(kind, ids, tmp_path):
    edges, path = edges_of(ids, m=200), tmp_path / f"edges.{kind}"
    edges.to_parquet(path, row_group_size=50) if kind == "parquet" else edges.to_csv(path, index=False)
    expected = edges.pagerank(by="country", weight="w")
    assert prplugin.pagerank(path, by="country", weight="w").to_dict("list") == expected.to_dict("list")
    graph = prplugin.Graph.from_file(path, by="country", weight="w")
    assert graph.rank().frame.to_dict("list") == expected.to_dict("list")
    pairs = prplugin.Graph.from_file(path, bipartite=True).rank().frame
    assert pairs.to_dict("list") == edges.pagerank(bipartite=True).to_dict("list")


def test_several_columns_and_more_vertices():
    edges = edges_of(m=150).assign(year=lambda frame: frame["src"] % 2 + 2000, kind="user")
    more = pd.DataFrame({"country": ["g0", "new", "g0"], "year": [2000, 1999, 2000], "vertex": [10_000, 3, 10_001]})
    found = prplugin.Graph(edges, by=["country", "year"], vertices=more).rank()
    assert list(found.frame.columns) == ["country", "year", "vertex", "pagerank"]
    assert found["new", 1999] == {3: 1.0}
    for group, own in edges.groupby(["country", "year"]):
        isolated = [10_000, 10_001] if group == ("g0", 2000) else []
        alone = own.pagerank("src", "dst", vertices=isolated or None)
        assert np.allclose(alone["pagerank"], list(found[group].values()), atol=2e-6)
        assert alone["vertex"].tolist() == list(found[group])
    pairs = edges.pagerank(["kind", "src"], ["kind", "dst"], by="country")
    assert list(pairs.columns) == ["country", "kind", "src", "pagerank"]
    assert np.allclose(pairs.groupby("country")["pagerank"].sum(), 1)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_groups_of_more_vertices_come_last(convert):
    edges = pd.DataFrame({"g": ["x", "x", "y"], "src": ["a", "b", "a"], "dst": ["b", "a", "c"]})
    more = pd.DataFrame({"g": ["new", "x", "y"], "vertex": ["a", "d", "b"]})
    found = prplugin.pagerank(convert(edges), by="g", vertices=convert(more))
    assert list(zip(found["g"], found["vertex"], strict=True)) == [
        ("x", "a"), ("x", "b"), ("x", "d"), ("y", "a"), ("y", "c"), ("y", "b"), ("new", "a"),
    ]  # fmt: skip


def test_unknown_groups():
    for edges, message in ((EDGES, "the 8 groups of these rankings, which are like 'g"), (EDGES[:0], "the 0 groups")):
        with pytest.raises(VertexNotFoundError, match=message):
            prplugin.Graph(edges, by="country").rank()["nowhere"]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("src", r"by names column 'src', which is an endpoint"),
        ("vertex", r"by names column 'vertex', a name that the result needs"),
        (["country", "country"], r"by names a column twice"),
        ([], r"by is an empty list"),
        ("contry", r"no column 'contry'"),
    ],
)
def test_columns_that_cannot_be_groups(by, message):
    with pytest.raises((InvalidOptionError, ColumnNotFoundError), match=message):
        EDGES.assign(vertex=1).pagerank(by=by)


def test_rows_without_a_group():
    edges = EDGES.assign(country=EDGES["country"].where(EDGES.index != 3))
    with pytest.raises(InvalidEdgesError, match=r"column 'country' .*3"):
        edges.pagerank(by="country")
    pd.testing.assert_frame_equal(
        edges.pagerank(by="country", missing="drop"), EDGES.drop(index=3).pagerank(by="country")
    )


def test_steps_of_groups_start_from_ranks(monkeypatch):
    """Also in the first ranking: GPU kernels read one rank, or as many as there are vertices."""
    method, starts = methods()["numpy"], []
    prepare = method.prepare

    def recorded(problem, machine):
        step = prepare(problem, machine)
        start = step.start
        monkeypatch.setattr(step, "start", lambda ranks: (starts.append((ranks, problem.adjacency.n)), start(ranks)))
        return step

    monkeypatch.setattr(method, "prepare", recorded)
    prplugin.Graph(edges_of(), by="country").rank(method="numpy")
    assert len(starts) > 1
    assert all(isinstance(ranks, float) or len(ranks) == n for ranks, n in starts)
