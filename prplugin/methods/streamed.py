"""Edges stream from host memory, or from disk, through two buffers on the GPU; `chunk_bytes=`, `directory=`."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from prplugin import cuda
from prplugin.errors import InvalidOptionError, MethodUnavailableError
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.edges import Floats, Integers, index_dtype, offset_dtype
from prplugin.graph.footprint import NOTHING, Counts, Footprint, brought, csc, out_weight
from prplugin.machine import Machine
from prplugin.methods import Step, _device, _pieces
from prplugin.options import whole
from prplugin.problem import Problem

name = "streamed"
runs_on = "gpu"

CHUNK_BYTES = 64 * 2**20
"""Of one buffer. Copies of this size reach the speed of the bus, and its latency is lost in them."""

THREADS = 256

PART = 1 << 20
"""Shares computed at a time."""


REMEDY = "Use a GPU with more, or a smaller chunk_bytes."
"""What to do where even this has no room."""


def unfit(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Need a GPU, and room for vectors and two chunks of edges."""
    return _device.unfit(adjacency, machine, footprint, REMEDY)


def footprint(graph: Counts, machine: Machine) -> Footprint:
    """Count the bytes of two chunks at most, of the runs and pieces, and of the vectors; edges stay on the host."""
    here, so_far = csc(*brought(graph, "host", NOTHING))
    here, so_far = out_weight(here, so_far)
    n, m = here.n, here.m
    runs = n * (here.index + offset_dtype(m).itemsize)
    so_far = so_far.then("host", m * _edge_bytes(here) + runs, 8 * n)
    chunks = min(2 * CHUNK_BYTES, m * _edge_bytes(here))
    so_far = so_far.then("device", chunks + runs + _pieces.BYTES * (m // _pieces.SIZE + 1))
    return _device.step_footprint(here, so_far)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate a ranking (benchmarks/results/kernels.md) with what they copy, and the laying out on the host."""
    copied = max(0, adjacency.m * _edge_bytes(adjacency) - 2 * CHUNK_BYTES)
    return 5e-8 * adjacency.m + _device.ITERATIONS * (85e-6 + 1.2e-11 * adjacency.m + copied / 45e9)


def prepare(
    problem: Problem,
    machine: Machine,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    directory: str | os.PathLike[str] | None = None,
) -> Step:
    """Sort the edges by target on the host, and lay them out for copying.

    Parameters
    ----------
    chunk_bytes : int, default 64 MiB
        GPU memory for one of the two buffers that edges pass through; one edge is taken at least. Any number gives
        ranks of the same bits, as long as a buffer holds 2048 edges.
    directory : path, optional
        A folder for a file of the edges, through which they are read again in every iteration; page-locked memory of
        the host, as large as the edges, if not given. The file has no name, and is gone when the ranks are, or the
        process.
    """
    problem = problem.on("host")
    pull = StreamedPull(problem.adjacency, chunk_bytes=chunk_bytes, directory=directory)
    return _device.DeviceStep(problem, pull)


class StreamedPull:
    """Sums the in-edges of every row, a chunk of edges at a time."""

    # A term goes through 64 additions and a warp's, and a partial sum through one for each 64 edges or more of its row
    # and a block's, all compensated: fewer than the 2**26 that this holds for, up to 2**32 edges in pieces of one.
    chain = _device.ROW_CHAIN

    def __init__(
        self,
        adjacency: Adjacency,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        chunk_bytes = whole("chunk_bytes", chunk_bytes)
        self._directory = _folder(directory)
        import cupy  # there: `unfit` has looked

        offsets, sources, self._weights = adjacency.csc
        self._out_weight = adjacency.out_weight
        size, self._pieces_a_chunk = _shape(chunk_bytes, sources.itemsize + (8 if adjacency.weighted else 0))
        self._edges_a_chunk = size * self._pieces_a_chunk
        offsets = offsets.astype(offset_dtype(adjacency.m), copy=False)
        self._pieces = _pieces.cut(offsets, size, sources.dtype).on_device()
        self._partials = cupy.empty((self._pieces.count, 4))
        self._sources = _held([sources], sources.size, sources.dtype, self._directory)
        self._conveyor: _Conveyor | None = None
        self._shares_dtype: Any = None

    def __call__(self, contributions: Floats, pulled: Floats) -> None:
        pulled.fill(0.0)  # rows without edges are in no piece
        pieces = self._pieces
        if not pieces.count:
            return
        size, rows, starts, heads = pieces.size, pieces.rows, pieces.starts, pieces.heads
        types: dict[str, str | int] = {
            "index_t": cuda.ctype(rows.dtype),
            "offset_t": cuda.ctype(starts.dtype),
            "real_t": cuda.ctype(contributions.dtype),
            "WEIGHTED": int(self._weights is not None),
        }
        sum_pieces = cuda.kernel("methods/streamed.cu", "sum_streamed", **types)
        for chunk, (sources, *shares) in self._conveyor_for(contributions.dtype):
            first = chunk * self._pieces_a_chunk
            sum_pieces(
                (min(self._pieces_a_chunk, pieces.count - first),),
                (THREADS,),
                (
                    first, self._sources.size, size, rows, starts, heads, sources, shares[0] if shares else None,
                    contributions, pulled, self._partials,
                ),
                shared_mem=8 * size,
            )  # fmt: skip
        collect = cuda.kernel("methods/streamed.cu", "collect", **types)
        collect((pieces.count,), (_pieces.COLLECTORS,), (size, rows, starts, heads, self._partials, pulled))

    def _conveyor_for(self, dtype: Any) -> _Conveyor:
        """Give what brings the edges, with shares of this type; one type is held at a time."""
        if self._conveyor is None or (self._weights is not None and self._shares_dtype != dtype):
            self._conveyor = None  # before the next is allocated
            columns = [self._sources]
            if self._weights is not None:
                parts = _shares(self._weights, self._sources, self._out_weight, dtype)
                columns.append(_held(parts, self._sources.size, dtype, self._directory))
            self._conveyor = _Conveyor(columns, self._edges_a_chunk, staged=self._directory is not None)
            self._shares_dtype = dtype
        return self._conveyor


# --- edges on the host --------------------------------------------------------------------------------------------


def _shape(chunk_bytes: int, edge_bytes: int) -> tuple[int, int]:
    """Give the edges of a piece, and the pieces of a chunk of so many bytes at most."""
    edges = max(1, chunk_bytes // edge_bytes)
    size = min(edges, _pieces.SIZE)
    return size, edges // size


def _shares(weights: Floats, sources: Integers, out_weight: Floats, dtype: Any) -> Iterator[Floats]:
    """Give the edges' shares w / W, some at a time: 0 where W is 0, which makes the source dangling."""
    for begin in range(0, weights.size, PART):
        part = slice(begin, begin + PART)
        whole = out_weight[sources[part]]
        exact = np.divide(weights[part], whole, out=np.zeros(whole.size), where=whole > 0)
        yield exact.astype(dtype, copy=False)


def _folder(directory: str | os.PathLike[str] | None) -> Path | None:
    if directory is None:
        return None
    if not isinstance(directory, (str, os.PathLike)) or not Path(directory).is_dir():
        raise InvalidOptionError(f"directory must be a folder that exists, or None, not {directory!r}.")
    return Path(directory)


def _held(parts: Iterable[Any], count: int, dtype: Any, directory: Path | None) -> Any:
    """Join parts of an array in page-locked memory, from which copies run beside kernels, or in a file."""
    if not count:
        return np.empty(0, dtype)
    if directory is None:
        held = _page_locked(count, dtype)
        begin = 0
        for part in parts:
            held[begin : begin + part.size] = part
            begin += part.size
        return held
    try:
        # Without a name: however the process ends, nothing is left behind.
        with tempfile.TemporaryFile(dir=directory) as file:
            for part in parts:
                file.write(np.ascontiguousarray(part).data)
            file.flush()
            return np.memmap(file, dtype, "r", shape=(count,))  # keeps the file as long as it lives itself
    except OSError as error:
        raise MethodUnavailableError(f"the edges cannot be written to {str(directory)!r}: {error}.") from error


def _page_locked(count: int, dtype: Any) -> Any:
    """Allocate memory of the host that the GPU copies from by itself; given back when the array goes."""
    import cupy

    size = count * np.dtype(dtype).itemsize
    try:
        memory = cupy.cuda.PinnedMemory(size)  # not of CuPy's pool, which would keep it
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise MethodUnavailableError(
            f"{size:,} bytes of host memory cannot be page-locked: {error}. "
            "Give directory=, a folder for a file to take their place."
        ) from error
    return np.ndarray(count, dtype, cupy.cuda.PinnedMemoryPointer(memory, 0))


# --- on the way ---------------------------------------------------------------------------------------------------


class _Conveyor:
    """Brings columns of the host to the GPU, chunk after chunk, through two buffers in turn.

    Copies run on a stream of their own, and kernels on the current one. Three things wait for one another: a kernel for
    the copy of its chunk, a copy for the kernel that read the buffer before, and, where columns lie in a file, the host
    for the copy from the staging memory that it is about to overwrite.

    Every other time the chunks come in falling order: the two that came last are still there.

    Parameters
    ----------
    columns : list of arrays of the same length
        In page-locked memory, or `staged`.
    edges : int
        Length of a chunk; the last may be shorter.
    staged : bool
        Whether the host copies chunks to page-locked memory first.
    """

    def __init__(self, columns: list[Any], edges: int, *, staged: bool) -> None:
        import cupy

        self._columns = columns
        self._length = columns[0].size
        self._edges = min(edges, self._length)
        self._order = range(-(-self._length // self._edges))
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._buffers = [_Buffer(columns, self._edges, staged) for _ in self._order[:2]]
        # No memory may go while a copy, of a pass that was interrupted, is under way.
        weakref.finalize(self, self._copies.synchronize)

    def __iter__(self) -> Iterator[tuple[int, list[Any]]]:
        """Give the number of each chunk and its columns on the GPU, for kernels launched before the next is taken."""
        import cupy

        kernels = cupy.cuda.get_current_stream()
        order, self._order = self._order, self._order[::-1]
        for chunk in order:
            buffer = self._buffers[chunk % 2]
            if buffer.chunk != chunk:
                self._bring(chunk, buffer)
            kernels.wait_event(buffer.copied)
            try:
                yield chunk, buffer.columns
            finally:
                buffer.read.record(kernels)

    def _bring(self, chunk: int, buffer: _Buffer) -> None:
        import cupy

        part = slice(chunk * self._edges, min((chunk + 1) * self._edges, self._length))
        buffer.chunk = None  # until the copy is on its way
        parts = [column[part] for column in self._columns]
        if buffer.staging:
            buffer.copied.synchronize()
            for place, source in zip(buffer.staging, parts, strict=True):
                place[: source.size] = source
            parts = [place[: source.size] for place, source in zip(buffer.staging, parts, strict=True)]
        self._copies.wait_event(buffer.read)
        for target, source in zip(buffer.columns, parts, strict=True):
            cupy.cuda.runtime.memcpyAsync(
                target.data.ptr, source.ctypes.data, source.nbytes, cupy.cuda.runtime.memcpyHostToDevice,
                self._copies.ptr,
            )  # fmt: skip
        buffer.copied.record(self._copies)
        buffer.chunk = chunk


class _Buffer:
    """Room for a chunk on the GPU, and page-locked room before it where that is needed.

    Attributes
    ----------
    chunk : int or None
        Which one is here, or on its way.
    copied, read : events
        The end of the last copy to it, and of the last kernel that read it.
    """

    def __init__(self, columns: list[Any], edges: int, staged: bool) -> None:
        import cupy

        self.columns = [cupy.empty(edges, column.dtype) for column in columns]
        self.staging = [_page_locked(edges, column.dtype) for column in columns] if staged else []
        self.chunk: int | None = None
        self.copied = cupy.cuda.Event(block=True, disable_timing=True)
        self.read = cupy.cuda.Event(disable_timing=True)
        # A kernel launched earlier may still work on memory that was its own until now.
        self.read.record(cupy.cuda.get_current_stream())


def _edge_bytes(graph: Adjacency | Counts) -> int:
    return index_dtype(graph.n).itemsize + (8 if graph.weighted else 0)
