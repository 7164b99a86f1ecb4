"""What `roofline` times, and profiles: ``python -m benchmarks.roofline_workload --output FILE [--profile]``.

Every launch of a kernel of ours is seen on its way through `prplugin.gpu.runtime.kernel`. A case runs once
unseen, which compiles it; a line of JSON a case says what was launched, what it must move and how long it took.
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
from benchmarks.traffic import must_move, parameters
from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.problem import Problem
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = ["Case", "Trace", "cases", "report"]

REPEATS = 5

COPIED = 1 << 30
"""Bytes that are copied to see what the memory can do."""

PULLS = ("node", "edge", "warp", "block", "binned", "expanded")
"""Methods of the papers. `segmented` launches the kernels of `node`, `warp` and `block`."""


class Case(NamedTuple):
    """A piece of work.

    Attributes
    ----------
    name : str
    ready : function
        Does what comes before, and gives what does the work, as often as it is called.
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
    """Stands in for `prplugin.gpu.runtime.kernel`, and sees what is launched."""

    kernel_of: Callable[..., Any]
    launches: list[Launch] = field(default_factory=list)

    def kernel(self, path: str, name: str, **macros: str | int) -> Any:
        """Return a kernel whose launches are seen."""
        return _Seen(self.kernel_of(path, name, **macros), f"{Path(path).stem}.{name}", parameters(path)[name], self)

    def of(self, work: Callable[[], object]) -> list[Launch]:
        """Do some work, wait for it, and give its launches."""
        import cupy  # what is launched is

        self.launches = []
        work()
        cupy.cuda.runtime.deviceSynchronize()
        return self.launches


class _Seen:
    """A kernel, or the function in it, that tells the trace of its launches."""

    def __init__(self, inner: Any, kernel: str, names: tuple[str, ...], trace: Trace) -> None:
        vars(self).update(_inner=inner, _kernel=kernel, _names=names, _trace=trace)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _Seen(found, self._kernel, self._names, self._trace) if name == "kernel" else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __call__(self, grid: Any, block: Any, arguments: Any, **how: Any) -> None:
        import cupy  # what is launched is

        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        self._inner(grid, block, arguments, **how)
        end.record()
        named = dict(zip(self._names, arguments, strict=True))
        self._trace.launches.append(Launch(self._kernel, named, begin, end))


# --- what is done -------------------------------------------------------------------------------------------------


def graphs(data: Path | None, quick: bool) -> Iterator[tuple[str, Callable[[], Any], bool]]:
    """Name the graphs, each with what makes its cuDF frame, and whether it is read in every way."""
    import cudf  # the benchmark needs a GPU with RAPIDS

    yield "uniform 1k x 500k", lambda: uniform(1000, 500_000, memory_space="device"), False
    if data is not None:
        yield "cnr-2000", lambda: cudf.read_parquet(data / "graphs" / "cnr-2000.parquet")[["src", "dst"]], False
    if quick:
        yield "R-MAT 16", lambda: rmat(16, memory_space="device"), True
        return
    yield "R-MAT 22", lambda: rmat(22, memory_space="device"), True
    yield "uniform 8M x 80M", lambda: uniform(8_000_000, 80_000_000, memory_space="device"), False


def cases(edges: Any, every_way: bool) -> Iterator[Case]:
    """Return the whole way from a frame of int32 ids to an iteration, step by step."""
    import prplugin

    yield Case("ingest", lambda: partial(_ingested, edges))
    if every_way:
        yield Case("ingest, int64 ids", lambda: partial(_ingested, scattered(edges)))
        yield Case("ingest, weights", lambda: partial(_ingested, weighted(edges), weight="weight"))
        yield Case("ingest, one edge a pair", lambda: partial(_ingested, edges, duplicates="first"))
    adjacency = prplugin.Graph(edges)._graph.adjacency
    problem = Problem(adjacency, 0.85)
    for name in ("persistent", "propagation-blocking"):
        yield Case(f"{name}, layout", partial(partial, _laid_out, name, problem))
        for dtype in ("float32", "float64"):
            yield Case(f"{name}, {dtype}", partial(_iterating, name, problem, dtype))
    for name in (*PULLS, "dense"):
        if name != "dense" or adjacency.n <= 1000:  # a matrix of all pairs
            yield Case(f"{name}, float32", partial(_iterating, name, problem, "float32"))


def _ingested(frame: Any, **options: Any) -> object:
    import prplugin

    adjacency = prplugin.Graph(frame, **options)._graph.adjacency
    return adjacency.csc, adjacency.out_weight


def _laid_out(name: str, problem: Problem) -> object:
    """Make the plan, and begin."""
    import cupy

    step = methods()[name].prepare(problem, this_machine())
    step.set_contribution_dtype("float32")
    step.start(cupy.full(problem.adjacency.n, 1 / problem.adjacency.n))
    return step


def _iterating(name: str, problem: Problem, dtype: str) -> Callable[[], object]:
    """Return one iteration, after two."""
    import cupy

    if reason := methods()[name].unavailable_reason(problem.adjacency, this_machine()):
        raise MethodUnavailableError(reason)
    step: Callable[[], object] = methods()[name].prepare(problem, this_machine())
    step.set_contribution_dtype(dtype)  # type: ignore[attr-defined]
    step.start(cupy.full(problem.adjacency.n, 1 / problem.adjacency.n))  # type: ignore[attr-defined]
    step()
    step()
    return step


# --- what is reported ---------------------------------------------------------------------------------------------


def report(case: Case, trace: Trace, *, profile: bool) -> dict[str, Any]:
    """Do a case's work again and again, and say what was launched; or why it failed."""
    from cupyx.profiler import profile as profiled

    told: dict[str, Any] = {"case": case.name, "launches": []}
    try:
        work = case.ready()
        launches = trace.of(work)
        told["launches"] = [
            {"kernel": launch.kernel, "bytes": must_move(launch.kernel, launch.arguments), "seconds": []}
            for launch in launches
        ]
        launches.clear()  # nor is what they were given needed any more
        if profile:
            with profiled():
                trace.of(work)
            return told
        for _ in range(REPEATS):
            seen = trace.of(work)
            for launch, line in zip(seen, told["launches"], strict=True):
                line["seconds"].append(_seconds(launch))
    except Exception as error:  # of CUDA and of ours: the other cases go on
        told["why"] = f"{type(error).__name__}: {error}"[:200]
    finally:
        trace.launches = []
    return told


def _seconds(launch: Launch) -> float:
    import cupy

    return float(cupy.cuda.get_elapsed_time(launch.begin, launch.end)) / 1e3


def _copy_bandwidth() -> float:
    """Return the bytes a second, read and written, of the fastest of some copies within the GPU's memory."""
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
@click.option("--profile", is_flag=True, help="Once, where a profiler looks.")
@click.option("--output", type=click.File("w"), required=True)
def main(data: Path | None, quick: bool, profile: bool, output: TextIO) -> None:
    """Report every case, a line of JSON each, as soon as it is done."""

    def tell(what: dict[str, Any]) -> None:
        output.write(json.dumps(what) + "\n")
        output.flush()

    tell({"copy": _copy_bandwidth()})
    trace = Trace(runtime.kernel)
    runtime.kernel = trace.kernel  # type: ignore[assignment]
    for name, make, every_way in graphs(data, quick):
        try:
            for case in cases(make().astype("int32"), every_way):
                tell({"graph": name, **report(case, trace, profile=profile)})
        except Exception as error:  # the other graphs go on
            tell({"graph": name, "case": "", "launches": [], "why": f"{type(error).__name__}: {error}"[:200]})
        _free()


def _free() -> None:
    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
