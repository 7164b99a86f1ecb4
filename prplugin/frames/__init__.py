"""Adapters for dataframe and graph libraries. No other package depends on these libraries.

`prplugin.frames.base` defines their protocols.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from prplugin.errors import InvalidEdgesError
from prplugin.frames import dask
from prplugin.frames.base import FrameAdapter, full_name, is_a

__all__ = ["adapter_for"]


def adapter_for(frame: object) -> FrameAdapter:
    """Return the adapter for a frame: a module, imported on first use, or an object for a Dask frame.

    Raises InvalidEdgesError: if no adapter supports the frame.
    """
    if dask.accepts(frame):
        return dask.ComputedFrame(frame)
    is_cudf, is_pandas = is_a(frame, "cudf", "DataFrame"), is_a(frame, "pandas", "DataFrame")
    if "cudf.pandas" in sys.modules and (is_cudf or is_pandas):
        # Also for plain frames: other arguments may be proxies, and pandas objects created by adapters would be.
        from prplugin.frames import proxies

        return proxies
    if is_cudf:
        from prplugin.frames import cudf

        return cudf
    if is_pandas:
        from prplugin.frames import pandas

        return pandas
    if isinstance(frame, (str, os.PathLike)) or is_a(frame, "pyarrow.dataset", "Dataset"):
        from prplugin.frames import parquet

        return parquet
    from prplugin.frames import narwhals

    if narwhals.is_supported(frame):
        return narwhals
    raise InvalidEdgesError(
        "edges must be a DataFrame of cuDF, pandas, polars or Dask, another table that narwhals or Arrow knows, or the "
        f"path of a Parquet file, not {full_name(frame)}. {_conversion_hint(frame)}"
    )


def _conversion_hint(given: Any) -> str:
    """Return a hint for the error message on how to convert an object to a frame or a graph."""
    shape: tuple[int, ...] = getattr(given, "shape", ())
    if len(shape) == 2 and shape[0] == shape[1]:
        return "For an adjacency matrix use prplugin.Graph.from_csr(scipy.sparse.csr_array(matrix))."
    if isinstance(given, dict):
        return "For columns by name use pandas.DataFrame(edges)."
    if isinstance(given, (list, set)) or (len(shape) == 2 and shape[1] in (2, 3)):
        names = ["src", "dst", "weight"][: shape[1] if shape else 2]
        return f"For pairs use pandas.DataFrame(edges, columns={names})."
    return "Put the two endpoints of each edge in two columns of a frame."
