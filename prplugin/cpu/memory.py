"""Compiler options of the CPU kernels, and two instructions that Numba does not expose."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Options of all kernels. Without a wrapper for calls from C, which nobody makes, they compile an eighth faster."""

compiled = numba.njit(**OPTIONS)
"""Compile a kernel: a single-threaded loop over scalars (quick to compile) that releases the GIL; cached on disk."""


def read_only(array: Any) -> Any:
    """Return a read-only view, so that one compiled kernel serves both writable and read-only arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


@intrinsic
def compare_and_swap(context, array, index, expected, value):
    """Write `value` to ``array[index]`` atomically if it holds `expected`; return what it held before."""
    signature = types.int64(array, types.int64, types.int64, types.int64)

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(data, [arguments[1]])
        swapped = builder.cmpxchg(place, arguments[2], arguments[3], "monotonic", "monotonic")
        return builder.extract_value(swapped, 0)

    return signature, generate


@intrinsic
def prefetch(context, array, index):
    """Prefetch an element of an array into the cache."""
    signature = types.void(array, types.int64)

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        flag = ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        function = ir.FunctionType(ir.VoidType(), [place.type, flag, flag, flag])
        read, keep, data_cache = flag(0), flag(3), flag(1)
        builder.call(
            builder.module.declare_intrinsic("llvm.prefetch", (place.type,), function), [place, read, keep, data_cache]
        )
        return context.get_dummy_value()

    return signature, generate
