"""Graphs that expose errors of PageRank implementations: each function returns a frame and arguments of `Graph`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

__all__ = ["SHAPES", "Shape", "shape"]


class Shape(NamedTuple):
    """A frame, and the arguments of `prplugin.Graph` for it."""

    frame: pd.DataFrame
    arguments: dict[str, Any]


SHAPES: dict[str, Callable[[], Shape]] = {}
"""Functions that return shapes, by name."""


def shape(function: Callable[[], Shape]) -> Callable[[], Shape]:
    """Register a function in `SHAPES`. Its frame is cached, since rankings do not alter it."""
    cached = cache(function)
    SHAPES[function.__name__.replace("_", "-")] = cached
    return cached


def _edges(source: Any, destination: Any, weight: Any = None, vertices: Any = None) -> Shape:
    columns = {"src": source, "dst": destination}
    arguments: dict[str, Any] = {}
    if weight is not None:
        columns["weight"] = weight
        arguments["weight"] = "weight"
    if vertices is not None:
        arguments["vertices"] = vertices
    return Shape(pd.DataFrame(columns), arguments)


def _random(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.integers(n, size=m), rng.integers(n, size=m), rng


# --- small and regular --------------------------------------------------------------------------------------------


@shape
def single_edge() -> Shape:
    """Return 0 -> 1, the smallest graph with a dangling vertex."""
    return _edges([0], [1])


@shape
def one_self_loop() -> Shape:
    """Return one vertex, whose rank is 1 with all options."""
    return _edges([7], [7])


@shape
def isolated() -> Shape:
    """Return vertices without edges: x = alpha * w + (1 - alpha) * v."""
    return _edges(np.empty(0, np.int64), np.empty(0, np.int64), vertices=[4, 2, 9, 3])


@shape
def path() -> Shape:
    """Return 0 -> 1 -> ... -> 40, whose last vertex is dangling."""
    return _edges(np.arange(40), np.arange(1, 41))


@shape
def cycle() -> Shape:
    """Return a cycle, on which the power method without teleport does not converge."""
    return _edges(np.arange(30), np.roll(np.arange(30), -1))


@shape
def two_cycle() -> Shape:
    """Return 0 <-> 1, of period 2: -alpha is an eigenvalue, and the sign of errors alternates."""
    return _edges([0, 1], [1, 0])


@shape
def in_star() -> Shape:
    """Return a star whose leaves link to a dangling hub."""
    return _edges(np.arange(1, 200), np.zeros(199, np.int64))


@shape
def out_star() -> Shape:
    """Return a star whose hub links to dangling leaves."""
    return _edges(np.zeros(199, np.int64), np.arange(1, 200))


@shape
def complete() -> Shape:
    """Return K_12 without self-loops, with each edge in both directions."""
    source, destination = np.divmod(np.arange(144), 12)
    kept = source != destination
    return _edges(source[kept], destination[kept])


@shape
def self_loops() -> Shape:
    """Return a path with self-loops, some of them twice; the last vertex has no other out-edge."""
    source = np.concatenate([np.arange(20), np.arange(21), np.arange(0, 21, 3)])
    return _edges(source, np.concatenate([np.arange(1, 21), np.arange(21), np.arange(0, 21, 3)]))


@shape
def parallel_edges() -> Shape:
    """Return pairs repeated up to five times, in both directions, with different weights."""
    source, destination, rng = _random(8, 150, seed=1)
    return _edges(source, destination, rng.uniform(0.1, 5, 150).round(3))


@shape
def two_components() -> Shape:
    """Return a cycle and a path that are not connected."""
    return _edges([0, 1, 2, 10, 11, 12], [1, 2, 0, 11, 12, 13])


@shape
def none_dangling() -> Shape:
    """Return random edges and a cycle, so that no vertex is dangling."""
    source, destination, _ = _random(300, 900, seed=2)
    return _edges(np.concatenate([np.arange(300), source]), np.concatenate([np.roll(np.arange(300), 1), destination]))


@shape
def all_dangling() -> Shape:
    """Return edges of weight 0, so that every vertex is dangling."""
    source, destination, _ = _random(50, 120, seed=3)
    return _edges(source, destination, np.zeros(120))


@shape
def hub_at_end_of_path() -> Shape:
    """Return a path of 400 vertices to a hub of in-degree 5,001: one row is long, all others are short."""
    path_vertices, spokes = np.arange(400), np.arange(1_000, 6_000)
    source = np.concatenate([path_vertices, spokes, np.repeat(400, 2)])
    return _edges(source, np.concatenate([path_vertices + 1, np.full(5_000, 400), [0, 1_000]]))


@shape
def bipartite() -> Shape:
    """Return edges from 40 users to items, which are dangling."""
    source, destination, _ = _random(40, 400, seed=4)
    return _edges(source, 100 + destination * 2 + np.arange(400) % 2)


@shape
def grid() -> Shape:
    """Return a 30 x 30 grid with edges right and down: sparse, regular, of large diameter."""
    cells = np.arange(900).reshape(30, 30)
    source = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    return _edges(source, np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()]))


@shape
def uniform_random() -> Shape:
    """Return 5,000 random edges among 1,200 vertices."""
    source, destination, _ = _random(1_200, 5_000, seed=5)
    return _edges(source, destination)


@shape
def skewed() -> Shape:
    """Return an R-MAT graph of 2**12 ids and 30,000 edges: a few hubs, many dangling vertices."""
    rng = np.random.default_rng(6)
    quadrant = rng.choice(4, p=[0.57, 0.19, 0.19, 0.05], size=(12, 30_000))
    bits = 1 << np.arange(12)[:, None]
    return _edges(((quadrant >> 1) * bits).sum(0), ((quadrant & 1) * bits).sum(0))


@shape
def large() -> Shape:
    """Return skewed weighted edges of 64-bit ids, in the order of no column."""
    rng = np.random.default_rng(21)
    names = rng.integers(-(2**62), 2**62, 20_000)
    source, destination = (names[(20_000 * rng.random(16_384) ** 3).astype(np.int64)] for _ in range(2))
    return _edges(source, destination, rng.exponential(size=16_384))


# --- weights ------------------------------------------------------------------------------------------------------


@shape
def random_weights() -> Shape:
    """Return random edges with log-normal weights."""
    source, destination, rng = _random(400, 2_500, seed=7)
    return _edges(source, destination, rng.lognormal(sigma=2, size=2_500))


@shape
def zero_weights() -> Shape:
    """Return edges, a third of which have weight 0 or -0; vertices without other out-edges are dangling."""
    source, destination, rng = _random(200, 800, seed=8)
    weight = np.where(rng.random(800) < 1 / 3, 0.0, rng.random(800))
    weight[source < 20] = 0.0
    weight[source < 5] = -0.0
    return _edges(source, destination, weight)


@shape
def subnormal_weights() -> Shape:
    """Return weights of 5e-324 to 1e-310: 1/W overflows, w/W does not."""
    source, destination, rng = _random(100, 500, seed=9)
    return _edges(source, destination, np.maximum(10.0 ** rng.uniform(-324, -310, 500), 5e-324))


@shape
def huge_weights() -> Shape:
    """Return weights of about 1e300: products of two overflow, sums do not."""
    source, destination, rng = _random(100, 500, seed=10)
    return _edges(source, destination, rng.uniform(0.1, 9, 500) * 1e300)


@shape
def mixed_magnitudes() -> Shape:
    """Return weights of 1e-300 to 1e300 on the out-edges of a vertex."""
    source, destination, rng = _random(60, 600, seed=11)
    return _edges(source, destination, 10.0 ** rng.uniform(-300, 300, 600))


@shape
def integer_weights_past_2_53() -> Shape:
    """Return odd int64 weights, which float64 cannot represent."""
    source, destination, rng = _random(80, 300, seed=12)
    return _edges(source, destination, rng.integers(2**53, 2**62, 300) | 1)


# --- ids ----------------------------------------------------------------------------------------------------------


def _named(names: Any, seed: int, m: int = 300) -> Shape:
    """Return a random graph of these ids."""
    source, destination, _ = _random(len(names), m, seed)
    return _edges(names[source], names[destination])


@shape
def negative_ids() -> Shape:
    """Return ids of -45 to 44."""
    return _named(np.arange(-45, 45), seed=13)


@shape
def sparse_64_bit_ids() -> Shape:
    """Return ids over the whole range of int64, including its limits, -1 and 0."""
    rng = np.random.default_rng(14)
    limits = np.iinfo(np.int64)
    some = rng.integers(limits.min, limits.max, 100, endpoint=True)
    names = np.concatenate([[limits.min, limits.max, -1, 0], some])
    return _named(names, seed=15)


@shape
def uint64_ids() -> Shape:
    """Return uint64 ids below and above 2**63, up to 2**64 - 1."""
    names = np.array([0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1], np.uint64)
    return _named(names, seed=16, m=25)


@shape
def string_ids() -> Shape:
    """Return ids that are empty, accented, non-Latin or long, or that differ only in case or blanks."""
    names = ["", " ", "a", "A", "a ", "é", "e\u0301", "頂点", "x" * 500, *(f"page-{i}" for i in range(60))]
    return _named(np.array(names, object), seed=17)


@shape
def several_columns() -> Shape:
    """Return vertices of two columns, a site and a number; neither column identifies a vertex."""
    source, destination, rng = _random(60, 300, seed=18)
    sites = np.array(["north", "south", "east", "west"], object)
    frame = pd.DataFrame(
        {
            "site": sites[source % 4],
            "page": source // 4,
            "to_site": sites[destination % 4],
            "to_page": destination // 4,
            "weight": rng.random(300),
        }
    )
    names = {"source": ["site", "page"], "destination": ["to_site", "to_page"], "weight": "weight"}
    return Shape(frame, names)


@shape
def categorical_ids() -> Shape:
    """Return categorical ids with unordered and unused categories, the same in both columns."""
    names = np.array([f"c{i}" for i in range(50)], object)
    source, destination, _ = _random(50, 200, seed=19)
    dtype = pd.CategoricalDtype([*names[::-1], "unused"])
    return _edges(pd.Categorical(names[source], dtype=dtype), pd.Categorical(names[destination], dtype=dtype))


@shape
def datetime_ids() -> Shape:
    """Return days before and after 1970, and more days as isolated vertices."""
    days = pd.date_range("1969-11-30", periods=70).to_numpy()
    source, destination, _ = _random(60, 250, seed=20)
    return _edges(days[source], days[destination], vertices=pd.Series(days[40:]))
