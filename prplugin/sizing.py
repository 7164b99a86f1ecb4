"""Estimate of memory and time from counts or a frame, before a graph is made: `prplugin.estimate`."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Real
from typing import Any

from prplugin.calls import explained
from prplugin.errors import InvalidOptionError
from prplugin.frames.sizes import sizes_of
from prplugin.methods.estimates import Estimate, Ids, estimate_counts
from prplugin.types.arrays import MemorySpace

__all__ = ["estimate"]


@explained
def estimate(
    edges: Any,
    source: Hashable | list[Hashable] = None,
    destination: Hashable | list[Hashable] = None,
    weight: Hashable = None,
    *,
    vertices: int | None = None,
    weighted: bool | None = None,
    ids: Ids | None = None,
    id_bytes: int = 16,
    place: MemorySpace | None = None,
) -> Estimate:
    """Bound what a graph and its rankings take, before the graph is made: from a frame, or from counts alone.

    It is for directed edges in two columns with ``duplicates="sum"``. What is counted is as for `Graph.estimate`.

    Parameters
    ----------
    edges : int, or frame or path as for `pagerank`
        Rows of the frame, or the frame itself, of which only the number of rows and the types of the columns are read.
    source, destination, weight : column label, optional
        With a frame, as for `pagerank`.
    vertices : int, optional
        Distinct ids. Not given: as many as there can be, two per edge.
    weighted : bool, default False
        Without a frame: whether the edges have weights.
    ids : {"int64", "int32", "string"}
        Without a frame: the type of the ids.
    id_bytes : int, default 16
        Of a string in UTF-8, on average.
    place : {"host", "device"}
        Without a frame: "host" for frames of pandas, polars and Arrow; "device" for those of cuDF.

    Returns
    -------
    Estimate
        `ingest` and the bytes of every method are upper bounds, whether the graph holds its edges by row or by target.
        Seconds are those of a graph whose vertices have equally many in-edges.

    Raises
    ------
    InvalidOptionError
        If an argument has no meaning.
    InvalidEdgesError, ColumnNotFoundError
        If the frame is none, or has no such columns.

    Examples
    --------
    >>> import pandas as pd, prplugin
    >>> bound = prplugin.estimate(edges=1_000_000_000, vertices=50_000_000, place="device")
    >>> bound.ingest.device.peak // 10**9, bound["streamed"].device < bound["persistent"].device
    (41, True)
    >>> prplugin.estimate(pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}), vertices=3).chosen.method
    'numpy'
    """
    if isinstance(edges, Real):
        columns = {"source": source, "destination": destination, "weight": weight}
        for name, given in columns.items():
            if given is not None:
                raise InvalidOptionError(f"{name}= names a column of a frame, and edges is a count: leave it out.")
        return estimate_counts(edges, vertices, bool(weighted), ids or "int64", id_bytes, place or "host")
    for name, given in {"weighted": weighted, "ids": ids, "place": place}.items():
        if given is not None:
            raise InvalidOptionError(f"{name}= is for a count of edges: a frame tells it itself. Leave it out.")
    sizes = sizes_of(edges, source, destination, weight)
    return estimate_counts(sizes.rows, vertices, weight is not None, sizes.ids, id_bytes, sizes.memory_space)
