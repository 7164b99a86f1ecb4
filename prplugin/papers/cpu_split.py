"""First N in-edges on the GPU, the others on the CPU, concurrently (Kumar 2012).

Design 2 of Kumar, Sondhi and Mittal for CUDA. The head of a vertex is its first N in-edges, its tail the others. One
iteration:

    GPU   gather the contributions that tails read | sum the heads ............................ | add tails to heads
    copy                                           | down |                            | up |
    host                                                  | sum the tails .............|

The copies run on a stream of their own, so that neither they nor the host wait for the heads.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from prplugin.cpu import library
from prplugin.errors import InvalidOptionError
from prplugin.gpu import cupy
from prplugin.methods.base import Adjacency, Floats, Integers, Machine, Problem, Size
from prplugin.methods.engines import gpu_pull
from prplugin.options import validate_bool, validate_int
from prplugin.papers._host_rows import CHUNK, HostPull, Recorder, unrecorded
from prplugin.papers._rows import RowsPull, best_seconds
from prplugin.types.arrays import namespace

logger = logging.getLogger(__name__)

name = "cpu-split"
runs_on = "gpu"
nondeterministic = True  # with ``split="auto"`` N depends on timings, and the last bits of a sum depend on N
N: TypeAlias = int | Literal["all"]  # most in-edges per vertex that the GPU sums

Split: TypeAlias = tuple[N, ...]  # by block of vertices

MOST_BLOCKS = 1 << 16  # most blocks for which "auto" times a list of N

BLOCK_THREADS = 64  # per block of the heads, so that few blocks wait for a long row: docs/cpu-split.md
FINALISTS = 3  # number of splits that "auto" times twice more
NOISE = 0.05  # fraction by which a split must be faster than "all" to be chosen by "auto"

memory = gpu_pull.MEMORY._replace(
    vertex=replace(gpu_pull.MEMORY.vertex, index=1, offset=2),  # begins, ends and indices of heads
    preparing_vertex=Size(64, index=1, offset=2),  # vertices sorted by in-degree
    preparing_bytes=24 * CHUNK,  # copies of tails to the host for timing
)


def unavailable_reason(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Return why GPU or CPU cannot sum rows, or None."""
    return gpu_pull.unavailable_reason(memory, adjacency, machine) or library.unavailable_reason()


# Fitted to benchmarks/results/kernels.md; the longest head dominates.
cost = gpu_pull.cost_of(68e-6, edge=3.3e-11, longest=2.2e-8)


def prepare(
    problem: Problem,
    machine: Machine,
    *,
    split: N | list[N] | Literal["auto"] = "auto",
    threads: int | None = None,
    block_threads: int = BLOCK_THREADS,
    by_degree: bool = True,
) -> SplitStep:
    """Sort vertices by in-degree, and split their in-edges into heads and tails.

    Parameters
    ----------
    split : int, "all", list of these, or "auto"
        N: the GPU sums the first N in-edges of each vertex, the host the others. 0 leaves all edges to the host, "all"
        none. A list partitions the vertices, in the order of `by_degree`, into equal blocks with one N each. "auto"
        times a few iterations with several N, including "all", and, of sorted vertices, with lists of another N for
        the longest rows. It takes the fastest, or "all" unless the fastest is clearly faster.
    threads : int, optional
        Number of host threads; all that this process may use if not given. The bits are the same for any number.
    block_threads : int, default 64
        Threads per block on the GPU, 1024 at most.
    by_degree : bool, default True
        Whether the GPU's threads take the vertices by descending in-degree; False: in the order of the graph, as the
        paper.
    """
    validate_bool("by_degree", by_degree)
    chosen = split_option(split)
    threads = machine.threads if threads is None else validate_int("threads", threads)
    adjacency = problem.adjacency.on("device")
    layout = gpu_pull.csc_layout(adjacency)
    seconds = None
    if chosen is None:
        seconds = _timed(layout, adjacency.n, adjacency.largest_in_degree, threads, block_threads, by_degree)
        chosen = list(choose(seconds))
        result = "everything on the GPU (split='all')" if chosen == ["all"] else f"split={split_text(chosen)}"
        each = ", ".join(f"{split_text(split)} {taken * 1e3:.3g}" for split, taken in seconds.items())
        message = "cpu-split: %s for %d vertices and %d edges; ms per iteration by N: %s"
        logger.info(message, result, adjacency.n, adjacency.m, each)
    pull = SplitPull(layout, adjacency.n, chosen, threads, block_threads, by_degree=by_degree)
    return SplitStep(problem, pull, chosen, seconds)


def split_option(split: object) -> list[N] | None:
    """Validate the option; return the N of each block of vertices, or None for "auto"."""
    if isinstance(split, str) and split == "auto":
        return None
    blocks: list[Any] = list(split) if isinstance(split, (list, tuple)) else [split]
    with suppress(InvalidOptionError):
        if blocks:
            return [
                "all" if isinstance(block, str) and block == "all" else validate_int("split", block, least=0)
                for block in blocks
            ]
    raise InvalidOptionError(
        "split must be 'auto', 'all', a whole number of at least 0, or a list of such numbers and 'all', "
        f"not {split!r}."
    )


# --- choosing N ---------------------------------------------------------------------------------------------------


