"""What was asked of a file of edges, and what came of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from prplugin.errors import ColumnNotFoundError, InvalidOptionError, PageRankError, listed
from prplugin.frames.columns import KNOWN_PAIRS, Columns, resolve
from prplugin.io.formats import described

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EdgeFile", "Ids", "Selection"]

Ids: TypeAlias = Literal["auto", "integer", "string"]


@dataclass(frozen=True)
class EdgeFile:
    """Edges from a file, and how to rank them.

    `frame` (pandas.DataFrame): The columns of the ends and of the weight, and no others.
    `source`, `destination`: lists of column names.
    `weight`: column name, or None.
    `vertices` (array of ids, or None): All vertices, where the file says how many there are.
    `directed`: False: the file says that each row is an edge both ways.
    """

    frame: pd.DataFrame
    source: list[Hashable]
    destination: list[Hashable]
    weight: Hashable = None
    vertices: NDArray[np.int64] | None = None
    directed: bool = True

    def graph_arguments(self) -> dict[str, Any]:
        """Give the arguments of `prplugin.Graph` that say the same."""
        return {
            "source": self.source if len(self.source) > 1 else self.source[0],
            "destination": self.destination if len(self.destination) > 1 else self.destination[0],
            "weight": self.weight,
            "vertices": self.vertices,
            "directed": self.directed,
        }


@dataclass(frozen=True)
class Selection:
    """A file, the columns that were named and how to take its text: the arguments of `read_edges`."""

    path: str
    source: list[Hashable] | None
    destination: list[Hashable] | None
    weight: Hashable
    header: bool | None
    ids: Ids
    unweighted: bool

    @property
    def name(self) -> str:
        """What messages call the file."""
        return described(self.path)

    @property
    def named(self) -> set[Hashable]:
        """Every column that was named."""
        return {*(self.source or ()), *(self.destination or ()), self.weight} - {None}

    def resolved(self, labels: Sequence[Hashable], weight: Hashable = None, *, hint: str = "") -> Columns:
        """Find the columns among those of the file; `weight` if none was named.

        Raises ColumnNotFoundError, InvalidEdgesError, InvalidOptionError: as `prplugin.frames.columns.resolve`, with
        the name of the file before it and the hint behind.
        """
        named = self.source is not None or self.destination is not None
        if not named and not any(set(pair) <= set(labels) for pair in KNOWN_PAIRS):
            pairs = ", ".join("/".join(pair) for pair in KNOWN_PAIRS)
            raise ColumnNotFoundError(
                f"{self.name}: none of the pairs of columns {pairs} is in it. Its columns are "
                f"{listed([repr(label) for label in labels], shown=20)}. "
                f"Name the two ends of the edges with --source and --destination.{hint}"
            )
        try:
            columns = resolve(labels, self.source, self.destination, weight if self.weight is None else self.weight)
        except PageRankError as error:
            raise type(error)(f"{self.name}: {error}{hint}") from error
        if columns.weight in (*columns.source, *columns.destination):
            raise InvalidOptionError(f"{self.name}: column {self.weight!r} is named as an end and as the weight.")
        return columns
