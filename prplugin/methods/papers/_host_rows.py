"""Row sums by host threads while the GPU sums other rows: `cpu-split`, and `segmented` with ``cpu=True``."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prplugin.cpu.crew import Crew, equal_work
from prplugin.gpu import runtime
from prplugin.methods.engines.gpu_pull import Layout
from prplugin.types.arrays import namespace, to_host
from prplugin.types.edges import Floats, Integers

__all__ = ["HostPull", "HostRows", "Recorder", "ThreadedSums", "host_rows", "unrecorded"]

FILE = "methods/papers/cpu_split.cu"
THREADS = 256

CHUNK = 1 << 18
"""Edges that are brought to the host at a time, which bounds the memory that the GPU needs for it."""

Recorder: TypeAlias = Callable[[str, str, Any], AbstractContextManager[None]]
"""Records what is done within: its name, its lane, and the stream it is done on (None: the calling thread)."""


def unrecorded(what: str, lane: str, stream: Any) -> AbstractContextManager[None]:
    """Record nothing."""
    return nullcontext()


class HostRows(NamedTuple):
    """Rows that the host sums, longest first: row k is ``places[bounds[k]:bounds[k + 1]]``.

    `rows`, `sources` (arrays of positions in the result, on the side of the graph): The rows, and the distinct sources
    that they read.
    `bounds`, `places`, `weights` (arrays on the host): `places` are positions in `sources`; `weights` are normalized,
    in float64, or None.
    """

    rows: Integers
    sources: Integers
    bounds: Integers
    places: Integers
    weights: Floats | None


def host_rows(runs: Layout, n: int) -> HostRows:
    """Copy runs of a graph of n vertices to the host."""
    assert runs.rows is not None
    xp = namespace(runs.begins)
    order = xp.argsort(runs.begins - runs.ends, kind="stable")  # longest first
    rows, begins = runs.rows[order], runs.begins[order]
    bounds = xp.zeros(rows.size + 1, np.int64)
    xp.cumsum(runs.ends[order] - begins, dtype=np.int64, out=bounds[1:])
    shift = begins - bounds[:-1]
    del order, begins  # makes room

    def edges(first: int) -> Integers:
        """Return where the edges from the first-th on, of all rows put end to end, are in the layout."""
        chunk: Integers = xp.arange(first, min(first + CHUNK, int(bounds[-1])))
        chunk += shift[xp.searchsorted(bounds[1:], chunk, side="right")]
        return chunk

    firsts = range(0, max(1, int(bounds[-1])), CHUNK)
    read = xp.zeros(n, np.bool_)
    for first in firsts:
        read[runs.sources[edges(first)]] = True
    place = xp.cumsum(read, dtype=runs.sources.dtype)
    place -= 1
    places, weights = [], []
    for first in firsts:
        chunk = edges(first)
        places.append(to_host(place[runs.sources[chunk]]))
        weights.append(to_host(runs.normalized_weights.take(chunk).of(np.float64)))
    return HostRows(
        rows,
        xp.flatnonzero(read).astype(runs.sources.dtype),
        to_host(bounds),
        np.concatenate(places),
        None if weights[0] is None else np.concatenate(weights),
    )


class ThreadedSums:
    """Sums rows in several threads, which take pieces of about equal work as they come: the bits are those of one."""

    def __init__(self, bounds: Integers, places: Integers, threads: int) -> None:
        from prplugin.cpu import tail_kernels as kernels  # imports Numba

        self._kernels, self._places = kernels, places
        lengths = np.diff(bounds)
        long = int(np.count_nonzero(lengths > kernels.RUN))  # they come first
        runs = -(-lengths[:long] // kernels.RUN)
        self._runs_of = np.append(0, np.cumsum(runs))
        cuts = [np.arange(bounds[row], bounds[row + 1], kernels.RUN) for row in range(long)]
        self._bounds = np.concatenate([*cuts, bounds[long:]])
        self._high, self._low = np.empty(int(runs.sum())), np.empty(int(runs.sum()))
        work = int(self._bounds[-1]) + 4 * self._bounds.size
        # Pieces shorter than a run are not worth handing to another thread.
        pieces = equal_work(self._bounds, 1, min(8 * threads, 1 + work // kernels.RUN))
        self._crew = Crew(pieces, threads)

    def __call__(self, contributions: Floats, weights: Floats | None, sums: Floats) -> None:
        """Write the sum of each row."""
        long = self._runs_of.size - 1

        def sum_piece(first: int, last: int) -> None:
            self._kernels.sum_runs(
                first, last, self._bounds, self._places, weights, contributions, self._high, self._low, sums[long:]
            )

        self._crew.work(sum_piece)
        self._kernels.join_runs(self._runs_of, self._high, self._low, sums)


class HostPull:
    """Sums rows on the host: contributions come down, sums go up, on a stream of their own.

    Four buffers are used again in every iteration, and no copy or kernel meets one that is still in use. In turn:

    - `_gathered`, written by the next gather: the copy down is over, since the host has waited for it;
    - `_contributions`, written by the next copy down: the host has summed the rows before it goes on;
    - `_sums`, written by the host: the copy up came before this copy down on the stream, and the host waited for that;
    - `_arrived`, written by the next copy up: it comes after the next gather, which comes after the addition.

    `vertices`, `edges`, `sources`: Rows, their edges, and the distinct sources of those.
    """

    def __init__(self, runs: Layout, n: int, threads: int) -> None:
        import cupy
        import cupyx

        self._rows, self._sources, bounds, places, self._exact_weights = host_rows(runs, n)
        self.vertices, self.edges, self.sources = self._rows.size, places.size, self._sources.size
        self._sum = ThreadedSums(bounds, places, threads)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._sums, self._arrived = cupyx.empty_pinned(self.vertices), cupy.empty(self.vertices)
        self._dtype: Any = None
        # No memory may go while a copy, of an iteration that was interrupted, is under way.
        weakref.finalize(self, self._stream.synchronize)

    def _hold(self, dtype: Any) -> None:
        """Make buffers, weights and kernels for contributions of this type."""
        import cupy
        import cupyx

        self._dtype = dtype
        self._gathered = cupy.empty(self.sources, dtype)
        self._contributions = cupyx.empty_pinned(max(1, self.sources), dtype)[: self.sources]
        self._weights = None if self._exact_weights is None else self._exact_weights.astype(dtype, copy=False)
        types = {"index_t": runtime.ctype(self._sources.dtype), "real_t": runtime.ctype(dtype)}
        self._gather, self._add = (runtime.kernel(FILE, name, **types) for name in ("gather", "add_sums"))

    def begin(self, contributions: Any, span: Recorder = unrecorded) -> None:
        """Have the contributions that the rows read gathered, and copied as soon as they are; return at once."""
        import cupy

        main = cupy.cuda.get_current_stream()
        if self._dtype is None or self._dtype != contributions.dtype:  # NumPy takes None for float64
            self._hold(contributions.dtype)
        with span("gather", "GPU", main):
            grid = runtime.blocks_for(self.sources, THREADS)
            self._gather((grid,), (THREADS,), (self.sources, self._sources, contributions, self._gathered))
        self._stream.wait_event(main.record())
        with span("down", "copy", self._stream):
            self._gathered.get(stream=self._stream, out=self._contributions, blocking=False)

    def add_to(self, pulled: Any, span: Recorder = unrecorded) -> None:
        """Sum the rows, once the contributions are here, and have the sums copied and added to `pulled`."""
        import cupy

        main = cupy.cuda.get_current_stream()
        self._stream.synchronize()  # the copy down
        with span("tails", "host", None):
            self._sum(self._contributions, self._weights, self._sums)
        with span("up", "copy", self._stream):
            self._arrived.set(self._sums, stream=self._stream)
        main.wait_event(self._stream.record())
        with span("add", "GPU", main):
            grid = runtime.blocks_for(self.vertices, THREADS)
            self._add((grid,), (THREADS,), (self.vertices, self._rows, self._arrived, pulled))
