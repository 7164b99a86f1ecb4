"""Read graphs of Ligra and of the Problem Based Benchmark Suite: AdjacencyGraph and WeightedAdjacencyGraph.

J. Shun and G. E. Blelloch, "Ligra: a lightweight graph processing framework for shared memory", PPoPP 2013. After the
word follow, in any lines, the numbers of vertices n and of arcs m, n offsets, m targets and, if weighted, m weights.
"""

from __future__ import annotations

import numpy as np

from prplugin.io.adjacency import AdjacencyFile, check_offsets, read_rows
from prplugin.io.adjacency_text import AdjacencyText, as_vertices
from prplugin.io.selection import Selection
from prplugin.types.compressed import Compressed

WORDS = (b"AdjacencyGraph", b"WeightedAdjacencyGraph")


def read(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a graph; see `prplugin.io.read_edges`."""
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
