"""Numba kernels that push residuals along out-edges: see `prplugin.solver.residual` for the notation."""

from __future__ import annotations

import numpy as np

from prplugin.cpu.memory import compiled

__all__ = ["BLOCK_TERMS", "norms", "push", "transfer"]


THRESHOLD_FACTOR = 0.15
"""Factor by which the threshold falls when no residual above it is left."""

CANDIDATE_FACTOR = 4.0
"""Multiple of the mean residual at the goal above which a vertex is a candidate.

Only candidates are examined when the threshold falls, instead of all vertices.
"""

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
def push(  # noqa: PLR0915
    begins, ends, indices, weights, out_weight, y, alpha, r, depth, rounding_error, goal, budget
):  # fmt: skip
    """Push residuals in descending order of |r_u| per edge, until ||r|| is about `goal` or `budget` edges are spent.

    A push of u adds r_u to y_u, sets r_u to 0 and adds alpha * r_u * w / W_u to r_t for each out-edge to t. Vertices
    whose residual per edge exceeds a threshold wait in a circular queue; when it is empty, the threshold falls by
    `THRESHOLD_FACTOR`. Returns the number of edges spent.
    """
    n, size = np.uint64(r.size), r.size
    queue, candidates = np.empty(size, indices.dtype), np.empty(size, indices.dtype)
    queued, is_candidate = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    one, zero = np.uint64(1), np.uint64(0)
    edges = np.int64(0)
    norm, largest, candidate_min, count = 0.0, 0.0, CANDIDATE_FACTOR * goal / size, np.uint64(0)
    for v in range(n):
        magnitude = abs(r[v])
        norm += magnitude
        largest = max(largest, magnitude)
        if magnitude > candidate_min:
            candidates[count] = v
            is_candidate[v] = True
            count += one
    candidate_count, threshold = count, largest / PUSH_COST
    while norm > goal and edges < budget and threshold > 0.0:
        threshold *= THRESHOLD_FACTOR
        # |r_u| of a vertex without out-edges at the threshold: no smaller residual can exceed it.
        queue_min = threshold * PUSH_COST
        if queue_min < candidate_min:  # residuals this small are numerous: make every vertex a candidate
            candidate_min, candidate_count, norm = 0.0, n, 0.0
            for v in range(n):
                candidates[v] = v
                is_candidate[v] = True
                norm += abs(r[v])
        count = zero
        for position in range(candidate_count):
            u = np.uint64(candidates[position])
            magnitude = abs(r[u])
            if magnitude > queue_min and magnitude > threshold * (ends[u] - begins[u] + PUSH_COST):
                queue[count] = u
                queued[u] = True
                count += one
        head, tail = zero, count if count < n else zero
        while count > zero:
            u = np.uint64(queue[head])
            head = head + one if head + one < n else zero
            count -= one
            queued[u] = False
            if norm <= goal or edges >= budget:
                continue
            before = y[u]
            y[u] = before + r[u]
            pushed = y[u] - before
            remainder = r[u] - pushed  # what rounding kept from y_u
            norm += abs(remainder) - abs(r[u])
            r[u] = remainder
            begin, end = np.uint64(begins[u]), np.uint64(ends[u])
            edges += np.int64(end - begin) + PUSH_COST
            norm_before, norm_after = 0.0, 0.0  # of the residuals of the targets
            if out_weight[u] > 0.0:
                per_weight = alpha * pushed / out_weight[u]
                for edge in range(begin, end):
                    target = np.uint64(indices[edge])
                    after = r[target]
                    norm_before += abs(after)
                    after += per_weight if weights is None else per_weight * weights[edge]
                    r[target] = after
                    magnitude = abs(after)
                    norm_after += magnitude
                    if magnitude <= candidate_min:
                        continue
                    if not is_candidate[target]:
                        is_candidate[target] = True
                        candidates[candidate_count] = target
                        candidate_count += one
                    if (
                        magnitude > queue_min
                        and not queued[target]
                        and magnitude > threshold * (ends[target] - begins[target] + PUSH_COST)
                    ):
                        queued[target] = True
                        queue[tail] = target
                        tail = tail + one if tail + one < n else zero
                        count += one
            norm += norm_after - norm_before
            # Each contribution carries `depth` roundings, and their absolute values sum to alpha * |pushed|.
            rounding_error[0] += abs(remainder) + abs(pushed) * (1 + depth) + norm_after
    return edges


@compiled
def norms(y, r, teleport, sums):
    """Write sum(y), sum(r), sum(|r|) and sum(|r - sum(r) * v|) to `sums`.

    v is `teleport`, or uniform if that is None. Summation in blocks keeps the rounding depth small.
    """
    size = r.size
    sums[:] = 0.0
    for first in range(0, size, BLOCK_TERMS):
        sum_y, sum_r, norm_r = 0.0, 0.0, 0.0
        for v in range(np.uint64(first), np.uint64(min(first + BLOCK_TERMS, size))):
            sum_y += y[v]
            sum_r += r[v]
            norm_r += abs(r[v])
        sums[0] += sum_y
        sums[1] += sum_r
        sums[2] += norm_r
    for first in range(0, size, BLOCK_TERMS):
        norm_r = 0.0
        for v in range(np.uint64(first), np.uint64(min(first + BLOCK_TERMS, size))):
            norm_r += abs(r[v] - sums[1] * (1.0 / size if teleport is None else teleport[v]))
        sums[3] += norm_r
