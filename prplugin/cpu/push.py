"""Kernels of a residual and its pushes: see push.cpp and residual.cpp; `prplugin.streams.residual` has the notation."""

from __future__ import annotations

from prplugin.cpu.library import Kernel

BLOCK_TERMS = 1024
"""Number of terms per block of a blocked sum, as in residual.cpp."""

PUSH_COST = 4
"""Cost of a push in edges, in addition to the out-edges of the vertex, as in push.cpp."""

_EDGES = "begins:i8[n] ends:i8[n] indices:I[size] weights:f8[size]? out_weight:f8[n] "

add_contributions = Kernel("add_contributions", _EDGES + "y:f8[n] alpha:f8 r:f8[n]! depth:i8 rounding_error:f8[1]!")

_STATE = "y:f8[n]! alpha:f8 r:f8[n]! depth:i8 rounding_error:f8[1]!"

_LISTED = "y:f8[n]! alpha:f8 r:f8[n]! depth:i8 sums:f8[3]!"

push_listed = Kernel(
    "push_listed",
    "listed:I[n]! count:i8[1]! is_listed:u1[n]! listed_from:f8 goal:f8 ratio:f8 budget:f8 trial:f8 " + _EDGES + _LISTED,
)

collect_listed = Kernel(
    "collect_listed", "listed:I[count] is_listed:u1[n]! y:f8[n]! r:f8[n]! clear:i8 values:f8[count]!"
)

push_all = Kernel("push_all", "costs:f4[n] selected:I[n]! threshold:f8 relaxation:f8 " + _EDGES + _STATE)

change_rows = Kernel(
    "change_rows",
    "rows:i8[changed] removed_at:i8[changed+1] removed:i8[removals] removed_weights:f8[removals]? "
    "added_at:i8[changed+1] added:i8[additions] added_weights:f8[additions]? old_out_weight:f8[changed] "
    "new_out_weight:f8[changed] y:f8[n]! alpha:f8 r:f8[n]! depth:i8 rounding_error:f8[1]!",
)

norms = Kernel("residual_norms", "y:f8[n] r:f8[n]! v:f8[n]? c:f8 center:i8 rounding_error:f8[1]! sums:f8[5]!")

ranks = Kernel("residual_ranks", "y:f8[n] r:f8[n] v:f8[n]? sum_r:f8 sum_y:f8 ranks:f8[n]!")
