"""One ranking on one rank of the program: read arguments given by vertex, iterate, write its part of the result.

Of an argument given by vertex, each rank gets a part of the values and sends them to the owners of the vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from prplugin.cpu.sums import total
from prplugin.distributed.communicator import Communicator, all_reduce_sum, call_on_all
from prplugin.distributed.factorize import owners_of, pieces_of
from prplugin.distributed.shard import Shard, Stages, refuse_vertices
from prplugin.errors import InvalidOptionError
from prplugin.graph.problem import Problem, normalised
from prplugin.machine import COMPILED_FROM
from prplugin.methods.base import Step
from prplugin.options import Options
from prplugin.result.ranking import highest
from prplugin.solver.certificate import Certificate
from prplugin.solver.loop import Loop, Outcome
from prplugin.solver.stopping import step_budget
from prplugin.types.arrays import to_host, to_memory
from prplugin.types.edges import Floats
from prplugin.types.history import Considered, History

__all__ = ["Report", "rank_shard"]

UNKNOWN = "{0} names {1} not in the graph: {2}. Remove them, or add them to the graph with vertices=."
REPEATED = "{0} names {1} more than once: {2}. Drop all but one, or add up their values."

Given = tuple[list[Any], Floats, int]
"""A rank's part of values by vertex: id columns, values, and the position of its first entry in the whole argument."""


