"""A graph as plain arrays and numbers, for pickle and for files, and the check of arrays that came from a file.

An unweighted graph is stored by target. The order of its edges is lost; only the order within `Graph.csr` and the last
bits of ranks found by pushes depend on it. Of a weighted one the list of edges is stored as well, since the last bits
of sums depend on its order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prplugin.cpu import packing
from prplugin.graph.edges import Edges
from prplugin.machine import this_machine
from prplugin.types.arrays import Array, MemorySpace, to_host
from prplugin.types.edges import Coo, Csc, Grouped, PackedRows, index_dtype

FLOAT, LONG, BYTE = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.uint8)

PACKED = "packed", "piece_begins", "piece_rows"  # names of the arrays of `PackedRows`

Stored = dict[str, Any]


def stored(adjacency: Edges) -> tuple[Stored, Stored]:
    """Return the arrays of a graph, copied to the host only if they are on the GPU, and its other facts."""
    edges = adjacency.get(Coo) if adjacency.weighted and adjacency.given is Coo else None
    out_weight, depth = adjacency._out_weight
    known: Stored = {"out_weight": out_weight}
    if (packed := adjacency.held(PackedRows)) is not None:
        known |= dict(zip(PACKED, packed, strict=True))
    else:
        offsets, sources, weights = adjacency.get(Csc)  # offsets are int32 on the GPU
        known |= {"in_offsets": offsets.astype(LONG, copy=False), "in_sources": sources, "in_weights": weights}
    if edges is not None:
        known |= {"source": edges.source, "destination": edges.destination, "weights": edges.weights}
    arrays: Stored = {name: to_host(array) for name, array in known.items() if array is not None}
    return arrays, {
        "n": adjacency.n, "m": adjacency.m, "weighted": adjacency.weighted, "listed": edges is not None,
        "extent": list(adjacency.extent), "spilled": adjacency.frame_space is not None,
        "roundings": adjacency.roundings,
        "out_weight_depth": depth, "memory_space": adjacency.memory_space,
    } | ({} if packed is None else {"packed": packed.data.size, "pieces": packed.rows.size})  # fmt: skip


def types_of(facts: Stored) -> dict[str, tuple[tuple[np.dtype[np.generic], ...], int]]:
    """Return the possible types and the size of each array of a graph with these facts; raise ValueError for others."""
    n, m, packed = facts["n"], facts["m"], "packed" in facts
    for name in ("n", "m", "roundings", "out_weight_depth", *(("packed", "pieces") if packed else ())):
        if type(facts[name]) is not int or not 0 <= facts[name] < 1 << 62:
            raise ValueError(f"{name} is {facts[name]!r}")
    for name in ("weighted", "listed", "spilled"):
        if type(facts[name]) is not bool:
            raise ValueError(f"{name} is {facts[name]!r}")
    if facts["memory_space"] not in ("host", "device"):
        raise ValueError(f"memory_space is {facts['memory_space']!r}")
    low, high = facts["extent"]
    if not (type(low) is type(high) is float and low > 0 and high < float("inf")):
        raise ValueError(f"extent is {facts['extent']!r}")
    positions = (index_dtype(n),)
    found: dict[str, tuple[tuple[np.dtype[np.generic], ...], int]] = {
        "out_weight": ((FLOAT, LONG, np.dtype(np.int32)), n)
    }
    if packed:
        if facts["weighted"] or facts["listed"] or facts["memory_space"] != "host" or n > 2**31:
            raise ValueError("a graph of packed edges has no weights, at most 2**31 vertices, and is on the host")
        pieces = facts["pieces"]
        types: tuple[Any, ...] = ((BYTE,), facts["packed"]), ((LONG,), pieces + 1), ((LONG,), pieces)
        return found | dict(zip(PACKED, types, strict=True))
    found |= {"in_offsets": ((LONG,), n + 1), "in_sources": (positions, m)}
    if facts["weighted"]:
        found["in_weights"] = ((FLOAT,), m)
    if facts["listed"]:
        found |= {"source": (positions, m), "destination": (positions, m), "weights": ((FLOAT,), m)}
    return found


def restored(arrays: Stored, facts: Stored) -> Edges:
    """Return the graph of arrays and facts, which `check` has to pass before an edge is read."""
    if "packed" in facts:
        packed = PackedRows(*(arrays[name] for name in PACKED))
        return Edges(Grouped(packed, arrays["out_weight"], facts["m"]))
    in_edges = Csc(arrays["in_offsets"], arrays["in_sources"], arrays.get("in_weights"))
    frame_space: MemorySpace | None = "device" if facts["spilled"] else None
    out_weight, depth, extent = arrays["out_weight"], facts["out_weight_depth"], tuple(facts["extent"])
    if not facts["listed"]:
        return Edges(Grouped(in_edges, out_weight, facts["m"], None, depth, extent, frame_space))
    ends = arrays["source"], arrays["destination"], arrays["weights"]
    adjacency = Edges(Coo(*ends, facts["n"], extent, frame_space, roundings=facts["roundings"]))
    adjacency.add(in_edges)
    adjacency.set_out_weight(out_weight, depth)
    return adjacency


def check(arrays: Stored, facts: Stored) -> None:
    """Raise ValueError for arrays with which a kernel would read outside of them, or no graph can have.

    Each array is read once, in NumPy's compiled loops.
    """
    n, m = facts["n"], facts["m"]
    offsets = arrays.get("in_offsets")
    if offsets is None:
        packing.check(PackedRows(*(arrays[name] for name in PACKED)), n, m, this_machine().threads_for(m))
    elif offsets[0] != 0 or offsets[-1] != m or bool((offsets[1:] < offsets[:-1]).any()):
        raise ValueError(f"in_offsets does not rise from 0 to {m:,}")
    for name in ("in_sources", "source", "destination"):
        positions = arrays.get(name)
        if positions is not None and m and not (int(positions.min()) >= 0 and int(positions.max()) < n):
            raise ValueError(f"{name} holds positions outside of 0 to {n - 1:,}")
    check_values(arrays, "in_weights", "weights", "out_weight")
    if not facts["weighted"] and arrays["out_weight"].sum() != m:
        raise ValueError(f"out_weight does not sum to {m:,}")


def check_values(arrays: Stored, *names: str) -> None:
    """Raise ValueError if an array of weights or ranks has values that are negative or not finite."""
    for name in names:
        if (values := arrays.get(name)) is not None and not are_values(values):
            raise ValueError(f"{name} holds values that are negative or not finite")


def are_values(array: Array) -> bool:
    """Return whether all values are finite and not negative."""
    return not array.size or bool(array.min() >= 0 and array.max() < np.inf)
