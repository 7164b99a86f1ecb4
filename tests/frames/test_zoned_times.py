"""Times as ids in the hour that is repeated when clocks are set back: equal, with different hashes by zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

import prplugin

OTHER = pd.Timestamp("2020-01-01", tz="UTC")
IN_UTC = pd.Timestamp("2021-10-31 01:30", tz="UTC")
REPEATED = {
    "pandas": IN_UTC.tz_convert("Europe/Berlin"),
    "python": datetime(2021, 10, 31, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    "python in UTC": datetime(2021, 10, 31, 1, 30, tzinfo=UTC),
}


def edges_of(*pairs, dtype=object):
    return pd.DataFrame(
        {name: pd.Series(ids, dtype=dtype) for name, ids in zip(("src", "dst"), zip(*pairs, strict=True), strict=True)}
    )


@pytest.fixture(params=[True, False], ids=["compiled", "NumPy"])
def _each_library(request, group_in_numpy):
    if not request.param:
        group_in_numpy()


def test_the_hashes_differ():
    assert REPEATED["pandas"] == IN_UTC
    assert hash(IN_UTC) != hash(REPEATED["pandas"])


@pytest.mark.usefixtures("_each_library")
@pytest.mark.filterwarnings("ignore:ranking by the slower method")
@pytest.mark.parametrize("repeated", REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize("rows", [1, 20])
def test_equal_times_are_one_vertex_with_the_first_label(repeated, rows):
    edges = edges_of(*[(IN_UTC, OTHER), (OTHER, repeated)] * rows)
    found = edges.pagerank()
    assert found["vertex"].tolist() == [IN_UTC, OTHER]
    assert str(found["vertex"][0]) == str(IN_UTC)
    assert found["pagerank"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("repeated", REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize("typed", [True, False])
def test_equal_times_are_found(repeated, typed):
    edges = edges_of((IN_UTC, OTHER), (OTHER, IN_UTC), dtype="datetime64[us, UTC]" if typed else object)
    graph = prplugin.Graph(edges)
    graph.update(add=edges_of((repeated, OTHER)))
    graph.update(remove=edges_of((OTHER, repeated)))
    assert (graph.number_of_vertices, graph.number_of_edges) == (2, 2)
    expected = graph.rank(personalization={IN_UTC: 1}).ranks.tolist()
    assert graph.rank(personalization={repeated: 1}).ranks.tolist() == pytest.approx(expected, abs=1e-6)
    assert graph.rank(among=[repeated]).frame["vertex"].tolist() == [IN_UTC]


@pytest.mark.usefixtures("_each_library")
@pytest.mark.filterwarnings("ignore:ranking by the slower method")
@pytest.mark.parametrize("repeated", REPEATED.values(), ids=REPEATED)
def test_equal_times_in_tuples_are_one_vertex(repeated):
    edges = edges_of(*[((IN_UTC, "a"), (OTHER, "a")), ((OTHER, "a"), (repeated, "a"))])
    graph = prplugin.Graph(edges)
    assert graph.vertices.tolist() == [(IN_UTC, "a"), (OTHER, "a")]
    graph.update(add=edges_of(((repeated, "a"), (OTHER, "b"))))
    assert graph.vertices.tolist() == [(IN_UTC, "a"), (OTHER, "a"), (OTHER, "b")]
    assert graph.rank(among=[(repeated, "a")]).frame["vertex"].tolist() == [(IN_UTC, "a")]


@pytest.mark.parametrize("hours", [5, -5])
def test_times_outside_the_years_of_utc_are_ids(hours):
    edge = datetime.min if hours > 0 else datetime.max
    time = edge.replace(tzinfo=timezone(timedelta(hours=hours)))
    same = time.replace(tzinfo=None) + timedelta(hours=hours // 5)
    same = same.replace(tzinfo=timezone(timedelta(hours=hours + hours // 5)))
    assert time == same
    graph = prplugin.Graph(edges_of((time, OTHER), (OTHER, same)))
    assert graph.vertices.tolist() == [time, OTHER]
    graph.update(add=edges_of((same, time)))
    assert graph.number_of_vertices == 2


def test_columns_of_two_zones_hold_the_same_vertices():
    edges = pd.DataFrame(
        {
            "src": pd.DatetimeIndex([IN_UTC, OTHER]),
            "dst": pd.DatetimeIndex([OTHER, IN_UTC]).tz_convert("Europe/Berlin"),
        }
    )
    graph = prplugin.Graph(edges)
    assert graph.number_of_vertices == 2
    graph.update(add=edges.rename(columns={"src": "dst", "dst": "src"}))
    assert graph.number_of_vertices == 2


def test_equal_times_on_dask_workers():
    dask, dataframe = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    edges = edges_of(*[(IN_UTC, OTHER), (OTHER, REPEATED["pandas"])] * 5)
    with (
        dask.config.set({"dataframe.convert-string": False}),
        distributed.Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None),
    ):
        found = dataframe.from_pandas(edges, npartitions=2).pagerank().compute()
    assert sorted(found["vertex"]) == [OTHER, IN_UTC]
