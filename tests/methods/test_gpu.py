"""Methods on the GPU: what they say where they cannot run, and what they leave behind. The first part needs no GPU."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from method_params import param

import prplugin
from conformance import rapids
from prplugin.gpu import runtime
from prplugin.methods.registry import methods

GPU_METHODS = [name for name, method in methods().items() if method.runs_on == "gpu"]
STEADY = [name for name in GPU_METHODS if not getattr(methods()[name], "nondeterministic", False)]
LIBRARIES = [
    "pandas",
    pytest.param("cudf", marks=pytest.mark.skipif(bool(rapids.missing("cudf")), reason=str(rapids.missing("cudf")))),
]
on_gpu = pytest.mark.parametrize("method", [param(name) for name in GPU_METHODS])
steady_on_gpu = pytest.mark.parametrize("method", [param(name) for name in STEADY])
in_each_library = pytest.mark.parametrize("library", LIBRARIES)
quietly = pytest.mark.filterwarnings("default")  # cuDF warns of itself

SMALL = pd.DataFrame({"src": [1, 2, 3, 1], "dst": [2, 3, 1, 3], "w": [1.0, 2.0, 3.0, 4.0]})


def random_graph(n: int = 2_000, m: int = 20_000) -> pd.DataFrame:
    """Skewed, weighted, with dangling vertices, rows without edges and a hub."""
    rng = np.random.default_rng(0)
    source, target = (n * rng.random(m) ** 2).astype(np.int64), (n * rng.random(m) ** 3).astype(np.int64)
    return pd.DataFrame({"src": source, "dst": np.where(rng.random(m) < 0.1, 7 % n, target), "w": rng.random(m)})


# --- without a GPU ------------------------------------------------------------------------------------------------


class NoDriverError(RuntimeError):
    pass


def a_cupy(devices: int = 1, capability: str = "90", *, driver: bool = True) -> SimpleNamespace:
    """As much of CuPy as `missing` looks at."""

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
        pytest.param(a_cupy(driver=False), "it needs an NVIDIA GPU, and there is none", id="no driver"),
        pytest.param(a_cupy(devices=0), "it needs an NVIDIA GPU, and there is none.", id="no device"),
        pytest.param(
            a_cupy(capability="61"),
            "it needs a GPU of compute capability 7.5 or later, and this one has 6.1.",
            id="an old device",
        ),
    ],
)
@pytest.mark.parametrize("method", GPU_METHODS)
def test_a_method_that_cannot_run_says_why(monkeypatch, method, cupy, reason):
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(prplugin.MethodUnavailableError) as caught:
        SMALL.pagerank(method=method)
    assert f"method {method!r} cannot run here: {reason}" in str(caught.value)


@pytest.mark.parametrize("capability", ["75", "80", "90", "100", "120"])
def test_newer_devices_are_welcome(monkeypatch, capability):
    monkeypatch.setitem(sys.modules, "cupy", a_cupy(capability=capability))
    assert runtime.unavailable_reason() is None


@pytest.mark.parametrize("method", GPU_METHODS)
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_graph_too_large_for_the_memory_is_refused_before_anything_is_allocated(monkeypatch, method, weight):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: None)
    monkeypatch.setattr(runtime, "available_bytes", lambda: 1_000)
    monkeypatch.setattr(runtime, "fits", lambda needed: False)
    with pytest.raises(prplugin.MethodUnavailableError) as caught:
        random_graph().pagerank(weight=weight, method=method)
    message = str(caught.value)
    assert "bytes of GPU memory" in message
    needed = int(message.split("it needs about ")[1].split(" ", maxsplit=1)[0].replace(",", ""))
    assert 2_000 * 8 < needed < 2_000 * 2_000 * 20
    remedies = (
        ["a GPU with more", "chunk_bytes"] if method == "streamed" else ["method='streamed'", "float32", "several GPUs"]
    )
    for words in ["1,000 are free", *remedies]:
        assert words in message


def test_auto_on_pandas_never_imports_cupy():
    code = (
        "import pandas, prplugin, sys\n"
        "prplugin.Graph(pandas.DataFrame({'src': [1, 2], 'dst': [2, 1]})).rank(progress=lambda state: None)\n"
        "print([name for name in ('cupy', 'cudf', 'rmm', 'cugraph') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_auto_on_pandas_never_looks_for_a_gpu(monkeypatch):
    monkeypatch.setattr(runtime, "unavailable_reason", lambda: pytest.fail("looked for a GPU"))
    assert prplugin.Graph(SMALL).rank().method in ("numpy", "numba")


# --- with one -----------------------------------------------------------------------------------------------------


def posed(frame: pd.DataFrame, library: str):
    return rapids.as_cudf(frame) if library == "cudf" else frame


def ranks_of(edges, method: str, **options) -> np.ndarray:
    return rapids.on_host(prplugin.Graph(edges, weight="w").rank(method=method, **options).ranks)


@contextmanager
def limited(size: int = 2**40) -> Iterator[Callable[[], int]]:
    """Allow so many bytes more; give a function that counts those in use. By RMM where it is loaded, else by CuPy."""
    gc.collect()
    rmm = sys.modules.get("rmm")
    if rmm is not None:
        before = rmm.mr.get_current_device_resource()
        limit = rmm.mr.LimitingResourceAdaptor(before, size)
        rmm.mr.set_current_device_resource(limit)
        try:
            yield limit.get_allocated_bytes
        finally:
            gc.collect()
            rmm.mr.set_current_device_resource(before)
        return
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.get_limit()
    pool.set_limit(size=pool.total_bytes() + size)
    try:
        yield pool.used_bytes
    finally:
        pool.set_limit(size=before)


@quietly
@in_each_library
@on_gpu
def test_memory_that_runs_out_is_said_and_given_back(method, library):
    edges = posed(random_graph(20_000, 200_000), library)
    expected = ranks_of(edges, method)
    with limited(500_000) as used:
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


@quietly
@in_each_library
@on_gpu
def test_a_graph_too_large_leaves_nothing_behind(monkeypatch, method, library):
    edges = posed(random_graph(), library)
    with limited() as used:
        before = used()
        with monkeypatch.context() as patch:
            patch.setattr(runtime, "available_bytes", lambda: 1_000)
            patch.setattr(runtime, "fits", lambda needed: False)
            with pytest.raises(prplugin.MethodUnavailableError, match="1,000 are free"):
                ranks_of(edges, method)
        gc.collect()
        assert used() == before
    assert ranks_of(edges, method).sum() == pytest.approx(1)


@quietly
@in_each_library
@on_gpu
def test_a_ranking_leaves_nothing_but_itself(method, library):
    edges = posed(random_graph(), library)
    ranks_of(edges, method)
    with limited() as used:
        before = used()
        ranks_of(edges, method, dtype="float32")
        gc.collect()
        assert used() == before


@quietly
@in_each_library
@on_gpu
def test_progress_is_told(method, library):
    states = []
    ranking = prplugin.Graph(posed(random_graph(), library)).rank(method=method, progress=states.append)
    assert states[0].stage == "edges"
    told = [state.iterations for state in states[1:]]
    assert told == sorted(set(told))  # once a launch
    assert told[-1] == ranking.iterations
    assert states[-1].error_bound <= 1e-6


@quietly
@in_each_library
@on_gpu
def test_an_interrupt_leaves_nothing_behind(method, library):
    def interrupt(state) -> None:
        if state.iterations >= 3:
            raise KeyboardInterrupt

    edges = posed(random_graph(), library)
    expected = ranks_of(edges, method)
    with limited() as used:
        before = used()
        with pytest.raises(KeyboardInterrupt):
            ranks_of(edges, method, progress=interrupt)
        gc.collect()
        assert used() == before
    assert np.abs(ranks_of(edges, method) - expected).sum() <= 2e-6


@quietly
@in_each_library
@steady_on_gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_bits_every_time_and_on_every_stream(method, library, dtype):
    import cupy

    edges = posed(random_graph(), library)
    expected = ranks_of(edges, method, dtype=dtype)
    assert np.array_equal(ranks_of(edges, method, dtype=dtype), expected)
    for stream in (cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream.ptds):
        with stream:
            ranks = ranks_of(edges, method, dtype=dtype)
            assert cupy.cuda.get_current_stream() == stream
        assert np.array_equal(ranks, expected)


@quietly
@in_each_library
@on_gpu
def test_work_goes_on_the_current_stream(method, library):
    """A capture of another stream would notice work on the null stream; here, that it is idle once ours has waited."""
    import cupy

    edges = posed(random_graph(), library)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        ranking = prplugin.Graph(edges, weight="w").rank(method=method)
        stream.synchronize()
        assert cupy.cuda.Stream.null.done
    assert float(ranking.ranks.sum()) == pytest.approx(1)


@contextmanager
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Fill each allocation of CuPy with 0xFF: NaN as a float, -1 as an integer. Gives the sizes of those filled."""
    import cupy

    filled = []

    def filling(allocate):
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
                def __init__(self, *, size=0, **how):
                    if size:
                        cupy.cuda.runtime.memsetAsync(self.ptr, 0xFF, size, cupy.cuda.get_current_stream().ptr)
                        filled.append(size)

            patch.setattr(rmm, "DeviceBuffer", Filled)
        with cupy.cuda.using_allocator(filling(cupy.get_default_memory_pool().malloc)):
            yield filled


