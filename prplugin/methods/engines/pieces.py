"""Edges cut into pieces of equally many, whatever the rows: what `expanded` and `streamed` share, beside pieces.cuh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prplugin.types.arrays import namespace, to_device
from prplugin.types.edges import Integers

__all__ = ["BYTES", "COLLECTORS", "SIZE", "Pieces", "cut"]

SIZE = 2048
"""Edges a piece: 16 KB of terms, as much as a DMA transfer of the Cell processor brings to a local store."""

BYTES = 40
"""What a piece takes on the GPU: two compensated sums and a head."""

COLLECTORS = 128
"""Threads of a block that collects partial sums, a few for most rows."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Runs of edges, one a row that has any, and where the cuts fall among them: see pieces.cuh.

    `size`: Edges a piece; the last may have fewer.
    `rows` (array of positions): The row of each run.
    `starts` (array of offsets): Where each run begins, and twice where the last one ends: once more for an empty run
    past all.
    `heads` (array of int64): The run that the first edge of each piece belongs to, and the empty run.
    """

    size: int
    rows: Integers
    starts: Integers
    heads: Integers

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return self.heads.size - 1

    def on_device(self) -> Pieces:
        """Give the same cuts in the memory of the GPU."""
        return Pieces(self.size, to_device(self.rows), to_device(self.starts), to_device(self.heads))


def cut(offsets: Integers, size: int, index: Any) -> Pieces:
    """Cut the edges of compressed rows into pieces of `size`; positions of rows are of type `index`."""
    xp = namespace(offsets)
    rows = xp.flatnonzero(offsets[1:] > offsets[:-1])
    starts = xp.concatenate((offsets[rows], offsets[-1:], offsets[-1:]))
    cuts = xp.arange(0, int(offsets[-1]), size, dtype=starts.dtype)
    heads = xp.full(cuts.size + 1, rows.size, np.int64)
    heads[:-1] = xp.searchsorted(starts[:-2], cuts, side="right") - 1
    return Pieces(size, rows.astype(index), starts, heads)
