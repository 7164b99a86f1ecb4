"""Edges stay in host memory, or on disk, and pass through two buffers on the GPU."""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from prplugin.cpu import library, packing
from prplugin.errors import InvalidOptionError, MethodUnavailableError
from prplugin.gpu import cupy, runtime
from prplugin.graph.memory import Counts, footprint
from prplugin.machine import this_machine
from prplugin.methods.base import Edges, Floats, Machine, Memory, Problem, Rate, Step
from prplugin.methods.engines import gpu_pull, packed_rows
from prplugin.methods.engines.packed_step import PackedStep, PieceSums
from prplugin.options import validate_int
from prplugin.types.arrays import Array
from prplugin.types.edges import Csc, Integers, bits_of

name = "streamed"
runs_on = "gpu"

CHUNK_BYTES = 64 * 2**20  # of one buffer; copies of this size reach the bandwidth of the bus
LEAST_BYTES = 2**20  # bytes of one buffer if two of CHUNK_BYTES do not fit in GPU memory

EDGE_BYTES = 1.5  # per packed edge, about: 1 on web graphs, 2.7 on random ones; docs/decisions/0015-edge-compression.md
REMEDY = "Use a GPU with more, or a smaller chunk_bytes."

memory = Memory(
    layout_in="host",
    step=Rate(packed_rows.PIECE_BYTES * (1 / packing.PIECE + 1 / packed_rows.PART), vertex=gpu_pull.MEMORY.step.vertex),
    float64=Rate(vertex=4),
    more=gpu_pull.MEMORY.more,
    host=Rate(EDGE_BYTES, 4, 16),  # permutation of the vertices and its inverse, and their out-weights
    chunks=2 * CHUNK_BYTES,
)


def unavailable_reason(adjacency: Edges | None, machine: Machine) -> str | None:
    """Return why the vectors and two chunks of edges do not fit on the GPU, or None."""
    reason = runtime.unavailable_reason() or library.unavailable_reason()
    if reason is None and adjacency is not None:
        reason = packed_rows.too_many(adjacency.n)
    if reason or adjacency is None:
        return reason
    return gpu_pull.unavailable_reason(memory._replace(chunks=2 * LEAST_BYTES), adjacency, machine, REMEDY)


# Fitted to benchmarks/results/kernels.md; the layout is that on the host.
cost = gpu_pull.cost_of(85e-6, edge=1.2e-11, layout_edge=5e-8, copied=(EDGE_BYTES, 2 * CHUNK_BYTES))


def prepare(
    problem: Problem,
    machine: Machine,
    *,
    chunk_bytes: int | None = None,
    directory: str | os.PathLike[str] | None = None,
) -> Step:
    """Group the edges by target on the host, and pack them for the transfers.

    In host memory the packed edges take 1 to 2.7 bytes each, and up to eight more with weights, beside the graph.

    Parameters
    ----------
    chunk_bytes : int, optional
        GPU memory of each of the two buffers; at least one piece of 2048 edges is copied at a time. The bits of the
        ranks are the same for any number. By default 64 MiB, or what fits in GPU memory, but at least 1 MiB.
    directory : path, optional
        Folder for a file of the packed edges, which is read in every iteration; page-locked host memory if not given.
        The file has no name, and is deleted with the step or at the end of the process.
    """
    problem = problem.on("host")
    size = chunk_bytes_for(problem) if chunk_bytes is None else chunk_bytes
    return PackedStep(problem, StreamedPull(problem.adjacency, chunk_bytes=size, directory=directory))


