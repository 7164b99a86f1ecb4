"""One GPU block per vertex (block sum in Bowen 2022); `threads=`, `blocks=`."""

from __future__ import annotations

from functools import partial

from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.methods.papers._rows import pull_step

name = "block"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = partial(gpu_pull.unavailable_reason, memory)


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate a ranking, fitted to benchmarks/results/kernels.md."""
    return gpu_pull.ITERATIONS * (54e-6 + 1.5e-11 * adjacency.m + 1.4e-9 * adjacency.n)


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
