"""Modules of the GPU that launch kernels, run without one: the kernels are those of `listings`, in NumPy."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from fake_gpu import install, load
from listings import OURS

from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.edges import Edges
from prplugin.methods.engines.gpu_pull import MixedOnDevice
from prplugin.types.edges import Compressed, Coo, Csc

N = 9


@pytest.fixture
def gpu(monkeypatch):
    """Return the modules of graph construction whose kernels have a transcription; sorts are NumPy's."""
    from prplugin.gpu import runtime

    install(monkeypatch, OURS)
    monkeypatch.setattr(runtime, "attribute", lambda name: 232_448)
    sort, dedup, splice, group, factorize = load(monkeypatch, "sort", "dedup", "splice", "group", "factorize")

    def order_of(keys, bits, *, owned=False):
        assert int(keys.max()) < 1 << bits
        order = np.argsort(keys, kind="stable").astype(np.int32)
        return keys[order], order

    def partitioned(keys, bits, *payloads):
        skipped = max(bits - 8, 0)
        order = np.argsort(keys >> skipped, kind="stable")
        starts = np.searchsorted(keys[order] >> skipped, np.arange(256)).astype(np.uint32)
        return [keys[order], *(payload[order] for payload in payloads)], starts, skipped

    monkeypatch.setattr(dedup, "order_of", order_of)
    monkeypatch.setattr(group, "partitioned", partitioned)
    return SimpleNamespace(sort=sort, dedup=dedup, splice=splice, group=group, factorize=factorize)


def edges(m, n=N, *, weighted, seed=0):
    random = np.random.default_rng(seed)
    source, destination = random.integers(0, n, (2, m)).astype(np.int32)
    return Coo(source, destination, random.integers(1, 4, m) / 2 if weighted else None, n)


def listed(given):
    return [None if array is None else np.asarray(array).tolist() for array in given]


