"""Every way in which pandas can hold ids and weights, and the order in which they come back."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import prplugin

# Row by row: d-b, a-d, d-a, c-b. First seen: d, b, a, c.
SOURCES, TARGETS = [3, 0, 3, 2], [1, 3, 0, 1]
FIRST_SEEN = [3, 1, 0, 2]


def expected() -> dict[int, float]:
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
@pytest.mark.parametrize("ids", [[0, 1, 2, 3], [-100, 0, 5, 101], [90, 100, 110, 126]], ids=["dense", "signed", "gaps"])
def test_integer_ids_ascend_and_keep_their_type(dtype, ids):
    if min(ids) < 0 and "u" in str(dtype).lower():
        ids = [i + 101 for i in ids]
    edges = pd.DataFrame({"src": [ids[i] for i in SOURCES], "dst": [ids[i] for i in TARGETS]}).astype(dtype)
    ranks = edges.pagerank(tol=1e-12)
    assert ranks["vertex"].tolist() == ids
    assert ranks["vertex"].dtype == (dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else edges["src"].dtype)
    np.testing.assert_allclose(ranks["pagerank"], [expected()[i] for i in range(4)], rtol=0, atol=2e-12)


DAYS = pd.to_datetime(["2026-01-01", "2024-02-29", "2025-03-01", "1969-07-20"])
UUIDS = [uuid.UUID(int=i) for i in (9, 1, 5, 2)]
OTHERS = {
    "object strings": pd.Series(["x", "ä", "", "long " * 50], dtype=object),
    "str": pd.Series(["x", "ä", "", "long"], dtype="str"),
    "string[python]": pd.Series(["x", "ä", "", "long"], dtype="string[python]"),
    "string[pyarrow]": pd.Series(["x", "ä", "", "long"], dtype="string[pyarrow]"),
    "arrow string": pd.Series(["x", "ä", "", "long"], dtype=pd.ArrowDtype(pa.string())),
    "arrow large_string": pd.Series(["x", "ä", "", "long"], dtype=pd.ArrowDtype(pa.large_string())),
    "category of strings": pd.Series(pd.Categorical(["x", "y", "z", "u"], categories=list("uvwxyz"))),
    "datetime": pd.Series(DAYS),
    "datetime in seconds": pd.Series(DAYS).astype("datetime64[s]"),
    "datetime with a zone": pd.Series(DAYS.tz_localize("Europe/Berlin")),
    "arrow timestamp": pd.Series(DAYS).astype(pd.ArrowDtype(pa.timestamp("us"))),
    "timedelta": pd.Series(DAYS - DAYS[0]),
    "period": pd.Series(DAYS.to_period("D")),
    "bytes": pd.Series([b"x", b"", b"y", b"z"], dtype=object),
    "dates": pd.Series([day.date() for day in DAYS], dtype=object),
    "uuids": pd.Series(UUIDS, dtype=object),
    "tuples": pd.Series([(1, "a"), (1, "b"), (2, "a"), ()], dtype=object),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_ids_come_in_the_order_of_first_appearance_and_keep_their_type(name):
    ids = OTHERS[name]
    edges = pd.DataFrame(
        {"src": ids.take(SOURCES).reset_index(drop=True), "dst": ids.take(TARGETS).reset_index(drop=True)}
    )
    ranks = edges.pagerank(tol=1e-12)
    assert ranks["vertex"].tolist() == ids.take(FIRST_SEEN).tolist()
    assert ranks["vertex"].dtype == ids.dtype
    np.testing.assert_allclose(ranks["pagerank"], [expected()[i] for i in FIRST_SEEN], rtol=0, atol=2e-12)
    seed = {ids[2]: 1.0, ids[3]: 3.0}
    by_dict = edges.pagerank(personalization=seed)
    pd.testing.assert_frame_equal(
        by_dict, edges.pagerank(personalization=pd.DataFrame({"vertex": ids.take([2, 3]), "values": [1.0, 3.0]}))
    )


def test_bool_ids_come_in_the_order_of_first_appearance():
    edges = pd.DataFrame({"src": [True, False], "dst": [False, False]})
    assert edges.pagerank()["vertex"].tolist() == [True, False]
    assert edges.astype("boolean").pagerank()["vertex"].dtype == "boolean"


def test_integers_in_objects_and_categories_ascend():
    edges = pd.DataFrame({"src": [30, 10], "dst": [20, 30]})
    assert edges.astype(object).pagerank()["vertex"].tolist() == [10, 20, 30]
    category = pd.CategoricalDtype([30, 20, 10, 5])
    ranks = edges.astype(category).pagerank()
    assert ranks["vertex"].tolist() == [10, 20, 30]
    assert ranks["vertex"].dtype == category


def test_ids_at_the_ends_of_64_bits():
    low, high = -(2**63), 2**63 - 1
    edges = pd.DataFrame({"src": [low, high, 0], "dst": [high, 0, low]})
    assert edges.pagerank()["vertex"].tolist() == [low, 0, high]
    edges = pd.DataFrame({"src": [2**64 - 1, 2**64 - 2], "dst": [2**64 - 3, 2**64 - 1]}, dtype="uint64")
    assert edges.pagerank()["vertex"].tolist() == [2**64 - 3, 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize("ids", [[0, 5], [2**63 + 5, 2**64 - 1]])
def test_signed_beside_unsigned_ids(ids):
    edges = pd.DataFrame({"src": pd.Series([1, 7], dtype="int32"), "dst": pd.Series(ids, dtype="uint64")})
    assert edges.pagerank()["vertex"].tolist() == sorted({1, 7, *ids})


def test_widths_need_not_agree():
    edges = pd.DataFrame({"src": pd.Series([1, 2], dtype="int8"), "dst": pd.Series([300, 1], dtype="Int64")})
    ranks = edges.pagerank(vertices=np.array([70000], dtype="uint32"))
    assert ranks["vertex"].tolist() == [1, 2, 300, 70000]
    assert ranks["vertex"].dtype == "int64"


@pytest.mark.parametrize("other", ["str", "string[pyarrow]", "category", object])
@pytest.mark.parametrize("one", ["str", "string[python]", "category", object])
def test_strings_agree_however_they_are_held(one, other):
    edges = pd.DataFrame({"src": pd.Series(["b", "a"], dtype=one), "dst": pd.Series(["a", "c"], dtype=other)})
    assert edges.pagerank(vertices=["d", "a"])["vertex"].tolist() == ["b", "a", "c", "d"]


def test_dates_of_two_resolutions():
    edges = pd.DataFrame(
        {"src": pd.to_datetime(["2026-01-01 00:00:00.5"]), "dst": pd.to_datetime(["2026-01-02"]).as_unit("s")}
    )
    ranks = edges.pagerank(vertices=[pd.Timestamp("2026-01-02"), pd.Timestamp("2027-01-01")])
    assert ranks["vertex"].tolist() == [*edges["src"], *edges["dst"], pd.Timestamp("2027-01-01")]


def test_vertices_have_the_type_of_the_ids():
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
    named = edges.assign(a=edges.ns + edges["from"].astype(str), b=edges.to_ns + edges.to.astype(str))
    plain = named.pagerank("a", "b", "w", vertices=["z9"], tol=1e-12)
    assert ranks["pagerank"].tolist() == plain["pagerank"].tolist()
    for given in (
        {("x", 2): 1, ("z", 9): 2},
        pd.Series([1, 2], index=pd.MultiIndex.from_tuples([("x", 2), ("z", 9)])),
        pd.DataFrame({"from": [2, 9], "ns": ["x", "z"], "values": [1, 2]}),
    ):
        ours = graph.rank(personalization=given).frame["pagerank"]
        theirs = named.pagerank("a", "b", "w", vertices=["z9"], personalization={"x2": 1, "z9": 2})["pagerank"]
        assert ours.tolist() == theirs.tolist()
    frame = pd.DataFrame({"from": [9], "ns": ["z"]})
    assert len(prplugin.pagerank(edges, ["ns", "from"], ["to_ns", "to"], vertices=frame)) == 4


def test_tuples_of_more_values_than_64_bits_hold():
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
def test_weights_of_any_numeric_type(name):
    edges = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 0], "w": WEIGHTS[name]})
    floats = edges.assign(w=[float(w) for w in WEIGHTS[name]])
    pd.testing.assert_frame_equal(edges.pagerank(weight="w"), floats.pagerank(weight="w"), check_exact=True)


def test_sparse_columns():
    edges = pd.DataFrame({"src": [0, 0, 0, 2], "dst": [0, 1, 0, 0], "w": [0.0, 0.0, 1.5, 2.0]})
    sparse = edges.astype(pd.SparseDtype("int64", 0)).assign(w=edges["w"].astype(pd.SparseDtype("float64", 0.0)))
    pd.testing.assert_frame_equal(sparse.pagerank(weight="w"), edges.pagerank(weight="w"))


def test_a_list_of_integers_widens_the_ids_only_if_it_must():
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


def test_the_frame_is_never_changed():
    edges = pd.DataFrame({"src": [3, 1], "dst": [1, 2], "w": [1.5, 2.5]}, index=["p", "q"])
    before = edges.copy(deep=True)
    personalization = pd.Series({1: 2.0, 3: 1.0})
    nstart = personalization.copy()
    edges.pagerank(weight="w", personalization=personalization, nstart=nstart, directed=False, vertices=[9])
    pd.testing.assert_frame_equal(edges, before)
    assert personalization.tolist() == nstart.tolist() == [2.0, 1.0]
    ranks = edges.pagerank()
    ranks.loc[0, "pagerank"] = 7.0
    ranks.loc[0, "vertex"] = 7
    pd.testing.assert_frame_equal(edges, before)


def test_what_is_returned_can_be_changed_without_harm():
    graph = prplugin.Graph(pd.DataFrame({"src": [3, 1], "dst": [1, 2]}))
    ranking = graph.rank()
    kept = ranking.ranks.tolist()
    ranking.frame.loc[:, "pagerank"] = 0.0
    ranking.frame.loc[:, "vertex"] = 0
    assert ranking.ranks.tolist() == kept
    assert graph.rank().frame["vertex"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("index", [[5, 5, 5], list("abc"), pd.MultiIndex.from_tuples([(0, 1), (0, 2), (1, 1)])])
def test_the_index_of_the_frame_does_not_matter(index):
    plain = pd.DataFrame({"src": [3, 1, 2], "dst": [1, 2, 2], "w": [1, 2, 3]})
    pd.testing.assert_frame_equal(plain.set_axis(index).pagerank(weight="w"), plain.pagerank(weight="w"))


def test_labels_that_are_not_strings():
    edges = pd.DataFrame([[1, 2], [2, 3]])
    assert edges.pagerank(0, 1)["vertex"].tolist() == [1, 2, 3]
    edges.columns = pd.MultiIndex.from_tuples([("e", "from"), ("e", "to")])
    assert edges.pagerank(("e", "from"), ("e", "to"))["vertex"].tolist() == [1, 2, 3]


def test_a_repeated_column_that_is_not_asked_for_does_no_harm():
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


class TestShapes:
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


def test_dates_as_objects_are_one_kind_with_dates_in_a_list():
    day = datetime.date(2026, 1, 1)
    edges = pd.DataFrame({"src": [day], "dst": [datetime.date(2026, 1, 2)]})
    assert edges.pagerank(personalization={day: 1})["vertex"].tolist() == edges.iloc[0].tolist()


def test_large_and_small_frames_are_factorized_alike(monkeypatch):
    """The compiled ways and the ways without a compiler give one order and one graph."""
    random = np.random.default_rng(5)
    for low, high in ((0, 500), (-(2**62), 2**62)):
        ids = random.integers(low, high, 400)
        edges = pd.DataFrame(
            {"src": random.choice(ids, 3000), "dst": random.choice(ids, 3000), "w": random.random(3000)}
        )
        for dtype in ("int64", "uint64"):
            cast = edges.astype({"src": dtype, "dst": dtype})
            seen = []
            for limit in (10**9, 1):
                for module in ("prplugin.machine", "prplugin.graph.adjacency"):
                    monkeypatch.setattr(f"{module}.COMPILED_FROM", limit)
                graph = prplugin.Graph(cast, weight="w")
                seen.append((graph.rank(method="numpy", tol=1e-12), graph.csr(), graph.csc()))
            (ranking, csr, csc), (compiled, compiled_csr, compiled_csc) = seen
            assert ranking.frame["vertex"].equals(compiled.frame["vertex"])
            np.testing.assert_allclose(ranking.ranks, compiled.ranks, rtol=1e-13)
            for one, other in zip((*csr, *csc), (*compiled_csr, *compiled_csc), strict=True):
                np.testing.assert_array_equal(one, other)
                assert one.dtype == other.dtype


def test_a_hash_table_that_grows(monkeypatch):
    monkeypatch.setattr("prplugin.machine.COMPILED_FROM", 1)
    ids = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 200_000)
    ranks = pd.DataFrame({"src": ids, "dst": np.roll(ids, 1)}).pagerank(top=None, tol=1e-3)
    assert ranks["vertex"].tolist() == np.unique(ids).tolist()


def test_a_result_may_be_altered_without_another_being_so():
    edges = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1]})
    graph = prplugin.Graph(edges)
    ranking = graph.rank()
    frame = ranking.frame
    frame.columns.name, frame.index.name = "column", "row"
    frame.loc[0, "pagerank"], frame.loc[0, "vertex"] = 5.0, 7
    again = graph.rank()
    assert again.frame["vertex"].tolist() == [1, 2, 3]
    assert ranking.ranks.tolist() == again.ranks.tolist()
    for one in (again.frame, edges.pagerank()):
        assert (one.columns.name, one.index.name) == (None, None)


class TestTheGraphOutlivesTheFrame:
    """What becomes of the frame, or of what the graph hands out, must not change the graph."""

    def test_the_frame_may_change(self):
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

    def test_what_it_hands_out_is_read_only(self):
        graph = prplugin.Graph(pd.DataFrame({"src": [0, 0, 2], "dst": [1, 2, 0], "w": [1.0, 3.0, 1.0]}), weight="w")
        for array in (*graph.csr(), *graph.csc()):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0


TYPES = ["int64", "uint64", "Int64", "UInt64", "int64[pyarrow]", "uint64[pyarrow]"]


@pytest.mark.parametrize("one", TYPES)
@pytest.mark.parametrize("other", TYPES)
def test_integers_of_all_types_are_told_apart_exactly(one, other):
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


def test_arrow_dictionaries_are_what_they_hold():
    dictionary = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    random = np.random.default_rng(0)
    for _ in range(20):
        plain = pd.DataFrame({"src": random.choice(list("abcdef"), 9), "dst": random.choice(list("abcdef"), 9)}).astype(
            "str"
        )
        ours = plain.astype(dictionary).iloc[2:].pagerank(vertices=["z"])
        pd.testing.assert_frame_equal(ours, plain.iloc[2:].pagerank(vertices=["z"]), check_dtype=False)


def test_empty_columns_of_floats_hold_no_ids():
    edges = pd.DataFrame({"src": [], "dst": []}, dtype="float64")
    assert edges.pagerank().empty
    assert edges.pagerank(vertices=[3, 1])["vertex"].tolist() == [1, 3]
    assert pd.DataFrame({"src": [2], "dst": [1]}).pagerank(vertices=np.array([]))["vertex"].tolist() == [1, 2]


GIVEN_BACK = {
    "datetime objects": pd.Series([datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)], dtype=object),
    "timestamps": pd.Series([pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-02")], dtype=object),
    "arrow dates": pd.Series([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)], dtype=pd.ArrowDtype(pa.date32())),
    "arrow binary": pd.Series([b"x", b"y"], dtype=pd.ArrowDtype(pa.binary())),
    "arrow decimals": pd.Series([Decimal("1.50"), Decimal("2.25")], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "intervals": pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1, 2])),
    "sparse": pd.Series(pd.arrays.SparseArray([5, 6])),
}


@pytest.mark.parametrize("name", GIVEN_BACK)
def test_ids_that_the_result_returns_can_be_given_back(name):
    ids = GIVEN_BACK[name]
    graph = prplugin.Graph(pd.DataFrame({"src": ids, "dst": ids[::-1].reset_index(drop=True)}), vertices=ids.tolist())
    first, second = graph.rank().frame["vertex"]
    ranks = graph.rank(alpha=0, personalization={first: 1, second: 3}, nstart=pd.Series([1.0], index=[second])).frame
    assert ranks["pagerank"].tolist() == [0.25, 0.75]
