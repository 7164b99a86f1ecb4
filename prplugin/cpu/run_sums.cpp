// Compensated sums of rows by several threads, which share long rows.
//
// Mapping: threads take pieces of runs of about equal work; a run is a row, or a part of a long one. Memory: a position, a
// contribution (and a normalized weight) per edge.
// Used by the methods `cpu-split` and `segmented` while the GPU sums other rows.
#include "native.hpp"

// Sum the runs, then add those of each long row in order; those of row t are runs_of[t] .. runs_of[t + 1] - 1.
//
// Run r has the edges part_bounds[r] .. part_bounds[r + 1] - 1 if it is a part of a long row, else those that `bounds` has
// for it. A piece is a range of runs. Terms are computed in float64 for any type of contributions and weights.
template <class Index, class Value>
i64 sum_runs(i64 pieces, i64 parts, i64, i64, i64, i64 rows, const i64 (*piece_of)[2], const i64* part_bounds,
             const i64* bounds, const Index* places, const Value* weights, const Value* contributions, const i64* runs_of,
             CompensatedSum* part_sums, f64* row_sums, f64* sums, i64 threads) {
    i64 ended = Team(threads).for_each(pieces, [&](i64 piece) {
        for (i64 run = piece_of[piece][0]; run < piece_of[piece][1]; run++) {
            const i64* of = run < parts ? part_bounds + run : bounds + (run - parts);
            CompensatedSum sum;
            for (i64 edge = of[0]; edge < of[1]; edge++) {
                f64 term = contributions[places[edge]];
                sum.add(weights ? term * f64(weights[edge]) : term);
            }
            if (run < parts) part_sums[run] = sum;  // sum and error apart
            else sums[run - parts] = sum.value();
        }
    });
    for (i64 row = 0; row < rows && !ended; row++) {
        CompensatedSum sum;
        for (i64 run = runs_of[row]; run < runs_of[row + 1]; run++) sum.add(part_sums[run].sum, part_sums[run].errors);
        row_sums[row] = sum.value();
    }
    return ended;
}
EXPORT_FLOATS(sum_runs)
