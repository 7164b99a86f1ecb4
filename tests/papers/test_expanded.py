"""`expanded`: rows of several pieces, pieces of several rows, empty rows. Piece boundaries are tested without a GPU."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_degrees import IN_DEGREES, PROBLEMS, assert_agrees_with_numpy, assert_sums, graph, row_sums, web
from method_params import param

import prplugin
from prplugin.cpu.sorting import offsets_of
from prplugin.papers.expanded import ExpandedPull, cut

EXPANDED = [param("expanded")]


# --- piece boundaries ---------------------------------------------------------------------------------------------


def reference_row_sums(offsets: np.ndarray, size: int, terms: np.ndarray) -> list[int | None]:
    """Return row sums by the algorithm of pieces.cuh; None is a row not written, a row written twice fails."""
    pieces = cut(offsets, size, np.int32)
    sums: list[int | None] = [None] * (offsets.size - 1)
    partials = []

    def write(run: int, value: int) -> None:
        assert sums[pieces.rows[run]] is None
        sums[pieces.rows[run]] = value

    for piece in range(pieces.heads.size - 1):
        begin, end = piece * size, min((piece + 1) * size, terms.size)
        first, last = pieces.heads[piece], pieces.heads[piece + 1]
        front = tail = 0
        for run in range(first, last + 1):
            value = int(terms[max(pieces.starts[run], begin) : max(begin, min(pieces.starts[run + 1], end))].sum())
            if run == last:
                tail = value
            elif pieces.starts[run] < begin:
                assert run == first
                front = value
            else:
                write(run, value)
        partials += [front, tail]
    for piece in range(pieces.heads.size - 1):
        run = pieces.heads[piece]
        first_piece = int(pieces.starts[run]) // size
        if run != pieces.heads[piece + 1] and first_piece != piece:
            write(run, sum(partials[2 * first_piece + 1 : 2 * piece + 1]))
    return sums


@given(
    in_degrees=st.lists(st.sampled_from([0, 0, 1, 2, 3, 7, 8, 9, 16, 50]), min_size=1, max_size=30),
    size=st.sampled_from([1, 2, 8, 9, 1000]),
)
def test_every_row_with_edges_is_written_once(in_degrees, size):
    terms = 2 ** np.arange(sum(in_degrees), dtype=object)  # no two sets of them have the same sum
    offsets = offsets_of(np.array(in_degrees))
    expected = [int(terms[begin:end].sum()) for begin, end in pairwise(offsets)]
    assert reference_row_sums(offsets, size, terms) == [value or None for value in expected]


@pytest.mark.parametrize("offset", [np.int32, np.int64])
@pytest.mark.parametrize("in_degrees", IN_DEGREES.values(), ids=IN_DEGREES)
def test_pieces_meet_requirements_of_kernels(in_degrees, offset):
    offsets = offsets_of(np.array(in_degrees)).astype(offset)
    pieces = cut(offsets, 32, np.int32)
    assert pieces.heads.size - 1 == -(-sum(in_degrees) // 32)
    assert (pieces.rows.dtype, pieces.starts.dtype, pieces.heads.dtype) == (np.int32, offset, np.int64)
    assert pieces.starts.size == pieces.rows.size + 2
    assert pieces.starts[-1] == pieces.starts[-2] == sum(in_degrees)
    assert pieces.heads[-1] == pieces.rows.size
    assert np.diff(pieces.heads).max(initial=0) <= 32


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("piece_bytes", 100, "piece_bytes must be a positive multiple of 256 and at most 32,768, not 100."),
        ("piece_bytes", 65_536, "piece_bytes must be a positive multiple of 256 and at most 32,768, not 65536."),
        ("piece_bytes", 0, "piece_bytes must be a positive multiple of 256 and at most 32,768, not 0."),
        ("piece_bytes", "16 KB", "piece_bytes must be a positive multiple of 256 and at most 32,768, not '16 KB'."),
        ("threads", 48, "threads must be a positive multiple of 32 and at most 1,024, not 48."),
        ("threads", True, "threads must be a positive multiple of 32 and at most 1,024, not True."),
    ],
)
def test_invalid_options_raise(option, value, message):
    with pytest.raises(prplugin.InvalidOptionError) as caught:
        ExpandedPull(graph([1, 2], False), **{option: value})
    assert str(caught.value) == message


# --- on the GPU ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", EXPANDED)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("in_degrees", IN_DEGREES.values(), ids=IN_DEGREES)
def test_row_sums(method, in_degrees, weighted):
    import cupy

    host = graph(in_degrees, weighted)
    x = np.random.default_rng(1).random(host.n)
    for piece_bytes in (256, 2048, 16_384, 32_768):
        pull = ExpandedPull(host.on("device"), piece_bytes=piece_bytes)
        for dtype in ("float64", "float32", "float64"):
            contributions = x.astype(dtype)
            expected = row_sums(host, contributions)
            before = None
            for _ in range(2):
                pull._partials.fill(math.nan)
                sums = cupy.full(host.n, math.nan)
                pull(cupy.asarray(contributions), sums)
                assert_sums(sums.get(), expected)
                assert before in {None, sums.get().tobytes()}
                before = sums.get().tobytes()


@pytest.mark.parametrize("method", EXPANDED)
@pytest.mark.parametrize("weighted", [False, True])
def test_bits_do_not_depend_on_block_size(method, weighted):
    import cupy

    host = graph([0, 70_000, *range(200), 5_000, 0, 0, 33], weighted)
    contributions = cupy.asarray(np.random.default_rng(2).random(host.n))
    bits = set()
    for threads in (32, 64, 128, 256, 1024):
        sums = cupy.full(host.n, math.nan)
        ExpandedPull(host.on("device"), threads=threads)(contributions, sums)
        bits.add(sums.get().tobytes())
    assert len(bits) == 1


@pytest.mark.parametrize("method", EXPANDED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_ranks_agree_with_numpy(method, dtype, problem):
    assert_agrees_with_numpy(web(), method, dtype, problem)
    assert_agrees_with_numpy(web(), method, dtype, problem, piece_bytes=256, threads=64)


@pytest.mark.parametrize("method", EXPANDED)
def test_star(method):
    leaves = np.arange(1, 100_001)
    star = pd.DataFrame({"src": leaves, "dst": np.zeros_like(leaves)})
    assert_agrees_with_numpy(star, method, "float64", {}, piece_bytes=256)
    assert_agrees_with_numpy(star, method, "float64", {"directed": False})
