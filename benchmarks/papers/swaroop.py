"""Swaroop 2021: the dense power method, and TweetRank.

A. Swaroop, "Multithreading Google's PageRank with CUDA", IIT Madras 2021. The paper's number of rounds to 1e-6 varies
between networks that it does not name. Here single rounds and whole runs are timed on web-like graphs of eight edges
per vertex; claims are graded by runs, as the paper times them. "sequential" is the paper's loop over the whole Google
matrix in float32, compiled; "unoptimized" without optimization, as the paper's (`g++ sequential.cpp`), by which claims
are graded.
"run" is a whole run to 1e-6, with the sequential loop in C++, of at most as many rounds as the iteration in float64
takes: on large networks the paper's loop in float32 does not get there. "The paper's kernel" uses one thread per
row, prplugin's `dense` one block per row; BLAS and cuBLAS multiply the same matrix, through NumPy and CuPy. The paper's
times are in microseconds ("17m 12s" is 1030231744).

"rounds" are those of the iteration in float64; `python -m benchmarks tweetrank` counts those of the paper's loop, which
is in float32 and does not normalize the ranks, although its Algorithm 1 does. TweetRank ranks users by who retweets
them, weighted by the number of retweets. The paper's iteration did not converge. The folder given by --data may hold
`retweets.parquet` or a similar file with the columns src, dst and retweets; otherwise a network with the same number of
users is generated.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import peers
from benchmarks.generate import retweets, web
from benchmarks.measure import repeatedly, require, timed
from benchmarks.papers import claims, cpu_peers, implementations, loops
from benchmarks.papers.google import BlasRounds, GpuRounds, HostRounds, google_matrix
from benchmarks.papers.graphs import BenchmarkGraph, find_file, generated, memory_space
from benchmarks.papers.plots import plain
from benchmarks.papers.tables import ClaimTest, row, rows_or_reason, verdicts
from benchmarks.run import Part, Row
from prplugin.errors import MethodUnavailableError
from prplugin.graph.edges import Edges
from prplugin.types.arrays import MemorySpace, to_host

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = peers.PACKAGES

NODES, THREADS, TWEETS = "Time and number of nodes (Section 6.1)", "Threads per block (Section 6.2)", "TweetRank"

TABLES = {
    NODES: (
        "nodes", "paper sequential s", "paper parallel s", "paper speed-up", "rounds", "sequential ms",
        "unoptimized ms", "unoptimized run s", "paper's kernel run s", "same first three", "paper's kernel ms",
        "dense ms", "one CPU thread ms", "prplugin auto ms",
        "auto", "BLAS ms", "cuBLAS ms", "cuGraph ms",
        "CPU library ms", "CPU library", "speed-up of paper's kernel", "speed-up of dense", "NumPy sort ms",
        "thrust::sort ms", "note",
    ),
    THREADS: ("nodes", "threads", "paper s", "paper's kernel ms", "dense ms", "note"),
    TWEETS: (
        "network", "users", "pairs", "weight", "method", "rounds", "error bound", "first three", "s", "note",
    ),
}  # fmt: skip

KEYS = ("nodes", "threads", "network", "weight")

PAPER = {
    100: (405, 593, 0.68), 200: (6556, 2152, 3.04), 400: (3462, 936, 3.69), 800: (22785, 2356, 9.67),
    1000: (2972898, 104831, 28.35), 4772: (69266776, 816446, 84.83), 9664: (68519880, 755148, 90.73),
    16062: (26509166, 626986, 42.28),
}  # fmt: skip
"""Section 6.1: microseconds, sequential and with 32 threads per block, and the speed-up."""

LARGE = 16_062
PAPER_LARGEST = (18_469, 1030231744, 15588785)
"""Sections 6.1 and 7, the retweet network, which did not converge: its second run in parallel took 18294508."""

PAPER_THREADS = {8: 950401, 16: 839092, 32: 752572, 64: 759962, 128: 868481, 256: 900917, 512: 2052449, 1024: 3698519}
"""Section 6.2: microseconds for 9664 nodes."""

SWEPT = 9664
BEYOND = (32_768, 65_536, 131_072, 262_144)
"""Further numbers of nodes, if memory suffices."""

MOST_SEQUENTIAL = 20_000
"""Largest number of nodes of the sequential version, where a round takes half a second."""

ROUNDS = (
    "unoptimized ms", "sequential ms", "BLAS ms", "paper's kernel ms", "cuBLAS ms", "dense ms",
    "one CPU thread ms", "prplugin auto ms",
    "cuGraph ms", "CPU library ms",
)  # fmt: skip
"""Columns with the time of a round: the first six read all pairs, the others only the edges."""

NAMED = {"prplugin auto ms": "auto", "CPU library ms": "CPU library"}
"""Columns with the name of the chosen method or library."""

EDGES_A_NODE = 8
WARM = 20
"""Rounds before the paper's kernel is timed: the first ones at 100 nodes took four times as long."""

