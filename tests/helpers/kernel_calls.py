"""Calls of kernels of many arguments."""

from __future__ import annotations

from prplugin.cpu.library import Kernel

__all__ = ["named"]


def named(kernel: Kernel, *arguments: object) -> int:
    """Call a kernel with its arguments in order, each by its name."""
    return kernel(**dict(zip((each.name for each in kernel.parameters), arguments, strict=True)))
