"""Read the bytes of a file or of standard input, decompressed."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pyarrow as pa

from prplugin import machine
from prplugin.errors import InvalidEdgesError, OutOfMemoryError
from prplugin.io.formats import STANDARD_STREAM, described, errors_named

__all__ = ["check_memory", "content", "pieces"]

PIECE_BYTES = 4 << 20
"""Number of bytes per read."""

WORKING_BYTES = 16 * PIECE_BYTES
"""Bytes to parse a piece: several copies of its text, and its columns as text and as numbers."""


def pieces(path: str, compression: str | None) -> Iterator[bytes]:
    """Yield the bytes of a file piece by piece, decompressed.

    Raises InvalidEdgesError: if the file is empty, or its compressed data are damaged or truncated.
    Raises OSError: if the file cannot be opened or read.
    """
    name = described(path)
    with errors_named(name):
        if path == STANDARD_STREAM and sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        with nullcontext(sys.stdin.buffer) if path == STANDARD_STREAM else open(path, "rb") as file:
            stream: Any = pa.CompressedInputStream(file, compression) if compression else file
            try:
                piece = stream.read(PIECE_BYTES)
                if not piece:
                    raise InvalidEdgesError(f"{name} is empty.")
                while piece:
                    yield piece
                    piece = stream.read(PIECE_BYTES)
            except OSError as error:
                if error.errno is None:  # raised by pyarrow
                    raise InvalidEdgesError(f"{name}: damaged or cut short {compression} data ({error}).") from error
                raise


def content(path: str, compression: str | None) -> bytes:
    """Return all bytes of a file, decompressed; raise as `pieces` and `check_memory` do."""
    read, size = [], 0
    for piece in pieces(path, compression):
        read.append(piece)
        size += len(piece)
        check_memory(size, f"{described(path)}: {size:,} bytes have been read")  # `join` copies them
    return b"".join(read)


def check_memory(needed: int, what: str, remedy: str = "") -> None:
    """Raise OutOfMemoryError if fewer than `needed` bytes are free, before the kernel kills the process."""
    if needed > (free := machine.bytes_available()):
        raise OutOfMemoryError(
            f"{what}, and {needed:,} more bytes of this machine's memory are needed, of which {int(free):,} are free. "
            f"{remedy}".rstrip()
        )
