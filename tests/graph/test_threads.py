"""Threads that share a graph: each call sees it before or after an update."""

from __future__ import annotations

import gzip
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import prplugin
from prplugin.machine import mapping_on
from prplugin.streams.state import Access, Reading

N = 400
"""Vertices of the graph before the first update."""

ROUNDS = 4
"""Chords that are added, removed and added again while other threads look at the graph."""

CYCLE = pd.DataFrame({"src": np.arange(N), "dst": np.roll(np.arange(N), -1)})


def chord(round_number: int) -> pd.DataFrame:
    """Return an edge out of each vertex, and as many vertices that no other chord has.

    Their ids are below all others, so that each addition moves all vertices.
    """
    new = -1 - N * round_number - np.arange(N)
    return pd.DataFrame({"src": np.arange(N), "dst": new})


@contextmanager
def frequent_switches():
    """Return a context manager in which threads are switched far more often than by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def check_compressed(compressed) -> None:
    offsets, indices, _ = compressed
    check_counts(offsets.size - 1, indices.size)
    assert offsets[0] == 0
    assert offsets[-1] == indices.size
    assert np.all(np.diff(offsets) >= 0)
    assert indices.min() >= 0
    assert indices.max() < offsets.size - 1


def check_counts(vertices: int, edges: int) -> None:
    """Check that the counts are those between two updates: the edges of one chord at most are removed."""
    assert vertices % N == 0
    assert edges in (vertices, vertices - N)


def test_any_mix_of_calls_by_eight_threads():
    """Regression test: reading a graph during an update corrupted it, or crashed the process."""
    graph, ended, rounds = prplugin.Graph(CYCLE), threading.Event(), []

    def update() -> None:
        for round_number in range(ROUNDS):
            for change in ({"add": chord(round_number)}, {"remove": chord(round_number)}, {"add": chord(round_number)}):
                graph.update(**change)
                rounds.append(round_number)

    def rank() -> None:
        looked = []
        ranking = graph.rank(
            tol=1e-9, progress=lambda state: looked.append((repr(graph).splitlines()[0], graph.csr().offsets.size))
        )
        assert len(set(looked)) == 1, "an update ran during a ranking"
        assert ranking.error_bound <= 1e-9
        assert ranking.ranks.sum() == pytest.approx(1, abs=1e-8)
        assert len(ranking.frame) == ranking.ranks.size

    def represent() -> None:
        title = repr(graph).splitlines()[0]
        check_counts(*(int(word.replace(",", "")) for word in title.split() if word[0].isdigit()))
        graph.estimate()

    def read_ids() -> None:
        ids = graph.vertices.to_numpy()
        assert ids.size % N == 0
        np.testing.assert_array_equal(ids, np.arange(N - ids.size, N))

    looks = [
        rank, rank, represent, represent, read_ids,
        lambda: check_compressed(graph.csr()), lambda: check_compressed(graph.csc()),
    ]  # fmt: skip

    def repeat(look) -> None:
        while not ended.is_set():
            look()

    with frequent_switches(), ThreadPoolExecutor(8) as pool:
        running = [pool.submit(repeat, look) for look in looks]
        try:
            pool.submit(update).result(120)
        finally:
            ended.set()
        for each in running:
            each.result(60)
    assert len(rounds) == 3 * ROUNDS
    assert (graph.number_of_vertices, graph.number_of_edges) == (N + ROUNDS * N, N + ROUNDS * N)
    whole = pd.concat([CYCLE, *(chord(round_number) for round_number in range(ROUNDS))])
    found, exact = graph.rank(tol=1e-9), prplugin.pagerank(whole, tol=1e-12)
    assert found.frame["vertex"].tolist() == exact["vertex"].tolist()
    assert np.abs(found.ranks - exact["pagerank"]).sum() <= found.error_bound + 1e-12


READS = {
    "repr": repr,
    "vertices": lambda graph: graph.vertices.tolist(),
    "counts": lambda graph: (graph.number_of_vertices, graph.number_of_edges),
    "csr": lambda graph: [array.tolist() for array in graph.csr() if array is not None],
    "csc": lambda graph: [array.tolist() for array in graph.csc() if array is not None],
    "estimate": lambda graph: str(graph.estimate()).splitlines()[0],
    "rank": lambda graph: graph.rank().ranks.tolist(),
}


class Awaited:
    """A frame whose conversion, within an update, waits for an event, or calls a function."""

    def __init__(self, frame: pd.DataFrame, during) -> None:
        self._table, self._during = pa.Table.from_pandas(frame), during

    def __arrow_c_stream__(self, requested_schema=None):
        self._during()
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_waits_for_an_update(read):
    graph, fresh = prplugin.Graph(CYCLE), prplugin.Graph(pd.concat([CYCLE, CYCLE]))
    inside, resume = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        assert resume.wait(30)

    with ThreadPoolExecutor(2) as pool:
        try:
            updating = pool.submit(graph.update, add=Awaited(CYCLE, wait))
            assert inside.wait(30)
            reading = pool.submit(read, graph)
            with pytest.raises(TimeoutError):
                reading.result(0.1)
        finally:
            resume.set()
        updating.result(30)
        if read is READS["rank"]:
            np.testing.assert_allclose(reading.result(30), read(fresh), rtol=0, atol=1e-6)
        else:
            assert reading.result(30) == read(fresh)


@pytest.mark.parametrize("read", [*READS.values(), lambda graph: graph.update()], ids=[*READS, "update"])
def test_use_within_an_update_raises(read):
    """What would wait for itself raises."""
    graph = prplugin.Graph(CYCLE)
    with pytest.raises(prplugin.PageRankError, match="by this very thread"):
        graph.update(add=Awaited(CYCLE, lambda: read(graph)))
    assert graph.number_of_edges == N
    graph.update(add=CYCLE)
    assert graph.number_of_edges == 2 * N


@pytest.mark.parametrize(("event", "function"), [("return", "__enter__"), ("call", "__exit__")])
def test_a_ranking_interrupted_as_it_begins_or_ends_does_not_block_updates(event, function):
    graph, before, code = prplugin.Graph(CYCLE), sys.gettrace(), getattr(Reading, function).__code__

    def interrupt(frame, what, _):
        if frame.f_code is code and what == event:
            raise KeyboardInterrupt
        return interrupt

    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            graph.rank()
    finally:
        sys.settrace(before)
    graph.update(add=CYCLE)
    assert graph.number_of_edges == 2 * N


def test_rankings_run_at_once_and_look_at_the_graph():
    graph, both = prplugin.Graph(CYCLE), threading.Barrier(2)

    def rank() -> list[str]:
        seen = []

        def progress(state) -> None:
            if not seen:
                both.wait(30)  # fails unless both are within a ranking
            seen.append(repr(graph))

        graph.rank(progress=progress)
        return seen

    with ThreadPoolExecutor(2) as pool:
        seen = [ranking.result(60) for ranking in [pool.submit(rank), pool.submit(rank)]]
    assert {text.splitlines()[0] for text in [*seen[0], *seen[1]]} == {repr(graph).splitlines()[0]}


class Held:
    """A ranking in a thread of a pool that goes on once it is released; `entered` is set when it has begun."""

    def __init__(self, graph, pool) -> None:
        self.entered, self.release = threading.Event(), threading.Event()
        self.ranking = pool.submit(graph.rank, progress=self._hold)

    def _hold(self, _) -> None:
        self.entered.set()
        assert self.release.wait(30)


def wait_for_threads(graph, number: int) -> None:
    """Wait until this number of rankings and updates of a graph wait for one another."""
    waiting = graph._graph._access._waiting
    for _ in range(3000):
        if len(waiting) == number:
            return
        time.sleep(0.01)
    raise AssertionError(f"{len(waiting)} threads wait, not {number}")


def test_rankings_and_updates_are_served_in_order():
    """An update waits for the rankings before it, those after it wait for the update, and the next update for them."""
    graph, sizes = prplugin.Graph(CYCLE), []
    with ThreadPoolExecutor(5) as pool:
        first = Held(graph, pool)
        assert first.entered.wait(30)
        updates = [pool.submit(graph.update, add=CYCLE)]
        wait_for_threads(graph, 1)
        second = Held(graph, pool)
        wait_for_threads(graph, 2)
        updates.append(pool.submit(graph.update, add=CYCLE))
        wait_for_threads(graph, 3)
        try:
            assert graph.number_of_edges == N  # a short reading waits for no update that has not begun
            assert not second.entered.is_set()
            with pytest.raises(prplugin.PageRankError, match="this graph is being ranked"):
                graph.update(add=CYCLE, wait=False)
            first.release.set()
            updates[0].result(30)
            assert second.entered.wait(30)
            sizes.append(graph.number_of_edges)
            assert not updates[1].done()
        finally:
            first.release.set()
            second.release.set()
        updates[1].result(30)
        sizes.append(graph.number_of_edges)
        assert first.ranking.result(30).converged
        assert second.ranking.result(30).converged
    assert sizes == [2 * N, 3 * N]


def test_rankings_and_updates_in_loops_do_not_starve_each_other():
    """Regression test: an update beside two ranking threads was refused for as long as they ranked."""
    graph, ended, ranked = prplugin.Graph(CYCLE), threading.Event(), [0, 0]

    def rank(place: int) -> None:
        while not ended.is_set():
            graph.rank()
            ranked[place] += 1

    with ThreadPoolExecutor(3) as pool:
        rankings = [pool.submit(rank, place) for place in range(2)]
        try:
            counts = [list(ranked) for _ in range(20) if graph.update(add=CYCLE) is None]
        finally:
            ended.set()
        for each in rankings:
            each.result(30)
    assert graph.number_of_edges == 21 * N
    assert min(np.subtract(counts[-1], counts[0])) >= 3, "updates in a loop hold up rankings"


def test_wait_is_true_or_false():
    with pytest.raises(prplugin.InvalidOptionError, match="wait must be True or False, not 3"):
        prplugin.Graph(CYCLE).update(wait=3)


def test_update_by_a_callback_of_a_ranking_raises():
    graph = prplugin.Graph(CYCLE)
    with pytest.raises(prplugin.PageRankError, match="this graph is being ranked"):
        graph.rank(progress=lambda state: graph.update(add=CYCLE))
    graph.update(add=CYCLE)
    assert graph.number_of_edges == 2 * N


# --- threads that cannot be started -----------------------------------------------------------------------------------


@pytest.fixture(params=[0, 1, 2])
def startable(request, monkeypatch):
    """Let this number of threads start at a time in a process that may use four."""
    start, running = threading.Thread.start, []

    def start_some(thread):
        running[:] = [one for one in running if one.is_alive()]
        if len(running) >= request.param:
            raise RuntimeError("can't start new thread")
        running.append(thread)
        start(thread)

    monkeypatch.setattr("prplugin.machine.os.sched_getaffinity", lambda _: range(4))
    monkeypatch.setattr(threading.Thread, "start", start_some)
    return request.param


def test_items_are_mapped_in_order_by_the_threads_that_start(startable):
    barrier, names = threading.Barrier(max(1, startable), timeout=10), set()

    def square(item):
        barrier.wait()
        names.add(threading.current_thread())
        return item * item

    with mapping_on(4) as run:
        assert list(run(square, range(6))) == [k * k for k in range(6)]
        with pytest.raises(ZeroDivisionError):
            list(run(lambda item: 1 // item, [1, 0]))
    assert len(names) == max(1, startable)
    assert (threading.current_thread() in names) == (startable < 2)


def test_all_that_uses_threads_does_without(startable, tmp_path):
    many = np.arange(400_000) % 30_011
    frame = pd.DataFrame({"src": many, "dst": many * 7 % 30_011}).astype(str)
    graph = prplugin.Graph(frame)
    expected = graph.rank(seeds=["1", "2"])
    graph.save(tmp_path / "graph")
    found = prplugin.Graph.load(tmp_path / "graph").rank(seeds=["1", "2"])
    assert found.ranks.tobytes() == expected.ranks.tobytes()
    (tmp_path / "graph.metis").write_text("3 2\n2\n1 3\n2\n")
    assert prplugin.Graph.from_file(tmp_path / "graph.metis").number_of_edges == 4
    (tmp_path / "graph.adj").write_text("AdjacencyGraph\n2\n1\n0\n1\n1\n")
    assert prplugin.Graph.from_file(tmp_path / "graph.adj").number_of_edges == 1
    for kind, lines in (("vertices", "0\tcom.a\n1\tcom.b\n"), ("edges", "0\t1\n")):
        (tmp_path / "crawl" / kind).mkdir(parents=True)
        (tmp_path / "crawl" / kind / "part-0.txt.gz").write_bytes(gzip.compress(lines.encode()))
    assert prplugin.Graph.from_file(tmp_path / "crawl").number_of_edges == 1


def test_a_reading_waits_for_an_update_in_progress():
    access, order, begun, go_on = Access(), [], threading.Event(), threading.Event()

    def update():
        with access.updating(wait=True):
            begun.set()
            go_on.wait(10)
            time.sleep(0.05)
            order.append("update")

    def read(ranking):
        with access.reading(ranking=ranking):
            order.append("reading")

    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(update)]
        assert begun.wait(10)
        calls += [pool.submit(read, ranking) for ranking in (False, True)]
        go_on.set()
        for call in calls:
            call.result()
    assert order == ["update", "reading", "reading"]


def test_updates_take_turns():
    access, inside = Access(), []

    def update():
        with access.updating(wait=True):
            inside.append(1)
            assert len(inside) == 1
            time.sleep(0.01)
            inside.pop()

    with ThreadPoolExecutor(4) as pool:
        for call in [pool.submit(update) for _ in range(8)]:
            call.result()
