"""Property files, as of Java: lines ``key=value``, and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from prplugin.errors import InvalidEdgesError
from prplugin.io.formats import errors_named

LARGEST = 1 << 20
"""Bytes of a property file, of which a few thousand are usual."""

MOST = 2**31 - 1, 2**62
"""Greatest parameter, and greatest number of vertices or arcs."""


@dataclass(frozen=True)
class Properties:
    """The items of a property file."""

    path: str
    items: dict[str, str]

    @classmethod
    def read(cls, path: str) -> Properties:
        """Read a file."""
        with errors_named(path), open(path, "rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise InvalidEdgesError(f"{path} has more than {LARGEST:,} bytes, so this is no property file.")
        lines = [line.strip() for line in text.decode("latin-1").splitlines()]
        pairs = [re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
        return cls(path, {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs})

    def refuse(self, what: str) -> NoReturn:
        """Raise InvalidEdgesError about this file."""
        raise InvalidEdgesError(f"{self.path}: {what}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return the value of a key; raise if it is absent and has no default."""
        value = self.items.get(key, default)
        if value is None:
            self.refuse(f"it has no {key}.")
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a non-negative integer."""
        text = self.text(key, None if default is None else str(default))
        most = MOST[default is None]
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) > most:
            self.refuse(f"{key} is {text[:60]!r}, and must be an integer of 0 to {most:,}.")
        return int(text)
