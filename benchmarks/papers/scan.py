"""Segmented scan of gathered terms in equal tiles: a baseline discussed by Wu and others 2010."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.edges import Edges
from prplugin.types.edges import Csc

FILE = str(Path(__file__).with_name("scan.cu"))

THREADS, TILE = 256, 1024


def bytes_needed(adjacency: Edges) -> int:
    """Return the bytes in addition to the matrix: a term and a row-start flag per edge."""
    return 9 * adjacency.m


class ScanPull:
    """Row sums of a graph without weights by a segmented scan.

    Raises
    ------
    MethodUnavailableError
        If the GPU has not enough memory.
    """

    def __init__(self, adjacency: Edges) -> None:
        if not runtime.fits(needed := bytes_needed(adjacency)):
            raise MethodUnavailableError(f"segmented scan needs about {needed:,} bytes of GPU memory.")
        import cupy  # lazy import; the edges are on the GPU

        self._n, self._m = adjacency.n, adjacency.m
        self._offsets, self._sources, _ = adjacency.get(Csc)
        begins = self._offsets[:-1][cupy.diff(self._offsets) > 0]
        self._heads = cupy.zeros(self._m, np.uint8)
        self._heads[begins] = 1
        self._terms = cupy.empty(self._m)
        tiles = -(-self._m // TILE)
        self._left, self._begins = cupy.empty(tiles), cupy.empty(tiles, np.uint8)

    def __call__(self, contributions: Any, pulled: Any) -> None:
        """Compute the sum of each row."""
        tiles = self._left.size
        self._launch(contributions, "gather_terms", self._m, self._sources, contributions, self._terms)
        self._launch(
            contributions, "scan_tiles", self._m, self._heads, self._terms, self._left, self._begins, grid=tiles
        )
        self._launch(contributions, "scan_left", tiles, self._left, self._begins, grid=1)
        self._launch(contributions, "take_rows", self._n, self._offsets, self._terms, self._left, pulled)

    def _launch(self, contributions: Any, name: str, count: int, *arrays: Any, grid: int | None = None) -> None:
        """Launch `grid` blocks of TILE threads, or else one thread per item."""
        types: dict[str, str | int] = {
            "index_t": runtime.ctype(self._sources.dtype),
            "offset_t": runtime.ctype(self._offsets.dtype),
            "real_t": runtime.ctype(contributions.dtype),
            "TILE": TILE,
            "WEIGHTED": 0,
        }
        blocks, threads = (runtime.blocks_for(count, THREADS), THREADS) if grid is None else (grid, TILE)
        runtime.kernel(FILE, name, **types)((blocks,), (threads,), (count, *arrays))
