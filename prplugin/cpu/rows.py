"""Kernels that rewrite rows of a sparse matrix in a buffer with spare capacity: see rows.cpp."""

from __future__ import annotations

from prplugin.cpu.library import Kernel

find_pairs = Kernel(
    "find_pairs", "rows:i8[pairs] columns:i8[pairs] begins:i8[n] ends:i8[n] indices:I[size] found:u1[pairs]!"
)

rewrite = Kernel(
    "rewrite_rows",
    "rows:i8[changed] begins:i8[n] ends:i8[n] indices:I[size]! weights:f8[size]!? "
    "removed_at:i8[changed+1] removed:i8[removals] removed_weights:f8[removals]!? found:u1[removals]! "
    "added_at:i8[changed+1] added:i8[additions] added_weights:f8[additions]? at:i8 "
    "new_begins:i8[changed]! new_ends:i8[changed]! sums:f8[changed]!",
)

compact = Kernel(
    "compact_rows",
    "begins:i8[n] ends:i8[n] indices:I[size] weights:f8[size]? offsets:i8[n+1] new_indices:K[capacity]! "
    "new_weights:f8[capacity]!? threads:i8",
)

commit = Kernel(
    "commit_rows",
    "rows:i8[changed] new_begins:i8[changed] new_ends:i8[changed] begins:i8[n]! ends:i8[n]! out_weight:f8[n]! "
    "new_out_weight:f8[changed] references:i8[n]!? new_references:i8[changed]? count:i8[1]! count_change:i8",
)
