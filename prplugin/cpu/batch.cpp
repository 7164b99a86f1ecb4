// PageRank of many seeds at once. Contributions are in tiles: a row of a tile is one cache line, the contributions of
// one vertex for 16 seeds in float32 or 8 in float64.
//
// Mapping: a tile is swept by one thread, in place and row by row, so the bits depend neither on the number of threads
// nor on the other columns. Exact steps are shared by all threads in blocks of 256 rows, each with its own sums.
// Memory per sweep: per edge its position and one cache line, which is prefetched, since rows of random vertices are
// not predictable; per vertex one cache line and four constants, where v is not 0 another, and every eighth sweep the last
// move. Nothing else has an entry per vertex and seed but the ranks, which a step writes and only the next begin reads.
// Used by the method `native` for many seeds.
#include "row_sums.hpp"

namespace {

constexpr i64 AHEAD = 16;  // edges between a prefetch and its use
constexpr i64 LINE = 64;   // bytes per cache line
constexpr i64 CYCLE = 8;   // sweeps between two extrapolations

#ifdef __AVX2__
#define VECTOR 32
#else
#define VECTOR 16
#endif
template <class T, i64 BYTES = VECTOR> struct Simd {
    typedef T Vector __attribute__((vector_size(BYTES)));
};

// Numbers of the columns of a tile, in vectors of the processor: loops over arrays compile slowly and to slow code.
template <class T, i64 WIDTH> struct Row {
    using Vector = typename Simd<T>::Vector;
    static constexpr i64 LENGTH = VECTOR / i64(sizeof(T)), PARTS = WIDTH / LENGTH;
    Vector parts[PARTS];

    Row(T value = 0) {
        for (i64 k = 0; k < PARTS; k++) parts[k] = value - Vector{};
    }
    template <class U> explicit Row(const U* values) {
        constexpr i64 COUNT = VECTOR / i64(sizeof(T) < sizeof(U) ? sizeof(U) : sizeof(T));
        for (i64 j = 0; j < WIDTH; j += COUNT) {
            typename Simd<U, COUNT * i64(sizeof(U))>::Vector given;
            memcpy(&given, values + j, sizeof(given));
            auto part = __builtin_convertvector(given, typename Simd<T, COUNT * i64(sizeof(T))>::Vector);
            memcpy(reinterpret_cast<T*>(parts) + j, &part, sizeof(part));
        }
    }
    template <class U> explicit Row(const Row<U, WIDTH>& other) : Row(reinterpret_cast<const U*>(other.parts)) {}
    void store(T* values) const { memcpy(values, parts, sizeof(parts)); }
#define OPERATOR(name, expression)                                    \
    Row name(const Row& other) const {                                \
        Row result(*this);                                            \
        for (i64 k = 0; k < PARTS; k++) result.parts[k] = expression; \
        return result;                                                \
    }
    OPERATOR(operator+, parts[k] + other.parts[k])
    OPERATOR(operator-, parts[k] - other.parts[k])
    OPERATOR(operator*, parts[k] * other.parts[k])
    OPERATOR(max, other.parts[k] > parts[k] ? other.parts[k] : parts[k])
#undef OPERATOR
    Row abs() const { return max(Row() - *this); }
};

template <class Index, class Value> struct Tiles {
    static constexpr i64 WIDTH = LINE / i64(sizeof(Value));
    static constexpr f64 NOISE = sizeof(Value) == 4 ? 2e-6 : 2e-15;  // relative change that may be rounding errors
    using Values = Row<Value, WIDTH>;
    using Wide = Row<f64, WIDTH>;

    i64 n, m, blocks, v_rows;  // v_rows: that are not 0
    const i64* offsets;
    const Index* sources;
    const f64* weights;
    i64 fan_in;
    f64 alpha;
    const f64 *inverse, *target;
    f64* teleport;             // of each tile: the rows of v that are not 0
    const i64* teleport_rows;  // of each vertex, or -1
    Value (*constants)[4];     // of each row: see write_constants
    Value* contributions;
    f64* sums;  // per tile and block: ||y - x||, max |y - x| and D(y) or D(x) of each column

    Value* row(i64 tile, i64 i) const { return contributions + (tile * n + i) * WIDTH; }

    f64* sums_of(i64 tile, i64 block) const { return sums + 3 * (tile * blocks + block) * WIDTH; }

    // Factor of a rank in its contribution; the ranks of dangling vertices are stored in place of contributions.
    f64 scale(i64 i) const { return inverse[i] == 0 ? 1.0 : inverse[i]; }

    bool teleports(i64 i) const { return target || teleport_rows[i] >= 0; }

    f64* v_of(i64 tile) const { return teleport + tile * v_rows * WIDTH; }

    // Return mass * w_i + factor * v_i, with the rows of v of a tile.
    template <class Sum>
    Row<Sum, WIDTH> teleport_of(const Sum* v, i64 i, const Row<Sum, WIDTH>& mass, const Row<Sum, WIDTH>& factor) const {
        Row<Sum, WIDTH> result;
        if (target) result = mass * Sum(target[i]);
        if (teleport_rows[i] < 0) return result;
        return result + factor * Row<Sum, WIDTH>(v + teleport_rows[i] * WIDTH);
    }

    // Return the sum of the terms of the edges first .. last - 1.
    template <bool WEIGHTED, class Sum> Row<Sum, WIDTH> add_edges(const Value* c, i64 first, i64 last) const {
        Row<Sum, WIDTH> sum;
        for (i64 edge = first; edge < last; edge++) {
            __builtin_prefetch(c + i64(sources[least(edge + AHEAD, m - 1)]) * WIDTH);
            Row<Sum, WIDTH> terms(c + i64(sources[edge]) * WIDTH);
            sum = sum + (WEIGHTED ? terms * Sum(weights[edge]) : terms);
        }
        return sum;
    }

    // Return row sums: groups of `fan_in` terms, and in float64 groups of `fan_in` group sums, and the rest in order.
    // In float32 rows of up to four groups are one.
    template <class Sum> Row<Sum, WIDTH> row_sums(const Value* c, i64 first, i64 last) const {
        auto add = [&](i64 from, i64 to) {
            return weights ? add_edges<true, Sum>(c, from, to) : add_edges<false, Sum>(c, from, to);
        };
        if (last - first <= (sizeof(Sum) == 4 ? 4 * fan_in : fan_in)) return add(first, last);
        return Row<Sum, WIDTH>(sum_of_groups<Wide>(first, last, fan_in, add));
    }

    // Write what a sweep needs of each row of a block, with r = 1 / (1 - alpha * p_ii).
    void write_constants(i64 block) const {
        for (i64 i = block * BLOCK_ROWS; i < least((block + 1) * BLOCK_ROWS, n); i++) {
            f64 itself = 0;
            for (i64 edge = offsets[i]; edge < offsets[i + 1]; edge++)
                itself += i64(sources[edge]) == i ? (weights ? weights[edge] : 1.0) : 0.0;
            f64 r = 1 / (1 - alpha * itself * inverse[i]);
            constants[i][0] = Value(r);
            constants[i][1] = Value(r * scale(i));
            constants[i][2] = Value(r * scale(i) * alpha);
            constants[i][3] = Value(1 / scale(i));
        }
    }

    // Write v of the seeds of a tile, of which each has the entries bounds[seed] .. bounds[seed + 1] - 1.
    void write_teleport(i64 tile, const i64* seeds, const i64* bounds, const i64* rows, const f64* values) const {
        f64* v = v_of(tile);
        memset(v, 0, size_t(v_rows * WIDTH) * sizeof(f64));
        for (i64 j = 0; j < WIDTH; j++) {
            if (seeds[j] < 0) continue;
            for (i64 k = bounds[seeds[j]]; k < bounds[seeds[j] + 1]; k++)
                v[teleport_rows[rows[k]] * WIDTH + j] = values[k];
        }
    }

    // Write contributions of a block, by write(first, last) for some rows, and D of each column.
    template <class Write> void begin_block(i64 tile, i64 block, const Write& write) const {
        Wide dangling;
        i64 end = least((block + 1) * BLOCK_ROWS, n);
        for (i64 group = block * BLOCK_ROWS; group < end; group += GROUP_ROWS) {
            Wide part;
            i64 stop = least(group + GROUP_ROWS, end);
            write(group, stop);
            for (i64 i = group; i < stop; i++)
                if (inverse[i] == 0) part = part + Wide(row(tile, i));
            dangling = dangling + part;
        }
        dangling.store(sums_of(tile, block) + 2 * WIDTH);
    }

    // Begin a block with the ranks of the seeds, or if these are null with their v.
    void begin_block(i64 tile, i64 block, const i64* seeds, const f64* ranks) const {
        begin_block(tile, block, [&](i64 first, i64 last) {
            for (i64 i = first; !ranks && i < last; i++)
                Values(teleport_of(v_of(tile), i, Wide(), Wide(1)) * scale(i)).store(row(tile, i));
            for (i64 j = 0; ranks && j < WIDTH; j++)
                for (i64 i = first; i < last; i++)
                    row(tile, i)[j] = seeds[j] < 0 ? Value(0) : Value(ranks[seeds[j] * n + i] * scale(i));
        });
    }

    // Compute a block of y = G x, where x_i = c_i / scale_i, and write it to the ranks of the seeds:
    // y_i = alpha * (sum of c_j over the in-edges of i) + mass * w_i + factor * v_i.
    void step_block(i64 tile, i64 block, const i64* seeds, const f64* mass, const f64* factor, f64* ranks) const {
        Wide change, largest, masses(mass), factors(factor);
        i64 end = least((block + 1) * BLOCK_ROWS, n);
        for (i64 group = block * BLOCK_ROWS; group < end; group += GROUP_ROWS) {
            f64 rows[GROUP_ROWS][WIDTH];
            Wide part;
            i64 stop = least(group + GROUP_ROWS, end);
            for (i64 i = group; i < stop; i++) {
                Wide y = row_sums<f64>(row(tile, 0), offsets[i], offsets[i + 1]) * alpha;
                if (teleports(i)) y = y + teleport_of(v_of(tile), i, masses, factors);
                y.store(rows[i - group]);
                Wide move = (y - Wide(row(tile, i)) * (1 / scale(i))).abs();
                part = part + move;
                largest = largest.max(move);
            }
            change = change + part;
            for (i64 j = 0; j < WIDTH; j++)
                for (i64 i = group; seeds[j] >= 0 && i < stop; i++) ranks[seeds[j] * n + i] = rows[i - group][j];
        }
        change.store(sums_of(tile, block));
        largest.store(sums_of(tile, block) + WIDTH);
    }

    // Sweep a tile until every column has changed by at most `goal` times its sum; write the sweeps of each column.
    //
    // x_i := x_i + (G x - x)_i / (1 - alpha * p_ii) with the present x and D(x): Gauss-Seidel. A sweep changes the sum
    // of x: the sum that is multiplied by 1 - alpha is that of the sweep before. Changes of late sweeps are nearly in
    // proportion, d_k = r * d_(k-1). If r is about that of the sweep before, x := x + r / (1 - r) * d_k is their limit.
    // A column also ends when its changes are rounding errors. At the end columns are divided by their sums.
    // The arithmetic is that of the contributions, which no proof counts on.
    void sweep(i64 tile, Value* v, const f64* dangling, f64 goal, i64 budget, i64* sweeps, Value* moves, Team& team,
               i64 thread) const {
        f64 sum[WIDTH], change[WIDTH], before[WIDTH], ratio[WIDTH] = {0}, jump[WIDTH];
        Value is_live[WIDTH];
        for (i64 j = 0; j < WIDTH; j++) {
            is_live[j] = sum[j] = 1;
            sweeps[j] = before[j] = 0;
        }
        auto stopped = [&](i64 i) { return i % BLOCK_ROWS == 0 && team.ends(thread); };
        for (i64 k = 0; k < v_rows; k++) Values(v_of(tile) + k * WIDTH).store(v + k * WIDTH);
        Wide mass = Wide(dangling) * alpha;
        i64 left = WIDTH;
        for (i64 made = 1; left > 0 && made <= budget; made++) {
            bool is_last_of_cycle = made % CYCLE == 0;
            Wide changes, sums, ends, past = Wide(sum) * (1 - alpha);
            Values live(is_live), masses, factors;
            bool is_stale = true;  // masses and factors
            for (i64 group = 0; group < n; group += GROUP_ROWS) {
                Values group_change, group_sum;
                for (i64 i = group; i < least(group + GROUP_ROWS, n); i++) {
                    const Value* constant = constants[i];
                    Values y = row_sums<Value>(row(tile, 0), offsets[i], offsets[i + 1]) * constant[2];
                    if (teleports(i)) {
                        if (is_stale) {
                            masses = Values(mass);
                            factors = Values(target ? past : past + mass);
                            is_stale = false;
                        }
                        y = y + teleport_of(v, i, masses, factors) * constant[1];
                    }
                    Values old(row(tile, i)), now = (old + live * (y - old * constant[0])).max(Values());
                    Values move = now - old;
                    now.store(row(tile, i));
                    if (is_last_of_cycle) move.store(moves + i * WIDTH);
                    group_change = group_change + move.abs() * constant[3];
                    group_sum = group_sum + now * constant[3];
                    if (inverse[i] > 0) continue;
                    mass = mass + Wide(move) * alpha;
                    is_stale = true;
                    ends = ends + Wide(now);
                }
                changes = changes + Wide(group_change);
                sums = sums + Wide(group_sum);
                if (stopped(group)) return;
            }
            changes.store(change);
            sums.store(sum);
            mass = ends * alpha;
            bool jumps = false;
            left = 0;
            for (i64 j = 0; j < WIDTH; j++) {
                f64 r = before[j] > 0 ? change[j] / before[j] : 0.0;
                if (is_live[j] != 0) sweeps[j] = made;
                if (change[j] <= goal * sum[j] || (change[j] < NOISE * sum[j] && r > 0.9)) is_live[j] = 0;
                left += is_live[j] != 0;
                bool is_steady = fabs(r - ratio[j]) < 0.06 && r > 0.3 && r < (1 + alpha) / 2;
                jump[j] = is_live[j] != 0 && is_last_of_cycle && is_steady ? r / (1 - r) : 0.0;
                jumps = jumps || jump[j] > 0;
                ratio[j] = r;
                before[j] = change[j];
            }
            if (!jumps) continue;
            sums = ends = Wide();
            for (i64 i = 0; i < n && !stopped(i); i++) {
                Values now = (Values(row(tile, i)) + Values(moves + i * WIDTH) * Values(jump)).max(Values());
                now.store(row(tile, i));
                sums = sums + Wide(now * constants[i][3]);
                if (inverse[i] == 0) ends = ends + Wide(now);
            }
            sums.store(change);
            for (i64 j = 0; j < WIDTH; j++) sum[j] = jump[j] > 0 ? change[j] : sum[j];  // others keep their bits
            mass = ends * alpha;
        }
        for (i64 j = 0; j < WIDTH; j++) sum[j] = sum[j] > 0 ? 1 / sum[j] : 1.0;
        auto divide = [&](i64 first, i64 last) {
            for (i64 i = first; i < last; i++) Values(Wide(row(tile, i)) * Wide(sum)).store(row(tile, i));
        };
        for (i64 block = 0; block < blocks && !stopped(0); block++) begin_block(tile, block, divide);
    }
};

}  // namespace

