"""PageRank in rational arithmetic: an independent solution without rounding, for graphs of a few vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

__all__ = ["distance", "solve"]


def solve(
    n: int,
    rows: Sequence[tuple[int, int, Fraction]],
    alpha: float,
    personalization: Mapping[int, float] | None = None,
    dangling: Mapping[int, float] | None = None,
) -> list[Fraction]:
    """Solve (I - alpha * (P^T + w d^T)) x = (1 - alpha) * v by elimination.

    Floats are converted to fractions exactly. Weights of `rows` with the same endpoints add up.
    """
    a = Fraction(alpha)
    v = _normalized(n, personalization) if personalization is not None else [Fraction(1, n)] * n
    w = _normalized(n, dangling) if dangling is not None else v
    out = [Fraction(0)] * n
    for u, _, weight in rows:
        out[u] += weight
    matrix = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    for u, target, weight in rows:
        if out[u]:
            matrix[target][u] -= a * weight / out[u]
    for u in range(n):
        if not out[u]:
            for i in range(n):
                matrix[i][u] -= a * w[i]
    return _eliminate(matrix, [(1 - a) * value for value in v])


def distance(ranks: Sequence[float], exact: Sequence[Fraction], scale: int = 1) -> Fraction:
    """Return the exact L1 distance between the exact ranks and `ranks / scale`."""
    return sum((abs(Fraction(float(r)) / scale - x) for r, x in zip(ranks, exact, strict=True)), Fraction(0))


def _normalized(n: int, values: Mapping[int, float]) -> list[Fraction]:
    total = sum((Fraction(value) for value in values.values()), Fraction(0))
    return [Fraction(values.get(u, 0)) / total for u in range(n)]


def _eliminate(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Solve by Gauss-Jordan elimination, without pivoting: I - alpha * A is diagonally dominant by columns."""
    n = len(right)
    for k in range(n):
        for i in range(n):
            if i != k and matrix[i][k]:
                factor = matrix[i][k] / matrix[k][k]
                for j in range(k, n):
                    matrix[i][j] -= factor * matrix[k][j]
                right[i] -= factor * right[k]
    return [right[k] / matrix[k][k] for k in range(n)]
