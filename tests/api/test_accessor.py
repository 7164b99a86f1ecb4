"""`pagerank` as an attribute of a frame: the column of that name if the frame has one, else the method."""

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
    """Return the values of a column of any library as a list."""
    column = column.compute() if hasattr(column, "compute") else column
    return (column.to_pandas() if hasattr(column, "to_pandas") else column).tolist()


@pytest.mark.parametrize("make", LIBRARIES)
class TestAttributeOfEachLibrary:
    def test_attribute_reads_the_column(self, make):
        frame = make(RANKED)
        assert values(frame.pagerank) == [0.4, 0.6]
        assert values(frame.pagerank == 0.4) == [True, False]
        assert hasattr(frame, "pagerank")
        assert "pagerank" in dir(frame)
        assert values(frame.pagerank) == values(frame["pagerank"])

    def test_assignment_to_the_attribute_writes_the_column(self, make):
        frame = make(RANKED)
        frame.pagerank = frame.pagerank * 2
        assert values(frame["pagerank"]) == [0.8, 1.2]
        assert values(frame.pagerank) == [0.8, 1.2]
        assert "pagerank" not in vars(frame)
        frame.pagerank = 3.0
        assert values(frame["pagerank"]) == [3.0, 3.0]

    def test_attribute_is_the_method_without_the_column(self, make):
        frame = make(EDGES)
        assert frame.pagerank.__func__ is prplugin.pagerank
        assert next(iter(inspect.signature(frame.pagerank).parameters)) == "source"
        assert frame.pagerank.__doc__ == prplugin.pagerank.__doc__
        assert hasattr(frame, "pagerank")
        assert "pagerank" in dir(frame)
        assert inspect.signature(type(frame).pagerank) == inspect.signature(prplugin.pagerank)
        assert "Rank the vertices of a graph" in pydoc.render_doc(type(frame).pagerank)

    def test_attribute_is_the_method_again_after_the_column_is_dropped(self, make):
        frame = make(EDGES)
        frame["pagerank"] = frame["src"]
        assert values(frame.pagerank) == [1, 2, 3]
        assert callable(frame.drop(columns="pagerank").pagerank)

    def test_assigning_a_list_without_the_column_warns_and_adds_no_column(self, make):
        frame = make(EDGES)
        with pytest.warns(UserWarning, match="no column 'pagerank'") as warned:
            frame.pagerank = [1.0, 2.0, 3.0]
        assert warned[0].filename == __file__
        assert frame.pagerank == [1.0, 2.0, 3.0]
        assert list(frame.columns) == ["src", "dst"]
        del frame.pagerank
        assert callable(frame.pagerank)

    def test_assigning_a_scalar_without_the_column_sets_an_attribute(self, make):
        frame = make(EDGES)
        frame.pagerank = "x"
        assert frame.pagerank == "x"
        del frame.pagerank
        with pytest.raises(AttributeError):
            del frame.pagerank


@pytest.mark.parametrize("data", [RANKED, EDGES], ids=["with the column", "without the column"])
def test_copies_and_pickles_keep_the_attribute(data):
    frame = pd.DataFrame(data)
    for copied in (copy.copy(frame), copy.deepcopy(frame), pickle.loads(pickle.dumps(frame)), frame.iloc[:1]):
        assert callable(copied.pagerank) == ("pagerank" not in data)


def test_result_gives_its_ranks_by_attribute():
    ranks = pd.DataFrame(EDGES).pagerank()
    assert ranks[ranks.pagerank > 0.4].vertex.tolist() == [1, 2]
    assert ranks.pagerank.sum() == pytest.approx(1)


def test_unknown_attributes_still_raise_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'pageranks'"):
        pd.DataFrame(RANKED).pageranks  # noqa: B018
    assert not hasattr(pd.Series([1]), "pagerank")


def test_columns_of_a_multi_index():
    frame = pd.DataFrame(
        np.eye(3), columns=pd.MultiIndex.from_tuples([("pagerank", "x"), ("pagerank", "y"), ("a", "x")])
    )
    pd.testing.assert_frame_equal(frame.pagerank, frame["pagerank"])
    frame.pagerank = 0.5
    assert (frame["pagerank"] == 0.5).all(axis=None)
    frame.columns = pd.MultiIndex.from_tuples([("a", "pagerank"), ("b", "pagerank"), ("c", "x")])
    assert callable(frame.pagerank)


@pytest.mark.parametrize("columns", [pd.RangeIndex(2), pd.DatetimeIndex(["2020-01-01", "2020-01-02"]), [1.5, "a"]])
def test_column_labels_that_are_not_strings(columns):
    assert callable(pd.DataFrame(np.eye(2), columns=columns).pagerank)


def test_subclasses_of_dataframe():
    class Frame(pd.DataFrame):
        @property
        def _constructor(self):
            return Frame

    class FrameWithOwnMethod(pd.DataFrame):
        def pagerank(self):
            return "own"

    frame = Frame(RANKED)
    assert frame.pagerank.tolist() == [0.4, 0.6]
    frame.pagerank = [1, 2]
    assert frame["pagerank"].tolist() == [1, 2]
    assert Frame(EDGES).pagerank().vertex.tolist() == [1, 2, 3]
    assert FrameWithOwnMethod(EDGES).pagerank() == "own"


def test_help_lists_the_method():
    attributes = {attribute.name: attribute for attribute in inspect.classify_class_attrs(pd.DataFrame)}
    assert attributes["pagerank"].kind == "method"
    assert "pagerank" in dir(pd.DataFrame)


def test_duckdb_relations():
    duckdb = pytest.importorskip("duckdb")
    edges = duckdb.sql("SELECT 1 AS src, 2 AS dst")
    assert edges.pagerank().num_rows == 2
    ranked = duckdb.sql("SELECT 1 AS vertex, 0.5::DOUBLE AS pagerank, 2 AS b")
    assert ranked.pagerank.fetchall() == [(0.5,)]
    assert duckdb.sql("SELECT 1 AS a, 2 AS PageRank").pagerank.fetchall() == [(2,)]


def test_polars_frames_always_have_the_method():
    polars = pytest.importorskip("polars")
    for frame in (polars.DataFrame(RANKED), polars.LazyFrame(RANKED)):
        assert frame.pagerank.__func__ is prplugin.pagerank


class Proxy:
    """A stand-in for a cudf.pandas proxy: attributes of its own type come first, then those of the wrapped frame."""

    def __init__(self, wrapped):
        object.__setattr__(self, "_wrapped", wrapped)

    def __contains__(self, name):
        return name in self._wrapped

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "_wrapped"), name)

    def __setattr__(self, name, value):
        setattr(self._wrapped, name, value)


def test_cudf_pandas_proxies(monkeypatch):
    module = type(sys)("cudf.pandas._wrappers.pandas")
    module.DataFrame = Proxy
    monkeypatch.setitem(sys.modules, module.__name__, module)
    prplugin.accessor.register(prplugin.pagerank)  # runs its hooks at once for modules that are loaded
    proxy = Proxy(pd.DataFrame(RANKED))
    assert proxy.pagerank.tolist() == [0.4, 0.6]
    proxy.pagerank = [1, 2]
    assert proxy.pagerank.tolist() == [1, 2]
    assert Proxy(pd.DataFrame(EDGES)).pagerank.__func__ is prplugin.pagerank
    assert Proxy.pagerank is prplugin.pagerank
