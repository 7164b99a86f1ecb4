"""Sums of several vectors side by side, for Numba: in registers, where plain loops would go through memory.

`lanes` is a tuple, of as many items as there are vectors: a compiler knows its length. What the vectors have for vertex
u lies side by side, from place ``u * lanes`` on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["add_edges", "add_places"]

INDEX, FLOAT, DOUBLE = ir.IntType(64), ir.FloatType(), ir.DoubleType()


@intrinsic
def add_edges(context, contributions, sources, shares, first, last, lanes, sums):
    """Write the sums in float64 over the edges `first` to `last`, in their order.

    The contributions of its source are multiplied by an edge's share, unless `shares` is None.
    """
    signature = types.void(contributions, sources, shares, types.uint64, types.uint64, lanes, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _data_of(context, builder, signature, arguments)
        lines = _Lines(builder, context.get_value_type(contributions.dtype), DOUBLE, lanes.count)

        def term(edge: Any) -> Any:
            source = _index(builder, builder.load(builder.gep(data(1), [edge])))
            line = lines.load(data(0), source)
            return line if shares == types.none else lines.times(line, builder.load(builder.gep(data(2), [edge])))

        lines.store(lines.sum_of(arguments[3], arguments[4], term), data(6))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_places(context, old, new, places, shares, first, last, lanes, sums):
    """Write the sums in float32 over the places `first` to `last`, in their order.

    They are those that `_batch_kernels.lay_out` has: one below n + 1 is in the `old` iterate, others are in the `new`
    one.
    """
    signature = types.void(old, new, places, shares, types.uint64, types.uint64, lanes, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _data_of(context, builder, signature, arguments)
        lines = _Lines(builder, FLOAT, FLOAT, lanes.count)
        array = context.make_array(old)(context, builder, arguments[0])
        vertices = builder.udiv(builder.extract_value(array.shape, 0), INDEX(lanes.count))

        def term(edge: Any) -> Any:
            place = _index(builder, builder.load(builder.gep(data(2), [edge])))
            is_old = builder.icmp_unsigned("<", place, vertices)
            iterate = builder.select(is_old, data(0), data(1))
            line = lines.load(iterate, builder.select(is_old, place, builder.sub(place, vertices)))
            return line if shares == types.none else lines.times(line, builder.load(builder.gep(data(3), [edge])))

        lines.store(lines.sum_of(arguments[4], arguments[5], term), data(7))
        return context.get_dummy_value()

    return signature, generate


class _Lines:
    """Code for vectors of some lanes, that are held in one type and added up in another."""

    def __init__(self, builder: Any, held: Any, summed: Any, count: int) -> None:
        self._builder, self._count = builder, count
        self._held, self._summed = ir.VectorType(held, count), ir.VectorType(summed, count)

    def load(self, array: Any, vertex: Any) -> Any:
        """Take what the vectors have for a vertex."""
        builder = self._builder
        place = builder.gep(array, [builder.mul(vertex, INDEX(self._count))])
        line = builder.load(builder.bitcast(place, self._held.as_pointer()), align=4)
        return line if self._held == self._summed else builder.fpext(line, self._summed)

    def times(self, line: Any, factor: Any) -> Any:
        """Multiply all lanes."""
        builder, single = self._builder, self._summed.element
        factor = factor if factor.type == single else builder.fpext(factor, single)
        none = ir.Constant(self._summed, ir.Undefined)
        one = builder.insert_element(none, factor, ir.IntType(32)(0))
        first = ir.Constant(ir.VectorType(ir.IntType(32), self._count), [0] * self._count)
        return builder.fmul(line, builder.shuffle_vector(one, none, first))

    def sum_of(self, first: Any, last: Any, term: Callable[[Any], Any]) -> Any:
        """Add up terms in their order."""
        builder = self._builder
        before = builder.block
        head, body, end = (builder.append_basic_block(name) for name in ("edges", "edge", "summed"))
        builder.branch(head)
        builder.position_at_end(head)
        edge, total = builder.phi(INDEX), builder.phi(self._summed)
        builder.cbranch(builder.icmp_unsigned("<", edge, last), body, end)
        builder.position_at_end(body)
        added, following = builder.fadd(total, term(edge)), builder.add(edge, INDEX(1))
        for value, at_first, then in ((edge, first, following), (total, ir.Constant(self._summed, None), added)):
            value.add_incoming(at_first, before)
            value.add_incoming(then, builder.block)
        builder.branch(head)
        builder.position_at_end(end)
        return total

    def store(self, line: Any, array: Any) -> None:
        """Write the lanes to an array."""
        self._builder.store(line, self._builder.bitcast(array, self._summed.as_pointer()), align=4)


def _data_of(context: Any, builder: Any, signature: Any, arguments: Any) -> Callable[[int], Any]:
    def data(place: int) -> Any:
        return context.make_array(signature.args[place])(context, builder, arguments[place]).data

    return data


def _index(builder: Any, number: Any) -> Any:
    return number if number.type == INDEX else builder.zext(number, INDEX)
