"""Adapter of Dask frames with partitions of pandas or cuDF.

With a `distributed.Client`, `prplugin.distributed` ranks the partitions on the workers that hold them, and the result
has one partition per worker that owns vertices. Without a client, the frame is computed and ranked in this process, and
the result has one partition.

`_pandas_parts` and `_cudf_parts` implement the same operations on partitions. A parameter `parts` is one of these
modules.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, full_name, merged, refusal
from prplugin.frames.base import is_a, open_frame
from prplugin.frames.columns import Columns, endpoints_of
from prplugin.frames.vertices import Boundary
from prplugin.types.arrays import MemorySpace, namespace
from prplugin.types.edges import Floats


def accepts(frame: object) -> bool:
    """Return whether a frame is a Dask DataFrame."""
    return is_a(frame, "dask.dataframe", "DataFrame")


def client() -> Any:
    """Return the default client of `distributed`, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        found = distributed.default_client()
    except ValueError:
        return None
    if found.asynchronous:
        raise InvalidOptionError("the Dask client is asynchronous: prplugin needs Client(asynchronous=False).")
    return found


def _in_use(frame: Any, columns: Columns) -> tuple[Any, Columns]:
    """Return the frame and `Columns` restricted to the columns in use, so that others are not read."""
    used, columns = columns.in_use()
    labels = list(frame.columns)
    return (frame[[labels[position] for position in used]] if len(used) < len(labels) else frame), columns


def refuse_times(time: Hashable) -> None:
    """Raise if a time column is named."""
    if time is not None:
        raise InvalidOptionError("time= is for frames in one memory: pass edges.compute().")


def refuse_absent_columns(frame: Any, columns: Columns) -> None:
    """Raise if a column in use is absent from a partition, whose labels may differ from those of the frame."""
    import dask

    labels_of = dask.delayed(lambda partition: list(partition.columns))
    for partition, labels in enumerate(dask.compute(*map(labels_of, frame.to_delayed()))):
        columns.within(labels, f"partition {partition}")


