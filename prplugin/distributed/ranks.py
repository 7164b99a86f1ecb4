"""One ranking on one rank of the program: read arguments given by vertex, iterate, write its part of the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prplugin.cpu import library
from prplugin.cpu.sums import total
from prplugin.distributed.communicator import Communicator, all_reduce_sum
from prplugin.distributed.shard import Shard, Stages
from prplugin.errors import MethodUnavailableError, counted
from prplugin.frames.partitions import in_edge_types, write
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.graph.problem import Problem, normalised
from prplugin.machine import Machine
from prplugin.methods.base import Step
from prplugin.options import Options
from prplugin.progress import Report as StateReport
from prplugin.progress import Watch
from prplugin.result.ranking import highest
from prplugin.solver.loop import Outcome
from prplugin.solver.solve import solve
from prplugin.types.arrays import Array, MemorySpace, to_host, to_memory
from prplugin.types.edges import Floats, Integers
from prplugin.types.history import Considered, History


@dataclass(frozen=True)
class Report:
    """Results of a ranking other than the PageRank values; the same on all ranks of the program.

    `rows`, `bytes_sent`: rows of the result of each rank, and bytes that it has sent to others during the ranking.
    `like`: empty frame of the type of the result.
    `history` has the longest duration of each stage over all ranks. "communication" is included in the other stages.
    """

    outcome: Outcome
    history: History
    rows: list[int]
    like: Any
    bytes_sent: list[int]


def rank_shard(
    communicator: Communicator,
    shard: Shard,
    names: list[Any],
    options: Options,
    given: Mapping[str, tuple[list[Any], Floats]],
    threads: int,
    report: StateReport | None = None,
) -> tuple[Any, Report]:
    """Compute the ranks of the vertices; collective. Return this rank's part of the result, and a report.

    `names` are the vertex columns of the result. `given` holds the id columns and the values of `personalization`,
    `dangling` and `nstart`. `report`, if given, is called with the state after each error bound.
    """
    stages, sent, waited = Stages(), communicator.bytes_sent, communicator.wait_seconds
    watch = Watch(report)
    v, w, start = (
        _vector(communicator, shard, names, what, given.get(what)) for what in ("personalization", "dangling", "nstart")
    )
    stages.done("vectors")
    if shard.n == 0:
        method, ranks, outcome = "numpy", shard.adjacency.out_weight[:0], Outcome(False, True, 0, 0.0)
    else:
        problem = Problem(shard.adjacency, options.alpha, v, w)
        method, step = _step(communicator, shard, problem, options, threads)
        stages.done("plan")
        begin = 1.0 / shard.n if start is None else start
        outcome = solve(step, options, (shard.n, shard.m), begin, watch.iterations)
        ranks = step.ranks()
        del step
    stages.done("iterations")
    ranks = ranks if options.scale == 1 else ranks * shard.n
    ranks = ranks.astype(options.dtype, copy=False)
    frame = _write(communicator, shard, names, ranks, options.top)
    stages.done("write")
    seconds = shard.seconds | stages.seconds | {"communication": communicator.wait_seconds - waited}
    of_ranks = communicator.all_gather((len(frame), seconds, communicator.bytes_sent - sent))
    reason = "requested by name" if options.method != "auto" else "auto: the fastest that all workers can run"
    history = History(
        shard.n, shard.m, shard.adjacency.weighted, options.alpha, options.tol, options.stop,
        (Considered(method, None, reason),),
        tuple((stage, max(each[stage] for _, each, _ in of_ranks)) for stage in seconds), tuple(watch.bounds),
    )  # fmt: skip
    rows, _, bytes_sent = zip(*of_ranks, strict=True)
    return frame, Report(outcome, history, list(rows), frame.iloc[:0], list(bytes_sent))


@dataclass(frozen=True)
class _OwnedVertices(Vertices):
    """The vertices that a rank owns, from position `first` of the whole graph on. Its methods are collective."""

    first: int = field(kw_only=True)
    communicator: Communicator = field(kw_only=True)

    def find_positions(self, columns: list[Any], what: str) -> Integers:
        """Return the position of each id in the whole graph, or -1; all ranks pass the same ids."""
        local = super().find_positions(columns, what)
        found = np.where(local < 0, -1, local + self.first)
        of_all: Integers = np.maximum.reduce(self.communicator.all_to_all([found] * self.communicator.size))
        return of_all

    def values_of_owned(self, columns: list[Any], values: Floats, what: str) -> Floats:
        """Return the given values of the vertices that this rank owns, 0 by default."""
        rows = self.known_positions(columns, what) - self.first
        owned = (rows >= 0) & (rows < len(self))
        vector = np.zeros(len(self))
        vector[rows[owned]] = values[owned]
        return vector


def _vector(
    communicator: Communicator, shard: Shard, names: list[Any], what: str, given: tuple[list[Any], Floats] | None
) -> Floats | None:
    """Return the values of the vertices that this rank owns, divided by the sum over all ranks; collective."""
    if given is None:
        return None
    ids, kinds = [to_host(column) for column in shard.owned], [common.kind for common in shard.shared]
    first = shard.offsets[communicator.rank]
    vertices = _OwnedVertices(names, ids, kinds, first=first, communicator=communicator)

    def sum_of(values: Floats) -> float:
        return float(all_reduce_sum(communicator, float(total(values))))

    vector: Floats = to_memory(
        normalised(vertices.values_of_owned(*given, what), what, sum_of), shard.adjacency.memory_space
    )
    return vector


def _step(
    communicator: Communicator, shard: Shard, problem: Problem, options: Options, threads: int
) -> tuple[str, Step]:
    """Choose and prepare the method: a GPU method if the graph is on GPUs, else one that all workers can run.

    `problem` holds the vectors of the vertices of this rank.
    """
    if shard.adjacency.memory_space == "device":
        from prplugin.distributed import device_step  # imports CuPy, which holds the graph

        device: Any = communicator  # a `DeviceRanks`
        return device_step.prepare(device, shard, problem, options)
    from prplugin.distributed import host_step

    missing = [reason for reason in communicator.all_gather(library.unavailable_reason()) if reason]
    if options.method == "numpy" or (options.method == "auto" and missing and not options.method_options):
        return "numpy", host_step.NumpyStep(communicator, shard, problem)
    if missing:
        raise MethodUnavailableError(f"method 'native' cannot run on {counted(len(missing), 'worker')}: {missing[0]}.")
    threads = options.method_options.get("threads") or Machine(threads).threads_for(shard.adjacency.m)
    return "native", host_step.NativeStep(communicator, shard, problem, threads)


def _write(communicator: Communicator, shard: Shard, names: list[Any], ranks: Array, top: int | None) -> Any:
    """Return the frame of this rank's part of the result; with `top`, its highest ranks: see `highest_rows`."""
    ids = ids_in(shard.adjacency.memory_space)
    columns = in_edge_types(ids, shard.owned, shard.shared)
    if top is None:
        return write(ids, names, columns, ranks, shard.offsets[communicator.rank])
    rows = highest(ranks, top) if ranks.size else ranks[:0].astype(np.int64)
    return write(ids, names, columns, ranks, 0, rows)


def highest_rows(memory_space: MemorySpace, top: int, frames: list[Any]) -> Any:
    """Return the `top` highest ranks of the frames of all ranks."""
    joined = ids_in(memory_space).concat(frames)
    # Descending by value; the stable sort keeps equal values in the order of the result.
    return joined.take(np.argsort(-joined["pagerank"].to_numpy(), kind="stable")[:top]).reset_index(drop=True)
