"""GPU methods: unavailability, memory after errors, streams, reproducibility. The first part needs no GPU."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from limits import limited_memory
from method_params import param

import prplugin
from conformance import rapids
from prplugin.gpu import runtime
from prplugin.methods import registry
from prplugin.methods.engines import gpu_pull
from prplugin.methods.registry import methods

GPU_METHODS = [name for name, method in methods().items() if method.runs_on == "gpu"]
DETERMINISTIC = [name for name in GPU_METHODS if not getattr(methods()[name], "nondeterministic", False)]
LIBRARIES = [
    "pandas",
    pytest.param("cudf", marks=pytest.mark.skipif(bool(rapids.missing("cudf")), reason=str(rapids.missing("cudf")))),
]
each_gpu_method = pytest.mark.parametrize("method", [param(name) for name in GPU_METHODS])
each_deterministic_method = pytest.mark.parametrize("method", [param(name) for name in DETERMINISTIC])
each_library = pytest.mark.parametrize("library", LIBRARIES)
allow_warnings = pytest.mark.filterwarnings("default")  # cuDF raises warnings of its own

SMALL = pd.DataFrame({"src": [1, 2, 3, 1], "dst": [2, 3, 1, 3], "w": [1.0, 2.0, 3.0, 4.0]})


def random_graph(n: int = 2_000, m: int = 20_000) -> pd.DataFrame:
    """Return weighted edges of skewed degrees with dangling vertices, vertices without in-edges and a hub."""
    rng = np.random.default_rng(0)
    source, target = (n * rng.random(m) ** 2).astype(np.int64), (n * rng.random(m) ** 3).astype(np.int64)
    return pd.DataFrame({"src": source, "dst": np.where(rng.random(m) < 0.1, 7 % n, target), "w": rng.random(m)})


# --- without a GPU ------------------------------------------------------------------------------------------------


class NoDriverError(RuntimeError):
    pass


def cupy_stub(devices: int = 1, capability: str = "90", *, driver: bool = True) -> SimpleNamespace:
    """Return a stub of the CuPy functions that `missing` calls."""

    def count() -> int:
        if not driver:
            raise NoDriverError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
        return devices

    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=NoDriverError)
    device = SimpleNamespace(compute_capability=capability)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, Device=lambda: device), ndarray=type(None))


@pytest.mark.parametrize(
    ("cupy", "reason"),
    [
        pytest.param(None, "it needs an NVIDIA GPU and CuPy, which cannot be imported", id="no CuPy"),
        pytest.param(cupy_stub(driver=False), "it needs an NVIDIA GPU, and there is none", id="no driver"),
        pytest.param(cupy_stub(devices=0), "it needs an NVIDIA GPU, and there is none.", id="no device"),
        pytest.param(
            cupy_stub(capability="61"),
            "it needs a GPU of compute capability 7.0 or later, and this one has 6.1.",
            id="old device",
        ),
    ],
)
@pytest.mark.parametrize("method", GPU_METHODS)
def test_unavailable_method_names_reason(monkeypatch, method, cupy, reason):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(prplugin.MethodUnavailableError) as caught:
        SMALL.pagerank(method=method)
    assert f"method {method!r} cannot run here: {reason}" in str(caught.value)


@pytest.mark.parametrize("capability", ["75", "80", "90", "100", "120"])
def test_supported_compute_capabilities(monkeypatch, capability):
    monkeypatch.setitem(sys.modules, "cupy", cupy_stub(capability=capability))
    assert runtime.unavailable_reason() is None


@pytest.mark.parametrize("method", GPU_METHODS)
@pytest.mark.parametrize("weight", [None, "w"])
def test_graph_larger_than_memory_raises_before_allocation(monkeypatch, method, weight):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(runtime, "available_bytes", lambda: 1_000)
    monkeypatch.setattr(runtime, "fits", lambda needed: False)
    monkeypatch.setattr(gpu_pull, "SMALL", 0)
    with pytest.raises(prplugin.MethodUnavailableError) as caught:
        random_graph().pagerank(weight=weight, method=method)
    message = str(caught.value)
    assert "bytes of GPU memory" in message
    needed = int(message.split("it needs about ")[1].split(" ", maxsplit=1)[0].replace(",", ""))
    assert 2_000 * 8 < needed < 2_000 * 2_000 * 20
    remedies = (
        ["a GPU with more", "chunk_bytes"] if method == "streamed" else ["method='streamed'", "float32", "several GPUs"]
    )
    for text in ["1,000 are free", *remedies]:
        assert text in message


def test_auto_on_pandas_never_looks_for_a_gpu(monkeypatch):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: pytest.fail("looked for a GPU"))
    assert prplugin.Graph(SMALL).rank().method in ("numpy", "native")


# --- on the GPU ---------------------------------------------------------------------------------------------------


def in_library(frame: pd.DataFrame, library: str):
    return rapids.as_cudf(frame) if library == "cudf" else frame


def ranks_of(edges, method: str, **options) -> np.ndarray:
    return rapids.on_host(prplugin.Graph(edges, weight="w").rank(method=method, **options).ranks)


@allow_warnings
@each_library
@each_gpu_method
def test_out_of_memory_raises_and_frees_memory(method, library):
    edges = in_library(random_graph(20_000, 200_000), library)
    expected = ranks_of(edges, method)
    with limited_memory(500_000) as used:
        before = used()
        with pytest.raises(
            prplugin.MethodUnavailableError, match=r"the GPU's memory ran out|bytes of GPU memory"
        ) as caught:
            ranks_of(edges, method)
        assert "streamed" in str(caught.value)
        del caught
        gc.collect()
        assert used() == before
    assert np.abs(ranks_of(edges, method) - expected).sum() <= 2e-6


@allow_warnings
@each_library
@each_gpu_method
def test_graph_larger_than_memory_frees_memory(monkeypatch, method, library):
    edges = in_library(random_graph(), library)
    with limited_memory() as used:
        before = used()
        with monkeypatch.context() as patch:
            patch.setattr(runtime, "available_bytes", lambda: 1_000)
            patch.setattr(runtime, "fits", lambda needed: False)
            patch.setattr(gpu_pull, "SMALL", 0)
            with pytest.raises(prplugin.MethodUnavailableError, match="1,000 are free"):
                ranks_of(edges, method)
        gc.collect()
        assert used() == before
    assert ranks_of(edges, method).sum() == pytest.approx(1)


@allow_warnings
@each_library
@each_gpu_method
def test_ranking_frees_memory(method, library):
    edges = in_library(random_graph(), library)
    ranks_of(edges, method)
    with limited_memory() as used:
        before = used()
        ranks_of(edges, method, dtype="float32")
        gc.collect()
        assert used() == before


@allow_warnings
@each_library
@each_gpu_method
def test_progress_is_reported(method, library):
    states = []
    ranking = prplugin.Graph(in_library(random_graph(), library)).rank(method=method, progress=states.append)
    assert states[0].stage == "edges"
    iterations = [state.iterations for state in states[1:]]
    assert iterations == sorted(set(iterations))  # once per launch
    assert iterations[-1] == ranking.iterations
    assert states[-1].error_bound <= 1e-6


@allow_warnings
@each_library
@each_gpu_method
def test_interrupt_frees_memory(method, library):
    def interrupt(state) -> None:
        if state.iterations >= 3:
            raise KeyboardInterrupt

    edges = in_library(random_graph(), library)
    expected = ranks_of(edges, method)
    with limited_memory() as used:
        before = used()
        with pytest.raises(KeyboardInterrupt):
            ranks_of(edges, method, progress=interrupt)
        gc.collect()
        assert used() == before
    assert np.abs(ranks_of(edges, method) - expected).sum() <= 2e-6


@allow_warnings
@each_library
@each_deterministic_method
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_do_not_depend_on_run_or_stream(method, library, dtype):
    import cupy

    edges = in_library(random_graph(), library)
    expected = ranks_of(edges, method, dtype=dtype)
    assert np.array_equal(ranks_of(edges, method, dtype=dtype), expected)
    for stream in (cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream.ptds):
        with stream:
            ranks = ranks_of(edges, method, dtype=dtype)
            assert cupy.cuda.get_current_stream() == stream
        assert np.array_equal(ranks, expected)


@allow_warnings
@each_library
@each_gpu_method
def test_work_is_enqueued_on_current_stream(method, library):
    """Check that the null stream is idle after the current stream is synchronized."""
    import cupy

    edges = in_library(random_graph(), library)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        ranking = prplugin.Graph(edges, weight="w").rank(method=method)
        stream.synchronize()
        assert cupy.cuda.Stream.null.done
    assert float(ranking.ranks.sum()) == pytest.approx(1)


@contextmanager
def fill_allocations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Fill each CuPy allocation with 0xFF, which is NaN as a float and -1 as an integer, and yield their sizes."""
    import cupy

    filled = []

    def filling_allocator(allocate):
        def fill(size):
            memory = allocate(size)
            if size:
                memory.memset_async(0xFF, size)
                filled.append(size)
            return memory

        return fill

    with monkeypatch.context() as patch:
        if "rmm" in sys.modules:
            import rmm

            class Filled(rmm.DeviceBuffer):
                def __init__(self, *, size=0, **options):
                    if size:
                        cupy.cuda.runtime.memsetAsync(self.ptr, 0xFF, size, cupy.cuda.get_current_stream().ptr)
                        filled.append(size)

            patch.setattr(rmm, "DeviceBuffer", Filled)
        with cupy.cuda.using_allocator(filling_allocator(cupy.get_default_memory_pool().malloc)):
            yield filled


