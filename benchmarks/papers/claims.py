"""Quantitative claims of the five papers: every ratio, share and comparison that their texts and tables state, once.

Absolute times of the papers' machines are not claims; they are in the columns "paper ..." of each benchmark. A claim
without a ratio is one that the paper states in words or shows only as bars. `untestable` is the reason why no run of
these benchmarks can test a claim.

Claims that compare processors, that is a GPU with a CPU, threads, memory or bus, depend on the hardware, and are
counted apart from those that compare designs on one processor and those about graphs, bytes and rounds.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Claim(NamedTuple):
    """Claim of a paper.

    Attributes
    ----------
    key : str
        Name by which a benchmark's module refers to it.
    what : str
        The compared versions, the one claimed to be better first.
    where : str
        Section, table or figure.
    ratio : float, optional
        Claimed ratio of the first version to the second; None if the paper gives no figure.
    scope : str
        "every": claimed for every graph, so that one counterexample refutes it. "up to": claimed for the best graph.
        "median": for graphs in general.
    similar : bool
        Whether both versions are claimed to be similar; `ratio` is 1 if the paper gives none.
    best : bool
        Whether the first version is claimed to be the best of many: it may be behind by what a grade tolerates.
    kind : str
        What is compared.
    untestable : str
        Reason why it cannot be tested.
    contrary : str
        Verdict if it comes out the other way: "hardware" if that follows from today's hardware, by `why`.
    why : str
        Reason for that.
    sets : tuple of str
        Data sets that the claim is about; results on others are shown, and not graded.
    """

    key: str
    what: str
    where: str
    ratio: float | None = None
    scope: Literal["every", "up to", "median"] = "median"
    similar: bool = False
    best: bool = False
    kind: Literal["designs", "processors", "other"] = "designs"
    untestable: str = ""
    contrary: Literal["reversed", "hardware"] = "reversed"
    why: str = ""
    sets: tuple[str, ...] = ()


BARS = "shown only as bars"
PROCESSORS: Literal["processors"] = "processors"
HARDWARE: Literal["hardware"] = "hardware"

KIM = (
    Claim(
        "node/all",
        "node-centric compared with the CPU on all threads, small random graphs",
        "Section 5.2, Figure 4: up to; about 2 in abstract and Section 7",
        1.96,
        scope="up to",
        kind=PROCESSORS,
    ),
    Claim(
        "node/edge",
        "node-centric compared with edge-centric, small random graphs",
        "Section 5.2, Figure 4: up to",
        2.82,
        scope="up to",
    ),
    Claim(
        "node/every",
        "node-centric compared with the fastest other method, every graph",
        "Sections 5.2 and 5.3: the best of all methods tested",
        scope="every",
        kind=PROCESSORS,
        contrary=HARDWARE,
        why="Transfers from pageable memory take most of the time, and vary between runs.",
    ),
    Claim(
        "all/edge",
        "the CPU on all threads compared with edge-centric, random graphs",
        f"Section 5.2; {BARS}",
        kind=PROCESSORS,
        contrary=HARDWARE,
        why="The GPU adds floats by native atomic additions.",
    ),
    Claim(
        "edge/all",
        "edge-centric compared with the CPU on all threads, real graphs",
        f"Section 5.3, Figure 6; {BARS}",
        scope="every",
        kind=PROCESSORS,
    ),
    Claim(
        "all/one",
        "the CPU on all threads compared with one thread, small random graphs",
        f"Section 5.2, Figure 4; {BARS}",
        kind=PROCESSORS,
    ),
    Claim(
        "eight/four",
        "eight CPU threads compared with four: not much faster",
        f"Section 5.2, Figure 4; {BARS}",
        similar=True,
        kind=PROCESSORS,
        contrary=HARDWARE,
        why="Eight threads have a core each, in the paper half a core.",
    ),
    Claim(
        "basic/every",
        "every other version compared with the basic CPU version, every graph",
        "Sections 5.2 and 5.3: the worst performance",
        scope="every",
        kind=PROCESSORS,
        why="The basic version sums in float32, and prplugin's on one thread, in place of Green-Marl's, in float64.",
    ),
    Claim(
        "medium",
        "speed-up of node-centric over the CPU on all threads, medium random graphs compared with small ones: the same",
        "Section 5.2: almost the same performance trend",
        scope="every",
        similar=True,
        kind=PROCESSORS,
    ),
    Claim(
        "memory",
        "bytes sent by node-centric compared with edge-centric, undirected graphs: equal",
        "Section 4.1: 2 E + 3 V",
        1,
        scope="every",
        similar=True,
        kind="other",
    ),
    Claim(
        "green-marl/basic",
        "Green-Marl on one thread compared with the basic CPU version, small random graphs",
        "Section 5.2: up to",
        1.83,
        scope="up to",
        untestable="Green-Marl is not run.",
    ),
)

NO_CELL = "no Cell BE is available."

KUMAR = (
    *(
        Claim(
            key,
            f"GPU and CPU together, the paper's form, compared with one CPU, {graph}",
            where,
            ratio,
            kind=PROCESSORS,
        )
        for key, graph, where, ratio in (
            ("eu", "eu-2005", "abstract and Section 5, Figure 7: nearly", 2.8),
            ("cnr", "cnr-2000", f"Section 5, Figure 7; {BARS}", None),
        )
    ),
    Claim(
        "help",
        "GPU and CPU together, the paper's form with its best N, compared with all edges on the GPU",
        "Section 4.2, design 2: the reason for N",
        kind=PROCESSORS,
    ),
    Claim(
        "cuda/cell",
        "CUDA compared with the Cell BE, eu-2005",
        "Section 5, Figure 8",
        2.6,
        untestable=NO_CELL,
        kind=PROCESSORS,
    ),
    Claim(
        "cell/xeon",
        "the Cell BE compared with a Xeon of 2.0 GHz, eu-2005 and in-2004: no marked improvement",
        f"Section 5, Figure 6; {BARS}",
        untestable=NO_CELL,
        kind=PROCESSORS,
    ),
    Claim(
        "cell/buehrer",
        "the paper's Cell BE version compared with that of Buehrer and others",
        "Section 5",
        22,
        untestable=f"{NO_CELL[:-1]}, and neither is the other version.",
        kind=PROCESSORS,
    ),
    Claim(
        "xeon/buehrer",
        "a Xeon compared with the Cell BE version of Buehrer and others",
        "Section 2, cited",
        22,
        untestable=f"{NO_CELL[:-1]}, and neither is the other version.",
        kind=PROCESSORS,
    ),
)

NO_AMD = "no AMD GPU is available, and the project has no OpenCL or CAL/IL version."

WU_SETS = (
    "su", "su+ucb", "wikipedia-20051105", "wikipedia-20060925", "wikipedia-20061104", "wikipedia-20070206", "edu-2001",
)  # fmt: skip

WU = (
    *(
        Claim(
            f"500 {name}",
            f"the GPU compared with one CPU thread for 500 rounds, {name}",
            "Table II" + ("; up to 12 in Section VI.B" if name == "wikipedia-20070206" else ""),
            ratio,
            kind=PROCESSORS,
        )
        for name, ratio in {
            "su": 5.9,
            "su+ucb": 4.9,
            "wikipedia-20051105": 12.5,
            "wikipedia-20060925": 14.4,
            "wikipedia-20061104": 14.1,
            "wikipedia-20070206": 15.3,
            "edu-2001": 8.7,
        }.items()
    ),
    Claim(
        "growth",
        "growth of the matrix by the bins compared with the paper's, every data set: 8 to 16 %",
        "Table I",
        scope="every",
        similar=True,
        kind="other",
    ),
    *(
        Claim(
            f"hybrid/{other}",
            f"SpMV: the hybrid compared with {other}, every graph",
            f"Section VI.B, Figure 4; {BARS}",
            scope="every",
        )
        for other in ("1T1R", "16T1R", "1W1R")
    ),
    Claim("16T1R/1T1R", "SpMV: 16T1R compared with 1T1R", f"Section VI.B: more suitable; {BARS}, Figure 4"),
    Claim("16T1R/1W1R", "SpMV: 16T1R compared with 1W1R", f"Section VI.B: more suitable; {BARS}, Figure 4"),
    *(
        Claim(f"SpMV {name}", f"SpMV: the hybrid compared with one CPU, {name}", "Table III", ratio, kind=PROCESSORS)
        for name, ratio in {
            "wikipedia-20051105": 12.1,
            "wikipedia-20060925": 14.4,
            "wikipedia-20061104": 14.5,
        }.items()
    ),
    *(
        Claim(
            f"{operation} {entries}",
            f"{operation} of {entries:,} entries: the GPU compared with one CPU",
            "Table III, IL and CPU",
            ratio,
            kind=PROCESSORS,
        )
        for operation, entries, ratio in (
            ("addition", 1_000_000, 15.6),
            ("addition", 10_000_000, 24.1),
            ("norm", 1_000_000, 56.1),
            ("norm", 10_000_000, 160.3),
            ("distance", 1_000_000, 34.3),
            ("distance", 10_000_000, 91.5),
        )
    ),
    *(
        Claim(
            f"IL/OpenCL {operation}",
            f"IL compared with OpenCL, {operation}",
            "Table III",
            ratio,
            untestable=NO_AMD,
        )
        for operation, ratio in {
            "addition of 1,000,000 entries": 2.46,
            "addition of 10,000,000 entries": 1.56,
            "norm of 1,000,000 entries": 6.77,
            "norm of 10,000,000 entries": 3.93,
            "distance of 1,000,000 entries": 4.61,
            "distance of 10,000,000 entries": 3.06,
            "SpMV of wikipedia-20051105": 1.10,
            "SpMV of wikipedia-20060925": 1.05,
            "SpMV of wikipedia-20061104": 1.05,
        }.items()
    ),
    Claim(
        "SpMV/rest",
        "time of SpMV compared with the rest of a round",
        "Section III.A: 92 to 95 % of the time",
        11.5,
        kind="other",
    ),
    Claim(
        "thresholds",
        "thresholds (6, 96) compared with the best others",
        "Sections V.B and VI: the best",
        scope="every",
        best=True,
    ),
    Claim(
        "rows below 2",
        "rows with less than 2 entries compared with the other rows",
        "Section V.A, Figure 3: over 50 % in both data sets",
        1,
        scope="every",
        kind="other",
        sets=WU_SETS,
    ),
    Claim(
        "rows below 64",
        "rows with less than 64 entries compared with the other rows",
        "Section V.A, Figure 3: over 95 % in both data sets",
        19,
        scope="every",
        kind="other",
        sets=WU_SETS,
    ),
    Claim(
        "row array",
        "size of the row arrays with bins compared with CSR's",
        "Section V.B",
        3,
        similar=True,
        kind="other",
    ),
    *(
        Claim(
            f"bus {name}",
            f"bandwidth of the kernel compared with that of the bus, {name}",
            "Section VI.D",
            ratio,
            kind=PROCESSORS,
        )
        for name, ratio in {"wikipedia-20070206": 1.69, "edu-2001": 3.4}.items()
    ),
    Claim(
        "streaming",
        "a round from the GPU's memory compared with a streamed one, wikipedia-20070206 and edu-2001",
        "Section VI.D: streaming does not pay",
        scope="every",
        kind=PROCESSORS,
    ),
    Claim(
        "1 GB",
        "100 million pages on graphics cards of 1 GB",
        "Section VI.D",
        untestable="the GPU used has other memory.",
        kind="other",
    ),
)

BOWEN = (
    *(
        Claim(
            name,
            f"{name} compared with the CPU version, all threads",
            "Sections 1 and 3",
            ratio,
            kind=PROCESSORS,
            contrary=HARDWARE,
            why="The CPU has twice as many cores as the paper's.",
        )
        for name, ratio in {
            "One to One": 1.77,
            "Warp Sum": 27,
            "Block Sum": 1.84,
            "heterogeneous": 42,
            "heterogeneous with CPU": 32,
        }.items()
    ),
    Claim("Warp Sum/One to One", "Warp Sum compared with One to One", "Section 1, 27 and 1.77", 15.3),
    Claim("Warp Sum/Block Sum", "Warp Sum compared with Block Sum", "Section 1, 27 and 1.84", 14.7),
    Claim("heterogeneous/Warp Sum", "heterogeneous compared with Warp Sum", "Section 1, 42 and 27", 1.56),
    Claim(
        "without/with CPU",
        "heterogeneous without the CPU compared with heterogeneous with CPU",
        "Section 1, 42 and 32",
        1.31,
        kind=PROCESSORS,
    ),
    Claim("24/others", "24 segments compared with the best other number", f"Section 4; {BARS}", best=True),
    Claim("24/1", "24 segments compared with one", f"Section 4; {BARS}"),
    Claim(
        "rise",
        "each number of segments compared with the one before, from 2 to 24",
        "Section 4: increasing until 24",
        scope="every",
        contrary=HARDWARE,
        why="Each additional segment takes another launch, which takes about as long as its edges.",
    ),
    Claim(
        "64",
        "memory that 64 segments need compared with the GPU's",
        "Section 4: a value that required too much memory",
        scope="every",
        kind="other",
        contrary=HARDWARE,
        why="The paper's GPU has 8 GB.",
    ),
    Claim(
        "Warp Sum/1",
        "Warp Sum compared with one segment: very similar",
        "Section 4",
        1,
        similar=True,
        why="The fastest kernel for a single segment need not be Warp Sum.",
    ),
    Claim(
        "iterations",
        "rounds of the paper's update rule at epsilon 5e-8 compared with its number",
        "Section 2.1: around 20",
        1,
        similar=True,
        kind="other",
    ),
    Claim(
        "5e-4",
        "all scores within 5e-4 of the CPU's",
        "Section 3.5",
        kind="other",
        untestable="the mean score is 1e-6, so that scores of 0 would also be within 5e-4 on most vertices.",
    ),
    Claim(
        "devices",
        "the schedule compared with the best single device: 1.00 times",
        "Section 2.2",
        kind="other",
        untestable="it compares one device with itself.",
    ),
)

SWAROOP = (
    Claim(
        "100",
        "sequential compared with parallel, 100 nodes",
        "Section 6.1: a speed-up of 0.68, and of 0.59 in the log of a second run",
        1.47,
        kind=PROCESSORS,
    ),
    *(
        Claim(
            str(nodes),
            f"parallel compared with sequential, {nodes:,} nodes",
            f"Section 6.1{again}",
            ratio,
            kind=PROCESSORS,
        )
        for nodes, ratio, again in (
            (200, 3.04, ""),
            (400, 3.69, ""),
            (800, 9.67, ""),
            (1000, 28.35, ""),
            (4772, 84.83, ", called 5000"),
            (9664, 90.73, ", called 10000"),
            (16_062, 42.28, ", called 16000; 45.5 in Section 6.3"),
            (18_469, 66.1, " and Section 7: 17 min 12 s and 15.6 s, or 18.3 s"),
        )
    ),
    Claim(
        "notebook",
        "parallel compared with sequential, 18,469 users: 25 s and 17 min",
        "Section 7",
        41,
        kind=PROCESSORS,
        untestable="the 25 s are of the notebook's cell, with compilation and reading.",
    ),
    Claim(
        "top three",
        "the three highest by parallel compared with those by sequential, every number of nodes: identical",
        "Section 6.3",
        1,
        scope="every",
        similar=True,
        kind="other",
    ),
    Claim(
        "trend",
        "no trend of the time with the number of nodes",
        "Section 6.1",
        kind="other",
        untestable="the paper's networks are not named; the generated ones have one structure.",
    ),
    *(
        Claim(
            f"32/{threads}",
            f"32 threads per block compared with {threads}",
            "Section 6.2",
            ratio,
            why="Smaller blocks spread more evenly over the multiprocessors; Section 6.2 says as much in words.",
        )
        for threads, ratio in {8: 1.26, 16: 1.11, 64: 1.01, 128: 1.15, 256: 1.2, 512: 2.73, 1024: 4.91}.items()
    ),
    Claim(
        "more threads",
        "each number of threads per block compared with twice as many",
        "Section 6.2: as the number of threads in a block increases, performance decreases",
        scope="every",
    ),
    Claim(
        "sort",
        "thrust::sort on the GPU compared with a sort on the CPU, 18,469 nodes",
        "Section 5.3: saves time on large networks",
        kind=PROCESSORS,
    ),
    Claim(
        "TweetRank",
        "TweetRank does not converge in 1,000 rounds",
        "Section 7",
        kind="other",
        untestable="the paper's network is not available; on a generated one its loop does not converge either.",
    ),
)
