"""How much memory there is still to be had, so that what does not fit is not begun."""

from __future__ import annotations

from prplugin import machine
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace

__all__ = ["NoRoomError", "bytes_available", "require"]


class NoRoomError(Exception):
    """What would be needed, and what there is."""


def bytes_available(memory_space: MemorySpace) -> float:
    """Return the available memory in bytes: of the GPU, or of this process within the limit of its container."""
    if memory_space == "device":
        return runtime.available_bytes()
    return machine.bytes_available()


def require(needed: float, memory_space: MemorySpace, what: str) -> None:
    """Raise NoRoomError if there are fewer bytes."""
    if needed > (free := bytes_available(memory_space)):
        where = "the GPU" if memory_space == "device" else "this machine"
        raise NoRoomError(f"{what} needs about {needed / 1e9:.1f} GB, and {where} has {free / 1e9:.1f} GB free")
