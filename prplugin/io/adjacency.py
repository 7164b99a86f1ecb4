"""Graphs from files that hold adjacency lists, which go on as CSR or CSC rather than as rows of a frame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.cpu import library
from prplugin.errors import InvalidEdgesError, InvalidOptionError, MethodUnavailableError
from prplugin.frames.columns import Columns
from prplugin.frames.vertices import Vertices
from prplugin.graph.adjacency import Adjacency, endpoints_by_target, sum_out_weight
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.io.selection import EdgeFile, Selection
from prplugin.options import Duplicates
from prplugin.types.arrays import to_host
from prplugin.types.compressed import Compressed
from prplugin.types.edges import ANY, Edges, Floats, GroupedEdges, Integers

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class AdjacencyFile:
    """A graph from a file of adjacency lists; `columns` are those of its arcs, "source", "destination" and "weight"."""

    adjacency: Adjacency
    vertices: Vertices
    columns: Columns
    dropped: int = 0
    rule: Mapping[str, Any] | None = None

    def graph(self, *, directed: bool, duplicates: Duplicates) -> Adjacency:
        """Return the graph with the options of `prplugin.Graph`."""
        if directed and duplicates == "sum":
            return self.adjacency
        known = self.adjacency.edges
        edges = drop_duplicates(
            Edges(known.source, known.destination, known.weights, known.n), duplicates, directed=directed
        )
        return Adjacency(edges if directed else with_reverse_edges(edges))

    def as_rows(self) -> EdgeFile:
        """Return the arcs as a frame of ids."""
        import pandas as pd

        edges, ids = self.adjacency.edges, to_host(np.asarray(self.vertices.write_ids()))
        frame = {"source": ids[edges.source], "destination": ids[edges.destination]}
        if edges.weights is not None:
            frame["weight"] = edges.weights
        by_name = {name: position for position, name in enumerate(frame)}
        columns = Columns(
            [0], [1], by_name.get("weight"), ["source"], ["destination"], "weight" if "weight" in by_name else None
        )
        return EdgeFile(pd.DataFrame(frame), columns, None)


def arc_columns(selection: Selection, *, weighted: bool) -> Columns:
    """Return the selected columns of the arcs; the weights of the file are the default ones."""
    weights = ["weight"] if weighted else []
    columns = selection.resolved(
        ["source", "destination", *weights], "weight" if weighted and not selection.unweighted else None
    )
    if sorted((*columns.source, *columns.destination)) != [0, 1]:
        raise InvalidOptionError(f"{selection.name}: the two ends of its arcs are 'source' and 'destination'.")
    return columns


def read_rows(
    selection: Selection, rows: Compressed, *, names: Vertices | None = None, first: int = 0
) -> AdjacencyFile:
    """Return the graph of valid lists by source; the vertices are `names`, by default integers from `first` on.

    A user who names the columns the other way round gets the transposed graph: lists by target need not be grouped.
    """
    columns = arc_columns(selection, weighted=rows.weights is not None)
    offsets, indices, weights = rows
    if columns.weight is None:
        weights = None
    if weights is not None:
        check_weights(selection, weights)
        weights = None if (weights == 1).all() else weights
    rows, n = Compressed(offsets, indices, weights), offsets.size - 1
    if columns.source == [1]:
        adjacency = of_in_edges(rows, *sum_out_weight(indices, weights, n, ANY))
    else:
        adjacency = Adjacency.of(rows, by_target=False)
    return AdjacencyFile(adjacency, numbered(n, first) if names is None else names, columns)


def numbered(n: int, first: int = 0) -> Vertices:
    """Return the vertices `first` to first + n - 1."""
    return Vertices(["vertex"], [np.arange(first, first + n)], ["integer"])


def of_in_edges(rows: Compressed, out_weight: Floats, rounding_depth: int = 0) -> Adjacency:
    """Return the graph of a valid CSC and its out-weights, without a copy."""
    edge_list = partial(endpoints_by_target, rows.offsets, rows.indices)
    in_edges = rows.offsets, rows.indices, rows.weights
    return Adjacency(GroupedEdges(in_edges, out_weight, edge_list, rounding_depth))


def check_weights(selection: Selection, weights: Floats) -> None:
    """Raise InvalidEdgesError if a weight is below 0."""
    if weights.size and (least := weights.min()) < 0:
        arc = int(weights.argmin())
        raise InvalidEdgesError(
            f"{selection.name}: the weight of arc {arc:,} (counted from 0) is {least:g}. Weights must be at least 0."
        )


def check_offsets(selection: Selection, offsets: Integers, m: int) -> None:
    """Raise InvalidEdgesError unless offsets go from 0 to m and never fall."""
    if offsets[0] != 0 or offsets[-1] != m:
        raise InvalidEdgesError(
            f"{selection.name}: its offsets go from {int(offsets[0]):,} to {int(offsets[-1]):,}, not from 0 to {m:,}, "
            "the number of arcs. The file is damaged."
        )
    if (falls := np.flatnonzero(offsets[1:] < offsets[:-1])).size:
        raise InvalidEdgesError(
            f"{selection.name}: its offsets fall after vertex {int(falls[0]):,} (counted from 0). The file is damaged."
        )


def check_indices(selection: Selection, indices: Any, n: int, first: int = 0) -> None:
    """Raise InvalidEdgesError unless all are vertices of `first` to first + n - 1."""
    if not indices.size or (indices.min() >= first and indices.max() < first + n):
        return
    arc = int(np.flatnonzero((indices < first) | (indices >= first + n))[0])
    raise InvalidEdgesError(
        f"{selection.name}: arc {arc:,} (counted from 0) ends at {indices[arc]:,.0f}, and the vertices are {first} to "
        f"{first + n - 1:,}."
    )


def require_kernels(selection: Selection) -> None:
    """Raise MethodUnavailableError if there are no compiled kernels, which read this format."""
    if (reason := library.unavailable_reason()) is not None:
        raise MethodUnavailableError(f"{selection.name}: its format is read by compiled kernels, and {reason}.")
