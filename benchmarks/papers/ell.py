"""ELL (ITPACK) format, every row padded to the longest: a baseline discussed by Wu and others 2010."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prplugin.errors import MethodUnavailableError
from prplugin.gpu import runtime
from prplugin.graph.edges import Edges
from prplugin.types.edges import Csc

FILE = str(Path(__file__).with_name("ell.cu"))

THREADS = 256

LIMIT = 16 << 30
"""Largest number of bytes of padded indices."""


def bytes_needed(adjacency: Edges) -> int:
    """Return the bytes of the padded indices."""
    return adjacency.n * adjacency.largest_in_degree * adjacency.get(Csc).indices.dtype.itemsize


class EllPull:
    """Row sums of a graph without weights in ELL format.

    Raises
    ------
    MethodUnavailableError
        If the padded indices exceed the available memory or `LIMIT`.
    """

    def __init__(self, adjacency: Edges) -> None:
        needed = bytes_needed(adjacency)
        room = min(LIMIT, runtime.available_bytes())
        if needed > room:
            raise MethodUnavailableError(
                f"ELL would need {needed / 1e9:,.1f} GB for rows of {adjacency.largest_in_degree:,}; "
                f"the limit is {room / 1e9:,.1f} GB"
            )
        import cupy  # lazy import; the edges are on the GPU

        offsets, sources, _ = adjacency.get(Csc)
        self._columns = cupy.full((adjacency.largest_in_degree, adjacency.n), -1, sources.dtype)
        edges = cupy.arange(adjacency.m)
        rows = cupy.searchsorted(offsets, edges, side="right") - 1
        self._columns[edges - offsets[rows], rows] = sources

    def __call__(self, contributions: Any, pulled: Any) -> None:
        """Compute the sum of each row."""
        width, n = self._columns.shape
        types: dict[str, str | int] = {
            "index_t": runtime.ctype(self._columns.dtype), "real_t": runtime.ctype(contributions.dtype), "WEIGHTED": 0,
        }  # fmt: skip
        launch = runtime.kernel(FILE, "ell_pull", **types)
        launch((runtime.blocks_for(n, THREADS),), (THREADS,), (n, width, self._columns, contributions, pulled))
