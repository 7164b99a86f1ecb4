"""Wu and others 2010: three bins of rows.

T. Wu, B. Wang, Y. Shan, F. Yan, Y. Wang and N. Xu, "Efficient PageRank and SpMV Computation on AMD GPUs", on a Radeon
5870 and a Phenom II 965. A round is an iteration with its vector operations and its convergence test; "SpMV" is the
product alone, at 2 * non-zeros - rows flops. The speed-up for 500 rounds is 500 * CPU / (preprocessing + 500 * round).
MB are 2**20 bytes. The paper's matrix stores a value of 4 bytes with each column index; prplugin stores none without
weights. GFLOP/s of the paper are those of Table III, or follow from the times of Table II; its Figure 4 has only bars.

The paper prints E_i = 1 where the lost norm has to be redistributed as d / n, and `Tid & 0x03` where 16 lanes need
0x0F; both are corrected here. The paper does not state how it counts flops of vector operations: here n for an addition
and a norm, 2 * n for a distance, in float32, by NumPy on the CPU and by CuPy and cuBLAS on the GPU.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.generate import web
from benchmarks.measure import repeatedly, sampled
from benchmarks.papers import cpu_peers, ell, scan, sides
from benchmarks.papers.graphs import Named, generated, real
from benchmarks.papers.plots import heat, sideways
from benchmarks.papers.tables import Claim, absent_together, or_why, row, verdicts
from benchmarks.run import Part, Row
from prplugin.graph.adjacency import Adjacency
from prplugin.methods.engines import gpu_pull
from prplugin.methods.papers._rows import RowsPull
from prplugin.methods.papers.binned import BinnedPull
from prplugin.types.arrays import synchronize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KEYS", "PACKAGES", "TABLES", "figures", "parts", "summary"]

PACKAGES = cpu_peers.PACKAGES

SIZES, ROUND, SPMV = "Sizes (Table I)", "A round (Table II)", "SpMV (Figure 4)"
VECTORS, SWEEP, STREAM = "Vector operations (Table III)", "Thresholds", "Streaming (Section VI.D)"

TABLES = {
    SIZES: (
        "graph", "rows", "non-zeros", "a row", "paper CSR MB", "paper after MB", "CSR MB", "after MB", "paper growth %",
        "growth %", "tiny %", "small %", "normal %", "ELL MB", "scan MB", "note",
    ),
    ROUND: (
        "graph", "paper CPU ms", "paper prep. ms", "paper SpMV ms", "paper round ms", "paper x for 500", "CPU ms",
        "prep. ms", "SpMV ms", "round ms", "x for 500", "prplugin auto ms", "auto", "cuGraph ms", "CPU peer ms",
        "CPU peer", "note",
    ),
    SPMV: ("graph", "what", "ms", "GFLOP/s", "paper GFLOP/s", "note"),
    VECTORS: ("what", "entries", "paper CPU", "paper IL", "paper OpenCL", "CPU GFLOP/s", "GPU GFLOP/s", "note"),
    SWEEP: ("graph", "tiny up to", "small up to", "ms", "note"),
    STREAM: ("graph", "paper bus GB/s", "paper SpMV GB/s", "bus GB/s", "SpMV GB/s", "streamed ms", "round ms", "note"),
}  # fmt: skip

KEYS = ("graph", "what", "entries", "tiny up to", "small up to")

MB = 2**20
ROUNDS = 500


class Dataset(NamedTuple):
    """What Tables I and II print of a data set; ms and MB."""

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

PAPER_BUS, PAPER_APPETITE = 5.0, {"wikipedia-20070206": 8.46, "edu-2001": 16.98}
"""Section VI.D, GB/s: PCI-Express for uploading, and what the kernel reads."""

HYBRID, THREAD, LANES16, WARP = "hybrid: binned", "1T1R: node", "16T1R: warp, 16 lanes", "1W1R: warp, 32 lanes"
OURS = "prplugin: auto, a whole round"
ELL, SCAN, CPU, SPARSE = "ELL (ITPACK)", "segmented scan", "CPU, 1 thread: SciPy's product", "cuSPARSE (CuPy)"

TINY, SMALL = (0, 2, 4, 6, 8, 12, 24), (16, 32, 64, 96, 128, 256)
THRESHOLDS = 6, 96

LAUNCHES = 16

INDEX_BYTES = 4
"""Of a column, in graphs of fewer than 2**31 rows."""


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Each data set, or a generated graph of its size; a crawl that is here; vector operations; thresholds."""
    if quick:
        graphs = [(None, _generated(known.rows // 20, known.non_zeros // 20)) for known in DATASETS[:2]]
    else:
        graphs = [(known, _graph(data, known)) for known in DATASETS]
    of_sets = [Part(graph.name, partial(_of_set, known, graph), graph.edges) for known, graph in graphs]
    if (crawl := real(data, "cnr-2000", 325_557, 3_216_152)) is not None:
        of_sets.append(Part(crawl.name, partial(_of_set, None, crawl), crawl.edges))
    _, swept = graphs[0] if quick else graphs[2]
    return [
        *of_sets,
        Part(f"thresholds, {swept.name}", partial(_thresholds, swept), swept.edges / 2),
        Part("vector operations", partial(_vectors, quick), 1e6),
    ]


def _graph(data: Path | None, known: Dataset) -> Named:
    file = real(data, known.name, known.rows, known.non_zeros, files=known.files)
    return file or _generated(known.rows, known.non_zeros, f" in place of {known.name}")


def _generated(n: int, m: int, instead: str = "") -> Named:
    return generated(f"web {n:,} x {m:,}{instead}", n, m, lambda memory_space: web(n, m, memory_space=memory_space))


def _of_set(known: Dataset | None, graph: Named) -> Iterator[Row]:
    about = {"graph": graph.name}
    yield from or_why(row(SIZES, TABLES[SIZES], about), partial(_all_tables, known, graph, about))


def _all_tables(known: Dataset | None, graph: Named, about: Row) -> Iterator[Row]:
    adjacency = graph.adjacency()
    yield _sizes(known, adjacency, about)
    spmv: dict[str, float] = {}
    for found in absent_together(_products(known, adjacency, about)):
        if found["ms"] != "":
            spmv[found["what"]] = found["ms"]
        yield found
    a_round = _round(known, adjacency, about, spmv.get(HYBRID))
    yield a_round
    if a_round["prplugin auto ms"] != "":
        yield _full_round(adjacency, about, a_round)
    yield from or_why(
        row(STREAM, TABLES[STREAM], about), partial(_streaming, known, adjacency, about, spmv.get(HYBRID))
    )


# --- sizes, Table I -----------------------------------------------------------------------------------------------


def _sizes(known: Dataset | None, adjacency: Adjacency, about: Row) -> Row:
    plan = BinnedPull(adjacency, THRESHOLDS)
    fractions = {
        f"{which} %": 100 * size / adjacency.n
        for which, size in zip(("tiny", "small", "normal"), plan.sizes, strict=True)
    }
    paper = (
        {
            "paper CSR MB": known.csr,
            "paper after MB": known.after,
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
            "rows": adjacency.n,
            "non-zeros": adjacency.m,
            "a row": adjacency.m / adjacency.n,
            "CSR MB": plan.csr_nbytes / MB,
            "after MB": plan.nbytes / MB,
            "growth %": 100 * (plan.nbytes / plan.csr_nbytes - 1),
            "ELL MB": ell.bytes_needed(adjacency) / MB,
            "scan MB": (plan.csr_nbytes + scan.bytes_needed(adjacency)) / MB,
        },
    )


# --- products, Figure 4 -------------------------------------------------------------------------------------------


def _products(known: Dataset | None, adjacency: Adjacency, about: Row) -> Iterator[Row]:
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
        for found in or_why(line, lambda line=line, sample=sample: [line | {"samples": sample(adjacency)}]):
            if "samples" in found:
                seconds = statistics.median(found["samples"])
                found |= {"ms": seconds * 1e3, "GFLOP/s": flops / seconds / 1e9}
            yield found


def _flops(adjacency: Adjacency) -> int:
    return 2 * adjacency.m - adjacency.n


def _on_the_cpu(adjacency: Adjacency) -> list[float]:
    here = adjacency.on("host")
    by_hand = sides.ByHand(here.csc.offsets, here.csc.indices, here.out_weight)
    return repeatedly(lambda: by_hand.matrix @ by_hand.ranks, runs=sides.RUNS, limit=sides.LIMIT)


def _on_the_gpu(make: Callable[[Adjacency], Callable[[Any, Any], None]], adjacency: Adjacency) -> list[float]:
    sides.require_gpu()
    import cupy  # has been found

    there = adjacency.on("device")
    pull = make(there)
    contributions, pulled = cupy.full(there.n, 1 / there.n, np.float32), cupy.empty(there.n)
    return _launched(lambda: pull(contributions, pulled))


def _launched(launch: Callable[[], object]) -> list[float]:
    """Sample the seconds of what is launched, as the GPU sees it."""
    import cupy  # has been found

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def seconds() -> float:
        begin.record()
        for _ in range(LAUNCHES):
            launch()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3

    launch()  # compiles
    return [taken / LAUNCHES for taken in sampled(seconds, runs=sides.RUNS, limit=sides.LIMIT)]


def _sparse(adjacency: Adjacency) -> Callable[[Any, Any], None]:
    by_hand = sides.ByHand(adjacency.csc.offsets, adjacency.csc.indices, adjacency.out_weight)

    def multiply(contributions: Any, pulled: Any) -> None:
        by_hand.matrix @ contributions

    return multiply


def _in_rows(method: str, **options: int) -> Callable[[Adjacency], Callable[[Any, Any], None]]:
    return lambda adjacency: RowsPull(gpu_pull.csc_layout(adjacency), method, **options)


PRODUCTS: dict[str, Callable[[Adjacency], list[float]]] = {
    CPU: _on_the_cpu,
    THREAD: partial(_on_the_gpu, _in_rows("node")),
    LANES16: partial(_on_the_gpu, _in_rows("warp", lanes=16)),
    WARP: partial(_on_the_gpu, _in_rows("warp", lanes=32)),
    HYBRID: partial(_on_the_gpu, BinnedPull),
    ELL: partial(_on_the_gpu, ell.EllPull),
    SCAN: partial(_on_the_gpu, scan.ScanPull),
    SPARSE: partial(_on_the_gpu, _sparse),
}


# --- a round, Table II --------------------------------------------------------------------------------------------


def _round(known: Dataset | None, adjacency: Adjacency, about: Row, spmv_ms: float | None) -> Row:
    line = row(ROUND, TABLES[ROUND], about)
    if known:
        line |= {
            "paper CPU ms": known.cpu, "paper prep. ms": known.preparing, "paper SpMV ms": known.spmv,
            "paper round ms": known.round, "paper x for 500": known.times,
        }  # fmt: skip
    binned = sides.method(HYBRID, "binned")
    columns = {
        sides.ONE: "CPU ms", binned: "round ms", sides.OURS: "prplugin auto ms", sides.CUGRAPH: "cuGraph ms",
        cpu_peers.FASTEST: "CPU peer ms",
    }  # fmt: skip
    samples, notes = {}, []
    for side, found in zip(columns, sides.beside(adjacency, columns), strict=True):
        if "samples" in found:
            line[columns[side]] = found["ms"]
            samples[columns[side]] = found["samples"]
        elif found["note"] not in notes:
            notes.append(found["note"])
        if side in NAMED and "samples" in found:
            line[NAMED[side]] = found["note"]
    if line["round ms"] != "":
        preparing = repeatedly(partial(_prepared, adjacency), runs=3, limit=sides.LIMIT)
        samples["prep. ms"] = preparing
        line |= {"prep. ms": statistics.median(preparing) * 1e3, "SpMV ms": spmv_ms or ""}
        line["x for 500"] = ROUNDS * line["CPU ms"] / (line["prep. ms"] + ROUNDS * line["round ms"])
    return line | {"samples": samples, "note": "; ".join(notes)}


NAMED = {sides.OURS: "auto", cpu_peers.FASTEST: "CPU peer"}
"""The columns of what a side took."""


def _prepared(adjacency: Adjacency) -> None:
    """Sort rows into bins; in-edges by target are on the GPU since the first time."""
    BinnedPull(adjacency.on("device"), THRESHOLDS)
    synchronize("device")


def _full_round(adjacency: Adjacency, about: Row, a_round: Row) -> Row:
    """Return a whole round of our best method, whose product is not a launch of its own."""
    samples = a_round["samples"]["prplugin auto ms"]
    seconds = statistics.median(samples)
    found = {"what": OURS, "ms": seconds * 1e3, "GFLOP/s": _flops(adjacency) / seconds / 1e9, "note": a_round["auto"]}
    return row(SPMV, TABLES[SPMV], about | found) | {"samples": samples}


# --- streaming, Section VI.D --------------------------------------------------------------------------------------


def _streaming(known: Dataset | None, adjacency: Adjacency, about: Row, spmv_ms: float | None) -> Iterator[Row]:
    """Put what the kernel reads compared with what the bus brings."""
    sides.require_gpu()
    import cupy  # has been found
    import cupyx

    size = min(1 << 28, 4 * adjacency.m)
    there, here = cupy.empty(size, np.uint8), cupyx.empty_pinned(size, np.uint8)

    def send() -> None:
        there.set(here)
        synchronize("device")

    bus = size / statistics.median(repeatedly(send, runs=sides.RUNS, limit=sides.LIMIT)) / 1e9
    found = {line["what"]: line for line in sides.beside(adjacency, (sides.method(HYBRID, "binned"), STREAMED))}
    line = row(STREAM, TABLES[STREAM], about | {"bus GB/s": bus})
    if known and known.name in PAPER_APPETITE:
        line |= {"paper bus GB/s": PAPER_BUS, "paper SpMV GB/s": PAPER_APPETITE[known.name]}
    if spmv_ms:
        line["SpMV GB/s"] = BinnedPull(adjacency.on("device"), THRESHOLDS).nbytes / spmv_ms / 1e6
    samples = {}
    for column, what in (("round ms", HYBRID), ("streamed ms", STREAMED.label)):
        line[column] = found[what].get("ms", "")
        samples[column] = found[what].get("samples", [])
    yield line | {"samples": samples, "note": "; ".join(filter(None, (line["note"] for line in found.values())))}


STREAMED = sides.streamed("streamed")


# --- thresholds ---------------------------------------------------------------------------------------------------


def _thresholds(graph: Named) -> Iterator[Row]:
    known = row(SWEEP, TABLES[SWEEP], {"graph": graph.name})
    yield from or_why(known, partial(_each_pair, graph, known))


def _each_pair(graph: Named, known: Row) -> Iterator[Row]:
    sides.require_gpu()
    adjacency = graph.adjacency()
    for tiny, small in product(TINY, SMALL):
        if tiny > small:
            continue
        samples = _on_the_gpu(partial(BinnedPull, thresholds=(tiny, small)), adjacency)
        line = {"tiny up to": tiny, "small up to": small, "ms": statistics.median(samples) * 1e3}
        yield known | line | {"samples": samples}


# --- vector operations, Table III ---------------------------------------------------------------------------------


def _vectors(quick: bool) -> Iterator[Row]:
    for (what, n), (cpu, intermediate, opencl) in OPERATIONS.items():
        if quick and n > 1_000_000:
            continue
        line = row(VECTORS, TABLES[VECTORS], {"what": what, "entries": n})
        line |= {"paper CPU": cpu, "paper IL": intermediate, "paper OpenCL": opencl}
        flops = n * (2 if what == "distance" else 1)
        samples = {"CPU": repeatedly(_operation(np, what, n), runs=sides.RUNS, limit=sides.LIMIT)}
        for found in or_why({}, lambda what=what, n=n: [{"GPU": _seconds_on_the_gpu(what, n)}]):
            samples |= {"GPU": found["GPU"]} if "GPU" in found else {}
            line["note"] = found.get("note", "")
        for place, seconds in samples.items():
            line[f"{place} GFLOP/s"] = flops / statistics.median(seconds) / 1e9
        yield line | {"samples": samples}


def _seconds_on_the_gpu(what: str, n: int) -> list[float]:
    sides.require_gpu()
    import cupy  # has been found

    return _launched(_operation(cupy, what, n))


def _operation(xp: Any, what: str, n: int) -> Callable[[], Any]:
    one, other, room = xp.full(n, 0.5, np.float32), xp.full(n, 0.25, np.float32), xp.empty(n, np.float32)
    if what == "addition":
        return lambda: xp.add(one, other, out=room)
    if xp is np:
        if what == "norm":
            return lambda: np.abs(one, out=room).sum()
        return lambda: np.abs(np.subtract(one, other, out=room), out=room).sum()
    from cupy import cublas  # has been found

    if what == "norm":
        return lambda: cublas.asum(one)
    return lambda: cublas.asum(xp.subtract(one, other, out=room))


# --- what the paper says ------------------------------------------------------------------------------------------


def _is_of_the_paper(graph: str) -> bool:
    return graph.rpartition(" in place of ")[2] in {known.name for known in DATASETS}


def _best_of(results: list[Row], table: str, value: Callable[[Row], float | None]) -> float | None:
    lines = [line for line in results if line["table"] == table and _is_of_the_paper(line["graph"])]
    found = [ratio for line in lines if (ratio := value(line)) is not None]
    return max(found, default=None)


def _gains(slow: str, results: list[Row]) -> dict[str, float]:
    """Give how much the hybrid gains over another product, by graph."""
    times: dict[str, dict[str, float]] = {}
    for line in results:
        if line["table"] == SPMV and line["ms"] != "" and _is_of_the_paper(line["graph"]):
            times.setdefault(line["graph"], {})[line["what"]] = line["ms"]
    return {graph: of_it[slow] / of_it[HYBRID] for graph, of_it in times.items() if slow in of_it and HYBRID in of_it}


def _over(slow: str, results: list[Row]) -> float | None:
    """Give how much the hybrid gains over another product, on the middle one of the graphs."""
    gains = _gains(slow, results)
    return statistics.median(gains.values()) if gains else None


def _rows_and_gains(slow: str, results: list[Row]) -> str:
    """Say how far the gain is from graph to graph, and of what rows the graphs are."""
    gains = _gains(slow, results).values()
    sizes = [line for line in results if line["table"] == SIZES and _is_of_the_paper(line["graph"])]
    tiny, small = ([line[column] for line in sizes] for column in ("tiny %", "small %"))
    longest = [line["ELL MB"] * MB / INDEX_BYTES / line["rows"] for line in sizes]
    return (
        f"Over the graphs {min(gains):.2g} to {max(gains):.2g} times; {min(tiny):.0f} to {max(tiny):.0f} % of the "
        f"rows are tiny and {min(small):.0f} to {max(small):.0f} % small, and the longest have {min(longest):,.0f} to "
        f"{max(longest):,.0f} edges."
    )


def _quotient(one: str, other: str) -> Callable[[Row], float | None]:
    return lambda line: line[one] / line[other] if line[one] != "" and line[other] != "" else None


def _beside_the_rest(line: Row) -> float | None:
    if line["SpMV ms"] == "" or line["round ms"] == "":
        return None
    return line["SpMV ms"] / max(line["round ms"] - line["SpMV ms"], 1e-9)


def _range(results: list[Row], table: str, value: Callable[[Row], float | None], unit: str) -> str:
    """Say how far something is from graph to graph."""
    lines = [line for line in results if line["table"] == table and _is_of_the_paper(line["graph"])]
    found = {line["graph"]: ratio for line in lines if (ratio := value(line)) is not None}
    if not found:
        return ""
    least, most = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    return f"Over the graphs: {found[least]:.3g}{unit} ({least}) to {found[most]:.3g}{unit} ({most})."


def _streams(results: list[Row]) -> str:
    """Say what streaming costs a round."""
    told = _range(results, STREAM, _quotient("streamed ms", "round ms"), " times")
    return told and f"Time of a streamed round relative to one from the GPU's memory. {told}"


def _swept(results: list[Row]) -> dict[tuple[int, int], float]:
    """Give the ms of a product by thresholds, on a graph of the paper's size."""
    lines = [line for line in results if line["table"] == SWEEP and _is_of_the_paper(line["graph"])]
    return {(line["tiny up to"], line["small up to"]): line["ms"] for line in lines if line["ms"] != ""}


def _beside_other_thresholds(results: list[Row]) -> float | None:
    ms = _swept(results)
    others = [of_it for pair, of_it in ms.items() if pair != THRESHOLDS]
    return min(others) / ms[THRESHOLDS] if THRESHOLDS in ms and others else None


def _best_thresholds(results: list[Row]) -> str:
    ms = _swept(results)
    best = min(ms, key=ms.__getitem__)
    return f"The best are {best}: {ms[best]:.3g} ms, compared with {ms[THRESHOLDS]:.3g} with the paper's."


CLAIMS = (
    Claim(
        what="the GPU compared with one CPU version for 500 rounds, at best",
        paper=15.3,
        where="Table II, wikipedia-20070206",
        found=lambda results: _best_of(results, ROUND, lambda line: line["x for 500"] or None),
        ahead="the GPU's memory bandwidth is that much higher than that of one CPU thread.",
        behind="500 rounds do not pay for the preparation.",
        figures=lambda results: _range(results, ROUND, lambda line: line["x for 500"] or None, " times"),
    ),
    *(
        Claim(
            what=f"the hybrid's SpMV compared with {what}, on the middle graph",
            paper=None,
            where="Section VI.B; shown only as bars, Figure 4",
            found=partial(_over, what),
            ahead=ahead,
            behind=behind,
            level=level,
            figures=partial(_rows_and_gains, what),
        )
        for what, ahead, behind, level in (
            (
                THREAD,
                "a warp waits for its longest row, which one thread reads sequentially.",
                "three launches cost more than the wait for the longest row of each warp.",
                "three launches cost about as much as the wait for the longest row of each warp.",
            ),
            (
                LANES16,
                "lanes beyond the end of a row are idle, and most rows are shorter than 16.",
                "three launches, and rows by way of their index, cost more than idle lanes do.",
                "three launches, and rows by way of their index, cost about as much as idle lanes do.",
            ),
            (
                WARP,
                "lanes beyond the end of a row are idle, and most rows are shorter than 32.",
                "three launches, and rows by way of their index, cost more than idle lanes do.",
                "three launches, and rows by way of their index, cost about as much as idle lanes do.",
            ),
        )
    ),
    Claim(
        what=f"thresholds {THRESHOLDS} compared with all others",
        paper=None,
        where="Section V.B, where they are said to bring the best; no figures of others",
        found=_beside_other_thresholds,
        ahead="a thread reads no more than six edges of a tiny or small row.",
        behind="for rows slightly longer than the threshold, one thread is faster than 16 lanes.",
        level="near the best thresholds, their values matter little.",
        figures=_best_thresholds,
    ),
    Claim(
        what="bandwidth of the kernel relative to that of the bus: streaming does not pay",
        paper=8.46 / 5,
        where="Section VI.D, wikipedia-20070206",
        found=lambda results: _best_of(results, STREAM, _quotient("SpMV GB/s", "bus GB/s")),
        ahead="the GPU's memory is still that much faster than the bus.",
        behind="the bus delivers edges faster than the kernel sums them.",
        figures=_streams,
    ),
    Claim(
        what="SpMV compared with the rest of a round, at best",
        paper=92 / 8,
        where="Section III.A: 92 to 95 % of the time",
        found=lambda results: _best_of(results, ROUND, _beside_the_rest),
        ahead="the rest of a round, vector operations and the convergence test, is small on large graphs.",
        behind="launches, vector operations and the convergence test take longer than SpMV.",
        figures=lambda results: _range(results, ROUND, _beside_the_rest, " times the rest"),
    ),
)


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Compare the paper's claims with what was found."""
    return verdicts(CLAIMS, results)


# --- figures ------------------------------------------------------------------------------------------------------


def _kind(what: str) -> str:
    return "printed in the paper" if what.startswith("the paper's") else "prplugin" if what == OURS else "measured here"


def figures(results: list[Row]) -> dict[str, Figure]:
    """Draw the paper's Figure 4, and the thresholds."""
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
    swept = [line for line in results if line["table"] == SWEEP and line["ms"] != ""]
    if swept:
        drawn["thresholds"] = heat(
            {swept[0]["graph"]: swept}, "tiny up to", "small up to", "ms", "SpMV, ms by thresholds", marked=THRESHOLDS
        )
    return drawn
