"""Sums of several vectors side by side, for Numba: in registers, where plain loops would go through memory."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["add_edges"]


@intrinsic
def add_edges(context, contributions, sources, shares, first, last, lanes, sums):
    """Write the sums over the edges `first` to `last`, in their order: one a lane, in float64.

    The contributions of vertex u, one a lane, lie side by side from ``contributions[u * lanes]`` on. Each is multiplied
    by the edge's share, unless `shares` is None. `lanes` is a tuple, of as many items as there are lanes: a compiler
    knows its length.
    """
    count = lanes.count
    signature = types.void(contributions, sources, shares, types.uint64, types.uint64, lanes, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index, double = ir.IntType(64), ir.DoubleType()
        real = context.get_value_type(contributions.dtype)
        stored, wide = ir.VectorType(real, count), ir.VectorType(double, count)

        def data(place: int) -> Any:
            return context.make_array(signature.args[place])(context, builder, arguments[place]).data

        def load(array: int, at: Any) -> Any:
            return builder.load(builder.gep(data(array), [at]))

        before = builder.block
        head, body, end = (builder.append_basic_block(name) for name in ("edges", "edge", "summed"))
        builder.branch(head)
        builder.position_at_end(head)
        edge, total = builder.phi(index), builder.phi(wide)
        builder.cbranch(builder.icmp_unsigned("<", edge, arguments[4]), body, end)

        builder.position_at_end(body)
        source = load(1, edge)
        if source.type.width < index.width:
            source = builder.zext(source, index)
        place = builder.gep(data(0), [builder.mul(source, index(count))])
        term = builder.load(builder.bitcast(place, stored.as_pointer()), align=real_bytes(contributions))
        term = term if real == double else builder.fpext(term, wide)
        if not isinstance(shares, types.NoneType):
            share = load(2, edge)
            share = share if share.type == double else builder.fpext(share, double)
            one = builder.insert_element(ir.Constant(wide, ir.Undefined), share, ir.IntType(32)(0))
            same = ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
            term = builder.fmul(term, builder.shuffle_vector(one, ir.Constant(wide, ir.Undefined), same))
        added, following = builder.fadd(total, term), builder.add(edge, index(1))
        for value, at_first, then in ((edge, arguments[3], following), (total, ir.Constant(wide, None), added)):
            value.add_incoming(at_first, before)
            value.add_incoming(then, builder.block)
        builder.branch(head)

        builder.position_at_end(end)
        builder.store(total, builder.bitcast(data(6), wide.as_pointer()), align=8)
        return context.get_dummy_value()

    return signature, generate


def real_bytes(array: Any) -> int:
    """Give the bytes of an item of an array's type."""
    return int(array.dtype.bitwidth) // 8
