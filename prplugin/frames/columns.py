"""Selection of the endpoint, weight and time columns, and common types of ids, by the same rules for every library."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from prplugin.errors import (
    ColumnNotFoundError,
    InvalidEdgesError,
    InvalidOptionError,
    PageRankError,
    counted,
    errors_of,
    listed,
)
from prplugin.frames.remedies import cast_advice, remedy
from prplugin.frames.suggested import column_advice, columns_present, endpoints_advice, quoted_names
from prplugin.suggestions import plain
from prplugin.types.arrays import MemorySpace, is_a
from prplugin.types.edges import Coo, Grouped, Integers

KNOWN_PAIRS = (("src", "dst"), ("source", "destination"), ("source", "target"), ("from", "to"))
"""Default names of the endpoint columns, in order of precedence."""

WEIGHTS = frozenset(["weight", "weights", "wt", "wts", "wgt", "wgts", "w", "edgeweight", "edgeweights"])
"""Plain names of probable weight columns, for `Columns.unused_weight`."""


Frame: TypeAlias = Any  # a frame of the library
Dtype: TypeAlias = Any  # the type of a column, of NumPy or the library


class Column(Protocol):
    """One column of ids: a Series or an array of the library."""

    @property
    def dtype(self) -> Dtype:
        """Type of the entries."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def astype(self, dtype: Dtype, /) -> Any: ...
    def take(self, indices: Any, /) -> Any: ...
    def tolist(self) -> list[Any]: ...
    def copy(self) -> Any: ...
    def argmin(self) -> Any: ...
    def argmax(self) -> Any: ...


EdgesById: TypeAlias = Callable[[list[Integers]], tuple[Coo | Grouped, Integers]]
"""Factorizes columns of integer ids: sources, destinations and, optionally, more; returns edges and distinct ids."""


def is_plain_frame(library: str, frame: object) -> bool:
    """Return whether a frame is of pandas or cuDF, and cudf.pandas, whose proxies either may be, is not in use."""
    return is_a(frame, library, "DataFrame") and "cudf.pandas" not in sys.modules


class GivenTypes(NamedTuple):
    """Types of one or several libraries that are accepted for per-vertex arguments."""

    indexes: tuple[Any, ...]  # indexes and arrays of vertices, without values
    series: tuple[Any, ...]  # values, indexed by vertex
    frames: tuple[Any, ...]


class ColumnInfo(NamedTuple):
    """Properties of a column of ids in one part of a frame; `where` names the part in messages.

    `sample` is in host memory. It holds the minimum and maximum of integers, and the first id of other kinds; it is
    empty for a column without rows.
    """

    kind: str
    rows: int
    dtype: Any
    sample: Any
    where: str = ""


class Columns(NamedTuple):
    """Positions and names of the columns in a frame; lists with several entries if a vertex has several columns."""

    source: list[int]
    destination: list[int]
    weight: int | None
    source_names: list[Hashable]
    destination_names: list[Hashable]
    weight_name: Hashable
    time: int | None = None
    time_name: Hashable = None
    clock: Any = None  # a `prplugin.frames.times.Clock`
    unused_weight: Hashable = None
    """Name of a probable weight column, if no weight is named."""
    missing: str = "error"  # or "drop", of rows with a null endpoint
    by: int = 0
    """Number of columns of groups, which are the first of both endpoints."""
    bipartite: bool = False

    @property
    def vertex_names(self) -> list[Hashable]:
        """Names of the vertex columns in the result: those of groups, and `vertex` or several source columns."""
        groups, ids = self.source_names[: self.by], self.source_names[self.by :]
        return [*groups, "vertex"] if len(ids) == 1 else self.source_names

    @property
    def id_names(self) -> dict[str, Any]:
        """Names of the columns of both endpoints without those of groups, by argument."""
        return {"source": self.source_names[self.by :], "destination": self.destination_names[self.by :]}

    def id_labels(self, *, vertices: bool = False) -> list[list[str]]:
        """Return the labels of the source, destination and, optionally, additional vertex columns, for messages."""
        labels = [[f"column {name!r}" for name in names] for names in (self.source_names, self.destination_names)]
        if vertices:
            several = len(self.source) > 1
            labels.append([f"vertices[{name!r}]" if several else "vertices" for name in self.vertex_names])
        return labels

    def in_use(self) -> tuple[list[int], Columns]:
        """Return the positions of the columns in use, and the `Columns` of a frame of only these columns."""
        values = [position for position in (self.weight, self.time) if position is not None]
        used = sorted({*self.source, *self.destination, *values})
        return used, self._replace(
            source=[used.index(position) for position in self.source],
            destination=[used.index(position) for position in self.destination],
            weight=None if self.weight is None else used.index(self.weight),
            time=None if self.time is None else used.index(self.time),
        )

    def restricted(self, frame: Frame) -> tuple[Frame, Columns]:
        """Return a Dask frame and `Columns` restricted to the columns in use, so that others are not read."""
        used, columns = self.in_use()
        labels = list(frame.columns)
        return (frame[[labels[position] for position in used]] if len(used) < len(labels) else frame), columns

    def within(
        self, labels: Sequence[Hashable], where: str, frame: object = None, *, by_argument: bool = True
    ) -> Columns:
        """Find the columns by name in a part of the frame, `frame` if given, which `where` names in messages.

        `by_argument`: Whether arguments of the call name them, and not the graph.
        """
        used = [*self.source_names, *self.destination_names, self.weight_name, self.time_name]

        def find(name: Hashable, role: str, count: int = 1) -> int:
            return _position(labels, where, frame, used, name, role if by_argument and count == 1 else None)

        return self._replace(
            source=[find(name, "source", len(self.source_names)) for name in self.source_names],
            destination=[find(name, "destination", len(self.source_names)) for name in self.destination_names],
            weight=None if self.weight_name is None else find(self.weight_name, "weight"),
            time=None if self.time_name is None else find(self.time_name, "time"),
        )


