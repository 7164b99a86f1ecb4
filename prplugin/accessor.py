"""Make `pagerank` a method of the frames of libraries that are loaded or load later.

Type checkers do not see methods that are added at run time: ``frame.pipe(prplugin.pagerank)`` is the same call, typed.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable
from types import MethodType, ModuleType
from typing import Any

import wrapt

__all__ = ["register"]


def _ignoring_case(relation: Any, name: str) -> bool:
    """Return whether a DuckDB relation has a column; names are case-insensitive."""
    return name in map(str.lower, relation.columns)


FRAME_TYPES: dict[str, Callable[[Any, str], bool] | None] = {
    "pandas.DataFrame": operator.contains,
    "cudf.DataFrame": operator.contains,
    "cudf.pandas._wrappers.pandas.DataFrame": operator.contains,
    "polars.DataFrame": None,
    "polars.LazyFrame": None,
    "duckdb.DuckDBPyRelation": _ignoring_case,
    "dask.dataframe.DataFrame": operator.contains,
}
"""Frame types, and the function that tells if a frame has a column; None: columns are no attributes.

`pyarrow.Table` takes none: ``prplugin.pagerank(table)``. The third is where cudf.pandas makes its proxy of
pandas.DataFrame. Where prplugin was imported before cudf.pandas took over, the hook on pandas has run, on pandas' own
type; a proxy without the method itself would still find those of cuDF and pandas, but try the second where the first
raises. The frames of dask_cudf are of a subclass of Dask's.
"""


class _Method:
    """A method that a column of the same name hides.

    Where there is such a column, reading raises AttributeError. Python then asks the frame's `__getattr__`, which finds
    the column; `__setattr__` of pandas, cuDF and Dask reads before it writes, and so writes the column.

    It is a data descriptor only to warn, as pandas does where there is no such attribute, that an assignment adds no
    column.
    """

    def __init__(self, function: Callable[..., Any], has_column: Callable[[Any, str], bool]) -> None:
        self._function, self._has_column = function, has_column
        self._name: str = function.__name__
        self.__doc__ = function.__doc__

    def __get__(self, frame: Any, owner: type | None = None) -> Any:
        if frame is None:
            return self._function
        own = getattr(frame, "__dict__", {})  # relations of DuckDB take no attributes
        if self._name in own:
            return own[self._name]
        if self._has_column(frame, self._name):
            raise AttributeError(f"{self._name!r} is a column of this {type(frame).__name__}.")
        return MethodType(self._function, frame)

    def __set__(self, frame: Any, value: object) -> None:
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            warnings.warn(
                f"the frame has no column {self._name!r}, and assigning to an attribute adds none: "
                f"write frame[{self._name!r}] = ...",
                stacklevel=3,  # past `__setattr__` of the frame
            )
        frame.__dict__[self._name] = value

    def __delete__(self, frame: Any) -> None:
        if self._name not in getattr(frame, "__dict__", {}):
            raise AttributeError(self._name)
        del frame.__dict__[self._name]


def register(pagerank: Callable[..., Any]) -> None:
    """Bind the function to every known frame type as a method, with its signature and docstring."""
    for name, has_column in FRAME_TYPES.items():
        library, _, type_name = name.rpartition(".")
        method = pagerank if has_column is None else _Method(pagerank, has_column)

        def bind(module: ModuleType, type_name: str = type_name, method: Any = method) -> None:
            if (frame_type := getattr(module, type_name, None)) is not None:
                setattr(frame_type, pagerank.__name__, method)

        wrapt.register_post_import_hook(bind, library)
