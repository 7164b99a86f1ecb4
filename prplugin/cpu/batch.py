"""The iteration of many seeds at once, compiled: see batch.cpp. Kernels return -1 for another width."""

from __future__ import annotations

from prplugin.cpu.library import Kernel

_TILES = (
    "offsets:i8[n+1] sources:I[m] weights:f8[m]? fan_in:i8 alpha:f8 inverse:f8[n] target:f8[n]? teleport_rows:i8[n] "
    "teleport:f8[tiles,teleports,width]! constants:F[n,4]! contributions:F[tiles,n,width]! "
    "sums:f8[tiles,n/256,3,width]!"
)
"""Graph, and personalizations, contributions and sums of the tiles."""

begin = Kernel(
    "batch_begin",
    f"{_TILES} chosen:i8[columns] bounds:i8[seeds+1] rows:i8[entries] values:f8[entries] ranks:f8[seeds,n]? threads:i8",
)
step = Kernel(
    "batch_step", f"{_TILES} chosen:i8[columns] mass:f8[columns] factor:f8[columns] ranks:f8[seeds,n]! threads:i8"
)
sweep = Kernel(
    "batch_sweep",
    f"{_TILES} dangling:f8[columns] goal:f8 budget:i8 scratch_v:F[movers,teleports,width]! "
    "scratch_moves:F[movers,n,width]! sweeps:i8[columns]! threads:i8",
)
