"""A frame of edges as a graph: columns found, ids factorized, duplicates dropped, weights aged."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from prplugin.frames import FrameAdapter
from prplugin.frames.columns import resolve
from prplugin.frames.vertices import Vertices
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.methods.estimates import describe_ingest_memory
from prplugin.methods.registry import compile_ahead
from prplugin.options import EdgeOptions
from prplugin.streams.decay import decay_weights
from prplugin.streams.graph import Aging


class ReadFrame(NamedTuple):
    """A frame as a graph; the parameters of `prplugin.local.LocalGraph` describe `schema` and `aging`."""

    adjacency: Adjacency
    vertices: Vertices
    schema: EdgeOptions
    aging: Aging | None
    unused_weight: Hashable


def read_frame(edges: object, how: EdgeOptions, adapter: FrameAdapter, *, lasting: bool) -> ReadFrame:
    """Read a frame by its adapter. `lasting`: Whether more than one ranking, or an update, may follow."""
    memory_space = adapter.memory_space_of(edges)
    frame, labels = adapter.open_frame(edges)
    clock = None
    if how.time is not None:
        from prplugin.frames.times import Clock  # imports pandas

        clock = Clock(how.half_life, how.window, how.now)
    columns = resolve(labels, how.source, how.destination, how.weight, how.time, clock, frame)
    weighted = columns.weight is not None
    with (
        runtime.explain_oom(partial(describe_ingest_memory, frame, weighted, memory_space)),
        runtime.device_allocation(memory_space, wait=lasting),
    ):
        if memory_space == "device":
            compile_ahead(weighted=weighted)
        rows: Any  # Edges where how.edge_list
        on_device = getattr(adapter, "read_on_device", None)
        if (found := None if on_device is None else on_device(frame, columns, how)) is None:
            found = adapter.read(frame, columns, how.vertices, edge_list=how.edge_list, lasting=lasting)
        rows, vertices = found
        if how.edge_list and not rows.packed:
            rows = drop_duplicates(rows, how.duplicates, directed=how.directed)
            rows = rows if how.directed else with_reverse_edges(rows)
        aging = None
        if clock is not None and how.half_life is not None:
            rows, references = decay_weights(rows)
            aging = Aging(clock, references)
        adjacency = Adjacency(rows)
    if lasting:  # else no update follows
        names = columns.source_names, columns.destination_names
        how = replace(how, source=names[0], destination=names[1], vertices=None)
    return ReadFrame(adjacency, vertices, how, aging, columns.unused_weight)
