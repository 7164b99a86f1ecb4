"""Register `pagerank` as a method of the frame types of all supported libraries, whether imported now or later.

Type checkers do not see methods that are added at run time: ``frame.pipe(prplugin.pagerank)`` is the same call, typed.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import MethodType, ModuleType
from typing import Any

FRAME_TYPES: dict[str, Callable[[Any, str], bool] | None] = {
    "pandas.DataFrame": operator.contains,
    "cudf.DataFrame": operator.contains,
    "cudf.pandas._wrappers.pandas.DataFrame": operator.contains,
    "polars.DataFrame": None,
    "polars.LazyFrame": None,
    "duckdb.DuckDBPyRelation": lambda relation, name: name in map(str.lower, relation.columns),  # case-insensitive
    "dask.dataframe.DataFrame": operator.contains,
}
"""Frame types, each with a function that tests whether a frame has a column, or None if columns are not attributes.

`pyarrow.Table` cannot get methods: use ``prplugin.pagerank(table)``. The third entry is the proxy of pandas.DataFrame
that cudf.pandas creates. If prplugin is imported before cudf.pandas is installed, the hook on pandas runs for the
original type. A proxy without its own method would then call the method of cuDF and, if that raises, repeat the call
with pandas. Frames of dask_cudf are instances of a subclass of Dask's.
"""


class _Method:
    """A method that is hidden by a column of the same name.

    If the frame has such a column, `__get__` raises AttributeError. Python then calls the frame's `__getattr__`, which
    returns the column. `__setattr__` of pandas, cuDF and Dask reads an attribute first, and therefore sets the column.

    `__set__` exists only to warn that an assignment adds no column, as pandas does for new attributes.
    """

    def __init__(self, function: Callable[..., object], has_column: Callable[[Any, str], bool]) -> None:
        self._function, self._has_column = function, has_column
        self._name: str = function.__name__
        self.__doc__ = function.__doc__

    def __get__(self, frame: object, owner: type | None = None) -> Any:
        if frame is None:
            return self._function
        attributes = getattr(frame, "__dict__", {})  # DuckDB relations have no `__dict__`
        if self._name in attributes:
            return attributes[self._name]
        if self._has_column(frame, self._name):
            raise AttributeError(f"{self._name!r} is a column of this {type(frame).__name__}.")
        return MethodType(self._function, frame)

    def __set__(self, frame: object, value: object) -> None:
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            warnings.warn(
                f"the frame has no column {self._name!r}, and assigning to an attribute adds none: "
                f"write frame[{self._name!r}] = ...",
                stacklevel=3,  # past `__setattr__` of the frame
            )
        frame.__dict__[self._name] = value

    def __delete__(self, frame: object) -> None:
        if self._name not in getattr(frame, "__dict__", {}):
            raise AttributeError(self._name)
        del frame.__dict__[self._name]


class _AfterImport:
    """Calls functions after the import of modules, by name. The library wrapt does so too, but takes 20 ms to load."""

    def __init__(self) -> None:
        self.actions: defaultdict[str, list[Callable[[ModuleType], object]]] = defaultdict(list)
        self._finding: set[str] = set()

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that another finder returns, with the actions of the module added to its execution."""
        if name not in self.actions or name in self._finding:
            return None
        self._finding.add(name)
        try:
            spec = find_spec(name)
        finally:
            self._finding.remove(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                if module.__name__ == name:  # some loaders are shared by several modules
                    for action in self.actions[name]:
                        action(module)

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


_after_import = _AfterImport()


def register(pagerank: Callable[..., object]) -> None:
    """Add the function as a method, with its signature and docstring, to each of `FRAME_TYPES`."""
    for name, has_column in FRAME_TYPES.items():
        library, _, type_name = name.rpartition(".")
        method = pagerank if has_column is None else _Method(pagerank, has_column)

        def bind(module: ModuleType, type_name: str = type_name, method: object = method) -> None:
            if (frame_type := getattr(module, type_name, None)) is not None:
                setattr(frame_type, pagerank.__name__, method)

        if (imported := sys.modules.get(library)) is not None:
            bind(imported)
        _after_import.actions[library].append(bind)
    sys.meta_path.insert(0, _after_import)
