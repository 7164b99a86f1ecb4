"""Quantitative claims of the five papers: every ratio, share and comparison that their texts and tables state.

Absolute times of the papers' machines are not claims; they are in the columns "paper ..." of each benchmark. A claim
without a ratio is one that the paper states in words or shows only as bars. `untestable` is the reason why no run of
these benchmarks can test a claim.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BOWEN", "KIM", "KUMAR", "SWAROOP", "WU", "Claim"]


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
    everywhere : bool
        Whether it is claimed for every graph, so that one counterexample refutes it.
    untestable : str
        Reason why it cannot be tested.
    """

    key: str
    what: str
    where: str
    ratio: float | None = None
    everywhere: bool = False
    untestable: str = ""


BARS = "shown only as bars"

KIM = (
    Claim(
        "node/all",
        "node-centric compared with the CPU on all threads, small random graphs",
        "Section 5.2, Figure 4: up to",
        1.96,
    ),
    Claim(
        "node/all, random",
        "node-centric compared with the CPU on all threads, all random graphs",
        "abstract, Section 7: up to about",
        2,
    ),
    Claim(
        "node/edge",
        "node-centric compared with edge-centric, small random graphs",
        "Section 5.2, Figure 4: up to",
        2.82,
    ),
    Claim(
        "node/every",
        "node-centric compared with the fastest other method, every graph",
        "Sections 5.2 and 5.3: the best of all methods tested",
        everywhere=True,
    ),
    Claim("all/edge", "the CPU on all threads compared with edge-centric, random graphs", f"Section 5.2; {BARS}"),
    Claim(
        "edge/all", "edge-centric compared with the CPU on all threads, real graphs", f"Section 5.3, Figure 6; {BARS}"
    ),
    Claim(
        "all/one",
        "the CPU on all threads compared with one thread, small random graphs",
        f"Section 5.2, Figure 4; {BARS}",
    ),
    Claim(
        "eight/four",
        "eight CPU threads compared with four: not much faster",
        f"Section 5.2, Figure 4; {BARS}",
        untestable="only one thread and all threads are timed.",
    ),
    Claim(
        "green-marl/basic",
        "Green-Marl on one thread compared with the basic CPU version, small random graphs",
        "Section 5.2: up to",
        1.83,
        untestable="Green-Marl is not run; prplugin has a single CPU version.",
    ),
)

NO_CELL = "no Cell BE is available."

KUMAR = (
    Claim("eu", "GPU and CPU together compared with one CPU, eu-2005", "abstract and Section 5, Figure 7: nearly", 2.8),
    Claim("cnr", "GPU and CPU together compared with one CPU, cnr-2000", f"Section 5, Figure 7; {BARS}"),
    Claim(
        "help",
        "the CPU's help compared with everything on the GPU, N by auto",
        "Section 4.2, design 2: the reason for N",
    ),
    Claim("cuda/cell", "CUDA compared with the Cell BE, eu-2005", "Section 5, Figure 8", 2.6, untestable=NO_CELL),
    Claim(
        "cell/xeon",
        "the Cell BE compared with a Xeon of 2.0 GHz, eu-2005 and in-2004: no marked improvement",
        f"Section 5, Figure 6; {BARS}",
        untestable=NO_CELL,
    ),
    Claim(
        "cell/buehrer",
        "the paper's Cell BE version compared with that of Buehrer and others",
        "Section 5",
        22,
        untestable=f"{NO_CELL[:-1]}, and neither is the other version.",
    ),
    Claim(
        "xeon/buehrer",
        "a Xeon compared with the Cell BE version of Buehrer and others",
        "Section 2, cited",
        22,
        untestable=f"{NO_CELL[:-1]}, and neither is the other version.",
    ),
)

NO_AMD = "no AMD GPU is available, and the project has no OpenCL or CAL/IL version."

