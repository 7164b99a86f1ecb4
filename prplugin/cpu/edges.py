"""Grouping of edges by target, from two columns of integer ids, on the CPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from prplugin.cpu.factorize import (
    as_int,
    by_hash,
    dense_range,
    factorize_ids,
    ids_at,
    positions_of,
    replace_codes,
    shifted,
)
from prplugin.cpu.group import degrees, grouped
from prplugin.cpu.threads import Threads
from prplugin.machine import this_machine
from prplugin.types.edges import GroupedEdges, Integers

__all__ = ["edges_by_id"]


def edges_by_id(columns: list[Integers], *, lasting: bool) -> tuple[GroupedEdges, Integers]:
    """Factorize the endpoints of edges in ascending order of id, and group the edges by target.

    `columns` are sources and destinations, at least one of each, of one integer type. `lasting`: whether `edge_list`
    must return codes after the caller has changed the columns; a one-shot graph may alias them. Return the edges, and
    the distinct ids, ascending, in the type of the columns.
    """
    threads = Threads(this_machine().threads_for(columns[0].size))
    dtype = columns[0].dtype
    endpoints = [as_int(column) for column in columns]
    dense = dense_range(endpoints, dtype, threads)
    if dense is not None:
        return _by_range(columns, endpoints, *dense, lasting, threads)
    codes, ids = by_hash(endpoints, dtype, threads)
    del endpoints
    edge_list = partial(tuple, codes.copy()) if lasting else partial(_factorized, columns)
    out_degrees = degrees(codes[0], ids.size, threads)
    # removed from the list, so that their memory is free before the last pass
    offsets, indices, _ = grouped(codes.pop(), codes.pop(), None, ids.size, threads)
    return GroupedEdges((offsets, indices, None), out_degrees, edge_list), ids


def _by_range(
    columns: list[Integers], endpoints: list[Any], low: int, span: int, lasting: bool, threads: Threads
) -> tuple[GroupedEdges, Integers]:
    """Group edges by id - low, then remove ids of the range that have no edges."""
    dtype, least = columns[0].dtype, low
    if lasting:
        endpoints, least = [shifted(ids, low, span, threads) for ids in endpoints], 0
    source, destination = endpoints
    out_degrees = degrees(source, span, threads, least)
    offsets, indices, _ = grouped(destination, source, None, span, threads, least)
    position, found = positions_of((out_degrees > 0) | (offsets[1:] > offsets[:-1]))
    (indices,) = replace_codes([indices], position, threads)
    if position is not None:
        offsets, out_degrees = np.append(offsets[found], offsets[-1]), out_degrees[found]
    edge_list = (
        (lambda: tuple(replace_codes(endpoints, position, threads))) if lasting else partial(_factorized, columns)
    )
    return GroupedEdges((offsets, indices, None), out_degrees, edge_list), ids_at(found, low, dtype)


def _factorized(columns: list[Integers]) -> tuple[Integers, ...]:
    """Factorize the ids again, and return the codes of both columns."""
    return tuple(factorize_ids(columns, Threads(this_machine().threads_for(columns[0].size)))[0])
