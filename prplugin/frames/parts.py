"""Ids in the partitions of a distributed frame: kinds and types, which workers exchange to agree on common types.

`_pandas_parts` and `_cudf_parts` implement the same operations on partitions. A parameter `parts` is one of these
modules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from prplugin.errors import InvalidEdgesError, PageRankError, merged, refusal
from prplugin.frames.columns import Columns, endpoints_of
from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats


@dataclass(frozen=True)
class ColumnInfo:
    """Properties of a column of ids in one part of a frame; `where` names the part in messages.

    `kind` is "integer", "string", ...; "empty" for a column without ids and without type. `sample` holds the minimum
    and maximum of integers, and the first id of other kinds; it is empty for a column without rows.
    """

    kind: str
    rows: int
    dtype: Any
    sample: Any
    where: str = ""


@dataclass(frozen=True)
class CommonType:
    """Common type of one column of the vertices, over all parts and both endpoints.

    `dtype_sample` holds at most one id, in the type in which ids are compared, and `part_types` the types of the column
    in the parts that have rows, at least one per endpoint.
    """

    kind: str
    dtype_sample: Any
    part_types: list[Any]


def _map_partitions(
    function: Callable[[Any], Any], items: list[Any], partitions: list[int], starts: list[int]
) -> list[Any]:
    """Apply a function to each partition; raise errors with the partition, or with rows counted in the frame.

    `starts` holds the first row of each partition in the frame. The first error is raised, merged over all
    partitions if it is about rows.
    """
    results, errors = [], []
    for item, partition, start in zip(items, partitions, starts, strict=True):
        try:
            results.append(function(item))
        except PageRankError as error:
            refused = error.refused
            errors.append(
                type(error)(f"in partition {partition}: {error}")
                if refused is None
                else refusal(type(error), replace(refused, rows=[start + row for row in refused.rows]))
            )
    if errors:
        raise merged(errors)
    return results


def endpoints_of_partitions(
    parts: Any, frames: list[Any], partitions: list[int], columns: Columns
) -> tuple[list[Any], list[Columns]]:
    """Return source and destination columns of each partition, and the positions of the columns in each."""
    part_columns = [
        columns.within(list(frame.columns), f"partition {partition}")
        for frame, partition in zip(frames, partitions, strict=True)
    ]
    return [endpoints_of(parts, frame, own) for frame, own in zip(frames, part_columns, strict=True)], part_columns


def column_info_of_partitions(
    parts: Any, endpoints: list[Any], partitions: list[int], starts: list[int], labels: list[list[str]]
) -> list[list[list[ColumnInfo]]]:
    """Return the `ColumnInfo` of the id columns of each partition."""
    found = _map_partitions(
        lambda pair: [
            [parts.column_info(column, name) for column, name in zip(end, label, strict=True)]
            for end, label in zip(pair, labels, strict=False)  # no additional vertices here
        ],
        endpoints,
        partitions,
        starts,
    )
    return [
        [[replace(info, where=f"partition {partition}") for info in end] for end in infos]
        for infos, partition in zip(found, partitions, strict=True)
    ]


def concat_endpoints(
    parts: Any, pieces: list[Any], shared: list[CommonType], labels: list[list[str]]
) -> list[list[Any]]:
    """Concatenate the columns from `endpoints_of_partitions`; return source columns and destination columns."""
    return [
        [
            parts.concat_column([endpoints[end][column] for endpoints in pieces], common_type, labels[end][column])
            for column, common_type in enumerate(shared)
        ]
        for end in range(2)
    ]


def weights_of_partitions(
    parts: Any, frames: list[Any], partitions: list[int], part_columns: list[Columns], starts: list[int]
) -> Floats | None:
    """Return the concatenated weights of one or more partitions as float64; None for unweighted edges."""
    if part_columns[0].weight is None:
        return None
    label = f"column {part_columns[0].weight_name!r}"
    weights: list[Floats] = _map_partitions(
        lambda pair: parts.numbers(parts.column_of(pair[0], pair[1].weight), label, "row", InvalidEdgesError),
        list(zip(frames, part_columns, strict=True)),
        partitions,
        starts,
    )
    joined: Floats = weights[0] if len(weights) == 1 else namespace(weights[0]).concatenate(weights)
    return joined
