"""All compiled kernels but those of papers, by source file; `prplugin.cpu.library` explains the declarations."""

from __future__ import annotations

from prplugin.cpu.library import Kernel

# --- ingest.cpp: ids and compressed rows ---------------------------------------------------------------------------

count_ids = Kernel("count_ids", "ids:I[m] low:i8 counts:K[parts,n]!")
partition_edges = Kernel(
    "partition_edges",
    "rows:I[m] columns:I[m] weights:f8[m]? low:i8 shift:i8 bits:i8 places:i8[pieces,buckets]! "
    "bounds:i8[buckets+1]! pairs:i8[m]! bucket_weights:f8[m]!? threads:i8",
)
sort_buckets = Kernel(
    "sort_buckets",
    "bounds:i8[buckets+1] shift:i8 bits:i8 pairs:i8[m] bucket_weights:f8[m]? order:i8[buckets] offsets:i8[n+1]! "
    "indices:I[m]! weights:f8[m]!? threads:i8",
)
scatter = Kernel(
    "scatter", "sources:I[k] targets:I[k] weights:f8[k]? places:i8[n]! placed:K[m]! placed_weights:f8[m]!?"
)
extremes = Kernel("extremes", "ids:I[m] flip:i8 found:i8[parts,2]!")
insert_ids = Kernel("insert_ids", "ids:I[m] done:i8[pieces]! slots:i8[size+1]! bits:i8 codes:K[m]! limit:i8 threads:i8")
factorize_few = Kernel(
    "factorize_few",
    "values:I[count] flip:i8 slots:i4[size]! scratch:i8[4,count]! codes:i4[count]! ids:I[count]! "
    "offsets:i8[count+1]!? indices:i4[count/2]!? degrees:i4[count]!?",
)
map_ids = Kernel("map_ids", "ids:I[m] low:i8 firsts:i8[pieces] lasts:i8[pieces] positions:K[n]? codes:K[m]! threads:i8")
add_compensated = Kernel("add_compensated", "groups:I[k] terms:f8[k] sums:f8[n]! errors:f8[n]!")

# --- strings.cpp: ids of text --------------------------------------------------------------------------------------

enter_strings = Kernel("enter_strings", "data:u1[bytes] known:i8[count,3] slots:i8[size]!")
factorize_strings = Kernel(
    "factorize_strings",
    "offsets:I[n+1] data:u1[bytes] first:i8 last:i8 slots:i8[size]! known:i8[most,3]! codes:i4[n]! count:i8[1]!",
)

# --- arcs.cpp: lists of arcs ---------------------------------------------------------------------------------------

check_arcs = Kernel(
    "check_arcs",
    "offsets:i8[n+1] indices:I[m] weights:f8[m]? bounds:i8[parts+1] scratch:I[parts,width]! sums:i8[parts,2]! "
    "faults:i8[parts]! wanted:i8 threads:i8",
)

# --- packing.cpp: packed edges -------------------------------------------------------------------------------------

sort_rows = Kernel(
    "sort_rows",
    "rows:i8[count] starts:i8[count+1] offsets:i8[n+1] sources:I[m] position:I[n]? weights:f8[m]? "
    "sorted_sources:I[edges]! sorted_weights:f8[edges]!? scratch:I[edges]!? scratch_weights:f8[edges]!? threads:i8",
)
pack_parts = Kernel(
    "pack_parts",
    "starts:i8[rows+1] sources:I[edges] bits:i8 begins:i8[parts+1] data:u1[parts,width]! "
    "table:i8[parts,pieces,2]! sizes:i8[parts]! threads:i8",
)
unpack_pieces = Kernel(
    "unpack_pieces",
    "n:i8 data:u1[bytes] begins:i8[pieces+1] rows:i8[pieces] firsts:i8[pieces+1] bits:i8 lasts:i8[pieces]! "
    "sources:i4[m]!? in_degrees:i8[rows]!? threads:i8",
)

# --- pull.cpp: iterations of a vector ------------------------------------------------------------------------------

iterate = Kernel(
    "iterate",
    "offsets:i8[n+1]? sources:I[m]? weights:f8[m]? data:u1[bytes]? begins:i8[pieces+1]? piece_rows:i8[pieces]? "
    "bits:i8 packed_sums:f8[n]!? continued:f8[pieces]!? inverse:f8[n] target:f8[targets+1] "
    "teleport:f8[teleports+1] alpha:f8 fan_in:i8 order:u1[n]? outside:f8[n]? lump_scale:f8 ranks:f8[n]! "
    "contributions:F[2,n]! "
    "sums:f8[n/256,4]! memory:f8[704]! norm:f8 goal:f8 period:i8 cycles:i8 history:f4[rows,n]!? "
    "scratch:f8[n/4096,576]!? changes:f8[budget]! threads:i8",
)
sum_rows = Kernel(
    "sum_rows",
    "offsets:i8[n+1] sources:I[m] weights:f8[m]? fan_in:i8 contributions:F[all] sums:f8[n]! threads:i8",
)
order_rows = Kernel("order_rows", "offsets:i8[n+1] order:u1[n]! threads:i8")
step_rows = Kernel(
    "step_rows",
    "offsets:i8[n+1] sources:I[m] weights:f8[m]? inverse:f8[n] target:f8[targets+1] teleport:f8[teleports+1] "
    "alpha:f8 fan_in:i8 dangling:f8 ranks:f8[n]! contributions:f8[all] next:f8[all]! moves:f4[n]!? "
    "sums:f8[n/256,4]! threads:i8",
)
"""One step over the first n of all vertices whose contributions are given."""

