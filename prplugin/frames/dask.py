"""Frames of Dask, of pandas or cuDF: partitions in, partitions out.

With a `distributed.Client` the work is done where the partitions are, by `prplugin.distributed`. Without one they are
ranked in this process as one frame, and the result has one partition.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError
from prplugin.frames import cudf, pandas
from prplugin.frames.base import full_name, is_a, opened
from prplugin.frames.columns import Columns
from prplugin.frames.parts import endpoints_of_partitions, facts_of_partitions, joined_endpoints, weights_of_partitions
from prplugin.frames.wrapped import WrappedVertices
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Floats

__all__ = [
    "Collected",
    "accepts",
    "client",
    "frame_of",
    "given_ids",
    "given_values",
    "partitions",
    "parts",
    "parts_name",
    "portions",
    "portions_of_values",
    "refuse_absent_columns",
]


def accepts(frame: object) -> bool:
    """Return whether this is a frame of Dask."""
    return is_a(frame, "dask.dataframe", "DataFrame")


def client() -> Any:
    """Return the client of the cluster in use, or None."""
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
    """Return the frame with only the columns in use, so that others need not be read."""
    used, columns = columns.alone()
    labels = list(frame.columns)
    return (frame[[labels[position] for position in used]] if len(used) < len(labels) else frame), columns


def refuse_absent_columns(frame: Any, columns: Columns) -> None:
    """Raise if a column in use is absent from a partition, whose labels may differ from those of the frame."""
    import dask

    labels_of = dask.delayed(lambda partition: list(partition.columns))
    for partition, labels in enumerate(dask.compute(*map(labels_of, frame.to_delayed()))):
        columns.within(labels, f"partition {partition}")


# --- with a cluster -------------------------------------------------------------------------------------------------


def partitions(client: Any, frame: Any, columns: Columns) -> tuple[list[Any], Any, Columns]:
    """Return futures of the partitions on the workers, an empty frame like them, and where it has the columns in use.

    Persisted partitions are used as they are: a task that selects their columns takes 18 ms, for which the scheduler
    delays messages. Of others only the columns in use are computed.
    """
    there = _persisted(client, frame)
    if there is not None:
        return there, frame._meta, columns
    frame, columns = _in_use(frame, columns)
    return client.compute(frame.to_delayed(), sync=False), frame._meta, columns


def _persisted(client: Any, frame: Any) -> list[Any] | None:
    """Return the partitions of a frame that a client's workers have or are computing; None if some are not."""
    graph = dict(frame.__dask_graph__())
    found = [_behind(key, graph) for key in frame.__dask_keys__()]
    return found if all(getattr(task, "client", None) is client for task in found) else None


def _behind(key: Any, graph: dict[Any, Any]) -> Any:
    """Return the task or future of a key, which may be an alias."""
    task = graph[key]
    return _behind(task.target, graph) if hasattr(task, "target") and task.target in graph else task


def parts_name(frame: Any) -> str:
    """Return the name of the module that handles the partitions of a frame."""
    for adapter in (cudf, pandas):
        if adapter.accepts(frame._meta):
            return f"prplugin.frames._{adapter.__name__.rpartition('.')[2]}_parts"
    raise InvalidEdgesError(f"partitions must be frames of pandas or cuDF, not {full_name(frame._meta)}.")


def parts(name: str) -> Any:
    """Return that module, on a worker."""
    return importlib.import_module(name)


