"""Seeded graph generators: skewed, uniform and regular graphs with dense or scattered integer ids.

The graphs are R-MAT graphs, which include Kronecker graphs (`rmat`); uniformly random graphs (`uniform`); graphs with
the degrees of a web graph (`web`) or of a retweet network (`retweets`); graphs with the degrees, dangling vertices and
locality of a web crawl (`crawl`) or with stronger locality (`local_web`); bipartite graphs (`purchases`); and grids
(`grid`, `cube`).

Random numbers are integer hashes of a counter and the seed, so that a pandas frame on the CPU and a cuDF frame on the
GPU contain the same graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from prplugin.types.arrays import MemorySpace, namespace


def rmat(
    scale: int, edge_factor: int = 16, seed: int = 1, memory_space: MemorySpace = "host", *, a: float = 0.57,
    b: float = 0.19,
) -> Any:  # fmt: skip
    """Generate an R-MAT graph with 2**scale vertices in random order, c = b, duplicates kept.

    D. Chakrabarti, Y. Zhan and C. Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004; the probabilities
    are by default those of Graph 500.
    """
    return rmat_part(scale, 0, edge_factor << scale, edge_factor, seed, memory_space, a=a, b=b)


def rmat_part(
    scale: int, first: int, last: int, edge_factor: int = 16, seed: int = 1, memory_space: MemorySpace = "host", *,
    a: float = 0.57, b: float = 0.19,
) -> Any:  # fmt: skip
    """Generate the edges `first` to `last` - 1 of `rmat`; all parts together are the same graph."""
    xp = _array_module(memory_space)
    m, n, count = edge_factor << scale, 1 << scale, last - first
    source, target = xp.zeros(count, np.int64), xp.zeros(count, np.int64)
    one, two, three = (np.uint64(int(fraction * 2**32)) for fraction in (a, a + b, a + 2 * b))
    for level in range(scale):
        quadrant = _random(xp, level * m + first, count, seed) >> np.uint64(32)
        source = 2 * source + (quadrant >= two)
        target = 2 * target + (((quadrant >= one) & (quadrant < two)) | (quadrant >= three))
    order = xp.argsort(_random(xp, scale * m, n, seed))
    return frame_of(order[source], order[target])


def uniform(n: int, m: int, seed: int = 1, memory_space: MemorySpace = "host") -> Any:
    """Draw both endpoints of every edge uniformly from n < 2**32 vertices."""
    return uniform_part(n, m, 0, m, seed, memory_space)


def uniform_part(n: int, m: int, first: int, last: int, seed: int = 1, memory_space: MemorySpace = "host") -> Any:
    """Draw the edges `first` to `last` - 1 of `uniform`; all parts together are the same graph."""
    xp = _array_module(memory_space)
    return frame_of(*(_uniform(xp, begin + first, last - first, n, seed) for begin in (0, m)))


def web(n: int, m: int, seed: int = 1, memory_space: MemorySpace = "host") -> Any:
    """Draw a graph of n < 2**32 vertices with the degrees of a web crawl, ids in random order, duplicates kept.

    The frequency of in-degree k is approximately proportional to k**-2.3, the frequency of out-degree k to k**-3.
    """
    xp = _array_module(memory_space)
    target = _tiered(xp, 0, m, n, seed, bits=2, shift=2, hubs=16)
    source = _tiered(xp, 2 * m, m, n, seed, bits=1, shift=2, hubs=16)
    popular, busy = (xp.argsort(_random(xp, 4 * m + first, n, seed)) for first in (0, n))
    return frame_of(busy[source], popular[target])


def retweets(n: int, m: int, seed: int = 1, memory_space: MemorySpace = "host") -> Any:
    """Draw a retweet network of n < 2**32 users, with the column `retweets` of weights.

    An edge goes from the retweeting user to the author. The frequency of in-degree k is proportional to k**-2.5, the
    frequency of out-degree k to k**-3, and the frequency of weight w to 2**-w.
    """
    xp = _array_module(memory_space)
    author = _tiered(xp, 0, m, n, seed, bits=1, shift=3, hubs=4)
    user = _tiered(xp, 2 * m, m, n, seed, bits=1, shift=2, hubs=4)
    popular, busy = (xp.argsort(_random(xp, 4 * m + first, n, seed)) for first in (0, n))
    coins = _random(xp, 4 * m + 2 * n, m, seed)
    counts, again = xp.ones(m, np.int64), xp.ones(m, bool)
    for flip in range(32):
        again &= (coins >> np.uint64(flip)) & np.uint64(1) != 0
        counts += again
    return frame_of(busy[user], popular[author]).assign(retweets=counts)


def crawl(n: int, m: int, seed: int = 1, memory_space: MemorySpace = "host") -> Any:
    """Draw a graph of n < 2**32 vertices and m >= n edges like a web crawl in the order of its addresses.

    Degrees, dangling vertices and distances between the endpoints are fitted to cnr-2000 and web-NotreDame, and to the
    statement of Wu et al. (2010) that over half of the rows have less than two entries. Duplicates are kept.

    - Every vertex has an in-edge from a vertex nearby. Half of the vertices have no other in-edge.
    - The other half is tier 0. Each further tier is a subset of the previous one, an eighth of its size and spread
      evenly, since all pages of a site link to a few of them. 7/8 of the remaining edges go to tier 1 or later; of the
      edges that go to tier k > 0 or later, 3/4 go to a later tier. 7/8 of the targets are near the source, at distances
      scaled by the tier; the others are uniform in the tier.
    - One of every four vertices is dangling; these have a single in-edge. One of every four blocks of 64 vertices gets
      3/4 of their out-edges, and its part of the rest.
    """
    if m < n:
        raise ValueError(f"m={m:,} edges are fewer than the n={n:,} vertices.")
    xp = _array_module(memory_space)
    numbers = _Numbers(xp, seed)
    tiers = [2 * xp.arange(n // 2) + numbers.below(2, n // 2)]
    while (left := tiers[-1].size // 8) >= 32:
        tiers.append(tiers[-1][8 * xp.arange(left) + numbers.below(8, left)])
    pairs = 2 * xp.arange(n // 4) + numbers.below(2, n // 4)
    links = xp.ones(n, bool)
    links[4 * pairs + 1 - tiers[0][pairs]] = False  # the vertex of the pair that is in no tier
    linking = xp.flatnonzero(links)

    near = xp.arange(n) * linking.size // n + numbers.distances(n)
    found_by = linking[xp.clip(near, 0, linking.size - 1)]

    count = m - n
    place = numbers.below(linking.size, count)
    busy = numbers.below(4, linking.size // 256 + 1)
    moved = place // 256 * 256 + 64 * busy[place // 256] + place % 64
    place = xp.where((numbers.below(4, count) > 0) & (moved < linking.size), moved, place)
    del moved
    source = linking[place]
    del place

    tier, later = xp.zeros(count, np.int64), numbers.below(8, count) > 0
    for _ in tiers[1:]:
        tier += later
        later &= numbers.below(4, count) > 0
    del later
    sizes = xp.asarray([vertices.size for vertices in tiers])
    # Widths of the blocks of ids that contain one vertex of a tier each.
    widths = xp.asarray([2 * 8**number for number in range(len(tiers))])
    size = sizes[tier]
    near = xp.minimum(source // widths[tier], size - 1) + numbers.distances(count)
    far = (near < 0) | (near >= size) | (numbers.below(8, count) == 0)
    place = xp.where(far, (numbers.fractions(count) * size).astype(np.int64), near)
    del near, far, size
    target = xp.concatenate(tiers)[(xp.cumsum(sizes) - sizes)[tier] + place]
    return frame_of(xp.concatenate([found_by, source]), xp.concatenate([xp.arange(n), target]))


def local_web(n: int, m: int, seed: int = 1, memory_space: MemorySpace = "host") -> Any:
    """Draw a graph of n < 2**32 vertices with the locality of a web crawl in the order of its addresses.

    Sources are uniform and sorted. 85 % of the targets are at an exponential distance of mean 60 from their source, to
    either side; the frequency of vertex i among the others is proportional to i**(-5/6).
    """
    xp = _array_module(memory_space)
    source = xp.sort(_uniform(xp, 0, m, n, seed))
    drawn = _random(xp, m, m, seed)
    distances = xp.asarray(np.floor(-60 * np.log1p(-(np.arange(1 << 16) + 0.5) / (1 << 16))).astype(np.int64))
    distance = distances[(drawn >> np.uint64(48)).astype(np.int64)]
    near = source + xp.where(drawn & np.uint64(1) != 0, distance, -distance)
    third = _fraction(xp, 2 * m, m, seed)
    third = third * third * third
    far = (n * (third * third)).astype(np.int64)
    is_near = (drawn & np.uint64(0xFFFFFFFF)) >> np.uint64(1) < np.uint64(int(0.85 * 2**31))
    return frame_of(source, xp.where(is_near & (near >= 0) & (near < n), near, far))


def purchases(users: int, items: int, m: int, seed: int = 1, memory_space: MemorySpace = "host") -> Any:
    """Draw edges from uniform users to items; the frequency of item i is proportional to i**(-2/3)."""
    xp = _array_module(memory_space)
    fraction = _fraction(xp, m, m, seed)
    return frame_of(
        _uniform(xp, 0, m, users, seed), users + (items * (fraction * fraction * fraction)).astype(np.int64)
    )


def cube(side: int, memory_space: MemorySpace = "host") -> Any:
    """Return a cubic grid with one edge for each pair of neighbours."""
    xp = _array_module(memory_space)
    places = xp.arange(side**3).reshape(side, side, side)
    one = xp.concatenate([places[:-1].ravel(), places[:, :-1].ravel(), places[:, :, :-1].ravel()])
    other = xp.concatenate([places[1:].ravel(), places[:, 1:].ravel(), places[:, :, 1:].ravel()])
    return frame_of(one, other)


def grid(side: int) -> pd.DataFrame:
    """Return a square grid with edges in both directions between neighbours."""
    places = np.arange(side * side).reshape(side, side)
    one = np.concatenate([places[:, :-1].ravel(), places[:-1].ravel()])
    other = np.concatenate([places[:, 1:].ravel(), places[1:].ravel()])
    return pd.DataFrame({"src": np.concatenate([one, other]), "dst": np.concatenate([other, one])})


def scattered(edges: Any, seed: int = 2) -> Any:
    """Replace dense ids by ids scattered over 62 bits."""
    source, target = edges["src"].values, edges["dst"].values
    ids = scattered_ids(int(max(source.max(), target.max())) + 1, seed, namespace(source))
    return frame_of(ids[source], ids[target])


def scattered_ids(n: int, seed: int = 2, xp: Any = np) -> Any:
    """Return n distinct ids from -2**61 to 2**61 - 1 in random order."""
    return _random(xp, 0, n, seed, bits=62).astype(np.int64) - 2**61


def weighted(edges: Any, seed: int = 3) -> Any:
    """Add a column of weights between 1 and 2."""
    xp = namespace(edges["src"].values)
    return edges.assign(weight=1 + (_random(xp, 0, len(edges), seed) >> np.uint64(12)) * 2.0**-52)


def _tiered(xp: Any, first: int, count: int, n: int, seed: int, bits: int, shift: int, hubs: int) -> Any:
    """Draw vertices with frequencies that decrease with their number; uses 2 * `count` random numbers.

    A draw starts with all n vertices and restricts them to the first 2**-shift of them with probability
    q = 1 - 2**-bits, repeatedly, while at least `hubs` remain. The frequency of vertex i is then approximately
    proportional to i**-s, s = 1 + log2(q) / shift, and the frequency of degree k to k**-(1 + 1 / s).
    """
    coins = _random(xp, first, count, seed)
    size, active = xp.full(count, n, np.uint64), xp.ones(count, bool)
    remaining = n >> shift
    while remaining >= hubs:
        active &= coins & np.uint64(2**bits - 1) != 0
        coins >>= np.uint64(bits)
        size[active] = remaining
        remaining >>= shift
    place = (_random(xp, first + count, count, seed) >> np.uint64(32)) * size
    return (place >> np.uint64(32)).astype(np.int64)


class _Numbers:
    """Successive random numbers of a seed."""

    def __init__(self, xp: Any, seed: int) -> None:
        self._xp, self._seed, self._first = xp, seed, 0

    def fractions(self, count: int) -> Any:
        """Draw multiples of 2**-32 from [0, 1)."""
        self._first += count
        return _fraction(self._xp, self._first - count, count, self._seed)

    def below(self, n: int, count: int) -> Any:
        """Draw from n < 2**32 integers."""
        self._first += count
        return _uniform(self._xp, self._first - count, count, n, self._seed)

    def distances(self, count: int) -> Any:
        """Draw signed distances below 2**k, k from 1 to 6 with equal probabilities."""
        distance = self.below(64, count) >> self.below(6, count)
        return self._xp.where(self.below(2, count) > 0, distance, -distance)


def _uniform(xp: Any, first: int, count: int, n: int, seed: int) -> Any:
    """Draw from n < 2**32 vertices."""
    return (((_random(xp, first, count, seed) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)


def _fraction(xp: Any, first: int, count: int, seed: int) -> Any:
    """Draw multiples of 2**-32 from [0, 1)."""
    return (_random(xp, first, count, seed) >> np.uint64(32)) * 2.0**-32


def _random(xp: Any, first: int, count: int, seed: int, bits: int = 64) -> Any:
    """Return the random numbers `first` to `first + count` - 1 by the finalizer of splitmix64, a bijection."""
    kept = np.uint64(2**bits - 1)
    z = (xp.arange(first, first + count, dtype=np.uint64) + np.uint64(seed << 48)) * np.uint64(
        0x9E3779B97F4A7C15
    ) & kept
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9) & kept
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB) & kept
    return z ^ (z >> np.uint64(31))


def _array_module(memory_space: MemorySpace) -> Any:
    if memory_space == "host":
        return np
    import cupy  # lazy import; the caller requested the GPU

    return cupy


def frame_of(source: Any, target: Any) -> Any:
    """Return a frame with the columns `src` and `dst`, of pandas or of cuDF."""
    if namespace(source) is np:
        return pd.DataFrame({"src": source, "dst": target})
    import cudf  # lazy import; the caller requested the GPU

    return cudf.DataFrame({"src": source, "dst": target})
