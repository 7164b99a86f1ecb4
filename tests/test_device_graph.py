"""Graph building on the GPU, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prplugin.cuda import missing
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.edges import Edges, GroupedEdges
from prplugin.graph.pairs import one_edge_a_pair
from prplugin.graph.renumber import renumber

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(missing()), reason=str(missing()))]

SIZES = [0, 1, 31, 4095, 4096, 4097, 5000, 1_000_007]
BITS = [1, 3, 8, 9, 16, 22, 32, 33, 64]
INTEGERS = [f"{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)]


def on_gpu(*arrays):
    import cupy

    there = [None if array is None else cupy.asarray(array) for array in arrays]
    return there[0] if len(there) == 1 else there


def random_keys(m, bits, kind="random"):
    rng = np.random.default_rng(m + bits)
    keys = rng.integers(0, 2**64 - 1, m, dtype=np.uint64, endpoint=True) & np.uint64(2**bits - 1)
    if kind == "equal":
        keys[:] = 2**bits - 1
    elif kind == "reversed":
        keys = np.sort(keys)[::-1].copy()
    elif kind == "skewed":
        keys &= np.roll(keys, 1) & np.roll(keys, 2)
    return keys.astype(np.uint32 if bits <= 32 else np.uint64)


# --- the sort -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "equal", "reversed", "skewed"])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("m", SIZES)
def test_keys_are_sorted_stably(m, bits, kind):
    from prplugin.graph.device_sort import order_of

    keys = random_keys(m, bits, kind)
    given_keys = on_gpu(keys)
    ranked, order = order_of(given_keys, bits)
    expected = np.argsort(keys, kind="stable")
    assert (order.get() == expected).all()
    assert (ranked.get() == keys[expected]).all()
    assert (given_keys.get() == keys).all()


@pytest.mark.parametrize("payloads", [(), ("i4",), ("f8",), ("i8",), ("i4", "f8"), ("i8", "f8"), ("i4", None)])
@pytest.mark.parametrize("bits", [22, 33])
@pytest.mark.parametrize("m", [1, 4097, 100_003])
def test_payloads_go_with_their_keys(m, bits, payloads):
    from prplugin.graph.device_sort import sorted_by

    keys = random_keys(m, bits, "skewed")
    arrays = [None if kind is None else np.random.default_rng(1).permutation(m).astype(kind) for kind in payloads]
    ranked, *moved = sorted_by(on_gpu(keys), bits, *(None if array is None else on_gpu(array) for array in arrays))
    order = np.argsort(keys, kind="stable")
    assert (ranked.get() == keys[order]).all()
    for array, there in zip(arrays, moved, strict=True):
        assert (there is None) if array is None else (there.get() == array[order]).all()
        assert array is None or there.dtype == array.dtype


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2**40 - 1), max_size=200), st.integers(1, 100))
def test_any_keys_are_sorted(few, times):
    from prplugin.graph.device_sort import order_of

    keys = np.tile(np.array(few, np.uint64), times)
    assert (order_of(on_gpu(keys), 40)[1].get() == np.argsort(keys, kind="stable")).all()


def test_words_of_64_bits_look_back_as_well(monkeypatch):
    from prplugin.graph import device_sort

    monkeypatch.setattr(device_sort, "NARROW", 0)
    keys = random_keys(50_000, 22)
    assert (device_sort.order_of(on_gpu(keys), 22)[1].get() == np.argsort(keys, kind="stable")).all()


# --- ids to positions ---------------------------------------------------------------------------------------------


def id_range(kind, where, m):
    """The least id of m that may be drawn, and the one after the greatest."""
    info = np.iinfo(kind)
    return {
        "one": (7, 8),
        "few": (3, 20),
        "least": (info.min, info.min + 90),
        "greatest": (info.max - 90, info.max + 1),
        "about 0": (max(info.min, -40), 70),
        "wide": (max(info.min, -m // 3), min(info.max, m // 2)),
        "anywhere": (info.min, info.max + 1),
    }[where]


def assert_numbered_as_on_the_host(*columns):
    expected, ids = renumber(list(columns))
    codes, found = renumber([on_gpu(column) for column in columns])
    assert found.dtype == ids.dtype
    assert found.get().tolist() == ids.tolist()
    for ours, theirs in zip(codes, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert (ours.get() == theirs).all()


@pytest.mark.parametrize("m", [0, 1, 40, 2048, 2049, 300_000])
@pytest.mark.parametrize("where", ["one", "few", "least", "greatest", "about 0", "anywhere"])
@pytest.mark.parametrize("kind", INTEGERS)
def test_ids_of_every_type(kind, where, m):
    low, high = id_range(kind, where, m)
    rng = np.random.default_rng(m)
    one, other, more = (rng.integers(low, high, size, dtype=kind) for size in (m, m, 1 + m // 10))
    assert_numbered_as_on_the_host(one, other)
    assert_numbered_as_on_the_host(one[:0], other)
    assert_numbered_as_on_the_host(one, other, more)
    assert_numbered_as_on_the_host(one[::2], other[::-1])


@pytest.mark.parametrize("m", [10, 10_000])
def test_every_id_of_a_range_occurs(m):
    ids = np.random.default_rng(0).permutation(m)
    assert_numbered_as_on_the_host(ids - 5, ids[::-1] - 5)
    assert_numbered_as_on_the_host(ids.astype(np.uint64) + np.uint64(2**64 - m), ids.astype(np.uint64))


@pytest.mark.parametrize("m", [1, 10_000])
@pytest.mark.parametrize("kind", ["i8", "u8"])
def test_ids_as_far_apart_as_can_be(kind, m):
    info = np.iinfo(kind)
    ends = np.array([info.min, info.max], kind)
    assert_numbered_as_on_the_host(np.tile(ends, m), np.random.default_rng(0).integers(*ends, 2 * m, kind))


def test_distinct_ids_without_end():
    rng = np.random.default_rng(0)
    assert_numbered_as_on_the_host(rng.integers(-(2**61), 2**61, 700_000), rng.integers(-(2**61), 2**61, 700_000))


def test_a_table_that_is_too_small(monkeypatch):
    from prplugin.graph import device_ids

    monkeypatch.setattr(device_ids, "ROOM", 0.1)
    assert_numbered_as_on_the_host(*np.random.default_rng(0).integers(-(2**61), 2**61, (2, 50_000)))


@pytest.mark.parametrize("distinct", [10, 1_000, 30_000, 400_000])
def test_the_estimate_of_distinct_ids(distinct):
    from prplugin.graph import device_ids

    ids = np.random.default_rng(0).integers(-(2**61), 2**61, distinct)
    columns = on_gpu(np.tile(ids, 3), ids)
    assert distinct <= device_ids._estimate(columns) <= 1.12 * distinct + device_ids.CLASSES


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=1, max_size=50),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=50),
    st.sampled_from([1, 200]),
)
def test_any_ids(one, other, times):
    assert_numbered_as_on_the_host(np.tile(np.array(one, np.int64), times), np.tile(np.array(other, np.int64), times))


def test_words_of_64_bits_number_as_well(monkeypatch):
    from prplugin.graph import device_sort

    monkeypatch.setattr(device_sort, "NARROW", 0)
    assert_numbered_as_on_the_host(*np.random.default_rng(0).integers(0, 300_000, (2, 100_000)))


# --- compressed rows and columns ----------------------------------------------------------------------------------


def both(n, m, weighted, of=np.asarray):
    """The same graph on either side."""
    rng = np.random.default_rng(n + m)
    source, target = (of(rng.integers(0, n, m)).astype(np.int32) for _ in range(2))
    weights = rng.random(m) if weighted else None
    return Edges(source, target, weights, n), Edges(*on_gpu(source, target, weights), n)


GRAPHS = {
    "no edges": (5, 0),
    "one vertex": (1, 9),
    "few": (12, 34),
    "a tile": (500, 4096),
    "a tile and one more": (500, 4097),
    "fewer edges than vertices": (100_000, 10),
    "far fewer edges than vertices": (3_000_000, 20_000),
    "more edges than vertices": (20_000, 300_000),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shape", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("of", [np.asarray, lambda ends: np.where(ends % 7, ends // 100, ends)], ids=["even", "skewed"])
def test_edges_are_brought_together(shape, weighted, of):
    host, there = (Adjacency(edges) for edges in both(*shape, weighted, of))
    for expected, found in ((host.csr, there.csr), (host.csc, there.csc)):
        for array, other in zip(expected, found, strict=True):
            assert (other is None) if array is None else (other.get() == array).all()
    np.testing.assert_allclose(there.out_weight.get(), host.out_weight, rtol=1e-14, atol=0)
    assert there.largest_in_degree == host.largest_in_degree


def assert_counted_in_bins(groups, n, monkeypatch):
    from prplugin.graph import device

    monkeypatch.setattr(device, "BINNED", range(n, n + 1))
    monkeypatch.setattr(device, "A_GROUP", 0)
    given_groups = on_gpu(groups)
    counts = device.degrees(given_groups, n)
    assert counts.dtype == np.int32
    assert (counts.get() == np.bincount(groups, minlength=n)).all()
    assert (given_groups.get() == groups).all()


@pytest.mark.parametrize("piece", [1 << 17, 999], ids=["whole bins", "many pieces"])
@pytest.mark.parametrize("kind", ["even", "skewed", "first", "last", "both ends"])
@pytest.mark.parametrize("n", [1, 5, 256, 257, 1000, 65_537, 1_000_003])
def test_rows_are_counted_in_bins(n, kind, piece, monkeypatch):
    rng = np.random.default_rng(n)
    groups = {
        "even": rng.integers(0, n, 50_007),
        "skewed": (n * rng.random(50_007) ** 20).astype(int),
        "first": np.zeros(10_000, int),
        "last": np.full(10_001, n - 1),
        "both ends": (n - 1) * rng.integers(0, 2, 10_000),
    }[kind].astype(np.int32)
    monkeypatch.setattr("prplugin.graph.device.PIECE", piece)
    monkeypatch.setattr("prplugin.graph.device.A_COUNT", 0)
    assert_counted_in_bins(groups, n, monkeypatch)


@pytest.mark.parametrize("n", [(1 << 21) + 1, (1 << 22) - 5, 1 << 24])
def test_bins_of_many_parts(n, monkeypatch):
    rng = np.random.default_rng(n)
    groups = np.where(rng.random(300_000) < 0.8, rng.integers(0, 30_000, 300_000), rng.integers(0, n, 300_000))
    assert_counted_in_bins(groups.astype(np.int32), n, monkeypatch)


def test_words_of_64_bits_count_in_bins_as_well(monkeypatch):
    monkeypatch.setattr("prplugin.graph.device_sort.NARROW", 0)
    assert_counted_in_bins(np.random.default_rng(0).integers(0, 70_000, 100_000).astype(np.int32), 70_000, monkeypatch)


def test_many_rows_of_many_groups_are_counted_in_bins(monkeypatch):
    from prplugin.graph import device

    calls = []
    monkeypatch.setattr(device, "_count_binned", lambda groups, counts: calls.append(counts.size))
    monkeypatch.setattr(device, "BINNED", range(100, 201))
    for m, n in [(400, 100), (399, 100), (396, 99), (800, 200), (1000, 201)]:
        device.degrees(on_gpu(np.zeros(m, np.int32)), n)
    device.degrees(on_gpu(np.zeros(400, np.int64)), 100)
    assert calls == [100, 200]


# --- edges by id --------------------------------------------------------------------------------------------------


def assert_grouped_as_on_the_host(source, destination, *, grouped=True):
    from prplugin.graph.device_edges import edges_by_id

    codes, expected_ids = renumber([source, destination])
    host = Adjacency(Edges(*codes, None, expected_ids.size))
    columns = [on_gpu(source), on_gpu(destination)]
    edges, ids = edges_by_id(columns, grouped=True)
    assert isinstance(edges, GroupedEdges) == grouped
    there = Adjacency(edges)
    columns[0][:] = columns[1][:] = 0  # the graph has its own copy
    assert ids.dtype == expected_ids.dtype
    assert ids.get().tolist() == expected_ids.tolist()
    assert (there.n, there.m, there.place, there.weighted) == (host.n, host.m, "device", False)
    expected = [*host.csc[:2], host.out_weight, *codes, *host.csr[:2]]
    found = [*there.csc[:2], there.out_weight, edges.source, edges.destination, *there.csr[:2]]
    for array, other in zip(expected, found, strict=True):
        assert (other.get() == array).all()
    assert found[1].dtype == expected[1].dtype
    assert there.out_weight.dtype == np.float64
    assert there.csc.weights is None
    assert there.largest_in_degree == host.largest_in_degree
    moved = there.on("host")
    assert (moved.csc.indices == host.csc.indices).all()


@pytest.mark.parametrize("m", [2049, 4097, 40_000])
@pytest.mark.parametrize("where", ["one", "few", "least", "greatest", "about 0", "wide"])
@pytest.mark.parametrize("kind", INTEGERS)
def test_edges_are_grouped_before_ids_are_numbered(kind, where, m):
    low, high = id_range(kind, where, m)
    rng = np.random.default_rng(m)
    source, destination = (rng.integers(low, high, m, dtype=kind) for _ in range(2))
    assert_grouped_as_on_the_host(source, destination)
    assert_grouped_as_on_the_host(source, np.full(m, low, kind))
    assert_grouped_as_on_the_host(source[::-1], np.where(source % 3 == 0, destination, source))


@pytest.mark.parametrize("middle", [2**31, 2**32, -(2**31), 2**40 - 7, -(2**62)])
def test_ids_about_the_end_of_a_word(middle):
    rng = np.random.default_rng(0)
    assert_grouped_as_on_the_host(*(middle + rng.integers(-2000, 2000, (2, 9000))))


def test_each_id_of_the_range_occurs():
    ids = np.random.default_rng(0).permutation(5000)
    assert_grouped_as_on_the_host(ids - 7, ids[::-1] - 7)


def test_words_of_64_bits_group_as_well(monkeypatch):
    from prplugin.graph import device_sort

    monkeypatch.setattr(device_sort, "NARROW", 0)
    assert_grouped_as_on_the_host(*np.random.default_rng(0).integers(0, 70_000, (2, 100_000)))


def test_many_blocks_group():
    ends = np.random.default_rng(0).integers(0, 900_000, (2, 1_000_007))
    assert_grouped_as_on_the_host(ends[0], np.where(ends[1] % 7, ends[1] // 1000, ends[1]))


@pytest.mark.parametrize("m", [0, 1, 40, 2048])
def test_few_edges_keep_their_rows(m):
    assert_grouped_as_on_the_host(*np.random.default_rng(0).integers(0, 5, (2, m)), grouped=False)


def test_a_range_past_the_count_of_edges_is_not_grouped():
    assert_grouped_as_on_the_host(*np.random.default_rng(0).integers(0, 90_000, (2, 9_000)), grouped=False)


def test_more_vertices_and_rows_that_are_asked_for_are_not_grouped():
    from prplugin.graph.device_edges import edges_by_id

    columns = on_gpu(*np.random.default_rng(0).integers(0, 100, (3, 5000)))
    assert isinstance(edges_by_id(columns, grouped=True)[0], Edges)
    assert isinstance(edges_by_id(columns[:2], grouped=False)[0], Edges)


def test_no_room_to_group(monkeypatch):
    monkeypatch.setattr("prplugin.cuda.holds", lambda needed: False)
    assert_grouped_as_on_the_host(*np.random.default_rng(0).integers(0, 100, (2, 5000)), grouped=False)


# --- one row of each pair -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("duplicates", ["first", "last"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shape", [(1, 0), (1, 9), (12, 34), (300, 50_000), (100_000, 50_000)])
def test_one_row_of_each_pair(shape, weighted, duplicates, directed):
    host, there = (one_edge_a_pair(edges, duplicates, directed=directed) for edges in both(*shape, weighted))
    assert (there.source.get() == host.source).all()
    assert (there.destination.get() == host.destination).all()
    assert (there.weights is None) if host.weights is None else (there.weights.get() == host.weights).all()


@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_pairs_whose_keys_are_the_same_are_told_apart(monkeypatch, duplicates):
    from prplugin.graph import device_pairs

    order_of = device_pairs.order_of
    # As if all keys were: one run holds every pair.
    monkeypatch.setattr(device_pairs, "order_of", lambda keys, bits: order_of(keys * 0, 1))
    host, there = (one_edge_a_pair(edges, duplicates, directed=True) for edges in both(40, 3_000, False))
    assert (there.source.get() == host.source).all()
    assert (there.destination.get() == host.destination).all()
