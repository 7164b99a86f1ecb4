"""Arguments and result of `read_edges`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from prplugin.errors import ColumnNotFoundError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames.columns import Columns, resolve
from prplugin.io.formats import described

Ids: TypeAlias = Literal["auto", "integer", "string"]
Missing: TypeAlias = Literal["error", "drop"]


@dataclass(frozen=True)
class EdgeFile:
    """Edges from a file: a frame of only the endpoint and weight columns, and the columns of the file.

    `frame` is a `prplugin.frames.parquet.Opened` if the files are of Parquet, and a list of frames, one per file, if
    several are of text.

    `vertices` is None unless the file names all vertices. `directed` is False if each row is an undirected edge.
    `dropped` is the number of rows dropped because an endpoint is missing. `rule` has the options of `Graph.rank` by
    which a benchmark ranks the graph, if the file states them.
    """

    frame: Any
    columns: Columns
    vertices: NDArray[np.int64] | None = None
    directed: bool = True
    dropped: int = 0
    rule: Mapping[str, Any] | None = None


def missing_endpoints(count: int) -> str:
    """Return a message about rows without an endpoint."""
    rows = counted(count, "row has", "rows have")
    return f"{rows} a missing endpoint. Correct the file, or pass --missing drop to drop such rows."


@dataclass(frozen=True)
class Selection:
    """A file, the columns to read and how to parse its text: the arguments of `read_edges`.

    `packed`: Whether the graph will be packed. A reader that can do so piece by piece does.
    `format`: Name of the format.
    """

    path: str
    source: list[Hashable] | None = None
    destination: list[Hashable] | None = None
    weight: Hashable = None
    header: bool | None = None
    ids: Ids = "auto"
    unweighted: bool = False
    delimiter: str | None = None
    missing: Missing = "error"
    packed: bool = False
    format: str = ""

    @property
    def name(self) -> str:
        """Name of the file in messages."""
        return described(self.path)

    def resolved(self, labels: Sequence[Hashable], weight: Hashable = None, *, hint: str = "") -> Columns:
        """Find the columns in the labels of the file; `weight` is the default weight column.

        Raises the errors of `prplugin.frames.columns.resolve`, prefixed with the file name and followed by `hint`.
        """
        try:
            columns = resolve(labels, self.source, self.destination, weight if self.weight is None else self.weight)
        except PageRankError as error:
            raise type(error)(f"{self.name}: {error}{hint}") from error
        if columns.weight in (*columns.source, *columns.destination):
            raise InvalidOptionError(f"{self.name}: column {self.weight!r} is named as an endpoint and as the weight.")
        return columns

    def require_values(self, labels: Sequence[str], names: Sequence[str]) -> None:
        """Raise if a file of values by vertex has columns besides `names`, but no column `values`."""
        others = [repr(label) for label in labels if label not in names]
        if others and "values" not in labels:
            raise ColumnNotFoundError(
                f"{self.name} has no column 'values', but {listed(others)}: rename the column of values to 'values', "
                "or drop the column."
            )