#define SIZES i64 n, i64 m, i64 count, i64 teleports, i64 width, i64 columns
#define ARRAYS                                                                                                  \
    const i64 *offsets, const Index *sources, const f64 *weights, i64 fan_in, f64 alpha, const f64 *inverse,    \
        const f64 *target, const i64 *teleport_rows, f64 *teleport, Value(*constants)[4], Value *contributions, \
        f64 *sums
#define TILES                                                                                                        \
    if (width != Tiles<Index, Value>::WIDTH || columns != count * width) return -1;                                  \
    const i64 blocks = (n + BLOCK_ROWS - 1) / BLOCK_ROWS;                                                            \
    const Tiles<Index, Value> all {                                                                                  \
        n, m, blocks, teleports, offsets, sources, weights, fan_in, alpha, inverse, target, teleport, teleport_rows, \
            constants, contributions, sums                                                                           \
    }

// Write v and the contributions of the seeds `chosen`, one per column, and 0 for a negative one: of their ranks, or if
// these are null of their v, the entries bounds[seed] .. bounds[seed + 1] - 1.
template <class Index, class Value>
i64 batch_begin(SIZES, i64, i64, ARRAYS, const i64* chosen, const i64* bounds, const i64* rows, const f64* values,
                const f64* ranks, i64 threads) {
    TILES;
    auto write_v = [&](i64 tile) { all.write_teleport(tile, chosen + tile * width, bounds, rows, values); };
    if (i64 ended = Team(threads).for_each(count, write_v)) return ended;
    return Team(threads).for_each(count * blocks, [&](i64 piece) {
        if (piece < blocks) all.write_constants(piece);
        all.begin_block(piece / blocks, piece % blocks, chosen + piece / blocks * width, ranks);
    });
}
EXPORT_FLOATS(batch_begin)

