"""Python values as JSON and back, without pickle: ids, labels of columns, and options of a saved graph.

None, booleans, integers, floats and strings stand for themselves; any other value is an object with one entry, the name
of its type and a list of what makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

from prplugin.errors import InvalidOptionError, full_name

PLAIN = (type(None), bool, int, float, str)  # types that JSON has


class _Codec(NamedTuple):
    """Conversion of the values of exactly one type to the arguments of a function that makes them again."""

    type: type
    arguments: Callable[[Any], Any]
    make: Callable[..., Any]


def _scalar(dtype: str, content: str) -> np.generic:
    if np.dtype(dtype).kind not in "biufmM":
        raise ValueError(f"{dtype} is no type of numbers or times")
    return np.frombuffer(bytes.fromhex(content), dtype)[0]


_CODECS = {
    "tuple": _Codec(tuple, list, lambda *parts: parts),
    "list": _Codec(list, list, lambda *parts: list(parts)),
    "bytes": _Codec(bytes, lambda content: [content.hex()], bytes.fromhex),
    "decimal": _Codec(Decimal, lambda number: [str(number)], Decimal),
    "fraction": _Codec(Fraction, lambda number: number.as_integer_ratio(), Fraction),
    "uuid": _Codec(UUID, lambda number: [str(number)], UUID),
    "date": _Codec(date, lambda day: [day.isoformat()], date.fromisoformat),
    "time": _Codec(time, lambda moment: [moment.isoformat()], time.fromisoformat),
    "timedelta": _Codec(timedelta, lambda span: [span.days, span.seconds, span.microseconds], timedelta),
    "zone": _Codec(ZoneInfo, lambda zone: [zone.key], ZoneInfo),
    "offset": _Codec(timezone, lambda zone: [zone.utcoffset(None)], timezone),
    "datetime": _Codec(
        datetime,
        lambda moment: [moment.replace(tzinfo=None, fold=0).isoformat(), moment.tzinfo, moment.fold],
        lambda text, zone, fold: datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold),
    ),
    "numpy": _Codec(np.generic, lambda scalar: [scalar.dtype.str, scalar.tobytes().hex()], _scalar),
}


def _codecs() -> dict[str, _Codec]:
    if "Timestamp" not in _CODECS:
        import pandas as pd  # loaded with every library of frames

        def timestamp(ticks: int, unit: Any, zone: object) -> pd.Timestamp:
            moment = pd.Timestamp(np.datetime64(ticks, unit))  # in UTC if it has a zone
            return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)

        def parts(moment: pd.Timestamp | pd.Timedelta) -> list[int | str]:
            return [int(moment.asm8.astype(np.int64)), moment.unit]

        def timedelta(ticks: int, unit: Any) -> pd.Timedelta:
            return pd.Timedelta(np.timedelta64(ticks, unit))

        _CODECS["Timestamp"] = _Codec(pd.Timestamp, lambda moment: [*parts(moment), moment.tzinfo], timestamp)
        _CODECS["Timedelta"] = _Codec(pd.Timedelta, parts, timedelta)
    return _CODECS


def to_json(value: Any, what: str) -> Any:
    """Return a value as JSON has it; raise InvalidOptionError for a type that cannot be restored. `what` names it."""
    if type(value) in PLAIN:
        return value
    kind = np.generic if isinstance(value, np.generic) else type(value)
    if kind in (tuple, list):
        return {kind.__name__: [to_json(part, what) for part in value]}
    with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        ((name, codec),) = [item for item in _codecs().items() if item[1].type is kind]
        encoded = {name: [to_json(part, what) for part in codec.arguments(value)]}
        restored = from_json(encoded)
        if restored == value and repr(restored) == repr(value):  # the text shows the zone of a time
            return encoded
    raise InvalidOptionError(
        f"{what} holds {value!r} of type {full_name(value)}, which cannot be saved without pickle. Cast it, for "
        "instance to strings, before you make the graph."
    )


def from_json(encoded: object) -> Any:
    """Return the value that `to_json` encoded; raise ValueError for anything else."""
    if type(encoded) in PLAIN:
        return encoded
    if not isinstance(encoded, dict) or len(encoded) != 1:
        raise ValueError(f"{encoded!r} is no value")
    ((name, arguments),) = encoded.items()
    try:
        return _codecs()[name].make(*map(from_json, arguments))
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"{encoded!r} is no value: {error}") from error
