"""`segmented` (Bowen 2022): segment boundaries, schedules and their files on the host, rankings on a GPU."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from itertools import cycle, islice, pairwise

import numpy as np
import pytest
from adjacencies import adjacency_of
from hypothesis import given
from hypothesis import strategies as st
from method_params import param
from shapes import SHAPES, assert_ranks_agree, assert_row_sums, exact_row_sums, graph_of_shape

import prplugin
from prplugin.cpu.sorting import offsets_of
from prplugin.errors import InvalidOptionError
from prplugin.graph.edges import Problem
from prplugin.machine import this_machine
from prplugin.methods.registry import methods
from prplugin.papers import segmented
from prplugin.papers._host_rows import ThreadedSums, host_rows
from prplugin.papers.segmented import Schedule, Segment, SegmentedPull, SortedRows, choose_host_segments, cut
from prplugin.types.edges import Csc

SEGMENTS = [1, 2, 24, 64, 10**6]
KERNELS = (
    Segment(method="block", threads=1024), Segment(method="node", threads=96), Segment(method="warp", threads=64, lanes=4),
    Segment(method="warp", threads=128, lanes=8), Segment(method="warp", threads=256, lanes=16), Segment(method="block", threads=64),
    Segment(method="warp", threads=512, lanes=32, blocks=3), Segment(method="node", threads=256, blocks=2),
    Segment(method="block", threads=128, blocks=5),
)  # fmt: skip
HOST = Segment(method="host", threads=3)


def requires_gpu(test):
    for mark in param("segmented").marks:
        test = mark(test)
    return test


def schedule_of(graph, segments, *kinds):
    """Return a schedule for a graph whose segments take these kinds in turn."""
    adjacency = adjacency_of(graph)
    count = len(SortedRows(adjacency, segments).spans)
    return Schedule(n=adjacency.n, m=adjacency.m, segments=tuple(islice(cycle(kinds), count)))


# --- segment boundaries -------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=300), st.integers(1, 70))
def test_segments_are_balanced_by_edges(degrees, segments):
    degrees = sorted(degrees, reverse=True)
    offsets = offsets_of(np.array(degrees))
    bounds = cut(offsets, segments)
    filled = np.count_nonzero(degrees)
    assert len(bounds) - 1 == max(1, min(segments, filled))
    assert (bounds[0], bounds[-1]) == (0, len(degrees))
    edges = np.diff(offsets[bounds])
    assert all(first < last for first, last in pairwise(bounds))
    assert filled == 0 or edges.min() > 0
    for k, first in enumerate(bounds[:-1]):  # at most an equal part of the remaining edges, plus one row
        left = (offsets[-1] - offsets[first]) / (len(bounds) - 1 - k)
        assert edges[k] <= left + degrees[first]


def test_hub_leaves_no_segment_empty():
    offsets = offsets_of(np.array([500, *[10] * 50, *[0] * 9]))
    bounds = cut(offsets, 6)
    assert bounds == [0, 1, 11, 21, 31, 41, 60]


def test_offsets_exceed_2_31_edges():
    offsets = offsets_of(np.full(6, 2**40))
    assert cut(offsets, 3) == [0, 2, 4, 6]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("segments", SEGMENTS)
def test_rows_are_sorted_by_decreasing_in_degree(name, segments):
    adjacency = adjacency_of(graph_of_shape(name)[0])
    rows = SortedRows(adjacency, segments)
    degrees = np.diff(rows.offsets)
    assert (np.diff(degrees) <= 0).all()
    assert sorted(rows.order.tolist()) == list(range(adjacency.n))
    assert [rows.spans[0][0], rows.spans[-1][1]] == [0, adjacency.n]
    assert all(one[1] == other[0] for one, other in pairwise(rows.spans))
    offsets, sources, _ = adjacency.get(Csc)
    for k in (0, adjacency.n // 2, adjacency.n - 1):
        row = rows.order[k]
        found_sources = rows.layout.sources[rows.layout.begins[k] : rows.layout.ends[k]]
        assert found_sources.tolist() == sources[offsets[row] : offsets[row + 1]].tolist()


# --- choice of host segments --------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(1e-3, 10), st.floats(1e-3, 100)), min_size=1, max_size=30), st.floats(0, 20))
def test_host_segments_never_increase_time(times, copy_ms):
    gpu, host = map(list, zip(*times, strict=True))
    chosen = choose_host_segments(gpu, host, lambda moved: copy_ms + sum(host[k] for k in moved))
    assert chosen == sorted(set(chosen))
    if chosen:
        host_time = copy_ms + sum(host[k] for k in chosen)
        gpu_time = sum(gpu[k] for k in range(len(gpu)) if k not in chosen)
        assert max(host_time, gpu_time) < sum(gpu)


def test_host_takes_segments_with_best_ratio():
    def chosen(gpu, host, copy_ms):
        return choose_host_segments(gpu, host, lambda moved: copy_ms + sum(host[k] for k in moved))

    assert chosen([1.0, 1.0, 1.0, 1.0], [9.0, 2.0, 0.5, 1.0], 0.5) == [2, 3]
    assert chosen([1.0, 1.0], [0.1, 0.1], 2.0) == []
    assert chosen([1.0, 1.0], [3.0, 0.5], 0.1) == [1]
    assert chosen([0.0], [0.0], 0.0) == []


def test_host_segments_are_timed_together():
    asked = []

    def together(moved):
        asked.append(moved)
        return 0.1  # however many: threads begin once

    assert choose_host_segments([1.0, 1.0, 1.0], [5.0, 4.0, 3.0], together) == [0, 1, 2]
    assert asked == [[2], [1, 2], [0, 1, 2]]


# --- schedules ----------------------------------------------------------------------------------------------------

SCHEDULE = Schedule(
    n=1200, m=34_000, device="NVIDIA H100", copy_ms=0.01,
    segments=(
        Segment(method="block", threads=512, blocks=512, ms=0.22),
        Segment(method="warp", threads=1024, lanes=32, blocks=256, ms=0.17),
        Segment(method="node", threads=256, blocks=1, ms=0.0004),
        Segment(method="host", threads=8, ms=0.3),
    ),
)  # fmt: skip


def test_schedule_prints_as_table_of_paper():
    assert str(SCHEDULE) == (
        "segment  method   blocks  threads         ms\n"
        "      0  block       512      512     0.2200\n"
        "      1  warp/32     256     1024     0.1700\n"
        "      2  node          1      256     0.0004\n"
        "      3  host          -        8     0.3000\n"
        "NVIDIA H100 [0.3904 ms]\n"
        "host [0.3100 ms, of which 0.0100 ms copy the contributions]\n"
        "longest device time 0.3904 ms"
    )
    assert "host" not in str(replace(SCHEDULE, segments=SCHEDULE.segments[:3]))


def test_schedule_round_trips_through_file(tmp_path):
    for path in (tmp_path / "schedule.json", str(tmp_path / "other.json")):
        SCHEDULE.save(path)
        assert Schedule.load(path) == SCHEDULE
    assert json.loads((tmp_path / "schedule.json").read_text())["segments"][1]["lanes"] == 32


def schedule_json(**changes):
    fields = {"n": 1, "m": 1, "segments": [{"method": "node", "threads": 32}]} | changes
    return json.dumps({name: value for name, value in fields.items() if value is not ...})


MALFORMED = {
    "empty": ("", "holds no schedule: Expecting value"),
    "cut off": (schedule_json()[:-3], "holds no schedule: Expecting"),
    "null": ("null", "holds no schedule"),
    "list": ("[]", "holds no schedule"),
    "no segments": (schedule_json(segments=...), "holds no schedule: it has no 'segments'"),
    "no n": (schedule_json(n=...), "missing 1 required keyword-only argument: 'n'"),
    "extra field": (schedule_json(speed=3), "unexpected keyword argument 'speed'"),
    "segments not a list": (schedule_json(segments=3), "holds no schedule"),
    "segment not an object": (schedule_json(segments=[3]), "holds no schedule"),
    "segment without method": (schedule_json(segments=[{"threads": 3}]), "required keyword-only argument: 'method'"),
    "unknown method": (schedule_json(segments=[{"method": "grid", "threads": 3}]), "must be node, warp, block or host, not 'grid'"),
    "method is a list": (schedule_json(segments=[{"method": [], "threads": 3}]), "must be node, warp, block or host, not []"),
    "threads not a multiple of 32": (schedule_json(segments=[{"method": "block", "threads": 33}]), "threads must be a positive multiple of 32 and at most 1,024, not 33"),
    "too many threads": (schedule_json(segments=[{"method": "node", "threads": 1025}]), "threads must be a whole number of at least 1 and at most 1,024"),
    "zero blocks": (schedule_json(segments=[{"method": "node", "threads": 32, "blocks": 0}]), "blocks must be a whole number of at least 1"),
    "warp without lanes": (schedule_json(segments=[{"method": "warp", "threads": 32}]), "lanes must be one of 4, 8, 16, 32 for 'warp'"),
    "lanes is a list": (schedule_json(segments=[{"method": "warp", "threads": 32, "lanes": [4]}]), "lanes must be one of 4, 8, 16, 32 for 'warp'"),
    "lanes without warp": (schedule_json(segments=[{"method": "node", "threads": 32, "lanes": 4}]), "lanes must be one of 4, 8, 16, 32 for 'warp'"),
    "negative time": (schedule_json(segments=[{"method": "node", "threads": 32, "ms": -1}]), "ms must be a number of at least 0, not -1"),
    "time is a string": (schedule_json(copy_ms="long"), "copy_ms must be a number of at least 0, not 'long'"),
    "fractional n": (schedule_json(n=0.5), "n must be a whole number of at least 0, not 0.5"),
    "device is null": (schedule_json(device=None), "device must be a string, not None"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_file_raises(tmp_path, name):
    text, message = MALFORMED[name]
    path = tmp_path / "schedule.json"
    path.write_text(text)
    with pytest.raises(InvalidOptionError) as caught:
        Schedule.load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_unreadable_or_unwritable_file_raises(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidOptionError, match="bytes' holds no schedule"):
        Schedule.load(tmp_path / "bytes")
    with pytest.raises(InvalidOptionError, match=r"nowhere.json' cannot be read"):
        Schedule.load(tmp_path / "nowhere.json")
    with pytest.raises(InvalidOptionError, match="cannot be saved"):
        SCHEDULE.save(tmp_path / "no" / "such" / "folder")


def test_check_rejects_schedule_of_other_graph():
    SCHEDULE.check(1200, 34_000, 4, cpu=True)
    with pytest.raises(InvalidOptionError, match="it has 1,200 vertices, not 1,201 and 4 segments, not 24"):
        SCHEDULE.check(1201, 34_000, 24, cpu=True)
    with pytest.raises(InvalidOptionError, match="it has 34,000 edges, not 7"):
        SCHEDULE.check(1200, 7, 4, cpu=True)
    with pytest.raises(InvalidOptionError, match=r"segments for the host \(3\): give cpu=True"):
        SCHEDULE.check(1200, 34_000, 4, cpu=False)
    replace(SCHEDULE, segments=SCHEDULE.segments[:3]).check(1200, 34_000, 3, cpu=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segments": 0}, "segments must be a whole number of at least 1, not 0"),
        ({"segments": 2.5}, "segments must be a whole number of at least 1, not 2.5"),
        ({"segments": True}, "segments must be a whole number of at least 1, not True"),
        ({"cpu": 1}, "cpu must be True or False, not 1"),
        ({"cpu": None}, "cpu must be True or False, not None"),
        ({"schedule": None}, "schedule must be 'measured', a path or a Schedule, not None"),
        ({"schedule": "mesured"}, "the schedule 'mesured' cannot be read"),
    ],
)
def test_invalid_options_raise(options, message):
    problem = Problem(adjacency_of(graph_of_shape("two vertices")[0]), 0.85)
    with pytest.raises(InvalidOptionError) as caught:
        segmented.prepare(problem, this_machine(), **options)
    assert message in str(caught.value)


def test_cpu_needs_compiled_kernels(hide_kernels):
    problem = Problem(adjacency_of(graph_of_shape("two vertices")[0]), 0.85)
    hide_kernels("there is no compiler")
    with pytest.raises(prplugin.MethodUnavailableError, match="cpu=True needs the compiled CPU kernels"):
        segmented.prepare(problem, this_machine(), cpu=True)


def test_segmented_is_nondeterministic():
    assert methods()["segmented"].nondeterministic


# --- sums on the host ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["skewed", "isolated vertices", "hub", "no edges", "one vertex"])
def test_sums_on_host_do_not_depend_on_thread_count(name, dtype, monkeypatch):
    monkeypatch.setattr("prplugin.papers._host_rows.CHUNK", 1000)
    adjacency = adjacency_of(graph_of_shape(name)[0])
    sorted_rows = SortedRows(adjacency, 5)
    found, sources, bounds, places, weights = host_rows(sorted_rows.runs(sorted_rows.spans[::2]), adjacency.n)
    assert weights is None
    contributions = np.random.default_rng(0).exponential(size=adjacency.n).astype(dtype)
    expected = exact_row_sums(adjacency, contributions)[found]
    assert sorted(found) == sorted(np.concatenate([sorted_rows.order[a:b] for a, b in sorted_rows.spans[::2]]))
    bits = set()
    for threads in (1, 2, 5):
        sums = np.full(expected.size, np.nan)
        ThreadedSums(bounds, places, threads)(contributions[sources], None, sums)
        np.testing.assert_allclose(sums, expected, rtol=4e-15, atol=0)
        bits.add(sums.tobytes())
    assert len(bits) == 1


# --- on the GPU ---------------------------------------------------------------------------------------------------


@requires_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SHAPES)
def test_ranks_with_measured_schedule_agree_with_numpy(name, dtype):
    assert_ranks_agree(name, dtype, method="segmented")


@requires_gpu
@pytest.mark.parametrize("segments", SEGMENTS)
@pytest.mark.parametrize("name", ["weighted", "several hubs", "two vertices"])
def test_ranks_agree_with_numpy_for_any_number_of_segments(name, segments):
    if segments > 64 and name != "two vertices":
        segments = 200  # one segment per row takes minutes to measure
    assert_ranks_agree(name, "float64", method="segmented", segments=segments)


@requires_gpu
@pytest.mark.parametrize("cpu", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SHAPES)
def test_every_row_is_written_with_every_schedule(name, dtype, cpu):
    graph = graph_of_shape(name)[0]
    rows = SortedRows(adjacency_of(graph).on("device"), 24)
    for kinds in (KERNELS, KERNELS[::-1], *((kind,) for kind in KERNELS)):
        chosen = schedule_of(graph, 24, *(kind for kernel in kinds for kind in ((HOST, kernel) if cpu else (kernel,))))
        assert_row_sums(SegmentedPull(rows, chosen), adjacency_of(graph), dtype)


@requires_gpu
@pytest.mark.parametrize("cpu", [False, True])
@pytest.mark.parametrize("name", ["weighted", "skewed"])
def test_pull_follows_change_of_dtype(name, cpu):
    graph = graph_of_shape(name)[0]
    chosen = schedule_of(graph, 24, *KERNELS, *([HOST] if cpu else []))
    pull = SegmentedPull(SortedRows(adjacency_of(graph).on("device"), 24), chosen)
    for dtype in ("float64", "float32", "float64", "float32"):
        assert_row_sums(pull, adjacency_of(graph), dtype, times=2)


@requires_gpu
@pytest.mark.parametrize("kinds", [(HOST, *KERNELS), (*KERNELS, HOST), (HOST,)], ids=["first", "last", "all"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SHAPES)
def test_ranks_with_host_segments_agree_with_numpy(name, dtype, kinds):
    graph = graph_of_shape(name)[0]
    chosen = schedule_of(graph, 24, *kinds)
    assert chosen.host_segments or len(chosen.segments) < len(kinds)
    assert_ranks_agree(name, dtype, method="segmented", cpu=True, schedule=chosen)


@requires_gpu
@pytest.mark.parametrize("cpu", [False, True])
def test_saved_schedule_gives_same_bits(tmp_path, cpu):
    path = tmp_path / "schedule.json"
    graph, options, _ = graph_of_shape("weighted")
    first = graph.rank(method="segmented", save=path, cpu=cpu, **options).ranks
    for _ in range(3):
        again = graph.rank(method="segmented", schedule=path, cpu=cpu, **options).ranks
        assert again.tobytes() == first.tobytes()
    loaded = graph.rank(method="segmented", schedule=Schedule.load(str(path)), cpu=cpu, **options).ranks
    assert loaded.tobytes() == first.tobytes()


@requires_gpu
def test_bits_do_not_depend_on_threads_and_blocks():
    graph = graph_of_shape("weighted")[0]
    chosen = schedule_of(graph, 24, HOST, *KERNELS)
    first = graph.rank(method="segmented", cpu=True, schedule=chosen).ranks
    for threads, blocks in ((1, 1), (2, 7), (9, None)):
        other = replace(
            chosen,
            segments=tuple(
                replace(segment, threads=threads) if segment.method == "host" else replace(segment, blocks=blocks)
                for segment in chosen.segments
            ),
        )
        again = graph.rank(method="segmented", cpu=True, schedule=other).ranks
        assert again.tobytes() == first.tobytes()


@requires_gpu
@pytest.mark.parametrize("non_blocking", [False, True])
def test_bits_do_not_depend_on_stream(non_blocking):
    import cupy

    graph = graph_of_shape("weighted")[0]
    chosen = schedule_of(graph, 24, HOST, *KERNELS)
    plain = graph.rank(method="segmented", cpu=True, schedule=chosen).ranks
    with cupy.cuda.Stream(non_blocking=non_blocking):
        for _ in range(3):
            other = graph.rank(method="segmented", cpu=True, schedule=chosen).ranks
            assert other.tobytes() == plain.tobytes()


@requires_gpu
def test_host_and_gpu_stay_synchronized_for_many_iterations():
    graph, options, _ = graph_of_shape("several hubs")
    chosen = schedule_of(graph, 24, *KERNELS[:3], HOST)
    found = graph.rank(method="segmented", cpu=True, schedule=chosen, tol=0, max_iter=300, alpha=0.99, **options).ranks
    plain = graph.rank(method="numpy", tol=0, max_iter=300, alpha=0.99, **options).ranks
    assert np.abs(found - plain).sum() < 1e-12


@requires_gpu
@pytest.mark.parametrize("cpu", [False, True])
def test_measured_schedule_is_logged_and_saved(tmp_path, caplog, cpu):
    path = tmp_path / "schedule.json"
    graph = graph_of_shape("weighted")[0]
    with caplog.at_level(logging.INFO, logger="prplugin.papers.segmented"):
        graph.rank(method="segmented", save=path, cpu=cpu)
    chosen = Schedule.load(path)
    assert str(chosen) in caplog.text
    assert f"schedule for {chosen.n} vertices and {chosen.m} edges" in caplog.text
    assert len(chosen.segments) == 24
    assert all(segment.ms > 0 for segment in chosen.segments)
    assert all(segment.blocks for segment in chosen.segments if segment.method != "host")
    assert {segment.method for segment in chosen.segments} <= {"node", "warp", "block"} | ({"host"} if cpu else set())
    assert (chosen.copy_ms > 0) == cpu
    assert chosen.device != "GPU"


@requires_gpu
def test_hub_is_summed_by_several_threads(tmp_path):
    path = tmp_path / "schedule.json"
    graph_of_shape("hub")[0].rank(method="segmented", save=path)  # one row of 100,000 edges, and no other
    (only,) = Schedule.load(path).segments
    assert only.method in ("warp", "block")
    assert only.threads_per_row > 4


@requires_gpu
def test_schedule_of_other_graph_raises(tmp_path):
    graph = graph_of_shape("weighted")[0]
    other = schedule_of(graph_of_shape("skewed")[0], 7, *KERNELS)
    with pytest.raises(
        prplugin.InvalidOptionError, match=r"another graph or another number of segments: it has .*7 segments, not 24"
    ):
        graph.rank(method="segmented", schedule=other)
    with pytest.raises(prplugin.InvalidOptionError, match="give cpu=True"):
        graph.rank(method="segmented", schedule=schedule_of(graph, 24, HOST))
    with pytest.raises(prplugin.InvalidOptionError, match="cannot be saved"):
        graph.rank(method="segmented", save=tmp_path)
