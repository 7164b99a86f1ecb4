"""Adapter of cuDF frames. Edges and ranks stay in device memory."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from prplugin.errors import InvalidEdgesError, rows_of_frame
from prplugin.frames import groups
from prplugin.frames.columns import Columns, Frame, always, is_plain_frame, labelled
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.gpu import runtime
from prplugin.options import EdgeOptions
from prplugin.types.arrays import to_host
from prplugin.types.edges import Coo, Grouped, Integers

if TYPE_CHECKING:
    from prplugin.gpu.factorize import GivenWeights


accepts = partial(is_plain_frame, "cudf")
memory_space_of = always("device")
open_frame = labelled


def read(
    frame: Frame, columns: Columns, how: EdgeOptions, *, edge_list: bool = False, lasting: bool = True
) -> tuple[Coo | Grouped, Vertices]:
    """Factorize the endpoints: see `prplugin.frames.FrameAdapter.read`. Edges never alias the columns.

    If the edges do not fit in device memory, or have times, the columns are copied to the host as Arrow tables and
    factorized there.
    """
    # Lower bound per edge: two codes, as much again during factorization, and the weight. Ids may need more.
    edge_bytes = 16 if columns.weight is None else 24
    if columns.time is None and runtime.fits(edge_bytes * len(frame)):
        with suppress(MemoryError), ids_in("device").active():
            return read_in_context(frame, columns, how, edge_list=edge_list)
    from prplugin.frames import narwhals  # imports narwhals

    edges, known = narwhals.read(narwhals.open_frame(frame)[0], columns, how, edge_list=edge_list, lasting=lasting)
    return replace(edges, frame_space="device"), known


def read_in_context(
    frame: Frame, columns: Columns, how: EdgeOptions, *, edge_list: bool
) -> tuple[Coo | Grouped, Vertices]:
    """Factorize the endpoints in device memory; raise MemoryError if it does not suffice."""
    from prplugin.gpu.factorize import edges_by_id, with_weights  # imports CuPy

    ids = ids_in("device")
    if (complete := ids.complete_rows(frame, columns)) is not None:
        columns = columns._replace(missing="error")
        with rows_of_frame(to_host(complete)):
            return read_in_context(frame.take(complete), columns, how, edge_list=edge_list)
    endpoints = ids.endpoints_of(frame, columns, how.vertices)
    labels = columns.id_labels(vertices=how.vertices is not None)

    def by_id(integers: list[Integers]) -> tuple[Coo | Grouped, Integers]:
        return edges_by_id(integers, _weights(frame, columns), grouped=not edge_list)

    encode = ids.encode if not columns.by else groups.encoder(ids, columns.by)
    edges, arrays, kinds = encode(endpoints, labels, by_id)
    if kinds != ["integer"] and not columns.by:
        edges = with_weights(edges, _weights(frame, columns))  # type: ignore[arg-type]
    return edges, Vertices(columns.vertex_names, arrays, kinds, "device")


def _weights(frame: Frame, columns: Columns) -> GivenWeights | None:
    if columns.weight is None:
        return None
    from prplugin.frames.device_ids import to_float64_unchecked  # imports cuDF

    label = f"column {columns.weight_name!r}"
    return to_float64_unchecked(ids_in("device").column_of(frame, columns.weight), label, "row", InvalidEdgesError)
