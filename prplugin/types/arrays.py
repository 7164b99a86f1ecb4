"""Memory space and namespace (NumPy or CuPy) of an array, and transfers. NumPy arrays never import CuPy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from traceback import clear_frames
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar, TypeVarTuple, cast

import numpy as np
from numpy.typing import NDArray

from prplugin.errors import InvalidOptionError, OutOfMemoryError, PageRankError, counted, full_name
from prplugin.types import array_module
from prplugin.types.array_module import ArrayModule, Floats, Integers, Scalar

MemorySpace: TypeAlias = Literal["host", "device"]
"""Memory of the host, or of the current GPU."""

SPACE = {"device": "the GPU's memory", "host": "this machine's memory"}  # names of the memory spaces in messages

Array: TypeAlias = array_module.Array
"""Array of any type, of NumPy or CuPy."""

NUMPY = cast(ArrayModule, np)

MaybeArray = TypeVar("MaybeArray", bound=Array | float | None)
Arrays = TypeVarTuple("Arrays")


def is_host(array: object) -> bool:
    """Return whether an object is not an array of CuPy."""
    cupy = sys.modules.get("cupy")
    return cupy is None or not isinstance(array, cupy.ndarray)


def is_array(given: object) -> TypeGuard[Array]:
    """Return whether an object is an array of NumPy or CuPy."""
    return isinstance(given, np.ndarray) or not is_host(given)


def memory_space_of(array: Array) -> MemorySpace:
    """Return the memory space of an array."""
    return "host" if is_host(array) else "device"


def namespace(array: object) -> ArrayModule:
    """Return the module of an array's functions: NumPy or CuPy."""
    return NUMPY if is_host(array) else cast(ArrayModule, sys.modules["cupy"])


def to_host(array: MaybeArray) -> MaybeArray:
    """Return an array in host memory, copied only if it is in device memory; None for None."""
    return array if array is None or is_host(array) else cast(Any, array).get()


def to_device(array: MaybeArray) -> MaybeArray:
    """Return an array in the current GPU's memory, copied only if it is in host memory; None for None."""
    if array is None or not is_host(array):
        return array
    import cupy  # lazy import; only GPU methods call this, and their availability was checked by `unavailable_reason`

    return cast(MaybeArray, cupy.asarray(array))


def to_memory(array: MaybeArray, memory_space: MemorySpace) -> MaybeArray:
    """Return an array in "host" or "device" memory, copied only if it is in the other; None for None."""
    return to_host(array) if memory_space == "host" else to_device(array)


def all_to_memory(memory_space: MemorySpace, *arrays: *Arrays) -> tuple[*Arrays]:
    """Return arrays, or None for None, in "host" or "device" memory."""
    return cast("tuple[*Arrays]", tuple(to_memory(cast(Array, array), memory_space) for array in arrays))


def plain_array(given: object, what: str, error: type[PageRankError] = InvalidOptionError) -> Any:
    """Return a masked array without masked entries as `numpy.ndarray`, and other objects unchanged.

    Masked entries, other subclasses, whose values may have units, and structured arrays raise `error`.
    """
    if not isinstance(given, np.ndarray):
        return given
    if isinstance(given, np.ma.MaskedArray):
        if masked := int(np.count_nonzero(np.ma.getmaskarray(given))):
            entries = counted(masked, "entry is", "entries are")
            raise error(f"{what} is a masked array, of which {entries} masked. Fill them, for example by .filled(0).")
        return given.data
    if given.dtype.names is not None:
        raise error(f"{what} is a structured array: pass one of its fields, such as array[{given.dtype.names[0]!r}].")
    if type(given) not in (np.ndarray, np.memmap):
        raise error(f"{what} is a {full_name(given)}: pass numpy.asarray(...) of it, if its values alone are meant.")
    return given


def find_integers(ids: Integers, wanted: Integers) -> Integers:
    """Return the position of each wanted integer in non-empty, ascending ids, or -1, in the memory of `wanted`."""
    xp = namespace(ids)
    cast = wanted.astype(ids.dtype, copy=False)  # integers outside the range of the type of the ids are absent
    in_range = cast is wanted or (cast.astype(wanted.dtype, copy=False) == wanted) & ((cast < 0) == (wanted < 0))
    found = xp.minimum(xp.searchsorted(ids, xp.asarray(cast)), ids.size - 1)
    found, near = all_to_memory(memory_space_of(wanted), found, ids[found])
    return namespace(wanted).where(in_range & (near == cast), found, -1)


def expand_values(values: NDArray[Scalar], n: int, positions: Integers | None, fill: float) -> NDArray[Scalar]:
    """Return an array for n vertices, with `values` for the old vertices and `fill` for new vertices.

    `positions` has the new position of each old vertex; None means that the old vertices come first, in their order.
    """
    expanded = namespace(values).full(n, fill, values.dtype)
    expanded[slice(values.size) if positions is None else positions] = values
    return expanded


