"""One GPU block per vertex (block sum in Bowen 2022)."""

from __future__ import annotations

from prplugin.methods.base import Machine, Problem, Step
from prplugin.methods.engines import gpu_pull
from prplugin.papers._forms import step_of, whole_graph
from prplugin.papers._rows import RowsPull

name = "block"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = gpu_pull.reason_of(memory)
cost = gpu_pull.cost_of(54e-6, edge=1.5e-11, vertex=1.4e-9)  # fitted to benchmarks/results/kernels.md


def prepare(
    problem: Problem, machine: Machine, *, threads: int = 256, blocks: int | None = None, form: str | None = None
) -> Step:
    """Group the edges by target.

    Parameters
    ----------
    threads : int, default 256
        Threads per block, a multiple of 32, 1024 at most.
    blocks : int, optional
        Blocks of the grid; one per vertex if not given. Bowen uses 256 blocks of 1024 threads.
    form : "paper", optional
        Approach the solution by Bowen's block sum in place, in float32, which exact steps then prove. It has uniform
        teleport and no weights.
    """
    adjacency = problem.adjacency.on("device")
    pull = RowsPull(gpu_pull.csc_layout(adjacency), name, threads=threads, blocks=blocks)
    return step_of(problem, pull, form, lambda: whole_graph(adjacency, problem.alpha, name, pull.blocks, pull.threads))
