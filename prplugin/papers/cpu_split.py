"""First N in-edges on the GPU, the others on the CPU, concurrently (Kumar 2012).

Design 2 of Kumar, Sondhi and Mittal for CUDA. The head of a vertex is its first N in-edges, its tail the others. One
iteration:

    GPU   gather the contributions that tails read | sum the heads ............................ | add tails to heads
    copy                                           | down |                            | up |
    host                                                  | sum the tails .............|

The copies run on a stream of their own, so that neither they nor the host wait for the heads. In the paper's form every
thread takes N turns, all ranks are copied instead of the gathered ones, and one host thread sums the tails.
"""

from __future__ import annotations

import logging
import math
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from prplugin.cpu import library
from prplugin.cpu.library import Kernel
from prplugin.errors import InvalidOptionError
from prplugin.gpu import cupy, cupyx, runtime
from prplugin.methods.base import Edges, Floats, Integers, Machine, Problem, Rate, Step
from prplugin.methods.engines import gpu_pull
from prplugin.options import validate_bool, validate_int
from prplugin.papers._forms import Form, PaperForm, PaperStep, check_form, launch_of, out_degrees
from prplugin.papers._host_rows import CHUNK, HostPull, Recorder, unrecorded
from prplugin.papers._rows import RowsPull
from prplugin.types.arrays import namespace
from prplugin.types.edges import Csc

logger = logging.getLogger(__name__)

name = "cpu-split"
runs_on = "gpu"
nondeterministic = True  # with ``split="auto"`` N depends on timings, and the last bits of a sum depend on N
N: TypeAlias = int | Literal["all"]  # most in-edges per vertex that the GPU sums
BLOCK_THREADS = 64  # per block of the heads, so that few blocks wait for a long row: docs/cpu-split.md
UNROLL = 8  # turns of the paper's loop, whose number the paper does not state: 1.6 to 1.9 times as fast on an H200

LOGGED = "cpu-split: N = %s for %d vertices and %d edges; ms per iteration by N: %s"
MOST_TIMINGS = 6  # of "auto"
SAMPLES = 9  # iterations per timing
CLOSE = 0.02  # fraction by which another N has to be expected to be faster, to be timed
NOISE = 0.05  # fraction by which a split must be faster than "all" to be chosen by "auto"
MOST_OF_HOST = 10  # times as long as the host with all edges that "all" may be expected to take, if it is to be timed
# Rates from which "auto" starts, and that its first timings replace: benchmarks/results/overlap.md, gpu/kumar.md.
TURN, IDLE_TURN = 1.2e-7, 5e-13  # seconds per turn of the longest loop; per turn of a vertex in the paper's form
TAIL_EDGE, TAIL_FIXED = 1.2e-8, 100_000  # seconds per tail edge and thread; edges that take as long as the copies

memory = gpu_pull.MEMORY._replace(
    step=Rate(0, 4, 40),  # begins, ends and indices of heads
    preparing=Rate(24, vertex=76),  # copies of tails to the host for timing; vertices sorted by in-degree
    preparing_edges=CHUNK,
)

divided_tails = Kernel(
    "divided_tails", "limits:i8[blocks] offsets:i8[n+1] sources:I[m] out_degrees:i4[n] ranks:f4[n] sums:f4[n]!"
)


def unavailable_reason(adjacency: Edges | None, machine: Machine) -> str | None:
    """Return why GPU or CPU cannot sum rows, or None."""
    return gpu_pull.unavailable_reason(memory, adjacency, machine) or library.unavailable_reason()


cost = gpu_pull.cost_of(68e-6, edge=3.3e-11, longest=2.2e-8)  # fitted to benchmarks/results/kernels.md

forms = {
    "paper": Form(
        "Kumar, Sondhi and Mittal 2012, Section 4.2: CUDA design 2, a loop of N turns",
        {"threads": 1, "by_degree": False, "block_threads": 256},
    )
}


