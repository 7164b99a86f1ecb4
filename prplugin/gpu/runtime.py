"""The GPU: whether there is one, what memory it has, and kernels compiled from the .cu files of this package."""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np

from prplugin.errors import InvalidOptionError, MethodUnavailableError, OutOfMemoryError
from prplugin.types.arrays import Place, settle

__all__ = [
    "BUDGET",
    "COMPUTE_CAPABILITY",
    "REMEDY",
    "allocating",
    "attribute",
    "blocks_for",
    "budget",
    "bytes_free",
    "compile_ahead",
    "ctype",
    "device",
    "holds",
    "kernel",
    "missing",
    "multiprocessors",
    "require_bytes",
    "roomy",
    "source",
]

COMPUTE_CAPABILITY = (7, 5)
"""The oldest hardware that CUDA 13 compiles for; `edge` needs native atomic additions of doubles, of 6.0 or later."""

REMEDY = "Use method='streamed', which keeps the edges in host memory, dtype='float32', or several GPUs."
"""What to do where memory is short."""

FEW_BYTES = 1 << 28
"""Of which there will be room: on the smallest GPU of today, a sixteenth of its memory."""

BUDGET = "PRPLUGIN_DEVICE_MEMORY"
"""The variable of the environment that says how many bytes of a GPU's memory may be in use here at a time."""

UNITS = {"": 1, "b": 1}
UNITS |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)}
UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}

ROOT = Path(__file__).parents[1]
"""Folder of the package, to which paths of kernels are relative."""

CTYPES = {
    np.dtype(name): spelt
    for name, spelt in (("int32", "int"), ("int64", "long long"), ("float32", "float"), ("float64", "double"))
}


