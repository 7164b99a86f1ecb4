"""prplugin and cugraph.dask on a Dask frame, and the reference ranks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.cluster._local import EDGE_FACTOR, Workers
from benchmarks.generate import rmat
from benchmarks.measure import timed
from prplugin.gpu import runtime
from prplugin.types.arrays import memory_space_of

CUGRAPH_TOL, CUGRAPH_MAX_ITER = 1e-6, 1000

PROVED = 1e-10
"""Error bound of the reference ranks."""


def ours(edges: Any, tol: float, workers: int) -> Any:
    """Rank a frame on so many workers, and wait until the ranks are on them."""
    import prplugin

    return _synchronized(prplugin.pagerank(edges, "src", "dst", tol=tol, dtype="float32", workers=workers))


class Graph:
    """prplugin's graph of a frame, built once on so many workers."""

    def __init__(self, edges: Any, workers: int) -> None:
        import prplugin

        self._graph = prplugin.Graph(edges, "src", "dst", workers=workers)
        self.n = self._graph.number_of_vertices

    def rank(self, tol: float) -> Any:
        """Return a `Ranking` with the options of `ours`."""
        return self._graph.rank(tol=tol, dtype="float32")


def peer(workers: Workers) -> Any:
    """Return cugraph.dask with an initialized communicator; None if it is not installed or there is no GPU."""
    if workers.memory_space == "host":
        return None
    try:
        from cugraph.dask.comms import comms
    except ImportError:
        return None
    if comms.destroy not in workers.before_end:
        comms.initialize(p2p=True)
        workers.before_end.append(comms.destroy)
    return _CuGraph


class _CuGraph:
    """The calls of cugraph.dask."""

    @staticmethod
    def frame_to_ranks(edges: Any) -> Any:
        """Rank a frame, and wait until the ranks are on the workers."""
        return _synchronized(_CuGraph._ranked(_CuGraph._graph(edges), tol=CUGRAPH_TOL, max_iter=CUGRAPH_MAX_ITER))

    @staticmethod
    def iteration(edges: Any, steps: int, more: int, runs: int) -> list[float]:
        """Time an iteration by the difference of two runs with different numbers of iterations."""
        graph = _CuGraph._graph(edges)

        def run(count: int) -> float:
            options = {"tol": 1e-30, "max_iter": count, "fail_on_nonconvergence": False}
            return timed(lambda: _synchronized(_CuGraph._ranked(graph, **options)[0]))[0]

        run(steps)
        return [(run(steps + more) - run(steps)) / more for _ in range(runs)]

    @staticmethod
    def _graph(edges: Any) -> Any:
        import cugraph

        graph = cugraph.MultiGraph(directed=True)
        graph.from_dask_cudf_edgelist(edges, source="src", destination="dst", store_transposed=True)
        return graph

    @staticmethod
    def _ranked(graph: Any, **options: Any) -> Any:
        import cugraph.dask

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about cuGraph itself
            return cugraph.dask.pagerank(graph, **options)


def _synchronized(frame: Any) -> Any:
    """Persist a frame and wait for its partitions."""
    from distributed import wait

    frame = frame.persist()
    wait(frame)
    return frame


class Reference:
    """Reference ranks in float64 by a single GPU or process; they stay on the first worker."""

    def __init__(self, workers: Workers, scale: int) -> None:
        self._client, self._at = workers.client, workers.addresses[:1]
        self._ranks = self._client.submit(_exact, scale, workers.memory_space, workers=self._at, pure=False)
        self._client.submit(len, self._ranks, pure=False).result()  # wait for the ranks

    def distance(self, frame: Any) -> float:
        """Return the L1 distance of a result, in any order, to the reference."""
        parts = self._client.compute(frame.to_delayed())
        return float(self._client.submit(_distance, self._ranks, parts, workers=self._at, pure=False).result())


def _exact(scale: int, memory_space: Any) -> Any:
    """Return the ranks of a single frame as an array by id; 0 for ids without edges."""
    import prplugin

    with runtime.device_allocation(memory_space):
        edges = rmat(scale, EDGE_FACTOR, memory_space=memory_space).astype("int32")
        frame = prplugin.Graph(edges, "src", "dst").rank(tol=PROVED).frame
        return _by_id(frame, 1 << scale)


def _by_id(frame: Any, n: int) -> Any:
    ranks = frame["pagerank"].values.astype(np.float64)
    spread = np.zeros_like(ranks, shape=n)
    spread[frame["vertex"].values] = ranks
    return spread


def _distance(exact: Any, parts: list[Any]) -> float:
    with runtime.device_allocation(memory_space_of(exact)):
        found = sum(_by_id(part, exact.size) for part in parts)
        return float(abs(found - exact).sum())
