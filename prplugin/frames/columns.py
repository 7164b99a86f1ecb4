"""Columns of the endpoints and the weights: the same rules for every frame library."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from prplugin.errors import ColumnNotFoundError, InvalidEdgesError, InvalidOptionError, listed

__all__ = ["KNOWN_PAIRS", "Columns", "positions", "resolve"]

KNOWN_PAIRS = (("src", "dst"), ("source", "destination"), ("source", "target"), ("from", "to"))
"""Pairs of columns that are looked for in this order if none are named."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Positions of the columns in the frame, and their names; several where a vertex has several columns."""

    source: list[int]
    destination: list[int]
    weight: int | None
    source_names: list[Hashable]
    destination_names: list[Hashable]
    weight_name: Hashable

    @property
    def vertex_names(self) -> list[Hashable]:
        """Names of the vertex columns in the result: `vertex`, or the source's names where there are several."""
        return ["vertex"] if len(self.source) == 1 else self.source_names

    def alone(self) -> tuple[list[int], Columns]:
        """Return the positions of the columns in use, and where each is in a frame of those alone."""
        used = sorted({*self.source, *self.destination, *([] if self.weight is None else [self.weight])})
        return used, replace(
            self,
            source=[used.index(position) for position in self.source],
            destination=[used.index(position) for position in self.destination],
            weight=None if self.weight is None else used.index(self.weight),
        )

    def within(self, labels: Sequence[Hashable], where: str) -> Columns:
        """Return the positions of the columns, found by name, in one part of the frame; `where` names it in messages.

        Raises
        ------
        ColumnNotFoundError
            If a column is absent.
        InvalidEdgesError
            If a column is there more than once.
        """
        return replace(
            self,
            source=[_position(labels, name, where) for name in self.source_names],
            destination=[_position(labels, name, where) for name in self.destination_names],
            weight=None if self.weight_name is None else _position(labels, self.weight_name, where),
        )


def resolve(labels: Sequence[Hashable], source: object, destination: object, weight: Hashable) -> Columns:
    """Find the columns of a frame with these labels.

    Raises
    ------
    ColumnNotFoundError
        If a named column is absent, or none is named and no known pair is present.
    InvalidEdgesError
        If a named column is there more than once.
    InvalidOptionError
        If the names do not go together.
    """
    if source is None and destination is None:
        source, destination = _known_pair(labels)
    if source is None or destination is None:
        absent = "source" if source is None else "destination"
        raise InvalidOptionError(f"{absent} is not given: name both ends of the edges, or neither.")
    sources, destinations = _names("source", source), _names("destination", destination)
    if len(sources) != len(destinations):
        raise InvalidOptionError(
            f"source names {len(sources)} columns and destination {len(destinations)}: "
            "a vertex has the same columns at both ends."
        )
    if sources == destinations:
        raise InvalidOptionError(
            f"source and destination are both {_quoted(sources)}: an edge needs two ends. Name the column of each end."
        )
    if len(sources) > 1 and "pagerank" in sources:
        raise InvalidOptionError(
            "a source column is named 'pagerank', which is the name of the result's column of ranks. Rename it first."
        )
    return Columns([], [], None, sources, destinations, weight).within(labels, "the frame")


def _known_pair(labels: Sequence[Hashable]) -> tuple[str, str]:
    for pair in KNOWN_PAIRS:
        if all(positions(labels, name) for name in pair):
            return pair
    pairs = ", ".join("/".join(pair) for pair in KNOWN_PAIRS)
    raise ColumnNotFoundError(
        f"none of the pairs of columns {pairs} is in the frame. {_present(labels)} "
        "Name the two columns: pagerank(edges, source, destination)."
    )


def _names(role: str, names: object) -> list[Hashable]:
    several = list(names) if isinstance(names, list) else [names]
    if not several:
        raise InvalidOptionError(f"{role} is an empty list: name at least one column.")
    for name in several:
        if not isinstance(name, Hashable):
            raise InvalidOptionError(f"{role} must be a column name or a list of them, not {names!r}.")
    if len(set(several)) < len(several):
        raise InvalidOptionError(f"{role} names a column twice: {_quoted(several)}.")
    return several


def positions(labels: Sequence[Hashable], name: Hashable) -> list[int]:
    """Return the positions at which a column name stands; NaN is a name, too, and equal to itself."""
    return [position for position, label in enumerate(labels) if _same(label, name)]


def _same(label: Hashable, name: Hashable) -> bool:
    if label is name:
        return True
    if isinstance(label, float) and isinstance(name, float) and math.isnan(label):
        return math.isnan(name)
    try:
        return bool(label == name)
    except TypeError:  # pandas.NA, of which nothing is known
        return False


def _position(labels: Sequence[Hashable], name: Hashable, where: str) -> int:
    found = positions(labels, name)
    if not found:
        raise ColumnNotFoundError(f"there is no column {name!r} in {where}. {_present(labels)}")
    if len(found) > 1:
        raise InvalidEdgesError(
            f"column {name!r} is in {where} {len(found)} times, at positions {listed(found)}. "
            "Rename or drop all but one."
        )
    return found[0]


def _quoted(names: Sequence[Hashable]) -> str:
    return listed([repr(name) for name in names], shown=20)


def _present(labels: Sequence[Hashable]) -> str:
    if not labels:
        return "It has no columns."
    return f"Its columns are {_quoted(labels)}."
