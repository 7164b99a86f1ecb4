// Pushes of residuals along out-edges: see `prplugin.streams.residual` for the notation.
//
// Mapping: one thread, since each push reads what those before it wrote. Memory: per push the positions, out-weight, y
// and r of the vertex, and per out-edge the target (and weight) and a random read and write of r.
// Used by rankings after an update on the host.
#include "native.hpp"

namespace {

constexpr i64 PUSH_COST = 4;        // of a push in edges, beside the out-edges of the vertex; as in push.py
constexpr i64 AHEAD = 8;            // prefetch distance in pushes
constexpr i64 POLL_VERTICES = 1 << 12;
constexpr f64 THRESHOLD_FACTOR = 0.4;            // by which the threshold of a push falls from one round to the next
constexpr f64 MAX_CANDIDATE_FRACTION = 1.0 / 8;  // of the vertices, above which all are examined, in their order
constexpr f64 MAX_RATIO = 1 << 20;  // of out-weights after and before an update, above which r is computed anew

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

    // As `push_near`.
    template <bool WEIGHTED>
    i64 push_near(i64 n, i64 some, const i64* changed, Index* candidates, u8* is_candidate, f64 candidate_min,
                  f64 bound, f64 tol, f64 scale, f64& rounding_error) const {
        i64 count = 0, spent = 0;
        f64 largest = 0;
        for (i64 i = 0; i < some; i++) {
            i64 u = changed[i];
            f64 magnitude = fabs(r[u]);
            if (!(magnitude > candidate_min) || is_candidate[u]) continue;
            candidates[count++] = Index(u);
            is_candidate[u] = 1;
            largest = most(largest, magnitude);
        }
        f64 threshold = largest * THRESHOLD_FACTOR / PUSH_COST;
        while (bound > tol && spent < n && f64(count) < MAX_CANDIDATE_FRACTION * f64(n) &&
               threshold * PUSH_COST > candidate_min) {
            f64 norm_change = 0;
            i64 edges = push<WEIGHTED, true>(candidates, count, is_candidate, candidate_min, rounding_error,
                                             norm_change, threshold, 1.0);
            if (edges == INTERRUPTED) return INTERRUPTED;
            spent += edges;
            bound += norm_change / scale;
            threshold *= THRESHOLD_FACTOR;
        }
        return spent;
    }

    // As `push_all`. Vertices are selected without a branch, whose mispredictions would take longer than the pushes.
    template <bool WEIGHTED>
    i64 push_all(i64 n, const f32* costs, Index* selected, f64 threshold, f64 relaxation, f64& rounding_error) const {
        i64 count = 0;
        f64 unused = 0;
        for (i64 u = 0; u < n; u++) {
            selected[count] = Index(u);
            count += fabs(r[u]) > threshold * f64(costs[u]);
        }
        return push<WEIGHTED, false>(selected, count, nullptr, 0.0, rounding_error, unused, threshold, relaxation);
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

// A push of u with d = `relaxation` * r_u adds d to y_u, subtracts it from r_u, and adds alpha * d * w / W_u to r_t for
// each out-edge to t. A vertex without out-edges is pushed without relaxation. rounding_error[0] grows as above.

// Push large residuals in rounds, near the vertices at which r has changed; return the edges spent.
//
// Candidates are those of the `changed` vertices with |r_u| > `candidate_min`, and each vertex whose residual comes to
// exceed it. A round pushes the candidates, in their order, whose residuals exceed a threshold per edge, which falls from
// round to round. `bound` is that of r, and changes by the change of ||r|| divided by `scale`; rounds end when it is at
// most `tol`, or when a pass over all vertices is cheaper.
#define DEFINE_NEAR(suffix, Index)                                                                                 \
    EXPORT push_near_##suffix(i64 some, i64 n, i64, const i64* changed, Index* candidates, u8* is_candidate,       \
                              f64 candidate_min, f64 bound, f64 tol, f64 scale, const i64* begins,                 \
                              const i64* ends, const Index* indices, const f64* weights, const f64* out_weight,    \
                              f64* y, f64 alpha, f64* r, i64 depth, f64* rounding_error) {                         \
        Graph<Index> graph{begins, ends, indices, weights, out_weight, y, alpha, r, f64(depth)};                   \
        auto push = weights ? &Graph<Index>::template push_near<true> : &Graph<Index>::template push_near<false>;  \
        return (graph.*push)(n, some, changed, candidates, is_candidate, candidate_min, bound, tol, scale,         \
                             rounding_error[0]);                                                                   \
    }
FOR_INDICES(DEFINE_NEAR)

// Push all residuals with |r_u| > `threshold` * costs[u] in the order of the vertices; return the edges spent.
#define DEFINE_ALL(suffix, Index)                                                                                  \
    EXPORT push_all_##suffix(i64 n, i64, const f32* costs, Index* selected, f64 threshold, f64 relaxation,         \
                             const i64* begins, const i64* ends, const Index* indices, const f64* weights,         \
                             const f64* out_weight, f64* y, f64 alpha, f64* r, i64 depth, f64* rounding_error) {   \
        Graph<Index> graph{begins, ends, indices, weights, out_weight, y, alpha, r, f64(depth)};                   \
        auto push = weights ? &Graph<Index>::template push_all<true> : &Graph<Index>::template push_all<false>;    \
        return (graph.*push)(n, costs, selected, threshold, relaxation, rounding_error[0]);                        \
    }
FOR_INDICES(DEFINE_ALL)

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
