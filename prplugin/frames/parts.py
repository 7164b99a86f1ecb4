"""Columns of ids in the partitions of a frame: their kinds and types, which workers exchange.

`_pandas_parts` and `_cudf_parts` have the same functions, which workers call for their partitions.
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
    "endpoints_of_partitions",
    "facts_of_partitions",
    "joined_endpoints",
    "weights_of_partitions",
]


@dataclass(frozen=True)
class Typed:
    """The type of a column that is elsewhere."""

    dtype: Any


@dataclass(frozen=True)
class Facts:
    """A column of ids in one part of a frame.

    Attributes
    ----------
    kind : str
        "integer", "string", ...; "empty" without ids and type.
    rows : int
    like : Typed
    sample : array
        The least and the greatest integer; of other kinds the first id. Empty if there are none.
    where : str
        Name of the part, for messages.
    """

    kind: str
    rows: int
    like: Any
    sample: Any
    where: str = ""

    def called(self, label: str) -> str:
        """Return the name of the column, with its type in this part, for messages."""
        return f"{label} of {self.where} ({self.like.dtype})" if self.where else label


@dataclass(frozen=True)
class Shared:
    """A column of vertices in all parts and both endpoints.

    Attributes
    ----------
    kind : str
    common : array
        At most one id, in the type in which ids are compared.
    likes : list of Typed
        Those of the parts that have rows, and at least one per endpoint.
    """

    kind: str
    common: Any
    likes: list[Any]


def _of_each(do: Callable[[Any], Any], items: list[Any], partitions: list[int], starts: list[int]) -> list[Any]:
    """Call a function with an item per partition; its errors then name the partition, or rows of the frame.

    Partitions begin at the rows `starts` of the frame. The first error is raised; one of rows, for those of all
    partitions.
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


def endpoints_of_partitions(
    parts: Any, frames: list[Any], partitions: list[int], columns: Columns
) -> tuple[list[Any], list[Columns]]:
    """Return the columns of sources and of destinations of each partition, and where they are in each."""
    placed = [
        columns.within(list(frame.columns), f"partition {partition}")
        for frame, partition in zip(frames, partitions, strict=True)
    ]
    return [parts.endpoints_of(frame, own) for frame, own in zip(frames, placed, strict=True)], placed


def facts_of_partitions(
    parts: Any, endpoints: list[Any], partitions: list[int], starts: list[int], labels: list[list[str]]
) -> list[list[list[Facts]]]:
    """Return the facts about the columns of ids in each partition."""
    found = _of_each(
        lambda pair: [
            [parts.facts(column, name) for column, name in zip(end, label, strict=True)]
            for end, label in zip(pair, labels, strict=False)  # more vertices are in no partition
        ],
        endpoints,
        partitions,
        starts,
    )
    return [
        [[replace(fact, where=f"partition {partition}") for fact in end] for end in facts]
        for facts, partition in zip(found, partitions, strict=True)
    ]


def joined_endpoints(parts: Any, pieces: list[Any], shared: list[Shared], labels: list[list[str]]) -> list[list[Any]]:
    """Concatenate the columns from `endpoints_of_partitions`: sources and destinations, column by column."""
    return [
        [
            parts.end_to_end([endpoints[end][column] for endpoints in pieces], one, labels[end][column])
            for column, one in enumerate(shared)
        ]
        for end in range(2)
    ]


def weights_of_partitions(
    parts: Any, frames: list[Any], partitions: list[int], placed: list[Columns], starts: list[int]
) -> Floats | None:
    """Return the weights of at least one partition as float64; None if edges have none."""
    if placed[0].weight is None:
        return None
    pairs = list(zip(frames, placed, strict=True))
    each: list[Floats] = _of_each(lambda pair: parts.read_weights(*pair), pairs, partitions, starts)
    joined: Floats = each[0] if len(each) == 1 else namespace(each[0]).concatenate(each)
    return joined
