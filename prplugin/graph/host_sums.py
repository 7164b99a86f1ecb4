"""Sums by group on the CPU, compiled by Numba."""

from __future__ import annotations

import numpy as np

from prplugin.graph.edges import Floats, Integers
from prplugin.graph.host_memory import compiled
from prplugin.graph.sums import compensated_chain

__all__ = ["compensated_sums"]


def compensated_sums(groups: Integers, terms: Floats, n: int) -> tuple[Floats, int]:
    """Sum non-negative terms by group, in the order of the rows, with Neumaier's compensation.

    Returns
    -------
    sums : array of n float64
    chain : int
        How many roundings a sum is worth.
    """
    sums = np.zeros(n)
    errors = np.zeros(n)
    _add_compensated(groups, terms, sums, errors)
    with np.errstate(invalid="ignore"):  # a sum past range is infinite, and its error not a number
        np.add(sums, errors, out=sums)
    return sums, compensated_chain(groups.size)


@compiled
def _add_compensated(groups, terms, sums, errors):
    """Add each term to its group's sum, and what that addition rounded away to the group's error."""
    for edge in range(groups.size):
        group = groups[edge]
        before = sums[group]
        term = terms[edge]
        after = before + term
        sums[group] = after
        if before >= term:
            errors[group] += (before - after) + term
        else:
            errors[group] += (term - after) + before
