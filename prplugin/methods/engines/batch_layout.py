"""The edges as sweeps of many seeds go along them: each with the place where its source is read.

As in `_sweeps`, the rows are cut into `STREAMS` runs, and each of these into `TURNS` pieces; a piece reads new values
of its own, as far as it has come, and of pieces at least `STREAMS` before it. But here all rows are swept, under their
own numbers, so that no matrix is ever put in another order.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from prplugin.cpu.crew import Crew, Piece
from prplugin.graph.adjacency import Adjacency
from prplugin.methods.engines.sweeps import STREAMS
from prplugin.types.edges import Integers

__all__ = ["Layout", "layout_of"]

TURNS = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """The in-edges, by target.

    Attributes
    ----------
    pieces : list of (int, int)
        Rows, in the order in which they are swept.
    places : array of m uint32
        Where each edge's source is read.
    shares : array of m float32, or None
        What each place is multiplied by; None: 1.
    loops : array of n float32
        What share of a vertex's rank goes to itself.
    """

    pieces: list[Piece]
    places: Integers
    shares: Any
    loops: Any


_layouts: WeakKeyDictionary[Adjacency, Layout] = WeakKeyDictionary()


def layout_of(adjacency: Adjacency, threads: int) -> Layout:
    """Give the layout of a graph, made when first asked for, by so many threads."""
    layout = _layouts.get(adjacency)
    if layout is None:
        layout = _layouts[adjacency] = _laid_out(adjacency, threads)
    return layout


def _laid_out(adjacency: Adjacency, threads: int) -> Layout:
    from prplugin.cpu import batch_kernels as kernels  # imports Numba

    n = adjacency.n
    offsets, sources, weights = adjacency.csc
    count = STREAMS * TURNS
    # Of equal work, where a row is worth four edges.
    work = int(offsets[-1]) + 4 * n
    bounds = [
        bisect_left(range(n), work * place // count, key=lambda row: int(offsets[row]) + 4 * row)
        for place in range(count)
    ]
    runs = list(pairwise([*bounds, n]))
    pieces = [runs[stream * TURNS + turn] for turn in range(TURNS) for stream in range(STREAMS)]
    turns = np.empty(n, np.uint8)
    for turn, (first, last) in enumerate(pieces):
        turns[first:last] = turn
    places = np.empty(adjacency.m, np.uint32)
    shares = None if weights is None else np.empty(adjacency.m, np.float32)
    loops = np.empty(n, np.float32)

    def lay_out(turn: int, _: int) -> None:
        kernels.lay_out(
            *pieces[turn], max(turn - STREAMS + 1, 0), turns, offsets.view(np.uint64),
            sources.view(f"u{sources.itemsize}"), weights, adjacency.out_weight, places, shares, loops,
        )  # fmt: skip

    Crew([(turn, turn + 1) for turn in range(count)], threads).work(lay_out)
    return Layout(pieces, places, shares, loops)