def given_ids(given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
    """Return ids that the caller gave as one pandas Series per column, checked."""
    return _checked(pandas.id_columns(_local(given), names, what), what)


def given_values(given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Floats]:
    """Return values that the caller gave by vertex: columns of ids, checked, and float64."""
    given = _local(given)
    if isinstance(given, np.ndarray):
        raise InvalidOptionError(
            f"{what} is an array, and the vertices of this graph are on several workers: pass a Series indexed by "
            "vertex."
        )
    columns, values = pandas.Vertices(names, [], []).ids_and_numbers(given, what)
    return _checked(columns, what), values


def _checked(columns: list[Any], what: str) -> list[Any]:
    from prplugin.frames._pandas_ids import kind_of

    for column in columns:
        kind_of(column, what)
    return [column.reset_index(drop=True) for column in columns]


def _local(given: Any) -> Any:
    """Compute what is of Dask, and copy what is of cuDF to the host."""
    given = _collected(given)
    return given.to_pandas() if type(given).__module__.partition(".")[0] == "cudf" else given


def portions(columns: list[Any] | None, size: int) -> list[Any]:
    """Split columns into a share per rank."""
    if columns is None:
        return [None] * size
    cuts = [len(columns[0]) * rank // size for rank in range(size + 1)]
    return [
        [column.iloc[cuts[rank] : cuts[rank + 1]].reset_index(drop=True) for column in columns] for rank in range(size)
    ]


def portions_of_values(given: tuple[list[Any], Floats], size: int) -> list[tuple[list[Any], Floats, int]]:
    """Split values given by vertex into a share per rank, with the entry at which each begins."""
    columns, values = given
    cuts = [values.size * rank // size for rank in range(size + 1)]
    return [
        (portion, values[cuts[rank] : cuts[rank + 1]], cuts[rank])
        for rank, portion in enumerate(portions(columns, size))
    ]


def frame_of(futures: list[Any], rows: list[int], like: Any) -> Any:
    """Return a frame of parts on workers, whose index continues from one to the next."""
    import dask
    import dask.dataframe

    filled = [(future, count) for future, count in zip(futures, rows, strict=True) if count]
    divisions = None
    if filled:
        ends = np.cumsum([count for _, count in filled]).tolist()
        divisions = (0, *ends[:-1], ends[-1] - 1)
    parts = [future for future, _ in filled] or futures[:1]
    with dask.config.set({"dataframe.convert-string": False}):  # the parts have the types that they are to have
        return dask.dataframe.from_delayed(parts, meta=like, divisions=divisions, verify_meta=False)


# --- without one ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Vertices(WrappedVertices):
    """The vertices as the adapter of the partitions has them; results have one partition."""

    inner: Any

    def convert(self, given: Any, what: str) -> Any:
        return _collected(given)

    def wrap(self, frame: Any) -> Any:
        import dask.dataframe

        with dask.config.set({"dataframe.convert-string": False}):  # it has the types that it is to have
            return dask.dataframe.from_pandas(frame, npartitions=1, sort=False)


class Collected:
    """The adapter of frames that are computed in this process, around that of their partitions."""

    def __init__(self, frame: Any) -> None:
        self._parts = parts_name(frame)
        self._adapter = cudf if cudf.accepts(frame._meta) else pandas
        self.memory_space: MemorySpace = self._adapter.memory_space

    accepts = staticmethod(accepts)
    opened = staticmethod(opened)

    def read(self, frame: Any, columns: Columns, vertices: Any, **how: bool) -> tuple[Any, Any]:
        """Compute the columns in use, and read them as one frame."""
        import dask

        used, columns_in_use = _in_use(frame, columns)
        try:
            frames = list(dask.compute(*used.to_delayed()))
        except KeyError:
            refuse_absent_columns(frame, columns)
            raise
        edges, known = self._adapter.read(*self._joined(frames, columns_in_use), _collected(vertices), **how)
        return edges, _Vertices(known)

    def _joined(self, frames: list[Any], columns: Columns) -> tuple[Any, Columns]:
        """Concatenate partitions to one frame of the columns in use; also return where these are."""
        handled = parts(self._parts)
        partitions, starts = list(range(len(frames))), np.cumsum([0, *map(len, frames)])[:-1].tolist()
        pieces, placed = endpoints_of_partitions(handled, frames, partitions, columns)
        labels = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
        facts = facts_of_partitions(handled, pieces, partitions, starts, labels)
        shared = [
            handled.as_shared(
                [[one[end][column] for one in facts] for end in range(2)], [label[column] for label in labels]
            )
            for column in range(len(columns.source))
        ]
        source, destination = joined_endpoints(handled, pieces, shared, labels)
        weights = weights_of_partitions(handled, frames, partitions, placed, starts)
        width = len(shared)
        return handled.framed([*source, *destination, *([] if weights is None else [weights])]), replace(
            columns,
            source=list(range(width)),
            destination=list(range(width, 2 * width)),
            weight=None if weights is None else 2 * width,
        )


def _collected(given: Any) -> Any:
    return given.compute() if hasattr(given, "__dask_graph__") else given
