"""Graphs whose edges stay packed on the host, in memory or in a mapped file."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from prplugin.cpu import packing
from prplugin.graph.adjacency import endpoints_by_target
from prplugin.machine import this_machine
from prplugin.types.edges import GroupedEdges, Integers, PackedRows


class PackedInEdges(GroupedEdges):
    """Unweighted edges by target that are packed; `in_edges` are unpacked on first access, in 4 bytes per edge.

    `out_degree`: Array of n counts.
    """

    def __init__(self, packed: PackedRows, out_degree: Integers, m: int) -> None:
        nothing: Any = None, out_degree[:0], None
        super().__init__(nothing, out_degree, lambda: endpoints_by_target(*self.in_edges[:2]))
        self.packed_rows, self.m = packed, m
        del self.in_edges

    @cached_property
    def in_edges(self) -> Any:  # type: ignore[override]  # an attribute of other edges
        """Offsets and sources of the CSC layout, and no weights."""
        assert self.packed_rows is not None
        return *packing.unpack(self.packed_rows, self.n, self.m, this_machine().threads_for(self.m)), None
