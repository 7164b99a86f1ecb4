"""Read serialized graphs of the GAP benchmark suite: .sg, and .wsg with weights.

S. Beamer, K. Asanovic and D. Patterson, "The GAP benchmark suite", arXiv:1508.03619, and `src/reader.h` of its code.
In the byte order of x86: one byte that is 1 if the graph is directed, the numbers of arcs m and of vertices n (int64),
n + 1 offsets (int64) and m targets (int32; in .wsg pairs of target and weight); and if it is directed, offsets and
sources of the in-edges likewise.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError
from prplugin.graph.adjacency import group_sizes
from prplugin.io.adjacency import (
    AdjacencyFile,
    arc_columns,
    check_indices,
    check_offsets,
    check_weights,
    numbered,
    of_in_edges,
    read_rows,
)
from prplugin.io.blocks import check_memory
from prplugin.io.formats import errors_named
from prplugin.io.selection import Selection
from prplugin.types.compressed import Compressed
from prplugin.types.edges import Integers

HEADER_BYTES = 17


def read(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a graph; see `prplugin.io.read_edges`. Of an unweighted directed one the in-edges are used as they lie."""
    name = selection.name
    if compression is not None or not Path(selection.path).is_file():
        raise InvalidOptionError(f"{name}: a serialized graph of GAP is an uncompressed file: decompress it first.")
    weighted = Path(name).suffix.lower() == ".wsg"
    with errors_named(name), open(selection.path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES or header[0] > 1:
            raise InvalidEdgesError(
                f"{name} is no serialized graph of GAP: its first byte is 0 or 1, and two numbers follow."
            )
        directed, (m, n) = bool(header[0]), np.frombuffer(header[1:], "<i8").tolist()
        entry_bytes = 8 if weighted else 4
        list_bytes = 8 * (n + 1) + entry_bytes * m
        expected = HEADER_BYTES + (1 + directed) * list_bytes
        if not (0 <= n < 2**31 and m >= 0 and size == expected):
            kind = f"a {'directed' if directed else 'undirected'} graph of {n:,} vertices and {m:,} arcs"
            raise InvalidEdgesError(
                f"{name} has {size:,} bytes, but {kind}, as it announces, takes {expected:,}. It is cut short or "
                "damaged, or has ids of 64 bits."
            )
        check_memory(list_bytes + 8 * m, f"{name} announces {m:,} arcs")
        columns = arc_columns(selection, weighted=weighted)
        offsets = _array(file, n + 1, "<i8")
        check_offsets(selection, offsets, m)
        # Weights are read by source, in the order of the file, so that rounding does not depend on which list is used.
        if directed and not weighted and columns.source == [0]:
            file.seek(entry_bytes * m, 1)
            out_degrees = np.diff(offsets)
            rows = _rows(selection, file, n, m, weighted=False)
            if (wrong := np.flatnonzero(group_sizes(rows.indices, n) != out_degrees)).size:
                raise InvalidEdgesError(
                    f"{name}: its lists of out-edges and of in-edges differ in the out-degree of vertex "
                    f"{int(wrong[0]):,}. The file is damaged."
                )
            adjacency = of_in_edges(rows, out_degrees.astype(np.float64))
            return AdjacencyFile(adjacency, numbered(n), columns)
        return read_rows(selection, _rows(selection, file, n, m, weighted=weighted, offsets=offsets))


def _rows(
    selection: Selection, file: IO[bytes], n: int, m: int, *, weighted: bool, offsets: Integers | None = None
) -> Compressed:
    """Read and check a list, after its offsets if these are given."""
    if offsets is None:
        offsets = _array(file, n + 1, "<i8")
        check_offsets(selection, offsets, m)
    entries = _array(file, 2 * m if weighted else m, "<i4")
    indices = np.ascontiguousarray(entries[::2]) if weighted else entries
    check_indices(selection, indices, n)
    weights = entries[1::2].astype(np.float64) if weighted else None
    if weights is not None:
        check_weights(selection, weights)
    return Compressed(offsets, indices, weights)


def _array(file: IO[bytes], count: int, dtype: str) -> Integers:
    """Read an array. A map of the file would not do: nothing in it is aligned."""
    found = np.fromfile(file, dtype, count)
    return found.astype(found.dtype.newbyteorder("="), copy=False)
