"""`expanded`: rows of several pieces, pieces of several rows, empty rows. Piece boundaries are tested without a GPU."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from method_params import param

import prplugin
from prplugin.cpu.sorting import offsets_of
from prplugin.graph.adjacency import Adjacency
from prplugin.papers.expanded import ExpandedPull, cut
from prplugin.types.edges import Edges

EXPANDED = [param("expanded")]

IN_DEGREES = {
    "one vertex": [0],
    "self-loop": [1],
    "no edges": [0] * 5,
    "short rows": [1, 3, 2, 7, 5] * 50,
    "rows of one piece": [32] * 9,
    "pieces that end where rows end": [20, 12, 30, 2, 64, 1, 31],
    "rows of one large piece": [2048, 2048, 1, 2047, 4096],
    "row across two pieces": [31, 2, 31],
    "hub": [0, 5, 100_000, 2, 0],
    "adjacent hubs": [10_000, 3_333, 0, 6_667, 2048, 1],
    "empty rows at both ends": [0] * 3_000 + [3] + [0] * 3_000,
    "empty rows between pieces": [32] + [0] * 500 + [33] + [0] * 2 + [31] + [0] * 5_000,
    "all lengths": [*range(130)],
}


def graph(in_degrees: list[int], weighted: bool) -> Adjacency:
    """Return a graph of these in-degrees with shuffled edges; weights are integers, so that their sums are exact."""
    random = np.random.default_rng(len(in_degrees))
    n, m = len(in_degrees), sum(in_degrees)
    target = random.permutation(np.repeat(np.arange(n, dtype=np.int32), in_degrees))
    source = random.integers(0, n, m, np.int32)
    return Adjacency(Edges(source, target, random.integers(0, 9, m).astype(float) if weighted else None, n))


def row_sums(adjacency: Adjacency, contributions: np.ndarray) -> list[float]:
    """Return the sum of each row, rounded once."""
    offsets, sources, weights = adjacency.csc
    terms = contributions[sources].astype(float)
    if weights is not None:
        of_source = adjacency.out_weight[sources]
        normalized_weights = np.divide(weights, of_source, out=np.zeros(of_source.size), where=of_source > 0)
        terms *= normalized_weights.astype(contributions.dtype)
    return [math.fsum(terms[begin:end]) for begin, end in pairwise(offsets)]


def assert_sums(sums: np.ndarray, expected: list[float]) -> None:
    np.testing.assert_allclose(sums, expected, rtol=3 * 2.0**-53, atol=0)


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


def web() -> pd.DataFrame:
    """Return edges with a hub of many pieces, parallel edges, self-loops, dangling vertices and empty rows."""
    random = np.random.default_rng(3)
    target = np.append(np.zeros(100_000, np.int64), (3_000 * random.random(30_000) ** 4).astype(np.int64))
    source = random.integers(0, 4_000, target.size)
    return pd.DataFrame({"src": source, "dst": target, "w": random.random(target.size)})


PROBLEMS = {
    "plain": {},
    "weighted": {"weight": "w"},
    "undirected": {"directed": False},
    "weighted, undirected": {"weight": "w", "directed": False},
    "personalized": {"personalization": {7: 1.0, 0: 2.0}},
    "weighted, dangling vector": {"weight": "w", "dangling": {5: 1.0}},
}


def assert_agrees_with_numpy(frame: pd.DataFrame, method: str, dtype: str, problem: dict, **options) -> bytes:
    """Check that ranks agree with `numpy` within both error bounds, and return their bits."""
    graph_options = {name: problem[name] for name in problem if name in {"weight", "directed"}}
    rank_options = {name: problem[name] for name in problem if name not in graph_options}
    built = prplugin.Graph(frame, **graph_options)
    tol = 1e-10 if dtype == "float64" else 1e-6
    other = built.rank(method="numpy", dtype=dtype, tol=tol, **rank_options)
    ranking, again = (built.rank(method=method, dtype=dtype, tol=tol, **rank_options, **options) for _ in range(2))
    distance = np.abs(ranking.ranks.astype(float) - other.ranks.astype(float)).sum()
    assert distance <= ranking.error_bound + other.error_bound <= 2 * tol
    assert ranking.ranks.tobytes() == again.ranks.tobytes()
    return ranking.ranks.tobytes()


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
