"""Read graphs of METIS, as KaHIP, NetworKit and others write them, too.

G. Karypis, "METIS: a software package for partitioning unstructured graphs", manual of version 5.1, section 4.1. The
first line that is no comment (%) has the numbers of vertices and of edges, perhaps three digits that say whether there
are sizes and weights of vertices and weights of edges, and the number of weights per vertex. Each further line has the
neighbors of a vertex, from 1, after its size and weights; each edge is listed by both ends.
"""

from __future__ import annotations

import re

import numpy as np

from prplugin.cpu.sorting import offsets_of, rows_of
from prplugin.io.adjacency import AdjacencyFile, read_rows
from prplugin.io.adjacency_text import AdjacencyText, as_vertices
from prplugin.io.selection import Selection
from prplugin.types.compressed import Compressed

HEADER = re.compile(
    rb"(?:%[^\n]*\n|[ \t\r]*\n)*"
    rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+([01]{1,3})(?:[ \t]+(\d{1,4}))?)?[ \t\r]*(?:\n|\Z)"
)
LONGEST_HEADER = 1 << 16


def read(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a graph; see `prplugin.io.read_edges`."""
    text = AdjacencyText(selection, compression)
    header = HEADER.match(bytes(text.bytes[:LONGEST_HEADER]))
    if header is None:
        text.fault(
            0,
            "it is not the header of a METIS file, two to four integers. (A .graph file of WebGraph needs its "
            ".properties file beside it.)",
        )
    n, edges = int(header[1]), int(header[2])
    sizes, vertex_weights, weighted = (digit == "1" for digit in (header[3] or b"").decode().zfill(3))
    numbers = text.numbers(header.end(), "%")
    values, starts = numbers.values, numbers.lines
    if starts.size - 1 < n or starts[n] != values.size:
        lines = starts.size - 1 if starts.size - 1 < n else int(np.searchsorted(starts, values.size))
        text.fault(text.bytes.size, f"the header announces {n:,} vertices, but {lines:,} lines follow.")
    starts = starts[: n + 1]
    skipped = sizes + (int(header[4] or 1) if vertex_weights else 0)
    fields = np.diff(starts) - skipped
    if (wrong := np.flatnonzero((fields < 0) | (weighted & fields % 2 != 0))).size:
        expected = f"{skipped} numbers of the vertex" if skipped else "no numbers of the vertex"
        expected += " and pairs of neighbor and weight" if weighted else " and its neighbors"
        text.fault(
            _position(text, header.end(), int(wrong[0])),
            f"vertex {int(wrong[0]) + 1:,} has {int(fields[wrong[0]]) + skipped:,} numbers, but the header announces "
            f"{expected}.",
        )
    if skipped:
        first = starts[:-1][rows_of(starts)]
        values = values[np.arange(values.size) - first >= skipped]
    offsets = offsets_of(fields // 2 if weighted else fields)
    if int(offsets[-1]) != 2 * edges:
        text.fault(
            text.bytes.size,
            f"the header announces {edges:,} edges, so {2 * edges:,} neighbors, but the lines have "
            f"{int(offsets[-1]):,}.",
        )
    indices = as_vertices(selection, values[::2] if weighted else values, n, 1)
    return read_rows(selection, Compressed(offsets, indices, values[1::2].copy() if weighted else None), first=1)


def _position(text: AdjacencyText, first: int, line: int) -> int:
    """Return the position of a line that is no comment, counted from 0 after the header."""
    position: int = first
    for piece in bytes(text.bytes[first:]).splitlines(keepends=True):
        if not piece.startswith(b"%"):
            if line == 0:
                break
            line -= 1
        position += len(piece)
    return position
