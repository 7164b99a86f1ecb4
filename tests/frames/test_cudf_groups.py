"""Groups and sides of cuDF frames: the same vertices and ranks as with pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cudf_frames import REQUIRES_CUDF, cudf

import prplugin

pytestmark = REQUIRES_CUDF


def edges_of(ids, group):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, high, 300) for name, high in (("g", 9), ("src", 20), ("dst", 20))})
    return frame.astype({"g": group, "src": ids, "dst": ids}).assign(w=rng.random(300))


def assert_same(found, expected, bound=2e-6):
    found, names = found.to_pandas(), list(expected.columns[:-1])
    assert found[names].to_dict("list") == expected[names].to_dict("list")
    assert np.abs(found["pagerank"] - expected["pagerank"]).max() <= bound


@pytest.mark.parametrize("ids", ["int64", "str"])
@pytest.mark.parametrize("group", ["int64", "str"])
def test_groups(ids, group):
    frame = edges_of(ids, group)
    on_gpu, on_host = (prplugin.Graph(each, by="g", weight="w") for each in (cudf.from_pandas(frame), frame))
    pairs = on_host.vertices.drop_duplicates("g")
    for options in ({}, {"top": 3}, {"scale": "n"}, {"personalization": pairs}, {"exclude": [frame["src"].iloc[0]]}):
        found, expected = on_gpu.rank(**options), on_host.rank(**options)
        largest = len(found.frame) if "scale" in options else 1  # the bound is one of ranks that sum to 1
        assert_same(found.frame, expected.frame, 2e-6 * largest)
        assert found.error_bound == found.each_error_bound.max() <= 1e-6
    more = frame.iloc[:3].assign(g=frame["g"].iloc[5], src=frame["dst"].iloc[0])
    on_gpu.update(add=cudf.from_pandas(more))
    on_host.update(add=more)
    assert_same(on_gpu.rank().frame, on_host.rank().frame)


@pytest.mark.parametrize("ids", ["int64", "str"])
def test_sides(ids):
    frame = edges_of(ids, "int64")
    on_gpu, on_host = (
        prplugin.Graph(each, bipartite=True, directed=False) for each in (cudf.from_pandas(frame), frame)
    )
    for options in ({}, {"among": "dst", "top": 3}):
        assert_same(on_gpu.rank(**options).frame, on_host.rank(**options).frame)