@quietly
@in_each_library
@steady_on_gpu
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [(2_000, 20_000), (3, 4), (1, 0)], ids=str)
def test_every_element_is_written_before_it_is_read(monkeypatch, method, library, weight, dtype, size):
    frame = random_graph(*size)
    edges, vertices = posed(frame, library), list(range(size[0]))
    vectors = {"personalization": {0: 1}, "dangling": {size[0] - 1: 1}}

    def ranked() -> np.ndarray:
        graph = prplugin.Graph(edges, weight=weight, vertices=vertices)
        return rapids.on_host(graph.rank(method=method, dtype=dtype, **vectors).ranks)

    expected = ranked()
    with poisoned(monkeypatch) as filled:
        assert np.array_equal(ranked(), expected)
    assert filled


@quietly
@in_each_library
@steady_on_gpu
@pytest.mark.parametrize("weight", [None, "w"])
def test_64_bit_offsets_give_the_same_bits(monkeypatch, method, library, weight):
    edges = posed(random_graph(), library)
    expected = rapids.on_host(prplugin.Graph(edges, weight=weight).rank(method=method).ranks)
    for module in ("group", "edges"):
        monkeypatch.setattr(f"prplugin.gpu.{module}.offset_dtype", lambda m: np.dtype(np.int64))
    ranks = rapids.on_host(prplugin.Graph(edges, weight=weight).rank(method=method).ranks)
    assert np.array_equal(ranks, expected)


@quietly
@in_each_library
@on_gpu
def test_a_ranking_can_be_pickled(method, library):
    ranking = prplugin.Graph(posed(random_graph(), library)).rank(method=method, top=5)
    again = pickle.loads(pickle.dumps(ranking))
    assert (again.error_bound, again.method) == (ranking.error_bound, method)
    assert type(again.frame) is type(ranking.frame)
    pd.testing.assert_frame_equal(rapids.on_host(again.frame), rapids.on_host(ranking.frame))


@pytest.mark.gpu
def test_what_is_compiled_ahead_is_what_is_wanted(monkeypatch):
    ahead, wanted = [], []
    kernel = runtime.kernel
    monkeypatch.setattr(runtime, "compile_ahead", lambda *which, **macros: ahead.append((which, macros)))
    monkeypatch.setattr(
        runtime, "kernel", lambda *which, **macros: wanted.append((which, macros)) or kernel(*which, **macros)
    )
    cudf = pytest.importorskip("cudf")
    for weight in (None, "w"):
        cudf.from_pandas(random_graph()).pagerank(weight=weight, method="persistent")
    assert len(ahead) == 4
    assert all(one in wanted for one in ahead)
