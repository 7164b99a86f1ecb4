"""Sizes past 2**31 edges or vertices, computed without building such a graph: integer types and provable tolerances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from method_params import METHODS, same_ranks

import prplugin
from prplugin.cpu.sorting import offsets_of, packs, stable_order
from prplugin.graph.dedup import drop_duplicates
from prplugin.numerics import StepRounding, group_sum_depth, rounding_depth
from prplugin.solver.certificate import Certificate
from prplugin.types.edges import Coo, index_dtype


def test_index_dtype_widens_at_2_31_vertices():
    assert index_dtype(2**31 - 1) == np.int32
    assert index_dtype(2**31) == np.int64


def test_offsets_exceed_2_31_edges():
    offsets = offsets_of(np.full(5, 2**30, np.int32))
    assert offsets.tolist() == [i * 2**30 for i in range(6)]


def test_keys_are_packed_only_if_key_and_position_fit():
    assert packs(2**31 - 1, 2**31)
    assert not packs(2**32, 2**31)
    assert not packs((2**31) ** 2, 2**31)


def test_sort_without_packing_returns_same_order(monkeypatch):
    keys = np.random.default_rng(0).integers(0, 50, 1000)
    packed = stable_order(keys)
    monkeypatch.setattr("prplugin.cpu.sorting.packs", lambda largest, count: False)
    assert packed.tolist() == stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_pairs_whose_number_exceeds_64_bits_are_told_apart():
    # source * n + destination is the same modulo 2**64 for both pairs.
    source, destination = np.array([0, 2**31, 0]), np.array([5, 5, 5])
    kept = drop_duplicates(Coo(source, destination, None, 2**33), "first", directed=True)
    assert [kept.source.tolist(), kept.destination.tolist()] == [[0, 2**31], [5, 5]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("directed", [True, False])
def test_64_bit_positions_give_same_ranks(monkeypatch, method, weight, directed):
    random = np.random.default_rng(4)
    edges = pd.DataFrame(
        {"src": random.integers(0, 99, 999), "dst": random.integers(0, 99, 999), "w": random.random(999)}
    )
    narrow = prplugin.Graph(edges, weight=weight, directed=directed)
    assert narrow.csc().indices.dtype == np.int32
    expected = narrow.rank(method=method).ranks
    monkeypatch.setattr("prplugin.types.edges.MAX_NARROW", 0)
    monkeypatch.setattr("prplugin.cpu.factorize.FEW_VALUES", 0)  # few values have positions of 32 bits
    wide = prplugin.Graph(edges, weight=weight, directed=directed)
    assert wide.csc().indices.dtype == np.int64
    assert same_ranks(method, expected, wide.rank(method=method).ranks)


def test_provable_tol_of_web_graph_is_small():
    # A web graph of 100 billion edges, with a page of a billion in-links and the largest rounding depth of each sum.
    n, hub = 2**33, 10**9
    steps = StepRounding(
        row=group_sum_depth(hub),
        edge=1,
        dangling=rounding_depth(n),
        vectors=rounding_depth(n) + 2,
        norm=rounding_depth(n) + 1,
    )
    assert Certificate(0.85, n, steps, "float64", 1).provable < 2e-11


@pytest.mark.parametrize("n", [10_000_000])
def test_documented_tolerances_are_provable_on_ten_million_vertices(n):
    # A weighted star: every edge ends in one vertex, and normalized weights add their roundings.
    for row in (rounding_depth(n), group_sum_depth(n)):
        steps = StepRounding(
            row=row,
            edge=rounding_depth(n) + 4,
            dangling=rounding_depth(n),
            vectors=rounding_depth(n) + 2,
            norm=rounding_depth(n) + 1,
        )
        assert Certificate(0.85, n, steps, "float64", 1).provable < 1e-11 / 3
        assert Certificate(0.99, n, steps, "float64", "n").provable < 1e-9 / 10
