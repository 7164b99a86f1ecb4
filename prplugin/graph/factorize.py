"""Factorization of integer ids: codes 0..n-1 in ascending order of id."""

from __future__ import annotations

import numpy as np

from prplugin.cpu import library
from prplugin.cpu.sorting import factorize_sorted
from prplugin.machine import this_machine
from prplugin.types.arrays import namespace
from prplugin.types.edges import Edges, GroupedEdges, Integers


def edges_by_id(columns: list[Integers], *, grouped: bool, lasting: bool) -> tuple[Edges | GroupedEdges, Integers]:
    """Factorize the endpoints of edges on the host; return unweighted edges, and ids as `factorize_ids`.

    `columns`: Sources, destinations and, optionally, more vertices, in one integer type.
    `grouped`: Whether to prefer edges grouped by target to an edge list.
    `lasting`: Whether the graph outlives the columns. If not, it may alias them.
    """
    if grouped and len(columns) == 2 and columns[0].size and library.is_available():
        from prplugin.cpu import factorize

        return factorize.edges_by_id(columns, lasting=lasting)
    codes, ids = factorize_ids(columns)
    return Edges(codes[0], codes[1], None, ids.size), ids


def factorize_ids(columns: list[Integers]) -> tuple[list[Integers], Integers]:
    """Factorize columns of ids of one integer type together; return codes of each, and the distinct ids ascending.

    Codes are of type `index_dtype(ids.size)`.
    """
    if namespace(columns[0]) is not np:
        from prplugin.gpu.factorize import factorize_ids as factorize_on_gpu  # imports CuPy, which holds the ids

        return factorize_on_gpu(columns)
    count = sum(column.size for column in columns)
    if library.is_available():
        from prplugin.cpu.factorize import factorize_ids as factorize_on_cpu

        return factorize_on_cpu(columns, this_machine().threads_for(count // 2))
    return factorize_sorted(columns, columns[0].dtype)
