"""Adapters, one per dataframe or graph library: the only package that depends on these libraries.

`prplugin.frames.base` defines their protocols.
"""

from __future__ import annotations

from typing import Any

from prplugin.errors import InvalidEdgesError
from prplugin.frames import cudf, dask, narwhals, pandas, parquet, proxies
from prplugin.frames.base import FrameAdapter, full_name

__all__ = ["adapter_for"]

ADAPTERS: tuple[FrameAdapter, ...] = (proxies, cudf, pandas, parquet, narwhals)
"""Order of the lookup: proxies of cudf.pandas are also pandas frames, and narwhals accepts most frames."""


def adapter_for(frame: object) -> FrameAdapter:
    """Return the adapter of a frame: a module, or an object for a Dask frame.

    Raises
    ------
    InvalidEdgesError
        If no adapter accepts the frame.
    """
    if dask.accepts(frame):
        return dask.Collected(frame)
    for adapter in ADAPTERS:
        if adapter.accepts(frame):
            return adapter
    raise InvalidEdgesError(
        "edges must be a DataFrame of cuDF, pandas, polars or Dask, another table that narwhals or Arrow knows, or the "
        f"path of a Parquet file, not {full_name(frame)}. {_frame_of(frame)}"
    )


def _frame_of(given: Any) -> str:
    """Return the part of the message that tells how to make a frame or a graph from an object."""
    shape: tuple[int, ...] = getattr(given, "shape", ())
    if len(shape) == 2 and shape[0] == shape[1]:
        return "For an adjacency matrix use prplugin.Graph.from_csr(scipy.sparse.csr_array(matrix))."
    if isinstance(given, dict):
        return "For columns by name use pandas.DataFrame(edges)."
    if isinstance(given, (list, set)) or (len(shape) == 2 and shape[1] in (2, 3)):
        names = ["src", "dst", "weight"][: shape[1] if shape else 2]
        return f"For pairs use pandas.DataFrame(edges, columns={names})."
    return "Put the two endpoints of each edge in two columns of a frame."