@allow_warnings
@each_library
@each_deterministic_method
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [(2_000, 20_000), (3, 4), (1, 0)], ids=str)
def test_every_element_is_written_before_it_is_read(monkeypatch, method, library, weight, dtype, size):
    frame = random_graph(*size)
    edges, vertices = in_library(frame, library), list(range(size[0]))
    vectors = {"personalization": {0: 1}, "dangling": {size[0] - 1: 1}}

    def ranked() -> np.ndarray:
        graph = prplugin.Graph(edges, weight=weight, vertices=vertices)
        return rapids.on_host(graph.rank(method=method, dtype=dtype, **vectors).ranks)

    expected = ranked()
    with fill_allocations(monkeypatch) as filled:
        assert np.array_equal(ranked(), expected)
    assert filled


@allow_warnings
@each_library
@each_deterministic_method
@pytest.mark.parametrize("weight", [None, "w"])
def test_64_bit_offsets_give_same_bits(monkeypatch, method, library, weight):
    edges = in_library(random_graph(), library)
    expected = rapids.on_host(prplugin.Graph(edges, weight=weight).rank(method=method).ranks)
    for module in ("group", "edges"):
        monkeypatch.setattr(f"prplugin.gpu.{module}.offset_dtype", lambda m: np.dtype(np.int64))
    ranks = rapids.on_host(prplugin.Graph(edges, weight=weight).rank(method=method).ranks)
    assert np.array_equal(ranks, expected)


@allow_warnings
@each_library
@each_gpu_method
def test_ranking_can_be_pickled(method, library):
    ranking = prplugin.Graph(in_library(random_graph(), library)).rank(method=method, top=5)
    again = pickle.loads(pickle.dumps(ranking))
    assert (again.error_bound, again.method) == (ranking.error_bound, method)
    assert type(again.frame) is type(ranking.frame)
    pd.testing.assert_frame_equal(rapids.on_host(again.frame), rapids.on_host(ranking.frame))


@pytest.mark.gpu
def test_kernels_compiled_ahead_are_used(monkeypatch):
    registry.compile_ahead.cache_clear()
    compiled_ahead, used = [], []
    kernel = runtime.kernel
    monkeypatch.setattr(runtime, "compile_ahead", lambda *which, **macros: compiled_ahead.append((which, macros)))
    monkeypatch.setattr(
        runtime, "kernel", lambda *which, **macros: used.append((which, macros)) or kernel(*which, **macros)
    )
    cudf = pytest.importorskip("cudf")
    for weight in (None, "w"):
        cudf.from_pandas(random_graph()).pagerank(weight=weight, method="persistent")
    assert len(compiled_ahead) == 4
    assert all(call in used for call in compiled_ahead)
