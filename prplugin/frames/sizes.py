"""Sizes of a frame before it is read: number of rows, type of the ids, and memory space."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

from prplugin.errors import InvalidOptionError
from prplugin.frames import adapter_for
from prplugin.frames.columns import resolve
from prplugin.types.arrays import MemorySpace


def sizes_of(
    edges: Any,
    source: Hashable | list[Hashable],
    destination: Hashable | list[Hashable],
    weight: Hashable,
) -> tuple[int, Literal["int32", "int64", "string"], MemorySpace]:
    """Return the number of rows of a frame, the type of its ids, and the memory space of its edges.

    For a lazy frame only the number of rows is computed.
    """
    adapter = adapter_for(edges)
    frame, labels = adapter.open_frame(edges)
    columns = resolve(labels, source, destination, weight)
    if len(columns.source) > 1:
        raise InvalidOptionError(
            "memory for vertices of several columns cannot be estimated without the graph: see Graph.estimate()."
        )
    rows, types = _rows_and_types(frame)
    bytes_of_ids = [_bytes_of_integer(types[position]) for position in (*columns.source, *columns.destination)]
    widths = [width for width in bytes_of_ids if width is not None]
    if len(widths) < len(bytes_of_ids):
        return rows, "string", adapter.memory_space
    return rows, "int32" if max(widths) <= 4 else "int64", adapter.memory_space


def _rows_and_types(frame: Any) -> tuple[int, list[Any]]:
    """Return the number of rows of a frame from `FrameAdapter.open_frame`, and the type of each column."""
    if hasattr(frame, "count_rows"):  # a dataset of pyarrow
        return frame.count_rows(), frame.schema.types
    if hasattr(frame, "dtypes"):  # pandas, cuDF and Dask
        return len(frame), list(frame.dtypes)
    if hasattr(frame, "num_rows"):  # a table of pyarrow
        return frame.num_rows, frame.schema.types
    import narwhals as nw  # imported by the adapter of the frame

    rows = len(frame) if isinstance(frame, nw.DataFrame) else frame.select(nw.len()).collect().item()
    return rows, list(frame.collect_schema().values())


def _bytes_of_integer(dtype: Any) -> int | None:
    """Return the size in bytes of an integer type of NumPy, pandas, pyarrow or narwhals; None for other types."""
    if hasattr(dtype, "kind"):
        return int(dtype.itemsize) if dtype.kind in "iu" else None
    name = str(dtype).lower()  # int64, UInt32
    bits = name.removeprefix("u").removeprefix("int")
    return int(bits) // 8 if bits.isdecimal() else None
