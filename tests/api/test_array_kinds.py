"""Arrays of every kind as values by vertex: the result of the plain array, or an error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import prplugin

EDGES = pd.DataFrame({"src": [0, 1, 2, 3, 3], "dst": [1, 2, 0, 0, 1]})
GRAPHS = {"frame": prplugin.Graph(EDGES), "matrix": prplugin.Graph.from_csr([0, 1, 2, 3, 5], [1, 2, 0, 0, 1])}
VALUES = np.array([1.0, 0.0, 2.0, 5.0])


class Meters(np.ndarray):
    """An array with a unit."""


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


RIGHT = {
    "nothing masked": np.ma.array(VALUES, mask=False),
    "strided": np.repeat(VALUES, 2)[::2],
    "reversed": VALUES[::-1].copy()[::-1],
    "read-only": read_only(VALUES),
    "big-endian": VALUES.astype(">f8"),
    "big-endian integers": VALUES.astype(">i4"),
    "unaligned": np.frombuffer(b"0" + VALUES.tobytes(), offset=1),
    "objects": VALUES.astype(object),
    "float16": VALUES.astype(np.float16),
    "long double": VALUES.astype(np.longdouble),
    "booleans": VALUES > 0,
}
REFUSED = {
    "masked": np.ma.array(VALUES, mask=[0, 0, 1, 0]),
    "a unit": VALUES.view(Meters),
    "complex": VALUES.astype(complex),
    "structured": np.array([(1.0,)] * 4, [("value", "f8")]),
    "record": np.rec.array([(1.0,)] * 4, [("value", "f8")]),
    "text": VALUES.astype(str),
    "dates": VALUES.astype("M8[D]"),
    "mixed objects": np.array([1, "a", 2, None], object),
}
CALLS = {
    "personalization": lambda graph, given: graph.rank(personalization=given),
    "nstart": lambda graph, given: graph.rank(nstart=given, max_iter=1, tol=0, stop="delta"),
    "dangling": lambda graph, given: graph.rank(dangling=given),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", RIGHT)
def test_values_are_those_of_the_plain_array(kind, call, graph):
    plain = np.array(RIGHT[kind].tolist(), np.float64)
    found, expected = (CALLS[call](GRAPHS[graph], given) for given in (RIGHT[kind], plain))
    assert found.ranks.tolist() == expected.ranks.tolist()


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", REFUSED)
def test_other_arrays_are_refused(kind, call, graph):
    with pytest.raises(prplugin.PageRankError, match=call):
        CALLS[call](GRAPHS[graph], REFUSED[kind])


@pytest.mark.parametrize("graph", GRAPHS)
def test_seeds_with_masked_values_are_refused(graph):
    rows = np.array([VALUES, VALUES[::-1]])
    expected = GRAPHS[graph].rank(seeds=rows)
    for given in (np.ma.array(rows), np.asfortranarray(rows), rows.astype(">f8"), list(rows)):
        assert GRAPHS[graph].rank(seeds=given).ranks.tolist() == expected.ranks.tolist()
    for given in (np.ma.array(rows, mask=rows > 4), rows.view(Meters), [REFUSED["masked"], VALUES]):
        with pytest.raises(prplugin.PageRankError, match="seeds"):
            GRAPHS[graph].rank(seeds=given)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("argument", ["among", "seeds", "personalization"])
def test_masked_vertices_are_refused(graph, argument):
    given = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    with pytest.raises(prplugin.PageRankError, match=argument):
        GRAPHS[graph].rank(**{argument: given})


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: pytest.importorskip("polars").from_pandas(frame)])
def test_masked_additional_vertices_are_refused(make):
    with pytest.raises(prplugin.InvalidOptionError, match="vertices is a masked array, of which 1 entry is masked"):
        prplugin.Graph(make(EDGES), vertices=np.ma.array([7, 8], mask=[0, 1]))
    plain = prplugin.Graph(make(EDGES), vertices=np.ma.array([7, 8]))
    assert plain.number_of_vertices == 6


def test_masked_arrays_of_matrices_are_refused():
    arrays = {"offsets": np.array([0, 1, 2, 3, 5]), "indices": np.array([1, 2, 0, 0, 1]), "weights": np.ones(5)}
    for name, array in arrays.items():
        masked = np.ma.array(array, mask=array == array[1])
        with pytest.raises(prplugin.InvalidEdgesError, match=f"{name} is a masked array"):
            prplugin.Graph.from_csr(**{**arrays, name: masked})
        with pytest.raises(prplugin.InvalidEdgesError, match=f"{name} is a .*Meters"):
            prplugin.Graph.from_csr(**{**arrays, name: array.view(Meters)})


@pytest.mark.parametrize(
    ("layout", "names"),
    [
        ("csr", ("data", "indices", "indptr")),
        ("csc", ("data", "indices", "indptr")),
        ("coo", ("data", "row", "col")),
    ],
)
def test_masked_entries_of_sparse_matrices_are_refused(layout, names):
    whole = sparse.csr_array(([1.0] * 5, [1, 2, 0, 0, 1], [0, 1, 2, 3, 5]), (4, 4)).asformat(layout)
    for name in names:
        matrix = whole.copy()
        array = getattr(matrix, name)
        masked = np.ma.array(array, mask=np.arange(array.size) == 0)
        if name in ("row", "col"):
            others = {"row": matrix.row, "col": matrix.col, name: masked}
            matrix.coords = (others["row"], others["col"])
        else:
            setattr(matrix, name, masked)
        with pytest.raises(prplugin.InvalidEdgesError, match=f"{name} is a masked array"):
            prplugin.Graph.from_csr(matrix)


@pytest.mark.parametrize("column", ["src", "dst", "w"])
def test_masked_columns_are_missing(column):
    edges = EDGES.assign(w=1.0)
    columns = {name: np.ma.array(edges[name], mask=(name == column) & (edges.index == 2)) for name in edges}
    with pytest.raises(prplugin.InvalidEdgesError, match=f"'{column}'.*2"):
        pd.DataFrame(columns).pagerank(weight="w")