TOL = 1e-6
DTYPE_BYTES = 4
BLOCK_THREADS = 32
"""Threads per block in the paper's Section 6.1."""

USERS, PAIRS = 18_469, 60_000


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per number of nodes, the sweep over threads per block, and TweetRank."""
    sizes = (100, 200, 400, 800, 1000) if quick else (*PAPER, PAPER_LARGEST[0], *BEYOND)
    swept = 1000 if quick else SWEPT
    return [
        *(Part(f"{n:,} nodes", partial(_of_size, n), min(n, 20_000) ** 2) for n in sizes),
        Part(f"threads per block, {swept:,} nodes", partial(_threads, swept), swept**2),
        Part("TweetRank", partial(_tweets, data), 1e6),
    ]


def _named(n: int) -> BenchmarkGraph:
    return generated(
        f"web {n:,}", n, EDGES_A_NODE * n, lambda memory_space: web(n, EDGES_A_NODE * n, memory_space=memory_space)
    )


# --- nodes ----------------------------------------------------------------------------------------------------------


def _of_size(n: int) -> Iterator[Row]:
    line = row(NODES, TABLES[NODES], {"nodes": n})
    if n in PAPER:
        sequential, parallel, times = PAPER[n]
        line |= {"paper sequential s": sequential / 1e6, "paper parallel s": parallel / 1e6, "paper speed-up": times}
    elif n == PAPER_LARGEST[0]:
        _, sequential, parallel = PAPER_LARGEST
        line |= {"paper sequential s": sequential / 1e6, "paper parallel s": parallel / 1e6}
        line["paper speed-up"] = sequential / parallel
    yield from rows_or_reason(line, partial(_timed, n, line))


def _timed(n: int, line: Row) -> Iterator[Row]:
    adjacency = _named(n).adjacency()
    step = implementations.prepared("native", adjacency, threads=1)
    rounds = line["rounds"] = int(implementations.full_run(step, adjacency, "delta", TOL).iterations)
    here, there = cache(partial(_matrix, adjacency, "host")), cache(partial(_matrix, adjacency, "device"))
    samples: dict[str, list[float]] = {}
    notes: dict[str, str] = {}
    for column, sample in _columns(adjacency, here, there).items():
        for got in rows_or_reason({}, lambda sample=sample: [dict(zip(("samples", "note"), sample(), strict=True))]):
            if "samples" in got:
                samples[column] = got["samples"]
                line[column] = statistics.median(got["samples"]) * 1e3
            notes[column] = got["note"]
    for column, name in NAMED.items():
        if column in samples:
            line[name] = notes.pop(column)
    for column, short in (("paper's kernel ms", "speed-up of paper's kernel"), ("dense ms", "speed-up of dense")):
        if column in samples and "sequential ms" in samples:
            line[short] = line["sequential ms"] / line[column]
    if n <= MOST_SEQUENTIAL:
        line |= _whole_runs(rounds, here, there)
    yield line | {"samples": samples, "note": "; ".join(dict.fromkeys(filter(None, notes.values())))}


def _whole_runs(rounds: int, here: Callable[[], Any], there: Callable[[], Any]) -> Row:
    """Time whole runs by the unoptimized sequential version and by the paper's kernel; compare their first three."""
    matrix = here()
    ranks = np.empty(len(matrix), np.float32)
    loops.power_method(np.ones((1, 1), np.float32), np.ones(1, np.float32), 1, TOL, optimized=False)  # compiles
    seconds, count = timed(partial(loops.power_method, matrix, ranks, rounds, TOL, optimized=False))
    found: Row = {"unoptimized run s": seconds, "unoptimized ms": 1e3 * seconds / count}
    for got in rows_or_reason({}, lambda: [_run_of_the_kernel(rounds, there(), ranks)]):
        found |= {column: value for column, value in got.items() if column != "note"}  # a column before has the reason
    return found


