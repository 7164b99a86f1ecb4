"""Iteration on a GPU over the vertices of a rank, with the kernel of a method and NCCL for contributions of ghosts.

An iteration consists of one launch of the method's kernel, a gather of the contributions that other ranks need, and one
NCCL group, which exchanges these contributions and the partial sums of all ranks. Gather and exchange run on a separate
stream. Meanwhile the next iteration begins with the work that needs no ghosts, if the method supports that. Each kernel
adds the partial sums of all ranks in the order of ranks, so that all ranks have the same bits.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import cupy
import numpy as np

from prplugin.distributed.communicator import summed
from prplugin.distributed.shard import Shard
from prplugin.distributed.vectors import vector_depth
from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.machine import this_machine
from prplugin.methods import persistent, propagation_blocking
from prplugin.methods.base import Sums
from prplugin.methods.engines import gpu_merge, gpu_pull
from prplugin.methods.engines.device_mixing import MixedOnDevice
from prplugin.numerics.rounding import StepRounding
from prplugin.options import Options
from prplugin.types.edges import Floats

if TYPE_CHECKING:
    from prplugin.distributed.nccl import DeviceRanks

__all__ = ["RowsStep", "prepare"]

PLANS = {persistent.name: persistent.PersistentPlan, propagation_blocking.name: propagation_blocking.BlockedPlan}


def prepare(
    communicator: DeviceRanks, shard: Shard, options: Options, v: Floats | None, w: Floats | None
) -> tuple[str, RowsStep]:
    """Choose a method, the same on all ranks, by the cost on the slowest rank; return its name and the step.

    Raises
    ------
    MethodUnavailableError
        If the requested method cannot run on the part of some rank.
    """
    asked = list(PLANS) if options.method == "auto" else [options.method]
    able = [name for name in asked if set(options.method_options) <= set(_options_of_plan(name))]
    machine, adjacency = this_machine(), shard.adjacency
    by_name = {propagation_blocking.name: propagation_blocking, persistent.name: persistent}
    found = communicator.gather(
        [
            (by_name[name].unavailable_reason(adjacency, machine), by_name[name].cost(adjacency, machine))
            for name in able
        ]
    )
    costs = {}
    for nth, name in enumerate(able):
        reasons = [of_rank[nth][0] for of_rank in found if of_rank[nth][0] is not None]
        if not reasons:
            costs[name] = max(of_rank[nth][1] for of_rank in found)
    if not costs:
        raise MethodUnavailableError(f"method {able[0]!r} cannot run here: {found[0][0][0] or reasons[0]}")
    name = min(costs, key=lambda name: costs[name])
    plan = PLANS[name](adjacency, rows=shard.rows, **options.method_options) if shard.rows else None
    return name, RowsStep(communicator, shard, options.alpha, v, w, plan)


def _options_of_plan(name: str) -> tuple[str, ...]:
    return ("tile", "piece") if name == propagation_blocking.name else ()


class RowsPlan(gpu_merge.Plan, Protocol):
    """Plan of a kernel for the vertices of one rank. Sources of edges may be ghosts."""

    def begin(self, contributions: Any) -> None:
        """Start the work of an iteration that needs no contributions of ghosts, which may still be missing."""


class RowsStep(MixedOnDevice):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, for the vertices of this rank; the counterpart of `MergeStep`.

    Parameters
    ----------
    plan : RowsPlan, or None
        Plan of the kernel; None if the rank owns no vertex.
    """

    def __init__(
        self,
        communicator: DeviceRanks,
        shard: Shard,
        alpha: float,
        v: Floats | None,
        w: Floats | None,
        plan: RowsPlan | None,
    ) -> None:
        self._communicator, self._shard, self._plan = communicator, shard, plan
        self._weighted = shard.adjacency.weighted
        self._n, self._rows = shard.adjacency.n, shard.rows
        size, most = communicator.size, int(np.diff(shard.offsets).max())
        facts = communicator.gather(
            (plan is not None and plan.float32_is_faster, 0 if plan is None else plan.pieces.rounding_depth)
        )
        self.float32_is_faster = any(narrow for narrow, _ in facts)
        # The same grid on all ranks, so that the arrays of partial sums per block have the same size.
        self._starting = min(runtime.blocks_for(most, gpu_merge.THREADS), gpu_pull.BLOCKS)
        pieces = 0 if plan is None else plan.pieces.count
        blocks = 0 if plan is None else min(pieces, gpu_merge.most_blocks_of(plan))
        totals = gpu_pull.TOTALS
        sizes = (
            pieces, pieces, 2 * totals, totals * self._starting, totals * self._starting * size,
            2 * totals * size, 2, self._rows, self._rows, 2 * self._n, 2 * totals * max(1, blocks), 1,
        )  # fmt: skip
        room = cupy.zeros(sum(sizes))
        (
            self._fronts, self._tails, self._measured, self._begun, self._all_begun, everyone, self._constants,
            self._before, self._inverse_out_weight, self._both, self._partials, arrived,
        ) = (room[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True))  # fmt: skip
        self._arrived = arrived.view(np.uint32)
        # Double buffer: a step reads the sums of the previous one.
        self._everyone = list(everyone.reshape(2, size, totals))
        uniform = 1.0 / shard.n
        self._uniform = uniform, (1 - alpha) * uniform
        self._equation = alpha, *self._vectors(alpha, v, w), self._inverse_out_weight
        sums = 3 * gpu_pull.TOTALS_DEPTH + size  # sums within a block, over blocks, and over ranks
        self._rounding = self.rounding = StepRounding(
            row=max(depth for _, depth in facts),
            edge=shard.out_weight_depth + 4 if self._weighted else 2,
            dangling=sums,
            vectors=vector_depth(shard),
            norm=sums + 1,
        )
        self._sent = cupy.concatenate(shard.sent)
        self._travelling = cupy.cuda.Stream(non_blocking=True)
        self._began, self._here = cupy.cuda.Event(), cupy.cuda.Event()
        self._ready = cupy.cuda.Event()
        self._contributions: list[Any] = []

    def _vectors(self, alpha: float, v: Floats | None, w: Floats | None) -> tuple[Any, int, Any, int]:
        """Return w and (1 - alpha) * v as kernel arguments: array and stride, with stride 0 for a uniform vector."""
        if v is None:
            teleport, step = self._constants[1:], 0
        else:
            teleport, step = (1 - alpha) * v, 1
        if w is None and v is not None:
            w = v
        return (self._constants, 0, teleport, step) if w is None else (w, 1, teleport, step)

    def set_contribution_dtype(self, dtype: str) -> None:
        self.rounding = gpu_pull.rounding_in(self._rounding, dtype, weighted=self._weighted)
        both = self._both.view(dtype)
        self._contributions = [both[: self._n], both[self._n : 2 * self._n]]
        self._leaving = cupy.empty(self._sent.size, dtype)
        self._begin = runtime.kernel("gpu/merge_start.cu", "merge_start", real_t=runtime.ctype(dtype))
        if self._plan is not None:
            self._edges: tuple[Any, ...] = ()  # frees the edges in the other precision
            self._launch = self._plan.kernel(dtype).kernel
            self._room = self._plan.smem(dtype)
            self._blocks = gpu_merge.blocks_of(self._plan, self._launch, self._room)
            self._edges = self._plan.edges(dtype)

    def start(self, ranks: Floats | float) -> None:
        if not self._contributions:
            self.set_contribution_dtype("float64")
        given, uniform = (None, ranks) if isinstance(ranks, float) else (cupy.asarray(ranks, np.float64), 0.0)
        self._ranks: Floats = cupy.empty(self._rows)
        self._begin(
            (self._starting,),
            (gpu_merge.THREADS,),
            (
                self._rows, np.int32(self._weighted), self._shard.adjacency.out_weight, given, uniform,
                *self._uniform, self._tails.size, self._tails, 0, self._measured, self._arrived, self._constants,
                self._ranks, self._inverse_out_weight, self._contributions[0], self._begun,
            ),
        )  # fmt: skip
        self._bring(self._begun, self._all_begun)
        self._latest = self._starting * self._communicator.size, self._all_begun

    def __call__(self, moves: Any = None) -> Sums:
        everyone = self._everyone[0]
        before = None if moves is None else self._ranks.copy()
        self._step()
        if before is not None:
            cupy.subtract(self._ranks, before, out=moves, casting="same_kind")
        self._contributions.reverse()
        self._bring(self._measured[gpu_pull.TOTALS :], everyone)
        self._latest = self._communicator.size, everyone
        self._everyone.reverse()
        cupy.cuda.get_current_stream().wait_event(self._here)
        measured = self._communicator.arrived(everyone)
        self._communicator.waited(cupy.cuda.get_elapsed_time(self._began, self._here) / 1000)
        return Sums(sum(measured[:, 0].tolist()), float(measured[:, 1].max()))

    def _step(self) -> None:
        stream = cupy.cuda.get_current_stream()
        if self._plan is None:
            stream.wait_event(self._here)
            return  # its partial sums stay 0
        self._plan.begin(self._contributions[0])
        stream.wait_event(self._here)
        pieces = self._plan.pieces
        self._launch(
            (self._blocks,),
            (self._plan.threads,),
            (
                np.int32(1), -1.0, np.inf, np.inf, np.inf, pieces.n, pieces.m, pieces.size, pieces.count, pieces.cuts,
                pieces.offsets, self._fronts, self._tails, *self._edges, *self._equation, self._ranks,
                *self._contributions, np.int32(self._latest[0]), self._latest[1], self._measured, self._partials,
                self._arrived, *gpu_merge.NO_MIXING,
            ),
            shared_mem=self._room,
            enable_cooperative_groups=True,
        )  # fmt: skip

    def _bring(self, measured: Any, everyone: Any) -> None:
        """Exchange the contributions of ghosts and the partial sums of all ranks, on a separate stream.

        The event `_here` marks the end.
        """
        self._ready.record()
        self._travelling.wait_event(self._ready)
        with self._travelling:
            self._began.record()
            self._exchange(self._contributions[0], measured, everyone)
            self._here.record()

    def _exchange(self, contributions: Any, measured: Any, everyone: Any) -> None:
        shard = self._shard
        if self._sent.size:
            cupy.take(contributions, self._sent, out=self._leaving)
        with self._communicator.together() as calls:
            leaving, ghost = 0, self._rows
            for rank, (vertices, ghosts) in enumerate(zip(shard.sent, shard.ghosts, strict=True)):
                calls.send(self._leaving[leaving : leaving + vertices.size], rank)
                calls.receive(contributions[ghost : ghost + ghosts], rank)
                leaving += vertices.size
                ghost += ghosts
            calls.all(measured, everyone)

    def ranks(self) -> Floats:
        return self._ranks

    def add(self, values: Any) -> Any:
        return summed(self._communicator, values)
