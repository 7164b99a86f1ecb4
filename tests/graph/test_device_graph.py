"""Graph building on the GPU, against NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prplugin.gpu.runtime import unavailable_reason
from prplugin.graph.adjacency import Adjacency, group_sizes
from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.factorize import factorize_ids
from prplugin.types.edges import Edges, GroupedEdges

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(unavailable_reason()), reason=str(unavailable_reason()))]

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
    from prplugin.gpu.sort import order_of

    keys = random_keys(m, bits, kind)
    given_keys = on_gpu(keys)
    ranked, order = order_of(given_keys, bits)
    for one, other in zip((ranked, order), order_of(given_keys.copy(), bits, owned=True), strict=True):
        assert (one == other).all()
    expected = np.argsort(keys, kind="stable")
    assert (order.get() == expected).all()
    assert (ranked.get() == keys[expected]).all()
    assert (given_keys.get() == keys).all()


@pytest.mark.parametrize("payloads", [(), ("i4",), ("f8",), ("i8",), ("i4", "f8"), ("i8", "f8"), ("i4", None)])
@pytest.mark.parametrize("bits", [22, 33])
@pytest.mark.parametrize("m", [1, 4097, 100_003])
def test_payloads_go_with_their_keys(m, bits, payloads):
    from prplugin.gpu.sort import sorted_by

    keys = random_keys(m, bits, "skewed")
    arrays = [None if kind is None else np.random.default_rng(1).permutation(m).astype(kind) for kind in payloads]
    ranked, *copied = sorted_by(on_gpu(keys), bits, *(None if array is None else on_gpu(array) for array in arrays))
    order = np.argsort(keys, kind="stable")
    assert (ranked.get() == keys[order]).all()
    for array, there in zip(arrays, copied, strict=True):
        assert (there is None) if array is None else (there.get() == array[order]).all()
        assert array is None or there.dtype == array.dtype


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2**40 - 1), max_size=200), st.integers(1, 100))
def test_any_keys_are_sorted(few, times):
    from prplugin.gpu.sort import order_of

    keys = np.tile(np.array(few, np.uint64), times)
    assert (order_of(on_gpu(keys), 40)[1].get() == np.argsort(keys, kind="stable")).all()


def test_words_of_64_bits_look_back_as_well(monkeypatch):
    from prplugin.gpu import sort

    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    keys = random_keys(50_000, 22)
    assert (sort.order_of(on_gpu(keys), 22)[1].get() == np.argsort(keys, kind="stable")).all()


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


def assert_factorized_as_on_the_host(*columns):
    expected, ids = factorize_ids(list(columns))
    codes, found = factorize_ids([on_gpu(column) for column in columns])
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
    assert_factorized_as_on_the_host(one, other)
    assert_factorized_as_on_the_host(one[:0], other)
    assert_factorized_as_on_the_host(one, other, more)
    assert_factorized_as_on_the_host(one[::2], other[::-1])


@pytest.mark.parametrize("m", [10, 10_000])
def test_every_id_of_a_range_occurs(m):
    ids = np.random.default_rng(0).permutation(m)
    assert_factorized_as_on_the_host(ids - 5, ids[::-1] - 5)
    assert_factorized_as_on_the_host(ids.astype(np.uint64) + np.uint64(2**64 - m), ids.astype(np.uint64))


@pytest.mark.parametrize("m", [1, 10_000])
@pytest.mark.parametrize("kind", ["i8", "u8"])
def test_ids_as_far_apart_as_can_be(kind, m):
    info = np.iinfo(kind)
    endpoints = np.array([info.min, info.max], kind)
    assert_factorized_as_on_the_host(np.tile(endpoints, m), np.random.default_rng(0).integers(*endpoints, 2 * m, kind))


def test_distinct_ids_without_end():
    rng = np.random.default_rng(0)
    assert_factorized_as_on_the_host(rng.integers(-(2**61), 2**61, 700_000), rng.integers(-(2**61), 2**61, 700_000))


def test_a_table_that_is_too_small(monkeypatch):

    monkeypatch.setattr("prplugin.gpu.factorize.SLOTS_PER_ID", 0.1)
    assert_factorized_as_on_the_host(*np.random.default_rng(0).integers(-(2**61), 2**61, (2, 50_000)))


@pytest.mark.parametrize("distinct", [10, 1_000, 30_000, 400_000])
def test_the_estimate_of_distinct_ids(distinct):
    from prplugin.gpu import factorize

    ids = np.random.default_rng(0).integers(-(2**61), 2**61, distinct)
    columns = on_gpu(np.tile(ids, 3), ids)
    assert distinct <= factorize._estimate(columns) <= 1.12 * distinct + factorize.REGISTERS


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=1, max_size=50),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=50),
    st.sampled_from([1, 200]),
)
def test_any_ids(one, other, times):
    assert_factorized_as_on_the_host(np.tile(np.array(one, np.int64), times), np.tile(np.array(other, np.int64), times))


def test_words_of_64_bits_are_factorized_as_well(monkeypatch):

    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    assert_factorized_as_on_the_host(*np.random.default_rng(0).integers(0, 300_000, (2, 100_000)))


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
@pytest.mark.parametrize(
    "of", [np.asarray, lambda endpoints: np.where(endpoints % 7, endpoints // 100, endpoints)], ids=["even", "skewed"]
)
def test_edges_are_brought_together(shape, weighted, of):
    host, there = (Adjacency(edges) for edges in both(*shape, weighted, of))
    for expected, found in ((host.csr, there.csr), (host.csc, there.csc)):
        for array, other in zip(expected, found, strict=True):
            assert (other is None) if array is None else (other.get() == array).all()
    np.testing.assert_allclose(there.out_weight.get(), host.out_weight, rtol=1e-14, atol=0)
    assert there.largest_in_degree == host.largest_in_degree


def assert_counted_in_bins(groups, n, monkeypatch):
    from prplugin.gpu import group

    monkeypatch.setattr("prplugin.gpu.group.BINNED", range(n, n + 1))
    monkeypatch.setattr("prplugin.gpu.group.A_GROUP", 0)
    given_groups = on_gpu(groups)
    counts = group.degrees(given_groups, n)
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
    monkeypatch.setattr("prplugin.gpu.group.PIECE", piece)
    monkeypatch.setattr("prplugin.gpu.group.A_COUNT", 0)
    assert_counted_in_bins(groups, n, monkeypatch)


@pytest.mark.parametrize("n", [(1 << 21) + 1, (1 << 22) - 5, 1 << 24])
def test_bins_of_many_parts(n, monkeypatch):
    rng = np.random.default_rng(n)
    groups = np.where(rng.random(300_000) < 0.8, rng.integers(0, 30_000, 300_000), rng.integers(0, n, 300_000))
    assert_counted_in_bins(groups.astype(np.int32), n, monkeypatch)


def test_words_of_64_bits_count_in_bins_as_well(monkeypatch):
    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    assert_counted_in_bins(np.random.default_rng(0).integers(0, 70_000, 100_000).astype(np.int32), 70_000, monkeypatch)


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_to_count_rows_takes_little_beside_the_counts(kind):
    import cupy

    n = 1 << 20
    groups = cupy.arange(n, dtype=kind)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    counts = group_sizes(groups, n)
    assert pool.total_bytes() - before < 100 * n  # of `cupy.bincount`, it was 3000
    assert (counts == 1).all()


def test_many_rows_of_many_groups_are_counted_in_bins(monkeypatch):
    from prplugin.gpu import group

    calls = []
    monkeypatch.setattr("prplugin.gpu.group._count_binned", lambda groups, counts: calls.append(counts.size))
    monkeypatch.setattr("prplugin.gpu.group.BINNED", range(100, 201))
    for m, n in [(400, 100), (399, 100), (396, 99), (800, 200), (1000, 201)]:
        group.degrees(on_gpu(np.zeros(m, np.int32)), n)
    group.degrees(on_gpu(np.zeros(400, np.int64)), 100)
    assert calls == [100, 200]


# --- edges by id --------------------------------------------------------------------------------------------------


def given_weights(weights):
    """As a column that is the user's, and that the graph may not keep."""
    from prplugin.gpu.edges import GivenWeights

    def refuse(floats):
        raise ValueError("bad weights")

    return None if weights is None else GivenWeights(weights, False, refuse)