def _run_of_the_kernel(rounds: int, matrix: Any, expected: Any) -> Row:
    run = GpuRounds(matrix, BLOCK_THREADS)

    def whole() -> None:
        for _ in range(rounds):
            if run() < TOL:
                break

    seconds, _ = timed(whole)
    highest = [np.argsort(-to_host(ranks), kind="stable")[:3].tolist() for ranks in (run.ranks, expected)]
    return {"paper's kernel run s": seconds, "same first three": "yes" if highest[0] == highest[1] else "no"}


def _columns(
    adjacency: Edges, here: Callable[[], Any], there: Callable[[], Any]
) -> dict[str, Callable[[], tuple[list[float], str]]]:
    return {
        # First, since its matrix is released afterwards, while `there` is kept.
        "dense ms": partial(implementations.method("", "dense").seconds, adjacency),
        "sequential ms": lambda: _sampled(HostRounds(here())),
        "BLAS ms": lambda: _sampled(BlasRounds(here())),
        "paper's kernel ms": lambda: _sampled(_warm(GpuRounds(there(), BLOCK_THREADS))),
        "cuBLAS ms": lambda: _sampled(BlasRounds(there())),
        "one CPU thread ms": partial(implementations.ONE.seconds, adjacency),
        "prplugin auto ms": partial(implementations.OURS.seconds, adjacency),
        "cuGraph ms": partial(implementations.CUGRAPH.seconds, adjacency),
        "CPU library ms": partial(cpu_peers.FASTEST.seconds, adjacency),
        "NumPy sort ms": lambda: _sorted(np, adjacency.n),
        "thrust::sort ms": lambda: _sorted(_cupy(), adjacency.n),
    }


def _matrix(adjacency: Edges, where: MemorySpace) -> Any:
    n = adjacency.n
    if where == "device":
        implementations.require_gpu()
    elif n > MOST_SEQUENTIAL:
        raise MethodUnavailableError(f"the sequential version is run on at most {MOST_SEQUENTIAL:,} nodes")
    require(1.05 * DTYPE_BYTES * n**2, where, f"the matrix of {n:,} nodes")
    return google_matrix(adjacency.on(where), implementations.ALPHA)


def _cupy() -> Any:
    implementations.require_gpu()
    import cupy  # lazy import; `require_gpu` has passed

    return cupy


def _sorted(xp: Any, n: int) -> tuple[list[float], str]:
    """Time the sort of n ranks in float32; CuPy's is thrust::sort."""
    ranks = xp.asarray(np.random.default_rng(0).random(n, np.float32))
    return _sampled(lambda: float(xp.sort(ranks)[0]))


def _warm(rounds: GpuRounds) -> GpuRounds:
    for _ in range(WARM):
        rounds()
    return rounds


def _sampled(rounds: Callable[[], float]) -> tuple[list[float], str]:
    """Time rounds; a round ends with the copy of its change to the host."""
    return repeatedly(rounds, runs=implementations.RUNS, limit=implementations.LIMIT), ""


# --- threads --------------------------------------------------------------------------------------------------------


def _threads(n: int) -> Iterator[Row]:
    known = row(THREADS, TABLES[THREADS], {"nodes": n})
    yield from rows_or_reason(known, partial(_each_width, n, known))


def _each_width(n: int, known: Row) -> Iterator[Row]:
    implementations.require_gpu()
    adjacency = _named(n).adjacency()
    matrix = _matrix(adjacency, "device")
    for threads, microseconds in PAPER_THREADS.items():
        line = known | {"threads": threads, "paper s": microseconds / 1e6 if n == SWEPT else ""}
        samples = {"paper's kernel ms": _sampled(GpuRounds(matrix, threads))[0]}
        step = implementations.prepared("dense", adjacency, threads=threads)
        samples["dense ms"] = implementations.iteration(step, adjacency.n)
        medians = {column: statistics.median(seconds) * 1e3 for column, seconds in samples.items()}
        yield line | medians | {"samples": samples}


# --- TweetRank ------------------------------------------------------------------------------------------------------


def _tweets(data: Path | None) -> Iterator[Row]:
    known = row(TWEETS, TABLES[TWEETS], {})
    yield from rows_or_reason(known, partial(_each_weight, data, known))


