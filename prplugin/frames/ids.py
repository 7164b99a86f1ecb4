"""Ids of a few vertices as text and as Python objects, for messages and displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.types.edges import Integers

if TYPE_CHECKING:
    from prplugin.frames.base import Labels, Vertices

__all__ = ["described", "plain_ids", "seed_ids"]


def described(columns: list[Any], rows: Integers) -> list[str]:
    """Return the ids in the given rows as text, for a message: the first six, and "" for each of the others."""
    shown = [repr(one) for one in plain_ids(columns, rows[:6])]
    return shown + [""] * (rows.size - len(shown))


def plain_ids(columns: list[Any], rows: Integers) -> list[Any]:
    """Return the ids in the given rows as Python objects, as tuples if there are several columns."""
    from prplugin.frames._pandas_ids import plain_value  # imports pandas, whose or cuDF's the columns are

    columns = [getattr(column, "iloc", column) for column in columns]
    ids = [tuple(plain_value(column[row]) for column in columns) for row in rows.tolist()]
    return [parts[0] for parts in ids] if len(columns) == 1 else ids


def seed_ids(vertices: Vertices, labels: Labels, count: int) -> list[Any]:
    """Return the labels of the first `count` seeds as Python objects."""
    if labels.rows is not None:
        return vertices.plain_ids(labels.rows[:count])
    return plain_ids([labels.column], np.arange(min(count, len(labels.column))))
