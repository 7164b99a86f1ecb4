"""A case made ready, and sides made ready for it: each with the loosest tolerance that reaches each error asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.peers._cases import ASKED, Case
from benchmarks.peers._sides import Side

__all__ = ["Fit", "Fitted", "Posed", "fitted", "posed"]

LOOSEST = 0.5
PATIENCE = 4
"""Halvings without a smaller error, after which no more are tried."""


class Posed(NamedTuple):
    """A case, its frame, and its exact ranks by id."""

    case: Case
    frame: pd.DataFrame
    exact: pd.Series


class Fit(NamedTuple):
    """A tolerance, the passes it takes, where they are known, and the error it leaves."""

    tol: float
    passes: int | None
    error: float


@dataclass(frozen=True)
class Fitted:
    """A side with its graph of a case.

    Attributes
    ----------
    fits : dict
        By error asked; the least error that could be had, where that is larger.
    """

    side: Side
    graph: Any
    fits: dict[float, Fit]


def posed(case: Case) -> Posed:
    """Make the graph and rank it."""
    dense = case.dense()
    return Posed(case, case.frame(dense), case.exact(dense))


def fitted(side: Side, here: Posed) -> Fitted:
    """Build the side's graph, and find its tolerances.

    Raises
    ------
    ValueError
        If it has other vertices than the case.
    """
    ids, graph = side.build(here.frame)
    places = here.exact.index.get_indexer(pd.Index(ids))
    if len(ids) != len(here.exact) or (places < 0).any():
        raise ValueError(f"{len(ids)} vertices, not the {len(here.exact)} of the graph")
    exact = here.exact.to_numpy()[places]

    def fit(tol: float) -> Fit:
        ranks, passes = side.rank(graph, here.case.alpha, tol)
        return Fit(tol, passes, float(np.abs(ranks - exact).sum()))

    return Fitted(side, graph, {asked: _loosest(fit, asked, side.tolerance) for asked in ASKED})


def _loosest(fit: Callable[[float], Fit], asked: float, heeded: bool) -> Fit:
    """Double or halve the tolerance, from the error asked on, unless it is not heeded."""
    best = fit(asked)
    if not heeded:
        return best
    if best.error <= asked:
        while best.tol < LOOSEST and (looser := fit(2 * best.tol)).error <= asked:
            best = looser
        return best
    tol, tries = asked, PATIENCE
    while best.error > asked and tries:
        tol /= 2
        tighter = fit(tol)
        best, tries = (tighter, PATIENCE) if tighter.error < best.error else (best, tries - 1)
    return best
