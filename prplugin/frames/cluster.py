"""Dask frames on a cluster: futures of their partitions, arguments for the workers, and the frame of their results."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from prplugin.errors import InvalidOptionError
from prplugin.frames.columns import Columns
from prplugin.frames.dask import computed, in_use
from prplugin.frames.host_ids import HOST
from prplugin.frames.vertices import Vertices
from prplugin.types.edges import Floats


def partitions(client: Any, frame: Any, columns: Columns) -> tuple[list[Any], Any, Columns]:
    """Return futures of the partitions, an empty frame of their type, and the positions of the columns in it.

    Persisted partitions are used unchanged, since a task that selects their columns takes 18 ms, because the scheduler
    delays messages. For other frames only the columns in use are computed.
    """
    if (futures := _persisted(client, frame)) is not None:
        return futures, frame._meta, columns
    frame, columns = in_use(frame, columns)
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


def given_values(given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Floats]:
    """Return the id columns and the float64 values of a per-vertex argument."""
    given = HOST.convert(computed(given), what)
    if isinstance(given, np.ndarray):
        raise InvalidOptionError(
            f"{what} is an array, and the vertices of this graph are on several workers: pass a Series indexed by "
            "vertex."
        )
    return Vertices(names, [], []).ids_and_numbers(given, what)


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