def prepare(
    problem: Problem, machine: Machine, *, split: N | list[N] | Literal["auto"] = "auto", threads: int | None = None,
    block_threads: int | None = None, by_degree: bool | None = None, form: str | None = None,
) -> Step:  # fmt: skip
    """Split the in-edges of the vertices into heads and tails.

    Parameters
    ----------
    split : int, "all", list of these, or "auto"
        N: the GPU sums the first N in-edges of each vertex, the host the others. 0 leaves all edges to the host, "all"
        none. A list partitions the vertices, in the order of `by_degree`, into equal blocks with one N each. "auto"
        times iterations with at most six N, at which both sides should take equally long by the in-degrees and the
        rates measured so far, and takes the fastest, or "all" unless that is clearly slower. A `Graph` keeps the
        choice.
    threads : int, optional
        Number of host threads; all that this process may use if not given, and 1 in the paper's form. The bits are the
        same for any number.
    block_threads : int, optional
        Threads per block on the GPU, 1024 at most; 64 if not given, or those of the form.
    by_degree : bool, default False
        Whether the GPU's threads take the vertices by descending in-degree, the paper's future work, instead of in the
        order of the graph.
    form : "paper", optional
        Iterate by design 2 as printed, in float32, which an exact step then proves: each thread takes exactly N turns
        and divides by the out-degree for each edge, and one host thread sums the other in-edges. It has uniform
        teleport and no weights.
    """
    chosen = split_option(split)
    given = launch_of(forms, form, threads=threads, block_threads=block_threads, by_degree=by_degree)
    threads = machine.threads if given["threads"] is None else validate_int("threads", given["threads"])
    block_threads = BLOCK_THREADS if given["block_threads"] is None else given["block_threads"]
    by_degree = validate_bool("by_degree", False if given["by_degree"] is None else given["by_degree"])
    if form is not None:
        check_form(problem)
        validate_int("block_threads", block_threads, at_most=1024)
        if threads > 1 or by_degree:
            raise InvalidOptionError(
                "form='paper' has one host thread, and vertices in their own order: leave out threads=, by_degree=."
            )
    adjacency, n = problem.adjacency.on("device"), problem.adjacency.n
    layout = gpu_pull.csc_layout(adjacency)

    def form_of(limits: list[N]) -> FixedLoop:
        return FixedLoop(problem.adjacency, problem.alpha, limits, block_threads)

    def pull_of(limits: list[N]) -> SplitPull:
        return SplitPull(layout, n, limits, threads, block_threads, by_degree=by_degree)

    def timed(split: N) -> Timed:
        if form is not None:
            loop = form_of([split])
            loop.load(1 / n, n)
            return _timed(loop, loop)
        pull, arrays = pull_of([split]), (cupy.full(n, 1 / n, np.float32), cupy.empty(n))
        return _timed(pull, lambda: pull(*arrays))

    told = f"N = {split_text(chosen or ())}, as given"
    if chosen is None:
        tuned, key = problem.adjacency.tuned, (name, form, threads, block_threads, by_degree)
        told = "N = {}, kept from {} timings of {:.3g} s in an earlier ranking"
        if key not in tuned:
            began, degrees = time.perf_counter(), layout.ends - layout.begins
            # The paper's form on all edges takes as many turns for every vertex as the longest row has edges.
            turn = TURN if form is None else max(TURN / 2, n * IDLE_TURN)
            found = search(timed, partial(tail_edges, degrees), int(degrees.max()), turn, TAIL_EDGE / threads)
            tuned[key] = choose(found), len(found), time.perf_counter() - began
            each = ", ".join(f"{split} {taken.total * 1e3:.3g}" for split, taken in found.items())
            logger.info(LOGGED, tuned[key][0], n, adjacency.m, each)
            told = "N = {}, found by {} timings in {:.3g} s"
        told, chosen = told.format(*tuned[key]), [tuned[key][0]]
    if form is not None:
        return PaperStep(problem, pull_of(chosen), form_of(chosen), (told,))
    return SplitStep(problem, pull_of(chosen), chosen, told)


def split_option(split: object) -> list[N] | None:
    """Validate the option; return the N of each block of vertices, or None for "auto"."""
    if isinstance(split, str) and split == "auto":
        return None
    blocks: list[object] = list(split) if isinstance(split, (list, tuple)) else [split]
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


class Timed(NamedTuple):
    """Median seconds of an iteration: in all, of heads on the GPU, and of the host with the copy of what it reads."""

    total: float
    gpu: float
    host: float
    slow: float  # upper quartile in all, since host threads vary


