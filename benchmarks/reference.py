"""Ranks in float64 by a plain power iteration with SciPy or cuSPARSE, which shares no code with prplugin."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from prplugin.types.arrays import namespace

TOL = 1e-13
"""Bound of the L1 error at which the iteration ends, if rounding in float64 permits it."""

STEPS = 10
"""Iterations between checks of the change."""


def reference(edges: Any, *, multi: bool, weight: str | None, alpha: float, teleports: Any = None) -> Any:
    """Rank a frame of dense ids in its memory space: by SciPy on the CPU, by cuSPARSE on the GPU.

    Parameters
    ----------
    multi : bool
        Whether every row counts; otherwise the graph has one edge per pair, without weights.
    teleports : NumPy or CuPy array, optional
        Ids of the personalization, of equal weight; by default all vertices.

    Returns
    -------
    NumPy or CuPy array
        Ranks by id; 0 for ids without edges.
    """
    source, target = edges["src"].values, edges["dst"].values
    xp = namespace(source)
    csr_matrix = importlib.import_module("scipy.sparse" if xp is np else "cupyx.scipy.sparse").csr_matrix
    n = int(max(source.max(), target.max())) + 1
    if multi:
        order = xp.argsort(target)
        target, columns = target[order], source[order]
        weights = xp.ones(source.size) if weight is None else edges[weight].values[order]
        del order
    else:
        pairs = xp.unique(target.astype(np.int64) * n + source)
        target, columns, weights = pairs // n, pairs % n, xp.ones(pairs.size)
        del pairs
    columns = columns.astype(np.int32)
    offsets = xp.searchsorted(target, xp.arange(n + 1)).astype(np.int32)
    matrix = csr_matrix((weights, columns, offsets), shape=(n, n))

    out = xp.bincount(columns, weights, minlength=n)
    present = (out > 0) | (offsets[1:] > offsets[:-1])
    present[columns] = True  # sources of weight 0 are vertices as well
    v = present / present.sum()
    if teleports is not None:
        v = xp.zeros(n)
        v[teleports] = 1 / len(teleports)
    inverse_out_weight, dangling = xp.where(out > 0, 1 / xp.maximum(out, np.finfo(float).tiny), 0.0), out == 0

    x, change = v, np.inf
    while True:
        for _ in range(STEPS):
            before, x = x, alpha * (matrix @ (x * inverse_out_weight) + (x * dangling).sum() * v) + (1 - alpha) * v
        last, change = change, float(xp.abs(x - before).sum())
        if alpha / (1 - alpha) * change <= TOL or change >= last:  # converged, or stagnation at rounding level
            return x
