"""Lanes of a warp per vertex (Bowen 2022: warp sum; Wu 2010: 16T1R and 1W1R)."""

from __future__ import annotations

from prplugin.errors import InvalidOptionError
from prplugin.methods.base import Machine, Problem, Step
from prplugin.methods.engines import gpu_pull
from prplugin.papers._forms import GROUP, WARP_LANES, Form, PaperForm, launch_of, step_of, whole_graph, wu_baseline
from prplugin.papers._rows import LANES, RowsPull

name = "warp"
runs_on = "gpu"
memory = gpu_pull.MEMORY
unavailable_reason = gpu_pull.reason_of(memory)
cost = gpu_pull.cost_of(61e-6, edge=2.5e-11, vertex=1.3e-10)  # fitted to benchmarks/results/kernels.md

forms = {
    "paper": Form("Bowen 2022, Section 3.2: GPU Warp Sum", {"lanes": 32, "threads": 1024, "blocks": 256}),
    "wu": Form("Wu and others 2010, Section IV: 16T1R, lanes=64: 1W1R, plain CSR", {"lanes": 16, "threads": GROUP}),
}


def prepare(
    problem: Problem, machine: Machine, *, lanes: int | None = None, threads: int | None = None,
    blocks: int | None = None, form: str | None = None,
) -> Step:  # fmt: skip
    """Group the edges by target.

    Parameters
    ----------
    lanes : {32, 16, 8, 4}, optional
        Threads per vertex; 32 if not given, or those of the form. Wu's 16T1R has 16, their 1W1R a wavefront of 64.
    threads : int, optional
        Threads per block, a multiple of 32, 1024 at most; 256 if not given, or those of the form.
    blocks : int, optional
        Blocks of the grid; as many as give each vertex its lanes if not given, or those of the form.
    form : {"paper", "wu"}, optional
        Iterate by a paper's kernel as printed, in float32, which an exact step then proves: Bowen's Warp Sum in place,
        with 32 lanes; or Wu's 16T1R or 1W1R (lanes 16 or 64). It has uniform teleport, and weights only with "wu".
    """
    adjacency = problem.adjacency.on("device")
    launch = launch_of(forms, form, lanes=lanes, threads=threads, blocks=blocks)
    lanes = launch["lanes"] = WARP_LANES if launch["lanes"] is None else launch["lanes"]
    allowed = {None: LANES, "paper": (WARP_LANES,), "wu": (16, GROUP)}[form]
    if form is not None and lanes not in allowed:
        has = " or ".join(map(str, allowed))
        raise InvalidOptionError(f"form={form!r} has {has} lanes, not {lanes!r}: leave out lanes= or form=.")
    pull = RowsPull(gpu_pull.csc_layout(adjacency), name, **launch | ({"lanes": WARP_LANES} if form == "wu" else {}))

    def iteration() -> PaperForm:
        if form == "wu":
            return wu_baseline(adjacency, problem.alpha, lanes, threads=launch["threads"], blocks=blocks)
        return whole_graph(adjacency, problem.alpha, name, pull.blocks, pull.threads)

    return step_of(problem, pull, form, iteration, values=form == "wu")
