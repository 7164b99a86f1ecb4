"""Decoding of the packed pieces of streamed.cu."""

from __future__ import annotations

import numpy as np

from prplugin.methods.engines import packed_rows as packing


def unpack(piece, bits):
    """Decode a piece as streamed.cu does, and return row, relative to the first, and source of each edge."""
    edges, runs = np.frombuffer(piece[:4].tobytes(), "<u2").tolist()
    counts = [runs, runs, edges]
    groups = [-(-count // packing.GROUP) for count in counts]
    widths = piece[4 : 4 + sum(groups)].tolist()
    offset, found = 4 + sum(groups), []
    for width in widths:
        word = int.from_bytes(piece[offset : offset + width].tobytes(), "little")
        found.append([word >> (width * place) & ((1 << width) - 1) for place in range(packing.GROUP)])
        offset += width
    assert 0 <= piece.size - offset < 16
    numbers = iter(found)
    lengths, gaps, steps = (
        [number for _ in range(group) for number in next(numbers)][:count]
        for group, count in zip(groups, counts, strict=True)
    )
    rows = np.cumsum(np.add(gaps, 1)) - 1
    return np.repeat(rows, np.add(lengths, 1)), np.cumsum(steps) % (1 << bits)
