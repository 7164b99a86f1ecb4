"""Random histories of updates, compared with a graph of the remaining rows: decaying, zero, faint and repeated edges."""

from __future__ import annotations

from collections import Counter
from copy import copy
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from distributed_ranks import assert_same_ranks, rank_distributed
from hypothesis import given, settings
from hypothesis import strategies as st
from method_params import examples
from rational_pagerank import distance, solve

import prplugin
from prplugin.errors import InvalidEdgesError

COLUMNS = ["src", "dst", "w", "at"]
TIMES = [0, 1, 30, 600, 850, 1400, 1401, 3000]
WEIGHTS = [0.0, 5e-324, 1e-300, 0.75, 1.0, 2.0, 1e150]
ROW = st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(WEIGHTS), st.sampled_from(TIMES))
CHANGES = st.lists(
    st.tuples(st.lists(ROW, max_size=3), st.lists(st.integers(0, 20), max_size=4, unique=True)), max_size=5
)


def frame(rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).astype(
        dict(zip(COLUMNS, ("int64", "int64", "float64", "int64"), strict=True))
    )


def exact_weights(rows, columns, *, decays):
    """Return the weight of each row without rounding, relative to those of one vertex."""
    now = max((at for *_, at in rows), default=0)
    return [Fraction(w if "w" in columns else 1) * (Fraction(2) ** (at - now) if decays else 1) for *_, w, at in rows]


def entries(compressed, *, by_target):
    """Return how often there is each edge and weight."""
    major = np.repeat(np.arange(compressed.offsets.size - 1), np.diff(compressed.offsets)).tolist()
    minor = compressed.indices.tolist()
    pairs = zip(minor, major, strict=True) if by_target else zip(major, minor, strict=True)
    # A faint weight is 0, where its reverse need not be faint.
    weights = [1.0] * len(minor) if compressed.weights is None else [w * (w > 2.0**-400) for w in compressed.weights]
    return Counter(zip(pairs, weights, strict=True))


@settings(max_examples=examples(120), deadline=None)
@given(data=st.data(), rows=st.lists(ROW, max_size=10), changes=CHANGES)
def test_histories_end_in_the_graph_of_the_remaining_rows(data, rows, changes):
    directed, decays, weighted, named = (data.draw(st.booleans()) for _ in range(4))
    columns = ["src", "dst", *(["w"] if weighted else []), *(["at"] if decays else [])]
    options = {"directed": directed, "weight": "w" if weighted else None} | (
        {"time": "at", "half_life": 1} if decays else {}
    )
    graph = prplugin.Graph(frame(rows)[columns], vertices=range(4), **options)
    graph.rank()
    for added, chosen in changes:
        removed = [rows[row] for row in chosen if row < len(rows)]
        remaining = [row for place, row in enumerate(rows) if place not in chosen]
        if not named:  # any edge of a pair: only where there is one
            pairs = Counter((u, v) if directed else (min(u, v), max(u, v)) for u, v, *_ in rows)
            if any(pairs[(u, v) if directed else (min(u, v), max(u, v))] > 1 for u, v, *_ in removed):
                continue
        try:
            graph.update(add=frame(added)[columns], remove=frame(removed)[columns if named else columns[:2]])
        except InvalidEdgesError as error:
            if "older than those removed" not in str(error):
                raise
            continue
        rows = remaining + added
        found = graph.rank(method=data.draw(st.sampled_from(["auto", "native"])))
        expected = prplugin.Graph(frame(rows)[columns], vertices=range(4), **options)
        weights = exact_weights(rows, columns, decays=decays)
        both = [(u, v, w) for (u, v, *_), w in zip(rows, weights, strict=True)]
        both += [] if directed else [(v, u, w) for u, v, w in both if u != v]
        exact = solve(4, both, 0.85)
        for ranking in (found, expected.rank()):
            assert distance(ranking.ranks, exact) <= Fraction(ranking.error_bound) <= Fraction(1e-6)
        present = entries(graph.csr(), by_target=False)
        assert present == entries(graph.csc(), by_target=True)
        assert present == entries(expected.csr(), by_target=False)
        if not directed:
            assert present == Counter({((v, u), w): count for ((u, v), w), count in present.items()})
        with pytest.raises(InvalidEdgesError, match="that the graph does not have"):  # no other edge goes instead
            graph.update(remove=frame([*rows, (0, 1, 0.5, 29) if not rows else (*rows[0][:2], 0.3, 2)])[columns])


