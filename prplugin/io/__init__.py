"""Read edges from files and write ranks to files."""

from __future__ import annotations

from collections.abc import Hashable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from prplugin.errors import InvalidOptionError
from prplugin.io.formats import described, input_format, is_standard_output
from prplugin.io.selection import EdgeFile, Selection
from prplugin.io.write import check_output, write_frame

if TYPE_CHECKING:
    import pandas as pd

    from prplugin.io.adjacency import AdjacencyFile

__all__ = ["EdgeFile", "check_output", "is_standard_output", "read_edges", "read_values", "write_frame"]


def read_edges(
    path: str,
    source: list[Hashable] | None = None,
    destination: list[Hashable] | None = None,
    weight: Hashable = None,
    *,
    format: str | None = None,  # noqa: A002 - the name that users know it by
    **others: Any,
) -> EdgeFile | AdjacencyFile:
    """Read the edges in a file of any of `prplugin.io.formats.FORMATS`; text also compressed (.gz, .zst).

    The path "-" is standard input. The other parameters are those of `Selection`. They are options of the command line,
    whose help describes them: see `prplugin.cli.options`. Errors name the file and, for text, the line.
    """
    found, compression = input_format(path, format)
    selection = Selection(path, source, destination, weight, **others, format=found.name)
    is_text, delimiter = found.reader == "text.read", selection.delimiter
    if delimiter is not None and (len(delimiter.encode()) != 1 or delimiter in '"\r\n' or not is_text):
        raise InvalidOptionError(
            f"{described(path)}: delimiter {delimiter!r} must be one ASCII character other than a quote or a line end, "
            "for CSV, TSV or SNAP text."
        )
    module, function = found.reader.split(".")
    readers = import_module(f"prplugin.io.{module}")  # most import pyarrow
    file: EdgeFile | AdjacencyFile = getattr(readers, function)(selection, compression)
    return file


def read_values(path: str, kinds: dict[str, str]) -> pd.DataFrame:
    """Read per-vertex values from Parquet, CSV, TSV or SNAP text: the columns in `kinds` that the file has.

    Columns of text are converted to their kind: "integer", "string", or "weight" for a number of at least 0. Text
    without a header has the columns of `kinds` in their order.

    Raises ColumnNotFoundError: if the file has other columns, one of which may be meant, but not `values`.
    """
    found, compression = input_format(path)
    module = found.reader.split(".")[0]
    if module not in ("parquet", "text"):
        raise InvalidOptionError(f"{path}: a graph has no values by vertex. Pass CSV, TSV, SNAP text or Parquet.")
    readers: Any = import_module(f"prplugin.io.{module}")
    values: pd.DataFrame = readers.read_values(Selection(path, format=found.name), compression, kinds)
    return values
