"""The kernels of `_sweeps`: single-threaded loops that release the GIL, cached on disk."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["GROUP", "combine", "lay_out", "products", "sweep"]

GROUP = 4
"""Edges that are added side by side; rows are padded to whole groups."""

FEW = 64
"""Rows that are swept in one go: those of even number, then those of odd number.

A row that read what the row before it has just found would have to wait for it.
"""

ROOM = 512
"""Columns of all iterates of a window that lie in the first cache."""

ZERO, ONE, TWO, THREE, FOUR = (np.uint64(number) for number in range(5))
LAST, HALF = np.uint64(FEW - 1), np.uint64(FEW // 2)
NAUGHT: Any = np.float32(0)

compiled = numba.njit(nogil=True, cache=True, error_model="numpy")
vectorised = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@compiled
def lay_out(first, last, ready, turns, offsets, sources, weights, out_weight, place, ends, places, shares, loops):
    """Write where to read the sources of rows `first` to `last`, in the order of `sweep`: places in two iterates.

    The iterates lie end to end. A row reads new values of sources that are swept before it in this piece, or whose turn
    is below `ready`, and old values of others. An edge from a vertex to itself, and what fills up a group, reads the 0
    that follows the n old values; `loops` takes how much of a rank goes to itself. The places begin at `place`; `ends`
    takes where those of each row end.
    """
    n = np.uint64(loops.size)
    begin, first, last = np.uint64(first), np.uint64(first), np.uint64(last)
    place, swept = np.uint64(place), ZERO
    while begin < last:
        end = min((begin | LAST) + ONE, last)
        for odd in range(ZERO, TWO):
            for i in range(begin + ((begin ^ odd) & ONE), end, TWO):
                turn, stays = i & ~LAST | (i & ONE) * HALF | (i & LAST) >> ONE, 0.0
                for edge in range(offsets[i], offsets[i + ONE]):
                    source = np.uint64(sources[edge])
                    its_turn = source & ~LAST | (source & ONE) * HALF | (source & LAST) >> ONE
                    before = (first <= source) & (source < last) & (its_turn < turn)
                    at = source + n + ONE if before | (turns[source] < ready) else source
                    if weights is None:
                        stays += 1.0 if source == i else 0.0
                    else:
                        whole = out_weight[source]
                        share = weights[edge] / whole if whole > 0.0 else 0.0
                        shares[place] = share
                        stays += share if source == i else 0.0
                    places[place] = n if source == i else at
                    place += ONE
                while place % FOUR != ZERO:
                    places[place] = n
                    if weights is not None:
                        shares[place] = 0.0
                    place += ONE
                loops[i] = stays if weights is not None or stays == 0.0 else stays / out_weight[i]
                ends[swept] = place
                swept += ONE
        begin = end


@compiled
def sweep(first, last, edge, ends, places, shares, iterates, alpha, base, moves, scale, out, sums):
    """Write new contributions of rows `first` to `last`: `iterates` are the old and the new ones.

    In groups of `FEW` rows: those of even number, then those of odd number.

    c_i = (alpha * (sum of c over the in-edges of i) + base + r_i) * scale_i. A row's value is c_i * out_i, or c_i where
    that is 0, on dangling rows. `sums` takes what the values of rows that are not dangling change, in L1; what these
    sum to; and what those of dangling rows do. `alpha` and `base` are in float32, as all else.
    """
    n = np.uint64(moves.size)
    change, flowing, dangling = 0.0, 0.0, 0.0
    begin, last = np.uint64(first), np.uint64(last)
    edge, swept = np.uint64(edge), ZERO
    while begin < last:
        few_change, few_flowing, few_dangling = NAUGHT, NAUGHT, NAUGHT
        end = min((begin | LAST) + ONE, last)
        for odd in range(ZERO, TWO):
            for i in range(begin + ((begin ^ odd) & ONE), end, TWO):
                stop = np.uint64(ends[swept])
                swept += ONE
                one, two, three, four = NAUGHT, NAUGHT, NAUGHT, NAUGHT
                while edge < stop:
                    if shares is None:
                        one += iterates[places[edge]]
                        two += iterates[places[edge + ONE]]
                        three += iterates[places[edge + TWO]]
                        four += iterates[places[edge + THREE]]
                    else:
                        one += iterates[places[edge]] * shares[edge]
                        two += iterates[places[edge + ONE]] * shares[edge + ONE]
                        three += iterates[places[edge + TWO]] * shares[edge + TWO]
                        four += iterates[places[edge + THREE]] * shares[edge + THREE]
                    edge += FOUR
                c = (alpha * ((one + two) + (three + four)) + (base + moves[i])) * scale[i]
                iterates[n + ONE + i] = c
                wide = out[i]
                few_change += abs((c - iterates[i]) * wide)
                few_flowing += c * wide
                few_dangling += c if wide == NAUGHT else NAUGHT
        change += few_change
        flowing += few_flowing
        dangling += few_dangling
        begin = end
    sums[0] = change
    sums[1] = flowing
    sums[2] = dangling


@vectorised
def products(first, last, iterates, moves, sums):
    """Multiply what each sweep changed with what each other did, over columns `first` to `last` of k + 1 iterates.

    `moves` is room for `ROOM` columns of k rows of float64.
    """
    k = np.uint64(moves.shape[0])
    begin, last = np.uint64(first), np.uint64(last)
    while begin < last:
        width = min(np.uint64(ROOM), last - begin)
        for i in range(ZERO, k):
            for column in range(ZERO, width):
                moves[i, column] = iterates[i + ONE, begin + column] - iterates[i, begin + column]
            for j in range(ZERO, i + ONE):
                product = 0.0
                for column in range(ZERO, width):
                    product += moves[i, column] * moves[j, column]
                sums[i, j] += product
        begin += width


@vectorised
def combine(first, last, iterates, weights, values):
    """Write over the first iterate the last one, less some of each move that led to it but the first.

    `values` is room for `ROOM` columns of float64.
    """
    k = np.uint64(weights.size)
    begin, last = np.uint64(first), np.uint64(last)
    while begin < last:
        width = min(np.uint64(ROOM), last - begin)
        for column in range(ZERO, width):
            values[column] = iterates[k + ONE, begin + column]
        for i in range(ZERO, k):
            for column in range(ZERO, width):
                values[column] -= weights[i] * (iterates[i + TWO, begin + column] - iterates[i + ONE, begin + column])
        for column in range(ZERO, width):
            iterates[ZERO, begin + column] = values[column]
        begin += width
