"""One GPU block per vertex (block sum in Bowen 2022)."""

from __future__ import annotations

from prplugin.methods.base import Machine, Problem, Step
from prplugin.methods.engines import gpu_pull
from prplugin.papers._forms import Form, launch_of, step_of, whole_graph
from prplugin.papers._rows import RowsPull

name = "block"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = gpu_pull.reason_of(memory)
cost = gpu_pull.cost_of(54e-6, edge=1.5e-11, vertex=1.4e-9)  # fitted to benchmarks/results/kernels.md

forms = {"paper": Form("Bowen 2022, Section 3.2: GPU Block Sum", {"threads": 1024, "blocks": 256})}


def prepare(
    problem: Problem, machine: Machine, *, threads: int | None = None, blocks: int | None = None,
    form: str | None = None,
) -> Step:  # fmt: skip
    """Group the edges by target.

    Parameters
    ----------
    threads : int, optional
        Threads per block, a multiple of 32, 1024 at most; 256 if not given, or those of the form.
    blocks : int, optional
        Blocks of the grid; one per vertex if not given, or those of the form.
    form : "paper", optional
        Iterate by Bowen's Block Sum in place, in float32, which an exact step then proves. It has uniform teleport and
        no weights.
    """
    adjacency = problem.adjacency.on("device")
    pull = RowsPull(gpu_pull.csc_layout(adjacency), name, **launch_of(forms, form, threads=threads, blocks=blocks))
    return step_of(problem, pull, form, lambda: whole_graph(adjacency, problem.alpha, name, pull.blocks, pull.threads))
