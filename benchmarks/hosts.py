"""Queries from one page on webs of hosts: time, and the least work that their tolerance permits.

Each host has `HOST` pages, and every page `DEGREE` links on average. A tenth of the links leave the host: for one of
the hosts nearby, at distances below 2**k hosts, k from 1 to 6 with equal probabilities, or for any page. "support" is
the smallest number of pages that hold all but the tolerance of the ranks that were found: no ranking with fewer entries
meets the tolerance, and a push of each of them is the least that pushes can do.

    python -m benchmarks.hosts [PAGES ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Literal

import numpy as np

from benchmarks.report import table
from prplugin import Graph

HOST, DEGREE, LEAVING = 200, 10, 0.1

SIZES = 500_000, 10_000_000

SEEDS, TOL = 15, 1e-6

PAGES_AT_A_TIME = 200_000

COLUMNS = "pages", "links", "leave for", "alpha", "method", "ms", "minimum ms", "passes", "pages with ranks", "support"


def web(pages: int, leave_for: Literal["near", "any"], seed: int = 0) -> Graph:
    """Draw a web; no page is dangling. The peak is about 16 bytes per link."""
    random = np.random.default_rng(seed)
    degrees = 1 + random.poisson(DEGREE - 1, pages)
    offsets = np.append(0, np.cumsum(degrees))
    targets = np.empty(offsets[-1], np.int32)
    for first in range(0, pages, PAGES_AT_A_TIME):
        last = min(first + PAGES_AT_A_TIME, pages)
        source = np.repeat(np.arange(first, last), degrees[first:last])
        host, leaves = source // HOST, random.random(source.size) < LEAVING
        distance = random.integers(0, 64, source.size) >> random.integers(0, 6, source.size)
        near = host + np.where(random.random(source.size) < 0.5, distance, -distance)
        other = near if leave_for == "near" else random.integers(0, pages // HOST, source.size)
        host = np.where(leaves, np.clip(other, 0, pages // HOST - 1), host)
        targets[offsets[first] : offsets[last]] = HOST * host + random.integers(0, HOST, source.size)
    return Graph.from_csr(offsets, targets)


def support(ranks: np.ndarray, tol: float) -> int:
    """Return the smallest number of entries that hold all but `tol` of the sum."""
    descending = -np.sort(-ranks[ranks > 0])
    return int(np.searchsorted(np.cumsum(descending), ranks.sum() - tol)) + 1


def measure(pages: int, leave_for: Literal["near", "any"], alpha: float, graph: Graph) -> list[object]:
    """Return a row of the table: medians over queries from `SEEDS` pages, after one for the layout."""
    random = np.random.default_rng(1)
    graph.rank(personalization=[0], alpha=alpha)
    seconds, found = [], []
    for page in random.integers(0, pages, SEEDS if leave_for == "near" else 3).tolist():
        began = time.perf_counter()
        ranking = graph.rank(personalization=[page], alpha=alpha, tol=TOL, top=10)
        seconds.append(time.perf_counter() - began)
        ranks = ranking.ranks
        found.append((ranking.iterations, np.count_nonzero(ranks), support(ranks, TOL)))
    passes, entries, least = np.median(found, axis=0).astype(int).tolist()
    times = f"{1e3 * np.median(seconds):.1f}", f"{1e3 * min(seconds):.1f}"
    about = f"{pages:,}", f"{graph.number_of_edges:,}", leave_for, alpha
    return [*about, ranking.method, *times, passes, f"{entries:,}", f"{least:,}"]


def main(sizes: Sequence[int]) -> None:
    """Print the table."""
    rows = []
    for pages in sizes:
        for leave_for in ("near", "any"):
            graph = web(pages, leave_for)
            rows += [measure(pages, leave_for, alpha, graph) for alpha in (0.85, 0.5)]
    print(table(COLUMNS, [dict(zip(COLUMNS, row, strict=True)) for row in rows]))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or SIZES)