@dataclass(frozen=True)
class Report:
    """Results of a ranking other than the ranks, the same on all ranks.

    `rows`, `bytes_sent`: rows of the result of each rank, and bytes that it has sent to others during the ranking.
    `like`: empty frame of the type of the result.
    The stages of `history` are those of the slowest rank. "communication" is included in the other stages.
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
    given: Mapping[str, Given],
    threads: int,
    watch: Callable[[int, float], object] | None = None,
) -> tuple[Any, Report]:
    """Compute the ranks of the vertices; collective. Return this rank's part of the result, and a report.

    `names` are the vertex columns of the result, `given` holds this rank's part of `personalization`, `dangling` and
    `nstart`. After each error bound `watch`, if given, is called with the number of passes and the bound.
    """
    stages, sent, waited = Stages(), communicator.bytes_sent, communicator.wait_seconds
    bounds: list[tuple[int, float]] = []

    def watched(iterations: int, bound: float) -> None:
        bounds.append((iterations, float(bound)))
        if watch is not None:
            watch(iterations, bound)

    v, w, start = (
        _vector(communicator, shard, what, given.get(what)) for what in ("personalization", "dangling", "nstart")
    )
    stages.done("vectors")
    if shard.n == 0:
        method, ranks, outcome = "numpy", shard.adjacency.out_weight[:0], Outcome(False, True, 0, 0.0)
    else:
        problem = Problem(shard.adjacency, options.alpha, v, w)
        method, step = _step(communicator, shard, problem, options, threads)
        stages.done("plan")
        certificate = Certificate(options.alpha, shard.n, shard.m, step.rounding, options.dtype, options.scale)
        budget = step_budget(certificate, options)
        outcome = Loop(certificate, options, budget, watched).run(step, 1.0 / shard.n if start is None else start)
        ranks = step.ranks()
        del step
    stages.done("iterations")
    ranks = ranks if options.scale == 1 else ranks * shard.n
    ranks = ranks.astype(options.dtype, copy=False)
    frame = _write(communicator, shard, names, ranks, options.top)
    stages.done("write")
    seconds = shard.seconds | stages.seconds | {"communication": communicator.wait_seconds - waited}
    of_ranks = communicator.all_gather((len(frame), seconds, communicator.bytes_sent - sent))
    reason = "asked for by name" if options.method != "auto" else "auto: by the size of the largest part of the graph"
    history = History(
        shard.n, shard.m, shard.adjacency.weighted, options.alpha, options.tol, options.stop,
        (Considered(method, None, reason),),
        tuple((stage, max(each[stage] for _, each, _ in of_ranks)) for stage in seconds), tuple(bounds),
    )  # fmt: skip
    rows, _, bytes_sent = zip(*of_ranks, strict=True)
    return frame, Report(outcome, history, list(rows), frame.iloc[:0], list(bytes_sent))


def _vector(communicator: Communicator, shard: Shard, what: str, given: Given | None) -> Floats | None:
    """Return the values of the vertices that this rank owns, divided by the sum over all ranks; collective.

    Values are 0 for vertices not given. Return None if `given` is None. Raise InvalidOptionError if a vertex is unknown
    or repeated, or if the sum is not positive and finite.
    """
    if given is None:
        return None
    columns, values, first = given
    directory, parts = shard.directory, shard.directory.parts
    if directory.hashed_keys is None:  # ids are keys
        # An id that the type of the keys cannot hold is not in the graph.
        ids = parts.given_integers(columns[0])
        keys = ids.astype(shard.keys.dtype)
        known = (keys.astype(ids.dtype) == ids) & ((keys < 0) == (ids < 0))
    else:
        keys = directory.keys_of(
            communicator, [parts.to_common_type(c, s) for c, s in zip(columns, directory.shared, strict=True)]
        )
        known = keys >= 0
    owner = np.where(known, owners_of(keys, to_host(shard.splitters)), communicator.size)
    pieces, order = pieces_of(owner, communicator.size)
    own_keys, own_values = to_host(shard.keys), np.zeros(shard.rows)
    answers, rows_given = [], []
    for asked, received in communicator.all_to_all([(keys[rows], values[rows]) for rows in pieces]):
        rows = np.searchsorted(own_keys, asked)
        found = rows < own_keys.size
        found[found] = own_keys[rows[found]] == asked[found]
        own_values[rows[found]] = received[found]
        rows_given.append(rows[found])
        answers.append(found)
    known[order] = np.concatenate(communicator.all_to_all(answers))
    unknown, repeated = np.flatnonzero(~known), np.flatnonzero(np.bincount(np.concatenate(rows_given)) > 1)
    given_ids = partial(parts.format_vertices, [column.array for column in columns])
    own_ids = partial(parts.format_vertices, directory.owned)
    call_on_all(communicator, lambda: refuse_vertices(InvalidOptionError, UNKNOWN, what, unknown, given_ids, first))
    call_on_all(communicator, lambda: refuse_vertices(InvalidOptionError, REPEATED, what, repeated, own_ids))

    def sum_of(values: Floats) -> float:
        return float(all_reduce_sum(communicator, float(total(values))))

    quotients, sum_ = normalised(own_values, sum_of)
    if sum_ == 0:
        raise InvalidOptionError(f"{what} sums to 0: at least one vertex needs a positive value.")
    if not np.isfinite(sum_):
        raise InvalidOptionError(f"{what} sums to more than float64 holds. Divide its values by the greatest.")
    vector: Floats = to_memory(quotients, shard.adjacency.memory_space)
    return vector


def _step(
    communicator: Communicator, shard: Shard, problem: Problem, options: Options, threads: int
) -> tuple[str, Step]:
    """Choose and prepare the method: on the GPU if the graph is there, else by the size of the largest part.

    `problem` holds the vectors of the vertices of this rank.
    """
    if shard.adjacency.memory_space == "device":
        from prplugin.distributed import device_step  # imports CuPy, which holds the graph

        device: Any = communicator  # one between GPUs
        return device_step.prepare(device, shard, problem, options)
    from prplugin.distributed import host_step

    compiled = shard.max_edges >= COMPILED_FROM if options.method == "auto" else options.method == "numba"
    if compiled or options.method_options:
        threads = options.method_options.get("threads") or threads
        return "numba", host_step.CompiledStep(communicator, shard, problem, threads)
    return "numpy", host_step.NumpyStep(communicator, shard, problem)


def _write(communicator: Communicator, shard: Shard, names: list[Any], ranks: Any, top: int | None) -> Any:
    """Return the frame of this rank's part of the result; with `top`, rank 0 has all rows."""
    directory, parts = shard.directory, shard.directory.parts
    columns = parts.in_edge_types(directory.owned, directory.shared)
    if top is None:
        return parts.write(names, columns, ranks, shard.offsets[communicator.rank])
    rows = highest(ranks, top) if ranks.size else ranks[:0].astype(np.int64)
    frame = parts.write(names, columns, ranks, 0, rows)
    to_rank = [frame, *[frame.iloc[:0]] * (communicator.size - 1)]
    pieces = communicator.all_to_all([parts.to_message(piece) for piece in to_rank])
    joined = parts.concat_frames([parts.from_message(piece, frame) for piece in pieces], frame)
    # Descending by value; the stable sort keeps equal values in the order of the result.
    return parts.take_rows(joined, np.argsort(-joined["pagerank"].to_numpy(), kind="stable")[:top])
