"""Read text of adjacency lists, as of METIS and Ligra: numbers in lines with any number of fields."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from prplugin.cpu.numbers import Numbers, Text
from prplugin.cpu.sorting import offsets_of, rows_of
from prplugin.errors import InvalidEdgesError
from prplugin.io.adjacency import AdjacencyFile, check_indices, check_offsets, read_rows, require_kernels
from prplugin.io.blocks import check_memory, content
from prplugin.io.formats import errors_named
from prplugin.io.selection import Selection
from prplugin.machine import this_machine
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Floats, Integers, index_dtype

BYTES_PER_THREAD = 1 << 20
TOKEN_BYTES = 24
"""Bytes per number: the number, and then arrays of the graph."""

WORDS = (b"AdjacencyGraph", b"WeightedAdjacencyGraph")

HEADER = re.compile(
    rb"(?:%[^\n]*\n|[ \t\r]*\n)*"
    rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+([01]{1,3})(?:[ \t]+(\d{1,4}))?)?[ \t\r]*(?:\n|\Z)"
)
LONGEST_HEADER = 1 << 16


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


def read_ligra(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a graph of Ligra or of the Problem Based Benchmark Suite: AdjacencyGraph or WeightedAdjacencyGraph.

    J. Shun and G. E. Blelloch, "Ligra: a lightweight graph processing framework for shared memory", PPoPP 2013. After
    the word follow, in any lines, the numbers of vertices n and of arcs m, n offsets, m targets and, if weighted, m
    weights.
    """
    text = AdjacencyText(selection, compression)
    line = bytes(text.bytes[:64]).split(b"\n")[0]
    if (word := line.strip()) not in WORDS:
        text.fault(0, "the first line of a file of Ligra is AdjacencyGraph or WeightedAdjacencyGraph.")
    weighted = word == WORDS[1]
    values = text.numbers(len(line) + 1).values
    if values.size < 2:
        text.fault(text.bytes.size, "the numbers of vertices and of arcs are missing: the file is cut short.")
    n, m = values[:2].tolist()
    expected = 2 + n + m * (1 + weighted)
    if values.size != expected or n != int(n):
        text.fault(
            text.bytes.size,
            f"{n:,.15g} vertices and {m:,.15g} arcs{', weighted,' if weighted else ''} take {expected:,.15g} numbers, "
            f"but the file has {values.size:,}.",
        )
    n, m = int(n), int(m)
    offsets = np.append(values[2 : 2 + n], m).astype(np.int64)
    check_offsets(selection, offsets, m)
    indices = as_vertices(selection, values[2 + n : 2 + n + m], n, 0)
    return read_rows(selection, Compressed(offsets, indices, values[2 + n + m :].copy() if weighted else None))


def read_metis(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a graph of METIS, as KaHIP, NetworKit and others write them, too.

    G. Karypis, "METIS: a software package for partitioning unstructured graphs", manual of version 5.1, section 4.1.
    The first line that is no comment (%) has the numbers of vertices and of edges, perhaps three digits that say
    whether there are sizes and weights of vertices and weights of edges, and the number of weights per vertex. Each
    further line has the neighbors of a vertex, from 1, after its size and weights; each edge is listed by both ends.
    """
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
