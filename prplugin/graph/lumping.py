"""Dangling vertices lumped into one, so that iterations read no edges that lead to them.

Others depend on the ranks of dangling vertices by their sum D alone (Ipsen and Selee 2007, "PageRank computation, with
special attention to dangling nodes", SIAM J. Matrix Anal. Appl. 29). Let b_j be the part of the out-weight of j that
leads to dangling vertices, and w(2), v(2) the sums of w and v over these. Then D is the rank of one vertex, for which

    D(y) = alpha * (sum_j b_j x_j + D(x) * w(2)) + (1 - alpha) * v(2).

Let |z| be the L1 norm in which D counts as one entry. A z depends on the entries of z in this norm alone, and its own
norm, where no entries are joined, is at most alpha * |z|. The ranks of dangling vertices are computed at the end, from
the x of the last step. Let z = G x + e be all of them. With (1) of `prplugin.solver.certificate` in this norm,

    |x - x*| <= (|y - x| + |e|) / (1 - alpha),
    ||z - x*|| = ||A (x - x*) + e|| <= alpha * |x - x*| + ||e|| <= (alpha * |y - x| + ||e||) / (1 - alpha),

the bound of a step whose change is |y - x|. A sweep has them last. With r = G z - z, pull.cpp bounds the residual of
its result by ||r|| <= alpha * c, where e has D as one entry, so that |z - x*| <= alpha * c / (1 - alpha) and

    ||z - x*|| = ||A (z - x*) - r|| <= alpha * |z - x*| + ||r|| <= alpha * c / (1 - alpha).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prplugin.cpu.packing import sort_rows
from prplugin.cpu.sorting import offsets_of
from prplugin.cpu.sums import ORDERED_EDGES, compensated_sums, order_rows
from prplugin.graph.edges import Edges, group_sizes
from prplugin.machine import this_machine
from prplugin.types.edges import Compressed, Csc, Floats, Integers

LUMPED_EDGES = range(50_000, 1 << 28)
"""Numbers of edges for which iterations are worth the other order; of more, two copies may not fit."""

LEAST_SPARED, VERTEX_EDGES = 0.08, 2
"""Least part of the work that iterations are spared, where a vertex counts as so many edges: docs/decisions/0019."""


class Lumped(NamedTuple):
    """In-edges of a graph whose k linking vertices come first, by their positions in it.

    `linking`, `dangling`: Positions of the vertices in the graph, ascending.
    `in_edges`: Of the linking vertices, and of one that stands for the dangling ones and has none here; with normalized
    weights.
    `row_order`: As `Edges.row_order` of these.
    `inverse_out_weight`, `outside`: 1 / W and b of these.
    `rest`: In-edges of the dangling vertices.
    """

    linking: Integers
    dangling: Integers
    in_edges: Compressed
    row_order: Integers | None
    inverse_out_weight: Floats
    outside: Floats
    rest: Compressed


def lumped_of(edges: Edges) -> Lumped | None:
    """Return the graph with its dangling vertices as one, if that spares iterations enough; otherwise None."""
    if edges.lumped is None:
        edges.lumped = _lumped(edges) or False
    found: Lumped | None = edges.lumped or None
    return found


def _lumped(edges: Edges) -> Lumped | None:
    offsets, sources, _ = edges.get(Csc)
    in_degrees, dangling = np.diff(offsets), edges.dangling
    spared = int(in_degrees[dangling].sum()) + VERTEX_EDGES * dangling.size
    if spared < LEAST_SPARED * (edges.m + VERTEX_EDGES * edges.n):
        return None
    linking = np.flatnonzero(edges.out_weight > 0)
    order = np.concatenate((linking, dangling))
    position = np.empty(edges.n, sources.dtype)
    position[order] = np.arange(edges.n, dtype=sources.dtype)
    starts, threads = offsets_of(in_degrees[order]), this_machine().threads_for(edges.m)
    sources, weights = sort_rows(
        order, starts, offsets, sources, position, edges.normalized_weights, threads, sorts=False
    )
    k, inner = linking.size, int(starts[linking.size])
    first, last = slice(inner), slice(inner, None)
    rest = Compressed(starts[k:] - inner, sources[last], None if weights is None else weights[last])
    inverse = np.append(edges.inverse_out_weight[linking], 0.0)
    if rest.weights is None:
        outside = group_sizes(rest.indices, k + 1) * inverse
    else:
        outside, _ = compensated_sums(rest.indices, rest.weights, k + 1)
    row_order = None
    if not edges.weighted and inner in ORDERED_EDGES:
        row_order = np.append(order_rows(starts[: k + 1], threads), np.uint8(0))
    in_edges = Compressed(
        np.append(starts[: k + 1], inner), sources[first], None if weights is None else weights[first]
    )
    return Lumped(linking, dangling, in_edges, row_order, inverse, outside, rest)
