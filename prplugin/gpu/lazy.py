"""CuPy, imported on first use: modules that name it are imported where there is no GPU, too."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Lazy:
    """A module that is imported when one of its attributes is first read; these are kept."""

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
