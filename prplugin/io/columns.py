"""Convert blocks of text to columns of ids and weights; only what is spelled as a number becomes one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from prplugin.errors import InvalidEdgesError
from prplugin.io.blocks import Block
from prplugin.io.content import WORKING_BYTES, check_memory

__all__ = ["INTEGER", "NUMBER", "Column", "read_columns"]

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
LEAST, MOST = -(2**63), 2**64 - 1
TINY = np.finfo(np.float64).tiny

GRAPH_BYTES = 24
"""Bytes per edge that building the graph takes at least, beside the frame: see `prplugin.methods.estimates`."""


@dataclass
class Column:
    """A column to read, and its values so far.

    `position`: among the fields of a record, from 0.
    `kind`: "integer", "string" or "weight".
    `zeros`: whether an integer may have leading zeros.
    `largest`: ids must be from 1 up to this.
    `parts`: the values of each block.
    """

    position: int
    name: str
    kind: str
    zeros: bool = False
    largest: int | None = None
    parts: list[pa.Array] = field(default_factory=list)

    def append(self, text: pa.Array) -> None:
        """Convert and keep values; raise pyarrow.ArrowInvalid for an invalid one, which `wrong` describes."""
        text = text.cast(pa.string())  # raises for what is not UTF-8
        if self.kind == "string":
            values, odd = text, pc.equal(pc.utf8_trim_whitespace(text), "")
        else:
            text = pc.ascii_trim(text, " \t")
            if self.kind == "weight":
                values = text.cast(pa.float64())
                odd = pc.invert(pc.and_(pc.greater_equal(values, TINY), pc.less(values, np.inf)))
            else:
                try:
                    values = text.cast(pa.int64())
                except pa.ArrowInvalid:
                    values = text.cast(pa.uint64())
                odd = pc.not_equal(values.cast(pa.string()), text)  # pyarrow reads 0x1f as 31, and 007 as 7
                if self.largest is not None:
                    odd = pc.or_(odd, pc.or_(pc.less(values, 1), pc.greater(values, self.largest)))
        if any(map(self.wrong, text.filter(odd).unique().to_pylist())):
            raise pa.ArrowInvalid(f"column {self.name!r}")
        self.parts.append(values)

    def taken(self, integer: pa.DataType) -> pd.Series:
        """Return all values, and keep none."""
        dtype = {"string": pa.string(), "weight": pa.float64(), "integer": integer}[self.kind]
        parts, self.parts = [part.cast(dtype) for part in self.parts], []
        return pa.chunked_array(parts, dtype).to_pandas()

    def wrong(self, raw: bytes | str) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        try:
            text = raw if isinstance(raw, str) else raw.decode()
        except UnicodeDecodeError:
            return f"column {self.name!r} has {raw[:60]!r}, which is not UTF-8 text. Convert the file to UTF-8."
        if not text.strip():
            return f"column {self.name!r} is empty."
        what = f"column {self.name!r} has {(text if len(text) <= 60 else text[:60] + '...')!r}"
        text = text.strip(" \t")
        if self.kind == "integer":
            if not re.fullmatch("-?[0-9]+", text):
                return f"{what}, which is no integer, though the ids are. Correct it, or pass --ids string."
            if not (self.zeros or INTEGER.fullmatch(text)):
                return f"{what}, and an integer has no leading zeros. Pass --ids string, or --ids integer to drop them."
            if len(text) > 4000 or not LEAST <= int(text) <= MOST:
                return f"{what}, which no 64-bit integer holds. Pass --ids string."
            if self.largest is not None and not 1 <= int(text) <= self.largest:
                return f"{what}, but the size line allows 1 to {self.largest}."
        if self.kind == "weight":
            if not NUMBER.fullmatch(text):
                return f"{what}, which is no finite number."
            value, nonzero = float(text), re.search("[1-9]", re.split("[eE]", text)[0])
            if text[0] == "-" and nonzero:
                return f"{what}, which is below 0. Values must be at least 0."
            if value == np.inf:
                return f"{what}, which is past the range of float64. Scale the column."
            # Below the normal range float64 may lose any part of a value, and the bound allows for a relative 2**-53.
            if nonzero and value < TINY and Decimal(text, Context(traps=[])) != Decimal(value):
                return f"{what}, which is too near to 0 for float64. Scale the column, or drop the edge."
        return ""


def read_columns(
    blocks: Iterable[Block], width: int, columns: list[Column], check: Callable[[Block], None] | None = None
) -> pd.DataFrame:
    """Read some of the `width` fields of every record.

    `check` is called after each block, and raises for an invalid record. Integers are int64, or uint64 if they need it;
    weights are float64.

    Raises InvalidEdgesError: for the first invalid record of a block, by its line.
    Raises OutOfMemoryError: before the edges take more memory than is available.
    """
    rows, name = 0, ""
    for block in blocks:
        name, table = block.name, block.table(width, [column.position for column in columns])
        try:
            for column in columns:
                column.append(table[str(column.position)].combine_chunks())
        except pa.ArrowInvalid as error:
            for row, values in enumerate(zip(*(table[str(c.position)].to_pylist() for c in columns), strict=True)):
                if what := next(filter(None, (c.wrong(value) for c, value in zip(columns, values, strict=True))), ""):
                    block.fault_of(row, what)
            block.fault(0, f"the text from here on cannot be converted: {error}.")
        if check is not None:
            check(block)
        rows += len(table)
        # Still to come: the copy of a column, and the graph.
        largest = max(sum(int(part.nbytes) for part in column.parts) for column in columns)
        check_memory(
            WORKING_BYTES + max(largest, GRAPH_BYTES * rows),
            f"{name}, line {block.line:,}: {rows:,} edges have been read",
            "Convert the file to Parquet: prplugin.pagerank(path) reads that one row group at a time.",
        )
    unsigned = any(part.type == pa.uint64() for column in columns for part in column.parts)
    try:
        read = {column.name: column.taken(pa.uint64() if unsigned else pa.int64()) for column in columns}
    except pa.ArrowInvalid as error:
        raise InvalidEdgesError(
            f"{name}: no integer type holds negative ids and those past 2**63: pass --ids string."
        ) from error
    return pd.DataFrame(read, copy=False)
