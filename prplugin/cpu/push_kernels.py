"""Local pushes of residuals, compiled by Numba: see `prplugin.solver.residual`."""

from __future__ import annotations

import numpy as np

from prplugin.cpu.memory import compiled

__all__ = ["BLOCK", "norms", "push", "transfer"]


FALL = 0.15
"""Of a threshold, the next one."""

FEW = 4.0
"""Times the mean that is aimed at, residuals above which are listed, so that they are found without a look at all."""

BLOCK = 1024
"""Terms that are added up in one block."""

BASE = 4
"""Edges that a push costs beside those of its vertex."""


@compiled
def transfer(rows, begins, ends, members, weights, out_weight, y, factor, r, depth, noise):
    """Add to r what some rows send: factor * y_u * w / W_u along each out-edge of u.

    ``noise[0]`` takes what this can be off by, in units of 2**-53: r once for the addition, and what is added `depth`
    times.
    """
    for i in range(rows.size):
        row = np.uint64(rows[i])
        if out_weight[row] == 0.0 or y[row] == 0.0:
            continue
        sent, off = factor * y[row] / out_weight[row], 0.0
        for edge in range(np.uint64(begins[row]), np.uint64(ends[row])):
            target = np.uint64(members[edge])
            part = sent if weights is None else sent * weights[edge]
            after = r[target] + part
            r[target] = after
            off += abs(after) + depth * abs(part)
        noise[0] += off


@compiled
def push(begins, ends, members, weights, out_weight, y, alpha, r, depth, noise, goal, budget):  # noqa: PLR0915
    """Push residuals, the largest per edge first, until ||r|| is about `goal`, or for `budget` edges.

    y_v takes r_v, and r_t of each out-neighbour t what v sends to it of that. Those above a threshold wait in a ring;
    when none is left, the threshold falls. Returns the edges spent.
    """
    n, size = np.uint64(r.size), r.size
    ring, listed = np.empty(size, members.dtype), np.empty(size, members.dtype)
    waiting, known = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    one, zero = np.uint64(1), np.uint64(0)
    edges = np.int64(0)
    norm, largest, floor, count = 0.0, 0.0, FEW * goal / size, np.uint64(0)
    for v in range(n):
        held = abs(r[v])
        norm += held
        largest = max(largest, held)
        if held > floor:
            listed[count] = v
            known[v] = True
            count += one
    candidates, threshold = count, largest / BASE
    while norm > goal and edges < budget and threshold > 0.0:
        threshold *= FALL
        least = threshold * BASE
        if least < floor:  # of these there are many: all are candidates from here on
            floor, candidates, norm = 0.0, n, 0.0
            for v in range(n):
                listed[v] = v
                known[v] = True
                norm += abs(r[v])
        count = zero
        for place in range(candidates):
            u = np.uint64(listed[place])
            held = abs(r[u])
            if held > least and held > threshold * (ends[u] - begins[u] + BASE):
                ring[count] = u
                waiting[u] = True
                count += one
        head, tail = zero, count if count < n else zero
        while count > zero:
            u = np.uint64(ring[head])
            head = head + one if head + one < n else zero
            count -= one
            waiting[u] = False
            if norm <= goal or edges >= budget:
                continue
            before = y[u]
            y[u] = before + r[u]
            moved = y[u] - before
            left = r[u] - moved
            norm += abs(left) - abs(r[u])
            r[u] = left
            begin, end = np.uint64(begins[u]), np.uint64(ends[u])
            edges += np.int64(end - begin) + BASE
            lost, gained = 0.0, 0.0
            if out_weight[u] > 0.0:
                sent = alpha * moved / out_weight[u]
                for edge in range(begin, end):
                    target = np.uint64(members[edge])
                    after = r[target]
                    lost += abs(after)
                    after += sent if weights is None else sent * weights[edge]
                    r[target] = after
                    now = abs(after)
                    gained += now
                    if now <= floor:
                        continue
                    if not known[target]:
                        known[target] = True
                        listed[candidates] = target
                        candidates += one
                    if now > least and not waiting[target] and now > threshold * (ends[target] - begins[target] + BASE):
                        waiting[target] = True
                        ring[tail] = target
                        tail = tail + one if tail + one < n else zero
                        count += one
            norm += gained - lost
            # Each part is off by `depth` roundings, and all are alpha * |moved| together.
            noise[0] += abs(left) + abs(moved) * (1 + depth) + gained
    return edges


@compiled
def norms(y, r, teleport, sums):
    """Write the sums of y, r and |r|, and that of |r - sum(r) * v|: in blocks, for short chains of roundings."""
    size = r.size
    sums[:] = 0.0
    for first in range(0, size, BLOCK):
        of_y, of_r, of_size = 0.0, 0.0, 0.0
        for v in range(np.uint64(first), np.uint64(min(first + BLOCK, size))):
            of_y += y[v]
            of_r += r[v]
            of_size += abs(r[v])
        sums[0] += of_y
        sums[1] += of_r
        sums[2] += of_size
    for first in range(0, size, BLOCK):
        of_size = 0.0
        for v in range(np.uint64(first), np.uint64(min(first + BLOCK, size))):
            of_size += abs(r[v] - sums[1] * (1.0 / size if teleport is None else teleport[v]))
        sums[3] += of_size
