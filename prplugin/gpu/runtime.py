"""The GPU: availability, memory, and kernels compiled from the .cu files of this package."""

from __future__ import annotations

import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from threading import Lock, Thread
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from prplugin.errors import OutOfMemoryError
from prplugin.gpu import cupy
from prplugin.types.arrays import Array, MemorySpace, synchronize

MOST_BLOCKS = 2**31 - 1  # largest grid
THREADS = 256  # threads per block of the kernels that use each.cuh
LOADS_IN_FLIGHT = 8  # items per thread of these kernels, as in each.cuh

COMPUTE_CAPABILITY = (7, 0)  # oldest that RAPIDS supports, with CUDA 12; `edge` adds doubles atomically, from 6.0 on
FEW_BYTES = 1 << 28  # small allocations skip the memory query: a sixteenth of the smallest GPU's memory
ALIGNMENT = 256  # of arrays, in bytes, as of allocations
MEMORY_ADVICE = "Use method='streamed', which keeps the edges in host memory, dtype='float32', or several GPUs."

Macro: TypeAlias = str | int | np.dtype[np.generic]
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
    memory_space: MemorySpace, gpu: AbstractContextManager[object] | None = None, *, wait: bool = True
) -> AbstractContextManager[None]:
    """Allocate from RMM if that is loaded, on the "device"; on the "host" do nothing.

    `gpu` (cupy.cuda.Device, optional): device that holds the arrays; the current one if not given.
    `wait`: Whether to synchronize the current stream at the end, so that any other stream may read or free the arrays.
    """
    return nullcontext() if memory_space == "host" else _device_allocation(gpu, wait=wait)


@contextmanager
def _device_allocation(gpu: AbstractContextManager[object] | None, *, wait: bool) -> Iterator[None]:
    try:
        with gpu or nullcontext(), _from_rmm():
            yield
            if wait:
                synchronize("device")
    except MemoryError as error:
        if type(error).__module__.startswith("numpy"):  # host memory
            raise
        raise OutOfMemoryError(f"the GPU's memory ran out: {error}. {MEMORY_ADVICE}") from error


def _from_rmm() -> AbstractContextManager[object]:
    """Use an allocator like that of `rmm.allocators.cupy` that looks up resource and streams only once."""
    rmm = sys.modules.get("rmm")
    if rmm is None:
        return nullcontext()
    current, pointer, memory = cupy.cuda.get_current_stream, cupy.cuda.MemoryPointer, cupy.cuda.UnownedMemory
    resource, gpu = rmm.mr.get_current_device_resource(), device()
    streams: dict[int, object] = {}

    def allocate(size: int) -> object:
        stream = current()
        if (known := streams.get(stream.ptr)) is None:
            known = streams[stream.ptr] = rmm.pylibrmm.stream.Stream(stream)
        buffer = rmm.DeviceBuffer(size=size, stream=known, mr=resource)
        return pointer(memory(buffer.ptr, size, buffer, gpu), 0)

    using: AbstractContextManager[object] = cupy.cuda.using_allocator(allocate)
    return using


def allocate(*wanted: tuple[int, DTypeLike], cleared: bool = False) -> list[Array]:
    """Return an array for each length and type, all in one allocation, which is freed with the last of them.

    Without a pool an allocation takes up to ten times as long as a kernel launch. `cleared`: whether to fill with 0.
    """
    sizes = [-(-count * np.dtype(dtype).itemsize // ALIGNMENT) * ALIGNMENT for count, dtype in wanted]
    memory = cupy.cuda.alloc(sum(sizes))
    if cleared:
        memory.memset_async(0, sum(sizes))
    begins = accumulate(sizes, initial=0)
    return [cupy.ndarray(count, dtype, memory + begin) for (count, dtype), begin in zip(wanted, begins, strict=False)]


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
    """Return the available GPU memory in bytes: free for the driver, or unused in a memory pool, up to a limit of it.

    RMM's pools do not report their use, so all of a pool counts, and an allocation may still fail.
    """
    free, rmm = int(cupy.cuda.runtime.memGetInfo()[0]), sys.modules.get("rmm")
    if rmm is None:
        pool = cupy.get_default_memory_pool()
        free += int(pool.free_bytes())
        return min(free, max(0, pool.get_limit() - pool.used_bytes())) if pool.get_limit() else free
    resource, left = rmm.mr.get_current_device_resource(), math.inf
    while resource is not None:
        if hasattr(resource, "pool_size"):
            free += int(resource.pool_size())
        if hasattr(resource, "get_allocation_limit"):
            left = min(left, resource.get_allocation_limit() - resource.get_allocated_bytes())
        resource = getattr(resource, "upstream_mr", None)
    return int(min(free, left))


def fits(needed: int) -> bool:
    """Return whether `needed` bytes can be allocated; small allocations skip the memory query."""
    return needed <= FEW_BYTES or needed <= available_bytes()


# --- kernels ------------------------------------------------------------------------------------------------------


class Kernel(Protocol):
    """A compiled kernel: `cupy.RawKernel`."""

    ptr: int
    max_dynamic_shared_size_bytes: int

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[object, ...], *, shared_mem: int = 0,
        enable_cooperative_groups: bool = False,
    ) -> None:  # fmt: skip
        """Launch it on the current stream."""


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


def kernel(path: str, name: str, /, **macros: Macro) -> Kernel:
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


_kernels: dict[tuple[object, ...], Kernel] = {}
_compiling: defaultdict[tuple[object, ...], Lock] = defaultdict(Lock)
_ahead = Lock()


def _compiled(path: str, name: str, macros: Mapping[str, Macro]) -> Kernel:
    # Macros are not passed as options: CuPy queries the compiler's version for each new set of options, even for a
    # kernel on disk. This set is that of its own kernels.
    texts = {macro: ctype(value) if isinstance(value, np.dtype) else value for macro, value in macros.items()}
    defined = "".join(f"#define {macro} {text}\n" for macro, text in sorted(texts.items()))
    compiled: Kernel = cupy.RawModule(code=defined + source(path), options=("--std=c++17",)).get_function(name)
    return compiled


def compile_ahead(path: str, name: str, /, **macros: Macro) -> None:
    """Start to compile a kernel on a new thread."""
    gpu = cupy.cuda.Device(device())

    def begin() -> None:
        # One at a time, else each queries the compiler. The call that needs the kernel raises the error.
        with suppress(Exception), _ahead, gpu:
            kernel(path, name, **macros)

    Thread(target=begin, name=f"prplugin-{name}").start()  # not a daemon: the process waits for it at exit


def launch(kernel: Kernel, blocks: int, threads: int, *arguments: object, smem: int = 0) -> None:
    """Launch a kernel on the current stream, with `smem` bytes of dynamic shared memory per block."""
    kernel((blocks,), (threads,), arguments, shared_mem=smem)


def padded(arguments: Sequence[object], count: int) -> list[object]:
    """Append null arguments of a kernel up to `count`."""
    return [*arguments] + [0] * (count - len(arguments))


def run(path: str, name: str, blocks: int, threads: int, /, *arguments: object, **macros: Macro) -> None:
    """Launch the kernel of a .cu file that `kernel` compiles for the macros."""
    launch(kernel(path, name, **macros), blocks, threads, *arguments)


def with_dynamic_smem(kernel: Kernel, smem: int) -> Kernel:
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
