"""Ours and cugraph.dask on a frame of Dask, and the reference that both are held to."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.cluster._local import EDGE_FACTOR, Workers, on_gpus
from benchmarks.generate import rmat
from prplugin.gpu import runtime
from prplugin.types.arrays import memory_space_of

__all__ = ["Graph", "Reference", "ours", "peer"]

THEIR_TOL, THEIR_MOST = 1e-6, 1000

PROVED = 1e-10
"""The error of the reference."""


def ours(edges: Any, tol: float) -> Any:
    """Rank a frame, and wait until the ranks are on the workers."""
    import prplugin

    return _synchronized(prplugin.pagerank(edges, "src", "dst", tol=tol, dtype="float32"))


class Graph:
    """Our graph of a frame, prepared once."""

    def __init__(self, edges: Any) -> None:
        import prplugin

        self._graph = prplugin.Graph(edges, "src", "dst")
        self.n = self._graph.number_of_vertices

    def rank(self, tol: float) -> Any:
        """Rank as `ours` does; a `Ranking`."""
        return self._graph.rank(tol=tol, dtype="float32")


def peer(workers: Workers) -> Any:
    """Return cugraph.dask, with its communicator between these workers; None where it is not, or there is no GPU."""
    if not on_gpus():
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
    """cugraph.dask."""

    @staticmethod
    def frame_to_ranks(edges: Any) -> Any:
        """Rank a frame, and wait until the ranks are on the workers."""
        return _synchronized(_CuGraph._ranked(_CuGraph._graph(edges), tol=THEIR_TOL, max_iter=THEIR_MOST))

    @staticmethod
    def iteration(edges: Any, steps: int, more: int, runs: int) -> list[float]:
        """Time iterations: the differences of two runs, of more and fewer."""
        graph = _CuGraph._graph(edges)

        def run(count: int) -> float:
            began = time.perf_counter()
            ranks, _ = _CuGraph._ranked(graph, tol=1e-30, max_iter=count, fail_on_nonconvergence=False)
            _synchronized(ranks)
            return time.perf_counter() - began

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
            warnings.simplefilter("ignore")  # it warns of its own affairs
            return cugraph.dask.pagerank(graph, **options)


def _synchronized(frame: Any) -> Any:
    """Wait until the partitions of a frame are there."""
    from distributed import wait

    frame = frame.persist()
    wait(frame)
    return frame


class Reference:
    """The ranks of a graph by one GPU, or one process, in float64: they stay on the first worker."""

    def __init__(self, workers: Workers, scale: int) -> None:
        self._client, self._at = workers.client, workers.addresses[:1]
        memory_space = "device" if on_gpus() else "host"
        self._ranks = self._client.submit(_exact, scale, memory_space, workers=self._at, pure=False)
        self._client.submit(len, self._ranks, pure=False).result()  # waits

    def distance(self, frame: Any) -> float:
        """Return the distance in L1 of a result to it, whatever its order."""
        parts = self._client.compute(frame.to_delayed())
        return float(self._client.submit(_distance, self._ranks, parts, workers=self._at, pure=False).result())


def _exact(scale: int, memory_space: Any) -> Any:
    """Rank one frame in one memory; give an array by id, 0 where no edge has it."""
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
