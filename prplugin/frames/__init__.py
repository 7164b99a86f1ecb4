"""The only place where a dataframe library is touched: one adapter per library, as `prplugin.frames.base` describes."""

from __future__ import annotations

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
        f"path of a Parquet file, not {full_name(frame)}. Put the two ends of the edges in the columns of one."
    )
