"""Seeds: the distributions of many rankings, and their labels in the result."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, counted, listed
from prplugin.frames.columns import Column, Frame
from prplugin.frames.remedies import advice
from prplugin.frames.vertices import SEED, Labels, Vertices, names_columns, plain_ids
from prplugin.graph.edges import group_sizes
from prplugin.graph.teleports import Seeds
from prplugin.options import Unknown
from prplugin.types.arrays import is_array, to_host
from prplugin.types.edges import Floats, Integers


def read_seeds(vertices: Vertices, given: Any, unknown: Unknown | None = None) -> tuple[Seeds, Labels]:
    """Return the distributions of many seeds, and their labels. Seeds of which the graph has no vertex are left out.

    `given`: A list, Series, index, array or frame of one column of vertices, each a seed; a list of distributions as
    for `read_values`; a dict of them by label, or a Series of lists or dicts; a k x n array; or a frame with the
    columns `seed`, `vertex` (or several) and, optionally, `values` or `pagerank`, by default 1.
    """
    with vertices.reading(given, "seeds"):
        if type(given) in (list, tuple):
            given = type(given)(vertices.converted(entry, "seeds") for entry in given)
        elif isinstance(given, Mapping):
            given = {label: vertices.converted(entry, "seeds") for label, entry in given.items()}
        else:
            given = vertices.converted(given, "seeds")
        return _seeds(vertices, given, unknown)


def _seeds(vertices: Vertices, given: Any, unknown: Unknown | None) -> tuple[Seeds, Labels]:
    ids, types, n = vertices.ids, vertices.ids.types, len(vertices)
    xp, names = ids.xp, None
    if is_array(given) and given.ndim != 1:
        if given.ndim != 2 or given.shape[1] != n or not given.shape[0]:
            raise InvalidOptionError(
                f"seeds is an array of shape {given.shape}: it needs a row per seed and a column for each of the "
                f"{counted(n, 'vertex', 'vertices')}, in the order of graph.vertices."
            )
        matrix = ids.numbers_of_array(given, "seeds", InvalidOptionError)
        positive = matrix != 0
        found = xp.flatnonzero(positive)  # a third of the time of `nonzero`
        sizes = to_host(positive.sum(axis=1))
        labels = Labels(column=xp.arange(len(matrix)))
        return _normalized(vertices, sizes, found % n, matrix.reshape(-1)[found], labels)
    if isinstance(given, types.frames) and {*given.columns} != {*vertices.names} and given.shape[1] > 1:
        given = ids.own_frame(given)
        if SEED not in given.columns:
            raise InvalidOptionError(
                f"seeds is a frame without a column {SEED!r}: it needs one, beside the vertex and perhaps "
                f"`values`. {advice('One distribution is a personalization', 'one ranking')}"
            )
        return _read_seed_frame(vertices, given, unknown)
    if isinstance(given, types.series) and (entries := _lists_of(given)) is not None:
        names, given = given.index, entries
    elif isinstance(given, Mapping) and given and _are_distributions(vertices, [*given.values()], mixed=False):
        names, given = list(given), list(given.values())
    vertices_alone = isinstance(given, (*types.indexes, *types.series, *types.frames)) or is_array(given)
    if isinstance(given, Mapping) and not all(isinstance(value, Real) for value in given.values()):
        name, value = next(pair for pair in given.items() if not _are_distributions(vertices, [pair[1]]))
        raise InvalidOptionError(
            f"seeds is a dict of distributions by name, and that of {name!r} is {value!r}: write [{value!r}] for one "
            "vertex."
        )
    if not isinstance(given, (list, tuple)) and not vertices_alone:
        raise InvalidOptionError(
            "seeds must be a list of vertices or of distributions, a dict of distributions by name, a Series or an "
            f"index of vertices, a frame with a column {SEED!r}, or an array with a row per seed, not "
            f"{type(given).__name__}. For one ranking pass personalization=."
        )
    if len(given) == 0:
        raise InvalidOptionError("seeds is empty: it must name at least one seed.")
    if names is None and (vertices_alone or not _are_distributions(vertices, given)):
        columns = vertices.id_columns(given, "seeds")
        rows, _ = vertices.known_positions(columns, "seeds", unknown)
        _require_some(len(rows), len(columns[0]))
        return _normalized(vertices, np.ones(len(rows), np.int64), rows, xp.ones(len(rows)), Labels(rows=rows))
    parts = [_distribution(vertices, entry, f"seeds[{at}]") for at, entry in enumerate(given)]
    columns = [ids.one_column([each[at] for each, _ in parts], "seeds") for at in range(len(vertices.names))]
    sizes = np.array([len(values) for _, values in parts])
    values = xp.concatenate([values for _, values in parts])
    column = xp.arange(len(parts)) if names is None else _labels_of(vertices, names)
    return _of_entries(vertices, columns, values, sizes, column, unknown)


def _read_seed_frame(vertices: Vertices, frame: Frame, unknown: Unknown | None) -> tuple[Seeds, Labels]:
    ids = vertices.ids
    weighted = not {*frame.columns} <= {SEED, *vertices.names}  # any other column may be the values: they need the name
    name = "pagerank" if "pagerank" in frame.columns and "values" not in frame.columns else "values"
    seed, *columns = ids.columns_of(frame, [SEED, *vertices.names, *([name] if weighted else [])], "seeds")
    if (absent := ids.missing_rows(seed)).size:
        raise InvalidOptionError(
            f"seeds has {counted(absent.size, 'row')} without a seed: {listed(absent)} (counted from 0). Drop or "
            "fill them."
        )
    codes, first, _ = ids.factorize([seed], [SEED], ["seeds"])
    order = ids.xp.argsort(codes, kind="stable")
    values = ids.xp.ones(len(frame))
    if weighted:
        values = ids.numbers(columns.pop(), "seeds", "entry", InvalidOptionError)[order]
    sizes = to_host(group_sizes(codes, len(first)))
    taken = [ids.take(column, order) for column in columns]
    return _of_entries(vertices, taken, values, sizes, ids.take(seed, first), unknown)


def _of_entries(
    vertices: Vertices, columns: list[Column], values: Floats, sizes: Integers, labels: Column, unknown: Unknown | None
) -> tuple[Seeds, Labels]:
    """Return the seeds of consecutive distributions, and their labels, without those of unknown vertices alone."""
    rows, known = vertices.known_positions(columns, "seeds", unknown, sizes)
    if known is not None:
        values, given = values[known], sizes
        sizes = np.bincount(np.repeat(np.arange(sizes.size), sizes)[to_host(known)], minlength=sizes.size)
        filled = np.flatnonzero((sizes > 0) | (given == 0))
        _require_some(len(rows), len(columns[0]))
        sizes, labels = sizes[filled], vertices.ids.take(labels, vertices.ids.xp.asarray(filled))
    return _normalized(vertices, sizes, rows, values, Labels(column=labels))


def _require_some(known: int, given: int) -> None:
    if not known:
        raise InvalidOptionError(f"seeds names {counted(given, 'vertex', 'vertices')}, and the graph has none of them.")


def _lists_of(column: Any) -> list[Any] | None:
    """Return the entries of a Series of lists or dicts as these; None for a Series of vertices."""
    first = column.iloc[0] if len(column) and column.dtype.kind == "O" else None
    holds_objects = hasattr(first, "__len__") and not isinstance(first, (str, bytes, tuple))
    if not holds_objects and not str(column.dtype).startswith(("list", "large_list")):
        return None
    entries = (column.to_pandas() if hasattr(column, "to_pandas") else column).tolist()
    known = (Mapping, list, set, frozenset, type(None))
    return [entry if isinstance(entry, known) else list(entry) for entry in entries]


def _labels_of(vertices: Vertices, names: Column) -> Column:
    """Return the labels of seeds that have names, an index or a list, as a column."""
    import pandas as pd  # loaded with every library that has columns

    ids = vertices.ids
    column = pd.Series(names.to_pandas() if hasattr(names, "to_pandas") else names).reset_index(drop=True)
    try:
        ids.kind_of(column, "seeds")
        return ids.as_column(column, "seeds")
    except InvalidEdgesError as error:
        raise InvalidOptionError(f"the names of seeds cannot be a column: {error}") from error


def _distribution(vertices: Vertices, given: object, what: str) -> tuple[list[Column], Floats]:
    if is_array(given):
        values = vertices.checked_vector(given, what)
        rows = vertices.ids.xp.flatnonzero(values)
        return [vertices.ids.take(column, rows) for column in vertices.series], values[rows]
    return vertices.ids_and_numbers(given, what)


def _are_distributions(vertices: Vertices, given: Any, *, mixed: bool = True) -> bool:
    """Return True if all entries are distributions, False if all are vertices; if they are `mixed`, raise."""
    types = vertices.ids.types
    kinds = (Mapping, list, set, frozenset, *types.series, *types.frames, *types.indexes)
    positions = [
        at
        for at, entry in enumerate(given)
        if not (isinstance(entry, kinds) or is_array(entry) or names_columns(entry, types.frames))
    ]
    if mixed and 0 < len(positions) < len(given):
        raise InvalidOptionError(
            f"seeds is a list of distributions, and {counted(len(positions), 'entry is', 'entries are')} "
            f"not: {listed([repr(given[at]) for at in positions])}. Write {{vertex: 1}} for a seed that is a "
            "vertex, or list vertices alone."
        )
    return not positions


def _normalized(
    vertices: Vertices, sizes: Integers, rows: Integers, values: Floats, labels: Labels
) -> tuple[Seeds, Labels]:
    vertices.seed_names(labels)  # raises for a name clash before the iteration
    moved = vertices.boundary.values
    return Seeds.normalized(np.append(0, np.cumsum(sizes)), moved(rows), moved(values)), labels


def labels_at(vertices: Vertices, labels: Labels, which: Integers) -> Labels:
    """Return the labels of some seeds."""
    at = vertices.ids.xp.asarray(which)
    return Labels(column=vertices.ids.take(labels.column, at)) if labels.rows is None else Labels(labels.rows[at])


def seed_ids(vertices: Vertices, labels: Labels, count: int) -> list[Hashable]:
    """Return the labels of the first `count` seeds as Python objects."""
    if labels.rows is not None:
        return vertices.plain_ids(labels.rows[:count])
    return plain_ids([labels.column], np.arange(min(count, len(labels.column))))
