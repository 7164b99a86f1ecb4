"""Run every kernel under compute-sanitizer: `python -m conformance.sanitize [--output DIR]`.

It needs a GPU and the CUDA toolkit. Memcheck detects accesses out of bounds, racecheck races in shared memory, and
initcheck reads of uninitialized memory. Memory pools are disabled, so that each array is an allocation of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

import prplugin
from conformance.circumstances import circumstances
from conformance.shapes import SHAPES
from prplugin.gpu.runtime import ROOT, source, unavailable_reason
from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.edges import Edges, Problem, factorize_ids
from prplugin.machine import this_machine
from prplugin.methods.registry import methods
from prplugin.streams import device_edges
from prplugin.types.arrays import to_host
from prplugin.types.edges import Coo, Csc, Csr

__all__ = ["kernels_of", "package_kernels", "workload"]

TOOLS = ("memcheck", "racecheck", "initcheck")

SLOW = {"large"}
"""Shapes that take too long under any tool."""

ORDER = ("skewed", "random-weights", "hub-at-end-of-path", "isolated", "in-star", "path", "zero-weights")
"""Shapes that run first, because they cover most of the kernels if time is short."""

MOST_SEEDS = 40
"""Maximum number of seeds in one call: a batch of 32, and one of eight."""

DONE = "shape done: "

ENDPOINTS = ("src", "dst")

OPTIONS: dict[str, dict[str, Any]] = {
    "segmented": {"segments": 3},
    "cpu-split": {"split": 1},
    "streamed": {"chunk_bytes": 4096},
    "expanded": {"piece_bytes": 256},
}
"""Options that give small shapes tails, several pieces and several chunks."""


def workload(seconds: float) -> None:
    """Build the graphs of shapes and rank them by every GPU method, without memory pools, for `seconds`."""
    import cupy

    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator(None)
    start = time.monotonic()
    for name in dict.fromkeys([*ORDER, *SHAPES]):
        if name in SLOW or time.monotonic() - start > seconds:
            continue
        frame, arguments = SHAPES[name]()
        graph = prplugin.Graph(frame, **arguments)
        vertices = graph.rank(method="numpy").frame
        personalized = {vertices["vertex"].iloc[0]: 1.0} if "vertex" in vertices else None
        for personalization in (None, personalized):
            # Few iterations, because kernels are slow under the tools.
            options: dict[str, Any] = {"alpha": 0.3, "tol": 1e-3, "personalization": personalization}
            expected = graph.rank(method="numpy", **options)
            for method in methods().values():
                if method.runs_on != "gpu" or method.unavailable_reason(graph._graph.adjacency, this_machine()):
                    continue
                for dtype in ("float64", "float32"):
                    ranking = graph.rank(method=method.name, dtype=dtype, **options, **OPTIONS.get(method.name, {}))
                    distance = float(np.abs(ranking.ranks.astype("float64") - expected.ranks).sum())
                    assert distance <= ranking.error_bound + expected.error_bound, (name, method.name, dtype, distance)
        _rank_in_forms(frame, arguments)
        if "vertex" in vertices:
            _rank_seeds(graph, vertices["vertex"].tolist()[:MOST_SEEDS], "persistent")
        _build(frame, arguments.get("weight"))
        print(f"{DONE}{name}", flush=True)


def _rank_in_forms(frame: Any, arguments: dict[str, Any]) -> None:
    """Run the literal kernels of the papers, two iterations of each form."""
    arguments = {name: value for name, value in arguments.items() if name != "weight"}
    for directed in (True, False):  # Kim's line 6 and degrees from ptrArray
        graph = prplugin.Graph(frame, **arguments | {"directed": directed})
        for method in methods().values():
            for form in getattr(method, "forms", ()):
                for more in ({}, {"lanes": 64}) if (method.name, form) == ("warp", "wu") else ({},):
                    options = {"form": form, **OPTIONS.get(method.name, {}), **more}
                    ranking = graph.rank(method=method.name, tol=0, max_iter=2, **options)
                    assert np.isfinite(ranking.ranks).all(), (method.name, form)


def _rank_seeds(graph: prplugin.Graph, vertices: list[Any], method: str) -> None:
    """Rank several seeds in one call, in batches of both widths."""
    for seeds in (vertices[:3], vertices):
        options: dict[str, Any] = {"alpha": 0.3, "tol": 1e-3, "seeds": seeds}
        expected = graph.rank(method="numpy", **options)
        for dtype in ("float64", "float32"):
            rankings = graph.rank(method=method, dtype=dtype, **options)
            distance = np.abs(rankings.ranks.astype("float64") - expected.ranks).sum(axis=1)
            assert (distance <= rankings.each_error_bound + expected.each_error_bound).all(), (method, dtype, distance)


def _build(frame: Any, weight: str | None) -> None:
    """Build and change device graphs with every kind of kernel, from the columns and from repeated columns."""
    import cupy

    from prplugin.gpu.factorize import GivenWeights, edges_by_id
    from prplugin.gpu.sort import TILE
    from prplugin.gpu.strings import factorize_strings

    if not len(frame) or any(name not in frame or frame[name].dtype.kind != "i" for name in ENDPOINTS):
        return
    for times in (1, TILE // len(frame) + 1):
        endpoints = [np.tile(frame[name].to_numpy(np.int64), times) for name in ENDPOINTS]
        weights = None if weight is None else np.tile(frame[weight].to_numpy(np.float64), times)
        for stride in (1, 2**40 + 1):  # dense ids, and ids that need a hash table
            codes, ids = factorize_ids([column * stride for column in endpoints])
            expected = Edges(Coo(*codes, weights, ids.size))
            columns = [cupy.asarray(column * stride) for column in endpoints]
            given = None if weights is None else GivenWeights(cupy.asarray(weights), True, _refuse)
            for grouped in (True, False):
                edges, _ = edges_by_id(columns, given, grouped=grouped)
                built = Edges(edges)
                found = [*built.get(Csc), built.out_weight, built.get(Csr).offsets]
                for array, wanted in zip(
                    found, [*expected.get(Csc), expected.out_weight, expected.get(Csr).offsets], strict=True
                ):
                    assert wanted is None or np.allclose(array.get(), wanted, rtol=1e-15, atol=0)
            if given is None and times > 1 and stride == 1:
                _build_blocks(columns, expected)
            part = expected.get(Coo).take(slice(10))
            changed = device_edges.changed(built, built.n, None, part, part, "sum", directed=True)
            assert np.array_equal(changed.get(Csc).offsets.get(), expected.get(Csc).offsets)
            kept = drop_duplicates(built.get(Coo), "first", directed=True)
            assert kept.m == len(set(zip(*(column.tolist() for column in endpoints), strict=True)))
        factorized = factorize_strings([_as_strings(column) for column in endpoints])
        assert factorized is not None
        assert factorized[1].rows == ids.size


def _build_blocks(columns: list[Any], expected: Edges) -> None:
    """Arrange the edges in blocks, as those of large frames, and take a few steps."""
    from prplugin.gpu import factorize

    usual, factorize.BLOCKED = factorize.BLOCKED, 1
    edges, _ = factorize.edges_by_id(columns, grouped=True)
    factorize.BLOCKED = usual
    built, ranks = Edges(edges), []
    for method in (methods()["propagation-blocking"], methods()["persistent"]):
        step = method.prepare(Problem(built, 0.85), this_machine())
        for dtype in ("float32", "float64"):
            step.set_contribution_dtype(dtype)
            step.start(1 / built.n)
            for _ in range(3):
                step()
        ranks.append(to_host(step.ranks()))
    assert np.allclose(*ranks, rtol=1e-13, atol=0)
    assert np.array_equal(to_host(built.get(Csc).offsets), expected.get(Csc).offsets)
    assert np.array_equal(to_host(built.out_weight), expected.out_weight)


def _refuse(weights: Any) -> None:
    raise AssertionError("the weights of a shape are invalid")


def _as_strings(ids: np.ndarray) -> Any:
    import cupy

    from prplugin.gpu.strings import Strings

    encoded = [str(identity).encode() for identity in ids.tolist()]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return Strings(cupy.asarray(np.frombuffer(b"".join(encoded), np.uint8)), cupy.asarray(offsets))


def kernels_of(path: str) -> list[str]:
    """Return the names of the kernels in a .cu file."""
    return re.findall(r'extern "C" __global__[^;{]*?\b(\w+)\([^()]*\)\s*\{', source(path))


def package_kernels() -> set[str]:
    """Return the names of all kernels of the package."""
    return {kernel for path in ROOT.rglob("*.cu") for kernel in kernels_of(str(path.relative_to(ROOT)))}


def _run(tool: str, seconds: float, logs: Path) -> tuple[str, int, Counter[str], str]:
    """Run the workload under a tool, and return the tool, its exit status, findings by kernel, and output."""
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "10000", "--show-backtrace", "no"]
    command += [sys.executable, "-m", "conformance.sanitize", "--workload", "--seconds", str(seconds)]
    with (logs / f"{tool}.log").open("w") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    output = (logs / f"{tool}.log").read_text(errors="replace")
    found: Counter[str] = Counter()
    # A finding starts a line and names the kernel, if it is in one: "at node_pull+0x40".
    for block in re.split(r"^========= (?=\S)", output, flags=re.MULTILINE):
        if re.match(r"(Invalid|Uninitialized|Error: |Warning: |Race|Program hit)", block):
            kernel = re.search(r"\b(?:at|in) (?:void )?([\w:]+)", block)
            found[kernel[1] if kernel else block.splitlines()[0][:60]] += 1
    return tool, done.returncode, found, output


@click.command()
@click.option("--output", type=click.Path(path_type=Path), default=Path("conformance-results"), show_default=True)
@click.option("--logs", type=click.Path(path_type=Path), help="Folder for the complete output of each tool.")
@click.option("--seconds", default=600.0, show_default=True, help="Time after which no further shape is started.")
@click.option("--workload", "inner", is_flag=True, hidden=True)
def main(output: Path, logs: Path | None, seconds: float, inner: bool) -> None:
    """Run every tool and write results/sanitizer.md. The exit status is 1 if a kernel of prplugin has a finding."""
    if inner:
        workload(seconds)
        return
    if reason := unavailable_reason():
        sys.exit(f"nothing to sanitize: {reason}")
    environment = circumstances(f"python -m conformance.sanitize --seconds {seconds:g}")
    with TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        kept = logs or Path(folder)
        runs = list(pool.map(lambda tool: _run(tool, seconds, kept), TOOLS))
    of_package = package_kernels()
    rows, failures = [], 0
    for name, status, found, text in runs:
        in_package = sum(count for kernel, count in found.items() if kernel in of_package)
        others = {kernel: count for kernel, count in found.items() if kernel not in of_package}
        summary = re.findall(r"^========= (.*(?:SUMMARY).*)$", text, re.MULTILINE)
        ran = status == 0 or bool(summary)
        failures += in_package + (not ran) + ("Traceback" in text) + (DONE not in text)
        rows.append(
            f"| {name} | {text.count(DONE)} | {in_package if ran else 'did not run'} | "
            f"{', '.join(f'{kernel}: {count}' for kernel, count in others.items()) or 0} | {'; '.join(summary)} |"
        )
    names = ", ".join(method.name for method in methods().values() if method.runs_on == "gpu")
    description = (
        f"Every GPU method ({names}) in float64 and float32, with and without personalization, and in the forms of the "
        "papers, several seeds in one "
        "call, and every way to build a graph of id columns, without memory pools. Kernels of prplugin: "
        f"{', '.join(sorted(of_package))}."
    )
    lines = [
        "# compute-sanitizer",
        "",
        f"`{environment['command']}`, commit {environment['commit']}, {environment['machine']['device']}; "
        + ", ".join(f"{name} {version}" for name, version in environment["versions"].items()),
        "",
        description,
        "",
        "| tool | shapes | findings in prplugin's kernels | elsewhere (CuPy, CUB) | summary |",
        "|---|---|---|---|---|",
        *rows,
    ]
    output.mkdir(parents=True, exist_ok=True)
    (output / "sanitizer.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(prog_name="python -m conformance.sanitize")
