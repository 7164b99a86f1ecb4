"""Edges from two columns of integer ids, by target, on the CPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from prplugin.cpu.factorize import by_hash, dense_range, ids_from, number, place, plain, positions_of, shifted
from prplugin.cpu.group import counted, grouped
from prplugin.cpu.threads import Threads
from prplugin.machine import this_machine
from prplugin.types.edges import GroupedEdges, Integers

__all__ = ["edges_by_id"]


def edges_by_id(columns: list[Integers], *, lasting: bool) -> tuple[GroupedEdges, Integers]:
    """Number the vertices of edges in ascending order of id.

    `columns` (list of arrays of ids): Sources and destinations, at least one, of one integer type.
    `lasting`: Whether the edges last longer than the columns, or may come back to them.

    Returns `edges` (GroupedEdges).
    Returns `ids` (array): The distinct ids, ascending, in the type of the columns.
    """
    threads = Threads(this_machine().threads)
    dtype = columns[0].dtype
    ends = [plain(column) for column in columns]
    dense = dense_range(ends, dtype, threads)
    if dense is not None:
        return _by_range(columns, ends, *dense, lasting, threads)
    codes, ids = by_hash(ends, dtype, threads)
    del ends
    by_row = partial(tuple, codes.copy()) if lasting else partial(_renumbered, columns)
    out_degrees = counted(codes[0], ids.size, threads)
    # Taken out, so that they make room before the last pass, where nothing else holds them.
    offsets, indices, _ = grouped(codes.pop(), codes.pop(), None, ids.size, threads)
    return GroupedEdges((offsets, indices, None), out_degrees, by_row), ids


def _by_range(
    columns: list[Integers], ends: list[Any], low: int, span: int, lasting: bool, threads: Threads
) -> tuple[GroupedEdges, Integers]:
    """Bring edges together by the distance of the id from the least; leave out what has no edge afterwards."""
    dtype, least = columns[0].dtype, low
    if lasting:
        ends, least = [shifted(end, low, span, threads) for end in ends], 0
    source, destination = ends
    out_degrees = counted(source, span, threads, least)
    offsets, indices, _ = grouped(destination, source, None, span, threads, least)
    position, found = positions_of((out_degrees > 0) | (offsets[1:] > offsets[:-1]))
    if position is not None:
        place(indices, position, threads)
        indices = indices.astype(position.dtype, copy=False)
        offsets, out_degrees = np.append(offsets[found], offsets[-1]), out_degrees[found]
    by_row = partial(_placed, ends, position, threads) if lasting else partial(_renumbered, columns)
    return GroupedEdges((offsets, indices, None), out_degrees, by_row), ids_from(found, low, dtype)


def _placed(codes: list[Any], position: Integers | None, threads: Threads) -> tuple[Integers, ...]:
    if position is not None:
        for column in codes:
            place(column, position, threads)
        codes = [column.astype(position.dtype, copy=False) for column in codes]
    return tuple(codes)


def _renumbered(columns: list[Integers]) -> tuple[Integers, ...]:
    """Factorize the ids again, by row."""
    return tuple(number(columns, Threads(this_machine().threads))[0])
