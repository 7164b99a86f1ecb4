"""Lanes of a warp per vertex (Bowen 2022: warp sum; Wu 2010: 16T1R and 1W1R)."""

from __future__ import annotations

from prplugin.errors import InvalidOptionError
from prplugin.methods.base import Machine, Problem, Step
from prplugin.methods.engines import gpu_pull
from prplugin.papers._forms import WARP_LANES, step_of, whole_graph
from prplugin.papers._rows import RowsPull

name = "warp"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = gpu_pull.reason_of(memory)
cost = gpu_pull.cost_of(61e-6, edge=2.5e-11, vertex=1.3e-10)  # fitted to benchmarks/results/kernels.md


def prepare(
    problem: Problem,
    machine: Machine,
    *,
    lanes: int = 32,
    threads: int = 256,
    blocks: int | None = None,
    form: str | None = None,
) -> Step:
    """Group the edges by target.

    Parameters
    ----------
    lanes : {32, 16, 8, 4}
        Threads per vertex. Wu's 16T1R has 16, their 1W1R a warp.
    threads : int, default 256
        Threads per block, a multiple of 32, 1024 at most.
    blocks : int, optional
        Blocks of the grid; as many as give each vertex its lanes if not given. Bowen uses 256 blocks of 1024 threads.
    form : "paper", optional
        Approach the solution by Bowen's warp sum in place, in float32 with 32 lanes, which exact steps then prove. It
        has uniform teleport and no weights.
    """
    adjacency = problem.adjacency.on("device")
    pull = RowsPull(gpu_pull.csc_layout(adjacency), name, lanes=lanes, threads=threads, blocks=blocks)
    if form is not None and lanes != WARP_LANES:
        raise InvalidOptionError(f"form='paper' has {WARP_LANES} lanes, not {lanes!r}: leave out lanes= or form=.")
    return step_of(problem, pull, form, lambda: whole_graph(adjacency, problem.alpha, name, pull.blocks, pull.threads))