def _each_weight(data: Path | None, known: Row) -> Iterator[Row]:
    import prplugin
    from prplugin.io import read_edges

    if (path := find_file(data, ("retweets",))) is not None:
        name, frame = path.name, read_edges(str(path), weight="retweets").frame
    else:
        name, frame = f"generated, {USERS:,} users", retweets(USERS, PAIRS, memory_space=memory_space())
    for weight in (None, "retweets"):
        graph = prplugin.Graph(frame, weight=weight)
        bounds: list[float] = []
        ranking = graph.rank(tol=1e-10, top=3, progress=lambda state, bounds=bounds: bounds.append(state.error_bound))
        samples = repeatedly(partial(graph.rank, tol=1e-10), runs=implementations.RUNS, limit=implementations.LIMIT)
        yield known | {
            "network": name,
            "users": graph.number_of_vertices,
            "pairs": graph.number_of_edges,
            "weight": weight or "none",
            "method": ranking.method,
            "rounds": ranking.iterations,
            "error bound": ranking.error_bound,
            "first three": ", ".join(map(str, ranking.frame["vertex"].to_numpy().tolist())),
            "s": statistics.median(samples),
            "note": "converged" if ranking.converged else "did not converge",
            "bounds": [bound for bound in bounds if bound < float("inf")],
            "samples": samples,
        }


# --- claims ---------------------------------------------------------------------------------------------------------


def _at(nodes: int, column: str, results: list[Row]) -> float | None:
    lines = (line for line in results if line["table"] == NODES and line["nodes"] == nodes)
    return next((line[column] for line in lines if line[column] != ""), None)


def _faster(nodes: int, results: list[Row], unit: str = "run s") -> dict[str, float]:
    """Return the ratio of an unoptimized sequential run, or round, to one of the paper's kernel."""
    sequential, kernel = _at(nodes, f"unoptimized {unit}", results), _at(nodes, f"paper's kernel {unit}", results)
    return {f"web {nodes:,}": sequential / kernel} if sequential and kernel else {}


def _same_first_three(results: list[Row]) -> dict[str, float]:
    return {
        f"web {line['nodes']:,}": float(line["same first three"] == "yes")
        for line in results
        if line["table"] == NODES and line["same first three"] != ""
    }


def _slower(nodes: int, results: list[Row]) -> dict[str, float]:
    return {graph: 1 / ratio for graph, ratio in _faster(nodes, results).items()}


def _slower_with(threads: int, results: list[Row]) -> dict[str, float]:
    lines = [line for line in results if line["table"] == THREADS and line["paper's kernel ms"] != ""]
    ms = {line["threads"]: line["paper's kernel ms"] for line in lines}
    return (
        {f"web {lines[0]['nodes']:,}": ms[threads] / ms[BLOCK_THREADS]} if threads in ms and BLOCK_THREADS in ms else {}
    )


def _over_the_sparse(results: list[Row]) -> float | None:
    """Return the ratio of the paper's kernel on all pairs to one CPU thread on the edges."""
    pair = _at(LARGE, "paper's kernel ms", results), _at(LARGE, "one CPU thread ms", results)
    return pair[0] / pair[1] if pair[0] and pair[1] else None


def _rounds_of(nodes: int, results: list[Row]) -> str:
    """Report the time of a round of each implementation."""
    times = {column.removesuffix(" ms"): _at(nodes, column, results) for column in ROUNDS}
    told = ", ".join(f"{what} {ms:.2g} ms" for what, ms in times.items() if ms)
    by_round = "".join(f"By rounds: {ratio:.3g}. " for ratio in _faster(nodes, results, "ms").values())
    return told and f"{by_round}A round: {told}."


def _than_twice_as_many(results: list[Row]) -> dict[str, float]:
    """Return the speed-up of each number of threads per block over twice as many."""
    lines = [line for line in results if line["table"] == THREADS and line["paper's kernel ms"] != ""]
    ms = {line["threads"]: line["paper's kernel ms"] for line in lines}
    return {f"{threads} threads": ms[2 * threads] / ms[threads] for threads in ms if 2 * threads in ms}


def _sorts(results: list[Row]) -> dict[str, float]:
    """Return the ratio of a sort on the CPU to one on the GPU."""
    cpu, gpu = _at(LARGEST, "NumPy sort ms", results), _at(LARGEST, "thrust::sort ms", results)
    return {f"web {LARGEST:,}": cpu / gpu} if cpu and gpu else {}


def _blocks(threads: int, results: list[Row]) -> str:
    nodes = next((line["nodes"] for line in results if line["table"] == THREADS and line["threads"] != ""), None)
    return (
        f"Blocks of {threads} threads: {-(-nodes // threads)}, of {BLOCK_THREADS}: {-(-nodes // BLOCK_THREADS)}."
        if nodes
        else ""
    )


LARGEST = PAPER_LARGEST[0]

