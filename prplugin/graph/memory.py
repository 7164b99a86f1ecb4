"""Memory model: bytes per edge and per vertex for each method, evaluated by `footprint`.

The model depends only on counts (`Counts`). It allocates nothing, and the graph need not exist yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from prplugin.cpu import library
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Blocks, Coo, Csc, Csr, PackedParts, PackedRows, index_dtype, offset_dtype

Array = Literal["rows", "csr", "csc", "product", "out_weight", "normalized_weights"]
LAYOUTS: dict[type, Array] = {Coo: "rows", Csr: "csr", Csc: "csc", PackedParts: "csc"}
"""The array that a layout is in this model; edges packed in device memory need no other."""


class Bytes(NamedTuple):
    """Bytes in one memory space, relative to the start of the computation."""

    held: int = 0  # at the end
    peak: int = 0  # maximum at any time


class Footprint(NamedTuple):
    """Bytes on the device and on the host, accumulated stage by stage."""

    device: Bytes = Bytes()
    host: Bytes = Bytes()

    def then(self, memory_space: MemorySpace, stays: float = 0, temporary: float = 0) -> Footprint:
        """Add a stage that allocates `stays` bytes permanently, and another `temporary` bytes temporarily."""
        held, peak = self.on(memory_space)
        held += int(stays)
        return self._replace(**{memory_space: Bytes(held, max(peak, held + int(temporary)))})

    def on(self, memory_space: MemorySpace) -> Bytes:
        """Return the bytes in one memory space."""
        return self.device if memory_space == "device" else self.host


NOTHING = Footprint()


@dataclass
class Size:
    """Bytes per edge or per vertex: a fixed number, plus multiples of item sizes that depend on the graph.

    Unweighted graphs have neither normalized weights nor weights.
    """

    fixed: float = 0  # bytes
    index: float = 0  # values of `index_dtype(n)`
    offset: float = 0  # values of `offset_dtype(m)`
    real: float = 0  # contributions, of 4 bytes in float32 and 8 in float64
    normalized_weight: float = 0  # of the type of the contributions
    weight: float = 0  # float64

    def of(self, graph: Counts, real: int) -> float:
        """Return the bytes for a graph, with contributions of `real` bytes."""
        weighted = self.normalized_weight * real + self.weight * 8 if graph.weighted else 0
        return self.fixed + self.index * graph.index + self.offset * graph.offset + self.real * real + weighted


NONE = Size()

LEAST_PIECES = 256
"""Pieces of rows that `propagation-blocking` makes at least, of a size that leaves few blocks without one."""


class Memory(NamedTuple):
    """Memory that a method needs in addition to the frame.

    `arrays`: Arrays of the graph that the method builds, in this order.
    `arrays_on`: Memory space of these arrays; by default `memory_space`, in which the method iterates. "edges": where
    the edges are.
    `edge`, `vertex`: Allocated by the method in `memory_space` for the iteration.
    `packed_edge`, `packed_vertex`: Allocated in addition on the host, by a method that iterates on the device.
    `preparing_edge`, `preparing_vertex`, `preparing_bytes`: Allocated in `memory_space` during preparation only, before
    `edge` and `vertex`.
    `preparing_edges`: Number of edges for which `preparing_edge` is allocated at most.
    `many_vertex`: Allocated in addition if many iterations are expected.
    `pair`: Per pair of vertices.
    `float32_from`: Number of vertices from which the iteration starts with contributions in float32.
    `tile`: Vertices per tile. Edges are arranged in cells by tile of the source and piece of rows, half as large, and
    each cell is padded by 3.5 edges on average.
    `chunk_bytes`: Maximum size of each of the two device buffers through which packed edges are streamed.
    `reads_packed`: Whether the method reads packed edges: those of `PackedRows` instead of "csc", and those in GPU
    memory instead of its `edge`.
    """

    memory_space: MemorySpace = "device"
    arrays: tuple[Array, ...] = ("csc", "out_weight")
    arrays_on: MemorySpace | Literal["edges"] | None = None
    edge: Size = NONE
    vertex: Size = NONE
    packed_edge: Size = NONE
    packed_vertex: Size = NONE
    preparing_edge: Size = NONE
    preparing_vertex: Size = NONE
    preparing_bytes: int = 0
    preparing_edges: int | None = None
    many_vertex: Size = NONE
    pair: Size = NONE
    float32_from: int = 0
    tile: int | None = None
    chunk_bytes: int | None = None
    reads_packed: bool = False


@dataclass(eq=False, repr=False)
class Counts:
    """Counts of a graph that the memory model needs. The graph itself need not exist.

    `built`: Arrays of the type `Array` that exist already.
    `other_memory`: Counts of the copy in the other memory space, if there is one.
    `frame_space`: As in `Coo`.
    `given`: As in `Edges`; edges that are not a list are grouped by target.
    `spread`: As in `Edges`, if its in-edges exist already.
    `packed_bytes`: Bytes of `PackedParts` that `packed` has kept, and other methods free.
    `largest_in_degree`: 0 if it is not known.
    `blocked`: Whether the edges are in blocks, or a method has kept them so.
    """

    n: int
    m: int
    weighted: bool
    memory_space: MemorySpace
    built: frozenset[str] = frozenset({"rows"})
    other_memory: Counts | None = None
    frame_space: MemorySpace | None = None
    given: type = Coo
    spread: float = 1.0
    packed_bytes: int = 0
    largest_in_degree: int = 0
    blocked: bool = False

    @classmethod
    def of(cls, graph: Any) -> Counts:
        """Return the counts of `Edges`, without building any of its arrays; return `Counts` unchanged."""
        if isinstance(graph, Counts):
            return graph
        known = vars(graph).copy()  # another thread may build an array meanwhile
        built = {name.removeprefix("_") for name in known} & set(get_args(Array))
        built |= {LAYOUTS[layout] for layout in [*graph.layouts] if layout in LAYOUTS}
        other_memory, packed = known.get("_other_memory"), graph.kept(PackedParts)
        return cls(
            graph.n, graph.m, graph.weighted, graph.memory_space, frozenset(built),
            None if other_memory is None else cls.of(other_memory), graph.frame_space, graph.given,
            graph.spread if "csc" in built else 1.0, 0 if packed is None else packed.nbytes,
            blocked=graph.given is Blocks or graph.kept(Blocks) is not None,
        )  # fmt: skip

    @property
    def index(self) -> int:
        """Bytes of a position of a vertex."""
        return index_dtype(self.n).itemsize

    @property
    def offset(self) -> int:
        """Bytes of an offset into the edges, in the memory space of the graph."""
        return offset_dtype(self.m).itemsize if self.memory_space == "device" else 8

    @property
    def weight(self) -> int:
        """Bytes of an edge weight."""
        return 8 if self.weighted else 0

    @property
    def by_target(self) -> Counts:
        """Counts of the same graph read as `Grouped`, with no other array."""
        return replace(self, built=frozenset({"csc", "out_weight"}), given=Csc)


def footprint(memory: Memory, graph: Counts, real: int = 4, *, many: bool = False) -> Footprint:
    """Return the bytes of a ranking, including the arrays that the graph builds for it and keeps.

    `real`: Bytes of a contribution at the end of the iteration: 4 if the float32 phase suffices, 8 if float64 follows.
    `many`: Whether many iterations are expected, as with alpha near 1.
    """
    memory_space = memory.memory_space
    if memory.tile is not None and graph.blocked:  # the layout exists
        edge = replace(memory.edge, fixed=0, weight=0)
        memory = memory._replace(arrays=("out_weight",), edge=edge, preparing_edge=NONE)
    if memory.reads_packed and (graph.given is PackedParts or graph.packed_bytes):
        memory = memory._replace(edge=NONE, preparing_edge=NONE)
    takes_over = memory_space == "device" and real == 8 and graph.n >= memory.float32_from
    real = 8 if graph.n < memory.float32_from else real
    arrays_on = memory.arrays_on or memory_space
    there, so_far = _copied(graph, graph.memory_space if arrays_on == "edges" else arrays_on)
    if not memory.reads_packed:
        so_far = so_far.then("device", -graph.packed_bytes)
    arrays: tuple[Array, ...] = memory.arrays
    if graph.given is PackedRows:
        arrays = tuple(array for array in arrays if array != "csc")
        arrays = arrays if memory.reads_packed else ("csc", *arrays)
    for array in arrays:
        there, so_far = _with_array(array, there, so_far)
    n, edges = there.n, float(there.m)
    if memory.tile is not None:
        edges += 3.5 * min(2 * there.m, (n // memory.tile + 1) * max(2 * n // memory.tile + 1, LEAST_PIECES))

    def total(edge: Size, vertex: Size, count: float = edges) -> float:
        return edge.of(there, real) * count + vertex.of(there, real) * n

    most = edges if memory.preparing_edges is None else min(edges, memory.preparing_edges)
    preparing = total(memory.preparing_edge, memory.preparing_vertex, most) + memory.preparing_bytes
    so_far = so_far.then(memory_space, temporary=preparing)
    so_far = so_far.then("host", total(memory.packed_edge, memory.packed_vertex))
    if memory.chunk_bytes is not None:  # chunks are sized for normalized weights in float64
        packed, chunks = (
            total(memory.packed_edge, NONE),
            memory.packed_edge.of(there, 8) * edges / max(1, memory.chunk_bytes),
        )
        so_far = so_far.then(memory_space, packed if chunks <= 1 else 2 * packed / chunks)
    # When float64 takes over, the ranks of the float32 phase still exist.
    vectors = total(memory.edge, memory.vertex) + 8 * n * takes_over
    so_far = so_far.then(memory_space, vectors + memory.pair.of(there, real) * n * n)
    if many:
        so_far = so_far.then(memory_space, total(NONE, memory.many_vertex))
    # The copy of the result.
    return so_far if graph.memory_space == memory_space else so_far.then(graph.memory_space, 8 * n)


def _copied(graph: Counts, memory_space: MemorySpace) -> tuple[Counts, Footprint]:
    """Return the counts and bytes of the graph copied to a memory space, as by `Edges.on`."""
    if graph.memory_space == memory_space:
        return graph, NOTHING
    if graph.other_memory is not None:
        return graph.other_memory, NOTHING
    there = replace(
        graph, memory_space=memory_space, built=frozenset({"rows"} if graph.given is Coo else {"csc", "out_weight"})
    )
    if graph.given is not Coo:
        return there, NOTHING.then(memory_space, (graph.n + 1) * there.offset + _members(graph) + 8 * graph.n)
    so_far = NOTHING.then(memory_space, graph.m * graph.index + _members(graph))
    if graph.weighted:
        _, so_far = _with_array("out_weight", graph, so_far)
        so_far = so_far.then(memory_space, 8 * graph.n)
        there = replace(there, built=there.built | {"out_weight"})
    return there, so_far


def _with_array(array: Array, graph: Counts, so_far: Footprint) -> tuple[Counts, Footprint]:
    """Return counts and bytes after `prplugin.graph.edges` has built an array, unless it exists already."""
    n, m, memory_space = graph.n, graph.m, graph.memory_space
    compiled = library.is_available()
    if array == "product":  # one term per edge, allocated by each ranking
        so_far = so_far.then(memory_space, 8 * m)
    if array in graph.built:
        return graph, so_far
    if array == "rows":  # of `Grouped`; on the host a lasting graph keeps them anyway
        so_far = so_far.then(memory_space, m * graph.index if memory_space == "device" else 0)
    elif array == "product":  # see `prplugin.methods.engines.host_step`
        if graph.weighted:
            graph, so_far = _with_array("out_weight", graph, so_far)
        # Sources, weights, and the group structure of `GroupSums`; while that is built, the row of each grouped edge.
        so_far = so_far.then(memory_space, 16.25 * m + graph.weight * m, 24 * n + 6 * m * (graph.given is not Coo))
    elif array == "normalized_weights":
        if graph.weighted:
            graph, so_far = _with_array("out_weight", graph, so_far)
            so_far = so_far.then(memory_space, 8 * m)
    elif array == "out_weight":
        if memory_space == "host" and graph.weighted and not compiled:
            so_far = so_far.then(memory_space, temporary=16.25 * m + 24 * n)
        so_far = so_far.then(memory_space, 8 * n, (12.5 * m + 16 * n) * (memory_space == "device" and graph.weighted))
    else:
        graph, so_far = _with_array("rows", graph, so_far)
        result = (n + 1) * graph.offset + _members(graph)
        if memory_space == "device":  # two copies for the sort, and look-back words of its scan
            temporary = m * (4 * graph.index + 2 * graph.weight + 0.5)
        elif compiled:
            temporary = result + m * (8.04 + graph.weight)
        else:  # the permutation, and sort keys or the result
            temporary = 8 * m + max(8 * m + 8 * n, result)
        so_far = so_far.then(memory_space, temporary=temporary).then(memory_space, result)
    return replace(graph, built=graph.built | {array}), so_far


def _members(graph: Counts) -> int:
    """Count the bytes of the indices and the weights of compressed rows."""
    return graph.m * (graph.index + graph.weight)
