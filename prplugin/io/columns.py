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

from prplugin.io.blocks import Block
from prplugin.io.content import WORKING_BYTES, check_memory

__all__ = ["INTEGER", "NUMBER", "Column", "read_columns"]

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
LEAST, MOST_SIGNED, MOST = -(2**63), 2**63 - 1, 2**64 - 1

GRAPH_BYTES = 24
"""Per edge, of what making the graph takes at least, beside the frame: see `prplugin.estimates`."""


@dataclass
class Column:
    """A column that is read, and its values so far.

    Attributes
    ----------
    position : int
        Among the fields of a record, from 0.
    name : str
    kind : {"integer", "string", "weight"}
    zeros : bool
        Whether an integer may have leading zeros.
    largest : int or None
        Ids must be from 1 up to this.
    values : list of pyarrow.Array
    past_signed : tuple of Block and int, optional
        Where the first id of 2**63 or more is.
    negative : bool
        Whether an id is negative.
    """

    position: int
    name: str
    kind: str
    zeros: bool = False
    largest: int | None = None
    values: list[pa.Array] = field(default_factory=list)
    past_signed: tuple[Block, int] | None = None
    negative: bool = False

    def append(self, block: Block, text: pa.Array) -> None:
        """Convert the column of a block, given as bytes.

        Raises
        ------
        pyarrow.ArrowInvalid
            If a value is not as it should be, which `wrong` explains.
        """
        values = getattr(self, f"_{self.kind}s")(text.cast(pa.string()))
        if self.kind == "integer" and len(values):
            ends = pc.min_max(values).as_py()
            self.negative |= ends["min"] < 0
            if ends["max"] > MOST_SIGNED and not self.past_signed:
                self.past_signed = block, int(np.argmax(values.to_numpy() > MOST_SIGNED))
            if self.largest is not None and not 1 <= ends["min"] <= ends["max"] <= self.largest:
                raise pa.ArrowInvalid("out of range")
        self.values.append(values)

    def _integers(self, text: pa.Array) -> pa.Array:
        text = pc.ascii_trim(text, " \t")
        try:
            values = text.cast(pa.int64())
        except pa.ArrowInvalid:
            values = text.cast(pa.uint64())
        # pyarrow reads 0x1f as 31, and 007 as 7.
        odd = text.filter(pc.not_equal(values.cast(pa.string()), text))
        if len(odd) and not (self.zeros and pc.all(pc.match_substring_regex(odd, "^-?[0-9]+$")).as_py()):
            raise pa.ArrowInvalid("not an integer")
        return values

    def _weights(self, text: pa.Array) -> pa.Array:
        text = pc.ascii_trim(text, " \t")
        values = text.cast(pa.float64())
        numbers = values.to_numpy()
        if not np.all((numbers >= 0) & (numbers < np.inf)):
            raise pa.ArrowInvalid("out of range")
        small = text.filter(pa.array(numbers < np.finfo(np.float64).tiny))
        if any(self.wrong(spelled) for spelled in small.unique().to_pylist()):
            raise pa.ArrowInvalid("too small")
        return values

    def _strings(self, text: pa.Array) -> pa.Array:
        if pc.any(pc.equal(pc.utf8_trim_whitespace(text), "")).as_py():
            raise pa.ArrowInvalid("empty")
        return text

    def wrong(self, raw: bytes | str) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        try:
            text = raw if isinstance(raw, str) else raw.decode()
        except UnicodeDecodeError:
            return f"column {self.name!r} has {raw[:60]!r}, which is not UTF-8 text. Convert the file to UTF-8."
        what = f"column {self.name!r} has {text if len(text) <= 60 else text[:60] + '...'!r}"
        bare = text.strip(" \t")
        if not text.strip():
            return f"column {self.name!r} is empty."
        if self.kind == "integer":
            return self._wrong_integer(what, bare)
        return self._wrong_weight(what, bare) if self.kind == "weight" else ""

    def _wrong_integer(self, what: str, text: str) -> str:
        if not re.fullmatch("-?[0-9]+", text):
            return f"{what}, which is no integer, though the ids are. Correct it, or pass --ids string."
        if not (self.zeros or INTEGER.fullmatch(text)) or text == "-0":
            return f"{what}, and an integer has no leading zeros. Pass --ids string, or --ids integer to drop them."
        if len(text) > 4000 or not LEAST <= int(text) <= MOST:
            return f"{what}, which no 64-bit integer holds. Pass --ids string."
        if self.largest is not None and not 1 <= int(text) <= self.largest:
            return f"{what}, but the size line allows 1 to {self.largest}."
        return ""

    def _wrong_weight(self, what: str, text: str) -> str:
        if not NUMBER.fullmatch(text):
            return f"{what}, which is no finite number."
        value, nonzero = float(text), re.search("[1-9]", re.split("[eE]", text)[0])
        if text[0] == "-" and nonzero:
            return f"{what}, which is below 0: PageRank needs weights of at least 0."
        if value == np.inf:
            return f"{what}, which is past the range of float64. Scale the column."
        # Below the normal range float64 may lose any part of a value, and the bound allows for a relative 2**-53.
        if nonzero and value < np.finfo(np.float64).tiny and Decimal(text, Context(traps=[])) != Decimal(value):
            return f"{what}, which is too near to 0 for float64. Scale the column, or drop the edge."
        return ""


