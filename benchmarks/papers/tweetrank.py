"""TweetRank: the dense loop of Swaroop 2021 by round and arithmetic.

The paper's loop (Section 5) multiplies by the Google matrix in float32 and does not normalize the ranks, although its
Algorithm 1 does. It ends when the ranks change by less than 1e-6 in the 1-norm, or after 1,000 rounds. Three versions
run here with the same rule: the paper's loop; the same loop with the normalization of Algorithm 1; and the same
iteration in float64. "change" is the change of a round in the 1-norm, "sum" the sum of the ranks after it, both
computed in float64 from the ranks. The networks are generated. Their numbers of vertices are the paper's; web networks
have eight edges per vertex, as in the benchmark of the paper's Section 6.1, and one as many as California in the Pajek
collection, which has 9,664 vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.generate import retweets, web
from benchmarks.papers import implementations, loops, swaroop
from benchmarks.papers.graphs import BenchmarkGraph, generated
from benchmarks.papers.plots import plain
from benchmarks.papers.tables import rows_or_reason
from benchmarks.run import Part, Row
from prplugin.graph.edges import Edges
from prplugin.types.edges import Coo, Csc

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("network", "vertices", "edges", "version", "round", "change", "sum", "note")
KEYS = ("network", "version", "round")

TOL, MAX_ITER = 1e-6, 1000
"""Section 5: `eps` and `max_iter`."""

CALIFORNIA = (9664, 16_150)
"""Vertices and edges of California in the Pajek collection, the probable network of the paper's 9,664 vertices."""

SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

