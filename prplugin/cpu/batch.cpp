// PageRank of many seeds at once. Contributions are in panels: one row per vertex and one column per seed of the panel.
//
// Mapping: a panel is swept by one thread, in place and row by row, so the bits depend neither on the number of threads
// nor on the other columns. Exact steps are shared by all threads in blocks of 256 rows, each with its own sums. An
// edge adds one row of contributions, whose sums stay in registers.
// Memory per sweep: per edge its position and one row of contributions, which is prefetched, since rows of random
// vertices are not predictable; per vertex one row of contributions. Nothing else has an entry per vertex and seed but
// the ranks, which a step writes and nothing reads until the next contributions are computed.
// Used by the method `native` for many seeds.
#include "row_sums.hpp"

namespace {

constexpr i64 AHEAD = 16;  // edges between a prefetch and its use
constexpr i64 LINE = 64;   // bytes per cache line

// Return 0, which the compiler does not know: GCC clears short arrays by string instructions, which start slowly.
template <class T> static inline T zero() {
    T hidden = 0;
    __asm__("" : "+m"(hidden));
    return hidden;
}

// Add the terms of the edges first .. last - 1 to `sums`, for rows of COLUMNS columns.
template <i64 COLUMNS, bool WEIGHTED, class Index, class Value, class Sum>
static inline void add_edges(const Value* c, const Index* sources, const f64* weights, i64 first, i64 last, i64 m,
                             Sum* sums) {
    Sum held[COLUMNS];
    for (i64 j = 0; j < COLUMNS; j++) held[j] = sums[j];
    for (i64 edge = first; edge < last; edge++) {
        const Value* ahead = c + i64(sources[least(edge + AHEAD, m - 1)]) * COLUMNS;
        for (i64 j = 0; j < COLUMNS; j += LINE / i64(sizeof(Value))) __builtin_prefetch(ahead + j);
        const Value* row = c + i64(sources[edge]) * COLUMNS;
        Sum weight = WEIGHTED ? Sum(weights[edge]) : Sum(1);
        for (i64 j = 0; j < COLUMNS; j++) held[j] += WEIGHTED ? Sum(row[j]) * weight : Sum(row[j]);
    }
    for (i64 j = 0; j < COLUMNS; j++) sums[j] = held[j];
}

template <i64 WIDTH, class Index, class Value> struct Panels {
    i64 n, m, blocks;
    const i64* offsets;
    const Index* sources;
    const f64* weights;
    i64 fan_in;
    f64 alpha;
    const f64 *inverse, *target, *teleport;
    const i64* teleport_rows;
    i64 columns;  // of all panels
    f64* relaxed;  // 1 / (1 - alpha * p_ii)
    Value* contributions;
    f64* sums;  // per panel and block: ||y - x||, max |y - x| and D(y) or D(x) of each column

    Value* row(i64 panel, i64 i) const { return contributions + (panel * n + i) * WIDTH; }

    f64* sums_of(i64 panel, i64 block) const { return sums + 3 * (panel * blocks + block) * WIDTH; }

    // Factor of a rank in its contribution; the ranks of dangling vertices are stored in place of contributions.
    f64 scale(i64 i) const { return inverse[i] == 0 ? 1.0 : inverse[i]; }

    template <class Sum> void row_sums(const Value* c, i64 first, i64 last, Sum* sum) const {
        auto add = [&](i64 from, i64 to, Sum* into) {
            weights ? add_edges<WIDTH, true>(c, sources, weights, from, to, m, into)
                    : add_edges<WIDTH, false>(c, sources, weights, from, to, m, into);
        };
        const Sum nothing = zero<Sum>();
        for (i64 j = 0; j < WIDTH; j++) sum[j] = nothing;
        if (last - first <= fan_in) return add(first, last, sum);
        Sum groups_sum[WIDTH];
        for (i64 j = 0; j < WIDTH; j++) groups_sum[j] = nothing;
        i64 groups = 0;
        for (i64 edge = first; edge < last; edge += fan_in) {
            Sum part[WIDTH];
            for (i64 j = 0; j < WIDTH; j++) part[j] = nothing;
            add(edge, least(edge + fan_in, last), part);
            for (i64 j = 0; j < WIDTH; j++) groups_sum[j] += part[j];
            if (++groups < fan_in) continue;
            for (i64 j = 0; j < WIDTH; j++) {
                sum[j] += groups_sum[j];
                groups_sum[j] = nothing;
            }
            groups = 0;
        }
        for (i64 j = 0; j < WIDTH; j++) sum[j] += groups_sum[j];
    }

    // Compute row i of y: alpha * (sum of c_j over the in-edges of i) + mass * w_i + factor * v_i.
    void compute_row(i64 panel, i64 i, const f64* mass, const f64* factor, f64* y) const {
        row_sums(row(panel, 0), offsets[i], offsets[i + 1], y);
        for (i64 j = 0; j < WIDTH; j++) y[j] *= alpha;
        if (target)
            for (i64 j = 0; j < WIDTH; j++) y[j] += mass[j] * target[i];
        if (teleport_rows[i] < 0) return;
        const f64* v = teleport + teleport_rows[i] * columns + panel * WIDTH;
        for (i64 j = 0; j < WIDTH; j++) y[j] += factor[j] * v[j];
    }

    // Add what teleports and dangling vertices add to row i of a sweep.
    void add_teleports(i64 panel, i64 i, const f64* mass, const f64* factor, Value* y) const {
        f64 scaled = relaxed[i] * scale(i), w = target ? target[i] : 0.0;
        const f64* v = teleport + most<i64>(teleport_rows[i], 0) * columns + panel * WIDTH;
        for (i64 j = 0; j < WIDTH; j++)
            y[j] += Value(scaled * (mass[j] * w + (teleport_rows[i] < 0 ? 0.0 : factor[j] * v[j])));
    }

    void write_relaxed(i64 block) const {
        for (i64 i = block * BLOCK_ROWS; i < least((block + 1) * BLOCK_ROWS, n); i++) {
            f64 itself = 0;
            for (i64 edge = offsets[i]; edge < offsets[i + 1]; edge++)
                itself += i64(sources[edge]) == i ? (weights ? weights[edge] : 1.0) : 0.0;
            relaxed[i] = 1 / (1 - alpha * itself * inverse[i]);
        }
    }

    // Write contributions of a block, and D of each column: of the ranks of the seeds, or of their own multiples.
    void begin_block(i64 panel, i64 block, const i64* seeds, const f64* ranks, const f64* factor) const {
        f64* dangling = sums_of(panel, block) + 2 * WIDTH;
        for (i64 j = 0; j < WIDTH; j++) dangling[j] = 0;
        i64 end = least((block + 1) * BLOCK_ROWS, n);
        for (i64 group = block * BLOCK_ROWS; group < end; group += GROUP_ROWS) {
            f64 part[WIDTH] = {0};
            i64 stop = least(group + GROUP_ROWS, end);
            for (i64 j = 0; ranks && j < WIDTH; j++)
                for (i64 i = group; i < stop; i++)
                    row(panel, i)[j] = seeds[j] < 0 ? Value(0) : Value(ranks[seeds[j] * n + i] * scale(i));
            for (i64 i = group; i < stop; i++) {
                Value* c = row(panel, i);
                for (i64 j = 0; !ranks && j < WIDTH; j++) c[j] = Value(c[j] * factor[j]);
                for (i64 j = 0; inverse[i] == 0 && j < WIDTH; j++) part[j] += c[j];
            }
            for (i64 j = 0; j < WIDTH; j++) dangling[j] += part[j];
        }
    }

    // Compute a block of y = G x, where x_i = c_i / scale_i, and write it to the ranks of the seeds.
    void step_block(i64 panel, i64 block, const i64* seeds, const f64* mass, const f64* factor, f64* ranks) const {
        f64 *change = sums_of(panel, block), *largest = change + WIDTH;
        for (i64 j = 0; j < 2 * WIDTH; j++) change[j] = 0;
        i64 end = least((block + 1) * BLOCK_ROWS, n);
        for (i64 group = block * BLOCK_ROWS; group < end; group += GROUP_ROWS) {
            f64 y[GROUP_ROWS][WIDTH], part[WIDTH] = {0};
            i64 stop = least(group + GROUP_ROWS, end);
            for (i64 i = group; i < stop; i++) {
                compute_row(panel, i, mass, factor, y[i - group]);
                const Value* c = row(panel, i);
                f64 inverse_scale = 1 / scale(i);
                for (i64 j = 0; j < WIDTH; j++) {
                    f64 move = fabs(y[i - group][j] - c[j] * inverse_scale);
                    part[j] += move;
                    largest[j] = move > largest[j] ? move : largest[j];
                }
            }
            for (i64 j = 0; j < WIDTH; j++) change[j] += part[j];
            for (i64 j = 0; j < WIDTH; j++)
                for (i64 i = group; seeds[j] >= 0 && i < stop; i++) ranks[seeds[j] * n + i] = y[i - group][j];
        }
    }

    // Sweep a panel until every column has changed by at most `goal` times its sum; write the sweeps of each column.
    //
    // x_i := x_i + (G x - x)_i / (1 - alpha * p_ii) with the present x: Gauss-Seidel. A sweep changes the sum of x:
    // D(x) and the sum, times 1 - alpha, are those of the sweep before. At the end columns are divided by their sums.
    // The arithmetic is that of the contributions, which no proof counts on.
    void sweep(i64 panel, const f64* first_mass, const f64* first_factor, f64 goal, i64 budget, i64* sweeps, Team& team,
               i64 thread) const {
        f64 mass[WIDTH], factor[WIDTH], sum[WIDTH];
        Value live[WIDTH];
        for (i64 j = 0; j < WIDTH; j++) {
            mass[j] = first_mass[j];
            factor[j] = first_factor[j];
            live[j] = 1;
            sum[j] = sweeps[j] = 0;
        }
        const Value nothing = zero<Value>();
        i64 left = WIDTH;
        for (i64 made = 1; left > 0 && made <= budget; made++) {
            f64 change[WIDTH] = {0}, dangling[WIDTH] = {0};
            for (i64 j = 0; j < WIDTH; j++) sum[j] = 0;
            for (i64 group = 0; group < n; group += GROUP_ROWS) {
                Value group_change[WIDTH], group_sum[WIDTH];
                for (i64 j = 0; j < WIDTH; j++) group_change[j] = group_sum[j] = nothing;
                for (i64 i = group; i < least(group + GROUP_ROWS, n); i++) {
                    Value y[WIDTH], before[WIDTH], own = Value(relaxed[i]), rank = Value(1 / scale(i));
                    Value others = Value(relaxed[i] * scale(i) * alpha);
                    row_sums(row(panel, 0), offsets[i], offsets[i + 1], y);
                    for (i64 j = 0; j < WIDTH; j++) y[j] *= others;
                    if (target || teleport_rows[i] >= 0) add_teleports(panel, i, mass, factor, y);
                    Value* c = row(panel, i);
                    for (i64 j = 0; j < WIDTH; j++) {
                        before[j] = c[j];
                        c[j] = before[j] + live[j] * (y[j] - own * before[j]);
                        group_change[j] += Value(fabs(c[j] - before[j])) * rank;
                        group_sum[j] += c[j] * rank;
                    }
                    for (i64 j = 0; inverse[i] == 0 && j < WIDTH; j++) dangling[j] += c[j];
                }
                for (i64 j = 0; j < WIDTH; j++) {
                    change[j] += group_change[j];
                    sum[j] += group_sum[j];
                }
                if (group % BLOCK_ROWS > 0) continue;
                if (thread == 0) team.poll();
                if (team.stopped()) return;
            }
            left = 0;
            for (i64 j = 0; j < WIDTH; j++) {
                mass[j] = alpha * dangling[j];
                factor[j] = (1 - alpha) * sum[j] + (target ? 0.0 : mass[j]);
                if (live[j] == 0) continue;
                sweeps[j] = made;
                live[j] = change[j] > goal * sum[j];
                left += live[j] != 0;
            }
        }
        for (i64 j = 0; j < WIDTH; j++) sum[j] = sum[j] > 0 ? 1 / sum[j] : 1.0;
        for (i64 block = 0; block < blocks; block++) begin_block(panel, block, nullptr, nullptr, sum);
    }
};

}  // namespace

