"""cuDF frames: the same ids, ranks and errors as with pandas, and only scalars are copied to the host."""

from __future__ import annotations

import gc
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bad_input import EDGE_CASES, EDGES, OPTION_CASES
from cudf_frames import REQUIRES_CUDF, as_list, cudf, cupy, on_gpu, run

import prplugin

pytestmark = REQUIRES_CUDF

# Edges d-b, a-d, d-a, c-b. Order of first appearance: d, b, a, c.
SOURCES, TARGETS = [3, 0, 3, 2], [1, 3, 0, 1]
FIRST_SEEN = [3, 1, 0, 2]
TOL = 1e-12


def expected_ranks():
    return pd.DataFrame({"src": SOURCES, "dst": TARGETS}).pagerank(tol=TOL)["pagerank"].to_numpy()


def edges_of(ids):
    return cudf.DataFrame(
        {"src": ids.take(SOURCES).reset_index(drop=True), "dst": ids.take(TARGETS).reset_index(drop=True)}
    )


def assert_same(found, expected, tol=1e-6):
    """Assert that a cuDF and a pandas result have the same vertices in the same order, and ranks within 2 * `tol`."""
    assert type(found) is cudf.DataFrame
    found = found.to_pandas()
    assert list(found.columns) == list(expected.columns)
    for name in expected.columns[:-1]:
        assert found[name].tolist() == expected[name].tolist(), name
    assert np.abs(found["pagerank"].to_numpy() - expected["pagerank"].to_numpy()).sum() <= 2 * tol


# --- ids ----------------------------------------------------------------------------------------------------------

INTEGERS = [
    *(np.dtype(kind) for kind in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]),
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
    edges = on_gpu(pd.DataFrame({"src": [ids[i] for i in SOURCES], "dst": [ids[i] for i in TARGETS]}).astype(dtype))
    ranks = edges.pagerank(tol=TOL)
    assert as_list(ranks["vertex"]) == ids
    assert ranks["vertex"].dtype == edges["src"].dtype
    assert np.abs(ranks["pagerank"].to_numpy() - expected_ranks()).sum() <= 2 * TOL


@pytest.mark.parametrize(("low", "high"), [(0, 3000), (-(2**62), 2**62), (2**62, 2**63 - 1)])
def test_many_integer_ids(low, high):
    random = np.random.default_rng(1)
    ids = random.integers(low, high, 3000)
    edges = pd.DataFrame({"src": random.choice(ids, 40_000), "dst": random.choice(ids, 40_000)})
    assert_same(on_gpu(edges).pagerank(), edges.pagerank())
    edges = edges.astype("uint64") if low >= 0 else edges.astype({"dst": "Int64"})
    assert_same(on_gpu(edges).pagerank(), edges.pagerank())


def test_extreme_64_bit_ids():
    low, high = -(2**63), 2**63 - 1
    edges = on_gpu(pd.DataFrame({"src": [low, high, 0], "dst": [high, 0, low]}))
    assert as_list(edges.pagerank()["vertex"]) == [low, 0, high]
    edges = on_gpu(pd.DataFrame({"src": [2**64 - 1, 2**64 - 2], "dst": [2**64 - 3, 2**64 - 1]}, dtype="uint64"))
    assert as_list(edges.pagerank()["vertex"]) == [2**64 - 3, 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize("ids", [[0, 5], [2**63 + 5, 2**64 - 1]])
def test_signed_and_unsigned_ids(ids):
    edges = pd.DataFrame({"src": pd.Series([1, 7], dtype="int32"), "dst": pd.Series(ids, dtype="uint64")})
    assert as_list(on_gpu(edges).pagerank()["vertex"]) == sorted({1, 7, *ids})


@pytest.mark.parametrize("other", ["int64", "uint64", "Int64", "UInt64"])
@pytest.mark.parametrize("one", ["int64", "uint64", "Int64", "UInt64"])
def test_integers_past_2_to_53_are_compared_exactly(one, other):
    big = 2**53
    source, target = pd.array([big, 1], dtype=one), pd.array([big + 1, big], dtype=other)
    edges = on_gpu(pd.DataFrame({"src": source, "dst": target}))
    assert as_list(edges.pagerank()["vertex"]) == [1, big, big + 1]
    several = on_gpu(pd.DataFrame({"a": source, "b": 1, "c": target, "d": 1})).pagerank(["a", "b"], ["c", "d"])
    assert as_list(several["a"]) == [big, big + 1, 1]
    seeds = on_gpu(pd.DataFrame({"vertex": pd.array([big + 1, big], dtype=other), "values": [1.0, 3.0]}))
    assert as_list(edges.pagerank(alpha=0, personalization=seeds)["pagerank"]) == [0, 0.75, 0.25]


def test_integers_of_different_widths():
    edges = cudf.DataFrame({"src": cudf.Series([1, 2], dtype="int8"), "dst": cudf.Series([300, 1], dtype="int64")})
    ranks = edges.pagerank(vertices=np.array([70000], dtype="uint32"))
    assert as_list(ranks["vertex"]) == [1, 2, 300, 70000]
    assert ranks["vertex"].dtype == "int64"


def test_vertices_widen_the_dtype_of_ids_only_if_needed():
    edges = cudf.DataFrame({"src": [1, 2], "dst": [2, 1]}, dtype="uint8")
    for vertices, dtype in (
        ([], "uint8"),
        ([255], "uint8"),
        ([256], "int64"),
        ([-1], "int64"),
        ([2**64 - 1], "uint64"),
    ):
        ranks = edges.pagerank(vertices=vertices)
        assert as_list(ranks["vertex"]) == sorted({1, 2, *vertices})
        assert ranks["vertex"].dtype == dtype


DAYS = pd.to_datetime(["2026-01-01", "2024-02-29", "2025-03-01", "1969-07-20"])
DECIMALS = [Decimal("1.50"), Decimal("-2.25"), Decimal("0.00"), Decimal("12345.67")]
OTHER_IDS = {
    "str": pd.Series(["x", "ä", "", "long " * 50], dtype="str"),
    "object": pd.Series(["x", "ä", "", "long"], dtype=object),
    "string": pd.Series(["x", "ä", "", "long"], dtype="string"),
    "arrow string": pd.Series(["x", "ä", "", "long"], dtype=pd.ArrowDtype(pa.string())),
    "category of strings": pd.Series(pd.Categorical(["x", "y", "z", "u"], categories=list("uvwxyz"))),
    "ordered category": pd.Series(pd.Categorical(["x", "y", "z", "u"], categories=list("zyxwvu"), ordered=True)),
    "category of dates": pd.Series(pd.Categorical(DAYS)),
    **{f"datetime64[{unit}]": pd.Series(DAYS).astype(f"datetime64[{unit}]") for unit in ("s", "ms", "us", "ns")},
    "datetime with a time zone": pd.Series(DAYS.tz_localize("Europe/Berlin")),
    "arrow timestamp": pd.Series(DAYS).astype(pd.ArrowDtype(pa.timestamp("us"))),
    **{f"timedelta64[{unit}]": pd.Series(DAYS - DAYS[0]).astype(f"timedelta64[{unit}]") for unit in ("s", "ns")},
    "decimal objects": pd.Series(DECIMALS, dtype=object),
    "arrow decimals": pd.Series(DECIMALS, dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "intervals": pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1, 2, 5, 9])),
}


