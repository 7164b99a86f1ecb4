"""Factorization of strings on the GPU, compared with a dictionary."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prplugin.gpu.runtime import unavailable_reason

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(unavailable_reason()), reason=str(unavailable_reason()))]

EDGE_CASES = ["", "a", "a\0", "\0", "\0\0", "ä", "日本語", "🦆", "a" * 8, "a" * 7 + "b", "a" * 9, " "]


def strings_on_device(strings, offset_type=np.int32, before="", after="", misalignment=0):
    """Return strings as a slice of a device column whose buffer begins `misalignment` bytes into a word."""
    import cupy

    from prplugin.gpu.strings import Strings

    encoded = [string.encode() for string in strings]
    head = before.encode()
    chars = np.frombuffer(b"?" * misalignment + head + b"".join(encoded) + after.encode(), np.uint8)
    offsets = len(head) + np.cumsum([0, *map(len, encoded)])
    return Strings(cupy.asarray(chars)[misalignment:], cupy.asarray(offsets.astype(offset_type)))


def as_list(strings):
    chars, offsets = strings.chars.get().tobytes(), strings.offsets.get()
    assert offsets[0] == 0
    assert offsets[-1] == len(chars)
    return [chars[begin:end].decode() for begin, end in pairwise(offsets)]


def factorize_by_dict(source, destination, vertices=()):
    """Return codes by first appearance, and the distinct strings; pandas truncates some strings at a NUL."""
    codes = {}
    for string in [*chain.from_iterable(zip(source, destination, strict=True)), *vertices]:
        codes.setdefault(string, len(codes))
    return [[codes[string] for string in column] for column in (source, destination, vertices)], list(codes)


def assert_factorized(*columns, **layout):
    from prplugin.gpu.strings import factorize_strings

    expected, distinct = factorize_by_dict(*columns)
    given_columns = [strings_on_device(column, **layout) for column in columns]
    codes, found = factorize_strings(given_columns)
    assert as_list(found) == distinct
    assert found.offsets.dtype == np.int32
    assert len(codes) == len(columns)
    for array, reference in zip(codes, expected, strict=False):
        assert array.dtype == np.int32
        assert array.get().tolist() == reference
    for column, kept in zip(given_columns, (strings_on_device(column, **layout) for column in columns), strict=True):
        assert (column.chars.get() == kept.chars.get()).all()
        assert (column.offsets.get() == kept.offsets.get()).all()


def sample(strings, *sizes):
    rng = np.random.default_rng(len(strings))
    array = np.array([*strings, None], object)[:-1]
    return [array[rng.integers(0, array.size, size)] for size in sizes]


@pytest.mark.parametrize("m", [1, 31, 33, 2048, 40_000])
@pytest.mark.parametrize("n", [1, 20, 30_000])
def test_decimal_strings(n, m):
    ids = [str(i) for i in np.random.default_rng(0).integers(-(2**61), 2**61, n)]
    assert_factorized(*sample(ids, m, m))
    assert_factorized(*sample(ids, m, m, 1 + m // 10))


@pytest.mark.parametrize("misalignment", [0, 1, 3, 7])
def test_short_strings(misalignment):
    assert_factorized(*sample(EDGE_CASES, 300, 300, 40), misalignment=misalignment)
    for string in EDGE_CASES:
        assert_factorized([string], [string], [string], misalignment=misalignment)


@pytest.mark.parametrize("offset_type", [np.int32, np.int64])
def test_strings_of_sliced_columns(offset_type):
    ids = [f"vertex {i}" for i in range(200)]
    for before, after in [("x", ""), ("before", "after"), ("", "y" * 50)]:
        assert_factorized(*sample(ids, 500, 500), offset_type=offset_type, before=before, after=after, misalignment=5)


def test_strings_of_every_length():
    """Factorize strings that differ in one byte at a random position."""
    rng = np.random.default_rng(0)
    ids = []
    for length in range(301):
        letters = np.full(length, ord("a"), np.uint8)
        ids.append(letters.tobytes().decode())
        if length:
            letters[rng.integers(length)] = ord("b")
            ids.append(letters.tobytes().decode())
    ids = list(dict.fromkeys(ids))
    assert_factorized(ids, ids[::-1])
    assert_factorized(*sample(ids, 3000, 3000, 200), misalignment=3)


def test_long_strings_among_short_ones():
    long = ["x" * 100_000, "x" * 99_999 + "y", "x" * 257, "x" * 256, "x" * 255 + "z", "ä" * 5000]
    assert_factorized(*sample([*EDGE_CASES, *long], 200, 200, 10))
    assert_factorized([long[0]] * 3, long[:3])


def test_equal_and_distinct_strings():
    assert_factorized(["same"] * 10_000, ["same"] * 10_000)
    ids = [f"https://example.org/{i:07}" for i in range(20_000)]
    assert_factorized(ids[::2], ids[1::2], ids[:100])


def test_vertices_without_rows():
    assert_factorized([], [], ["b", "a", "b"])
    assert_factorized(["b"], ["a"], [])


def test_offsets_of_both_widths():
    from prplugin.gpu.strings import factorize_strings

    codes, found = factorize_strings(
        [strings_on_device(["b", "a"], np.int64), strings_on_device(["a", "c"]), strings_on_device(["d"], np.int64)]
    )
    assert [column.get().tolist() for column in codes] == [[0, 1], [1, 2], [3]]
    assert as_list(found) == ["b", "a", "c", "d"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)) | st.just(("a", "")), max_size=40),
    st.lists(st.text(max_size=3), min_size=1, max_size=20),
    st.integers(0, 7),
)
def test_arbitrary_strings(rows, vertices, misalignment):
    # Lone surrogates have no UTF-8 encoding, so no column holds them.
    rows = [tuple(text.encode(errors="replace").decode() for text in row) for row in rows]
    vertices = [text.encode(errors="replace").decode() for text in vertices]
    assert_factorized([row[0] for row in rows], [row[1] for row in rows], vertices, misalignment=misalignment)


@pytest.mark.parametrize("bits", [0, 3, 64])
def test_hash_collisions_are_detected(monkeypatch, bits):
    from prplugin.gpu import strings

    hashed = strings._hashed
    monkeypatch.setattr("prplugin.gpu.strings._hashed", lambda *column: hashed(*column) & np.uint64(2**bits - 1))
    columns = [strings_on_device(column) for column in sample([str(i) for i in range(100)], 300, 300)]
    assert (strings.factorize_strings(columns) is None) == (bits < 64)
    assert_factorized(["one"] * 50, ["one"] * 50)


@pytest.mark.parametrize("length", [1, 8, 100, 500])
@pytest.mark.parametrize("change", ["", "first", "middle", "last", "longer", "shorter"])
def test_one_different_string_of_same_hash(monkeypatch, change, length):
    import cupy

    from prplugin.gpu import strings

    # This hash also marks an empty slot.
    monkeypatch.setattr("prplugin.gpu.strings._hashed", lambda column, _: cupy.full(column.rows, 2**64 - 1, np.uint64))
    repeated = "x" * length
    other = {
        "": repeated,
        "first": "y" + repeated[1:],
        "middle": repeated[: length // 2] + "y" + repeated[length // 2 + 1 :],
        "last": repeated[:-1] + "y",
        "longer": repeated + "\0",
        "shorter": repeated[:-1],
    }[change]
    endpoints = [repeated] * 1000
    codes, found = strings.factorize_strings([strings_on_device(endpoints), strings_on_device(endpoints)])
    assert as_list(found) == [repeated]
    assert not any(column.get().any() for column in codes)
    for row in (0, 500, 999):
        changed = [*endpoints[:row], other, *endpoints[row + 1 :]]
        assert (strings.factorize_strings([strings_on_device(changed), strings_on_device(endpoints)]) is None) == (
            other != repeated
        )
        assert (strings.factorize_strings([strings_on_device(endpoints), strings_on_device(changed)]) is None) == (
            other != repeated
        )


def test_hash_table_that_is_too_small(monkeypatch):
    from prplugin.gpu import strings

    monkeypatch.setattr("prplugin.gpu.factorize.SLOTS_PER_ID", 0.1)
    assert strings.factorize_strings([strings_on_device(map(str, range(50_000)))] * 2) is None


def test_strings_with_64_bit_look_back(monkeypatch):

    monkeypatch.setattr("prplugin.gpu.sort.NARROW", 0)
    assert_factorized(*sample([str(i) for i in range(5000)], 20_000, 20_000))


def test_more_strings_than_initial_table():
    """Factorize more strings than fit the table that is allocated without an estimate."""
    ids = [f"{i:x}" for i in np.random.default_rng(1).integers(0, 2**60, 60_000)]
    assert_factorized(*sample(ids, 600_000, 600_000))
