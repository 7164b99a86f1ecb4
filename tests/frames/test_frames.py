"""pandas frames: dtypes of ids and weights, and the order of the result."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import prplugin

# Edges d-b, a-d, d-a, c-b. Order of first appearance: d, b, a, c.
SOURCES, TARGETS = [3, 0, 3, 2], [1, 3, 0, 1]
FIRST_SEEN = [3, 1, 0, 2]


def expected_ranks() -> dict[int, float]:
    ranks = pd.DataFrame({"src": SOURCES, "dst": TARGETS}).pagerank(tol=1e-12)
    return dict(zip(ranks["vertex"], ranks["pagerank"], strict=True))


INTEGERS = [
    *(
        np.dtype(kind)
        for kind in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i4", ">i8"]
    ),
    *(f"{u}Int{bits}" for u in ("", "U") for bits in (8, 16, 32, 64)),
    *(pd.ArrowDtype(kind) for kind in (pa.int8(), pa.int32(), pa.int64(), pa.uint64())),
]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "ids", [[0, 1, 2, 3], [-100, 0, 5, 101], [90, 100, 110, 126]], ids=["dense", "signed", "sparse"]
)
def test_integer_ids_ascend_and_keep_their_type(dtype, ids):
    if min(ids) < 0 and "u" in str(dtype).lower():
        ids = [i + 101 for i in ids]
    edges = pd.DataFrame({"src": [ids[i] for i in SOURCES], "dst": [ids[i] for i in TARGETS]}).astype(dtype)
    ranks = edges.pagerank(tol=1e-12)
    assert ranks["vertex"].tolist() == ids
    assert ranks["vertex"].dtype == (dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else edges["src"].dtype)
    np.testing.assert_allclose(ranks["pagerank"], [expected_ranks()[i] for i in range(4)], rtol=0, atol=2e-12)


DAYS = pd.to_datetime(["2026-01-01", "2024-02-29", "2025-03-01", "1969-07-20"])
UUIDS = [uuid.UUID(int=i) for i in (9, 1, 5, 2)]
OTHER_IDS = {
    "object strings": pd.Series(["x", "ä", "", "long " * 50], dtype=object),
    "str": pd.Series(["x", "ä", "", "long"], dtype="str"),
    "string[python]": pd.Series(["x", "ä", "", "long"], dtype="string[python]"),
    "string[pyarrow]": pd.Series(["x", "ä", "", "long"], dtype="string[pyarrow]"),
    "arrow string": pd.Series(["x", "ä", "", "long"], dtype=pd.ArrowDtype(pa.string())),
    "arrow large_string": pd.Series(["x", "ä", "", "long"], dtype=pd.ArrowDtype(pa.large_string())),
    "category of strings": pd.Series(pd.Categorical(["x", "y", "z", "u"], categories=list("uvwxyz"))),
    "datetime": pd.Series(DAYS),
    "datetime in seconds": pd.Series(DAYS).astype("datetime64[s]"),
    "datetime with a time zone": pd.Series(DAYS.tz_localize("Europe/Berlin")),
    "arrow timestamp": pd.Series(DAYS).astype(pd.ArrowDtype(pa.timestamp("us"))),
    "timedelta": pd.Series(DAYS - DAYS[0]),
    "period": pd.Series(DAYS.to_period("D")),
    "bytes": pd.Series([b"x", b"", b"y", b"z"], dtype=object),
    "dates": pd.Series([day.date() for day in DAYS], dtype=object),
    "uuids": pd.Series(UUIDS, dtype=object),
    "tuples": pd.Series([(1, "a"), (1, "b"), (2, "a"), ()], dtype=object),
}


@pytest.mark.parametrize("name", OTHER_IDS)
def test_other_ids_keep_their_order_of_first_appearance_and_type(name):
    ids = OTHER_IDS[name]
    edges = pd.DataFrame(
        {"src": ids.take(SOURCES).reset_index(drop=True), "dst": ids.take(TARGETS).reset_index(drop=True)}
    )
    ranks = edges.pagerank(tol=1e-12)
    assert ranks["vertex"].tolist() == ids.take(FIRST_SEEN).tolist()
    assert ranks["vertex"].dtype == ids.dtype
    np.testing.assert_allclose(ranks["pagerank"], [expected_ranks()[i] for i in FIRST_SEEN], rtol=0, atol=2e-12)
    by_dict = edges.pagerank(personalization={ids[2]: 1.0, ids[3]: 3.0})
    pd.testing.assert_frame_equal(
        by_dict, edges.pagerank(personalization=pd.DataFrame({"vertex": ids.take([2, 3]), "values": [1.0, 3.0]}))
    )


def test_bool_ids_keep_their_order_of_first_appearance():
    edges = pd.DataFrame({"src": [True, False], "dst": [False, False]})
    assert edges.pagerank()["vertex"].tolist() == [True, False]
    assert edges.astype("boolean").pagerank()["vertex"].dtype == "boolean"


def test_integers_in_object_and_categorical_columns_ascend():
    edges = pd.DataFrame({"src": [30, 10], "dst": [20, 30]})
    assert edges.astype(object).pagerank()["vertex"].tolist() == [10, 20, 30]
    category = pd.CategoricalDtype([30, 20, 10, 5])
    ranks = edges.astype(category).pagerank()
    assert ranks["vertex"].tolist() == [10, 20, 30]
    assert ranks["vertex"].dtype == category


def test_extreme_64_bit_ids():
    low, high = -(2**63), 2**63 - 1
    edges = pd.DataFrame({"src": [low, high, 0], "dst": [high, 0, low]})
    assert edges.pagerank()["vertex"].tolist() == [low, 0, high]
    edges = pd.DataFrame({"src": [2**64 - 1, 2**64 - 2], "dst": [2**64 - 3, 2**64 - 1]}, dtype="uint64")
    assert edges.pagerank()["vertex"].tolist() == [2**64 - 3, 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize("ids", [[0, 5], [2**63 + 5, 2**64 - 1]])
def test_signed_and_unsigned_ids(ids):
    edges = pd.DataFrame({"src": pd.Series([1, 7], dtype="int32"), "dst": pd.Series(ids, dtype="uint64")})
    assert edges.pagerank()["vertex"].tolist() == sorted({1, 7, *ids})


def test_integers_of_different_widths():
    edges = pd.DataFrame({"src": pd.Series([1, 2], dtype="int8"), "dst": pd.Series([300, 1], dtype="Int64")})
    ranks = edges.pagerank(vertices=np.array([70000], dtype="uint32"))
    assert ranks["vertex"].tolist() == [1, 2, 300, 70000]
    assert ranks["vertex"].dtype == "int64"


@pytest.mark.parametrize("other", ["str", "string[pyarrow]", "category", object])
@pytest.mark.parametrize("one", ["str", "string[python]", "category", object])
def test_strings_of_different_dtypes_compare_equal(one, other):
    edges = pd.DataFrame({"src": pd.Series(["b", "a"], dtype=one), "dst": pd.Series(["a", "c"], dtype=other)})
    assert edges.pagerank(vertices=["d", "a"])["vertex"].tolist() == ["b", "a", "c", "d"]


def test_datetimes_of_different_units():
    edges = pd.DataFrame(
        {"src": pd.to_datetime(["2026-01-01 00:00:00.5"]), "dst": pd.to_datetime(["2026-01-02"]).as_unit("s")}
    )
    ranks = edges.pagerank(vertices=[pd.Timestamp("2026-01-02"), pd.Timestamp("2027-01-01")])
    assert ranks["vertex"].tolist() == [*edges["src"], *edges["dst"], pd.Timestamp("2027-01-01")]


def test_vertices_have_the_dtype_of_the_ids():
    for dtype in (object, "string", "str"):
        edges = pd.DataFrame({"src": ["a", "b"], "dst": ["b", "a"]}, dtype=dtype)
        assert prplugin.Graph(edges).vertices.dtype == edges["src"].dtype
        pairs = edges.assign(u=edges["dst"], v=edges["src"])
        assert (prplugin.Graph(pairs, ["src", "u"], ["dst", "v"]).vertices.dtypes == edges["src"].dtype).all()


def test_vertices_of_several_columns():
    edges = pd.DataFrame(
        {"ns": ["x", "x", "y"], "from": [1, 2, 1], "to_ns": ["y", "x", "x"], "to": [1, 1, 2], "w": [1.0, 2.0, 3.0]}
    )
    graph = prplugin.Graph(edges, ["ns", "from"], ["to_ns", "to"], "w", vertices=[("z", 9), ("x", 1)])
    ranks = graph.rank(tol=1e-12).frame
    assert list(ranks.columns) == ["ns", "from", "pagerank"]
    assert list(zip(ranks["ns"], ranks["from"], strict=True)) == [("x", 1), ("y", 1), ("x", 2), ("z", 9)]
    joined = edges.assign(a=edges.ns + edges["from"].astype(str), b=edges.to_ns + edges.to.astype(str))
    expected = joined.pagerank("a", "b", "w", vertices=["z9"], tol=1e-12)
    assert ranks["pagerank"].tolist() == expected["pagerank"].tolist()
    for given in (
        {("x", 2): 1, ("z", 9): 2},
        pd.Series([1, 2], index=pd.MultiIndex.from_tuples([("x", 2), ("z", 9)])),
        pd.DataFrame({"from": [2, 9], "ns": ["x", "z"], "values": [1, 2]}),
    ):
        found = graph.rank(personalization=given).frame["pagerank"]
        expected = joined.pagerank("a", "b", "w", vertices=["z9"], personalization={"x2": 1, "z9": 2})["pagerank"]
        assert found.tolist() == expected.tolist()
    frame = pd.DataFrame({"from": [9], "ns": ["z"]})
    assert len(prplugin.pagerank(edges, ["ns", "from"], ["to_ns", "to"], vertices=frame)) == 4


def test_tuples_whose_products_exceed_64_bits():
    # Five columns of 2**13 distinct values each: 2**65 possible tuples.
    n = 1 << 13
    random = np.random.default_rng(0)
    columns = {f"s{i}": random.permutation(n) for i in range(5)}
    edges = pd.DataFrame({**columns, **{f"d{i}": np.roll(columns[f"s{i}"], 1) for i in range(5)}})
    names = [f"s{i}" for i in range(5)]
    ranks = edges.pagerank(names, [f"d{i}" for i in range(5)])
    assert len(ranks) == n
    np.testing.assert_allclose(ranks["pagerank"], 1 / n, rtol=1e-9)
    first = edges.loc[0, names].tolist(), edges.loc[0, [f"d{i}" for i in range(5)]].tolist()
    assert ranks.loc[:1, names].to_numpy().tolist() == list(first)


WEIGHTS = {
    "int8": pd.array([1, 2, 3, 4], dtype="int8"),
    "uint64": pd.array([2**63, 2**63, 2**62, 1], dtype="uint64"),
    "float16": np.array([1, 2, 3, 4], dtype="float16"),
    "float32": np.array([1, 2, 3, 4], dtype="float32"),
    "longdouble": np.array([1, 2, 3, 4], dtype=np.longdouble),
    "bool": np.array([True, False, True, True]),
    "Int64": pd.array([1, 2, 3, 4], dtype="Int64"),
    "Float64": pd.array([1, 2, 3, 4], dtype="Float64"),
    "arrow int": pd.array([1, 2, 3, 4], dtype=pd.ArrowDtype(pa.int32())),
    "arrow decimal": pd.array(
        [Decimal("1.5"), Decimal(2), Decimal(3), Decimal(4)], dtype=pd.ArrowDtype(pa.decimal128(9, 2))
    ),
    "Decimal": pd.array([Decimal("1.5"), Decimal(2), Decimal(3), Decimal(4)], dtype=object),
    "int objects": pd.array([1, 2, 3, 10**30], dtype=object),
    "big endian": np.array([1, 2, 3, 4], dtype=">f8"),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_of_any_numeric_dtype(name):
    edges = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 0], "w": WEIGHTS[name]})
    floats = edges.assign(w=[float(w) for w in WEIGHTS[name]])
    pd.testing.assert_frame_equal(edges.pagerank(weight="w"), floats.pagerank(weight="w"), check_exact=True)


def test_columns_of_sparse_dtype():
    edges = pd.DataFrame({"src": [0, 0, 0, 2], "dst": [0, 1, 0, 0], "w": [0.0, 0.0, 1.5, 2.0]})
    sparse = edges.astype(pd.SparseDtype("int64", 0)).assign(w=edges["w"].astype(pd.SparseDtype("float64", 0.0)))
    pd.testing.assert_frame_equal(sparse.pagerank(weight="w"), edges.pagerank(weight="w"))


def test_vertices_widen_the_dtype_of_ids_only_if_needed():
    edges = pd.DataFrame({"src": [1, 2], "dst": [2, 1]}, dtype="uint8")
    for vertices, dtype in (
        ([], "uint8"),
        ([255], "uint8"),
        ([256], "int64"),
        ([-1], "int64"),
        ([2**64 - 1], "uint64"),
    ):
        ranks = edges.pagerank(vertices=vertices)
        assert ranks["vertex"].tolist() == sorted({1, 2, *vertices})
        assert ranks["vertex"].dtype == dtype


def test_input_is_not_changed():
    edges = pd.DataFrame({"src": [3, 1], "dst": [1, 2], "w": [1.5, 2.5]}, index=["p", "q"])
    before = edges.copy(deep=True)
    personalization = pd.Series({1: 2.0, 3: 1.0}).rename_axis("vertex")
    nstart = personalization.copy()
    edges.pagerank(weight="w", personalization=personalization, nstart=nstart, directed=False, vertices=[9])
    pd.testing.assert_frame_equal(edges, before)
    assert personalization.tolist() == nstart.tolist() == [2.0, 1.0]
    ranks = edges.pagerank()
    ranks.loc[0, "pagerank"] = 7.0
    ranks.loc[0, "vertex"] = 7
    pd.testing.assert_frame_equal(edges, before)


@pytest.mark.parametrize("index", [[5, 5, 5], list("abc"), pd.MultiIndex.from_tuples([(0, 1), (0, 2), (1, 1)])])
def test_the_index_of_the_frame_is_ignored(index):
    plain = pd.DataFrame({"src": [3, 1, 2], "dst": [1, 2, 2], "w": [1, 2, 3]})
    pd.testing.assert_frame_equal(plain.set_axis(index).pagerank(weight="w"), plain.pagerank(weight="w"))


def test_column_labels_that_are_not_strings():
    edges = pd.DataFrame([[1, 2], [2, 3]])
    assert edges.pagerank(0, 1)["vertex"].tolist() == [1, 2, 3]
    edges.columns = pd.MultiIndex.from_tuples([("e", "from"), ("e", "to")])
    assert edges.pagerank(("e", "from"), ("e", "to"))["vertex"].tolist() == [1, 2, 3]


def test_repeated_columns_that_are_not_used_are_ignored():
    edges = pd.DataFrame([[1, 2, 0, 0]], columns=["src", "dst", "x", "x"])
    assert len(edges.pagerank()) == 2


@pytest.mark.parametrize("pair", [("src", "dst"), ("source", "destination"), ("source", "target"), ("from", "to")])
def test_known_pairs_of_columns_are_found(pair):
    edges = pd.DataFrame([["x", 1, 2]], columns=["other", *pair])
    assert edges.pagerank()["vertex"].tolist() == [1, 2]


def test_the_first_known_pair_is_taken():
    edges = pd.DataFrame([[1, 2, 3, 4]], columns=["from", "to", "src", "dst"])
    assert edges.pagerank()["vertex"].tolist() == [3, 4]


VERTICES = [
    [3, 9], (3, 9), range(9, 2, -6), np.array([3, 9]), pd.Series([3, 9], index=[5, 5]), pd.Index([3, 9]),
    pd.array([3, 9], dtype="Int64"), {3: "x", 9: "y"}, pd.DataFrame({"any": [3, 9]}), {3: 1, 9: 1}.keys(), iter([3, 9]),
]  # fmt: skip


@pytest.mark.parametrize("vertices", VERTICES, ids=lambda v: type(v).__name__)
def test_more_vertices_from_any_container(vertices):
    ranks = pd.DataFrame({"src": [1], "dst": [2]}).pagerank(vertices=vertices)
    assert ranks["vertex"].tolist() == [1, 2, 3, 9]


class TestSmallGraphs:
    def test_no_rows(self):
        ranks = pd.DataFrame({"src": pd.Series([], dtype="int32"), "dst": pd.Series([], dtype="int32")}).pagerank()
        assert ranks.shape == (0, 2)
        assert ranks.dtypes.tolist() == [np.dtype("int32"), np.dtype("float64")]
        assert (
            pd.DataFrame({"src": [], "dst": []}, dtype="str").pagerank(dtype="float32").dtypes["pagerank"] == "float32"
        )
        assert pd.DataFrame(columns=["src", "dst"]).pagerank(top=3).empty

    def test_no_rows_but_vertices(self):
        ranks = pd.DataFrame({"src": [], "dst": []}, dtype="str").pagerank(vertices=["b", "a", "b"])
        assert ranks["vertex"].tolist() == ["b", "a"]
        assert ranks["pagerank"].tolist() == [0.5, 0.5]
        assert pd.DataFrame(columns=["src", "dst"]).pagerank(vertices=[4, 2])["vertex"].tolist() == [2, 4]

    def test_no_rows_of_several_columns(self):
        edges = pd.DataFrame({name: [] for name in "abcd"}, dtype="int64")
        assert list(edges.pagerank(["a", "b"], ["c", "d"]).columns) == ["a", "b", "pagerank"]
        ranks = edges.pagerank(["a", "b"], ["c", "d"], vertices=[(1, 2), (1, 3)])
        assert ranks["pagerank"].tolist() == [0.5, 0.5]

    def test_one_row_and_one_vertex(self):
        ranks = pd.DataFrame({"src": ["a"], "dst": ["a"]}).pagerank()
        assert ranks.to_numpy().tolist() == [["a", 1.0]]

    def test_all_dangling(self):
        ranks = pd.DataFrame({"src": [1, 2], "dst": [2, 1], "w": [0.0, -0.0]}).pagerank(weight="w")
        assert ranks["pagerank"].tolist() == [0.5, 0.5]

    def test_none_dangling(self):
        ranks = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1]}).pagerank(tol=1e-12)
        np.testing.assert_allclose(ranks["pagerank"], 1 / 3, atol=1e-12)


def test_date_objects_in_columns_and_dicts():
    day = datetime.date(2026, 1, 1)
    edges = pd.DataFrame({"src": [day], "dst": [datetime.date(2026, 1, 2)]})
    assert edges.pagerank(personalization={day: 1})["vertex"].tolist() == edges.iloc[0].tolist()


def test_compiled_and_numpy_factorization_agree(monkeypatch):
    """The compiled kernels and their NumPy counterparts return the same order of vertices and the same graph."""
    random = np.random.default_rng(5)
    for low, high in ((0, 500), (-(2**62), 2**62)):
        ids = random.integers(low, high, 400)
        edges = pd.DataFrame(
            {"src": random.choice(ids, 3000), "dst": random.choice(ids, 3000), "w": random.random(3000)}
        )
        for dtype in ("int64", "uint64"):
            cast = edges.astype({"src": dtype, "dst": dtype})
            results = []
            for compiled in (False, True):
                monkeypatch.setattr("prplugin.cpu.library.is_available", lambda compiled=compiled: compiled)
                graph = prplugin.Graph(cast, weight="w")
                results.append((graph.rank(method="numpy", tol=1e-12), graph.csr(), graph.csc()))
            (ranking, csr, csc), (compiled, compiled_csr, compiled_csc) = results
            assert ranking.frame["vertex"].equals(compiled.frame["vertex"])
            np.testing.assert_allclose(ranking.ranks, compiled.ranks, rtol=1e-13)
            for one, other in zip((*csr, *csc), (*compiled_csr, *compiled_csc), strict=True):
                np.testing.assert_array_equal(one, other)
                assert one.dtype == other.dtype


def test_hash_table_that_grows():
    ids = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 200_000)
    ranks = pd.DataFrame({"src": ids, "dst": np.roll(ids, 1)}).pagerank(top=None, tol=1e-3)
    assert ranks["vertex"].tolist() == np.unique(ids).tolist()


def test_results_do_not_share_memory():
    edges = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1]})
    graph = prplugin.Graph(edges)
    ranking = graph.rank()
    frame = ranking.frame
    frame.columns.name, frame.index.name = "column", "row"
    frame.loc[:, "pagerank"], frame.loc[:, "vertex"] = 5.0, 7
    second = graph.rank()
    assert second.frame["vertex"].tolist() == [1, 2, 3]
    assert ranking.ranks.tolist() == second.ranks.tolist()
    for one in (second.frame, edges.pagerank()):
        assert (one.columns.name, one.index.name) == (None, None)


class TestGraphIsIndependent:
    """Changing the frame or the arrays of a graph must not change the graph."""

    def test_changing_the_frame_does_not_change_the_graph(self):
        for dtype in ("int32", "int64", "uint64"):
            arrays = {
                "src": np.array([0, 0, 2], dtype),
                "dst": np.array([1, 2, 0], dtype),
                "w": np.array([100.0, 300.0, 1.0]),
            }
            edges = pd.DataFrame(arrays, copy=False)
            graph, before = prplugin.Graph(edges, weight="w"), edges.pagerank(weight="w", tol=1e-12)
            edges.loc[0, "w"] = 1.0
            edges.loc[0, "dst"] = 0
            for array in arrays.values():
                array[:] = 0
            pd.testing.assert_frame_equal(graph.rank(tol=1e-12).frame, before)

    def test_arrays_are_read_only(self):
        graph = prplugin.Graph(pd.DataFrame({"src": [0, 0, 2], "dst": [1, 2, 0], "w": [1.0, 3.0, 1.0]}), weight="w")
        for array in (*graph.csr(), *graph.csc()):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0


TYPES = ["int64", "uint64", "Int64", "UInt64", "int64[pyarrow]", "uint64[pyarrow]"]


@pytest.mark.parametrize("one", TYPES)
@pytest.mark.parametrize("other", TYPES)
def test_integers_past_2_to_53_are_compared_exactly(one, other):
    big = 2**53
    source, target = pd.array([big, 1], dtype=one), pd.array([big + 1, big], dtype=other)
    plain = pd.DataFrame({"src": source, "dst": target}).pagerank()
    assert plain["vertex"].tolist() == [1, big, big + 1]
    several = pd.DataFrame({"a": source, "b": 1, "c": target, "d": 1}).pagerank(["a", "b"], ["c", "d"])
    assert several["a"].tolist() == [big, big + 1, 1]
    assert pd.api.types.is_integer_dtype(several["a"].dtype)
    seeds = pd.DataFrame({"vertex": pd.array([big + 1, big], dtype=other), "values": [1.0, 3.0]})
    graph = prplugin.Graph(pd.DataFrame({"src": source, "dst": target}))
    ranks = graph.rank(alpha=0, personalization=seeds).frame
    assert ranks["pagerank"].tolist() == [0, 0.75, 0.25]


def test_arrow_dictionaries_are_decoded():
    dictionary = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    random = np.random.default_rng(0)
    for _ in range(20):
        plain = pd.DataFrame({"src": random.choice(list("abcdef"), 9), "dst": random.choice(list("abcdef"), 9)}).astype(
            "str"
        )
        found = plain.astype(dictionary).iloc[2:].pagerank(vertices=["z"])
        pd.testing.assert_frame_equal(found, plain.iloc[2:].pagerank(vertices=["z"]), check_dtype=False)


def test_empty_float_columns_are_accepted():
    edges = pd.DataFrame({"src": [], "dst": []}, dtype="float64")
    assert edges.pagerank().empty
    assert edges.pagerank(vertices=[3, 1])["vertex"].tolist() == [1, 3]
    assert pd.DataFrame({"src": [2], "dst": [1]}).pagerank(vertices=np.array([]))["vertex"].tolist() == [1, 2]


RETURNED_IDS = {
    "datetime objects": pd.Series([datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)], dtype=object),
    "timestamps": pd.Series([pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-02")], dtype=object),
    "arrow dates": pd.Series([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)], dtype=pd.ArrowDtype(pa.date32())),
    "arrow binary": pd.Series([b"x", b"y"], dtype=pd.ArrowDtype(pa.binary())),
    "arrow decimals": pd.Series([Decimal("1.50"), Decimal("2.25")], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "intervals": pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1, 2])),
    "sparse": pd.Series(pd.arrays.SparseArray([5, 6])),
}


@pytest.mark.parametrize("name", RETURNED_IDS)
def test_returned_ids_are_accepted_as_input(name):
    ids = RETURNED_IDS[name]
    graph = prplugin.Graph(pd.DataFrame({"src": ids, "dst": ids[::-1].reset_index(drop=True)}), vertices=ids.tolist())
    first, second = graph.rank().frame["vertex"]
    ranks = graph.rank(
        alpha=0, personalization={first: 1, second: 3}, nstart=pd.Series([1.0], index=pd.Index([second], name="id"))
    ).frame
    assert ranks["pagerank"].tolist() == [0.25, 0.75]
