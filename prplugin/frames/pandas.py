"""Adapter of pandas frames."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, PageRankError, with_frame_rows
from prplugin.frames.columns import Columns, EdgesById, always, is_plain_frame, labelled
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.graph.adjacency import edges_by_id
from prplugin.types.edges import Edges, GroupedEdges

if TYPE_CHECKING:
    import pandas as pd


MOST_IN_MATRIX = 1 << 14
"""Rows of a frame up to which two columns of integers are read as one matrix, which may be a copy."""


accepts = partial(is_plain_frame, "pandas")
memory_space_of = always("host")
open_frame = labelled


def read(
    frame: pd.DataFrame, columns: Columns, vertices: object, *, edge_list: bool = False, lasting: bool = True,
    by_id: EdgesById | None = None,
) -> tuple[Edges | GroupedEdges, Vertices]:  # fmt: skip
    """Factorize the endpoints: see `prplugin.frames.FrameAdapter.read`.

    `by_id`: Factorizes integer ids, instead of `prplugin.graph.adjacency.edges_by_id`.
    """
    ids = ids_in("host")
    if columns.missing == "drop" and (complete := ids.complete_rows(frame, columns)) is not None:
        columns = columns._replace(missing="error")
        try:
            return read(frame.iloc[complete], columns, vertices, edge_list=edge_list, lasting=lasting, by_id=by_id)
        except PageRankError as error:
            raise with_frame_rows(error, complete) from None
    if columns.clock is not None and columns.time is not None:
        times, rows = columns.clock.read(frame.iloc[:, columns.time], f"column {columns.time_name!r}")
        untimed = columns._replace(time=None)
        try:
            part = frame if rows is None else frame.iloc[rows]
            edges, known = read(part, untimed, vertices, edge_list=edge_list, lasting=lasting, by_id=by_id)
        except PageRankError as error:
            raise error if rows is None else with_frame_rows(error, rows) from None
        return (edges if times is None else replace(edges, times=times)), known  # type: ignore[type-var]
    endpoints = _matrix_columns(frame, columns) if vertices is None else None
    endpoints = endpoints or ids.endpoints_of(frame, columns, vertices)
    labels = columns.id_labels(vertices=vertices is not None)
    grouped = columns.weight is None and not edge_list
    by_id = by_id or partial(edges_by_id, grouped=grouped, lasting=lasting)
    edges, arrays, kinds = ids.encode(endpoints, labels, by_id)
    if columns.weight is not None:
        label = f"column {columns.weight_name!r}"
        weights = ids.numbers(ids.column_of(frame, columns.weight), label, "row", InvalidEdgesError)
        edges = replace(edges, weights=weights)  # type: ignore[type-var]
    return edges, Vertices(columns.vertex_names, arrays, kinds)


def _matrix_columns(frame: pd.DataFrame, columns: Columns) -> list[list[Any]] | None:
    """Return the endpoints of a small frame whose data are one matrix of integers as arrays; None for others."""
    if frame.shape[1] != 2 or not 0 < len(frame) <= MOST_IN_MATRIX:
        return None
    try:
        if not isinstance(frame.iat[0, 0], np.integer):
            return None
    except Exception:  # a value of Arrow that Python cannot hold
        return None
    matrix = frame.to_numpy()  # takes a tenth of the time of a column; a copy of columns of several types is writeable
    if matrix.dtype.kind not in "iu" or matrix.flags.writeable or len(columns.source) > 1:
        return None
    return [[matrix[:, position]] for position in (*columns.source, *columns.destination)]
