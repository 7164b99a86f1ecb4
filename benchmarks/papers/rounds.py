"""Full runs of a prepared step by prplugin's solver loop and stopping rules."""

from __future__ import annotations

from benchmarks.papers.implementations import ALPHA
from prplugin.graph.edges import Edges
from prplugin.methods.base import Step
from prplugin.options import Options
from prplugin.solver.loop import Outcome
from prplugin.solver.solve import solve
from prplugin.stopping import Stop

__all__ = ["full_run"]


def full_run(step: Step, adjacency: Edges, stop: Stop, tol: float) -> Outcome:
    """Iterate from uniform ranks until the stopping rule is met."""
    options = Options(alpha=ALPHA, tol=tol, stop=stop)
    return solve(step, options, adjacency.n, 1 / adjacency.n, lambda *_: lambda *_: None)
