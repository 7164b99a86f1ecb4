"""Node-centric pull: one GPU thread per vertex (Kim 2013, Algorithm 3; 1T1R in Wu 2010)."""

from __future__ import annotations

from prplugin.methods.base import Machine, Problem, Step
from prplugin.methods.engines import gpu_pull
from prplugin.papers import _forms
from prplugin.papers._forms import GROUP, Form, NodeCentric, PaperForm
from prplugin.papers._rows import RowsPull
from prplugin.types.edges import Csc

name = "node"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = gpu_pull.reason_of(memory)
# Fitted to benchmarks/results/kernels.md; a warp waits for its longest row.
cost = gpu_pull.cost_of(49e-6, edge=1.9e-11, vertex=1.1e-10, longest=7e-8)

forms = {
    "paper": Form("Kim 2013, Algorithm 3: node-centric", {"threads": 1000, "blocks": 1000}),
    "bowen": Form("Bowen 2022, Section 3.2: GPU One to One", {"threads": 1024, "blocks": 256}),
    "wu": Form("Wu and others 2010, Section IV: 1T1R on plain CSR", {"threads": GROUP}),
}


def prepare(
    problem: Problem, machine: Machine, *, threads: int | None = None, blocks: int | None = None,
    form: str | None = None,
) -> Step:  # fmt: skip
    """Group the edges by target.

    Parameters
    ----------
    threads : int, optional
        Threads per block, 1024 at most; 256 if not given, or those of the form.
    blocks : int, optional
        Blocks of the grid; as many as give each vertex a thread if not given, or those of the form.
    form : {"paper", "bowen", "wu"}, optional
        Iterate by a paper's kernel as printed, in float32, which an exact step then proves: Algorithm 3 of Kim, which
        takes the degrees of an undirected graph from ptrArray; Bowen's One to One, in place; or Wu's 1T1R. It has
        uniform teleport, and weights only with "wu".
    """
    adjacency = problem.adjacency.on("device")
    launch = _forms.launch_of(forms, form, threads=threads, blocks=blocks)
    pull = RowsPull(gpu_pull.csc_layout(adjacency), name, **launch)

    def iteration() -> PaperForm:
        if form == "bowen":
            return _forms.whole_graph(adjacency, problem.alpha, name, pull.blocks, pull.threads)
        if form == "wu":
            return _forms.wu_baseline(adjacency, problem.alpha, 1, **launch)
        offsets, sources, _ = adjacency.get(Csc)
        degrees = None if problem.adjacency.symmetric else _forms.out_degrees(adjacency)
        return NodeCentric(offsets, sources, degrees, problem.alpha, blocks=pull.blocks, threads=pull.threads)

    return _forms.step_of(problem, pull, form, iteration, values=form == "wu")
