"""Adapter of pandas frames."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from prplugin.errors import InvalidEdgesError, PageRankError
from prplugin.frames.base import is_a
from prplugin.frames.columns import Columns
from prplugin.frames.ids import EdgesById
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.graph.factorize import edges_by_id
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges

if TYPE_CHECKING:
    import pandas as pd

MOST_IN_MATRIX = 1 << 11
"""Rows of a change up to which both columns are read as one matrix, which takes long for ids that are not integers."""


def accepts(frame: object) -> bool:
    """Return whether a frame is of pandas, and cudf.pandas is not in use."""
    return is_a(frame, "pandas", "DataFrame") and "cudf.pandas" not in sys.modules


def memory_space_of(frame: object) -> MemorySpace:
    """Return "host"."""
    return "host"


def open_frame(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[Hashable]]:
    """Return the frame, and its column labels."""
    return frame, list(frame)


def read(
    frame: pd.DataFrame, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True,
    by_id: EdgesById | None = None,
) -> tuple[Edges | GroupedEdges, Vertices]:  # fmt: skip
    """Factorize the endpoints: see `prplugin.frames.FrameAdapter.read`.

    `by_id`: Factorizes integer ids, instead of `prplugin.graph.factorize.edges_by_id`.
    """
    if columns.clock is not None and columns.time is not None:
        times, rows = columns.clock.read(frame.iloc[:, columns.time], f"column {columns.time_name!r}")
        untimed = replace(columns, time=None)
        try:
            part = frame if rows is None else frame.iloc[rows]
            edges, known = read(part, untimed, vertices, edge_list=edge_list, lasting=lasting, by_id=by_id)
        except PageRankError as error:
            from prplugin.frames.times import with_frame_rows  # loaded with the clock

            raise error if rows is None else with_frame_rows(error, rows) from None
        return (edges if times is None else replace(edges, times=times)), known  # type: ignore[type-var]
    ids = ids_in("host")
    endpoints = ids.endpoints_of(frame, columns, vertices)
    labels = columns.id_labels(vertices=vertices is not None)
    grouped = columns.weight is None and not edge_list
    by_id = by_id or partial(edges_by_id, grouped=grouped, lasting=lasting)
    edges, arrays, kinds = ids.encode(endpoints, labels, by_id)
    if columns.weight is not None:
        label = f"column {columns.weight_name!r}"
        weights = ids.numbers(ids.column_of(frame, columns.weight), label, "row", InvalidEdgesError)
        edges = replace(edges, weights=weights)  # type: ignore[type-var]
    return edges, Vertices(columns.vertex_names, arrays, kinds)


def read_changes(frame: pd.DataFrame, columns: Columns) -> tuple[Edges | GroupedEdges, Vertices]:
    """Read edges to add or to remove; the type of their vertices may be wider than that of the columns."""
    plain = frame.shape[1] == 2 and len(columns.source) == 1 and columns.weight is None and columns.time is None
    if plain and len(frame) <= MOST_IN_MATRIX:
        matrix: Any = frame.to_numpy()  # takes a third of the time of reading two columns
        if matrix.dtype.kind in "iu" and matrix.dtype.isnative:
            endpoints = [matrix[:, columns.source[0]], matrix[:, columns.destination[0]]]
            edges, found = edges_by_id(endpoints, grouped=False, lasting=True)
            return edges, Vertices(columns.vertex_names, [found], ["integer"])
    return read(frame, columns, None, edge_list=True, lasting=True)
