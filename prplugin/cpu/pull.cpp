// PageRank of one vector: y = alpha * (P^T x + D * w) + (1 - alpha) * v, iterated with Anderson mixing.
//
// Mapping: rows in blocks of 256; each thread has a share of the blocks, and helps others when done.
// One call makes all iterations; threads meet at barriers. Every block has its own sums, added in order by one thread.
// Memory per iteration: one position (and weight) per edge, one gathered contribution per edge, and per vertex the
// offset, inverse out-weight, rank (twice), contribution, and its move in float32. Packed edges are read in 1 to 2.7
// bytes each; their row sums are written and read instead of offsets.
// Used by the method `native` for single rankings, and by workers on the host.
#include "mixing.hpp"
#include "packed.hpp"
#include "row_sums.hpp"

namespace {

constexpr i64 LENGTHS = 64;  // longer rows count as equally long
constexpr i64 LANES = 8;     // of a sum over rows
constexpr i64 CHUNK_BLOCKS = 16;  // blocks per piece of work on whole vectors
constexpr i64 AHEAD = 64;         // edges between a prefetch and its use
constexpr i64 FETCHED_FROM = 1 << 17;  // number of vertices whose contributions exceed the L2 cache of many cores
constexpr i64 FAR = 1 << 12;           // difference of positions that share no lines of the L1 cache
constexpr i64 SAMPLES = 512;           // edges that tell whether a graph is scattered
constexpr i64 SWEPT_EDGES = 100000;    // below, one thread sweeps in place: docs/decisions/0019
constexpr i64 PHASES = 4;              // of a sweep of scattered graphs
constexpr f64 LEAST_SWEPT_ALPHA = 1e-300;  // below, the bound of a sweep divides by too small a number
constexpr f64 SWEPT_ALPHA = 0.9;       // above, sweeps of undirected communities take more passes than plain steps

i64 blocks_of(i64 rows) { return (rows + BLOCK_ROWS - 1) / BLOCK_ROWS; }

// Sum terms in groups of 32, then the groups, level by level: rounding_depth(count).
f64 sum_in_groups(const f64* terms, i64 count, i64 stride) {
    i64 size = 1;  // of a group of the uppermost level
    while (size * 32 < count) size *= 32;
    f64 sum = 0;
    for (i64 first = 0; first < count; first += size) {
        const f64* group = terms + first * stride;
        sum += size == 1 ? *group : sum_in_groups(group, least(size, count - first), stride);
    }
    return sum;
}

f64 sum_of_lanes(const f64* sums) {
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Sum term(i) over the rows first .. last - 1, at most a block: in groups, then the groups.
template <class Term> f64 sum_of_rows(i64 first, i64 last, const Term& term) {
    f64 sum = 0;
    for (i64 group = first; group < last; group += GROUP_ROWS) {
        f64 part = 0;
        for (i64 i = group; i < least(group + GROUP_ROWS, last); i++) part += term(i);
        sum += part;
    }
    return sum;
}

template <class Index, class Value> struct Pull {
    i64 n, blocks;
    const i64* offsets;
    const Index* sources;
    const f64* weights;  // normalized; null: all 1
    const f64* inverse;  // inverse out-weight, 0 for dangling vertices; weighted: 1
    const f64 *target, *teleport;
    i64 target_step, teleport_step;  // 0 where one number holds for all rows
    f64 alpha;
    i64 fan_in;
    f64* ranks;
    Value *contributions, *next;
    f64* sums;  // blocks x 4
    const u8* order;  // rows of each block by number of in-edges, as by order_rows; null: in their own order
    f64 dangling = 0, total = 1;  // D(x), and the sum of x
    PackedPieces packed = {};  // instead of offsets and sources, if there are any
    f64* packed_sums = nullptr;  // the row sums of the packed edges, 0 for rows without
    f64* continued = nullptr;  // the sum of the first run of each piece, if its row begins in an earlier piece
    // Of the part of each out-weight that leads to dangling vertices, if vertex n - 1 stands for all of these; else null.
    const f64* outside = nullptr;
    f64 inflow = 0, lump_scale = 1;  // sum of outside_j x_j; rank and moves of vertex n - 1 are those of D times this
    bool scattered = reads_far(), sweeps = false;

    i64 chunks() const { return (blocks + CHUNK_BLOCKS - 1) / CHUNK_BLOCKS; }
    i64 chunk_row(i64 chunk) const { return least(chunk * CHUNK_BLOCKS * BLOCK_ROWS, n); }

    // Return whether most edges read contributions far from those of the edge before, which caches do not hold.
    bool reads_far() const {
        if (!offsets) return false;
        i64 m = offsets[n], far = 0;
        for (i64 k = 0; k < SAMPLES && m > SAMPLES; k++) {
            i64 edge = m / SAMPLES * k, difference = i64(sources[edge + 1]) - i64(sources[edge]);
            far += difference > FAR || difference < -FAR;
        }
        return far > SAMPLES / 2;
    }

    // Decode a piece of packed edges, and sum its runs.
    void sum_piece(i64 piece) {
        u32 decoded[PIECE_EDGES];
        packed.decode(piece, decoded, [&](i64 row, i64 begin, i64 end) {
            f64* sum = begin == 0 && packed.continues(piece) ? continued + piece : packed_sums + row;
            *sum = row_sum<false, 0>(contributions, decoded, nullptr, begin, end, fan_in);
        });
    }

    // Add the sums of runs to those of their rows in the pieces before, with compensation.
    void add_continued() {
        CompensatedSum sum;
        for (i64 piece = 1; piece < packed.count; piece++) {
            if (!packed.continues(piece)) continue;
            i64 row = packed.first_row(piece);
            if (packed.rows[piece - 1] != packed.rows[piece]) sum = {packed_sums[row], 0};
            sum.add(continued[piece]);
            packed_sums[row] = sum.value();
        }
    }

    bool in_place() const { return next == contributions; }

    // Make y the ranks of the next step; return the change that proves its bound.
    //
    // A Gauss-Seidel sweep from x computes y = alpha * (L y + U x + D(x) * w) + (1 - alpha) * S * v, where L + U = P^T,
    // L has the edges that read new contributions, and S is the sum of x as computed. Let T be that of y, e = y - x, and
    // z = y / T, which is the result. Then
    //
    //     T * (G z - z) = alpha * (U e + D(e) * w) + (1 - alpha) * (T - S) * v
    //
    // exactly, rounding errors of y aside, whatever S and T. Columns of U + w D have sums of at most 1, so
    //
    //     ||G z - z|| <= alpha * c,    c = (||e|| + (1 - alpha) / alpha * |T - S|) / T,
    //
    // as for a step whose change is c. In a step U = P^T and T = S = 1, so c = ||e||. Lumped vertices are swept last.
    f64 after_step(f32* moves) {
        f64 change = sum_in_groups(sums, blocks, 4), sum = sum_in_groups(sums + 3, blocks, 4), before = total;
        f64 left = sum_in_groups(sums + 2, blocks, 4), now = left;
        if (outside) {
            i64 lump = n - 1;
            now = alpha * (sweeps ? left : inflow) +
                  (alpha * dangling * target[lump * target_step] + total * teleport[lump * teleport_step]);
            if (moves) moves[lump] = f32((now - dangling) * lump_scale);
            ranks[lump] = now * lump_scale;
            change += fabs(now - dangling);
            sum += now;
            inflow = left;
        }
        dangling = now;
        if (sweeps) {
            total = sum;
            return (change + (1 - alpha) / alpha * fabs(total - before)) / total;
        }
        swap(contributions, next);
        return change;
    }

    void step_block(i64 block, f32* moves) {
        bool fetches = scattered && n >= FETCHED_FROM;
        fetches = fetches && offsets[least((block + 1) * BLOCK_ROWS, n)] + AHEAD < offsets[n];
        if (fetches) weights ? step_rows<true, AHEAD>(block, moves) : step_rows<false, AHEAD>(block, moves);
        else weights ? step_rows<true, 0>(block, moves) : step_rows<false, 0>(block, moves);
    }

    // Compute the rows of one block; write ||y - x||, max |y - x|, D(y) and sum(y) of the block to its sums.
    //
    // In a sweep in place, every `GROUP_ROWS` rows read the contributions of those before.
    template <bool WEIGHTED, i64 DISTANCE> void step_rows(i64 block, f32* moves) {
        i64 begin = block * BLOCK_ROWS, count = least(BLOCK_ROWS, n - (outside != nullptr) - begin);
        f64 row_sums[BLOCK_ROWS], added[BLOCK_ROWS], mass = alpha * dangling;
        if (packed_sums) memcpy(row_sums, packed_sums + begin, size_t(count) * sizeof(f64));
        auto sum_rows = [&](i64 from, i64 to) {
            for (i64 nth = from; nth < to && !packed_sums; nth++) {
                i64 row = order ? order[begin + nth] : nth;
                const i64* ends = offsets + begin + row;
                row_sums[row] = row_sum<WEIGHTED, DISTANCE>(contributions, sources, weights, ends[0], ends[1], fan_in);
            }
        };
        i64 wave = in_place() ? GROUP_ROWS : BLOCK_ROWS;
        for (i64 i = 0; i < count; i++) {
            added[i] = mass * target[(begin + i) * target_step] + total * teleport[(begin + i) * teleport_step];
        }
        f64 change[LANES] = {0}, largest[LANES] = {0}, to_dangling[LANES] = {0}, sum[LANES] = {0};
        auto finish = [&](i64 i, i64 lane) {
            f64 rank = alpha * row_sums[i] + added[i], move = rank - ranks[begin + i];
            if (moves) moves[begin + i] = f32(move);
            ranks[begin + i] = rank;
            next[begin + i] = Value(rank * inverse[begin + i]);
            move = fabs(move);
            change[lane] += move;
            largest[lane] = move > largest[lane] ? move : largest[lane];
            to_dangling[lane] += outside ? rank * outside[begin + i] : inverse[begin + i] == 0 ? rank : 0.0;
            sum[lane] += rank;
        };
        for (i64 first = 0; first < count; first += wave) {
            i64 i = first, end = least(first + wave, count);
            sum_rows(first, end);
            for (; i + LANES <= end; i += LANES)
                for (i64 lane = 0; lane < LANES; lane++) finish(i + lane, lane);
            for (; i < end; i++) finish(i, i % LANES);
        }
        for (f64 each : largest) largest[0] = most(largest[0], each);
        sums[4 * block] = sum_of_lanes(change);
        sums[4 * block + 1] = largest[0];
        sums[4 * block + 2] = sum_of_lanes(to_dangling);
        sums[4 * block + 3] = sum_of_lanes(sum);
    }

    // Divide the ranks z of a block by their sum, and write contributions and dangling mass. `jump`, if given, is z - y,
    // and becomes the change from y to the divided ranks.
    void begin_block(i64 block, f64 norm, f32* jump) {
        i64 first = block * BLOCK_ROWS, last = least(first + BLOCK_ROWS, n);
        sums[4 * block + 2] = sum_of_rows(first, last, [&](i64 i) {
            f64 z = ranks[i];
            ranks[i] = z / norm;
            if (jump) jump[i] = f32(jump[i] + (ranks[i] - z));
            contributions[i] = Value(ranks[i] * inverse[i]);
            return inverse[i] == 0 ? ranks[i] / lump_scale : 0.0;
        });
        if (outside) sums[4 * block + 3] = sum_of_rows(first, last, [&](i64 i) { return ranks[i] * outside[i]; });
    }

    void after_start() {
        dangling = sum_in_groups(sums + 2, blocks, 4);
        if (outside) inflow = sum_in_groups(sums + 3, blocks, 4);
        total = 1;
    }

    // Add the dot products of the new moves with all moves, over the rows of a chunk.
    void multiply(i64 chunk, const Mixing& mixing, const f32* history, f64* products) {
        i64 k = mixing.size(), first = chunk_row(chunk), last = chunk_row(chunk + 1);
        for (i64 a = 0; a < k; a++) {
            if (!mixing.is_new(a)) continue;
            for (i64 b = 0; b <= a; b++) {
                if (!mixing.is_step(b)) continue;
                const f32 *left = history + mixing.row(a) * n, *right = history + mixing.row(b) * n;
                f64 sum[LANES] = {0};
                i64 i = first;
                for (; i + LANES <= last; i += LANES)
                    for (i64 j = 0; j < LANES; j++) sum[j] += f64(left[i + j]) * f64(right[i + j]);
                for (; i < last; i++) sum[0] += f64(left[i]) * f64(right[i]);
                products[a * MOST_ROWS + b] = sum_of_lanes(sum);
            }
        }
    }

    // Replace ranks y of a chunk by z = max(y - sum_k factor_k d_k, 0), write z - y to `jump`; return the sum of z.
    f64 mix(i64 chunk, const Mixing& mixing, const f32* history, const f64* factors, f32* jump) {
        f64 total = 0;
        i64 last = chunk_row(chunk + 1);
        for (i64 first = chunk_row(chunk); first < last; first += BLOCK_ROWS) {
            i64 count = least(BLOCK_ROWS, last - first);
            f64 mixed[BLOCK_ROWS];
            memcpy(mixed, ranks + first, size_t(count) * sizeof(f64));
            for (i64 k = 0; k < mixing.size(); k++) {
                const f32* move = history + mixing.row(k) * n + first;
                if (factors[k] == 0) continue;
                for (i64 i = 0; i < count; i++) mixed[i] -= factors[k] * move[i];
            }
            total += sum_of_rows(0, count, [&](i64 i) {
                f64 z = mixed[i] > 0 ? mixed[i] : 0.0;
                jump[first + i] = f32(z - ranks[first + i]);
                ranks[first + i] = z;
                return outside && first + i == n - 1 ? z / lump_scale : z;
            });
        }
        return total;
    }
};

// What is kept from one call to the next, so that the number of steps per call does not change the ranks.
struct Memory {
    i64 current;  // index of the contributions of x
    f64 dangling, largest, total;  // D(x), the largest change of a rank in the last step, and the sum of x
    f64 change;   // of the last step; infinite before the first
    f64 dangling_before, total_before, inflow;  // D and sum of the x of the last step, and the sum of outside_j x_j
    i64 swept;    // whether the last step was a sweep
    i64 mixes;    // whether a mix precedes the next step
    Mixing mixing;
    f64 products[MOST_ROWS][MOST_ROWS];
};
static_assert(sizeof(Memory) <= 8 * 704, "declared in pull.py");

}  // namespace

// Sort the rows of each block by number of in-edges, since the ends of rows of many lengths are mispredicted.
EXPORT order_rows(i64 n, const i64* offsets, u8* order, i64 threads) {
    auto sort_block = [&](i64 block) {
        i64 begin = block * BLOCK_ROWS, end = least(begin + BLOCK_ROWS, n), starts[LENGTHS + 1] = {0};
        auto length = [&](i64 row) { return least(offsets[row + 1] - offsets[row], LENGTHS - 1); };
        for (i64 row = begin; row < end; row++) starts[length(row) + 1]++;
        for (i64 each = 0; each < LENGTHS; each++) starts[each + 1] += starts[each];
        for (i64 row = begin; row < end; row++) order[begin + starts[length(row)]++] = u8(row - begin);
    };
    return Team(threads).for_each(blocks_of(n), sort_block);
}

// Make up to `budget` steps until one changes the ranks by at most `goal`; return their number.
//
// Steps are mixed with moves in a history of `rows` rows; a period of 0 ends the mixing. Each step writes its change to
// `changes`. `memory` is kept between calls; with `norm`, the iteration begins from the ranks divided by it. A sweep is
// made in place by one thread, or in phases of consecutive blocks.
template <class Index, class Value>
i64 iterate(i64 n, i64, i64, i64 pieces, i64 targets, i64 teleports, i64 rows, i64 budget, const i64* offsets,
            const Index* sources, const f64* weights, const u8* data, const i64* begins, const i64* piece_rows, i64 bits,
            f64* packed_sums, f64* continued, const f64* inverse, const f64* target, const f64* teleport, f64 alpha,
            i64 fan_in, const u8* order, const f64* outside, f64 lump_scale, f64* ranks, Value* contributions, f64* sums, f64* kept, f64 norm, f64 goal,
            i64 period, i64 cycles, f32* history, f64* scratch, f64* changes, i64 threads) {
    auto& memory = *reinterpret_cast<Memory*>(kept);
    Mixing& mixing = memory.mixing;
    auto& products = memory.products;
    if (norm != 0) memory = {0, 0, 0, 1, INFINITY, 0, 1, 0, false, false, Mixing(period, cycles, rows), {}};
    if (period == 0) mixing = Mixing(), memory.mixes = false;
    bool may_sweep = period > 0 && alpha >= LEAST_SWEPT_ALPHA && alpha <= SWEPT_ALPHA;
    bool in_place = may_sweep && offsets && offsets[n] < SWEPT_EDGES;
    Value *x = contributions + memory.current * n, *next = in_place ? x : contributions + !memory.current * n;
    Pull<Index, Value> pull{n,    blocks_of(n), offsets, sources, weights, inverse,  target, teleport,
                     targets > 0, teleports > 0, alpha,  fan_in,  ranks,   x,        next,   sums,
                     in_place ? nullptr : order, memory.dangling, memory.total, {pieces, bits, data, begins, piece_rows},
                     packed_sums, continued, outside, memory.inflow, lump_scale};
    pull.sweeps = in_place || (may_sweep && pull.scattered);
    if (!pull.sweeps && memory.total != 1) norm = memory.total;

    Team team(in_place ? 1 : least(threads, pull.blocks));
    Shares shares(team.count());
    constexpr i64 PRODUCTS = MOST_ROWS * MOST_ROWS;
    i64 steps = 0, jump = 0, chunks = pull.chunks(), blocks = pull.blocks, phases = pull.sweeps && !in_place ? PHASES : 1;
    f64 factors[MOST_ROWS];
    bool starts = norm != 0;
    // What one thread does between the parts of a step.
    auto choose_factors = [&] {
        for (i64 a = 0; a < mixing.size(); a++)
            for (i64 b = 0; b <= a; b++)
                if (mixing.is_new(a) && mixing.is_step(b))
                    products[mixing.row(a)][mixing.row(b)] = products[mixing.row(b)][mixing.row(a)] =
                        sum_in_groups(scratch + a * MOST_ROWS + b, chunks, PRODUCTS);
        starts = mixing.factors(products, factors);
        jump = mixing.next_row();
        if (!starts) mixing.restart();
    };
    auto after_mix = [&] {
        norm = sum_in_groups(scratch, chunks, 1);
        if (!(norm > 0)) norm = 1;
        mixing.after_mix();
    };
    auto after_start = [&] { pull.after_start(); };
    auto after_step = [&](f32* moves) {
        f64 before = memory.change;
        memory.dangling_before = pull.dangling, memory.total_before = pull.total, memory.swept = pull.sweeps;
        memory.change = changes[steps++] = pull.after_step(moves);
        starts = false;
        memory.mixes = !mixing.ended() && mixing.after_step(memory.change, before);
    };
    i64 ended = team.run([&](i64 thread) {
        // Call work(piece) for the pieces begin .. end - 1 on all threads, then finish() on one of them.
        auto in_turn = [&](i64 begin, i64 end, auto work, auto finish) {
            shares.work(team, thread, begin, end, work);
            if (!team.barrier(thread)) return false;
            if (thread == 0) {
                shares.restore();
                finish();
            }
            return team.barrier(thread);
        };
        auto multiply = [&](i64 chunk) { pull.multiply(chunk, mixing, history, scratch + chunk * PRODUCTS); };
        auto mix = [&](i64 chunk) { scratch[chunk] = pull.mix(chunk, mixing, history, factors, history + jump * n); };
        auto start_block = [&](i64 block) { pull.begin_block(block, norm, memory.mixes ? history + jump * n : nullptr); };
        auto sum_piece = [&](i64 piece) { pull.sum_piece(piece); };
        // The next phase reads the new contributions of this one.
        auto renew_block = [&](i64 block) {
            i64 first = block * BLOCK_ROWS, count = least(BLOCK_ROWS, n - first);
            memcpy(pull.contributions + first, pull.next + first, size_t(count) * sizeof(Value));
        };
        while (steps < budget && !(steps && memory.change <= goal)) {
            if (memory.mixes && !in_turn(0, chunks, multiply, choose_factors)) return;
            if (memory.mixes && starts && !in_turn(0, chunks, mix, after_mix)) return;
            if (starts && !in_turn(0, blocks, start_block, after_start)) return;
            if (pieces && !in_turn(0, pieces, sum_piece, [&] { pull.add_continued(); })) return;
            f32* moves = mixing.records() ? history + mixing.next_row() * n : nullptr;
            auto step_block = [&](i64 block) { pull.step_block(block, moves); };
            for (i64 phase = 1; phase <= phases; phase++) {
                i64 begin = blocks * (phase - 1) / phases, end = blocks * phase / phases;
                if (!in_turn(begin, end, step_block, [&] { if (phases == 1) after_step(moves); })) return;
                if (phases > 1 && !in_turn(begin, end, renew_block, [&] { if (phase == phases) after_step(moves); })) return;
            }
        }
    });
    memory.dangling = pull.dangling, memory.total = pull.total, memory.inflow = pull.inflow, memory.largest = 0;
    memory.current = pull.contributions != contributions;
    for (i64 block = 0; block < blocks; block++) memory.largest = most(memory.largest, sums[4 * block + 1]);
    return ended ? ended : steps;
}
EXPORT_FLOATS(iterate)

// Write the row sums of dangling vertices that were lumped, from the contributions of the others.
template <class Index, class Value>
i64 sum_rows(i64 n, i64, i64, const i64* offsets, const Index* sources, const f64* weights, i64 fan_in,
             const Value* contributions, f64* sums, i64 threads) {
    return Team(threads).for_each(blocks_of(n), [&](i64 block) {
        for (i64 i = block * BLOCK_ROWS; i < least((block + 1) * BLOCK_ROWS, n); i++) {
            i64 first = offsets[i], last = offsets[i + 1];
            sums[i] = weights ? row_sum<true, 0>(contributions, sources, weights, first, last, fan_in)
                              : row_sum<false, 0>(contributions, sources, weights, first, last, fan_in);
        }
    });
}
EXPORT_FLOATS(sum_rows)

// Make one step over the n vertices of this process, whose contributions precede those of ghosts; D(x) is `dangling`.
template <class Index>
i64 step_rows(i64 n, i64, i64 targets, i64 teleports, i64, const i64* offsets, const Index* sources, const f64* weights,
              const f64* inverse, const f64* target, const f64* teleport, f64 alpha, i64 fan_in, f64 dangling, f64* ranks,
              f64* contributions, f64* next, f32* moves, f64* sums, i64 threads) {
    Pull<Index, f64> pull{n,      blocks_of(n),  offsets, sources, weights, inverse,       target, teleport,
                     targets > 0, teleports > 0, alpha,   fan_in,  ranks,   contributions, next,   sums,
                     nullptr,     dangling};
    return Team(threads).for_each(pull.blocks, [&](i64 block) { pull.step_block(block, moves); });
}
EXPORT_INDICES(step_rows)
