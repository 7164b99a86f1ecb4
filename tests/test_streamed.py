"""`streamed`: chunks smaller than rows, buffers used again in time, files that leave nothing; much of it without a GPU."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import random
import sys
from collections import deque
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from running import param
from test_expanded import IN_DEGREES, PROBLEMS, assert_as_numpy, assert_sums, graph, row_sums, web

import prplugin
from prplugin import cuda
from prplugin.machine import this_machine
from prplugin.methods import _pieces, expanded, streamed
from prplugin.methods.expanded import ExpandedPull
from prplugin.methods.streamed import StreamedPull
from prplugin.problem import Problem

STREAMED = [param("streamed")]


# --- edges on the host --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunk_bytes", "edge_bytes", "size", "pieces"),
    [(1, 12, 1, 1), (400, 4, 100, 1), (8191, 4, 2047, 1), (8192, 4, 2048, 1), (64 * 2**20, 4, 2048, 8192)],
)
def test_chunks_are_whole_pieces(chunk_bytes, edge_bytes, size, pieces):
    assert streamed._shape(chunk_bytes, edge_bytes) == (size, pieces)
    assert size * pieces * edge_bytes <= max(chunk_bytes, edge_bytes)


def test_a_file_holds_its_parts_and_has_no_name(tmp_path):
    parts = [np.arange(5), np.arange(0), np.arange(5, 12), np.arange(24)[::2]]
    held = streamed._held(iter(parts), 24, np.dtype(np.int64), tmp_path)
    assert held.tolist() == np.concatenate(parts).tolist()
    assert list(tmp_path.iterdir()) == []
    assert not held.flags.writeable


def test_no_edges_need_no_file(tmp_path):
    assert streamed._held([], 0, np.dtype(np.int32), tmp_path).size == 0


def test_a_full_disk_is_an_error_and_not_a_crash(monkeypatch, tmp_path):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(prplugin.MethodUnavailableError, match=r"cannot be written to .*No space left on device"):
        streamed._held([np.arange(3)], 3, np.dtype(np.int64), tmp_path)


@pytest.mark.parametrize("part", [1, 3, 100])
def test_shares_come_in_parts(monkeypatch, part):
    monkeypatch.setattr(streamed, "PART", part)
    weights, sources = np.array([1.0, 3.0, 0.0, 5e-324, 2.0]), np.array([0, 0, 1, 2, 3])
    out_weight = np.array([4.0, 0.0, 5e-324, 2.0])
    shares = list(streamed._shares(weights, sources, out_weight, np.dtype(np.float32)))
    assert all(array.dtype == np.float32 and array.size <= part for array in shares)
    assert np.concatenate(shares).tolist() == [0.25, 0.75, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("chunk_bytes", 0, "chunk_bytes must be a whole number of at least 1, not 0."),
        ("chunk_bytes", 1e6, "chunk_bytes must be a whole number of at least 1, not 1000000.0."),
        ("chunk_bytes", True, "chunk_bytes must be a whole number of at least 1, not True."),
        ("directory", "/no/such/folder", "directory must be a folder that exists, or None, not '/no/such/folder'."),
        ("directory", 7, "directory must be a folder that exists, or None, not 7."),
    ],
)
def test_wrong_options_are_refused(option, value, message):
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        StreamedPull(graph([1, 2], False), **{option: value})
    assert str(caught.value) == message


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_beyond_the_memory_are_no_reason(monkeypatch, weighted):
    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda, "bytes_free", lambda: 2**33)
    monkeypatch.setattr(cuda, "holds", lambda needed: needed <= 2**33)
    large = SimpleNamespace(n=10**7, m=2 * 10**10, weighted=weighted, place="host")
    assert streamed.unfit(large, this_machine()) is None
    assert "bytes of GPU memory" in expanded.unfit(large, this_machine())
    many = SimpleNamespace(n=10**9, m=10**10, weighted=weighted, place="host")
    assert "bytes of GPU memory" in streamed.unfit(many, this_machine())


# --- streams ------------------------------------------------------------------------------------------------------


class Streams:
    """As much of CuPy as a conveyor uses. Work happens some time after it was asked for, in any order that CUDA allows.

    What a stream is told waits in its queue. `happen` picks a stream whose first task need not wait, and does that task.
    """

    def __init__(self, seed):
        self.dice, self.queues = random.Random(seed), []
        self.kernels = self.stream()
        self.empty = self.memory
        self.cuda = SimpleNamespace(
            Stream=self.stream,
            Event=self.event,
            get_current_stream=lambda: self.kernels,
            runtime=SimpleNamespace(memcpyAsync=self.copy, memcpyHostToDevice=1),
        )

    def stream(self, non_blocking=False):
        queue = deque()
        self.queues.append(queue)
        return SimpleNamespace(
            ptr=len(self.queues) - 1,
            queue=queue,
            wait_event=lambda event: self.ask(queue, None, event.last),
            synchronize=lambda: self.until(lambda: not queue),
        )

    def event(self, **_):
        event = SimpleNamespace(last={"done": True})  # one that nothing was recorded in holds nothing up

        def record(stream):
            event.last = mark = {"done": False}
            self.ask(stream.queue, lambda: mark.update(done=True), {"done": True})

        def synchronize():
            mark = event.last
            self.until(lambda: mark["done"])

        event.record, event.synchronize = record, synchronize
        return event

    def memory(self, size, dtype):
        array = np.empty(size, dtype)
        return SimpleNamespace(array=array, data=SimpleNamespace(ptr=array.ctypes.data), dtype=array.dtype)

    def copy(self, target, source, count, kind, stream):
        half = count // 2  # no copy happens at once
        self.ask(self.queues[stream], lambda: ctypes.memmove(target, source, half), {"done": True})
        rest = lambda: ctypes.memmove(target + half, source + half, count - half)  # noqa: E731
        self.ask(self.queues[stream], rest, {"done": True})

    def ask(self, queue, task, condition):
        queue.append((task, condition))
        for _ in range(self.dice.choice([0, 0, 1, 3])):
            self.happen()

    def happen(self):
        ready = [queue for queue in self.queues if queue and queue[0][1]["done"]]
        if ready:
            task, _ = self.dice.choice(ready).popleft()
            if task is not None:
                task()
        return bool(ready)

    def until(self, condition):
        while not condition():
            assert self.happen(), "each waits for the other"


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("length", [1, 9, 20, 21, 47, 100])
def test_no_buffer_is_overwritten_before_it_is_read(monkeypatch, staged, length):
    monkeypatch.setattr(streamed, "_page_locked", np.empty)
    columns = [np.arange(length), np.arange(length) / 7]
    chunks = [[column[begin : begin + 10].tolist() for column in columns] for begin in range(0, length, 10)]
    for seed in range(40):
        streams = Streams(seed)
        monkeypatch.setitem(sys.modules, "cupy", streams)
        conveyor = streamed._Conveyor(columns, 10, staged=staged)
        seen = []

        def kernel(number, chunk, places, seen=seen):
            sizes = map(len, chunks[chunk])
            seen.append((number, chunk))
            assert [place.array[:size].tolist() for place, size in zip(places, sizes, strict=True)] == chunks[chunk]

        for number in range(4):
            for chunk, places in conveyor:
                streams.ask(streams.kernels.queue, partial(kernel, number, chunk, places), {"done": True})
                if number == 1 and chunk == 2:
                    break  # an interrupted pass does no harm to the next
        streams.kernels.synchronize()
        for number in (0, 2, 3):
            assert sorted(chunk for k, chunk in seen if k == number) == list(range(len(chunks)))


@pytest.mark.parametrize(("length", "copied"), [(10, 1), (20, 2), (30, 4), (100, 18)])
def test_chunks_that_came_last_are_not_copied_again(monkeypatch, length, copied):
    monkeypatch.setitem(sys.modules, "cupy", Streams(0))
    conveyor = streamed._Conveyor([np.arange(length)], 10, staged=False)
    brought = []
    bring = conveyor._bring
    monkeypatch.setattr(conveyor, "_bring", lambda chunk, buffer: (brought.append(chunk), bring(chunk, buffer)))
    there, back = ([chunk for chunk, _ in conveyor] for _ in range(2))
    assert there == back[::-1] == list(range(length // 10))
    assert len(brought) == copied


# --- on the GPU ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("in_degrees", IN_DEGREES.values(), ids=IN_DEGREES)
def test_every_row_is_summed(method, in_degrees, weighted, tmp_path):
    import cupy

    host = graph(in_degrees, weighted)
    x = np.random.default_rng(1).random(host.n)
    for chunk_bytes, directory in [(300, None), (3_000, tmp_path), (50_000, None), (50_000, tmp_path), (2**26, None)]:
        pull = StreamedPull(host, chunk_bytes=chunk_bytes, directory=directory)
        for dtype in ("float64", "float32", "float64"):
            contributions = x.astype(dtype)
            expected = row_sums(host, contributions)
            before = None
            for _ in range(3):
                pull._partials.fill(math.nan)
                pulled = cupy.full(host.n, math.nan)
                pull(cupy.asarray(contributions), pulled)
                assert_sums(pulled.get(), expected)
                assert before in {None, pulled.get().tobytes()}
                before = pulled.get().tobytes()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("weighted", [False, True])
def test_single_edges_can_be_chunks(method, weighted, tmp_path):
    import cupy

    host = graph([0, 3, 700, 0, 1, 40], weighted)
    contributions = np.random.default_rng(4).random(host.n)
    for directory in (None, tmp_path):
        pulled = cupy.full(host.n, math.nan)
        StreamedPull(host, chunk_bytes=1, directory=directory)(cupy.asarray(contributions), pulled)
        assert_sums(pulled.get(), row_sums(host, contributions))


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_agrees_with_numpy_in_the_same_bits_for_all_chunks(method, dtype, problem, tmp_path):
    ways = [{}, {"chunk_bytes": 24_576}, {"chunk_bytes": 100_000}, {"chunk_bytes": 2**18, "directory": tmp_path}]
    assert len({assert_as_numpy(web(), method, dtype, problem, **options) for options in ways}) == 1
    assert_as_numpy(web(), method, dtype, problem, chunk_bytes=20_000, directory=str(tmp_path))


@pytest.mark.parametrize("method", STREAMED)
def test_sums_are_those_of_expanded(method):
    import cupy

    host = graph([0, 70_000, *range(200), 5_000, 0, 0, 33], weighted=True)
    contributions = cupy.asarray(np.random.default_rng(2).random(host.n))
    pulls = [ExpandedPull(host.on("device")), StreamedPull(host, chunk_bytes=2**17)]
    sums = [cupy.full(host.n, math.nan) for _ in pulls]
    for pull, pulled in zip(pulls, sums, strict=True):
        pull(contributions, pulled)
    assert sums[0].get().tobytes() == sums[1].get().tobytes()


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("directory", [False, True])
def test_memory_on_the_gpu_does_not_grow_with_the_edges(method, directory, tmp_path):
    import cupy

    n, chunk_bytes = 1_000, 2**16
    peaks = {}
    for m in (50_000, 700_000):
        host = graph(np.random.default_rng(m).multinomial(m, np.full(n, 1 / n)).tolist(), weighted=True)
        pool = cupy.cuda.MemoryPool()  # it gives nothing back, so that in the end it holds the most that was in use
        with cupy.cuda.using_allocator(pool.malloc):
            step = streamed.prepare(
                Problem(host, 0.85), this_machine(), chunk_bytes=chunk_bytes, directory=tmp_path if directory else None
            )
            step.start(np.full(n, 1 / n))
            for _ in range(3):
                step()
            step.contribute_in("float32")
            step.start(np.full(n, 1 / n))
            step()
            peaks[m] = pool.total_bytes() - _pieces.BYTES * (m // _pieces.SIZE + 1)
            del step
            gc.collect()
        assert "_elsewhere" not in vars(host)  # the edges have not been to the GPU
        assert chunk_bytes < peaks[m] <= 2 * chunk_bytes + 60 * 8 * n
        assert 12 * m > 3 * chunk_bytes
    assert abs(peaks[700_000] - peaks[50_000]) <= 2**16  # the pool rounds to 512 bytes; the edges differ by 8 MB


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("directory", [False, True])
def test_a_pass_may_be_interrupted_and_run_on_any_stream(method, directory, tmp_path):
    import cupy

    host = graph([20_000, 0, *range(300), 9_000], weighted=True)
    contributions = np.random.default_rng(5).random(host.n)
    expected = row_sums(host, contributions)
    pull = StreamedPull(host, chunk_bytes=30_000, directory=tmp_path if directory else None)
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream()):
        with stream:
            chunks = iter(pull._conveyor_for(np.dtype(np.float64)))
            next(chunks)
            next(chunks)
            chunks.close()
            pulled = cupy.full(host.n, math.nan)
            pull(cupy.asarray(contributions), pulled)
            assert_sums(pulled.get(), expected)
            stream.synchronize()


@pytest.mark.parametrize("method", STREAMED)
def test_many_chunks_in_flight_stay_in_order(method, tmp_path):
    import cupy

    host = graph([50_000, *[7] * 20_000, 60_000], weighted=True)
    for directory in (None, tmp_path):
        pull = StreamedPull(host, chunk_bytes=24_576, directory=directory)
        for seed in range(5):  # other contributions each time, so that stale sums would show
            contributions = np.random.default_rng(seed).random(host.n)
            pulled = cupy.full(host.n, math.nan)
            pull(cupy.asarray(contributions), pulled)
            assert_sums(pulled.get(), row_sums(host, contributions))
