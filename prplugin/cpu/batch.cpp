// PageRank of many seeds at once: ranks and contributions have one row per vertex and one column per seed.
//
// Mapping: blocks of 256 rows, each with its own sums per column, on the thread that is free next. An edge adds one row
// of contributions, 8 or 32 columns at a time, whose sums stay in registers. The additions within a column depend
// neither on the other columns nor on the number of threads.
// Memory per iteration: per edge its position and one row of contributions, which is prefetched, since rows of random
// vertices are not predictable; per vertex rows of ranks, contributions and moves.
// Used by the method `native` for many seeds.
#include "row_sums.hpp"

namespace {

constexpr i64 AHEAD = 16;  // edges between a prefetch and its use
constexpr i64 LINE = 64;   // bytes per cache line
constexpr i64 WIDEST = 64;

// Add the terms of the edges first .. last - 1 to `sums`, for COLUMNS columns.
template <i64 COLUMNS, bool WEIGHTED, class Index, class Value>
void add_edges(const Value* c, i64 width, const Index* sources, const f64* weights, i64 first, i64 last, i64 m,
               f64* sums) {
    f64 held[COLUMNS];
    for (i64 j = 0; j < COLUMNS; j++) held[j] = sums[j];
    for (i64 edge = first; edge < last; edge++) {
        const Value* ahead = c + i64(sources[least(edge + AHEAD, m - 1)]) * width;
        for (i64 j = 0; j < COLUMNS; j += LINE / i64(sizeof(Value))) __builtin_prefetch(ahead + j);
        const Value* row = c + i64(sources[edge]) * width;
        for (i64 j = 0; j < COLUMNS; j++) held[j] += WEIGHTED ? f64(row[j]) * weights[edge] : f64(row[j]);
    }
    for (i64 j = 0; j < COLUMNS; j++) sums[j] = held[j];
}

template <class Index, class Value> struct Batch {
    i64 n, m, width;
    const i64* offsets;
    const Index* sources;
    const f64* weights;
    i64 fan_in;
    const f64* inverse;
    const Value* contributions;
    const f64 *mass, *target, *teleport_factor, *teleport;
    const i64* teleport_rows;
    const u8* live;
    f64* ranks;
    Value* next;
    f32* moves;
    f64* sums;  // per block: ||y - x||, max |y - x| and D(y) of each column

    template <i64 COLUMNS> void row_sums(i64 first, i64 last, i64 column, f64* sum) const {
        const Value* c = contributions + column;
        auto add = [&](i64 from, i64 to, f64* into) {
            weights ? add_edges<COLUMNS, true>(c, width, sources, weights, from, to, m, into)
                    : add_edges<COLUMNS, false>(c, width, sources, weights, from, to, m, into);
        };
        for (i64 j = 0; j < COLUMNS; j++) sum[j] = 0;
        if (last - first <= fan_in) return add(first, last, sum);
        f64 groups_sum[COLUMNS] = {0};
        i64 groups = 0;
        for (i64 edge = first; edge < last; edge += fan_in) {
            f64 part[COLUMNS] = {0};
            add(edge, least(edge + fan_in, last), part);
            for (i64 j = 0; j < COLUMNS; j++) groups_sum[j] += part[j];
            if (++groups < fan_in) continue;
            for (i64 j = 0; j < COLUMNS; j++) {
                sum[j] += groups_sum[j];
                groups_sum[j] = 0;
            }
            groups = 0;
        }
        for (i64 j = 0; j < COLUMNS; j++) sum[j] += groups_sum[j];
    }

    void step_block(i64 block) const {
        f64 *change = sums + 3 * block * width, *largest = change + width, *dangling = largest + width;
        for (i64 j = 0; j < 3 * width; j++) change[j] = 0;
        i64 end = least((block + 1) * BLOCK_ROWS, n);
        for (i64 group = block * BLOCK_ROWS; group < end; group += GROUP_ROWS) {
            f64 group_change[WIDEST] = {0}, group_dangling[WIDEST] = {0};
            for (i64 i = group; i < least(group + GROUP_ROWS, end); i++) {
                f64 now[WIDEST];
                i64 j = 0;
                for (; j + 32 <= width; j += 32) row_sums<32>(offsets[i], offsets[i + 1], j, now + j);
                for (; j < width; j += 8) row_sums<8>(offsets[i], offsets[i + 1], j, now + j);
                if (target)
                    for (j = 0; j < width; j++) now[j] += mass[j] * target[i];
                if (teleport_rows[i] >= 0)
                    for (j = 0; j < width; j++) now[j] += teleport_factor[j] * teleport[teleport_rows[i] * width + j];
                f64* row = ranks + i * width;
                for (j = 0; j < width; j++) {
                    f64 before = row[j], after = live[j] ? now[j] : before;
                    row[j] = after;
                    now[j] = after - before;
                }
                if (moves)
                    for (j = 0; j < width; j++) moves[i * width + j] = f32(now[j]);
                for (j = 0; j < width; j++) {
                    f64 move = fabs(now[j]);
                    group_change[j] += move;
                    largest[j] = move > largest[j] ? move : largest[j];
                }
                for (j = 0; j < width; j++) next[i * width + j] = Value(row[j] * inverse[i]);
                if (inverse[i] == 0)
                    for (j = 0; j < width; j++) group_dangling[j] += row[j];
            }
            for (i64 j = 0; j < width; j++) {
                change[j] += group_change[j];
                dangling[j] += group_dangling[j];
            }
        }
    }
};

i64 blocks_of(i64 n) { return (n + BLOCK_ROWS - 1) / BLOCK_ROWS; }

}  // namespace

