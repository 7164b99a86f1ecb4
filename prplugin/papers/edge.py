"""Edge-centric: one GPU thread per edge, atomic additions (Kim 2013, Algorithms 1 and 2)."""

from __future__ import annotations

from prplugin.gpu import cupy, runtime
from prplugin.methods.base import Array, Edges, Floats, Machine, Problem, Step
from prplugin.methods.engines import gpu_pull
from prplugin.options import validate_int
from prplugin.papers._forms import EdgeCentric, Form, launch_of, out_degrees, step_of
from prplugin.types.edges import Coo

name = "edge"
runs_on = "gpu"
nondeterministic = True  # the order of atomic additions varies
memory = gpu_pull.MEMORY._replace(lists=True)
unavailable_reason = gpu_pull.reason_of(memory)
cost = gpu_pull.cost_of(61e-6, edge=2.4e-11, vertex=4.3e-11)  # fitted to benchmarks/results/kernels.md

forms = {"paper": Form("Kim 2013, Algorithms 1 and 2: edge-centric", {"threads": 1000, "blocks": 1000})}


def prepare(
    problem: Problem, machine: Machine, *, threads: int | None = None, blocks: int | None = None,
    form: str | None = None,
) -> Step:  # fmt: skip
    """Use the edges in the order of the frame, or grouped by target if the graph holds them so.

    Parameters
    ----------
    threads : int, optional
        Threads per block, 1024 at most; 256 if not given, or those of the form.
    blocks : int, optional
        Blocks of the grid; as many as give each edge a thread if not given, or those of the form.
    form : "paper", optional
        Iterate by Algorithms 1 and 2 of Kim as printed, in float32, which an exact step then proves; on an undirected
        graph edgeArray has each edge once, and line 6 its other direction. It has uniform teleport and no weights.
    """
    adjacency = problem.adjacency.on("device")
    push = EdgePush(adjacency, **launch_of(forms, form, threads=threads, blocks=blocks))

    def iteration() -> EdgeCentric:
        edges = adjacency.get(Coo)
        source, target = edges.source, edges.destination
        if undirected := problem.adjacency.symmetric:
            once = source <= target
            source, target = source[once], target[once]
        return EdgeCentric(
            cupy.stack((source, target), axis=1), out_degrees(adjacency), problem.alpha, undirected=undirected,
            blocks=push.blocks, threads=push.threads,
        )  # fmt: skip

    return step_of(problem, push, form, iteration)


class EdgePush:
    """Adds each edge's term to its target's sum."""

    def __init__(self, adjacency: Edges, threads: int | None = None, blocks: int | None = None) -> None:
        self.threads = validate_int("threads", 256 if threads is None else threads, at_most=1024)
        needed = runtime.blocks_for(adjacency.m, self.threads)
        self.blocks = needed if blocks is None else validate_int("blocks", blocks, at_most=runtime.MOST_BLOCKS)
        # The first term that is added goes through all additions that follow.
        self.rounding_depth = adjacency.largest_in_degree
        self._edges = adjacency.get(Coo)
        self._normalized_weights = gpu_pull.NormalizedWeights(self._edges.weights, adjacency, self._edges.source)

    def __call__(self, contributions: Floats, row_sums: Array) -> None:
        edges, normalized_weights = self._edges, self._normalized_weights.of(contributions.dtype)
        row_sums.fill(0.0)
        runtime.run(
            "papers/edge.cu", "edge_push", self.blocks, self.threads, edges.m, edges.source, edges.destination,
            normalized_weights, contributions, row_sums, index_t=edges.source.dtype, real_t=contributions.dtype,
            WEIGHTED=int(normalized_weights is not None),
        )  # fmt: skip
