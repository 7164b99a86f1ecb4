"""Implementations that are timed per iteration: prplugin on one CPU thread, its methods, and other libraries."""

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
from benchmarks.papers.tables import rows_or_reason
from benchmarks.run import Row
from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.edges import Edges, Problem
from prplugin.machine import this_machine
from prplugin.methods import streamed as streaming
from prplugin.methods.base import Step
from prplugin.methods.engines import packed_rows
from prplugin.methods.engines.packed_step import PackedStep
from prplugin.methods.registry import choose, methods
from prplugin.options import Options
from prplugin.papers._forms import PaperStep
from prplugin.solver.loop import Outcome
from prplugin.solver.solve import solve
from prplugin.stopping import Stop
from prplugin.types.arrays import MemorySpace, namespace, synchronize
from prplugin.types.edges import Coo, Csc

ALPHA = 0.85

RUNS, LIMIT = 7, 1.0
"""Largest number of samples, and the seconds after which no more are taken."""

SHORT_RUNS, SHORT_LIMIT = 25, 0.2

CHUNKS = 8
"""Number of chunks of packed edges that `streamed` uses; an iteration copies all but the last two."""

AT_ONCE = 16
"""Iterations of `SparseLoop` on the GPU per sample."""


@dataclass(frozen=True)
class Implementation:
    """Implementation of an iteration.

    Attributes
    ----------
    label : str
    seconds : function
        Returns samples of an iteration on a graph, and a note, such as the name of the chosen method.
    """

    label: str
    seconds: Callable[[Edges], tuple[list[float], str]]


def time_each(adjacency: Edges, implementations: Iterable[Implementation]) -> Iterator[Row]:
    """Yield the time per iteration of each implementation; `ONE`, if given, has to come first."""
    one: list[float] = []
    for each in implementations:
        for found in rows_or_reason({"what": each.label}, partial(_timed, each, adjacency)):
            if each is ONE:
                one = found.get("samples", [])
            if one and "samples" in found:
                found["speed-up over one CPU thread"] = statistics.median(one) / statistics.median(found["samples"])
            yield found


def _timed(each: Implementation, adjacency: Edges) -> Iterator[Row]:
    samples, note = each.seconds(adjacency)
    yield {"what": each.label, "ms": statistics.median(samples) * 1e3, "samples": samples, "note": note}


def method(label: str, name: str, **options: Any) -> Implementation:
    """Return a method of prplugin as an implementation."""
    return Implementation(label, lambda adjacency: (_of_method(name, options, adjacency), ""))


def _of_method(name: str, options: dict[str, Any], adjacency: Edges) -> list[float]:
    return iteration(prepared(name, adjacency, **options), adjacency.n)


def streamed(label: str) -> Implementation:
    """Return `streamed` with small chunks: its default buffers would hold all edges of most of the papers' graphs."""
    return Implementation(label, _streamed)


