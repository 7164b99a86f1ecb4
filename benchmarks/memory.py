"""Check of the available memory before a measurement starts."""

from __future__ import annotations

from prplugin import machine
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace

__all__ = ["InsufficientMemoryError", "bytes_available", "require"]


class InsufficientMemoryError(Exception):
    """Too little memory is available; the message has the required and the available bytes."""


def bytes_available(memory_space: MemorySpace) -> float:
    """Return the available memory in bytes: of the GPU, or of this process within its container's limit."""
    if memory_space == "device":
        return runtime.available_bytes()
    return machine.bytes_available()


def require(needed: float, memory_space: MemorySpace, what: str) -> None:
    """Raise InsufficientMemoryError if fewer bytes than `needed` are available."""
    if needed > (free := bytes_available(memory_space)):
        where = "the GPU" if memory_space == "device" else "this machine"
        raise InsufficientMemoryError(
            f"{what} needs about {needed / 1e9:.1f} GB, and {where} has {free / 1e9:.1f} GB free"
        )
