"""Groups of Dask frames on workers, compared with groups of one pandas frame."""

from __future__ import annotations

import copy
import re

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.errors import InvalidEdgesError, InvalidOptionError, MethodUnavailableError, NotConvergedError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set({"distributed.logging.distributed": "critical"}),
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def edges_of(ids="integer", group="string", m=400):
    """Return edges of groups whose rows are spread over the frame."""
    rng = np.random.default_rng(3)
    each = rng.integers(0, 9, m) ** 2 // 9
    edges = pd.DataFrame({
        "country": each, "src": rng.integers(0, 5 + 3 * each), "dst": rng.integers(0, 5 + 3 * each),
        "w": rng.random(m), "time": rng.integers(0, 50, m),
    })  # fmt: skip
    if ids == "string":
        edges["src"], edges["dst"] = "v" + edges["src"].astype(str), "v" + edges["dst"].astype(str)
    if group == "string":
        edges["country"] = "g" + edges["country"].astype(str)
    return edges


def split(edges, parts=5):
    with dask.config.set({"dataframe.convert-string": False}):  # keep the types
        return dd.from_pandas(edges, npartitions=parts, sort=False)


def assert_same(found, expected, within=2e-6):
    found = found.compute()
    names = list(expected.columns[:-1])
    pd.testing.assert_frame_equal(found[names], expected[names])
    assert found["pagerank"].dtype == expected["pagerank"].dtype
    assert (found["pagerank"] - expected["pagerank"]).abs().max() <= within


@pytest.mark.parametrize("ids", ["integer", "string"])
@pytest.mark.parametrize("group", ["integer", "string", "category"])
def test_groups_in_several_partitions(client, ids, group):
    edges = edges_of(ids, group)
    if group == "category":
        edges["country"] = edges["country"].astype("category")
    graph = prplugin.Graph(split(edges), by="country", weight="w")
    one = prplugin.Graph(edges, by="country", weight="w")
    ranking, expected = graph.rank(), one.rank()
    assert_same(ranking.frame, expected.frame)
    assert (graph.number_of_vertices, graph.number_of_edges) == (one.number_of_vertices, one.number_of_edges)
    assert ranking.converged
    assert ranking.each_error_bound.max() == ranking.error_bound <= 1e-6
    assert len(ranking.each_error_bound) == len(expected.each_error_bound) == len(ranking)
    assert list(ranking) == list(expected)
    last = list(expected)[-1]
    assert list(ranking[last]) == list(expected[last])
    assert ranking.frame.divisions[-1] == len(expected.frame) - 1
    assert ranking.frame.npartitions > 1
    assert_same(prplugin.pagerank(split(edges), by="country", weight="w"), expected.frame)
    vertices = graph.vertices.compute()
    pd.testing.assert_frame_equal(vertices, expected.frame[["country", "vertex"]])
    assert re.fullmatch(r"PageRank of \d groups with \d+ vertices: converged .* on 3 workers\n.*", repr(ranking), re.S)
    ranking.explain()


def test_options(client):
    edges = edges_of("integer", "integer")
    graph, one = (prplugin.Graph(each, by="country", weight="w") for each in (split(edges), edges))
    pairs = [(group, int(vertex)) for group, rows in edges.groupby("country")["src"] for vertex in rows.unique()[:3]]
    values = {pair: 1.0 + at for at, pair in enumerate(pairs)}
    frame = pd.DataFrame([(*pair, value) for pair, value in values.items()], columns=["country", "vertex", "values"])
    for options in (
        {"personalization": pairs, "exclude": "seeds"},
        {"personalization": frame, "nstart": values, "top": 3},
        {"personalization": frame, "exclude": ["seeds", *pairs[:5]]},
        {"among": pairs[::-1], "top": 2},
        {"among": pairs[:2], "scale": "n"},
        {"exclude": [*pairs[:4], (99, 1)], "dtype": "float32"},
        {"personalization": [0, 1], "unknown": "ignore", "alpha": 0.5},
        {"method": "native", "threads": 1} if prplugin.Graph(edges).rank().method == "native" else {},
    ):  # fmt: skip
        assert_same(graph.rank(**options).frame, one.rank(**options).frame, 2e-4 if "scale" in options else 2e-6)
    assert_same(graph.rank(personalization=split(frame, 2)).frame, one.rank(personalization=frame).frame)
    assert graph.rank(exclude=[(99, 1), pairs[0]]).unknown == {"exclude": 1}
    with pytest.raises(InvalidOptionError, match=r"personalization names 1 vertex not in the graph: \(99, 1\)"):
        graph.rank(personalization=[*pairs, (99, 1)])
    with pytest.raises(InvalidOptionError, match=r"no positive value in \d group"):
        graph.rank(personalization=pairs[:3])
    with pytest.raises(InvalidOptionError, match=r"dangling= is not supported with by="):
        graph.rank(dangling=pairs)
    with pytest.raises(MethodUnavailableError, match=r"seeds= with by=: .*frame.compute\(\)"):
        graph.rank(seeds=pairs)
    with pytest.raises(NotConvergedError):
        graph.rank(max_iter=2, tol=1e-9)


