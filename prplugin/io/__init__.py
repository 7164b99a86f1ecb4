"""Read edges from files and write ranks to files."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from prplugin.errors import InvalidOptionError
from prplugin.io.formats import described, input_format, is_standard_output
from prplugin.io.selection import EdgeFile, Ids, Missing, Selection
from prplugin.io.write import check_output, write_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EdgeFile", "check_output", "is_standard_output", "read_edges", "read_values", "write_frame"]


def read_edges(
    path: str,
    source: list[Hashable] | None = None,
    destination: list[Hashable] | None = None,
    weight: Hashable = None,
    *,
    format: str | None = None,  # noqa: A002 - the name that users know it by
    header: bool | None = None,
    ids: Ids = "auto",
    unweighted: bool = False,
    delimiter: str | None = None,
    missing: Missing = "error",
) -> EdgeFile:
    """Read the edges in a file: Parquet, CSV, TSV, SNAP text or Matrix Market, also compressed (.gz, .zst).

    The path "-" is standard input. The other parameters are the options of the command line, whose help describes them:
    see `prplugin.cli.options`. Errors name the file and, for text, the line.
    """
    name, compression = input_format(path, format)
    if delimiter is not None and (len(delimiter.encode()) != 1 or delimiter in '"\r\n' or name in ("parquet", "mtx")):
        raise InvalidOptionError(
            f"{described(path)}: delimiter {delimiter!r} must be one ASCII character other than a quote or a line end, "
            "for CSV, TSV or SNAP text."
        )
    selection = Selection(path, source, destination, weight, header, ids, unweighted, delimiter, missing)
    # Lazy imports, since each reader imports pyarrow.
    if name == "parquet":
        from prplugin.io import parquet

        return parquet.read(selection, compression)
    if name == "mtx":
        from prplugin.io import matrix_market

        return matrix_market.read(selection, compression)
    from prplugin.io import text

    return text.read(selection, compression, name)


def read_values(path: str, kinds: dict[str, str]) -> pd.DataFrame:
    """Read per-vertex values from Parquet, CSV, TSV or SNAP text: the columns in `kinds` that the file has.

    Columns of text are converted to their kind: "integer", "string", or "weight" for a number of at least 0. Text
    without a header has the columns of `kinds` in their order.

    Raises ColumnNotFoundError: if the file has other columns, one of which may be meant, but not `values`.
    """
    name, compression = input_format(path)
    selection = Selection(path)
    if name == "mtx":
        raise InvalidOptionError(f"{path}: a matrix has no values by vertex. Pass CSV, TSV, SNAP text or Parquet.")
    if name == "parquet":
        from prplugin.io import parquet

        return parquet.read_values(selection, compression, list(kinds))
    from prplugin.io import text

    return text.read_values(selection, compression, name, kinds)
