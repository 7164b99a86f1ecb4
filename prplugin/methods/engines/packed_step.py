"""The step of `packed` and `streamed`: row sums from packed edges, whose vertices may be in another order."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

from prplugin.gpu import cupy, runtime
from prplugin.methods.base import Floats, Integers, Problem
from prplugin.methods.engines import gpu_pull
from prplugin.types.arrays import memory_space_of, to_memory

THREADS = 128  # threads per block of `sum_pieces`, as in streamed.cu


class ReorderedPull(gpu_pull.Pull, Protocol):
    """Row sums from packed edges, whose vertices may be in another order."""

    # In the memory space of the graph; None: all vertices keep their positions.
    order: Integers | None  # the vertex at each position in `contributions` and `row_sums`
    position: Integers | None  # the position of each vertex

    def allocate(self, dtype: DTypeLike) -> None:
        """Allocate what row sums of contributions in this type need."""


class PackedStep(gpu_pull.DeviceStep):
    """A step on the edges of `pull`, in its order of the vertices.

    Where the vertices are reordered, ranks are permuted in the memory space of the graph: on a GPU that does not hold
    the edges there may be no room for one more vector.
    """

    _pull: ReorderedPull

    def __init__(self, problem: Problem, pull: ReorderedPull) -> None:
        self._order, self._position = pull.order, pull.position
        super().__init__(problem, pull, pull.order)

    def start(self, ranks: Floats | float) -> None:
        self._pull.allocate(self._contributions.dtype)  # before acceleration takes what memory is left
        order = self._order
        # A mix starts from `self._ranks`, which are in the order of the edges already.
        if order is not None and not isinstance(ranks, float) and ranks is not self._ranks:
            ranks = to_memory(ranks, memory_space_of(order))[order]
        super().start(ranks)

    def ranks(self) -> Floats:
        if (position := self._position) is None:
            return self._ranks
        return to_memory(self._ranks, memory_space_of(position))[position]


class PieceSums:
    """Launches of the kernels of streamed.cu.

    `table`: Its table of all pieces, and of their end.
    `largest`: Bytes of the largest piece.
    `parts`: Whether rows have edges in several parts, which are added up one after another.
    """

    def __init__(self, table: Integers, largest: int, *, weighted: bool, parts: bool = False) -> None:
        self._table, self._smem = table, largest + 16  # a number is read with the word after it
        self._weighted, self._parts = weighted, parts
        self._partials = cupy.empty((len(table), 4))
        self._cleared: Floats | None = None

    def clear(self, row_sums: Floats) -> None:
        """Set the sums of rows that are in no piece to 0; later launches keep them."""
        if self._parts or self._cleared is not row_sums:
            row_sums.fill(0.0)
            self._cleared = row_sums

    def pieces(
        self, first: int, count: int, bits: int, base: int, contributions: Floats, row_sums: Floats,
        data: Integers | None = None, normalized_weights: Floats | None = None,
    ) -> None:  # fmt: skip
        """Sum the rows within `count` pieces from `first` on; `data` has them, unless their offsets are addresses."""
        kernel = runtime.with_dynamic_smem(self._kernel("sum_pieces", contributions.dtype), self._smem)
        runtime.launch(
            kernel, count, THREADS, first, np.int32(bits), np.uint32(base), self._table, data, normalized_weights,
            contributions, row_sums, self._partials, smem=self._smem,
        )  # fmt: skip

    def crossing(self, first: int, count: int, row_sums: Floats, dtype: np.dtype[np.generic]) -> None:
        """Sum the rows that end in one of these pieces and begin in an earlier one."""
        gpu_pull.launch_collect(self._kernel("collect", dtype), count, first, self._table, self._partials, row_sums)

    def _kernel(self, name: str, dtype: np.dtype[np.generic]) -> runtime.Kernel:
        macros = {"WEIGHTED": int(self._weighted), "ADDING": int(self._parts)}
        return runtime.kernel("methods/streamed.cu", name, real_t=dtype, **macros)