@pytest.mark.parametrize("name", OTHER_IDS)
def test_other_ids_keep_their_order_of_first_appearance_and_type(name):
    ids = on_gpu(OTHER_IDS[name])
    edges = edges_of(ids)
    ranks = edges.pagerank(tol=TOL)
    assert as_list(ranks["vertex"]) == as_list(ids.take(FIRST_SEEN))
    assert ranks["vertex"].dtype == ids.dtype
    assert np.abs(ranks["pagerank"].to_numpy() - expected_ranks()[FIRST_SEEN]).sum() <= 2 * TOL
    seeds = cudf.DataFrame({"vertex": ids.take([2, 3]).reset_index(drop=True), "values": [1.0, 3.0]})
    by_frame = edges.pagerank(alpha=0, personalization=seeds)
    assert as_list(by_frame["pagerank"]) == [0.75, 0, 0, 0.25]
    host = ids.to_pandas()
    by_dict = edges.pagerank(alpha=0, personalization={host[2]: 1.0, host[3]: 3.0})
    assert as_list(by_dict["pagerank"]) == [0.75, 0, 0, 0.25]


@pytest.mark.parametrize("cls", ["Decimal32Dtype", "Decimal64Dtype", "Decimal128Dtype"])
def test_decimals_of_every_width(cls):
    ids = cudf.Series(DECIMALS).astype(getattr(cudf, cls)(9, 2))
    ranks = edges_of(ids).pagerank()
    assert as_list(ranks["vertex"]) == [DECIMALS[i] for i in FIRST_SEEN]
    assert ranks["vertex"].dtype == ids.dtype


def test_bool_ids_keep_their_order_of_first_appearance():
    edges = cudf.DataFrame({"src": [True, False], "dst": [False, False]})
    assert as_list(edges.pagerank()["vertex"]) == [True, False]
    assert edges.pagerank()["vertex"].dtype == "bool"


def test_integers_in_categorical_columns_ascend():
    category = pd.CategoricalDtype([30, 20, 10, 5])
    edges = on_gpu(pd.DataFrame({"src": [30, 10], "dst": [20, 30]}).astype(category))
    ranks = edges.pagerank()
    assert as_list(ranks["vertex"]) == [10, 20, 30]
    assert ranks["vertex"].dtype == edges["src"].dtype
    mixed = edges.assign(dst=edges["dst"].astype("int64"))
    assert as_list(mixed.pagerank()["vertex"]) == [10, 20, 30]


def test_codes_of_categories_in_another_order_are_not_mixed_up():
    """Unordered categorical dtypes with the same categories in another order compare equal in cuDF."""
    edges = pd.DataFrame(
        {
            "src": pd.Categorical(["a", "b", "c", "a"], categories=["a", "b", "c"]),
            "dst": pd.Categorical(["b", "c", "a", "c"], categories=["c", "a", "b"]),
        }
    )
    ranks = on_gpu(edges).pagerank()
    assert_same(ranks, edges.pagerank())
    assert ranks["vertex"].dtype == on_gpu(edges)["src"].dtype


@pytest.mark.parametrize("other", ["str", "string", "category", object])
@pytest.mark.parametrize("one", ["str", "string", "category", object])
def test_strings_of_different_dtypes_compare_equal(one, other):
    edges = pd.DataFrame({"src": pd.Series(["b", "a"], dtype=one), "dst": pd.Series(["a", "c"], dtype=other)})
    assert as_list(on_gpu(edges).pagerank(vertices=["d", "a"])["vertex"]) == ["b", "a", "c", "d"]


def test_datetimes_of_different_units():
    edges = pd.DataFrame(
        {"src": pd.to_datetime(["2026-01-01 00:00:00.5"]), "dst": pd.to_datetime(["2026-01-02"]).as_unit("s")}
    )
    vertices = [pd.Timestamp("2026-01-02"), pd.Timestamp("2027-01-01")]
    assert (
        as_list(on_gpu(edges).pagerank(vertices=vertices)["vertex"])
        == edges.pagerank(vertices=vertices)["vertex"].tolist()
    )


def test_decimals_of_different_dtypes():
    edges = cudf.DataFrame(
        {
            "src": cudf.Series([Decimal("1.5")]).astype(cudf.Decimal32Dtype(4, 1)),
            "dst": cudf.Series([Decimal("1.50")]).astype(cudf.Decimal64Dtype(12, 2)),
        }
    )
    assert as_list(edges.pagerank()["vertex"]) == [Decimal("1.50")]


def test_datetimes_of_different_time_zones_are_compared_by_instant():
    instant = pd.to_datetime(["2026-01-01"]).tz_localize("UTC")
    edges = pd.DataFrame({"src": instant, "dst": instant.tz_convert("Europe/Berlin")})
    assert len(on_gpu(edges).pagerank()) == 1


MANY_IDS = {
    "strings": lambda i: pd.Series(i).astype("str") + "-vertex",
    "categories": lambda i: pd.Series(pd.Categorical.from_codes(i, [f"{c:05}" for c in range(9000, 0, -1)])),
    "datetimes": lambda i: pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(i, unit="s")),
    "decimals": lambda i: pd.Series(i, dtype="int64").astype(pd.ArrowDtype(pa.decimal128(21, 2))),
}


