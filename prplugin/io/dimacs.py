"""Read graphs of the 9th DIMACS implementation challenge: lines ``p sp n m`` and ``a source target weight``.

Vertices are 1..n, including isolated ones; lines that begin with c are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from prplugin.errors import InvalidEdgesError
from prplugin.io.blocks import Block, blocks, check_memory
from prplugin.io.matrix_market import VERTEX_BYTES
from prplugin.io.selection import EdgeFile, Selection
from prplugin.io.text import Column, read_columns

PROBLEM = re.compile(rb"p[ \t]+sp[ \t]+(\d{1,18})[ \t]+(\d{1,18})[ \t]*")
OTHER = re.compile(rb"(?m)^[^acp\s].*|^[acp](?![ \t\r\n]).*|^[ \t]+\S.*")


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read a graph; see `prplugin.io.read_edges`."""
    text = _records(blocks(selection.path, compression, None))
    found = next(((block, *record) for block in text for record in block.records()), None)
    if found is None:
        raise InvalidEdgesError(f"{selection.name} has no line 'p sp', and no arcs: it is cut short.")
    block, start, line = found
    problem = PROBLEM.fullmatch(line.strip())
    if problem is None:
        block.fault(
            start, f"it is not 'p sp', the number of vertices and the number of arcs: {line[:60].decode('latin-1')!r}."
        )
    n, m = int(problem[1]), int(problem[2])
    check_memory(VERTEX_BYTES * n, f"{block.name}, line {block.line_at(start):,}: it announces {n:,} vertices")
    names = ["source", "destination", "weight"]
    columns = selection.resolved(names, None if selection.unweighted else "weight")
    read = [Column(position, names[position], "integer", zeros=True, largest=n) for position in (0, 1)]
    if columns.weight is not None:
        read.append(Column(2, "weight", "weight"))
    frame, _ = read_columns(_arcs(chain([block.part(start + len(line))], text)), 3, read)
    if len(frame) != m:
        block.fault(start, f"it announces {m:,} arcs, but {len(frame):,} follow.")
    return EdgeFile(frame, columns, np.arange(1, n + 1))


def _records(text: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks with the character of comments that `Block` knows; raise for lines of no known kind."""
    for block in text:
        if other := OTHER.search(block.text):
            shown = other[0][:60].decode("latin-1").strip()
            block.fault(other.start(), f"a line begins with c, p or a, and a blank, but this one is {shown!r}.")
        yield replace(block, text=re.sub(rb"(?m)^c", b"#", block.text))


def _arcs(text: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks with a blank for the letter a."""
    for block in text:
        if again := re.search(rb"(?m)^p", block.text):
            block.fault(again.start(), "it is a second line 'p sp'.")
        yield replace(block, text=re.sub(rb"(?m)^a", b" ", block.text))
