"""The papers' listings and prplugin's own kernels in NumPy, one function per kernel of a .cu file.

Each has the grid, the block, the macros and the arguments of a launch. Listings are loops over scalars in float32, in the
order of one thread of the paper.
"""

from __future__ import annotations

from fractions import Fraction

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


def _finish(grid, block, macros, n, equation, sums, totals, ranks, contributions, moves, partials):
    y = equation.alpha * sums + (equation.alpha * totals[2] * equation.target + equation.teleport)
    inverse = equation.inverse_out_weight
    if moves is not None:
        moves[:] = y - ranks
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


def _products(grid, block, macros, n, moves, partials):
    """Add the products of moves i >= j over all vertices, in the order of a lower triangle, for one or many seeds."""
    rows, columns = np.tril_indices(macros["ROWS"])
    partials[:] = 0
    with np.errstate(all="ignore"):  # other rows of the history may never have been written
        for pair, (i, j) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            partials[0, pair] = (moves[i].astype(np.float64) * moves[j]).sum(axis=0)


def _mix(grid, block, macros, n, moves, weights, ranks, jump, sums):
    moved = [
        np.where(weight != 0, weight * np.nan_to_num(move), 0) for weight, move in zip(weights, moves, strict=True)
    ]
    mixed = np.maximum(ranks - sum(moved), 0)
    jump[:], ranks[:], sums[:] = mixed - ranks, mixed, 0
    sums[0] = mixed.sum(axis=0)


# --- graph construction -------------------------------------------------------------------------------------------


def _pairs(tails, heads, directed, bits):
    one, other = tails.astype(np.uint64), heads.astype(np.uint64)
    if not directed:
        one, other = np.minimum(one, other), np.maximum(one, other)
    return one << np.uint64(bits) | other


def _pair_keys(grid, block, macros, m, tails, heads, directed, bits, keys):
    pairs = _pairs(tails, heads, directed, bits)
    if 2 * bits > 32:
        pairs = (pairs ^ pairs >> np.uint64(32)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
    keys[:] = pairs


def _mark_repeated(grid, block, macros, m, keys, rows, tails, heads, directed, bits, last, marks, count):
    pairs, step = _pairs(tails, heads, directed, bits)[rows].tolist(), 1 if last else -1
    assert not marks.any()
    for place in range(m):
        beside = place + step
        while 0 <= beside < m and keys[beside] == keys[place] and not marks[rows[place]]:
            marks[rows[place]] = pairs[beside] == pairs[place]
            beside += step
    count[0] = np.count_nonzero(marks)


def _keep_rows(
    grid, block, macros, m, marks, ticket, states, tails, heads, weights, kept_tails, kept_heads, kept_weights
):
    assert not ticket.any()
    assert not states.any()
    kept_tails[:], kept_heads[:] = tails[marks == 0], heads[marks == 0]
    if macros["WEIGHTED"]:
        kept_weights[:] = weights[marks == 0]


def _add_exactly(grid, block, macros, m, rows, weights, starts, shift, parts, width, length, unit, n, sums):
    """Add weights as integers, multiples of the last place of numbers of exponent `unit`, in WORDS words of 32 bits."""
    assert parts * width >= 1 << shift
    assert not sums.any()
    exact = dict.fromkeys(rows.tolist(), 0)
    for row, bits in zip(rows.tolist(), weights.view(np.uint64).tolist(), strict=True):
        exponent, digits = bits >> 52 & 2047, bits & (1 << 52) - 1
        places = max(exponent, 1) - int(unit)
        assert digits == exponent == 0 or places >= 0
        exact[row] += (digits | (exponent > 0) << 52) << max(places, 0)
    for row, total in exact.items():
        assert total < 1 << 32 * macros["WORDS"] - 1
        sums[:, row] = total & (1 << 64) - 1, total >> 64 | 1 << 63


def _rounded(grid, block, macros, n, sums, unit, absent, values):
    for group, (low, high) in enumerate(sums.T.tolist()):
        units = Fraction(2) ** int(unit)
        values[group] = float((low | (high & (1 << 63) - 1) << 64) * units) if low or high else absent


def _first_places(grid, block, macros, m, codes, scale, shift, first):
    np.minimum.at(first, codes, scale * np.arange(m, dtype=np.uint64) + np.uint64(shift))


def _find_entries(sources, weights, k, wanted_sources, begins, ends, wanted_weights):
    entries = range(int(begins[k]), int(ends[k]))
    return [
        entry
        for entry in entries
        if sources[entry] == wanted_sources[k] and (wanted_weights is None or weights[entry] == wanted_weights[k])
    ]


def _count_matches(
    grid, block, macros, count, sources, weights, first_pieces, wanted_sources, begins, ends, wanted, counts
):
    counts[:] = 0
    for k in range(count):
        assert first_pieces[k + 1] - first_pieces[k] == -(-(ends[k] - begins[k]) // macros["PIECE"])
        for entry in _find_entries(sources, weights, k, wanted_sources, begins, ends, wanted):
            counts[first_pieces[k] + (entry - begins[k]) // macros["PIECE"]] += 1


def _find_edges(
    grid, block, macros, count, sources, weights, first_pieces, wanted_sources, begins, ends, wanted, counts, nth, found
):
    for k in range(count):
        matching = _find_entries(sources, weights, k, wanted_sources, begins, ends, wanted)
        assert counts[first_pieces[k] : first_pieces[k + 1]].sum() == len(matching)
        found[k] = matching[nth[k]] if nth[k] < len(matching) else -1


def _splice_entries(
    grid, block, macros, m, sources, weights, removed_count, removed, added_count, before, added_sources, added_weights,
    new_sources, new_weights, out_degrees,
):  # fmt: skip
    assert (np.diff(removed) > 0).all()
    assert (np.diff(before) >= 0).all()
    assert grid * block * macros["TILE"] >= m
    entries = sorted([*((entry, 1, 0) for entry in range(m)), *((int(at), 0, k) for k, at in enumerate(before))])
    gone, place = set(removed.tolist()), 0
    for entry, is_old, k in entries:
        source = sources[entry] if is_old else added_sources[k]
        if is_old and entry in gone:
            if out_degrees is not None:
                out_degrees[source] -= 1
            continue
        new_sources[place] = source
        if new_weights is not None:
            new_weights[place] = weights[entry] if is_old else added_weights[k]
        if not is_old and out_degrees is not None:
            out_degrees[source] += 1
        place += 1


def _splice_offsets(grid, block, macros, n, offsets, removed_count, removed, added_count, added_targets, new_offsets):
    for row in range(n + 1):
        new_offsets[row] = offsets[row] - (removed < offsets[row]).sum() + (added_targets < row).sum()


OURS = {
    "inverse_out_weight": _inverse_out_weight, "begin": _begin, "finish": _finish, "total": _total, "node_pull": _pull,
    "warp_pull": _pull, "block_pull": _pull, "edge_push": _push, "gather": _gather, "add_sums": _add_sums,
    "dense_pull": _dense, "count_pairs": _count_pairs, "normalized_weights": _normalized_weights,
    "products": _products, "mix": _mix, "seeds_products": _products, "seeds_mix": _mix, "pair_keys": _pair_keys,
    "mark_repeated": _mark_repeated, "keep_rows": _keep_rows, "add_exactly": _add_exactly, "rounded": _rounded,
    "first_places": _first_places, "count_matches": _count_matches, "find_edges": _find_edges,
    "splice_entries": _splice_entries, "splice_offsets": _splice_offsets,
}  # fmt: skip
"""Functions by kernel."""
