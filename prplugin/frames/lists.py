"""Adapter of lists of frames of one library, which are read as one frame, or one at a time if that is too large."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from prplugin.errors import InvalidEdgesError, full_name
from prplugin.frames import cudf, narwhals, pandas, pieces
from prplugin.frames.columns import Columns
from prplugin.frames.ids import Frame, Ids
from prplugin.frames.pieces import Pieces
from prplugin.frames.vertices import Vertices, ids_in
from prplugin.options import EdgeOptions
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges


def _is_frame(given: object) -> bool:
    return pandas.accepts(given) or cudf.accepts(given) or narwhals.accepts(given)


class _Frames:
    """Adapter of lists of frames of one library, which are read as one frame."""

    def accepts(self, frame: Any) -> bool:
        return isinstance(frame, (list, tuple)) and bool(frame) and all(map(_is_frame, frame))

    def memory_space_of(self, frame: Any) -> MemorySpace:
        on_gpu = [cudf.accepts(one) for one in frame]
        if any(on_gpu) and not all(on_gpu):
            other = on_gpu.index(False)
            raise InvalidEdgesError(
                f"frame {other} of the list is of {full_name(frame[other])}, and others are of cuDF: convert them."
            )
        return "device" if any(on_gpu) else "host"

    def open_frame(self, frame: Any) -> tuple[Any, list[Hashable]]:
        if self.memory_space_of(frame) == "device" or all(map(pandas.accepts, frame)):
            return frame, list(frame[0])
        import narwhals as nw  # imported by `accepts`

        try:
            whole = nw.concat([nw.from_native(one) for one in frame])
        except Exception as error:  # each library has its own
            raise InvalidEdgesError(
                f"the frames of the list cannot be joined: {error}. Give them one schema."
            ) from error
        return [whole.to_native()], narwhals.open_frame(whole.to_native())[1]

    def read_pieces(
        self, frame: Any, columns: Columns, how: EdgeOptions
    ) -> tuple[Edges | GroupedEdges, Vertices] | None:
        rows = sum(map(len, frame))
        if self.memory_space_of(frame) == "host" or pieces.fit_at_once(rows, weighted=columns.weight is not None):
            return None
        return pieces.read(Pieces(lambda: frame, columns, rows), how)

    def read(self, frame: Any, columns: Columns, vertices: object, **how: Any) -> Any:
        memory_space = self.memory_space_of(frame)
        if len(frame) > 1:
            whole, columns = joined(ids_in(memory_space), frame, columns)
        else:
            (whole,) = frame
        if memory_space == "device":
            return cudf.read(whole, columns, vertices, **how)
        if pandas.accepts(whole):
            return pandas.read(whole, columns, vertices, **how)
        return narwhals.read(narwhals.open_frame(whole)[0], columns, vertices, **how)


FRAMES = _Frames()
"""The adapter of lists of frames."""


def joined(ids: Ids, frames: list[Frame], columns: Columns) -> tuple[Frame, Columns]:
    """Concatenate the partitions to one frame of the columns in use; return it, and the column positions."""
    from prplugin.frames import partitions as parts  # imports pandas, which every library of partitions needs

    partitions, starts = list(range(len(frames))), np.cumsum([0, *map(len, frames)])[:-1].tolist()
    endpoints, part_columns = parts.endpoints_of_partitions(ids, frames, partitions, columns)
    labels = columns.id_labels()
    infos = parts.column_info_of_partitions(ids, endpoints, partitions, starts, labels)
    shared = [
        parts.common_type_of(
            [[info[end][column] for info in infos] for end in range(2)], [label[column] for label in labels]
        )
        for column in range(len(columns.source))
    ]
    source, destination = parts.concat_endpoints(ids, endpoints, shared, labels)
    weights = parts.weights_of_partitions(ids, frames, partitions, part_columns, starts)
    width = len(shared)
    joined = [column.reset_index(drop=True) for column in (*source, *destination)]
    joined += [] if weights is None else [weights]
    if columns.time is not None:
        times = (own.time for own in part_columns if own.time is not None)
        joined.append(ids.concat([ids.column_of(*pair) for pair in zip(frames, times, strict=True)]))
    return ids.frame_of([str(position) for position in range(len(joined))], joined), columns._replace(
        source=list(range(width)),
        destination=list(range(width, 2 * width)),
        weight=None if weights is None else 2 * width,
        time=None if columns.time is None else len(joined) - 1,
    )
