"""What is estimated before the work is what the work then takes: bytes are measured here, never seconds."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
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
from prplugin.methods import estimates
from prplugin.methods.registry import methods

MARGIN = 0.15
CPU_METHODS = [name for name, method in methods().items() if method.runs_on == "cpu"]
SMALL = pd.DataFrame({"src": [1, 2, 3, 1], "dst": [2, 3, 1, 3], "w": [1.0, 2.0, 3.0, 4.0]})

GRAPHS: dict[str, Callable[[], pd.DataFrame]] = {
    "R-MAT 14": lambda: rmat(14),  # below what Numba groups
    "R-MAT 16": lambda: rmat(16),
    "grid 300": lambda: grid(300),
    "grid 450": lambda: grid(450),
    "uniform": lambda: uniform(200_000, 800_000),
}


@pytest.fixture(autouse=True)
def _numpy_below_a_million_edges(monkeypatch):
    """What the tests before have ranked decides on compiled kernels for small frames, which take less."""
    monkeypatch.setattr("prplugin.machine.COMPILED_AFTER_EDGES", 10**12)


def peak_of(do: Callable[[], Any]) -> int:
    """Give the most bytes of NumPy and Python that a call holds beside what there was."""
    gc.collect()
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- on the CPU ---------------------------------------------------------------------------------------------------


def assert_measured(method, name, weight, attribute, **options):
    """Assert that an estimate of bytes on the host is what a ranking then takes."""
    edges = GRAPHS[name]()
    posed = edges if weight is None else weighted(edges)
    prplugin.Graph(posed, weight=weight).rank(method=method, **options)  # imports and compiles
    graph = prplugin.Graph(posed, weight=weight)
    found = graph.estimate()[method]
    peak = peak_of(lambda: graph.rank(method=method, **options))
    assert getattr(found, attribute) == pytest.approx(peak, rel=MARGIN, abs=2**16)
    assert found.device == 0


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("method", CPU_METHODS)
def test_bytes_on_the_host_are_those_measured(method, name, weight):
    assert_measured(method, name, weight, "host", tol=1e-3)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("name", ["grid 300", pytest.param("grid 450", marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", CPU_METHODS)
def test_bytes_where_many_iterations_are_left_are_those_measured(method, name, weight):
    assert_measured(method, name, weight, "host_at_most", alpha=0.99, tol=1e-9)


def test_a_graph_that_has_ranked_needs_less():
    graph = prplugin.Graph(GRAPHS["R-MAT 14"]())
    before = graph.estimate()["numpy"].host
    graph.rank(method="numpy")
    after = graph.estimate()["numpy"].host
    assert after < before
    assert abs(after - peak_of(lambda: graph.rank(method="numpy"))) <= MARGIN * after + 2**16


# --- from counts alone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", ["int32", "int64", "string"])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(
    "shape",
    [
        "R-MAT 14",
        "R-MAT 16",
        *[pytest.param(shape, marks=pytest.mark.slow) for shape in ("uniform", "more vertices than edges")],
    ],
)
def test_counts_alone_bound_what_is_taken(ids, weight, shape):
    edges = GRAPHS[shape]() if shape in GRAPHS else uniform(2_000_000, 800_000)
    frame = edges.astype("int32") if ids == "int32" else scattered(edges).astype("str" if ids == "string" else "int64")
    if weight:
        frame = weighted(frame) if ids != "string" else frame.assign(weight=1.5)
    prplugin.Graph(frame, weight=weight)  # imports and compiles
    made: list[prplugin.Graph] = []
    peak = peak_bytes(lambda: made.append(prplugin.Graph(frame, weight=weight)))
    graph = made[0]
    bound = prplugin.estimate(
        edges=len(frame), vertices=graph.number_of_vertices, weighted=weight is not None, ids=ids, id_bytes=20
    )
    assert bound.ingest is not None
    assert bound.ingest.device == (0, 0)
    assert peak <= bound.ingest.host.peak <= 12 * peak
    loose = prplugin.estimate(edges=len(frame), weighted=weight is not None, ids=ids, id_bytes=20)
    for method in CPU_METHODS:
        found = graph.estimate()[method]
        assert found.host <= bound[method].host <= loose[method].host
        assert found.host_at_most <= bound[method].host_at_most <= loose[method].host_at_most
    assert bound.ingest.host.peak <= loose.ingest.host.peak


def test_counts_need_no_gpu_for_a_frame_on_one():
    bound = prplugin.estimate(edges=10**9, vertices=5 * 10**7, place="device")
    assert bound.ingest.device.peak > 8 * 10**9 > bound["streamed"].device
    assert bound["persistent"].device > 8 * 10**9
    assert bound.ingest.host == (0, 0)


@pytest.mark.parametrize("edges", [0, 1])
@pytest.mark.parametrize("place", ["host", "device"])
def test_next_to_nothing_can_be_estimated(edges, place):
    found = prplugin.estimate(edges=edges, place=place)
    assert [method.method for method in found.methods] == list(methods())
    assert prplugin.Graph(SMALL.head(edges)).estimate().edges == edges


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": -1}, "edges must be a whole number"),
        ({"edges": 1.5}, "edges must be a whole number"),
        ({"edges": 1, "vertices": "many"}, "vertices must be a whole number"),
        ({"edges": 1, "ids": "float"}, "ids must be one of 'int32', 'int64', 'string', not 'float'"),
        ({"edges": 1, "place": "gpu"}, "place must be one of 'host', 'device', not 'gpu'"),
    ],
)
def test_counts_that_mean_nothing_are_refused(options, message):
    with pytest.raises(prplugin.InvalidOptionError, match=message):
        prplugin.estimate(**options)


EDGES_OF_COUNTS = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1], "w": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("dtype", "ids"),
    [("int64", "int64"), ("int32", "int32"), ("uint8", "int32"), ("Int64", "int64"), ("str", "string")],
)
@pytest.mark.parametrize("library", ["pandas", "polars", "polars lazy", "pyarrow", "parquet", "dask", "duckdb"])
def test_a_frame_tells_its_counts(library, dtype, ids, tmp_path):
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


def test_what_a_frame_tells_cannot_be_given_as_well():
    frame = EDGES_OF_COUNTS
    for options in ({"ids": "int32"}, {"place": "host"}, {"weighted": False}):
        with pytest.raises(prplugin.InvalidOptionError, match="a frame tells it itself"):
            prplugin.estimate(frame, **options)
    with pytest.raises(prplugin.InvalidOptionError, match="weight= names a column of a frame"):
        prplugin.estimate(3, weight="w")
    with pytest.raises(prplugin.ColumnNotFoundError, match="'nowhere'"):
        prplugin.estimate(frame, weight="nowhere")
    with pytest.raises(prplugin.InvalidOptionError, match="several columns"):
        prplugin.estimate(frame, ["src", "w"], ["dst", "w"])


# --- what it says -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["R-MAT 14", "R-MAT 16"])
def test_it_says_what_auto_takes(name):
    graph = prplugin.Graph(GRAPHS[name]())
    chosen = graph.estimate().chosen
    assert chosen.method == graph.rank().method
    assert chosen.reason is None


def test_it_reads_as_a_table():
    found = prplugin.Graph(SMALL).estimate()
    title, header, *rows = str(found).splitlines()
    assert title == "3 vertices, 4 edges, on the host"
    assert header.split() == ["method", "GPU", "at", "most", "host", "at", "most", "seconds"]
    assert [row.split()[0] for row in rows] == list(methods())
    assert [row.split()[0] for row in rows if row.endswith("auto takes it")] == [found.chosen.method]
    assert found["numpy"].reason is None
    bound = str(prplugin.estimate(edges=4, vertices=3)).splitlines()[0]
    assert bound.startswith("3 vertices, 4 edges, on the host; at most ")


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (123_456_789, "123 MB"), (10**13, "10 TB")]
)
def test_bytes_are_spelt_with_three_digits(size, words):
    assert estimates.format_bytes(size) == words


# --- when memory runs out -----------------------------------------------------------------------------------------


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("method", CPU_METHODS)
def test_a_plan_that_runs_out_of_memory_says_what_it_needs(monkeypatch, method):
    graph = prplugin.Graph(SMALL)
    needed = graph.estimate()[method].host_at_most
    monkeypatch.setattr(methods()[method], "prepare", failing(MemoryError("Unable to allocate 7. GiB for an array")))
    monkeypatch.setattr(estimates, "bytes_available", lambda: 12_345)
    with pytest.raises(prplugin.OutOfMemoryError) as caught:
        graph.rank(method=method)
    message = str(caught.value)
    assert message.startswith("this machine's memory ran out: Unable to allocate 7. GiB for an array. ")
    assert (
        f"method={method!r} needs about {needed:,} bytes of this machine's memory, of which 12,345 are free" in message
    )
    assert isinstance(caught.value, (MemoryError, prplugin.PageRankError))


def test_a_plan_that_does_not_fit_the_gpu_says_what_does(monkeypatch):
    class OutOfMemoryError(MemoryError):
        """As CuPy's."""

    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(runtime, "available_bytes", lambda: 1_000)
    monkeypatch.setattr(runtime, "fits", lambda needed: True)
    monkeypatch.setattr(runtime, "attribute", lambda name: 232_448)  # of shared memory
    monkeypatch.setitem(sys.modules, "rmm", None)
    graph = prplugin.Graph(rmat(12))
    found = graph.estimate()
    monkeypatch.setattr(methods()["node"], "prepare", failing(OutOfMemoryError("Out of memory allocating 512 bytes")))
    with pytest.raises(prplugin.OutOfMemoryError) as caught:
        graph.rank(method="node")
    message = str(caught.value)
    assert message.startswith(
        "the GPU's memory ran out: Out of memory allocating 512 bytes. method='node' needs about "
    )
    assert f"{found['node'].device:,} bytes of the GPU's memory, of which 1,000 are free" in message
    assert "Less is needed by 'numba', 'numpy', 'streamed'. " in message
    assert "method='streamed'" in message