def read_columns(
    blocks: Iterable[Block],
    width: int,
    columns: list[Column],
    check: Callable[[Block, list[pa.Array]], None] | None = None,
) -> pd.DataFrame:
    """Read some fields of every record.

    Parameters
    ----------
    blocks : iterable of Block
    width : int
        How many fields each record has.
    check : function, optional
        Is called with each block and its values; raises for a record that is not as it should be.

    Returns
    -------
    DataFrame
        Integers as int64, or uint64 if they need it; weights as float64.

    Raises
    ------
    InvalidEdgesError
        For the first record of a block that is not as it should be, by its line.
    OutOfMemoryError
        Before the edges take more memory than is free.
    """
    rows, past_signed = 0, None
    for block in blocks:
        table = block.table(width, [column.position for column in columns])
        try:
            for column in columns:
                column.append(block, table[str(column.position)].combine_chunks())
        except pa.ArrowInvalid as error:
            _refuse(block, table, columns, error)
        past_signed = past_signed or next((column.past_signed for column in columns if column.past_signed), None)
        if past_signed and any(column.negative for column in columns):
            _refuse_signs(*past_signed)
        if check is not None:
            check(block, [column.values[-1] for column in columns])
        rows += len(table)
        # What is left to do: the frame is made column by column, and the graph of it.
        widest = max(sum(values.nbytes for values in column.values) for column in columns) + 8 * rows
        check_memory(max(widest, GRAPH_BYTES * rows) + WORKING_BYTES, f"{block.name}, line {block.line:,}")
    types = {"integer": pa.uint64() if past_signed else pa.int64(), "string": pa.string(), "weight": pa.float64()}
    frame: dict[str, Any] = {}
    for column in columns:
        kind = types[column.kind]
        frame[column.name] = pa.chunked_array([values.cast(kind) for values in column.values], kind).to_pandas()
        column.values.clear()
    return pd.DataFrame(frame, copy=False)


def _refuse(block: Block, table: pa.Table, columns: list[Column], error: pa.ArrowInvalid) -> None:
    """Raise InvalidEdgesError for the first record at fault."""
    for row, values in enumerate(zip(*(table[str(column.position)].to_pylist() for column in columns), strict=True)):
        for column, value in zip(columns, values, strict=True):
            if what := column.wrong(value):
                block.fault_of(row, what)
    for column in columns:  # neither a signed nor an unsigned type holds them all
        for row, value in enumerate(table[str(column.position)].to_pylist()):
            if column.kind == "integer" and int(value) > MOST_SIGNED:
                _refuse_signs(block, row)
    raise error


def _refuse_signs(block: Block, row: int) -> NoReturn:
    block.fault_of(row, "an id is past 2**63, and others are negative: pass --ids string.")
