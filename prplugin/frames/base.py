"""What every frame adapter provides, and what the adapters share: values by vertex, seeds, and vertices asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames.columns import Columns
from prplugin.types.arrays import Place, moved, namespace
from prplugin.types.edges import Edges, Floats, GroupedEdges, Integers

__all__ = [
    "SEED",
    "FrameAdapter",
    "IdColumns",
    "Labels",
    "SeedValues",
    "VertexAdapter",
    "converted",
    "ids_and_numbers",
    "read_positions",
    "read_seeds",
    "read_values",
    "refuse_absent_seeds",
    "seed_names",
]

SEED = "seed"
"""Column that tells seeds apart, in arguments and results."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of the seeds in the result.

    Attributes
    ----------
    rows : array of k positions, or None
        Seeds that are vertices.
    column : column of k labels, or None
        Other seeds, as the adapter holds columns.
    """

    rows: Integers | None = None
    column: Any = None


@dataclass(frozen=True, slots=True)
class SeedValues:
    """Values by vertex of several seeds, as given.

    Attributes
    ----------
    bounds : array of k + 1 int64, on the host
        The values of seed j are ``bounds[j]:bounds[j + 1]``.
    rows : array of positions
    values : array of float64
        Finite and at least 0.
    labels : Labels
    """

    bounds: Integers
    rows: Integers
    values: Floats
    labels: Labels


class VertexAdapter(Protocol):
    """Reads what is given by vertex, and writes ranks to frames; vertices are as the adapter holds them."""

    def read_values(self, given: Any, vertices: Any, what: str) -> Floats:
        """Return a distribution given by vertex as an array over all vertices; `what` names the argument."""

    def read_seeds(self, given: Any, vertices: Any, what: str) -> SeedValues:
        """Return the distributions of many seeds."""

    def read_positions(self, given: Any, vertices: Any, what: str) -> Integers:
        """Return the positions of the vertices asked for, in the order given."""

    def write(self, vertices: Any, ranks: Any, rows: Integers | None, labels: Labels | None = None) -> Any:
        """Return a frame of the ranks: of all vertices, or of those at `rows`; with `labels`, of many seeds.

        With `labels`, `ranks` and `rows` have a row per seed.
        """

    def write_ids(self, vertices: Any) -> Any:
        """Return the vertices in the order of the result: a column, or a frame where they have several."""


class FrameAdapter(VertexAdapter, Protocol):
    """Reads edges from one kind of frame, and writes ranks to it: a module or an object.

    `Any` stands for the types of the library.
    """

    place: Place
    """Memory of its arrays."""

    def accepts(self, frame: object) -> bool:
        """Return whether this is a frame of the library, which is looked up in `sys.modules` and never imported."""

    def opened(self, frame: Any) -> tuple[Any, list[Hashable]]:
        """Return the frame as `read` takes it, and its column labels."""

    def read(
        self, frame: Any, columns: Columns, vertices: object, *, by_row: bool = False, lasting: bool = True
    ) -> tuple[Edges | GroupedEdges, Any]:
        """Factorize the endpoints: return the edges by position, and the vertices.

        Parameters
        ----------
        vertices : object
            More vertices, or None.
        by_row : bool
            Whether the rows are needed before edges are grouped by target.
        lasting : bool
            Whether the edges outlive the frame. If not, they may alias its columns.
        """


class IdColumns(Protocol):
    """The primitives from which the functions below read what is given by vertex, for one library of columns."""

    xp: Any
    """NumPy or CuPy."""

    indexes: tuple[Any, ...]
    """Types that hold vertices alone, besides lists."""

    series: tuple[Any, ...]
    """Types that hold values under an index of vertices."""

    frames: tuple[Any, ...]
    """Types of frames."""

    def id_columns(self, given: Any, names: list[Hashable] | None, what: str) -> list[Any]:
        """Return ids as one column each; `names` if vertices have several columns."""

    def ids_and_values(self, given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Any]:
        """Split a dict, a Series indexed by vertex or a frame into columns of ids and a column of values."""

    def numbers(self, column: Any, label: str, noun: str, error: type[PageRankError]) -> Floats:
        """Return a column of finite non-negative numbers as float64."""

    def numbers_of_array(self, given: Any, label: str) -> Floats:
        """Return an array of finite non-negative numbers as float64, in the memory of `xp`."""

    def located(self, vertices: Any, columns: list[Any], what: str) -> Integers:
        """Return the position of each id, -1 where it is not a vertex; ids of another kind are refused."""

    def described(self, columns: list[Any], rows: Integers) -> list[str]:
        """Return the ids in some rows as text, for messages."""

    def one_column(self, columns: list[Any], what: str) -> Any:
        """Concatenate columns."""

    def ids_at(self, vertices: Any, rows: Integers) -> list[Any]:
        """Return the columns of ids of some vertices."""

    def grouped_by_seed(
        self, given: Any, names: list[Hashable], what: str
    ) -> tuple[Integers, Any, list[Any], Floats | None]:
        """Split a frame with a column `seed`: sizes and labels of the seeds, and columns of ids and values by seed."""

    def numbered(self, count: int) -> Any:
        """Return a column of 0..count - 1."""


def converted(given: Any, convert: Callable[[Any], Any]) -> Any:
    """Apply `convert` to what is given by vertex, or to each entry of a list or tuple of it."""
    if type(given) in (list, tuple):
        return type(given)(convert(one) for one in given)
    return convert(given)


def read_values(library: IdColumns, given: Any, vertices: Any, what: str) -> Floats:
    """Return a distribution given by vertex as an array over all vertices, 0 for those not named.

    Parameters
    ----------
    given : dict, Series indexed by vertex, or frame; list, set, tuple or index of vertices; array of n numbers
        A frame has the columns `vertex` (for vertices of several columns: theirs) and `values`. Vertices alone have
        equal values. An array holds a value per vertex, in the order of the result.
    what : str
        Name of the argument, for messages.

    Raises
    ------
    InvalidOptionError
        If a vertex is unknown, repeated or of another kind, if a value is not a finite non-negative number, or if an
        array does not have n values.
    """
    n = len(vertices)
    if _is_array(given):
        if given.shape != (n,):
            raise InvalidOptionError(
                f"{what} is an array of shape {given.shape}, but the graph has {counted(n, 'vertex', 'vertices')}: an "
                "array holds one value per vertex, in the order of graph.vertices. Pass a list to name vertices."
            )
        return library.numbers_of_array(given, what)
    if isinstance(given, library.frames) and SEED in given.columns and SEED not in vertices.names:
        raise InvalidOptionError(
            f"{what} is a frame with a column {SEED!r}, and is one distribution. For many rankings pass it as seeds=."
        )
    columns, values = _distribution(library, given, vertices, what)
    rows = _known_positions(library, columns, vertices, what)
    spread: Floats = library.xp.zeros(n)
    spread[rows] = values
    return spread


def read_seeds(library: IdColumns, given: Any, vertices: Any, what: str) -> SeedValues:
    """Return the distributions of many seeds.

    Parameters
    ----------
    given : list of vertices, each a seed; list of what `read_values` takes; k x n array; or frame
        A frame has the columns `seed`, `vertex` (for vertices of several columns: theirs) and, unless all are 1,
        `values`.

    Raises
    ------
    InvalidOptionError
        As `read_values`; also for no seeds at all, and for lists of vertices and distributions together.
    """
    xp, n = library.xp, len(vertices)
    if _is_array(given) and given.ndim != 1:
        if given.ndim != 2 or given.shape[1] != n or not given.shape[0]:
            raise InvalidOptionError(
                f"{what} is an array of shape {given.shape}: it needs a row per seed and a column for each of the "
                f"{counted(n, 'vertex', 'vertices')}, in the order of graph.vertices."
            )
        matrix = library.numbers_of_array(given, what)
        seeds, rows = xp.nonzero(matrix)
        sizes = moved(xp.bincount(seeds, minlength=len(matrix)), "host")
        return _seed_values(vertices, sizes, rows, matrix[seeds, rows], Labels(column=library.numbered(len(matrix))))
    if isinstance(given, library.frames):
        if SEED not in given.columns:
            raise InvalidOptionError(
                f"{what} is a frame without a column {SEED!r}: it needs one, beside the vertex and perhaps `values`. "
                "One distribution is a personalization."
            )
        sizes, labels, columns, weights = library.grouped_by_seed(given, vertices.names, what)
        values = xp.ones(int(sizes.sum())) if weights is None else weights
        rows = _known_positions(library, columns, vertices, what, sizes)
        return _seed_values(vertices, sizes, rows, values, Labels(column=labels))
    if not isinstance(given, (list, tuple, *library.indexes)) and not _is_array(given):
        raise InvalidOptionError(
            f"{what} must be a list of vertices or of distributions, a frame with a column {SEED!r}, or an array with "
            f"a row per seed, not {type(given).__name__}. For one ranking pass personalization=."
        )
    if not len(given):
        raise InvalidOptionError(f"{what} is empty: it must name at least one seed.")
    distributions = (
        [] if isinstance(given, library.indexes) or _is_array(given) else _distributions(library, given, what)
    )
    if not distributions:
        columns = library.id_columns(given, vertices.names if len(vertices.names) > 1 else None, what)
        rows = _known_positions(library, columns, vertices, what)
        return _seed_values(vertices, np.ones(len(rows), np.int64), rows, xp.ones(len(rows)), Labels(rows=rows))
    parts = [_distribution(library, one, vertices, f"{what}[{at}]") for at, one in enumerate(distributions)]
    columns = [library.one_column([part[0][at] for part in parts], what) for at in range(len(vertices.names))]
    sizes = np.array([len(part[1]) for part in parts])
    rows = _known_positions(library, columns, vertices, what, sizes)
    labels = Labels(column=library.numbered(len(parts)))
    return _seed_values(vertices, sizes, rows, xp.concatenate([part[1] for part in parts]), labels)


def read_positions(library: IdColumns, given: Any, vertices: Any, what: str) -> Integers:
    """Return the positions of vertices, each named once, in the order given.

    Raises
    ------
    InvalidOptionError
        If there are none, or a vertex is unknown, repeated or of another kind.
    """
    if isinstance(given, Mapping):
        raise InvalidOptionError(f"{what} must be a list, Series, index or array of vertices, not a dict.")
    columns = library.id_columns(given, vertices.names if len(vertices.names) > 1 else None, what)
    if not len(columns[0]):
        raise InvalidOptionError(f"{what} is empty: it must name at least one vertex.")
    return _known_positions(library, columns, vertices, what)


def _distribution(library: IdColumns, given: Any, vertices: Any, what: str) -> tuple[list[Any], Floats]:
    """Return columns of ids, and their values."""
    if _is_array(given):
        values = read_values(library, given, vertices, what)
        rows = library.xp.flatnonzero(values)
        return library.ids_at(vertices, rows), values[rows]
    return ids_and_numbers(library, given, vertices.names, what)


def ids_and_numbers(library: IdColumns, given: Any, names: list[Hashable], what: str) -> tuple[list[Any], Floats]:
    """Return columns of ids, and their values: 1 each where vertices alone are given."""
    if isinstance(given, (list, tuple, set, frozenset, *library.indexes)):
        if isinstance(given, (list, tuple)) and (odd := sum(isinstance(one, Mapping) for one in given)):
            raise InvalidOptionError(
                f"{what} is a list with {counted(odd, 'dict')}: a list names vertices. For many rankings pass it as "
                "seeds=."
            )
        given = list(given) if isinstance(given, (set, frozenset)) else given
        columns = library.id_columns(given, names if len(names) > 1 else None, what)
        _require_some(columns[0], what)
        return columns, library.xp.ones(len(columns[0]))
    columns, values = library.ids_and_values(given, names, what)
    _require_some(values, what)
    return columns, library.numbers(values, what, "entry", InvalidOptionError)


def _distributions(library: IdColumns, given: Any, what: str) -> list[Any]:
    """Return the entries if each is a distribution, or none if each is a vertex."""
    kinds = (Mapping, list, set, frozenset, *library.series, *library.frames, *library.indexes)
    odd = [at for at, one in enumerate(given) if not isinstance(one, kinds) and not _is_array(one)]
    if 0 < len(odd) < len(given):
        raise InvalidOptionError(
            f"{what} is a list of distributions, and "
            f"{counted(len(odd), 'entry is', 'entries are')} not: {listed([repr(given[at]) for at in odd])}. "
            "Write {vertex: 1} for a seed that is a vertex, or list vertices alone."
        )
    return [] if odd else list(given)


def _seed_values(vertices: Any, sizes: Integers, rows: Integers, values: Floats, labels: Labels) -> SeedValues:
    seed_names(vertices.names, labels)
    return SeedValues(np.concatenate([[0], np.cumsum(sizes)]), rows, values, labels)


def _known_positions(
    library: IdColumns, columns: list[Any], vertices: Any, what: str, sizes: Integers | None = None
) -> Integers:
    """Return the positions of ids, none of which may be unknown or repeated; `sizes` are of several distributions."""
    xp = library.xp
    try:
        rows = library.located(vertices, columns, what)
    except InvalidEdgesError as error:
        raise InvalidOptionError(str(error)) from error
    if (unknown := xp.flatnonzero(rows < 0)).size:
        raise InvalidOptionError(
            f"{what} names {counted(unknown.size, 'vertex', 'vertices')} not in the graph: "
            f"{listed(library.described(columns, unknown))}. Remove them, or add them to the graph with vertices=."
        )
    keys = rows
    if sizes is not None:
        keys = xp.asarray(np.repeat(np.arange(sizes.size), sizes)) * len(vertices) + rows
    order = xp.argsort(keys, kind="stable")
    if (repeated := xp.sort(order[1:][keys[order[1:]] == keys[order[:-1]]])).size:
        raise InvalidOptionError(
            f"{what} names {counted(int(xp.unique(rows[repeated]).size), 'vertex', 'vertices')} more than once: "
            f"{listed(library.described(columns, repeated))}. Drop all but one, or add up their values."
        )
    return rows


def _require_some(values: Any, what: str) -> None:
    if not len(values):
        raise InvalidOptionError(f"{what} is empty: it must give a positive value to at least one vertex.")


def _is_array(given: object) -> bool:
    return isinstance(given, np.ndarray) or namespace(given) is not np


def seed_names(names: list[Hashable], labels: Labels) -> list[Hashable]:
    """Return the names of the seed columns in the result: `seed`, or the vertex columns' names after "seed_".

    Raises
    ------
    InvalidOptionError
        If the vertices have columns of such names.
    """
    seeds: list[Hashable] = [SEED] if labels.rows is None or len(names) == 1 else [f"{SEED}_{name}" for name in names]
    if taken := [name for name in seeds if name in names]:
        raise InvalidOptionError(
            f"the result of many seeds has a column {taken[0]!r}, and so have the vertices of this graph: rename "
            "it there."
        )
    return seeds


def refuse_absent_seeds(absent: Integers, what: str) -> None:
    """Raise if there are rows without a seed."""
    if absent.size:
        raise InvalidOptionError(
            f"{what} has {counted(absent.size, 'row')} without a seed: {listed(absent)} (counted from 0). Drop or fill "
            "them."
        )
