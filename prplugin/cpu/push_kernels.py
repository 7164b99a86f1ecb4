"""Numba kernels that push residuals along out-edges: see `prplugin.solver.residual` for the notation."""

from __future__ import annotations

import numba
import numpy as np

from prplugin.cpu.memory import OPTIONS, compiled

__all__ = ["BLOCK_TERMS", "PUSH_COST", "find_candidates", "norms", "push", "transfer"]

BLOCK_TERMS = 1024
"""Number of terms per block of a blocked sum."""

PUSH_COST = 4
"""Cost of a push in edges, in addition to the out-edges of the vertex."""


@compiled
def transfer(rows, begins, ends, indices, weights, out_weight, y, factor, r, depth, rounding_error):
    """Add the contributions of `rows` to r: factor * y_u * w / W_u along each out-edge of u.

    ``rounding_error[0]`` grows by a bound on the rounding errors of r, in units of 2**-53: one rounding of the new r
    per addition, and `depth` roundings of each contribution.
    """
    for i in range(rows.size):
        row = np.uint64(rows[i])
        if out_weight[row] == 0.0 or y[row] == 0.0:
            continue
        per_weight, error = factor * y[row] / out_weight[row], 0.0
        for edge in range(np.uint64(begins[row]), np.uint64(ends[row])):
            target = np.uint64(indices[edge])
            contribution = per_weight if weights is None else per_weight * weights[edge]
            after = r[target] + contribution
            r[target] = after
            error += abs(after) + depth * abs(contribution)
        rounding_error[0] += error


@compiled
def find_candidates(r, candidate_min, candidates, is_candidate):
    """Write the vertices with |r_u| > `candidate_min` to `candidates`; return their number and the largest |r_u|."""
    count, largest = 0, 0.0
    for v in range(r.size):
        magnitude = abs(r[v])
        if magnitude > candidate_min:
            candidates[count] = v
            is_candidate[v] = True
            count += 1
            largest = max(largest, magnitude)
    return count, largest


@compiled
def push(
    candidates, count, is_candidate, candidate_min, begins, ends, indices, weights, out_weight, y, alpha, r, depth,
    rounding_error, threshold, relaxation,
):  # fmt: skip
    """Push the residuals of the first `count` candidates, in their order, that exceed `threshold` per edge.

    A push of u with d = `relaxation` * r_u adds d to y_u, subtracts it from r_u, and adds alpha * d * w / W_u to r_t
    for each out-edge to t. A vertex without out-edges is pushed without relaxation. A vertex whose residual exceeds
    `candidate_min` becomes the last candidate. Returns the edges spent, the change of ||r||, and the new `count`.
    If `candidates` is None, all vertices are examined in their order, and the change of ||r|| is not computed.
    """
    edges, least, norm_change, error, position = np.int64(0), threshold * PUSH_COST, 0.0, 0.0, np.int64(0)
    while position < count:
        u = np.uint64(position) if candidates is None else np.uint64(candidates[np.uint64(position)])
        position += 1
        before = r[u]
        if abs(before) <= least:
            continue
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
            for edge in range(begin, end):
                target = np.uint64(indices[edge])
                after = r[target]
                if candidates is not None:
                    norm_before += abs(after)
                after += per_weight if weights is None else per_weight * weights[edge]
                r[target] = after
                norm_after += abs(after)
                if candidates is not None and abs(after) > candidate_min and not is_candidate[target]:
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
    """Write c, sum(y), sum(|r|) and sum(|r - sum(r) * v|) to `sums`; if `center`, change c so that r sums to about 0.

    `v` sums to 1, or is None if it is uniform; then c is the constant per vertex. Summation in blocks keeps the
    rounding depth small, and its bound holds for any order of additions, so that the compiler may vectorize them.
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
    sums[0], sums[1], sums[2], sums[3] = c, sum_y, norm_r, norm_step
