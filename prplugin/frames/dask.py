"""Frames of Dask, of pandas or cuDF: partitions in, partitions out.

With a `distributed.Client` the work is done where the partitions are, by `prplugin.distributed`. Without one they are
brought into this process and ranked as one frame, and the result is a frame of one partition.
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
from prplugin.frames.base import Labels, SeedValues, converted
from prplugin.frames.columns import Columns
from prplugin.frames.parts import ends_of_partitions, facts_of_partitions, joined_ends, weights_of_partitions
from prplugin.types.edges import Floats, Integers

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
    "refuse_absent_columns",
    "shares",
    "shares_of_values",
]


def accepts(frame: object) -> bool:
    """Say whether this is a frame of Dask."""
    frame_type = getattr(sys.modules.get("dask.dataframe"), "DataFrame", None)
    return frame_type is not None and isinstance(frame, frame_type)


def client() -> Any:
    """Give the client of a cluster that is in use here; None if there is none."""
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
    """Give the frame with the columns in use alone: others need not be read."""
    used, columns = columns.alone()
    labels = list(frame.columns)
    return (frame[[labels[position] for position in used]] if len(used) < len(labels) else frame), columns


def refuse_absent_columns(frame: Any, columns: Columns) -> None:
    """Raise if a column in use is absent from a partition: its own names may differ from those that Dask has for it."""
    import dask

    for partition, labels in enumerate(dask.compute(*map(dask.delayed(_labels), frame.to_delayed()))):
        columns.within(labels, f"partition {partition}")


def _labels(partition: Any) -> list[Hashable]:
    return list(partition.columns)


# --- with a cluster -------------------------------------------------------------------------------------------------


def partitions(client: Any, frame: Any, columns: Columns) -> tuple[list[Any], Any, Columns]:
    """Have the partitions computed on the workers, columns in use alone; or take what has been persisted there.

    A task that did next to nothing to each would cost a call 18 ms: so long are messages held back to go together.

    Returns
    -------
    partitions : list of futures
    like : frame
        An empty one, of the columns that they have.
    columns : Columns
        Where the columns in use are among those.
    """
    there = _persisted(client, frame)
    if there is not None:
        return there, frame._meta, columns
    frame, columns = _in_use(frame, columns)
    return client.compute(frame.to_delayed(), sync=False), frame._meta, columns


def _persisted(client: Any, frame: Any) -> list[Any] | None:
    """Give the partitions of a frame that are with a client's workers, or on their way; None if some are not."""
    graph = dict(frame.__dask_graph__())
    found = [_behind(key, graph) for key in frame.__dask_keys__()]
    return found if all(getattr(task, "client", None) is client for task in found) else None


def _behind(key: Any, graph: dict[Any, Any]) -> Any:
    """Give the task, or the future, that a key stands for: its own, or that of the key that it is another name of."""
    task = graph[key]
    return _behind(task.target, graph) if hasattr(task, "target") and task.target in graph else task


def parts_name(frame: Any) -> str:
    """Name the module that handles the partitions of a frame."""
    for adapter in (cudf, pandas):
        if adapter.accepts(frame._meta):
            return f"prplugin.frames._{adapter.__name__.rpartition('.')[2]}_parts"
    kind = type(frame._meta)
    raise InvalidEdgesError(f"partitions must be frames of pandas or cuDF, not {kind.__module__}.{kind.__qualname__}.")


def parts(name: str) -> Any:
    """Give that module, on a worker."""
    return importlib.import_module(name)


