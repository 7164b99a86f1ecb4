"""The formats of files by the ends of their names, and what messages call files."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prplugin.errors import InvalidEdgesError, InvalidOptionError

__all__ = [
    "STANDARD_INPUT",
    "STANDARD_OUTPUT",
    "STANDARD_STREAM",
    "check_standard_output",
    "described",
    "errors_named",
    "input_format",
    "is_standard_output",
    "is_text",
    "output_format",
]

STANDARD_STREAM = "-"
STANDARD_INPUT, STANDARD_OUTPUT = "standard input", "standard output"
"""What messages call it."""

INPUT_FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "snap": (".txt", ".snap", ".edges", ".edgelist", ".el"),
    "mtx": (".mtx",),
}
OUTPUT_FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson"),
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""The names that pyarrow has for them."""


def described(path: str) -> str:
    """Return what messages call a file of edges."""
    return STANDARD_INPUT if path == STANDARD_STREAM else path


@contextmanager
def errors_named(name: str) -> Iterator[None]:
    """Name the file in errors of the operating system."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from error


def is_standard_output(path: str) -> bool:
    """Return whether a path is this process's standard output."""
    return path in (STANDARD_STREAM, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check_standard_output() -> None:
    """Raise OSError if standard output is closed: print would do nothing."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), STANDARD_OUTPUT)


def input_format(path: str, given: str | None = None) -> tuple[str, str | None]:
    """Return the format and the compression of a file of edges; raise InvalidEdgesError if nothing tells them."""
    found, compression = _by_suffix(path, INPUT_FORMATS)
    found = given or ("tsv" if path == STANDARD_STREAM else found)
    if found:
        return found, compression
    raise InvalidEdgesError(
        f"{path}: its name does not say what it holds. Known endings are {_known(INPUT_FORMATS)}, "
        f"each with {' or '.join(COMPRESSIONS)} after it or not; --format says it for any other name."
    )


def is_text(path: str) -> bool:
    """Return whether the name of a file says that it holds edges as text or Matrix Market."""
    return _by_suffix(path, INPUT_FORMATS)[0] not in (None, "parquet")


def output_format(path: str) -> tuple[str, str | None]:
    """Return the format and the compression of a file of ranks; raise InvalidOptionError if nothing tells them.

    Standard output is TSV, as is what is no regular file and has no ending.
    """
    if is_standard_output(path):
        return "tsv", None
    found, compression = _by_suffix(path, OUTPUT_FORMATS)
    if found:
        return found, compression
    place = Path(path)
    if not place.suffix and place.exists() and not place.is_file():
        return "tsv", None
    raise InvalidOptionError(
        f"{path}: its name does not say how to write it. Known endings are {_known(OUTPUT_FORMATS)}, "
        f"each with {' or '.join(COMPRESSIONS)} after it or not."
    )


def _by_suffix(path: str, formats: dict[str, tuple[str, ...]]) -> tuple[str | None, str | None]:
    name = Path(path)
    compression = COMPRESSIONS.get(name.suffix.lower())
    if compression:
        name = name.with_suffix("")
    suffix = name.suffix.lower()
    return next((known for known, suffixes in formats.items() if suffix in suffixes), None), compression


def _known(formats: dict[str, tuple[str, ...]]) -> str:
    return ", ".join(suffix for suffixes in formats.values() for suffix in suffixes)
