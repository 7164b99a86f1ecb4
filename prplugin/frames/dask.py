"""Adapter of Dask frames with partitions of pandas or cuDF.

With a `distributed.Client`, `prplugin.distributed` ranks the partitions on the workers that hold them, and the result
has one partition per worker that owns vertices. Without a client, the frame is computed and ranked in this process, and
the result has one partition.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, full_name
from prplugin.frames import cudf, pandas
from prplugin.frames.columns import Columns
from prplugin.frames.ids import Frame, Ids
from prplugin.frames.vertices import Boundary, Vertices, ids_in
from prplugin.types.arrays import MemorySpace, is_a
from prplugin.types.edges import Edges, GroupedEdges


def accepts(frame: object) -> bool:
    """Return whether a frame is a Dask DataFrame."""
    return is_a(frame, "dask.dataframe", "DataFrame")


def memory_space_of(frame: Any) -> MemorySpace:
    """Return the memory space of the partitions of a frame."""
    if is_a(frame._meta, "cudf", "DataFrame"):
        return "device"
    if is_a(frame._meta, "pandas", "DataFrame"):
        return "host"
    raise InvalidEdgesError(f"partitions must be frames of pandas or cuDF, not {full_name(frame._meta)}.")


def open_frame(frame: Any) -> tuple[Any, list[Hashable]]:
    """Return the frame, and its column labels."""
    return frame, list(frame)


def client() -> Any:
    """Return the default client of `distributed`, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        found = distributed.default_client()
    except ValueError:
        return None
    if found.asynchronous:
        raise InvalidOptionError("the Dask client is asynchronous: prplugin needs Client(asynchronous=False).")
    return found


def in_use(frame: Any, columns: Columns) -> tuple[Any, Columns]:
    """Return the frame and `Columns` restricted to the columns in use, so that others are not read."""
    used, columns = columns.in_use()
    labels = list(frame.columns)
    return (frame[[labels[position] for position in used]] if len(used) < len(labels) else frame), columns


def refuse_absent_columns(frame: Any, columns: Columns) -> None:
    """Raise if a column in use is absent from a partition, whose labels may differ from those of the frame."""
    import dask

    labels_of = dask.delayed(lambda partition: list(partition.columns))
    for partition, labels in enumerate(dask.compute(*map(labels_of, frame.to_delayed()))):
        columns.within(labels, f"partition {partition}")


# --- without a cluster ----------------------------------------------------------------------------------------------


class OnePartition(Boundary):
    """Compute arguments, and return results as Dask frames with one partition."""

    def convert(self, given: object, what: str) -> Any:
        return computed(given)

    def wrap(self, frame: object) -> Any:
        import dask.dataframe

        with dask.config.set({"dataframe.convert-string": False}):  # keep the types of the result
            return dask.dataframe.from_pandas(frame, npartitions=1, sort=False)


def read(frame: object, columns: Columns, vertices: object, **how: bool) -> tuple[Edges | GroupedEdges, Vertices]:
    """Compute the columns in use, and read them as one frame: see `prplugin.frames.FrameAdapter.read`."""
    import dask

    memory_space = memory_space_of(frame)
    used, columns_in_use = in_use(frame, columns)
    try:
        frames = list(dask.compute(*used.to_delayed()))
    except KeyError:
        refuse_absent_columns(frame, columns)
        raise
    joined, columns = _joined(ids_in(memory_space), frames, columns_in_use)
    read_joined: Callable[..., tuple[Edges | GroupedEdges, Vertices]] = (
        cudf.read if memory_space == "device" else pandas.read
    )
    edges, known = read_joined(joined, columns, computed(vertices), **how)
    return edges, replace(known, boundary=OnePartition())


def _joined(ids: Ids, frames: list[Frame], columns: Columns) -> tuple[Frame, Columns]:
    """Concatenate the partitions to one frame of the columns in use; return it, and the column positions."""
    from prplugin.frames import partitions as parts  # imports pandas, which every library of partitions needs

    partitions, starts = list(range(len(frames))), np.cumsum([0, *map(len, frames)])[:-1].tolist()
    pieces, part_columns = parts.endpoints_of_partitions(ids, frames, partitions, columns)
    labels = columns.id_labels()
    infos = parts.column_info_of_partitions(ids, pieces, partitions, starts, labels)
    shared = [
        parts.common_type_of(
            [[info[end][column] for info in infos] for end in range(2)], [label[column] for label in labels]
        )
        for column in range(len(columns.source))
    ]
    source, destination = parts.concat_endpoints(ids, pieces, shared, labels)
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


def computed(given: Any) -> Any:
    """Compute a Dask object; return other objects unchanged."""
    return given.compute() if hasattr(given, "__dask_graph__") else given
