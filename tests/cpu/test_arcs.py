"""Sums of hashes of arcs, and faults of lists of neighbors, compared with integers of Python."""

from __future__ import annotations

import numpy as np
import pytest

from prplugin.cpu import kernels

MASK = (1 << 64) - 1


def hash_arc(source, target, weight):
    """Return the finalizer of splitmix64 of a sum of products of source and weight, and the target."""
    hashed = source * 0x9E3779B97F4A7C15 + target + (weight ^ weight >> 29) * 0xD6E8FEB86659FD93 & MASK
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashed = (hashed ^ hashed >> shift) * factor & MASK
    return hashed ^ hashed >> 31


ROWS = [[1, 2], [], [0, 3, 4], [3], [2, 1, 2], [0, 5]]
"""Neighbors of each vertex: vertex 3 is its own, vertex 4 has vertex 2 twice, and vertex 5 is its own as well."""


@pytest.mark.parametrize("wanted", [0, 1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("bounds", [[0, 6], [0, 2, 4, 6], [0, 0, 5, 6]])
@pytest.mark.parametrize("threads", [1, 3])
def test_sums_and_faults(wanted, weighted, index, bounds, threads):
    offsets = np.cumsum([0, *map(len, ROWS)])
    indices = np.concatenate(ROWS).astype(index)
    weights = np.random.default_rng(0).random(indices.size) if weighted else None
    bits = [0] * indices.size if weights is None else weights.view(np.uint64).tolist()
    parts, n = len(bounds) - 1, len(ROWS)
    for width in (0, n):
        sums, faults = np.full((parts, 2), 7), np.full(parts, 7)
        scratch = np.zeros((parts, width), index)
        kernels.check_arcs(
            offsets, indices, weights, np.array(bounds), scratch, sums, faults, wanted, threads
        )  # fmt: skip
        for part in range(parts):
            forward = backward = 0
            found = -1
            for row in range(bounds[part], bounds[part + 1]):
                for edge in range(offsets[row], offsets[row + 1]):
                    other = int(indices[edge])
                    forward += hash_arc(row, other, bits[edge])
                    backward += hash_arc(other, row, bits[edge])
                    again = other in indices[offsets[row] : edge]
                    if width and found < 0 and (other == row or again):
                        found = edge
            expected = forward * (wanted & 1) & MASK, backward * (wanted >> 1) & MASK
            assert tuple(sums[part].view(np.uint64).tolist()) == expected
            assert faults[part] == found
