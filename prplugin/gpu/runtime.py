"""The GPU: availability, memory, and kernels compiled from the .cu files of this package."""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from prplugin.errors import InvalidOptionError, OutOfMemoryError
from prplugin.gpu import cupy
from prplugin.types.arrays import MemorySpace, synchronize

MOST_BLOCKS = 2**31 - 1  # largest grid
THREADS = 256  # threads per block of the kernels that use each.cuh
LOADS_IN_FLIGHT = 8  # items per thread of these kernels, as in each.cuh

COMPUTE_CAPABILITY = (7, 0)  # oldest that RAPIDS supports, with CUDA 12; `edge` adds doubles atomically, from 6.0 on
FEW_BYTES = 1 << 28  # small allocations skip the memory query: a sixteenth of the smallest GPU's memory
ALIGNMENT = 256  # of arrays, in bytes, as of allocations
MEMORY_ADVICE = "Use method='streamed', which keeps the edges in host memory, dtype='float32', or several GPUs."

BUDGET = "PRPLUGIN_DEVICE_MEMORY"  # environment variable that limits the GPU memory used by this package, in bytes
UNITS = {"": 1, "b": 1}
UNITS |= {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)}
UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}

Macro: TypeAlias = str | int | np.dtype[Any]
"""Value of a macro of a kernel; a type of NumPy stands for that of CUDA C++."""

ROOT = Path(__file__).parents[1]  # folder of the package; paths of kernels are relative to it

CTYPES = {
    "u1": "unsigned char", "u2": "unsigned short", "i4": "int", "u4": "unsigned int", "i8": "long long",
    "u8": "unsigned long long", "f4": "float", "f8": "double",
}  # fmt: skip


