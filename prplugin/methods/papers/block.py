"""A GPU block a vertex (block sum in Bowen 2022); `threads=`, `blocks=`."""

from __future__ import annotations

from functools import partial

from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.options import whole

name = "block"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unfit = partial(gpu_pull.unfit, memory)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate a ranking, as fitted to benchmarks/results/kernels.md."""
    return gpu_pull.ITERATIONS * (54e-6 + 1.5e-11 * adjacency.m + 1.4e-9 * adjacency.n)


def prepare(problem: Problem, machine: Machine, *, threads: int = 256, blocks: int | None = None) -> Step:
    """Sort the edges by target.

    Parameters
    ----------
    threads : int, default 256
        Threads a block, a multiple of 32, 1024 at most.
    blocks : int, optional
        Blocks of the grid; one a vertex if not given.
    """
    layout = gpu_pull.csc_layout(problem.adjacency.on("device"))
    return gpu_pull.DeviceStep(problem, BlockPull(layout, threads=threads, blocks=blocks))


class BlockPull(gpu_pull.RunsPull):
    """Sums runs of a layout, or some of them, with a block each."""

    kernel = ("methods/papers/block.cu", "block_pull")

    def __init__(
        self,
        layout: gpu_pull.Layout,
        *,
        first: int = 0,
        last: int | None = None,
        threads: int = 256,
        blocks: int | None = None,
    ) -> None:
        threads = whole("threads", threads, multiple_of=32, at_most=1024)
        super().__init__(layout, first, last, threads, threads, blocks)
