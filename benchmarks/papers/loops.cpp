// Loops of the papers on one CPU thread, as they state them: `benchmarks.papers.loops` compiles and calls them.
#include <math.h>
#include <stdint.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

using i64 = int64_t;
using f32 = float;

// Swaroop 2021: multiply a dense matrix, row by row.
EXPORT void multiply(i64 n, const f32* matrix, const f32* before, f32* after) {
    for (i64 i = 0; i < n; i++) {
        f32 total = 0;
        for (i64 j = 0; j < n; j++) total += before[j] * matrix[i * n + j];
        after[i] = total;
    }
}

// Swaroop 2021: the power method as the paper lists it; return the number of rounds.
EXPORT i64 power_method(i64 n, const f32* graph, f32* r, f32* r_last, i64 max_iter, f32 eps) {
    i64 rounds = 0;
    for (i64 i = 0; i < n; ++i) r[i] = 1 / f32(n);
    while (max_iter--) {
        for (i64 i = 0; i < n; ++i) r_last[i] = r[i];
        multiply(n, graph, r_last, r);
        rounds++;
        f32 norm = 0;
        for (i64 i = 0; i < n; ++i) norm += fabsf(r_last[i] - r[i]);
        if (norm < eps) break;
    }
    return rounds;
}

// TweetRank: multiply a dense matrix column by column, whose column j is base[j] except in the rows of its edges.
EXPORT void multiply_columns(i64 n, const f32* base, const i64* bounds, const i64* rows, const f32* entries,
                                 const f32* before, f32* after, f32* kept) {
    for (i64 j = 0; j < n; j++) {
        for (i64 edge = bounds[j]; edge < bounds[j + 1]; edge++) {
            kept[edge] = after[rows[edge]] + before[j] * entries[edge];
        }
        f32 term = before[j] * base[j];
        for (i64 i = 0; i < n; i++) after[i] += term;
        for (i64 edge = bounds[j]; edge < bounds[j + 1]; edge++) after[rows[edge]] = kept[edge];
    }
}
