"""A change of edges: what is read from the frames of an update, treatment of duplicates, and errors."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from prplugin.errors import InvalidEdgesError, MethodUnavailableError, counted, listed
from prplugin.frames import FrameEdges, read_edges
from prplugin.frames.vertices import Vertices, format_ids
from prplugin.graph.dedup import drop_duplicates, oriented, pair_keys, with_reverse_edges
from prplugin.options import EdgeOptions
from prplugin.types.array_module import Booleans
from prplugin.types.arrays import MemorySpace, to_host
from prplugin.types.edges import Coo, Integers

if TYPE_CHECKING:
    from prplugin.frames.times import Clock


def refuse_window(schema: EdgeOptions) -> None:
    """Raise if a graph has a window, whose updates are not supported."""
    if schema.window is not None:
        raise MethodUnavailableError(
            "update does not support a graph with window=: leave it out, and remove edges that are too old."
        )


def read_changes(
    add: object, remove: object, schema: EdgeOptions, clock: Clock | None, memory_space: MemorySpace,
    names: list[Hashable],
) -> tuple[FrameEdges, FrameEdges, Clock | None]:  # fmt: skip
    """Read frames of edges to add and to remove, by a copy of the clock; return both, and that copy.

    `names`: The vertex columns of the result.
    """
    clock = copy(clock)
    removed, added = (
        _no_edges(names) if frame is None else read_edges(frame, schema, clock, memory_space, removed=is_removed)
        for frame, is_removed in ((remove, True), (add, False))
    )
    return added, removed, clock


def _no_edges(names: list[Hashable]) -> FrameEdges:
    vertices = Vertices(names, [np.empty(0, object) for _ in names], ["empty" for _ in names])
    return FrameEdges(Coo(np.empty(0, np.int64), np.empty(0, np.int64), None, 0), vertices)


class ChangeError(Exception):
    """Invalid change.

    `kind`: "missing": edges to remove do not exist. "repeated": edges to add have a pair of vertices that has an edge.
    "underflow": the remaining edges of vertices are so much older than the removed ones that their weights underflow.
    "overflow": out-weights overflow float64.
    `positions`: Positions of the edges in the change, or of the vertices.
    """

    def __init__(self, kind: Literal["missing", "repeated", "underflow", "overflow"], positions: Integers) -> None:
        self.kind, self.positions = kind, positions

    def explained(self, added: FrameEdges, removed: FrameEdges, vertices: Vertices) -> InvalidEdgesError:
        """Return the error for the user, which names the edges or the vertices."""
        which = self.positions
        edges = counted(len(which), "edge")
        if self.kind == "missing":
            named = listed(_format_edges(removed, which))
            return InvalidEdgesError(f"remove has {edges} that the graph does not have: {named}. Nothing was changed.")
        if self.kind == "repeated":
            named = listed(_format_edges(added, which))
            return InvalidEdgesError(
                f"add has {edges} that the graph has already: {named}. "
                "Leave them out, or make the graph with duplicates='sum', 'first' or 'last'."
            )
        named = f"{counted(len(which), 'vertex', 'vertices')} ({listed(format_ids(vertices.plain_ids, which))})"
        if self.kind == "underflow":
            return InvalidEdgesError(
                f"remove leaves {named} with edges that are hundreds of half-lives older than those removed, which "
                "exceeds the range of the weights: make the graph anew."
            )
        return InvalidEdgesError(
            f"the weights of the edges that leave {named} sum to more than float64 holds. Divide all weights."
        )


AnyIndex = TypeVar("AnyIndex", bound="Index")


class Index(Protocol):
    """Vertices that are looked up: `prplugin.frames.vertex_index.VertexIndex`, or those of all ranks of a cluster."""

    def positions_of(self, vertices: Vertices, argument: str) -> Integers:
        """Return the position of each vertex of a frame, on the host; -1 for vertices not in the graph."""

    def extend(self, vertices: Vertices, frame_positions: Integers) -> tuple[Self, Integers, Integers | None]:
        """Return the index extended by vertices, their positions, and the new positions of the old vertices."""


class Change(NamedTuple, Generic[AnyIndex]):
    """Edges to add and to remove, by the positions of their endpoints in `vertices`.

    `vertices`: The index that was given to `of`, extended by the new vertices of the edges to add.
    `old_positions`: New positions of the old vertices; None if they are unchanged.
    """

    added: Coo
    removed: Coo
    vertices: AnyIndex
    old_positions: Integers | None

    @staticmethod
    def of(add: FrameEdges, remove: FrameEdges, index: AnyIndex, schema: EdgeOptions) -> Change[AnyIndex]:
        """Look up the endpoints; raise ChangeError if those of an edge to remove are not in the graph."""
        removed, old_positions = _moved(remove.edges, index.positions_of(remove.vertices, "remove")), None
        missing = (removed.source < 0) | (removed.destination < 0)
        if missing.any():
            raise ChangeError("missing", missing.nonzero()[0])
        kept = drop_duplicates(add.edges, schema.duplicates, directed=schema.directed)
        positions = index.positions_of(add.vertices, "add")
        if (positions < 0).any():
            index, positions, old_positions = index.extend(add.vertices, positions)
            if old_positions is not None:
                removed = _moved(remove.edges, index.positions_of(remove.vertices, "remove"))
        return Change(_moved(kept, positions), removed, index, old_positions)


def apply_duplicates(
    added: Coo, removed: Coo, duplicates: str, n: int, have_edge: Callable[[Coo], Booleans], *, directed: bool
) -> tuple[Coo, Coo, Coo]:
    """Return the edges to add, those to remove, and those to replace, of any weight, after edges are removed.

    In an undirected graph, reverse edges are added; edges to remove and to replace are `oriented`, without their
    reverse. `have_edge` returns a mask of the pairs that have an edge.
    """
    removed, replaced = removed if directed else oriented(removed), added.take(slice(0))
    if duplicates != "sum" and added.m:
        pairs = added if directed else oriented(added)
        found = have_edge(pairs) & ~np.isin(pair_keys(pairs, n), pair_keys(removed, n))
        if duplicates == "error" and found.any():
            raise ChangeError("repeated", np.flatnonzero(found))
        if duplicates == "first":
            added = added.take(~found)
        else:
            replaced = replace(pairs.take(found), weights=None, times=None)
    return added if directed else with_reverse_edges(added), removed, replaced


def _moved(edges: Coo, positions: Integers) -> Coo:
    """Return the same edges with their vertices at other positions."""
    return replace(edges, source=positions[edges.source], destination=positions[edges.destination])


def _format_edges(frame: FrameEdges, which: Integers) -> list[str]:
    endpoints = [
        format_ids(frame.vertices.plain_ids, end[which]) for end in (frame.edges.source, frame.edges.destination)
    ]
    weights = None if frame.edges.weights is None else to_host(frame.edges.weights[which])
    return [
        f"{source} -> {target}" + ("" if weights is None else f" of weight {weights[row]:g}") if source else ""
        for row, (source, target) in enumerate(zip(*endpoints, strict=True))
    ]
