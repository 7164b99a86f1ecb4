"""Iteration on a GPU over the vertices of a rank, with the kernel of a method and NCCL for contributions of ghosts.

An iteration consists of one launch of the method's kernel, a gather of the contributions that other ranks need, and one
NCCL group, which exchanges these contributions and the partial sums of all ranks. Gather and exchange run on a separate
stream. Meanwhile the next iteration begins with the work that needs no ghosts, if the method supports that. Each kernel
adds the partial sums of all ranks in the order of ranks, so that all ranks have the same bits. Plain iterations follow
one another without the host: it reads the sums of an iteration while the next ones run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import cupy
import cupyx

from prplugin.distributed.communicator import all_reduce_sum
from prplugin.distributed.shard import Shard
from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.edges import Problem
from prplugin.machine import this_machine
from prplugin.methods import persistent, propagation_blocking
from prplugin.methods.base import Sum, Sums
from prplugin.methods.engines import gpu_merge, gpu_pull
from prplugin.methods.registry import options_of
from prplugin.options import Options
from prplugin.types.arrays import Array
from prplugin.types.edges import Floats

if TYPE_CHECKING:
    from prplugin.distributed.nccl import DeviceRanks

HIGH_PRIORITY = -1  # of a stream; 0 is the default
MIXING_FROM = 30.0  # as in gpu_merge: here a step of a history, which waits for the host, takes as long as three
AHEAD = 2  # iterations enqueued before the host reads the sums of the first: as many as there are buffers of sums

PLANS: dict[Any, Any] = {
    persistent: persistent.PersistentPlan,
    propagation_blocking: propagation_blocking.BlockedPlan,
}


def prepare(communicator: DeviceRanks, shard: Shard, options: Options) -> tuple[str, Callable[[Problem], RowsStep]]:
    """Choose a method, the same on all ranks, by the cost on the slowest rank.

    Return its name, and a function that prepares the step of one ranking after another.

    Raise MethodUnavailableError if the requested method cannot run on the part of some rank.
    """
    candidates = [
        method
        for method in PLANS
        if options.method in ("auto", method.name) and set(options.method_options) <= set(options_of(method))
    ]
    machine, adjacency = this_machine(), shard.adjacency
    of_ranks = communicator.all_gather(
        [(method.unavailable_reason(adjacency, machine), method.cost(adjacency, machine)) for method in candidates]
    )
    costs, reasons = {}, []
    for method, found in zip(candidates, zip(*of_ranks, strict=True), strict=True):
        unavailable = [reason for reason, _ in found if reason is not None]
        reasons += unavailable
        if not unavailable:
            costs[method] = max(cost for _, cost in found)
    if not costs:
        raise MethodUnavailableError(f"method {candidates[0].name!r} cannot run here: {reasons[0]}")
    method = min(costs, key=lambda method: costs[method])
    plan = PLANS[method](adjacency, rows=shard.rows, **options.method_options) if shard.rows else None
    return method.name, partial(RowsStep, communicator, shard, plan)


class RowsPlan(gpu_merge.Plan, Protocol):
    """Plan of a kernel for the vertices of one rank. Sources of edges may be ghosts."""

    def begin(self, contributions: Array) -> None:
        """Start the work of an iteration that needs no contributions of ghosts, which may still be missing."""


class RowsStep(gpu_merge.MergedRows):
    """x := alpha * (P^T x + D * w) + (1 - alpha) * v, for the vertices of this rank, one iteration per launch.

    `plan` is the plan of the kernel, or None if the rank owns no vertex.
    """

    def __init__(self, communicator: DeviceRanks, shard: Shard, plan: RowsPlan | None, problem: Problem) -> None:
        self._communicator, self._shard = communicator, shard
        size, totals = communicator.size, gpu_pull.TOTALS
        types = ("float32", "float64")
        facts = communicator.all_gather(
            (
                plan is not None and plan.float32_is_faster,
                [0 if plan is None else plan.rounding_depth(t) for t in types],
            )
        )
        self.float32_is_faster = any(faster for faster, _ in facts)
        self._row_depths = {t: max(depths[i] for _, depths in facts) for i, t in enumerate(types)}
        # The same grid on all ranks, so that the arrays of partial sums per block have the same size.
        blocks = min(runtime.blocks_for(shard.max_rows, gpu_merge.THREADS), gpu_pull.BLOCKS)
        self._measured, self._all_start_sums, all_sums = self._allocate(
            problem, plan, shard.rows, shard.n, blocks, 2 * totals, totals * blocks * size, 2 * totals * size
        )
        # Double buffer: a step reads the sums of the previous one. Each has a copy on the host, and an event after it.
        self._all_sums = [
            (sums, cupyx.empty_pinned((size, totals)), cupy.cuda.Event()) for sums in all_sums.reshape(2, size, totals)
        ]
        self._edge_count, self._mixes = shard.m, False
        sums = 3 * gpu_pull.TOTALS_DEPTH + size  # sums within a block, over blocks, and over ranks
        self._rounding = self.rounding = shard.step_rounding(self._row_depths["float64"], sums)
        self._ghost_sources = cupy.concatenate(shard.ghost_sources)
        # Its kernels are scheduled before those of the next iteration, which would occupy all multiprocessors.
        self._exchange_stream = cupy.cuda.Stream(non_blocking=True, priority=HIGH_PRIORITY)
        self._inputs_ready, self._gathered, self._exchanged = (cupy.cuda.Event(disable_timing=True) for _ in range(3))

    def set_contribution_dtype(self, dtype: str) -> None:
        super().set_contribution_dtype(dtype)
        self._send_buffer = cupy.empty(self._ghost_sources.size, dtype)

    def start(self, ranks: Floats | float) -> None:
        super().start(ranks)
        self._start_exchange(self._begun, self._all_start_sums)
        self._latest_sums = self._starting * self._communicator.size, self._all_start_sums
        self._change = math.inf

    def __call__(self, moves: Array | None = None) -> Sums:
        before = None if moves is None else self._ranks.copy()
        self._enqueue()
        if before is not None:
            cupy.subtract(self._ranks, before, out=moves, casting="same_kind")
        cupy.cuda.get_current_stream().wait_event(self._exchanged)
        return Sums(*self._sums_of(self._all_sums[1]))

    def advance(self, goal: float, budget: int) -> tuple[int, Sums | None]:
        """Take plain steps, of which up to `AHEAD` are enqueued before the host reads the sums of the first.

        Those sums are the same on all ranks, so that all enqueue as many. Far from the goal, the solver's loop mixes.
        """
        rate, enqueued, taken = self._alpha, 0, list[tuple[float, float]]()
        ended = self._mixes
        while not ended or len(taken) < enqueued:
            ahead = enqueued - len(taken)
            # Wait for the steps under way if their last one is expected to reach the goal.
            if not ended and enqueued < budget and (not ahead or (ahead < AHEAD and self._change * rate**ahead > goal)):
                self._enqueue()
                enqueued += 1
                continue
            taken.append(self._sums_of(self._all_sums[AHEAD - ahead]))
            before, self._change = self._change, taken[-1][0]
            rate = min(self._alpha, self._change / before) if 0 < before < math.inf else self._alpha
            stalls = self._change >= (1 + self._alpha) / 2 * before
            far = rate > 0 and goal > 0 and self._change * rate**MIXING_FROM > goal and before < math.inf
            self._mixes = self._mixes or far
            ended = ended or self._change <= goal or stalls or far or len(taken) == budget
        if not taken:
            return 0, None
        return len(taken), Sums(*taken[-1], [change for change, _ in taken[:-1]])

    def _enqueue(self) -> None:
        """Enqueue an iteration, the exchange after it, and the copy of the sums of all ranks to the host."""
        self._step()
        self._contributions.reverse()
        sums: Any
        sums, copied, read = self._all_sums[0]
        self._start_exchange(self._measured[gpu_pull.TOTALS :], sums)
        with self._exchange_stream:
            sums.get(out=copied, blocking=False)
            read.record()
        self._latest_sums = self._communicator.size, sums
        self._all_sums.reverse()

    def _sums_of(self, step: tuple[Any, Any, Any]) -> tuple[float, float]:
        """Wait for the sums of a step: the change and the largest of a vertex."""
        began = time.perf_counter()
        _, measured, read = step
        read.synchronize()
        self._communicator.check()
        self._communicator.wait_seconds += time.perf_counter() - began
        return sum(measured[:, 0].tolist()), float(measured[:, 1].max())

    def _step(self) -> None:
        stream = cupy.cuda.get_current_stream()
        if self._plan is None:
            stream.wait_event(self._exchanged)
            return  # its partial sums stay 0
        stream.wait_event(self._gathered)
        self._plan.begin(self._contributions[0])
        stream.wait_event(self._exchanged)
        self._iterate(self._latest_sums, self._measured)

    def _start_exchange(self, measured: Array, all_sums: Array) -> None:
        """Exchange the contributions of ghosts and the partial sums of all ranks, on a separate stream."""
        shard, contributions = self._shard, self._contributions[0]
        self._inputs_ready.record()
        self._exchange_stream.wait_event(self._inputs_ready)
        with self._exchange_stream:
            if self._ghost_sources.size:
                cupy.take(contributions, self._ghost_sources, out=self._send_buffer)
            self._gathered.record()
            with self._communicator.group() as calls:
                sent, ghost = 0, self._rows
                for rank, (vertices, ghosts) in enumerate(zip(shard.ghost_sources, shard.ghost_counts, strict=True)):
                    calls.send(self._send_buffer[sent : sent + vertices.size], rank)
                    calls.receive(contributions[ghost : ghost + ghosts], rank)
                    sent += vertices.size
                    ghost += ghosts
                calls.all(measured, all_sums)
            self._exchanged.record()

    def add(self, values: Sum) -> Sum:
        return all_reduce_sum(self._communicator, values)
