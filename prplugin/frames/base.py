"""Functions on objects of libraries that may not be loaded."""

from __future__ import annotations

import sys
from typing import Any

from prplugin.types.arrays import to_host


def is_a(value: object, module: str, name: str) -> bool:
    """Return whether a value is an instance of a class of a module, without importing the module."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def on_host(given: Any) -> Any:
    """Convert cuDF objects to pandas and CuPy arrays to NumPy; return other objects unchanged."""
    return given.to_pandas() if type(given).__module__.partition(".")[0] == "cudf" else to_host(given)
