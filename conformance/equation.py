"""The PageRank equation of a frame and options, in extended precision, read without code of prplugin.

x = alpha * (P^T x + D(x) * w) + (1 - alpha) * v. P_uv is the weight from u to v divided by the out-weight of u, and
D(x) the dangling mass.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["EPS", "Equation", "Extended", "equation", "normalized_weights", "with_vectors"]

Extended = NDArray[np.longdouble]

EPS = float(np.finfo(np.longdouble).eps)
"""Twice the unit roundoff of the references: 2**-63 for the long doubles of the x87, 2**-52 if they are doubles."""


@dataclass(frozen=True, eq=False)
class Equation:
    """One PageRank equation.

    Attributes
    ----------
    vertices : list
        Plain Python ids in the order of results; tuples if a vertex has several columns.
    source, target : arrays of m positions
        Parallel edges are separate entries.
    normalized_weight : array of m
        Entry of P per edge.
    dangling : array of n bool
        True for vertices of out-weight 0.
    alpha : float
    v, w, start : arrays of n, of sum 1
    """

    vertices: list[Hashable]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    normalized_weight: Extended
    dangling: NDArray[np.bool_]
    alpha: float
    v: Extended
    w: Extended
    start: Extended

    @property
    def n(self) -> int:
        """Return the number of vertices."""
        return len(self.vertices)

    @property
    def rounding_depth(self) -> int:
        """Return the maximum number of roundings from x to ||G x - x||, if every sum is a plain loop.

        A weight is rounded, scaled and summed over the out-edges of its source; the quotient is multiplied by x and
        summed over the in-edges of its target. Or a rank is summed over dangling vertices and multiplied by w, which is
        divided by a sum over all vertices. Then follow the product with alpha, two additions, the difference, and the
        sum over all vertices.
        """
        out_degree = np.bincount(self.source, minlength=1).max()
        in_degree = np.bincount(self.target, minlength=1).max()
        return int(max(out_degree + in_degree, 2 * self.n) + self.n + 12)

    def step(self, x: Extended) -> Extended:
        """Return G x by scattering: each edge adds to its target, in the order of the rows of the frame."""
        sums = np.zeros(self.n, np.longdouble)
        np.add.at(sums, self.target, x[self.source] * self.normalized_weight)
        alpha = np.longdouble(self.alpha)
        return alpha * (sums + x[self.dangling].sum() * self.w) + (1 - alpha) * self.v


def equation(
    frame: pd.DataFrame,
    *,
    source: str | list[str] = "src",
    destination: str | list[str] = "dst",
    weight: str | None = None,
    vertices: Iterable[Hashable] | None = None,
    directed: bool = True,
    duplicates: str = "sum",
    alpha: float = 0.85,
) -> Equation:
    """Return the equation of a frame with uniform vectors. The arguments are those of `prplugin.pagerank`."""
    tails, heads = _ids(frame, source), _ids(frame, destination)
    ordered = list(dict.fromkeys([vertex for row in zip(tails, heads, strict=True) for vertex in row]))
    ordered = list(dict.fromkeys([*ordered, *([] if vertices is None else pd.Series(vertices).tolist())]))
    if all(isinstance(vertex, int) for vertex in ordered):
        ordered.sort()
    position = {vertex: index for index, vertex in enumerate(ordered)}
    weights = [1] * len(frame) if weight is None else frame[weight].tolist()
    rows = [(position[a], position[b], value) for a, b, value in zip(tails, heads, weights, strict=True)]
    if duplicates != "sum":
        rows = _drop_duplicates(rows, duplicates, directed)
    if not directed:
        rows += [(b, a, value) for a, b, value in rows if a != b]
    sources = np.array([a for a, _, _ in rows], np.int64)
    normalized_weight, has_out_weight = normalized_weights(sources, [value for _, _, value in rows], len(ordered))
    uniform = np.full(len(ordered), 1 / np.longdouble(len(ordered)))
    targets = np.array([b for _, b, _ in rows], np.int64)
    return Equation(ordered, sources, targets, normalized_weight, ~has_out_weight, alpha, uniform, uniform, uniform)


def normalized_weights(
    source: NDArray[np.int64], weights: Iterable[float] | NDArray[Any], n: int
) -> tuple[Extended, NDArray[np.bool_]]:
    """Return w / W per edge, and which vertices have a positive out-weight.

    The weights of a source are first divided by their maximum, so that no sum overflows or is subnormal.
    """
    weight: Extended
    if isinstance(weights, np.ndarray):
        weight = weights.astype(np.longdouble)
    else:  # one by one: NumPy has no integers of more than 64 bits
        weight = np.array([np.longdouble(value) for value in weights], np.longdouble)
    largest = np.zeros(n, np.longdouble)
    np.maximum.at(largest, source, weight)
    has_out_weight = largest > 0
    scaled = weight / np.where(has_out_weight, largest, 1)[source]
    out_weight = np.zeros(n, np.longdouble)
    np.add.at(out_weight, source, scaled)
    return scaled / np.where(has_out_weight, out_weight, 1)[source], has_out_weight


def with_vectors(
    equation: Equation,
    personalization: Mapping[Any, float] | None,
    dangling: Mapping[Any, float] | None,
    nstart: Mapping[Any, float] | None,
) -> Equation:
    """Return the equation with vectors of values by vertex, divided by their sum; w is v unless given."""
    position = {vertex: index for index, vertex in enumerate(equation.vertices)}

    def dense_vector(given: Mapping[Any, float] | None, default: Extended) -> Extended:
        if given is None:
            return default
        vector = np.zeros(len(position), np.longdouble)
        for vertex, value in given.items():
            vector[position[vertex]] = value
        return vector / vector.sum()

    v = dense_vector(personalization, equation.v)
    return replace(equation, v=v, w=dense_vector(dangling, v), start=dense_vector(nstart, equation.start))


def _ids(frame: pd.DataFrame, columns: str | list[str]) -> list[Hashable]:
    if isinstance(columns, str):
        return frame[columns].tolist()
    return list(zip(*(frame[column].tolist() for column in columns), strict=True))


def _drop_duplicates(rows: list[tuple[int, int, float]], keep: str, directed: bool) -> list[tuple[int, int, float]]:
    kept: dict[tuple[int, int], tuple[int, int, float]] = {}
    for a, b, value in rows:
        pair = (a, b) if directed else (min(a, b), max(a, b))
        if keep == "last" or pair not in kept:
            kept[pair] = (a, b, value)
    return list(kept.values())
