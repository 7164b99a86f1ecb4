"""Codes of strings, compared with those of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from prplugin.cpu import library, strings
from prplugin.frames import host_columns

pytestmark = pytest.mark.skipif(library.unavailable_reason() is not None, reason="there are no kernels")


def columns(m=70_000):
    """Yield strings of many lengths, in all forms of columns."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, m // 3, m)
    text = np.array([str(number) * (number % 9) + "\u00e4\0\U0001f600"[: number % 4] for number in numbers], object)
    yield "objects", pd.Series(text, dtype=object)
    yield "str", pd.Series(text.tolist())
    yield "python", pd.Series(text, dtype=pd.StringDtype("python"))
    for kind in (pa.string(), pa.large_string()):
        yield str(kind), pd.Series(pd.arrays.ArrowExtensionArray(pa.array(text, kind)))
        yield f"slice of {kind}", pd.Series(pd.arrays.ArrowExtensionArray(pa.array(text, kind)[3:-5]))
    parts = pa.chunked_array([pa.array(text[:9]), pa.array(text[9:], pa.string())])
    yield "chunks", pd.Series(pd.arrays.ArrowExtensionArray(parts))
    buffers = [
        each and pa.py_buffer(memoryview(b"0" + each.to_pybytes())[1:])
        for each in pa.array(text, pa.large_string()).buffers()
    ]
    unaligned = pa.Array.from_buffers(pa.large_string(), m, buffers)
    yield "unaligned", pd.Series(pd.arrays.ArrowExtensionArray(unaligned))
    yield "few", pd.Series(np.array(["a", ""], object)[rng.integers(0, 2, m)], dtype=object)
    yield "empty ones", pd.Series([""] * m, dtype=object)
    yield "distinct", pd.Series(np.arange(m).astype(str).astype(object), dtype=object)


@pytest.mark.parametrize(("name", "column"), list(columns()), ids=lambda one: one if isinstance(one, str) else "")
def test_codes_are_those_of_pandas(name, column, monkeypatch):
    objects = column.to_numpy(object)
    expected, distinct = pd.factorize(
        np.append(objects, [object()])
    )  # beside another object, pandas compares all letters
    codes, found = host_columns.factorize_column(column, "string", name)
    assert_array_equal(codes, expected[:-1])
    assert list(found) == list(distinct[:-1])
    monkeypatch.setattr(library, "is_available", lambda: False)
    codes, found = host_columns.factorize_column(column, "string", name)
    assert_array_equal(codes, expected[:-1])
    assert list(found) == list(distinct[:-1])


def test_rows_are_reported():
    text = pa.array(np.arange(200_000).astype(str), pa.large_string())
    _, offsets, data = text.buffers()
    reported = []
    codes, rows = strings.factorize(np.frombuffer(offsets, np.int64), np.frombuffer(data, np.uint8), reported.append)
    assert_array_equal(codes, np.arange(200_000))
    assert_array_equal(rows, np.arange(200_000))
    assert sum(reported) == 200_000


def test_strings_with_a_lone_surrogate_are_left_to_pandas():
    column = pd.Series(["\ud800", "a"] * 10_000, dtype=object)
    assert host_columns.factorize_strings(column.to_numpy()) is None
    codes, distinct = host_columns.factorize_column(column, "string", "src")
    assert_array_equal(codes, [0, 1] * 10_000)
    assert list(distinct) == ["\ud800", "a"]