def copied(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Copy a one-dimensional array, which may be a slice, to memory of its own.

    On the GPU this is a memory copy, since the kernel that CuPy uses for copies has to be compiled first.
    """
    if is_host(array):
        return array.copy()
    import cupy  # loaded already: the array is CuPy's

    copy: Any = cupy.empty(array.shape, array.dtype)
    if copy.nbytes:
        copy.data.copy_from_device_async(array.data, array.nbytes)
    return cast(NDArray[Scalar], copy)


def address_of(array: Array) -> int:
    """Return the address of an array of CuPy in the GPU's memory."""
    return int(cast(Any, array).data.ptr)


def fill_bytes(array: Array, byte: int) -> None:
    """Set all bytes of an array of CuPy, on the current stream."""
    cast(Any, array).data.memset_async(byte, array.nbytes)


def gpu_of(array: Array) -> AbstractContextManager[object] | None:
    """Return the GPU of an array, a context manager that makes it the current device; None on the host."""
    return None if is_host(array) else cast(Any, array).device


def synchronize(memory_space: MemorySpace) -> None:
    """Wait for the current stream of the GPU, so that other streams may read its results; on the host do nothing."""
    if memory_space == "device":
        import cupy  # loaded already: device arrays exist

        cupy.cuda.get_current_stream().synchronize()


class explain_oom:  # noqa: N801 - used as a function would be: `with explain_oom(plan):`
    """Raise `OutOfMemoryError` with the requirements that `plan` returns, if memory runs out within."""

    def __init__(self, plan: Callable[[], str]) -> None:
        self._plan = plan

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, MemoryError):
            of_gpu = isinstance(error, OutOfMemoryError)  # raised by `device_allocation`
            cause = error.__cause__ if of_gpu and error.__cause__ is not None else error
            clear_frames(cause.__traceback__)  # frees the arrays of these frames, even if the error is kept
            where = SPACE["device" if of_gpu else "host"]
            raise OutOfMemoryError(f"{where} ran out: {cause}. {self._plan()}") from error


def finite_numbers(given: Array) -> Floats | None:
    """Return a copy of an array as float64, in its memory space; None unless all are finite and non-negative."""
    if given.dtype.kind not in "biuf" or given.dtype.itemsize > 8:
        return None
    floats = given.astype(np.float64)
    return floats if not floats.size or (floats.min() >= 0 and floats.max() < np.inf) else None


def to_python(value: object) -> Any:
    """Return a NumPy scalar as a Python object, whose repr does not name the type."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def far_times(column: object) -> list[Any]:
    """Return dates, times and durations beyond the range of Python as NumPy scalars, times with a zone in UTC."""
    values = getattr(column, "array", column)  # of pandas
    return list(np.asarray(values.__arrow_array__() if hasattr(values, "__arrow_array__") else values))


# --- the highest entries ---------------------------------------------------------------------------------------------

MOST_IN_A_BLOCK = 64  # maximum size of the blocks whose maxima give a lower bound of the k-th highest rank


def highest(ranks: NDArray[np.floating], k: int) -> Integers:
    """Return the positions of the k highest ranks in descending order; equal ranks in order of position."""
    rows = few_highest(ranks, k)
    return rows[namespace(ranks).argsort(-ranks[rows], kind="stable")[:k]]


def few_highest(ranks: NDArray[np.floating], k: int) -> Integers:
    """Return the positions, ascending, of all ranks that reach some value: the k highest, and not many more."""
    xp = namespace(ranks)
    block = min(MOST_IN_A_BLOCK, ranks.size // (4 * k))
    if block <= 1:
        return xp.arange(ranks.size)
    # The k-th highest of the maxima of blocks is at most the k-th highest of all, and few entries reach it.
    width = ranks.size // block
    maxima = ranks[: block * width].reshape(block, width).max(axis=0)
    least = xp.sort(maxima)[-k]
    if not is_host(ranks):
        return xp.flatnonzero(ranks >= least)
    blocks = (np.arange(block)[:, None] * width + np.flatnonzero(maxima >= least)).ravel()  # few
    rows = np.append(blocks, np.arange(block * width, ranks.size))
    found: Integers = rows[ranks[rows] >= least]
    return found


# --- objects of libraries that may not be loaded ------------------------------------------------------------------


def is_a(value: object, module: str, name: str) -> bool:
    """Return whether a value is an instance of a class of a module, without importing the module."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def is_sparse(value: object) -> bool:
    """Return whether a value is a sparse matrix of SciPy or CuPy, without importing either."""
    libraries = (sys.modules.get(name) for name in ("scipy.sparse", "cupyx.scipy.sparse"))
    return any(library is not None and library.issparse(value) for library in libraries)


def is_table(given: object) -> bool:
    """Return whether an object is a frame, whose columns a lazy one need not say."""
    return hasattr(type(given), "columns") or hasattr(given, "__arrow_c_stream__")


def on_host(given: Any) -> Any:
    """Convert cuDF objects to pandas and CuPy arrays to NumPy; return other objects unchanged."""
    return given.to_pandas() if type(given).__module__.partition(".")[0] == "cudf" else to_host(given)