def assert_grouped_as_on_the_host(source, destination, weights=None, *, grouped=True):
    from prplugin.gpu.edges import edges_by_id

    codes, expected_ids = factorize_ids([source, destination])
    rows = Edges(*codes, weights, expected_ids.size)
    # What takes the place of the rows: by target, and for each target in the order of the frame.
    order = np.argsort(codes[1], kind="stable") if grouped else np.arange(source.size)
    host = Adjacency(Edges(*(end[order] for end in codes), None if weights is None else weights[order], rows.n))
    columns = [on_gpu(source), on_gpu(destination), *([] if weights is None else [on_gpu(weights)])]
    edges, ids = edges_by_id(columns[:2], given_weights(columns[2] if len(columns) > 2 else None), grouped=True)
    assert isinstance(edges, GroupedEdges) == grouped
    there = Adjacency(edges)
    for column in columns:
        column[:] = 0  # the graph has its own copy
    assert ids.dtype == expected_ids.dtype
    assert ids.get().tolist() == expected_ids.tolist()
    assert (there.n, there.m, there.memory_space, there.weighted) == (host.n, host.m, "device", weights is not None)
    expected = [host.edges.source, host.edges.destination, *host.csr[:2], *Adjacency(rows).csc[:2]]
    found = [edges.source, edges.destination, *there.csr[:2], *there.csc[:2]]
    for array, other in zip(expected, found, strict=True):
        assert (other.get() == array).all()
    assert (edges.source.dtype, edges.destination.dtype) == (codes[0].dtype, codes[0].dtype)
    assert there.out_weight.dtype == np.float64
    if weights is None:
        assert (there.out_weight.get() == host.out_weight).all()
        assert there.csc.weights is None
    else:
        for array, other in ((host.csc, there.csc), (host.csr, there.csr), (host.edges, edges)):
            assert other.weights.get().tobytes() == array.weights.tobytes()
        assert_out_weights(there, rows)
    assert there.largest_in_degree == host.largest_in_degree
    copied = there.on("host")
    assert (copied.csc.indices == host.csc.indices).all()
    assert weights is None or (copied.csc.weights == host.csc.weights).all()


