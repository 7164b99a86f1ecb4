"""GPU and processor at once: the first N in-edges on one, the rest on the other (Kumar 2012); `split=`, `threads=`.

Design 2 of Kumar, Sondhi and Mittal for CUDA. The head of a vertex is its first N in-edges, its tail the others. An
iteration goes

    GPU   gather the contributions that tails read | sum the heads ............................ | add tails to heads
    copy                                           | down |                            | up |
    host                                                  | sum the tails .............|

where `copy` is a stream of its own, so that neither the copies nor the processor wait for the heads.
"""

from __future__ import annotations

import logging
import math
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from prplugin import cuda
from prplugin.errors import InvalidOptionError, counted
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.arrays import moved, namespace
from prplugin.graph.edges import Floats, Integers
from prplugin.machine import Machine
from prplugin.methods import _device
from prplugin.methods.numba import _pieces as pieces_of
from prplugin.problem import Problem

name = "cpu-split"
runs_on = "gpu"
varies = True
"""With ``split="auto"`` N comes from measurements, and the last bits of a sum depend on N."""

logger = logging.getLogger(__name__)

FILE = "methods/cpu_split.cu"
THREADS = 256
WARP = 32

N: TypeAlias = int | Literal["all"]
"""How many in-edges of a vertex the GPU sums."""


