"""Lanes of a GPU warp a vertex (warp sum in Bowen 2022; 16T1R and 1W1R in Wu 2010); `lanes=`, `threads=`, `blocks=`."""

from __future__ import annotations

from functools import partial
from numbers import Integral

from prplugin.errors import InvalidOptionError
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.options import whole

name = "warp"
runs_on = "gpu"

LANES = (4, 8, 16, 32)
memory = gpu_pull.MEMORY
unfit = partial(gpu_pull.unfit, memory)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate a ranking, as fitted to benchmarks/results/kernels.md."""
    return gpu_pull.ITERATIONS * (61e-6 + 2.5e-11 * adjacency.m + 1.3e-10 * adjacency.n)


def prepare(
    problem: Problem, machine: Machine, *, lanes: int = 32, threads: int = 256, blocks: int | None = None
) -> Step:
    """Sort the edges by target.

    Parameters
    ----------
    lanes : {32, 16, 8, 4}
        Threads a vertex. Wu's 16T1R has 16, their 1W1R a warp.
    threads : int, default 256
        Threads a block, a multiple of 32, 1024 at most.
    blocks : int, optional
        Blocks of the grid; as many as give each vertex its lanes if not given.
    """
    layout = gpu_pull.csc_layout(problem.adjacency.on("device"))
    return gpu_pull.DeviceStep(problem, WarpPull(layout, lanes=lanes, threads=threads, blocks=blocks))


class WarpPull(gpu_pull.RunsPull):
    """Sums runs of a layout, or some of them, with `lanes` threads each."""

    kernel = ("methods/papers/warp.cu", "warp_pull")

    def __init__(
        self,
        layout: gpu_pull.Layout,
        *,
        first: int = 0,
        last: int | None = None,
        lanes: int = 32,
        threads: int = 256,
        blocks: int | None = None,
    ) -> None:
        if not isinstance(lanes, Integral) or lanes not in LANES:
            raise InvalidOptionError(f"lanes must be one of {', '.join(map(str, LANES))}, not {lanes!r}.")
        self.lanes = int(lanes)
        threads = whole("threads", threads, multiple_of=32, at_most=1024)
        super().__init__(layout, first, last, threads, self.lanes, blocks, LANES=self.lanes)