@pytest.mark.parametrize("name", MANY_IDS)
def test_many_ids_keep_their_order_of_first_appearance(name):
    random = np.random.default_rng(2)
    m, n = 60_000, 8000
    ids = MANY_IDS[name]
    edges = pd.DataFrame(
        {
            "src": ids(random.integers(0, n, m)),
            "dst": ids(random.zipf(1.5, m) % n),
            "w": random.random(m),
        }
    )
    more = ids(random.integers(0, n, 500))
    assert_same(on_gpu(edges).pagerank(weight="w", vertices=on_gpu(more)), edges.pagerank(weight="w", vertices=more))


STRINGS = {
    "names": lambda i: f"vertex {i}",
    "hexadecimal": lambda i: f"{i * 2**40:x}",
    "of many lengths": lambda i: "ä" * (i % 300) + str(i),
    "empty and long": lambda i: {2: "", 100: "x" * 100_000}.get(i, str(i)),
}


@pytest.mark.parametrize("duplicates", ["sum", "first", "last"])
@pytest.mark.parametrize("name", STRINGS)
def test_many_strings_keep_their_order_of_first_appearance(name, duplicates):
    random = np.random.default_rng(4)
    m, n = 30_000, 4000
    ids = pd.Series([STRINGS[name](i) for i in range(n)], dtype="str")
    drawn = [ids.iloc[random.zipf(1.5, size) % n].reset_index(drop=True) for size in (m, m, 500)]
    edges, more = pd.DataFrame({"src": drawn[0], "dst": drawn[1], "w": random.random(m)}), drawn[2]
    device_edges, device_more = on_gpu(edges), on_gpu(more)
    arguments = {"weight": "w", "duplicates": duplicates}
    assert_same(device_edges.pagerank(**arguments, vertices=device_more), edges.pagerank(**arguments, vertices=more))
    assert_same(device_edges.pagerank(**arguments, vertices=more.tolist()), edges.pagerank(**arguments, vertices=more))
    assert_same(
        device_edges[77:-5].pagerank(**arguments, vertices=device_more[3:9]),
        edges[77:-5].pagerank(**arguments, vertices=more[3:9]),
    )
    assert device_edges.to_pandas().equals(edges)


def test_strings_with_colliding_hashes(monkeypatch):
    from prplugin.gpu import strings

    random = np.random.default_rng(5)
    edges = pd.DataFrame({"src": random.integers(0, 900, 5000), "dst": random.integers(0, 900, 5000)}).astype("str")
    hashed = strings._hashed
    monkeypatch.setattr(strings, "_hashed", lambda *column: hashed(*column) & np.uint64(127))
    assert_same(on_gpu(edges).pagerank(vertices=["x", "7"]), edges.pagerank(vertices=["x", "7"]))


@pytest.mark.parametrize("offset_type", [np.int32, np.int64])
def test_strings_round_trip_through_arrays(offset_type):
    from prplugin.frames.device_ids import as_string_series, as_strings
    from prplugin.gpu.strings import Strings

    texts = ["b", "", "ä", "a" * 300]
    strings = as_strings(on_gpu(pd.Series(texts, dtype="str")))
    column = as_string_series(Strings(strings.chars, strings.offsets.astype(offset_type)), np.dtype("object"))
    assert column.dtype == np.dtype("object")
    assert as_list(column) == texts
    sliced = as_strings(column[1:3])
    assert sliced.offsets.dtype == offset_type
    assert cupy.diff(sliced.offsets).tolist() == [0, 2]
    edges = cudf.DataFrame({"src": column, "dst": column[::-1].reset_index(drop=True)})
    assert as_list(edges.pagerank(vertices=column)["vertex"]) == ["b", "a" * 300, "", "ä"]
    assert as_strings(cudf.Series([1, 2])) is None
    assert as_strings(cudf.Series(["a"], dtype="category")) is None
    assert as_strings(cudf.Series([], dtype="float64")).rows == 0


def test_empty_strings():
    assert as_list(cudf.DataFrame({"src": ["", ""], "dst": ["", ""]}).pagerank()["vertex"]) == [""]


def test_many_vertices_of_several_columns():
    random = np.random.default_rng(3)
    m = 40_000
    columns = {name: random.integers(0, 60, m) for name in "abcd"}
    edges = pd.DataFrame(columns).assign(a=lambda f: f["a"].astype("str"), c=lambda f: f["c"].astype("str"))
    edges = edges.astype({"b": "int32"})
    endpoints = ["a", "b"], ["c", "d"]
    assert_same(on_gpu(edges).pagerank(*endpoints), edges.pagerank(*endpoints))


@pytest.mark.parametrize(
    ("dtypes", "factor", "low"),
    [
        (("int8", "int32"), 1, -100),
        (("uint8", "uint64"), 1, 2**62),
        (("int64", "int64"), 1, -(2**40)),
        (("int64", "uint64"), 2**56, 0),  # the ranges take more bits than an int64 has
    ],
)
def test_vertices_of_several_integer_columns(dtypes, factor, low):
    random = np.random.default_rng(4)

    def ids(count):
        one = random.integers(0, 100, count) - 50 * (dtypes[0][0] == "i")
        return (one * factor).astype(dtypes[0]), (low + random.integers(0, 997, count)).astype(dtypes[1])

    (a, b), (c, d), (e, f) = ids(30_000), ids(30_000), ids(100)
    edges, endpoints = pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), (["a", "b"], ["c", "d"])
    assert_same(on_gpu(edges).pagerank(*endpoints), edges.pagerank(*endpoints))
    more = pd.DataFrame({"a": e, "b": f})
    assert_same(on_gpu(edges).pagerank(*endpoints, vertices=on_gpu(more)), edges.pagerank(*endpoints, vertices=more))


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("hub", ["src", "dst"])
def test_hubs(hub, weight):
    count = 100_000
    ids = {"src": np.arange(1, count + 1), "dst": np.arange(1, count + 1)[::-1].copy()} | {hub: np.zeros(count, int)}
    edges = pd.DataFrame(ids | {"w": np.random.default_rng(5).random(count)})
    assert_same(on_gpu(edges).pagerank(weight=weight), edges.pagerank(weight=weight))