def _streamed(adjacency: Edges) -> tuple[list[float], str]:
    if reason := streaming.unavailable_reason(adjacency, this_machine()):
        raise MethodUnavailableError(reason)
    problem = Problem(adjacency, ALPHA).on("host")
    chunk_bytes = -(-packed_bytes(problem.adjacency) // CHUNKS)
    pull = streaming.StreamedPull(problem.adjacency, chunk_bytes=chunk_bytes)
    step = PackedStep(problem, pull)
    samples = iteration(step, adjacency.n)
    stream = pull.chunk_stream
    assert stream is not None
    before = stream.bytes_copied
    step()
    return samples, streamed_note(
        len(pull.data), stream.bytes_copied - before, sum(chunk.nbytes for chunk in pull.data)
    )


def packed_bytes(adjacency: Edges) -> int:
    """Return the bytes of a host graph's edges as `streamed` packs them, without normalized weights."""
    threads = this_machine().threads
    rows = packed_rows.Rows(*adjacency.get(Csc)).in_packing_order(adjacency.out_weight)
    return sum(int(part.data.nbytes) for part in packed_rows.packed(rows, threads))


def streamed_note(chunks: int, copied: int, total: int) -> str:
    """Report how much of the packed edges an iteration copies; the two chunks copied last are not copied again."""
    return f"{copied / total:.0%} of {total / 1e6:.3g} MB of packed edges copied per iteration, in {chunks} chunks"


def prepared(name: str, adjacency: Edges, **options: Any) -> Step:
    """Prepare a method on a graph.

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
    """Sample the seconds of an iteration, in the paper's form of a step that has it."""
    if isinstance(step, PaperStep):
        form = step.form
        form.load(1 / n, n)
        return several_at_once(form)
    if step.float32_is_faster:
        return iterations.time_method(step, n, "float32")
    step.start(1 / n)
    return repeatedly(step, runs=RUNS, limit=LIMIT)


def short_iteration(step: Step, n: int) -> list[float]:
    """Sample the seconds of few iterations of a slow method on the GPU, in float32, with the copy of the norms.

    In the paper's form there are no norms.
    """
    if isinstance(step, PaperStep):
        form = step.form
        form.load(1 / n, n)

        def once() -> None:
            form()
            synchronize("device")

        return repeatedly(once, runs=SHORT_RUNS, limit=SHORT_LIMIT)
    step.set_contribution_dtype("float32")
    step.start(1 / n)
    return repeatedly(step, runs=SHORT_RUNS, limit=SHORT_LIMIT)


def require_gpu() -> None:
    """Raise MethodUnavailableError without a GPU."""
    if reason := runtime.unavailable_reason():
        raise MethodUnavailableError(reason)


# --- loop on a sparse matrix ----------------------------------------------------------------------------------------


class SparseLoop:
    """Iteration on a sparse matrix, by SciPy on the CPU or by cuSPARSE through CuPy on the GPU.

    Parameters
    ----------
    offsets, sources : arrays
        In-edges by target, in one memory space.
    out_degrees : array of n float64
        Ranks and matrix are float64 on the CPU, as in prplugin, and float32 on the GPU.
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
        """Do one iteration."""
        n, x = self.ranks.size, self.ranks
        self.ranks = (
            ALPHA * (self.matrix @ (x * self._inverse_out_weight)) + (ALPHA * x[self._dangling].sum() + 1 - ALPHA) / n
        )


def _sparse_loop(memory_space: MemorySpace, adjacency: Edges) -> tuple[list[float], str]:
    if memory_space == "device":
        require_gpu()
    here = adjacency.on(memory_space)
    step = SparseLoop(here.get(Csc).offsets, here.get(Csc).indices, here.out_weight)
    if memory_space == "host":
        return repeatedly(step, runs=RUNS, limit=LIMIT), ""

    return several_at_once(step), ""


def several_at_once(iterate: Callable[[], object]) -> list[float]:
    """Sample the seconds of an iteration on the GPU, several at a time."""

    def several() -> None:
        for _ in range(AT_ONCE):
            iterate()
        synchronize("device")

    return [seconds / AT_ONCE for seconds in repeatedly(several, runs=RUNS, limit=LIMIT)]


# --- implementations in every paper ---------------------------------------------------------------------------------


def _auto(memory_space: Literal["host", "device"], adjacency: Edges) -> tuple[list[float], str]:
    if memory_space == "device":
        require_gpu()
    here = adjacency.on(memory_space)
    name = choose("auto", here, this_machine(), {}).name
    return _of_method(name, {}, here), name


def _cugraph(adjacency: Edges) -> tuple[list[float], str]:
    require_gpu()
    import cudf  # lazy import; a dependency of cuGraph

    edges = adjacency.on("device").get(Coo)
    frame = cudf.DataFrame({"src": edges.source, "dst": edges.destination})
    return iterations.time_cugraph(iterations.cugraph_graph(frame)), "MultiGraph, float32"


ONE = method("one CPU thread", "native", threads=1)
ALL_THREADS = method("all CPU threads", "native")
SCIPY = Implementation("SciPy loop, 1 thread", partial(_sparse_loop, "host"))
OURS = Implementation("prplugin on the GPU: auto", partial(_auto, "device"))
CUSPARSE = Implementation("cuSPARSE loop (CuPy)", partial(_sparse_loop, "device"))
CUGRAPH = Implementation("cuGraph", _cugraph)


def full_run(step: Step, adjacency: Edges, stop: Stop, tol: float) -> Outcome:
    """Iterate a prepared step by prplugin's solver, from uniform ranks, until the stopping rule is met."""
    options = Options(alpha=ALPHA, tol=tol, stop=stop)
    return solve(step, options, adjacency.n, 1 / adjacency.n, lambda *_: lambda *_: None)
