"""How `cpu-split` chooses N: what GPU and processor can do, as measured, and what each N gives them to do."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from prplugin.errors import counted
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.methods.papers._heads import Heads, N
from prplugin.methods.papers._split_kernels import FILE, WARP, launch, types
from prplugin.methods.papers._tails import TailSums, cut_tails
from prplugin.methods.papers._timing import best_seconds, gpu_seconds
from prplugin.types.arrays import moved, namespace
from prplugin.types.edges import Integers

__all__ = ["Rates", "Work", "best_work", "candidates", "measured_split", "works"]

logger = logging.getLogger("prplugin.methods.papers.cpu_split")  # what users know: this is a part of it

PROBE = 16
"""N at which the GPU's rate is measured."""

TURNS = 4096
"""Turns of a loop after which a thread's rate is known, at most."""

SAMPLE = 1 << 20
"""Edges over which the processor's rate is measured, at most; and bytes of a copy."""


class Work(NamedTuple):
    """What one N gives GPU and processor to do."""

    n: int
    head_edges: int
    tail_vertices: int
    tail_edges: int
    tail_sources: int


class Rates(NamedTuple):
    """Seconds on this machine, for this graph.

    Attributes
    ----------
    edge : float
        Of the GPU, an edge, with all its threads at work.
    turn : float
        Of one GPU thread, a turn of its loop.
    tail : float
        Of the host, an edge, with all its threads at work.
    byte : float
        Of a copy, a byte.
    trip : float
        Of two copies of almost nothing, and of the host with almost nothing to do.
    """

    edge: float
    turn: float
    tail: float
    byte: float
    trip: float

    def times(self, work: Work) -> tuple[float, float]:
        """Estimate the seconds of GPU and host, which run at once."""
        gpu = self.edge * work.head_edges + self.turn * work.n
        if not work.tail_edges:
            return gpu, 0.0
        moved_bytes = 8 * (work.tail_sources + work.tail_vertices)
        return gpu, self.trip + self.byte * moved_bytes + self.tail * work.tail_edges


def candidates(longest: int) -> list[int]:
    """Give the N to look at: 0, all, and the powers of two between with their neighbours."""
    powers = [1 << k for k in range(longest.bit_length())]
    near = {power + shift for power in powers for shift in (-1, 0, 1)}
    return sorted({0, longest} | {n for n in near if n < longest})


def works(degrees: Integers, reach: Integers, splits: list[int]) -> list[Work]:
    """Count what each N leaves to the processor; `reach` is 1 + the greatest place of each source within a row."""
    xp = namespace(degrees)
    vertices = degrees.size
    rising, reach = xp.sort(degrees.astype(np.int64)), xp.sort(reach)
    before = xp.zeros(vertices + 1, np.int64)
    xp.cumsum(rising, out=before[1:])
    limits = xp.asarray(splits, np.int64)
    short = xp.searchsorted(rising, limits, side="right")
    long = vertices - short
    edges = before[-1] - before[short] - limits * long
    sources = vertices - xp.searchsorted(reach, limits, side="right")
    table = moved(xp.stack([limits, before[-1] - edges, long, edges, sources]), "host")
    return [Work(*column) for column in table.T.tolist()]


def best_work(choices: list[Work], rates: Rates) -> Work:
    """Take the N with the least time of the slower side; of equal ones, what leaves most to the GPU."""
    return min(choices, key=lambda work: (max(rates.times(work)), -work.n))


def measured_split(
    adjacency: Adjacency, order: Integers, degrees: Integers, threads: int
) -> tuple[N, dict[N, tuple[float, float]]]:
    """Choose N by what GPU and processor can do; log why."""
    longest = int(degrees[0])
    if longest == 0:
        return "all", {}
    choices = works(degrees, _reach(adjacency), candidates(longest))
    rates = measured_rates(adjacency, order, degrees, threads)
    best = best_work(choices, rates)
    estimates: dict[N, tuple[float, float]] = {
        work.n if work.tail_edges else "all": rates.times(work) for work in choices
    }
    logger.info(
        "cpu-split: %s for %d vertices and %d edges: GPU %.3g ns an edge and %.3g ns a turn, "
        "host %.3g ns an edge with %s, %.3g ns a byte and %.3g us a trip; GPU and host ms an iteration by N: %s",
        f"split={best.n}" if best.tail_edges else "everything on the GPU (split='all')",
        adjacency.n, adjacency.m, rates.edge * 1e9, rates.turn * 1e9, rates.tail * 1e9, counted(threads, "thread"),
        rates.byte * 1e9, rates.trip * 1e6,
        ", ".join(f"{n} {gpu * 1e3:.3g} {host * 1e3:.3g}" for n, (gpu, host) in estimates.items()),
    )  # fmt: skip
    return best.n if best.tail_edges else "all", estimates