def unavailable_reason() -> str | None:
    """Return why nothing can run on a GPU here, or None if it can."""
    try:
        import cupy  # lazy import
    except ImportError as error:
        extras = "'prplugin[gpu]' (with CUDA 12 'prplugin[gpu-cu12]')"
        return f"it needs an NVIDIA GPU and CuPy, which cannot be imported ({error}): pip install {extras}."
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        major, minor = divmod(int(cupy.cuda.Device().compute_capability), 10) if count else (0, 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"it needs an NVIDIA GPU, and there is none ({str(error).partition(':')[0]})."
    if not count:
        return "it needs an NVIDIA GPU, and there is none."
    if (major, minor) < COMPUTE_CAPABILITY:
        least = ".".join(map(str, COMPUTE_CAPABILITY))
        return f"it needs a GPU of compute capability {least} or later, and this one has {major}.{minor}."
    return None


def device_allocation(
    memory_space: MemorySpace, gpu: object = None, *, wait: bool = True
) -> AbstractContextManager[None]:
    """Allocate within the budget, and from RMM if that is loaded, on the "device"; on the "host" do nothing.

    `gpu` (cupy.cuda.Device, optional): device that holds the arrays; the current one if not given.
    `wait`: Whether to synchronize the current stream at the end, so that any other stream may read or free the arrays.
    """
    return nullcontext() if memory_space == "host" else _device_allocation(gpu, wait=wait)


@contextmanager
def _device_allocation(gpu: Any, *, wait: bool) -> Iterator[None]:
    try:
        with gpu or nullcontext(), _allocator():
            yield
            if wait:
                synchronize("device")
    except MemoryError as error:
        if type(error).__module__.startswith("numpy"):  # host memory
            raise
        raise OutOfMemoryError(f"the GPU's memory ran out: {error}. {MEMORY_ADVICE}") from error


def _allocator() -> AbstractContextManager[None]:
    allocate, limit = _from_rmm(), budget()
    if limit is not None:
        allocate = _within(limit, allocate or cupy.cuda.get_allocator())
    return nullcontext() if allocate is None else cupy.cuda.using_allocator(allocate)


def _from_rmm() -> Callable[[int], Any] | None:
    """Return an allocator like that of `rmm.allocators.cupy` that looks up resource and streams only once."""
    rmm = sys.modules.get("rmm")
    if rmm is None:
        return None
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


def allocate(*wanted: tuple[int, DTypeLike], cleared: bool = False) -> list[Any]:
    """Return an array for each length and type, all in one allocation, which is freed with the last of them.

    Without a pool an allocation takes up to ten times as long as a kernel launch. `cleared`: whether to fill with 0.
    """
    sizes = [-(-count * np.dtype(dtype).itemsize // ALIGNMENT) * ALIGNMENT for count, dtype in wanted]
    memory = cupy.cuda.alloc(sum(sizes))
    if cleared:
        memory.memset_async(0, sum(sizes))
    begins = accumulate(sizes, initial=0)
    return [cupy.ndarray(count, dtype, memory + begin) for (count, dtype), begin in zip(wanted, begins, strict=False)]


# --- a budget -----------------------------------------------------------------------------------------------------


def budget() -> int | None:
    """Return the budget of GPU memory in bytes that the environment sets, or None.

    Only allocations of this package count, not the user's frames or what cuDF allocates to read them.
    """
    given = os.environ.get(BUDGET, "").strip()
    if not given:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([a-z]*)", given.lower())
    if match is None or match[2] not in UNITS:
        raise InvalidOptionError(f"{BUDGET} must be a number of bytes, such as 800MB or 1.5GiB, not {given!r}.")
    return int(float(match[1]) * UNITS[match[2]])


_used: defaultdict[int, int] = defaultdict(int)
_released: deque[tuple[int, int]] = deque()
_counting = Lock()


class _Allocation:
    """An allocation that counts as used until it is garbage-collected."""

    def __init__(self, memory: object, size: int, gpu: int) -> None:
        self.memory = memory
        # Only recorded: the finalizer may run at any time, even while `_counting` is locked.
        weakref.finalize(self, _released.append, (gpu, -size)).atexit = False


def _reserve(limit: int, gpu: int, wanted: int = 0) -> int:
    """Return the bytes left of a limit; count `wanted` bytes as used if they fit."""
    with _counting:
        while _released:
            where, change = _released.popleft()
            _used[where] += change
        left = limit - _used[gpu]
        if wanted <= left:
            _used[gpu] += wanted
        return left


def _within(limit: int, allocate: Callable[[int], Any]) -> Callable[[int], Any]:
    """Wrap an allocator so that at most `limit` bytes are in use at a time."""
    if hasattr(allocate, "beneath"):  # already limited; the new limit replaces it
        allocate = allocate.beneath
    gpu = device()

    def limited(size: int) -> Any:
        if size > (left := _reserve(limit, gpu, size)):
            raise MemoryError(f"{size:,} bytes are wanted, and {BUDGET} leaves {left:,} of {limit:,}")
        try:
            memory = allocate(size)
        except BaseException:
            _released.append((gpu, -size))
            raise
        held = _Allocation(memory, size, gpu)
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(memory.ptr, size, held, gpu), 0)

    limited.beneath = allocate  # type: ignore[attr-defined]
    return limited


# --- the current GPU ----------------------------------------------------------------------------------------------


def device() -> int:
    """Return the number of the current GPU."""
    return int(cupy.cuda.runtime.getDevice())


def multiprocessors() -> int:
    """Return the number of multiprocessors of the current GPU."""
    return attribute("MultiProcessorCount")


def attribute(name: str) -> int:
    """Return an attribute of the current GPU by its CUDA name, less ``cudaDevAttr``."""
    return _attribute(name, device())


@cache
def _attribute(name: str, device: int) -> int:
    runtime = cupy.cuda.runtime
    return int(runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), device))


def available_bytes() -> int:
    """Return the available GPU memory in bytes: free for the driver, or unused in a memory pool.

    RMM's pools do not report their use, so all of a pool counts, and an allocation may still fail. A budget limits the
    result to what is left of it.
    """
    free = int(cupy.cuda.runtime.memGetInfo()[0])
    rmm = sys.modules.get("rmm")
    if rmm is None:
        free += int(cupy.get_default_memory_pool().free_bytes())
    resource = None if rmm is None else rmm.mr.get_current_device_resource()
    while resource is not None:
        if hasattr(resource, "pool_size"):
            free += int(resource.pool_size())
        resource = getattr(resource, "upstream_mr", None)
    limit = budget()
    return free if limit is None else max(0, min(free, _reserve(limit, device())))


def fits(needed: int) -> bool:
    """Return whether `needed` bytes can be allocated; small allocations skip the memory query."""
    return (needed <= FEW_BYTES and budget() is None) or needed <= available_bytes()


