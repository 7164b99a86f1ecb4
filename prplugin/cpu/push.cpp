// Pushes of residuals along out-edges: see `prplugin.solver.residual` for the notation.
//
// Mapping: one thread, since each push reads what those before it wrote. Memory: per push the positions, out-weight, y
// and r of the vertex, and per out-edge the target (and weight) and a random read and write of r; per round three passes
// over y and r.
// Used by rankings after an update on the host.
#include "native.hpp"

namespace {

constexpr i64 BLOCK_TERMS = 1024;   // terms per block of a blocked sum; as in push.py
constexpr i64 LANES = 8;            // interleaved sums of a block
constexpr i64 PUSH_COST = 4;        // of a push in edges, beside the out-edges of the vertex; as in push.py
constexpr i64 AHEAD = 8;            // prefetch distance in pushes
constexpr i64 POLL_VERTICES = 1 << 12;
constexpr f64 MAX_RATIO = 1 << 20;  // of out-weights after and before an update, above which r is computed anew

template <bool VALUE> struct Choice {
    static constexpr bool value = VALUE;
};
using Yes = Choice<true>;
using No = Choice<false>;

// Add the contributions of some edges of a vertex to r; return the sum of |r_t| after each addition.
template <bool WEIGHTED, class Index>
f64 add(i64 first, i64 last, const Index* targets, const f64* weights, f64 per_weight, f64* r) {
    f64 magnitudes = 0, others = 0;
    for (i64 edge = first; edge < last; edge++) {
        f64 after = r[targets[edge]] + (WEIGHTED ? per_weight * weights[edge] : per_weight);
        r[targets[edge]] = after;
        // Two sums in turn, so that an addition does not wait for the previous one.
        f64 sum = others + fabs(after);
        others = magnitudes;
        magnitudes = sum;
    }
    return magnitudes + others;
}

template <class Index> struct Graph {
    const i64 *begins, *ends;
    const Index* indices;
    const f64 *weights, *out_weight;
    f64* y;
    f64 alpha;
    f64* r;
    f64 depth;

    template <bool WEIGHTED> bool add_contributions(i64 n, f64& rounding_error) {
        Team team(1);
        return team.run([&](i64) {
            for (i64 u = 0; u < n && !team.stopped(); u++) {
                if (u % POLL_VERTICES == 0) team.poll();
                if (!(out_weight[u] > 0)) continue;
                f64 sent = alpha * y[u];
                f64 magnitudes = add<WEIGHTED>(begins[u], ends[u], indices, weights, sent / out_weight[u], r);
                rounding_error += magnitudes + depth * fabs(sent);
            }
        });
    }

    // Push the candidates from `position` to `end` - 1, or to the last one; return the edges spent.
    //
    // With ADDS, vertices whose residuals exceed `candidate_min` become candidates, and `norm_change` grows.
    template <bool WEIGHTED, bool ADDS>
    i64 push_some(i64 position, i64 end, Index* candidates, i64& candidate_count, u8* is_candidate, f64 candidate_min,
                  f64& rounding_error, f64& norm_change, f64 threshold, f64 relaxation) const {
        // Local copies, which the compiler keeps in registers while it writes to arrays.
        const Graph local = *this;
        const auto [begins, ends, indices, weights, out_weight, y, alpha, r, depth] = local;
        i64 edges = 0, count = candidate_count;
        f64 error = 0, norm = 0;
        for (; position < least(end, count); position++) {
            if (!ADDS && position + 2 * AHEAD < count) {
                Index near = candidates[position + AHEAD], far = candidates[position + 2 * AHEAD];
                __builtin_prefetch(begins + far);
                __builtin_prefetch(ends + far);
                __builtin_prefetch(indices + begins[near]);
                __builtin_prefetch(out_weight + near);
                __builtin_prefetch(y + near);
            }
            Index u = candidates[position];
            i64 first = begins[u], last = ends[u];
            f64 before = r[u];
            if (fabs(before) <= threshold * f64(last - first + PUSH_COST)) continue;
            edges += last - first + PUSH_COST;
            f64 weight = out_weight[u], y_before = y[u];
            f64 y_after = y_before + (weight > 0 ? before * relaxation : before);
            f64 pushed = y_after - y_before, left = before - pushed;  // includes what rounding kept from y_u
            y[u] = y_after;
            r[u] = left;
            f64 norm_before = fabs(before), norm_after = fabs(left);
            if (weight > 0) {
                f64 per_weight = alpha * pushed / weight;
                if (!ADDS) norm_after += add<WEIGHTED>(first, last, indices, weights, per_weight, r);
                for (i64 edge = first; ADDS && edge < last; edge++) {
                    Index target = indices[edge];
                    f64 after = r[target];
                    norm_before += fabs(after);
                    after += WEIGHTED ? per_weight * weights[edge] : per_weight;
                    r[target] = after;
                    norm_after += fabs(after);
                    if (fabs(after) > candidate_min && !is_candidate[target]) {
                        is_candidate[target] = 1;
                        candidates[count++] = target;
                    }
                }
            }
            norm += norm_after - norm_before;
            // Each contribution carries `depth` roundings, and their absolute values sum to alpha * |pushed|.
            error += fabs(pushed) * (1 + depth) + norm_after;
        }
        candidate_count = count;
        rounding_error += error;
        norm_change += norm;
        return edges;
    }

    template <bool WEIGHTED, bool ADDS, class... Arguments>
    i64 push(Index* candidates, i64& count, Arguments&&... arguments) const {
        i64 edges = 0;
        Team team(1);
        bool completed = team.run([&](i64) {
            for (i64 first = 0; first < count && !team.stopped(); first += POLL_VERTICES) {
                edges += push_some<WEIGHTED, ADDS>(first, first + POLL_VERTICES, candidates, count, arguments...);
                team.poll();
            }
        });
        return completed ? edges : INTERRUPTED;
    }
};

// Edges that are removed from or added to rows: those of row i are at[i] .. at[i + 1] - 1.
struct Changed {
    const i64 *at, *targets;
    const f64* weights;