WU = (
    *(
        Claim(f"500 {name}", f"the GPU compared with one CPU thread for 500 rounds, {name}", "Table II", ratio)
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
    *(
        Claim(
            f"hybrid/{other}",
            f"SpMV: the hybrid compared with {other}, every graph",
            f"Section VI.B, Figure 4; {BARS}",
            everywhere=True,
        )
        for other in ("1T1R", "16T1R", "1W1R")
    ),
    Claim("16T1R/1T1R", "SpMV: 16T1R compared with 1T1R", f"Section VI.B: more suitable; {BARS}, Figure 4"),
    Claim("16T1R/1W1R", "SpMV: 16T1R compared with 1W1R", f"Section VI.B: more suitable; {BARS}, Figure 4"),
    *(
        Claim(f"SpMV {name}", f"SpMV: the hybrid compared with one CPU, {name}", "Table III", ratio)
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
    Claim(
        "IL/OpenCL",
        "IL compared with OpenCL: 1.05 to 1.10 times for SpMV, 1.56 to 6.77 for vector operations",
        "Table III",
        untestable=NO_AMD,
    ),
    Claim("SpMV/rest", "time of SpMV compared with the rest of a round", "Section III.A: 92 to 95 % of the time", 11.5),
    Claim(
        "thresholds",
        "thresholds (6, 96) compared with the best others",
        "Sections V.B and VI: the best",
        everywhere=True,
    ),
    Claim(
        "rows below 2",
        "rows with less than 2 entries compared with the other rows",
        "Section V.A, Figure 3: over 50 %",
        1,
    ),
    Claim(
        "rows below 64",
        "rows with less than 64 entries compared with the other rows",
        "Section V.A, Figure 3: over 95 %",
        19,
    ),
    Claim("row array", "size of the row arrays with bins compared with CSR's", "Section V.B", 3),
    *(
        Claim(f"bus {name}", f"bandwidth of the kernel compared with that of the bus, {name}", "Section VI.D", ratio)
        for name, ratio in {"wikipedia-20070206": 1.69, "edu-2001": 3.4}.items()
    ),
    Claim(
        "streaming",
        "a round from the GPU's memory compared with a streamed one",
        "Section VI.D: streaming does not pay",
    ),
    Claim(
        "1 GB",
        "100 million pages on graphics cards of 1 GB",
        "Section VI.D",
        untestable="the GPU used has other memory.",
    ),
)

BOWEN = (
    *(
        Claim(
            f"{name}/{threads}",
            f"{name} compared with the CPU version, {threads} of the CPU",
            "Sections 1 and 3",
            ratio,
        )
        for threads in ("one thread", "all threads")
        for name, ratio in {
            "One to One": 1.77,
            "Warp Sum": 27,
            "Block Sum": 1.84,
            "heterogeneous": 42,
            "heterogeneous with CPU": 32,
        }.items()
    ),
    Claim("heterogeneous/Warp Sum", "heterogeneous compared with Warp Sum", "Section 1, 42 and 27", 1.56),
    Claim(
        "without/with CPU",
        "heterogeneous without the CPU compared with heterogeneous with CPU",
        "Section 1, 42 and 32",
        1.31,
    ),
    Claim("24/others", "24 segments compared with the best other number", f"Section 4; {BARS}", everywhere=True),
    Claim("24/1", "24 segments compared with one", f"Section 4; {BARS}"),
    Claim("24/64", "24 segments compared with 64", f"Section 4; {BARS}"),
    Claim("Warp Sum/1", "Warp Sum compared with one segment: very similar", "Section 4", 1),
    Claim(
        "iterations",
        "rounds of the paper's update rule at epsilon 5e-8 compared with its number",
        "Section 2.1: around 20",
        1,
    ),
    Claim(
        "5e-4",
        "all scores within 5e-4 of the CPU's",
        "Section 3.5",
        untestable="the mean score is 1e-6, so that scores of 0 would also be within 5e-4 on most vertices.",
    ),
    Claim(
        "devices",
        "the schedule compared with the best single device: 1.00 times",
        "Section 2.2",
        untestable="it compares one device with itself.",
    ),
)

SWAROOP = (
    Claim("100", "sequential compared with parallel, 100 nodes", "Section 6.1: a speed-up of 0.68", 1.47),
    *(
        Claim(str(nodes), f"parallel compared with sequential, {nodes:,} nodes", "Section 6.1", ratio)
        for nodes, ratio in {
            200: 3.04,
            400: 3.69,
            800: 9.67,
            1000: 28.35,
            5000: 84.83,
            10000: 90.73,
            16000: 42.28,
        }.items()
    ),
    Claim("16000 again", "parallel compared with sequential, 16,000 nodes, run again", "Section 6.3", 45.5),
    Claim(
        "18469", "parallel compared with sequential, 18,469 users", "Sections 6.1 and 7: 17 min 12 s and 15.6 s", 66.1
    ),
    Claim(
        "18469 again",
        "parallel compared with sequential, 18,469 users, run again",
        "Section 7: 17 min and 18.3 s",
        56.3,
    ),
    *(
        Claim(f"32/{threads}", f"32 threads per block compared with {threads}", "Section 6.2", ratio)
        for threads, ratio in {8: 1.26, 16: 1.11, 64: 1.01, 128: 1.15, 256: 1.2, 512: 2.73, 1024: 4.91}.items()
    ),
    Claim(
        "TweetRank",
        "TweetRank does not converge in 1,000 rounds",
        "Section 7",
        untestable="the paper's network is not available; on a generated one its loop does not converge either.",
    ),
)
