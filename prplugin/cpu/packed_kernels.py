"""Sorting of in-edges by source, and their compression, compiled by Numba; streamed.cu documents the format."""

from __future__ import annotations

import numpy as np

from prplugin.cpu.memory import compiled


@compiled
def sort_rows(offsets, sources, position, weights, rows, sorted_sources, sorted_weights):
    """Write the sources of `rows`, sorted within each row, and their weights, unless None.

    Sources are mapped through `position` first, unless that is None. Parallel edges keep their order.
    """
    at = 0
    for row in rows:
        begin = at
        for edge in range(offsets[row], offsets[row + 1]):
            sorted_sources[at] = sources[edge] if position is None else position[sources[edge]]
            at += 1
        row_sources = sorted_sources[begin:at]
        if weights is None:
            row_sources.sort()
        else:
            unsorted = row_sources.copy()
            for place in np.argsort(unsorted, kind="mergesort"):
                sorted_sources[begin] = unsorted[place]
                sorted_weights[begin] = weights[offsets[row] + place]
                begin += 1


@compiled
def pack(starts, sources, bits, size, begin, end, first_row, packed, pieces):
    """Pack the edges begin..end of consecutive rows, in pieces of `size` edges; return the number of bytes written.

    The edges of row ``first_row + k`` of the graph are starts[k]..starts[k + 1].

    `bits`: bits of a source, at most.
    `packed` (array of uint8): zeroed, and large enough for all edges.
    `pieces` (array of int64, one row per piece): receives the byte offset of each piece in `packed`, and its first row.
    """
    mask = (1 << bits) - 1
    lengths, gaps, steps = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    row = np.searchsorted(starts, begin, "right") - 1
    at = 0
    for piece in range(pieces.shape[0]):
        first, last = begin + piece * size, min(begin + (piece + 1) * size, end)
        while starts[row + 1] <= first:
            row += 1
        pieces[piece, 0], pieces[piece, 1] = at, first_row + row
        before, runs, edge = row, 0, first
        while True:
            stop = min(starts[row + 1], last)
            if stop > edge:
                lengths[runs] = stop - edge - 1
                gaps[runs] = 0 if runs == 0 else row - before - 1
                before = row
                runs += 1
                edge = stop
            if edge == last:
                break
            row += 1
        previous = 0
        for edge in range(first, last):
            steps[edge - first] = (sources[edge] - previous) & mask
            previous = sources[edge]
        edges = last - first
        packed[at], packed[at + 1], packed[at + 2], packed[at + 3] = edges & 255, edges >> 8, runs & 255, runs >> 8
        widths = at + 4
        at = widths + 2 * ((runs + 7) // 8) + (edges + 7) // 8
        widths, at = _pack_groups(lengths, runs, packed, widths, at)
        widths, at = _pack_groups(gaps, runs, packed, widths, at)
        widths, at = _pack_groups(steps, edges, packed, widths, at)
        at = (at + 15) & ~15
    return at


@compiled
def _pack_groups(values, count, packed, widths, at):
    """Write numbers in groups of eight, each group in the bits of its widest; return the ends of widths and data."""
    for group in range(0, count, 8):
        size = min(8, count - group)
        together = 0
        for k in range(size):
            together |= values[group + k]
        width = 0
        while together >> width:
            width += 1
        packed[widths] = width
        widths += 1
        held, word = 0, 0
        for k in range(size):
            word |= values[group + k] << held
            held += width
            while held >= 8:
                packed[at] = word & 255
                at += 1
                word >>= 8
                held -= 8
        if size < 8:  # the group is padded with zeros
            left = width - (size * width) // 8
            for _ in range(left):
                packed[at] = word & 255
                at += 1
                word >>= 8
    return widths, at
