"""Every kernel under compute-sanitizer: `python -m conformance.sanitize [--output DIR]`, with a GPU and its toolkit.

Memcheck looks for accesses out of bounds, racecheck for races in shared memory, initcheck for reads of memory that
nothing wrote. Memory pools are off, so that each array is an allocation of its own.
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
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.dedup import drop_duplicates
from prplugin.graph.factorize import factorize_ids
from prplugin.machine import this_machine
from prplugin.methods.registry import methods
from prplugin.types.edges import Edges

__all__ = ["kernels_of", "ours", "workload"]

TOOLS = ("memcheck", "racecheck", "initcheck")

SLOW = {"large"}
"""Shapes that take too long under any tool."""

ORDER = ("skewed", "random-weights", "hub-at-the-end-of-a-chain", "isolated", "in-star", "path", "zero-weights")
"""The shapes that say most, which come first where time is short."""

MANY = 40
"""Seeds that are ranked from at once: a batch of 32, and one of eight."""

DONE = "shape done: "

ENDPOINTS = ("src", "dst")

OPTIONS: dict[str, dict[str, Any]] = {
    "segmented": {"segments": 3},
    "cpu-split": {"split": 1},
    "streamed": {"chunk_bytes": 4096},
    "expanded": {"piece_bytes": 256},
}
"""So that these small shapes have tails, several pieces and several chunks."""


def workload(seconds: float) -> None:
    """Make shapes' graphs, and rank them by every method, on the GPU, memory pools off, as long as there is time."""
    import cupy

    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator(None)
    began = time.monotonic()
    for name in dict.fromkeys([*ORDER, *SHAPES]):
        if name in SLOW or time.monotonic() - began > seconds:
            continue
        frame, arguments = SHAPES[name]()
        graph = prplugin.Graph(frame, **arguments)
        vertices = graph.rank(method="numpy").frame
        one = {vertices["vertex"].iloc[0]: 1.0} if "vertex" in vertices else None
        for personalization in (None, one):
            asked: dict[str, Any] = {"alpha": 0.3, "tol": 1e-3, "personalization": personalization}  # a few steps
            expected = graph.rank(method="numpy", **asked)
            for method in methods().values():
                if method.runs_on != "gpu" or method.unavailable_reason(graph._graph.adjacency, this_machine()):
                    continue
                for dtype in ("float64", "float32"):
                    ranking = graph.rank(method=method.name, dtype=dtype, **asked, **OPTIONS.get(method.name, {}))
                    off = float(np.abs(ranking.ranks.astype("float64") - expected.ranks).sum())
                    assert off <= ranking.error_bound + expected.error_bound, (name, method.name, dtype, off)
        if "vertex" in vertices:
            _rank_many(graph, vertices["vertex"].tolist()[:MANY], "persistent")
        _build(frame, arguments.get("weight"))
        print(f"{DONE}{name}", flush=True)


def _rank_many(graph: prplugin.Graph, vertices: list[Any], method: str) -> None:
    """Rank from some vertices at once, in batches of either width."""
    for seeds in (vertices[:3], vertices):
        asked: dict[str, Any] = {"alpha": 0.3, "tol": 1e-3, "personalization": seeds}
        expected = graph.rank(method="numpy", **asked)
        for dtype in ("float64", "float32"):
            rankings = graph.rank(method=method, dtype=dtype, **asked)
            off = np.abs(rankings.ranks.astype("float64") - expected.ranks).sum(axis=1)
            assert (off <= rankings.each_error_bound + expected.each_error_bound).all(), (method, dtype, off)


