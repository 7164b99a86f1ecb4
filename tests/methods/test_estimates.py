"""Memory estimates, compared with measured peaks; times are not measured."""

from __future__ import annotations

import gc
import re
import sys
import tracemalloc
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from method_params import param

import prplugin
from benchmarks.generate import grid, rmat, scattered, uniform, weighted
from benchmarks.peers._memory import peak_bytes
from conformance import rapids
from prplugin.gpu import runtime
from prplugin.graph.memory import Counts, Memory, Rate
from prplugin.machine import this_machine
from prplugin.methods import estimates
from prplugin.methods.engines import gpu_pull
from prplugin.methods.registry import methods
from prplugin.types.arrays import explain_oom

MARGIN = 0.2
CPU_METHODS = [name for name, method in methods().items() if method.runs_on == "cpu"]
SMALL = pd.DataFrame({"src": [1, 2, 3, 1], "dst": [2, 3, 1, 3], "w": [1.0, 2.0, 3.0, 4.0]})

GRAPHS: dict[str, Callable[[], pd.DataFrame]] = {
    "R-MAT 14": lambda: rmat(14),  # fewer edges than the compiled grouping takes
    "R-MAT 16": lambda: rmat(16),
    "grid 300": lambda: grid(300),
    "uniform": lambda: uniform(200_000, 800_000),
}


