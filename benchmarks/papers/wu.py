"""Wu and others 2010: three bins of rows.

T. Wu, B. Wang, Y. Shan, F. Yan, Y. Wang and N. Xu, "Efficient PageRank and SpMV Computation on AMD GPUs", on a Radeon
5870 and a Phenom II 965. A round is an iteration with its vector operations and its convergence test; "SpMV" is the
product alone, at 2 * non-zeros - rows flops. The speed-up for 500 rounds is 500 * CPU / (preprocessing + 500 * round).
MB are 2**20 bytes. "The paper's form" stores a value of 4 bytes with each column index, sums in float32, and has 64
threads for 1W1R and for each row of the hybrid's last bin; claims are graded on it. prplugin's kernels store no values
without weights, sum in float64, and have warps of 32 lanes. Sizes are those of
the paper's form. The CPU's product is SciPy's, in float64 with values, and
in float32 as on the GPU. "SpMV ms" and "round ms" are of prplugin's hybrid. GFLOP/s of the paper are those of Table
III, or follow from the times of Table II; its Figure 4 has only bars.

The paper prints E_i = 1 where the lost norm has to be redistributed as d / n, and `Tid & 0x03` where 16 lanes need
0x0F; both are corrected here. The paper does not state how it counts flops of vector operations: here n for an addition
and a norm, 2 * n for a distance, in float32, by NumPy on the CPU and by CuPy and cuBLAS on the GPU.

Graphs without a file are generated (`crawl`), with the paper's numbers of rows and non-zeros and with degrees, dangling
pages and locality fitted to real crawls and to Figure 3. Of Figure 3, real graphs alone are evidence.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import peers
from benchmarks.generate import crawl
from benchmarks.measure import repeatedly, sampled
from benchmarks.papers import claims, cpu_peers, ell, implementations, scan
from benchmarks.papers.graphs import BenchmarkGraph, generated, real
from benchmarks.papers.plots import heat, sideways
from benchmarks.papers.tables import ClaimTest, merge_absent, row, rows_or_reason, verdicts
from benchmarks.run import Part, Row, chosen
from prplugin.graph.edges import Edges
from prplugin.methods.engines import gpu_pull
from prplugin.papers._forms import Spmv
from prplugin.papers._rows import RowsPull
from prplugin.papers.binned import BinnedPull
from prplugin.types.arrays import synchronize
from prplugin.types.edges import Csc

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = peers.PACKAGES

SIZES, ROUND, SPMV = "Sizes (Table I)", "Time per round (Table II)", "SpMV (Figure 4)"
VECTORS, SWEEP, STREAM = "Vector operations (Table III)", "Thresholds", "Streaming (Section VI.D)"

TABLES = {
    SIZES: (
        "graph", "rows", "non-zeros", "non-zeros per row", "paper CSR MB", "paper MB with bins", "CSR MB",
        "MB with bins",
        "paper growth %", "growth %", "tiny %", "small %", "normal %", "below 2 %", "below 64 %", "ELL MB",
        "scan MB", "note",
    ),
    ROUND: (
        "graph", "paper CPU ms", "paper prep. ms", "paper SpMV ms", "paper round ms", "paper speed-up, 500 rounds",
        "CPU ms", "prep. ms", "SpMV ms", "round ms", "speed-up, 500 rounds", "paper's form ms",
        "speed-up, 500 rounds, paper's form", "prplugin auto ms", "auto",
        "cuGraph ms", "CPU library ms", "CPU library", "note",
    ),
    SPMV: ("graph", "what", "ms", "GFLOP/s", "paper GFLOP/s", "note"),
    VECTORS: ("what", "entries", "paper CPU", "paper IL", "paper OpenCL", "CPU GFLOP/s", "GPU GFLOP/s", "note"),
    SWEEP: ("graph", "what", "tiny up to", "small up to", "ms", "note"),
    STREAM: ("graph", "paper bus GB/s", "paper SpMV GB/s", "bus GB/s", "SpMV GB/s", "streamed ms", "round ms", "note"),
}  # fmt: skip

KEYS = ("graph", "what", "entries", "tiny up to", "small up to")

MB = 2**20
ROUNDS = 500


class Dataset(NamedTuple):
    """Data set with its figures in Tables I and II, in ms and MB."""

    name: str
    rows: int
    non_zeros: int
    csr: float
    after: float
    cpu: float
    preparing: float
    spmv: float
    round: float
    times: float
    files: tuple[str, ...] = ()


DATASETS = (
    Dataset("su", 281_903, 2_312_497, 18.7, 20.9, 16.67, 11.51, 2.74, 2.81, 5.9, ("web-Stanford", "Stanford")),
    Dataset("su+ucb", 683_446, 7_583_376, 60.5, 65.7, 25.54, 31.00, 4.74, 5.18, 4.9, ("Stanford_Berkeley",)),
    Dataset("wikipedia-20051105", 1_634_989, 19_753_078, 156.9, 169.4, 234.31, 72.65, 18.08, 18.66, 12.5),
    Dataset("wikipedia-20060925", 2_983_494, 37_269_096, 295.7, 318.5, 541.85, 154.01, 35.98, 37.25, 14.4),
    Dataset("wikipedia-20061104", 3_148_440, 39_383_235, 312.5, 336.5, 558.11, 146.35, 38.13, 39.42, 14.1),
    Dataset("wikipedia-20070206", 3_566_907, 45_030_389, 357.2, 384.4, 701.54, 156.22, 43.91, 45.44, 15.3),
    Dataset("edu-2001", 9_845_725, 57_156_537, 473.6, 548.7, 289.92, 467.92, 28.99, 32.31, 8.7, ("wb-edu",)),
)

OPERATIONS = {
    ("addition", 1_000_000): (0.405, 6.329, 2.577),
    ("addition", 10_000_000): (0.408, 9.852, 6.329),
    ("norm", 1_000_000): (0.165, 9.259, 1.368),
    ("norm", 10_000_000): (0.165, 26.455, 6.734),
    ("distance", 1_000_000): (0.317, 10.870, 2.356),
    ("distance", 10_000_000): (0.320, 29.283, 9.556),
}
"""Table III, GFLOP/s of the CPU, of IL and of OpenCL on the GPU."""

CPU_SPMV = {"wikipedia-20051105": 0.173, "wikipedia-20060925": 0.138, "wikipedia-20061104": 0.137}
"""Table III, GFLOP/s of the CPU."""

PAPER_BUS, PAPER_SPMV_BANDWIDTH = 5.0, {"wikipedia-20070206": 8.46, "edu-2001": 16.98}
"""Section VI.D, GB/s: PCI Express upload, and reads of the kernel."""

HYBRID, THREAD, LANES16, WARP = "hybrid: binned", "1T1R: node", "16T1R: warp, 16 lanes", "1W1R: warp, 32 lanes"
OURS = "prplugin: auto, a whole round"
ELL, SCAN, CPU, SPARSE = "ELL (ITPACK)", "segmented scan", "CPU, 1 thread: SciPy's product", "cuSPARSE (CuPy)"
CPU_FLOAT32 = f"{CPU}, float32 values"
FORMS = {
    THREAD: "1T1R: the paper's form", LANES16: "16T1R: the paper's form", WARP: "1W1R: the paper's form, 64 lanes",
    HYBRID: "hybrid: the paper's form", CPU: CPU_FLOAT32,
}  # fmt: skip
"""The paper's form of our products."""