TESTS = {
    "100": ClaimTest(partial(_slower, 100), partial(_rounds_of, 100)),
    **{str(nodes): ClaimTest(partial(_faster, nodes), partial(_rounds_of, nodes)) for nodes in PAPER if nodes > 100},
    str(LARGEST): ClaimTest(partial(_faster, LARGEST), partial(_rounds_of, LARGEST)),
    "top three": ClaimTest(_same_first_three),
    "more threads": ClaimTest(_than_twice_as_many),
    "sort": ClaimTest(_sorts),
    **{
        f"{BLOCK_THREADS}/{threads}": ClaimTest(partial(_slower_with, threads), partial(_blocks, threads))
        for threads in PAPER_THREADS
        if threads != BLOCK_THREADS
    },
}


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Grade the paper's claims, and report the convergence of TweetRank."""
    words, rows = verdicts(claims.SWAROOP, TESTS, results)
    if gain := _over_the_sparse(results):
        words += (
            f" On {LARGE:,} nodes, one CPU thread that reads only the edges takes {1 / gain:.2g} times "
            "as long as the paper's kernel for all pairs on this GPU."
        )
    settled = [line for line in results if line["table"] == TWEETS and line["rounds"] != ""]
    if settled:
        words += " TweetRank by prplugin, in float64 and with a proved bound:"
    for line in settled:
        words += (
            f" {line['network']}, weight {line['weight']}: {line['note']} in {line['rounds']} rounds, with a "
            f"proved L1 error of at most {line['error bound']:.2g}."
        )
    return words, rows


# --- figures --------------------------------------------------------------------------------------------------------


def figures(results: list[Row]) -> dict[str, Figure]:
    """Draw the time of a round by nodes and by threads per block, and the convergence of TweetRank."""
    drawn = {}
    if timed := [line for line in results if line["table"] == NODES and line["rounds"] != ""]:
        drawn["nodes"] = _by_nodes(timed)
    if swept := [line for line in results if line["table"] == THREADS and line["paper's kernel ms"] != ""]:
        drawn["threads"] = _by_threads(swept)
    if ranked := [line for line in results if line["table"] == TWEETS and line.get("bounds")]:
        drawn["tweetrank"] = _convergence(ranked)
    return drawn


def _by_nodes(timed: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = drawing.subplots(1, 2)
    for column in ROUNDS:
        _line(left, timed, column, column.removesuffix(" ms"))
    for column, label in (
        ("paper speed-up", "the paper's"),
        ("speed-up of paper's kernel", "the paper's kernel here"),
        ("speed-up of dense", "dense here"),
    ):
        _line(right, timed, column, label)
    left.set(xlabel="nodes", ylabel="ms per round", xscale="log", yscale="log", title="Swaroop 2021: a round")
    right.set(xlabel="nodes", ylabel="times the sequential version", xscale="log", yscale="log", title="Speed-up")
    right.axhline(1, color="black", linewidth=0.8)
    for panel in (left, right):
        panel.legend(fontsize="small")
        plain(panel.xaxis)
        plain(panel.yaxis)
    return drawing


def _line(panel: Any, rows: list[Row], column: str, label: str) -> None:
    points = [(line["nodes"], line[column]) for line in rows if line[column] != ""]
    if points:
        panel.plot(*zip(*points, strict=True), "o-", label=label)


def _by_threads(swept: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 4.5), layout="constrained")
    panel = drawing.subplots()
    for column, label in (
        ("paper s", "the paper's, whole run"),
        ("paper's kernel ms", "the paper's kernel here"),
        ("dense ms", "dense"),
    ):
        points = [(line["threads"], line[column]) for line in swept if line[column] != ""]
        if points:
            least = min(value for _, value in points)
            panel.plot([threads for threads, _ in points], [value / least for _, value in points], "o-", label=label)
    panel.set(xlabel="threads per block", ylabel="time relative to the minimum", xscale="log", yscale="log")
    panel.set_title(f"Swaroop 2021: threads per block, {swept[0]['nodes']:,} nodes")
    panel.set_xticks(list(PAPER_THREADS), [str(threads) for threads in PAPER_THREADS])
    plain(panel.yaxis)
    panel.legend()
    return drawing


def _convergence(ranked: list[Row]) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 4.5), layout="constrained")
    panel = drawing.subplots()
    for line in ranked:
        panel.plot(range(1, len(line["bounds"]) + 1), line["bounds"], ".-", label=f"weight: {line['weight']}")
    panel.set(xlabel="rounds", ylabel="proved L1 error", yscale="log")
    panel.set_title(f"Convergence of TweetRank: {ranked[0]['network']}")
    panel.legend()
    return drawing
