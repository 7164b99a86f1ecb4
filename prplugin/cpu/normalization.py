"""Normalization by out-weights on the CPU; `prplugin.methods.engines.gpu_pull` does it on the GPU."""

from __future__ import annotations

import numpy as np

from prplugin.types.edges import Floats, Integers

CHUNK = 1 << 16
"""Edges at a time, so that temporary arrays stay in the cache."""


def inverse_out_weight(out_weight: Floats, *, weighted: bool) -> Floats:
    """Return 1 / W of each vertex, 0 for dangling ones.

    For weighted graphs it returns 1 instead of 1 / W: edges carry normalized weights w / W, as 1 / W overflows for
    subnormal W.
    """
    not_dangling = out_weight > 0
    if weighted:
        return not_dangling.astype(np.float64)
    return np.divide(1.0, out_weight, out=np.zeros(out_weight.size), where=not_dangling)


def normalized_weights(weights: Floats, sources: Integers, out_weight: Floats) -> Floats:
    """Return w / W for each edge, with the out-weight W of its source; 0 where W is 0 (a dangling source)."""
    normalized = np.zeros_like(weights)
    for first in range(0, weights.size, CHUNK):
        chunk = slice(first, first + CHUNK)
        of_source = out_weight.take(sources[chunk])
        np.divide(weights[chunk], of_source, out=normalized[chunk], where=of_source > 0)
    return normalized
