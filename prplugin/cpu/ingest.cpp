// Construction of a graph: integer ids to positions, degrees, edges grouped by row, and out-weights.
//
// Mapping: counting and grouping take pieces of rows, or buckets of vertices, on the thread that is free next; ids are
// inserted into one hash table that all threads share. The order of the frame is kept within each row, and codes are
// assigned in ascending order of id afterwards, so results do not depend on the number of threads.
// Memory: grouping reads the columns twice, writes and reads one 64-bit pair per edge, and writes the result once.
// Used for all frames on the host.
#include "radix.hpp"

namespace {

constexpr i64 AHEAD = 64;               // rows between a prefetch and its use
constexpr i64 FETCHED_FROM = 1 << 20;   // number of counts from which they exceed the L2 cache of a core

// Return id - low, exact modulo 2**64: ids of uint64 may lie on both sides of 2**63.
u64 less(i64 id, i64 low) { return u64(id) - u64(low); }

template <class Index, class Count>
void count(const Index* ids, i64 first, i64 last, i64 low, i64 shift, i64 n, Count* counts) {
    bool fetched = n > FETCHED_FROM;
    for (i64 row = first; row < last; row++) {
        if (fetched && row + AHEAD < last) __builtin_prefetch(counts + (less(ids[row + AHEAD], low) >> shift));
        u64 bucket = less(ids[row], low) >> shift;
        if (bucket < u64(n)) counts[bucket]++;
    }
}

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15u;  // of Fibonacci hashing: 2**64 over the golden ratio

// Insert ids by open addressing until none of the `left` new ones is left; return the first row that is not inserted.
template <class Index, class Code>
i64 insert(const Index* ids, i64 row, i64 last, i64* slots, i64 size, i64 bits, Code* codes, i64& left) {
    i64 mask = size - 2, shift = 64 - bits;
    for (; row < last; row++) {
        if (row + AHEAD < last) __builtin_prefetch(&slots[(u64(i64(ids[row + AHEAD])) * GOLDEN) >> shift]);
        i64 key = ids[row], slot = i64((u64(key) * GOLDEN) >> shift), held;
        if (key == INT64_MIN) {  // marks empty slots; this id has its own, after all others
            slot = mask + 1;
            __atomic_store_n(&slots[slot], i64(0), __ATOMIC_RELAXED);
        }
        while (key != INT64_MIN && (held = __atomic_load_n(&slots[slot], __ATOMIC_RELAXED)) != key) {
            if (held != INT64_MIN) {
                slot = (slot + 1) & mask;
                continue;
            }
            if (left == 0) return row;
            if (__atomic_compare_exchange_n(&slots[slot], &held, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                left--;
                break;
            }
        }
        codes[row] = Code(slot);
    }
    return row;
}

// Turn the counts of each piece in each bucket into the first place of its pairs; bucket b begins at bounds[b].
void find_places(i64 pieces, i64 buckets, i64* counts, i64* bounds) {
    i64 place = 0;
    for (i64 bucket = 0; bucket < buckets; bucket++) {
        bounds[bucket] = place;
        for (i64 piece = 0; piece < pieces; piece++) {
            i64 size = counts[piece * buckets + bucket];
            counts[piece * buckets + bucket] = place;
            place += size;
        }
    }
    bounds[buckets] = place;
}

// Number the distinct ids ^ flip of a few values in the order of their first occurrence; return how many there are.
template <class Index>
i64 number(i64 count, const Index* values, u64 flip, i64 size, i32* slots, u64* ids, i32* codes) {
    i64 n = 0, mask = size - 1, shift = 64 - __builtin_ctzll(u64(size));
    memset(slots, -1, size * sizeof *slots);
    for (i64 row = 0; row < count; row++) {
        u64 id = u64(i64(values[row])) ^ flip;
        i64 slot = i64((id * GOLDEN) >> shift);
        while (slots[slot] >= 0 && ids[slots[slot]] != id) slot = (slot + 1) & mask;
        if (slots[slot] < 0) {
            ids[n] = id;
            slots[slot] = i32(n++);
        }
        codes[row] = slots[slot];
    }
    return n;
}

// Turn the sizes of rows into their beginnings; the first one begins at `start`.
void add_up(i64 rows, i64 start, i64* sizes) {
    for (i64 row = 0; row < rows; row++) {
        i64 size = sizes[row];
        sizes[row] = start;
        start += size;
    }
}

// Group edges by target in the order of the frame, and count those of each source, on one thread.
void group(i64 m, const i32* sources, const i32* targets, i64 n, i64* offsets, i32* indices, i32* degrees) {
    memset(offsets, 0, (n + 1) * sizeof *offsets);
    memset(degrees, 0, n * sizeof *degrees);
    for (i64 edge = 0; edge < m; edge++) degrees[sources[edge]]++, offsets[targets[edge] + 1]++;
    add_up(n, 0, offsets + 1);
    for (i64 edge = 0; edge < m; edge++) indices[offsets[targets[edge] + 1]++] = sources[edge];
}

}  // namespace

// Count how often each of the ids low .. low + n - 1 occurs; each thread counts a part of them in its own row.
template <class Index, class Count>
i64 count_ids(i64 m, i64 parts, i64 n, const Index* ids, i64 low, Count* counts) {
    return Team(parts).for_parts(m, parts, [&](i64 part, i64 first, i64 last) {
        count(ids, first, last, low, 0, n, counts + part * n);
    });
}
EXPORT_PAIRS(count_ids)

// Factorize a few values in ascending order of id, on one thread; return the number of ids. Unless `offsets` is null, the
// values are sources, then destinations of edges, which are grouped by target. `size` is a power of two above `count`.
template <class Index>
i64 factorize_few(i64 count, i64 size, const Index* values, i64 flip, i32* slots, u64* scratch, i32* codes, Index* ids,
                  i64* offsets, i32* indices, i32* degrees) {
    u64 *keys = scratch, *order = keys + count;
    i64 n = number(count, values, u64(flip), size, slots, keys, codes);
    for (i64 i = 0; i < n; i++) order[i] = u64(i);
    radix_sort(n, keys, order, order + count, order + 2 * count);
    i32* positions = slots;  // of each id, by its number
    for (i64 i = 0; i < n; i++) ids[i] = Index(keys[i] ^ u64(flip)), positions[order[i]] = i32(i);
    for (i64 row = 0; row < count; row++) codes[row] = positions[codes[row]];
    if (offsets) group(count / 2, codes, codes + count / 2, n, offsets, indices, degrees);
    return n;
}
EXPORT_SIGNED(factorize_few)

// Insert ids into a table until `limit` are new, an equal part by each thread; write their slots to `codes`. The rows of
// each piece from `done` on are left, which is moved. Return the number of new ids.
template <class Index, class Code>
i64 insert_ids(i64 m, i64 pieces, i64 size, const Index* ids, i64* done, i64* slots, i64 bits, Code* codes, i64 limit,
               i64 threads) {
    Team team(least(threads, pieces));
    i64 next = 0, added = 0;
    i64 ended = team.run([&](i64 thread) {
        i64 part = limit / team.count(), left = part;
        for (i64 piece; (piece = team.take(next, pieces, thread)) >= 0;) {
            i64 last = part_of(m, piece + 1, pieces);
            done[piece] = insert(ids, done[piece], last, slots, size + 1, bits, codes, left);
        }
        __atomic_fetch_add(&added, part - left, __ATOMIC_RELAXED);
    });
    return ended ? ended : added;
}
EXPORT_PAIRS(insert_ids)

// Write the position of each id, or id - low if `positions` is null, in the rows from `firsts` to `lasts` of each piece.
//
// `codes` may be `ids`.
template <class Index, class Code>
i64 map_ids(i64, i64 pieces, i64, const Index* ids, i64 low, const i64* firsts, const i64* lasts, const Code* positions,
            Code* codes, i64 threads) {
    return Team(threads).for_each(pieces, [&](i64 piece) {
        for (i64 row = firsts[piece]; row < lasts[piece]; row++) {
            u64 place = less(ids[row], low);
            codes[row] = positions ? positions[place] : Code(place);
        }
    });
}
EXPORT_PAIRS(map_ids)

// Partition the edges into buckets of 2**shift rows; `bounds` receives the first pair of each bucket.
template <class Index>
i64 partition_edges(i64 m, i64 pieces, i64 buckets, const Index* rows, const Index* columns, const f64* weights, i64 low,
                    i64 shift, i64 bits, i64* places, i64* bounds, i64* pairs, f64* bucket_weights, i64 threads) {
    i64 mask = (i64(1) << shift) - 1;
    auto count_part = [&](i64 piece, i64 first, i64 last) {
        count(rows, first, last, low, shift, buckets, places + piece * buckets);
    };
    if (i64 ended = Team(threads).for_parts(m, pieces, count_part)) return ended;
    find_places(pieces, buckets, places, bounds);
    return Team(threads).for_parts(m, pieces, [&](i64 piece, i64 first, i64 last) {
        i64* next = places + piece * buckets;
        for (i64 edge = first; edge < last; edge++) {
            i64 row = i64(less(rows[edge], low)), column = i64(less(columns[edge], low));
            i64 place = next[row >> shift]++;
            pairs[place] = (row & mask) << bits | column;
            if (weights) bucket_weights[place] = weights[edge];
        }
    });
}
EXPORT_SIGNED(partition_edges)

// Sort the edges of all buckets by row, in the given order of the buckets; `offsets` must be zero.
template <class Index>
i64 sort_buckets(i64 buckets, i64, i64 n, const i64* bounds, i64 shift, i64 bits, const i64* pairs,
                 const f64* bucket_weights, const i64* order, i64* offsets, Index* indices, f64* weights, i64 threads) {
    i64 mask = (i64(1) << bits) - 1;
    return Team(threads).for_each(buckets, [&](i64 nth) {
        i64 bucket = order[nth], first = bucket << shift, rows = least(i64(1) << shift, n - first);
        i64 begin = bounds[bucket], end = bounds[bucket + 1], *ends = offsets + first + 1;
        for (i64 edge = begin; edge < end; edge++) ends[pairs[edge] >> bits]++;
        add_up(rows, begin, ends);
        for (i64 edge = begin; edge < end; edge++) {
            i64 place = ends[pairs[edge] >> bits]++;
            indices[place] = Index(pairs[edge] & mask);
            if (weights) weights[place] = bucket_weights[edge];
        }
    });
}
EXPORT_SIGNED(sort_buckets)

// Write the source of each edge (and its weight) to the next free entry of its target.
template <class Index, class Source>
i64 scatter(i64 k, i64, i64, const Index* sources, const Index* targets, const f64* weights, i64* places, Source* placed,
            f64* placed_weights) {
    for (i64 edge = 0; edge < k; edge++) {
        i64 place = places[targets[edge]]++;
        placed[place] = Source(sources[edge]);
        if (weights) placed_weights[place] = weights[edge];
    }
    return 0;
}
EXPORT_PAIRS(scatter)

// Add each term to its group's sum, and the rounding error of that addition to the group's error.
template <class Index>
i64 add_compensated(i64 k, i64, const Index* groups, const f64* terms, f64* sums, f64* errors) {
    for (i64 edge = 0; edge < k; edge++) {
        CompensatedSum sum{sums[groups[edge]], errors[groups[edge]]};
        sum.add(terms[edge]);
        sums[groups[edge]] = sum.sum;
        errors[groups[edge]] = sum.errors;
    }
    return 0;
}
EXPORT_SIGNED(add_compensated)
