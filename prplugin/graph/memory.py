"""Model of the memory that a ranking takes: bytes per edge and per vertex, by method, evaluated by `footprint`.

Everything is counted from the graph's numbers alone, and nothing is allocated: the graph may not exist yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from prplugin.machine import COMPILED_FROM
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import GroupedEdges, index_dtype, offset_dtype

__all__ = ["NOTHING", "Bytes", "Counts", "Footprint", "Memory", "Size", "footprint"]

Array = Literal["rows", "csr", "csc", "product", "out_weight"]


class Bytes(NamedTuple):
    """Bytes in one memory space, counted from where the work begins.

    `held`: At the end.
    `peak`: At the most.
    """

    held: int = 0
    peak: int = 0


class Footprint(NamedTuple):
    """Bytes of some work on the device and on the host, which grows stage by stage."""

    device: Bytes = Bytes()
    host: Bytes = Bytes()

    def then(self, memory_space: MemorySpace, stays: float = 0, passes: float = 0) -> Footprint:
        """Add a stage: bytes that stay, and those that it holds beside them."""
        held, peak = self.on(memory_space)
        held += int(stays)
        after = Bytes(held, max(peak, held + int(passes)))
        return self._replace(device=after) if memory_space == "device" else self._replace(host=after)

    def on(self, memory_space: MemorySpace) -> Bytes:
        """Return the bytes in one memory space."""
        return self.device if memory_space == "device" else self.host


NOTHING = Footprint()


@dataclass(frozen=True)
class Size:
    """Bytes per edge or per vertex: fixed ones, and multiples of the sizes of types.

    `index`, `offset`: Times the bytes of a vertex's position, and of an edge's.
    `real`: Times the bytes of a contribution: 4 in float32, 8 in float64.
    `normalized_weight`, `weight`: Times the bytes of a normalized weight, of the same type, and of a weight; 0 without
    weights.
    """

    fixed: float = 0
    index: float = 0
    offset: float = 0
    real: float = 0
    normalized_weight: float = 0
    weight: float = 0

    def of(self, graph: Counts, real: int) -> float:
        """Return the bytes for one graph, with contributions of so many bytes."""
        weighted = self.normalized_weight * real + self.weight * 8 if graph.weighted else 0
        return self.fixed + self.index * graph.index + self.offset * graph.offset + self.real * real + weighted


NONE = Size()


@dataclass(frozen=True)
class Memory:
    """Memory that a method needs besides the frame, in bytes per edge and per vertex.

    `memory_space` ({"host", "device"}): Where it iterates.
    `arrays` (tuple of str): Which arrays of the graph it builds, in this order.
    `arrays_on` ({"host", "device"}, optional): Where; where it iterates if not given.
    `edge`, `vertex`: What it holds itself, where it iterates, once it is prepared.
    `packed_edge`, `packed_vertex`: What it holds on the host, beside that, where it iterates on the device.
    `preparing_edge`, `preparing_vertex`, `preparing_bytes`: What it holds where it iterates while it is prepared; what
    `edge` and `vertex` count is there only after that.
    `many_edge`, `many_vertex`: What comes on top where many iterations are left.
    `pair`: Per pair of vertices.
    `float32_from`: Vertices from which contributions begin in float32; fewer have them in float64 from the beginning.
    `tile`: Edges are sorted into runs by tile of so many vertices and piece of so many rows and edges, and each run is
    padded by 3.5 edges on average.
    `chunk_bytes`: The packed edges pass through two buffers on the device, each of at most so many bytes.
    """

    memory_space: MemorySpace = "device"
    arrays: tuple[Array, ...] = ("csc", "out_weight")
    arrays_on: MemorySpace | None = None
    edge: Size = NONE
    vertex: Size = NONE
    packed_edge: Size = NONE
    packed_vertex: Size = NONE
    preparing_edge: Size = NONE
    preparing_vertex: Size = NONE
    preparing_bytes: int = 0
    many_edge: Size = NONE
    many_vertex: Size = NONE
    pair: Size = NONE
    float32_from: int = 0
    tile: int | None = None
    chunk_bytes: int | None = None


@dataclass(frozen=True)
class Counts:
    """What is known of a graph that need not be there: it stands in for an `Adjacency` where bytes are counted.

    `built` (frozenset of str): Which of "rows", "csr", "csc", "product" and "out_weight" are there.
    `elsewhere`: The same graph in the other memory space, if it has been copied there.
    `longest`: Largest in-degree. None: not known.
    `spilled`: As that of `Edges`.
    `grouped`: Whether they are `GroupedEdges`, which are stored by target from the beginning.
    """

    n: int
    m: int
    weighted: bool
    memory_space: MemorySpace
    built: frozenset[str] = frozenset({"rows"})
    elsewhere: Counts | None = None
    longest: int | None = None
    spilled: bool = False
    grouped: bool = False

    @classmethod
    def of(cls, graph: Any) -> Counts:
        """Take the numbers of an `Adjacency`, or of what stands in for one; build nothing."""
        if isinstance(graph, Counts):
            return graph
        known = vars(graph)
        built = {name.removeprefix("_") for name in ("csr", "csc", "_out_weight", "product") if name in known}
        grouped = isinstance(graph.edges, GroupedEdges)
        if grouped:
            built |= {"csc", "out_weight"}
        if not grouped or graph.edges.edge_list_is_there:
            built.add("rows")
        elsewhere, longest = known.get("_elsewhere"), known.get("largest_in_degree")
        if longest is None and "csc" in built and graph.memory_space == "host":
            longest = graph.largest_in_degree
        return cls(
            graph.n, graph.m, graph.weighted, graph.memory_space, frozenset(built),
            None if elsewhere is None else cls.of(elsewhere), longest, graph.spilled, grouped,
        )  # fmt: skip

    @property
    def largest_in_degree(self) -> int:
        """In-edges of the most popular target, or as few as it can have."""
        return -(-self.m // max(1, self.n)) if self.longest is None else self.longest

    @property
    def index(self) -> int:
        """Bytes of a vertex's position."""
        return index_dtype(self.n).itemsize

    @property
    def offset(self) -> int:
        """Bytes of an edge's position, in the graph's memory space."""
        return offset_dtype(self.m).itemsize if self.memory_space == "device" else 8

    @property
    def weight(self) -> int:
        """Bytes of an edge's weight."""
        return 8 if self.weighted else 0

    @property
    def by_target(self) -> Counts:
        """The same graph, of which nothing has been made but `GroupedEdges`."""
        return replace(self, built=frozenset({"csc", "out_weight"}), grouped=True)


