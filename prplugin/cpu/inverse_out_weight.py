"""Inverse out-weights on the CPU; `prplugin.methods.engines.gpu_pull` has the same for the GPU."""

from __future__ import annotations

import numpy as np

from prplugin.types.edges import Floats

__all__ = ["inverse_out_weight"]


def inverse_out_weight(out_weight: Floats, *, weighted: bool) -> Floats:
    """Return 1 / W of each vertex, 0 for dangling ones.

    With normalized edge weights w / W it is 1 instead, since 1 / W overflows for subnormal weights.
    """
    flowing = out_weight > 0
    if weighted:
        return flowing.astype(np.float64)
    return np.divide(1.0, out_weight, out=np.zeros(out_weight.size), where=flowing)
