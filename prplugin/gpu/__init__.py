"""Graph building, memory and kernels for arrays in device memory; the same function names as in `prplugin.cpu`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Lazy:
    """A module that is imported when one of its attributes is first read: there need not be a GPU."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # inspected, as by `inspect.unwrap`
            raise AttributeError(attribute)
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


cupy: Any = _Lazy("cupy")
cupyx: Any = _Lazy("cupyx")
