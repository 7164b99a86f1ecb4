"""Propagation blocking: contributions reach their rows through shared memory (Beamer 2017)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import DTypeLike

from prplugin.errors import InvalidOptionError
from prplugin.gpu import blocks, cupy, runtime
from prplugin.gpu.structs import Argument, Struct
from prplugin.methods.base import Array, Edges, Machine, Made, Memory, Problem, Rate, Step
from prplugin.methods.engines import gpu_merge, gpu_pull
from prplugin.options import validate_int
from prplugin.types.arrays import synchronize
from prplugin.types.edges import Blocks, Coo, Floats, Integers

name = "propagation-blocking"
runs_on = "gpu"
reads = Blocks, Coo

# Quantum of the sums: 2**-BITS of the mean contribution, 1 / m.
BITS = {"float32": 26, "float64": 55}

BLOCKS = Struct(
    "methods/propagation_blocking.cu", "Blocks",
    "n:i8 marks:Marks* rows:i8 columns:i8 tile_bits:i4 piece_bits:i4 spans:u4 bounds:i8* tile_sources:u2* "
    "piece_rows:u2* chunk_by_piece:u4* normalized_weights:real_t* values:real_t* next:u4* row_spans:u4 units:u4 "
    "unit_bounds:i8* shared_sums:u4* summed:u4* quantum:f8",
)  # fmt: skip

memory = Memory(
    layout=Blocks,
    # Edges by tile, and the layout: two 16-bit indices, an eighth of a 32-bit one, and the position of weighted edges.
    made=Made(Rate(11, 8, 8), Rate(4.7, 4, 8)),
    lists=True,
    step=Rate(4, 8, gpu_merge.VERTEX),  # contributions, and normalized weights in both orders
    float64=Rate(4, 8),
    more=Rate(vertex=8 + gpu_merge.HISTORY_VERTEX),
)


def unavailable_reason(adjacency: Edges | None, machine: Machine) -> str | None:
    """Return why the layout does not fit: too little memory for it, or too many vertices or edges for its kernels."""
    reason = gpu_pull.unavailable_reason(memory, adjacency, machine)
    if reason or adjacency is None:
        return reason
    return blocks.unavailable_reason(adjacency.n, adjacency.n, adjacency.m, weighted=adjacency.weighted)


# Fitted to benchmarks/results/kernels.md.
cost = gpu_pull.cost_of(
    35e-6, edge=5.3e-12, weighted_edge=1.2e-11, vertex=2.4e-11,
    layout=3.5e-4, layout_edge=5e-12, layout_vertex=5e-11,
)  # fmt: skip


def prepare(problem: Problem, machine: Machine, *, tile: int | None = None, piece: int | None = None) -> Step:
    """Arrange the edges by tile of the source and by piece of rows; sum the rows of a piece in shared memory.

    Parameters
    ----------
    tile : int, optional
        Vertices whose contributions a block keeps in shared memory: a power of two, from 32 to 16384, and less on GPUs
        with less shared memory. The default is the maximum.
    piece : int, optional
        Rows whose sums a block keeps in shared memory: a power of two, from 32 to 8192, and less on GPUs with less
        shared memory. By default the maximum, or less if all blocks get a piece then.
    """
    given, problem = problem.adjacency, problem.on("device")
    return gpu_merge.MergeStep(problem, BlockedPlan(problem.adjacency, tile=tile, piece=piece, keeper=given))


class BlockedPlan:
    """Reads contributions by tile, and adds them up by piece.

    `rows`: number of leading vertices that are rows; the others have no in-edges. All if not given.
    `keeper`: the graph that keeps the layout for further rankings; `adjacency` may be a copy of it.
    """

    threads = 512
    float32_is_faster = True
    crossing = 0

    def __init__(
        self, adjacency: Edges, *, tile: int | None = None, piece: int | None = None, rows: int | None = None,
        keeper: Edges | None = None,
    ) -> None:  # fmt: skip
        self.m, self._rows = adjacency.m, adjacency.n if rows is None else rows
        given = [
            None if size is None else _bits(name, size, most)
            for name, size, most in zip(("tile", "piece"), (tile, piece), blocks.most_bits(), strict=True)
        ]
        self._values: Floats | None = None
        self._arguments: Argument | None = None
        weights: Floats | None = None
        sources: Integers = np.empty(0, np.int32)
        if (layout := adjacency.held(Blocks)) is None or given != [None, None]:
            edges = adjacency.get(Coo)
            sources, weights = edges.source, edges.weights
            tile, piece = (bits or own for bits, own in zip(given, blocks.bits(self._rows), strict=True))
            layout = _arranged(adjacency, keeper or adjacency, self._rows, (tile, piece))
        self._blocks = layout
        self.in_degrees: Integers | None = layout.in_degrees
        self._normalized_weights = gpu_pull.NormalizedWeights(weights, adjacency, sources)
        tile_ends = layout.spans[:, 0] + 1 << layout.tile_bits
        self._row_spans = 0 if rows is None else int(np.count_nonzero(tile_ends <= rows))
        self.parts = max(len(layout.spans), layout.units)
        self._next, self._summed, self._shared_sums = runtime.allocate(
            (1, np.uint32),
            (layout.shared, np.uint32),
            (layout.shared * _sums_bytes(layout, 8) // 4, np.uint32),
            cleared=True,
        )
        if self._row_spans:
            self._next[:] = self._row_spans

    def rounding_depth(self, dtype: DTypeLike) -> int:
        """Return the rounding depth of a row sum: of its conversion, and of terms to multiples of the quantum.

        In float32 these change the row sums by at most m / 2 quanta in all, less than 2**-27, while all ranks sum to 1;
        in float64 by at most m, less than 2**-55.
        """
        return 4 + 2 ** max(0, 52 - BITS[np.dtype(dtype).name])

    def kernel(self, dtype: DTypeLike) -> runtime.Kernel:
        return runtime.with_dynamic_smem(self._kernel("propagate", dtype), self.smem(dtype))

    def _kernel(self, name: str, dtype: DTypeLike) -> runtime.Kernel:
        weighted = int(self._blocks.piece_edges is not None)
        return runtime.kernel(BLOCKS.path, name, real_t=np.dtype(dtype), WEIGHTED=weighted)

    def smem(self, dtype: DTypeLike) -> int:
        layout, real = self._blocks, np.dtype(dtype).itemsize
        return max(((1 << layout.tile_bits) + 1) * real, _sums_bytes(layout, real))

    def arguments(self, dtype: DTypeLike, fronts: object, tails: object) -> tuple[object, ...]:
        layout = self._blocks
        self._values = self._arguments = None  # frees their memory first
        self._values = cupy.empty(layout.piece_rows.size, dtype)
        weights = self._normalized_weights.of(dtype)
        self._arguments = BLOCKS(
            {"real_t": np.dtype(dtype)},
            n=self._rows, marks=layout.marks, rows=layout.rows, columns=layout.columns, tile_bits=layout.tile_bits,
            piece_bits=layout.piece_bits, spans=len(layout.spans), bounds=layout.bounds[0],
            tile_sources=layout.tile_sources, piece_rows=layout.piece_rows, chunk_by_piece=layout.chunk_by_piece,
            normalized_weights=None if weights is None else blocks.arranged(layout, weights), values=self._values,
            next=self._next, row_spans=self._row_spans, units=layout.units, unit_bounds=layout.bounds[1],
            shared_sums=self._shared_sums, summed=self._summed,
            quantum=2.0 ** -(self.m.bit_length() + BITS[np.dtype(dtype).name]),
        )  # fmt: skip
        return (self._arguments,)

    @property
    def nbytes(self) -> int:
        return self._normalized_weights.nbytes

    def rest(self) -> bool:
        self._values = self._arguments = None
        return False

    def begin(self, contributions: Array) -> None:
        """Start the part of an iteration that needs only the contributions of rows; others may not have arrived yet."""
        if not self._row_spans:
            return
        layout, grid = self._blocks, min(self._row_spans, blocks.resident_blocks())
        smem = ((1 << layout.tile_bits) + 1) * contributions.itemsize
        kernel = runtime.with_dynamic_smem(self._kernel("scatter_row_spans", contributions.dtype), smem)
        runtime.launch(kernel, grid, self.threads, self._arguments, contributions, smem=smem)


def _arranged(adjacency: Edges, keeper: Edges, rows: int, sizes: tuple[int, int]) -> Blocks:
    """Return the layout, which `keeper` keeps; set missing out-degrees."""
    kept, n, weighted = keeper.kept(Blocks), adjacency.n, adjacency.weighted
    if kept is None or (kept.rows, kept.tile_bits, kept.piece_bits) != (rows, *sizes):
        kept = None
        keeper.keep(None)  # frees its memory
        if reason := blocks.unavailable_reason(rows, n, adjacency.m, weighted=weighted, sizes=sizes):
            raise InvalidOptionError(reason)
        edges = adjacency.get(Coo)
        layout, outs = blocks.build(edges.source, edges.destination, 0, rows, n, *sizes, ordered=weighted)
        kept = replace(layout, marks=blocks.all_marks(n), in_degrees=layout.in_degrees[:rows].copy())
        if not weighted and "_out_weight" not in vars(adjacency):
            adjacency.set_out_weight(outs[:n].astype(np.float64), 0)
        synchronize("device")
        keeper.keep(kept)
    return kept


def _bits(name: str, size: object, most: int) -> int:
    """Return log2 of an option, a power of two from 32 to 2**most."""
    size = validate_int(name, size, multiple_of=32, at_most=1 << most)
    if size & (size - 1):
        raise InvalidOptionError(f"{name} must be a power of two, not {size}.")
    return size.bit_length() - 1


def _sums_bytes(layout: Blocks, real: int) -> int:
    """Return the bytes of the sums of a piece, for contributions of this many bytes."""
    return ((1 << layout.piece_bits) + 1) * (8 if real == 4 else blocks.SUM_BYTES)
