"""Graph building, memory and kernels for arrays in device memory; the same function names as in `prplugin.cpu`."""

from prplugin.gpu.lazy import cupy, cupyx

__all__ = ["cupy", "cupyx"]
