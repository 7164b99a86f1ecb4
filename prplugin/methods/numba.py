"""Pull over the in-edges on all CPU cores, compiled by Numba; the same bits for any number of threads."""

from __future__ import annotations

from prplugin.graph.adjacency import Adjacency
from prplugin.graph.memory import Memory, Size
from prplugin.graph.problem import Problem
from prplugin.machine import COMPILED_FROM, Machine
from prplugin.methods.base import SeedsStep, Step
from prplugin.options import validate_int

name = "numba"
runs_on = "cpu"
memory = Memory(
    memory_space="host",
    arrays=("csc", "out_weight", "normalized_weights"),
    # Inverse out-weights, ranks, contributions old and new, and 8 rows for the history or the iterates of sweeps.
    vertex=Size(4 * 8 + 8 * 4),
    # The layout of sweeps, whose rows are padded by 1.5 edges on average, and 12 more rows of iterates.
    many_edge=Size(4, weight=0.5),
    many_vertex=Size(1.5 * 4 + 4 * 4 + 12 * 4, weight=1.5 * 0.5),
)


def unavailable_reason(adjacency: Adjacency | None, machine: Machine) -> str | None:
    """Return None: Numba is a dependency of prplugin."""
    return None


def cost(adjacency: Adjacency, machine: Machine) -> float:
    """Estimate 40 iterations (benchmarks/results/steps.md), and the import of Numba where ingestion did without."""
    start = 0.0 if adjacency.m >= COMPILED_FROM else 0.4
    return start + 40 * (30e-6 + (1e-9 * adjacency.m + 1.5e-9 * adjacency.n) / machine.threads)


def prepare(problem: Problem, machine: Machine, *, threads: int | None = None) -> Step:
    """Group the edges by target, and partition the rows into pieces of equal work.

    Parameters
    ----------
    threads : int, optional
        Number of threads. Default: all that this process may use, or one for a small graph. The bits are the same for
        any number.
    """
    from prplugin.methods.engines.numba_pull import NumbaPull  # imports Numba

    threads = machine.threads_for(problem.adjacency.m) if threads is None else validate_int("threads", threads)
    return NumbaPull(problem.on("host"), threads, machine)


def batch(problem: Problem, machine: Machine, seeds: int, *, threads: int | None = None) -> SeedsStep:
    """Return the step for many seeds; options as for `prepare`."""
    from prplugin.methods.engines.numba_batch import NumbaBatch  # imports Numba

    threads = machine.threads_for(seeds * problem.adjacency.m) if threads is None else validate_int("threads", threads)
    return NumbaBatch(problem.on("host"), seeds, threads)


def batch_from(adjacency: Adjacency) -> int:
    """Return the number of seeds below which individual rankings are faster, since their vectors fit in the cache."""
    return 8 if adjacency.n < 1 << 16 else 32


def batch_cost(adjacency: Adjacency, machine: Machine, seeds: int) -> float:
    """Estimate 40 iterations of each seed: docs/decisions/0016-batched-seeds.md."""
    start = 0.0 if adjacency.m >= COMPILED_FROM else 0.4
    if seeds < batch_from(adjacency):
        return start + seeds * (cost(adjacency, machine) - start)
    return start + 40 * seeds * (5e-6 + (0.5e-9 * adjacency.m + 2e-9 * adjacency.n) / machine.threads)
