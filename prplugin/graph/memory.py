"""Memory model: bytes per edge, per weight and per vertex of each method, evaluated by `footprint`.

The coefficients are those of measured peaks, with which `tests/methods/test_estimates.py` compares them: an estimate
may be 20 % off. What does not fit nevertheless raises `OutOfMemoryError`, and "auto" takes the next method. The model
depends only on counts (`Counts`). It allocates nothing, and the graph need not exist yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import MAX_NARROW, Coo, Csc, PackedParts, PackedRows


class Bytes(NamedTuple):
    """Bytes in one memory space, relative to the start of the computation."""

    held: int = 0  # at the end
    peak: int = 0  # maximum at any time


class Footprint(NamedTuple):
    """Bytes on the device and on the host, accumulated stage by stage."""

    device: Bytes = Bytes()
    host: Bytes = Bytes()

    def then(self, memory_space: MemorySpace, stays: float, most: float = 0) -> Footprint:
        """Add a stage that allocates at most `most` bytes, of which `stays` remain."""
        held, peak = self.on(memory_space)
        return self._replace(**{memory_space: Bytes(int(held + stays), int(max(peak, held + stays, held + most)))})

    def on(self, memory_space: MemorySpace) -> Bytes:
        """Return the bytes in one memory space."""
        return self.device if memory_space == "device" else self.host


class Rate(NamedTuple):
    """Bytes per edge, in addition per edge of weighted graphs, and per vertex."""

    edge: float = 0
    weight: float = 0
    vertex: float = 0

    def of(self, graph: Counts, edges: int | None = None) -> float:
        """Return the bytes for a graph, or for a part of its edges; positions above 2**31 take twice as much."""
        per_edge = self.edge * (1 + (graph.n > MAX_NARROW)) + self.weight * graph.weighted
        return per_edge * (graph.m if edges is None else min(graph.m, edges)) + self.vertex * graph.n


NONE = Rate()
COPIED = Rate(8, 8)  # an edge list in the other memory space
NORMALIZED = Rate(0, 8)
OUT_WEIGHT = Rate(12.5, 0, 24)  # of weighted edges on the device, while they are summed


class Made(NamedTuple):
    """Bytes of a layout: at most while it is made of an edge list, and of what stays, with the out-weights."""

    making: Rate
    kept: Rate


CSC: dict[MemorySpace, Made] = {
    "device": Made(Rate(16.5, 16), Rate(4, 8, 12)),
    "host": Made(Rate(12.1, 16, 8), Rate(4, 8, 16)),
}


class Memory(NamedTuple):
    """Memory that a method needs in addition to the frame.

    `memory_space`: Where it iterates.
    `layout`: Layout that the graph makes for it and keeps, or the name of the attribute that holds it.
    `made`: Bytes of that; of a CSC if not given.
    `layout_in`: Where the layout is, if not in `memory_space`. "edges": where the edges are.
    `normalizes`: Whether the graph keeps normalized weights for it.
    `lists`: Whether it reads the edges as a list as well.
    `preparing`, `preparing_edges`: Bytes during preparation only, for so many edges at most.
    `step`: Bytes of the iteration beside the layout.
    `float64`, `float32_from`: In addition, for contributions in float64; on graphs of fewer vertices they always are.
    `more`: In addition, if many iterations are expected and iterates are mixed.
    `pair`: Bytes per pair of vertices.
    `packs`: Whether it reads packed edges: those of `PackedRows` instead of the layout, and those in GPU memory instead
    of edges in its `step`.
    `host`: Bytes of packed edges on the host, of a method that iterates on the device.
    `chunks`: Bytes of all device buffers through which these are streamed.
    """

    memory_space: MemorySpace = "device"
    layout: type | str = Csc
    made: Made | None = None
    layout_in: MemorySpace | Literal["edges"] | None = None
    normalizes: bool = False
    lists: bool = False
    preparing: Rate = NONE
    preparing_edges: int | None = None
    step: Rate = NONE
    float64: Rate = NONE
    float32_from: int = 0
    more: Rate = NONE
    pair: float = 0
    packs: bool = False
    host: Rate = NONE
    chunks: int = 0


@dataclass(eq=False, repr=False)
class Counts:
    """Counts of a graph that the memory model needs. The graph itself need not exist.

    `layouts`: Layouts and names of attributes of `Edges` that exist already.
    `other_memory`: Counts of the copy in the other memory space, if there is one.
    `frame_space`: As in `Coo`.
    `given`: As in `Edges`; edges that are not a list are grouped by target.
    `spread`: As in `Edges`, if its in-edges exist already.
    `packed_bytes`: Bytes of `PackedParts` that `packed` has kept, and other methods free.
    `largest_in_degree`: 0 if it is not known.
    """

    n: int
    m: int
    weighted: bool
    memory_space: MemorySpace
    layouts: frozenset[type | str] = frozenset({Coo})
    other_memory: Counts | None = None
    frame_space: MemorySpace | None = None
    given: type = Coo
    spread: float = 1.0
    packed_bytes: int = 0
    largest_in_degree: int = 0

    @classmethod
    def of(cls, graph: Any) -> Counts:
        """Return the counts of `Edges`, without building any of its arrays; return `Counts` unchanged."""
        if isinstance(graph, Counts):
            return graph
        known = vars(graph).copy()  # another thread may build an array meanwhile
        layouts = frozenset([*graph.layouts, *known, graph.given, type(graph.kept(object))])
        if graph.given is PackedParts:  # which are read as they are
            layouts |= {Csc}
        other_memory, packed = known.get("_other_memory"), graph.kept(PackedParts)
        return cls(
            graph.n, graph.m, graph.weighted, graph.memory_space, layouts,
            None if other_memory is None else cls.of(other_memory), graph.frame_space, graph.given,
            graph.spread if Csc in layouts else 1.0, 0 if packed is None else packed.nbytes,
        )  # fmt: skip


def footprint(memory: Memory, graph: Counts, *, many: bool = False) -> Footprint:
    """Return the bytes of a ranking, including those of the layout that the graph makes for it and keeps.

    `many`: Whether many iterations are expected, as with alpha near 1.
    """
    memory_space, there, found = memory.memory_space, graph, Footprint()
    layout_in = graph.memory_space if memory.layout_in == "edges" else memory.layout_in or memory_space
    if layout_in != graph.memory_space and graph.other_memory is not None:
        there = graph.other_memory
    elif layout_in != graph.memory_space:
        there = replace(graph, memory_space=layout_in, layouts=frozenset({Coo if graph.given is Coo else Csc}))
        found = found.then(layout_in, (COPIED if graph.given is Coo else CSC[layout_in].kept).of(graph))
        if graph.weighted and graph.given is Coo:  # sums the out-weights
            on_device = graph.memory_space == "device"
            found = found.then(graph.memory_space, 8 * graph.n, OUT_WEIGHT.of(graph) if on_device else 0)
    found = found.then("device", 0 if memory.packs else -graph.packed_bytes)
    layouts = there.layouts
    if graph.given is PackedRows and there is graph and memory.packs:
        layouts |= {memory.layout}
    elif graph.given is PackedRows and there is graph and Csc not in layouts:
        found, layouts = _made(found, layout_in, CSC[layout_in], there), layouts | {Csc}
    if memory.layout not in layouts:
        found = _made(found, layout_in, memory.made or CSC[layout_in], there)
    if memory.lists and Coo not in layouts:
        found = found.then(layout_in, 4 * graph.m)
    if memory.normalizes and "normalized_weights" not in layouts:
        found = found.then(layout_in, NORMALIZED.of(there))
    step = memory.step
    if memory.packs and (graph.given is PackedParts or graph.packed_bytes):
        step = step._replace(edge=0, weight=0)
    else:
        found = found.then(memory_space, 0, memory.preparing.of(there, memory.preparing_edges))
    on_host = memory.host._replace(weight=memory.host.weight * (1 + many))  # float64 follows float32
    found = found.then("host", on_host.of(there))
    found = found.then(memory_space, min(memory.chunks, on_host._replace(vertex=0).of(there)))
    found = found.then(memory_space, step.of(there) + memory.pair * graph.n**2 * (1 + (many and graph.weighted)))
    if many or graph.n < memory.float32_from:
        found = found.then(memory_space, memory.float64.of(there))
    if many:
        found = found.then(memory_space, memory.more.of(there))
    # The copy of the result.
    return found if graph.memory_space == memory_space else found.then(graph.memory_space, 8 * graph.n)


def _made(found: Footprint, memory_space: MemorySpace, made: Made, graph: Counts) -> Footprint:
    return found.then(memory_space, made.kept.of(graph), made.making.of(graph))
