// Host loops of Kumar and others 2012 and of Bowen 2022 in the papers' form: float32, and a division by the out-degree
// for each edge. Used by `form="paper"` of `cpu-split`, and of `segmented` with ``cpu=True``.
//
// Mapping: `divided_tails` runs on the calling thread. `update_scores` divides its rows among threads, in pieces.
// Memory: a position, a gathered rank and a gathered out-degree per edge.
#include "native.hpp"

// Sum the in-edges of each row from the limit of its block on.
template <class Index>
i64 divided_tails(i64 blocks, i64 rows, i64, const i64* limits, const i64* offsets, const Index* sources,
                  const i32* out_degrees, const f32* ranks, f32* sums) {
    i64 per_block = (rows + blocks - 1) / most<i64>(1, blocks);
    for (i64 row = 0; row < rows; row++) {
        f32 sum = 0;
        for (i64 edge = offsets[row] + limits[row / per_block]; edge < offsets[row + 1]; edge++) {
            sum += ranks[sources[edge]] / f32(out_degrees[sources[edge]]);
        }
        sums[row] = sum;
    }
    return 0;
}
EXPORT_SIGNED(divided_tails)

constexpr i64 ROWS = 1024;  // per piece

// Write new scores of the rows first .. last - 1, which may be those that are read; return how many move by more than
// epsilon. Scores are read and written by several threads, as in the paper, here by relaxed atomic operations.
template <class Index>
i64 update_scores(i64, i64, const i64* offsets, const Index* sources, const i32* out_degrees, const f32* scores,
                  f32* updated, i64 first, i64 last, f64 rest, f64 damping, f64 epsilon, i64 keep, i64 threads) {
    i64 moved = 0;
    i64 ended = Team(threads).for_each((last - first + ROWS - 1) / ROWS, [&](i64 piece) {
        i64 begin = first + piece * ROWS, count = 0;
        for (i64 row = begin; row < least(begin + ROWS, last); row++) {
            f32 total = 0, score, before;
            for (i64 edge = offsets[row]; edge < offsets[row + 1]; edge++) {
                __atomic_load(scores + sources[edge], &score, __ATOMIC_RELAXED);
                total += score / f32(out_degrees[sources[edge]]);
            }
            f32 after = f32(rest) + f32(damping) * total;
            __atomic_load(scores + row, &before, __ATOMIC_RELAXED);
            bool moves = (after > before ? after - before : before - after) > f32(epsilon);
            count += moves;
            __atomic_store(updated + row, moves || !keep ? &after : &before, __ATOMIC_RELAXED);
        }
        __atomic_fetch_add(&moved, count, __ATOMIC_RELAXED);
    });
    return ended ? ended : moved;
}
EXPORT_SIGNED(update_scores)
