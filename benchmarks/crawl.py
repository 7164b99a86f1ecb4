"""A graph of the shape of a web crawl, generated in pieces on the GPU and ranked from packed edges on one GPU.

Its shape is that of Common Crawl's host graph of early 2026: 269 million vertices, 9.4 billion edges, three quarters of
the vertices dangling, three quarters of the edges between vertices of near ids. In-degrees follow a power law, and so
do the out-degrees of the sources of the other edges. No more than two pieces of edges exist at a time; they come by
target, twice: first their sources are counted, which gives the order of the vertices, then they are packed. The size is
doubled until a graph does not fit. "residual" is ||G x - x|| in L1 of the ranks x, in float64 by plain CuPy, from the
pieces generated again. "edges per second" are those of an iteration with contributions in float32; "peak GB" is what
the pool of device memory got from the driver. cuGraph has reported 21.5 billion edges per second and GPU (128.7 billion
edges on 32 A100).
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.measure import timed
from benchmarks.run import Part, chosen
from prplugin.gpu import runtime
from prplugin.graph.edges import Edges, Problem
from prplugin.methods.engines.packed_rows import by_key, sort_key
from prplugin.methods.engines.packed_step import PackedStep
from prplugin.methods.packed import PackedPull, Packer
from prplugin.options import Options
from prplugin.progress import Watch
from prplugin.solver.solve import solve
from prplugin.types.edges import Grouped

COLUMNS = (
    "graph", "vertices", "edges", "dangling %", "bytes per edge", "generation s", "seconds", "packing s", "ranking s",
    "iterations", "ms float32", "ms float64", "edges per second", "peak GB", "error bound", "residual",
)  # fmt: skip

VERTICES = 269_000_000
"""Vertices of the graph of scale 1, a multiple of 4."""

STEP = 1 << 20
"""Targets per piece, of some 35 million edges."""

ALPHA, STEPS = 0.85, 5

DRAWS = r"""
// Random bits by SplitMix64.
__device__ unsigned long long bits(unsigned long long key) {
    key += 0x9e3779b97f4a7c15ull;
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
    key = (key ^ key >> 27) * 0x94d049bb133111ebull;
    return key ^ key >> 31;
}
"""

IN_DEGREE = "degree = min(1e7, 4.07 * pow(((bits(first + i) >> 11) + 1) * 1.1102230246251565e-16, -1 / 1.1));"
"""Pareto of mean 35, at most 10 million."""

EDGE = r"""
long long low = 0, high = rows;  // the last row that begins at or before edge i
while (low + 1 < high) {
    long long middle = (low + high) / 2;
    if (offsets[middle] <= i) low = middle;
    else high = middle;
}
target = first + low;
// One in four consecutive vertices has out-edges.
unsigned long long draw = bits(~(begin + i)), sources = vertices / 4, place;
if (draw & 3) {  // near the target, at distances up to 2000 vertices and more, by in-degree
    double reach = 8.0 + offsets[low + 1] - offsets[low];
    unsigned long long distance = reach * (exp2(6 * ((draw >> 40) * 5.9604644775390625e-08)) - 1);
    distance %= sources;
    place = (target / 4 + (draw & 4 ? distance : sources - distance)) % sources;
} else {  // by a power law, with scattered positions
    double uniform = (draw >> 11) * 1.1102230246251565e-16;
    place = static_cast<unsigned long long>(uniform * uniform * uniform * sources) * 2654435761ull % sources;
}
source = min(4 * place + (bits(place) & 3), static_cast<unsigned long long>(vertices - 1));
"""


def parts(data: Path | None, quick: bool, only: Sequence[str] = ()) -> list[Part]:
    """Return parts of two sizes, the second of which is doubled until a graph does not fit."""
    if reason := runtime.unavailable_reason():
        raise click.ClickException(f"this benchmark cannot run here: {reason}")
    scales = (0.01,) if quick else (0.1, 1.0)
    return chosen([Part(f"crawl x {scale:g}", partial(_doubled, scale, scale >= 1), scale) for scale in scales], only)


def pieces(n: int) -> Iterator[tuple[Any, Any]]:
    """Yield sources and targets, int32, of ascending ranges of targets."""
    import cupy

    in_degrees = cupy.ElementwiseKernel("int64 first", "int64 degree", IN_DEGREE, "crawl_in_degrees", preamble=DRAWS)
    edges = cupy.ElementwiseKernel(
        "int64 first, int64 begin, int64 vertices, int64 rows, raw int64 offsets", "int32 source, int32 target", EDGE,
        "crawl_edges", preamble=DRAWS,
    )  # fmt: skip
    begin = 0
    for first in range(0, n, STEP):
        rows = min(STEP, n - first)
        offsets = cupy.zeros(rows + 1, cupy.int64)
        cupy.cumsum(in_degrees(first, size=rows), out=offsets[1:])
        count = int(offsets[-1])
        yield edges(first, begin, n, rows, offsets, size=count)
        begin += count


def _out_degrees(n: int) -> tuple[Any, Any]:
    """Return the out-degrees, and the key by which the vertices are sorted before the edges are packed."""
    import cupy

    out_degree, some = cupy.zeros(n, cupy.uint32), None
    for sources, _ in pieces(n):
        cupy.add.at(out_degree, sources, cupy.uint32(1))
        some = sources if some is None else some
    out_weight = out_degree.astype(float)
    return out_weight, sort_key(some, out_weight)


def residual(n: int, ranks: Any) -> float:
    """Return ||G x - x|| in L1, independently of prplugin."""
    import cupy

    out_degree = cupy.zeros(n, cupy.uint32)
    for sources, _ in pieces(n):
        cupy.add.at(out_degree, sources, cupy.uint32(1))
    dangling = float(ranks[out_degree == 0].sum())
    contributions = ranks / cupy.maximum(out_degree, 1)
    found = 0.0
    for first, (sources, targets) in zip(range(0, n, STEP), pieces(n), strict=True):
        rows = min(STEP, n - first)
        pulled = cupy.bincount(targets - first, contributions[sources], rows)
        moved = ALPHA * pulled + (ALPHA * dangling + 1 - ALPHA) / n - ranks[first : first + rows]
        found += float(cupy.abs(moved).sum())
    return found


def _doubled(scale: float, doubling: bool) -> Iterator[dict[str, Any]]:
    yield from _rows(scale)
    while doubling:
        scale *= 2
        try:
            yield from _rows(scale)
        except MemoryError:
            yield dict.fromkeys(COLUMNS, "") | {"graph": f"crawl x {scale:g}", "peak GB": "does not fit"}
            return


def _rows(scale: float) -> Iterator[dict[str, Any]]:
    import cupy

    n = int(VERTICES * scale) // 4 * 4
    for _ in pieces(4 * STEP):  # compiles the kernels
        pass
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        generation, _ = timed(lambda: [None for _ in pieces(n)], "device")
        pool.free_all_blocks()
        began = time.perf_counter()
        packer = Packer(n, disjoint=True)
        out_weight, key = _out_degrees(n)
        if key is not None:
            packer.order, packer.position = by_key(key, cupy.int32)
        for piece in pieces(n):
            packer.add(*(ends if packer.position is None else packer.position[ends] for ends in piece))
        edges, m = packer.packed(), packer.m
        del piece, key, packer
        cupy.cuda.get_current_stream().synchronize()
        peak = pool.total_bytes()
        pool.free_all_blocks()
        packed = time.perf_counter()
        dangling = float((out_weight == 0).mean())
        step = PackedStep(Problem(Edges(Grouped(edges, out_weight, m)), ALPHA), PackedPull(edges))
        del out_weight
        outcome = solve(step, Options(alpha=ALPHA), n, 1.0 / n, Watch(None).iterations)
        ended = time.perf_counter()
        ms = {}
        ranks = step.ranks().copy()
        for dtype in ("float32", "float64"):
            step.set_contribution_dtype(dtype)
            step.start(1.0 / n)
            ms[dtype] = 1e3 * statistics.median(timed(step, "device")[0] for _ in range(STEPS))
        row = {
            "graph": f"crawl x {scale:g}",
            "vertices": n,
            "edges": m,
            "dangling %": 100 * dangling,
            "bytes per edge": edges.nbytes / m,
            "generation s": generation,
            "seconds": ended - began,
            "packing s": packed - began,
            "ranking s": ended - packed,
            "iterations": int(outcome.iterations),
            "ms float32": ms["float32"],
            "ms float64": ms["float64"],
            "edges per second": edges.m / ms["float32"] * 1e3,
            "peak GB": max(peak, pool.total_bytes()) / 1e9,
            "error bound": float(outcome.error_bound),
        }
        del step, edges
        gc.collect()
        pool.free_all_blocks()
        yield {**row, "residual": residual(n, ranks)}
