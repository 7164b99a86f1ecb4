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

from prplugin.errors import InvalidEdgesError, InvalidOptionError, full_name
from prplugin.frames import cudf, pandas, pieces
from prplugin.frames.columns import Columns
from prplugin.frames.ids import Frame
from prplugin.frames.lists import joined
from prplugin.frames.pieces import Pieces
from prplugin.frames.vertices import Boundary, Vertices, ids_in
from prplugin.options import EdgeOptions
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


def read_on_device(frame: Frame, columns: Columns, how: EdgeOptions) -> tuple[Edges | GroupedEdges, Vertices] | None:
    """Read partitions of cuDF one at a time if they do not fit in one frame: see `prplugin.frames.FrameAdapter`."""
    if memory_space_of(frame) == "host" or pieces.fit_at_once(rows := len(frame), weighted=columns.weight is not None):
        return None
    used, columns = in_use(frame, columns)
    partitions = Pieces(lambda: (part.compute() for part in used.to_delayed()), columns, rows)
    edges, known = pieces.read(partitions, replace(how, vertices=computed(how.vertices)))
    return edges, replace(known, boundary=OnePartition())


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
    whole, columns = joined(ids_in(memory_space), frames, columns_in_use)
    read_joined: Callable[..., tuple[Edges | GroupedEdges, Vertices]] = (
        cudf.read if memory_space == "device" else pandas.read
    )
    edges, known = read_joined(whole, columns, computed(vertices), **how)
    return edges, replace(known, boundary=OnePartition())


def computed(given: Any) -> Any:
    """Compute a Dask object; return other objects unchanged."""
    return given.compute() if hasattr(given, "__dask_graph__") else given
