"""Sides that are timed, one iteration at a time: one CPU thread, the methods of prplugin, and other libraries."""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from benchmarks import iterations
from benchmarks.measure import repeatedly
from benchmarks.papers.tables import or_why
from benchmarks.run import Row
from prplugin.cpu.threads import Threads
from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods import streamed as streaming
from prplugin.methods.base import Step
from prplugin.methods.engines import packed
from prplugin.methods.registry import choose, methods
from prplugin.types.arrays import MemorySpace, namespace, synchronize

__all__ = [
    "ALL_THREADS",
    "ALPHA",
    "CUGRAPH",
    "CUSPARSE",
    "LIMIT",
    "ONE",
    "OURS",
    "RUNS",
    "SCIPY",
    "ByHand",
    "Side",
    "beside",
    "method",
    "packed_bytes",
    "prepared",
    "require_gpu",
    "streamed",
    "streamed_note",
]  # fmt: skip

ALPHA = 0.85

RUNS, LIMIT = 7, 1.0
"""Samples, and the seconds after which no more are taken: so long a row takes, or as long as two calls."""

CHUNKS = 8
"""Number of chunks of packed edges that `streamed` uses; an iteration copies all but the last two."""

AT_ONCE = 16
"""Iterations by hand on the GPU between looks."""


@dataclass(frozen=True)
class Side:
    """Something that iterates.

    Attributes
    ----------
    label : str
    seconds : function
        Gives samples of an iteration on a graph, and the method's name if that is not known before.
    """

    label: str
    seconds: Callable[[Adjacency], tuple[list[float], str]]


def beside(adjacency: Adjacency, sides: Iterable[Side]) -> Iterator[Row]:
    """Time an iteration of each side; that of one CPU version comes first, if it is among them."""
    one: list[float] = []
    for side in sides:
        for found in or_why({"what": side.label}, partial(_timed, side, adjacency)):
            if side is ONE:
                one = found.get("samples", [])
            if one and "samples" in found:
                found["x one CPU thread"] = statistics.median(one) / statistics.median(found["samples"])
            yield found


def _timed(side: Side, adjacency: Adjacency) -> Iterator[Row]:
    samples, note = side.seconds(adjacency)
    yield {"what": side.label, "ms": statistics.median(samples) * 1e3, "samples": samples, "note": note}


def method(label: str, name: str, **options: Any) -> Side:
    """Make a side of a method of ours."""
    return Side(label, lambda adjacency: (_of_method(name, options, adjacency), ""))


def _of_method(name: str, options: dict[str, Any], adjacency: Adjacency) -> list[float]:
    return iteration(prepared(name, adjacency, **options), adjacency.n)


def streamed(label: str) -> Side:
    """Make a side of `streamed` that streams: its own buffers would hold all edges of most of the papers' graphs."""
    return Side(label, _streamed)