@pytest.mark.parametrize("group", ["integer", "string"])
def test_updates(client, group):
    edges = edges_of("integer", group)
    first, more = edges[:300], edges[300:].copy()
    new = {"integer": [-1, 3, 99], "string": ["x", "g3", "y"]}[group]
    more.loc[more.index[:3], "country"] = new
    graph, one = (prplugin.Graph(each, by="country") for each in (split(first), first))
    for changed in (graph, one):
        changed.rank()
        changed.update(add=more, remove=first[5:9])
    assert_same(graph.rank().frame, one.rank().frame)
    assert graph.number_of_edges == one.number_of_edges
    before = graph.rank().frame.compute()
    with pytest.raises(InvalidEdgesError, match=r"remove has 1 edge that the graph does not have"):
        graph.update(add=more, remove=more[:1].assign(src=999))
    with pytest.raises(prplugin.PageRankError, match="no column 'country'"):
        graph.update(add=more.drop(columns="country"))
    with pytest.raises(InvalidEdgesError, match=r"column 'src'.* 7\b"):
        graph.update(add=more.assign(src=more["src"].astype("Int64").where(np.arange(len(more)) != 7)))
    pd.testing.assert_frame_equal(graph.rank().frame.compute(), before)


def test_times_and_more_vertices(client):
    edges = edges_of()
    more = pd.DataFrame({"country": ["g0", "new", "g0"], "vertex": [10_000, 3, 10_001]})
    options = {"by": "country", "time": "time", "half_life": 7, "window": 30, "vertices": more}
    assert_same(prplugin.pagerank(split(edges), **options), edges.pagerank(**options))
    pairs = edges.assign(year=edges["src"] % 2, kind="user")
    assert_same(
        prplugin.pagerank(split(pairs), ["kind", "src"], ["kind", "dst"], by=["country", "year"], directed=False),
        pairs.pagerank(["kind", "src"], ["kind", "dst"], by=["country", "year"], directed=False),
    )
    few = edges[:3].assign(country="one")
    assert_same(prplugin.pagerank(split(few, 2), by="country"), few.pagerank(by="country"))
    empty = prplugin.pagerank(split(few, 2).query("src < 0"), by="country").compute()
    assert (list(empty.columns), len(empty)) == (["country", "vertex", "pagerank"], 0)


@pytest.mark.parametrize("column", ["country", "dst"])
def test_rows_without_a_value(client, column):
    edges = edges_of("string")
    holes = edges.assign(**{column: edges[column].where(~edges.index.isin([7, 123, 321]))})
    with pytest.raises(InvalidEdgesError, match=rf"column '{column}' .*7, 123, 321"):
        prplugin.Graph(split(holes), by="country")
    kept = edges.drop(index=[7, 123, 321])
    assert_same(prplugin.pagerank(split(holes), by="country", missing="drop"), kept.pagerank(by="country"))
    negative = holes.assign(w=holes["w"].where(holes.index != 300, -1))
    with pytest.raises(InvalidEdgesError, match=r"column 'w'.* 300"):
        prplugin.Graph(split(negative), by="country", weight="w", missing="drop")


def test_graphs_are_not_copied(client):
    with pytest.raises(MethodUnavailableError, match="pickle and copy"):
        copy.copy(prplugin.Graph(split(edges_of()), by="country"))
