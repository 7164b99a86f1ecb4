"""Numba kernels that push residuals along out-edges: see `prplugin.solver.residual` for the notation."""

from __future__ import annotations

import numba
import numpy as np

from prplugin.cpu.memory import OPTIONS, compiled, prefetch

BLOCK_TERMS = 1024
"""Number of terms per block of a blocked sum."""

PUSH_COST = 4
"""Cost of a push in edges, in addition to the out-edges of the vertex."""

AHEAD = 8
"""Prefetch distance in pushes."""

MAX_RATIO = 2.0**20
"""Ratio of the out-weights of a vertex after and before an update above which its residual is computed anew."""


@compiled
def _add(first, last, targets, weights, per_weight, r):
    """Add the contributions of some edges of a vertex to r; return the sum of |r_t| after each addition."""
    magnitudes, others = 0.0, 0.0
    for edge in range(np.uint64(first), np.uint64(last)):
        target = np.uint64(targets[edge])
        after = r[target] + (per_weight if weights is None else per_weight * weights[edge])
        r[target] = after
        # Two sums in turn, so that an addition does not wait for the previous one.
        magnitudes, others = others + abs(after), magnitudes
    return magnitudes + others


@compiled
def add_contributions(begins, ends, indices, weights, out_weight, y, alpha, r, depth, rounding_error):
    """Add the contributions of all vertices to r: alpha * y_u * w / W_u along each out-edge of u.

    ``rounding_error[0]`` grows by a bound on the rounding errors of r, in units of 2**-53: one rounding of the new r
    per addition, and `depth` roundings of each contribution; their absolute values sum to alpha * |y_u|.
    """
    for u in range(np.uint64(y.size)):
        if out_weight[u] > 0.0:
            sent = alpha * y[u]
            magnitudes = _add(begins[u], ends[u], indices, weights, sent / out_weight[u], r)
            rounding_error[0] += magnitudes + depth * abs(sent)


@compiled
def change_rows(
    rows, removed_at, removed, removed_weights, added_at, added, added_weights, old_out_weight, new_out_weight,
    y, alpha, r, depth, rounding_error,
):  # fmt: skip
    """Change r after the out-edges of `rows` have changed: see `prplugin.graph.update.RowChanges`.

    y_u is multiplied by the ratio of the out-weights of u, so that the contributions along its remaining edges stay the
    same, and r_u falls by what y_u gains. A push of u reverses this, if |r_u| is large enough for one. If an old
    out-weight is NaN, or a ratio is extreme, r is not changed, and ``rounding_error[0]`` becomes infinite.
    """
    for i in range(rows.size):
        u, old, new = np.uint64(rows[i]), old_out_weight[i], new_out_weight[i]
        ratio = new / old if old > 0.0 and new > 0.0 else 1.0
        if not (old >= 0.0 and 1 / MAX_RATIO < ratio < MAX_RATIO):
            rounding_error[0] = np.inf
            continue
        error, before = 0.0, y[u]
        if old > 0.0:
            error += _add(removed_at[i], removed_at[i + 1], removed, removed_weights, -alpha * before / old, r)
        after = before * ratio
        r[u] -= after - before
        y[u] = after
        if new > 0.0:
            error += _add(added_at[i], added_at[i + 1], added, added_weights, alpha * after / new, r)
        # The two rounding errors at u; `depth` roundings of the contributions along removed and added edges, whose
        # absolute values sum to at most alpha times that of y_u, and twice along the others, by both out-weights.
        rounding_error[0] += error + abs(r[u]) + abs(after - before) + depth * (abs(before) + 3 * abs(after))


@compiled
def find_candidates(r, vertices, candidate_min, candidates, is_candidate):
    """Write those of some vertices with |r_u| > `candidate_min` to `candidates`, once each.

    Return their number and the largest |r_u|.
    """
    count, largest = 0, 0.0
    for v in vertices:
        magnitude = abs(r[v])
        if magnitude > candidate_min and not is_candidate[v]:
            candidates[count] = v
            is_candidate[v] = True
            count += 1
            largest = max(largest, magnitude)
    return count, largest


@compiled
def select(r, costs, threshold, selected):
    """Write the vertices with |r_u| > `threshold` * ``costs[u]`` to `selected`, in their order; return their number.

    Without a branch, whose mispredictions would take longer than the pushes of the vertices selected.
    """
    count = np.uint64(0)
    for u in range(np.uint64(r.size)):
        selected[count] = u
        count += np.uint64(abs(r[u]) > threshold * costs[u])
    return np.int64(count)


