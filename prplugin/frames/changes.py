"""Frames of edges to add or to remove."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from prplugin.frames import adapter_for
from prplugin.frames.base import on_host
from prplugin.frames.columns import positions, resolve
from prplugin.frames.times import Clock
from prplugin.frames.vertices import Vertices
from prplugin.options import EdgeOptions
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges


class FrameEdges(NamedTuple):
    """Edges of a frame on the host, with endpoints as positions among the distinct vertices of the frame."""

    edges: Edges
    vertices: Vertices


def read_edges(
    frame: Any, schema: EdgeOptions, clock: Clock | None, memory_space: MemorySpace, *, removed: bool
) -> FrameEdges:
    """Read edges to the host, from columns named as in the graph; edges to remove may lack weights and times.

    `schema`: Options of the graph. Without `source` and `destination`, columns are found by default names.
    `memory_space`: Memory space of the graph and of its vertex ids.
    """
    if memory_space == "host":
        if "cudf.pandas" in sys.modules:
            from prplugin.frames import proxies

            frame = proxies.unwrap(frame, on_gpu=False)
        frame = on_host(frame.compute() if type(frame).__module__.partition(".")[0] == "dask_cudf" else frame)
    adapter = adapter_for(frame)
    opened, labels = adapter.open_frame(frame)
    weight, time = schema.weight, schema.time
    if removed and not any(positions(labels, name) for name in (weight, time) if name is not None):
        weight = time = None
    columns = resolve(labels, schema.source, schema.destination, weight, time, None if time is None else clock)
    edges, vertices = adapter.read(opened, columns, None, edge_list=True, lasting=True)
    assert isinstance(edges, Edges)
    if edges.memory_space != memory_space:  # a frame of another library
        from prplugin.frames import cudf  # imports cuDF, which holds the graph

        vertices = cudf.Vertices.of_host(vertices)
    return FrameEdges(edges.on_host(), vertices)