def resolve(
    labels: Sequence[Hashable], source: object, destination: object, weight: Hashable, time: Hashable = None,
    clock: object = None, frame: object = None, part: str | None = None, by: object = None,
) -> Columns:  # fmt: skip
    """Find the columns of a frame with these labels; without names, by the known pairs.

    `frame`: The frame; messages name the levels of its index. `part`: Argument that is a frame with the columns of a
    graph, which no other argument names.
    `by`: Columns of groups.
    """
    if source is None and destination is None:
        source, destination = _known_pair(labels, frame, part)
    for role, given in (("source", source), ("destination", destination), ("weight", weight), ("by", by)):
        if given is not None and not isinstance(given, str):
            _check_name(labels, role, given)
    if source is None or destination is None:
        absent = "source" if source is None else "destination"
        raise InvalidOptionError(f"{absent} is not given: name both ends of the edges, or neither.")
    sources, destinations = _names("source", source), _names("destination", destination)
    if len(sources) != len(destinations):
        raise InvalidOptionError(
            f"source names {len(sources)} columns and destination {len(destinations)}: "
            "a vertex has the same columns at both ends."
            + "".join(
                column_advice(names[0], role, labels, [])
                for role, names in (("source", sources), ("destination", destinations))
                if isinstance(names[0], tuple) and not positions(labels, names[0])
            )
        )
    if sources == destinations:
        raise InvalidOptionError(
            f"source and destination are both {quoted_names(sources)}: an edge needs two ends. Name the column of each "
            "end."
        )
    if len(sources) > 1 and "pagerank" in sources:
        raise InvalidOptionError(
            "a source column is named 'pagerank', which is the name of the result's column of ranks. Rename it first."
        )
    groups = [] if by is None else _names("by", by)
    _check_groups(groups, sources, destinations, weight, time)
    sources, destinations = groups + sources, groups + destinations
    unused_weight = None
    if weight is None:
        used = {*sources, *destinations}
        rest = (label for label in labels if isinstance(label, str) and label not in used)
        unused_weight = next((label for label in rest if plain(label) in WEIGHTS), None)
    columns = Columns([], [], None, sources, destinations, weight, None, time, clock, unused_weight, by=len(groups))
    return columns.within(labels, part or "the frame", frame, by_argument=part is None)


def _check_groups(groups: list[Hashable], sources: list[Hashable], *others: object) -> None:
    """Raise for a column of groups that is another one as well, or has the name of another one of the result."""
    destinations, *values = others
    for name in groups:
        if name in (*sources, *destinations, *values):  # type: ignore[misc]  # a list
            raise InvalidOptionError(
                f"by names column {name!r}, which is an endpoint, weight or time as well: name one of groups."
            )
        if name in ("pagerank", "seed") or (name == "vertex" and len(sources) == 1):
            raise InvalidOptionError(f"by names column {name!r}, a name that the result needs: rename the column.")