def _timed(
    layout: gpu_pull.Layout, n: int, longest: int, threads: int, block_threads: int, by_degree: bool
) -> dict[Split, float]:
    """Time iterations on this graph, with one split in memory at a time."""
    contributions, row_sums = cupy.full(n, 1 / n, np.float32), cupy.empty(n)

    def seconds(split: Split) -> float:
        pull = SplitPull(layout, n, list(split), threads, block_threads, by_degree=by_degree)
        return best_seconds(lambda: pull(contributions, row_sums), 15, statistics.median)

    if not by_degree:  # the longest rows are in no block of their own
        return search(seconds, longest)
    return search(seconds, longest, lambda limit: 2 * n // max(1, int((layout.ends - layout.begins > limit).sum())))


def search(
    seconds: Callable[[Split], float], longest: int, blocks: Callable[[int], int] = lambda limit: 1
) -> dict[Split, float]:
    """Return the seconds of each split that is worth timing; `longest` is the largest in-degree.

    As N decreases, the GPU takes less time and the host more. The search starts with "all", then goes through the
    powers of 4 down to 0 until two in a row are slower than the best so far. Half and twice the best N follow, then 0.7
    and 1.4 times, 0.84 and 1.2 times, and last lists with half and twice the N for the longer half of the rows beyond
    N: the first of `blocks(N)` blocks. The times of host threads vary, and the least of many is too small: the fastest
    splits are timed twice more, and get the median.
    """
    found: dict[Split, float] = {}

    def time_once(*split: N) -> None:
        if split not in found and (isinstance(split[0], str) or split[0] < longest):
            found[split] = seconds(split)

    def best() -> N:
        return min(found, key=found.__getitem__)[0]

    time_once("all")
    slower = 0
    for n in [*(4**k for k in range(longest.bit_length(), -1, -1)), 0]:
        if n < longest and slower < 2:
            time_once(n)
            slower = 0 if best() == n else slower + 1
    for factor in (2, 2**0.5, 2**0.25):
        if (near := best()) != "all":
            time_once(int(near / factor))
            time_once(int(near * factor))
    near = best()
    if near != "all" and near > 0 and 1 < (count := blocks(near)) <= MOST_BLOCKS:
        for first in (near // 2, 2 * near):
            time_once(first, *(near,) * (count - 1))
    confirmed: set[Split] = set()
    while rest := [split for split in sorted(found, key=found.__getitem__)[:FINALISTS] if split not in confirmed]:
        fastest = rest[0]
        found[fastest] = statistics.median((found[fastest], seconds(fastest), seconds(fastest)))
        confirmed.add(fastest)
    return found


def choose(seconds: dict[Split, float]) -> Split:
    """Return the fastest split, or "all" unless the fastest is faster by more than timings vary."""
    best = min(seconds, key=seconds.__getitem__)
    return best if seconds[best] < (1 - NOISE) * seconds[("all",)] else ("all",)


def split_text(split: Sequence[N]) -> str:
    """Format the distinct N of a split."""
    return "/".join(dict.fromkeys(map(str, split)))


# --- the step -----------------------------------------------------------------------------------------------------


class SplitStep(gpu_pull.DeviceStep):
    """A step whose row sums are computed partly on the host: `split` by block of vertices, timed in `seconds`."""

    def __init__(self, problem: Problem, pull: SplitPull, split: list[N], seconds: dict[Split, float] | None) -> None:
        super().__init__(problem, pull)
        self.pull, self.split, self.seconds = pull, split, seconds


class SplitPull:
    """Sums the heads of rows on the GPU while the host sums their tails."""

    def __init__(
        self, layout: gpu_pull.Layout, n: int, split: list[N], threads: int, block_threads: int = BLOCK_THREADS,
        *, by_degree: bool = True,
    ) -> None:  # fmt: skip
        self.span: Recorder = unrecorded
        xp = namespace(layout.begins)
        lengths = layout.ends - layout.begins
        order = xp.argsort(-lengths, kind="stable") if by_degree else xp.arange(lengths.size)
        rows = order.astype(layout.sources.dtype)
        begins, ends = layout.begins[rows], layout.ends[rows]
        cuts = begins + head_lengths(ends - begins, split)
        long = xp.flatnonzero(cuts < ends)
        self._heads = RowsPull(layout._replace(rows=rows, begins=begins, ends=cuts), "node", threads=block_threads)
        self.rounding_depth = self._heads.rounding_depth + bool(long.size)  # head and tail are added
        self.tails: HostPull | None = None
        if long.size:
            tails = layout._replace(rows=rows[long], begins=cuts[long], ends=ends[long])
            self.tails = HostPull(tails, n, threads)

    def __call__(self, contributions: Floats, row_sums: Floats) -> None:
        # The heads are launched after the gather, on which the tails depend, and before the host waits for anything.
        if self.tails is not None:
            self.tails.enqueue_gather(contributions, self.span)
        with self.span("heads", "GPU", cupy.cuda.get_current_stream()):
            self._heads(contributions, row_sums)
        if self.tails is not None:
            self.tails.finish_into(row_sums, self.span)


def head_lengths(degrees: Integers, split: list[N]) -> Integers:
    """Return the number of in-edges of each row that the GPU sums.

    Rows, in any order, are partitioned into equal blocks, one for each N.
    """
    xp = namespace(degrees)
    longest = int(degrees.max())
    limits = xp.asarray([longest if block == "all" else min(block, longest) for block in split], degrees.dtype)
    block = xp.arange(degrees.size) * len(split) // degrees.size
    return xp.minimum(degrees, limits[block])
