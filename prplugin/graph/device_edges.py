"""Edges from columns of integer ids, on the GPU: see grouped.cu."""

from __future__ import annotations

from functools import partial
from typing import Any

import cupy
import numpy as np

from prplugin import cuda
from prplugin.graph import device
from prplugin.graph.device_each import THREADS, blocks_for_each
from prplugin.graph.device_ids import FEW, IDS, counted_marks, extremes, number, widened
from prplugin.graph.device_sort import sort_ids
from prplugin.graph.edges import Edges, GroupedEdges, Integers, offset_dtype

__all__ = ["edges_by_id"]

HELD = 32
"""Bytes an edge that `_grouped` holds at the most, of which 12 stay."""


def edges_by_id(columns: list[Integers], *, grouped: bool) -> tuple[Edges | GroupedEdges, Integers]:
    """Number the vertices of edges in ascending order of id.

    Parameters
    ----------
    columns : list of arrays of ids
        Of one integer type: sources, destinations, and if there are more vertices, those.
    grouped : bool
        Whether edges are rather wanted by target than by row.

    Returns
    -------
    edges : Edges or GroupedEdges
        Without weights.
    ids : array
        The distinct ids, ascending, in the type of the columns.
    """
    m, dtype, known = columns[0].size, columns[0].dtype, None
    columns = widened(columns)
    if grouped and len(columns) == 2 and 2 * m > FEW and offset_dtype(m).itemsize == 4:
        low, high = known = extremes(columns)
        if high - low < m and cuda.bytes_free() >= HELD * m:
            edges, ids = _grouped(columns, low, high - low + 1)
            return edges, ids.astype(dtype, copy=False)
    codes, ids = number(columns, known)
    return Edges(codes[0], codes[1], None, ids.size), ids.astype(dtype, copy=False)


def _grouped(columns: list[Integers], low: int, span: int) -> tuple[GroupedEdges, Integers]:
    """Sort edges by the distance of the target's id from the least, and number vertices afterwards."""
    dtype = columns[0].dtype
    targets, sources, *ends = sort_ids(columns[0], columns[1], low, span)
    begins = device.offsets_of(targets, span)
    del targets
    out_degrees = device.degrees(ends[0], span)
    range_blocks = (cuda.blocks_for(span + 1, THREADS),)

    def mark(bits: Integers) -> None:
        _kernel("mark_ends", dtype)(range_blocks, (THREADS,), (span, begins, out_degrees, bits))

    marks, n = counted_marks(mark, span, dtype)
    ids, offsets, out_weight = cupy.empty(n, dtype), cupy.empty(n + 1, np.int32), cupy.empty(n, np.float64)
    _kernel("compact", dtype)(
        range_blocks,
        (THREADS,),
        (span, n, np.uint64(low % 2**64), marks, begins, out_degrees, ids, offsets, out_weight),
    )
    if n == span:
        return GroupedEdges((offsets, sources), out_weight, partial(tuple, ends)), ids
    _renumber([sources], marks, dtype)
    return GroupedEdges((offsets, sources), out_weight, partial(_renumber, ends, marks, dtype)), ids


def _renumber(ends: list[Integers], marks: Any, dtype: np.dtype[Any]) -> tuple[Integers, ...]:
    """Replace distances from the least id by positions."""
    for distances in ends:
        _kernel("renumber", dtype)((blocks_for_each(distances.size),), (THREADS,), (distances.size, distances, marks))
    return tuple(ends)


def _kernel(name: str, ids: np.dtype[Any]) -> Any:
    return cuda.kernel("graph/grouped.cu", name, id_t=IDS[ids.str[1:]])
