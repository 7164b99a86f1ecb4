"""Duplicate rows, reverse edges and joined columns, compared with pandas and with lists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import prplugin
from prplugin.graph.dedup import (
    concatenated,
    drop_duplicates,
    joint_extent,
    oriented,
    pair_keys,
    reversed_edges,
    with_reverse_edges,
)  # fmt: skip
from prplugin.types.edges import ANY, Coo

N, M = 6, 60


def edges(m=M, *, weights=True, times=True, seed=0, extent=ANY):
    random = np.random.default_rng(seed)
    source, destination = random.integers(0, N, (2, m)).astype(np.int32)
    return Coo(
        source, destination, random.random(m) if weights else None, N, extent, times=random.random(m) if times else None
    )


def rows_of(found):
    return [
        None if column is None else column.tolist()
        for column in (found.source, found.destination, found.weights, found.times)
    ]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("keep", ["first", "last"])
@pytest.mark.parametrize("packs", [True, False])
def test_one_row_of_each_pair_stays_in_its_place(directed, keep, packs, monkeypatch):
    if not packs:
        monkeypatch.setattr("prplugin.graph.dedup.packs", lambda *_: False)
    given = edges()
    frame = pd.DataFrame({"src": given.source, "dst": given.destination})
    pairs = frame if directed else pd.DataFrame(np.sort(frame, axis=1))
    kept = np.flatnonzero(~pairs.duplicated(keep=keep))
    assert rows_of(drop_duplicates(given, keep, directed=directed)) == rows_of(given.take(kept))


@pytest.mark.parametrize("directed", [True, False])
def test_repeated_rows_are_refused_and_named(directed):
    given = edges()
    pairs = pd.DataFrame({"src": given.source, "dst": given.destination})
    repeated = np.flatnonzero((pairs if directed else pd.DataFrame(np.sort(pairs, axis=1))).duplicated())
    with pytest.raises(prplugin.InvalidEdgesError) as caught:
        drop_duplicates(given, "error", directed=directed)
    first = ", ".join(map(str, repeated[:5].tolist()))
    assert str(caught.value).startswith(f"{repeated.size} rows of the edge frame repeat a pair")
    assert first in str(caught.value)
    once = given.take(np.setdiff1d(np.arange(M), repeated))
    assert rows_of(drop_duplicates(once, "error", directed=directed)) == rows_of(once)
    with pytest.raises(prplugin.InvalidEdgesError, match=r"^1 row of the edge frame repeats a pair .* has: 1 \("):
        drop_duplicates(once.take([0, 0]), "error", directed=directed)
    assert drop_duplicates(given, "sum", directed=directed) is given


@pytest.mark.parametrize("loops", [True, False])
def test_each_edge_but_loops_gets_its_reverse(loops):
    given = edges(extent=(0.5, 2.0))
    if not loops:
        given = given.take(np.flatnonzero(given.source != given.destination))
    source, destination, weights, times = rows_of(given)
    back = [i for i in range(len(source)) if source[i] != destination[i]]
    found = with_reverse_edges(given)
    assert rows_of(found) == [
        source + [destination[i] for i in back], destination + [source[i] for i in back],
        weights + [weights[i] for i in back], times + [times[i] for i in back],
    ]  # fmt: skip
    assert found.extent == given.extent


def test_columns_that_both_have_are_joined():
    one = edges(3, extent=(0.5, 2.0))
    for weights in (True, False):
        for times in (True, False):
            other = edges(4, weights=weights, times=times, seed=1, extent=(0.25, 1.0))
            found = concatenated(one, other, np.array([3, 1]))
            assert found.source.tolist() == [*one.source.tolist(), other.source[3], other.source[1]]
            assert found.destination.tolist() == [*one.destination.tolist(), other.destination[3], other.destination[1]]
            assert (found.weights is None) == (not weights)
            assert (found.times is None) == (not times)
            assert found.extent == (0.25, 2.0)
            assert concatenated(other, one).m == 7
            assert (concatenated(other, one).weights is None) == (not weights)


def test_extents_of_weights_above_0():
    assert joint_extent((1.0, 2.0), (0.5, 1.5)) == (0.5, 2.0)
    assert joint_extent((1.0, 2.0), (0.0, 0.0)) == (1.0, 2.0)
    assert joint_extent((0.0, 0.0), (0.0, 0.0)) == ANY


def test_pairs_are_oriented_reversed_and_numbered():
    given = edges()
    low = [min(pair) for pair in zip(given.source.tolist(), given.destination.tolist(), strict=True)]
    high = [max(pair) for pair in zip(given.source.tolist(), given.destination.tolist(), strict=True)]
    assert rows_of(oriented(given))[:2] == [low, high]
    assert rows_of(reversed_edges(given)) == [rows_of(given)[at] for at in (1, 0, 2, 3)]
    keys = pair_keys(given, 2**31)
    assert keys.tolist() == [
        s * 2**31 + d for s, d in zip(given.source.tolist(), given.destination.tolist(), strict=True)
    ]
