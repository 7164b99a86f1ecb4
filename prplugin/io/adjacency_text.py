"""Text of adjacency lists, as of METIS and Ligra: numbers in lines with any number of fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from prplugin.cpu.numbers import Numbers, Text
from prplugin.errors import InvalidEdgesError
from prplugin.io.adjacency import check_indices, require_kernels
from prplugin.io.blocks import check_memory, content
from prplugin.io.formats import errors_named
from prplugin.io.selection import Selection
from prplugin.machine import this_machine
from prplugin.types.edges import Floats, Integers, index_dtype

BYTES_PER_THREAD = 1 << 20
TOKEN_BYTES = 24
"""Bytes per number: the number, and then arrays of the graph."""


class AdjacencyText:
    """The bytes of a file, and errors about a place in it."""

    def __init__(self, selection: Selection, compression: str | None) -> None:
        require_kernels(selection)
        self.name, path = selection.name, Path(selection.path)
        with errors_named(self.name):
            if compression is None and path.is_file() and path.stat().st_size:
                self.bytes: Any = np.memmap(path, np.uint8, "r")
            else:
                self.bytes = np.frombuffer(content(selection.path, compression), np.uint8)

    def numbers(self, first: int, comment: str = "") -> Numbers:
        """Read all numbers from a byte on, the beginning of a line."""
        rest = self.bytes[first:]
        text = Text(rest, min(this_machine().threads, 1 + rest.size // BYTES_PER_THREAD), comment)
        check_memory(TOKEN_BYTES * text.tokens, f"{self.name} has {text.tokens:,} numbers")
        found = text.numbers()
        if found.fault >= 0:
            shown = bytes(rest[found.fault : found.fault + 60]).split(maxsplit=1)[0].decode("latin-1")
            self.fault(first + found.fault, f"{shown!r} is no finite number of at least 0.")
        return found

    def fault(self, position: int, what: str) -> NoReturn:
        """Raise InvalidEdgesError about the line at a position."""
        line = 1 + int(np.count_nonzero(self.bytes[:position] == ord("\n")))
        raise InvalidEdgesError(f"{self.name}, line {line:,}: {what}")


def as_vertices(selection: Selection, ids: Floats, n: int, first: int) -> Integers:
    """Return ids, of `first` to first + n - 1, as positions."""
    if (fractions := np.flatnonzero(ids != np.floor(ids))).size:
        raise InvalidEdgesError(
            f"{selection.name}: arc {int(fractions[0]):,} (counted from 0) ends at {ids[fractions[0]]:g}, which is no "
            "integer."
        )
    check_indices(selection, ids, n, first)
    positions: Integers = (ids - first).astype(index_dtype(n))
    return positions