def test_a_frame_that_runs_out_of_memory_says_how_many_rows_take_how_much(monkeypatch):
    monkeypatch.setattr("prplugin.frames.pandas.read", failing(MemoryError("Unable to allocate 7. GiB for an array")))
    with pytest.raises(
        prplugin.OutOfMemoryError, match=r"memory ran out: Unable to .* A graph of 4 edges .* up to [0-9,]+ bytes"
    ):
        SMALL.pagerank()


def test_what_had_been_made_goes_though_the_error_is_kept():
    made = []

    class Large:
        def __init__(self):
            made.append(self)

        def __del__(self):
            made.append("gone")

    def work():
        large = Large()
        made.clear()
        raise MemoryError(type(large).__name__)

    with pytest.raises(prplugin.OutOfMemoryError) as caught, estimates.explain_oom(lambda: "It needs more."):
        work()
    assert str(caught.value) == "this machine's memory ran out: Large. It needs more."
    assert made == ["gone"]


# --- on the GPU ---------------------------------------------------------------------------------------------------

ON_GPU: dict[str, Callable[[], pd.DataFrame]] = {"R-MAT 18": lambda: rmat(18), "grid 700": lambda: grid(700)}
TINY: dict[str, Callable[[], pd.DataFrame]] = {"R-MAT 12": lambda: rmat(12), "grid 60": lambda: grid(60)}
CONSTANT = 3 << 20
"""Bytes that do not grow with the graph: sums of blocks, and what rates are measured with."""


