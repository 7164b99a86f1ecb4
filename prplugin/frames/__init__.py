"""The only place where a dataframe library is touched: one module a library.

An adapter has

- `place`: where its arrays lie, "host" or "device";
- `accepts(frame)`: whether it is a frame of that library, found through `sys.modules`, so that nothing is imported
  that the user has not;
- `opened(frame)`: the frame as `read` takes it, and the names of its columns;
- `read(frame, columns, vertices, by_row=, lasting=)`: the edges by position, and the vertices; `by_row` says whether
  rows will be worked on before edges are brought together by target, `lasting` whether the edges outlast the frame;
- `read_values(given, vertices, what)`: values given for some vertices, as a vector over all of them;
- `read_seeds(given, vertices, what)`: values given for some vertices by each of many seeds; None if there is one seed;
- `write(vertices, ranks, rows, labels)`: the result, as a frame of that library; `labels` are of many seeds.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from prplugin.errors import InvalidEdgesError
from prplugin.frames import cudf, dask, narwhals, pandas, parquet, proxies

__all__ = ["adapter_for"]

ADAPTERS: tuple[ModuleType, ...] = (proxies, cudf, pandas, parquet, narwhals)
"""In this order: a frame of cudf.pandas is one of pandas, too, and narwhals, which knows all, is imported last."""


def adapter_for(frame: object) -> Any:
    """Find the adapter of a frame: a module, or for what Dask has to bring into this process first, one around it.

    Raises
    ------
    InvalidEdgesError
        If it is no frame that prplugin knows.
    """
    if dask.accepts(frame):
        return dask.Collected(frame)
    for adapter in ADAPTERS:
        if adapter.accepts(frame):
            return adapter
    kind = type(frame)
    raise InvalidEdgesError(
        "edges must be a DataFrame of cuDF, pandas, polars or Dask, another table that narwhals or Arrow knows, or the "
        "path of a Parquet file, not "
        f"{kind.__module__}.{kind.__qualname__}. "
        "Put the two ends of the edges in the columns of one."
    )
