"""Queries from one page on webs of hosts: time, and the least work that their tolerance permits.

Each host has 200 pages, and every page ten links on average. A tenth of the links leave the host: for one of the hosts
nearby, at distances below 2**k hosts, k from 1 to 6 with equal probabilities, or for any page. Times are of queries
from drawn pages on a prepared graph with ``top=10``, after one that makes the layout. "support" is the smallest number
of pages that hold all but the tolerance of the ranks that were found: no ranking with fewer entries meets the
tolerance, and a push of each of them is the least that pushes can do.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.measure import timed
from benchmarks.run import Part
from prplugin import Graph

__all__ = ["COLUMNS", "KEYS", "parts"]

HOST, DEGREE, LEAVING = 200, 10, 0.1

SIZES = 500_000, 10_000_000

QUERIES = {"near": 15, "any": 3}
"""Number of queries by where the links leave for."""

CASES = (0.85, 1e-6), (0.85, 1e-3), (0.5, 1e-6)
"""alpha and tol."""

PAGES_AT_A_TIME = 200_000

COLUMNS = (
    "pages", "links", "leave for", "alpha", "tol", "method", "ms", "minimum ms", "passes", "pages with ranks",
    "support",
)  # fmt: skip

KEYS = ("pages", "leave for", "alpha", "tol")


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per web."""
    sizes = (SIZES[0] // 10,) if quick else SIZES
    return [
        Part(f"{pages:,} pages, {leave_for}", partial(_queries, pages, leave_for), pages)
        for pages, leave_for in product(sizes, QUERIES)
    ]


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


def _queries(pages: int, leave_for: Literal["near", "any"]) -> Iterator[dict[str, Any]]:
    graph = web(pages, leave_for)
    drawn = np.random.default_rng(1).integers(0, pages, QUERIES[leave_for]).tolist()
    for alpha, tol in CASES:
        query = partial(graph.rank, alpha=alpha, tol=tol, top=10)
        query(personalization=[0])
        seconds, rankings = zip(*(timed(partial(query, personalization=[page])) for page in drawn), strict=True)
        found = [(each.iterations, np.count_nonzero(each.ranks), support(each.ranks, tol)) for each in rankings]
        passes, entries, least = np.median(found, axis=0).astype(int).tolist()
        yield {
            "pages": pages, "links": graph.number_of_edges, "leave for": leave_for, "alpha": alpha, "tol": tol,
            "method": rankings[-1].method, "ms": 1e3 * statistics.median(seconds), "minimum ms": 1e3 * min(seconds),
            "passes": passes, "pages with ranks": entries, "support": least, "samples": seconds,
        }  # fmt: skip
