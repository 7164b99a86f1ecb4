"""Iterations of the papers by their own kernels, in float32: the option ``form`` of their methods.

For ``stop="error"`` they approach the solution, and exact float64 steps prove it. Under the other rules, the papers'
own, all iterates are the paper's, divided by their sum at the end, and one exact step after them proves their bound.

Kim, Kumar and Bowen drop the dangling mass D. If teleport and dangling mass are uniform, v = w = 1 / n, the solution z
of z = alpha * P^T z + (1 - alpha) * v is a multiple of the PageRank x: z = s * x with
s = (1 - alpha) / (alpha * D(x) + 1 - alpha).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from prplugin.cpu.library import Kernel
from prplugin.errors import InvalidOptionError, counted
from prplugin.gpu import cupy, runtime
from prplugin.methods.base import Array, Edges, Floats, Integers, Problem, Step, Sums
from prplugin.methods.engines import gpu_pull
from prplugin.papers._schedule import Segment
from prplugin.stopping import Verdict
from prplugin.types.arrays import to_host
from prplugin.types.edges import Csc

GROUP = 64  # threads per block in wu.cu: a wavefront
WARP_LANES = 32  # threads per row of Bowen's warp sum

KERNELS = {"node": "one_to_one", "warp": "warp_reduce", "block": "block_reduce"}  # of bowen.cu, by method of a segment

update_scores = Kernel(
    "update_scores",
    "offsets:i8[n+1] sources:I[m] out_degrees:i4[n] scores:f4[n]! updated:f4[n]! first:i8 last:i8 rest:f8 damping:f8 "
    "epsilon:f8 keep:i8 threads:i8",
)


class Form(NamedTuple):
    """Form of a method, as `prplugin methods --method NAME` lists it."""

    listing: str  # paper, and the listing or section that is built
    values: Mapping[str, object]  # the paper's values of options, which are the defaults of the form


def launch_of(forms: Mapping[str, Form], form: object, **given: Any) -> dict[str, Any]:
    """Return options as given, else as the form has them; raise InvalidOptionError if there is no such form."""
    if form is not None and not (isinstance(form, str) and form in forms):
        raise InvalidOptionError(f"form must be {', '.join(map(repr, forms))} or None, not {form!r}.")
    values = forms[form].values if isinstance(form, str) else {}
    return {name: values.get(name) if value is None else value for name, value in given.items()}


class PaperForm:
    """Iteration of a paper: each call updates `scores`, n float32."""

    scores: Any
    other: Array  # as many, for an iteration that is not in place
    order: Integers | None = None  # vertex of each score; None: in the order of the vertices
    drops = True  # whether the dangling mass is dropped
    epsilon = 0.0  # greatest move of a score that is not written, for Bowen

    def load(self, ranks: Floats | float, n: int) -> None:
        """Set the scores to n ranks, or all to one number."""
        self.scores = cupy.empty(n, np.float32)
        self.scores[:] = ranks if self.order is None or isinstance(ranks, float) else ranks[self.order]
        self.other = cupy.empty_like(self.scores)

    def __call__(self) -> object:
        """Do one iteration."""
        raise NotImplementedError

    def in_order(self) -> Floats:
        """Return the scores in the order of the vertices, in float64."""
        ranks: Floats = cupy.empty(self.scores.size)
        ranks[slice(None) if self.order is None else self.order] = self.scores
        return ranks


class PaperStep(gpu_pull.DeviceStep):
    """A step that iterates by the kernels of a paper; `form` is the iteration, `told` what `explain` shows besides."""

    float32_is_faster = False
    _ended = False
    paper_passes = exact_passes = 0

    def __init__(self, problem: Problem, pull: gpu_pull.Pull, form: PaperForm, told: tuple[str, ...] = ()) -> None:
        super().__init__(problem, pull)
        self.form, self._told = form, told

    def start(self, ranks: Floats | float) -> None:
        if ranks is not self._ranks:  # a new ranking, not a mix
            self._ended = False
        super().start(ranks)

    def __call__(self, moves: Array | None = None) -> Sums:
        self.exact_passes += 1
        return super().__call__(moves)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        paper = counted(self.paper_passes, "pass", "passes")
        exact = counted(self.exact_passes, "exact pass", "exact passes")
        return (*self._told, f"{paper} by the paper's kernels in float32, {exact} in float64")

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        """Approach the solution until float32 gets no closer."""
        if self._ended or budget < 2:  # one pass is left for the proof
            return 0, None
        alpha, before = self._alpha, math.inf

        def met(sums: Sums) -> bool:
            nonlocal before
            change = float(sums.change)
            ended = change <= goal or change >= (1 + alpha) / 2 * before
            before = change
            return ended

        # s * x: see the module's docstring.
        scale = (1 - alpha) / (alpha * float(self._totals[2]) + 1 - alpha) if self.form.drops else 1.0
        passes, self._ended = self.follow(met, budget - 1, max(goal, 0.0) / self._n, scale)
        return passes, None

    def follow(
        self, met: Callable[[Sums], Verdict], budget: int, least_move: float, scale: float = 1
    ) -> tuple[int, bool]:
        self.form.load(self._ranks * scale, self._n)
        self.form.epsilon = least_move
        passes, ended = 0, False
        while passes < budget and not ended:
            moves = self.form.scores.copy()
            self.form()
            moves -= self.form.scores
            moves = abs(moves)
            ended = bool(met(Sums(float(moves.sum(dtype=np.float64)), float(moves.max()))))
            passes += 1
        self.paper_passes += passes
        ranks = self.form.in_order()
        self._ranks[:] = ranks / ranks.sum()
        self.start(self._ranks)
        return passes, ended


def step_of(
    problem: Problem, pull: gpu_pull.Pull, form: str | None, iteration: Callable[[], PaperForm], *, values: bool = False
) -> Step:
    """Return a step with this pull, which in a paper's form iterates by the kernels of the paper.

    `values`: Whether the paper stores a value with each edge.
    """
    if form is None:
        return gpu_pull.DeviceStep(problem, pull)
    check_form(problem, values=values)
    return PaperStep(problem, pull, iteration())


def check_form(problem: Problem, *, values: bool = False) -> None:
    """Raise InvalidOptionError for a problem that the papers do not have."""
    if problem.personalization is not None or problem.dangling is not None:
        raise InvalidOptionError("form= has uniform teleport: leave out personalization=, seeds= and dangling=.")
    if problem.adjacency.weighted and not values:
        raise InvalidOptionError(
            "form= has edge weights only in Wu's and Swaroop's (binned, dense, form='wu'): leave out weight= or form=."
        )


def out_degrees(adjacency: Edges, dtype: DTypeLike = np.int32) -> Integers:
    """Return the out-degrees of a graph without weights."""
    return adjacency.out_weight.astype(dtype)


# --- Kim ----------------------------------------------------------------------------------------------------------


class NodeCentric(PaperForm):
    """Algorithm 3 of Kim 2013 on ptrArray and adjListArray; without `degrees`, those of an undirected ptrArray."""

    def __init__(
        self, offsets: Integers, sources: Integers, degrees: Integers | None, alpha: float, *, blocks: int,
        threads: int,
    ) -> None:  # fmt: skip
        self._arrays, self._alpha, self._launch = (offsets, sources, degrees), np.float32(alpha), (blocks, threads)

    def __call__(self) -> None:
        offsets, sources, degrees = self._arrays
        runtime.run(
            "papers/kim.cu", "node_centric", *self._launch, self.scores.size, self._alpha, *self._arrays, self.scores,
            self.other, index_t=sources.dtype, offset_t=offsets.dtype, UNDIRECTED=int(degrees is None),
        )  # fmt: skip
        self.scores, self.other = self.other, self.scores


class EdgeCentric(PaperForm):
    """Algorithms 1 and 2 of Kim 2013 on edgeArray, m rows of source and target, each both ways if `undirected`."""

    def __init__(
        self, edges: Integers, degrees: Integers, alpha: float, *, undirected: bool = False, blocks: int, threads: int
    ) -> None:
        self._edges, self._degrees, self._alpha = edges, degrees, alpha
        self._undirected, self._launch = undirected, (blocks, threads)

    def __call__(self) -> None:
        types: dict[str, runtime.Macro] = {
            "index_t": self._edges.dtype,
            "offset_t": "int",
            "UNDIRECTED": int(self._undirected),
        }
        file, n, alpha = "papers/kim.cu", self.scores.size, self._alpha
        runtime.run(file, "initialize", *self._launch, n, np.float32((1 - alpha) / n), self.other, **types)
        arrays = self._degrees, self._edges, self.scores, self.other
        runtime.run(file, "edge_centric", *self._launch, len(self._edges), np.float32(alpha), *arrays, **types)
        self.scores, self.other = self.other, self.scores


# --- Wu -----------------------------------------------------------------------------------------------------------


class Spmv:
    """Products of Wu and others 2010: Y = A R with the values A_v stored, in float32.

    `lanes`: Threads per row of plain CSR: 1 (1T1R), 16 (16T1R) or 64 (1W1R).
    `bins`: Layout and sizes of the three bins of the hybrid, which have 1, 16 and 64 threads per row.
    """

    def __init__(
        self, adjacency: Edges, lanes: int = 1, bins: tuple[gpu_pull.Layout, Sequence[int]] | None = None
    ) -> None:
        layout = gpu_pull.csc_layout(adjacency)
        self._columns, self._offsets, self._rows = layout.sources, adjacency.get(Csc).offsets, None
        self._values = layout.normalized_weights.of(np.dtype(np.float32))
        if self._values is None:
            self._values = gpu_pull.inverse_out_weight(adjacency).astype(np.float32)[layout.sources]
        self._launches = [(lanes, 0, adjacency.n)]
        if bins is not None:
            (rows, begins, ends, *_), sizes = bins
            assert rows is not None
            self._rows = cupy.stack((begins, ends - begins, rows.astype(begins.dtype)), axis=1)
            bounds = pairwise(np.cumsum([0, *sizes]).tolist())
            self._launches = [(lanes, *span) for lanes, span in zip((1, 16, GROUP), bounds, strict=True)]

    def __call__(self, ranks: Floats, sums: Floats) -> None:
        arrays = self._offsets, self._rows, self._values, self._columns, ranks, sums
        for lanes, first, last in self._launches:
            if first < last:
                blocks = runtime.blocks_for((last - first) * lanes, GROUP)
                runtime.run(
                    "papers/wu.cu", "spmv", blocks, GROUP, first, last, *arrays, LANES=lanes,
                    index_t=self._columns.dtype, offset_t=self._offsets.dtype, BINNED=int(self._rows is not None),
                )  # fmt: skip


class PowerMethod(PaperForm):
    """Algorithm 1 of Wu and others 2010: Y = q A R, and d = ||R|| - ||Y|| is spread as d / n."""

    drops = False

    def __init__(self, multiply: Spmv, alpha: float) -> None:
        self._multiply, self._alpha = multiply, np.float32(alpha)

    def __call__(self) -> None:
        product = self.other
        self._multiply(self.scores, product)
        product *= self._alpha
        product += (self.scores.sum() - product.sum()) / np.float32(product.size)
        self.scores, self.other = product, self.scores


def wu_baseline(adjacency: Edges, alpha: float, lanes: int, *, threads: int, blocks: int | None) -> PowerMethod:
    """Return the power method with a product on plain CSR: 1T1R, 16T1R or 1W1R."""
    if threads != GROUP or blocks is not None:
        raise InvalidOptionError(
            f"form='wu' has groups of {GROUP} threads, and no thread takes a second row: leave out threads=, blocks=."
        )
    return PowerMethod(Spmv(adjacency, lanes), alpha)


# --- Swaroop ------------------------------------------------------------------------------------------------------


class DensePowerMethod(PaperForm):
    """Power method of Swaroop 2021 on the full Google matrix, n x n float32."""

    drops = False

    def __init__(self, matrix: Floats, threads: int) -> None:
        self._matrix, self._threads = matrix, threads

    def enqueue(self, ranks: Floats, last: Floats) -> None:
        """Launch the kernels of an iteration, which leaves the absolute change of each rank in `last`."""
        n, threads = len(self._matrix), self._threads
        kernels = ("store_rank", ranks, last), ("matmul", self._matrix, ranks, last), ("rank_diff", ranks, last)
        for kernel, *arrays in kernels:
            runtime.run("papers/swaroop.cu", kernel, runtime.blocks_for(n, threads), threads, n, *arrays)

    def __call__(self) -> None:
        self.enqueue(self.scores, self.other)


# --- Bowen --------------------------------------------------------------------------------------------------------


class InPlace(PaperForm):
    """Update rule of Bowen 2022: segments one after another write the scores that they read.

    Each segment has its part of the offsets and of the neighbours, and its own counter of updated scores. Those of the
    host are updated last, with the whole graph and a copy of all scores, which is copied back.
    """

    def __init__(
        self, offsets: Integers, sources: Integers, degrees: Integers, alpha: float, segments: Sequence[Segment],
        spans: Sequence[tuple[int, int]], order: Integers | None = None,
    ) -> None:  # fmt: skip
        if sources.dtype != np.int32:
            raise InvalidOptionError("form='paper' has positions of 4 bytes: use it on fewer than 2**31 vertices.")
        self._degrees, self._alpha, self.order = degrees.astype(np.int64), np.float32(alpha), order
        self.on_host, self._segments = [], []
        for segment, (first, last) in zip(segments, spans, strict=True):
            if segment.lanes not in (None, WARP_LANES):
                raise InvalidOptionError(
                    f"form='paper' has {WARP_LANES} lanes, and a segment of the schedule {segment.lanes}."
                )
            if segment.method == "host":
                self.on_host.append((first, last, segment.threads))
                continue
            index = offsets[first : last + 1].astype(np.int64)
            begin, end = int(index[0]), int(index[-1])
            neighbors = cupy.zeros((end - begin, 2), np.int32)  # with a weight, which no kernel reads
            neighbors[:, 0] = sources[begin:end]
            blocks = runtime.blocks_for((last - first) * segment.threads_per_row, segment.threads)
            launch = KERNELS[segment.method], segment.blocks or blocks, segment.threads
            self._segments.append((launch, index - begin, neighbors, np.int32(first), np.int32(last)))
        if self.on_host:
            self._of_host = to_host(offsets).astype(np.int64), to_host(sources), to_host(degrees).astype(np.int32)
        self._updated = cupy.zeros(len(self._segments), np.int32)

    def enqueue(self, *_: object) -> None:
        """Launch the kernel of each segment."""
        n = np.int32(self.scores.size)
        for k, (launch, index, neighbors, *span) in enumerate(self._segments):
            runtime.run(
                "papers/bowen.cu", *launch, index, neighbors, self._degrees, *span, n, self._alpha,
                np.float32(self.epsilon), self.scores, self._updated[k:],
            )  # fmt: skip

    def __call__(self) -> int:
        """Do one iteration; return the number of updated scores."""
        self._updated.fill(0)
        self.enqueue()
        moved = int(to_host(self._updated).sum())
        if self.on_host:
            scores = to_host(self.scores)
            moved += self.update_on_host(scores)
            self.scores.set(scores)
        return moved

    def update_on_host(self, scores: Floats) -> int:
        """Update the scores of the host's segments in place; return the number of updated ones."""
        rest, alpha = (1 - float(self._alpha)) / scores.size, float(self._alpha)
        arrays, numbers = (*self._of_host, scores, scores), (rest, alpha, self.epsilon, 1)
        return sum(update_scores(*arrays, first, last, *numbers, threads) for first, last, threads in self.on_host)


def whole_graph(adjacency: Edges, alpha: float, method: str, blocks: int, threads: int) -> InPlace:
    """Return the iteration with one kernel for all vertices."""
    offsets, sources, _ = adjacency.get(Csc)
    segment = Segment(method=method, blocks=blocks, threads=threads, lanes=WARP_LANES if method == "warp" else None)
    return InPlace(offsets, sources, out_degrees(adjacency, np.int64), alpha, [segment], [(0, adjacency.n)])
