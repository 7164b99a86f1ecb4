"""Lanes of a warp per vertex (Bowen 2022: warp sum; Wu 2010: 16T1R and 1W1R)."""

from __future__ import annotations

from functools import partial

from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.papers._rows import pull_step

name = "warp"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = partial(gpu_pull.unavailable_reason, memory)
cost = gpu_pull.cost_of(61e-6, edge=2.5e-11, vertex=1.3e-10)
"""Fitted to benchmarks/results/kernels.md."""


def prepare(
    problem: Problem, machine: Machine, *, lanes: int = 32, threads: int = 256, blocks: int | None = None
) -> Step:
    """Group the edges by target.

    Parameters
    ----------
    lanes : {32, 16, 8, 4}
        Threads per vertex. Wu's 16T1R has 16, their 1W1R a warp.
    threads : int, default 256
        Threads per block, a multiple of 32, 1024 at most.
    blocks : int, optional
        Blocks of the grid; as many as give each vertex its lanes if not given.
    """
    return pull_step(problem, name, lanes=lanes, threads=threads, blocks=blocks)
