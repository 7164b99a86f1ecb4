"""Ranks in float64 by a plain power iteration with cuSPARSE, which shares no code with prplugin."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["reference"]

TOL = 1e-12
"""Proved of exact steps, where rounding lets a step change so little."""

STEPS = 10
"""Between looks at the change."""


def reference(edges: Any, *, multi: bool, weight: str | None, alpha: float) -> Any:
    """Rank the vertices of a cuDF frame of ids from 0 on.

    Parameters
    ----------
    multi : bool
        Every row counts; else one of each pair, without its weight.

    Returns
    -------
    CuPy array
        By id; 0 where no edge has it.
    """
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    source, target = edges["src"].values, edges["dst"].values
    n = int(max(source.max(), target.max())) + 1
    if multi:
        order = cupy.argsort(target)
        columns = source[order]
        weights = cupy.ones(source.size) if weight is None else edges[weight].values[order]
        del order
    else:
        pairs = cupy.unique(target.astype(np.int64) * n + source)
        target, columns, weights = pairs // n, pairs % n, cupy.ones(pairs.size)
        del pairs
    columns = columns.astype(np.int32)
    offsets = cupy.zeros(n + 1, np.int32)
    cupy.cumsum(cupy.bincount(target, minlength=n), dtype=np.int32, out=offsets[1:])
    matrix = csr_matrix((weights, columns, offsets), shape=(n, n))

    out = cupy.bincount(columns, weights, minlength=n)
    present = (out > 0) | (offsets[1:] > offsets[:-1])
    present[columns] = True  # those of weight 0, too
    v = present / present.sum()
    share, dangling = cupy.where(out > 0, 1 / cupy.maximum(out, np.finfo(float).tiny), 0.0), out == 0

    x, change = v, np.inf
    while True:
        for _ in range(STEPS):
            before, x = x, alpha * (matrix @ (x * share) + (x * dangling).sum() * v) + (1 - alpha) * v
        last, change = change, float(cupy.abs(x - before).sum())
        if alpha / (1 - alpha) * change <= TOL or change >= last:  # at the end, or at that of float64
            return x
