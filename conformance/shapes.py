"""Graphs that a PageRank can go wrong on: each function makes a frame and the arguments that name its columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from prplugin.machine import COMPILED_FROM

__all__ = ["SHAPES", "Shape", "shape"]


class Shape(NamedTuple):
    """A frame, and the arguments of `prplugin.Graph` that go with it."""

    frame: pd.DataFrame
    arguments: dict[str, Any]


SHAPES: dict[str, Callable[[], Shape]] = {}
"""Every shape by its name."""


def shape(make: Callable[[], Shape]) -> Callable[[], Shape]:
    """Enter a function under its name; its frame is made once, for nothing may alter it."""
    kept = cache(make)
    SHAPES[make.__name__.replace("_", "-")] = kept
    return kept


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
    """0 -> 1: the least graph with a dangling vertex."""
    return _edges([0], [1])


@shape
def one_self_loop() -> Shape:
    """One vertex, whose rank is 1 whatever the options."""
    return _edges([7], [7])


@shape
def isolated() -> Shape:
    """No edges at all: x = alpha * w + (1 - alpha) * v."""
    return _edges(np.empty(0, np.int64), np.empty(0, np.int64), vertices=[4, 2, 9, 3])


@shape
def path() -> Shape:
    """0 -> 1 -> ... -> 40, dangling at the end."""
    return _edges(np.arange(40), np.arange(1, 41))


@shape
def cycle() -> Shape:
    """Periodic: without teleport the power method would turn for ever."""
    return _edges(np.arange(30), np.roll(np.arange(30), -1))


@shape
def there_and_back() -> Shape:
    """0 <-> 1: of period 2, so that -alpha is an eigenvalue, and errors change sides without end."""
    return _edges([0, 1], [1, 0])


@shape
def in_star() -> Shape:
    """Everyone points at a dangling hub."""
    return _edges(np.arange(1, 200), np.zeros(199, np.int64))


@shape
def out_star() -> Shape:
    """A hub points at everyone, and everyone dangles."""
    return _edges(np.zeros(199, np.int64), np.arange(1, 200))


@shape
def complete() -> Shape:
    """K_12 without self-loops, each edge both ways."""
    source, destination = np.divmod(np.arange(144), 12)
    kept = source != destination
    return _edges(source[kept], destination[kept])


@shape
def self_loops() -> Shape:
    """A path whose vertices also point at themselves, some twice; the last only at itself."""
    source = np.concatenate([np.arange(20), np.arange(21), np.arange(0, 21, 3)])
    return _edges(source, np.concatenate([np.arange(1, 21), np.arange(21), np.arange(0, 21, 3)]))


@shape
def parallel_edges() -> Shape:
    """Pairs repeated up to five times, in both directions, with weights that differ."""
    source, destination, rng = _random(8, 150, seed=1)
    return _edges(source, destination, rng.uniform(0.1, 5, 150).round(3))


@shape
def two_components() -> Shape:
    """A triangle and a path that know nothing of each other: the eigenvalue alpha is double."""
    return _edges([0, 1, 2, 10, 11, 12], [1, 2, 0, 11, 12, 13])


@shape
def none_dangling() -> Shape:
    """Random, and every vertex has a way on."""
    source, destination, _ = _random(300, 900, seed=2)
    return _edges(np.concatenate([np.arange(300), source]), np.concatenate([np.roll(np.arange(300), 1), destination]))


@shape
def all_dangling() -> Shape:
    """Edges of weight 0 alone, so that no vertex has an out-weight."""
    source, destination, _ = _random(50, 120, seed=3)
    return _edges(source, destination, np.zeros(120))


@shape
def hub_at_the_end_of_a_chain() -> Shape:
    """A chain of 400 into a hub with an in-degree of 5,000: one row sum is long, all others short."""
    chain, spokes = np.arange(400), np.arange(1_000, 6_000)
    source = np.concatenate([chain, spokes, np.repeat(400, 2)])
    return _edges(source, np.concatenate([chain + 1, np.full(5_000, 400), [0, 1_000]]))


@shape
def bipartite() -> Shape:
    """Forty users point at ninety items, and items at nobody."""
    source, destination, _ = _random(40, 400, seed=4)
    return _edges(source, 100 + destination * 2 + np.arange(400) % 2)


@shape
def grid() -> Shape:
    """30 x 30, right and down: sparse, regular, far across."""
    cells = np.arange(900).reshape(30, 30)
    source = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    return _edges(source, np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()]))


@shape
def uniform_random() -> Shape:
    """5,000 edges among 1,200 vertices."""
    source, destination, _ = _random(1_200, 5_000, seed=5)
    return _edges(source, destination)


@shape
def skewed() -> Shape:
    """R-MAT with the Graph500 probabilities, 2**12 vertices and 30,000 edges: a few hubs, many that dangle."""
    rng = np.random.default_rng(6)
    quadrant = rng.choice(4, p=[0.57, 0.19, 0.19, 0.05], size=(12, 30_000))
    bits = 1 << np.arange(12)[:, None]
    return _edges(((quadrant >> 1) * bits).sum(0), ((quadrant & 1) * bits).sum(0))


@shape
def large() -> Shape:
    """Skewed, weighted, ids all over 64 bits: past the size from which prplugin compiles its graph building."""
    rng = np.random.default_rng(21)
    names = rng.integers(-(2**62), 2**62, 20_000)
    source, destination = (names[(20_000 * rng.random(COMPILED_FROM) ** 3).astype(np.int64)] for _ in range(2))
    return _edges(source, destination, rng.exponential(size=COMPILED_FROM))


# --- weights ------------------------------------------------------------------------------------------------------


@shape
def random_weights() -> Shape:
    """Log-normal weights."""
    source, destination, rng = _random(400, 2_500, seed=7)
    return _edges(source, destination, rng.lognormal(sigma=2, size=2_500))


@shape
def zero_weights() -> Shape:
    """A third of the edges weigh 0, negative zero among them, and some vertices have no other: they dangle."""
    source, destination, rng = _random(200, 800, seed=8)
    weight = np.where(rng.random(800) < 1 / 3, 0.0, rng.random(800))
    weight[source < 20] = 0.0
    weight[source < 5] = -0.0
    return _edges(source, destination, weight)


@shape
def denormal_weights() -> Shape:
    """5e-324 to 1e-310: 1/W overflows, w/W does not."""
    source, destination, rng = _random(100, 500, seed=9)
    return _edges(source, destination, np.maximum(10.0 ** rng.uniform(-324, -310, 500), 5e-324))


@shape
def huge_weights() -> Shape:
    """About 1e300: products of two of them overflow, their sums do not."""
    source, destination, rng = _random(100, 500, seed=10)
    return _edges(source, destination, rng.uniform(0.1, 9, 500) * 1e300)


@shape
def mixed_magnitudes() -> Shape:
    """1e-300 to 1e300 on one vertex."""
    source, destination, rng = _random(60, 600, seed=11)
    return _edges(source, destination, 10.0 ** rng.uniform(-300, 300, 600))


@shape
def integer_weights_past_2_53() -> Shape:
    """Odd int64 weights that no float64 holds."""
    source, destination, rng = _random(80, 300, seed=12)
    return _edges(source, destination, rng.integers(2**53, 2**62, 300) | 1)


# --- ids ----------------------------------------------------------------------------------------------------------


def _named(names: Any, seed: int, m: int = 300) -> Shape:
    """Return the vertices of a random graph these names."""
    source, destination, _ = _random(len(names), m, seed)
    return _edges(names[source], names[destination])


@shape
def negative_ids() -> Shape:
    """-45 to 44."""
    return _named(np.arange(-45, 45), seed=13)


@shape
def sparse_64_bit_ids() -> Shape:
    """All over int64, with its least, its greatest, -1 and 0."""
    rng = np.random.default_rng(14)
    limits = np.iinfo(np.int64)
    some = rng.integers(limits.min, limits.max, 100, endpoint=True)
    names = np.concatenate([[limits.min, limits.max, -1, 0], some])
    return _named(names, seed=15)


@shape
def uint64_ids() -> Shape:
    """On both sides of 2**63, up to 2**64 - 1."""
    names = np.array([0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1], np.uint64)
    return _named(names, seed=16, m=25)


@shape
def string_ids() -> Shape:
    """Empty, accented, non-Latin, long, and such as differ in case or blanks alone."""
    names = ["", " ", "a", "A", "a ", "é", "e\u0301", "頂点", "x" * 500, *(f"page-{i}" for i in range(60))]
    return _named(np.array(names, object), seed=17)


@shape
def several_columns() -> Shape:
    """A vertex is a site and a number; neither alone tells vertices apart."""
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
    """One set of categories at both ends, out of order and with unused ones."""
    names = np.array([f"c{i}" for i in range(50)], object)
    source, destination, _ = _random(50, 200, seed=19)
    dtype = pd.CategoricalDtype([*names[::-1], "unused"])
    return _edges(pd.Categorical(names[source], dtype=dtype), pd.Categorical(names[destination], dtype=dtype))


@shape
def datetime_ids() -> Shape:
    """Days before and after 1970, and more of them that no edge names."""
    days = pd.date_range("1969-11-30", periods=70).to_numpy()
    source, destination, _ = _random(60, 250, seed=20)
    return _edges(days[source], days[destination], vertices=pd.Series(days[40:]))
