"""The iteration of many seeds at once, compiled: see batch.cpp. Kernels return -1 for an unsupported width."""

from __future__ import annotations

from prplugin.cpu.library import Kernel

step = Kernel(
    "batch_step",
    "offsets:i8[n+1] sources:I[m] weights:f8[m]? fan_in:i8 inverse:f8[n] contributions:F[n,width] mass:f8[width] "
    "target:f8[n]? teleport_factor:f8[width] teleport:f8[teleports,width] teleport_rows:i8[n] live:u1[width] "
    "ranks:f8[n,width]! next:F[n,width]! moves:f4[n,width]!? sums:f8[n/256,3,width]! threads:i8",
)
begin = Kernel(
    "batch_begin",
    "inverse:f8[n] norms:f8[width] ranks:f8[n,width]! contributions:F[n,width]! sums:f8[n/256,3,width]! threads:i8",
)
products = Kernel(
    "batch_products",
    "moves:f4[rows,stride] chosen:i8[k] ranks:f8[n,width] sums:f8[n/256,k,k,width]! threads:i8",
)
mix = Kernel(
    "batch_mix",
    "moves:f4[rows,stride]! weights:f8[rows,width] ranks:f8[n,width]! jump:f4[n,width]! sums:f8[n/256,3,width]! "
    "threads:i8",
)
transpose = Kernel("batch_transpose", "ranks:f8[n,width] transposed:f8[seeds,n]! threads:i8")
