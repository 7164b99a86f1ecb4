"""Summary and figure of `python -m benchmarks cluster`. No cluster is started, no test depends on measured times."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pytest

from benchmarks import cluster
from benchmarks.cluster import _local, _model
from benchmarks.generate import rmat, rmat_part


def step(graph, workers, ms, *, vertices=1000, communication=0.0, sent=0.0, cugraph_ms=""):
    return {
        "table": cluster.STEP, "graph": graph, "cluster": workers, "workers": workers, "cuGraph ms": cugraph_ms, "prplugin ms": ms, "ratio": "",
        "communication": communication, "MB sent": sent, "note": "", "vertices": vertices,
    }  # fmt: skip


def frame_to_ranks(graph, workers, seconds, cluster_size=None):
    row = dict.fromkeys(cluster.TABLES[cluster.FRAME_TO_RANKS], "")
    about = {"table": cluster.FRAME_TO_RANKS, "graph": graph, "cluster": cluster_size or workers, "workers": workers}
    return row | about | {"prplugin s": seconds}


RESULTS = [
    frame_to_ranks("R-MAT 1", 1, 4.0), frame_to_ranks("R-MAT 1", 2, 2.5), frame_to_ranks("R-MAT 1", 1, 9.0, 2),
    step("R-MAT 1", 1, 10.0), step("R-MAT 1", 2, 6.0, communication=0.25, sent=3.0),
    step("R-MAT 2", 1, 40.0, vertices=4000),
    step("R-MAT 2", 2, 24.0, vertices=4000, communication=0.25, sent=12.0, cugraph_ms=30.0),
    step("R-MAT 3", 2, 100.0, vertices=2000, communication=0.25, sent=12.0),
]  # fmt: skip


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_parts_of_a_graph_concatenate_to_the_graph(parts):
    m = 16 << 8
    bounds = [m * part // parts for part in range(parts + 1)]
    pieces = [rmat_part(8, first, last) for first, last in pairwise(bounds)]
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), rmat(8))


def test_summary_has_the_predictions_of_the_model():
    _, (one, two, three) = cluster.summary(RESULTS)
    assert one["speed-up, frame to ranks"] == pytest.approx(1.6)
    assert one["speed-up per iteration"] == pytest.approx(10 / 6)
    # The largest graph sent 12 MB in a quarter of 24 ms, at 2 GB/s. At this rate, 3 MB take 1.5 ms.
    assert one["predicted ms"] == pytest.approx(5 + 1.5)
    assert two["predicted ms"] == pytest.approx(20 + 6)
    assert two["speed-up, frame to ranks"] == ""
    assert one["MB sent, bound"] == pytest.approx(4 * 1000 / 2 / 1e6)
    assert (one["weak scaling"], two["weak scaling"]) == ("", pytest.approx(10 / 24))
    assert (three["speed-up per iteration"], three["weak scaling"]) == ("", pytest.approx(40 / 100))


@pytest.mark.parametrize(("workers", "sent"), [(1, 0), (2, 2_000), (4, 3_000)])
def test_bound_of_the_bytes_sent(workers, sent):
    assert _model.sent_bytes(1_000, workers) == sent


def test_figure():
    figure = cluster.figure(RESULTS)
    assert len(figure.axes) == 3
    assert [len(panel.lines) for panel in figure.axes] == [1, 4, 3]


def test_parts_are_ordered_by_decreasing_number_of_workers(monkeypatch):
    monkeypatch.setattr(_local, "has_gpus", lambda: True)
    monkeypatch.setattr(_local, "counts", lambda gpus: (1, 2))
    names = [part.name for part in cluster.parts(None, quick=False)]
    on_gpus = [
        f"R-MAT {scale} on {count}" for count, scales in ((2, (22, 23, 24, 26)), (1, (22, 24))) for scale in scales
    ]
    on_cpus = [f"R-MAT {scale}, CPUs on {count}" for count, scales in ((2, (18, 19)), (1, (18,))) for scale in scales]
    assert names == on_gpus + on_cpus


def test_failures_are_rows():
    def fail():
        raise RuntimeError("no NCCL")
        yield

    (row,) = cluster._rows_or_reason({"table": cluster.STEP, "graph": "one", "workers": 2}, fail)
    assert row["note"] == "RuntimeError: no NCCL"
    assert row["prplugin ms"] == ""
