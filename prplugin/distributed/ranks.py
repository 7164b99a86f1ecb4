"""One ranking on one rank of the program: read arguments given by vertex, iterate, write its part of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prplugin.distributed.communicator import Communicator
from prplugin.distributed.shard import Shard, Stages
from prplugin.distributed.vectors import Given, vector
from prplugin.machine import COMPILED_FROM
from prplugin.methods.base import Step
from prplugin.options import Options
from prplugin.result.ranking import highest
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Loop, Outcome
from prplugin.solver.stopping import step_budget
from prplugin.types.arrays import MemorySpace, to_host

__all__ = ["Report", "rank"]


@dataclass(frozen=True)
class Report:
    """Results of a ranking other than the ranks.

    Attributes
    ----------
    rows : list of int
        Number of rows of the part of the result of each rank.
    like : frame
        Empty frame of the type of the result.
    stages : dict of str to float
        Seconds of each stage on the slowest rank. "communication" is included in the other stages.
    sent : list of int
        Bytes that each rank has sent to others during the ranking.
    bounds : list of (int, float)
        Number of passes and error bound, for each error bound computed.
    """

    converged: bool
    iterations: int
    error_bound: float
    method: str
    n: int
    m: int
    rows: list[int]
    like: Any
    stages: Mapping[str, float]
    sent: list[int]
    weighted: bool
    memory_space: MemorySpace
    bounds: list[tuple[int, float]]


def rank(
    communicator: Communicator,
    shard: Shard,
    names: list[Any],
    options: Options,
    given: Mapping[str, Given],
    threads: int,
    watch: Callable[[int, float], object],
) -> tuple[Any, Report]:
    """Compute the ranks of the vertices; collective. Return this rank's part of the result, and a report.

    The report is the same on all ranks.

    Parameters
    ----------
    names : list of column labels
        Names of the vertex columns in the result.
    given : dict of str to Given
        This rank's part of the arguments `personalization`, `dangling` and `nstart`, if given.
    threads : int
        Number of threads that this rank may use.
    watch : function
        Called after each error bound with the number of passes and the bound.
    """
    stages, sent, waited = Stages(), communicator.sent, communicator.seconds
    bounds: list[tuple[int, float]] = []

    def watched(iterations: int, bound: float) -> None:
        bounds.append((iterations, float(bound)))
        watch(iterations, bound)

    v, w, start = (
        vector(communicator, shard, what, given.get(what)) for what in ("personalization", "dangling", "nstart")
    )
    stages.done("vectors")
    if shard.n == 0:
        method, ranks, outcome = "numpy", shard.adjacency.out_weight[:0], Outcome(False, True, 0, 0.0)
    else:
        method, step = _step(communicator, shard, options, v, w, threads)
        stages.done("plan")
        certificate = Certificate(options.alpha, shard.n, shard.m, step.rounding, options.dtype, options.scale)
        budget = step_budget(certificate, options)
        outcome = Loop(certificate, options, budget, watched).run(step, 1.0 / shard.n if start is None else start)
        ranks = step.ranks()
        del step
    stages.done("iterations")
    ranks = ranks if options.scale == 1 else ranks * shard.n
    ranks = ranks.astype(options.dtype, copy=False)
    frame = _written(communicator, shard, names, ranks, options.top)
    stages.done("write")
    seconds = shard.seconds | stages.seconds | {"communication": communicator.seconds - waited}
    everyone = communicator.gather((len(frame), seconds, communicator.sent - sent))
    report = Report(
        converged=bool(outcome.converged),
        iterations=int(outcome.iterations),
        error_bound=float(outcome.error_bound),
        method=method,
        n=shard.n,
        m=shard.m,
        rows=[rows for rows, _, _ in everyone],
        like=frame.iloc[:0],
        stages={stage: max(each[stage] for _, each, _ in everyone) for stage in seconds},
        sent=[one for _, _, one in everyone],
        weighted=shard.adjacency.weighted,
        memory_space=shard.adjacency.memory_space,
        bounds=bounds,
    )
    return frame, report


def _step(communicator: Communicator, shard: Shard, options: Options, v: Any, w: Any, threads: int) -> tuple[str, Step]:
    """Choose and prepare the method: on the GPU if the graph is there, else by the size of the largest part."""
    if shard.adjacency.memory_space == "device":
        from prplugin.distributed import device_step  # imports CuPy, which holds the graph

        device: Any = communicator  # one between GPUs
        return device_step.prepare(device, shard, options, v, w)
    from prplugin.distributed import host_step

    compiled = shard.largest >= COMPILED_FROM if options.method == "auto" else options.method == "numba"
    if compiled or options.method_options:
        threads = options.method_options.get("threads") or threads
        return "numba", host_step.CompiledStep(communicator, shard, options.alpha, v, w, threads)
    return "numpy", host_step.NumpyStep(communicator, shard, options.alpha, v, w)


def _written(communicator: Communicator, shard: Shard, names: list[Any], ranks: Any, top: int | None) -> Any:
    """Return the frame of this rank's part of the result; with `top`, rank 0 has all rows."""
    parts = shard.directory.parts
    first = shard.offsets[communicator.rank]
    columns = shard.directory.columns(shard.keys)
    if top is None:
        return parts.write(names, columns, ranks, first)
    mine: Any = highest(ranks, top) if ranks.size else ranks[:0].astype(np.int64)
    values = communicator.gather(to_host(ranks[mine]))
    # Descending by value; the stable sort keeps equal values in the order of the result.
    whose = np.repeat(np.arange(len(values)), [found.size for found in values])
    order = np.argsort(-np.concatenate(values), kind="stable")[:top]
    chosen = mine[: int(np.count_nonzero(whose[order] == communicator.rank))]
    frame = parts.write(names, columns, ranks, 0, chosen)
    pieces = communicator.exchange([parts.packed(frame if one == 0 else frame.iloc[:0]) for one in range(len(values))])
    together = parts.joined([parts.unpacked(piece, frame) for piece in pieces], frame)
    if communicator.rank:
        return together.iloc[:0]
    # `together` is ordered by rank and descending within a rank. Row of order[i] there: its position in sorted `order`.
    return parts.in_order(together, np.argsort(np.argsort(order, kind="stable"), kind="stable"))
