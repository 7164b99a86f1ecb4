"""Bytes that a graph's arrays take, and that it takes to build them: what was built is foretold by how it is built.

Everything here is counted from the graph's numbers alone, and nothing is allocated: the graph may not exist yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from prplugin.gpu import sizes
from prplugin.machine import COMPILED_FROM, this_machine
from prplugin.numerics.rounding import FAN
from prplugin.types.arrays import Place
from prplugin.types.edges import ANY, GroupedEdges, index_dtype, offset_dtype

__all__ = ["NOTHING", "Bytes", "Counts", "Footprint", "brought", "csc", "out_weight", "product", "rows"]

FLOAT = 8

PIECE, BUCKETS = 1 << 17, 256
"""Rows of a frame that a thread takes at a time, and buckets that it counts them by: those of `host_groups`."""


class Bytes(NamedTuple):
    """Bytes on one side, counted from where the work begins.

    Attributes
    ----------
    held : int
        At the end.
    peak : int
        At the most.
    """

    held: int = 0
    peak: int = 0


class Footprint(NamedTuple):
    """Bytes of some work on both sides, which grows stage by stage.

    Attributes
    ----------
    device, host : Bytes
    """

    device: Bytes = Bytes()
    host: Bytes = Bytes()

    def then(self, place: Place, stays: int = 0, passes: int = 0) -> Footprint:
        """Add a stage: bytes that stay, and those that it holds beside them. What is negative is given back."""
        held, peak = self.on(place)
        after = Bytes(held + stays, max(peak, held + stays + passes))
        return self._replace(device=after) if place == "device" else self._replace(host=after)

    def on(self, place: Place) -> Bytes:
        """Give the bytes of one side."""
        return self.device if place == "device" else self.host


NOTHING = Footprint()


@dataclass(frozen=True)
class Counts:
    """What is known of a graph that need not be there: it stands in for an `Adjacency` where bytes are counted.

    Attributes
    ----------
    n, m : int
    weighted : bool
    place : Place
    built : frozenset of str
        Which of "rows", "csr", "csc" and "out_weight" are there.
    elsewhere : Counts, optional
        The same graph on the other side, if it has been brought there.
    longest : int, optional
        In-edges of the most popular target. None: nobody has looked.
    extent : tuple of float
        As that of `Edges`.
    spilled : bool
        As that of `Edges`.
    grouped : bool
        Whether they are `GroupedEdges`, which lie by target from the beginning.
    real : int
        Bytes of a contribution on the GPU, and of an edge's share: those of float32, with which most rankings begin
        and end; those of float64 where it takes over.
    """

    n: int
    m: int
    weighted: bool
    place: Place
    built: frozenset[str] = frozenset({"rows"})
    elsewhere: Counts | None = None
    longest: int | None = None
    extent: tuple[float, float] = field(default=ANY)
    spilled: bool = False
    grouped: bool = False
    real: int = 4

    @classmethod
    def of(cls, graph: Any) -> Counts:
        """Take the numbers of an `Adjacency`, or of what stands in for one; build nothing."""
        if isinstance(graph, Counts):
            return graph
        known, edges = vars(graph), getattr(graph, "edges", None)
        built = {name.removeprefix("_") for name in ("csr", "csc", "_out_weight") if name in known}
        grouped = isinstance(edges, GroupedEdges)
        if grouped:
            built |= {"csc", "out_weight"}
        if not grouped or graph.edges.by_row_is_there:
            built.add("rows")
        elsewhere, longest = known.get("_elsewhere"), known.get("largest_in_degree")
        if longest is None and "csc" in built and graph.place == "host":
            longest = graph.largest_in_degree
        return cls(
            graph.n, graph.m, graph.weighted, graph.place, frozenset(built),
            None if elsewhere is None else cls.of(elsewhere), longest, getattr(edges, "extent", ANY),
            getattr(edges, "spilled", False), grouped,
        )  # fmt: skip

    @property
    def largest_in_degree(self) -> int:
        """In-edges of the most popular target, or as few as it can have."""
        return -(-self.m // max(1, self.n)) if self.longest is None else self.longest

    @cached_property
    def index(self) -> int:
        """Bytes of a vertex's position."""
        return index_dtype(self.n).itemsize

    @property
    def offset(self) -> int:
        """Bytes of an edge's position, in the offsets of the graph's side."""
        return offset_dtype(self.m).itemsize if self.place == "device" else 8

    @property
    def weight(self) -> int:
        """Bytes of an edge's weight."""
        return FLOAT if self.weighted else 0

    @property
    def share(self) -> int:
        """Bytes of an edge's share of its source's out-weight."""
        return self.real if self.weighted else 0

    @property
    def in_float64(self) -> Counts:
        """The same graph, of which float64 ends the ranking."""
        return replace(self, real=FLOAT)

    @property
    def by_target(self) -> Counts:
        """The same graph, of which nothing has been made but `GroupedEdges`."""
        return replace(self, built=frozenset({"csc", "out_weight"}), grouped=True)

    def having(self, *built: str) -> Counts:
        """Give the same graph with more of its arrays built."""
        return replace(self, built=self.built | {*built})


