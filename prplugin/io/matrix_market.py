"""Matrix Market coordinate files: rows are sources, vertices are counted from 1, isolated ones included.

R. F. Boisvert, R. Pozo and K. A. Remington, "The Matrix Market exchange formats: initial design", NIST IR 5935, 1996.
"""

from __future__ import annotations

import io
import re
from typing import NamedTuple, NoReturn

import numpy as np
import pandas as pd

from prplugin.errors import InvalidEdgesError
from prplugin.io.columnar import columns
from prplugin.io.content import text_content
from prplugin.io.records import WHITESPACE, Field, fault
from prplugin.io.selection import EdgeFile, Selection

__all__ = ["read"]


class _Head(NamedTuple):
    """The banner and the size line."""

    width: int
    symmetric: bool
    n: int
    entries: int
    size_line: int
    end: int


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read a square matrix; see `prplugin.io.read_edges`."""
    data = text_content(selection.path, compression)
    path = selection.name
    head = _head(path, data)
    names = ["source", "destination", "weight"][: head.width]
    found = selection.resolved(names, "weight" if head.width == 3 and not selection.unweighted else None)
    fields = [Field(position, names[position], "integer", head.n) for position in (0, 1)]
    if found.weight is not None:
        fields.append(Field(2, "weight", "weight"))

    read = columns(path, data, head.end, WHITESPACE, head.width, fields)
    frame = pd.DataFrame(read, copy=False)
    if len(frame) != head.entries:
        fault(path, head.size_line, f"it announces {head.entries:,} entries, but {len(frame):,} follow.")
    return EdgeFile(
        frame, found.source_names, found.destination_names, found.weight_name,
        vertices=np.arange(1, head.n + 1), directed=not head.symmetric,
    )  # fmt: skip


def _head(path: str, data: bytes) -> _Head:
    lines = io.BytesIO(data)
    banner = lines.readline(1024).decode("latin-1").lower().split()
    if len(banner) != 5 or banner[0] != "%%matrixmarket":
        fault(path, 1, "it is not the banner of a Matrix Market file, %%MatrixMarket matrix coordinate ...")
    width, symmetric = _shape(path, banner[1:])
    numbered = ((number, line.strip()) for number, line in enumerate(iter(lines.readline, b""), 2))
    number, text = next(((number, text) for number, text in numbered if text and text[:1] != b"%"), (0, b""))
    if not text:
        raise InvalidEdgesError(f"{path} has no size line: it is cut short.")
    if not re.fullmatch(rb"\d+\s+\d+\s+\d+", text):
        fault(path, number, f"it is not a size line, rows columns entries: {text[:60].decode('latin-1')!r}.")
    rows, columns, entries = map(int, text.split())
    if rows != columns:
        fault(path, number, f"the matrix is {rows:,} x {columns:,}; that of a graph is square.")
    if rows >= 2**63 or entries >= 2**63:
        fault(path, number, f"{rows:,} vertices and {entries:,} entries are more than 64 bits count.")
    return _Head(width, symmetric, rows, entries, number, lines.tell())


def _shape(path: str, banner: list[str]) -> tuple[int, bool]:
    """Give the fields of a line, and whether each entry off the diagonal stands for its mirror image too."""
    kind, layout, field, symmetry = banner

    def refuse(what: str, known: str) -> NoReturn:
        fault(path, 1, f"{what} cannot be ranked as a graph: {known}.")

    if kind != "matrix" or layout != "coordinate":
        refuse(f"a {kind} in {layout} format", "only 'matrix coordinate' is read")
    widths = {"pattern": 2, "real": 3, "double": 3, "integer": 3}
    if field not in widths:
        refuse(f"a matrix of {field} values", "they must be pattern, real or integer")
    if symmetry not in ("general", "symmetric"):
        refuse(f"a {symmetry} matrix", "it must be general or symmetric, for no weight may be negative or complex")
    return widths[field], symmetry == "symmetric"
