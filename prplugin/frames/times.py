"""Times of edges: timestamps, dates or numbers, of any pandas type. Imports pandas."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, RefusedRows, refusal
from prplugin.frames._pandas_ids import decode_storage, integers
from prplugin.frames._pandas_kinds import format_values, kind_of, refuse_rows
from prplugin.types.edges import Floats, Integers


@dataclass
class Clock:
    """Time options of a graph, and the reference points of its times.

    `half_life`, `window` and `now` are the options of `prplugin.pagerank`; None: no decay, no window, and `latest`
    instead of `now`. The first column that is read determines the kind of the times and the origin, and converts
    `half_life` and `window` to the unit of the times. Times of edges are relative to `origin`, the latest time of the
    first column; `latest` is `now`, or the latest time read so far.
    """

    half_life: Any = None
    window: Any = None
    now: Any = None
    kind: str | None = None  # for messages
    origin: Any = None
    latest: Any = None

    def read(self, column: pd.Series, label: str) -> tuple[Floats | None, Integers | None]:
        """Return the times of a column within the window, in half-lives since the origin, and their rows.

        The times are None without a half-life, and the rows None if all are within the window.
        """
        if not len(column) and column.dtype == object:  # an untyped empty column
            return (None if self.half_life is None else np.empty(0)), None
        times, kind = _read_times(column, label)
        if self.kind is None:
            self.kind = kind
            self.half_life, self.window = (
                self._parse_duration(name, getattr(self, name), label) for name in ("half_life", "window")
            )
            self.latest = None if self.now is None else self._parse_now(self.now, label)
        elif kind != self.kind:
            raise InvalidEdgesError(f"{label} holds {kind}, but the times of this graph are {self.kind}: cast it.")
        if self.now is not None:
            late = np.flatnonzero(times > self.latest)
            if late.size:
                shown = [str(column.iloc[row]) for row in late[:3].tolist()]
                fault, remedy = f"after now={self.now!s}", "Pass a later now, or drop them."
                format_message = partial(format_values, label, "row", fault, remedy, what="time")
                raise refusal(InvalidEdgesError, RefusedRows(format_message, late.size, late[:3].tolist(), shown))
        elif times.size:
            self.latest = times.max() if self.latest is None else max(self.latest, times.max())
        if self.origin is None and times.size:
            self.origin = times.max()  # not `now`: ranks must not depend on it, even by rounding
        rows = None
        if self.window is not None and times.size:
            rows = np.flatnonzero(self.latest - times < self.window)
            times = times[rows]
        if self.half_life is None:
            return None, rows
        return (((times - self.origin) / self.half_life).astype(np.float64) if times.size else np.empty(0)), rows

    def shift(self) -> float:
        """Return the time from the origin to `latest`, in half-lives."""
        return float((self.latest - self.origin) / self.half_life) if self.origin is not None else 0.0

    def _parse_duration(self, name: str, given: Any, label: str) -> Any:
        """Return a positive duration in the unit of the times, or None."""
        if given is None:
            return None
        if self.kind == "numbers":
            if not _is_number(given):
                raise InvalidOptionError(f"{name} must be a number, as {label} holds numbers, not {given!r}.")
            if not 0 < given < math.inf:
                raise InvalidOptionError(f"{name} must be positive and finite, not {given!r}.")
            return np.float64(given)
        try:
            if not isinstance(given, (str, timedelta, np.timedelta64)) or (isinstance(given, str) and given.isdigit()):
                raise ValueError
            duration = pd.Timedelta(given)
        except ValueError:
            raise InvalidOptionError(
                f"{name} must be a string such as '7D' or a timedelta, as {label} holds {self.kind}, not {given!r}."
            ) from None
        if not duration > pd.Timedelta(0):  # also raises for NaT
            raise InvalidOptionError(f"{name} must be positive, not {given!r}.")
        return duration.to_timedelta64()

    def _parse_now(self, given: Any, label: str) -> Any:
        """Return the option `now` in the unit of the times."""
        if self.kind == "numbers":
            if not _is_number(given) or not math.isfinite(given):
                raise InvalidOptionError(f"now must be a finite number, as {label} holds numbers, not {given!r}.")
            return np.int64(given) if isinstance(given, Integral) and abs(int(given)) < 1 << 62 else np.float64(given)
        now = pd.NaT
        if isinstance(given, (str, date, datetime, np.datetime64)):
            with suppress(ValueError):
                now = pd.Timestamp(given)
        with_zone = self.kind == "timestamps with a time zone"
        if pd.isna(now) or (now.tzinfo is not None) != with_zone:
            raise InvalidOptionError(
                f"now must be a timestamp {'with' if with_zone else 'without'} a time zone, like those of {label}, "
                f"not {given!r}."
            )
        return (now.tz_convert(None) if with_zone else now).to_datetime64()


def with_frame_rows(error: PageRankError, rows: Integers) -> PageRankError:
    """Convert the row numbers of an error from the selection `rows` to the whole frame."""
    if (refused := error.refused) is None:
        return error
    return refusal(type(error), replace(refused, rows=rows[refused.rows].tolist()))


def _read_times(column: pd.Series, label: str) -> tuple[Any, str]:
    """Return times as NumPy datetimes in UTC, int64 or float64, and their kind."""
    column = decode_storage(column)
    refuse_rows(np.flatnonzero(column.isna()), label, "null", ": each edge needs a time. Drop or fill them.")
    if types.is_object_dtype(column.dtype) and kind_of(column, label) in (
        "datetime", "datetime with a time zone", "date",
    ):  # fmt: skip
        column = pd.Series(pd.to_datetime(column))
    if isinstance(column.dtype, pd.ArrowDtype) and str(column.dtype).startswith(("timestamp", "date")):
        array, kind = pa.array(column.array), column.dtype.pyarrow_dtype
        plain = pa.timestamp(kind.unit, kind.tz and "UTC") if pa.types.is_timestamp(kind) else pa.timestamp("ms")
        column = array.cast(plain).to_pandas()
    dtype = column.dtype
    if types.is_datetime64_any_dtype(dtype):
        with_zone = isinstance(dtype, pd.DatetimeTZDtype)
        times = column.to_numpy(f"datetime64[{dtype.unit}]" if with_zone else None)
        return times, "timestamps with a time zone" if with_zone else "timestamps"
    if not types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype) or types.is_complex_dtype(dtype):
        raise InvalidEdgesError(
            f"{label} holds {dtype}, which are no times: cast it to numbers or, for instance with pandas.to_datetime, "
            "to timestamps."
        )
    if types.is_integer_dtype(dtype):
        numbers = integers(column, label)
        if not numbers.size or max(-int(numbers.min()), int(numbers.max())) < 1 << 62:  # differences fit int64
            return numbers.astype(np.int64, copy=False), "numbers"
    numbers = column.to_numpy(np.float64)
    refuse_rows(np.flatnonzero(~np.isfinite(numbers)), label, "infinite time", ". Drop them.")
    return numbers, "numbers"


def _is_number(given: object) -> bool:
    return isinstance(given, Real) and not isinstance(given, (bool, np.bool_, np.timedelta64))
