"""Advice for frames whose columns of endpoints are not named, or that hold edges as a matrix or as lists."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence, Sized
from contextlib import suppress
from numbers import Real
from typing import Any

from prplugin.errors import listed
from prplugin.frames.remedies import advice, remedy
from prplugin.suggestions import close_name, plain
from prplugin.types.arrays import on_host

ENDPOINT_NAMES = (
    "src source from level0 u origin start sender follower citing parent loser subject i a node1 id1 nodea",
    "dst dest destination target to level1 v end receiver followee cited child winner object tgt j b node2 id2 nodeb",
)
"""Plain names of probable source and destination columns. Messages suggest them; they are never selected.

Tail and head are missing: an arc has its tail at the source, a triple of a knowledge graph its head.
"""

SAMPLED = 100  # rows of a frame that are looked at, to tell edges from matrices and lists


def quoted_names(names: Sequence[Hashable]) -> str:
    """Return names as they are written in Python, for messages."""
    return listed([repr(name) for name in names], shown=20)


def columns_present(labels: Sequence[Hashable], frame: object) -> str:
    """Return a sentence that names the columns of a frame, and one that names the levels of its index, if named."""
    columns = f"Its columns are {quoted_names(labels)}." if labels else "It has no columns."
    if not (levels := index_levels(frame)):
        return columns
    are = "is a level" if len(levels) == 1 else "are levels"
    return (
        f"{columns} {quoted_names(levels)} {are} of its index: {remedy('columns of the index')} makes columns of them."
    )


def index_levels(frame: object) -> list[Hashable]:
    """Return the names of the columns that `reset_index` makes of the index; none for an unnamed index of one level."""
    index = getattr(getattr(frame, "_meta", frame), "index", None)  # Dask frames have the names in `_meta`
    names = getattr(index, "names", None)
    if not isinstance(names, (list, tuple)) or names in ([None], (None,)):
        return []
    return [f"level_{level}" if name is None else name for level, name in enumerate(names)]


def endpoints_advice(labels: Sequence[Hashable], frame: object) -> str:
    """Return a sentence, after a blank, on the probable endpoints of a frame without known ones; "" without any."""
    levels = index_levels(frame)
    sample = _sample(frame, labels)
    if other := _other_form(labels, sample, frame):
        return f" {other}"
    labels = [*levels, *labels]
    sources, destinations = (
        [label for label in labels if _is_probable(label, names.split())] for names in ENDPOINT_NAMES
    )
    if len(labels) == 2 and not (len(sources) == len(destinations) == 1):
        sources, destinations = [labels[0]], [labels[1]]
        kinds = {type(value) for label in labels for value in sample.get(label, [])}
        if len(kinds) > 1 or kinds & {float, bool}:
            return ""
    if not (len(sources) == len(destinations) == 1 and sources != destinations):
        return ""
    return f" Did you mean {remedy('columns', source=sources[0], destination=destinations[0])}?"


def column_advice(name: Hashable, role: str | None, labels: Sequence[Hashable], used: Sequence[Hashable]) -> str:
    """Return a sentence, after a blank, on the column that is meant by a name that the frame lacks; "" without any.

    `role`: Argument that names the column; None if the graph does. `used`: Names of its other columns.
    """
    if isinstance(name, tuple) and name and all(part in labels for part in name):
        return f" Did you mean the list {remedy('column', role=role, column=list(name))}?" if role else ""
    texts = {flat: label for label in labels if isinstance(flat := _flat(label), str)}
    if not isinstance(name, str) or (close := close_name(name, list(texts))) is None:
        return ""
    label = texts[close]
    if role is None:
        rename = remedy("rename a column", column=label, wanted=name)
        return f" Did you mean {rename}?" if rename and label not in used else ""
    return f" Did you mean {remedy('column', role=role, column=label)}?"


def _flat(label: Hashable) -> Hashable:
    """Return the name of a column of several levels of which all but the first are empty, as aggregation makes them."""
    if isinstance(label, tuple) and len(label) > 1 and not any(label[1:]):
        return label[0]
    return label


def _is_probable(label: Hashable, names: list[str]) -> bool:
    """Return whether a label is one of the names, optionally with "node" or "id" added, as in ``FromNodeId``."""
    flat = _flat(label)
    if not isinstance(flat, str):
        return False
    name = plain(flat)
    return name in names or re.sub("^(node|vertex)|(node|vertex)?(id|name)?$", "", name) in names


# --- matrices and lists in frames -------------------------------------------------------------------------------------


def _sample(given: object, labels: Sequence[Hashable]) -> dict[Hashable, list[object]]:
    """Return the first values of the columns of a frame, by label; nothing if it does not show them."""
    with suppress(Exception):  # the frame may compute them, and each library has its own errors
        frame: Any = given.head(SAMPLED) if hasattr(given, "head") else given.slice(0, SAMPLED)  # type: ignore[attr-defined]
        frame = frame.collect() if hasattr(frame, "collect") else frame
        columns = (frame.iloc[:, at] if hasattr(frame, "iloc") else frame[label] for at, label in enumerate(labels))
        return dict(zip(labels, map(_values, columns), strict=True))
    return {}


def _values(column: object) -> list[object]:
    """Return a column, or an index, as a list."""
    given = on_host(column)
    return list(given.to_pylist() if hasattr(given, "to_pylist") else given.to_list())


def _other_form(labels: Sequence[Hashable], sample: dict[Hashable, list[object]], frame: object) -> str:
    """Return a sentence on the edges of a frame whose cells are weights or targets, "" if they seem to be neither."""
    cells = {label: [cell for cell in column if cell is not None] for label, column in sample.items()}
    index: Any = getattr(frame, "index", None)  # a method of lists, and not computed of Dask frames
    names = _matrix_columns(labels, sample, index if hasattr(index, "get_indexer") else None)
    if names and all(isinstance(cell, Real) for name in names for cell in cells[name]):
        return advice("If its cells are the weights of edges from rows to columns", "matrix")
    every, named = [cell for column in cells.values() for cell in column], set(labels)
    if (
        len(labels) > 1
        and every
        and sum(isinstance(cell, Hashable) and cell in named for cell in every) > len(every) / 2
    ):
        return advice("If its cells are the targets of edges from the vertex that names the column", "cells as targets")
    return ""


def _matrix_columns(
    labels: Sequence[Hashable], sample: dict[Hashable, list[object]], index: Sized | None
) -> list[Hashable]:
    """Return the columns that are named as the rows, by the index or by a first column of labels; none otherwise."""
    if len(labels) > 1 and index is not None and len(index) == len(labels) and {*_values(index)} == {*labels}:
        return [*labels]
    others, names = [*labels[1:]], sample.get(labels[0], []) if labels else []
    named = len(names) == min(len(others), SAMPLED) and row_names(names, others) is not None
    return others if len(others) > 1 and named else []


def row_names(names: list[Hashable], labels: Sequence[Hashable]) -> dict[Hashable, Hashable] | None:
    """Return the names of rows by the labels of columns that they are, perhaps as text of integers; None otherwise.

    A polars frame has labels of text alone.
    """
    if not all(isinstance(name, Hashable) for name in names):
        return None
    texts: dict[Hashable, Hashable] = {str(name): name for name in names if isinstance(name, int)}
    candidates: list[dict[Hashable, Hashable]] = [{name: name for name in names}, texts]
    return next((each for each in candidates if len(each) == len(names) and each.keys() <= {*labels}), None)


def values_last(labels: list[Hashable], dtypes: Iterable[object], kinds: list[str]) -> list[Hashable]:
    """Return the labels of ids and of their values, this one last: the only one with numbers that are no ids."""
    numbers = "f" if "integer" in kinds else "biuf"
    values = [label for label, dtype in zip(labels, dtypes, strict=True) if getattr(dtype, "kind", "O") in numbers]
    return [label for label in labels if label not in values] + values if len(values) == 1 else labels