def _reach(adjacency: Adjacency) -> Integers:
    """Give 1 + the greatest place of each source within a row."""
    import cupy

    offsets, sources, _ = adjacency.csc
    reach: Integers = cupy.zeros(adjacency.n, np.int64)
    find_reach = runtime.kernel(FILE, "find_reach", **types(adjacency), real_t="double")
    launch(find_reach, adjacency.n, offsets, sources, reach, threads_each=WARP)
    return reach


def measured_rates(adjacency: Adjacency, order: Integers, degrees: Integers, threads: int) -> Rates:
    """Measure GPU and processor on parts of the graph: some milliseconds."""
    edge, turn = _rates_of_gpu(adjacency, order, degrees)
    tail, idle = _rates_of_host(adjacency, order, degrees, threads)
    byte, trip = _rates_of_copies()
    return Rates(edge, turn, tail, byte, trip + idle)


def _rates_of_gpu(adjacency: Adjacency, order: Integers, degrees: Integers) -> tuple[float, float]:
    """Measure an edge of heads of all rows, less the turns of a thread; and a turn, of one along the longest row."""
    import cupy

    contributions, pulled = cupy.full(adjacency.n, 1 / adjacency.n), cupy.empty(adjacency.n)

    def seconds(heads: Heads) -> float:
        heads(contributions, pulled)  # compiles, and warms the caches
        return gpu_seconds(lambda: heads(contributions, pulled), times=5)

    turns = min(int(degrees[0]), TURNS)
    turn = seconds(Heads(adjacency, order[:1], cupy.minimum(degrees[:1], TURNS))) / turns
    counts = cupy.minimum(degrees, PROBE)
    alone = turn * min(turns, PROBE)
    return max(seconds(Heads(adjacency, order, counts)) - alone, 0.0) / int(counts.sum()), turn


def _rates_of_host(adjacency: Adjacency, order: Integers, degrees: Integers, threads: int) -> tuple[float, float]:
    """Measure an edge, of the longest rows, where the tails are; and what next to nothing takes, which is one edge."""
    import cupy

    taken = cupy.minimum(cupy.cumsum(degrees, dtype=np.int64), SAMPLE)
    lengths = taken.copy()
    lengths[1:] -= taken[:-1]

    def seconds(lengths: Integers) -> float:
        tails = cut_tails(adjacency, order[: lengths.size], lengths)
        sum_tails = TailSums(tails.bounds, tails.places, threads)
        values, sums = np.ones(tails.sources.size), np.empty(tails.rows.size)
        return best_seconds(lambda: sum_tails(values, tails.shares, sums))

    idle = seconds(cupy.ones(1, np.int64))
    return max(seconds(lengths[: cupy.count_nonzero(lengths).item()]) - idle, 0.0) / int(taken[-1]), idle


def _rates_of_copies() -> tuple[float, float]:
    """Measure a byte, and next to nothing, both ways."""
    import cupy
    import cupyx

    stream = cupy.cuda.Stream(non_blocking=True)
    device, host = cupy.empty(SAMPLE, np.uint8), cupyx.empty_pinned(SAMPLE, np.uint8)
    cudart = cupy.cuda.runtime

    def trip(size: int) -> None:
        down, up = cudart.memcpyDeviceToHost, cudart.memcpyHostToDevice
        cudart.memcpyAsync(host.ctypes.data, device.data.ptr, size, down, stream.ptr)
        stream.synchronize()
        cudart.memcpyAsync(device.data.ptr, host.ctypes.data, size, up, stream.ptr)
        stream.synchronize()

    short, far = best_seconds(lambda: trip(8)), best_seconds(lambda: trip(SAMPLE))
    return max(far - short, 0.0) / (2 * SAMPLE), short
