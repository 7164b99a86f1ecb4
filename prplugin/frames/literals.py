"""Python values as JSON and back, without pickle: ids, labels of columns, and options of a saved graph.

None, booleans, integers, floats and strings stand for themselves; any other value is an object with one entry, the name
of its type and its content.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

from prplugin.errors import InvalidOptionError, full_name

PLAIN = (type(None), bool, int, float, str)
"""Types that JSON has."""


class _Codec(NamedTuple):
    """Conversion of the values of exactly one type to what JSON has, and back."""

    type: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def to_json(value: Any, what: str) -> Any:
    """Return a value as JSON has it; raise InvalidOptionError for a type that cannot be restored. `what` names it."""
    if type(value) in PLAIN:
        return value
    encoded: Any = None
    try:
        if type(value) in (tuple, list):
            return {type(value).__name__: [to_json(part, what) for part in value]}
        if isinstance(value, np.generic):
            encoded = {"numpy": [value.dtype.str, value.tobytes().hex()]}
        elif found := next((item for item in _codecs().items() if item[1].type is type(value)), None):
            encoded = {found[0]: found[1].encode(value)}
        # Also compares the text, which shows the zone of a time.
        same = encoded is not None and (restored := from_json(encoded)) == value and repr(restored) == repr(value)
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        same = False
    if not same:
        raise InvalidOptionError(
            f"{what} holds {value!r} of type {full_name(value)}, which cannot be saved without pickle. Cast it, for "
            "instance to strings, before you make the graph."
        )
    return encoded


def from_json(encoded: object) -> Any:
    """Return the value that `to_json` encoded; raise ValueError for anything else."""
    if type(encoded) in PLAIN:
        return encoded
    if not isinstance(encoded, dict) or len(encoded) != 1:
        raise ValueError(f"{encoded!r} is no value")
    ((name, content),) = encoded.items()
    try:
        if name in ("tuple", "list"):
            parts = [from_json(part) for part in content]
            return tuple(parts) if name == "tuple" else parts
        if name == "numpy":
            dtype = np.dtype(content[0])
            if dtype.kind not in "biufmM":
                raise ValueError(f"{dtype} is no type of numbers or times")
            return np.frombuffer(bytes.fromhex(content[1]), dtype)[0]
        return _codecs()[name].decode(content)
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"{encoded!r} is no value: {error}") from error


def _zone(moment: Any) -> Any:
    """Return the zone of a time: None, the key of a `ZoneInfo`, or the offset from UTC of a `timezone` in seconds."""
    zone = moment.tzinfo
    if zone is None:
        return None
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if type(zone) is timezone:
        return zone.utcoffset(None).total_seconds()
    raise ValueError(f"{zone!r} is no zone by name or offset")


def _zone_of(encoded: Any) -> Any:
    if encoded is None or isinstance(encoded, str):
        return encoded and ZoneInfo(encoded)
    return timezone(timedelta(seconds=encoded)) if encoded else UTC


def _encode_datetime(moment: datetime) -> Any:
    return [moment.replace(tzinfo=None, fold=0).isoformat(), _zone(moment), moment.fold]


def _decode_datetime(encoded: Any) -> datetime:
    return datetime.fromisoformat(encoded[0]).replace(tzinfo=_zone_of(encoded[1]), fold=int(encoded[2]))


def _encode_timestamp(moment: Any) -> Any:
    ticks = moment.asm8  # in UTC
    return [int(ticks.astype(np.int64)), moment.unit, _zone(moment)]


def _decode_timestamp(encoded: Any) -> Any:
    import pandas as pd

    moment = pd.Timestamp(np.datetime64(encoded[0], encoded[1]))
    return moment if encoded[2] is None else moment.tz_localize("UTC").tz_convert(_zone_of(encoded[2]))


def _codecs() -> dict[str, _Codec]:
    if not _CODECS:
        import pandas as pd  # loaded with every library of frames

        def days(span: timedelta) -> Any:
            return [span.days, span.seconds, span.microseconds]

        _CODECS.update({
            "bytes": _Codec(bytes, bytes.hex, bytes.fromhex),
            "decimal": _Codec(Decimal, str, Decimal),
            "fraction": _Codec(Fraction, lambda ratio: list(ratio.as_integer_ratio()), lambda pair: Fraction(*pair)),
            "uuid": _Codec(UUID, str, UUID),
            "date": _Codec(date, date.isoformat, date.fromisoformat),
            "time": _Codec(time, time.isoformat, time.fromisoformat),
            "timedelta": _Codec(timedelta, days, lambda parts: timedelta(*parts)),
            "datetime": _Codec(datetime, _encode_datetime, _decode_datetime),
            "Timestamp": _Codec(pd.Timestamp, _encode_timestamp, _decode_timestamp),
            "Timedelta": _Codec(
                pd.Timedelta,
                lambda span: [int(span.asm8.astype(np.int64)), span.unit],
                lambda parts: pd.Timedelta(np.timedelta64(parts[0], parts[1])),
            ),
        })  # fmt: skip
    return _CODECS


_CODECS: dict[str, _Codec] = {}
