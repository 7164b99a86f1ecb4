"""Arguments and result of `read_edges`."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prplugin.errors import ColumnNotFoundError, InvalidEdgesError, InvalidOptionError, PageRankError, counted, listed
from prplugin.frames.columns import Columns, resolve
from prplugin.frames.suggested import columns_present
from prplugin.io.formats import described
from prplugin.options import Ids, Missing

TABLES = "parquet", "feather", "jsonl"  # formats with types, whose columns have no positions
RANKS = "pagerank"  # column of a ranking in a file, which has values by vertex


@dataclass(frozen=True)
class EdgeFile:
    """Edges from a file: a frame of only the endpoint and weight columns, and the columns of the file.

    `frame` is a `prplugin.frames.parquet.Opened` if the files are of Parquet, and a list of frames, one per file, if
    several are of text.

    `vertices` is None unless the file names all vertices. `directed` is False if each row is an undirected edge,
    and `bipartite` True if the two columns hold ids of different vertices.
    `dropped` is the number of rows dropped because an endpoint is missing, and `kept` the numbers of the others in the
    file, if messages count rows. `rule` has the options of `Graph.rank` by
    which a benchmark ranks the graph, if the file states them. `notes` say what else a reader found and skipped.
    """

    frame: Any
    columns: Columns
    vertices: NDArray[np.int64] | None = None
    directed: bool = True
    bipartite: bool = False
    dropped: int = 0
    kept: NDArray[np.integer] | None = None
    rule: Mapping[str, object] | None = None
    notes: tuple[str, ...] = ()


def missing_endpoints(count: int) -> str:
    """Return a message about rows without an endpoint."""
    rows = counted(count, "row has", "rows have")
    return f"{rows} a missing endpoint. Correct the file, or pass missing='drop' to drop such rows."


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
    comment: str | None = None
    skip: int = 0
    null: Sequence[str] = ()
    missing: Missing = "error"
    packed: bool = False
    format: str = ""
    by: list[Hashable] | None = None
    time: Hashable = None

    @property
    def name(self) -> str:
        """Name of the file in messages."""
        return described(self.path)

    def resolved(self, labels: Sequence[Hashable], weight: str | None = None, *, hint: str = "") -> Columns:
        """Find the columns in the labels of the file; `weight` is the default weight column.

        Raises the errors of `prplugin.frames.columns.resolve`, prefixed with the file name and followed by `hint`.
        """
        labels = [*labels]
        try:
            source, destination = (
                ends and [self._label(role, end, labels) for end in ends]
                for role, ends in (("source", self.source), ("destination", self.destination))
            )
            named = None if self.weight is None else self._label("weight", self.weight, labels)
            groups = self.by and [self._label("by", name, labels) for name in self.by]
            time = None if self.time is None else self._label("time", self.time, labels)
            columns = resolve(labels, source, destination, weight if named is None else named, time, by=groups)
        except PageRankError as error:
            raise type(error)(f"{self.name}: {error}{hint}") from error
        if columns.weight in (*columns.source, *columns.destination):
            raise InvalidOptionError(f"{self.name}: column {self.weight!r} is named as an endpoint and as the weight.")
        return columns

    def with_times(self, frame: Any, found: Columns) -> Any:
        """Return a frame whose times, if they are text, are numbers or timestamps of ISO 8601; raise for others."""
        label = found.time_name
        if found.time is None or frame[label].dtype.kind in "iufM":
            return frame
        import pandas as pd  # loaded by the readers

        text = frame[label]
        times = numbers = pd.to_numeric(text, errors="coerce")
        if numbers.isna().any():
            try:
                times = pd.to_datetime(text, format="ISO8601", errors="coerce")
            except ValueError:  # of several offsets
                times = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
            if times.isna().any():
                neither = np.flatnonzero(times.isna() & numbers.isna())
                row = int(neither[0]) if neither.size else int(np.flatnonzero(times.isna())[0])
                raise InvalidEdgesError(
                    f"{self.name}: column {label!r} has {text.iloc[row]!r} in row {row:,} of those read (counted from "
                    "0): write all times as numbers, or all by ISO 8601."
                )
        frame = frame.copy(deep=False)
        frame[label] = times
        return frame

    def position(self, name: Hashable) -> int | None:
        """Return the position from 0 that a number stands for, or its digits, if no column has that name."""
        found = self.format not in TABLES and not isinstance(name, bool) and re.fullmatch("[1-9][0-9]{0,8}", str(name))
        return int(str(name)) - 1 if found else None

    def _label(self, role: str, name: Hashable, labels: list[Hashable]) -> Hashable:
        """Return the label of a column given by its name or position; make it unique in `labels` if it is not."""
        places = [place + 1 for place, label in enumerate(labels) if label == name]
        if self.format in TABLES or len(places) == 1:
            return name
        if places:
            raise InvalidOptionError(
                f"column {name!r} is there {len(places)} times: name it by its position, {role}={places[0]} or "
                f"{role}={places[-1]}."
            )
        if str(name) in labels:  # an integer
            return self._label(role, str(name), labels)
        position = self.position(name)
        if position is None:
            return name
        if position >= len(labels):
            raise ColumnNotFoundError(
                f"there is no column {name}, by name or by position: {columns_present(labels, None)}"
            )
        if labels.count(labels[position]) > 1:
            labels[position] = f"{labels[position]} (column {position + 1})"
        label: Hashable = labels[position]
        return label

    def columns_read(self, found: Columns, header: Sequence[str] | None, width: int) -> str:
        """Return a phrase that says which columns are read, of how many."""

        def listed_ends(places: list[int]) -> str:
            return ", ".join(f"{place + 1}{f' ({header[place]})' if header else ''}" for place in places)

        weight = "" if found.weight is None else f", weight {listed_ends([found.weight])}"
        return f"columns {listed_ends(found.source)} -> {listed_ends(found.destination)}{weight} of {width:,} read"

    def values_by_name(self, labels: Sequence[Hashable], names: Collection[str]) -> dict[str, Hashable]:
        """Return the columns of a file of values by vertex: the label of each of `names` that it has.

        A file of one column has vertices. A column of ranks has values.

        Raises ColumnNotFoundError: if the file has columns besides `names`, but no values.
        """
        if len(labels) == 1:
            return {next((name for name in names if name == labels[0]), next(iter(names))): labels[0]}
        found: dict[str, Hashable] = {name: name for name in names if name in labels}
        if "values" in names and RANKS in labels:
            found.setdefault("values", RANKS)
        others = [repr(label) for label in labels if label not in names]
        if others and "values" not in found:
            raise ColumnNotFoundError(
                f"{self.name} has no column 'values', but {listed(others)}: rename the column of values to 'values', "
                "or drop the column."
            )
        return found
