"""Dask frames on a cluster: futures of their partitions, arguments for the workers, and the frame of their results."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from prplugin.errors import InvalidOptionError
from prplugin.frames.columns import Columns
from prplugin.frames.dask import computed, in_use
from prplugin.frames.ids import HOST
from prplugin.frames.vertices import Vertices
from prplugin.options import GivenByVertex
from prplugin.types.arrays import plain_array


def partitions(client: Any, frame: Any, columns: Columns) -> tuple[list[Any], Any, Columns]:
    """Return futures of the partitions, an empty frame of their type, and the positions of the columns in it.

    Persisted partitions are used unchanged, since a task that selects their columns takes 18 ms, because the scheduler
    delays messages. For other frames only the columns in use are computed.
    """
    if (futures := _persisted(client, frame)) is not None:
        return futures, frame._meta, columns
    import dask

    frame, columns = in_use(frame, columns)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"}):  # the frame is not ours to change
        return client.compute(frame.to_delayed(), sync=False), frame._meta, columns


def _persisted(client: Any, frame: Any) -> list[Any] | None:
    """Return the futures of a persisted frame; None if some partitions are not futures of this client."""
    graph = dict(frame.__dask_graph__())

    def resolve_alias(key: Any) -> Any:
        task = graph[key]
        return resolve_alias(task.target) if hasattr(task, "target") and task.target in graph else task

    found = [resolve_alias(key) for key in frame.__dask_keys__()]
    return found if all(getattr(task, "client", None) is client for task in found) else None


def given_ids(given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
    """Convert ids to a list of pandas Series, one per column, and check their kinds."""
    columns = HOST.id_columns(computed(given), names, what)
    for column in columns:
        HOST.kind_of(column, what)
    return columns


def converted(given: GivenByVertex, names: list[Hashable]) -> GivenByVertex:
    """Return arguments given by vertex as pandas objects; distributions as id columns and float64 values."""
    found = {
        what: value if isinstance(value, str) else _converted(value, what, names)
        for what in ("personalization", "seeds", "among", "exclude", "dangling", "nstart")
        if (value := getattr(given, what)) is not None
    }
    return GivenByVertex(**found)


def _converted(given: Any, what: str, names: list[Hashable]) -> Any:
    given = HOST.convert(plain_array(computed(given), what), what)
    if what in ("among", "exclude"):
        return given
    entries = [given]
    if what == "seeds" and isinstance(given, (list, tuple)):
        entries = given = [HOST.convert(plain_array(computed(entry), what), what) for entry in given]
    # A one-dimensional array of seeds names vertices.
    if any(isinstance(entry, np.ndarray) and (what, entry.ndim, entries) != ("seeds", 1, [entry]) for entry in entries):
        raise InvalidOptionError(
            f"{what} is an array, and the vertices of this graph are on several workers: pass a Series indexed by "
            "vertex."
        )
    return given if what == "seeds" else Vertices(names, [], []).ids_and_numbers(given, what)


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