def missing() -> str | None:
    """Say why nothing can run on a GPU here, or None if it can."""
    try:
        import cupy  # asked for by a method that runs on the GPU
    except ImportError as error:
        return f"it needs an NVIDIA GPU and CuPy, which cannot be imported ({error}): pip install 'prplugin[gpu]'."
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        major, minor = divmod(int(cupy.cuda.Device().compute_capability), 10) if count else (0, 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"it needs an NVIDIA GPU, and there is none ({str(error).partition(':')[0]})."
    if not count:
        return "it needs an NVIDIA GPU, and there is none."
    if (major, minor) < COMPUTE_CAPABILITY:
        return (
            f"it needs a GPU of compute capability {'.'.join(map(str, COMPUTE_CAPABILITY))} or later, "
            f"and this one has {major}.{minor}."
        )
    return None


@contextmanager
def allocating(place: Place, gpu: Any = None) -> Iterator[None]:
    """On the "device", take CuPy's memory from the user's current RMM resource, where RMM is loaded; else do nothing.

    At the end it waits for the current stream: what was made within may be read, and freed, on any other.

    `gpu` (cupy.cuda.Device, optional): That which holds the arrays of the work; the current one if not given.

    Raises OutOfMemoryError: if the GPU's memory runs out within.
    """
    if place == "host":
        yield
        return
    try:
        with gpu or nullcontext(), _allocator():
            yield
            settle(place)
    except MemoryError as error:
        if type(error).__module__.startswith("numpy"):  # that of the host
            raise
        raise OutOfMemoryError(f"the GPU's memory ran out: {error}. {REMEDY}") from error


@contextmanager
def _allocator() -> Iterator[None]:
    """Let CuPy take memory from RMM where that is loaded, and no more of it than the budget, if there is one."""
    allocate, limit = _from_rmm(), budget()
    if allocate is None and limit is None:
        yield
        return
    import cupy  # what runs on the device has it

    if limit is not None:
        allocate = _within(limit, allocate or cupy.cuda.get_allocator())
    with cupy.cuda.using_allocator(allocate):
        yield


def _from_rmm() -> Callable[[int], Any] | None:
    """Give what allocates from RMM, as `rmm.allocators.cupy` does, but looks up only once what does not change."""
    rmm = sys.modules.get("rmm")
    if rmm is None:
        return None
    import cupy  # what runs on the device has it

    current, pointer, memory = cupy.cuda.get_current_stream, cupy.cuda.MemoryPointer, cupy.cuda.UnownedMemory
    resource, gpu = rmm.mr.get_current_device_resource(), device()
    streams: dict[int, Any] = {}

    def allocate(size: int) -> Any:
        stream = current()
        if (known := streams.get(stream.ptr)) is None:
            known = streams[stream.ptr] = rmm.pylibrmm.stream.Stream(stream)
        buffer = rmm.DeviceBuffer(size=size, stream=known, mr=resource)
        return pointer(memory(buffer.ptr, size, buffer, gpu), 0)

    return allocate


# --- a budget -----------------------------------------------------------------------------------------------------


def budget() -> int | None:
    """Give the bytes of a GPU's memory that may be in use here at a time, as the environment has it; None: all.

    What counts is memory that was asked for here: neither the user's frames, nor what cuDF takes to read them.

    Raises InvalidOptionError: if it is no number of bytes, such as 800000000, 800MB or 1.5GiB.
    """
    given = os.environ.get(BUDGET, "").strip()
    if not given:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([a-z]*)", given.lower())
    if match is None or match[2] not in UNITS:
        raise InvalidOptionError(f"{BUDGET} must be a number of bytes, such as 800MB or 1.5GiB, not {given!r}.")
    return int(float(match[1]) * UNITS[match[2]])


_used: defaultdict[int, int] = defaultdict(int)
_freed: deque[tuple[int, int]] = deque()
_counting = Lock()


class _Held:
    """Memory that counts as used for as long as it is held."""

    def __init__(self, memory: Any, size: int, gpu: int) -> None:
        self.memory = memory
        # Only noted: it may go at any moment, also while somebody counts.
        weakref.finalize(self, _freed.append, (gpu, -size)).atexit = False


def _left(limit: int, gpu: int, wanted: int = 0) -> int:
    """Give what a limit leaves, and count as used what is wanted of it, if it is no more than that."""
    with _counting:
        while _freed:
            where, change = _freed.popleft()
            _used[where] += change
        left = limit - _used[gpu]
        if wanted <= left:
            _used[gpu] += wanted
        return left


def _within(limit: int, allocate: Callable[[int], Any]) -> Callable[[int], Any]:
    """Let no more than `limit` bytes be in use at a time."""
    if hasattr(allocate, "beneath"):  # a limit is on it: this one takes its place
        allocate = allocate.beneath
    import cupy  # there, since memory of the GPU is wanted

    gpu = device()

    def limited(size: int) -> Any:
        if size > (left := _left(limit, gpu, size)):
            raise MemoryError(f"{size:,} bytes are wanted, and {BUDGET} leaves {left:,} of {limit:,}")
        try:
            memory = allocate(size)
        except BaseException:
            _freed.append((gpu, -size))
            raise
        held = _Held(memory, size, gpu)
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(memory.ptr, size, held, gpu), 0)

    limited.beneath = allocate  # type: ignore[attr-defined]
    return limited


def multiprocessors() -> int:
    """Give how many multiprocessors the current GPU has."""
    return attribute("MultiProcessorCount")


def attribute(name: str) -> int:
    """Give what the current GPU has of something, by the name that CUDA gives it after ``cudaDevAttr``."""
    return _attribute(name, device())


def device() -> int:
    """Give the number of the current GPU."""
    import cupy  # there, since what runs on the GPU asks

    return int(cupy.cuda.runtime.getDevice())


@cache
def _attribute(name: str, device: int) -> int:
    import cupy

    runtime = cupy.cuda.runtime
    return int(runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), device))


def bytes_free() -> int:
    """Give the bytes that can still be allocated: what the driver has free, and what a memory pool holds unused.

    RMM's pools do not say how much of them is in use: all of a pool counts, and the allocation itself finds out. Where
    there is a budget, no more than is left of it.
    """
    import cupy  # there, since a method that runs on the GPU asks

    free = _free_to_the_driver()
    rmm = sys.modules.get("rmm")
    if rmm is None:
        free += int(cupy.get_default_memory_pool().free_bytes())
    else:
        resource = rmm.mr.get_current_device_resource()
        while resource is not None:
            if hasattr(resource, "pool_size"):
                free += int(resource.pool_size())
            resource = getattr(resource, "upstream_mr", None)
    limit = budget()
    return free if limit is None else max(0, min(free, _left(limit, device())))


