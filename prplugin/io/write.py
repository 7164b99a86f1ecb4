"""Write ranks to a file atomically."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import methodcaller
from pathlib import Path
from typing import IO, TYPE_CHECKING

from prplugin.errors import InvalidOptionError, PageRankError, path_errors
from prplugin.folders import is_saved
from prplugin.io.formats import (
    STANDARD_OUTPUT,
    STANDARD_STREAM,
    check_standard_output,
    described,
    is_standard_output,
    output_format,
    recognized,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ROWS_AT_A_TIME = 1 << 16


def check_output(path: str, inputs: Iterable[str] = ()) -> None:
    """Raise if a file cannot be written, or is, or is in, one of the inputs; to be called before the computation."""
    if is_standard_output(path):
        return
    with path_errors(path, PageRankError):
        output_format(path)
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "")
        if not target.exists() or target.is_file():
            folder = str(target.parent)
            with path_errors(folder, PageRankError):
                os.stat(folder)
                if not os.access(folder, os.W_OK):
                    raise PermissionError(errno.EACCES, "")
    for given in inputs:
        source = "/dev/stdin" if given == STANDARD_STREAM else given
        is_folder = os.path.isdir(source) and (is_saved(source) or recognized(source)[0] is not None)
        altered = False
        with suppress(OSError, ValueError):  # no path, but a vertex
            places = filter(os.path.exists, (target, *(target.parents if is_folder else ())))
            altered = any(os.path.samefile(source, place) for place in places)
        if altered:
            raise InvalidOptionError(f"{path} would alter the input {described(given)}: write to another file.")


def write_frame(frame: pd.DataFrame, path: str) -> None:
    """Write a frame as Parquet, CSV, TSV, JSON lines, or lines of fields with blanks between, by suffix.

    An existing file is replaced after all data are on disk, and remains unchanged on failure.
    """
    import pyarrow as pa

    name, compression = output_format(path)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with path_errors(STANDARD_OUTPUT if is_standard_output(path) else path, PageRankError), _opened(path) as file:
        try:
            if compression is None:
                _write(table, name, file)
            else:
                # Compress in memory: pyarrow writes to standard error if the file of a compressed stream fails.
                sink = pa.BufferOutputStream()
                with pa.CompressedOutputStream(sink, compression) as stream:
                    _write(table, name, stream)
                file.write(sink.getvalue())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, AttributeError) as error:
            raise InvalidOptionError(f"{path}: a column cannot be written as {name}: {error}.") from error


def _write(table: pa.Table, name: str, file: IO[bytes]) -> None:
    if name == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, file)
    elif name == "jsonl":
        for batch in table.to_batches(max_chunksize=ROWS_AT_A_TIME):
            # Dates and times in ISO format; AttributeError for other types that JSON does not have.
            rows = batch.to_pylist()
            lines = [json.dumps(row, ensure_ascii=False, default=methodcaller("isoformat")) for row in rows]
            file.write(("\n".join(lines) + "\n").encode())
    else:
        from pyarrow import csv as arrow_csv

        header, delimiter = io.StringIO(), {"tsv": "\t", "snap": " "}.get(name, ",")
        options = arrow_csv.WriteOptions(include_header=False, delimiter=delimiter)
        if name == "snap":  # has no header and no quotes: fields with blanks raise ArrowInvalid
            options.quoting_style = "none"
        else:  # pyarrow quotes every name of a header
            csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
        file.write(header.getvalue().encode())
        arrow_csv.write_csv(table, file, options)


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces the target at the end; write pipes and devices in place."""
    if is_standard_output(path):
        check_standard_output()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(path))  # write to the target of a symbolic link
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