def tail_edges(degrees: Integers, n: int) -> int:
    """Return the number of in-edges beyond the first n of each vertex."""
    return int(namespace(degrees).maximum(degrees - n, 0).sum())


def search(
    timed: Callable[[N], Timed], tails: Callable[[int], int], longest: int, turn: float, tail_edge: float
) -> dict[N, Timed]:
    """Time at most `MOST_TIMINGS` N, each where GPU and host are expected to take equally long; return the timings.

    The heads take longer with larger N, the tails shorter: the longer of both is least where they are equal. The GPU's
    time is interpolated over N and the host's over the tail edges, both in logarithms between the timings so far.
    `tails`, `longest`: Number of tail edges by N, and of in-edges of the longest row.
    `turn`, `tail_edge`: Seconds per turn of the longest loop, and per tail edge, until they are measured. "all" is
    first, unless it would take far longer than all edges on the host, as with a hub of millions.
    """
    found: dict[N, Timed] = {}
    if longest * turn <= MOST_OF_HOST * (tails(0) + TAIL_FIXED) * tail_edge:
        found["all"] = timed("all")
    while len(found) < MOST_TIMINGS and longest > 0:
        balanced, expected = _balanced(found, tails, longest, turn, tail_edge)
        longer = [max(each.gpu, each.host) for n, each in found.items() if n != "all"]
        if balanced in found or (longer and (1 - CLOSE) * min(longer) <= expected):
            break
        found[balanced] = timed(balanced)
    return found


def _balanced(
    found: dict[N, Timed], tails: Callable[[int], int], longest: int, turn: float, tail_edge: float
) -> tuple[int, float]:
    """Return the least N at which the GPU should take as long as the host, below the longest row, and its seconds."""
    gpu = sorted((longest if n == "all" else max(n, 1), each.gpu) for n, each in found.items()) or [(1, turn)]
    host = sorted((tails(n) + TAIL_FIXED, each.host) for n, each in found.items() if n != "all")
    host = host or [(1, tail_edge)]
    low, high = 0, longest - 1
    while low < high:
        middle = (low + high) // 2
        if _interpolated(gpu, max(middle, 1)) >= _interpolated(host, tails(middle) + TAIL_FIXED):
            high = middle
        else:
            low = middle + 1
    return low, _interpolated(gpu, max(low, 1))