def holds(needed: int) -> bool:
    """Say whether there is room for as many bytes. For a few nobody is asked: that would take longer than to try."""
    if budget() is not None:
        return needed <= bytes_free()
    return needed <= FEW_BYTES or needed <= _free_to_the_driver() or needed <= bytes_free()


def _free_to_the_driver() -> int:
    import cupy  # there, since a method that runs on the GPU asks

    return int(cupy.cuda.runtime.memGetInfo()[0])


def require_bytes(needed: int, what: str) -> None:
    """Raise, before anything is allocated, if there is no room for as many bytes.

    Raises MethodUnavailableError: with the bytes needed and free, and what to do.
    """
    if not holds(needed):
        raise MethodUnavailableError(
            f"{what} needs about {needed:,} bytes of GPU memory, and {bytes_free():,} are free. {REMEDY}"
        )


# --- kernels ------------------------------------------------------------------------------------------------------


@cache
def source(path: str) -> str:
    """Read a .cu file of this package, with the .cuh files that it includes in their places.

    CuPy keeps compiled kernels by their source text, which therefore has to be whole.
    """
    return _joined(ROOT / path, set())


def _joined(path: Path, seen: set[Path]) -> str:
    def insert(match: re.Match[str]) -> str:
        included = (path.parent / match[1]).resolve()
        if included in seen:
            return ""
        seen.add(included)
        return _joined(included, seen)

    return re.sub(r'^#include "(.+)"$', insert, path.read_text(encoding="utf-8"), flags=re.MULTILINE)


def kernel(path: str, name: str, /, **macros: str | int) -> Any:
    """Compile a kernel of a .cu file, once a process and once a machine, for the types that the macros name.

    `path`: Of the .cu file, from the folder of this package.
    `name`: Of the `extern "C" __global__` function.
    `**macros`: ``real_t="float"``, ``offset_t="long long"``, ``LANES=16`` and the like.

    Returns `cupy.RawKernel`: Launched by ``kernel(grid, block, arguments)``, on the current stream.
    """
    known = path, name, *sorted(macros.items())
    if (found := _kernels.get(known)) is None:
        with _compiling[known]:  # whoever is compiling it is waited for
            if (found := _kernels.get(known)) is None:
                found = _kernels[known] = _compiled(path, name, macros)
    return found


_kernels: dict[tuple[Any, ...], Any] = {}
_compiling: defaultdict[tuple[Any, ...], Lock] = defaultdict(Lock)


def _compiled(path: str, name: str, macros: Mapping[str, str | int]) -> Any:
    import cupy  # there, since a method that runs on the GPU asks

    # Not as options: CuPy asks the compiler for its version for each new set of those, even of a kernel on disk.
    defined = "".join(f"#define {macro} {value}\n" for macro, value in sorted(macros.items()))
    return cupy.RawModule(code=defined + source(path), options=("-std=c++17",)).get_function(name)


def compile_ahead(path: str, name: str, /, **macros: str | int) -> None:
    """Begin to compile a kernel that will be wanted soon, on a thread of its own, unless it has been compiled."""
    if (path, name, *sorted(macros.items())) in _kernels:
        return
    import cupy  # there, since a method that runs on the GPU asks

    gpu = cupy.cuda.Device(device())

    def begin() -> None:
        # If it fails, it fails again where it is wanted, and is seen there.
        with suppress(Exception), gpu:
            kernel(path, name, **macros)

    Thread(target=begin, name=f"prplugin-{name}").start()  # a process that ends meanwhile waits for it


def roomy(kernel: Any, room: int) -> Any:
    """Let a kernel ask for so much shared memory: it has to be told of more than 48 KB."""
    kernel.max_dynamic_shared_size_bytes = max(kernel.max_dynamic_shared_size_bytes, room)
    return kernel


def ctype(dtype: Any) -> str:
    """Give the name in CUDA C++ of a NumPy type, for a macro of `kernel`."""
    return CTYPES[np.dtype(dtype)]


def blocks_for(threads: int, block: int) -> int:
    """Give the blocks of `block` threads that so many threads need, as far as a grid can hold them."""
    return max(1, min(-(-threads // block), 2**31 - 1))