@pytest.mark.parametrize("n", [N, 300_000], ids=["keys are pairs", "keys are hashes"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("keep", ["first", "last"])
def test_duplicates_are_those_of_the_host(gpu, n, directed, weighted, keep):
    given = edges(200, weighted=weighted)
    given = Coo(given.source, given.destination, given.weights, n, (0.5, 1.5))
    marks, count = gpu.dedup.mark_repeated(given, last=keep == "last", directed=directed)
    found = gpu.dedup.drop_marked(given, marks, count)
    expected = drop_duplicates(given, keep, directed=directed)
    columns = ("source", "destination", "weights")
    assert listed(getattr(found, name) for name in columns) == listed(getattr(expected, name) for name in columns)
    assert (found.n, found.extent) == (n, (0.5, 1.5))


def test_no_rows_have_no_duplicates(gpu):
    marks, count = gpu.dedup.mark_repeated(edges(0, weighted=False), last=True, directed=True)
    assert (marks.size, count) == (0, 0)


@pytest.mark.parametrize("by_weight", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_entries_are_found_by_number(gpu, weighted, by_weight, monkeypatch):
    monkeypatch.setattr(gpu.splice, "PIECE", 3)
    present = Edges(edges(60, weighted=weighted)).get(Csc)
    wanted = edges(80, weighted=by_weight, seed=1)
    nth = np.random.default_rng(2).integers(0, 3, 80)
    found = gpu.splice.find_edges(on_device(present), wanted, nth).tolist()
    for k, entry in enumerate(found):
        row = range(*present.offsets[wanted.destination[k] :][:2].tolist())
        matching = [
            at for at in row
            if present.indices[at] == wanted.source[k]
            and (not (weighted and by_weight) or present.weights[at] == wanted.weights[k])
        ]  # fmt: skip
        assert entry == (matching[nth[k]] if nth[k] < len(matching) else -1)
    assert -1 in found
    assert max(found) >= 0


def on_device(given):
    from prplugin.gpu import cupy

    offsets, *others = (None if array is None else cupy.array(array) for array in given)
    return Compressed(offsets.astype(np.int32), *others)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("changes", [(0, 0), (20, 0), (0, 20), (13, 17), (60, 1)])
def test_a_spliced_graph_is_that_of_updated_edges(gpu, weighted, changes):
    removed_count, added_count = changes
    given = edges(60, weighted=weighted)
    present = Edges(given).get(Csc)
    targets = np.repeat(np.arange(N), np.diff(present.offsets))
    removed = np.random.default_rng(3).permutation(60)[:removed_count]
    added = edges(added_count, weighted=weighted, seed=4)
    added = added.take(np.argsort(added.destination, kind="stable"))
    kept = np.setdiff1d(np.arange(60), removed)
    source = np.append(present.indices[kept], added.source)
    target = np.append(targets[kept], added.destination).astype(np.int32)
    weights = np.append(present.weights[kept], added.weights) if weighted else None
    expected = Edges(Coo(source, target, weights, N))
    out_degrees = None if weighted else np.bincount(given.source, minlength=N).astype(np.float64)
    found = gpu.splice.spliced(on_device(present), removed, added, out_degrees)
    assert listed(found) == listed(expected.get(Csc))
    assert found.offsets.dtype == np.int32
    if not weighted:
        assert out_degrees.tolist() == expected.out_weight.tolist()


EXTENTS = {
    "equal": [1.0],
    "near": [1.0, 0.1, 3.7],
    "far": [2.0**-20 * 1.1, 1.9],
    "subnormal": [5e-324, 1e-310, 2.0**-1020],
    "with 0": [0.0, 1.0, 2.5],
}


@pytest.mark.parametrize("words", [3, 4])
@pytest.mark.parametrize("kind", EXTENTS)
def test_sums_in_integers_are_exact(gpu, kind, words):
    """Each sum is rounded once, and fits in its words with a bit to spare."""
    random, m, n = np.random.default_rng(0), 6000, 700
    groups = random.integers(0, n - 7, m).astype(np.int32)
    terms = random.choice(EXTENTS[kind], m) * (1 if kind in ("equal", "subnormal") else 1 + random.random(m))
    positive = terms[terms > 0]
    extent = positive.min(), positive.max()
    needed = gpu.group._words_of_sums(m, n, 4, extent)
    assert 0 < needed <= words or needed == 4
    least = gpu.group._exponent(float(extent[0]))
    for absent in (0.0, -1.0):
        found = gpu.group._exact_sums(groups, terms, n, least, max(words, needed), absent)
        expected = [math.fsum(terms[groups == group]) if group in groups else absent for group in range(n)]
        assert found.tolist() == expected


def test_words_of_sums(gpu):
    """As many words as the digits from the least to the greatest term need, for m of them and a bit; else none."""
    m, n, least_words, words_of = 6000, 700, 3, gpu.group._words_of_sums
    for distance in range(70):
        bits = distance + 53 + m.bit_length() + 1
        expected = max(least_words, -(-bits // 32))
        assert words_of(m, n, 4, (1.0, 2.0**distance)) == (expected if expected <= 4 else 0)
    assert words_of(m, n, 8, (1.0, 1.0)) == 0
    assert words_of(gpu.sort.TILE, n, 4, (1.0, 1.0)) == 0
    assert words_of(gpu.sort.TILE + 1, n, 4, (1.0, 1.0)) == 3
    assert (words_of(m, 1 << 26, 4, (1.0, 1.0)), words_of(m, (1 << 26) + 1, 4, (1.0, 1.0))) == (3, 0)


def test_codes_are_numbered_by_first_appearance(gpu):
    first, second = np.array([3, 1, 3, 0], np.int32), np.array([2, 1, 4, 0], np.int32)
    codes, order, places = gpu.factorize.by_first_appearance([first, second], 5, [(2, 0), (2, 1)])
    assert order.tolist() == [3, 2, 1, 4, 0]
    assert places.tolist() == [0, 1, 2, 5, 6]
    assert [array.tolist() for array in codes] == [[0, 2, 0, 4], [1, 2, 3, 4]]


@pytest.mark.parametrize("seeds", [None, 3])
def test_mixes_of_a_vector_and_of_seeds(gpu, seeds):
    """A step has the dot products of its moves, and ranks max(y - weights @ moves, 0), divided by their sum."""
    from prplugin.gpu import cupy

    random, n, rows = np.random.default_rng(0), 40, 7
    shape = (n,) if seeds is None else (n, seeds)
    moves = cupy.array(random.normal(size=(rows, *shape)) / 100, np.float32)
    step = MixedOnDevice()
    step._ranks = y = cupy.array(random.random(shape) / n)
    step.start = lambda ranks: None
    before, wide = np.array(y), np.array(moves, np.float64)
    chosen = [4, 0, 6]
    by_seed = wide.reshape(rows, n, -1)
    products = np.einsum("ivs,jvs->sij", by_seed, by_seed)[:, chosen][:, :, chosen]
    np.testing.assert_allclose(step.products(moves, chosen), products[0] if seeds is None else products, rtol=1e-12)
    weights = random.normal(size=(1 if seeds is None else seeds, rows))
    weights[:, 2] = 0
    weights[-1] *= seeds is None  # a seed that is not mixed
    jump = moves[2]
    step.mix(moves, weights[0] if seeds is None else weights, jump)
    mixed = np.maximum(before.reshape(n, -1) - np.einsum("si,ivs->vs", weights, by_seed), 0)
    norms = np.where(weights.any(axis=1), mixed.sum(axis=0), 1)
    np.testing.assert_allclose(np.array(step._ranks).reshape(n, -1), mixed / norms, rtol=1e-12, atol=1e-15)
    moved = (mixed / norms if seeds is None else mixed) - before.reshape(n, -1)
    np.testing.assert_allclose(np.array(jump).reshape(n, -1), moved, rtol=1e-4, atol=1e-8)