// Compute y = G x from the contributions of x, and write it to the ranks of the seeds `chosen`.
template <class Index, class Value>
i64 batch_step(SIZES, i64, ARRAYS, const i64* chosen, const f64* mass, const f64* factor, f64* ranks, i64 threads) {
    TILES;
    return Team(threads).for_each(count * blocks, [&](i64 piece) {
        i64 first = piece / blocks * width;
        all.step_block(piece / blocks, piece % blocks, chosen + first, mass + first, factor + first, ranks);
    });
}
EXPORT_FLOATS(batch_step)

// Make at most `budget` sweeps of each tile, until they change each column by at most `goal` times its sum.
template <class Index, class Value>
i64 batch_sweep(SIZES, i64 movers, ARRAYS, const f64* dangling, f64 goal, i64 budget, Value* v, Value* moves,
                i64* sweeps, i64 threads) {
    TILES;
    Team team(least(threads, movers));
    i64 next = 0, done = 0;
    return team.run([&](i64 thread) {
        for (i64 tile; (tile = team.take(next, count, thread)) >= 0;) {
            i64 first = tile * width;
            all.sweep(tile, v + thread * teleports * width, dangling + first, goal, budget, sweeps + first,
                      moves + thread * n * width, team, thread);
            __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
        }
        if (thread == 0) team.wait_for(done, count);
    });
}
EXPORT_FLOATS(batch_sweep)
