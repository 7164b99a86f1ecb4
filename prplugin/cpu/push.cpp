// Pushes of residuals along out-edges: see `prplugin.streams.residual` for the notation.
//
// Mapping: one thread, since each push reads what those before it wrote. Memory: per push the positions, out-weight, y
// and r of the vertex, and per out-edge the target (and weight) and a random read and write of r.
// Used by personalized queries, and by rankings after an update on the host.
#include "native.hpp"

namespace {

constexpr i64 PUSH_COST = 4;        // of a push in edges, beside the out-edges of the vertex; as in push.py
constexpr i64 AHEAD = 8;            // prefetch distance in pushes
constexpr i64 POLL_VERTICES = 1 << 7;
constexpr i64 BLOCK_TERMS = 1024;  // terms per block of a blocked sum; as in push.py
constexpr f64 UNPUSHED_FRACTION = 0.9;  // of the listed residual, that a sweep leaves where it is
constexpr i64 SPREAD = 8;  // ratio of all to listed vertices below which a trial takes a SPREAD-th of its edges
constexpr int RESIDUAL = 0, SUM = 1, ROUNDING = 2;
constexpr f64 MAX_RATIO = 1 << 20;  // of out-weights after and before an update, above which r is computed anew

// Add the contributions of some edges of a vertex to r, and call touched(target, before, after) for each; return the sum
// of |r_t| after each addition.
template <bool WEIGHTED, class Index, class Touched>
f64 add(i64 first, i64 last, const Index* targets, const f64* weights, f64 per_weight, f64* r, const Touched& touched) {
    f64 magnitudes = 0, others = 0;
    for (i64 edge = first; edge < last; edge++) {
        Index target = targets[edge];
        f64 before = r[target], after = before + (WEIGHTED ? per_weight * weights[edge] : per_weight);
        r[target] = after;
        // Two sums in turn, so that an addition does not wait for the previous one.
        f64 sum = others + fabs(after);
        others = magnitudes;
        magnitudes = sum;
        touched(target, before, after);
    }
    return magnitudes + others;
}

constexpr auto IGNORED = [](auto, f64, f64) {};

template <class Index> struct Graph {
    const i64 *begins, *ends;
    const Index* indices;
    const f64 *weights, *out_weight;
    f64* y;
    f64 alpha;
    f64* r;
    f64 depth;

    template <bool WEIGHTED> i64 add_contributions(i64 n, f64& rounding_error) {
        Team team(1);
        return team.run([&](i64) {
            for (i64 u = 0; u < n && !team.stopped(); u++) {
                if (u % POLL_VERTICES == 0) team.poll();
                if (!(out_weight[u] > 0)) continue;
                f64 sent = alpha * y[u];
                f64 magnitudes = add<WEIGHTED>(begins[u], ends[u], indices, weights, sent / out_weight[u], r, IGNORED);
                rounding_error += magnitudes + depth * fabs(sent);
            }
        });
    }

    // Push the vertices at the positions `first` to `end` - 1 of a list whose residual exceeds `threshold` per edge, and,
    // if `ALL_DANGLING`, all without out-edges; return the edges spent. `touched` may make the list longer than `count`.
    template <bool WEIGHTED, bool ALL_DANGLING, class Touched>
    i64 push_some(i64 first, i64 end, const Index* list, const i64& count, f64 threshold, f64 relaxation,
                  f64& rounding_error, const Touched& touched) const {
        // Local copies, which the compiler keeps in registers while it writes to arrays.
        const Graph local = *this;
        const auto [begins, ends, indices, weights, out_weight, y, alpha, r, depth] = local;
        i64 edges = 0;
        f64 error = 0;
        for (i64 position = first; position < least(end, count); position++) {
            if (position + 2 * AHEAD < count) {
                Index near = list[position + AHEAD], far = list[position + 2 * AHEAD];
                __builtin_prefetch(begins + far);
                __builtin_prefetch(ends + far);
                __builtin_prefetch(r + far);
                __builtin_prefetch(indices + begins[near]);
                __builtin_prefetch(y + near);
                if (WEIGHTED) __builtin_prefetch(out_weight + near);
            }
            Index u = list[position];
            i64 begin = begins[u], last = ends[u];
            f64 before = r[u], weight = WEIGHTED ? out_weight[u] : f64(last - begin);
            bool sends = weight > 0, always = ALL_DANGLING && !sends && before != 0;
            if (!always && fabs(before) <= threshold * f64(last - begin + PUSH_COST)) continue;
            f64 y_before = y[u], y_after = y_before + (sends ? before * relaxation : before);
            f64 pushed = y_after - y_before, left = before - pushed;  // includes what rounding kept from y_u
            y[u] = y_after;
            r[u] = left;
            // Each contribution carries `depth` roundings, and their absolute values sum to alpha * |pushed|.
            error += fabs(pushed) * (1 + depth) + fabs(left);
            edges += PUSH_COST;
            if (!sends) continue;
            edges += last - begin;
            error += add<WEIGHTED>(begin, last, indices, weights, alpha * pushed / weight, r, touched);
        }
        rounding_error += error;
        return edges;
    }

    // As `push_listed`.
    template <bool WEIGHTED>
    i64 push_listed(i64 n, Index* listed, i64& count, u8* is_listed, f64 listed_from, f64 goal, f64 ratio, f64 budget, f64 trial,
                    f64* sums) const {
        f64 before = INFINITY;
        i64 spent = 0, sweep = 0;
        Team team(1);
        for (f64& known = sums[RESIDUAL];; before = known) {
            f64 cost = sum_listed<WEIGHTED>(listed, count, sums);
            f64 target = goal + ratio * sums[SUM];
            if (known <= target || (spent && !sweep)) return spent;
            // The residual falls geometrically once the list no longer grows.
            f64 left = log(known / target) / log(before / known);
            bool is_near = spent && f64(spent) + f64(sweep) * left <= budget;
            f64 threshold = UNPUSHED_FRACTION * known / cost;
            auto limit = [&] { return is_near ? budget : least(count * SPREAD > n ? trial / SPREAD : trial, budget); };
            if (f64(spent) >= limit()) return spent;
            sweep = 0;
            i64 ended = team.run([&](i64) {
                for (i64 first = 0; first < count && f64(spent + sweep) <= limit() && !team.stopped(); first += POLL_VERTICES) {
                    i64 longer = count;
                    sweep += push_some<WEIGHTED, true>(first, first + POLL_VERTICES, listed, longer, threshold, 1, sums[ROUNDING],
                                                       [&](Index target, f64 old, f64 after) {
                        if (fabs(old) > listed_from || fabs(after) <= listed_from || is_listed[target]) return;
                        is_listed[target] = 1;
                        listed[longer++] = target;
                    });
                    count = longer;
                    team.poll();
                }
            });
            if (ended) return ended;
            spent += sweep;
        }
    }

    template <bool WEIGHTED> f64 weight_of(i64 u) const {
        return WEIGHTED ? out_weight[u] : f64(ends[u] - begins[u]);
    }

    // Write the sums of |r| over listed vertices with out-edges, and of y + r over all; return the cost of pushing those.
    template <bool WEIGHTED> f64 sum_listed(const Index* listed, i64 count, f64* sums) const {
        f64 residual = 0, sum = 0;
        i64 cost = 0;
        for (i64 first = 0; first < count; first += BLOCK_TERMS) {
            f64 some = 0, every = 0;
            for (i64 i = first; i < least(first + BLOCK_TERMS, count); i++) {
                i64 u = listed[i];
                every += y[u] + r[u];
                if (!(weight_of<WEIGHTED>(u) > 0)) continue;
                some += fabs(r[u]);
                cost += ends[u] - begins[u] + PUSH_COST;
            }
            residual += some;
            sum += every;
        }
        sums[RESIDUAL] = residual;
        sums[SUM] = sum;
        return f64(cost);
    }

    // As `push_all`. Vertices are selected without a branch, whose mispredictions would take longer than the pushes.
    template <bool WEIGHTED>
    i64 push_all(i64 n, const f32* costs, Index* selected, f64 threshold, f64 relaxation, f64& rounding_error) const {
        i64 count = 0, edges = 0;
        for (i64 u = 0; u < n; u++) {
            selected[count] = Index(u);
            count += fabs(r[u]) > threshold * f64(costs[u]);
        }
        Team team(1);
        i64 ended = team.run([&](i64) {
            for (i64 first = 0; first < count && !team.stopped(); first += POLL_VERTICES) {
                i64 end = first + POLL_VERTICES;
                edges += push_some<WEIGHTED, false>(first, end, selected, count, threshold, relaxation, rounding_error, IGNORED);
                team.poll();
            }
        });
        return ended ? ended : edges;
    }
};

// Edges that are removed from or added to rows: those of row i are at[i] .. at[i + 1] - 1.
struct Changed {
    const i64 *at, *targets;
    const f64* weights;