def peak_host_bytes(call: Callable[[], Any]) -> int:
    """Return the peak bytes that a call allocates in NumPy and Python."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- on the CPU ---------------------------------------------------------------------------------------------------


def assert_estimate_is_measured_peak(method, name, weight, attribute, **options):
    """Check an estimate of host bytes against the measured peak of a ranking."""
    edges = GRAPHS[name]()
    given = edges if weight is None else weighted(edges)
    prplugin.Graph(given, weight=weight).rank(method=method, **options)  # import and compile before measuring
    graph = prplugin.Graph(given, weight=weight)
    found = graph.estimate()[method]
    peak = peak_host_bytes(lambda: graph.rank(method=method, **options))
    assert getattr(found, attribute) == pytest.approx(peak, rel=MARGIN, abs=2**16)
    assert found.device == 0


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("method", CPU_METHODS)
def test_host_bytes_agree_with_measured_peak(method, name, weight):
    assert_estimate_is_measured_peak(method, name, weight, "host", tol=1e-3)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("method", CPU_METHODS)
def test_host_bytes_of_many_iterations_agree_with_measured_peak(method, weight):
    assert_estimate_is_measured_peak(method, "grid 300", weight, "host_at_most", alpha=0.99, tol=1e-9)


def test_estimate_is_less_after_first_ranking():
    graph = prplugin.Graph(GRAPHS["R-MAT 14"]())
    before = graph.estimate()["numpy"].host
    graph.rank(method="numpy")
    after = graph.estimate()["numpy"].host
    assert after < before
    assert abs(after - peak_host_bytes(lambda: graph.rank(method="numpy"))) <= MARGIN * after + 2**16


# --- from counts alone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "weight", "ids"),
    [
        *product(["R-MAT 14"], [None, "weight"], ["int32", "int64", "string"]),
        *[  # every pair of values
            pytest.param("R-MAT 16", *others, marks=pytest.mark.slow)
            for others in product([None, "weight"], ["int32", "int64", "string"])
        ],
        *[
            pytest.param(shape, "weight" if heavy == (ids == "int64") else None, ids, marks=pytest.mark.slow)
            for shape, heavy in {"uniform": True, "more vertices than edges": False}.items()
            for ids in ("int32", "int64", "string")
        ],
    ],
)
def test_estimate_from_counts_bounds_measured_peak(shape, weight, ids):
    edges = GRAPHS[shape]() if shape in GRAPHS else uniform(500_000, 200_000)
    frame = edges.astype("int32") if ids == "int32" else scattered(edges).astype("str" if ids == "string" else "int64")
    if weight:
        frame = weighted(frame) if ids != "string" else frame.assign(weight=1.5)
    prplugin.Graph(frame, weight=weight)  # import and compile before measuring
    graphs: list[prplugin.Graph] = []
    peak = peak_bytes(lambda: graphs.append(prplugin.Graph(frame, weight=weight)))
    graph = graphs[0]
    bound = prplugin.estimate(
        edges=len(frame), vertices=graph.number_of_vertices, weighted=weight is not None, ids=ids, id_bytes=20
    )
    assert bound.ingest is not None
    assert bound.ingest.device == (0, 0)
    assert peak <= bound.ingest.host.peak <= 12 * peak
    bound_without_vertices = prplugin.estimate(edges=len(frame), weighted=weight is not None, ids=ids, id_bytes=20)
    for method in CPU_METHODS:
        found = graph.estimate()[method]
        assert found.host <= bound[method].host <= bound_without_vertices[method].host
        assert found.host_at_most <= bound[method].host_at_most <= bound_without_vertices[method].host_at_most
    assert bound.ingest.host.peak <= bound_without_vertices.ingest.host.peak


def test_isolated_vertices_count():
    few, many = (prplugin.estimate(edges=10, vertices=vertices) for vertices in (20, 1_000_000))
    assert (few.vertices, many.vertices) == (20, 1_000_000)
    assert many.ingest.host.peak > few.ingest.host.peak + 8 * 999_980
    assert many["native"].host > few["native"].host + 8 * 999_980


def test_estimate_of_device_frame_needs_no_gpu():
    bound = prplugin.estimate(edges=10**9, vertices=5 * 10**7, place="device")
    assert bound.ingest.device.peak > 8 * 10**9 > bound["streamed"].device
    assert bound["persistent"].device > 8 * 10**9
    assert bound.ingest.host == (0, 0)


@pytest.mark.parametrize("edges", [0, 1])
@pytest.mark.parametrize("place", ["host", "device"])
def test_estimate_of_at_most_one_edge(edges, place):
    found = prplugin.estimate(edges=edges, place=place)
    assert [method.method for method in found.methods] == list(methods())
    assert prplugin.Graph(SMALL.head(edges)).estimate().edges == edges


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": -1}, "edges must be a whole number"),
        ({"edges": 1.5}, "edges must be a whole number"),
        ({"edges": 1, "vertices": "many"}, "vertices must be a whole number"),
        ({"edges": 1, "weighted": "no"}, "weighted must be True or False, not 'no'"),
        ({"edges": 1, "ids": "float"}, "ids must be one of 'int32', 'int64', 'string', not 'float'"),
        ({"edges": 1, "place": "gpu"}, "place must be one of 'host', 'device', not 'gpu'"),
    ],
)
def test_invalid_counts_raise(options, message):
    with pytest.raises(prplugin.InvalidOptionError, match=message):
        prplugin.estimate(**options)


EDGES_OF_COUNTS = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1], "w": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("dtype", "ids"),
    [("int64", "int64"), ("int32", "int32"), ("uint8", "int32"), ("Int64", "int64"), ("str", "string")],
)
@pytest.mark.parametrize("library", ["pandas", "polars", "polars lazy", "pyarrow", "parquet", "dask", "duckdb"])
def test_estimate_reads_counts_from_frame(library, dtype, ids, tmp_path):
    frame = EDGES_OF_COUNTS.astype({"src": dtype, "dst": dtype})
    if library.startswith("polars"):
        polars = pytest.importorskip("polars")
        given = polars.from_pandas(frame) if library == "polars" else polars.from_pandas(frame).lazy()
    elif library == "dask":
        given = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    elif library == "duckdb":
        table = pa.Table.from_pandas(frame)
        given = pytest.importorskip("duckdb").from_arrow(table)
    elif library == "parquet":
        given = tmp_path / "edges.parquet"
        frame.to_parquet(given)
    else:
        given = frame if library == "pandas" else pa.Table.from_pandas(frame)
    assert prplugin.estimate(given) == prplugin.estimate(3, ids=ids)
    assert prplugin.estimate(given, "src", "dst", "w", vertices=3) == prplugin.estimate(
        edges=3, vertices=3, ids=ids, weighted=True
    )


def test_estimate_of_a_list_counts_the_rows_of_all_frames():
    polars = pytest.importorskip("polars").from_pandas(EDGES_OF_COUNTS)
    for given in (EDGES_OF_COUNTS, polars, polars.lazy()):
        assert prplugin.estimate([given, given]) == prplugin.estimate(6, ids="int64")


def test_options_that_frame_determines_raise():
    frame = EDGES_OF_COUNTS
    for options in ({"ids": "int32"}, {"place": "host"}, {"weighted": False}):
        with pytest.raises(prplugin.InvalidOptionError, match="applies only if edges is a number of rows"):
            prplugin.estimate(frame, **options)
    with pytest.raises(prplugin.InvalidOptionError, match="weight= names a column of a frame"):
        prplugin.estimate(3, weight="w")
    with pytest.raises(prplugin.ColumnNotFoundError, match="'nowhere'"):
        prplugin.estimate(frame, weight="nowhere")
    with pytest.raises(prplugin.InvalidOptionError, match="several columns"):
        prplugin.estimate(frame, ["src", "w"], ["dst", "w"])


# --- report -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["R-MAT 14", "R-MAT 16"])
def test_chosen_method_is_that_of_auto(name):
    graph = prplugin.Graph(GRAPHS[name]())
    chosen = graph.estimate().chosen
    assert chosen.method == graph.rank().method
    assert chosen.reason is None


def test_str_is_a_table():
    found = prplugin.Graph(SMALL).estimate()
    title, header, *rows = str(found).splitlines()
    assert title == "3 vertices, 4 edges, on the host"
    assert header.split() == ["method", "GPU", "at", "most", "host", "at", "most", "seconds"]
    shown = [row.split()[0] for row in rows]
    assert sorted(shown) == sorted(methods())
    can_run = [found[name].reason is None for name in shown]
    assert can_run == sorted(can_run, reverse=True)
    assert [row.split()[0] for row in rows if row.endswith("auto takes it")] == [found.chosen.method]
    assert found["numpy"].reason is None
    bound = str(prplugin.estimate(edges=4, vertices=3)).splitlines()[0]
    assert bound.startswith("3 vertices, 4 edges, on the host; at most ")


def test_sizes_have_units():
    title = str(prplugin.estimate(edges=10**9, vertices=5 * 10**7, place="device")).splitlines()[0]
    assert re.search(r"at most 41\.\d GB of GPU memory to build the graph; it holds \d+\.\d GB$", title)


def test_an_unknown_method_is_suggested():
    with pytest.raises(
        prplugin.InvalidOptionError, match=r"method must be one of .*, not 'nativ'. Did you mean 'native'"
    ):
        prplugin.estimate(edges=4)["nativ"]


# --- out of memory ------------------------------------------------------------------------------------------------


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("method", CPU_METHODS)
def test_out_of_memory_error_names_estimate(monkeypatch, method):
    graph = prplugin.Graph(SMALL)
    needed = graph.estimate()[method].host_at_most
    monkeypatch.setattr(methods()[method], "prepare", raising(MemoryError("Unable to allocate 7. GiB for an array")))
    monkeypatch.setattr(estimates, "bytes_available", lambda: 12_345)
    with pytest.raises(prplugin.OutOfMemoryError) as caught:
        graph.rank(method=method)
    message = str(caught.value)
    assert message.startswith("this machine's memory ran out: Unable to allocate 7. GiB for an array. ")
    assert (
        f"method={method!r} needs about {needed:,} bytes of this machine's memory, of which 12,345 are free" in message
    )
    assert isinstance(caught.value, (MemoryError, prplugin.PageRankError))


@pytest.mark.parametrize(
    "kind", ["pandas", "pandas list", "pyarrow", "parquet", "polars", "polars lazy", "polars lazy list"]
)
def test_out_of_memory_error_of_reading_names_estimate(monkeypatch, tmp_path, kind):
    frame, count = EDGES_OF_COUNTS, 2 if kind.endswith("list") else 1
    if kind.startswith("polars"):
        polars = pytest.importorskip("polars").from_pandas(frame)
        given = polars if kind == "polars" else polars.lazy()
    elif kind == "parquet":
        given = tmp_path / "edges.parquet"
        frame.to_parquet(given)
    else:
        given = pa.Table.from_pandas(frame) if kind == "pyarrow" else frame
    monkeypatch.setattr("prplugin.local.Edges", raising(MemoryError("Unable to allocate")))
    with pytest.raises(prplugin.OutOfMemoryError, match=rf"A graph of {3 * count} edges with integer ids takes up to"):
        prplugin.Graph([given] * count if count > 1 else given, "src", "dst")


def test_free_memory_is_not_queried_for_small_graphs(monkeypatch):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(runtime, "fits", raising(AssertionError("the free memory is queried")))
    graph = Counts(n=10, m=20, weighted=False, memory_space="device")
    assert gpu_pull.unavailable_reason(Memory(step=Rate(4)), graph, this_machine()) is None


def test_out_of_device_memory_error_names_alternatives(monkeypatch):
    class OutOfMemoryError(MemoryError):
        """Stub of the exception of CuPy."""

    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(runtime, "available_bytes", lambda: 1_000)
    monkeypatch.setattr(runtime, "fits", lambda needed: True)
    monkeypatch.setattr(runtime, "attribute", lambda name: 232_448)  # bytes of shared memory
    monkeypatch.setitem(sys.modules, "rmm", None)
    graph = prplugin.Graph(rmat(12))
    found = graph.estimate()
    monkeypatch.setattr(methods()["node"], "prepare", raising(OutOfMemoryError("Out of memory allocating 512 bytes")))
    with pytest.raises(prplugin.OutOfMemoryError) as caught:
        graph.rank(method="node")
    message = str(caught.value)
    assert message.startswith(
        "the GPU's memory ran out: Out of memory allocating 512 bytes. method='node' needs about "
    )
    assert f"{found['node'].device:,} bytes of the GPU's memory, of which 1,000 are free" in message
    assert "Less is needed by 'native', 'numpy', 'streamed'. " in message
    assert "method='streamed'" in message


def test_out_of_memory_error_of_frame_names_bytes(monkeypatch):
    monkeypatch.setattr("prplugin.frames.pandas.read", raising(MemoryError("Unable to allocate 7. GiB for an array")))
    with pytest.raises(
        prplugin.OutOfMemoryError, match=r"memory ran out: Unable to .* A graph of 4 edges .* up to [0-9,]+ bytes"
    ):
        SMALL.pagerank()


def test_out_of_memory_error_keeps_no_locals():
    events = []

    class Large:
        def __init__(self):
            events.append(self)

        def __del__(self):
            events.append("freed")

    def work():
        large = Large()
        events.clear()
        raise MemoryError(type(large).__name__)

    with pytest.raises(prplugin.OutOfMemoryError) as caught, explain_oom(lambda: "It needs more."):
        work()
    assert str(caught.value) == "this machine's memory ran out: Large. It needs more."
    assert events == ["freed"]


# --- on the GPU ---------------------------------------------------------------------------------------------------

DEVICE_GRAPHS: dict[str, Callable[[], pd.DataFrame]] = {"R-MAT 18": lambda: rmat(18), "grid 700": lambda: grid(700)}
SMALL_DEVICE_GRAPHS: dict[str, Callable[[], pd.DataFrame]] = {"R-MAT 12": lambda: rmat(12), "grid 60": lambda: grid(60)}
CONSTANT = 3 << 20
"""Allowance in bytes for buffers that do not grow with the graph: block sums, and those that measure rates."""


def peak_device_bytes(call: Callable[[], Any]) -> int:
    """Return the peak bytes that a call allocates from RMM if it is loaded, else from CuPy's pool."""
    import cupy

    gc.collect()
    rmm = sys.modules.get("rmm")
    if rmm is not None:
        upstream = rmm.mr.get_current_device_resource()
        statistics = rmm.mr.StatisticsResourceAdaptor(upstream)
        rmm.mr.set_current_device_resource(statistics)
        try:
            call()
            return int(statistics.allocation_counts.peak_bytes)
        finally:
            gc.collect()
            rmm.mr.set_current_device_resource(upstream)

    class PeakHook(cupy.cuda.MemoryHook):
        name = "counting"

        def __init__(self) -> None:
            self.held: dict[int, int] = {}
            self.peak = 0

        def malloc_postprocess(self, device_id: int, size: int, mem_size: int, mem_ptr: int, pmem_id: int) -> None:
            self.held[mem_ptr] = mem_size
            self.peak = max(self.peak, sum(self.held.values()))

        def free_postprocess(self, device_id: int, mem_size: int, mem_ptr: int, pmem_id: int) -> None:
            self.held.pop(mem_ptr, None)

    with PeakHook() as hook:
        call()
    return hook.peak


