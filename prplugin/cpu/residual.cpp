// Norms of a residual, and the ranks that it belongs to: see `prplugin.streams.residual` for the notation.
//
// Mapping: one thread; eight interleaved sums per block. Memory: the norms read y once and r twice, and with `center` read
// and write r once more; a given v is read with r.
// Used after each round of pushes.
#include "native.hpp"

namespace {

constexpr i64 BLOCK_TERMS = 1024;  // terms per block of a blocked sum; as in kernels.py
constexpr i64 LANES = 8;           // interleaved sums of a block

// Add the results of term(u, sums) over all u to `sums`: by lanes of a block, then the blocks.
template <int COUNT, class Term> void add_blocks(i64 n, f64* sums, const Term& term) {
    for (i64 first = 0; first < n; first += BLOCK_TERMS) {
        i64 last = least(first + BLOCK_TERMS, n), u = first;
        f64 lanes[COUNT][LANES] = {};
        for (; u + LANES <= last; u += LANES)
            for (i64 lane = 0; lane < LANES; lane++)
                term(u + lane, [&](int k, f64 value) { lanes[k][lane] += value; });
        for (; u < last; u++) term(u, [&](int k, f64 value) { lanes[k][0] += value; });
        for (int k = 0; k < COUNT; k++) {
            f64 block = 0;
            for (f64 lane : lanes[k]) block += lane;
            sums[k] += block;
        }
    }
}

}  // namespace

// Write c, sum(y), sum(|r|), sum(|r - sum(r) * v|) and sum(r) to `sums`.
//
// `v` sums to 1, or is null if it is uniform; then c is the constant per vertex, and sum(r) is divided by n. If `center`,
// change c so that r sums to about 0, and write 0 instead of sum(r). Summation in blocks keeps the rounding depth small.
EXPORT residual_norms(i64 n, const f64* y, f64* r, const f64* v, f64 c, i64 center, f64* rounding_error, f64* sums) {
    auto subtrahend = [v](i64 u, f64 change) { return v ? change * v[u] : change; };
    f64 plain[3] = {0}, norm_step = 0;
    add_blocks<3>(n, plain, [&](i64 u, auto add_to) {
        add_to(0, y[u]);
        add_to(1, r[u]);
        add_to(2, fabs(r[u]));
    });
    f64 change = !v && n ? plain[1] / f64(n) : plain[1];
    add_blocks<1>(n, &norm_step, [&](i64 u, auto add_to) { add_to(0, fabs(r[u] - subtrahend(u, change))); });
    if (center) {
        f64 before = c;
        c -= change;
        change = before - c;
        for (i64 u = 0; u < n; u++) r[u] -= subtrahend(u, change);
        // Each new r_u rounds once, and each subtrahend twice; their absolute values sum to |sum(r)|.
        rounding_error[0] += norm_step + 2 * plain[2];
        change = 0;
    }
    f64 found[] = {c, plain[0], plain[2], norm_step, change};
    memcpy(sums, found, sizeof found);
    return 0;
}

// Write (y + r - sum(r) * v) / sum(y) to `ranks`, 0 instead of negative entries; `v` and `sum_r` as of `residual_norms`.
EXPORT residual_ranks(i64 n, const f64* y, const f64* r, const f64* v, f64 sum_r, f64 sum_y, f64* ranks) {
    for (i64 u = 0; u < n; u++) {
        f64 rank = y[u] + (r[u] - (v ? sum_r * v[u] : sum_r));
        ranks[u] = (rank > 0 ? rank : 0.0) / sum_y;
    }
    return 0;
}