    f64 add_row(i64 i, f64 per_weight, f64* r) const {
        return weights ? add<true>(at[i], at[i + 1], targets, weights, per_weight, r)
                       : add<false>(at[i], at[i + 1], targets, weights, per_weight, r);
    }
};

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

// As `residual_norms`; `subtrahend(u, change)` is change times v_u, or `change` itself if v is uniform.
template <class Subtrahend>
void norms(i64 n, const f64* y, f64* r, bool uniform, f64 c, bool center, f64* rounding_error, f64* sums,
           const Subtrahend& subtrahend) {
    f64 plain[3] = {0}, norm_step = 0;
    add_blocks<3>(n, plain, [&](i64 u, auto add_to) {
        add_to(0, y[u]);
        add_to(1, r[u]);
        add_to(2, fabs(r[u]));
    });
    f64 change = uniform && n ? plain[1] / f64(n) : plain[1];
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
}

}  // namespace

// Add the contributions of all vertices to r: alpha * y_u * w / W_u along each out-edge of u.
//
// rounding_error[0] grows by a bound on the rounding errors of r, in units of 2**-53: one rounding of the new r per
// addition, and `depth` roundings of each contribution; their absolute values sum to alpha * |y_u|.
#define DEFINE_CONTRIBUTIONS(suffix, Index)                                                                        \
    EXPORT add_contributions_##suffix(i64 n, i64, const i64* begins, const i64* ends, const Index* indices,        \
                                      const f64* weights, const f64* out_weight, f64* y, f64 alpha, f64* r,        \
                                      i64 depth, f64* rounding_error) {                                            \
        Graph<Index> graph{begins, ends, indices, weights, out_weight, y, alpha, r, f64(depth)};                   \
        return (weights ? graph.template add_contributions<true>(n, rounding_error[0])                             \
                        : graph.template add_contributions<false>(n, rounding_error[0]))                           \
                   ? 0                                                                                             \
                   : INTERRUPTED;                                                                                  \
    }
FOR_INDICES(DEFINE_CONTRIBUTIONS)

// Push the residuals of the first count[0] candidates, in their order, that exceed `threshold` per edge.
//
// A push of u with d = `relaxation` * r_u adds d to y_u, subtracts it from r_u, and adds alpha * d * w / W_u to r_t for
// each out-edge to t. A vertex without out-edges is pushed without relaxation. A vertex whose residual exceeds
// `candidate_min` becomes the last candidate, unless `is_candidate` is null. Return the edges spent; write the new count,
// and, with `is_candidate`, the change of ||r||.
#define DEFINE_PUSH(suffix, Index)                                                                                 \
    EXPORT push_##suffix(i64, i64, Index* candidates, i64* count, u8* is_candidate, f64 candidate_min,             \
                         const i64* begins, const i64* ends, const Index* indices, const f64* weights,             \
                         const f64* out_weight, f64* y, f64 alpha, f64* r, i64 depth, f64* error,                  \
                         f64* norm_change, f64 threshold, f64 relaxation) {                                        \
        Graph<Index> graph{begins, ends, indices, weights, out_weight, y, alpha, r, f64(depth)};                   \
        norm_change[0] = 0;                                                                                        \
        auto push = [&](auto weighted, auto adds) {                                                                \
            return graph.template push<weighted.value, adds.value>(candidates, count[0], is_candidate,             \
                                                                   candidate_min, error[0], norm_change[0],        \
                                                                   threshold, relaxation);                         \
        };                                                                                                         \
        if (weights) return is_candidate ? push(Yes(), Yes()) : push(Yes(), No());                                 \
        return is_candidate ? push(No(), Yes()) : push(No(), No());                                                \
    }
