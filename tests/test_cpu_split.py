"""Heads on the GPU, tails on the processor: what is shared, that it is right, and that it is at once."""

from __future__ import annotations

import logging
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from running import param

import prplugin
from prplugin.cpu import tail_kernels
from prplugin.errors import InvalidOptionError
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import Machine, this_machine
from prplugin.methods.papers import cpu_split
from prplugin.methods.papers._heads import falling, head_counts, slice_begins
from prplugin.methods.papers._split_choice import Rates, Work, best_work, candidates, works
from prplugin.methods.papers._tails import TailSums, cut_tails
from prplugin.methods.papers.cpu_split import split_option
from prplugin.types.edges import Edges

METHOD = "cpu-split"
ON_THE_GPU = [param(METHOD)]
"""For tests that need a GPU: marked and skipped as those of all methods are."""

SPLITS = [0, 1, 3, 32, 10**12, "all", "auto", [5], [0, 0], ["all", 2], [40, 3, 0, 1], [7] * 100]

on_the_gpu = pytest.mark.parametrize("method", ON_THE_GPU)
every_split = pytest.mark.parametrize("split", SPLITS, ids=lambda split: str(split)[:16])


def skewed(n=2000, m=20_000, seed=0):
    """Some vertices of high in-degree, many of low, some of none; some dangling."""
    random = np.random.default_rng(seed)
    target = (n * random.random(m) ** 4).astype(np.int64)
    return pd.DataFrame({"src": random.integers(0, 3 * n // 4, m), "dst": target, "w": random.random(m)})


def star(leaves, back=3):
    """A hub with so many in-edges, and a few out-edges."""
    hub = np.zeros(leaves, np.int64)
    leaf = np.arange(1, leaves + 1)
    return pd.DataFrame(
        {"src": np.append(leaf, hub[:back]), "dst": np.append(hub, leaf[:back]), "w": np.linspace(1, 2, leaves + back)}
    )


def agrees(edges, split, *, tol=1e-10, graph=None, **arguments):
    """Check ranks against NumPy's within what both prove; give them."""
    graph = graph or prplugin.Graph(edges, **{k: arguments.pop(k) for k in ("weight", "directed") if k in arguments})
    ours = graph.rank(method=METHOD, split=split, tol=tol, **arguments)
    exact = graph.rank(
        method="numpy", tol=1e-11, **{k: v for k, v in arguments.items() if k not in {"dtype", "threads"}}
    )
    assert ours.converged
    assert np.abs(ours.ranks - exact.ranks).sum() <= ours.error_bound + exact.error_bound
    return ours


def prepared(edges, split, *, weight=None, threads=2):
    """Give a step, with its number of vertices."""
    adjacency = prplugin.Graph(edges, weight=weight)._graph.adjacency
    return cpu_split.prepare(Problem(adjacency, 0.85), Machine(threads=threads), split=split), adjacency.n


# --- without a GPU: options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "blocks"),
    [
        ("auto", None), ("all", ["all"]), (0, [0]), (np.int32(7), [7]), ([1, "all", np.int64(2)], [1, "all", 2]),
        ((3, 4), [3, 4]), (10**30, [10**30]),
    ],
)  # fmt: skip
def test_a_split_is_a_number_all_or_a_list_of_them(split, blocks):
    assert split_option(split) == blocks


@pytest.mark.parametrize(
    "split", [-1, 1.0, 2.5, True, None, "most", "", [], [1, -1], [1, "auto"], [True], [[1]], np.ones(2)]
)
def test_another_split_is_refused_before_anything_is_done(split):
    adjacency = Adjacency(Edges(np.zeros(1, np.int32), np.zeros(1, np.int32), None, 1))
    with pytest.raises(
        InvalidOptionError, match="split must be 'auto', 'all', a whole number of at least 0, or a list"
    ):
        cpu_split.prepare(Problem(adjacency, 0.85), this_machine(), split=split)


@pytest.mark.parametrize("threads", [0, -3, 1.5, "two", True])
def test_threads_are_counted(threads):
    adjacency = Adjacency(Edges(np.zeros(1, np.int32), np.zeros(1, np.int32), None, 1))
    with pytest.raises(InvalidOptionError, match="threads must be a whole number of at least 1"):
        cpu_split.prepare(Problem(adjacency, 0.85), this_machine(), split=1, threads=threads)


def test_auto_never_picks_what_varies():
    assert cpu_split.varies


# --- without a GPU: heads and tails -------------------------------------------------------------------------------


def adjacency_of(edges):
    n = int(edges[["src", "dst"]].to_numpy().max()) + 1
    return Adjacency(Edges(edges["src"].to_numpy(np.int32), edges["dst"].to_numpy(np.int32), None, n))


def test_rows_fall_by_in_degree_and_keep_their_order():
    order, degrees = falling(np.array([0, 2, 2, 5, 7, 7, 10]))
    assert order.tolist() == [2, 5, 0, 3, 1, 4]
    assert degrees.tolist() == [3, 3, 2, 2, 0, 0]


@pytest.mark.parametrize(
    ("split", "counts"),
    [
        ([0], [0, 0, 0, 0, 0, 0, 0]),
        ([2], [2, 2, 2, 2, 1, 1, 0]),
        (["all"], [9, 4, 3, 2, 1, 1, 0]),
        ([10**30], [9, 4, 3, 2, 1, 1, 0]),
        (["all", 0], [9, 4, 3, 2, 0, 0, 0]),
        ([1, 3], [1, 1, 1, 1, 1, 1, 0]),
        ([0, 1, "all"], [0, 0, 0, 1, 1, 1, 0]),
        ([1] * 20, [1, 1, 1, 1, 1, 1, 0]),
    ],
)
def test_each_block_has_an_n_of_its_own(split, counts):
    assert head_counts(np.array([9, 4, 3, 2, 1, 1, 0]), split).tolist() == counts


def test_a_slice_is_as_wide_as_its_longest_row():
    counts = np.zeros(70, np.int32)
    counts[[0, 33, 40, 69]] = 5, 2, 3, 1
    assert slice_begins(counts).tolist() == [0, 32 * 5, 32 * 8, 32 * 9]
    assert slice_begins(np.zeros(1, np.int64)).tolist() == [0, 0]


@pytest.mark.parametrize("split", [[0], [3], [7, 1, 40], ["all", 2]])
def test_tails_are_the_in_edges_from_n_on(split):
    adjacency = adjacency_of(skewed())
    offsets, sources, _ = adjacency.csc
    order, degrees = falling(offsets)
    counts = head_counts(degrees, split)
    long = np.flatnonzero(degrees > counts)
    tails = cut_tails(adjacency, order[long], (degrees - counts)[long])
    assert sorted(tails.rows.tolist()) == sorted(order[long].tolist())
    assert (np.diff(np.diff(tails.bounds)) <= 0).all()
    head_of = dict(zip(order.tolist(), counts.tolist(), strict=True))
    for t, row in enumerate(tails.rows.tolist()):
        expected = sources[offsets[row] + head_of[row] : offsets[row + 1]]
        assert tails.sources[tails.places[tails.bounds[t] : tails.bounds[t + 1]]].tolist() == expected.tolist()
    assert np.unique(tails.sources).size == tails.sources.size
    assert np.unique(tails.places).size == tails.sources.size  # no contribution goes down that no tail reads


@pytest.fixture
def short_runs(monkeypatch):
    """Cut tails into runs of a few edges, so that small ones have several."""

    monkeypatch.setattr(tail_kernels, "RUN", 8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lengths", [[1], [5, 3, 1], [100, 41, 40, 16, 9, 8, 8, 7, 1, 1], [33, 0, 0], [8] * 50])
def test_sums_of_tails_are_exact_but_for_two_roundings(short_runs, dtype, weighted, lengths):
    random = np.random.default_rng(1)
    bounds = np.append(0, np.cumsum(lengths))
    values = (random.random(60) * 10.0 ** random.integers(-12, 12, 60)).astype(dtype)
    places = random.integers(0, 60, bounds[-1]).astype(np.int32)
    shares = random.random(bounds[-1]).astype(dtype) if weighted else None
    results = []
    for threads in (1, 2, 5):
        sums = np.full(len(lengths), np.nan)
        TailSums(bounds, places, threads)(values, shares, sums)
        results.append(sums.tobytes())
    assert results[0] == results[1] == results[2]
    for t, given in enumerate(sums.tolist()):
        terms = [
            float(values[places[e]]) * (1.0 if shares is None else float(shares[e]))
            for e in range(bounds[t], bounds[t + 1])
        ]
        exact = sum(map(Fraction, terms), Fraction(0))
        assert abs(Fraction(given) - exact) <= exact * Fraction(2, 2**53)


# --- without a GPU: choosing N ------------------------------------------------------------------------------------


def test_candidates_are_powers_of_two_their_neighbours_and_the_ends():
    assert candidates(1) == [0, 1]
    assert candidates(9) == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert candidates(100)[-4:] == [63, 64, 65, 100]


def test_work_is_what_each_n_leaves_to_the_processor():
    adjacency = adjacency_of(skewed(300, 3000))
    offsets, sources, _ = adjacency.csc
    degrees = np.diff(offsets)
    reach = np.zeros(adjacency.n, np.int64)
    np.maximum.at(reach, sources, np.arange(adjacency.m) - np.repeat(offsets[:-1], degrees) + 1)
    splits = candidates(int(degrees.max()))
    for n, work in zip(splits, works(degrees, reach, splits), strict=True):
        order, falling_degrees = falling(offsets)
        lengths = falling_degrees - head_counts(falling_degrees, [n])
        tails = cut_tails(adjacency, order[lengths > 0], lengths[lengths > 0])
        assert work == Work(n, adjacency.m - tails.places.size, tails.rows.size, tails.places.size, tails.sources.size)


class TestChoice:
    # A hub of 100,000 in-edges among 1,000 vertices of ten.
    DEGREES = np.append(100_000, np.full(1000, 10))
    CHOICES = works(DEGREES, np.full(1001, 10), candidates(100_000))

    def best(self, **rates):
        rates = {"edge": 1e-10, "turn": 3e-7, "tail": 1e-9, "byte": 5e-11, "trip": 50e-6} | rates
        return best_work(self.CHOICES, Rates(**rates))

    def test_the_hub_goes_to_the_processor(self):
        assert 10 <= self.best().n <= 1025
        assert self.best().tail_vertices == 1

    def test_a_slow_processor_gets_nothing(self):
        assert self.best(tail=1e-3).tail_edges == 0
        assert self.best(trip=1.0).tail_edges == 0

    def test_a_slow_gpu_gets_nothing(self):
        assert self.best(edge=1e-3, turn=1e-3).n == 0

    def test_a_tie_leaves_most_to_the_gpu(self):
        assert self.best(edge=0.0, turn=0.0, tail=0.0, byte=0.0, trip=0.0).tail_edges == 0

    def test_the_slower_side_is_what_counts(self):
        rates = Rates(1e-10, 3e-7, 1e-9, 5e-11, 50e-6)
        best = max(rates.times(best_work(self.CHOICES, rates)))
        assert all(best <= max(rates.times(work)) for work in self.CHOICES)


# --- on the GPU: the ranks ----------------------------------------------------------------------------------------


@on_the_gpu
@every_split
class TestRanks:
    @pytest.mark.parametrize("directed", [True, False])
    @pytest.mark.parametrize("weight", [None, "w"])
    def test_of_a_skewed_graph(self, method, split, weight, directed):
        edges = skewed()
        graph = prplugin.Graph(edges, weight=weight, directed=directed, vertices=range(2100))
        agrees(edges, split, graph=graph)
        agrees(edges, split, graph=graph, personalization={3: 1, 1500: 2}, dangling={7: 1})
        agrees(edges, split, graph=graph, dtype="float32", tol=1e-6)

    @pytest.mark.parametrize("weight", [None, "w"])
    def test_of_a_star(self, method, split, weight):
        graph = prplugin.Graph(star(100_000), weight=weight)
        # The same few iterates: with "all", one thread of the GPU walks along the whole hub in each.
        ours, numpys = (
            graph.rank(tol=0, max_iter=5, **how).ranks
            for how in ({"method": method, "split": split}, {"method": "numpy"})
        )
        np.testing.assert_allclose(ours, numpys, rtol=1e-12)
        agrees(None, split, graph=graph, dtype="float32", tol=1e-3)

    def test_of_equal_in_degrees(self, method, split):
        ring = np.arange(1000)
        agrees(
            pd.DataFrame({"src": np.tile(ring, 3), "dst": np.concatenate([np.roll(ring, k) for k in (1, 2, 5)])}), split
        )

    def test_without_edges(self, method, split):
        none = pd.DataFrame({"src": np.empty(0, np.int64), "dst": np.empty(0, np.int64)})
        graph = prplugin.Graph(none, vertices=range(5))
        assert graph.rank(method=method, split=split).ranks.tolist() == [0.2] * 5

    def test_of_one_vertex(self, method, split):
        loop = pd.DataFrame({"src": [4], "dst": [4]})
        assert loop.pagerank(method=method, split=split)["pagerank"].tolist() == [1]

    def test_denormal_weights(self, method, split):
        edges = skewed(200, 2000)
        edges["w"] = 5e-324 * (1 + np.arange(2000) % 4)
        agrees(edges, split, weight="w")


@on_the_gpu
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("split", [0, 2, [9, 1]], ids=str)
def test_the_same_bits_for_any_number_of_threads_and_in_every_run(method, weight, dtype, split):
    graph = prplugin.Graph(pd.concat([skewed(20_000, 400_000), star(100_000)]), weight=weight)
    first, *others = (
        graph.rank(method=method, split=split, threads=threads, dtype=dtype, tol=1e-5) for threads in (1, 2, 5, 5, 1)
    )
    for other in others:
        assert other.ranks.tobytes() == first.ranks.tobytes()
        assert (other.iterations, other.error_bound) == (first.iterations, first.error_bound)


@on_the_gpu
def test_64_bit_positions(method, monkeypatch):
    edges = skewed()
    narrow = prplugin.Graph(edges, weight="w").rank(method=method, split=3)
    monkeypatch.setattr("prplugin.graph.factorize.index_dtype", lambda n: np.dtype(np.int64))
    wide = prplugin.Graph(edges, weight="w").rank(method=method, split=3)
    assert narrow.ranks.tobytes() == wide.ranks.tobytes()


@on_the_gpu
def test_on_a_stream_of_the_callers(method):
    import cupy

    graph = prplugin.Graph(pd.concat([skewed(), star(30_000)]))
    expected = graph.rank(method=method, split=2)
    with cupy.cuda.Stream(non_blocking=True):
        given = graph.rank(method=method, split=2)
    assert given.ranks.tobytes() == expected.ranks.tobytes()


# --- on the GPU: what is shared -----------------------------------------------------------------------------------


@on_the_gpu
@pytest.mark.parametrize("split", [0, 1, 5, 100, "all", [20, 1]], ids=str)
def test_only_what_tails_read_and_their_sums_are_moved(method, split, monkeypatch):
    import cupy

    edges = skewed()
    step, n = prepared(edges, split)
    adjacency = prplugin.Graph(edges)._graph.adjacency
    offsets, sources, _ = adjacency.csc
    order, degrees = falling(offsets)
    counts = np.empty_like(degrees)
    counts[order] = head_counts(degrees, step.split)
    tails = [sources[offsets[row] + counts[row] : offsets[row + 1]] for row in range(n)]
    read = np.unique(np.concatenate(tails)).size
    with_tails = sum(tail.size > 0 for tail in tails)
    assert step.tally[:3] == (with_tails, sum(tail.size for tail in tails), read)
    assert step.tally[3:] == (8 * read, 8 * with_tails)

    copies = []
    plain = cupy.cuda.runtime.memcpyAsync

    class Watched:
        memcpyDeviceToHost = cupy.cuda.runtime.memcpyDeviceToHost  # noqa: N815
        memcpyHostToDevice = cupy.cuda.runtime.memcpyHostToDevice  # noqa: N815

        @staticmethod
        def memcpyAsync(target, source, size, kind, stream):  # noqa: N802
            copies.append(size)
            plain(target, source, size, kind, stream)

    if with_tails:
        step._shared._tails._runtime = Watched
    for dtype, bytes_down in (("float64", 8 * read), ("float32", 4 * read)):
        copies.clear()
        step.contribute_in(dtype)
        step.start(cupy.full(n, 1 / n))
        step()
        step()
        assert copies == (2 * [bytes_down, 8 * with_tails] if with_tails else [])
        assert step.tally.bytes_down == bytes_down


@on_the_gpu
@pytest.mark.parametrize("split", [0, 3, "all", [7, 0]], ids=str)
@pytest.mark.parametrize("weight", [None, "w"])
def test_nothing_is_read_before_it_is_written(method, split, weight):
    import cupy

    edges = pd.concat([skewed(), star(50_000)])
    step, n = prepared(edges, split, weight=weight)
    step.start(cupy.full(n, 1 / n))
    clean = []
    for _ in range(4):
        step()
        clean.append(step.ranks().get())
    step.start(cupy.full(n, 1 / n))
    for expected in clean:
        cupy.cuda.runtime.deviceSynchronize()
        step._pulled.fill(np.nan)
        if (lane := step._shared._tails) is not None:
            for buffer in (lane._gathered, lane._contributions, lane._tails, lane._sums):
                buffer.fill(np.nan)
            lane._sum._high.fill(np.nan)
            lane._sum._low.fill(np.nan)
            cupy.cuda.runtime.deviceSynchronize()  # the copies wait for what they need alone
        step()
        assert step.ranks().get().tobytes() == expected.tobytes()


@on_the_gpu
def test_many_iterations_in_a_row_stay_in_order(method):
    """A copy or kernel out of its turn shows sooner or later: the same steps, over and over, to the bit."""
    import cupy

    edges = pd.concat([skewed(50_000, 500_000), star(200_000)])
    step, n = prepared(edges, 4, threads=this_machine().threads)
    results = set()
    for _ in range(10):
        step.start(cupy.full(n, 1 / n))
        for _ in range(20):
            step()
        results.add(step.ranks().get().tobytes())
    assert len(results) == 1


# --- on the GPU: N by measurement ---------------------------------------------------------------------------------


@on_the_gpu
@pytest.mark.parametrize("weight", [None, "w"])
def test_auto_measures_and_says_what_it_chose(method, weight, caplog):
    edges = pd.concat([skewed(100_000, 2_000_000), star(300_000)])
    with caplog.at_level(logging.INFO, logger="prplugin"):
        step, n = prepared(edges, "auto", weight=weight)
    assert len(step.split) == 1
    best = step.split[0]
    assert best in step.estimates
    assert max(step.estimates[best]) == min(map(max, step.estimates.values()))
    (line,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("cpu-split: ")]
    assert ("everything on the GPU" in line) == (best == "all")
    assert f"for {n} vertices and" in line
    assert "ns an edge" in line
    # A thread that walks along 300,000 edges takes far longer than the processor.
    assert best != "all", line
    assert all(np.isfinite(times).all() and min(times) >= 0 for times in step.estimates.values())


@on_the_gpu
def test_a_forced_split_is_kept_and_measures_nothing(method):
    step, _ = prepared(skewed(), [3, "all"])
    assert (step.split, step.estimates) == ([3, "all"], None)


# --- on the GPU: at once ------------------------------------------------------------------------------------------


def long_heads_and_a_long_tail():
    """Two million vertices of 15 in-edges or so, and a hub whose tail keeps the processor busy meanwhile."""
    import cupy

    random = cupy.random.RandomState(1)
    n, m, tail = 2_000_000, 40_000_000, 300_000
    source = random.randint(0, n, m + tail).astype(np.int32)
    target = random.randint(0, n, m + tail).astype(np.int32)
    target[m:] = 0
    return Adjacency(Edges(source, target, None, n))


@on_the_gpu
def test_the_processor_sums_tails_while_the_gpu_sums_heads(method):
    import cupy

    adjacency = long_heads_and_a_long_tail()
    step = cpu_split.prepare(Problem(adjacency, 0.85), this_machine(), split=64)
    assert 200_000 < step.tally.edges < 400_000
    step.start(cupy.full(adjacency.n, 1 / adjacency.n))
    step()
    step()
    with step.record() as spans:
        for _ in range(10):
            step()
    assert {(span.what, span.lane) for span in spans} == {
        ("gather", "GPU"), ("down", "copy"), ("heads", "GPU"), ("tails", "host"), ("up", "copy"), ("add", "GPU"),
    }  # fmt: skip
    at_once = 0
    shown = []
    for iteration in range(10):
        at = {span.what: span for span in spans if span.iteration == iteration}
        assert len(at) == 6
        heads, tails = at["heads"], at["tails"]
        at_once += max(heads.begin, tails.begin) < min(heads.end, tails.end)
        zero = at["gather"].begin
        shown.append({what: [round((t - zero) * 1e6) for t in (s.begin, s.end)] for what, s in at.items()})
        # What waits for what, on one clock whose two sides agree to some ten microseconds.
        slack = 50e-6
        assert at["gather"].end <= at["down"].begin + slack, shown
        assert at["down"].end <= tails.begin + slack, shown
        assert tails.end <= at["up"].end + slack, shown
        assert max(at["up"].end, heads.end) <= at["add"].begin + slack, shown
    assert at_once, shown
    before = len(spans)
    step()
    assert len(spans) == before
    print(f"{at_once} of 10 iterations with both at work; microseconds of the last:", shown[-1])


@on_the_gpu
def test_a_recording_ends_with_its_block_even_if_that_fails(method):
    import cupy

    step, n = prepared(skewed(), 2)
    step.start(cupy.full(n, 1 / n))
    spans = []

    def fail():
        nonlocal spans
        with step.record() as spans:
            step()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [span.iteration for span in spans] == [0] * 6
    step()
    assert len(spans) == 6
    with prepared(skewed(), "all")[0].record() as none:
        pass
    assert none == []