def footprint(memory: Memory, graph: Counts, real: int = 4, *, many: bool = False) -> Footprint:
    """Count the bytes of a ranking, arrays included that the graph builds for it and keeps.

    `real` ({4, 8}): 4: contributions in float32 throughout, where the method begins with them. 8: float64 takes over.
    `many`: Whether many iterations are left, as with an alpha near 1.
    """
    memory_space, takes_over = (
        memory.memory_space,
        memory.memory_space == "device" and real == 8 and graph.n >= memory.float32_from,
    )
    real = 8 if graph.n < memory.float32_from else real
    there, so_far = _brought(graph, memory.arrays_on or memory_space)
    for array in memory.arrays:
        there, so_far = _with_array(array, there, so_far)
    n, edges = there.n, float(there.m)
    if memory.tile is not None:
        edges += 3.5 * min(there.m, (n // memory.tile + 1) * ((n + there.m) // memory.tile + 1))
    passes = memory.preparing_edge.of(there, real) * edges + memory.preparing_vertex.of(there, real) * n
    so_far = so_far.then(memory_space, passes=passes + memory.preparing_bytes)
    packed = memory.packed_edge.of(there, real) * edges
    so_far = so_far.then("host", packed + memory.packed_vertex.of(there, real) * n)
    if memory.chunk_bytes is not None:  # cut so that normalized weights in float64 fit
        chunks = memory.packed_edge.of(there, 8) * edges / max(1, memory.chunk_bytes)
        so_far = so_far.then(memory_space, packed if chunks <= 1 else 2 * packed / chunks)
    # Where float64 takes over, the ranks that float32 came to are still there.
    vertex = memory.vertex.of(there, real) + 8 * takes_over
    so_far = so_far.then(
        memory_space, memory.edge.of(there, real) * edges + vertex * n + memory.pair.of(there, real) * n * n
    )
    if many:
        so_far = so_far.then(
            memory_space, memory.many_edge.of(there, real) * edges + memory.many_vertex.of(there, real) * n
        )
    return (
        so_far if graph.memory_space == memory_space else so_far.then(graph.memory_space, 8 * n)
    )  # the result goes back


def _brought(graph: Counts, memory_space: MemorySpace) -> tuple[Counts, Footprint]:
    """Copy a graph to a memory space, as `Adjacency.on` does."""
    if graph.memory_space == memory_space:
        return graph, NOTHING
    if graph.elsewhere is not None:
        return graph.elsewhere, NOTHING
    there = replace(
        graph, memory_space=memory_space, built=frozenset({"csc", "out_weight"} if graph.grouped else {"rows"})
    )
    if graph.grouped:
        return there, NOTHING.then(memory_space, (graph.n + 1) * there.offset + _members(graph) + 8 * graph.n)
    so_far = NOTHING.then(memory_space, graph.m * graph.index + _members(graph))
    if graph.weighted:
        _, so_far = _with_array("out_weight", graph, so_far)
        so_far = so_far.then(memory_space, 8 * graph.n)
        there = replace(there, built=there.built | {"out_weight"})
    return there, so_far


def _with_array(array: Array, graph: Counts, so_far: Footprint) -> tuple[Counts, Footprint]:
    """Build one of the graph's arrays, unless it is there: see `prplugin.graph.adjacency`."""
    n, m, memory_space = graph.n, graph.m, graph.memory_space
    compiled = m >= COMPILED_FROM
    if array == "product" and not compiled:  # a term per edge, in each ranking
        so_far = so_far.then(memory_space, 8 * m)
    if array in graph.built:
        return graph, so_far
    if array == "rows":  # of edges that are stored by target alone; on the host a lasting graph has them
        so_far = so_far.then(memory_space, m * graph.index if memory_space == "device" else 0)
    elif array == "product":  # see `prplugin.graph.product`
        if compiled:
            graph, so_far = _with_array("csc", graph, so_far)
        else:  # sources and the map of `GroupSums`
            so_far = so_far.then(memory_space, 16.25 * m, 24 * n)
        if graph.weighted:
            graph, so_far = _with_array("out_weight", graph, so_far)
            so_far = so_far.then(memory_space, 8 * m, 9 * m)
    elif array == "out_weight":
        if memory_space == "host" and graph.weighted and not compiled:
            so_far = so_far.then(memory_space, passes=16.25 * m + 24 * n)
        so_far = so_far.then(memory_space, 8 * n, (12.5 * m + 16 * n) * (memory_space == "device" and graph.weighted))
    else:
        graph, so_far = _with_array("rows", graph, so_far)
        result = (n + 1) * graph.offset + _members(graph)
        if memory_space == "device":  # two copies to sort, and words of look-back
            passes = m * (4 * graph.index + 2 * graph.weight + 0.5)
        elif compiled:
            passes = result + m * (8.04 + graph.weight)
        else:  # the order, and keys or the result
            passes = 8 * m + max(8 * m + 8 * n, result)
        so_far = so_far.then(memory_space, passes=passes).then(memory_space, result)
    return replace(graph, built=graph.built | {array}), so_far


def _members(graph: Counts) -> int:
    """Count the bytes of the indices and the weights of compressed rows."""
    return graph.m * (graph.index + graph.weight)
