"""The only place where a dataframe library is touched: one adapter per library, as `prplugin.frames.base` describes."""

from __future__ import annotations

from typing import Any

from prplugin.errors import InvalidEdgesError
from prplugin.frames import cudf, dask, narwhals, pandas, parquet, proxies
from prplugin.frames.base import FrameAdapter, full_name

__all__ = ["adapter_for"]

ADAPTERS: tuple[FrameAdapter, ...] = (proxies, cudf, pandas, parquet, narwhals)
"""In this order: a frame of cudf.pandas is one of pandas, too, and narwhals, which knows all, is imported last."""


def adapter_for(frame: object) -> FrameAdapter:
    """Return the adapter of a frame: a module, or for a frame of Dask, an object.

    Raises
    ------
    InvalidEdgesError
        If there is none.
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
    """Return the call that makes a frame, or a graph, of what is none."""
    shape: tuple[int, ...] = getattr(given, "shape", ())
    if len(shape) == 2 and shape[0] == shape[1]:
        return "Of an adjacency matrix: prplugin.Graph.from_csr(scipy.sparse.csr_array(matrix))."
    if isinstance(given, dict):
        return "Of columns by name: pandas.DataFrame(edges)."
    if isinstance(given, (list, set)) or (len(shape) == 2 and shape[1] in (2, 3)):
        names = ["src", "dst", "weight"][: shape[1] if shape else 2]
        return f"Of pairs: pandas.DataFrame(edges, columns={names})."
    return "Put the two ends of the edges in the columns of one."
