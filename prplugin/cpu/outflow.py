"""What a rank is multiplied by on its way out, on the processor: `_device.outflow` is its like on the GPU."""

from __future__ import annotations

import numpy as np

from prplugin.types.edges import Floats

__all__ = ["outflow"]


def outflow(out_weight: Floats, *, weighted: bool) -> Floats:
    """Give 1 / W of each vertex; 1 where edges have their shares w / W, since 1 / W overflows for denormal weights.

    It is 0 where the vertex is dangling.
    """
    flowing = out_weight > 0
    if weighted:
        return flowing.astype(np.float64)
    return np.divide(1.0, out_weight, out=np.zeros(out_weight.size), where=flowing)