def _streamed(adjacency: Adjacency) -> tuple[list[float], str]:
    if reason := streaming.unavailable_reason(adjacency, this_machine()):
        raise MethodUnavailableError(reason)
    problem = Problem(adjacency, ALPHA).on("host")
    chunk_bytes = -(-packed_bytes(problem.adjacency) // CHUNKS)
    pull = streaming.StreamedPull(problem.adjacency, chunk_bytes=chunk_bytes)
    step = streaming.step_of(problem, pull)
    samples = iteration(step, adjacency.n)
    stream = pull.chunk_stream
    assert stream is not None
    before = stream.bytes_copied
    step()
    return samples, streamed_note(
        len(pull.data), stream.bytes_copied - before, sum(chunk.nbytes for chunk in pull.data)
    )


def packed_bytes(adjacency: Adjacency) -> int:
    """Return the bytes of a host graph's edges as `streamed` packs them, without normalized weights."""
    threads = Threads(this_machine().threads)
    rows = packed.choose_order(packed.Rows(*adjacency.csc), threads)
    return sum(int(part.data.nbytes) for part in packed.packed(rows, threads))


def streamed_note(chunks: int, copied: int, total: int) -> str:
    """Report how much of the packed edges an iteration copies; the two chunks copied last are not copied again."""
    return f"{copied / total:.0%} of {total / 1e6:.3g} MB of packed edges copied per iteration, in {chunks} chunks"


def prepared(name: str, adjacency: Adjacency, **options: Any) -> Step:
    """Make a method's plan.

    Raises
    ------
    MethodUnavailableError
        If it cannot run here.
    """
    chosen, machine = methods()[name], this_machine()
    if reason := chosen.unavailable_reason(adjacency, machine):
        raise MethodUnavailableError(reason)
    step: Step = chosen.prepare(Problem(adjacency, ALPHA), machine, **options)
    return step


def iteration(step: Step, n: int) -> list[float]:
    """Sample the seconds of an iteration."""
    if step.float32_is_faster:
        return iterations.ours(step, n, "float32")
    step.start(1 / n)
    return repeatedly(step, runs=RUNS, limit=LIMIT)


def require_gpu() -> None:
    """Raise MethodUnavailableError if there is none."""
    if reason := runtime.unavailable_reason():
        raise MethodUnavailableError(reason)


# --- by hand ------------------------------------------------------------------------------------------------------


class ByHand:
    """The iteration that one writes by hand on a sparse matrix: SciPy's on the CPU, cuSPARSE's through CuPy on the GPU.

    Parameters
    ----------
    offsets, sources : arrays
        The in-edges by target, in one place.
    out_degrees : array of n float64
        All in float64 on the CPU, as ours are there, and in float32 on the GPU.
    """

    def __init__(self, offsets: Any, sources: Any, out_degrees: Any) -> None:
        xp = namespace(offsets)
        dtype = "float64" if xp is np else "float32"
        csr_matrix = importlib.import_module("scipy.sparse" if xp is np else "cupyx.scipy.sparse").csr_matrix
        n = out_degrees.size
        self.matrix = csr_matrix((xp.ones(sources.size, dtype), sources, offsets), shape=(n, n))
        self._inverse_out_weight = xp.where(out_degrees > 0, 1 / xp.maximum(out_degrees, 1.0), 0.0).astype(dtype)
        self._dangling = xp.flatnonzero(out_degrees == 0)
        self.ranks = xp.full(n, 1 / n, dtype)

    def __call__(self) -> None:
        """Iterate once."""
        n, x = self.ranks.size, self.ranks
        self.ranks = (
            ALPHA * (self.matrix @ (x * self._inverse_out_weight)) + (ALPHA * x[self._dangling].sum() + 1 - ALPHA) / n
        )


def _by_hand(memory_space: MemorySpace, adjacency: Adjacency) -> tuple[list[float], str]:
    if memory_space == "device":
        require_gpu()
    here = adjacency.on(memory_space)
    step = ByHand(here.csc.offsets, here.csc.indices, here.out_weight)
    if memory_space == "host":
        return repeatedly(step, runs=RUNS, limit=LIMIT), ""

    def several() -> None:
        for _ in range(AT_ONCE):
            step()
        synchronize(memory_space)

    return [seconds / AT_ONCE for seconds in repeatedly(several, runs=RUNS, limit=LIMIT)], ""


# --- the sides of every paper -------------------------------------------------------------------------------------


def _auto(memory_space: Literal["host", "device"], adjacency: Adjacency) -> tuple[list[float], str]:
    if memory_space == "device":
        require_gpu()
    here = adjacency.on(memory_space)
    name = choose("auto", here, this_machine(), {}).name
    return _of_method(name, {}, here), name


def _cugraph(adjacency: Adjacency) -> tuple[list[float], str]:
    require_gpu()
    import cudf  # comes with cuGraph

    edges = adjacency.on("device").edges
    frame = cudf.DataFrame({"src": edges.source, "dst": edges.destination})
    return iterations.theirs(iterations.cugraph_graph(frame)), "MultiGraph, float32"


ONE = method("one CPU version: numba, 1 thread", "numba", threads=1)
ALL_THREADS = method("numba, all CPU threads", "numba")
SCIPY = Side("SciPy by hand, 1 thread", partial(_by_hand, "host"))
OURS = Side("prplugin on the GPU: auto", partial(_auto, "device"))
CUSPARSE = Side("cuSPARSE by hand (CuPy)", partial(_by_hand, "device"))
CUGRAPH = Side("cuGraph", _cugraph)
