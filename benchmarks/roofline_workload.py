"""Workload that `roofline` times and profiles: ``python -m benchmarks.roofline_workload --output FILE [--profile]``.

A replacement of `prplugin.gpu.runtime.kernel` traces every launch. A case runs once without a trace, which compiles its
kernels. The output has one line of JSON per case: the launches, their required bytes and their times.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click

from benchmarks.generate import rmat, scattered, uniform, weighted
from benchmarks.traffic import parameters, required_bytes
from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = ["Case", "Trace", "cases", "report"]

REPEATS = 5

COPIED = 1 << 30
"""Bytes of the copy that measures the memory bandwidth."""

PULLS = ("node", "edge", "warp", "block", "binned", "expanded")
"""Published methods that are profiled. `segmented` launches the kernels of `node`, `warp` and `block`."""


class Case(NamedTuple):
    """An operation that is profiled.

    Attributes
    ----------
    name : str
    ready : function
        Prepares the operation and returns a function that performs it, which may be called repeatedly.
    """

    name: str
    ready: Callable[[], Callable[[], object]]


@dataclass
class Launch:
    """One launch of a kernel."""

    kernel: str
    arguments: Mapping[str, Any]
    begin: Any
    end: Any


@dataclass
class Trace:
    """Replacement of `prplugin.gpu.runtime.kernel` that records launches."""

    kernel_of: Callable[..., Any]
    launches: list[Launch] = field(default_factory=list)

    def kernel(self, path: str, name: str, **macros: str | int) -> Any:
        """Return a kernel whose launches are recorded."""
        inner = self.kernel_of(path, name, **macros)
        return _TracedKernel(inner, f"{Path(path).stem}.{name}", parameters(path)[name], self)

    def record(self, work: Callable[[], object]) -> list[Launch]:
        """Run a function, synchronize, and return its launches."""
        import cupy  # lazy import; kernels need it

        self.launches = []
        work()
        cupy.cuda.runtime.deviceSynchronize()
        return self.launches


class _TracedKernel:
    """Kernel, or its inner function, that appends its launches to a trace."""

    def __init__(self, inner: Any, kernel: str, names: tuple[str, ...], trace: Trace) -> None:
        vars(self).update(_inner=inner, _kernel=kernel, _names=names, _trace=trace)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _TracedKernel(found, self._kernel, self._names, self._trace) if name == "kernel" else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __call__(self, grid: Any, block: Any, arguments: Any, **how: Any) -> None:
        import cupy  # lazy import; kernels need it

        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        self._inner(grid, block, arguments, **how)
        end.record()
        named = dict(zip(self._names, arguments, strict=True))
        self._trace.launches.append(Launch(self._kernel, named, begin, end))


# --- cases ----------------------------------------------------------------------------------------------------------


def graphs(data: Path | None, quick: bool) -> Iterator[tuple[str, Callable[[], Any], bool]]:
    """Yield name and frame constructor of each graph, and whether all kinds of graph construction are profiled."""
    import cudf  # the benchmark needs a GPU with RAPIDS

    yield "uniform 1k x 500k", lambda: uniform(1000, 500_000, memory_space="device"), False
    if data is not None:
        yield "cnr-2000", lambda: cudf.read_parquet(data / "graphs" / "cnr-2000.parquet")[["src", "dst"]], False
    if quick:
        yield "R-MAT 16", lambda: rmat(16, memory_space="device"), True
        return
    yield "R-MAT 22", lambda: rmat(22, memory_space="device"), True
    yield "uniform 8M x 80M", lambda: uniform(8_000_000, 80_000_000, memory_space="device"), False


def cases(edges: Any, all_kinds: bool) -> Iterator[Case]:
    """Yield the cases from a frame of int32 ids to one iteration of each method."""
    yield Case("ingest", lambda: partial(_ingested, edges))
    if all_kinds:
        yield Case("ingest, int64 ids", lambda: partial(_ingested, scattered(edges)))
        yield Case("ingest, weights", lambda: partial(_ingested, weighted(edges), weight="weight"))
        yield Case("ingest, one edge per pair", lambda: partial(_ingested, edges, duplicates="first"))
    adjacency, *_ = _ingested(edges)  # in-edges that are sorted later would be counted in the first layout
    problem = Problem(adjacency, 0.85)
    for name in ("persistent", "propagation-blocking"):
        yield Case(f"{name}, layout", partial(partial, _laid_out, name, problem))
        for dtype in ("float32", "float64"):
            yield Case(f"{name}, {dtype}", partial(_iterating, name, problem, dtype))
    for name in (*PULLS, "dense"):
        if name != "dense" or adjacency.n <= 1000:  # a matrix of all pairs
            yield Case(f"{name}, float32", partial(_iterating, name, problem, "float32"))


def _ingested(frame: Any, **options: Any) -> Any:
    import prplugin

    adjacency = prplugin.Graph(frame, **options)._graph.adjacency
    return adjacency, adjacency.csc, adjacency.out_weight


def _laid_out(name: str, problem: Problem) -> object:
    """Prepare a method and set the start vector."""
    import cupy

    step = methods()[name].prepare(problem, this_machine())
    step.set_contribution_dtype("float32")
    step.start(cupy.full(problem.adjacency.n, 1 / problem.adjacency.n))
    return step


def _iterating(name: str, problem: Problem, dtype: str) -> Callable[[], object]:
    """Return a function that does one iteration, after two iterations."""
    import cupy

    if reason := methods()[name].unavailable_reason(problem.adjacency, this_machine()):
        raise MethodUnavailableError(reason)
    step: Callable[[], object] = methods()[name].prepare(problem, this_machine())
    step.set_contribution_dtype(dtype)  # type: ignore[attr-defined]
    step.start(cupy.full(problem.adjacency.n, 1 / problem.adjacency.n))  # type: ignore[attr-defined]
    step()
    step()
    return step


# --- reports --------------------------------------------------------------------------------------------------------


def report(case: Case, trace: Trace, *, profile: bool) -> dict[str, Any]:
    """Return the launches of a case with their bytes and times, or the reason of a failure."""
    from cupyx.profiler import profile as profiled

    reported: dict[str, Any] = {"case": case.name, "launches": []}
    try:
        work = case.ready()
        launches = trace.record(work)
        reported["launches"] = [
            {"kernel": launch.kernel, "bytes": required_bytes(launch.kernel, launch.arguments), "seconds": []}
            for launch in launches
        ]
        launches.clear()  # release the arrays that the launches refer to
        if profile:
            with profiled():
                trace.record(work)
            return reported
        for _ in range(REPEATS):
            seen = trace.record(work)
            for launch, line in zip(seen, reported["launches"], strict=True):
                line["seconds"].append(_seconds(launch))
    except Exception as error:  # of many types; the remaining cases still run
        reported["reason"] = f"{type(error).__name__}: {error}"[:200]
    finally:
        trace.launches = []
    return reported


def _seconds(launch: Launch) -> float:
    import cupy

    return float(cupy.cuda.get_elapsed_time(launch.begin, launch.end)) / 1e3


def _copy_bandwidth() -> float:
    """Return the bytes per second, read and written, of the fastest of several copies within the GPU's memory."""
    import cupy

    source, target = cupy.zeros(COPIED, "u1"), cupy.empty(COPIED, "u1")
    best = 0.0
    for _ in range(10):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        cupy.copyto(target, source)
        end.record()
        end.synchronize()
        best = max(best, 2 * COPIED / (float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3))
    return best


@click.command()
@click.option("--data", type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True)
@click.option("--profile", is_flag=True, help="Run each case once, with the profiler enabled.")
@click.option("--output", type=click.File("w"), required=True)
def main(data: Path | None, quick: bool, profile: bool, output: TextIO) -> None:
    """Write one line of JSON per case as soon as it is finished."""

    def write(what: dict[str, Any]) -> None:
        output.write(json.dumps(what) + "\n")
        output.flush()

    write({"copy": _copy_bandwidth()})
    trace = Trace(runtime.kernel)
    runtime.kernel = trace.kernel  # type: ignore[assignment]
    for name, make, all_kinds in graphs(data, quick):
        try:
            for case in cases(make().astype("int32"), all_kinds):
                write({"graph": name, **report(case, trace, profile=profile)})
        except Exception as error:  # the remaining graphs still run
            write({"graph": name, "case": "", "launches": [], "reason": f"{type(error).__name__}: {error}"[:200]})
        _free()


def _free() -> None:
    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
