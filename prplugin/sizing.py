"""Estimate of memory and time from counts or a frame, before a graph is built: `prplugin.estimate`."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Real

from prplugin.calls import explain_unknown_arguments
from prplugin.folders import is_saved
from prplugin.frames import sizes_of
from prplugin.methods.estimates import Estimate, Ids, estimate_counts
from prplugin.options import refuse, validate_bool
from prplugin.types.arrays import MemorySpace


@explain_unknown_arguments
def estimate(
    edges: object,
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
    """Estimate memory and time of a graph and its rankings before the graph is built, from a frame or from counts.

    The edges are directed, with one column per endpoint and ``duplicates="sum"``. Memory is counted as by
    `Graph.estimate`.

    Parameters
    ----------
    edges : int, or frame or path as for `pagerank`
        Number of rows, or a frame, of which only the number of rows and the types of the columns are read.
    source, destination, weight : column label, optional
        With a frame: as for `pagerank`.
    vertices : int, optional
        Number of distinct ids. Default: the largest possible number, two per edge.
    weighted : bool, default False
        With a number of rows: whether the edges have weights.
    ids : {"int64", "int32", "string"}
        With a number of rows: the type of the ids.
    id_bytes : int, default 16
        Average number of bytes of a string id in UTF-8.
    place : {"host", "device"}
        With a number of rows: "host" for frames of pandas, polars and Arrow; "device" for cuDF frames.

    Returns
    -------
    Estimate
        `ingest` is an upper bound. The bytes of the methods, for edges that are stored by row, may be 20 % off. Seconds
        are estimates for equal in-degrees.

    Raises
    ------
    InvalidOptionError
        If an argument is invalid.
    InvalidEdgesError, ColumnNotFoundError
        If `edges` is not a frame, or lacks the columns.

    Examples
    --------
    >>> import pandas as pd, prplugin
    >>> bound = prplugin.estimate(edges=1_000_000_000, vertices=50_000_000, place="device")
    >>> bound.ingest.device.peak // 10**9, bound["streamed"].device < bound["persistent"].device
    (41, True)
    >>> prplugin.estimate(pd.DataFrame({"src": [1, 2, 3], "dst": [2, 1, 1]}), vertices=3).chosen.method
    'numpy'
    """
    columns = {"source": source, "destination": destination, "weight": weight}
    if isinstance(edges, Real):
        refuse(columns, "names a column of a frame, but edges is a number of rows")
        weighted = weighted is not None and validate_bool("weighted", weighted)
        return estimate_counts(edges, vertices, weighted, ids or "int64", id_bytes, place or "host")
    if is_saved(edges):
        refuse(columns | {"vertices": vertices}, "does not apply to a saved graph")
        from prplugin.saving import load  # lazy import: few calls need it

        return load(edges).estimate()
    of_counts = {"weighted": weighted, "ids": ids, "place": place}
    refuse(of_counts, "applies only if edges is a number of rows; here it is a frame")
    rows, id_type, memory_space = sizes_of(edges, source, destination, weight)
    return estimate_counts(rows, vertices, weight is not None, id_type, id_bytes, memory_space)