def _known_pair(labels: Sequence[Hashable], frame: object, part: str | None) -> tuple[str, str]:
    """Return the first known pair in the frame, or else the only case-insensitive match."""
    for pair in KNOWN_PAIRS:
        if all(positions(labels, name) for name in pair):
            return pair
    matches = [[_matching_labels(labels, name) for name in pair] for pair in KNOWN_PAIRS]
    present = [pair for pair in matches if all(pair)]
    if len(present) == 1 and [len(names) for names in present[0]] == [1, 1]:
        (source,), (destination,) = present[0]
        return source, destination
    if present:
        names = dict.fromkeys(name for pair in present for end in pair for name in end)
        raise ColumnNotFoundError(
            f"several columns may be the ends of the edges: {quoted_names(list(names))}. "
            "Name the two that are: pagerank(edges, source, destination)."
        )
    pairs = ", ".join("/".join(pair) for pair in KNOWN_PAIRS)
    if part is not None:
        raise ColumnNotFoundError(
            f"none of the pairs of columns {pairs} is in {part}. {columns_present(labels, frame)} Rename two of them."
        )
    raise ColumnNotFoundError(
        f"none of the pairs of columns {pairs} is in the frame. {columns_present(labels, frame)} Name "
        f"the two columns: pagerank(edges, source, destination).{endpoints_advice(labels, frame)}"
    )


def _matching_labels(labels: Sequence[Hashable], name: str) -> list[str]:
    """Return the exact match of a name, or else all case-insensitive matches."""
    if any(isinstance(label, str) and label == name for label in labels):  # pandas.NA equals no name, nor differs
        return [name]
    return [label for label in labels if isinstance(label, str) and label.casefold() == name]


def _check_name(labels: Sequence[Hashable], role: str, given: object) -> None:
    """Raise for values instead of a column name, and for a number that is probably meant as alpha."""
    if isinstance(given, float) and role == "source" and 0 <= given < 1 and not positions(labels, given):
        raise InvalidOptionError(
            f"source is {given!r}, which is no column. Did you mean alpha={given!r}? All arguments but the first four "
            "are passed by name."
        )
    for name in given if isinstance(given, list) else [given]:
        if any(label is name for label in labels):
            continue
        try:
            hash(name)
            bool(name == name)  # noqa: PLR0124  # raises for expressions and columns
        except (TypeError, ValueError):
            raise InvalidOptionError(
                f"{role} must be a column name{'' if role == 'weight' else ' or a list of them'}, not "
                f"{type(name).__module__.split('.')[0]}.{type(name).__qualname__}. {_name_hint(labels, role, name)}"
            ) from None


def _name_hint(labels: Sequence[Hashable], role: str, given: object) -> str:
    meta: Any = getattr(given, "meta", None)  # attribute of polars expressions
    name = meta.output_name() if hasattr(meta, "output_name") else getattr(given, "name", None)
    if isinstance(name, Hashable) and name is not None and positions(labels, name):
        meant = remedy("column", role=role, column=name)
        return f"Did you mean {meant}? Values that are no column yet go into the frame first."
    return f"Add the values to the frame as a column, and pass its name: {role}='name'."


def _names(role: str, names: object) -> list[Hashable]:
    several = list(names) if isinstance(names, list) else [names]
    if not several:
        raise InvalidOptionError(f"{role} is an empty list: name at least one column.")
    if len(set(several)) < len(several):
        raise InvalidOptionError(f"{role} names a column twice: {quoted_names(several)}.")
    return several


def positions(labels: Sequence[Hashable], name: Hashable) -> list[int]:
    """Return the positions of the columns with this name; NaN matches NaN."""
    return [position for position, label in enumerate(labels) if label is name or _equal(label, name)]


def _equal(label: Hashable, name: Hashable) -> bool:
    if isinstance(label, float) and isinstance(name, float) and math.isnan(label):
        return math.isnan(name)
    try:
        return bool(label == name)
    except TypeError:  # the truth value of pandas.NA is undefined
        return False


def _position(
    labels: Sequence[Hashable], where: str, frame: object, used: Sequence[Hashable], name: Hashable, role: str | None
) -> int:
    found = positions(labels, name)
    if not found:
        raise ColumnNotFoundError(
            f"there is no column {name!r} in {where}. {columns_present(labels, frame)}"
            f"{column_advice(name, role, labels, used)}"
        )
    if len(found) > 1:
        raise InvalidEdgesError(
            f"column {name!r} is in {where} {len(found)} times, at positions {listed(found)}. "
            "Rename or drop all but one."
        )
    return found[0]


def always(memory_space: MemorySpace) -> Callable[[object], MemorySpace]:
    """Return the function `memory_space_of` of an adapter that reads all edges to one memory space."""
    return lambda _: memory_space


def labelled(frame: Frame) -> tuple[Frame, list[Hashable]]:
    """Return a frame, and its column labels: `open_frame` of adapters that read frames as they are."""
    return frame, list(frame)


def computed(given: Any, what: str) -> Any:
    """Compute a Dask object, which `what` names in messages; return other objects unchanged."""
    if not hasattr(given, "__dask_graph__"):
        return given
    with errors_of(f"{what}, a Dask object,"):
        return given.compute()