class StreamedPull:
    """Computes row sums, one chunk of edges at a time.

    `rows`: The edges, and the order of the vertices in `contributions` and `row_sums`.
    `data` (list of arrays of bytes): The packed edges of each chunk, without normalized weights.
    `chunk_stream`: Copies the chunks, with normalized weights of the present type; None before the first step.
    """

    # A term goes through 16 additions and those of a block; a partial sum through one per 2**15 edges of its row, and
    # those of a warp. All are compensated, and fewer than the 2**26 of the bound, up to 2**40 edges per row.
    rounding_depth = gpu_pull.ROW_DEPTH

    def __init__(
        self, adjacency: Edges, *, chunk_bytes: int = CHUNK_BYTES, directory: str | os.PathLike[str] | None = None
    ) -> None:
        chunk_bytes = validate_int("chunk_bytes", chunk_bytes)
        self._directory = _folder(directory)
        self._threads = this_machine().threads
        self.rows = packed_rows.Rows(*adjacency.get(Csc)).in_packing_order(adjacency.out_weight)
        self.order, self.position, self._out_weight = self.rows.order, self.rows.position, adjacency.out_weight
        chunker = _Chunker(chunk_bytes, 8 if adjacency.weighted else 0)
        chunks = chunker.chunks(packed_rows.packed(self.rows, self._threads))
        if self._directory is None:
            self.data = [_page_locked_copy(pieces, sum(piece.size for piece in pieces), np.uint8) for pieces in chunks]
        else:
            self.data = _split(_in_file(chain.from_iterable(chunks), np.uint8, self._directory), chunker.sizes)
        self._chunks, self._edges = chunker.first_pieces, chunker.edges
        self._bits = bits_of(adjacency.n)
        self._sums = PieceSums(cupy.asarray(chunker.table()), chunker.largest, weighted=adjacency.weighted)
        self.chunk_stream: _ChunkStream | None = None
        self._normalized_weights_dtype: DTypeLike | None = None

    def __call__(self, contributions: Floats, row_sums: Floats) -> None:
        self._sums.clear(row_sums)
        self.allocate(contributions.dtype)
        if self.chunk_stream is None:
            return
        for chunk, columns in self.chunk_stream:
            first, last = self._chunks[chunk : chunk + 2]
            self._sums.pieces(first, last - first, self._bits, 0, contributions, row_sums, *columns)
        self._sums.crossing(0, self._chunks[-1], row_sums, contributions.dtype)

    def allocate(self, dtype: DTypeLike) -> None:
        """Allocate the buffers, and normalize the weights in this type; one type is stored at a time."""
        stale = self.rows.weights is not None and self._normalized_weights_dtype != dtype
        if self._chunks[-1] and (self.chunk_stream is None or stale):
            self.chunk_stream = None  # frees its memory first
            columns = [self.data]
            if self.rows.weights is not None:
                out_weight = self._out_weight if self.order is None else self._out_weight[self.order]
                parts = packed_rows.normalized_weights(self.rows, out_weight, dtype, self._threads)
                if self._directory is None:
                    stored = _page_locked_copy(parts, sum(self._edges), dtype)
                else:
                    stored = _in_file(parts, dtype, self._directory)
                columns.append(_split(stored, self._edges))
            self.chunk_stream = _ChunkStream(columns, staged=self._directory is not None)
            self._normalized_weights_dtype = dtype


# --- edges on the host --------------------------------------------------------------------------------------------