# --- kernels ------------------------------------------------------------------------------------------------------


@cache
def source(path: str) -> str:
    """Read a .cu file and inline its includes: CuPy caches compiled kernels by their source text.

    An include is looked for beside the file, then in the folder of this package, whose headers another package may use.
    """
    seen: set[Path] = set()

    def joined(path: Path) -> str:
        if path in seen:
            return ""
        seen.add(path)

        def included(match: re.Match[str]) -> str:
            beside, ours = ((folder / match[1]).resolve() for folder in (path.parent, ROOT))
            return joined(beside if beside.exists() else ours)

        return re.sub(r'^#include "(.+)"$', included, path.read_text(encoding="utf-8"), flags=re.MULTILINE)

    return joined((ROOT / path).resolve())


def kernel(path: str, name: str, /, **macros: Macro) -> Any:
    """Compile a kernel of a .cu file for the given macros; cached in the process and on disk.

    `path` is relative to the folder of this package (a file of another: absolute); macros are
    ``real_t=contributions.dtype``, ``LANES=16`` and the like. Return a `cupy.RawKernel` for `launch`.
    """
    known = path, name, *sorted(macros.items())
    if (found := _kernels.get(known)) is None:
        with _compiling[known]:  # waits for a thread that is compiling it
            if (found := _kernels.get(known)) is None:
                found = _kernels[known] = _compiled(path, name, macros)
    return found


_kernels: dict[tuple[Any, ...], Any] = {}
_compiling: defaultdict[tuple[Any, ...], Lock] = defaultdict(Lock)
_ahead = Lock()


def _compiled(path: str, name: str, macros: Mapping[str, Macro]) -> Any:
    # Macros are not passed as options: CuPy queries the compiler's version for each new set of options, even for a
    # kernel on disk. This set is that of its own kernels.
    texts = {macro: ctype(value) if isinstance(value, np.dtype) else value for macro, value in macros.items()}
    defined = "".join(f"#define {macro} {text}\n" for macro, text in sorted(texts.items()))
    return cupy.RawModule(code=defined + source(path), options=("--std=c++17",)).get_function(name)


def compile_ahead(path: str, name: str, /, **macros: Macro) -> None:
    """Start to compile a kernel on a new thread."""
    gpu = cupy.cuda.Device(device())

    def begin() -> None:
        # One at a time, else each queries the compiler. The call that needs the kernel raises the error.
        with suppress(Exception), _ahead, gpu:
            kernel(path, name, **macros)

    Thread(target=begin, name=f"prplugin-{name}").start()  # not a daemon: the process waits for it at exit


def launch(kernel: Any, blocks: int, threads: int, *arguments: Any, smem: int = 0) -> None:
    """Launch a kernel on the current stream, with `smem` bytes of dynamic shared memory per block."""
    kernel((blocks,), (threads,), arguments, shared_mem=smem)


def padded(arguments: list[Any], count: int) -> list[Any]:
    """Append null arguments of a kernel up to `count`."""
    return arguments + [0] * (count - len(arguments))


def run(path: str, name: str, blocks: int, threads: int, /, *arguments: Any, **macros: Macro) -> None:
    """Launch the kernel of a .cu file that `kernel` compiles for the macros."""
    launch(kernel(path, name, **macros), blocks, threads, *arguments)


def with_dynamic_smem(kernel: Any, smem: int) -> Any:
    """Allow a kernel to use `smem` bytes of dynamic shared memory, which is opt-in above 48 KB."""
    kernel.max_dynamic_shared_size_bytes = max(kernel.max_dynamic_shared_size_bytes, smem)
    return kernel


def ctype(dtype: DTypeLike) -> str:
    """Return the CUDA C++ name of a NumPy type."""
    return CTYPES[np.dtype(dtype).str[1:]]


def blocks_for(threads: int, block: int) -> int:
    """Return the number of blocks of `block` threads for `threads` threads, at most the limit of a grid."""
    return max(1, min(-(-threads // block), MOST_BLOCKS))


def blocks_for_each(count: int) -> int:
    """Return the number of blocks of THREADS threads for `count` items, LOADS_IN_FLIGHT per thread."""
    return blocks_for(count, THREADS * LOADS_IN_FLIGHT)
