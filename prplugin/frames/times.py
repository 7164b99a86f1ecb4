"""Times of edges: timestamps or numbers, in all the ways that pandas can hold them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, RefusedRows, counted, listed, refusal
from prplugin.types.edges import Floats, Integers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Clock", "of_rows"]


@dataclass
class Clock:
    """How the edges of a graph age. The first column that it reads fixes the kind of its times, and the origin.

    Attributes
    ----------
    half_life, window, now : object
        As given; None: edges do not decay, are never too old, or the latest time that was read.
    latest : object
        `now`, or the latest time so far: a NumPy datetime or number.
    """

    half_life: Any = None
    window: Any = None
    now: Any = None
    kind: str | None = None
    origin: Any = None
    latest: Any = None

    def read(self, column: pd.Series, label: str) -> tuple[Floats | None, Integers | None]:
        """Read a column of times.

        Returns
        -------
        times : array of float64, or None
            Of the rows within the window, in half-lives since the origin; None without a half-life.
        rows : array of positions, or None
            The rows within the window; None for all.
        """
        if not len(column) and column.dtype == object:  # of no type
            return (None if self.half_life is None else np.empty(0)), None
        times, kind = _instants(column, label)
        if self.kind is None:
            self.kind = kind
            self.half_life, self.window = (
                self._span(name, getattr(self, name), label) for name in ("half_life", "window")
            )
            self.latest = None if self.now is None else self._instant(self.now, label)
        elif kind != self.kind:
            raise InvalidEdgesError(f"{label} holds {kind}, but the times of this graph are {self.kind}: cast it.")
        if self.now is not None:
            late = np.flatnonzero(times > self.latest)
            if late.size:
                held = [str(column.iloc[row]) for row in late[:3].tolist()]
                say = partial(_late, label, self.now)
                raise refusal(InvalidEdgesError, RefusedRows(say, late.size, late[:3].tolist(), held))
        elif times.size:
            self.latest = times.max() if self.latest is None else max(self.latest, times.max())
        if self.origin is None and times.size:
            self.origin = times.max()  # not `now`, which may change no rank
        rows = None
        if self.window is not None and times.size:
            rows = np.flatnonzero(self.latest - times < self.window)
            times = times[rows]
        if self.half_life is None:
            return None, rows
        return (((times - self.origin) / self.half_life).astype(np.float64) if times.size else np.empty(0)), rows

    def shift(self) -> float:
        """Return how far `latest` is from the origin, in half-lives."""
        return float((self.latest - self.origin) / self.half_life) if self.origin is not None else 0.0

    def _span(self, name: str, given: Any, label: str) -> Any:
        """Return a positive length of time, in the unit of the times."""
        if given is None:
            return None
        if self.kind == "numbers":
            if not _is_number(given):
                raise InvalidOptionError(f"{name} must be a number, as {label} holds numbers, not {given!r}.")
            if not 0 < given < math.inf:
                raise InvalidOptionError(f"{name} must be positive and finite, not {given!r}.")
            return np.float64(given)
        import pandas as pd

        try:
            if not isinstance(given, (str, timedelta, np.timedelta64)) or (isinstance(given, str) and given.isdigit()):
                raise ValueError
            span = pd.Timedelta(given)
        except ValueError:
            raise InvalidOptionError(
                f"{name} must be a string such as '7D' or a timedelta, as {label} holds {self.kind}, not {given!r}."
            ) from None
        if pd.isna(span) or span <= pd.Timedelta(0):
            raise InvalidOptionError(f"{name} must be positive, not {given!r}.")
        return span.to_timedelta64()

    def _instant(self, given: Any, label: str) -> Any:
        """Return the time that is given as `now`."""
        if self.kind == "numbers":
            if not _is_number(given) or not math.isfinite(given):
                raise InvalidOptionError(f"now must be a finite number, as {label} holds numbers, not {given!r}.")
            return np.int64(given) if isinstance(given, Integral) and abs(int(given)) < 1 << 62 else np.float64(given)
        import pandas as pd

        try:
            if not isinstance(given, (str, date, datetime, np.datetime64)):
                raise ValueError
            now = pd.Timestamp(given)
        except ValueError:
            now = pd.NaT
        zoned = self.kind == "timestamps with a time zone"
        if pd.isna(now) or (now.tzinfo is not None) != zoned:
            raise InvalidOptionError(
                f"now must be a timestamp {'with' if zoned else 'without'} a time zone, as those of {label}, "
                f"not {given!r}."
            )
        return (now.tz_convert(None) if zoned else now).to_datetime64()


def of_rows(error: PageRankError, rows: Integers) -> PageRankError:
    """Return an error about some rows of those at `rows` as one about rows of the whole frame."""
    if error.refused is None:
        return error
    refused = error.refused
    whole = RefusedRows(refused.say, refused.count, rows[refused.rows].tolist(), refused.held)
    return refusal(type(error), whole)


def _instants(column: pd.Series, label: str) -> tuple[Any, str]:
    """Return times as NumPy's datetimes, in UTC, or as float64; and their kind."""
    import pandas as pd
    from pandas.api import types

    from prplugin.frames._pandas_ids import integers, kind_of, stored_plainly  # imports pandas

    column = stored_plainly(column)
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise refusal(InvalidEdgesError, RefusedRows(partial(_missing, label), missing.size, missing[:5].tolist(), []))
    if types.is_object_dtype(column.dtype) and kind_of(column, label) in (
        "datetime", "datetime with a time zone", "date",
    ):  # fmt: skip
        column = pd.Series(pd.to_datetime(column))
    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith(("timestamp", "date")):
        import pyarrow as pa  # there, since pandas holds Arrow columns

        array = pa.array(column.array)
        if not pa.types.is_timestamp(array.type):
            array = array.cast(pa.timestamp("ms"))
        ticks = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return ticks.view(f"datetime64[{array.type.unit}]"), _timestamps(zoned=array.type.tz is not None)
    if types.is_datetime64_any_dtype(dtype):
        zoned = isinstance(dtype, pd.DatetimeTZDtype)
        return column.to_numpy(f"datetime64[{dtype.unit}]" if zoned else None), _timestamps(zoned=zoned)
    if not types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype) or types.is_complex_dtype(dtype):
        raise InvalidEdgesError(
            f"{label} holds {dtype}, which are no times: cast it, for instance with pandas.to_datetime, or to numbers."
        )
    if types.is_integer_dtype(dtype):
        whole = integers(column, label)
        if not whole.size or max(-int(whole.min()), int(whole.max())) < 1 << 62:  # differences are exact
            return whole.astype(np.int64, copy=False), "numbers"
    numbers = column.to_numpy(np.float64)
    if (odd := np.flatnonzero(~np.isfinite(numbers))).size:
        raise refusal(InvalidEdgesError, RefusedRows(partial(_infinite, label), odd.size, odd[:5].tolist(), []))
    return numbers, "numbers"


def _timestamps(*, zoned: bool) -> str:
    return "timestamps with a time zone" if zoned else "timestamps"


def _is_number(given: object) -> bool:
    return isinstance(given, Real) and not isinstance(given, (bool, np.bool_, np.timedelta64))


def _missing(label: str, rows: RefusedRows) -> str:
    return (
        f"{label} has {counted(rows.count, 'null')}, in {'row' if rows.count == 1 else 'rows'} "
        f"{listed(rows.padded(rows.rows))} (counted from 0): an edge that ages needs a time. Drop or fill them."
    )


def _infinite(label: str, rows: RefusedRows) -> str:
    return (
        f"{label} has {counted(rows.count, 'infinite time')}, in {'row' if rows.count == 1 else 'rows'} "
        f"{listed(rows.padded(rows.rows))} (counted from 0). Drop them."
    )


def _late(label: str, now: Any, late: RefusedRows) -> str:
    shown = [f"{held} in row {row}" for held, row in zip(late.held, late.rows, strict=True)]
    return (
        f"{label} has {counted(late.count, 'time')} after now={now!s}: {listed(late.padded(shown), 3)} "
        "(counted from 0). Pass a later now, or drop them."
    )