class _Chunker:
    """Groups packed pieces into chunks, and builds the table of pieces for the GPU.

    `chunk_bytes`: Size of a buffer; exceeded only by a chunk of one piece.
    `extra_bytes`: Bytes per edge in a second buffer (normalized weights), for which part of `chunk_bytes` is reserved.
    """

    def __init__(self, chunk_bytes: int, extra_bytes: int) -> None:
        self._most_edges = int(chunk_bytes / (extra_bytes + EDGE_BYTES)) if extra_bytes else 2**62
        self._limit = chunk_bytes - extra_bytes * self._most_edges if extra_bytes else chunk_bytes
        self.first_pieces = [0]  # of each chunk, then the number of pieces
        self.edges: list[int] = []  # numbers of edges of the chunks
        self.sizes: list[int] = []  # and of bytes
        self.largest = 0  # bytes of the largest piece
        self._table = array("q")

    def chunks(self, parts: Iterable[packed_rows.Packed]) -> Iterator[list[Integers]]:
        """Yield the pieces of each chunk."""
        held: list[Integers] = []
        size = edges = 0
        for part in parts:
            pieces = np.split(part.data, part.begins[1:-1])
            columns = part.edges.tolist(), part.rows.tolist(), part.continued.tolist()
            for piece, its_edges, row, continued in zip(pieces, *columns, strict=True):
                if held and (size + piece.size > self._limit or edges + its_edges > self._most_edges):
                    self._end(held, edges, size)
                    yield held
                    held, size, edges = [], 0, 0
                # `table` replaces the last one by the piece in which the row begins.
                self._table.extend((size, piece.size, edges, row, continued))
                held.append(piece)
                size, edges, self.largest = size + piece.size, edges + its_edges, max(self.largest, piece.size)
        if held:
            self._end(held, edges, size)
            yield held

    def _end(self, held: list[Integers], edges: int, size: int) -> None:
        self.first_pieces.append(self.first_pieces[-1] + len(held))
        self.edges.append(edges)
        self.sizes.append(size)

    def table(self) -> Integers:
        """Return the table of the pieces, and of one more at the end: see streamed.cu."""
        table = np.array(self._table, np.int64).reshape(-1, packed_rows.COLUMNS)
        table = np.append(table, np.zeros((1, packed_rows.COLUMNS), np.int64), axis=0)
        table[:, 4] = packed_rows.row_begins(table[:, 3], table[:, 4] == 1)
        return table


def _folder(directory: str | os.PathLike[str] | None) -> Path | None:
    if directory is None:
        return None
    if not isinstance(directory, (str, os.PathLike)) or not Path(directory).is_dir():
        raise InvalidOptionError(f"directory must be a folder that exists, or None, not {directory!r}.")
    return Path(directory)


def _in_file(parts: Iterable[Array], dtype: DTypeLike, directory: Path) -> Array:
    """Join arrays in a file of the folder, mapped into memory."""
    try:
        # The file has no name, so that it is deleted however the process ends.
        with tempfile.TemporaryFile(dir=directory) as file:
            for part in parts:
                file.write(np.ascontiguousarray(part).data)
            file.flush()
            # The map holds the file open. An empty file cannot be mapped.
            return np.memmap(file, dtype, "r") if file.tell() else np.empty(0, dtype)
    except OSError as error:
        raise MethodUnavailableError(f"the edges cannot be written to {str(directory)!r}: {error}.") from error


def _page_locked_copy(parts: Iterable[Array], count: int, dtype: DTypeLike) -> Array:
    """Join arrays of `count` entries in all in page-locked memory."""
    joined = page_locked(count, dtype)
    begin = 0
    for part in parts:
        joined[begin : begin + part.size] = part
        begin += part.size
    return joined


def _split(joined: Array, sizes: list[int]) -> list[Array]:
    return np.split(joined, np.cumsum(sizes)[:-1]) if sizes else []


def page_locked(count: int, dtype: DTypeLike) -> Array:
    """Allocate page-locked host memory, which allows asynchronous copies; freed with the array."""
    size = count * np.dtype(dtype).itemsize
    try:
        memory = cupy.cuda.PinnedMemory(size)  # not from CuPy's pool, which would keep it
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise MethodUnavailableError(
            f"{size:,} bytes of host memory cannot be page-locked: {error}. "
            "Pass directory=, a folder, to keep the edges in a file instead."
        ) from error
    return np.ndarray(count, dtype, cupy.cuda.PinnedMemoryPointer(memory, 0))


# --- transfers ----------------------------------------------------------------------------------------------------


