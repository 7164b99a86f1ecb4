"""Ranks to a file, wholly or not at all."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from prplugin.errors import InvalidOptionError
from prplugin.io.formats import STANDARD_OUTPUT, STANDARD_STREAM, check_standard_output, errors_named, output_format

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["check_output", "is_standard_output", "write_frame"]

ROWS_AT_A_TIME = 1 << 16


def is_standard_output(path: str) -> bool:
    """Say whether a path is this process's standard output."""
    return path in (STANDARD_STREAM, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check_output(path: str) -> None:
    """Find out what can be known before the work: whether a file of that name can be written.

    Raises InvalidOptionError: if its name does not say how.
    Raises OSError: if it is a directory, or where it would go is none, or may not be written.
    """
    if is_standard_output(path):
        return
    output_format(path)
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not target.exists() or target.is_file():
        os.stat(target.parent)
        if not os.access(target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target.parent))


def write_frame(frame: pd.DataFrame, path: str) -> None:
    """Write a frame as Parquet, CSV, TSV or JSON lines, by the end of the name.

    A file of that name is replaced once all is on the disk; before that it is as it was, whatever happens.

    Raises InvalidOptionError: if the name does not say how, or the format cannot hold a column.
    Raises OSError: if it cannot be written.
    """
    import pyarrow as pa

    name, compression = ("tsv", None) if is_standard_output(path) else output_format(path)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with errors_named(STANDARD_OUTPUT if is_standard_output(path) else path), _opened(path) as file:
        try:
            if compression is None:
                WRITERS[name](table, file)
            else:
                # Into memory first: pyarrow complains on standard error if the file under a compressed stream fails.
                sink = pa.BufferOutputStream()
                with pa.CompressedOutputStream(sink, compression) as stream:
                    WRITERS[name](table, stream)
                file.write(sink.getvalue())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
            raise InvalidOptionError(f"{path}: a column cannot be written as {name}: {error}.") from error


def _write_parquet(table: pa.Table, file: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, file)


def _write_csv(table: pa.Table, file: Any, delimiter: str = ",") -> None:
    from pyarrow import csv as arrow_csv

    # The header by hand: pyarrow quotes every name in it.
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(header.getvalue().encode())
    arrow_csv.write_csv(table, file, arrow_csv.WriteOptions(include_header=False, delimiter=delimiter))


def _write_tsv(table: pa.Table, file: Any) -> None:
    _write_csv(table, file, "\t")


def _write_json_lines(table: pa.Table, file: Any) -> None:
    for batch in table.to_batches(max_chunksize=ROWS_AT_A_TIME):
        lines = [json.dumps(row, ensure_ascii=False, default=_plain) for row in batch.to_pylist()]
        file.write(("\n".join(lines) + "\n").encode())


def _plain(value: Any) -> str:
    """Spell out a date or a time; raise TypeError for what has no text."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise TypeError(f"{type(value).__name__} has no form in JSON")


WRITERS = {"parquet": _write_parquet, "csv": _write_csv, "tsv": _write_tsv, "jsonl": _write_json_lines}


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file to be replaced when all went well; what is no regular file is written as it stands."""
    if is_standard_output(path):
        check_standard_output()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(path))  # a link stays one
    if path.startswith(("/dev/", "/proc/")) or (target.exists() and not target.is_file()):
        with open(path, "wb") as file:
            yield file
        return
    temporary = target.with_name(f".prplugin-{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if target.exists():
                with suppress(PermissionError):
                    os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
