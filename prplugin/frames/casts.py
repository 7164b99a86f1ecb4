"""Code that casts columns in the library of the user's frame, for error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

__all__ = ["cast_to", "casts_of"]

Kind = Literal["integer", "number", "string"]

CASTS: dict[str, dict[Kind, str]] = {
    "pandas": {"integer": ".astype('int64')", "number": ".astype('float64')", "string": ".astype(str)"},
    "polars": {
        "integer": ".cast(polars.Int64)",
        "number": ".cast(polars.Float64)",
        "string": ".cast(polars.String)",
    },
    "pyarrow": {
        "integer": ".cast(pyarrow.int64())",
        "number": ".cast(pyarrow.float64())",
        "string": ".cast(pyarrow.string())",
    },
    "duckdb": {
        "integer": "CAST(... AS BIGINT)",
        "number": "CAST(... AS DOUBLE)",
        "string": "CAST(... AS VARCHAR)",
    },
}
"""Casts by library, for frames that the pandas adapter reads. Other libraries use the entry of pandas."""

_library: ContextVar[str] = ContextVar("library", default="pandas")


@contextmanager
def casts_of(library: str) -> Iterator[None]:
    """Within this context, `cast_to` uses the syntax of a library: a key of `CASTS`."""
    token = _library.set(library)
    try:
        yield
    finally:
        _library.reset(token)


def cast_to(kind: Kind) -> str:
    """Return the code that casts a column to a kind of type, in the syntax of the current library."""
    return CASTS.get(_library.get(), CASTS["pandas"])[kind]