def peak_on_gpu(do: Callable[[], Any]) -> int:
    """Give the most bytes that a call takes from RMM, where that is loaded, or from CuPy's pool."""
    import cupy

    gc.collect()
    rmm = sys.modules.get("rmm")
    if rmm is not None:
        upstream = rmm.mr.get_current_device_resource()
        seen = rmm.mr.StatisticsResourceAdaptor(upstream)
        rmm.mr.set_current_device_resource(seen)
        try:
            do()
            return int(seen.allocation_counts.peak_bytes)
        finally:
            gc.collect()
            rmm.mr.set_current_device_resource(upstream)

    class Counting(cupy.cuda.MemoryHook):
        name = "counting"

        def __init__(self) -> None:
            self.held: dict[int, int] = {}
            self.peak = 0

        def malloc_postprocess(self, device_id: int, size: int, mem_size: int, mem_ptr: int, pmem_id: int) -> None:
            self.held[mem_ptr] = mem_size
            self.peak = max(self.peak, sum(self.held.values()))

        def free_postprocess(self, device_id: int, mem_size: int, mem_ptr: int, pmem_id: int) -> None:
            self.held.pop(mem_ptr, None)

    with Counting() as counting:
        do()
    return counting.peak


@pytest.mark.filterwarnings("default")  # cuDF warns of itself
@pytest.mark.parametrize("method", [param(name) for name, method in methods().items() if method.runs_on == "gpu"])
@pytest.mark.parametrize("library", ["pandas", "cudf"])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("shape", [0, 1])
def test_bytes_on_the_gpu_are_those_measured(method, library, weight, shape):
    if library == "cudf" and (reason := rapids.missing("cudf")):
        pytest.skip(reason)
    graphs = TINY if method == "dense" else ON_GPU
    name = list(graphs)[shape]
    edges = graphs[name]() if weight is None else weighted(graphs[name]())
    posed = rapids.as_cudf(edges) if library == "cudf" else edges
    prplugin.Graph(posed, weight=weight).rank(method=method, tol=1e-3)  # compiles
    graph = prplugin.Graph(posed, weight=weight)
    estimated = graph.estimate()[method].device
    peak = peak_on_gpu(lambda: graph.rank(method=method, tol=1e-3))
    said = f"{method} on {name}, {library}, {weight}: estimated {estimated:,}, measured {peak:,}"
    print(said, f"{estimated / peak:.2f}")
    assert abs(estimated - peak) <= MARGIN * peak + CONSTANT, said


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("method", [param("persistent"), param("propagation-blocking")])
@pytest.mark.parametrize("library", ["pandas", "cudf"])
def test_extrapolation_on_the_gpu_is_counted(method, library):
    if library == "cudf" and (reason := rapids.missing("cudf")):
        pytest.skip(reason)
    frame = ON_GPU["grid 700"]()
    posed = rapids.as_cudf(frame) if library == "cudf" else frame
    prplugin.Graph(posed).rank(method=method, alpha=0.99)
    graph = prplugin.Graph(posed)
    found = graph.estimate()[method]
    peak = peak_on_gpu(lambda: graph.rank(method=method, alpha=0.99))
    assert found.device < peak
    assert abs(found.device_at_most - peak) <= MARGIN * peak + CONSTANT


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("ids", ["int32", "int64", "string"])
@pytest.mark.parametrize("shape", list(ON_GPU))
@pytest.mark.gpu
def test_counts_alone_bound_what_is_taken_on_the_gpu(shape, ids, weight):
    if reason := rapids.missing("cudf"):
        pytest.skip(reason)
    edges = ON_GPU[shape]()
    posed = edges.astype("int32") if ids == "int32" else scattered(edges).astype("str" if ids == "string" else "int64")
    frame = rapids.as_cudf(posed if weight is None else posed.assign(weight=np.linspace(1, 2, len(posed))))
    prplugin.Graph(frame, weight=weight)
    made: list[prplugin.Graph] = []
    peak = peak_on_gpu(lambda: made.append(prplugin.Graph(frame, weight=weight)))
    bound = prplugin.estimate(
        edges=len(frame), vertices=made[0].number_of_vertices, weighted=weight is not None, ids=ids, id_bytes=20,
        place="device",
    )  # fmt: skip
    print(f"{shape}, {ids}, {weight}: at most {bound.ingest.device.peak:,}, measured {peak:,}")
    assert peak <= bound.ingest.device.peak
    for method in ("persistent", "node", "segmented"):
        assert made[0].estimate()[method].device <= bound[method].device
