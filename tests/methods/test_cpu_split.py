"""Heads on the GPU, tails on the processor: what is shared, that it is right, and that it is at once."""

from __future__ import annotations

import logging
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from method_params import param

import prplugin
from benchmarks.overlap import recorded
from prplugin.cpu import tail_kernels
from prplugin.errors import InvalidOptionError
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import Machine, this_machine
from prplugin.methods.engines import gpu_pull
from prplugin.methods.papers import cpu_split
from prplugin.methods.papers._host_rows import ThreadedSums, host_rows
from prplugin.methods.papers.cpu_split import SplitPull, head_lengths, search, split_option
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


def test_auto_never_picks_nondeterministic_methods():
    assert cpu_split.nondeterministic


# --- without a GPU: heads and tails -------------------------------------------------------------------------------


def adjacency_of(edges):
    n = int(edges[["src", "dst"]].to_numpy().max()) + 1
    return Adjacency(Edges(edges["src"].to_numpy(np.int32), edges["dst"].to_numpy(np.int32), None, n))


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
    assert head_lengths(np.array([9, 4, 3, 2, 1, 1, 0]), split).tolist() == counts


@pytest.mark.parametrize("split", [[0], [3], [7, 1, 40], ["all", 2]])
def test_heads_and_tails_are_all_in_edges(split, monkeypatch):
    given = []
    monkeypatch.setattr(cpu_split, "HostPull", lambda runs, n, threads: given.append(runs))
    monkeypatch.setattr("prplugin.methods.papers._host_rows.CHUNK", 1000)
    adjacency = adjacency_of(skewed())
    offsets, sources, _ = adjacency.csc
    layout = gpu_pull.csc_layout(adjacency)
    heads = SplitPull(layout, adjacency.n, split, 2)._heads._layout
    degrees = np.diff(offsets)[heads.rows]
    assert sorted(heads.rows) == list(range(adjacency.n))
    assert (np.diff(degrees) <= 0).all()
    assert (heads.ends - heads.begins).tolist() == head_lengths(degrees, split).tolist()
    tails = host_rows(given[0], adjacency.n)
    assert (np.diff(np.diff(tails.bounds)) <= 0).all()
    tail_of = {
        row: tails.sources[tails.places[tails.bounds[t] : tails.bounds[t + 1]]]
        for t, row in enumerate(tails.rows.tolist())
    }
    for row, begin, end in zip(heads.rows.tolist(), heads.begins, heads.ends, strict=True):
        both = np.append(sources[begin:end], tail_of.pop(row, []))
        assert both.tolist() == sources[offsets[row] : offsets[row + 1]].tolist()
    assert not tail_of
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
    normalized_weights = random.random(bounds[-1]).astype(dtype) if weighted else None
    results = []
    for threads in (1, 2, 5):
        sums = np.full(len(lengths), np.nan)
        ThreadedSums(bounds, places, threads)(values, normalized_weights, sums)
        results.append(sums.tobytes())
    assert results[0] == results[1] == results[2]
    for t, given in enumerate(sums.tolist()):
        terms = [
            float(values[places[e]]) * (1.0 if normalized_weights is None else float(normalized_weights[e]))
            for e in range(bounds[t], bounds[t + 1])
        ]
        exact = sum(map(Fraction, terms), Fraction(0))
        assert abs(Fraction(given) - exact) <= exact * Fraction(2, 2**53)


# --- without a GPU: choosing N ------------------------------------------------------------------------------------


def machine(*, turn=3e-7, edge=1e-9, trip=5e-5, hub=100_000):
    """Return the seconds that each N takes: a GPU thread walks along heads, the host sums the tail of a hub."""

    def seconds(n):
        head = hub if n == "all" else n
        host = trip + edge * (hub - head) if n != "all" else 0.0
        return max(turn * head, host)

    return seconds


@pytest.mark.parametrize("hub", [5, 4096, 4097, 100_000, 10**7])
@pytest.mark.parametrize("turn", [1e-9, 3e-7, 1e-5])
def test_n_is_near_the_best_and_no_slower_than_all(hub, turn):
    seconds = machine(turn=turn, hub=hub)
    found = search(seconds, hub)
    best = min(seconds(n) for n in ("all", *range(min(hub, 100)), *np.geomspace(1, hub, 1000).astype(int).tolist()))
    assert min(found.values()) <= min(2 * best, seconds("all"))
    assert len(found) <= 6 + np.log(hub) / np.log(4)


def test_n_where_one_side_is_slow():
    def choice(hub=100_000, **rates):
        found = search(machine(hub=hub, **rates), hub)
        return min(found, key=found.get)

    assert choice(edge=1e-3) == "all"
    assert choice(trip=1.0) == "all"
    assert choice(turn=1e-3) == 0
    assert choice(turn=0.0, edge=0.0, trip=0.0) == "all"  # a tie
    assert search(machine(), 0) == {"all": pytest.approx(0.03)}  # no edges: nothing to choose


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
def test_only_what_tails_read_and_their_sums_are_copied(method, split):
    import cupy

    edges = skewed()
    step, n = prepared(edges, split)
    adjacency = prplugin.Graph(edges)._graph.adjacency
    offsets, sources, _ = adjacency.csc
    order = np.argsort(-np.diff(offsets), kind="stable")
    counts = np.empty(n, np.int64)
    counts[order] = head_lengths(np.diff(offsets)[order], step.split)
    tails = [sources[offsets[row] + counts[row] : offsets[row + 1]] for row in range(n)]
    read = np.unique(np.concatenate(tails)).size
    with_tails = sum(tail.size > 0 for tail in tails)
    shared = step.pull.tails
    assert (shared is None) == (with_tails == 0)
    if shared is not None:
        assert (shared.vertices, shared.edges, shared.sources) == (with_tails, sum(tail.size for tail in tails), read)

    for dtype, size in (("float64", 8), ("float32", 4)):
        step.set_contribution_dtype(dtype)
        step.start(cupy.full(n, 1 / n))
        step()
        if shared is not None:
            assert (shared._gathered.nbytes, shared._device_sums.nbytes) == (size * read, 8 * with_tails)


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
        if (lane := step._shared.tails) is not None:
            for buffer in (lane._gathered, lane._contributions, lane._device_sums, lane._sums):
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
    (best,) = step.split
    assert step.seconds[best] == min(step.seconds.values()) <= step.seconds["all"]
    (line,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("cpu-split: ")]
    assert ("everything on the GPU" in line) == (best == "all")
    assert f"for {n} vertices and" in line
    # A thread that walks along 300,000 edges takes far longer than the processor.
    assert best != "all", line


@on_the_gpu
def test_a_forced_split_is_kept_and_measures_nothing(method):
    step, _ = prepared(skewed(), [3, "all"])
    assert (step.split, step.seconds) == ([3, "all"], None)


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
def test_the_cpu_sums_tails_while_the_gpu_sums_heads(method):
    import cupy

    adjacency = long_heads_and_a_long_tail()
    step = cpu_split.prepare(Problem(adjacency, 0.85), this_machine(), split=64)
    assert 200_000 < step.pull.tails.edges < 400_000
    step.start(cupy.full(adjacency.n, 1 / adjacency.n))
    step()
    step()
    with recorded(step) as spans:
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
        with recorded(step) as spans:
            step()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [span.iteration for span in spans] == [0] * 6
    step()
    assert len(spans) == 6
    with recorded(prepared(skewed(), "all")[0]) as none:
        pass
    assert none == []
