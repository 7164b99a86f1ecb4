"""Pieces of equally many edges, independent of rows: used by `expanded` and `streamed`, with pieces.cuh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prplugin.types.arrays import namespace
from prplugin.types.edges import Integers

SIZE = 2048
"""Edges per piece: 16 KB of terms, the size of a DMA transfer to a local store of the Cell processor."""

BYTES = 40
"""Bytes per piece on the GPU: two compensated sums and a head."""

COLLECTORS = 128
"""Threads per block of the kernel that collects partial sums; most rows have only a few."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Runs of edges, one per non-empty row, and the boundaries of pieces among them: see pieces.cuh."""

    size: int  # edges per piece; the last may have fewer
    rows: Integers  # the row of each run
    starts: Integers  # begin of each run, then m twice: the end of the last run, and that of an empty run after all
    heads: Integers  # the run of the first edge of each piece, then the empty run

    @property
    def count(self) -> int:
        """Number of pieces."""
        return self.heads.size - 1


def cut(offsets: Integers, size: int, index: Any) -> Pieces:
    """Partition the edges of compressed rows into pieces of `size`; row positions are of type `index`."""
    xp = namespace(offsets)
    rows = xp.flatnonzero(offsets[1:] > offsets[:-1])
    starts = xp.concatenate((offsets[rows], offsets[-1:], offsets[-1:]))
    cuts = xp.arange(0, int(offsets[-1]), size, dtype=starts.dtype)
    heads = xp.full(cuts.size + 1, rows.size, np.int64)
    heads[:-1] = xp.searchsorted(starts[:-2], cuts, side="right") - 1
    return Pieces(size, rows.astype(index), starts, heads)
