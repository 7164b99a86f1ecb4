"""The papers' listings and prplugin's own kernels in NumPy, one function per kernel of a .cu file.

Each has the grid, the block, the macros and the arguments of a launch. Listings are loops over scalars in float32, in the
order of one thread of the paper.
"""

from __future__ import annotations

import numpy as np

F = np.float32

# --- the papers ---------------------------------------------------------------------------------------------------


def node_centric(grid, block, macros, n, df, ptr, adj, out_degree, old, new):
    """Do Algorithm 3 of Kim."""
    for idx in range(n):
        total = F(0)
        for w in range(ptr[idx], ptr[idx + 1]):
            w_id = adj[w]
            degree = ptr[w_id + 1] - ptr[w_id] if macros["UNDIRECTED"] else out_degree[w_id]
            total += F(old[w_id] / F(degree))
        new[idx] = df * total + (1 - df) / F(n)


def initialize(grid, block, macros, n, least, new):
    """Do Algorithm 1 of Kim."""
    new[:] = least


def edge_centric(grid, block, macros, m, df, out_degree, edges, old, new):
    """Do Algorithm 2 of Kim."""
    assert edges.shape == (m, 2)
    for w, v in edges.tolist():
        new[v] += df * old[w] / F(out_degree[w])
        if macros["UNDIRECTED"] and w != v:
            new[w] += df * old[v] / F(out_degree[v])


def fixed_loop(grid, block, macros, n, per_block, limits, offsets, sources, out_degrees, ranks, partial):
    """Do the GPU's part of design 2 of Kumar: N turns for every vertex."""
    for row in range(n):
        total = F(0)
        for turn in range(limits[row // per_block]):
            if offsets[row] + turn < offsets[row + 1]:
                source = sources[offsets[row] + turn]
                total += ranks[source] / F(out_degrees[source])
        partial[row] = total


def add_partial_ranks(grid, block, macros, n, d, of_host, ranks):
    """Add the partial ranks of design 2 of Kumar."""
    ranks[:] = (1 - d) / F(n) + d * (ranks if of_host is None else ranks + of_host)


def spmv(grid, block, macros, first, last, offsets, rows, values, columns, ranks, sums):
    """Do Algorithms 3 to 6 of Wu: LANES threads per row."""
    lanes = macros["LANES"]
    assert grid * 64 >= (last - first) * lanes
    assert block == 64
    for row in range(first, last):
        begin, size, index = rows[row] if macros["BINNED"] else (offsets[row], offsets[row + 1] - offsets[row], row)
        parts = [F(0)] * lanes
        for c in range(begin, begin + size):
            parts[(c - begin) % lanes] += values[c] * ranks[columns[c]]
        sums[index] = sum(parts, F(0))


def _update(grid, block, macros, index, neighbors, degrees, start, end, nodes, damp, epsilon, score, updated):
    """Do Section 2.1 of Bowen on a segment, in place."""
    for n in range(start, end):
        total = F(0)
        for i in range(index[n - start], index[n - start + 1]):
            nei = neighbors[i][0]
            total += score[nei] / F(degrees[nei])
        new_score = (F(1) - damp) / F(nodes) + damp * total
        if abs(new_score - score[n]) > epsilon:
            score[n] = new_score
            updated[0] += 1


def store_rank(grid, block, macros, n, ranks, last):
    """Do the kernel of that name of Swaroop."""
    assert grid * block >= n
    last[:] = ranks


def matmul(grid, block, macros, n, graph, ranks, last):
    """Do the kernel of that name of Swaroop."""
    for row in range(n):
        total = F(0)
        for j in range(n):
            total += last[j] * graph[row][j]
        ranks[row] = total


def rank_diff(grid, block, macros, n, ranks, last):
    """Do the kernel of that name of Swaroop."""
    last[:] = abs(last - ranks)


PAPERS = {
    "node_centric": node_centric, "initialize": initialize, "edge_centric": edge_centric, "fixed_loop": fixed_loop,
    "add_partial_ranks": add_partial_ranks, "spmv": spmv, "one_to_one": _update, "warp_reduce": _update,
    "block_reduce": _update, "store_rank": store_rank, "matmul": matmul, "rank_diff": rank_diff,
}  # fmt: skip
"""Functions by kernel."""

# --- exact steps --------------------------------------------------------------------------------------------------


def _inverse_out_weight(grid, block, macros, n, weighted, out_weight, inverse):
    with np.errstate(divide="ignore"):
        inverse[:] = np.where(out_weight == 0, 0.0, 1.0 if weighted else 1 / out_weight)


def _begin(grid, block, macros, n, ranks, inverse, contributions, partials):
    contributions[:] = ranks * inverse
    partials[:] = 0
    partials[:3] = 0, 0, ranks[inverse == 0].sum()


def _finish(
    grid, block, macros, n, alpha, sums, target, target_step, teleport, teleport_step, inverse, totals, ranks,
    contributions, moves, partials,
):  # fmt: skip
    y = alpha * sums + (alpha * totals[2] * target + teleport)
    change = abs(y - ranks)
    ranks[:] = y
    contributions[:] = y * inverse
    partials[:] = 0
    partials[:3] = change.sum(), change.max(), y[inverse == 0].sum()


def _total(grid, block, macros, blocks, partials, totals):
    totals[:] = partials[:3]


def _pull(grid, block, macros, first, last, rows, begins, ends, sources, weights, contributions, sums):
    for k in range(first, last):
        part = slice(begins[k], ends[k])
        terms = contributions[sources[part]].astype(np.float64)
        sums[k if rows is None else rows[k]] = (terms if weights is None else terms * weights[part]).sum()


def _push(grid, block, macros, m, sources, targets, weights, contributions, sums):
    np.add.at(sums, targets, contributions[sources])


def _gather(grid, block, macros, count, sources, contributions, gathered):
    gathered[:] = contributions[sources]


def _add_sums(grid, block, macros, count, rows, sums, row_sums):
    row_sums[rows] += sums


def _count_pairs(grid, block, macros, m, n, sources, targets, matrix):
    np.add.at(matrix, (targets, sources), 1)


def _dense(grid, block, macros, n, matrix, contributions, sums):
    sums[:] = matrix @ contributions


def _normalized_weights(grid, block, macros, m, sources, weights, out_weights, found):
    found[:] = weights / out_weights[sources]


OURS = {
    "inverse_out_weight": _inverse_out_weight, "begin": _begin, "finish": _finish, "total": _total, "node_pull": _pull,
    "warp_pull": _pull, "block_pull": _pull, "edge_push": _push, "gather": _gather, "add_sums": _add_sums,
    "dense_pull": _dense, "count_pairs": _count_pairs, "normalized_weights": _normalized_weights,
}  # fmt: skip
"""Functions by kernel."""
