// Row sums of contributions over in-edges, with a bounded number of additions per term.
#pragma once

#include "native.hpp"

constexpr i64 BLOCK_ROWS = 256;  // rows whose norms are summed together
constexpr i64 GROUP_ROWS = 16;   // rows of a block whose norms are added in one plain loop

// Return the sum of c (times the normalized weight) over the in-edges first .. last - 1, by four interleaved sums.
//
// With AHEAD, the contributions of the edges so far ahead are prefetched, which must exist.
template <bool WEIGHTED, i64 AHEAD, class Index, class Value>
static inline f64 term_sum(const Value* c, const Index* sources, const f64* weights, i64 first, i64 last) {
    auto term = [&](i64 edge) {
        if (AHEAD > 0) __builtin_prefetch(c + sources[edge + AHEAD]);
        return WEIGHTED ? f64(c[sources[edge]]) * weights[edge] : f64(c[sources[edge]]);
    };
    f64 one = 0, two = 0, three = 0, four = 0;
    i64 edge = first;
    for (; edge + 4 <= last; edge += 4) {
        one += term(edge);
        two += term(edge + 1);
        three += term(edge + 2);
        four += term(edge + 3);
    }
    if (edge < last) {  // up to three more, without branches that are hard to predict
        bool has_two = edge + 1 < last, has_three = edge + 2 < last;
        f64 second = term(edge + has_two), third = term(edge + 2 * has_three);
        one += term(edge);
        two += has_two ? second : 0.0;
        three += has_three ? third : 0.0;
    }
    return (one + two) + (three + four);
}

// Return the sum of add(first, last) over the groups of `fan_in` edges: in groups of `fan_in`, and the rest in order.
template <class Sum, class Add> static inline Sum sum_of_groups(i64 first, i64 last, i64 fan_in, const Add& add) {
    Sum sum = 0, groups_sum = 0;
    for (i64 edge = first, groups = 1; edge < last; edge += fan_in, groups++) {
        groups_sum = groups_sum + Sum(add(edge, least(edge + fan_in, last)));
        if (groups % fan_in > 0) continue;
        sum = sum + groups_sum;
        groups_sum = 0;
    }
    return sum + groups_sum;
}

// Return the row sum: groups of `fan_in` terms, groups of `fan_in` group sums, and the rest in order.
template <bool WEIGHTED, i64 AHEAD, class Index, class Value>
static inline f64 row_sum(const Value* c, const Index* sources, const f64* weights, i64 first, i64 last, i64 fan_in) {
    auto add = [&](i64 from, i64 to) { return term_sum<WEIGHTED, AHEAD>(c, sources, weights, from, to); };
    return last - first <= fan_in ? add(first, last) : sum_of_groups<f64>(first, last, fan_in, add);
}

// Shares of pieces of work: each thread first takes the pieces of its own share, so that they stay in its caches, then
// those that others have left.
class Shares {
  public:
    explicit Shares(i64 threads) : threads_(threads) {}

    // Offer all pieces again; on one thread, while no other works.
    void restore() {
        for (i64 share = 0; share < threads_; share++) taken_[share].count = 0;
    }

    // Call body(piece) for the pieces begin .. end - 1 until none is left or the call is interrupted.
    template <class Body> void work(Team& team, i64 thread, i64 begin, i64 end, const Body& body) {
        for (i64 other = 0; other < threads_; other++) {
            i64 share = (thread + other) % threads_, first = begin + part_of(end - begin, share, threads_);
            i64 last = begin + part_of(end - begin, share + 1, threads_);
            i64& taken = taken_[share].count;
            while (!team.ends(thread) && first + __atomic_load_n(&taken, __ATOMIC_RELAXED) < last) {
                i64 piece = first + __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
                if (piece < last) body(piece);
            }
        }
    }

  private:
    struct alignas(64) Taken {
        i64 count = 0;
    };
    i64 threads_;
    Taken taken_[Team::MOST];
};