# --- partitions -------------------------------------------------------------------------------------------------------


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

    def concat(columns: list[Any], common_type: CommonType, label: str) -> Any:
        if any(column.dtype != columns[0].dtype for column in columns):
            return parts.concat_column(columns, common_type, label)
        return columns[0] if len(columns) == 1 else parts.concat(columns, ignore_index=True)

    return [
        [
            concat([endpoints[end][column] for endpoints in pieces], common_type, labels[end][column])
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


# --- with a cluster -------------------------------------------------------------------------------------------------


def partitions(client: Any, frame: Any, columns: Columns) -> tuple[list[Any], Any, Columns]:
    """Return futures of the partitions, an empty frame of their type, and the positions of the columns in it.

    Persisted partitions are used unchanged, since a task that selects their columns takes 18 ms, because the scheduler
    delays messages. For other frames only the columns in use are computed.
    """
    if (futures := _persisted(client, frame)) is not None:
        return futures, frame._meta, columns
    frame, columns = _in_use(frame, columns)
    return client.compute(frame.to_delayed(), sync=False), frame._meta, columns


def _persisted(client: Any, frame: Any) -> list[Any] | None:
    """Return the futures of a persisted frame; None if some partitions are not futures of this client."""
    graph = dict(frame.__dask_graph__())

    def resolve_alias(key: Any) -> Any:
        task = graph[key]
        return resolve_alias(task.target) if hasattr(task, "target") and task.target in graph else task

    found = [resolve_alias(key) for key in frame.__dask_keys__()]
    return found if all(getattr(task, "client", None) is client for task in found) else None


def parts_name(frame: Any) -> str:
    """Return the name of the module with the operations on the partitions of a frame."""
    for library in ("cudf", "pandas"):
        if is_a(frame._meta, library, "DataFrame"):
            return f"prplugin.frames._{library}_parts"
    raise InvalidEdgesError(f"partitions must be frames of pandas or cuDF, not {full_name(frame._meta)}.")


def parts(name: str) -> Any:
    """Import the module with a name from `parts_name`, on a worker."""
    return importlib.import_module(name)


def given_ids(given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
    """Convert ids to a list of pandas Series, one per column, and check their kinds."""
    from prplugin.frames import pandas  # imports pandas
    from prplugin.frames._pandas_kinds import kind_of

    columns = pandas.id_columns(_computed(given), names, what)
    for column in columns:
        kind_of(column, what)
    return columns


def given_values(given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Floats]:
    """Return the id columns and the float64 values of a per-vertex argument."""
    from prplugin.frames import pandas  # imports pandas

    given = pandas.from_other_libraries(_computed(given), what)
    if isinstance(given, np.ndarray):
        raise InvalidOptionError(
            f"{what} is an array, and the vertices of this graph are on several workers: pass a Series indexed by "
            "vertex."
        )
    return pandas.Vertices(names, [], []).ids_and_numbers(given, what)


def frame_of(futures: list[Any], rows: list[int], like: Any) -> Any:
    """Return a Dask frame of results on the workers, with a continuous index."""
    import dask
    import dask.dataframe

    filled = [(future, count) for future, count in zip(futures, rows, strict=True) if count]
    divisions = None
    if filled:
        ends = np.cumsum([count for _, count in filled]).tolist()
        divisions = (0, *ends[:-1], ends[-1] - 1)
    parts = [future for future, _ in filled] or futures[:1]
    with dask.config.set({"dataframe.convert-string": False}):  # keep the types of the parts
        return dask.dataframe.from_delayed(parts, meta=like, divisions=divisions, verify_meta=False)


# --- without a cluster ----------------------------------------------------------------------------------------------


class _OnePartition(Boundary):
    """Compute arguments, and return results as Dask frames with one partition."""

    def convert(self, given: Any, what: str) -> Any:
        return _computed(given)

    def wrap(self, frame: Any) -> Any:
        import dask.dataframe

        with dask.config.set({"dataframe.convert-string": False}):  # keep the types of the result
            return dask.dataframe.from_pandas(frame, npartitions=1, sort=False)


class ComputedFrame:
    """Adapter of a Dask frame that is computed in this process and read by the adapter of its partitions."""

    def __init__(self, frame: Any) -> None:
        self._parts = parts(parts_name(frame))
        self.memory_space: MemorySpace = self._parts.memory_space

    open_frame = staticmethod(open_frame)

    def read(self, frame: Any, columns: Columns, vertices: Any, **how: bool) -> tuple[Any, Any]:
        """Compute the columns in use, and read them as one frame: see `prplugin.frames.base.FrameAdapter.read`."""
        import dask

        refuse_times(columns.time_name)
        used, columns_in_use = _in_use(frame, columns)
        try:
            frames = list(dask.compute(*used.to_delayed()))
        except KeyError:
            refuse_absent_columns(frame, columns)
            raise
        edges, known = self._parts.read(*self._joined(frames, columns_in_use), _computed(vertices), **how)
        return edges, replace(known, boundary=_OnePartition())

    def _joined(self, frames: list[Any], columns: Columns) -> tuple[Any, Columns]:
        """Concatenate the partitions to one frame of the columns in use; return it, and the column positions."""
        partitions, starts = list(range(len(frames))), np.cumsum([0, *map(len, frames)])[:-1].tolist()
        pieces, part_columns = endpoints_of_partitions(self._parts, frames, partitions, columns)
        labels = columns.id_labels()
        infos = column_info_of_partitions(self._parts, pieces, partitions, starts, labels)
        shared = [
            self._parts.common_type_of(
                [[info[end][column] for info in infos] for end in range(2)], [label[column] for label in labels]
            )
            for column in range(len(columns.source))
        ]
        source, destination = concat_endpoints(self._parts, pieces, shared, labels)
        weights = weights_of_partitions(self._parts, frames, partitions, part_columns, starts)
        width = len(shared)
        joined = [column.reset_index(drop=True) for column in (*source, *destination)]
        joined += [] if weights is None else [weights]
        return self._parts.frame_of(list(range(len(joined))), joined), replace(
            columns,
            source=list(range(width)),
            destination=list(range(width, 2 * width)),
            weight=None if weights is None else 2 * width,
        )


def _computed(given: Any) -> Any:
    return given.compute() if hasattr(given, "__dask_graph__") else given
