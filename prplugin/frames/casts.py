"""How columns are cast in the library of the user's frame, for messages that suggest it."""

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
"""Of frames that the pandas adapter reads; what is not listed is cast as in pandas."""

_library: ContextVar[str] = ContextVar("library", default="pandas")


@contextmanager
def casts_of(library: str) -> Iterator[None]:
    """Spell casts as a library does, by its name in `CASTS`."""
    token = _library.set(library)
    try:
        yield
    finally:
        _library.reset(token)


def cast_to(kind: Kind) -> str:
    """Return the code that casts a column of the user's frame."""
    return CASTS.get(_library.get(), CASTS["pandas"])[kind]