def unfit(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Need a GPU, and room for the in-edges twice."""
    return _device.unfit(adjacency, plan_bytes)


def plan_bytes(adjacency: Adjacency) -> int:
    """Count the bytes of the in-edges by target, and of heads and tails of them while these are laid out.

    What pads the slices of heads depends on N: `Heads` checks for that.
    """
    rows = (8 + 8 + 8 + 8) * adjacency.n  # position, in-degree, head and tail
    return _device.csc_bytes(adjacency) + head_bytes(adjacency, adjacency.m) + rows


def head_bytes(adjacency: Adjacency, places: int) -> int:
    """Count the bytes of so many places in slices: an index each, weight and share, and two more to make shares."""
    index = 4 if adjacency.n < 2**31 else 8
    return places * (index + 4 * 8 * adjacency.weighted)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate 40 iterations (benchmarks/results/kernels.md), each with a trip to the processor and back."""
    return 40 * (150e-6 + 1e-10 * adjacency.m)


def prepare(
    problem: Problem, machine: Machine, *, split: N | list[N] | Literal["auto"] = "auto", threads: int | None = None
) -> SplitStep:
    """Sort vertices by in-degree and cut their in-edges into heads and tails.

    Parameters
    ----------
    split : int, "all", list of these, or "auto"
        N: the GPU sums the first N in-edges of each vertex, the processor the others; 0 leaves all to the processor,
        "all" none. A list gives each of as many equal blocks of vertices, in falling in-degree order, an N of its own.
        "auto" takes the one N that this GPU and this processor, as measured on this graph, should be fastest with.
    threads : int, optional
        Of the processor; all that this process may use if not given. Any number gives the same bits.
    """
    chosen = split_option(split)
    threads = machine.threads if threads is None else _device.count_option("threads", threads)
    adjacency = problem.adjacency.on("device")
    order, degrees = falling(adjacency.csc.offsets)
    estimates = None
    if chosen is None:
        best, estimates = measured_split(adjacency, order, degrees, threads)
        chosen = [best]
    pull = SplitPull(adjacency, order, degrees, head_counts(degrees, chosen), threads)
    return SplitStep(problem, pull, chosen, estimates)


def split_option(split: object) -> list[N] | None:
    """Take the N of each block of vertices; None stands for "auto".

    Raises
    ------
    InvalidOptionError
        If it is something else.
    """
    if isinstance(split, str) and split == "auto":
        return None
    blocks: list[Any] = list(split) if isinstance(split, (list, tuple)) else [split]
    if blocks and all(map(_is_n, blocks)):
        return ["all" if block == "all" else int(block) for block in blocks]
    raise InvalidOptionError(
        "split must be 'auto', 'all', a whole number of at least 0, or a list of such numbers and 'all', "
        f"not {split!r}."
    )


def _is_n(block: Any) -> bool:
    if isinstance(block, str):
        return block == "all"
    return isinstance(block, Integral) and not isinstance(block, (bool, np.bool_)) and int(block) >= 0


# --- the step -----------------------------------------------------------------------------------------------------


class Tally(NamedTuple):
    """What the processor has to do in an iteration, and what is moved for it.

    Attributes
    ----------
    vertices, edges : int
        Vertices with tails, and the edges in those.
    sources : int
        Distinct vertices that tails read.
    bytes_down, bytes_up : int
        Contributions of those sources, from the GPU; sums of the tails, to it.
    """

    vertices: int
    edges: int
    sources: int
    bytes_down: int
    bytes_up: int


class Span(NamedTuple):
    """Something that took place in an iteration, in seconds on the clock of `time.perf_counter`."""

    iteration: int
    what: Literal["gather", "heads", "add", "down", "up", "tails"]
    lane: Literal["GPU", "copy", "host"]
    begin: float
    end: float


class SplitStep(_device.DeviceStep):
    """A step whose row sums are shared between GPU and processor.

    Attributes
    ----------
    split : list of N
        For each block of vertices.
    estimates : dict or None
        Where N was measured: seconds an iteration of GPU and of host, for every N that was looked at.
    """

    def __init__(
        self, problem: Problem, pull: SplitPull, split: list[N], estimates: dict[N, tuple[float, float]] | None
    ) -> None:
        super().__init__(problem, pull)
        self.split, self.estimates = split, estimates
        self._shared = pull

    @property
    def tally(self) -> Tally:
        """What is shared, with contributions held as they are."""
        return self._shared.tally(self._contributions.dtype.itemsize)

    @contextmanager
    def record(self) -> Iterator[list[Span]]:
        """Record the steps taken within; the list is filled at the end of the block."""
        spans: list[Span] = []
        timeline = Timeline()
        self._shared.span = timeline.span
        try:
            yield spans
        finally:
            self._shared.span = unrecorded
            spans.extend(timeline.spans())


# --- heads, on the GPU --------------------------------------------------------------------------------------------


def falling(offsets: Integers) -> tuple[Integers, Integers]:
    """Give rows in falling in-degree order, equal ones as they were, and their in-degrees."""
    degrees = offsets[1:] - offsets[:-1]
    order = namespace(offsets).argsort(-degrees, kind="stable")
    return order, degrees[order]


def head_counts(degrees: Integers, split: list[N]) -> Integers:
    """Give how many in-edges of each row the GPU sums; rows are in falling order, in equal blocks, one for each N."""
    xp = namespace(degrees)
    longest = int(degrees[0])
    limits = xp.asarray([longest if block == "all" else min(block, longest) for block in split], degrees.dtype)
    block = xp.arange(degrees.size) * len(split) // degrees.size
    counts: Integers = xp.minimum(degrees, limits[block])
    return counts


def slice_begins(counts: Integers) -> Integers:
    """Give where each slice of 32 rows begins, as wide as its longest row, and where the last one ends."""
    xp = namespace(counts)
    slices = -(-counts.size // WARP)
    padded = xp.zeros(slices * WARP, np.int64)
    padded[: counts.size] = counts
    begins: Integers = xp.zeros(slices + 1, np.int64)
    xp.cumsum(WARP * padded.reshape(slices, WARP).max(axis=1), out=begins[1:])
    return begins


class Heads:
    """The first in-edges of some rows, in slices of 32 rows, each stored index by index ("sliced ELL")."""

    def __init__(self, adjacency: Adjacency, rows: Integers, counts: Integers) -> None:
        import cupy  # there: `unfit` has looked

        offsets, sources, weights = adjacency.csc
        self._rows, self._counts, self._slices = rows.astype(sources.dtype), counts, slice_begins(counts)
        places = int(self._slices[-1])
        cuda.require_bytes(head_bytes(adjacency, places), f"method {name!r} with heads in {counted(places, 'place')}")
        self._sources = laid_sources = cupy.zeros(places, sources.dtype)  # what pads a slice is a vertex, too
        laid_weights = None if weights is None else cupy.zeros(places)
        self._types = types(adjacency)
        _launch(
            cuda.kernel(FILE, "lay_heads", **self._types, real_t="double"),
            rows.size,
            self._rows, self._counts, self._slices, offsets, sources, weights, laid_sources, laid_weights,
        )  # fmt: skip
        self._shares = _device.Shares(laid_weights, lambda: adjacency.out_weight[laid_sources])
        self._dtype: Any = None

    def __call__(self, contributions: Floats, pulled: Floats) -> None:
        """Write the sum of each row's head to its entry of `pulled`."""
        if self._dtype is None or self._dtype != contributions.dtype:  # NumPy takes None for float64
            self._dtype = contributions.dtype
            self._kernel = cuda.kernel(FILE, "head_pull", **self._types, real_t=cuda.ctype(self._dtype))
        _launch(
            self._kernel,
            self._rows.size,
            self._rows, self._counts, self._slices, self._sources, self._shares.of(self._dtype), contributions, pulled,
        )  # fmt: skip


def types(adjacency: Adjacency) -> dict[str, str | int]:
    """Give the macros of the kernels, all but the type of contributions."""
    offsets, sources, weights = adjacency.csc
    return {
        "index_t": cuda.ctype(sources.dtype),
        "offset_t": cuda.ctype(offsets.dtype),
        "WEIGHTED": int(weights is not None),
    }


def _launch(kernel: Any, count: int, *arguments: Any) -> None:
    kernel((cuda.blocks_for(count, THREADS),), (THREADS,), (count, *arguments))


# --- tails, on the processor --------------------------------------------------------------------------------------


class Tails(NamedTuple):
    """The last in-edges of some rows, longest first; t is a tail.

    Attributes
    ----------
    rows : array of positions
        The row of each tail, where the graph lies.
    sources : array of positions
        The distinct sources that tails read, where the graph lies.
    bounds : array of offsets, on the host
        Tail t is ``places[bounds[t]:bounds[t + 1]]``.
    places : array of positions in `sources`, on the host
    shares : array of float64, or None, on the host
    """

    rows: Integers
    sources: Integers
    bounds: Integers
    places: Integers
    shares: Floats | None


def cut_tails(adjacency: Adjacency, rows: Integers, lengths: Integers) -> Tails:
    """Take the last `lengths` in-edges of each of some rows."""
    offsets, sources, weights = adjacency.csc
    xp = namespace(offsets)
    longest_first = xp.argsort(-lengths, kind="stable")
    rows, lengths = rows[longest_first].astype(sources.dtype), lengths[longest_first]
    bounds = xp.zeros(rows.size + 1, np.int64)
    xp.cumsum(lengths, dtype=np.int64, out=bounds[1:])
    # The e-th edge of all tails, put end to end, is as far from the end of its tail as from the end of its row.
    edges = xp.arange(int(bounds[-1]))
    edges += (offsets[rows + 1] - bounds[1:])[xp.searchsorted(bounds[1:], edges, side="right")]
    read = sources[edges]
    needed = xp.zeros(adjacency.n, np.bool_)
    needed[read] = True
    places = (xp.cumsum(needed, dtype=sources.dtype) - 1)[read]
    shares = None
    if weights is not None:
        shares = _device.Shares(weights[edges], lambda: adjacency.out_weight[read]).of(np.float64)
    distinct = xp.flatnonzero(needed).astype(sources.dtype)
    return Tails(rows, distinct, moved(bounds, "host"), moved(places, "host"), moved(shares, "host"))


class TailSums:
    """Sums tails in several threads, which take pieces of about equal work as they come: the bits are those of one."""

    def __init__(self, bounds: Integers, places: Integers, threads: int) -> None:
        from prplugin.methods import _numba_tails as kernels  # imports Numba

        self._kernels, self._places = kernels, places
        lengths = np.diff(bounds)
        long = int(np.count_nonzero(lengths > kernels.RUN))  # they come first
        runs = -(-lengths[:long] // kernels.RUN)
        self._runs_of = np.append(0, np.cumsum(runs))
        cuts = [np.arange(bounds[tail], bounds[tail + 1], kernels.RUN) for tail in range(long)]
        self._bounds = np.concatenate([*cuts, bounds[long:]])
        self._high, self._low = np.empty(int(runs.sum())), np.empty(int(runs.sum()))
        work = int(self._bounds[-1]) + 4 * self._bounds.size
        # Pieces shorter than a run are not worth handing to another thread.
        self._pieces = pieces_of(self._bounds, 1, min(8 * threads, 1 + work // kernels.RUN))
        self._helpers = min(threads, len(self._pieces)) - 1  # the calling thread works too
        self._pool = ThreadPoolExecutor(max(self._helpers, 1), "prplugin")

    def __call__(self, contributions: Floats, shares: Floats | None, sums: Floats) -> None:
        """Write the sum of each tail."""
        left = deque(self._pieces)
        long = self._runs_of.size - 1

        def work() -> None:
            while True:
                try:
                    first, last = left.popleft()
                except IndexError:  # another thread took the last
                    return
                self._kernels.sum_runs(
                    first, last, self._bounds, self._places, shares, contributions, self._high, self._low, sums[long:]
                )

        helpers = [self._pool.submit(work) for _ in range(self._helpers)]
        work()
        for helper in helpers:
            helper.result()
        self._kernels.join_runs(self._runs_of, self._high, self._low, sums)


class TailLane:
    """The way of the tails: contributions down, sums up, on a stream of their own, and the processor between.

    Four buffers are used again in every iteration, and no copy or kernel meets one that is still in use. In turn:

    - `_gathered`, written by the next gather: the copy down is over, since the host has waited for it;
    - `_contributions`, written by the next copy down: the host has summed the tails before it goes on;
    - `_sums`, written by the host: the copy up came before this copy down on the stream, and the host waited for that;
    - `_tails`, written by the next copy up: it comes after the next gather, which comes after the addition.
    """

    def __init__(self, tails: Tails, threads: int, macros: dict[str, str | int]) -> None:
        import cupy
        import cupyx

        self._rows, self._sources, self._exact_shares = tails.rows, tails.sources, tails.shares
        self._sum = TailSums(tails.bounds, tails.places, threads)
        self._macros = macros
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._gather_done, self._down_done, self._up_done = (cupy.cuda.Event(disable_timing=True) for _ in range(3))
        self._sums = cupyx.empty_pinned(tails.rows.size)
        self._tails = cupy.empty(tails.rows.size)
        self._add = cuda.kernel(FILE, "add_tails", **macros, real_t="double")
        self._runtime = cupy.cuda.runtime
        self._dtype: Any = None
        # No memory may go while a copy, of an iteration that was interrupted, is under way.
        weakref.finalize(self, self._stream.synchronize)

    def _hold(self, dtype: Any) -> None:
        """Make buffers, shares and kernel for contributions of this type."""
        import cupy
        import cupyx

        self._dtype = dtype
        self._gathered = cupy.empty(self._sources.size, dtype)
        self._contributions = cupyx.empty_pinned(self._sources.size, dtype)
        self._shares = None if self._exact_shares is None else self._exact_shares.astype(dtype, copy=False)
        self._gather = cuda.kernel(FILE, "gather", **self._macros, real_t=cuda.ctype(dtype))

    def send_down(self, contributions: Any, main: Any, span: Recorder) -> None:
        """Have the contributions that tails read gathered, and copied as soon as they are: returns at once."""
        if self._dtype is None or self._dtype != contributions.dtype:  # NumPy takes None for float64
            self._hold(contributions.dtype)
        with span("gather", "GPU", main):
            _launch(self._gather, self._sources.size, self._sources, contributions, self._gathered)
        self._gather_done.record(main)
        self._stream.wait_event(self._gather_done)
        down = self._contributions
        with span("down", "copy", self._stream):
            self._runtime.memcpyAsync(
                down.ctypes.data, self._gathered.data.ptr, down.nbytes, self._runtime.memcpyDeviceToHost,
                self._stream.ptr,
            )  # fmt: skip
        self._down_done.record(self._stream)

    def add_to(self, pulled: Any, main: Any, span: Recorder) -> None:
        """Sum the tails here, once the contributions are; have the sums copied and added to what `main` has summed."""
        self._down_done.synchronize()
        with span("tails", "host", None):
            self._sum(self._contributions, self._shares, self._sums)
        up = self._sums
        with span("up", "copy", self._stream):
            self._runtime.memcpyAsync(
                self._tails.data.ptr, up.ctypes.data, up.nbytes, self._runtime.memcpyHostToDevice, self._stream.ptr
            )
        self._up_done.record(self._stream)
        main.wait_event(self._up_done)
        with span("add", "GPU", main):
            _launch(self._add, self._rows.size, self._rows, self._tails, pulled)


# --- both at once -------------------------------------------------------------------------------------------------


class SplitPull:
    """Sums the heads of rows on the GPU while the processor sums their tails."""

    def __init__(
        self, adjacency: Adjacency, order: Integers, degrees: Integers, counts: Integers, threads: int
    ) -> None:
        import cupy

        self._current_stream = cupy.cuda.get_current_stream
        self.span: Recorder = unrecorded
        self._heads = Heads(adjacency, order, counts)
        lengths = degrees - counts
        long = cupy.flatnonzero(lengths)
        longest = int(cupy.maximum(counts, lengths).max())
        # A compensated sum of k terms, on either side: see graph/sums.cuh, and `sum_chain` for k past 2**26.
        self.chain = _device.ROW_CHAIN + (longest >> 26) ** 2
        self._tails: TailLane | None = None
        self._sizes = (0, 0, 0)
        if long.size:
            tails = cut_tails(adjacency, order[long], lengths[long])
            self._sizes = tails.rows.size, tails.places.size, tails.sources.size
            self._tails = TailLane(tails, threads, types(adjacency))
            self.chain += 1  # head and tail are added

    def __call__(self, contributions: Floats, pulled: Floats) -> None:
        main = self._current_stream()
        # The heads are launched before the host waits for anything, and after all that the tails begin with.
        if self._tails is not None:
            self._tails.send_down(contributions, main, self.span)
        with self.span("heads", "GPU", main):
            self._heads(contributions, pulled)
        if self._tails is not None:
            self._tails.add_to(pulled, main, self.span)

    def tally(self, itemsize: int) -> Tally:
        """Count what is shared, with contributions of so many bytes."""
        vertices, edges, sources = self._sizes
        return Tally(vertices, edges, sources, sources * itemsize, vertices * 8)


# --- when things took place ---------------------------------------------------------------------------------------

Recorder: TypeAlias = Callable[[Any, Any, Any], AbstractContextManager[None]]
"""Takes what is done, its lane, and the stream it is done on (None: here and now)."""

NOTHING: AbstractContextManager[None] = nullcontext()


def unrecorded(what: Any, lane: Any, stream: Any) -> AbstractContextManager[None]:
    """Record nothing."""
    return NOTHING


class Timeline:
    """Brings the times of GPU and host to one clock.

    CUDA tells the time between two events. One event is awaited on an idle GPU, next to two readings of the host's
    clock: it took place between them. The closest of several such pairs, a few microseconds apart, is the reference.
    """

    def __init__(self) -> None:
        import cupy

        self._cuda = cupy.cuda
        self._cuda.Device().synchronize()
        self._marks: list[tuple[Any, Any, Any, Any]] = []
        nearest = math.inf
        for _ in range(10):
            event = self._cuda.Event()
            before = time.perf_counter()
            event.record(self._cuda.get_current_stream())
            event.synchronize()
            after = time.perf_counter()
            if after - before < nearest:
                nearest = after - before
                self._reference, self._zero = event, (before + after) / 2

    @contextmanager
    def span(self, what: Any, lane: Any, stream: Any) -> Iterator[None]:
        """Mark begin and end of what is put on a stream within, or of what the host does within."""
        begin = self._mark(stream)
        yield
        self._marks.append((what, lane, begin, self._mark(stream)))

    def _mark(self, stream: Any) -> Any:
        if stream is None:
            return time.perf_counter()
        event = self._cuda.Event()
        event.record(stream)
        return event

    def spans(self) -> list[Span]:
        """Wait for all that was marked, and give it."""
        self._cuda.Device().synchronize()
        seen: Counter[str] = Counter()  # in each iteration everything takes place once
        spans = []
        for what, lane, begin, end in self._marks:
            spans.append(Span(seen[what], what, lane, self._seconds(begin), self._seconds(end)))
            seen[what] += 1
        return spans

    def _seconds(self, mark: Any) -> float:
        if isinstance(mark, float):
            return mark
        return self._zero + float(self._cuda.get_elapsed_time(self._reference, mark)) / 1e3


# --- choosing N ---------------------------------------------------------------------------------------------------


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
    import cupy

    longest = int(degrees[0])
    if longest == 0:
        return "all", {}
    reach = cupy.zeros(adjacency.n, np.int64)
    offsets, sources, _ = adjacency.csc
    find_reach = cuda.kernel(FILE, "find_reach", **types(adjacency), real_t="double")
    find_reach((cuda.blocks_for(WARP * adjacency.n, THREADS),), (THREADS,), (adjacency.n, offsets, sources, reach))
    choices = works(degrees, reach, candidates(longest))
    rates = measured_rates(adjacency, order, degrees, threads)
    best = best_work(choices, rates)
    estimates: dict[N, tuple[float, float]] = {
        work.n if work.tail_edges else "all": rates.times(work) for work in choices
    }
    logger.info(
        "%s: %s for %d vertices and %d edges: GPU %.3g ns an edge and %.3g ns a turn, host %.3g ns an edge with %s, "
        "%.3g ns a byte and %.3g us a trip; GPU and host ms an iteration by N: %s",
        name,
        f"split={best.n}" if best.tail_edges else "everything on the GPU (split='all')",
        adjacency.n, adjacency.m, rates.edge * 1e9, rates.turn * 1e9, rates.tail * 1e9, counted(threads, "thread"),
        rates.byte * 1e9, rates.trip * 1e6,
        ", ".join(f"{n} {gpu * 1e3:.3g} {host * 1e3:.3g}" for n, (gpu, host) in estimates.items()),
    )  # fmt: skip
    return best.n if best.tail_edges else "all", estimates


PROBE = 16
"""N at which the GPU's rate is measured."""

TURNS = 4096
"""Turns of a loop after which a thread's rate is known, at most."""

SAMPLE = 1 << 20
"""Edges over which the processor's rate is measured, at most; and bytes of a copy."""


def measured_rates(adjacency: Adjacency, order: Integers, degrees: Integers, threads: int) -> Rates:
    """Measure GPU and processor on parts of the graph: some milliseconds."""
    import cupy
    import cupyx

    contributions, pulled = cupy.full(adjacency.n, 1 / adjacency.n), cupy.empty(adjacency.n)

    # One thread along the longest row; then heads of all rows, less the turns of a thread.
    row = Heads(adjacency, order[:1], cupy.minimum(degrees[:1], TURNS))
    turn = _gpu_seconds(lambda: row(contributions, pulled)) / min(int(degrees[0]), TURNS)
    counts = cupy.minimum(degrees, PROBE)
    heads = Heads(adjacency, order, counts)
    alone = turn * min(int(degrees[0]), PROBE)
    edge = max(_gpu_seconds(lambda: heads(contributions, pulled)) - alone, 0.0) / int(counts.sum())

    # The processor, over edges of the longest rows, where the tails are; and over one edge.
    taken = cupy.minimum(cupy.cumsum(degrees, dtype=np.int64), SAMPLE)
    lengths = taken.copy()
    lengths[1:] -= taken[:-1]

    def on_the_host(lengths: Integers) -> float:
        tails = cut_tails(adjacency, order[: lengths.size], lengths)
        sum_tails = TailSums(tails.bounds, tails.places, threads)
        values, sums = np.ones(tails.sources.size), np.empty(tails.rows.size)
        return _best_seconds(lambda: sum_tails(values, tails.shares, sums))

    idle = on_the_host(cupy.ones(1, np.int64))
    tail = max(on_the_host(lengths[: cupy.count_nonzero(lengths).item()]) - idle, 0.0) / int(taken[-1])

    # Copies both ways, of very little and of more.
    stream = cupy.cuda.Stream(non_blocking=True)
    device, host = cupy.empty(SAMPLE, np.uint8), cupyx.empty_pinned(SAMPLE, np.uint8)
    runtime = cupy.cuda.runtime

    def trip(size: int) -> None:
        down, up = runtime.memcpyDeviceToHost, runtime.memcpyHostToDevice
        runtime.memcpyAsync(host.ctypes.data, device.data.ptr, size, down, stream.ptr)
        stream.synchronize()
        runtime.memcpyAsync(device.data.ptr, host.ctypes.data, size, up, stream.ptr)
        stream.synchronize()

    short, far = _best_seconds(lambda: trip(8)), _best_seconds(lambda: trip(SAMPLE))
    return Rates(edge, turn, tail, max(far - short, 0.0) / (2 * SAMPLE), short + idle)


def _gpu_seconds(launch: Callable[[], None], times: int = 5) -> float:
    """Time a kernel launched several times in a row, as the GPU sees it, after one launch that is not counted."""
    import cupy

    launch()
    stream = cupy.cuda.get_current_stream()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record(stream)
    for _ in range(times):
        launch()
    end.record(stream)
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3 / times


def _best_seconds(work: Callable[[], None], times: int = 5) -> float:
    """Time something here, after once that is not counted."""
    work()
    best = math.inf
    for _ in range(times):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best