# --- run_sums.cpp: sums of runs ------------------------------------------------------------------------------------

sum_runs = Kernel(
    "sum_runs",
    "pieces:i8[pieces,2] part_bounds:i8[parts+1] bounds:i8[whole+1] places:I[edges] weights:F[edges]? "
    "contributions:F[sources] runs_of:i8[long+1] part_sums:f8[parts,2]! long_sums:f8[long]! sums:f8[whole]! "
    "threads:i8",
)

# --- batch.cpp: iterations of many seeds ---------------------------------------------------------------------------

_TILES = (
    "offsets:i8[n+1] sources:I[m] weights:f8[m]? fan_in:i8 alpha:f8 inverse:f8[n] target:f8[n]? teleport_rows:i8[n] "
    "teleport:f8[tiles,teleports,width]! constants:F[n,4]! contributions:F[tiles,n,width]! "
    "sums:f8[tiles,n/256,3,width]!"
)
"""Graph, and personalizations, contributions and sums of the tiles. The kernels return -1 for another width."""

batch_begin = Kernel(
    "batch_begin",
    f"{_TILES} chosen:i8[columns] bounds:i8[seeds+1] rows:i8[entries] values:f8[entries] ranks:f8[seeds,n]? threads:i8",
)
batch_step = Kernel(
    "batch_step", f"{_TILES} chosen:i8[columns] mass:f8[columns] factor:f8[columns] ranks:f8[seeds,n]! threads:i8"
)
batch_sweep = Kernel(
    "batch_sweep",
    f"{_TILES} dangling:f8[columns] goal:f8 budget:i8 scratch_v:F[movers,teleports,width]! "
    "scratch_moves:F[movers,n,width]! sweeps:i8[columns]! threads:i8",
)

# --- rows.cpp: rows in a buffer with spare capacity ----------------------------------------------------------------

find_pairs = Kernel(
    "find_pairs", "rows:i8[pairs] columns:i8[pairs] begins:i8[n] ends:i8[n] indices:I[size] found:u1[pairs]!"
)
rewrite_rows = Kernel(
    "rewrite_rows",
    "rows:i8[changed] begins:i8[n] ends:i8[n] indices:I[size]! weights:f8[size]!? removed_at:i8[changed+1] "
    "removed:i8[removals] removed_weights:f8[removals]!? found:u1[removals]! added_at:i8[changed+1] "
    "added:i8[additions] added_weights:f8[additions]? at:i8 new_begins:i8[changed]! new_ends:i8[changed]! "
    "sums:f8[changed]!",
)
compact_rows = Kernel(
    "compact_rows",
    "begins:i8[n] ends:i8[n] indices:I[size] weights:f8[size]? offsets:i8[n+1] new_indices:K[capacity]! "
    "new_weights:f8[capacity]!? threads:i8",
)
commit_rows = Kernel(
    "commit_rows",
    "rows:i8[changed] new_begins:i8[changed] new_ends:i8[changed] begins:i8[n]! ends:i8[n]! out_weight:f8[n]! "
    "new_out_weight:f8[changed] references:i8[n]!? new_references:i8[changed]? count:i8[1]! count_change:i8",
)

# --- push.cpp and residual.cpp: a residual and its pushes; `prplugin.streams.residual` has the notation

BLOCK_TERMS = 1024
"""Number of terms per block of a blocked sum, as in residual.cpp."""

PUSH_COST = 4
"""Cost of a push in edges, in addition to the out-edges of the vertex, as in push.cpp."""

_EDGES = "begins:i8[n] ends:i8[n] indices:I[size] weights:f8[size]? out_weight:f8[n] "
_STATE = "y:f8[n]! alpha:f8 r:f8[n]! depth:i8 rounding_error:f8[1]!"
_LISTED = "y:f8[n]! alpha:f8 r:f8[n]! depth:i8 sums:f8[3]!"

add_contributions = Kernel("add_contributions", _EDGES + "y:f8[n] alpha:f8 r:f8[n]! depth:i8 rounding_error:f8[1]!")
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
residual_norms = Kernel("residual_norms", "y:f8[n] r:f8[n]! v:f8[n]? c:f8 center:i8 rounding_error:f8[1]! sums:f8[5]!")
residual_ranks = Kernel("residual_ranks", "y:f8[n] r:f8[n] v:f8[n]? sum_r:f8 sum_y:f8 ranks:f8[n]!")

# --- webgraph.cpp: WebGraph's BV format ----------------------------------------------------------------------------

_FILE = "bytes:u1[size] codes:i8[6] window:i8 "

bv_positions = Kernel("bv_positions", "bytes:u1[size] code:i8 positions:i8[n+1]!")
bv_degrees = Kernel(
    "bv_degrees",
    _FILE + "shortest:i8 known:i8 positions:i8[n+1]! bounds:i8[pieces+1] degrees:I[n]! faults:i8[pieces,3]! threads:i8",
)
bv_cuts = Kernel("bv_cuts", _FILE + "positions:i8[n+1] bounds:i8[pieces+1]!")
bv_decode = Kernel(
    "bv_decode",
    _FILE
    + (
        "shortest:i8 positions:i8[n+1] offsets:i8[n+1] bounds:i8[pieces+1] indices:I[m]! scratch:I[parts,width]! "
        "faults:i8[pieces,3]!"
    ),
)
