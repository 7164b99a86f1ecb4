"""`streamed`: packed edges, chunks, files, reuse of buffers, ranks. Most parts need no GPU."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import random
import tracemalloc
from collections import deque
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_degrees import IN_DEGREES, PROBLEMS, assert_agrees_with_numpy, assert_sums, graph, row_sums, web
from method_params import examples, param
from packed_pieces import unpack

import prplugin
from prplugin.gpu import runtime
from prplugin.graph.edges import Edges, Problem
from prplugin.graph.memory import Counts
from prplugin.machine import this_machine
from prplugin.methods import streamed
from prplugin.methods.engines import gpu_pull
from prplugin.methods.engines import packed_rows as packing
from prplugin.methods.engines.packed_step import PackedStep
from prplugin.methods.streamed import StreamedPull
from prplugin.papers import expanded
from prplugin.types.edges import Coo, Csc

STREAMED = [param("streamed")]


# --- edges on the host --------------------------------------------------------------------------------------------


def pack(in_degrees, weighted=False, *, part=packing.PART, reordered=False, skewed=False):
    """Pack the edges of a graph, and return its rows in packed order and the parts."""
    host = graph(in_degrees, weighted)
    rows = packing.Rows(*host.get(Csc))
    if skewed:
        rows = rows._replace(sources=(rows.sources.astype(float) ** 2 / host.n).astype(np.int32))
    if reordered:
        rows = rows.sorted_by(np.bincount(rows.sources, minlength=host.n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "PART", part)
        return rows, list(packing.packed(rows, 2))


def sorted_edges(rows):
    """Return target and source of each edge as packed positions, sorted."""
    targets = np.repeat(np.arange(rows.n), np.diff(rows.offsets))
    position = np.arange(rows.n) if rows.position is None else rows.position
    endpoints = np.stack([position[targets], position[rows.sources]])
    return endpoints[:, np.lexsort(endpoints[::-1])]


@pytest.mark.parametrize(
    ("part", "reordered"),
    [
        (100, True),
        (3_000, False),
        (packing.PART, True),
        *[
            pytest.param(part, reordered, marks=pytest.mark.slow)
            for part, reordered in ((100, False), (3_000, True), (packing.PART, False))
        ],
    ],
)
@pytest.mark.parametrize("in_degrees", IN_DEGREES.values(), ids=IN_DEGREES)
def test_packed_edges_are_decoded(in_degrees, part, reordered):
    rows, parts = pack(in_degrees, part=part, reordered=reordered)
    assert_decoded(rows, parts)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.integers(0, 40) | st.integers(0, 3_000), min_size=1, max_size=30),
    st.integers(1, 5_000),
    st.booleans(),
    st.booleans(),
)
def test_arbitrary_packed_edges_are_decoded(in_degrees, part, reordered, skewed):
    rows, parts = pack(in_degrees, part=part, reordered=reordered, skewed=skewed)
    assert_decoded(rows, parts)


def assert_decoded(rows, parts):
    bits, targets, sources = packing.bits_of(rows.n), [], []
    for part in parts:
        assert part.begins[-1] == part.data.size
        assert (part.begins % 16 == 0).all()
        for number, (begin, end) in enumerate(pairwise(part.begins.tolist())):
            piece_rows, piece_sources = unpack(part.data[begin:end], bits)
            assert piece_rows.size == part.edges[number] <= packing.PIECE
            if targets:
                assert part.continued[number] == (part.rows[number] == targets[-1][-1])
            targets.append(part.rows[number] + piece_rows)
            sources.append(piece_sources)
    found = np.stack([np.concatenate(arrays) if arrays else np.empty(0, int) for arrays in (targets, sources)])
    assert (found == sorted_edges(rows)).all()


def test_vertices_are_sorted_where_that_takes_fewer_bytes():
    random, n, m = np.random.default_rng(0), 40_000, 2_000_000
    target = np.repeat(np.arange(n), m // n)
    near = (target + random.integers(0, 20, m)) % n
    hubs = random.permutation(n)[(n * random.random(m) ** 6).astype(int)]
    for source, expected in ((near, False), (hubs, True), (near // 4 * 4, True)):
        host = Edges(Coo(source.astype(np.int32), target.astype(np.int32), None, n))
        rows = packing.Rows(*host.get(Csc)).in_packing_order(host.out_weight)
        assert (rows.order is not None) == expected
        sizes = {}
        for order in (packing.Rows(*host.get(Csc)), rows):
            sizes[order.order is None] = sum(part.data.size for part in packing.packed(order, 2))
        assert min(sizes, key=sizes.get) == (not expected)
        assert min(sizes.values()) < 2 * m
    assert rows.order[: n // 4].tolist() == list(range(0, n, 4))  # the dangling vertices come last


def test_packing_holds_few_parts_in_memory():
    n, m = 10_000, 3_000_000
    host = graph(np.random.default_rng(0).multinomial(m, np.full(n, 1 / n)).tolist(), weighted=False)
    rows = packing.Rows(*host.get(Csc))
    next(packing.packed(rows, 1))
    tracemalloc.start()
    size = sum(part.data.size for part in packing.packed(rows, 1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert m < size < 2 * m
    assert peak < 20 * packing.PART + 100 * n


def test_every_chunk_fits_buffer():
    # Some rows pack to far less than a byte per edge, others to more than one.
    n = 2**16
    random = np.random.default_rng(0)
    source = np.concatenate([np.zeros(2**17, np.int32), random.integers(0, n, 2**17, np.int32)])
    target = np.repeat(np.arange(2, dtype=np.int32), 2**17)
    host = Edges(Coo(source, target, np.ones(2**18), n))
    chunker = streamed._Chunker(100_000, 8)
    chunks = [np.concatenate(held).size for held in chunker.chunks(packing.packed(packing.Rows(*host.get(Csc)), 1))]
    assert max(chunks) + 8 * max(chunker.edges) <= 100_000
    assert len(chunks) > 20


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1, 5_000, 40_000, 2**26])
def test_chunks_are_whole_pieces(chunk_bytes, weighted):
    rows, parts = pack([0, 30_000, *range(150), 9_000, 1, 2, 4096], weighted, part=20_000)
    chunker = streamed._Chunker(chunk_bytes, 8 if weighted else 0)
    chunks = [np.concatenate(held) for held in chunker.chunks(parts)]
    table, pieces = chunker.table(), chunker.first_pieces[-1]
    assert sum(chunker.edges) == rows.sources.size
    assert pieces == sum(part.edges.size for part in parts)
    assert table[pieces, 4] == pieces
    edge, first_piece = 0, {}
    for chunk, (first, last) in enumerate(pairwise(chunker.first_pieces)):
        taken = chunks[chunk].size + (8 if weighted else 0) * chunker.edges[chunk]
        assert last - first == 1 or taken <= chunk_bytes
        offset = 0
        for piece in range(first, last):
            begin, size, piece_edge, row, expected_first = table[piece].tolist()
            assert (begin, piece_edge) == (offset, edge)
            piece_rows, _ = unpack(chunks[chunk][begin : begin + size], packing.bits_of(rows.n))
            assert first_piece.setdefault(row, piece) == expected_first
            for other in row + piece_rows:
                first_piece.setdefault(int(other), piece)
            offset, edge = offset + size, edge + piece_rows.size
        assert offset == chunks[chunk].size
        edge = 0
    assert chunker.largest == max(table[:pieces, 1])


def test_parts_are_stored_in_unnamed_file(tmp_path):
    parts = [np.arange(5), np.arange(0), np.arange(5, 12), np.arange(24)[::2]]
    stored = streamed._in_file(iter(parts), np.dtype(np.int64), tmp_path)
    assert stored.tolist() == np.concatenate(parts).tolist()
    assert list(tmp_path.iterdir()) == []
    assert not stored.flags.writeable


def test_file_of_graph_without_edges_is_empty(tmp_path):
    stored = streamed._in_file([], np.dtype(np.int32), tmp_path)
    assert (stored.size, stored.dtype) == (0, np.int32)
    assert streamed._split(stored, []) == []


def test_full_disk_raises(monkeypatch, tmp_path):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(prplugin.MethodUnavailableError, match=r"cannot be written to .*No space left on device"):
        streamed._in_file([np.arange(3)], np.dtype(np.int64), tmp_path)


@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("part", [1, 7, packing.PART])
def test_normalized_weights_are_in_packed_order(monkeypatch, part, reordered):
    monkeypatch.setattr(packing, "PART", part)
    weights, sources = np.array([3.0, 1.0, 0.0, 5e-324, 2.0, 1.0]), np.array([2, 0, 1, 3, 0, 0], np.int32)
    rows = packing.Rows(np.array([0, 3, 3, 4, 6]), sources, weights)
    out_weight = np.bincount(sources, weights)
    if reordered:
        rows = rows.sorted_by(np.array([3, 2, 0, 1]))  # the order 0, 1, 3, 2
        out_weight = out_weight[rows.order]
    normalized_weights = list(packing.normalized_weights(rows, out_weight, np.dtype(np.float32), 2))
    assert all(array.dtype == np.float32 for array in normalized_weights)
    expected = [0.25, 0.0, 1.0, 0.5, 0.25, 1.0] if reordered else [0.25, 0.0, 1.0, 1.0, 0.5, 0.25]
    assert np.concatenate(normalized_weights).tolist() == expected


@pytest.mark.parametrize("counts", [[3, 4], [1] * 7, [7], [0, 7]])
def test_parts_are_split_into_chunks(monkeypatch, counts):
    monkeypatch.setattr(streamed, "page_locked", np.empty)
    parts = [np.arange(2), np.arange(2, 3), np.arange(3, 7)]
    found = streamed._split(streamed._page_locked_copy(parts, 7, np.int64), counts)
    bounds = np.cumsum([0, *counts]).tolist()
    assert [chunk.tolist() for chunk in found] == [list(range(begin, end)) for begin, end in pairwise(bounds)]


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
def test_invalid_options_raise(option, value, message):
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        StreamedPull(graph([1, 2], False), **{option: value})
    assert str(caught.value) == message


@pytest.mark.parametrize("weighted", [False, True])
def test_streamed_is_available_for_edges_beyond_memory(monkeypatch, weighted):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(runtime, "available_bytes", lambda: 2**33)
    monkeypatch.setattr(runtime, "fits", lambda needed: needed <= 2**33)
    large = Counts(10**7, 2 * 10**10, weighted, "host")
    assert streamed.unavailable_reason(large, this_machine()) is None
    assert "bytes of GPU memory" in expanded.unavailable_reason(large, this_machine())
    many = Counts(10**9, 10**10, weighted, "host")
    assert "bytes of GPU memory" in streamed.unavailable_reason(many, this_machine())


# --- streams ------------------------------------------------------------------------------------------------------


class SimulatedStreams:
    """Stub of CuPy streams: tasks run some time after they are enqueued, in any order that CUDA allows.

    Each stream has a queue of tasks. `run_one` picks a stream whose first task is not blocked, and runs that task.
    """

    def __init__(self, seed):
        self.random, self.queues = random.Random(seed), []
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
            wait_event=lambda event: self.enqueue(queue, None, event.last),
            synchronize=lambda: self.run_until(lambda: not queue),
        )

    def event(self, **_):
        event = SimpleNamespace(last={"done": True})  # an event that was not recorded blocks nothing

        def record(stream):
            event.last = mark = {"done": False}
            self.enqueue(stream.queue, lambda: mark.update(done=True), {"done": True})

        def synchronize():
            mark = event.last
            self.run_until(lambda: mark["done"])

        event.record, event.synchronize = record, synchronize
        return event

    def memory(self, size, dtype):
        array = np.empty(size, dtype)
        return SimpleNamespace(array=array, data=SimpleNamespace(ptr=array.ctypes.data), dtype=array.dtype)

    def copy(self, target, source, count, kind, stream):
        half = count // 2  # two tasks, because a copy is not atomic
        self.enqueue(self.queues[stream], lambda: ctypes.memmove(target, source, half), {"done": True})
        rest = lambda: ctypes.memmove(target + half, source + half, count - half)  # noqa: E731
        self.enqueue(self.queues[stream], rest, {"done": True})

    def enqueue(self, queue, task, condition):
        queue.append((task, condition))
        for _ in range(self.random.choice([0, 0, 1, 3])):
            self.run_one()

    def run_one(self):
        ready = [queue for queue in self.queues if queue and queue[0][1]["done"]]
        if ready:
            task, _ = self.random.choice(ready).popleft()
            if task is not None:
                task()
        return bool(ready)

    def run_until(self, condition):
        while not condition():
            assert self.run_one(), "deadlock: every stream is blocked"


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("length", [1, 9, 20, 21, 47, 100])
def test_buffers_are_read_before_they_are_overwritten(monkeypatch, staged, length):
    monkeypatch.setattr(streamed, "page_locked", np.empty)
    begins = range(0, length, 10)
    columns = [
        [column[begin : begin + 10] for begin in begins] for column in (np.arange(length), np.arange(length) / 7)
    ]
    chunks = [[part.tolist() for part in parts] for parts in zip(*columns, strict=True)]
    for seed in range(40):
        streams = SimulatedStreams(seed)
        monkeypatch.setattr(streamed, "cupy", streams)
        chunk_stream = streamed._ChunkStream(columns, staged=staged)
        seen = []

        def kernel(number, chunk, places, seen=seen):
            sizes = map(len, chunks[chunk])
            seen.append((number, chunk))
            assert [place.array[:size].tolist() for place, size in zip(places, sizes, strict=True)] == chunks[chunk]

        for number in range(4):
            for chunk, places in chunk_stream:
                streams.enqueue(streams.kernels.queue, partial(kernel, number, chunk, places), {"done": True})
                if number == 1 and chunk == 2:
                    break  # an interrupted pass must not affect the next
        streams.kernels.synchronize()
        for number in (0, 2, 3):
            assert sorted(chunk for k, chunk in seen if k == number) == list(range(len(chunks)))


@pytest.mark.parametrize(("length", "copied"), [(10, 1), (20, 2), (30, 4), (100, 18)])
def test_chunks_still_in_buffers_are_not_copied_again(monkeypatch, length, copied):
    monkeypatch.setattr(streamed, "cupy", SimulatedStreams(0))
    chunk_stream = streamed._ChunkStream([np.split(np.arange(length), length // 10)], staged=False)
    copies = []
    original = chunk_stream._copy
    monkeypatch.setattr(chunk_stream, "_copy", lambda chunk, buffer: (copies.append(chunk), original(chunk, buffer)))
    forward, backward = ([chunk for chunk, _ in chunk_stream] for _ in range(2))
    assert forward == backward[::-1] == list(range(length // 10))
    assert len(copies) == copied


# --- reordered vertices ---------------------------------------------------------------------------------------------


def test_ranks_are_reordered_unless_a_mix_starts_from_those_of_the_step(monkeypatch):
    started = []
    monkeypatch.setattr(gpu_pull.DeviceStep, "__init__", lambda self, problem, pull, order: None)
    monkeypatch.setattr(gpu_pull.DeviceStep, "start", lambda self, ranks: started.append(ranks))
    adjacency = graph([1, 2, 0], False)
    rows = packing.Rows(*adjacency.get(Csc)).sorted_by(np.array([1, 0, 2]))
    pull = SimpleNamespace(order=rows.order, position=rows.position, allocate=lambda dtype: None)
    step = PackedStep(Problem(adjacency, 0.85), pull)
    step._pull, step._contributions, step._ranks = pull, np.empty(3), np.array([0.5, 0.3, 0.2])
    assert step.ranks().tolist() == [0.3, 0.2, 0.5]
    for ranks in (step.ranks(), step._ranks, 0.25):
        step.start(ranks)
    assert started[0].tolist() == [0.5, 0.3, 0.2]
    assert started[1] is step._ranks
    assert started[2] == 0.25


# --- on the GPU ---------------------------------------------------------------------------------------------------


def row_sums_by_vertex(pull, contributions):
    """Return the row sums by vertex, whatever the order of rows in the pull."""
    import cupy

    order = np.arange(contributions.size) if pull.rows.order is None else pull.rows.order
    pull._sums._partials.fill(math.nan)
    device_sums = cupy.full(contributions.size, math.nan)
    pull(cupy.asarray(contributions[order]), device_sums)
    sums = np.empty(contributions.size)
    sums[order] = device_sums.get()
    return sums


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("in_degrees", IN_DEGREES.values(), ids=IN_DEGREES)
def test_row_sums(method, in_degrees, weighted, tmp_path):
    host = graph(in_degrees, weighted)
    x = np.random.default_rng(1).random(host.n)
    for chunk_bytes, directory in [(300, None), (3_000, tmp_path), (50_000, None), (50_000, tmp_path), (2**26, None)]:
        pull = StreamedPull(host, chunk_bytes=chunk_bytes, directory=directory)
        for dtype in ("float64", "float32", "float64"):
            contributions = x.astype(dtype)
            expected = row_sums(host, contributions)
            before = None
            for _ in range(3):
                sums = row_sums_by_vertex(pull, contributions)
                assert_sums(sums, expected)
                assert before in {None, sums.tobytes()}
                before = sums.tobytes()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_of_one_piece(method, weighted, tmp_path):
    host = graph([0, 3, 7_000, 0, 1, 40], weighted)
    contributions = np.random.default_rng(4).random(host.n)
    for directory in (None, tmp_path):
        pull = StreamedPull(host, chunk_bytes=1, directory=directory)
        assert_sums(row_sums_by_vertex(pull, contributions), row_sums(host, contributions))


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_ranks_agree_with_numpy_in_same_bits_for_all_chunk_sizes(method, dtype, problem, tmp_path):
    option_sets = [
        {},
        {"chunk_bytes": 1},
        {"chunk_bytes": 24_576},
        {"chunk_bytes": 100_000},
        {"chunk_bytes": 2**18, "directory": tmp_path},
    ]
    assert len({assert_agrees_with_numpy(web(), method, dtype, problem, **options) for options in option_sets}) == 1
    assert_agrees_with_numpy(web(), method, dtype, problem, chunk_bytes=20_000, directory=str(tmp_path))


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("directory", [False, True])
def test_device_memory_does_not_grow_with_edges(method, directory, tmp_path):
    import cupy

    n, chunk_bytes = 1_000, 2**16
    peaks = {}
    for m in (50_000, 700_000):
        host = graph(np.random.default_rng(m).multinomial(m, np.full(n, 1 / n)).tolist(), weighted=True)
        pool = cupy.cuda.MemoryPool()  # frees nothing to the driver, so its final size is the peak
        with cupy.cuda.using_allocator(pool.malloc):
            step = streamed.prepare(
                Problem(host, 0.85), this_machine(), chunk_bytes=chunk_bytes, directory=tmp_path if directory else None
            )
            step.start(np.full(n, 1 / n))
            for _ in range(3):
                step()
            step.set_contribution_dtype("float32")
            step.start(np.full(n, 1 / n))
            step()
            peaks[m] = pool.total_bytes() - step._pull._sums._table.nbytes - step._pull._sums._partials.nbytes
            del step
            gc.collect()
        assert "_other_memory" not in vars(host)  # the edges were not copied to the device
        assert chunk_bytes < peaks[m] <= 2 * chunk_bytes + 60 * 8 * n
        assert 12 * m > 3 * chunk_bytes
    assert abs(peaks[700_000] - peaks[50_000]) <= 2**16  # the pool rounds to 512 bytes; the edges differ by 8 MB


@pytest.mark.parametrize("method", STREAMED)
@pytest.mark.parametrize("directory", [False, True])
def test_pass_may_be_interrupted_and_run_on_any_stream(method, directory, tmp_path):
    import cupy

    host = graph([20_000, 0, *range(300), 9_000], weighted=True)
    contributions = np.random.default_rng(5).random(host.n)
    expected = row_sums(host, contributions)
    pull = StreamedPull(host, chunk_bytes=30_000, directory=tmp_path if directory else None)
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream()):
        with stream:
            pull.allocate(np.dtype(np.float64))
            chunks = iter(pull.chunk_stream)
            next(chunks)
            next(chunks)
            chunks.close()
            assert_sums(row_sums_by_vertex(pull, contributions), expected)
            stream.synchronize()


@pytest.mark.parametrize("method", STREAMED)
def test_many_chunks_in_flight_stay_in_order(method, tmp_path):
    host = graph([50_000, *[7] * 20_000, 60_000], weighted=True)
    for directory in (None, tmp_path):
        pull = StreamedPull(host, chunk_bytes=24_576, directory=directory)
        for seed in range(5):  # other contributions each time, so that stale sums would show
            contributions = np.random.default_rng(seed).random(host.n)
            assert_sums(row_sums_by_vertex(pull, contributions), row_sums(host, contributions))
