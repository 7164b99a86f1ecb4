"""The bytes of a file or of standard input, decompressed."""

from __future__ import annotations

import errno
import sys

from prplugin.errors import InvalidEdgesError
from prplugin.io.formats import STANDARD_INPUT, STANDARD_STREAM, described, errors_named

__all__ = ["content", "text_content"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAGIC = {
    b"\x1f\x8b": "compressed with gzip: let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: let its name end in .zst",
    b"PAR1": "Parquet: pass --format parquet",
    b"\xff\xfe": "UTF-16: convert it to UTF-8",
    b"\xfe\xff": "UTF-16: convert it to UTF-8",
}
"""How files begin that are not the text that they were taken for."""


def content(path: str, compression: str | None) -> bytes:
    """Read a whole file, and decompress it.

    Raises
    ------
    InvalidEdgesError
        If it is empty, or the compressed data damaged or cut short.
    OSError
        If it cannot be opened.
    """
    if path == STANDARD_STREAM:
        with errors_named(STANDARD_INPUT):
            if sys.stdin is None:
                raise OSError(errno.EBADF, "it is closed")
            data = sys.stdin.buffer.read()
    else:
        with open(path, "rb") as file:
            data = file.read()
    if compression:
        data = _decompressed(path, data, compression)
    if not data:
        raise InvalidEdgesError(f"{described(path)} is empty.")
    return data


def text_content(path: str, compression: str | None) -> bytes:
    """Read a whole file of text.

    Raises
    ------
    InvalidEdgesError
        If it is empty or not text.
    OSError
        If it cannot be opened.
    """
    data = content(path, compression)
    for magic, what in MAGIC.items():
        if data.startswith(magic):
            raise InvalidEdgesError(f"{described(path)} is not text but {what}.")
    if (position := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, position) + 1
        raise InvalidEdgesError(
            f"{described(path)}, line {line:,}: it has a zero byte, so this is no text file. --format says what it is."
        )
    return data.removeprefix(BYTE_ORDER_MARK)


def _decompressed(path: str, data: bytes, compression: str) -> bytes:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), compression) as stream:
            plain: bytes = stream.read()
    except OSError as error:  # pyarrow's, without a number
        raise InvalidEdgesError(f"{described(path)}: damaged or cut short {compression} data ({error}).") from error
    return plain