def assert_out_weights(there, rows):
    """They are off by as many roundings as they say."""
    found = there.out_weight.get()
    exact = exact_sums(rows.source, rows.weights, rows.n)
    assert (np.abs(found - exact) <= there.out_weight_depth * 2.0**-53 * exact).all()
    if there.out_weight_depth == 1:
        assert found.tobytes() == exact.tobytes()


def exact_sums(groups, terms, n):
    """Sums that are rounded once."""
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(n + 1))
    ordered = terms[order].tolist()
    return np.array([math.fsum(ordered[first:last]) for first, last in itertools.pairwise(bounds.tolist())])


@pytest.mark.parametrize("m", [2049, 4097, 40_000])
@pytest.mark.parametrize("where", ["one", "few", "least", "greatest", "about 0", "wide"])
@pytest.mark.parametrize("kind", INTEGERS)
def test_edges_are_grouped_before_ids_are_factorized(kind, where, m):
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

    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    assert_grouped_as_on_the_host(*np.random.default_rng(0).integers(0, 70_000, (2, 100_000)))


def test_many_blocks_group():
    endpoints = np.random.default_rng(0).integers(0, 900_000, (2, 1_000_007))
    assert_grouped_as_on_the_host(endpoints[0], np.where(endpoints[1] % 7, endpoints[1] // 1000, endpoints[1]))


@pytest.mark.parametrize("m", [0, 1, 40, 2048])
def test_few_edges_keep_their_rows(m):
    rng = np.random.default_rng(0)
    source, destination = rng.integers(0, 5, (2, m))
    assert_grouped_as_on_the_host(source, destination, grouped=False)
    assert_grouped_as_on_the_host(source, destination, rng.random(m), grouped=False)


def test_a_range_past_the_count_of_edges_is_not_grouped():
    rng = np.random.default_rng(0)
    endpoints = rng.integers(0, 90_000, (2, 9_000))
    assert_grouped_as_on_the_host(*endpoints, grouped=False)
    assert_grouped_as_on_the_host(*endpoints, rng.random(9_000), grouped=False)


def test_more_vertices_and_rows_that_are_asked_for_are_not_grouped():
    from prplugin.gpu.edges import edges_by_id

    columns = on_gpu(*np.random.default_rng(0).integers(0, 100, (3, 5000)))
    assert isinstance(edges_by_id(columns, grouped=True)[0], Edges)
    assert isinstance(edges_by_id(columns[:2], grouped=False)[0], Edges)


def test_no_room_to_group(monkeypatch):
    monkeypatch.setattr("prplugin.gpu.runtime.fits", lambda needed: False)
    endpoints = np.random.default_rng(0).integers(0, 100, (2, 5000))
    assert_grouped_as_on_the_host(*endpoints, grouped=False)
    assert_grouped_as_on_the_host(*endpoints, np.ones(5000), grouped=False)


# --- weights ------------------------------------------------------------------------------------------------------


LEAST, GREATEST = 5e-324, np.finfo(np.float64).max
WEIGHTS = {
    "random": lambda rng, m: rng.random(m),
    "ones": lambda rng, m: np.ones(m),
    "zeros": lambda rng, m: np.zeros(m),
    "some zeros of either sign": lambda rng, m: rng.choice([0.0, -0.0, 0.3, 7.0], m),
    "denormal": lambda rng, m: LEAST * rng.integers(0, 1 << 20, m),
    "about the end of denormals": lambda rng, m: 2.0**-1022 * rng.uniform(0.9, 1.1, m),
    "as far apart as is summed exactly": lambda rng, m: rng.random(m) * 2.0 ** -rng.integers(0, 30, m),
    "far apart": lambda rng, m: rng.random(m) * 2.0 ** rng.integers(-900, 900, m),
    "large": lambda rng, m: rng.uniform(0.5, 1, m) * (GREATEST / m),
    "all bits": lambda rng, m: 1 + rng.integers(0, 2, m) * (1 - 2.0**-52),
}


@pytest.mark.parametrize("m", [2049, 4097, 40_000])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_weighted_edges_are_grouped(kind, m):
    rng = np.random.default_rng(m)
    weights = WEIGHTS[kind](rng, m)
    source, destination = rng.integers(5, 5 + m // 5, (2, m))
    assert_grouped_as_on_the_host(source, destination, weights)
    assert_grouped_as_on_the_host(source**4 // 10**6 % (m // 5), destination, weights)
    assert_grouped_as_on_the_host(np.full(m, 7), destination.astype(np.int16), weights)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("where", ["one", "least", "greatest", "about 0"])
def test_weighted_edges_of_ids_of_every_type(where, kind):
    rng = np.random.default_rng(0)
    endpoints = (rng.integers(*id_range(kind, where, 9000), 9000, dtype=kind) for _ in range(2))
    assert_grouped_as_on_the_host(*endpoints, rng.random(9000))


@pytest.mark.parametrize("middle", [2**31, 2**32, -(2**31), 2**40 - 7])
def test_weighted_edges_of_ids_about_the_end_of_a_word(middle):
    rng = np.random.default_rng(0)
    assert_grouped_as_on_the_host(*(middle + rng.integers(-2000, 2000, (2, 9000))), rng.random(9000))


def test_many_blocks_group_weighted_edges():
    rng = np.random.default_rng(0)
    endpoints = rng.integers(0, 290_000, (2, 300_007))
    assert_grouped_as_on_the_host(np.where(endpoints[1] % 7, endpoints[0], 9), endpoints[1], rng.random(300_007))


def test_words_of_64_bits_group_weighted_edges_as_well(monkeypatch):
    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    rng = np.random.default_rng(0)
    assert_grouped_as_on_the_host(*rng.integers(0, 30_000, (2, 50_000)), rng.random(50_000))


@pytest.mark.parametrize("m", [1, 2000, 5000])
@pytest.mark.parametrize("bad", [-1.0, -LEAST, np.nan, -np.nan, np.inf, -np.inf])
def test_bad_weights_are_seen(bad, m):
    from prplugin.gpu.edges import edges_by_id

    endpoints = on_gpu(*np.random.default_rng(0).integers(0, 100, (2, m)))
    for place in (0, m - 1):
        weights = np.ones(m)
        weights[place] = bad
        for grouped in (True, False):
            with pytest.raises(ValueError, match="bad weights"):
                edges_by_id(endpoints, given_weights(on_gpu(weights)), grouped=grouped)


def test_the_extent_of_weights():
    from prplugin.gpu.factorize import extremes

    columns = [on_gpu(np.array([3, -4, 10**12]))]
    for weights, least, most in [
        ([0.0, -0.0], 0.0, 0.0),
        ([0.0, LEAST, 2.5, 1.0], LEAST, 2.5),
        ([GREATEST], GREATEST, GREATEST),
        ([], 0.0, 0.0),
    ]:
        assert extremes(columns, on_gpu(np.array(weights, float))) == (-4, 10**12, least, most)
        assert extremes([], on_gpu(np.array(weights, float)))[2:] == (least, most)
    assert extremes(columns)[:2] == (-4, 10**12)


@pytest.mark.parametrize("weights", [[1.0, GREATEST, GREATEST], [GREATEST, GREATEST / 2, GREATEST / 2]])
@pytest.mark.parametrize("m", [3, 6000])
def test_out_weights_past_the_range(m, weights):
    from prplugin.gpu.edges import edges_by_id

    source, destination, given = np.arange(m) // 3, np.arange(m) % 7, np.full(m, 3.0)
    given[:3] = weights
    for part, past in ((1 / m, []), (1, [0])):
        edges, _ = edges_by_id(on_gpu(source, destination), given_weights(on_gpu(given * part)), grouped=True)
        assert Adjacency(edges).overflowing_vertices().tolist() == past
    assert (Adjacency(edges).out_weight.get()[1 : m // 3] == 9).all()


def test_sums_are_the_same_in_any_order():
    from prplugin.gpu import group

    rng = np.random.default_rng(0)
    groups, terms = (30_000 * rng.random(50_000) ** 4).astype(np.int32), rng.random(50_000) ** 3
    extent = terms.min(), terms.max()
    sums, rounding_depth = group.sums_by(*on_gpu(groups, terms), 30_000, extent)
    order = rng.permutation(50_000)
    again, _ = group.sums_by(*on_gpu(groups[order], terms[order]), 30_000, extent)
    assert rounding_depth == 1
    assert sums.get().tobytes() == again.get().tobytes() == exact_sums(groups, terms, 30_000).tobytes()


@pytest.mark.parametrize("least", [2.0**-21, 2.0**-57], ids=["3 words", "4 words"])
@pytest.mark.parametrize("n", [1, 5, 256, 257, 65_537, (1 << 22) - 5])
@pytest.mark.parametrize("kind", ["even", "skewed", "first", "last"])
def test_exact_sums_over_many_pieces(kind, n, least, monkeypatch):
    from prplugin.gpu import group

    rng = np.random.default_rng(n)
    groups = {
        "even": rng.integers(0, n, 20_007),
        "skewed": (n * rng.random(20_007) ** 20).astype(int),
        "first": np.zeros(10_000, int),
        "last": np.full(10_001, n - 1),
    }[kind].astype(np.int32)
    terms = rng.choice([0.0, 1.0, least, 1 - 2.0**-53, 0.1], groups.size)
    monkeypatch.setattr("prplugin.gpu.group.PIECE", 999)
    monkeypatch.setattr("prplugin.gpu.group.A_COUNT", 0)
    sums, rounding_depth = group.sums_by(*on_gpu(groups, terms), n, (least, 1.0), absent=-1.0)
    there = np.bincount(groups, minlength=n) > 0
    assert rounding_depth == 1
    assert (sums.get()[~there] == -1).all()
    ranked, places = np.unique(groups, return_inverse=True)
    assert (sums.get()[there] == exact_sums(places, terms, ranked.size)).all()


@pytest.mark.parametrize("extent", [(LEAST, GREATEST), (0.1, 1.0)], ids=["sorted", "exact"])
def test_a_group_of_no_weight_is_not_absent(extent):
    from prplugin.gpu import group

    groups, terms = np.repeat(np.arange(0, 9000, 3), 3).astype(np.int32), np.zeros(9000)
    sums, _ = group.sums_by(*on_gpu(groups, terms), 9000, extent, absent=-1.0)
    assert (sums.get() == np.where(np.arange(9000) % 3, -1, 0)).all()


@pytest.mark.parametrize(
    "lengths",
    [[], [0], [1], [0, 0, 3, 0], [4095], [4096], [4094, 0, 0, 0, 1], [20_000], [0, 9_000, 0, 9_000, 0], [1] * 9000,
     [0] * 9000, [32, 33, 31] * 200, [*range(300)], [1, 2, 12_288, 5, 0, 4096, 7]],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_runs_of_any_length_are_summed(lengths, dtype):
    from prplugin.gpu import group

    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)
    terms = np.random.default_rng(0).random(offsets[-1]) ** 9
    sums = group.run_sums(*on_gpu(terms, offsets), absent=-1.0).get()
    expected = [math.fsum(terms[first:last]) if first < last else -1 for first, last in itertools.pairwise(offsets)]
    np.testing.assert_allclose(sums, expected, rtol=2**-52, atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [0, 1, 5000])
def test_normalized_weights(m, dtype):
    from prplugin.methods.engines.gpu_pull import NormalizedWeights

    host, there = (Adjacency(edges) for edges in both(900, m, True))
    if m:
        there.edges.weights[:] *= there.edges.source % 5 > 0  # some have no weight
        there.edges.weights[:10] *= 1e-320
    weights, out_weight = there.edges.weights.get(), there.out_weight.get()[host.edges.source]
    with np.errstate(invalid="ignore"):
        expected = np.where(out_weight > 0, weights / out_weight, 0).astype(dtype)
    normalized_weights = NormalizedWeights(there.edges.weights, there, there.edges.source)
    found = normalized_weights.of(dtype)
    assert found.get().tobytes() == expected.tobytes()
    assert found.dtype == dtype
    assert normalized_weights.of(dtype) is found
    assert NormalizedWeights(None, there, there.edges.source).of(dtype) is None


# --- one row of each pair -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("duplicates", ["first", "last"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shape", [(1, 0), (1, 9), (12, 34), (300, 50_000), (100_000, 50_000)])
def test_one_row_of_each_pair(shape, weighted, duplicates, directed):
    host, there = (drop_duplicates(edges, duplicates, directed=directed) for edges in both(*shape, weighted))
    assert (there.source.get() == host.source).all()
    assert (there.destination.get() == host.destination).all()
    assert (there.weights is None) if host.weights is None else (there.weights.get() == host.weights).all()


@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_pairs_whose_keys_are_the_same_are_told_apart(monkeypatch, duplicates):
    from prplugin.gpu import dedup

    order_of = dedup.order_of
    # As if all keys were: one run holds every pair.
    monkeypatch.setattr("prplugin.gpu.dedup.order_of", lambda keys, bits, owned: order_of(keys * 0, 1))
    host, there = (drop_duplicates(edges, duplicates, directed=True) for edges in both(40, 3_000, False))
    assert (there.source.get() == host.source).all()
    assert (there.destination.get() == host.destination).all()
