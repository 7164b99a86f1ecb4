"""Seeds: the distributions of many rankings, and their labels in the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from prplugin.errors import InvalidOptionError, counted, listed
from prplugin.frames.remedies import advice
from prplugin.frames.vertices import SEED, Labels, Vertices, is_array, plain_ids
from prplugin.graph.adjacency import group_sizes
from prplugin.graph.problem import Seeds
from prplugin.types.arrays import to_host
from prplugin.types.edges import Floats, Integers


def read_seeds(vertices: Vertices, given: Any) -> tuple[Seeds, Labels]:
    """Return the distributions of many seeds, and their labels.

    `given`: A list, Series, index or array of vertices, each a seed; a list of distributions as for `read_values`;
    a k x n array; or a frame with the columns `seed`, `vertex` (or several) and, optionally, `values`, by default
    1.
    """
    with vertices.reading(given, "seeds"):
        if type(given) in (list, tuple):
            given = type(given)(vertices.converted(entry, "seeds") for entry in given)
        else:
            given = vertices.converted(given, "seeds")
        return _seeds(vertices, given)


def _seeds(vertices: Vertices, given: Any) -> tuple[Seeds, Labels]:
    ids, types, n = vertices.ids, vertices.ids.types, len(vertices)
    xp = ids.xp
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
    if isinstance(given, types.frames):
        given = ids.own_frame(given)
        if SEED not in given.columns:
            raise InvalidOptionError(
                f"seeds is a frame without a column {SEED!r}: it needs one, beside the vertex and perhaps "
                f"`values`. {advice('One distribution is a personalization', 'one ranking')}"
            )
        return _read_seed_frame(vertices, given)
    vertices_alone = isinstance(given, (*types.indexes, *types.series)) or is_array(given)
    if not isinstance(given, (list, tuple)) and not vertices_alone:
        raise InvalidOptionError(
            "seeds must be a list of vertices or of distributions, a Series or an index of vertices, a frame "
            f"with a column {SEED!r}, or an array with a row per seed, not {type(given).__name__}. For one ranking "
            "pass personalization=."
        )
    if not len(given):
        raise InvalidOptionError("seeds is empty: it must name at least one seed.")
    if vertices_alone or not _are_distributions(vertices, given):
        rows = vertices.known_positions(vertices.id_columns(given, "seeds"), "seeds")
        return _normalized(vertices, np.ones(len(rows), np.int64), rows, xp.ones(len(rows)), Labels(rows=rows))
    parts = [_distribution(vertices, entry, f"seeds[{at}]") for at, entry in enumerate(given)]
    columns = [ids.one_column([each[at] for each, _ in parts], "seeds") for at in range(len(vertices.names))]
    sizes = np.array([len(values) for _, values in parts])
    rows = vertices.known_positions(columns, "seeds", sizes)
    values = xp.concatenate([values for _, values in parts])
    return _normalized(vertices, sizes, rows, values, Labels(column=xp.arange(len(parts))))


def _read_seed_frame(vertices: Vertices, frame: Any) -> tuple[Seeds, Labels]:
    ids = vertices.ids
    weighted = not {*frame.columns} <= {SEED, *vertices.names}  # any other column may be the values: they need the name
    seed, *columns = ids.columns_of(frame, [SEED, *vertices.names, *(["values"] if weighted else [])], "seeds")
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
    rows = vertices.known_positions([ids.take(column, order) for column in columns], "seeds", sizes)
    return _normalized(vertices, sizes, rows, values, Labels(column=ids.take(seed, first)))


def _distribution(vertices: Vertices, given: object, what: str) -> tuple[list[Any], Floats]:
    if is_array(given):
        values = vertices.checked_vector(given, what)
        rows = vertices.ids.xp.flatnonzero(values)
        return [vertices.ids.take(column, rows) for column in vertices.series], values[rows]
    return vertices.ids_and_numbers(given, what)


def _are_distributions(vertices: Vertices, given: Any) -> bool:
    """Return True if all entries are distributions, False if all are vertices; raise if they are mixed."""
    types = vertices.ids.types
    kinds = (Mapping, list, set, frozenset, *types.series, *types.frames, *types.indexes)
    positions = [at for at, entry in enumerate(given) if not isinstance(entry, kinds) and not is_array(entry)]
    if 0 < len(positions) < len(given):
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


def seed_ids(vertices: Vertices, labels: Labels, count: int) -> list[Any]:
    """Return the labels of the first `count` seeds as Python objects."""
    if labels.rows is not None:
        return vertices.plain_ids(labels.rows[:count])
    return plain_ids([labels.column], np.arange(min(count, len(labels.column))))
