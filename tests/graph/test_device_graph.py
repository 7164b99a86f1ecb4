"""Graph building on the GPU, compared with NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prplugin.gpu.runtime import unavailable_reason
from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.edges import Edges, factorize_ids, group_sizes
from prplugin.graph.memory import Counts
from prplugin.types.edges import Coo, Csc, Csr, Grouped

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(unavailable_reason()), reason=str(unavailable_reason()))]

SIZES = [0, 1, 31, 4095, 4096, 4097, 5000, 1_000_007]
BITS = [1, 3, 8, 9, 16, 22, 32, 33, 64]
INTEGERS = [f"{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)]


def to_device(*arrays):
    import cupy

    copies = [None if array is None else cupy.asarray(array) for array in arrays]
    return copies[0] if len(copies) == 1 else copies


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


# --- sort ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "equal", "reversed", "skewed"])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("m", SIZES)
def test_keys_are_sorted_stably(m, bits, kind):
    from prplugin.gpu.sort import order_of

    keys = random_keys(m, bits, kind)
    given_keys = to_device(keys)
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
def test_payloads_follow_their_keys(m, bits, payloads):
    from prplugin.gpu.sort import sorted_by

    keys = random_keys(m, bits, "skewed")
    arrays = [None if kind is None else np.random.default_rng(1).permutation(m).astype(kind) for kind in payloads]
    ranked, *copied = sorted_by(
        to_device(keys), bits, *(None if array is None else to_device(array) for array in arrays)
    )
    order = np.argsort(keys, kind="stable")
    assert (ranked.get() == keys[order]).all()
    for array, found in zip(arrays, copied, strict=True):
        assert (found is None) if array is None else (found.get() == array[order]).all()
        assert array is None or found.dtype == array.dtype


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2**40 - 1), max_size=200), st.integers(1, 100))
def test_arbitrary_keys_are_sorted(few, times):
    from prplugin.gpu.sort import order_of

    keys = np.tile(np.array(few, np.uint64), times)
    assert (order_of(to_device(keys), 40)[1].get() == np.argsort(keys, kind="stable")).all()


def test_sort_with_64_bit_look_back(monkeypatch):
    from prplugin.gpu import sort

    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    keys = random_keys(50_000, 22)
    assert (sort.order_of(to_device(keys), 22)[1].get() == np.argsort(keys, kind="stable")).all()


# --- factorization ------------------------------------------------------------------------------------------------


def id_range(kind, span, m):
    """Return the smallest id to draw, and the largest plus 1."""
    info = np.iinfo(kind)
    return {
        "one": (7, 8),
        "few": (3, 20),
        "smallest": (info.min, info.min + 90),
        "largest": (info.max - 90, info.max + 1),
        "around 0": (max(info.min, -40), 70),
        "wide": (max(info.min, -m // 3), min(info.max, m // 2)),
        "full range": (info.min, info.max + 1),
    }[span]


def assert_factorized_as_on_host(*columns):
    expected, ids = factorize_ids(list(columns))
    codes, found = factorize_ids([to_device(column) for column in columns])
    assert found.dtype == ids.dtype
    assert found.get().tolist() == ids.tolist()
    for array, reference in zip(codes, expected, strict=True):
        assert array.dtype == reference.dtype
        assert (array.get() == reference).all()


@pytest.mark.parametrize("m", [0, 1, 40, 2048, 2049, 300_000])
@pytest.mark.parametrize("span", ["one", "few", "smallest", "largest", "around 0", "full range"])
@pytest.mark.parametrize("kind", INTEGERS)
def test_ids_of_every_integer_type(kind, span, m):
    low, high = id_range(kind, span, m)
    rng = np.random.default_rng(m)
    one, other, more = (rng.integers(low, high, size, dtype=kind) for size in (m, m, 1 + m // 10))
    assert_factorized_as_on_host(one, other)
    assert_factorized_as_on_host(one[:0], other)
    assert_factorized_as_on_host(one, other, more)
    assert_factorized_as_on_host(one[::2], other[::-1])


@pytest.mark.parametrize("m", [10, 10_000])
def test_dense_id_range(m):
    ids = np.random.default_rng(0).permutation(m)
    assert_factorized_as_on_host(ids - 5, ids[::-1] - 5)
    assert_factorized_as_on_host(ids.astype(np.uint64) + np.uint64(2**64 - m), ids.astype(np.uint64))


@pytest.mark.parametrize("m", [1, 10_000])
@pytest.mark.parametrize("kind", ["i8", "u8"])
def test_ids_at_both_ends_of_type(kind, m):
    info = np.iinfo(kind)
    endpoints = np.array([info.min, info.max], kind)
    assert_factorized_as_on_host(np.tile(endpoints, m), np.random.default_rng(0).integers(*endpoints, 2 * m, kind))


def test_more_than_a_million_distinct_ids():
    rng = np.random.default_rng(0)
    assert_factorized_as_on_host(rng.integers(-(2**61), 2**61, 700_000), rng.integers(-(2**61), 2**61, 700_000))


def test_hash_table_that_is_too_small(monkeypatch):

    monkeypatch.setattr("prplugin.gpu.factorize.SLOTS_PER_ID", 0.1)
    assert_factorized_as_on_host(*np.random.default_rng(0).integers(-(2**61), 2**61, (2, 50_000)))


@pytest.mark.parametrize("distinct", [10, 1_000, 30_000, 400_000])
def test_estimate_of_distinct_ids(distinct):
    from prplugin.gpu import factorize

    ids = np.random.default_rng(0).integers(-(2**61), 2**61, distinct)
    columns = to_device(np.tile(ids, 3), ids)
    assert distinct <= factorize._estimate(columns) <= 1.12 * distinct + factorize.REGISTERS


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=1, max_size=50),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=50),
    st.sampled_from([1, 200]),
)
def test_arbitrary_ids(one, other, times):
    assert_factorized_as_on_host(np.tile(np.array(one, np.int64), times), np.tile(np.array(other, np.int64), times))


def test_factorization_with_64_bit_look_back(monkeypatch):

    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    assert_factorized_as_on_host(*np.random.default_rng(0).integers(0, 300_000, (2, 100_000)))


# --- compressed rows and columns ----------------------------------------------------------------------------------


def host_and_device(n, m, weighted, of=np.asarray):
    """Return the same random edges in host and in device memory."""
    rng = np.random.default_rng(n + m)
    source, target = (of(rng.integers(0, n, m)).astype(np.int32) for _ in range(2))
    weights = rng.random(m) if weighted else None
    return Coo(source, target, weights, n), Coo(*to_device(source, target, weights), n)


GRAPHS = {
    "no edges": (5, 0),
    "one vertex": (1, 9),
    "few": (12, 34),
    "one tile": (500, 4096),
    "one tile and one edge": (500, 4097),
    "fewer edges than vertices": (100_000, 10),
    "far fewer edges than vertices": (3_000_000, 20_000),
    "more edges than vertices": (20_000, 300_000),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shape", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize(
    "of",
    [np.asarray, lambda endpoints: np.where(endpoints % 7, endpoints // 100, endpoints)],
    ids=["uniform", "skewed"],
)
def test_csr_and_csc_agree_with_host(shape, weighted, of):
    host, device = (Edges(edges) for edges in host_and_device(*shape, weighted, of))
    for expected, found in ((host.get(Csr), device.get(Csr)), (host.get(Csc), device.get(Csc))):
        for array, other in zip(expected, found, strict=True):
            assert (other is None) if array is None else (other.get() == array).all()
    np.testing.assert_allclose(device.out_weight.get(), host.out_weight, rtol=1e-14, atol=0)
    assert device.largest_in_degree == host.largest_in_degree


def assert_binned_degrees(groups, n, monkeypatch):
    from prplugin.gpu import group

    monkeypatch.setattr("prplugin.gpu.group.BINNED", range(n, n + 1))
    monkeypatch.setattr("prplugin.gpu.group.MIN_ROWS_PER_GROUP", 0)
    given_groups = to_device(groups)
    counts = group.degrees(given_groups, n)
    assert counts.dtype == np.int32
    assert (counts.get() == np.bincount(groups, minlength=n)).all()
    assert (given_groups.get() == groups).all()


@pytest.mark.parametrize("piece", [1 << 17, 999], ids=["whole bins", "many pieces"])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "first", "last", "both ends"])
@pytest.mark.parametrize("n", [1, 5, 256, 257, 1000, 65_537, 1_000_003])
def test_binned_degrees(n, kind, piece, monkeypatch):
    rng = np.random.default_rng(n)
    groups = {
        "uniform": rng.integers(0, n, 50_007),
        "skewed": (n * rng.random(50_007) ** 20).astype(int),
        "first": np.zeros(10_000, int),
        "last": np.full(10_001, n - 1),
        "both ends": (n - 1) * rng.integers(0, 2, 10_000),
    }[kind].astype(np.int32)
    monkeypatch.setattr("prplugin.gpu.group.PIECE", piece)
    monkeypatch.setattr("prplugin.gpu.group.ROWS_PER_GROUP", 0)
    assert_binned_degrees(groups, n, monkeypatch)


@pytest.mark.parametrize("n", [(1 << 21) + 1, (1 << 22) - 5, 1 << 24])
def test_binned_degrees_of_many_parts(n, monkeypatch):
    rng = np.random.default_rng(n)
    groups = np.where(rng.random(300_000) < 0.8, rng.integers(0, 30_000, 300_000), rng.integers(0, n, 300_000))
    assert_binned_degrees(groups.astype(np.int32), n, monkeypatch)


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_group_sizes_use_little_extra_memory(kind):
    import cupy

    n = 1 << 20
    groups = cupy.arange(n, dtype=kind)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    counts = group_sizes(groups, n)
    assert pool.total_bytes() - before < 100 * n  # `cupy.bincount` took 3000 * n
    assert (counts == 1).all()


def test_degrees_are_binned_for_many_groups_of_several_rows(monkeypatch):
    from prplugin.gpu import group

    calls = []
    monkeypatch.setattr("prplugin.gpu.group._count_binned", lambda groups, counts: calls.append(counts.size))
    monkeypatch.setattr("prplugin.gpu.group.BINNED", range(100, 201))
    for m, n in [(400, 100), (399, 100), (396, 99), (800, 200), (1000, 201)]:
        group.degrees(to_device(np.zeros(m, np.int32)), n)
    group.degrees(to_device(np.zeros(400, np.int64)), 100)
    assert calls == [100, 200]


# --- grouped edges ------------------------------------------------------------------------------------------------


def given_weights(weights):
    """Return weights as a column of the caller, which the graph has to copy."""
    from prplugin.gpu.factorize import GivenWeights

    def refuse(floats):
        raise ValueError("bad weights")

    return None if weights is None else GivenWeights(weights, False, refuse)


def assert_grouped_as_on_host(source, destination, weights=None, *, grouped=True):
    from prplugin.gpu.factorize import edges_by_id

    codes, expected_ids = factorize_ids([source, destination])
    rows = Coo(*codes, weights, expected_ids.size)
    # Grouped edges are sorted by target, stably; others keep the order of the frame.
    order = np.argsort(codes[1], kind="stable") if grouped else np.arange(source.size)
    host = Edges(Coo(*(column[order] for column in codes), None if weights is None else weights[order], rows.n))
    columns = [to_device(source), to_device(destination), *([] if weights is None else [to_device(weights)])]
    edges, ids = edges_by_id(columns[:2], given_weights(columns[2] if len(columns) > 2 else None), grouped=True)
    assert isinstance(edges, Grouped) == grouped
    device = Edges(edges)
    for column in columns:
        column[:] = 0  # the graph must not alias the columns
    assert ids.dtype == expected_ids.dtype
    assert ids.get().tolist() == expected_ids.tolist()
    assert (device.n, device.m, device.memory_space, device.weighted) == (host.n, host.m, "device", weights is not None)
    expected = [host.get(Coo).source, host.get(Coo).destination, *host.get(Csr)[:2], *Edges(rows).get(Csc)[:2]]
    found = [device.get(Coo).source, device.get(Coo).destination, *device.get(Csr)[:2], *device.get(Csc)[:2]]
    for array, other in zip(expected, found, strict=True):
        assert (other.get() == array).all()
    assert device.get(Coo).source.dtype == device.get(Coo).destination.dtype == codes[0].dtype
    assert device.out_weight.dtype == np.float64
    if weights is None:
        assert (device.out_weight.get() == host.out_weight).all()
        assert device.get(Csc).weights is None
    else:
        for array, other in (
            (host.get(Csc), device.get(Csc)),
            (host.get(Csr), device.get(Csr)),
            (host.get(Coo), device.get(Coo)),
        ):
            assert other.weights.get().tobytes() == array.weights.tobytes()
        assert_out_weights(device, rows)
    assert device.largest_in_degree == host.largest_in_degree
    copied = device.on("host")
    assert (copied.get(Csc).indices == host.get(Csc).indices).all()
    assert weights is None or (copied.get(Csc).weights == host.get(Csc).weights).all()


def assert_out_weights(device, rows):
    """Check that the error of the out-weights is within their rounding depth."""
    found = device.out_weight.get()
    exact = exact_sums(rows.source, rows.weights, rows.n)
    assert (np.abs(found - exact) <= device.out_weight_depth * 2.0**-53 * exact).all()
    if device.out_weight_depth == 1:
        assert found.tobytes() == exact.tobytes()


def exact_sums(groups, terms, n):
    """Return the sum per group, rounded once."""
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(n + 1))
    ordered = terms[order].tolist()
    return np.array([math.fsum(ordered[first:last]) for first, last in itertools.pairwise(bounds.tolist())])


@pytest.mark.parametrize("m", [2049, 4097, 40_000])
@pytest.mark.parametrize("span", ["one", "few", "smallest", "largest", "around 0", "wide"])
@pytest.mark.parametrize("kind", INTEGERS)
def test_edges_are_grouped_before_ids_are_factorized(kind, span, m):
    low, high = id_range(kind, span, m)
    rng = np.random.default_rng(m)
    source, destination = (rng.integers(low, high, m, dtype=kind) for _ in range(2))
    assert_grouped_as_on_host(source, destination)
    assert_grouped_as_on_host(source, np.full(m, low, kind))
    assert_grouped_as_on_host(source[::-1], np.where(source % 3 == 0, destination, source))


@pytest.mark.parametrize("middle", [2**31, 2**32, -(2**31), 2**40 - 7, -(2**62)])
def test_grouping_of_ids_around_word_boundary(middle):
    rng = np.random.default_rng(0)
    assert_grouped_as_on_host(*(middle + rng.integers(-2000, 2000, (2, 9000))))


def test_grouping_of_dense_id_range():
    ids = np.random.default_rng(0).permutation(5000)
    assert_grouped_as_on_host(ids - 7, ids[::-1] - 7)


def test_grouping_with_64_bit_look_back(monkeypatch):

    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    assert_grouped_as_on_host(*np.random.default_rng(0).integers(0, 70_000, (2, 100_000)))


def test_grouping_in_many_blocks():
    endpoints = np.random.default_rng(0).integers(0, 900_000, (2, 1_000_007))
    assert_grouped_as_on_host(endpoints[0], np.where(endpoints[1] % 7, endpoints[1] // 1000, endpoints[1]))


@pytest.mark.parametrize("m", [0, 1, 40, 2048])
def test_few_edges_are_grouped_after_ids_are_factorized(m):
    rng = np.random.default_rng(0)
    source, destination = rng.integers(0, 5, (2, m))
    assert_grouped_as_on_host(source, destination)
    assert_grouped_as_on_host(source, destination, rng.random(m))


def test_id_range_wider_than_edge_count_is_not_grouped():
    rng = np.random.default_rng(0)
    endpoints = rng.integers(0, 90_000, (2, 9_000))
    assert_grouped_as_on_host(*endpoints, grouped=False)
    assert_grouped_as_on_host(*endpoints, rng.random(9_000), grouped=False)


def test_extra_vertices_or_grouped_false_are_not_grouped():
    from prplugin.gpu.factorize import edges_by_id

    columns = to_device(*np.random.default_rng(0).integers(0, 100, (3, 5000)))
    assert isinstance(edges_by_id(columns, grouped=True)[0], Coo)
    assert isinstance(edges_by_id(columns[:2], grouped=False)[0], Coo)


def test_too_little_memory_to_group(monkeypatch):
    monkeypatch.setattr("prplugin.gpu.runtime.fits", lambda needed: False)
    endpoints = np.random.default_rng(0).integers(0, 100, (2, 5000))
    assert_grouped_as_on_host(*endpoints, grouped=False)
    assert_grouped_as_on_host(*endpoints, np.ones(5000), grouped=False)


# --- weights ------------------------------------------------------------------------------------------------------


SMALLEST, LARGEST = 5e-324, np.finfo(np.float64).max
WEIGHTS = {
    "random": lambda rng, m: rng.random(m),
    "ones": lambda rng, m: np.ones(m),
    "zeros": lambda rng, m: np.zeros(m),
    "zeros of either sign": lambda rng, m: rng.choice([0.0, -0.0, 0.3, 7.0], m),
    "subnormal": lambda rng, m: SMALLEST * rng.integers(0, 1 << 20, m),
    "around smallest normal": lambda rng, m: 2.0**-1022 * rng.uniform(0.9, 1.1, m),
    "widest range of exact sums": lambda rng, m: rng.random(m) * 2.0 ** -rng.integers(0, 30, m),
    "wide range": lambda rng, m: rng.random(m) * 2.0 ** rng.integers(-900, 900, m),
    "large": lambda rng, m: rng.uniform(0.5, 1, m) * (LARGEST / m),
    "all bits": lambda rng, m: 1 + rng.integers(0, 2, m) * (1 - 2.0**-52),
}


@pytest.mark.parametrize("m", [2049, 4097, 40_000])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_grouping_of_weighted_edges(kind, m):
    rng = np.random.default_rng(m)
    weights = WEIGHTS[kind](rng, m)
    source, destination = rng.integers(5, 5 + m // 5, (2, m))
    assert_grouped_as_on_host(source, destination, weights)
    assert_grouped_as_on_host(source**4 // 10**6 % (m // 5), destination, weights)
    assert_grouped_as_on_host(np.full(m, 7), destination.astype(np.int16), weights)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("span", ["one", "smallest", "largest", "around 0"])
def test_grouping_of_weighted_edges_with_ids_of_every_integer_type(span, kind):
    rng = np.random.default_rng(0)
    endpoints = (rng.integers(*id_range(kind, span, 9000), 9000, dtype=kind) for _ in range(2))
    assert_grouped_as_on_host(*endpoints, rng.random(9000))


@pytest.mark.parametrize("middle", [2**31, 2**32, -(2**31), 2**40 - 7])
def test_grouping_of_weighted_edges_with_ids_around_word_boundary(middle):
    rng = np.random.default_rng(0)
    assert_grouped_as_on_host(*(middle + rng.integers(-2000, 2000, (2, 9000))), rng.random(9000))


def test_grouping_of_weighted_edges_in_many_blocks():
    rng = np.random.default_rng(0)
    endpoints = rng.integers(0, 290_000, (2, 300_007))
    assert_grouped_as_on_host(np.where(endpoints[1] % 7, endpoints[0], 9), endpoints[1], rng.random(300_007))


def test_grouping_of_weighted_edges_with_64_bit_look_back(monkeypatch):
    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    rng = np.random.default_rng(0)
    assert_grouped_as_on_host(*rng.integers(0, 30_000, (2, 50_000)), rng.random(50_000))


@pytest.mark.parametrize("m", [1, 2000, 5000])
@pytest.mark.parametrize("bad", [-1.0, -SMALLEST, np.nan, -np.nan, np.inf, -np.inf])
def test_invalid_weights_raise(bad, m):
    from prplugin.gpu.factorize import edges_by_id

    endpoints = to_device(*np.random.default_rng(0).integers(0, 100, (2, m)))
    for row in (0, m - 1):
        weights = np.ones(m)
        weights[row] = bad
        for grouped in (True, False):
            with pytest.raises(ValueError, match="bad weights"):
                edges_by_id(endpoints, given_weights(to_device(weights)), grouped=grouped)


def test_extremes_of_ids_and_weights():
    from prplugin.gpu.factorize import extremes

    columns = [to_device(np.array([3, -4, 10**12]))]
    for weights, smallest, largest in [
        ([0.0, -0.0], 0.0, 0.0),
        ([0.0, SMALLEST, 2.5, 1.0], SMALLEST, 2.5),
        ([LARGEST], LARGEST, LARGEST),
        ([], 0.0, 0.0),
    ]:
        assert extremes(columns, to_device(np.array(weights, float))) == (-4, 10**12, smallest, largest)
        assert extremes([], to_device(np.array(weights, float)))[2:] == (smallest, largest)
    assert extremes(columns)[:2] == (-4, 10**12)


@pytest.mark.parametrize("weights", [[1.0, LARGEST, LARGEST], [LARGEST, LARGEST / 2, LARGEST / 2]])
@pytest.mark.parametrize("m", [3, 6000])
def test_overflowing_out_weights_are_found(m, weights):
    from prplugin.gpu.factorize import edges_by_id

    source, destination, given = np.arange(m) // 3, np.arange(m) % 7, np.full(m, 3.0)
    given[:3] = weights
    for part, overflowing in ((1 / m, []), (1, [0])):
        edges, _ = edges_by_id(to_device(source, destination), given_weights(to_device(given * part)), grouped=True)
        assert Edges(edges).overflowing_vertices().tolist() == overflowing
    assert (Edges(edges).out_weight.get()[1 : m // 3] == 9).all()


def test_sums_do_not_depend_on_order():
    from prplugin.gpu import group

    rng = np.random.default_rng(0)
    groups, terms = (30_000 * rng.random(50_000) ** 4).astype(np.int32), rng.random(50_000) ** 3
    extent = terms.min(), terms.max()
    sums, rounding_depth = group.sums_by(*to_device(groups, terms), 30_000, extent)
    order = rng.permutation(50_000)
    again, _ = group.sums_by(*to_device(groups[order], terms[order]), 30_000, extent)
    assert rounding_depth == 1
    assert sums.get().tobytes() == again.get().tobytes() == exact_sums(groups, terms, 30_000).tobytes()


@pytest.mark.parametrize("smallest", [2.0**-21, 2.0**-57], ids=["3 words", "4 words"])
@pytest.mark.parametrize("n", [1, 5, 256, 257, 65_537, (1 << 22) - 5])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "first", "last"])
def test_exact_sums_over_many_pieces(kind, n, smallest, monkeypatch):
    from prplugin.gpu import group

    rng = np.random.default_rng(n)
    groups = {
        "uniform": rng.integers(0, n, 20_007),
        "skewed": (n * rng.random(20_007) ** 20).astype(int),
        "first": np.zeros(10_000, int),
        "last": np.full(10_001, n - 1),
    }[kind].astype(np.int32)
    terms = rng.choice([0.0, 1.0, smallest, 1 - 2.0**-53, 0.1], groups.size)
    monkeypatch.setattr("prplugin.gpu.group.PIECE", 999)
    monkeypatch.setattr("prplugin.gpu.group.ROWS_PER_GROUP", 0)
    sums, rounding_depth = group.sums_by(*to_device(groups, terms), n, (smallest, 1.0), absent=-1.0)
    present = np.bincount(groups, minlength=n) > 0
    assert rounding_depth == 1
    assert (sums.get()[~present] == -1).all()
    ranked, codes = np.unique(groups, return_inverse=True)
    assert (sums.get()[present] == exact_sums(codes, terms, ranked.size)).all()


@pytest.mark.parametrize("extent", [(SMALLEST, LARGEST), (0.1, 1.0)], ids=["sorted", "exact"])
def test_group_of_zero_weight_is_not_absent(extent):
    from prplugin.gpu import group

    groups, terms = np.repeat(np.arange(0, 9000, 3), 3).astype(np.int32), np.zeros(9000)
    sums, _ = group.sums_by(*to_device(groups, terms), 9000, extent, absent=-1.0)
    assert (sums.get() == np.where(np.arange(9000) % 3, -1, 0)).all()


@pytest.mark.parametrize(
    "lengths",
    [[], [0], [1], [0, 0, 3, 0], [4095], [4096], [4094, 0, 0, 0, 1], [20_000], [0, 9_000, 0, 9_000, 0], [1] * 9000,
     [0] * 9000, [32, 33, 31] * 200, [*range(300)], [1, 2, 12_288, 5, 0, 4096, 7]],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_run_sums_of_any_length(lengths, dtype):
    from prplugin.gpu import group

    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)
    terms = np.random.default_rng(0).random(offsets[-1]) ** 9
    sums = group.run_sums(*to_device(terms, offsets), absent=-1.0).get()
    expected = [math.fsum(terms[first:last]) if first < last else -1 for first, last in itertools.pairwise(offsets)]
    np.testing.assert_allclose(sums, expected, rtol=2**-52, atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [0, 1, 5000])
def test_normalized_weights(m, dtype):
    from prplugin.methods.engines.gpu_pull import NormalizedWeights

    host, device = (Edges(edges) for edges in host_and_device(900, m, True))
    if m:
        device.get(Coo).weights[:] *= device.get(Coo).source % 5 > 0  # some vertices have out-weight 0
        device.get(Coo).weights[:10] *= 1e-320
    weights, out_weight = device.get(Coo).weights.get(), device.out_weight.get()[host.get(Coo).source]
    with np.errstate(invalid="ignore"):
        expected = np.where(out_weight > 0, weights / out_weight, 0).astype(dtype)
    normalized_weights = NormalizedWeights(device.get(Coo).weights, device, device.get(Coo).source)
    found = normalized_weights.of(dtype)
    assert found.get().tobytes() == expected.tobytes()
    assert found.dtype == dtype
    assert normalized_weights.of(dtype) is found
    assert NormalizedWeights(None, device, device.get(Coo).source).of(dtype) is None


# --- duplicates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("duplicates", ["first", "last"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shape", [(1, 0), (1, 9), (12, 34), (300, 50_000), (100_000, 50_000)])
def test_drop_duplicates_agrees_with_host(shape, weighted, duplicates, directed):
    host, device = (
        drop_duplicates(edges, duplicates, directed=directed) for edges in host_and_device(*shape, weighted)
    )
    assert (device.source.get() == host.source).all()
    assert (device.destination.get() == host.destination).all()
    assert (device.weights is None) if host.weights is None else (device.weights.get() == host.weights).all()


@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_pairs_with_equal_keys_are_distinguished(monkeypatch, duplicates):
    from prplugin.gpu import dedup

    order_of = dedup.order_of
    # All keys are equal, so one run holds every pair.
    monkeypatch.setattr("prplugin.gpu.dedup.order_of", lambda keys, bits, owned: order_of(keys * 0, 1))
    host, device = (drop_duplicates(edges, duplicates, directed=True) for edges in host_and_device(40, 3_000, False))
    assert (device.source.get() == host.source).all()
    assert (device.destination.get() == host.destination).all()


def test_spread_is_that_of_in_edges_whatever_the_order_of_the_frame(monkeypatch):
    n, m = 100_000, 200_000
    target = np.random.default_rng(0).permutation(m) * n // m
    near, far = (target + 1) % n, np.random.default_rng(1).integers(0, n, m)
    graphs = [Edges(Coo(*to_device(source, target), None, n)) for source in (near, far)]
    assert [graph.spread for graph in graphs] == [1, 1]
    monkeypatch.setattr("prplugin.graph.edges.SAMPLED_FROM", m)
    sampled = [Edges(graph.get(Coo)) for graph in graphs]
    assert [Counts.of(graph).spread for graph in sampled] == [1, 1]
    assert sampled[0].held(Csc) is None
    assert sampled[0].spread < 0.1
    assert sampled[1].spread > 0.8
    assert [Counts.of(graph).spread for graph in sampled] == [graph.spread for graph in sampled]
