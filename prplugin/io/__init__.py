"""Read edges from files and write ranks to files."""

from __future__ import annotations

from collections.abc import Hashable

from prplugin.io.formats import input_format, is_standard_output
from prplugin.io.selection import EdgeFile, Ids, Selection
from prplugin.io.write import check_output, write_frame

__all__ = ["EdgeFile", "check_output", "is_standard_output", "read_edges", "write_frame"]


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
) -> EdgeFile:
    """Read the edges in a file: Parquet, CSV, TSV, SNAP text or Matrix Market, with .gz or .zst after it or not.

    Parameters
    ----------
    path : str
        "-" is standard input, as TSV unless `format` says otherwise.
    source, destination : lists of column names, optional
        As for `prplugin.pagerank`. A text file without a header has the columns source, destination and weight.
    weight : column name, optional
        Not given: no weights, save for those of a Matrix Market file.
    format : {"parquet", "csv", "tsv", "snap", "mtx"}, optional
        Not given: by the end of the name.
    header : bool, optional
        Whether the first line of CSV, TSV or SNAP text names the columns. Not given: it does unless it is all numbers.
    ids : {"auto", "integer", "string"}
        What the ids in CSV, TSV or SNAP text are. "auto": integers where most of the first lines have integers.
    unweighted : bool, default False
        Leave the values of a Matrix Market file aside.

    Returns
    -------
    EdgeFile
        The columns that were asked for, and how to rank them.

    Raises
    ------
    InvalidEdgesError, ColumnNotFoundError
        If the file cannot be read as edges: the message names the file, and of text the line.
    OSError
        If it cannot be opened.
    """
    name, compression = input_format(path, format)
    selection = Selection(path, source, destination, weight, header, ids, unweighted)
    # Each reader imports pyarrow, so only the one that is needed.
    if name == "parquet":
        from prplugin.io import parquet

        return parquet.read(selection, compression)
    if name == "mtx":
        from prplugin.io import matrix_market

        return matrix_market.read(selection, compression)
    from prplugin.io import text

    return text.read(selection, compression, {"csv": ",", "tsv": "\t"}.get(name))
