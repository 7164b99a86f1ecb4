"""Matrix Market coordinate files: rows are sources, vertices are counted from 1, isolated ones included.

R. F. Boisvert, R. Pozo and K. A. Remington, "The Matrix Market exchange formats: initial design", NIST IR 5935, 1996.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prplugin.errors import InvalidEdgesError
from prplugin.io.blocks import Block, blocks
from prplugin.io.columns import Column, read_columns
from prplugin.io.content import check_memory
from prplugin.io.selection import EdgeFile, Selection

__all__ = ["read"]

WIDTHS = {"pattern": 2, "real": 3, "double": 3, "integer": 3}
"""Fields of an entry, by what the banner says of its value."""

VERTEX_BYTES = 24
"""Per vertex: its id, its rank and its out-weight at least."""


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read a square matrix; see `prplugin.io.read_edges`."""
    text = blocks(selection.path, compression, None)
    block = next(text)
    field, symmetry = _banner(block)
    block, start = _size_line(block, text)
    end = (block.text.find(b"\n", start) + 1) or len(block.text)
    n, entries = _size(block, start, block.text[start:end].strip())

    width = WIDTHS[field]
    names = ["source", "destination", "weight"][:width]
    found = selection.resolved(names, "weight" if width == 3 and not selection.unweighted else None)
    columns = [Column(position, names[position], "integer", zeros=True, largest=n) for position in (0, 1)]
    if found.weight is not None:
        columns.append(Column(2, "weight", "weight"))
    symmetric = symmetry == "symmetric"

    def check(block: Block, values: list[NDArray[Any]]) -> None:
        rows, columns, *weights = values
        if symmetric and (upper := np.flatnonzero(rows < columns)).size:
            row, column = rows[upper[0]], columns[upper[0]]
            block.fault_of(
                upper[0],
                f"entry ({row}, {column}) is above the diagonal. A symmetric matrix lists its lower triangle alone, of "
                "which each entry stands for its mirror image, too. Drop it, or write 'general' in the banner.",
            )
        if field == "integer" and weights and (broken := np.flatnonzero(weights[0] != np.floor(weights[0]))).size:
            block.fault_of(
                broken[0],
                f"column 'weight' has {weights[0][broken[0]]}, and the banner announces integers. Write 'real' in it.",
            )

    frame = read_columns(chain([block.part(end)], text), width, columns, check)
    if len(frame) != entries:
        block.fault(start, f"it announces {entries:,} entries, but {len(frame):,} follow.")
    return EdgeFile(
        frame, found.source_names, found.destination_names, found.weight_name,
        vertices=np.arange(1, n + 1), directed=not symmetric,
    )  # fmt: skip


def _banner(block: Block) -> tuple[str, str]:
    """Return the kind of the values, and the symmetry."""
    banner = block.text[: block.text.find(b"\n") + 1 or None][:1024].decode("latin-1").lower().split()
    if len(banner) != 5 or banner[0] != "%%matrixmarket":
        block.fault(0, "it is not the banner of a Matrix Market file, %%MatrixMarket matrix coordinate ...")
    kind, layout, field, symmetry = banner[1:]
    if kind != "matrix" or layout != "coordinate":
        block.fault(0, f"a {kind} in {layout} format cannot be ranked: only 'matrix coordinate' is read.")
    if field not in WIDTHS:
        block.fault(0, f"a matrix of {field} values cannot be ranked: they must be pattern, real or integer.")
    if symmetry not in ("general", "symmetric"):
        block.fault(
            0, f"a {symmetry} matrix cannot be ranked: it must be general or symmetric, of weights of at least 0."
        )
    return field, symmetry


def _size_line(block: Block, text: Iterator[Block]) -> tuple[Block, int]:
    """Find the first line after the banner that is neither empty nor a comment."""
    for each in chain([block], text):
        for start, _ in each.records():
            return each, start
    raise InvalidEdgesError(f"{block.name} has no size line: it is cut short.")


def _size(block: Block, start: int, line: bytes) -> tuple[int, int]:
    """Return the number of vertices and that of entries."""
    shown = repr(line[:60].decode("latin-1"))
    if not re.fullmatch(rb"\d+\s+\d+\s+\d+", line):
        block.fault(start, f"it is not a size line, rows columns entries: {shown}.")
    numbers = [number.lstrip(b"0") or b"0" for number in line.split()]
    if any(len(number) > 19 or int(number) >= 2**63 for number in numbers):
        block.fault(start, f"{shown} is more than 64 bits count.")
    rows, columns, entries = map(int, numbers)
    if rows != columns:
        block.fault(start, f"the matrix is {rows:,} x {columns:,}; that of a graph is square.")
    check_memory(VERTEX_BYTES * rows, f"{block.name}, line {block.line_at(start):,}: it announces {rows:,} vertices")
    return rows, entries