def test_a_prepared_graph_keeps_the_dense_matrix():
    random = np.random.default_rng(6)
    edges = pd.DataFrame({end: random.integers(0, 40, 30_000) for end in ("src", "dst")})
    graph = prplugin.Graph(on_gpu(edges))
    first = graph.rank(method="dense")
    from prplugin.papers.dense import DenseMatrix

    matrix = graph._graph.adjacency.kept(DenseMatrix)
    assert int(matrix.entries.sum()) == len(edges)
    assert graph.rank(method="dense").ranks.tobytes() == first.ranks.tobytes()
    assert graph._graph.adjacency.kept(DenseMatrix) is matrix


def test_vertices_of_several_columns():
    edges = pd.DataFrame(
        {"ns": ["x", "x", "y"], "from": [1, 2, 1], "to_ns": ["y", "x", "x"], "to": [1, 1, 2], "w": [1.0, 2.0, 3.0]}
    )
    arguments = (["ns", "from"], ["to_ns", "to"], "w")
    on_device = prplugin.Graph(on_gpu(edges), *arguments, vertices=[("z", 9), ("x", 1)])
    on_host = prplugin.Graph(edges, *arguments, vertices=[("z", 9), ("x", 1)])
    assert_same(on_device.rank(tol=TOL).frame, on_host.rank(tol=TOL).frame, TOL)
    series = pd.Series([1, 2], index=pd.MultiIndex.from_tuples([("x", 2), ("z", 9)]))
    frame = pd.DataFrame({"from": [2, 9], "ns": ["x", "z"], "values": [1, 2]})
    reference = on_host.rank(personalization=series).frame
    for given in ({("x", 2): 1, ("z", 9): 2}, series, frame, on_gpu(series), on_gpu(frame)):
        assert_same(on_device.rank(personalization=given).frame, reference)
    more = pd.DataFrame({"from": [9], "ns": ["z"]})
    for given in (more, on_gpu(more), [("z", 9)], cudf.MultiIndex.from_tuples([("z", 9)])):
        assert len(prplugin.pagerank(on_gpu(edges), *arguments[:2], vertices=given)) == 4


# --- weights ------------------------------------------------------------------------------------------------------