def brought(graph: Counts, place: Place, so_far: Footprint) -> tuple[Counts, Footprint]:
    """Bring a graph to a side, as `Adjacency.on` does."""
    if graph.place == place:
        return graph, so_far
    if graph.elsewhere is not None:
        return replace(graph.elsewhere, real=graph.real), so_far
    if graph.grouped:
        there = replace(graph, place=place, built=frozenset({"csc", "out_weight"}))
        retyped = 8 * (graph.n + 1) if there.offset != graph.offset else 0
        so_far = so_far.then(graph.place, passes=retyped)
        offsets, members = (graph.n + 1) * there.offset, graph.m * (graph.index + graph.weight)
        return there, so_far.then(place, offsets + members + FLOAT * graph.n)
    so_far = so_far.then(place, graph.m * (2 * graph.index + graph.weight))
    built = {"rows"}
    if graph.weighted:
        graph, so_far = out_weight(graph, so_far)
        so_far = so_far.then(place, FLOAT * graph.n)
        built.add("out_weight")
    return replace(graph, place=place, built=frozenset(built)), so_far


def rows(graph: Counts, so_far: Footprint) -> tuple[Counts, Footprint]:
    """Make the source and the target of every edge, of edges that are held by target alone."""
    if "rows" in graph.built:
        return graph, so_far
    # On the GPU the sources by target are there already; on the host those of a lasting graph are.
    stays = graph.m * graph.index if graph.place == "device" else 0
    return graph.having("rows"), so_far.then(graph.place, stays)


def csc(graph: Counts, so_far: Footprint) -> tuple[Counts, Footprint]:
    """Bring the in-edges together by target."""
    return _compressed("csc", graph, so_far)


def out_weight(graph: Counts, so_far: Footprint) -> tuple[Counts, Footprint]:
    """Sum the weights that leave each vertex."""
    if "out_weight" in graph.built:
        return graph, so_far
    n, m, place = graph.n, graph.m, graph.place
    sums = FLOAT * n
    if place == "device" and not graph.weighted:
        counts = n * graph.offset
        binned = n in sizes.BINNED and m >= sizes.A_GROUP * n and graph.index == graph.offset == 4
        so_far = so_far.then(place, passes=counts + (_sorting(m, graph.index) if binned else 0))
        so_far = so_far.then(place, sums, counts)
    elif place == "device":
        terms = graph.index + FLOAT
        if sizes.words_of_sums(m, n, graph.index, graph.extent):
            so_far = so_far.then(place, sums, _sorting(m, terms) + 2 * sums)
        else:
            so_far = so_far.then(place, passes=_sorting(m, terms, 2))
            so_far = so_far.then(place, sums, (n + 1) * graph.offset + m * FLOAT)
    elif m >= COMPILED_FROM:
        if graph.weighted:
            so_far = so_far.then(place, sums, sums)
        else:
            vectors = min(this_machine().threads, max(1, m // max(1, n)))
            so_far = so_far.then(place, sums, n * offset_dtype(m).itemsize * (vectors + (vectors > 1)))
    elif graph.weighted:
        maps, passes = groups(replace(graph, longest=None))
        so_far = so_far.then(place, maps, passes).then(place, -maps).then(place, sums, m * FLOAT)
    else:
        so_far = so_far.then(place, sums, max(sums, 8 * m))  # the sources, as wide as they are counted
    return graph.having("out_weight"), so_far


def product(graph: Counts, so_far: Footprint) -> tuple[Counts, Footprint]:
    """Make the product of the in-edges with a vector on the host: see `prplugin.graph.product`."""
    n, m = graph.n, graph.m
    if compiled := m >= COMPILED_FROM:
        graph, so_far = csc(graph, so_far)
    if graph.weighted:
        graph, so_far = out_weight(graph, so_far)
        so_far = so_far.then("host", 8 * m, 9 * m)  # the out-weight of every edge's source, and whether it is above 0
    if compiled:
        return graph, so_far
    so_far = so_far.then("host", 8 * m, graph.index * m if "csc" in graph.built else 0)  # sources
    targets, passes = groups(graph)
    return graph, so_far.then("host", targets, passes).then("host", 8 * m)  # a term per edge


def groups(graph: Counts) -> tuple[int, int]:
    """Return the bytes of the maps of `GroupSums`, and what it takes beside them to make them."""
    n, m = graph.n, graph.m
    if graph.longest is not None and graph.longest <= FAN:
        return 8 * m, 16 * n
    return 8 * (m + m // FAN + n), 24 * m + 24 * n


def _compressed(what: str, graph: Counts, so_far: Footprint) -> tuple[Counts, Footprint]:
    """Group edges by row (or column): see `prplugin.graph.adjacency`."""
    if what in graph.built:
        return graph, so_far
    graph, so_far = rows(graph, so_far)
    n, m, place = graph.n, graph.m, graph.place
    offsets, members = (n + 1) * graph.offset, m * (graph.index + graph.weight)
    if place == "device":
        if m > sizes.TILE or n > sizes.FEW_GROUPS or graph.index > 4:
            copies = 1 if (n - 1).bit_length() <= sizes.DIGIT_BITS else 2
            so_far = so_far.then(place, passes=_sorting(m, graph.index + graph.index + graph.weight, copies))
            so_far = so_far.then(place, passes=m * graph.index + members + offsets)  # the keys are still there
    elif m >= COMPILED_FROM:
        counts = -(-m // PIECE) * min(BUCKETS, n) * (4 + 8 + 8)
        so_far = so_far.then(place, passes=m * (8 + graph.weight) + counts + members + offsets)
    else:
        order, keys = 8 * m, 8 * m
        so_far = so_far.then(place, passes=order + keys + 8 * n)
        so_far = so_far.then(place, passes=order + offsets + members)
    return graph.having(what), so_far.then(place, offsets + members)


def _sorting(count: int, an_item: int, copies: int = 1) -> int:
    """Count the bytes of sorting so many keys with what goes with them: copies, and the words of look-back."""
    word = 4 if count < sizes.NARROW else 8
    return copies * count * an_item + 2 * word * sizes.BINS * -(-count // sizes.TILE)