    f64 add_row(i64 i, f64 per_weight, f64* r) const {
        return weights ? add<true>(at[i], at[i + 1], targets, weights, per_weight, r, IGNORED)
                       : add<false>(at[i], at[i + 1], targets, weights, per_weight, r, IGNORED);
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
        return weights ? graph.template add_contributions<true>(n, rounding_error[0])                              \
                       : graph.template add_contributions<false>(n, rounding_error[0]);                            \
    }
FOR_INDICES(DEFINE_CONTRIBUTIONS)

// A push of u with d = `relaxation` * r_u adds d to y_u, subtracts it from r_u, and adds alpha * d * w / W_u to r_t for
// each out-edge to t. A vertex without out-edges is pushed without relaxation. rounding_error[0] grows as above.

// Push residuals in sweeps over a list of vertices, which grows by each vertex whose residual comes to exceed
// `listed_from`; return the edges spent.
//
// A sweep pushes, in the order of the list, the vertices whose residual per edge exceeds a fraction of the mean of all that
// are listed, and every vertex without out-edges. So it pushes at least the other part of the residual, and reduces it
// by a constant factor. Sweeps end when the listed residual is at most `goal` + `ratio` * sum(y + r), when `budget` edges
// are spent, and when `trial` are (fewer if the list has a large part of the graph) and `budget` is not expected to
// suffice. sums[0] becomes that residual (of vertices with out-edges), sums[1] the sum
// of y + r over listed vertices; sums[2] grows by a bound on the rounding errors as above.
#define DEFINE_LISTED(suffix, Index)                                                                               \
    EXPORT push_listed_##suffix(i64 n, i64, Index* listed, i64* count, u8* is_listed, f64 listed_from, f64 goal,   \
                                f64 ratio, f64 budget, f64 trial, const i64* begins, const i64* ends, const Index* indices,              \
                                const f64* weights, const f64* out_weight, f64* y, f64 alpha, f64* r, i64 depth,   \
                                f64* sums) {                                                                       \
        Graph<Index> graph{begins, ends, indices, weights, out_weight, y, alpha, r, f64(depth)};                   \
        auto push = weights ? &Graph<Index>::template push_listed<true> : &Graph<Index>::template push_listed<false>; \
        return (graph.*push)(n, listed, *count, is_listed, listed_from, goal, ratio, budget, trial, sums);                          \
    }
FOR_INDICES(DEFINE_LISTED)

// Write y + r of the listed vertices to `values`; with `clear`, make y, r and the marks of these vertices 0.
#define DEFINE_COLLECT(suffix, Index)                                                                              \
    EXPORT collect_listed_##suffix(i64 count, i64, const Index* listed, u8* is_listed, f64* y, f64* r, i64 clear, \
                                   f64* values) {                                                                  \
        for (i64 i = 0; i < count; i++) {                                                                          \
            Index u = listed[i];                                                                                   \
            values[i] = y[u] + r[u];                                                                               \
            if (clear) y[u] = r[u] = is_listed[u] = 0;                                                             \
        }                                                                                                          \
        return 0;                                                                                                  \
    }
FOR_INDICES(DEFINE_COLLECT)

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
