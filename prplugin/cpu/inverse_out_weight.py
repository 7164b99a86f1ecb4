"""Inverse out-weights on the CPU; `prplugin.methods.engines.gpu_pull` computes them on the GPU."""

from __future__ import annotations

import numpy as np

from prplugin.types.edges import Floats

__all__ = ["inverse_out_weight"]


def inverse_out_weight(out_weight: Floats, *, weighted: bool) -> Floats:
    """Return 1 / W of each vertex, 0 for dangling ones.

    For weighted graphs it returns 1 instead of 1 / W: edges carry normalized weights w / W, as 1 / W overflows for
    subnormal W.
    """
    not_dangling = out_weight > 0
    if weighted:
        return not_dangling.astype(np.float64)
    return np.divide(1.0, out_weight, out=np.zeros(out_weight.size), where=not_dangling)
