"""A graph on one worker of a cluster, which ranks it as one process does: see `prplugin.local`.

Other workers that hold partitions send them to it, and have no further part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from distributed import get_worker

from prplugin.distributed.communicator import Communicator, gather_results
from prplugin.distributed.ranks import Report, positions_of
from prplugin.distributed.shard import lengths_of
from prplugin.errors import WorkerLostError
from prplugin.frames.columns import Frame
from prplugin.options import EdgeOptions, Options
from prplugin.progress import ProgressCallback, Watch, watching
from prplugin.result.ranking import Rankings
from prplugin.solver.loop import Outcome
from prplugin.types.records import Considered, History

LocalGraph: TypeAlias = Any  # `prplugin.local.LocalGraph`, above this package

Facts: TypeAlias = tuple[int, int, None]
"""Numbers of vertices and of edges; the graph itself keeps its clock."""


def build(
    read: Callable[..., LocalGraph], communicator: Communicator, frames: list[Frame], numbers: list[int],
    names: list[Hashable], how: EdgeOptions, *, lasting: bool,
) -> tuple[LocalGraph, Facts | None]:  # fmt: skip
    """Build the graph on the first rank by `read`, that of `LocalGraph` for a list of frames; collective.

    `numbers` are those of the partitions that this rank holds, and `names` those of the columns in use.
    """
    of_ranks = gather_results(communicator, lambda: (numbers, lengths_of(frames, numbers))[0])
    if communicator.rank:
        frames = [frame[names] if {*names} <= {*frame.columns} else frame for frame in frames]
    received = communicator.frames_on_first(frames)
    if communicator.rank:
        return None, None
    every = [number for of_rank in of_ranks for number in of_rank]
    partitions = [received[place] for place in np.argsort(every)]
    graph = read(partitions, how, lasting=lasting)
    return graph, (graph.n, graph.m, None)


def update(communicator: Communicator, key: str, add: object, remove: object) -> tuple[None, Facts]:
    """Update the graph that a task left on this worker; see `prplugin.distributed.run._update`."""
    if (graph := get_worker().data.get(key)) is None:
        raise WorkerLostError("the graph is lost with its worker: build it again.")
    graph.update(add, remove, wait=True)
    return None, (graph.n, graph.m, None)


def vertices(communicator: Communicator, graph: LocalGraph) -> tuple[Any, tuple[int, Any]]:
    """Return the ids in the order of the ranks; and their number, and an empty part of them."""
    ids = graph.vertices()
    return ids, (len(ids), ids.iloc[:0])


def rank(
    communicator: Communicator, graph: LocalGraph, options: Options, report: ProgressCallback | None = None
) -> tuple[list[Any], Report]:
    """Compute one ranking, or one per seed; return a single frame, and a report as `ranks.rank_shard` does."""
    ranking, sent = graph.rank(options, _Watch(report, communicator)), communicator.bytes_sent
    positions, seeds, order = [], None, ranking._order
    if isinstance(ranking, Rankings):
        each = zip(ranking.each_converged, ranking.each_iterations, ranking.each_error_bound, strict=True)
        outcomes, seeds = [Outcome(False, *one) for one in each], ranking._seeds(len(ranking._counts))
        frame, rows = ranking.frame, [[count] for count in ranking._counts]
    else:
        outcomes = [Outcome(False, ranking.converged, ranking.iterations, ranking.error_bound, order=order)]
        if order is None:
            frame = ranking.frame
        else:
            positions = [positions_of(order)]
            frame = ranking._written(positions[0])
        rows = [[len(frame) if order is None else order.rows.size]]
    history = ranking._history
    if history is None:  # of a one-shot graph
        considered = (Considered(ranking.method, None, "requested by name" if options.method != "auto" else "auto"),)
        history = History(
            graph.n, graph.m, False, options.alpha, options.tol, options.stop, considered,
            (("ranking", ranking.seconds),), (),
        )  # fmt: skip
    history = history._replace(choice=history.considered)
    return [frame], Report(outcomes, history, rows, frame.iloc[:0], [sent], positions, seeds)


def ranked_once(
    read: Callable[..., LocalGraph], communicator: Communicator, given: Sequence[Any], options: Options,
    report: ProgressCallback | None = None,
) -> tuple[list[Any], Report | None]:  # fmt: skip
    """Build a graph from the arguments `given` of `build`, and rank it; collective."""
    with watching(report or False) as watch:
        watch.stage("vertices")
        graph, _ = build(read, communicator, *given, lasting=False)
    return ([], None) if graph is None else rank(communicator, graph, options, report)


class _Watch(Watch):
    """Ends a ranking whose task Dask has cancelled."""

    def __init__(self, report: ProgressCallback | None, communicator: Communicator) -> None:
        super().__init__(report)
        self._communicator = communicator

    def iterations(self, options: Options, budget: int, made: int = 0) -> Callable[[int, float, Sequence[float]], None]:
        step_done = super().iterations(options, budget, made)

        def checked(iterations: int, error_bound: float, earlier: Sequence[float] = ()) -> None:
            self._communicator.check_active()
            step_done(iterations, error_bound, earlier)

        return checked
