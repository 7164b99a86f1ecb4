"""Row sums by host threads while the GPU sums other rows: `cpu-split`, and `segmented` with ``cpu=True``."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from prplugin.cpu import kernels
from prplugin.cpu.threads import equal_work
from prplugin.gpu import cupy, cupyx, runtime
from prplugin.methods.base import Array, Floats, Integers
from prplugin.methods.engines.gpu_pull import Layout
from prplugin.types.arrays import namespace, to_host

FILE = "papers/cpu_split.cu"
THREADS = 256
CHUNK = 1 << 18  # edges copied to the host at a time, which bounds temporary GPU memory

RUN = 1 << 14
"""Edges per run, at most: about ten microseconds of work."""

Recorder: TypeAlias = Callable[[str, str, object], AbstractContextManager[None]]
"""Records the work within a block: its name, its lane, and its stream (None: the calling thread)."""


def unrecorded(what: str, lane: str, stream: object) -> AbstractContextManager[None]:
    """Record nothing."""
    return nullcontext()


class GatheredRows(NamedTuple):
    """Rows that the host sums, longest first: row k is ``places[bounds[k]:bounds[k + 1]]``."""

    rows: Integers  # positions in the result, in the memory space of the graph
    sources: Integers  # positions of the distinct sources that they read, likewise
    bounds: Integers  # on the host, as what follows
    places: Integers  # positions in `sources`
    weights: Floats | None  # normalized weights in float64


def host_rows(runs: Layout, n: int) -> GatheredRows:
    """Copy runs of a graph of n vertices to the host."""
    assert runs.rows is not None
    xp = namespace(runs.begins)
    order = xp.argsort(runs.begins - runs.ends, kind="stable")  # longest first
    rows, begins = runs.rows[order], runs.begins[order]
    bounds = xp.zeros(rows.size + 1, np.int64)
    xp.cumsum(runs.ends[order] - begins, dtype=np.int64, out=bounds[1:])
    shift = begins - bounds[:-1]
    del order, begins  # frees their memory

    def edges(first: int) -> Integers:
        """Return the indices in the layout of up to CHUNK edges of the sorted rows, from the `first`-th on."""
        chunk: Integers = xp.arange(first, min(first + CHUNK, int(bounds[-1])))
        chunk += shift[xp.searchsorted(bounds[1:], chunk, side="right")]
        return chunk

    firsts = range(0, max(1, int(bounds[-1])), CHUNK)
    read = xp.zeros(n, np.bool_)
    for first in firsts:
        read[runs.sources[edges(first)]] = True
    place = xp.cumsum(read, dtype=runs.sources.dtype)
    place -= 1
    places: list[Integers] = []
    weights: list[Array] = []
    for first in firsts:
        chunk = edges(first)
        places.append(to_host(place[runs.sources[chunk]]))
        if (part := to_host(runs.normalized_weights.take(chunk).of(np.float64))) is not None:
            weights.append(part)
    read_sources = xp.flatnonzero(read).astype(runs.sources.dtype)
    found = np.concatenate(weights) if weights else None
    return GatheredRows(rows, read_sources, to_host(bounds), np.concatenate(places), found)


class ThreadedSums:
    """Compensated row sums by several threads, in pieces of about equal work; the bits do not depend on their number.

    Rows longer than `RUN` are split into runs that are summed separately, so that several threads share a long row: see
    run_sums.cpp.

    `bounds`: Row k has the edges ``bounds[k]:bounds[k + 1]``; longest rows first.
    `places`: Position of the contribution of each edge.
    """

    def __init__(self, bounds: Integers, places: Integers, threads: int) -> None:
        lengths = np.diff(bounds)
        self._long = int(np.count_nonzero(lengths > RUN))
        runs = -(-lengths[: self._long] // RUN)
        self._runs_of = np.append(0, np.cumsum(runs))
        cuts = [np.arange(bounds[row], bounds[row + 1], RUN) for row in range(self._long)]
        every = np.concatenate([*cuts, bounds[self._long :]])
        parts = int(self._runs_of[-1])
        self._edges = every[: parts + 1], every[parts:], places
        self._part_sums = np.empty((parts, 2))
        runs_of_work = (int(every[-1]) + 4 * every.size) // RUN
        self._pieces = equal_work(every, min(8 * threads, 1 + runs_of_work))
        # Starting a thread takes about as long as the sum of two runs.
        self._threads = min(threads, 1 + runs_of_work // 4)

    def __call__(self, contributions: Floats, weights: Floats | None, sums: Floats) -> None:
        """Write the sum of each row; weights have the type of the contributions."""
        kernels.sum_runs(
            self._pieces, *self._edges, weights, contributions, self._runs_of, self._part_sums, sums[: self._long],
            sums[self._long :], self._threads,
        )  # fmt: skip


class HostPull:
    """Sums rows on the host; contributions and sums are copied on a stream of their own.

    Four buffers are reused in every iteration. None is overwritten while it is in use:

    - `_gathered`, by the next gather: the copy to the host has ended, since the host waited for it;
    - `_contributions`, by the next copy to the host: the host has summed the rows before it continues;
    - `_sums`, by the host: the copy to the GPU precedes this copy to the host on the stream, and the host waited for
    that;
    - `_device_sums`, by the next copy to the GPU: it follows the next gather, which follows the addition.

    `vertices`, `edges`, `sources`: Number of rows, of their edges, and of the distinct sources of those.
    """

    def __init__(self, runs: Layout, n: int, threads: int) -> None:
        self._rows, self._sources, bounds, places, self._exact_weights = host_rows(runs, n)
        self.vertices, self.edges, self.sources = self._rows.size, places.size, self._sources.size
        self._sum = ThreadedSums(bounds, places, threads)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._sums, self._device_sums = cupyx.empty_pinned(self.vertices), cupy.empty(self.vertices)
        self._dtype: DTypeLike | None = None
        # Buffers must outlive copies of an iteration that was interrupted.
        weakref.finalize(self, self._stream.synchronize)

    def _allocate(self, dtype: DTypeLike) -> None:
        """Allocate buffers, weights and kernels for contributions of this type."""
        self._dtype = dtype
        self._gathered = cupy.empty(self.sources, dtype)
        self._contributions = cupyx.empty_pinned(max(1, self.sources), dtype)[: self.sources]
        self._weights = None if self._exact_weights is None else self._exact_weights.astype(dtype, copy=False)
        types = {"index_t": self._sources.dtype, "real_t": np.dtype(dtype)}
        self._gather, self._add = (runtime.kernel(FILE, name, **types) for name in ("gather", "add_sums"))

    def enqueue_gather(self, contributions: Array, span: Recorder = unrecorded) -> None:
        """Enqueue the gather of the contributions that the rows read, and their copy to the host; return at once."""
        main = cupy.cuda.get_current_stream()
        if self._dtype is None or self._dtype != contributions.dtype:  # `None == np.float64` is true in NumPy
            self._allocate(contributions.dtype)
        with span("gather", "GPU", main):
            grid = runtime.blocks_for(self.sources, THREADS)
            arrays = self._sources, contributions, self._gathered
            runtime.launch(self._gather, grid, THREADS, self.sources, *arrays)
        self._stream.wait_event(main.record())
        with span("down", "copy", self._stream):
            self._gathered.get(stream=self._stream, out=self._contributions, blocking=False)

    def finish_into(self, row_sums: Array, span: Recorder = unrecorded) -> None:
        """Sum the rows once the contributions have arrived; enqueue copy and addition of the sums to `row_sums`."""
        main = cupy.cuda.get_current_stream()
        self._stream.synchronize()  # the copy of the contributions
        with span("tails", "host", None):
            self._sum(self._contributions, self._weights, self._sums)
        with span("up", "copy", self._stream):
            self._device_sums.set(self._sums, stream=self._stream)
        main.wait_event(self._stream.record())
        with span("add", "GPU", main):
            grid = runtime.blocks_for(self.vertices, THREADS)
            runtime.launch(self._add, grid, THREADS, self.vertices, self._rows, self._device_sums, row_sums)
