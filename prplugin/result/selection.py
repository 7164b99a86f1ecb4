"""Selection of the ranks to return: the highest, those of given vertices, all but excluded ones."""

from __future__ import annotations

import numpy as np

from prplugin.types.array_module import Ranks
from prplugin.types.arrays import MOST_IN_A_BLOCK, highest, is_host, namespace
from prplugin.types.edges import Integers

ROW_BY_ROW_FROM = 1 << 12
"""Number of vertices from which the rows of a matrix on the host are searched individually, in the cache."""


def highest_of_each(ranks: Ranks, k: int) -> Integers:
    """Return the positions of the k highest of each row of a matrix, as `highest` does of a vector."""
    xp = namespace(ranks)
    count, n = ranks.shape
    if k >= n:
        return xp.argsort(-ranks, axis=1, kind="stable")
    if is_host(ranks) and n >= ROW_BY_ROW_FROM:
        return np.stack([highest(row, k) for row in ranks])
    # The k-th highest of the maxima of blocks is at most the k-th highest of all, and few entries reach it. The entries
    # of a block are far apart, since neighbours often have similar ranks.
    block = max(1, min(MOST_IN_A_BLOCK, n // (4 * k)))
    threshold = xp.sort(ranks[:, : n // block * block].reshape(count, block, -1).max(axis=1), axis=1)[:, -k]
    # Without zeros: they are many if few vertices can be reached from a seed.
    rows, columns = xp.nonzero((ranks >= threshold[:, None]) & (ranks > 0))
    order = xp.lexsort(xp.stack([columns, -ranks[rows, columns], rows]))
    begins = xp.searchsorted(rows, xp.arange(count + 1))
    found: Integers = xp.append(columns[order], xp.zeros(k, columns.dtype))[begins[:-1, None] + xp.arange(k)]
    for row in xp.flatnonzero(begins[1:] - begins[:-1] < k).tolist():
        found[row] = highest(ranks[row], k)
    return found


def select_ranks(
    ranks: Ranks, selected: Integers | None, top: int | None, excluded: tuple[Integers, Integers] | None = None
) -> tuple[Ranks, Integers | None]:
    """Return the ranks of the selected vertices, or the `top` highest of them, and their positions, None for all.

    `excluded`: Row and position of ranks that are left out. Their position becomes -1, and their rank 0.
    """
    xp = namespace(ranks)
    rows = None
    if excluded is not None:
        rows = xp.tile(xp.arange(ranks.shape[1]), (len(ranks), 1))
        ranks = ranks.copy()
        ranks[excluded], rows[excluded] = -1.0, -1
    if selected is not None:
        selected = xp.asarray(selected)
        ranks = ranks[:, selected]
        rows = xp.broadcast_to(selected, ranks.shape) if rows is None else rows[:, selected]
    if top is not None:
        highest = highest_of_each(ranks, top)
        ranks = xp.take_along_axis(ranks, highest, axis=1)
        rows = highest if rows is None else xp.take_along_axis(rows, highest, axis=1)
    return ranks if excluded is None else xp.maximum(ranks, 0.0), rows


def remaining(n: int, among: Integers | None, excluded: Integers | None) -> Integers | None:
    """Return the positions in `among`, or all, without the excluded ones; None for all n."""
    if excluded is None:
        return among
    kept = namespace(excluded).ones(n, np.bool_)
    kept[excluded] = False
    found: Integers = namespace(kept).flatnonzero(kept) if among is None else among[kept[among]]
    return found