#define FOR_VALUES(index, Index) DEFINE(index##_f8, Index, f64) DEFINE(index##_f4, Index, f32)
#define SIZES i64 n, i64 m, i64, i64 columns, i64 panels, i64 width
#define GRAPH(Index)                                                                                                   \
    const i64 *offsets, const Index *sources, const f64 *weights, i64 fan_in, f64 alpha, const f64 *inverse,           \
        const f64 *target, const f64 *teleport, const i64 *teleport_rows, f64 *relaxed
// Call use(all panels, team) with panels of the width, and return its result.
#define WITH_PANELS(Index, Value, use)                                                                                 \
    if (columns != panels * width) return -1;                                                                          \
    i64 blocks = (n + BLOCK_ROWS - 1) / BLOCK_ROWS;                                                                    \
    Team team(threads);                                                                                                \
    switch (width) {                                                                                                   \
        case 8: return use(PANELS(8, Index, Value), team);                                                             \
        case 16: return use(PANELS(16, Index, Value), team);                                                           \
        case 32: return use(PANELS(32, Index, Value), team);                                                           \
        default: return -1;                                                                                            \
    }
#define PANELS(width, Index, Value)                                                                                    \
    Panels<width, Index, Value> {                                                                                      \
        n, m, blocks, offsets, sources, weights, fan_in, alpha, inverse, target, teleport, teleport_rows, columns,     \
            relaxed, contributions, sums                                                                               \
    }

