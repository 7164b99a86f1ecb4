"""Times of edges: timestamps, dates or numbers, of any pandas type. Imports pandas."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, RefusedRows, refusal
from prplugin.frames.host_columns import decode_storage, missing_rows, to_float
from prplugin.frames.ids import HOST
from prplugin.frames.kinds import ZONED, format_values, refuse_rows
from prplugin.types.arrays import Array
from prplugin.types.edges import Floats, Integers

_ONE = Fraction(1)
_NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # nanoseconds per unit of time

_PART = r"(\d+(?:\.\d+)?)\s*([^\W\d_]+)"  # of a duration

_UNITS = {
    name: nanoseconds
    for names, nanoseconds in (
        ("w week weeks", 7 * _NANOSECONDS["D"]),
        ("d day days", _NANOSECONDS["D"]),
        ("h hr hrs hour hours", 3600 * 10**9),
        ("m min mins minute minutes", 60 * 10**9),
        ("s sec secs second seconds", 10**9),
        ("ms milli millis millisecond milliseconds", 10**6),
        ("us \u00b5s \u03bcs micro micros microsecond microseconds", 1000),
        ("ns nano nanos nanosecond nanoseconds", 1),
    )
    for name in names.split()
}
"""Nanoseconds per unit of a duration, by its names in lower case."""

MAX_HALF_LIVES = 1 << 39
"""Largest age in half-lives. Exponents of decayed weights stay above `ZERO_EXPONENT`, and 2**t keeps three digits."""


@dataclass
class Clock:
    """Time options of a graph, and the reference points of its times.

    `half_life`, `window` and `now` are the options of `prplugin.pagerank`; None: no decay, no window, and `latest`
    instead of `now`. The first column that is read determines the kind of the times and the origin, and converts
    `half_life` and `window` to the unit of the times. Times of edges are relative to `origin`, the latest time of the
    first column; `latest` is `now`, or the latest time read so far. Times and durations are exact, as in `_Times`.
    """

    half_life: Any = None
    window: Any = None
    now: Any = None
    kind: str | None = None  # for messages
    origin: Fraction | None = None
    latest: Fraction | None = None

    def read(self, column: pd.Series, label: str) -> tuple[Floats | None, Integers | None]:
        """Return the times of a column within the window, in half-lives since the origin, and their rows.

        The times are None without a half-life, and the rows None if all are within the window.
        """
        times = _read_times(column, label)
        if times is not None:
            self.begin(times.kind, times.latest(), label)
        if times is None or (latest := times.latest()) is None:
            return (None if self.half_life is None else np.empty(0)), None
        assert self.latest is not None
        assert self.origin is not None
        if latest > self.latest:
            late = np.flatnonzero(times.after(self.latest))
            raise _refused_times(column, label, late, f"after now={self.now!s}", "Pass a later now, or drop them.")
        rows = None
        if self.window is not None:
            rows = np.flatnonzero(times.after(self.latest - self.window))
            times = times._replace(values=times.values[rows])
        if self.half_life is None:
            return None, rows
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # refused below
            ages = times.since(self.origin) / to_float(self.half_life)
        if (far := np.flatnonzero(~(np.abs(ages) <= MAX_HALF_LIVES))).size:
            fault = f"more than {MAX_HALF_LIVES:,} half-lives from the latest time when the graph was made"
            remedy = "Pass a longer half_life, or drop them."
            raise _refused_times(column, label, far if rows is None else rows[far], fault, remedy)
        return ages, rows

    def begin(self, kind: str, latest: Fraction | None, label: str) -> None:
        """Note the kind and the latest time of a column, None if it is empty, before it is read."""
        if self.kind is None:
            self.kind = kind
            self.half_life, self.window = (
                self._parse_duration(name, getattr(self, name), label) for name in ("half_life", "window")
            )
            self.latest = None if self.now is None else self._parse_now(self.now, label)
        elif kind != self.kind:
            raise InvalidEdgesError(f"{label} holds {kind}, but the times of this graph are {self.kind}: cast it.")
        if latest is not None:
            if self.now is None:
                self.latest = latest if self.latest is None else max(self.latest, latest)
            if self.origin is None:
                self.origin = latest  # not `now`: ranks must not depend on it, even by rounding

    @staticmethod
    def facts(column: pd.Series, label: str) -> tuple[str, Fraction | None] | None:
        """Return the arguments of `begin` for a column that is a part of one; None for an untyped empty column."""
        times = _read_times(column, label)
        return None if times is None else (times.kind, times.latest())

    def shift(self) -> float:
        """Return the time from the origin to `latest`, in half-lives, at most `4 * MAX_HALF_LIVES`.

        Then all weights are 0 in float64.
        """
        if self.origin is None or self.latest is None:
            return 0.0
        return float(min((self.latest - self.origin) / self.half_life, Fraction(4 * MAX_HALF_LIVES)))

    def _parse_duration(self, name: str, given: object, label: str) -> Fraction | None:
        """Return a positive duration in nanoseconds, or in the unit of the numbers; None for None."""
        if given is None:
            return None
        if self.kind == "numbers":
            number = _exact_number(given)
            if number is None or number <= 0:
                expected = f"a number, as {label} holds numbers, positive and finite"
                raise InvalidOptionError(f"{name} must be {expected}, not {given!r}.")
            return number
        duration: Any = _parse_text(given) if isinstance(given, str) else None
        unit = np.datetime_data(given.dtype)[0] if isinstance(given, np.timedelta64) else ""
        if isinstance(given, (timedelta, np.timedelta64)) and unit not in ("generic", "M", "Y") and not pd.isna(given):
            try:
                duration = _nanoseconds(pd.Timedelta(given).to_timedelta64())
            except (pd.errors.OutOfBoundsTimedelta, OverflowError):
                raise InvalidOptionError(
                    f"{name} is longer than pandas represents, {given!r}: pass a datetime.timedelta."
                ) from None
        if duration is None:
            raise InvalidOptionError(
                f"{name} must be a string such as '7D' or a timedelta, as {label} holds {self.kind}, not {given!r}. "
                "Units are W, D, h, min, s, ms, us and ns; months and years have no fixed length: pass days."
            )
        if duration <= 0:
            raise InvalidOptionError(f"{name} must be positive, not {given!r}.")
        return Fraction(duration)

    def _parse_now(self, given: object, label: str) -> Fraction:
        """Return the option `now` in nanoseconds since 1970, or in the unit of the numbers."""
        if self.kind == "numbers":
            number = _exact_number(given)
            if number is None:
                raise InvalidOptionError(f"now must be a finite number, as {label} holds numbers, not {given!r}.")
            return number
        now = pd.NaT
        finer = isinstance(given, np.datetime64) and np.datetime_data(given.dtype)[0] in ("ps", "fs", "as")
        if isinstance(given, (str, date, datetime, np.datetime64)) and not finer:  # pandas would round it
            with suppress(ValueError, OverflowError):
                now = pd.Timestamp(given)
        with_zone = self.kind == "timestamps with a time zone"
        if pd.isna(now) or (now.tzinfo is not None) != with_zone:
            raise InvalidOptionError(
                f"now must be a timestamp {'with' if with_zone else 'without'} a time zone, like those of {label}, "
                f"not {given!r}."
            )
        return _nanoseconds(now.to_datetime64())  # in UTC


class _Times(NamedTuple):
    """Times of a column, exactly ``values * tick``: nanoseconds since 1970, in UTC, or numbers.

    `values`: Array of int64, uint64 or finite float64; the tick of float64 is 1.
    """

    values: Array
    tick: Fraction
    kind: str

    def latest(self) -> Fraction | None:
        """Return the latest time; None if there are none."""
        return Fraction(self.values.max().item()) * self.tick if self.values.size else None

    def after(self, instant: Fraction) -> Any:
        """Return a mask of the times that are later than an instant, without rounding."""
        bound: Any = instant / self.tick
        if self.values.dtype.kind == "f":
            # No float64 lies between the bound and the largest float64 that is not above it.
            nearest = to_float(bound)
            return self.values > (nearest if nearest <= bound else np.nextafter(nearest, -math.inf))
        return self.values > math.floor(bound)  # exact, also beyond the range of the type

    def since(self, origin: Fraction) -> Floats:
        """Return the differences to the origin, with at most two roundings.

        Differences of up to 2**53 units round only once, so that an edge to remove equals the edge of the graph bit by
        bit, in whatever unit its time is given.
        """
        if self.values.dtype.kind == "f":
            high = float(origin)
            # Subtracts an origin that is an integer above 2**53 in two parts.
            differences: Floats = (self.values - high) - float(origin - Fraction(high))
            return differences
        if not self.values.size:  # none within the window
            return np.empty(0)
        # All times and the origin are integers in this unit, their greatest common divisor.
        unit = Fraction(
            math.gcd(self.tick.numerator * origin.denominator, origin.numerator * self.tick.denominator),
            self.tick.denominator * origin.denominator,
        )
        step, start = int(self.tick / unit), int(origin / unit)
        extent = [int(self.values.min()) * step, int(self.values.max()) * step, start]
        if max(extent) - min(extent) >= 1 << 63 or step >= 1 << 63:
            exact = self.values.astype(object) * step - start
            return np.fromiter((to_float(distance * unit) for distance in exact), np.float64, exact.size)
        # Integers modulo 2**64 determine all distances that are below 2**63.
        later = self.values.astype(np.uint64) * np.uint64(step) - np.uint64(start % (1 << 64))
        differences = later.view(np.int64).astype(np.float64)
        return differences if unit == 1 else differences * float(unit.numerator) / float(unit.denominator)


def _read_times(column: pd.Series, label: str) -> _Times | None:
    """Return the times of a column, exactly; None for an untyped empty column."""
    if not len(column) and column.dtype == object:
        return None
    column = decode_storage(column)
    refuse_rows(missing_rows(column), label, "null", ": each edge needs a time. Drop or fill them.")
    if types.is_object_dtype(column.dtype) and HOST.kind_of(column, label) in ("datetime", ZONED, "date"):
        column = _from_objects(column, label)
    dtype = column.dtype
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if types.is_datetime64_any_dtype(dtype) or (arrow is not None and pa.types.is_date(arrow)):
        if isinstance(dtype, pd.DatetimeTZDtype):
            column = column.dt.tz_convert("UTC")  # Arrow has no offsets of seconds
        ticks = np.asarray(pa.array(column))  # in UTC
        zoned = getattr(arrow or dtype, "tz", None) is not None
        kind = "timestamps with a time zone" if zoned else "timestamps"
        return _Times(ticks.view(np.int64), Fraction(_NANOSECONDS[np.datetime_data(ticks.dtype)[0]]), kind)
    if getattr(dtype, "kind", "O") not in "iuf" or dtype.itemsize > 8:
        raise InvalidEdgesError(
            f"{label} holds {dtype}, which are no times: cast it to integers or float64 or, for instance with "
            "pandas.to_datetime, to timestamps."
        )
    if types.is_integer_dtype(dtype):
        numbers = HOST.integers(column, label)
        return _Times(numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64, copy=False), _ONE, "numbers")
    numbers = column.to_numpy(np.float64)
    infinite = np.flatnonzero(~np.isfinite(numbers))
    refuse_rows(infinite, label, "infinite time", ". Drop them.")
    return _Times(numbers, _ONE, "numbers")


def _from_objects(column: pd.Series, label: str) -> pd.Series:
    """Convert dates or timestamps that are Python objects, all of them with a time zone or all without."""
    zoned = column.map(lambda time: getattr(time, "tzinfo", None) is not None).to_numpy(np.bool_)
    if zoned.any() and not zoned.all():
        remedy = "Convert them with pandas.to_datetime(..., utc=True)."
        fault = "without a time zone, and others with one"
        raise _refused_times(column, label, np.flatnonzero(~zoned), fault, remedy)
    try:
        return pd.Series(pd.to_datetime(column, utc=True if zoned.all() else None))
    except (ValueError, OverflowError) as error:
        raise InvalidEdgesError(
            f"{label} holds timestamps that have no common unit: {error}. Cast it, for instance with "
            f".astype('datetime64[us{', UTC' if zoned.all() else ''}]')."
        ) from error


def _refused_times(column: pd.Series, label: str, rows: Integers, fault: str, remedy: str) -> PageRankError:
    try:
        shown = [str(column.iloc[row]) for row in rows[:3].tolist()]
    except OverflowError:  # dates of Arrow beyond those of Python
        shown = [f"{pa.array(column.array)[row].value} since 1970" for row in rows[:3].tolist()]
    format_message = partial(format_values, label, "row", fault, remedy, what="time")
    return refusal(InvalidEdgesError, RefusedRows(format_message, rows.size, rows[:3].tolist(), shown))


def _parse_text(text: str) -> Fraction | None:
    """Return a duration in nanoseconds: "2 weeks", "1.5h", "1 days 02:30:00" or ISO 8601; None for other texts.

    Not by pandas, which reads "P1M" as a minute, "P1.5D" as five days and "1,5h" as 15 hours.
    """
    text = text.strip()
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if body.startswith("P"):
        # M stands for minutes after a T, and for months before.
        iso = re.fullmatch(r"P(?=.)([\d.]+W)?([\d.]+D)?(?:T(?=.)([\d.]+H)?(?:([\d.]+)M)?([\d.]+S)?)?", body)
        if iso is None:
            return None
        weeks, days, hours, minutes, seconds = iso.groups()
        body = " ".join(filter(None, (weeks, days, hours, minutes and minutes + "min", seconds)))
    if not (match := re.fullmatch(rf"((?:{_PART},?\s*)*)(?:\+?(\d+):(\d\d):(\d\d(?:\.\d+)?))?", body)) or not body:
        return None
    parts = re.findall(_PART, match[1])
    if match[match.re.groups]:
        parts += zip(match.groups()[-3:], ("h", "min", "s"), strict=True)
    if any(unit in ("M", "MS") or unit.lower() not in _UNITS for _, unit in parts):
        return None
    return sign * sum((Fraction(number) * _UNITS[unit.lower()] for number, unit in parts), Fraction(0))


def _nanoseconds(moment: np.datetime64 | np.timedelta64) -> Fraction:
    """Return a datetime64 or timedelta64 of pandas in nanoseconds."""
    return Fraction(int(moment.astype(np.int64)) * _NANOSECONDS[np.datetime_data(moment.dtype)[0]])


def _exact_number(given: object) -> Fraction | None:
    """Return a number without rounding; None for other objects, and if it is not finite."""
    number: Any = given
    if not isinstance(given, (Real, Decimal)) or isinstance(given, (bool, np.timedelta64)):
        return None
    if isinstance(given, Integral):
        return Fraction(int(given))
    try:
        return Fraction(*number.as_integer_ratio())
    except (OverflowError, ValueError):
        return None