FOR_INDICES(DEFINE_PUSH)

// Write those of some vertices with |r_u| > `candidate_min` to `candidates`, once each, and the largest |r_u|; return
// their number.
#define DEFINE_CANDIDATES(suffix, Index)                                                                           \
    EXPORT find_candidates_##suffix(i64, i64 size, const f64* r, const i64* vertices, f64 candidate_min,           \
                                    Index* candidates, u8* is_candidate, f64* largest) {                           \
        i64 count = 0;                                                                                             \
        for (i64 i = 0; i < size; i++) {                                                                           \
            f64 magnitude = fabs(r[vertices[i]]);                                                                  \
            if (!(magnitude > candidate_min) || is_candidate[vertices[i]]) continue;                               \
            candidates[count++] = Index(vertices[i]);                                                              \
            is_candidate[vertices[i]] = 1;                                                                         \
            largest[0] = most(largest[0], magnitude);                                                              \
        }                                                                                                          \
        return count;                                                                                              \
    }
FOR_INDICES(DEFINE_CANDIDATES)

// Write the vertices with |r_u| > `threshold` * costs[u] to `selected`, in their order; return their number.
//
// Without a branch, whose mispredictions would take longer than the pushes of the vertices selected.
#define DEFINE_SELECT(suffix, Index)                                                                               \
    EXPORT select_vertices_##suffix(i64 n, const f64* r, const f32* costs, f64 threshold, Index* selected) {       \
        i64 count = 0;                                                                                             \
        for (i64 u = 0; u < n; u++) {                                                                              \
            selected[count] = Index(u);                                                                            \
            count += fabs(r[u]) > threshold * f64(costs[u]);                                                       \
        }                                                                                                          \
        return count;                                                                                              \
    }
FOR_INDICES(DEFINE_SELECT)

// Change r after the out-edges of `rows` have changed.
//
// y_u is multiplied by the ratio of the out-weights of u, so that the contributions along its remaining edges stay the
// same, and r_u falls by what y_u gains. A push of u reverses this, if |r_u| is large enough for one. If an old out-weight
// is NaN, or a ratio is extreme, r is not changed, and rounding_error[0] becomes infinite.
EXPORT change_rows(i64 changed, i64, i64, i64, const i64* rows, const i64* removed_at, const i64* removed_targets,
                   const f64* removed_weights, const i64* added_at, const i64* added_targets,
                   const f64* added_weights, const f64* old_out_weight, const f64* new_out_weight, f64* y, f64 alpha,
                   f64* r, i64 depth, f64* rounding_error) {
    Changed removed{removed_at, removed_targets, removed_weights}, added{added_at, added_targets, added_weights};
    for (i64 i = 0; i < changed; i++) {
        i64 u = rows[i];
        f64 old_weight = old_out_weight[i], new_weight = new_out_weight[i];
        f64 ratio = old_weight > 0 && new_weight > 0 ? new_weight / old_weight : 1;
        if (!(old_weight >= 0 && 1 / MAX_RATIO < ratio && ratio < MAX_RATIO)) {
            rounding_error[0] = INFINITY;
            continue;
        }
        f64 error = 0, before = y[u], after = before * ratio;
        if (old_weight > 0) error += removed.add_row(i, -alpha * before / old_weight, r);
        r[u] -= after - before;
        y[u] = after;
        if (new_weight > 0) error += added.add_row(i, alpha * after / new_weight, r);
        // The two rounding errors at u; `depth` roundings of the contributions along removed and added edges, whose
        // absolute values sum to at most alpha times that of y_u, and twice along the others, by both out-weights.
        rounding_error[0] +=
            error + fabs(r[u]) + fabs(after - before) + f64(depth) * (fabs(before) + 3 * fabs(after));
    }
    return 0;
}

// Write c, sum(y), sum(|r|), sum(|r - sum(r) * v|) and sum(r) to `sums`.
//
// `v` sums to 1, or is null if it is uniform; then c is the constant per vertex, and sum(r) is divided by n. If `center`,
// change c so that r sums to about 0, and write 0 instead of sum(r). Summation in blocks keeps the rounding depth small.
EXPORT residual_norms(i64 n, const f64* y, f64* r, const f64* v, f64 c, i64 center, f64* rounding_error, f64* sums) {
    if (v) norms(n, y, r, false, c, center, rounding_error, sums, [v](i64 u, f64 change) { return change * v[u]; });
    else norms(n, y, r, true, c, center, rounding_error, sums, [](i64, f64 change) { return change; });
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