PAPER, NORMALIZED, FLOAT64 = "the paper's loop, float32", "normalized, float32", "float64"


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per network."""
    sizes = ((300, 500),) if quick else (CALIFORNIA, *((n, swaroop.EDGES_A_NODE * n) for n in swaroop.PAPER))
    users, pairs = (300, 1000) if quick else (18_469, 60_000)
    networks = [
        *(_generated(f"web {n:,} x {m:,}", n, m, web) for n, m in sizes),
        _generated(f"retweets {users:,} x {pairs:,}", users, pairs, retweets),
    ]
    return [Part(network.name, partial(_versions, network), network.vertices**2) for network in networks]


def _generated(name: str, n: int, m: int, make: Callable[..., Any]) -> BenchmarkGraph:
    return generated(name, n, m, lambda memory_space: make(n, m, memory_space=memory_space))


def _versions(network: BenchmarkGraph) -> Iterator[Row]:
    adjacency = network.adjacency().on("host")
    about = {"network": network.name, "vertices": adjacency.n, "edges": adjacency.m}
    for version in (PAPER, NORMALIZED, FLOAT64):
        yield from rows_or_reason(about | {"version": version}, partial(_rounds, adjacency, about, version))


def _rounds(adjacency: Edges, about: Row, version: str) -> Iterator[Row]:
    trace = traced(_round(adjacency, version))
    changes, sums = zip(*trace, strict=True)
    last = len(trace)
    for number in sorted({last, *(number for number in SHOWN if number < last)}):
        line = about | {
            "version": version, "round": number, "change": changes[number - 1], "sum": f"{sums[number - 1]:.6f}",
        }  # fmt: skip
        if number == last:
            line["note"] = "converged" if changes[-1] < TOL else f"did not converge; {_least(changes)}"
            line |= {"changes": changes, "sums": sums}
        yield line


def _least(changes: tuple[float, ...]) -> str:
    least = min(changes)
    return f"least change {least:.2g}, in round {changes.index(least) + 1}"


def traced(a_round: Callable[[], tuple[float, float]]) -> list[tuple[float, float]]:
    """Return change and sum by round, until the change is below `TOL` or `MAX_ITER` is reached."""
    trace: list[tuple[float, float]] = []
    while len(trace) < MAX_ITER and not (trace and trace[-1][0] < TOL):
        trace.append(a_round())
    return trace


def _round(adjacency: Edges, version: str) -> Callable[[], tuple[float, float]]:
    """Return a function that does one round and returns the change and the sum of the ranks."""
    if version == FLOAT64:
        return _in_float64(adjacency)
    rounds = Rounds(adjacency, normalize=version == NORMALIZED)

    def in_float32() -> tuple[float, float]:
        before = rounds.ranks.astype(np.float64)
        rounds()
        after = rounds.ranks.astype(np.float64)
        return float(np.abs(after - before).sum()), float(after.sum())

    return in_float32


class Rounds:
    """The rounds of `google.HostRounds` on `google.google_matrix`, with the same bits but without the matrix.

    A column of the matrix has one value on all rows without an edge from its vertex. Terms are added to all rows at
    once, column by column, which is the order of the paper's loop in each row.

    Parameters
    ----------
    normalize : bool
        Whether ranks are divided by their sum, as in the paper's Algorithm 1.
    """

    def __init__(self, adjacency: Edges, *, normalize: bool) -> None:
        n, out = adjacency.n, adjacency.out_weight
        self._base = np.where(out == 0, 1 / n, (1 - implementations.ALPHA) / n).astype(np.float32)
        pairs, counts = np.unique(
            adjacency.get(Coo).source.astype(np.int64) * n + adjacency.get(Coo).destination, return_counts=True
        )
        source, self._rows = np.divmod(pairs, n)
        self._bounds = np.searchsorted(source, np.arange(n + 1))
        self._entries = self._base[source]
        per_edge = (implementations.ALPHA / out[source]).astype(np.float32)
        for parallel in range(counts.max()):
            self._entries[counts > parallel] += per_edge[counts > parallel]
        self._normalize = normalize
        self.ranks = np.full(n, 1 / n, np.float32)

    def __call__(self) -> None:
        """Make a round."""
        before, self.ranks = self.ranks, np.zeros_like(self.ranks)
        loops.multiply_columns(self._base, self._bounds, self._rows, self._entries, before, self.ranks)
        if self._normalize:
            self.ranks /= self.ranks.sum()


def _in_float64(adjacency: Edges) -> Callable[[], tuple[float, float]]:
    """Return the round in float64 by edges and dangling mass, which equals the product with the dense matrix."""
    loop = implementations.SparseLoop(*adjacency.get(Csc)[:2], adjacency.out_weight)

    def in_float64() -> tuple[float, float]:
        before = loop.ranks
        loop()
        return float(np.abs(loop.ranks - before).sum()), float(loop.ranks.sum())

    return in_float64


def summary(results: list[Row]) -> tuple[str, list[Row]]:
    """Report which versions converge, and the last round of the others."""
    ended = [line for line in results if line["note"] and line["round"] != ""]
    words = ""
    for version in (PAPER, NORMALIZED, FLOAT64):
        of_it = [line for line in ended if line["version"] == version]
        rounds = [line["round"] for line in of_it if line["note"] == "converged"]
        words += f"{version}: converged on {len(rounds)} of {len(of_it)} networks"
        words += f", in {min(rounds)} to {max(rounds)} rounds. " if rounds else ". "
        for line in of_it:
            if line["note"] != "converged":
                words += f"{line['network']}: {line['note']}; after {line['round']:,} rounds the sum is {line['sum']}. "
    return words.rstrip(), []


def figure(results: list[Row]) -> Figure:
    """Draw the change and the distance of the sum from 1 by round."""
    from matplotlib.figure import Figure

    ended = [line for line in results if "changes" in line]
    networks = list(dict.fromkeys(line["network"] for line in ended))
    drawing = Figure(figsize=(5 * max(len(networks), 1), 7), layout="constrained")
    grid = drawing.subplots(2, max(len(networks), 1), squeeze=False, sharey="row")
    for (changing, drifting), network in zip(grid.T, networks, strict=True):
        for line in (line for line in ended if line["network"] == network):
            rounds = range(1, len(line["changes"]) + 1)
            changing.plot(rounds, line["changes"], label=line["version"])
            drifting.plot(rounds, [abs(total - 1) + 1e-16 for total in line["sums"]], label=line["version"])
        changing.axhline(TOL, color="black", linewidth=0.8, linestyle=":")
        changing.set(title=network, xscale="log", yscale="log", ylabel="change of a round, 1-norm")
        drifting.set(xscale="log", yscale="log", xlabel="rounds", ylabel="distance of the sum from 1")
        changing.legend(fontsize="small")
        for panel in (changing, drifting):
            plain(panel.xaxis)
            panel.minorticks_off()  # most of the file would be ticks
    return drawing
