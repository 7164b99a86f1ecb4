"""Files that are cut short, or have a wrong bit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import prplugin
from prplugin.errors import PageRankError


def damaged(content: bytes, bits: int) -> Iterator[bytes]:
    """Yield a content cut at each byte, and with some of the bits of each byte flipped, one at a time."""
    for at in range(len(content)):
        yield content[:at]
        for bit in random.Random(at).sample(range(8), bits):
            yield content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def graphs_of_damaged(file: Path, path: Path, bits: int) -> Iterator[prplugin.Graph | PageRankError]:
    """Yield the graph that is read from a path, or the error, for each damage of a file, which is restored."""
    content = file.read_bytes()
    for text in damaged(content, bits):
        file.write_bytes(text)
        try:
            yield prplugin.Graph.from_file(path)
        except PageRankError as error:
            yield error
    file.write_bytes(content)