CRAWLS = ("cnr-2000", 325_557, 3_216_152), ("web-NotreDame", 325_729, 1_497_134)
"""Real crawls of about the size of su, with their vertices and edges."""

TINY, SMALL = (0, 2, 4, 6, 8, 12, 24), (16, 32, 64, 96, 128, 256)
THRESHOLDS = 6, 96

DISTRIBUTION = tuple(2**power for power in range(18))
"""Numbers of entries at which the cumulative distribution of row sizes is drawn."""

LAUNCHES = 16

MIN_COPIED_PERCENT = 70
"""Percentage of the edges that an iteration must copy to count as streamed."""

INDEX_BYTES = VALUE_BYTES = 4
"""Bytes of a column index, in graphs of fewer than 2**31 rows, and of the value that the paper stores with it."""


def parts(data: Path | None, quick: bool, only: Sequence[str] = ()) -> list[Part]:
    """Return one part per data set or generated graph of its size, real crawls, thresholds and vector operations."""
    graphs: list[tuple[Dataset | None, BenchmarkGraph]]
    if quick:
        graphs = [(None, _generated(known.rows // 20, known.non_zeros // 20)) for known in DATASETS[:2]]
    else:
        graphs = [(known, _graph(data, known)) for known in DATASETS]
    crawls = [graph for known in CRAWLS if (graph := real(data, *known)) is not None]
    graphs += [(None, graph) for graph in crawls]
    swept = [graphs[0 if quick else 2][1], *crawls]
    every = [
        *(Part(graph.name, partial(_of_set, known, graph), graph.edges) for known, graph in graphs),
        *(Part(f"thresholds, {graph.name}", partial(_thresholds, graph), graph.edges / 2) for graph in swept),
        Part("vector operations", partial(_vectors, quick), 1e6),
    ]
    return chosen(every, only)


def _graph(data: Path | None, known: Dataset) -> BenchmarkGraph:
    file = real(data, known.name, known.rows, known.non_zeros, files=known.files)
    return file or _generated(known.rows, known.non_zeros, f" in place of {known.name}")


def _generated(n: int, m: int, instead: str = "") -> BenchmarkGraph:
    return generated(f"crawl {n:,} x {m:,}{instead}", n, m, lambda memory_space: crawl(n, m, memory_space=memory_space))


def _of_set(known: Dataset | None, graph: BenchmarkGraph) -> Iterator[Row]:
    about = {"graph": graph.name}
    yield from rows_or_reason(row(SIZES, TABLES[SIZES], about), partial(_all_tables, known, graph, about))


def _all_tables(known: Dataset | None, graph: BenchmarkGraph, about: Row) -> Iterator[Row]:
    adjacency = graph.adjacency()
    yield _sizes(known, adjacency, about)
    spmv: dict[str, float] = {}
    for found in merge_absent(_products(known, adjacency, about)):
        if found["ms"] != "":
            spmv[found["what"]] = found["ms"]
        yield found
    a_round = _round(known, adjacency, about, spmv.get(HYBRID))
    yield a_round
    if a_round["prplugin auto ms"] != "":
        yield _full_round(adjacency, about, a_round)
    yield from rows_or_reason(
        row(STREAM, TABLES[STREAM], about), partial(_streaming, known, adjacency, about, spmv.get(FORMS[HYBRID]))
    )


# --- sizes, Table I -------------------------------------------------------------------------------------------------


def matrix_bytes(adjacency: Edges, plan: BinnedPull) -> tuple[int, int]:
    """Return the bytes of the plain CSR matrix of in-edges, and of the paper's modified one."""
    offsets, indices, _ = adjacency.get(Csc)
    matrix = int(indices.nbytes) + VALUE_BYTES * adjacency.m
    return int(offsets.nbytes) + matrix, sum(int(array.nbytes) for array in plan.layout[:3]) + matrix


def _sizes(known: Dataset | None, adjacency: Edges, about: Row) -> Row:
    plan = BinnedPull(adjacency, THRESHOLDS)
    before, after = matrix_bytes(adjacency, plan)
    fractions = {
        f"{which} %": 100 * size / adjacency.n
        for which, size in zip(("tiny", "small", "normal"), plan.sizes, strict=True)
    }
    degrees = adjacency.get(Csc).offsets[1:] - adjacency.get(Csc).offsets[:-1]
    below = {entries: 100 * float((degrees < entries).mean()) for entries in DISTRIBUTION}
    fractions |= {f"below {entries} %": below[entries] for entries in (2, 64)}
    paper = (
        {
            "paper CSR MB": known.csr,
            "paper MB with bins": known.after,
            "paper growth %": 100 * (known.after / known.csr - 1),
        }
        if known
        else {}
    )
    return row(
        SIZES,
        TABLES[SIZES],
        about
        | paper
        | fractions
        | {
            "distribution": [below[entries] for entries in DISTRIBUTION],
            "rows": adjacency.n,
            "non-zeros": adjacency.m,
            "non-zeros per row": adjacency.m / adjacency.n,
            "CSR MB": before / MB,
            "MB with bins": after / MB,
            "growth %": 100 * (after / before - 1),
            "ELL MB": ell.bytes_needed(adjacency) / MB,
            "scan MB": (before + scan.bytes_needed(adjacency)) / MB,
        },
    )


# --- products, Figure 4 ---------------------------------------------------------------------------------------------


def _products(known: Dataset | None, adjacency: Edges, about: Row) -> Iterator[Row]:
    flops = _flops(adjacency)
    paper = (
        {
            HYBRID: (2 * known.non_zeros - known.rows) / known.spmv / 1e6,
            CPU: CPU_SPMV.get(known.name, ""),
        }
        if known
        else {}
    )
    for what, sample in PRODUCTS.items():
        line = row(SPMV, TABLES[SPMV], about | {"what": what, "paper GFLOP/s": paper.get(what, "")})
        for found in rows_or_reason(line, lambda line=line, sample=sample: [line | {"samples": sample(adjacency)}]):
            if "samples" in found:
                seconds = statistics.median(found["samples"])
                found |= {"ms": seconds * 1e3, "GFLOP/s": flops / seconds / 1e9}
            yield found


def _flops(adjacency: Edges) -> int:
    return 2 * adjacency.m - adjacency.n


def _on_the_cpu(adjacency: Edges) -> list[float]:
    here = adjacency.on("host")
    loop = implementations.SparseLoop(here.get(Csc).offsets, here.get(Csc).indices, here.out_weight)
    return repeatedly(lambda: loop.matrix @ loop.ranks, runs=implementations.RUNS, limit=implementations.LIMIT)


def _in_float32(adjacency: Edges) -> list[float]:
    """Sample the seconds of SciPy's product in float32, with the values 1 / C_j of the paper."""
    from scipy.sparse import csr_matrix  # lazy import; a dependency of the benchmarks

    here = adjacency.on("host")
    values = (1 / np.maximum(here.out_weight, 1.0)).astype(np.float32)[here.get(Csc).indices]
    matrix = csr_matrix((values, here.get(Csc).indices, here.get(Csc).offsets), shape=(here.n, here.n))
    ranks = np.full(here.n, 1 / here.n, np.float32)
    return repeatedly(lambda: matrix @ ranks, runs=implementations.RUNS, limit=implementations.LIMIT)


def _on_the_gpu(
    make: Callable[[Edges], Callable[[Any, Any], None]], adjacency: Edges, sums: str = "float64"
) -> list[float]:
    implementations.require_gpu()
    import cupy  # lazy import; `require_gpu` has passed

    there = adjacency.on("device")
    pull = make(there)
    contributions, pulled = cupy.full(there.n, 1 / there.n, np.float32), cupy.empty(there.n, sums)
    return _launched(lambda: pull(contributions, pulled))


def _bins(adjacency: Edges, thresholds: tuple[int, int] = THRESHOLDS) -> Spmv:
    plan = BinnedPull(adjacency, thresholds)
    return Spmv(adjacency, bins=(plan.layout, plan.sizes))


def _launched(launch: Callable[[], object]) -> list[float]:
    """Sample the seconds of a launch between two events."""
    import cupy  # lazy import; `require_gpu` has passed

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def seconds() -> float:
        begin.record()
        for _ in range(LAUNCHES):
            launch()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3

    launch()  # compiles
    return [taken / LAUNCHES for taken in sampled(seconds, runs=implementations.RUNS, limit=implementations.LIMIT)]


def _sparse(adjacency: Edges) -> Callable[[Any, Any], None]:
    loop = implementations.SparseLoop(adjacency.get(Csc).offsets, adjacency.get(Csc).indices, adjacency.out_weight)

    def multiply(contributions: Any, pulled: Any) -> None:
        loop.matrix @ contributions

    return multiply


def _in_rows(method: str, **options: int) -> Callable[[Edges], Callable[[Any, Any], None]]:
    return lambda adjacency: RowsPull(gpu_pull.csc_layout(adjacency), method, **options)


PRODUCTS: dict[str, Callable[[Edges], list[float]]] = {
    CPU: _on_the_cpu,
    CPU_FLOAT32: _in_float32,
    FORMS[THREAD]: partial(_on_the_gpu, partial(Spmv, lanes=1), sums="float32"),
    FORMS[LANES16]: partial(_on_the_gpu, partial(Spmv, lanes=16), sums="float32"),
    FORMS[WARP]: partial(_on_the_gpu, partial(Spmv, lanes=64), sums="float32"),
    FORMS[HYBRID]: partial(_on_the_gpu, _bins, sums="float32"),
    THREAD: partial(_on_the_gpu, _in_rows("node")),
    LANES16: partial(_on_the_gpu, _in_rows("warp", lanes=16)),
    WARP: partial(_on_the_gpu, _in_rows("warp", lanes=32)),
    HYBRID: partial(_on_the_gpu, BinnedPull),
    ELL: partial(_on_the_gpu, ell.EllPull),
    SCAN: partial(_on_the_gpu, scan.ScanPull),
    SPARSE: partial(_on_the_gpu, _sparse),
}


# --- a round, Table II ----------------------------------------------------------------------------------------------


def _round(known: Dataset | None, adjacency: Edges, about: Row, spmv_ms: float | None) -> Row:
    line = row(ROUND, TABLES[ROUND], about)
    if known:
        line |= {
            "paper CPU ms": known.cpu, "paper prep. ms": known.preparing, "paper SpMV ms": known.spmv,
            "paper round ms": known.round, "paper speed-up, 500 rounds": known.times,
        }  # fmt: skip
    binned = implementations.method(HYBRID, "binned")
    columns = {
        implementations.ONE: "CPU ms", binned: "round ms", IN_PAPER_FORM: "paper's form ms",
        implementations.OURS: "prplugin auto ms",
        implementations.CUGRAPH: "cuGraph ms", cpu_peers.FASTEST: "CPU library ms",
    }  # fmt: skip
    samples, notes = {}, []
    for side, found in zip(columns, implementations.time_each(adjacency, columns), strict=True):
        if "samples" in found:
            line[columns[side]] = found["ms"]
            samples[columns[side]] = found["samples"]
        elif found["note"] not in notes:
            notes.append(found["note"])
        if side in NAMED and "samples" in found:
            line[NAMED[side]] = found["note"]
    if line["round ms"] != "":
        preparing = repeatedly(partial(_prepared, adjacency), runs=3, limit=implementations.LIMIT)
        samples["prep. ms"] = preparing
        line |= {"prep. ms": statistics.median(preparing) * 1e3, "SpMV ms": spmv_ms or ""}
        for ms, gain in (("round ms", SPEED_UP), ("paper's form ms", SPEED_UP_PAPER)):
            if line[ms] != "":
                line[gain] = ROUNDS * line["CPU ms"] / (line["prep. ms"] + ROUNDS * line[ms])
    return line | {"samples": samples, "note": "; ".join(notes)}


SPEED_UP, SPEED_UP_PAPER = "speed-up, 500 rounds", "speed-up, 500 rounds, paper's form"
IN_PAPER_FORM = implementations.method("hybrid: a round in the paper's form", "binned", form="paper")

NAMED = {implementations.OURS: "auto", cpu_peers.FASTEST: "CPU library"}
"""Columns with the name of the chosen method or library."""


def _prepared(adjacency: Edges) -> None:
    """Sort rows into bins; the CSC arrays are on the GPU already."""
    BinnedPull(adjacency.on("device"), THRESHOLDS)
    synchronize("device")


def _full_round(adjacency: Edges, about: Row, a_round: Row) -> Row:
    """Return the row of a whole round of the method of "auto", whose product is not a separate launch."""
    samples = a_round["samples"]["prplugin auto ms"]
    seconds = statistics.median(samples)
    found = {"what": OURS, "ms": seconds * 1e3, "GFLOP/s": _flops(adjacency) / seconds / 1e9, "note": a_round["auto"]}
    return row(SPMV, TABLES[SPMV], about | found) | {"samples": samples}


# --- streaming, Section VI.D ----------------------------------------------------------------------------------------


def _streaming(known: Dataset | None, adjacency: Edges, about: Row, spmv_ms: float | None) -> Iterator[Row]:
    """Yield the bandwidths of the kernel and of the bus, and the times of streamed rounds."""
    implementations.require_gpu()
    import cupy  # lazy import; `require_gpu` has passed
    import cupyx

    size = min(1 << 28, 4 * adjacency.m)
    there, here = cupy.empty(size, np.uint8), cupyx.empty_pinned(size, np.uint8)

    def send() -> None:
        there.set(here)
        synchronize("device")

    bus = size / statistics.median(repeatedly(send, runs=implementations.RUNS, limit=implementations.LIMIT)) / 1e9
    found = {line["what"]: line for line in implementations.time_each(adjacency, (IN_PAPER_FORM, STREAMED))}
    line = row(STREAM, TABLES[STREAM], about | {"bus GB/s": bus})
    if known and known.name in PAPER_SPMV_BANDWIDTH:
        line |= {"paper bus GB/s": PAPER_BUS, "paper SpMV GB/s": PAPER_SPMV_BANDWIDTH[known.name]}
    if spmv_ms:
        there = adjacency.on("device")
        line["SpMV GB/s"] = matrix_bytes(there, BinnedPull(there, THRESHOLDS))[1] / spmv_ms / 1e6
    samples = {}
    for column, what in (("round ms", IN_PAPER_FORM.label), ("streamed ms", STREAMED.label)):
        line[column] = found[what].get("ms", "")
        samples[column] = found[what].get("samples", [])
    yield line | {"samples": samples, "note": "; ".join(filter(None, (line["note"] for line in found.values())))}


STREAMED = implementations.streamed("streamed")


# --- thresholds -----------------------------------------------------------------------------------------------------


def _thresholds(graph: BenchmarkGraph) -> Iterator[Row]:
    known = row(SWEEP, TABLES[SWEEP], {"graph": graph.name})
    yield from rows_or_reason(known, partial(_each_pair, graph, known))


def _each_pair(graph: BenchmarkGraph, known: Row) -> Iterator[Row]:
    implementations.require_gpu()
    adjacency = graph.adjacency()
    for (what, make, sums), tiny, small in product(SWEPT, TINY, SMALL):
        if tiny > small:
            continue
        samples = _on_the_gpu(partial(make, thresholds=(tiny, small)), adjacency, sums)
        line = {"what": what, "tiny up to": tiny, "small up to": small, "ms": statistics.median(samples) * 1e3}
        yield known | line | {"samples": samples}


SWEPT: tuple[tuple[str, Callable[..., Callable[[Any, Any], None]], str], ...] = (
    (FORMS[HYBRID], _bins, "float32"), (HYBRID, BinnedPull, "float64"),
)  # fmt: skip


# --- vector operations, Table III -----------------------------------------------------------------------------------


def _vectors(quick: bool) -> Iterator[Row]:
    for (what, n), (cpu, intermediate, opencl) in OPERATIONS.items():
        if quick and n > 1_000_000:
            continue
        line = row(VECTORS, TABLES[VECTORS], {"what": what, "entries": n})
        line |= {"paper CPU": cpu, "paper IL": intermediate, "paper OpenCL": opencl}
        flops = n * (2 if what == "distance" else 1)
        samples = {"CPU": repeatedly(_operation(np, what, n), runs=implementations.RUNS, limit=implementations.LIMIT)}
        for found in rows_or_reason({}, lambda what=what, n=n: [{"GPU": _seconds_on_the_gpu(what, n)}]):
            samples |= {"GPU": found["GPU"]} if "GPU" in found else {}
            line["note"] = found.get("note", "")
        for place, seconds in samples.items():
            line[f"{place} GFLOP/s"] = flops / statistics.median(seconds) / 1e9
        yield line | {"samples": samples}


def _seconds_on_the_gpu(what: str, n: int) -> list[float]:
    implementations.require_gpu()
    import cupy  # lazy import; `require_gpu` has passed

    return _launched(_operation(cupy, what, n))


def _operation(xp: Any, what: str, n: int) -> Callable[[], Any]:
    one, other, room = xp.full(n, 0.5, np.float32), xp.full(n, 0.25, np.float32), xp.empty(n, np.float32)
    if what == "addition":
        return lambda: xp.add(one, other, out=room)
    if xp is np:
        if what == "norm":
            return lambda: np.abs(one, out=room).sum()
        return lambda: np.abs(np.subtract(one, other, out=room), out=room).sum()
    from cupy import cublas  # lazy import; `require_gpu` has passed

    if what == "norm":
        return lambda: cublas.asum(one)
    return lambda: cublas.asum(xp.subtract(one, other, out=room))


# --- claims ---------------------------------------------------------------------------------------------------------


def _is_of_the_paper(graph: str) -> bool:
    return graph.rpartition(" in place of ")[2] in {known.name for known in DATASETS}


def _by_graph(
    table: str, value: Callable[[Row], float | None], results: list[Row], name: str | None = None
) -> dict[str, float]:
    """Return a value of a table's rows by graph, of all graphs or of one data set or its replacement."""
    return {
        line["graph"]: found
        for line in results
        if line["table"] == table and (name is None or line["graph"].rpartition(" in place of ")[2] == name)
        if (found := value(line)) is not None
    }


def _time_ratios(slow: str, fast: str, results: list[Row], name: str | None = None) -> dict[str, float]:
    """Return the ratio of the times of two products by graph, in the paper's form."""
    slow, fast = FORMS.get(slow, slow), FORMS.get(fast, fast)
    times = [
        _by_graph(SPMV, lambda line, what=what: line["ms"] or None if line["what"] == what else None, results, name)
        for what in (slow, fast)
    ]
    return {graph: times[0][graph] / times[1][graph] for graph in times[0] if graph in times[1]}


def _rows(results: list[Row]) -> str:
    """Report the shares of tiny and small rows."""
    sizes = [line for line in results if line["table"] == SIZES and line["tiny %"] != ""]
    if not sizes:
        return ""
    tiny, small = ([line[f"{kind} %"] for line in sizes] for kind in ("tiny", "small"))
    return (
        f"{min(tiny):.0f} to {max(tiny):.0f} % of the rows are tiny and {min(small):.0f} to {max(small):.0f} % small."
    )


def _speed_up(results: list[Row], name: str | None = None) -> dict[str, float]:
    """Return the speed-up for 500 rounds by graph of the paper, in the paper's form."""
    gains = _by_graph(ROUND, lambda line: line[SPEED_UP_PAPER] or None, results, name)
    return {graph: gain for graph, gain in gains.items() if _is_of_the_paper(graph)}


def _growth(line: Row) -> float | None:
    """Return the matrix's growth by bins relative to the paper's."""
    return _quotient("growth %", "paper growth %")(line)


def _quotient(one: str, other: str) -> Callable[[Row], float | None]:
    return lambda line: line[one] / line[other] if line[one] != "" and line[other] != "" else None


def _share_of_spmv(results: list[Row]) -> dict[str, float]:
    """Return the share of SpMV in a round's time by graph, in the paper's form."""
    spmv = _by_graph(SPMV, lambda line: line["ms"] or None if line["what"] == FORMS[HYBRID] else None, results)
    rounds = _by_graph(ROUND, lambda line: line["paper's form ms"] or None, results)
    return {graph: spmv[graph] / ms for graph, ms in rounds.items() if graph in spmv}


def _over_the_rest(results: list[Row]) -> dict[str, float]:
    """Return the time of SpMV relative to that of the rest of a round."""
    return {graph: share / max(1 - share, 1e-9) for graph, share in _share_of_spmv(results).items()}


def _percentages(results: list[Row]) -> str:
    """Return the share of SpMV in a round's time here and by the paper's Table II."""
    here = _share_of_spmv(results).values()
    if not here:
        return ""
    paper = [known.spmv / known.round for known in DATASETS]
    return (
        f"SpMV takes {min(here):.0%} to {max(here):.0%} of a round, {statistics.median(here):.0%} in the median, with "
        "the launches of the rest from Python; "
        f"by the paper's Table II {min(paper):.0%} to {max(paper):.0%}."
    )


def _fewer_than(entries: int) -> Callable[[Row], float | None]:
    """Return the number of rows with fewer entries relative to the others; of real graphs, not of fitted ones."""

    def ratio(line: Row) -> float | None:
        percentage = line[f"below {entries} %"]
        if percentage == "" or line["graph"].startswith("crawl "):
            return None
        return percentage / max(100 - percentage, 1e-9)

    return ratio


def _row_array(line: Row) -> float | None:
    """Return the bytes of the row arrays with bins relative to those of CSR."""
    if line["MB with bins"] == "" or line["rows"] == "":
        return None
    columns = (INDEX_BYTES + VALUE_BYTES) * line["non-zeros"]
    return (line["MB with bins"] * MB - columns) / (line["CSR MB"] * MB - columns)


def _streamed(line: Row) -> float | None:
    """Return the time of a streamed round relative to one from memory; None where most edges stay on the GPU."""
    copied = re.search(r"(\d+)% of .* of packed edges copied", str(line["note"]))
    return _quotient("streamed ms", "round ms")(line) if copied and int(copied[1]) >= MIN_COPIED_PERCENT else None


def _swept(results: list[Row]) -> dict[str, dict[tuple[int, int], float]]:
    """Return the ms of the hybrid by graph and thresholds, in the paper's form."""
    found: dict[str, dict[tuple[int, int], float]] = {}
    for line in results:
        if line["table"] == SWEEP and line["ms"] != "" and line["what"] == FORMS[HYBRID]:
            found.setdefault(line["graph"], {})[line["tiny up to"], line["small up to"]] = line["ms"]
    return found


def _over_other_thresholds(results: list[Row]) -> dict[str, float]:
    return {
        graph: min(of_it for pair, of_it in ms.items() if pair != THRESHOLDS) / ms[THRESHOLDS]
        for graph, ms in _swept(results).items()
        if THRESHOLDS in ms and len(ms) > 1
    }


def _best_thresholds(results: list[Row]) -> str:
    told = []
    swept = _swept(results)
    for graph, ms in swept.items():
        best = min(ms, key=ms.__getitem__)
        where = f" on {graph}" if len(swept) > 1 else ""
        told.append(
            f"The best{where} are {best}: {ms[best]:.3g} ms, compared with {ms[THRESHOLDS]:.3g} with the paper's."
        )
    return " ".join(told)


def _operation_gain(operation: str, entries: int, results: list[Row]) -> dict[str, float]:
    gain = _quotient("GPU GFLOP/s", "CPU GFLOP/s")
    return {
        f"{entries:,} entries": found
        for line in results
        if line["table"] == VECTORS and (line["what"], line["entries"]) == (operation, entries)
        if (found := gain(line)) is not None
    }


SHORT = {"1T1R": THREAD, "16T1R": LANES16, "1W1R": WARP}

TESTS = {
    **{f"500 {known.name}": ClaimTest(partial(_speed_up, name=known.name)) for known in DATASETS},
    "growth": ClaimTest(partial(_by_graph, SIZES, _growth)),
    **{f"hybrid/{short}": ClaimTest(partial(_time_ratios, what, HYBRID), _rows) for short, what in SHORT.items()},
    "16T1R/1T1R": ClaimTest(partial(_time_ratios, THREAD, LANES16)),
    "16T1R/1W1R": ClaimTest(partial(_time_ratios, WARP, LANES16)),
    **{f"SpMV {name}": ClaimTest(partial(_time_ratios, CPU, HYBRID, name=name)) for name in CPU_SPMV},
    **{
        f"{operation} {entries}": ClaimTest(partial(_operation_gain, operation, entries))
        for operation, entries in OPERATIONS
    },
    "SpMV/rest": ClaimTest(_over_the_rest, _percentages),
    "thresholds": ClaimTest(_over_other_thresholds, _best_thresholds),
    "rows below 2": ClaimTest(partial(_by_graph, SIZES, _fewer_than(2))),
    "rows below 64": ClaimTest(partial(_by_graph, SIZES, _fewer_than(64))),
    "row array": ClaimTest(partial(_by_graph, SIZES, _row_array)),
    **{
        f"bus {name}": ClaimTest(partial(_by_graph, STREAM, _quotient("SpMV GB/s", "bus GB/s"), name=name))
        for name in PAPER_SPMV_BANDWIDTH
    },
    "streaming": ClaimTest(
        lambda results: {
            graph: ratio
            for name in PAPER_SPMV_BANDWIDTH
            for graph, ratio in _by_graph(STREAM, _streamed, results, name).items()
        },
        lambda results: "Streamed edges are packed, which the paper excepts: unpacked, the bus alone takes longer.",
    ),
}


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Grade the paper's claims."""
    return verdicts(claims.WU, TESTS, results)


# --- figures --------------------------------------------------------------------------------------------------------


def _kind(what: str) -> str:
    if what.startswith("the paper's"):
        return "printed in the paper"
    if what == OURS:
        return "other methods of prplugin"
    return "other libraries" if what in (CPU, CPU_FLOAT32, SPARSE) else "methods of the paper, measured"


def figures(results: list[Row]) -> dict[str, Figure]:
    """Draw the paper's Figures 3 and 4, and the sweep over thresholds."""
    drawn = {}
    groups: dict[str, list[tuple[str, float]]] = {}
    for line in results:
        if line["table"] == SPMV:
            for column, what in (("paper GFLOP/s", f"the paper's {line['what']}"), ("GFLOP/s", line["what"])):
                if line[column] != "":
                    groups.setdefault(line["graph"], []).append((what, line[column]))
    if groups:
        title = "Wu and others 2010, Figure 4: SpMV"
        label = "GFLOP/s, at 2 * non-zeros - rows flops"
        drawn["gflops"] = sideways(groups, label, title, _kind)
    distributions = {line["graph"]: line["distribution"] for line in results if "distribution" in line}
    if distributions:
        drawn["rows"] = _cumulative(distributions)
    swept = [line for line in results if line["table"] == SWEEP and line["ms"] != "" and line["what"] == FORMS[HYBRID]]
    if swept:
        panels = {graph: [line for line in swept if line["graph"] == graph] for graph in _swept(swept)}
        drawn["thresholds"] = heat(
            panels, "tiny up to", "small up to", "ms", "SpMV, ms by thresholds", marked=THRESHOLDS
        )
    return drawn


def _cumulative(distributions: dict[str, list[float]]) -> Figure:
    """Draw the cumulative distribution of row sizes by graph."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 5), layout="constrained")
    panel = drawing.subplots()
    for graph, percentages in distributions.items():
        panel.plot(DISTRIBUTION, percentages, "o-" if graph.startswith("crawl ") else "s--", markersize=3, label=graph)
    panel.plot([2, 64], [50, 95], "k^", label="the paper: over")
    panel.set(
        xlabel="entries", ylabel="% of the rows that have fewer",
        title="Wu and others 2010, Figure 3: row sizes",
    )  # fmt: skip
    panel.set_xscale("log", base=2)
    panel.legend(fontsize="small")
    return drawing