@pytest.mark.parametrize("times", [[0, 1, 5], [1, 0, 1], [400, 0, 300]])
@pytest.mark.parametrize("newest", [[0], [1], [0, 1]])
def test_edge_of_any_weight_goes_both_ways(times, newest):
    """Of parallel edges of which some are faint in one direction or in both, one and the same loses both ways."""
    parallel = [(0, 1, 0.75, at) for at in times] + [(1, 0, 0.0, 3)]
    others = [*((vertex, 2, 1.0, 1400) for vertex in newest), (2, 2, 1.0, 0)]
    options = {"weight": "w", "time": "at", "half_life": 1, "directed": False}
    graph = prplugin.Graph(frame([*parallel, *others]), **options)
    graph.update(remove=frame(parallel)[["src", "dst"]].iloc[:1])
    gone = []
    for row in range(len(parallel)):
        rest = [*parallel[:row], *parallel[row + 1 :]]
        changed = copy(graph)
        try:
            changed.update(remove=frame(rest))
        except InvalidEdgesError:
            continue
        gone.append(parallel[row])
        assert entries(changed.csr(), by_target=False) == entries(
            prplugin.Graph(frame(others), vertices=range(3), **options).csr(), by_target=False
        )
    assert len(set(gone)) == 1


NEW, OLD = 1400, 0
CASES = {
    "old": [(0, 1, 1.0, NEW), (0, 1, 1.0, OLD), (0, 2, 1.0, NEW), (1, 2, 1.0, NEW)],
    "zero": [(0, 1, 1.0, NEW), (0, 1, 0.0, NEW), (0, 2, 1.0, NEW), (1, 2, 1.0, NEW)],
    "tiny": [(0, 1, 1.0, NEW), (0, 1, 1e-290, NEW), (0, 2, 1.0, NEW), (1, 2, 1.0, NEW)],
}


@pytest.mark.parametrize("size", [None, 1, 2])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("rows", CASES.values(), ids=CASES)
def test_faint_edge_is_removed_and_not_one_beside_it(rows, directed, size):
    """Regression test: the reverse of another edge was removed, with a false bound."""
    options = {"weight": "w", "time": "at", "half_life": 1, "directed": directed}
    rest = frame([rows[0], *rows[2:]])
    expected = rest.pagerank(tol=1e-10, **options)
    removed = frame(rows).iloc[[1]]
    if size is not None:
        found, _ = rank_distributed(frame(rows), size, changes=[(None, removed)], tol=1e-10, **options)
        assert_same_ranks(found, expected, 3e-10)
        with pytest.raises(InvalidEdgesError, match="remove has 1 edge that the graph does not have: 0 -> 1 of weight"):
            rank_distributed(frame(rows), size, changes=[(None, removed), (None, removed)], **options)
        return
    graph = prplugin.Graph(frame(rows), **options)
    graph.update(remove=removed)
    assert np.abs(graph.rank(tol=1e-10).ranks - expected["pagerank"]).sum() <= 2e-10
    assert entries(graph.csr(), by_target=False) == entries(prplugin.Graph(rest, **options).csr(), by_target=False)
    with pytest.raises(InvalidEdgesError, match="remove has 1 edge that the graph does not have: 0 -> 1 of weight"):
        graph.update(remove=removed)


@pytest.mark.parametrize("size", [None, 2])
def test_last_weight_above_zero_is_removed(size):
    """Regression test: it was refused, since the others were taken for edges that are much older."""
    rows = frame([(0, 1, 1.0, 5), (0, 2, 0.0, 5), (1, 0, 1.0, 5), (2, 1, 1.0, 5)])
    options = {"weight": "w", "time": "at", "half_life": 1}
    more = frame([(0, 2, 1.0, -4000), (0, 1, 3.0, -4000)])  # becomes the first above 0
    changes = [(None, rows.iloc[[0]]), (more, None)]
    for count in (1, 2):
        if size is None:
            graph = prplugin.Graph(rows, **options)
            for add, remove in changes[:count]:
                graph.update(add, remove)
            found = graph.rank(tol=1e-10).frame
        else:
            found, _ = rank_distributed(rows, size, changes=changes[:count], tol=1e-10, **options)
        whole = pd.concat([rows.iloc[1:], *[more][: count - 1]])
        assert_same_ranks(found, whole.pagerank(tol=1e-10, vertices=[0, 1, 2], **options), 3e-10)


@pytest.mark.parametrize("size", [None, 2])
def test_removals_in_steps_do_not_make_faint_edges_count(size):
    """The latest edges go one after the other, each a few hundred half-lives older, until faint ones might count."""
    rows = frame(
        [(0, 1, 1.0, 100), (0, 2, 1.0, 101), (0, 3, 1.0, 180), (0, 1, 1.0, 700), (0, 3, 1.0, 1200), (1, 0, 1.0, 0)]
    )
    options = {"weight": "w", "time": "at", "half_life": 1}
    changes = [(None, rows.iloc[[row]]) for row in (4, 3)]

    def ranks(count):
        if size is not None:
            return rank_distributed(rows, size, changes=changes[:count], tol=1e-10, **options)[0]
        graph = prplugin.Graph(rows, **options)
        for _, remove in changes[:count]:
            graph.update(remove=remove)
        return graph.rank(tol=1e-10).frame

    assert_same_ranks(ranks(1), rows.drop(4).pagerank(tol=1e-10, **options), 3e-10)
    with pytest.raises(InvalidEdgesError, match=r"1 vertex \(0\) with edges that are hundreds of half-lives older"):
        ranks(2)
