"""Edge-centric: one GPU thread per edge, atomic additions (Kim 2013, Algorithms 1 and 2)."""

from __future__ import annotations

from functools import partial

from prplugin.gpu import runtime
from prplugin.gpu.lazy import cupy
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.methods.engines import gpu_pull
from prplugin.options import validate_int
from prplugin.papers._forms import EdgeCentric, out_degrees, step_of
from prplugin.types.arrays import Array
from prplugin.types.edges import Floats

name = "edge"
runs_on = "gpu"
nondeterministic = True  # the order of atomic additions varies
memory = gpu_pull.MEMORY._replace(arrays=("csc", "rows", "out_weight"))
unavailable_reason = partial(gpu_pull.unavailable_reason, memory)
cost = gpu_pull.cost_of(61e-6, edge=2.4e-11, vertex=4.3e-11)
"""Fitted to benchmarks/results/kernels.md."""


def prepare(
    problem: Problem, machine: Machine, *, threads: int = 256, blocks: int | None = None, form: str | None = None
) -> Step:
    """Use the edges in the order of the frame, or grouped by target if the graph holds them so.

    Parameters
    ----------
    threads : int, default 256
        Threads per block, 1024 at most.
    blocks : int, optional
        Blocks of the grid; as many as give each edge a thread if not given. Kim uses 1000 blocks of 1000 threads.
    form : "paper", optional
        Approach the solution by Algorithms 1 and 2 of Kim as printed, in float32, which exact steps then prove. It has
        uniform teleport and no weights.
    """
    adjacency = problem.adjacency.on("device")
    push = EdgePush(adjacency, threads, blocks)

    def iteration() -> EdgeCentric:
        pairs = cupy.stack((adjacency.edges.source, adjacency.edges.destination), axis=1)
        return EdgeCentric(pairs, out_degrees(adjacency), problem.alpha, blocks=push.blocks, threads=push.threads)

    return step_of(problem, push, form, iteration)


class EdgePush:
    """Adds each edge's term to its target's sum."""

    def __init__(self, adjacency: Adjacency, threads: int, blocks: int | None) -> None:
        self.threads = validate_int("threads", threads, at_most=1024)
        needed = runtime.blocks_for(adjacency.m, self.threads)
        self.blocks = needed if blocks is None else validate_int("blocks", blocks, at_most=runtime.MOST_BLOCKS)
        # The first term that is added goes through all additions that follow.
        self.rounding_depth = adjacency.largest_in_degree
        self._edges = adjacency.edges
        self._normalized_weights = gpu_pull.NormalizedWeights(self._edges.weights, adjacency, self._edges.source)

    def __call__(self, contributions: Floats, row_sums: Array) -> None:
        edges, normalized_weights = self._edges, self._normalized_weights.of(contributions.dtype)
        kernel = runtime.kernel(
            "papers/edge.cu", "edge_push", index_t=edges.source.dtype, real_t=contributions.dtype,
            WEIGHTED=int(normalized_weights is not None),
        )  # fmt: skip
        row_sums.fill(0.0)
        arrays = edges.source, edges.destination, normalized_weights, contributions, row_sums
        runtime.launch(kernel, self.blocks, self.threads, edges.m, *arrays)
