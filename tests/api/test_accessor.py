"""`pagerank` as an attribute of frames: the column where there is one, as without prplugin, else the method."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import sys

import numpy as np
import pandas as pd
import pytest

import prplugin

EDGES = {"src": [1, 2, 3], "dst": [2, 1, 1]}
RANKED = {"vertex": [1, 2], "pagerank": [0.4, 0.6]}


def pandas_frame(data):
    return pd.DataFrame(data)


def dask_frame(data):
    return pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(data), npartitions=1)


def cudf_frame(data):
    pytest.importorskip("cupy")
    return pytest.importorskip("cudf").DataFrame(data)


LIBRARIES = [
    pytest.param(pandas_frame, id="pandas"),
    pytest.param(dask_frame, id="dask"),
    pytest.param(cudf_frame, id="cudf", marks=pytest.mark.gpu),
]


def values(column):
    """The values of a column of any library."""
    column = column.compute() if hasattr(column, "compute") else column
    return (column.to_pandas() if hasattr(column, "to_pandas") else column).tolist()


@pytest.mark.parametrize("make", LIBRARIES)
class TestEveryLibrary:
    def test_a_column_of_that_name_is_read(self, make):
        frame = make(RANKED)
        assert values(frame.pagerank) == [0.4, 0.6]
        assert values(frame.pagerank == 0.4) == [True, False]
        assert hasattr(frame, "pagerank")
        assert "pagerank" in dir(frame)
        assert values(frame.pagerank) == values(frame["pagerank"])

    def test_a_column_of_that_name_is_written(self, make):
        frame = make(RANKED)
        frame.pagerank = frame.pagerank * 2
        assert values(frame["pagerank"]) == [0.8, 1.2]
        assert values(frame.pagerank) == [0.8, 1.2]
        assert "pagerank" not in vars(frame)
        frame.pagerank = 3.0
        assert values(frame["pagerank"]) == [3.0, 3.0]

    def test_another_frame_has_the_method(self, make):
        frame = make(EDGES)
        assert frame.pagerank.__func__ is prplugin.pagerank
        assert next(iter(inspect.signature(frame.pagerank).parameters)) == "source"
        assert frame.pagerank.__doc__ == prplugin.pagerank.__doc__
        assert hasattr(frame, "pagerank")
        assert "pagerank" in dir(frame)
        assert inspect.signature(type(frame).pagerank) == inspect.signature(prplugin.pagerank)
        assert "Rank the vertices of a graph" in pydoc.render_doc(type(frame).pagerank)

    def test_the_method_comes_back_with_the_column_gone(self, make):
        frame = make(EDGES)
        frame["pagerank"] = frame["src"]
        assert values(frame.pagerank) == [1, 2, 3]
        assert callable(frame.drop(columns="pagerank").pagerank)

    def test_assigning_a_list_where_there_is_no_column_warns_and_adds_none(self, make):
        frame = make(EDGES)
        with pytest.warns(UserWarning, match="no column 'pagerank'") as warned:
            frame.pagerank = [1.0, 2.0, 3.0]
        assert warned[0].filename == __file__
        assert frame.pagerank == [1.0, 2.0, 3.0]
        assert list(frame.columns) == ["src", "dst"]
        del frame.pagerank
        assert callable(frame.pagerank)

    def test_assigning_a_scalar_where_there_is_no_column_sets_an_attribute(self, make):
        frame = make(EDGES)
        frame.pagerank = "x"
        assert frame.pagerank == "x"
        del frame.pagerank
        with pytest.raises(AttributeError):
            del frame.pagerank


@pytest.mark.parametrize("data", [RANKED, EDGES], ids=["with the column", "without"])
def test_copies_and_pickles(data):
    frame = pd.DataFrame(data)
    for again in (copy.copy(frame), copy.deepcopy(frame), pickle.loads(pickle.dumps(frame)), frame.iloc[:1]):
        assert callable(again.pagerank) == ("pagerank" not in data)


def test_a_result_ranks_by_attribute():
    ranks = pd.DataFrame(EDGES).pagerank()
    assert ranks[ranks.pagerank > 0.4].vertex.tolist() == [1, 2]
    assert ranks.pagerank.sum() == pytest.approx(1)


def test_an_absent_attribute_is_still_absent():
    with pytest.raises(AttributeError, match="no attribute 'pageranks'"):
        pd.DataFrame(RANKED).pageranks  # noqa: B018
    assert not hasattr(pd.Series([1]), "pagerank")


def test_columns_of_several_levels():
    frame = pd.DataFrame(
        np.eye(3), columns=pd.MultiIndex.from_tuples([("pagerank", "x"), ("pagerank", "y"), ("a", "x")])
    )
    pd.testing.assert_frame_equal(frame.pagerank, frame["pagerank"])
    frame.pagerank = 0.5
    assert (frame["pagerank"] == 0.5).all(axis=None)
    frame.columns = pd.MultiIndex.from_tuples([("a", "pagerank"), ("b", "pagerank"), ("c", "x")])
    assert callable(frame.pagerank)


@pytest.mark.parametrize("columns", [pd.RangeIndex(2), pd.DatetimeIndex(["2020-01-01", "2020-01-02"]), [1.5, "a"]])
def test_columns_that_are_no_strings(columns):
    assert callable(pd.DataFrame(np.eye(2), columns=columns).pagerank)


def test_subclasses():
    class Frame(pd.DataFrame):
        @property
        def _constructor(self):
            return Frame

    class Own(pd.DataFrame):
        def pagerank(self):
            return "own"

    frame = Frame(RANKED)
    assert frame.pagerank.tolist() == [0.4, 0.6]
    frame.pagerank = [1, 2]
    assert frame["pagerank"].tolist() == [1, 2]
    assert Frame(EDGES).pagerank().vertex.tolist() == [1, 2, 3]
    assert Own(EDGES).pagerank() == "own"


def test_help_lists_the_method():
    attributes = {attribute.name: attribute for attribute in inspect.classify_class_attrs(pd.DataFrame)}
    assert attributes["pagerank"].kind == "method"
    assert "pagerank" in dir(pd.DataFrame)


def test_relations_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    edges = duckdb.sql("SELECT 1 AS src, 2 AS dst")
    assert edges.pagerank().num_rows == 2
    ranked = duckdb.sql("SELECT 1 AS vertex, 0.5::DOUBLE AS pagerank, 2 AS b")
    assert ranked.pagerank.fetchall() == [(0.5,)]
    assert duckdb.sql("SELECT 1 AS a, 2 AS PageRank").pagerank.fetchall() == [(2,)]


def test_frames_of_polars_have_no_attributes_for_columns():
    polars = pytest.importorskip("polars")
    for frame in (polars.DataFrame(RANKED), polars.LazyFrame(RANKED)):
        assert frame.pagerank.__func__ is prplugin.pagerank


class Wrapper:
    """What a proxy of cudf.pandas does with attributes: those of its type first, then those of what it holds."""

    def __init__(self, held):
        object.__setattr__(self, "_held", held)

    def __contains__(self, name):
        return name in self._held

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "_held"), name)

    def __setattr__(self, name, value):
        setattr(self._held, name, value)


def test_proxies(monkeypatch):
    module = type(sys)("cudf.pandas._wrappers.pandas")
    module.DataFrame = Wrapper
    monkeypatch.setitem(sys.modules, module.__name__, module)
    prplugin.accessor.register(prplugin.pagerank)  # whose hooks run at once for what is loaded
    proxy = Wrapper(pd.DataFrame(RANKED))
    assert proxy.pagerank.tolist() == [0.4, 0.6]
    proxy.pagerank = [1, 2]
    assert proxy.pagerank.tolist() == [1, 2]
    assert Wrapper(pd.DataFrame(EDGES)).pagerank.__func__ is prplugin.pagerank
    assert Wrapper.pagerank is prplugin.pagerank
