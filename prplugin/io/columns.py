"""Columns of ids and weights out of blocks of text: nothing is cast but what is spelled as an integer or a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from prplugin.io.blocks import Block
from prplugin.io.content import WORKING_BYTES, check_memory

__all__ = ["INTEGER", "NUMBER", "Column", "read_columns"]

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
LEAST, MOST_SIGNED, MOST = -(2**63), 2**63 - 1, 2**64 - 1
TINY = np.finfo(np.float64).tiny

GRAPH_BYTES = 24
"""Per edge, of what making the graph takes at least, beside the frame: see `prplugin.methods.estimates`."""


@dataclass
class Column:
    """A column that is read, and its values so far.

    `position`: Among the fields of a record, from 0.
    `kind`: {"integer", "string", "weight"}.
    `zeros`: Whether an integer may have leading zeros.
    `largest` (int or None): Ids must be from 1 up to this.
    """

    position: int
    name: str
    kind: str
    zeros: bool = False
    largest: int | None = None
    rows: int = 0
    numbers: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    strings: list[pa.Array] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """The bytes of the values so far."""
        return self.numbers.nbytes + sum(int(part.nbytes) for part in self.strings)

    def append(self, text: pa.Array) -> NDArray[Any]:
        """Convert values from bytes, keep them, and return those that are numbers.

        Raises pyarrow.ArrowInvalid: if a value is not as it should be, which `wrong` explains.
        """
        text = text.cast(pa.string())  # raises for what is not UTF-8
        if self.kind == "string":
            if pc.any(pc.equal(pc.utf8_trim_whitespace(text), "")).as_py():
                raise pa.ArrowInvalid("empty")
            self.strings.append(text)
            return self.numbers
        text = pc.ascii_trim(text, " \t")
        values: NDArray[Any] = (self._weights if self.kind == "weight" else self._integers)(text).to_numpy()
        end = self.rows + values.size
        if end > self.numbers.size:  # in place, where the system can move pages
            self.numbers.resize(end + end // 8, refcheck=False)
        self.numbers[self.rows : end] = values.view(np.int64)  # the bits: the type is known in the end
        self.rows = end
        return values

    def _integers(self, text: pa.Array) -> pa.Array:
        try:
            values = text.cast(pa.int64())
        except pa.ArrowInvalid:
            values = text.cast(pa.uint64())
        # pyarrow reads 0x1f as 31, and 007 as 7.
        odd = text.filter(pc.not_equal(values.cast(pa.string()), text))
        if any(map(self.wrong, odd.unique().to_pylist())):
            raise pa.ArrowInvalid("not an integer")
        if self.largest is not None and len(values):
            ends = pc.min_max(values).as_py()
            if ends["min"] < 1 or ends["max"] > self.largest:
                raise pa.ArrowInvalid("out of range")
        return values

    def _weights(self, text: pa.Array) -> pa.Array:
        values = text.cast(pa.float64())
        numbers = values.to_numpy()
        odd = text.filter(pa.array(~((numbers >= TINY) & (numbers < np.inf))))
        if any(map(self.wrong, odd.unique().to_pylist())):
            raise pa.ArrowInvalid("out of range")
        return values

    def taken(self, dtype: Any) -> Any:
        """Return all values as a Series or an array, and keep none."""
        if self.kind == "string":
            values, self.strings = pa.chunked_array(self.strings, pa.string()), []
            return values.to_pandas()
        self.numbers.resize(self.rows, refcheck=False)
        return self.numbers.view(np.float64 if self.kind == "weight" else dtype)

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
                return f"{what}, which is below 0: PageRank needs weights of at least 0."
            if value == np.inf:
                return f"{what}, which is past the range of float64. Scale the column."
            # Below the normal range float64 may lose any part of a value, and the bound allows for a relative 2**-53.
            if nonzero and value < TINY and Decimal(text, Context(traps=[])) != Decimal(value):
                return f"{what}, which is too near to 0 for float64. Scale the column, or drop the edge."
        return ""


def read_columns(
    blocks: Iterable[Block],
    width: int,
    columns: list[Column],
    check: Callable[[Block, list[NDArray[Any]]], None] | None = None,
) -> pd.DataFrame:
    """Read some fields of every record.

    `blocks`: iterable of Block.
    `width`: How many fields each record has.
    `check`: Is called with each block and its numbers; raises for a record that is not as it should be.

    Returns `DataFrame`: Integers as int64, or uint64 if they need it; weights as float64.

    Raises InvalidEdgesError: For the first record of a block that is not as it should be, by its line.
    Raises OutOfMemoryError: before the edges take more memory than is free.
    """
    rows, negative, past_signed = 0, False, None
    for block in blocks:
        table = block.table(width, [column.position for column in columns])
        try:
            values = [column.append(table[str(column.position)].combine_chunks()) for column in columns]
        except pa.ArrowInvalid as error:
            _refuse(block, table, columns, error)
        for ids in (ids for ids in values if ids.size and ids.dtype.kind in "iu"):
            negative |= bool(ids.min() < 0)
            if ids.max() > MOST_SIGNED:
                past_signed = past_signed or (block, int(np.argmax(ids > MOST_SIGNED)))
        if negative and past_signed:
            _refuse_signs(*past_signed)
        if check is not None:
            check(block, values)
        rows += len(table)
        # What is still to come: the growth of the columns, the copy of one of strings, and the graph.
        held = [column.nbytes for column in columns]
        check_memory(
            WORKING_BYTES + max(sum(held) // 8, *held, GRAPH_BYTES * rows),
            f"{block.name}, line {block.line:,}: {rows:,} edges have been read",
            "Convert the file to Parquet: prplugin.pagerank(path) reads that one row group at a time.",
        )
    dtype = np.uint64 if past_signed else np.int64
    return pd.DataFrame({column.name: column.taken(dtype) for column in columns}, copy=False)


def _refuse(block: Block, table: pa.Table, columns: list[Column], error: pa.ArrowInvalid) -> NoReturn:
    """Raise InvalidEdgesError for the first record at fault."""
    texts = [table[str(column.position)].to_pylist() for column in columns]
    for row, values in enumerate(zip(*texts, strict=True)):
        for column, value in zip(columns, values, strict=True):
            if what := column.wrong(value):
                block.fault_of(row, what)
    for column, values in zip(columns, texts, strict=True):  # neither a signed nor an unsigned type holds them all
        for row, value in enumerate(values):
            if column.kind == "integer" and int(value) > MOST_SIGNED:
                _refuse_signs(block, row)
    raise error


def _refuse_signs(block: Block, row: int) -> NoReturn:
    block.fault_of(row, "an id is past 2**63, and others are negative: pass --ids string.")
