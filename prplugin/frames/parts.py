"""What is known of a column of ids of which each of several workers holds a part.

`_pandas_parts` and `_cudf_parts` hold what workers do with their parts; both have the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from prplugin.errors import PageRankError, merged, refusal
from prplugin.frames.columns import Columns
from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats

__all__ = [
    "Facts",
    "Shared",
    "Typed",
    "called",
    "ends_of_partitions",
    "facts_of_partitions",
    "joined_ends",
    "of_each",
    "weights_of_partitions",
]


@dataclass(frozen=True)
class Typed:
    """What is known of the type of a column, where there is no column.

    Attributes
    ----------
    dtype : type
    """

    dtype: Any


@dataclass(frozen=True)
class Facts:
    """A column of ids in one part of a frame.

    Attributes
    ----------
    kind : str
        "integer", "string", ...; "empty" if it has no ids and no type either.
    rows : int
    like : Typed
    sample : array
        The least and the greatest integer; of other kinds the first id. Empty if there are none.
    where : str
        What messages call the part, if they name it.
    """

    kind: str
    rows: int
    like: Any
    sample: Any
    where: str = ""


@dataclass(frozen=True)
class Shared:
    """A column of vertices, as all parts and both ends have it.

    Attributes
    ----------
    kind : str
    common : array
        Of the type in which ids are compared, with at most one of them.
    likes : list of Typed
        Those of the parts that have rows, and one at least for each end.
    """

    kind: str
    common: Any
    likes: list[Any]


def called(fact: Facts, label: str) -> str:
    """Name a column in one part of a frame, with its type there, for a message."""
    return f"{label} of {fact.where} ({fact.like.dtype})" if fact.where else label


def of_each(do: Callable[[Any], Any], items: list[Any], partitions: list[int], starts: list[int]) -> list[Any]:
    """Call a function with something of each partition; its errors then name the partition, or rows of the frame.

    Parameters
    ----------
    partitions : list of int
        Which they are.
    starts : list of int
        The row of the frame at which each partition begins.

    Raises
    ------
    PageRankError
        The first; where it speaks of rows, of those of all partitions.
    """
    done, errors = [], []
    for item, partition, start in zip(items, partitions, starts, strict=True):
        try:
            done.append(do(item))
        except PageRankError as error:
            refused = error.refused
            errors.append(
                type(error)(f"in partition {partition}: {error}")
                if refused is None
                else refusal(type(error), replace(refused, rows=[start + row for row in refused.rows]))
            )
    if errors:
        raise merged(errors)
    return done


def ends_of_partitions(
    parts: Any, frames: list[Any], partitions: list[int], columns: Columns
) -> tuple[list[Any], list[Columns]]:
    """Take the columns of sources and of destinations out of each partition, by name.

    Returns
    -------
    ends : list of lists of lists of Series
        For each partition.
    placed : list of Columns
        Where the columns in use are in each partition.
    """
    placed = [
        columns.within(list(frame.columns), f"partition {partition}")
        for frame, partition in zip(frames, partitions, strict=True)
    ]
    return [parts.ends_of(frame, own) for frame, own in zip(frames, placed, strict=True)], placed


def facts_of_partitions(
    parts: Any, ends: list[Any], partitions: list[int], starts: list[int], labels: list[list[str]]
) -> list[list[list[Facts]]]:
    """Look at the columns of ids in each partition."""
    found = of_each(
        lambda pair: [
            [parts.facts(column, name) for column, name in zip(end, label, strict=True)]
            for end, label in zip(pair, labels, strict=False)  # more vertices are in no partition
        ],
        ends,
        partitions,
        starts,
    )
    return [
        [[replace(fact, where=f"partition {partition}") for fact in end] for end in facts]
        for facts, partition in zip(found, partitions, strict=True)
    ]


def joined_ends(parts: Any, pieces: list[Any], shared: list[Shared], labels: list[list[str]]) -> list[list[Any]]:
    """Join what `ends_of_partitions` took out of some: sources and destinations, column by column."""
    return [
        [
            parts.end_to_end([ends[end][column] for ends in pieces], one, labels[end][column])
            for column, one in enumerate(shared)
        ]
        for end in range(2)
    ]


def weights_of_partitions(
    parts: Any, frames: list[Any], partitions: list[int], placed: list[Columns], starts: list[int]
) -> Floats | None:
    """Take the weights of some partitions, one at least, as float64; None if edges have none."""
    if placed[0].weight is None:
        return None
    pairs = list(zip(frames, placed, strict=True))
    each: list[Floats] = of_each(lambda pair: parts.read_weights(*pair), pairs, partitions, starts)
    joined: Floats = each[0] if len(each) == 1 else namespace(each[0]).concatenate(each)
    return joined
