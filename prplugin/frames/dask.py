"""Adapter of Dask frames with partitions of pandas or cuDF.

With a `distributed.Client`, `prplugin.distributed` ranks the partitions on the workers that hold them, and the result
has one partition per worker that owns vertices. Without a client, the frame is computed and ranked in this process, and
the result has one partition.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

from prplugin.errors import InvalidEdgesError, InvalidOptionError, errors_of, full_name
from prplugin.frames.columns import Columns, Frame, computed
from prplugin.frames.lists import FRAMES
from prplugin.frames.vertices import Boundary, Vertices
from prplugin.options import EdgeOptions
from prplugin.types.arrays import MemorySpace, is_a
from prplugin.types.edges import Coo, Grouped


def accepts(frame: object) -> bool:
    """Return whether a frame is a Dask DataFrame."""
    return is_a(frame, "dask.dataframe", "DataFrame")


def memory_space_of(frame: Frame) -> MemorySpace:
    """Return the memory space of the partitions of a frame."""
    if is_a(frame._meta, "cudf", "DataFrame"):
        return "device"
    if is_a(frame._meta, "pandas", "DataFrame"):
        return "host"
    raise InvalidEdgesError(f"partitions must be frames of pandas or cuDF, not {full_name(frame._meta)}.")


def open_frame(frame: Frame) -> tuple[Frame, list[Hashable]]:
    """Return the frame, and its column labels."""
    return frame, list(frame.columns)  # `list(frame)` would compute the number of rows


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


def refuse_absent_columns(frame: Frame, columns: Columns) -> None:
    """Raise if a column in use is absent from a partition, whose labels may differ from those of the frame."""
    import dask

    labels_of = dask.delayed(lambda partition: list(partition.columns))
    for partition, labels in enumerate(dask.compute(*map(labels_of, frame.to_delayed()))):
        columns.within(labels, f"partition {partition}")


# --- without a cluster ----------------------------------------------------------------------------------------------


class OnePartition(Boundary):
    """Compute arguments, and return results as Dask frames with one partition."""

    def convert(self, given: object, what: str) -> Any:
        return computed(given, what)

    def wrap(self, frame: object) -> Any:
        import dask.dataframe

        with dask.config.set({"dataframe.convert-string": False}):  # keep the types of the result
            return dask.dataframe.from_pandas(frame, npartitions=1, sort=False)


class _Partitions:
    """The partitions of a frame, which are computed whenever they are iterated."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __iter__(self) -> Iterator[Frame]:
        return (computed(each, f"partition {number}") for number, each in enumerate(self._frame.to_delayed()))


def read(frame: Frame, columns: Columns, how: EdgeOptions, **options: bool) -> tuple[Coo | Grouped, Vertices]:
    """Compute the columns in use, and read them as one frame: see `prplugin.frames.FrameAdapter.read`.

    Partitions of cuDF are computed one at a time if memory does not hold all.
    """
    partitions: Any
    try:
        partitions, columns_in_use = _computed(frame, columns)
    except MemoryError:
        if memory_space_of(frame) == "host":
            raise
        used, columns_in_use = columns.restricted(frame)
        partitions = _Partitions(used)
    how = replace(how, vertices=computed(how.vertices, "vertices"))
    edges, known = FRAMES.read(partitions, columns_in_use, how, **options)
    return edges, replace(known, boundary=OnePartition())


def _computed(frame: Frame, columns: Columns) -> tuple[list[Frame], Columns]:
    """Compute the columns in use of all partitions; return their positions, too."""
    import dask

    used, columns_in_use = columns.restricted(frame)
    with errors_of("the Dask frame of edges"):
        try:
            return list(dask.compute(*used.to_delayed())), columns_in_use
        except KeyError:
            refuse_absent_columns(frame, columns)
            raise