class _ChunkStream:
    """Copies columns from the host to the GPU, chunk by chunk, through two buffers in turn.

    Copies run on a stream of their own, kernels on the current one. Three dependencies are enforced: a kernel waits for
    the copy of its chunk; a copy waits for the kernel that last read the buffer; and where columns are in a file, the
    host waits for the copy from the staging memory before it overwrites that.

    Every other pass goes through the chunks in reverse, since the last two are still in the buffers.

    `columns` (list of lists of arrays): One array per chunk in each, in page-locked memory unless `staged`.
    `staged`: Whether the host copies chunks to page-locked memory first.
    """

    def __init__(self, columns: list[list[Array]], *, staged: bool) -> None:
        self.columns = columns
        self._chunks = list(zip(*columns, strict=True))
        self._order = range(len(self._chunks))
        self.bytes_copied = 0
        self._copies = cupy.cuda.Stream(non_blocking=True)
        sizes: list[tuple[int, DTypeLike]] = [
            (max(array.size for array in column), column[0].dtype) for column in columns
        ]
        self._buffers = [_Buffer(sizes, staged) for _ in self._order[:2]]
        # Buffers must outlive copies of a pass that was interrupted.
        weakref.finalize(self, self._copies.synchronize)

    def __iter__(self) -> Iterator[tuple[int, list[Array]]]:
        """Yield the number and the device arrays of each chunk; the caller launches its kernels before the next one."""
        kernels = cupy.cuda.get_current_stream()
        order, self._order = self._order, self._order[::-1]
        for chunk in order:
            buffer = self._buffers[chunk % 2]
            if buffer.chunk != chunk:
                self._copy(chunk, buffer)
            kernels.wait_event(buffer.copied)
            try:
                yield chunk, buffer.columns
            finally:
                buffer.read.record(kernels)

    def _copy(self, chunk: int, buffer: _Buffer) -> None:
        buffer.chunk = None  # invalid until the copy is enqueued
        parts = self._chunks[chunk]
        if buffer.staging:
            buffer.copied.synchronize()
            for place, source in zip(buffer.staging, parts, strict=True):
                place[: source.size] = source
            parts = tuple(place[: source.size] for place, source in zip(buffer.staging, parts, strict=True))
        self._copies.wait_event(buffer.read)
        for target, source in zip(buffer.columns, parts, strict=True):
            cupy.cuda.runtime.memcpyAsync(
                target.data.ptr, source.ctypes.data, source.nbytes, cupy.cuda.runtime.memcpyHostToDevice,
                self._copies.ptr,
            )  # fmt: skip
            self.bytes_copied += source.nbytes
        buffer.copied.record(self._copies)
        buffer.chunk = chunk


class _Buffer:
    """Device buffer for a chunk, and page-locked staging memory where that is needed.

    `chunk` (int or None): Number of the chunk that is in the buffer, or being copied.
    `copied`, `read` (events): End of the last copy to the buffer, and of the last kernel that read it.
    """

    def __init__(self, sizes: list[tuple[int, DTypeLike]], staged: bool) -> None:
        self.columns = [cupy.empty(size, dtype) for size, dtype in sizes]
        self.staging = [page_locked(size, dtype) for size, dtype in sizes] if staged else []
        self.chunk: int | None = None
        self.copied = cupy.cuda.Event(block=True, disable_timing=True)
        self.read = cupy.cuda.Event(disable_timing=True)
        # Earlier kernels on the current stream may still use memory that the pool has reassigned.
        self.read.record(cupy.cuda.get_current_stream())


# --- memory -------------------------------------------------------------------------------------------------------


def chunk_bytes_for(problem: Problem) -> int:
    """Return the chunk size such that two buffers fit in GPU memory beside vectors and the table of pieces."""
    given = 2 * (problem.personalization is not None) + (problem.dangling is not None)
    beside = footprint(memory._replace(chunks=0), Counts.of(problem.adjacency)).device.peak
    taken = beside + 8 * (given + 1.5) * problem.adjacency.n  # float64 follows float32
    return min(CHUNK_BYTES, max(LEAST_BYTES, int(runtime.available_bytes() - taken) // 2))
