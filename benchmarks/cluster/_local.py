"""Dask clusters on this host: one worker per GPU, or processes; and frames partitioned over them."""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from benchmarks.generate import rmat_part
from benchmarks.measure import timed
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace

EDGE_FACTOR = 16

PARTITIONS = 2
"""Partitions of a frame per worker, as many as cugraph.dask recommends."""

POOL = 0.7
"""Fraction of a GPU's memory for RMM's pool; NCCL and kernels need the rest."""

PROCESSES = (1, 2)
"""Numbers of workers on CPUs."""

EMPTY_RUNS = 15

_running: list[Workers] = []


@cache
def has_gpus() -> bool:
    """Return whether there are GPUs, and dask_cuda and dask_cudf are installed."""
    return runtime.unavailable_reason() is None and all(find_spec(name) for name in ("dask_cuda", "dask_cudf"))


@cache
def counts(gpus: bool) -> tuple[int, ...]:
    """Return the numbers of workers to compare: the powers of two up to the number of GPUs, or of processes."""
    if not gpus:
        return PROCESSES
    import cupy  # lazy import; `has_gpus` is true

    count = int(cupy.cuda.runtime.getDeviceCount())
    return tuple(2**power for power in range(int(math.log2(count)) + 1))


@dataclass(frozen=True, eq=False)
class Workers:
    """The running cluster; there is at most one.

    Attributes
    ----------
    cluster, client : cluster and client of distributed
    count : int
    memory_space : {"device", "host"}
    before_end : list of functions
        Called before the workers stop.
    """

    cluster: Any
    client: Any
    count: int
    memory_space: MemorySpace
    before_end: list[Callable[[], object]] = field(default_factory=list)

    @property
    def addresses(self) -> list[str]:
        """Sorted addresses of the workers."""
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])

    def rmat(self, scale: int) -> Any:
        """Generate a graph in parts on the workers; return a persisted Dask frame."""
        from distributed import wait

        memory_space = self.memory_space
        m, pieces = EDGE_FACTOR << scale, PARTITIONS * self.count
        bounds = [m * piece // pieces for piece in range(pieces + 1)]
        addresses = self.addresses
        made = [
            self.client.submit(
                _part, scale, first, last, memory_space, pure=False, workers=[addresses[nth // PARTITIONS]]
            )
            for nth, (first, last) in enumerate(pairwise(bounds))
        ]  # fmt: skip
        wait(made)
        return self._frame(made, self.client.submit(_part, scale, 0, 1, memory_space, pure=False).result())

    def _frame(self, parts: list[Any], like: Any) -> Any:
        if self.memory_space == "device":
            import dask_cudf as library
        else:
            import dask.dataframe as library
        return library.from_delayed(parts, meta=like.iloc[:0], verify_meta=False).persist()

    def seconds_of_empty_tasks(self, count: int) -> float:
        """Return the time of one task that does nothing on each of `count` workers, as the median of several."""
        from distributed import wait

        def run() -> None:
            wait([self.client.submit(_nothing, workers=[each], pure=False) for each in self.addresses[:count]])

        return statistics.median(timed(run)[0] for _ in range(EMPTY_RUNS))

    def collect_garbage(self) -> None:
        """Collect garbage in all processes; a collection during a measured call took half a second."""
        gc.collect()
        self.client.run(gc.collect)

    def close(self) -> None:
        """Stop the workers."""
        for do in self.before_end:
            do()
        self.client.close()
        self.cluster.close()


def workers(count: int, gpus: bool) -> Workers:
    """Return a cluster of `count` workers; reuse the running one, or stop it first if it is another."""
    memory_space: MemorySpace = "device" if gpus else "host"
    if _running and (_running[0].count, _running[0].memory_space) != (count, memory_space):
        _running.pop().close()
    if not _running:
        _running.append(_started(count, memory_space))
    return _running[0]


def end() -> None:
    """Stop the running cluster before interpreter shutdown."""
    while _running:
        _running.pop().close()


def _started(count: int, memory_space: MemorySpace) -> Workers:
    from distributed import Client, LocalCluster

    if memory_space == "device":
        from dask_cuda import LocalCUDACluster

        cluster = LocalCUDACluster(
            CUDA_VISIBLE_DEVICES=list(range(count)), protocol="tcp", rmm_pool_size=POOL, dashboard_address=":0"
        )
    else:
        cluster = LocalCluster(
            n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        )
    client = Client(cluster)
    client.wait_for_workers(count)
    return Workers(cluster, client, count, memory_space)


def _part(scale: int, first: int, last: int, memory_space: Any) -> Any:
    with runtime.device_allocation(memory_space):
        return rmat_part(scale, first, last, EDGE_FACTOR, memory_space=memory_space).astype("int32")


def _nothing() -> None:
    """Do nothing."""


def rows_of(frame: Any) -> int:
    """Return the number of rows of a Dask frame."""
    return int(frame.map_partitions(len).compute().sum())
