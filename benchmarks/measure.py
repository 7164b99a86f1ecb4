"""Alternating time measurements with warm-up, which return every sample, and a check of the available memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from prplugin import machine
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace

SINGLE_SAMPLE_FACTOR = 10
"""A warm-up that takes longer than this many times the limit is the only sample."""


@dataclass
class Timed:
    """Samples of one call, and its last result."""

    seconds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def median(self) -> float:
        """Median of the samples."""
        return statistics.median(self.seconds)


def timed(call: Callable[[], Any], memory_space: MemorySpace = "host") -> tuple[float, Any]:
    """Return the seconds of a call, which on the device begin and end with all streams idle, and its result."""
    _wait_for(memory_space)
    began = time.perf_counter()
    result = call()
    _wait_for(memory_space)
    return time.perf_counter() - began, result


def _wait_for(memory_space: MemorySpace) -> None:
    if memory_space == "device":
        import cupy

        cupy.cuda.runtime.deviceSynchronize()


def alternately(
    *calls: Callable[[], Any], runs: int, warm: bool = False, before: Callable[[], object] | None = None
) -> list[Timed]:
    """Time calls alternately, A B A B ..., after an uncounted warm-up round unless `warm`.

    `before` runs before each call and is not timed; it can free the memory of the previous call.
    """
    records = [Timed() for _ in calls]
    for run in range(warm, runs + 1):
        for call, record in zip(calls, records, strict=True):
            if before is not None:
                before()
            seconds, record.result = timed(call)
            if run:
                record.seconds.append(seconds)
    return records


def repeatedly(call: Callable[[], Any], *, runs: int, limit: float) -> list[float]:
    """Return samples of the seconds of a call; see `sampled`."""
    return sampled(lambda: timed(call)[0], runs=runs, limit=limit)


def sampled(once: Callable[[], float], *, runs: int, limit: float) -> list[float]:
    """Collect the seconds that calls of `once` return, after one uncounted call.

    Takes `runs` samples, or fewer once their sum exceeds `limit` seconds, but at least one. If the first call exceeds
    `SINGLE_SAMPLE_FACTOR` times the limit, it is the only sample.
    """
    first = once()
    if first > SINGLE_SAMPLE_FACTOR * limit:
        return [first]
    seconds = [once()]
    while len(seconds) < runs and sum(seconds) < limit:
        seconds.append(once())
    return seconds


def run_in_process(script: str, *words: str, **environment: str) -> list[float]:
    """Run a script in a new Python process with additional environment variables; return the seconds that it prints.

    Python may cache bytecode, as in an installed package: without it, loading this package takes twice as long.

    Raises
    ------
    RuntimeError
        If it fails; the message is the end of its standard error.
    """
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-200:])
    seconds: list[float] = json.loads(done.stdout)
    return seconds


@cache
def take_memory_from_a_pool() -> None:
    """Let cuDF, cuGraph and CuPy allocate from one RMM pool, from the first call on."""
    import cupy
    import rmm
    from rmm.allocators.cupy import rmm_cupy_allocator

    free, _ = rmm.mr.available_device_memory()
    size = free // 4 * 3 // 256 * 256
    rmm.mr.set_current_device_resource(rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=size))
    cupy.cuda.set_allocator(rmm_cupy_allocator)


class InsufficientMemoryError(Exception):
    """Too little memory is available; the message has the required and the available bytes."""


def bytes_available(memory_space: MemorySpace) -> float:
    """Return the available memory in bytes: of the GPU, or of this process within its container's limit."""
    if memory_space == "device":
        return runtime.available_bytes()
    return machine.bytes_available()


def require(needed: float, memory_space: MemorySpace, what: str) -> None:
    """Raise InsufficientMemoryError if fewer bytes than `needed` are available."""
    if needed > (free := bytes_available(memory_space)):
        where = "the GPU" if memory_space == "device" else "this machine"
        raise InsufficientMemoryError(
            f"{what} needs about {needed / 1e9:.1f} GB, and {where} has {free / 1e9:.1f} GB free"
        )
