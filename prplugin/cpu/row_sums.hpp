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

// Return the row sum: groups of `fan_in` terms, groups of `fan_in` group sums, and the rest in order.
template <bool WEIGHTED, i64 AHEAD, class Index, class Value>
static inline f64 row_sum(const Value* c, const Index* sources, const f64* weights, i64 first, i64 last, i64 fan_in) {
    if (last - first <= fan_in) return term_sum<WEIGHTED, AHEAD>(c, sources, weights, first, last);
    f64 sum = 0, groups_sum = 0;
    i64 groups = 0;
    for (i64 edge = first; edge < last; edge += fan_in) {
        groups_sum += term_sum<WEIGHTED, AHEAD>(c, sources, weights, edge, least(edge + fan_in, last));
        if (++groups == fan_in) {
            sum += groups_sum;
            groups_sum = 0;
            groups = 0;
        }
    }
    return sum + groups_sum;
}

// Shares of the rows: each thread first takes the pieces of its own share, so that they stay in its caches, then those
// that others have left.
class Shares {
  public:
    Shares() = default;
    Shares(i64 threads, i64 begin, i64 end) : threads_(threads), begin_(begin), end_(end) { restore(); }

    // Offer all pieces; on one thread, while no other works.
    void restore() {
        for (i64 thread = 0; thread < threads_; thread++) {
            i64 first = begin_ + (end_ - begin_) * thread / threads_;
            shares_[thread] = {first, begin_ + (end_ - begin_) * (thread + 1) / threads_};
        }
    }

    // Call body(piece) for pieces until none is left or the call is interrupted.
    template <class Body> void work(Team& team, i64 thread, const Body& body) {
        for (i64 other = 0; other < threads_; other++) {
            Share& share = shares_[(thread + other) % threads_];
            while (!team.stopped()) {
                if (__atomic_load_n(&share.next, __ATOMIC_RELAXED) >= share.last) break;
                i64 piece = __atomic_fetch_add(&share.next, 1, __ATOMIC_RELAXED);
                if (piece >= share.last) break;
                body(piece);
            }
            if (thread == 0) team.poll();
        }
    }

  private:
    struct alignas(64) Share {
        i64 next, last;
    };
    i64 threads_ = 0, begin_ = 0, end_ = 0;
    Share shares_[Team::MOST];
};