@compiled
def push(
    candidates, count, is_candidate, candidate_min, begins, ends, indices, weights, out_weight, y, alpha, r, depth,
    rounding_error, threshold, relaxation,
):  # fmt: skip
    """Push the residuals of the first `count` candidates, in their order, that exceed `threshold` per edge.

    A push of u with d = `relaxation` * r_u adds d to y_u, subtracts it from r_u, and adds alpha * d * w / W_u to r_t
    for each out-edge to t. A vertex without out-edges is pushed without relaxation. A vertex whose residual exceeds
    `candidate_min` becomes the last candidate. Returns the edges spent, the change of ||r||, and the new `count`.
    If `is_candidate` is None, no vertex becomes a candidate, and the change of ||r|| is not computed.
    """
    edges, norm_change, error, position = np.int64(0), 0.0, 0.0, np.int64(0)
    while position < count:
        u = np.uint64(candidates[np.uint64(position)])
        position += 1
        if is_candidate is None and position + 2 * AHEAD < count:
            near, far = candidates[np.uint64(position + AHEAD)], candidates[np.uint64(position + 2 * AHEAD)]
            prefetch(begins, far)  # type: ignore[call-arg]
            prefetch(ends, far)
            prefetch(indices, begins[np.uint64(near)])
            prefetch(out_weight, near)
            prefetch(y, near)
        before = r[u]
        begin, end = np.uint64(begins[u]), np.uint64(ends[u])
        if abs(before) <= threshold * (np.int64(end - begin) + PUSH_COST):
            continue
        edges += np.int64(end - begin) + PUSH_COST
        y_before = y[u]
        y[u] = y_before + (before * relaxation if out_weight[u] > 0.0 else before)
        pushed = y[u] - y_before
        r[u] = before - pushed  # includes what rounding kept from y_u
        norm_before, norm_after = abs(before), abs(r[u])
        if out_weight[u] > 0.0:
            per_weight = alpha * pushed / out_weight[u]
            if is_candidate is None:
                norm_after += _add(begin, end, indices, weights, per_weight, r)
            else:
                for edge in range(begin, end):
                    target = np.uint64(indices[edge])
                    after = r[target]
                    norm_before += abs(after)
                    after += per_weight if weights is None else per_weight * weights[edge]
                    r[target] = after
                    norm_after += abs(after)
                    if abs(after) > candidate_min and not is_candidate[target]:
                        is_candidate[target] = True
                        candidates[count] = target
                        count += 1
        norm_change += norm_after - norm_before
        # Each contribution carries `depth` roundings, and their absolute values sum to alpha * |pushed|.
        error += abs(pushed) * (1 + depth) + norm_after
    rounding_error[0] += error
    return edges, norm_change, count


@numba.njit(**OPTIONS, fastmath={"reassoc"})
def norms(y, r, v, c, center, rounding_error, sums):
    """Write c, sum(y), sum(|r|), sum(|r - sum(r) * v|) and sum(r) to `sums`.

    `v` sums to 1, or is None if it is uniform; then c is the constant per vertex, and sum(r) is divided by n. If
    `center`, change c so that r sums to about 0, and write 0 instead of sum(r). Summation in blocks keeps the rounding
    depth small, and its bound holds for any order of additions, so that the compiler may vectorize them.
    """
    size = r.size
    sum_y, sum_r, norm_r, norm_step = 0.0, 0.0, 0.0, 0.0
    for first in range(0, size, BLOCK_TERMS):
        block_y, block_r, block_norm = 0.0, 0.0, 0.0
        for u in range(first, min(first + BLOCK_TERMS, size)):
            block_y += y[u]
            block_r += r[u]
            block_norm += abs(r[u])
        sum_y += block_y
        sum_r += block_r
        norm_r += block_norm
    change = sum_r / size if v is None else sum_r
    for first in range(0, size, BLOCK_TERMS):
        block_norm = 0.0
        for u in range(first, min(first + BLOCK_TERMS, size)):
            block_norm += abs(r[u] - (change if v is None else change * v[u]))
        norm_step += block_norm
    if center:
        before = c
        c -= change
        change = before - c
        for u in range(size):
            r[u] -= change if v is None else change * v[u]
        # Each new r_u rounds once, and each subtrahend twice; their absolute values sum to |sum(r)|.
        rounding_error[0] += norm_step + 2 * norm_r
        change = 0.0
    sums[0], sums[1], sums[2], sums[3], sums[4] = c, sum_y, norm_r, norm_step, change


@compiled
def step(y, r, v, sum_r, sum_y, ranks):
    """Write (y + r - sum(r) * v) / sum(y) to `ranks`, 0 instead of negative entries; `v` and `sum_r` as of `norms`."""
    for u in range(y.size):
        ranks[u] = max(y[u] + (r[u] - (sum_r if v is None else sum_r * v[u])), 0.0) / sum_y
