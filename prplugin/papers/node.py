"""Node-centric pull: one GPU thread per vertex (Kim 2013, Algorithm 3; 1T1R in Wu 2010)."""

from __future__ import annotations

from prplugin.methods.base import Machine, Problem, Step
from prplugin.methods.engines import gpu_pull
from prplugin.papers._forms import NodeCentric, out_degrees, step_of
from prplugin.papers._rows import RowsPull

name = "node"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = gpu_pull.reason_of(memory)
# Fitted to benchmarks/results/kernels.md; a warp waits for its longest row.
cost = gpu_pull.cost_of(49e-6, edge=1.9e-11, vertex=1.1e-10, longest=7e-8)


def prepare(
    problem: Problem, machine: Machine, *, threads: int = 256, blocks: int | None = None, form: str | None = None
) -> Step:
    """Group the edges by target.

    Parameters
    ----------
    threads : int, default 256
        Threads per block, 1024 at most.
    blocks : int, optional
        Blocks of the grid; as many as give each vertex a thread if not given. Kim uses 1000 blocks of 1000 threads.
    form : "paper", optional
        Approach the solution by Algorithm 3 of Kim as printed, in float32, which exact steps then prove. It has uniform
        teleport and no weights.
    """
    adjacency = problem.adjacency.on("device")
    pull = RowsPull(gpu_pull.csc_layout(adjacency), name, threads=threads, blocks=blocks)

    def iteration() -> NodeCentric:
        offsets, sources, _ = adjacency.csc
        degrees = out_degrees(adjacency)
        return NodeCentric(offsets, sources, degrees, problem.alpha, blocks=pull.blocks, threads=pull.threads)

    return step_of(problem, pull, form, iteration)
