"""Makes `pagerank` a method of frames, those loaded now and those loaded later: the order of imports never matters."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

__all__ = ["register"]

FRAME_TYPES = {
    "pandas": ("DataFrame",),
    "cudf": ("DataFrame",),
    "cudf.pandas._wrappers.pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "duckdb": ("DuckDBPyRelation",),
    "dask.dataframe": ("DataFrame",),
}
"""The frame types of each library that has an adapter in `prplugin.frames`, and that take another method.

`pyarrow.Table` takes none: ``prplugin.pagerank(table)``. The third is where cudf.pandas makes its proxy of
pandas.DataFrame. Where prplugin was imported before cudf.pandas took over, the hook on pandas has run, on pandas' own
type; a proxy without the method itself would still find those of cuDF and pandas, but try the second where the first
raises. The frames of dask_cudf are of a subclass of Dask's.
"""


def register(pagerank: Callable[..., Any]) -> None:
    """Bind the function to every known frame type, as a plain method: its signature and docstring show."""
    for library, names in FRAME_TYPES.items():

        def bind(module: ModuleType, names: tuple[str, ...] = names) -> None:
            for name in names:
                if (frame_type := getattr(module, name, None)) is not None:
                    setattr(frame_type, pagerank.__name__, pagerank)

        wrapt.register_post_import_hook(bind, library)
