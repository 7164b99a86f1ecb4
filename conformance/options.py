"""The options of a case, and a choice of cases in which every two values of any two factors meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from conformance.shapes import SHAPES

__all__ = ["FACTORS", "STEPS", "Choice", "choices", "pairwise", "periodic"]

STEPS = 7
"""``stop="iterate"`` here stands for ``tol=0, max_iter=STEPS``: the STEPS-th iterate of the power method."""

FACTORS: Mapping[str, Sequence[Any]] = {
    "shape": tuple(SHAPES),
    "alpha": (0.85, 0.0, 0.5, 0.99, 0.999),
    "personalization": (None, "one", "random", "dict"),
    "dangling": (None, "vector"),
    "nstart": (None, "random"),
    "directed": (True, False),
    "duplicates": ("sum", "first", "last"),
    "tol": (1e-6, 1e-10),
    "stop": ("error", "delta", "vertex", "networkx", "iterate"),
    "scale": (1, "n"),
    "top": (None, 5),
}
"""The values of each factor, the default first."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One graph and one value of each option: everything about a case but the method and the type of its result."""

    shape: str
    alpha: float = 0.85
    personalization: str | None = None
    dangling: str | None = None
    nstart: str | None = None
    directed: bool = True
    duplicates: str = "sum"
    tol: float = 1e-6
    stop: str = "error"
    scale: int | str = 1
    top: int | None = None

    def __str__(self) -> str:
        """Spell out the shape, and what differs from the defaults: ``skewed-alpha=0.99+undirected``."""
        changed = {name: value for name, value in asdict(self).items() if value != FACTORS[name][0]}
        changed.pop("shape", None)
        undirected = ["undirected"] if changed.pop("directed", True) is False else []
        options = "+".join([f"{name}={value}" for name, value in changed.items()] + undirected)
        return f"{self.shape}-{options or 'defaults'}"


def choices() -> list[Choice]:
    """Return graphs and options so that every two values of any two factors meet, after the defaults on each graph."""
    defaults = [Choice(shape) for shape in SHAPES]
    covered = [Choice(**row) for row in pairwise(FACTORS)]
    return list(dict.fromkeys([*defaults, *periodic(), *covered]))


def periodic() -> list[Choice]:
    """Return the cases in which rounding can keep plain power steps turning in a circle.

    On a cycle of k vertices that nothing leaves, G has k eigenvalues of size alpha. One rounding u a step adds up to
    u / (1 - alpha) in those, and a change of that size proves no more than u / (1 - alpha)**2: 1e-10 at alpha = 0.999.
    """
    shapes = ("there-and-back", "in-star", "cycle", "two-components")
    return [Choice(shape, alpha=0.999, nstart=start, tol=1e-10) for shape in shapes for start in (None, "random")]


def pairwise(factors: Mapping[str, Sequence[Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Choose rows so that every two values of any two factors meet in one, and few rows do.

    Greedy (Cohen and others 1997, "The AETG system"): start a row with a pair that has not met, then give each other
    factor, in random order, the value that meets the most values in the row for the first time.

    Returns
    -------
    list of dict
        A value of each factor. The same for the same arguments.
    """
    rng = np.random.default_rng(seed)
    names = list(factors)
    waiting = dict.fromkeys(
        frozenset([(a, i), (b, j)])
        for a, b in combinations(names, 2)
        for i, j in product(range(len(factors[a])), range(len(factors[b])))
    )
    rows = []
    while waiting:
        row = dict(next(iter(waiting)))
        for name in rng.permutation([name for name in names if name not in row]).tolist():
            values = rng.permutation(len(factors[name])).tolist()
            news = [sum(frozenset([(name, value), other]) in waiting for other in row.items()) for value in values]
            row[name] = values[int(np.argmax(news))]
        for met in combinations(row.items(), 2):
            waiting.pop(frozenset(met), None)
        rows.append({name: factors[name][row[name]] for name in names})
    return rows
