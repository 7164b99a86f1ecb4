"""Options of a case, and a pairwise cover: every pair of values of two factors occurs in a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from conformance.shapes import SHAPES
from prplugin.stopping import STOPS

__all__ = ["FACTORS", "STEPS", "Choice", "choices", "pairwise", "periodic"]

STEPS = 7
"""Number of iterations of ``stop="iterate"``, the name used here for ``tol=0, max_iter=STEPS``."""

FACTORS: Mapping[str, Sequence[Any]] = {
    "shape": tuple(SHAPES),
    "alpha": (0.85, 0.0, 0.5, 0.99, 0.999),
    "personalization": (None, "one", "random", "dict"),
    "dangling": (None, "vector"),
    "nstart": (None, "random"),
    "directed": (True, False),
    "duplicates": ("sum", "first", "last"),
    "tol": (1e-6, 1e-10),
    "stop": (*STOPS, "iterate"),
    "scale": (1, "n"),
    "top": (None, 5),
}
"""The values of each factor, the default first."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One graph and one value of each option: a case without its method and dtype."""

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
        """Return the shape and the options that are not defaults: ``skewed-alpha=0.99+undirected``."""
        changed = {name: value for name, value in asdict(self).items() if value != FACTORS[name][0]}
        changed.pop("shape", None)
        undirected = ["undirected"] if changed.pop("directed", True) is False else []
        options = "+".join([f"{name}={value}" for name, value in changed.items()] + undirected)
        return f"{self.shape}-{options or 'defaults'}"


def choices() -> list[Choice]:
    """Return the defaults on each graph, then choices in which every pair of values of two factors occurs."""
    defaults = [Choice(shape) for shape in SHAPES]
    covered = [Choice(**row) for row in pairwise(FACTORS)]
    return list(dict.fromkeys([*defaults, *periodic(), *covered]))


def periodic() -> list[Choice]:
    """Return choices in which rounding can keep plain iterations from converging.

    On a cycle of k vertices that no edge leaves, G has k eigenvalues of modulus alpha. A rounding u per iteration adds
    up to u / (1 - alpha) there, and such a change proves no more than u / (1 - alpha)**2, 1e-10 at alpha = 0.999.
    """
    shapes = ("two-cycle", "in-star", "cycle", "two-components")
    return [Choice(shape, alpha=0.999, nstart=start, tol=1e-10) for shape in shapes for start in (None, "random")]


def pairwise(factors: Mapping[str, Sequence[Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Return few rows in which every pair of values of two factors occurs.

    Greedy (Cohen et al. 1997, "The AETG system"): start a row with an uncovered pair, then give each other factor, in
    random order, the value that covers the most new pairs.

    Returns
    -------
    list of dict
        One value per factor. Equal arguments give equal rows.
    """
    rng = np.random.default_rng(seed)
    names = list(factors)
    uncovered = dict.fromkeys(
        frozenset([(a, i), (b, j)])
        for a, b in combinations(names, 2)
        for i, j in product(range(len(factors[a])), range(len(factors[b])))
    )
    rows = []
    while uncovered:
        row = dict(next(iter(uncovered)))
        for name in rng.permutation([name for name in names if name not in row]).tolist():
            values = rng.permutation(len(factors[name])).tolist()
            new_pairs = [
                sum(frozenset([(name, value), other]) in uncovered for other in row.items()) for value in values
            ]
            row[name] = values[int(np.argmax(new_pairs))]
        for pair in combinations(row.items(), 2):
            uncovered.pop(frozenset(pair), None)
        rows.append({name: factors[name][row[name]] for name in names})
    return rows