def transposed(table: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return a list of the columns of a list of rows."""
    return [list(column) for column in zip(*table, strict=True)]


def places_of(rows: Sequence[Integers], m: int) -> list[Integers]:
    """Return the positions of rows of sources, destinations and additional vertices in the order of first appearance.

    They are those of `place_scales`, for m edges.
    """
    return [row.astype(np.int64) * scale + shift for row, (scale, shift) in zip(rows, place_scales(m), strict=False)]


def place_scales(m: int) -> tuple[tuple[int, int], ...]:
    """Return a and b of the place a * row + b of a source, a destination and an additional vertex, for m edges."""
    return (2, 0), (2, 1), (1, 2 * m)


# --- common kinds and types -------------------------------------------------------------------------------------------


def check_kinds(
    kinds: list[str], own_kinds: list[str], what: str, error: type[PageRankError] = InvalidEdgesError,
    columns: Sequence[Column] = (),
) -> None:  # fmt: skip
    """Raise `error` if ids that `what` names, in `columns`, are of other kinds than those of the graph."""
    if len(kinds) != len(own_kinds):
        raise error(
            f"{what} has vertices of {counted(len(kinds), 'column')}, but the graph's have {len(own_kinds)}, whose "
            "names in edges are unknown: make the graph from a frame of edges."
        )
    for kind, own_kind, at in zip(kinds, own_kinds, range(len(kinds)), strict=True):
        if "empty" not in (own_kind, kind) and own_kind != kind:
            raise error(
                f"{what} names vertices by ids of kind {kind}, but the graph's are of kind {own_kind}: equal vertices "
                f"need equal ids. {_cast_to_own(kind, own_kind, what, columns[at] if columns else None)}"
            )


def _cast_to_own(kind: str, own_kind: str, what: str, column: Column | None) -> str:
    """Return a sentence on how ids become ids of the kind that a graph has."""
    if (kind, own_kind) == ("integer", "string"):
        return cast_advice("Cast them to strings", "cast to strings", what)
    if (kind, own_kind) == ("string", "integer") and column is not None:
        texts = list(column.to_pandas() if hasattr(column, "to_pandas") else column)
        if all(text.removeprefix("-").isdecimal() and str(int(text)) == text for text in texts):
            return cast_advice("Cast them to integers", "cast to integers", what)
    return "Convert them to that kind."


def same_kind(kinds: list[str], labels: list[str]) -> str:
    """Return the common kind of ids of all columns; raise if kinds differ."""
    filled = [(kind, label) for kind, label in zip(kinds, labels, strict=True) if kind != "empty"]
    for kind, label in filled:
        if kind != filled[0][0]:
            how = "Cast one to the type of the other, so that equal vertices have equal ids."
            if {kind, filled[0][0]} == {"integer", "string"}:
                integers = label if kind == "integer" else filled[0][1]
                how = cast_advice(f"Cast {integers} to strings", "cast to strings", integers)
            raise InvalidEdgesError(
                f"{filled[0][1]} holds ids of kind {filled[0][0]}, but {label} of kind {kind}. {how}"
            )
    return filled[0][0] if filled else "empty"


def in_one_type(arrays: list[Integers], widths: list[bool], labels: Sequence[str]) -> list[Integers]:
    """Cast NumPy or CuPy arrays of integers to one type that holds all values.

    Entries of `widths` are False for arrays of Python integers, which widen the result only if their values require it.
    """
    if all(array.dtype == arrays[0].dtype for array in arrays):
        return arrays
    typed = {array.dtype for array, has_width in zip(arrays, widths, strict=True) if has_width}
    common = (np.result_type(*types) for types in (typed or {np.dtype(np.int64)}, {array.dtype for array in arrays}))
    # NumPy's common type of uint64 and a signed type is float64; their values may fit in one of these two.
    for dtype in (*common, np.dtype(np.uint64), np.dtype(np.int64)):
        if dtype.kind in "iu" and all(_fits(array, dtype) for array in arrays):
            return [array.astype(dtype, copy=False) for array in arrays]
    raise InvalidEdgesError(
        f"{' and '.join(labels)} hold negative ids and ids past 2**63, "
        f"which no one integer type holds. " + cast_advice("Cast them to strings", "cast to strings", labels[0])
    )


def _fits(array: Integers, dtype: np.dtype[np.integer]) -> bool:
    if np.can_cast(array.dtype, dtype) or not array.size:
        return True
    return np.iinfo(dtype).min <= int(array.min()) and int(array.max()) <= np.iinfo(dtype).max


def has_width(dtype: Any) -> bool:
    """Return whether a type of integers, of pandas or cuDF, was chosen by the user: all but Python integers."""
    return dtype.kind not in "Of" or hasattr(dtype, "categories")