#define FOR_VALUES(index, Index) DEFINE(index##_f8, Index, f64) DEFINE(index##_f4, Index, f32)

// Compute one iteration:
// y_ij = (sum of c_j over the in-edges of i) + mass_j * w_i + teleport_factor_j * v_ij, and c_ij = y_ij * inverse_i for
// the next one. Row i of v is row teleport_rows[i] of `teleport`, or 0 if that is negative. Columns that are not live
// keep their ranks.
#define DEFINE(suffix, Index, Value)                                                                                  \
    EXPORT batch_step_##suffix(i64 n, i64 m, i64 width, i64, const i64* offsets, const Index* sources,                 \
                               const f64* weights, i64 fan_in, const f64* inverse, const Value* contributions,        \
                               const f64* mass, const f64* target, const f64* factor, const f64* teleport,            \
                               const i64* teleport_rows, const u8* live, f64* ranks, Value* next, f32* moves,         \
                               f64* sums, i64 threads) {                                                              \
        if (width > WIDEST || width % 8) return -1;                                                                   \
        Batch<Index, Value> batch{n,        m,      width,    offsets,       sources, weights, fan_in, inverse,       \
                                  contributions, mass, target, factor, teleport, teleport_rows, live, ranks, next,    \
                                  moves,    sums};                                                                    \
        Team team(threads);                                                                                           \
        return team.for_each(blocks_of(n), [&](i64 block) { batch.step_block(block); }) ? 0 : INTERRUPTED;            \
    }
FOR_INDICES(FOR_VALUES)
#undef DEFINE

// Divide the ranks of each column by its norm, and write contributions and the dangling mass of each block.
#define DEFINE(suffix, Value)                                                                                         \
    EXPORT batch_begin_##suffix(i64 n, i64 width, const f64* inverse, const f64* norms, f64* ranks,                   \
                                Value* contributions, f64* sums, i64 threads) {                                       \
        if (width > WIDEST) return -1;                                                                                \
        Team team(threads);                                                                                           \
        return team.for_each(blocks_of(n), [&](i64 block) {                                                           \
            f64* dangling = sums + (3 * block + 2) * width;                                                           \
            for (i64 j = 0; j < width; j++) dangling[j] = 0;                                                          \
            i64 end = least((block + 1) * BLOCK_ROWS, n);                                                             \
            for (i64 group = block * BLOCK_ROWS; group < end; group += GROUP_ROWS) {                                  \
                f64 part[WIDEST] = {0};                                                                               \
                for (i64 i = group; i < least(group + GROUP_ROWS, end); i++) {                                        \
                    f64* row = ranks + i * width;                                                                     \
                    for (i64 j = 0; j < width; j++) row[j] /= norms[j];                                               \
                    for (i64 j = 0; j < width; j++) contributions[i * width + j] = Value(row[j] * inverse[i]);        \
                    if (inverse[i] == 0)                                                                              \
                        for (i64 j = 0; j < width; j++) part[j] += row[j];                                            \
                }                                                                                                     \
                for (i64 j = 0; j < width; j++) dangling[j] += part[j];                                               \
            }                                                                                                         \
        })                                                                                                            \
                   ? 0                                                                                                \
                   : INTERRUPTED;                                                                                     \
    }
