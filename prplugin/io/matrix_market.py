"""Read Matrix Market coordinate files: rows are sources, and vertices are 1..n, including isolated vertices.

R. F. Boisvert, R. Pozo and K. A. Remington, "The Matrix Market exchange formats: initial design", NIST IR 5935, 1996.
"""

from __future__ import annotations

import re
from itertools import chain

import numpy as np

from prplugin.errors import InvalidEdgesError
from prplugin.io.blocks import Block, blocks, check_memory
from prplugin.io.selection import EdgeFile, Selection
from prplugin.io.text import Column, read_columns

FIELDS = {"pattern": 2, "real": 3, "double": 3, "integer": 3}
"""Number of fields per entry, by the type of the values in the banner."""

VERTEX_BYTES = 24
"""Lower bound of the bytes per vertex: id, rank and out-weight."""


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read a square matrix; see `prplugin.io.read_edges`."""
    text = blocks(selection.path, compression, None)
    banner = next(text)
    values, symmetric = _banner(banner)
    size = next(((block, *record) for block in chain([banner], text) for record in block.records()), None)
    if size is None:
        raise InvalidEdgesError(f"{banner.name} has no size line: it is cut short.")
    block, start, line = size
    n, entries = _size(block, start, line.strip())

    names = ["source", "destination", "weight"][: FIELDS[values]]
    found = selection.resolved(names, "weight" if len(names) == 3 and not selection.unweighted else None)
    columns = [Column(position, names[position], "integer", zeros=True, largest=n) for position in (0, 1)]
    if found.weight is not None:
        columns.append(Column(2, "weight", "weight"))

    def check(block: Block) -> None:
        rows, targets, *weights = (column.parts[-1].to_numpy() for column in columns)
        if symmetric and (upper := np.flatnonzero(rows < targets)).size:
            entry = f"entry ({rows[upper[0]]}, {targets[upper[0]]}) is above the diagonal."
            what = "A symmetric matrix lists only its lower triangle. Drop it, or write 'general' in the banner."
            block.fault_of(upper[0], f"{entry} {what}")
        if values == "integer" and weights and (fractional := np.flatnonzero(weights[0] != np.floor(weights[0]))).size:
            what = f"column 'weight' has {weights[0][fractional[0]]}, and the banner announces integers."
            block.fault_of(fractional[0], f"{what} Write 'real' in it.")

    frame, _ = read_columns(chain([block.part(start + len(line))], text), len(names), columns, check)
    if len(frame) != entries:
        block.fault(start, f"it announces {entries:,} entries, but {len(frame):,} follow.")
    return EdgeFile(frame, found, np.arange(1, n + 1), directed=not symmetric)


def _banner(block: Block) -> tuple[str, bool]:
    """Return the type of the values, and whether the matrix is symmetric."""
    banner = block.text[: block.text.find(b"\n")][:1024].decode("latin-1").lower().split()
    if len(banner) != 5 or banner[0] != "%%matrixmarket":
        block.fault(0, "it is not the banner of a Matrix Market file, %%MatrixMarket matrix coordinate ...")
    kind, layout, values, symmetry = banner[1:]
    if kind != "matrix" or layout != "coordinate":
        block.fault(0, f"a {kind} in {layout} format cannot be ranked: only 'matrix coordinate' is read.")
    if values not in FIELDS:
        block.fault(0, f"a matrix of {values} values cannot be ranked: they must be pattern, real or integer.")
    if symmetry not in ("general", "symmetric"):
        block.fault(0, f"a {symmetry} matrix cannot be ranked: it must be general or symmetric.")
    return values, symmetry == "symmetric"


def _size(block: Block, start: int, line: bytes) -> tuple[int, int]:
    """Return the numbers of vertices and of entries."""
    shown = repr(line[:60].decode("latin-1"))
    if not re.fullmatch(rb"\d+\s+\d+\s+\d+", line):
        block.fault(start, f"it is not a size line, rows columns entries: {shown}.")
    if len(line) > 4000 or max(map(int, line.split())) >= 2**63:
        block.fault(start, f"{shown} has a number of more than 64 bits.")
    rows, columns, entries = map(int, line.split())
    if rows != columns:
        block.fault(start, f"the matrix is {rows:,} x {columns:,}; an adjacency matrix is square.")
    check_memory(VERTEX_BYTES * rows, f"{block.name}, line {block.line_at(start):,}: it announces {rows:,} vertices")
    return rows, entries
