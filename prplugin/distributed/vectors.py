"""Arguments given by vertex: each rank gets a part of the values and sends them to the owners of the vertices."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from prplugin.cpu.sums import total
from prplugin.distributed.communicator import Communicator, agreed, summed
from prplugin.distributed.factorize import owners_of, pieces_of
from prplugin.distributed.shard import Shard
from prplugin.errors import InvalidOptionError, RefusedRows, counted, listed, refusal
from prplugin.graph.problem import normalised
from prplugin.numerics.rounding import rounding_depth
from prplugin.types.arrays import to_host, to_memory
from prplugin.types.edges import Floats, Integers

__all__ = ["Given", "sum_of_ranks", "vector", "vector_depth"]

Given = tuple[list[Any], Floats, int]
"""A rank's part of values by vertex: id columns, values, and the position of its first entry in the whole argument."""


def vector(communicator: Communicator, shard: Shard, what: str, given: Given | None) -> Floats | None:
    """Return the values of the vertices that this rank owns, divided by the sum over all ranks; collective.

    Values are 0 for vertices not given. Return None if `given` is None.

    Raises
    ------
    InvalidOptionError
        If a vertex is unknown or repeated, or if the sum is not positive and finite.
    """
    if given is None:
        return None
    columns, values, first = given
    directory, parts = shard.directory, shard.directory.parts
    if directory.ids_are_keys:
        keys, known = _as_keys(columns[0], shard)
    else:
        keys = directory.keys_of(
            communicator, [parts.to_shared(c, s) for c, s in zip(columns, directory.shared, strict=True)]
        )
        known = keys >= 0
    size = communicator.size
    owner = owners_of(keys, to_host(shard.splitters))
    pieces, order = pieces_of(np.where(known, owner, size), size)
    came = communicator.exchange([(keys[rows], values[rows]) for rows in pieces])
    mine, sorted_keys = np.zeros(shard.rows), to_host(shard.keys)
    answers, entered = [], []
    for asked, brought in came:
        rows = np.searchsorted(sorted_keys, asked)
        found = rows < sorted_keys.size
        found[found] = sorted_keys[rows[found]] == asked[found]
        mine[rows[found]] = brought[found]
        entered.append(rows[found])
        answers.append(found)
    known[order] = np.concatenate(communicator.exchange(answers))
    agreed(communicator, lambda: _check_known(columns, parts, np.flatnonzero(~known), first, what))
    agreed(communicator, lambda: _check_once(shard, np.concatenate(entered), what))
    spread, total = normalised(mine, partial(sum_of_ranks, communicator))
    if total == 0:
        raise InvalidOptionError(f"{what} sums to 0: at least one vertex needs a positive value.")
    if not np.isfinite(total):
        raise InvalidOptionError(f"{what} sums to more than float64 holds. Divide its values by the greatest.")
    vector: Floats = to_memory(spread, shard.adjacency.memory_space)
    return vector


def sum_of_ranks(communicator: Communicator, values: Floats) -> float:
    """Return the sum of the values over all ranks; collective."""
    with np.errstate(over="ignore"):
        return float(summed(communicator, float(total(values))))


def vector_depth(shard: Shard) -> int:
    """Return the rounding depth of an entry of a vector: conversion of the value, sum, and quotient of both."""
    ranks = len(shard.offsets) - 1
    return rounding_depth(int(np.diff(shard.offsets).max())) + ranks + 2


def _as_keys(column: Any, shard: Shard) -> tuple[Integers, Integers]:
    """Cast integer ids to the type of the keys; return them, and a mask of the ids that the type can hold."""
    ids = shard.directory.parts.given_integers(column)
    keys = ids.astype(to_host(shard.keys[:0]).dtype)
    known: Integers = (keys.astype(ids.dtype) == ids) & ((keys < 0) == (ids < 0))
    return keys, known


def _check_known(columns: list[Any], parts: Any, unknown: Integers, first: int, what: str) -> None:
    if unknown.size:
        shown = parts.spelt([column.array for column in columns], unknown[:5])
        rows = (unknown[:5] + first).tolist()
        raise refusal(InvalidOptionError, RefusedRows(partial(_unknown, what), unknown.size, rows, shown))


def _unknown(what: str, unknown: RefusedRows) -> str:
    return (
        f"{what} names {counted(unknown.count, 'vertex', 'vertices')} not in the graph: "
        f"{listed(unknown.padded(unknown.held))}. Remove them, or add them to the graph with vertices=."
    )


def _check_once(shard: Shard, rows: Integers, what: str) -> None:
    found, counts = np.unique(rows, return_counts=True)
    repeated = found[counts > 1]
    if repeated.size:
        shown = shard.directory.spelt(to_host(shard.keys), repeated[:5])
        raise refusal(
            InvalidOptionError, RefusedRows(partial(_repeated, what), repeated.size, repeated[:5].tolist(), shown)
        )


def _repeated(what: str, repeated: RefusedRows) -> str:
    return (
        f"{what} names {counted(repeated.count, 'vertex', 'vertices')} more than once: "
        f"{listed(repeated.padded(repeated.held))}. Drop all but one, or add up their values."
    )
