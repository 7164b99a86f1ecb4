// Pushes of residuals along out-edges: see `prplugin.streams.residual` for the notation.
//
// Mapping: one thread, since each push reads what those before it wrote. Memory: per push the positions, out-weight, y
// and r of the vertex, and per out-edge the target (and weight) and a random read and write of r.
// Used by personalized queries, and by rankings after an update on the host.
#include "native.hpp"

namespace {

constexpr i64 PUSH_COST = 4;       // of a push in edges, beside the out-edges of the vertex; as in kernels.py
constexpr i64 AHEAD = 8;           // prefetch distance in pushes
constexpr i64 PUSHED_TOGETHER = 1 << 7;  // vertices between two questions for signals
constexpr i64 BLOCK_TERMS = 1024;  // terms per block of a blocked sum; as in kernels.py
constexpr f64 UNPUSHED_FRACTION = 0.9;  // of the listed residual, that a sweep leaves where it is
constexpr i64 SPREAD = 8;  // ratio of all to listed vertices below which a trial takes a SPREAD-th of its edges
constexpr int RESIDUAL = 0, SUM = 1, ROUNDING = 2;
constexpr f64 LOST_QUOTIENT = 0x1p-1022;  // of a quotient by an out-weight of 1, times that out-weight, in units of 2**-53
constexpr f64 MAX_RATIO = 1 << 20;  // of out-weights after and before an update, above which r is computed anew

// Add the contributions of some edges of a vertex to r, and call touched(target, before, after) for each; return the sum
// of |r_t| after each addition.
template <class Index, class Touched>
f64 add(i64 first, i64 last, const Index* targets, const f64* weights, f64 per_weight, f64* r, const Touched& touched) {
    f64 magnitudes = 0, others = 0;
    for (i64 edge = first; edge < last; edge++) {
        Index target = targets[edge];
        f64 before = r[target], after = before + (weights ? per_weight * weights[edge] : per_weight);
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

// The out-edges of a graph, and the residual of y.
template <class Index> struct Graph {
    const i64 *begins, *ends;
    const Index* indices;
    const f64 *weights, *out_weight;
    f64* y;
    f64 alpha;
    f64* r;
    f64 depth;

    f64 weight_of(i64 u) const { return weights ? out_weight[u] : f64(ends[u] - begins[u]); }

    // Push the vertices at the positions `first` to `end` - 1 of a list whose residual exceeds `threshold` per edge, and,
    // if `all_dangling`, all without out-edges; return the edges spent. `touched` may make the list longer than `count`.
    template <class Touched>
    i64 push_some(i64 first, i64 end, const Index* list, const i64& count, f64 threshold, f64 relaxation,
                  bool all_dangling, f64& rounding_error, const Touched& touched) const {
        const Graph graph = *this;  // a copy, which the compiler keeps in registers while it writes to arrays
        i64 edges = 0;
        f64 error = 0;
        for (i64 position = first; position < least(end, count); position++) {
            if (position + 2 * AHEAD < count) {
                Index near = list[position + AHEAD], far = list[position + 2 * AHEAD];
                __builtin_prefetch(graph.begins + far);
                __builtin_prefetch(graph.ends + far);
                __builtin_prefetch(graph.r + far);
                __builtin_prefetch(graph.indices + graph.begins[near]);
                __builtin_prefetch(graph.y + near);
                if (graph.weights) __builtin_prefetch(graph.out_weight + near);
            }
            Index u = list[position];
            i64 begin = graph.begins[u], last = graph.ends[u];
            f64 before = graph.r[u], weight = graph.weight_of(u);
            bool sends = weight > 0, always = all_dangling && !sends && before != 0;
            if (!always && fabs(before) <= threshold * f64(last - begin + PUSH_COST)) continue;
            f64 y_before = graph.y[u], y_after = y_before + (sends ? before * relaxation : before);
            f64 pushed = y_after - y_before, left = before - pushed;  // includes what rounding kept from y_u
            graph.y[u] = y_after;
            graph.r[u] = left;
            // What y_u gains is `pushed` but for one rounding, which counts at u. Unless r_u exceeds y_u there is none,
            // but one of `left`, which is then at most `pushed`.
            error += fabs(pushed);
            edges += PUSH_COST;
            if (!sends) continue;
            // It also counts along the edges. Each contribution carries `depth` more, and their absolute values sum to
            // alpha * |pushed|. The quotient by W_u may underflow, which the weights, of sum W_u, multiply.
            error += graph.alpha * fabs(pushed) * (1 + graph.depth) + weight * LOST_QUOTIENT;
            edges += last - begin;
            error += add(begin, last, graph.indices, graph.weights, graph.alpha * pushed / weight, graph.r, touched);
        }
        rounding_error += error;
        return edges;
    }

    // Write the sums of |r| over listed vertices with out-edges, and of y + r over all; return the cost of pushing those.
    f64 sum_listed(const Index* listed, i64 count, f64* sums) const {
        f64 residual = 0, sum = 0;
        i64 cost = 0;
        for (i64 first = 0; first < count; first += BLOCK_TERMS) {
            f64 some = 0, every = 0;
            for (i64 i = first; i < least(first + BLOCK_TERMS, count); i++) {
                i64 u = listed[i];
                every += y[u] + r[u];
                if (!(weight_of(u) > 0)) continue;
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
};

}  // namespace

// Add the contributions of all vertices to r: alpha * y_u * w / W_u along each out-edge of u.
//
// rounding_error[0] grows by a bound on the rounding errors of r, in units of 2**-53: one rounding of the new r per
// addition, and `depth` roundings of each contribution, whose absolute values sum to alpha * |y_u|, and underflow.
template <class Index>
i64 add_contributions(i64 n, i64, const i64* begins, const i64* ends, const Index* indices, const f64* weights,
                      const f64* out_weight, const f64* y, f64 alpha, f64* r, i64 depth, f64* rounding_error) {
    Team team(1);
    for (i64 u = 0; u < n; u++) {
        if (team.ends(0, u)) return INTERRUPTED;
        if (!(out_weight[u] > 0)) continue;
        f64 sent = alpha * y[u];
        f64 magnitudes = add(begins[u], ends[u], indices, weights, sent / out_weight[u], r, IGNORED);
        rounding_error[0] += magnitudes + f64(depth) * fabs(sent) + out_weight[u] * LOST_QUOTIENT;
    }
    return 0;
}
EXPORT_INDICES(add_contributions)

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
template <class Index>
i64 push_listed(i64 n, i64, Index* listed, i64* count, u8* is_listed, f64 listed_from, f64 goal, f64 ratio, f64 budget,
                f64 trial, const i64* begins, const i64* ends, const Index* indices, const f64* weights,
                const f64* out_weight, f64* y, f64 alpha, f64* r, i64 depth, f64* sums) {
    const Graph<Index> graph{begins, ends, indices, weights, out_weight, y, alpha, r, f64(depth)};
    f64 before = INFINITY;
    i64 spent = 0, sweep = 0;
    Team team(1);
    for (f64& known = sums[RESIDUAL];; before = known) {
        f64 cost = graph.sum_listed(listed, *count, sums);
        f64 target = goal + ratio * sums[SUM];
        if (known <= target || (spent && !sweep)) return spent;
        // The residual falls geometrically once the list no longer grows.
        f64 left = log(known / target) / log(before / known);
        bool is_near = spent && f64(spent) + f64(sweep) * left <= budget;
        f64 threshold = UNPUSHED_FRACTION * known / cost;
        auto limit = [&] { return is_near ? budget : least(*count * SPREAD > n ? trial / SPREAD : trial, budget); };
        if (f64(spent) >= limit()) return spent;
        sweep = 0;
        for (i64 first = 0; first < *count && f64(spent + sweep) <= limit(); first += PUSHED_TOGETHER) {
            if (team.ends(0, first)) return INTERRUPTED;
            i64 longer = *count;
            auto list = [&](Index target, f64 old, f64 after) {
                if (fabs(old) > listed_from || fabs(after) <= listed_from || is_listed[target]) return;
                is_listed[target] = 1;
                listed[longer++] = target;
            };
            sweep += graph.push_some(first, first + PUSHED_TOGETHER, listed, longer, threshold, 1, true, sums[ROUNDING],
                                     list);
            *count = longer;
        }
        spent += sweep;
    }
}
EXPORT_INDICES(push_listed)

// Write y + r of the listed vertices to `values`; with `clear`, make y, r and the marks of these vertices 0.
template <class Index>
i64 collect_listed(i64 count, i64, const Index* listed, u8* is_listed, f64* y, f64* r, i64 clear, f64* values) {
    for (i64 i = 0; i < count; i++) {
        Index u = listed[i];
        values[i] = y[u] + r[u];
        if (clear) y[u] = r[u] = is_listed[u] = 0;
    }
    return 0;
}
EXPORT_INDICES(collect_listed)

// Push all residuals with |r_u| > `threshold` * costs[u] in the order of the vertices; return the edges spent.
//
// Vertices are selected without a branch, whose mispredictions would take longer than the pushes.
template <class Index>
i64 push_all(i64 n, i64, const f32* costs, Index* selected, f64 threshold, f64 relaxation, const i64* begins,
             const i64* ends, const Index* indices, const f64* weights, const f64* out_weight, f64* y, f64 alpha, f64* r,
             i64 depth, f64* rounding_error) {
    const Graph<Index> graph{begins, ends, indices, weights, out_weight, y, alpha, r, f64(depth)};
    i64 count = 0, edges = 0;
    for (i64 u = 0; u < n; u++) {
        selected[count] = Index(u);
        count += fabs(r[u]) > threshold * f64(costs[u]);
    }
    Team team(1);
    for (i64 first = 0; first < count; first += PUSHED_TOGETHER) {
        if (team.ends(0, first)) return INTERRUPTED;
        edges += graph.push_some(first, first + PUSHED_TOGETHER, selected, count, threshold, relaxation, false,
                                 rounding_error[0], IGNORED);
    }
    return edges;
}
EXPORT_INDICES(push_all)

// Change r after the out-edges of `rows` have changed.
//
// y_u is multiplied by the ratio of the out-weights of u, so that the contributions along its remaining edges stay the
// same, and r_u falls by what y_u gains. A push of u reverses this, if |r_u| is large enough for one. If an old out-weight
// is NaN, or a ratio is extreme, r is not changed, and rounding_error[0] becomes infinite.
EXPORT change_rows(i64 changed, i64, i64, i64, const i64* rows, const i64* removed_at, const i64* removed_targets,
                   const f64* removed_weights, const i64* added_at, const i64* added_targets,
                   const f64* added_weights, const f64* old_out_weight, const f64* new_out_weight, f64* y, f64 alpha,
                   f64* r, i64 depth, f64* rounding_error) {
    // Add the contributions along the edges of row i that are removed or added.
    auto add_row = [r](i64 i, const i64* at, const i64* targets, const f64* weights, f64 per_weight) {
        return add(at[i], at[i + 1], targets, weights, per_weight, r, IGNORED);
    };
    for (i64 i = 0; i < changed; i++) {
        i64 u = rows[i];
        f64 old_weight = old_out_weight[i], new_weight = new_out_weight[i];
        f64 ratio = old_weight > 0 && new_weight > 0 ? new_weight / old_weight : 1;
        if (!(old_weight >= 0 && 1 / MAX_RATIO < ratio && ratio < MAX_RATIO)) {
            rounding_error[0] = INFINITY;
            continue;
        }
        f64 error = 0, before = y[u], after = before * ratio;
        if (old_weight > 0) error += add_row(i, removed_at, removed_targets, removed_weights, -alpha * before / old_weight);
        r[u] -= after - before;
        error += fabs(r[u]) + fabs(after - before);
        y[u] = after;
        if (new_weight > 0) error += add_row(i, added_at, added_targets, added_weights, alpha * after / new_weight);
        // Beside the additions and the two roundings at u: `depth` roundings of the contributions along removed and
        // added edges, whose absolute values sum to at most alpha times that of y_u, and twice along the others, by
        // both out-weights; and underflow of the quotients by these.
        rounding_error[0] += error + alpha * f64(depth) * (fabs(before) + 3 * fabs(after)) +
                             (old_weight + new_weight) * LOST_QUOTIENT;
    }
    return 0;
}
