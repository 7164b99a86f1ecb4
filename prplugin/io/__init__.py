"""Read edges from files and write ranks to files."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from prplugin.errors import InvalidEdgesError, InvalidOptionError, OutOfMemoryError, PageRankError, listed
from prplugin.io.formats import described, input_format, is_standard_output, path_of
from prplugin.io.selection import EdgeFile, Selection
from prplugin.io.write import check_output, write_frame
from prplugin.options import FILE_DEFAULTS, FileOptions, Ids, Missing, check_choice, refuse, validate_bool, validate_int

if TYPE_CHECKING:
    import pandas as pd

    from prplugin.io.adjacency import AdjacencyFile

__all__ = ["EdgeFile", "as_rows", "check_output", "is_standard_output", "read_edges", "read_values", "write_frame"]

Path: TypeAlias = str | os.PathLike[str]


def read_edges(
    path: Path | Sequence[Path],
    source: list[Hashable] | None = None,
    destination: list[Hashable] | None = None,
    weight: Hashable = None,
    *,
    format: str | None = None,  # noqa: A002 - the name that users know it by
    **others: Any,
) -> EdgeFile | AdjacencyFile:
    """Read the edges in a file of any of `prplugin.io.formats.FORMATS`, or in several files of rows, also compressed.

    The path "-" is standard input. The other parameters are those of `Selection`. They are options of the command line,
    whose help describes them: see `prplugin.cli.options`. Errors name the file and, for text, the line.
    """
    given: Any = path if isinstance(path, (list, tuple)) else [path]
    paths = [path_of(each) for each in given]
    if not paths:
        raise InvalidEdgesError("the list of paths is empty: pass one file of edges, or several.")
    if isinstance(null := others.get("null"), str):
        others["null"] = [null]
    selections = [Selection(each, source, destination, weight, **others) for each in paths]
    files = [_read(selection, format) for selection in selections]
    return files[0] if len(files) == 1 else _joined(paths, files)


def _read(selection: Selection, format: str | None) -> EdgeFile | AdjacencyFile:  # noqa: A002
    path = selection.path
    found, compression = input_format(path, format)
    selection = replace(selection, format=found.name)
    _check(selection, is_text=found.reader == "text.read")
    module, function = found.reader.split(".")
    with _errors_of(path):
        readers = import_module(f"prplugin.io.{module}")  # most import pyarrow
        file: EdgeFile | AdjacencyFile = getattr(readers, function)(selection, compression)
    return file


def _check(selection: Selection, *, is_text: bool) -> None:
    """Raise InvalidOptionError for an invalid option, and for one of text if the file is of another format."""
    check_choice("missing", selection.missing, get_args(Missing))
    check_choice("ids", selection.ids, get_args(Ids))
    validate_int("skip", selection.skip, least=0)
    if selection.header is not None:
        validate_bool("header", selection.header)
    given = FileOptions(**{name: getattr(selection, name) for name in FILE_DEFAULTS}).given()
    if not is_text:
        of_text = {name: value for name, value in given.items() if name != "format"}
        refuse(of_text, f"is an option of CSV, TSV and SNAP text, and {selection.name} is {selection.format}")
    delimiter, comment, null = selection.delimiter, selection.comment, selection.null
    if delimiter is not None and (
        not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'
    ):
        raise InvalidOptionError(
            f"delimiter must be one ASCII character other than a quote or a line end, not {delimiter!r}."
        )
    if comment is not None and not (
        isinstance(comment, str) and comment.isascii() and (not comment or re.fullmatch(r'[^"\s]+', comment))
    ):
        raise InvalidOptionError(
            f"comment must be the characters with which comments begin, without blanks or quotes, not {comment!r}."
        )
    if not isinstance(null, (list, tuple)) or not all(isinstance(text, str) for text in null):
        raise InvalidOptionError(f"null must be a text, or a list of them, not {null!r}.")


@contextmanager
def _errors_of(path: str) -> Iterator[None]:
    """Raise errors of readers that are none of prplugin as such, with the name of the file."""
    try:
        yield
    except PageRankError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"{described(path)}: memory ran out while it was read. {error}".rstrip()) from error
    except (OSError, UnicodeError) as error:
        raise InvalidEdgesError(f"{described(path)} cannot be read: {error}") from error


def _joined(paths: list[str], files: Sequence[EdgeFile | AdjacencyFile]) -> EdgeFile:
    """Return the rows of several files with the same columns."""
    of_rows = [file for file in files if isinstance(file, EdgeFile) and file.vertices is None and file.directed]
    if len(of_rows) < len(files):
        graph = next(path for path, file in zip(paths, files, strict=True) if not any(file is row for row in of_rows))
        raise InvalidOptionError(
            f"{graph} is a whole graph: only files of rows, such as Parquet or CSV, can be joined."
        )
    first, names = of_rows[0], None
    for path, file in zip(paths, of_rows, strict=True):
        columns = file.columns
        own = [*columns.source_names, *columns.destination_names, columns.weight_name]
        if names is not None and own != names:
            raise InvalidEdgesError(
                f"{path} has the columns {listed(own)}, and {paths[0]} {listed(names)}: name those that all files have."
            )
        names = own
    from prplugin.frames.parquet import Opened  # lazy imports: few calls need them

    if all(isinstance(file.frame, Opened) for file in of_rows):
        from prplugin.frames.row_groups import open_paths

        return replace(first, frame=Opened(paths, open_paths(paths)))
    of_rows = list(map(as_rows, of_rows))
    frames, kept = [file.frame for file in of_rows], None
    if any(file.kept is not None for file in of_rows):
        from prplugin.frames.parts import in_whole  # imports pandas

        rows = [np.arange(len(file.frame)) if file.kept is None else file.kept for file in of_rows]
        kept = in_whole(rows, [each.size + file.dropped for each, file in zip(rows, of_rows, strict=True)])
    return replace(first, frame=frames, dropped=sum(file.dropped for file in of_rows), kept=kept)


def as_rows(file: EdgeFile | AdjacencyFile) -> EdgeFile:
    """Return the edges of a file as a pandas frame."""
    if not isinstance(file, EdgeFile):
        return file.as_rows()
    from prplugin.io.tables import in_pandas  # imports pandas

    return in_pandas(file)


def read_values(path: str, kinds: dict[str, str]) -> pd.DataFrame:
    """Read per-vertex values from Parquet, CSV, TSV or SNAP text: the columns in `kinds` that the file has.

    Columns of text are converted to their kind: "integer", "string", or "weight" for a number of at least 0. Text
    without a header has the columns of `kinds` in their order.

    Raises ColumnNotFoundError: if the file has other columns, one of which may be meant, but not `values`.
    """
    path = path_of(path)
    found, compression = input_format(path)
    module = found.reader.split(".")[0]
    if module not in ("tables", "text"):
        raise InvalidOptionError(f"{path}: a graph has no values by vertex. Pass CSV, TSV, SNAP text or Parquet.")
    with _errors_of(path):
        readers: Any = import_module(f"prplugin.io.{module}")
        values: pd.DataFrame = readers.read_values(Selection(path, format=found.name), compression, kinds)
    return values