WEIGHTS = {
    **{kind: np.array([1, 2, 3, 4], kind) for kind in ("int8", "int16", "int32", "int64", "uint8", "float32", "float64")},
    "uint64": np.array([2**63, 2**63, 2**62, 1], "uint64"),
    "bool": np.array([True, False, True, True]),
    "Int64": pd.array([1, 2, 3, 4], dtype="Int64"),
    "Float64": pd.array([1, 2, 3, 4], dtype="Float64"),
    "arrow int": pd.array([1, 2, 3, 4], dtype=pd.ArrowDtype(pa.int32())),
    "decimal": pd.array([Decimal("1.5"), Decimal("0.1"), Decimal(3), Decimal("98765.4321")], dtype=object),
    "arrow decimal": pd.array([Decimal("1.5"), Decimal(2), Decimal(3), Decimal(4)], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "denormal": np.array([5e-324, 1e-310, 5e-324, 0.0]),
    "negative zero": np.array([-0.0, 1.0, 2.0, 3.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_of_any_numeric_dtype(name):
    edges = pd.DataFrame({"src": [0, 0, 1, 2], "dst": [1, 2, 2, 0], "w": WEIGHTS[name]})
    floats = edges.assign(w=[float(w) for w in WEIGHTS[name]])
    graph = prplugin.Graph(on_gpu(edges), weight="w")
    assert cupy.asnumpy(graph.csr().weights).tolist() == prplugin.Graph(floats, weight="w").csr().weights.tolist()
    assert_same(graph.rank().frame, floats.pagerank(weight="w"))


@pytest.mark.parametrize("kind", ["float64", "float32", "int32"])
def test_weights_of_many_edges(kind):
    random = np.random.default_rng(0)
    edges = pd.DataFrame(
        {"src": random.integers(0, 900, 9000), "dst": random.integers(0, 900, 9000), "w": random.integers(0, 3, 9000)}
    ).astype({"w": kind})
    on_device, on_host = prplugin.Graph(on_gpu(edges), weight="w"), prplugin.Graph(edges, weight="w")
    assert_same(on_device.rank(tol=TOL).frame, on_host.rank(tol=TOL).frame, TOL)
    for one, other in zip(on_device.csc(), on_host.csc(), strict=True):
        assert cupy.asnumpy(one).tolist() == other.tolist()
    # On the device a row of the CSR is ordered by target; on the host it has the order of the frame.
    by_target = edges.iloc[np.lexsort([edges["dst"], edges["src"]])]
    assert cupy.asnumpy(on_device.csr().weights).tolist() == by_target["w"].tolist()


@pytest.mark.parametrize("bad", [-1.0, np.inf, -np.inf])
def test_bad_weights_of_many_edges(bad):
    edges = pd.DataFrame({"src": np.arange(9000) % 7, "dst": np.arange(9000) % 31, "w": 1.0})
    edges.loc[[5, 8999], "w"] = bad
    messages = []
    for frame in (edges, on_gpu(edges)):
        with pytest.raises(prplugin.InvalidEdgesError) as caught:
            frame.pagerank(weight="w")
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


# --- arguments ----------------------------------------------------------------------------------------------------

VERTICES = {
    "list": lambda: [3, 9],
    "tuple": lambda: (3, 9),
    "range": lambda: range(9, 2, -6),
    "iterator": lambda: iter([3, 9]),
    "dict": lambda: {3: "x", 9: "y"},
    "numpy array": lambda: np.array([3, 9]),
    "cupy array": lambda: cupy.array([3, 9], "uint16"),
    "pandas Series": lambda: pd.Series([3, 9], index=[5, 5]),
    "pandas Index": lambda: pd.Index([3, 9]),
    "pandas frame": lambda: pd.DataFrame({"any": [3, 9]}),
    "cudf Series": lambda: cudf.Series([3, 9], index=[5, 5]),
    "cudf Index": lambda: cudf.Index([3, 9]),
    "cudf RangeIndex": lambda: cudf.RangeIndex(3, 10, 6),
    "cudf frame": lambda: cudf.DataFrame({"any": [3, 9]}),
    "nullable": lambda: pd.array([3, 9], dtype="Int64"),
}


@pytest.mark.parametrize("name", VERTICES)
def test_more_vertices_from_any_container(name):
    ranks = cudf.DataFrame({"src": [1], "dst": [2]}).pagerank(vertices=VERTICES[name]())
    assert as_list(ranks["vertex"]) == [1, 2, 3, 9]


VALUES = {
    "dict": lambda: {"b": 1.0, "a": 3},
    "pandas Series": lambda: pd.Series([1.0, 3.0], index=["b", "a"]),
    "pandas frame": lambda: pd.DataFrame({"values": [1, 3], "vertex": ["b", "a"]}),
    "cudf Series": lambda: cudf.Series([1.0, 3.0], index=["b", "a"]),
    "cudf Series of decimals": lambda: cudf.Series([Decimal("1.0"), Decimal("3.0")], index=["b", "a"]),
    "cudf Series by category": lambda: cudf.Series([1, 3], index=cudf.CategoricalIndex(["b", "a"])),
    "cudf frame": lambda: cudf.DataFrame({"values": [1, 3], "vertex": ["b", "a"]}, index=[7, 7]),
}


@pytest.mark.parametrize("argument", ["personalization", "dangling", "nstart"])
@pytest.mark.parametrize("name", VALUES)
def test_values_by_vertex_in_any_form(name, argument):
    edges = pd.DataFrame({"src": ["c", "a", "c"], "dst": ["a", "b", "b"]})
    arguments = {argument: VALUES[name](), "alpha": 0.5}
    by_dict = {argument: VALUES["dict"](), "alpha": 0.5}
    if argument == "nstart":  # converged ranks do not depend on it
        arguments |= {"tol": 0, "max_iter": 1}
        by_dict |= {"tol": 0, "max_iter": 1}
    assert_same(on_gpu(edges).pagerank(**arguments), edges.pagerank(**by_dict))


def test_options_of_graph_and_rank():
    random = np.random.default_rng(4)
    edges = pd.DataFrame(
        {"src": random.integers(0, 500, 5000), "dst": random.integers(0, 500, 5000), "w": random.random(5000)}
    )
    for arguments in (
        {"directed": False}, {"duplicates": "first"}, {"duplicates": "last", "directed": False}, {"scale": "n"},
        {"dtype": "float32"}, {"alpha": 0.99}, {"stop": "delta"}, {"tol": 0, "max_iter": 3},
    ):  # fmt: skip
        found, expected = on_gpu(edges).pagerank(weight="w", **arguments), edges.pagerank(weight="w", **arguments)
        assert_same(found, expected, 1e-3 if arguments.get("scale") == "n" else 1e-6)
        assert found["pagerank"].dtype == expected["pagerank"].dtype
    found, expected = on_gpu(edges).pagerank(weight="w", top=7, tol=TOL), edges.pagerank(weight="w", top=7, tol=TOL)
    assert_same(found, expected, TOL)
    strings = edges.astype({"src": "str", "dst": "str"})
    assert_same(on_gpu(strings).pagerank(top=7, tol=TOL), strings.pagerank(top=7, tol=TOL), TOL)


def test_column_labels_and_index():
    plain = pd.DataFrame({"src": [3, 1, 2], "dst": [1, 2, 2], "w": [1, 2, 3]})
    for index in ([5, 5, 5], list("abc"), pd.MultiIndex.from_tuples([(0, 1), (0, 2), (1, 1)])):
        assert_same(on_gpu(plain.set_axis(index)).pagerank(weight="w"), plain.pagerank(weight="w"))
    numbered = cudf.DataFrame({0: [1, 2], 1: [2, 3]})
    assert as_list(numbered.pagerank(0, 1)["vertex"]) == [1, 2, 3]
    levels = pd.DataFrame([[1, 2], [2, 3]], columns=pd.MultiIndex.from_tuples([("e", "from"), ("e", "to")]))
    assert as_list(on_gpu(levels).pagerank(("e", "from"), ("e", "to"))["vertex"]) == [1, 2, 3]
    sliced = on_gpu(plain)[1:]
    assert_same(sliced.pagerank(weight="w"), plain[1:].pagerank(weight="w"))
    strings = plain.astype({"src": "str", "dst": "str"})
    assert_same(on_gpu(strings)[1:].pagerank(weight="w"), strings[1:].pagerank(weight="w"))


class TestSmallGraphs:
    @pytest.mark.parametrize("dtype", ["int32", "str", "object", "float64", "category", "datetime64[ns]", "bool"])
    def test_no_rows(self, dtype):
        edges = pd.DataFrame({"src": [], "dst": []}, dtype=dtype)
        ranks = on_gpu(edges).pagerank()
        assert type(ranks) is cudf.DataFrame
        assert ranks.shape == (0, 2)
        assert list(ranks.columns) == ["vertex", "pagerank"]

    def test_no_rows_but_vertices(self):
        edges = cudf.DataFrame({"src": cudf.Series([], dtype="str"), "dst": cudf.Series([], dtype="str")})
        ranks = edges.pagerank(vertices=["b", "a", "b"])
        assert as_list(ranks["vertex"]) == ["b", "a"]
        assert as_list(ranks["pagerank"]) == [0.5, 0.5]
        untyped = on_gpu(pd.DataFrame({"src": [], "dst": []}, dtype=object))
        assert as_list(untyped.pagerank(vertices=[4, 2])["vertex"]) == [2, 4]

    def test_no_rows_of_several_columns(self):
        edges = on_gpu(pd.DataFrame({name: [] for name in "abcd"}, dtype="int64"))
        assert list(edges.pagerank(["a", "b"], ["c", "d"]).columns) == ["a", "b", "pagerank"]
        ranks = edges.pagerank(["a", "b"], ["c", "d"], vertices=[(1, 2), (1, 3)])
        assert as_list(ranks["pagerank"]) == [0.5, 0.5]

    def test_one_row_and_one_vertex(self):
        ranks = cudf.DataFrame({"src": ["a"], "dst": ["a"]}).pagerank()
        assert as_list(ranks["vertex"]) == ["a"]
        assert as_list(ranks["pagerank"]) == [1.0]


# --- errors -------------------------------------------------------------------------------------------------------

# Messages that differ from those of pandas, because cuDF has another type or another notation of a missing value.
MESSAGES_OF_CUDF = {
    "null weight": "column 'w' has 1 value missing or NaN: <NA> in row 1 ",
    "NaN weight": "column 'w' has 1 value missing or NaN: ",
    "strings as weights": "not real numbers. Cast it",
    "floats": "which do not compare reliably. Cast it to integers: edges.nans_to_nulls().astype({'src': 'int64'}).",
    "lists as ids": "which have no hash",
    "tuples of lists": "have no hash",
}


@pytest.mark.parametrize("name", EDGE_CASES)
def test_bad_edges_are_refused(name):
    edges, arguments, message = EDGE_CASES[name]
    try:
        edges = on_gpu(edges)
    except Exception as error:  # cuDF raises errors of many types
        pytest.skip(f"cuDF cannot hold it: {type(error).__name__}: {error}")
    with pytest.raises(prplugin.InvalidEdgesError) as caught:
        edges.pagerank(**arguments)
    assert MESSAGES_OF_CUDF.get(name, message) in str(caught.value)


def test_lists_and_structs_as_ids_are_refused():
    for ids in ([[1], [2]], [{"a": 1}, {"a": 2}]):
        edges = cudf.DataFrame({"src": cudf.Series(ids), "dst": cudf.Series(ids)})
        with pytest.raises(prplugin.InvalidEdgesError, match=r"column 'src' holds ids of type .*, which have no hash"):
            edges.pagerank()


def test_nan_weight_that_is_not_null_is_refused():
    weights = cudf.Series([1.0, np.nan, -1.0], nan_as_null=False)
    with pytest.raises(prplugin.InvalidEdgesError, match="column 'w' has 1 value missing or NaN: nan in row 1 "):
        cudf.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1], "w": weights}).pagerank(weight="w")


def test_durations_without_a_common_type_are_refused():
    edges = pd.DataFrame(
        {
            "src": pd.Series([2**62], dtype="int64").astype("timedelta64[s]"),
            "dst": pd.Series([1], dtype="int64").astype("timedelta64[ns]"),
        }
    )
    with pytest.raises(prplugin.InvalidEdgesError, match="have no common type"):
        on_gpu(edges).pagerank()


@pytest.mark.parametrize("name", [name for name, (given, _) in OPTION_CASES.items() if "method" not in given])
def test_bad_options_are_refused(name):
    arguments, message = OPTION_CASES[name]
    edges = EDGES.astype({"w": "int64"}) if isinstance(arguments.get("source"), list) else EDGES
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        on_gpu(edges).pagerank(**arguments)
    if name.startswith(("tol ", "alpha next")):  # the smallest provable tol depends on the method
        message = message.split(":", maxsplit=1)[0]
    assert message in str(caught.value)


def vertex(ids):
    return cudf.Index(ids, name="vertex")


BAD_DEVICE_VALUES = {
    "unknown vertices": (lambda: cudf.Series([1, 1, 2], index=vertex([1, 8, 9])), "names 2 vertices not in the graph: 8, 9. "),
    "unknown vertex of another dtype": (lambda: cudf.Series([1, 2], index=cudf.Index([2**64 - 1, 3], dtype="uint64", name="vertex")), f"not in the graph: {2**64 - 1}. "),
    "repeated vertex": (lambda: cudf.Series([1, 2, 3], index=vertex([3, 1, 3])), "names 1 vertex more than once: 3. Drop all but one"),
    "vertex of another type": (lambda: cudf.Series([1], index=["1"]), "names vertices by ids of kind string, but the graph's are of kind integer"),
    "empty": (lambda: cudf.Series([], index=[], dtype="float64"), "is empty: it must give a positive value"),
    "null value": (lambda: cudf.Series([1, None], index=vertex([1, 2])), "has 1 value missing or NaN: <NA> in entry 1 "),
    "null vertex": (lambda: cudf.DataFrame({"vertex": [1, None], "values": [1, 1]}), "has 1 null, in row 1 "),
    "negative value": (lambda: cudf.Series([1, -1.5], index=vertex([1, 2])), "has 1 value below 0: -1.5 in entry 1 "),
    "string value": (lambda: cudf.Series(["x"], index=vertex([1])), "not real numbers"),
    "MultiIndex for one column": (lambda: cudf.Series([1], index=cudf.MultiIndex.from_tuples([(1, 2)])), "has an index of 2 levels"),
    "missing column": (lambda: cudf.DataFrame({"vertex": [1], "w": [1]}), "has no column 'values': it needs the columns 'vertex', 'values'."),
    "array of wrong size": (lambda: cupy.ones(9), "is an array of shape (9,), but the graph has"),
    "sum 0": (lambda: cudf.Series([0, 0], index=vertex([1, 2])), "sums to 0: at least one vertex"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DEVICE_VALUES)
def test_bad_values_on_the_device_are_refused(name):
    given, message = BAD_DEVICE_VALUES[name]
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        on_gpu(EDGES).pagerank(personalization=given())
    assert f"personalization {message}" in str(caught.value) or (message in str(caught.value))


@pytest.mark.parametrize("vertices", [lambda: cupy.ones((1, 2), int), lambda: cudf.DataFrame({"a": [1], "b": [2]})])
def test_bad_vertices_on_the_device_are_refused(vertices):
    with pytest.raises(
        prplugin.InvalidOptionError, match=r"vertices is an array of 2 dim|vertices is a frame of 2 columns"
    ):
        on_gpu(EDGES).pagerank(vertices=vertices())


def test_column_of_vertices():
    edges = cudf.DataFrame({"src": [0, 1, 2, 2], "dst": [1, 2, 0, 1]})
    column = cudf.Series([2, 1])
    assert as_list(edges.pagerank(seeds=column)["seed"]) == [2] * 3 + [1] * 3
    for argument in ("personalization", "dangling", "nstart"):
        for given in (column, column.to_pandas()):
            with pytest.raises(prplugin.InvalidOptionError, match="is a column without an index of vertices"):
                edges.pagerank(**{argument: given})


# --- memory and streams -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2000])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "str", "category"])
def test_input_is_not_changed_and_changing_it_does_not_change_the_graph(dtype, times):
    rows = pd.DataFrame({"src": [0, 0, 2], "dst": [1, 2, 0], "w": [100.0, 300.0, 1.0]})
    edges = on_gpu(pd.concat([rows] * times, ignore_index=True).astype({"src": dtype, "dst": dtype}))
    before = edges.copy(deep=True)
    graph = prplugin.Graph(edges, weight="w")
    first = graph.rank(tol=TOL).frame.to_pandas()
    seeds = cudf.Series([2.0, 1.0], index=cudf.Index(edges["src"][1:3], name="id"))
    kept = seeds.copy(deep=True)
    edges.pagerank(weight="w", personalization=seeds, directed=False)
    assert edges.to_pandas().equals(before.to_pandas())
    assert seeds.to_pandas().equals(kept.to_pandas())
    for column in edges.columns:
        if dtype not in ("str", "category") or column == "w":
            edges[column].values[:] = 0  # writes to the memory directly, without copy-on-write
    edges.loc[0, "w"] = 7.0
    assert graph.rank(tol=TOL).frame.to_pandas().equals(first)


def test_changing_a_result_does_not_change_the_graph():
    graph = prplugin.Graph(cudf.DataFrame({"src": [3, 1], "dst": [1, 2]}))
    ranking = graph.rank()
    kept = cupy.asnumpy(ranking.ranks).tolist()
    ranking.frame["pagerank"].values[:] = 0
    ranking.frame["vertex"].values[:] = 0
    assert cupy.asnumpy(ranking.ranks).tolist() == kept
    second = graph.rank().frame
    assert as_list(second["vertex"]) == [1, 2, 3]
    assert as_list(second["pagerank"]) == kept


def test_memory_is_allocated_through_rmm_and_freed():
    import rmm

    upstream = rmm.mr.get_current_device_resource()
    statistics = rmm.mr.StatisticsResourceAdaptor(upstream)
    random = np.random.default_rng(6)
    m = 200_000
    integers = pd.DataFrame(
        {"src": random.integers(0, 9000, m), "dst": random.integers(0, 9000, m), "w": random.random(m)}
    )
    bad = integers.assign(w=-1.0)
    rmm.mr.set_current_device_resource(statistics)
    try:
        frames = [on_gpu(integers), on_gpu(integers.astype({"src": "str", "dst": "str"}))]
        bad = on_gpu(bad)

        def work():
            for frame in frames:
                frame.pagerank(weight="w", top=3)
            for arguments in ({"weight": "w"}, {"vertices": ["x"]}, {"personalization": {-5: 1}}, {"max_iter": 1}):
                with pytest.raises(prplugin.PageRankError):
                    bad.pagerank(**arguments)

        work()  # allocates what is cached
        gc.collect()
        base = statistics.allocation_counts.current_bytes
        allocated = statistics.allocation_counts.total_bytes
        work()
        gc.collect()
        assert statistics.allocation_counts.total_bytes - allocated > 8 * m, "the work did not allocate through RMM"
        assert statistics.allocation_counts.current_bytes == base
        pool = cupy.get_default_memory_pool().used_bytes()
        work()
        gc.collect()
        assert cupy.get_default_memory_pool().used_bytes() == pool, "CuPy's own pool was used in addition to RMM"
    finally:
        rmm.mr.set_current_device_resource(upstream)


def test_rankings_on_a_stream_of_the_caller():
    random = np.random.default_rng(7)
    m = 1_000_000
    edges = on_gpu(
        pd.DataFrame(
            {"src": random.integers(0, 50_000, m), "dst": random.integers(0, 50_000, m), "w": random.random(m)}
        )
    )
    strings = edges[:50_000].astype({"src": "str", "dst": "str"})
    reference = edges.pagerank(weight="w"), strings.pagerank(weight="w")
    stream = cupy.cuda.Stream(non_blocking=True)
    for _ in range(5):
        with stream:
            # cuDF sorts on its own stream, and may not have finished when pagerank begins.
            resorted = edges.sort_values("w").sort_index()
            of_integers = resorted.pagerank(weight="w")
            of_strings = strings.pagerank(weight="w")
            assert cupy.cuda.get_current_stream().ptr == stream.ptr
        for one, other in zip(reference, (of_integers, of_strings), strict=True):
            assert as_list(one["vertex"]) == as_list(other["vertex"])
            assert np.abs(one["pagerank"].to_numpy() - other["pagerank"].to_numpy()).sum() <= 2e-6


def test_only_scalars_are_copied_to_the_host(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile

    random = np.random.default_rng(8)
    m = 200_000
    integers = on_gpu(
        pd.DataFrame(
            {"src": random.integers(0, 30_000, m), "dst": random.integers(0, 30_000, m), "w": random.random(m)}
        )
    )
    sparse = integers.assign(src=integers["src"] * 10**12, dst=integers["dst"] * 10**12)
    strings = integers.astype({"src": "str", "dst": "str"})
    seeds = cudf.Series(cupy.ones(20_000), index=cudf.Index(integers["src"].unique()[:20_000], name="id"))
    calls = {
        "integers": integers.pagerank,
        "weights": lambda: integers.pagerank(weight="w"),
        "sparse integers": lambda: sparse.pagerank(weight="w"),
        "undirected": lambda: integers.pagerank(directed=False, duplicates="last"),
        "personalized": lambda: integers.pagerank(personalization=seeds),
        "strings": lambda: strings.pagerank(weight="w"),
        "several columns": lambda: integers.assign(k=1).pagerank(["src", "k"], ["dst", "k"]),
        "control": lambda: cupy.zeros(1 << 20, "uint8").get(),
    }
    assert torch.cuda.is_available()
    torch.zeros(1, device="cuda")
    large = {}
    for name, call in calls.items():
        call()  # compiles kernels
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as traced:
            call()
            cupy.cuda.Device().synchronize()
        path = tmp_path / f"{name}.json"
        traced.export_chrome_trace(str(path))
        copies = [
            event["args"].get("bytes", event["args"].get("Bytes", 0))
            for event in json.loads(path.read_text())["traceEvents"]
            if "Memcpy DtoH" in event.get("name", "")
        ]
        large[name] = [size for size in copies if size > 4096]
    assert large.pop("control") == [1 << 20], "the profiler does not record copies"
    assert not any(large.values()), f"bytes copied to the host: {large}"


# --- imports, and cudf.pandas -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["import cudf, prplugin", "import prplugin, cudf"])
def test_the_order_of_imports_does_not_matter(order):
    assert run("-c", f"{order}\nprint(cudf.DataFrame.pagerank is prplugin.pagerank)") == "True"


def test_pandas_frames_do_not_import_cudf():
    code = (
        "import pandas, prplugin, sys\n"
        "pandas.DataFrame({'src': [1, 2], 'dst': [2, 1]}).pagerank()\n"
        "print([name for name in ('cudf', 'cupy', 'rmm') if name in sys.modules])"
    )
    assert run("-c", code) == "[]"


def test_vertices_to_leave_out_by_seed_when_the_labels_of_seeds_do_not_ascend():
    edges = pd.DataFrame({"src": [1, 2, 3, 1, 4], "dst": [2, 3, 1, 4, 1]})
    excluded = pd.DataFrame({"seed": [7, 3, 5], "vertex": [2, 1, 4]})
    seeds = {7: [1], 3: [2], 5: [3]}
    found = on_gpu(edges).pagerank(seeds=seeds, exclude=on_gpu(excluded), tol=TOL)
    assert_same(found, edges.pagerank(seeds=seeds, exclude=excluded, tol=TOL), TOL)


SCRIPT = """
import sys
IMPORTS
import cudf.pandas
import numpy as np

def check(condition, message):
    if not condition:
        print("FAILED", message)

is_proxy = cudf.pandas.is_proxy_object
edges = pd.DataFrame({"src": [3, 0, 3, 2], "dst": [1, 3, 0, 1], "w": [1.0, 2.0, 3.0, 4.0]})
check(is_proxy(edges), "the frame is not a proxy")
wrapped = type(edges._fsproxy_wrapped).__module__
check(wrapped.startswith("cudf"), f"the proxy wraps a frame of {wrapped}")
ranks = edges.pagerank(weight="w")
check(is_proxy(ranks), "the result is not a proxy")
check(type(ranks._fsproxy_wrapped).__module__.startswith("cudf"), "the result is not on the GPU")
check(type(edges._fsproxy_wrapped).__module__.startswith("cudf"), "the frame was moved to the host")
check(ranks["vertex"].tolist() == [0, 1, 2, 3], "vertices")
check(abs(ranks["pagerank"].sum() - 1) < 1e-6, "sum")
check(list(ranks.columns) == ["vertex", "pagerank"], "columns")
check(edges.pagerank.__func__ is prplugin.pagerank, "the method is not prplugin.pagerank")
check(ranks.pagerank.tolist() == ranks["pagerank"].tolist(), "the attribute of a result is not its column")
ranks.pagerank = 0.5
check(ranks["pagerank"].tolist() == [0.5] * 4, "assignment to the attribute does not write the column")

graph = prplugin.Graph(edges, weight="w")
check(is_proxy(graph.rank().frame), "Ranking.frame is not a proxy")
reference = graph.rank(alpha=0, personalization={0: 1, 3: 3}).frame["pagerank"].tolist()
check(reference == [0.25, 0, 0, 0.75], f"dict: {reference}")
for given in (
    pd.Series([1, 3], index=pd.Index([0, 3], name="id")),
    pd.DataFrame({"vertex": [0, 3], "values": [1, 3]}),
    cudf.Series([1, 3], index=cudf.Index([0, 3], name="id")),
):
    found = graph.rank(alpha=0, personalization=given).frame["pagerank"].tolist()
    check(found == reference, f"{type(given)}: {found}")
for given in ([7], pd.Series([7]), pd.Index([7]), pd.DataFrame({"v": [7]}), np.array([7]), pd.Series([7]).to_numpy(), cudf.Series([7])):
    found = edges.pagerank(vertices=given)["vertex"].tolist()
    check(found == [0, 1, 2, 3, 7], f"vertices {type(given)}: {found}")

dates = pd.DataFrame({"src": pd.to_datetime(["2026-01-02", "2026-01-01"]), "dst": pd.to_datetime(["2026-01-01", "2026-01-03"])})
ranks = dates.pagerank(vertices=[pd.Timestamp("2027-01-01")], personalization={pd.Timestamp("2026-01-01"): 1})
check([str(day)[:10] for day in ranks["vertex"].tolist()] == ["2026-01-02", "2026-01-01", "2026-01-03", "2027-01-01"], "dates")

with_objects = pd.DataFrame({"src": ["b", "a"], "dst": ["a", "c"], "odd": [object(), 1]})
ranks = with_objects.pagerank()
check(is_proxy(ranks), "the result of a frame with objects is not a proxy")
check(ranks["vertex"].tolist() == ["b", "a", "c"], "vertices of a frame with objects")
repeated = pd.DataFrame([[1, 2, 0, 0]], columns=["src", "dst", "x", "x"])
check(repeated.pagerank()["vertex"].tolist() == [1, 2], "vertices of a frame with repeated labels")
tuples = pd.DataFrame({"src": pd.Series([(1, "a"), (1, "b")]), "dst": pd.Series([(2, "a"), ()])})
check(tuples.pagerank()["vertex"].tolist() == [(1, "a"), (2, "a"), (1, "b"), ()], "vertices that are tuples, on the host")

on_gpu = cudf.DataFrame({"src": [1], "dst": [2]})
ranks = on_gpu.pagerank(vertices=pd.Series([5]))
check(type(ranks) is cudf.DataFrame, "the result of a cuDF frame is not a cuDF frame")
check(ranks["vertex"].to_arrow().to_pylist() == [1, 2, 5], "vertices of a cuDF frame and a proxy")
try:
    edges.pagerank(personalization={9: 1})
    print("FAILED no error")
except prplugin.InvalidOptionError as error:
    check("not in the graph: 9." in str(error), str(error))
try:
    edges.pagerank(tol=1e-9, max_iter=1)
    print("FAILED no error")
except prplugin.NotConvergedError as error:
    check(is_proxy(error.ranking.frame), "the frame of the error's ranking is not a proxy")
print("done")
"""

IMPORT_ORDERS = {
    "-m, pandas first": (["-m", "cudf.pandas"], "import pandas as pd, prplugin"),
    "-m, prplugin first": (["-m", "cudf.pandas"], "import prplugin\nimport pandas as pd"),
    "install, pandas first": ([], "import cudf.pandas\ncudf.pandas.install()\nimport pandas as pd, prplugin"),
    "install, prplugin before pandas": (
        [],
        "import cudf.pandas\ncudf.pandas.install()\nimport prplugin\nimport pandas as pd",
    ),
    "prplugin before install": ([], "import prplugin\nimport cudf.pandas\ncudf.pandas.install()\nimport pandas as pd"),
}


@pytest.mark.parametrize("name", IMPORT_ORDERS)
def test_under_cudf_pandas(name, tmp_path):
    options, imports = IMPORT_ORDERS[name]
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace("IMPORTS", imports))
    assert run(*options, str(path)).splitlines() == ["done"]