def _interpolated(points: Sequence[tuple[float, float]], x: float) -> float:
    """Interpolate between points in logarithms; beyond them y is proportional to x."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    if x <= x0 or len(points) == 1:
        return y0 * x / x0
    if x >= x1:
        return y1 * x / x1
    known, values = np.log([x for x, _ in points]), np.log([y for _, y in points])
    return math.exp(np.interp(math.log(x), known, values))


def choose(found: dict[N, Timed]) -> N:
    """Return the fastest N, or "all" unless even slow iterations of the fastest are clearly faster."""
    best = min(found, key=lambda n: found[n].total)
    everything = found.get("all")
    return best if everything is None or found[best].slow < (1 - NOISE) * everything.total else "all"


def _timed(recorded: SplitPull | FixedLoop, iterate: Callable[[], object]) -> Timed:
    """Time iterations after one that is not counted, both sides by what `recorded` records."""
    main, samples, host_ended = cupy.cuda.get_current_stream(), [], 0.0
    begun, done = cupy.cuda.Event(), cupy.cuda.Event()

    @contextmanager
    def span(what: str, lane: str, stream: object) -> Iterator[None]:
        nonlocal host_ended
        if what == "heads":
            begun.record(main)
        yield
        if what == "heads":
            done.record(main)
        if what == "tails":
            host_ended = time.perf_counter()

    recorded.span = span
    for _ in range(1 + SAMPLES):
        began = host_ended = time.perf_counter()
        iterate()
        main.synchronize()
        total = time.perf_counter() - began
        samples.append((total, max(1e-9, cupy.cuda.get_elapsed_time(begun, done) / 1e3), max(1e-9, host_ended - began)))
    totals, gpu, host = zip(*samples[1:], strict=True)
    return Timed(median(totals), median(gpu), median(host), sorted(totals)[3 * SAMPLES // 4])


def split_text(split: Sequence[N]) -> str:
    """Format the distinct N of a split."""
    return "/".join(dict.fromkeys(map(str, split)))


# --- the step -----------------------------------------------------------------------------------------------------


class SplitStep(gpu_pull.DeviceStep):
    """A step whose row sums are computed partly on the host: `split` by block of vertices, found as `told`."""

    def __init__(self, problem: Problem, pull: SplitPull, split: list[N], told: str) -> None:
        super().__init__(problem, pull)
        self.pull, self.split, self.notes = pull, split, (told,)


class SplitPull:
    """Sums the heads of rows on the GPU while the host sums their tails."""

    def __init__(
        self, layout: gpu_pull.Layout, n: int, split: list[N], threads: int, block_threads: int = BLOCK_THREADS,
        *, by_degree: bool = False,
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
    """Return the number of in-edges that the GPU sums of each row, in equal blocks of rows with one N each."""
    xp = namespace(degrees)
    limits = xp.asarray(turns_of(split, int(degrees.max())), degrees.dtype)
    return xp.minimum(degrees, limits[xp.arange(degrees.size) * len(split) // degrees.size])


def turns_of(split: list[N], longest: int) -> list[int]:
    """Return the N of each block as numbers, at most the longest row."""
    return [longest if block == "all" else min(block, longest) for block in split]


class FixedLoop(PaperForm):
    """Design 2 in the paper's form: limits[k] turns of the GPU's threads in the k-th of equal blocks of vertices."""

    def __init__(self, adjacency: Edges, alpha: float, split: list[N], block_threads: int) -> None:
        here, there = adjacency.on("host"), adjacency.on("device")
        n, self._per_block = adjacency.n, -(-adjacency.n // len(split))
        self.limits = np.array(turns_of(split, adjacency.largest_in_degree), np.int64)
        offsets = here.get(Csc).offsets.astype(np.int64, copy=False)
        most = self.limits[np.arange(n) // self._per_block]
        self.tail_edges = int(np.maximum(np.diff(offsets) - most, 0).sum())
        self._of_host = self.limits, offsets, here.get(Csc).indices, out_degrees(here)
        self._of_gpu = cupy.asarray(self.limits), there.get(Csc).offsets, there.get(Csc).indices, out_degrees(there)
        self._alpha, self._launch = np.float32(alpha), (runtime.blocks_for(n, block_threads), block_threads)
        of_gpu = there.get(Csc)
        self._types: dict[str, runtime.Macro] = {
            "index_t": of_gpu.indices.dtype, "offset_t": of_gpu.offsets.dtype, "UNROLL": UNROLL,
        }  # fmt: skip
        self.span: Recorder = unrecorded
        if self.tail_edges:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._ranks, self._sums = cupyx.empty_pinned(n, np.float32), cupyx.empty_pinned(n, np.float32)
            self._device_sums = cupy.empty(n, np.float32)
            weakref.finalize(self, self._stream.synchronize)  # buffers, reused as in `HostPull`, must outlive copies

    def __call__(self) -> None:
        main, n = cupy.cuda.get_current_stream(), self.scores.size
        if self.tail_edges:
            self._stream.wait_event(main.record())
            with self.span("down", "copy", self._stream):
                self.scores.get(stream=self._stream, out=self._ranks, blocking=False)
        file, (limits, *graph) = "papers/kumar.cu", self._of_gpu
        with self.span("heads", "GPU", main):
            arrays = limits, *graph, self.scores, self.other
            runtime.run(file, "fixed_loop", *self._launch, n, self._per_block, *arrays, **self._types)
        if self.tail_edges:
            self._stream.synchronize()
            with self.span("tails", "host", None):
                divided_tails(*self._of_host, self._ranks, self._sums)
            with self.span("up", "copy", self._stream):
                self._device_sums.set(self._sums, stream=self._stream)
            main.wait_event(self._stream.record())
        with self.span("add", "GPU", main):
            sums = self._device_sums if self.tail_edges else None
            runtime.run(file, "add_partial_ranks", *self._launch, n, self._alpha, sums, self.other, **self._types)
        self.scores, self.other = self.other, self.scores
