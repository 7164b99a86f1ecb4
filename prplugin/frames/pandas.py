"""Adapter of pandas frames."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from prplugin.errors import rows_of_frame
from prplugin.frames import groups
from prplugin.frames.columns import Column, Columns, always, is_plain_frame, labelled
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.graph.edges import edges_by_id
from prplugin.options import EdgeOptions
from prplugin.types.edges import Coo, Grouped

if TYPE_CHECKING:
    import pandas as pd


MOST_IN_MATRIX = 1 << 14
"""Rows of a frame up to which two columns of integers are read as one matrix, which may be a copy."""


accepts = partial(is_plain_frame, "pandas")
memory_space_of = always("host")
open_frame = labelled


def read(
    frame: pd.DataFrame, columns: Columns, how: EdgeOptions, *, edge_list: bool = False, lasting: bool = True
) -> tuple[Coo | Grouped, Vertices]:
    """Factorize the endpoints: see `prplugin.frames.FrameAdapter.read`."""
    ids = ids_in("host")
    if columns.missing == "drop" and (complete := ids.complete_rows(frame, columns)) is not None:
        columns = columns._replace(missing="error")
        with rows_of_frame(complete):
            return read(frame.iloc[complete], columns, how, edge_list=edge_list, lasting=lasting)
    if columns.clock is not None and columns.time is not None:
        times, rows = columns.clock.read(frame.iloc[:, columns.time], f"column {columns.time_name!r}")
        part, untimed = frame if rows is None else frame.iloc[rows], columns._replace(time=None)
        with nullcontext() if rows is None else rows_of_frame(rows):
            edges, known = read(part, untimed, how, edge_list=edge_list, lasting=lasting)
        if times is not None:
            assert isinstance(edges, Coo)
            edges = replace(edges, times=times)
        return edges, known
    vertices = how.vertices
    endpoints = _matrix_columns(frame, columns) if vertices is None else None
    endpoints = endpoints or ids.endpoints_of(frame, columns, vertices)
    labels = columns.id_labels(vertices=vertices is not None)
    grouped = columns.weight is None and not edge_list
    encode = ids.encode if not columns.by else groups.encoder(ids, columns.by)
    edges, arrays, kinds = encode(endpoints, labels, partial(edges_by_id, grouped=grouped, lasting=lasting))
    if columns.weight is not None:
        assert isinstance(edges, Coo)
        edges = replace(edges, weights=ids.weights_of(frame, columns))
    return edges, Vertices(columns.vertex_names, arrays, kinds)


def _matrix_columns(frame: pd.DataFrame, columns: Columns) -> list[list[Column]] | None:
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
