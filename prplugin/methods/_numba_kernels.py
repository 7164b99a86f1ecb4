"""The Numba method's kernels: single-threaded loops that release the GIL, cached on disk.

The vector is cut into blocks of `BLOCK` rows, each of which sums on its own, so that the results do not depend on how
many threads share the blocks.
"""

from __future__ import annotations

import numba

__all__ = ["BLOCK", "GROUP", "edge_shares", "pull_chain", "step_chain", "sweep"]

GROUP = 32
"""Terms added in a plain loop before the sum goes up a level."""

BLOCK = GROUP * GROUP
"""Rows whose norms are added up in one block: a level of groups, and a level of group sums."""

LEVELS = 40
"""Levels of pairwise sums: room for GROUP * 2**40 terms."""

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


def pull_chain(in_degree: int) -> int:
    """Give the most additions a term of a row sum goes through: in its group, up the levels, and down them."""
    groups = in_degree // GROUP
    return min(in_degree, GROUP) + 2 * groups.bit_length()


def step_chain() -> int:
    """Give the most additions a row goes through in the sums of its block."""
    return 2 * GROUP


@compiled
def edge_shares(weights, sources, out_weight, shares):
    """Write each edge's share w / W of its source's out-weight; 0 where W is 0, which makes the source dangling."""
    for edge in range(weights.size):
        whole = out_weight[sources[edge]]
        shares[edge] = weights[edge] / whole if whole > 0.0 else 0.0


@compiled
def _long_row_sum(contributions, sources, shares, begin, end, levels):
    """Sum a row of in-edges: groups of `GROUP` terms, then pairwise, as carries run through a binary counter."""
    groups = 0
    while True:
        stop = begin + GROUP if end - begin > GROUP else end
        term = 0.0
        for edge in range(begin, stop):
            if shares is None:
                term += contributions[sources[edge]]
            else:
                term += contributions[sources[edge]] * shares[edge]
        if stop == end:
            break
        begin = stop
        level, carries = 0, groups
        while carries & 1:
            term += levels[level]
            level, carries = level + 1, carries >> 1
        levels[level] = term
        groups += 1
    level = 0
    while groups:
        if groups & 1:
            term += levels[level]
        level, groups = level + 1, groups >> 1
    return term


@compiled
def sweep(
    first_block, last_block, offsets, sources, shares, outflow, contributions, alpha, mass, target, teleport,
    ranks, next_contributions, sums, levels,
):  # fmt: skip
    """One iteration over the rows of some blocks.

    y_i = alpha * (sum of c over the in-edges of i) + mass * w_i + t_i, where mass = alpha * D and t = (1 - alpha) * v;
    then c_i = y_i * outflow_i for the next, where outflow is 0 on dangling rows. `target` (w) and `teleport` (t) have n
    entries, or one that stands for all. Block b leaves ||y - x||, max |y - x| and D(y) of its rows in `sums[b]`.
    """
    n = ranks.size
    target_step = 1 if target.size == n else 0
    teleport_step = 1 if teleport.size == n else 0
    for block in range(first_block, last_block):
        change, largest, dangling = 0.0, 0.0, 0.0
        for group in range(block * BLOCK, min(block * BLOCK + BLOCK, n), GROUP):
            group_change, group_dangling = 0.0, 0.0
            for i in range(group, min(group + GROUP, n)):
                begin, end = offsets[i], offsets[i + 1]
                if end - begin > GROUP:
                    pulled = _long_row_sum(contributions, sources, shares, begin, end, levels)
                else:
                    pulled = 0.0
                    for edge in range(begin, end):
                        if shares is None:
                            pulled += contributions[sources[edge]]
                        else:
                            pulled += contributions[sources[edge]] * shares[edge]
                rank = alpha * pulled + (mass * target[i * target_step] + teleport[i * teleport_step])
                move = abs(rank - ranks[i])
                group_change += move
                largest = max(largest, move)
                flow = outflow[i]
                group_dangling += rank if flow == 0.0 else 0.0
                next_contributions[i] = rank * flow
                ranks[i] = rank
            change += group_change
            dangling += group_dangling
        sums[block, 0] = change
        sums[block, 1] = largest
        sums[block, 2] = dangling
