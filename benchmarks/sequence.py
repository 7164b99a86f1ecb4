"""A sequence of calls of growing sizes in one process, each compared with its repetitions.

Modules are imported beforehand, by all calls on 78 edges. "first ms" is the first call of a kind and size in the
process, "repeated ms" the median of five repetitions that follow it immediately, and "ratio" the first divided by the
median. Every repetition of a NetworkX ranking reads a new graph object; every update adds other edges, and is followed
by a ranking.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import prplugin
from benchmarks.generate import scattered, uniform
from benchmarks.measure import timed

__all__ = ["COLUMNS", "KEYS", "rows"]

KEYS = ("edges", "call")

COLUMNS = ("edges", "call", "first ms", "repeated ms", "ratio")

SIZES = 1_000, 10_000, 100_000, 1_000_000, 3_000_000

REPETITIONS = 5


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the times of every call, in the order of the sequence."""
    for _ in _calls(78):
        pass
    for m in SIZES[:3] if quick else SIZES:
        for name, seconds in _calls(m):
            first, *repeated = seconds
            yield {
                "edges": m,
                "call": name,
                "first ms": 1e3 * first,
                "repeated ms": 1e3 * statistics.median(repeated),
                "ratio": first / statistics.median(repeated),
                "samples": seconds,
            }


def _calls(m: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the name and the seconds of each call on graphs of m edges, the first call first."""
    random, n = np.random.default_rng(m), m // 5
    edges = uniform(n, m)
    ids = np.unique(edges["src"])
    yield "frame, integer ids", _timed(lambda _: edges.pagerank())
    yield "frame, scattered ids", _timed(lambda frame: frame.pagerank(), lambda: scattered(edges))
    yield "frame, string ids", _timed(lambda frame: frame.pagerank(), lambda: edges.astype("string"))
    if m <= 100_000:
        yield (
            "NetworkX graph",
            _timed(
                lambda graph: nx.pagerank(graph, backend="prplugin"),
                lambda: nx.from_pandas_edgelist(edges, "src", "dst", create_using=nx.DiGraph),
            ),
        )
    graph = prplugin.Graph(edges)
    yield "prepared graph", _timed(lambda _: graph.rank())
    yield (
        "16 seeds",
        _timed(lambda seeds: graph.rank(seeds=seeds, top=10), random.permutation(ids)[:16].tolist),
    )

    def update(added: pd.DataFrame) -> None:
        graph.update(add=added)
        graph.rank()

    yield (
        "update of 10 edges",
        _timed(update, lambda: pd.DataFrame(random.choice(ids, (10, 2)), columns=["src", "dst"])),
    )


def _timed(call: Callable[[Any], object], make: Callable[[], Any] = lambda: None) -> list[float]:
    """Return the seconds of a call and its repetitions, each with a new argument that is made before."""
    return [timed(partial(call, make()))[0] for _ in range(1 + REPETITIONS)]
