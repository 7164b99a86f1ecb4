"""GPU and processor at once: the first N in-edges on one, the rest on the other (Kumar 2012); `split=`, `threads=`.

Design 2 of Kumar, Sondhi and Mittal for CUDA. The head of a vertex is its first N in-edges, its tail the others. An
iteration goes

    GPU   gather the contributions that tails read | sum the heads ............................ | add tails to heads
    copy                                           | down |                            | up |
    host                                                  | sum the tails .............|

where `copy` is a stream of its own, so that neither the copies nor the processor wait for the heads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np

from prplugin.errors import InvalidOptionError
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Size
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.engines import gpu_pull
from prplugin.methods.papers._heads import Heads, N, falling, head_counts
from prplugin.methods.papers._split_choice import measured_split
from prplugin.methods.papers._split_kernels import types
from prplugin.methods.papers._tail_lane import TailLane
from prplugin.methods.papers._tails import cut_tails
from prplugin.methods.papers._timeline import Recorder, Span, Timeline, unrecorded
from prplugin.options import whole
from prplugin.types.edges import Floats, Integers

__all__ = ["Span", "SplitStep", "Tally", "cost", "name", "prepare", "runs_on", "unfit", "varies"]

name = "cpu-split"
runs_on = "gpu"
varies = True
"""With ``split="auto"`` N comes from measurements, and the last bits of a sum depend on N."""

memory = replace(
    gpu_pull.MEMORY,
    edge=Size(index=1, share=1, weight=1),  # all in-edges once more, as heads
    vertex=replace(gpu_pull.MEMORY.vertex, fixed=40, index=1, offset=3),  # positions, and lengths of heads and tails
    preparing_edge=Size(weight=1.75),  # heads on which rates are measured
    preparing_vertex=Size(9 * 8, offset=1),  # of each N that is looked at
)
unfit = partial(gpu_pull.unfit, memory)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate a ranking, as fitted to benchmarks/results/kernels.md: heads wait for the longest."""
    return gpu_pull.ITERATIONS * (68e-6 + 3.3e-11 * adjacency.m + 2.2e-8 * adjacency.largest_in_degree)


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
    threads = machine.threads if threads is None else whole("threads", threads)
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


class SplitStep(gpu_pull.DeviceStep):
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
        self.chain = gpu_pull.ROW_CHAIN + (longest >> 26) ** 2
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
