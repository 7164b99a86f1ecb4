"""Small graphs and vectors drawn by hypothesis."""

from __future__ import annotations

import pandas as pd
from hypothesis import strategies as st

alphas = st.one_of(
    st.sampled_from([0.0, 0.5, 0.85, 0.99, 0.999]), st.floats(0, 0.999), st.floats(0, 1e-300), st.floats(1e-17, 1e-15)
)


weights = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1.0, 3.0, 1e300, 1e307]),
    st.floats(0, 1e307, allow_subnormal=True),
    st.integers(0, 2**64 - 1).map(float),
)


@st.composite
def graphs(draw, weight=weights):
    n = draw(st.integers(1, 7))
    vertex = st.integers(0, n - 1)
    rows = draw(st.lists(st.tuples(vertex, vertex, weight), max_size=14))
    return n, rows


def vectors(n):
    return st.none() | st.dictionaries(st.integers(0, n - 1), weights, min_size=1).filter(lambda d: sum(d.values()) > 0)


def frame(rows):
    return pd.DataFrame({"src": [r[0] for r in rows], "dst": [r[1] for r in rows], "w": [r[2] for r in rows]}).astype(
        {"src": "int64", "dst": "int64", "w": "float64"}
    )