def _build(frame: Any, weight: str | None) -> None:
    """Make graphs on the GPU in all ways that there are, of columns as they are and of many copies of their rows."""
    import cupy

    from prplugin.gpu.edges import GivenWeights, edges_by_id
    from prplugin.gpu.sort import TILE
    from prplugin.gpu.strings import factorize_strings

    if not len(frame) or any(end not in frame or frame[end].dtype.kind != "i" for end in ENDPOINTS):
        return
    for times in (1, TILE // len(frame) + 1):
        endpoints = [np.tile(frame[end].to_numpy(np.int64), times) for end in ENDPOINTS]
        weights = None if weight is None else np.tile(frame[weight].to_numpy(np.float64), times)
        for apart in (1, 2**40 + 1):  # dense, and for a hash table
            codes, ids = factorize_ids([end * apart for end in endpoints])
            expected = Adjacency(Edges(*codes, weights, ids.size))
            columns = [cupy.asarray(end * apart) for end in endpoints]
            given = None if weights is None else GivenWeights(cupy.asarray(weights), True, _refused)
            for grouped in (True, False):
                edges, _ = edges_by_id(columns, given, grouped=grouped)
                made = Adjacency(edges)
                found = [*made.csc, made.out_weight, made.csr.offsets]
                for ours, theirs in zip(found, [*expected.csc, expected.out_weight, expected.csr.offsets], strict=True):
                    assert theirs is None or np.allclose(ours.get(), theirs, rtol=1e-15, atol=0)
            kept = drop_duplicates(
                Edges(edges.source, edges.destination, edges.weights, edges.n), "first", directed=True
            )
            assert kept.m == len(set(zip(*(end.tolist() for end in endpoints), strict=True)))
        factorized = factorize_strings([_as_strings(end) for end in endpoints])
        assert factorized is not None
        assert factorized[1].rows == ids.size


def _refused(weights: Any) -> None:
    raise AssertionError("weights of a shape are refused")


def _as_strings(ids: np.ndarray) -> Any:
    import cupy

    from prplugin.gpu.strings import Strings

    spelt = [str(identity).encode() for identity in ids.tolist()]
    offsets = np.cumsum([0, *map(len, spelt)], dtype=np.int32)
    return Strings(cupy.asarray(np.frombuffer(b"".join(spelt), np.uint8)), cupy.asarray(offsets))


def kernels_of(path: str) -> list[str]:
    """Name the kernels of a .cu file."""
    return re.findall(r'extern "C" __global__[^;{]*?\b(\w+)\([^()]*\)\s*\{', source(path))


def ours() -> set[str]:
    """Name all kernels of the package."""
    return {kernel for path in ROOT.rglob("*.cu") for kernel in kernels_of(str(path.relative_to(ROOT)))}


def _run(tool: str, seconds: float, logs: Path) -> tuple[str, int, Counter[str], str]:
    """Run the workload under a tool; give its exit status, findings by kernel, and its output."""
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "10000", "--show-backtrace", "no"]
    command += [sys.executable, "-m", "conformance.sanitize", "--workload", "--seconds", str(seconds)]
    with (logs / f"{tool}.log").open("w") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    output = (logs / f"{tool}.log").read_text(errors="replace")
    found: Counter[str] = Counter()
    # A finding begins on a line of its own and names the kernel where it is in one: "at node_pull+0x40".
    for block in re.split(r"^========= (?=\S)", output, flags=re.MULTILINE):
        if re.match(r"(Invalid|Uninitialized|Error: |Warning: |Race|Program hit)", block):
            kernel = re.search(r"\b(?:at|in) (?:void )?([\w:]+)", block)
            found[kernel[1] if kernel else block.splitlines()[0][:60]] += 1
    return tool, done.returncode, found, output


@click.command()
@click.option("--output", type=click.Path(path_type=Path), default=Path(__file__).with_name("results"))
@click.option("--logs", type=click.Path(path_type=Path), help="Folder for the whole output of each tool.")
@click.option("--seconds", default=600.0, show_default=True, help="No new shape is begun after as many.")
@click.option("--workload", "inner", is_flag=True, hidden=True)
def main(output: Path, logs: Path | None, seconds: float, inner: bool) -> None:
    """Run every tool and write results/sanitizer.md; exits 1 if a kernel of ours has a finding."""
    if inner:
        workload(seconds)
        return
    if reason := unavailable_reason():
        sys.exit(f"nothing to sanitize: {reason}")
    about = circumstances(f"python -m conformance.sanitize --seconds {seconds:g}")
    with TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        kept = logs or Path(folder)
        runs = list(pool.map(lambda tool: _run(tool, seconds, kept), TOOLS))
    mine = ours()
    rows, bad = [], 0
    for name, status, found, text in runs:
        here = sum(count for kernel, count in found.items() if kernel in mine)
        others = {kernel: count for kernel, count in found.items() if kernel not in mine}
        summary = re.findall(r"^========= (.*(?:SUMMARY).*)$", text, re.MULTILINE)
        ran = status == 0 or bool(summary)
        bad += here + (not ran) + ("Traceback" in text) + (DONE not in text)
        rows.append(
            f"| {name} | {text.count(DONE)} | {here if ran else 'did not run'} | "
            f"{', '.join(f'{kernel}: {count}' for kernel, count in others.items()) or 0} | {'; '.join(summary)} |"
        )
    names = ", ".join(method.name for method in methods().values() if method.runs_on == "gpu")
    what = (
        f"Every method of the GPU ({names}) in float64 and float32, with and without personalization, many seeds at "
        "once, and every way to make a graph of columns of ids, memory pools off. Ours are what is found in "
        f"{', '.join(sorted(mine))}."
    )
    lines = [
        "# compute-sanitizer",
        "",
        f"`{about['command']}`, commit {about['commit']}, {about['machine']['device']}; "
        + ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        "",
        what,
        "",
        "| tool | shapes | findings in our kernels | elsewhere (CuPy, CUB) | summary |",
        "|---|---|---|---|---|",
        *rows,
    ]
    output.mkdir(parents=True, exist_ok=True)
    (output / "sanitizer.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main(prog_name="python -m conformance.sanitize")
