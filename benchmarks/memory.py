"""How much memory there is still to be had, so that what does not fit is not begun."""

from __future__ import annotations

import os
from pathlib import Path

from prplugin import cuda
from prplugin.graph.arrays import Place

__all__ = ["NoRoomError", "bytes_available", "require"]

CGROUP = Path("/sys/fs/cgroup")


class NoRoomError(Exception):
    """What would be needed, and what there is."""


def bytes_available(place: Place) -> int:
    """Give the bytes that can be had without driving out anything: of the GPU, or of this process's share of memory."""
    if place == "device":
        return cuda.bytes_free()
    return min(_of_the_machine(), _of_the_container())


def require(needed: float, place: Place, what: str) -> None:
    """Raise NoRoomError if there are fewer bytes."""
    if needed > (free := bytes_available(place)):
        where = "the GPU" if place == "device" else "this machine"
        raise NoRoomError(f"{what} needs about {needed / 1e9:.1f} GB, and {where} has {free / 1e9:.1f} GB free")


def _of_the_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux: all that it has
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_the_container() -> float:
    """Give what a limit of control groups (version 2) leaves; files that are only cached give way."""
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    except OSError:
        return float("inf")
    return float("inf") if limit == "max" else int(limit) - used + int(stat.get("inactive_file", 0))
