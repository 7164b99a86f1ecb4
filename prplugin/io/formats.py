"""File formats by suffix, and the names of files in messages."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from prplugin.errors import InvalidEdgesError, InvalidOptionError

STANDARD_STREAM = "-"
STANDARD_INPUT, STANDARD_OUTPUT = "standard input", "standard output"

TABLES = {"parquet": (".parquet", ".pq"), "csv": (".csv",), "tsv": (".tsv", ".tab")}
INPUT_FORMATS = TABLES | {"snap": (".txt", ".snap", ".edges", ".edgelist", ".el"), "mtx": (".mtx",)}
OUTPUT_FORMATS = TABLES | {"jsonl": (".jsonl", ".ndjson")}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Compressions by suffix, as named by pyarrow."""


def described(path: str) -> str:
    """Return the name of an input file for messages."""
    return STANDARD_INPUT if path == STANDARD_STREAM else path


@contextmanager
def errors_named(name: str) -> Iterator[None]:
    """Add the name of the file to errors of the operating system."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from error


def is_standard_output(path: str) -> bool:
    """Return whether a path is the standard output of this process."""
    return path in (STANDARD_STREAM, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check_standard_output() -> None:
    """Raise OSError if standard output is closed, since `print` would silently write nothing."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), STANDARD_OUTPUT)


def input_format(path: str, given: str | None = None) -> tuple[str, str | None]:
    """Return the format and the compression of a file of edges; raise InvalidEdgesError if they are unknown.

    Standard input is "delimited": TSV or CSV by its first line.
    """
    found, compression = by_suffix(path, INPUT_FORMATS)
    found = given or ("delimited" if path == STANDARD_STREAM else found)
    if found:
        return found, compression
    raise InvalidEdgesError(
        f"{path}: its name does not say what it holds. {_known(INPUT_FORMATS)} For any other name pass --format."
    )


def is_text(path: str) -> bool:
    """Return whether a file has the suffix of edges as text or Matrix Market."""
    return by_suffix(path, INPUT_FORMATS)[0] not in (None, "parquet")


def output_format(path: str) -> tuple[str, str | None]:
    """Return the format and the compression of a file of ranks; raise InvalidOptionError if they are unknown.

    Standard output is TSV, as are pipes and devices without a suffix.
    """
    if is_standard_output(path):
        return "tsv", None
    found, compression = by_suffix(path, OUTPUT_FORMATS)
    target = Path(path)
    if not found and not target.suffix and target.exists() and not target.is_file():
        found = "tsv"
    if not found:
        raise InvalidOptionError(f"{path}: its name does not say how to write it. {_known(OUTPUT_FORMATS)}")
    return found, compression


def by_suffix(path: str, formats: Mapping[str, tuple[str, ...]]) -> tuple[str | None, str | None]:
    """Return the format and the compression of a file by its suffix, or None."""
    name = Path(path)
    compression = COMPRESSIONS.get(name.suffix.lower())
    suffix = (name.with_suffix("") if compression else name).suffix.lower()
    return next((known for known, suffixes in formats.items() if suffix in suffixes), None), compression


def _known(formats: Mapping[str, tuple[str, ...]]) -> str:
    suffixes = ", ".join(suffix for suffixes in formats.values() for suffix in suffixes)
    return f"Known endings are {suffixes}, each with or without {' or '.join(COMPRESSIONS)} after it."