DEFINE(f8, f64)
DEFINE(f4, f32)
#undef DEFINE

// Write the dot products of the moves `chosen` per column, over the rows of each block, for i >= j.
EXPORT batch_products(i64 rows, i64 stride, i64 k, i64 n, i64 width, const f32* moves, const i64* chosen,
                      const f64* ranks, f64* sums, i64 threads) {
    (void)ranks;  // of which n and width are known
    if (n * width > stride) return -1;
    for (i64 a = 0; a < k; a++)
        if (chosen[a] < 0 || chosen[a] >= rows) return -1;
    Team team(threads);
    return team.for_each(blocks_of(n), [&](i64 block) {
        f64* own = sums + block * k * k * width;
        for (i64 at = 0; at < k * k * width; at++) own[at] = 0;
        for (i64 i = block * BLOCK_ROWS; i < least((block + 1) * BLOCK_ROWS, n); i++)
            for (i64 a = 0; a < k; a++) {
                const f32* left = moves + chosen[a] * stride + i * width;
                for (i64 b = 0; b <= a; b++) {
                    const f32* right = moves + chosen[b] * stride + i * width;
                    f64* sum = own + (a * k + b) * width;
                    for (i64 j = 0; j < width; j++) sum[j] += f64(left[j]) * f64(right[j]);
                }
            }
    })
               ? 0
               : INTERRUPTED;
}

// Replace ranks y by z = max(y - weights @ moves, 0) per column, write z - y to `jump`, and the sums of z of each block.
EXPORT batch_mix(i64 rows, i64 stride, i64 width, i64 n, const f32* moves, const f64* weights, f64* ranks, f32* jump,
                 f64* sums, i64 threads) {
    if (width > WIDEST || n * width > stride) return -1;
    Team team(threads);
    return team.for_each(blocks_of(n), [&](i64 block) {
        f64* total = sums + 3 * block * width;
        for (i64 j = 0; j < width; j++) total[j] = 0;
        for (i64 i = block * BLOCK_ROWS; i < least((block + 1) * BLOCK_ROWS, n); i++) {
            f64 mixed[WIDEST], *row = ranks + i * width;
            for (i64 j = 0; j < width; j++) mixed[j] = row[j];
            for (i64 k = 0; k < rows; k++) {
                const f32* move = moves + k * stride + i * width;
                for (i64 j = 0; j < width; j++) mixed[j] -= weights[k * width + j] * move[j];
            }
            for (i64 j = 0; j < width; j++) {
                mixed[j] = mixed[j] > 0 ? mixed[j] : 0.0;
                jump[i * width + j] = f32(mixed[j] - row[j]);
                row[j] = mixed[j];
                total[j] += mixed[j];
            }
        }
    })
               ? 0
               : INTERRUPTED;
}

// Transpose the ranks of the first `seeds` columns, 16 rows at a time, which stay in the cache.
EXPORT batch_transpose(i64 n, i64 width, i64 seeds, const f64* ranks, f64* transposed, i64 threads) {
    if (seeds > width) return -1;
    Team team(threads);
    return team.for_each(blocks_of(n), [&](i64 block) {
        i64 end = least((block + 1) * BLOCK_ROWS, n);
        for (i64 group = block * BLOCK_ROWS; group < end; group += GROUP_ROWS)
            for (i64 seed = 0; seed < seeds; seed++)
                for (i64 i = group; i < least(group + GROUP_ROWS, end); i++)
                    transposed[seed * n + i] = ranks[i * width + seed];
    })
               ? 0
               : INTERRUPTED;
}
