"""Full runs of a prepared step by prplugin's solver loop and stopping rules."""

from __future__ import annotations

from benchmarks.papers.implementations import ALPHA
from prplugin.graph.adjacency import Adjacency
from prplugin.methods.base import Step
from prplugin.options import Options, Stop
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Loop, Outcome
from prplugin.solver.stopping import step_budget

__all__ = ["full_run"]


def full_run(step: Step, adjacency: Adjacency, stop: Stop, tol: float) -> Outcome:
    """Iterate from uniform ranks until the stopping rule is met."""
    options = Options(alpha=ALPHA, tol=tol, stop=stop)
    certificate = Certificate(ALPHA, adjacency.n, adjacency.m, step.rounding, options.dtype, options.scale)
    budget = step_budget(certificate, options)
    return Loop(certificate, options, budget, lambda *state: None).run(step, 1 / adjacency.n)
