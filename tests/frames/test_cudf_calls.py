"""Work per call of small cuDF frames: kernel launches, host synchronizations and allocations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cuda_calls import counted_calls
from cudf_frames import REQUIRES_CUDF

import prplugin

pytestmark = REQUIRES_CUDF

LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel")
SYNCHRONIZATIONS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize")

# Kernel launches, synchronizations and allocations of a call with cuDF 26.10, those of cuDF included.
MOST = {
    "frame": (7, 4, 8),
    "prepared": (3, 2, 4),
    "prepared, frame": (3, 3, 6),
    "weighted query": (18, 5, 18),
}


def random_edges(n: int, m: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({"src": random.integers(0, n, m), "dst": random.integers(0, n, m), "weight": random.random(m)})


@pytest.mark.parametrize("case", MOST)
def test_calls_per_ranking_do_not_grow(case):
    import cudf
    import cupy
    import rmm

    small, large = cudf.from_pandas(random_edges(34, 78)), cudf.from_pandas(random_edges(10_000, 100_000))
    plain, weighted = prplugin.Graph(small), prplugin.Graph(large, weight="weight", directed=False)
    query = cupy.random.default_rng(0).random(10_000)
    call = {
        "frame": small.pagerank,
        "prepared": lambda: plain.rank().ranks,
        "prepared, frame": lambda: plain.rank().frame,
        "weighted query": lambda: weighted.rank(alpha=0.5, personalization=query).ranks,
    }[case]
    before = rmm.mr.get_current_device_resource()
    statistics = rmm.mr.StatisticsResourceAdaptor(before)
    rmm.mr.set_current_device_resource(statistics)
    try:
        for _ in range(3):  # compiles the kernels, and allocates what is cached
            call()
        allocated = statistics.allocation_counts.total_count
        with counted_calls() as calls:
            call()
        allocations = statistics.allocation_counts.total_count - allocated
    finally:
        rmm.mr.set_current_device_resource(before)
    made = [sum(calls[name] for name in names) for names in (LAUNCHES, SYNCHRONIZATIONS)] + [allocations]
    assert made[0] > 0, calls
    assert all(count <= most for count, most in zip(made, MOST[case], strict=True)), (made, MOST[case], calls)
