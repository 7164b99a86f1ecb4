"""One GPU block per vertex (block sum in Bowen 2022)."""

from __future__ import annotations

from functools import partial

from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.papers._rows import pull_step

name = "block"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = partial(gpu_pull.unavailable_reason, memory)
cost = gpu_pull.cost_of(54e-6, edge=1.5e-11, vertex=1.4e-9)
"""Fitted to benchmarks/results/kernels.md."""


def prepare(problem: Problem, machine: Machine, *, threads: int = 256, blocks: int | None = None) -> Step:
    """Group the edges by target.

    Parameters
    ----------
    threads : int, default 256
        Threads per block, a multiple of 32, 1024 at most.
    blocks : int, optional
        Blocks of the grid; one per vertex if not given.
    """
    return pull_step(problem, name, threads=threads, blocks=blocks)
