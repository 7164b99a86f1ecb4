"""Largest tolerance of each library that attains each required error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.peers._cases import ASKED, Case
from benchmarks.peers._libraries import Library

LOOSEST = 0.5
PATIENCE = 4
"""Number of halvings without a smaller error after which the search ends."""


class PreparedCase(NamedTuple):
    """Case with its frame and its reference ranks by id."""

    case: Case
    frame: pd.DataFrame
    exact: pd.Series


class Fit(NamedTuple):
    """Tolerance with its number of passes over the edges, if known, and its measured error."""

    tol: float
    passes: int | None
    error: float


@dataclass(frozen=True)
class Fitted:
    """Library with the graph it built for a case, and its tolerances.

    Attributes
    ----------
    fits : dict
        Fit by required error; the fit of least error if the required error is not attained.
    """

    library: Library
    graph: Any
    fits: dict[float, Fit]


def prepare_case(case: Case) -> PreparedCase:
    """Build the frame of a case and compute its reference ranks."""
    dense = case.dense()
    return PreparedCase(case, case.frame(dense), case.exact(dense))


def fit_tolerances(library: Library, prepared: PreparedCase) -> Fitted:
    """Build the library's graph and find its tolerance for each required error.

    Raises
    ------
    ValueError
        If the library's vertices differ from those of the case.
    """
    ids, graph = library.build(prepared.frame)
    places = prepared.exact.index.get_indexer(pd.Index(ids))
    if len(ids) != len(prepared.exact) or (places < 0).any():
        raise ValueError(f"{len(ids)} vertices, not the {len(prepared.exact)} of the graph")
    exact = prepared.exact.to_numpy()[places]

    def fit(tol: float) -> Fit:
        ranks, passes = library.rank(graph, prepared.case.alpha, tol)
        return Fit(tol, passes, float(np.abs(ranks - exact).sum()))

    return Fitted(library, graph, {asked: _loosest(fit, asked, library.tolerance) for asked in ASKED})


def _loosest(fit: Callable[[float], Fit], asked: float, adjustable: bool) -> Fit:
    """Return the fit of the largest tolerance that attains the error, by doubling or halving it."""
    best = fit(asked)
    if not adjustable:
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
