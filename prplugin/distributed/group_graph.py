"""Driver of a graph with groups on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from distributed import Future

from prplugin.distributed.groups import build_groups, rank_groups, update_groups
from prplugin.distributed.run import DistributedGraph, built, first_of, unsupported
from prplugin.frames import partitions as parts_of
from prplugin.frames.columns import computed
from prplugin.options import EdgeOptions, Options
from prplugin.progress import Watch
from prplugin.result.groups import DistributedGroupRankings
from prplugin.result.ranking import Ranking
from prplugin.streams.changes import refuse_window


class GroupedGraph(DistributedGraph):
    """A graph with groups: see `prplugin.distributed.groups`."""

    _rank_part = staticmethod(rank_groups)

    def _program(self, how: EdgeOptions) -> Callable[..., Any]:
        return partial(build_groups, read=self._read, how=how)

    def update(self, add: object, remove: object, *, wait: bool) -> None:
        """Remove and add edges; on any error, change nothing. Rankings that run keep the old parts: none waits."""
        workers = self._workers
        refuse_window(self._schema)
        with self._updating:
            change = [workers.scatter(computed(*each)) for each in ((add, "add"), (remove, "remove"))]
            workers.check()
            arguments = [(shard.key, *change) for shard in self._shards]
            shards = workers.start(partial(built, update_groups), self._memory_space, arguments)
            self._take(shards, workers.result(shards))

    def rank(self, options: Options, watch: Watch) -> Ranking:
        """Rank each group on the worker that has it."""
        if options.seeds is not None:
            raise unsupported("seeds= with by=")
        return super().rank(options, watch)

    def _ranking(self, ranked: list[Future], found: Any, options: Options, seconds: float) -> Ranking:
        frame, history = parts_of.frame_of(ranked, found.rows, found.like), found.history
        return DistributedGroupRankings(
            frame["pagerank"], bool(found.converged.all()), int(found.iterations.max(initial=0)),
            float(found.bounds.max(initial=0.0)), history.considered[0].method, seconds, lambda *_: frame, options.top,
            n=history.n, workers=len(ranked), stages=dict(history.stages), bytes_sent=found.bytes_sent,
            _history=history._replace(unused_weight=self._unused_weight), each_converged=found.converged,
            each_iterations=found.iterations, each_error_bound=found.bounds, _seeds=partial(first_of, found.names),
            _counts=found.counts, _by=found.by,
        )  # fmt: skip