@pytest.mark.filterwarnings("default")  # cuDF raises warnings of its own
@pytest.mark.parametrize("method", [param(name) for name, method in methods().items() if method.runs_on == "gpu"])
@pytest.mark.parametrize("library", ["pandas", "cudf"])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("shape", [0, 1])
def test_device_bytes_agree_with_measured_peak(method, library, weight, shape):
    if library == "cudf" and (reason := rapids.missing("cudf")):
        pytest.skip(reason)
    graphs = SMALL_DEVICE_GRAPHS if method == "dense" else DEVICE_GRAPHS
    name = list(graphs)[shape]
    edges = graphs[name]() if weight is None else weighted(graphs[name]())
    given = rapids.as_cudf(edges) if library == "cudf" else edges
    # Timings decide which splits "auto" tries; with a split of 0 every row has a tail.
    options = {"split": 0} if method == "cpu-split" else {}
    prplugin.Graph(given, weight=weight).rank(method=method, tol=1e-3, **options)  # compile before measuring
    graph = prplugin.Graph(given, weight=weight)
    found = graph.estimate()[method]
    peak = peak_device_bytes(lambda: graph.rank(method=method, tol=1e-3, **options))
    estimated = f"{found.device:,} to {found.device_at_most:,}"
    message = f"{method} on {name}, {library}, {weight}: estimated {estimated}, measured {peak:,}"
    print(message)
    # Extrapolation takes less memory than at most, or none, as the number of iterations requires.
    assert found.device - CONSTANT <= (1 + MARGIN) * peak, message
    assert (1 - MARGIN) * peak <= found.device_at_most + CONSTANT, message


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("method", [param("persistent"), param("propagation-blocking"), param("warp")])
@pytest.mark.parametrize("library", ["pandas", "cudf"])
def test_device_bytes_include_extrapolation(method, library):
    if library == "cudf" and (reason := rapids.missing("cudf")):
        pytest.skip(reason)
    frame = DEVICE_GRAPHS["grid 700"]()
    given = rapids.as_cudf(frame) if library == "cudf" else frame
    prplugin.Graph(given).rank(method=method, alpha=0.99)
    graph = prplugin.Graph(given)
    found = graph.estimate()[method]
    peak = peak_device_bytes(lambda: graph.rank(method=method, alpha=0.99))
    assert found.device < peak
    assert abs(found.device_at_most - peak) <= MARGIN * peak + CONSTANT


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("ids", ["int32", "int64", "string"])
@pytest.mark.parametrize("shape", list(DEVICE_GRAPHS))
@pytest.mark.gpu
def test_estimate_from_counts_bounds_measured_device_peak(shape, ids, weight):
    if reason := rapids.missing("cudf"):
        pytest.skip(reason)
    edges = DEVICE_GRAPHS[shape]()
    given = edges.astype("int32") if ids == "int32" else scattered(edges).astype("str" if ids == "string" else "int64")
    frame = rapids.as_cudf(given if weight is None else given.assign(weight=np.linspace(1, 2, len(given))))
    prplugin.Graph(frame, weight=weight)
    graphs: list[prplugin.Graph] = []
    peak = peak_device_bytes(lambda: graphs.append(prplugin.Graph(frame, weight=weight)))
    bound = prplugin.estimate(
        edges=len(frame), vertices=graphs[0].number_of_vertices, weighted=weight is not None, ids=ids, id_bytes=20,
        place="device",
    )  # fmt: skip
    print(f"{shape}, {ids}, {weight}: at most {bound.ingest.device.peak:,}, measured {peak:,}")
    assert peak <= bound.ingest.device.peak
    for method in ("persistent", "node", "segmented"):
        assert graphs[0].estimate()[method].device <= bound[method].device