def given_ids(given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
    """Take ids that the caller gave, one pandas Series a column, checked."""
    return _checked(pandas.id_columns(_local(given), names, what), what)


def given_values(given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Floats]:
    """Take values that the caller gave by vertex: columns of ids, checked, and float64."""
    given = _local(given)
    if isinstance(given, np.ndarray):
        raise InvalidOptionError(
            f"{what} is an array, and the vertices of this graph are on several workers: pass a Series indexed by "
            "vertex."
        )
    columns, values = pandas.ids_and_numbers(given, names, what)
    return _checked(columns, what), values


def _checked(columns: list[Any], what: str) -> list[Any]:
    from prplugin.frames._pandas_ids import kind_of

    for column in columns:
        kind_of(column, what)
    return [column.reset_index(drop=True) for column in columns]


def _local(given: Any) -> Any:
    """Bring what is Dask's into this process, and what is cuDF's to the host."""
    given = given.compute() if hasattr(given, "__dask_graph__") else given
    return given.to_pandas() if type(given).__module__.partition(".")[0] == "cudf" else given


def shares(columns: list[Any] | None, size: int) -> list[Any]:
    """Cut columns into a share for each rank."""
    if columns is None:
        return [None] * size
    cuts = [len(columns[0]) * rank // size for rank in range(size + 1)]
    return [
        [column.iloc[cuts[rank] : cuts[rank + 1]].reset_index(drop=True) for column in columns] for rank in range(size)
    ]


def shares_of_values(given: tuple[list[Any], Floats], size: int) -> list[tuple[list[Any], Floats, int]]:
    """Cut values given by vertex into a share for each rank; with the entry at which each begins."""
    columns, values = given
    cuts = [values.size * rank // size for rank in range(size + 1)]
    return [
        (share, values[cuts[rank] : cuts[rank + 1]], cuts[rank]) for rank, share in enumerate(shares(columns, size))
    ]


def frame_of(futures: list[Any], rows: list[int], like: Any) -> Any:
    """Make a frame of parts that lie on workers, whose rows are counted from one to the next."""
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
class _Vertices:
    """The vertices as the adapter of the partitions has them."""

    vertices: Any

    def __len__(self) -> int:
        return len(self.vertices)

    def described(self, rows: Integers) -> list[str]:
        """Spell out the ids of some vertices for a message."""
        described: list[str] = self.vertices.described(rows)
        return described


class Collected:
    """The adapter of frames that are brought into this process, around that of their partitions."""

    def __init__(self, frame: Any) -> None:
        self._parts = parts_name(frame)
        self._adapter = cudf if cudf.accepts(frame._meta) else pandas
        self.place = self._adapter.place

    def opened(self, frame: Any) -> tuple[Any, list[Hashable]]:
        """Give the frame, and the names of its columns."""
        return frame, list(frame.columns)

    def read(self, frame: Any, columns: Columns, vertices: Any, **how: bool) -> tuple[Any, Any]:
        """Bring the columns in use into this process, and read them as one frame."""
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
        """Join partitions into one frame, of the columns in use alone; also say where these are."""
        handled = parts(self._parts)
        partitions, starts = list(range(len(frames))), np.cumsum([0, *map(len, frames)])[:-1].tolist()
        pieces, placed = ends_of_partitions(handled, frames, partitions, columns)
        labels = [[f"column {name!r}" for name in names] for names in (columns.source_names, columns.destination_names)]
        facts = facts_of_partitions(handled, pieces, partitions, starts, labels)
        shared = [
            handled.as_shared(
                [[one[end][column] for one in facts] for end in range(2)], [label[column] for label in labels]
            )
            for column in range(len(columns.source))
        ]
        source, destination = joined_ends(handled, pieces, shared, labels)
        weights = weights_of_partitions(handled, frames, partitions, placed, starts)
        width = len(shared)
        return handled.framed([*source, *destination, *([] if weights is None else [weights])]), replace(
            columns,
            source=list(range(width)),
            destination=list(range(width, 2 * width)),
            weight=None if weights is None else 2 * width,
        )

    def read_values(self, given: Any, vertices: _Vertices, what: str) -> Floats:
        """Spread values given for some vertices over all of them."""
        values: Floats = self._adapter.read_values(_collected(given), vertices.vertices, what)
        return values

    def read_seeds(self, given: Any, vertices: _Vertices, what: str) -> SeedValues:
        """Return the distributions of many seeds."""
        seeds: SeedValues = self._adapter.read_seeds(converted(given, _collected), vertices.vertices, what)
        return seeds

    def read_positions(self, given: Any, vertices: _Vertices, what: str) -> Integers:
        """Return the positions of the vertices asked for, in the order given."""
        rows: Integers = self._adapter.read_positions(_collected(given), vertices.vertices, what)
        return rows

    def write_ids(self, vertices: _Vertices) -> Any:
        """Return the vertices as a column or a frame of one partition."""
        import dask.dataframe

        return dask.dataframe.from_pandas(self._adapter.write_ids(vertices.vertices), npartitions=1, sort=False)

    def write(self, vertices: _Vertices, ranks: Any, rows: Integers | None, labels: Labels | None = None) -> Any:
        """Put the ranks in a frame of one partition."""
        import dask.dataframe

        written = self._adapter.write(vertices.vertices, ranks, rows, labels)
        with dask.config.set({"dataframe.convert-string": False}):  # it has the types that it is to have
            return dask.dataframe.from_pandas(written, npartitions=1, sort=False)


def _collected(given: Any) -> Any:
    return given.compute() if hasattr(given, "__dask_graph__") else given
