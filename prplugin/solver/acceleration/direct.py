"""Very slow convergence: solve a small problem directly, and warn about a large one."""

from __future__ import annotations

import math
import time
import warnings
from typing import Protocol

import numpy as np

from prplugin.errors import PageRankWarning
from prplugin.graph.edges import Problem
from prplugin.methods.base import Step
from prplugin.solver.loop import Now, Proposal, Strategy
from prplugin.types.edges import Csc, Floats, PackedParts

DIRECT_AFTER = 2000
"""Number of passes after which a small problem is solved directly: a few hundredths of a second. It is a count and not
a time, so that the ranks are the same in every run."""

MAX_DIRECT_VERTICES = 2000
"""Maximum number of vertices of a small problem. Its LU factors, if dense, take 64 MB and a second."""

WARN_SECONDS = 10.0
"""Estimated remaining seconds above which the user is warned."""

RATE_SECONDS = 1.0
"""Seconds over which the convergence rate and the time per pass are measured."""

WARN_PASSES = 1000
"""Remaining passes above which the user is warned. With fewer, the graph is large but convergence is not slow.

With a smaller budget in all there is nothing to react to: `DIRECT_AFTER` is larger."""


class SlowConvergence(Strategy):
    """Reacts to very slow convergence: restarts from a direct solution, or warns once.

    `problem`: Solved directly if it has at most `MAX_DIRECT_VERTICES` vertices. None: only warn.
    `solver`: Solves it, with a factorization that problems with other personalizations share.
    `made`: Number of passes that were made before this ranking continues.
    """

    def __init__(self, problem: Problem | None, solver: DirectSolver | None = None, made: int = 0) -> None:
        self._small = problem if problem is not None and is_small(problem) else None
        self._solver = solver or DirectSolver()
        self._direct_after = DIRECT_AFTER - made
        self._began: tuple[float, int, float] | None = None
        self._warned = False

    def propose(self, step: Step, now: Now) -> Proposal | None:
        """Propose a direct solution after `DIRECT_AFTER` passes in all, or else warn about a long remaining time."""
        passes, last, change, goal = now.passes, now.last, float(now.change), now.goal
        if self._small is not None and passes >= self._direct_after:
            solution, self._small = self._solver.solve(self._small.on("host")), None
            if solution is not None:
                step.start(solution)
                return Proposal()
        if not passes:
            return None
        clock = time.perf_counter()
        if self._began is None:
            self._began = clock, passes, change  # not earlier: the first pass compiles kernels
        began, first, before = self._began
        if not self._warned and self._small is None and clock - began > RATE_SECONDS and passes > first:
            self._began = clock, passes, change
            left = last - passes
            if 0 < goal < change < before:
                left = min(left, round((passes - first) * math.log(change / goal) / math.log(before / change)))
            seconds = left * (clock - began) / (passes - first)
            self._warned = left > WARN_PASSES and seconds > WARN_SECONDS
            if self._warned:
                warnings.warn(
                    f"convergence is slow: about {left:,} more iterations, {seconds:,.0f} seconds at the pace so far. "
                    "Ask for a larger tol or a smaller alpha, or limit them by max_iter.",
                    PageRankWarning,
                    stacklevel=2,
                )
        return None


def is_small(problem: Problem) -> bool:
    """Return whether slow convergence ends by a direct solution."""
    return problem.adjacency.n <= MAX_DIRECT_VERTICES and problem.adjacency.given is not PackedParts


class Factors(Protocol):
    """LU factors of SciPy."""

    def solve(self, rhs: Floats) -> Floats:
        """Return the solution for a right side."""


class DirectSolver:
    """Solves x = alpha * (P^T x + D * w) + (1 - alpha) * v by a sparse LU factorization, which it keeps.

    All problems must have the same graph, alpha and w.
    """

    def __init__(self) -> None:
        self._factors: Factors | None = None

    def solve(self, problem: Problem) -> Floats | None:
        """Return the solution; None without SciPy, or if it is not finite.

        With z_b = (I - alpha P^T)^-1 b and d the sum over dangling vertices, x = (1 - alpha) z_v + alpha D z_w and
        D = (1 - alpha) d(z_v) / (1 - alpha d(z_w)).
        """
        if self._factors is None:
            self._factors = _factors(problem)
        if self._factors is None:
            return None
        n, alpha, dangling = problem.adjacency.n, problem.alpha, problem.adjacency.out_weight == 0
        v = np.full(n, 1.0 / n) if problem.personalization is None else problem.personalization
        z = self._factors.solve(v)
        x = (1 - alpha) * z
        if dangling.any():
            z = z if problem.dangling is None else self._factors.solve(problem.dangling)
            x += alpha * x[dangling].sum() / (1 - alpha * z[dangling].sum()) * z
        x = np.maximum(x, 0.0)
        solution: Floats = x / x.sum()
        return solution if np.isfinite(solution).all() else None


def _factors(problem: Problem) -> Factors | None:
    """Return the LU factors of I - alpha P^T, or None without SciPy."""
    try:
        from scipy.sparse import csr_array, identity  # type: ignore[import-untyped]
        from scipy.sparse.linalg import splu  # type: ignore[import-untyped]
    except ImportError:
        return None
    adjacency = problem.adjacency
    (offsets, sources, _), terms = adjacency.get(Csc), adjacency.normalized_weights
    if terms is None:
        terms = adjacency.inverse_out_weight.take(sources)
    transposed = csr_array((terms, sources, offsets), shape=(adjacency.n, adjacency.n))
    factors: Factors = splu((identity(adjacency.n) - problem.alpha * transposed).tocsc())
    return factors