// Write the contributions of the ranks of the seeds `chosen`, one per column; those of a negative one are 0.
#define DEFINE(suffix, Index, Value)                                                                                   \
    EXPORT batch_begin_##suffix(SIZES, i64 seeds, GRAPH(Index), Value* contributions, f64* sums, const i64* chosen,    \
                                const f64* ranks, i64 threads) {                                                       \
        for (i64 j = 0; j < columns; j++)                                                                              \
            if (chosen[j] >= seeds) return -1;                                                                         \
        auto begin = [&](auto all, Team& team) {                                                                       \
            return team.for_each(panels* all.blocks, [&](i64 piece) {                                                  \
                i64 panel = piece / all.blocks, block = piece % all.blocks;                                            \
                if (panel == 0) all.write_relaxed(block);                                                              \
                all.begin_block(panel, block, chosen + panel * width, ranks, nullptr);                                 \
            });                                                                                                        \
        };                                                                                                             \
        WITH_PANELS(Index, Value, begin)                                                                               \
    }
FOR_INDICES(FOR_VALUES)
#undef DEFINE

// Compute y = G x from the contributions of x, and write it to the ranks of the seeds `chosen`, one per column.
#define DEFINE(suffix, Index, Value)                                                                                   \
    EXPORT batch_step_##suffix(SIZES, i64 seeds, GRAPH(Index), Value* contributions, f64* sums, const i64* chosen,     \
                               const f64* mass, const f64* factor, f64* ranks, i64 threads) {                          \
        for (i64 j = 0; j < columns; j++)                                                                              \
            if (chosen[j] >= seeds) return -1;                                                                         \
        auto step = [&](auto all, Team& team) {                                                                        \
            return team.for_each(panels* all.blocks, [&](i64 piece) {                                                  \
                i64 panel = piece / all.blocks, first = panel * width;                                                 \
                all.step_block(panel, piece % all.blocks, chosen + first, mass + first, factor + first, ranks);        \
            });                                                                                                        \
        };                                                                                                             \
        WITH_PANELS(Index, Value, step)                                                                                \
    }
FOR_INDICES(FOR_VALUES)
#undef DEFINE

// Make at most `budget` sweeps of each panel, until they change each column by at most `goal` times its sum.
#define DEFINE(suffix, Index, Value)                                                                                   \
    EXPORT batch_sweep_##suffix(SIZES, GRAPH(Index), Value* contributions, f64* sums, const f64* mass,                 \
                                const f64* factor, f64 goal, i64 budget, i64* sweeps, i64 threads) {                                                \
        auto sweep = [&](auto all, Team& team) {                                                                       \
            i64 next = 0, done = 0;                                                                                    \
            return team.run([&](i64 thread) {                                                                          \
                for (i64 panel; (panel = team.take(next, panels, thread)) >= 0;) {                                     \
                    i64 first = panel * width;                                                                         \
                    all.sweep(panel, mass + first, factor + first, goal, budget, sweeps + first, team, thread);                        \
                    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);                                                    \
                }                                                                                                      \
                if (thread == 0) team.wait_for(done, panels);                                                          \
            });                                                                                                        \
        };                                                                                                             \
        WITH_PANELS(Index, Value, sweep)                                                                               \
    }
FOR_INDICES(FOR_VALUES)
