"""Vertices of a saved graph: their ids as an Arrow file, and what else makes results of the same kind, as JSON.

Everything that saving needs to know of `Vertices` is here. pandas and pyarrow are imported when ids are first used.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidOptionError, MissingLibraryError
from prplugin.folders import Folder
from prplugin.frames.literals import from_json, to_json
from prplugin.frames.matrices import OnHost
from prplugin.frames.matrices import Vertices as PositionVertices
from prplugin.frames.vertices import Labels, Vertices
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Integers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FILE = "vertices.arrow"
"""File of the ids; a graph on the vertices 0..n-1 has none."""

OBJECTS = {"str": "large_string", "bytes": "large_binary", "int": "int64", "bool": "bool_"}
"""Arrow types of columns of Python objects that all are of one of these types; others are saved as JSON."""


class SavedVertices:
    """Vertices that are read from the file of a saved graph when they are first used."""

    def __init__(self, n: int, read: Callable[[], Vertices]) -> None:
        self._n, self._read = n, read

    def __len__(self) -> int:
        return self._n

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._vertices, name)

    def __reduce__(self) -> Any:
        return _same, (self._vertices,)

    def write(self, ranks: Any, rows: Integers | None, labels: Labels | None = None) -> Any:
        return self._vertices.write(ranks, rows, labels)

    def plain_ids(self, rows: Integers) -> list[Any]:
        return self._vertices.plain_ids(rows)

    @cached_property
    def _vertices(self) -> Vertices:
        return self._read()


def _same(vertices: Vertices) -> Vertices:
    return vertices


def write(vertices: Any, folder: Path) -> dict[str, Any]:
    """Write the ids to `FILE`; return what `read` needs beside them, as JSON has it.

    Raise InvalidOptionError for ids or labels that can only be restored by pickle.
    """
    if isinstance(vertices, SavedVertices):
        vertices = vertices._vertices
    if isinstance(vertices, PositionVertices):
        return {"positions": True, "in_cudf": vertices._in_cudf}
    import pyarrow as pa

    from prplugin.frames import narwhals, pandas

    facts: dict[str, Any] = {
        "names": [to_json(name, "the label of a column") for name in vertices.names],
        "kinds": vertices.kinds,
        "in_cudf": vertices.library.memory_space == "device",
        "proxied": getattr(vertices.boundary, "proxied", False),
    }
    if facts["in_cudf"]:
        with vertices.active():
            ids: list[Any] = [column.to_pandas().array for column in vertices.columns]
    else:
        assert isinstance(vertices, pandas.Vertices)
        ids = [getattr(column, "array", column) for column in vertices.ids]
    if isinstance(vertices, narwhals.Vertices):
        facts["frames"] = {
            "backend": vertices.backend.value,
            "syntax": vertices.syntax,
            "wrapped_by": None if vertices.wrap is None else vertices.wrap.__module__.removesuffix(".translate"),
            "fields": [None if field is None else _encoded_field(field) for field in vertices.fields],
        }
    columns = [_encoded(array, f"column {name!r} of ids") for array, name in zip(ids, vertices.names, strict=True)]
    facts["columns"] = [spec for spec, _ in columns]
    table = pa.table([array for _, array in columns], names=[str(place) for place in range(len(columns))])
    with pa.OSFile(str(folder / FILE), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(table.num_rows, 1))
    return facts


def has_file(facts: dict[str, Any]) -> bool:
    """Return whether the vertices with these facts have ids in `FILE`."""
    return facts.get("positions") is not True


def read(facts: dict[str, Any], folder: Folder, n: int, memory_space: MemorySpace, *, in_pandas: bool) -> Any:
    """Return the vertices of a saved graph of n vertices, in the memory space of its edges.

    Ids are read and checked at their first use.

    `in_pandas`: Whether results are pandas frames, whatever the edges were.
    """
    if not has_file(facts):
        in_cudf = facts["in_cudf"] and memory_space == "device"
        return PositionVertices(n, memory_space, in_cudf=in_cudf)
    folder.buffer(FILE)
    facts = facts | {"frames": None, "proxied": False} if in_pandas else facts
    return SavedVertices(n, lambda: _read(facts, folder, n, memory_space))


def _read(facts: dict[str, Any], folder: Folder, n: int, memory_space: MemorySpace) -> Vertices:
    import pyarrow as pa

    from prplugin.frames import pandas

    try:
        folder.verify([FILE])
        names, kinds, specs = [from_json(name) for name in facts["names"]], facts["kinds"], facts["columns"]
        table = pa.ipc.open_file(pa.py_buffer(folder.buffer(FILE))).read_all()
        table.validate(full=True)
        if table.num_rows != n or not 0 < table.num_columns == len(names) == len(kinds) == len(specs):
            raise ValueError(f"{FILE} has {table.num_rows:,} rows of {table.num_columns} columns")
        ids = [_decoded(spec, _chunk(column)) for spec, column in zip(specs, table.columns, strict=True)]
        _check(ids, kinds)
        restored: Vertices = pandas.Vertices(names, ids, kinds)
        if facts.get("frames") is not None:
            restored = _of_frames(facts["frames"], restored)
        in_cudf, proxied = facts["in_cudf"] and memory_space == "device", facts["proxied"]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, pa.ArrowException) as error:
        raise folder.damaged(error) from error
    if in_cudf:
        from prplugin.frames import cudf

        restored = cudf.Vertices.of_host(restored)
    elif memory_space == "device":
        restored = replace(restored, boundary=OnHost(memory_space))
    if proxied and "cudf.pandas" in sys.modules:
        from prplugin.frames.proxies import Proxies

        restored = replace(restored, boundary=Proxies(in_cudf, proxied=True))
    return restored


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.null_count or column.num_chunks > 1:
        raise ValueError(f"a column of {FILE} has nulls or several chunks")
    return column.chunk(0) if column.num_chunks else _combined(column)


def _check(ids: list[Any], kinds: list[str]) -> None:
    """Raise ValueError for ids of other kinds, or for integers that do not ascend."""
    from prplugin.frames._pandas_ids import integers as integers_of
    from prplugin.frames._pandas_kinds import kind_of

    found = [kind_of(_series(column), "the ids") if len(column) else None for column in ids]
    if any(kind not in (None, expected) for kind, expected in zip(found, kinds, strict=True)):
        raise ValueError(f"ids of kind {found} instead of {kinds}")
    if kinds == ["integer"]:
        integers = integers_of(ids[0])
        if bool((integers[1:] <= integers[:-1]).any()):
            raise ValueError("integer ids that do not ascend")


def _of_frames(facts: dict[str, Any], vertices: Vertices) -> Vertices:
    """Return vertices that are written to frames of a library of narwhals."""
    import narwhals as nw

    from prplugin.frames import narwhals

    backend, wrap = nw.Implementation(facts["backend"]), None
    if (module := facts["wrapped_by"]) is not None:
        if not re.fullmatch(r"narwhals(\.stable(\.v\d+)?)?", module):
            raise ValueError(f"{module!r} is no module of narwhals")
        wrap = importlib.import_module(module).from_native
    try:
        backend.to_native_namespace()
    except ImportError as error:
        raise MissingLibraryError(f"the graph was made from a frame of {backend.value}: install it.") from error
    fields = [None if field is None else _decoded_field(field) for field in facts["fields"]]
    syntax = str(facts["syntax"])
    return narwhals.Vertices(vertices.names, vertices.ids, vertices.kinds, fields, backend, syntax, wrap)


def _encoded_field(field: pa.Field) -> str:
    import pyarrow as pa

    encoded = pa.schema([field]).serialize().to_pybytes().hex()
    if not _decoded_field(encoded).equals(field, check_metadata=True):
        raise InvalidOptionError(
            f"column {field.name!r} of ids has the type {field.type}, which cannot be saved. Cast it to its storage "
            "type before you make the graph."
        )
    return encoded


def _decoded_field(encoded: str) -> pa.Field:
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(encoded))).field(0)


# --- columns of ids ---------------------------------------------------------------------------------------------------


def _encoded(array: Any, what: str) -> tuple[Any, pa.Array]:
    """Return how to restore an array of ids of any pandas type, as JSON has it, and the array that Arrow has."""
    try:
        spec, held = _spec_and_array(array, what)
        like = _decoded(spec, held[:0])
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        if isinstance(error, InvalidOptionError):
            raise
        like = None
    if type(like) is not type(array) or like.dtype != array.dtype:
        raise InvalidOptionError(
            f"{what} has the type {array.dtype}, which cannot be saved without pickle. Cast it, for instance to "
            "strings, before you make the graph."
        )
    return spec, held


def _spec_and_array(array: Any, what: str) -> tuple[Any, pa.Array]:
    import pandas as pd
    import pyarrow as pa

    dtype = array.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        spec, categories = _encoded(array.categories.array, f"{what}, its categories,")
        return {"category": spec, "ordered": bool(dtype.ordered)}, pa.DictionaryArray.from_arrays(
            array.codes, categories, ordered=bool(dtype.ordered)
        )
    if isinstance(dtype, pd.PeriodDtype):
        return {"period": dtype.freq.freqstr}, pa.array(array.asi8)
    if isinstance(dtype, pd.IntervalDtype):
        (left, held_left), (right, held_right) = _encoded(array.left.array, what), _encoded(array.right.array, what)
        struct = pa.StructArray.from_arrays([held_left, held_right], ["left", "right"])
        return {"interval": dtype.closed, "left": left, "right": right}, struct
    if isinstance(dtype, pd.DatetimeTZDtype):
        return {"zoned": [dtype.unit, pa.lib.tzinfo_to_string(dtype.tz)]}, pa.array(array.asi8)
    if isinstance(dtype, pd.StringDtype):
        spec = {"string": dtype.storage, "nan": dtype.na_value is not pd.NA}
        return spec, _combined(pa.array(array, type=None if dtype.storage == "pyarrow" else pa.large_string()))
    if isinstance(dtype, pd.ArrowDtype):
        return {"arrow": True}, _combined(pa.array(array))
    wrapped = isinstance(array, pd.arrays.NumpyExtensionArray)
    plain = array.to_numpy() if wrapped else array
    if plain.dtype == object:
        name, held = _held_objects(plain.tolist(), what)
        return {"objects": name, "wrapped": wrapped}, held
    if not isinstance(plain.dtype, np.dtype):
        return {"nullable": plain.dtype.name}, pa.array(plain.to_numpy(plain.dtype.numpy_dtype))
    ticks = np.asarray(plain).view(np.int64) if plain.dtype.kind in "mM" else plain
    return {"numpy": plain.dtype.str, "wrapped": wrapped}, pa.array(ticks)


def _combined(array: Any) -> pa.Array:
    import pyarrow as pa

    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _held_objects(values: list[Any], what: str) -> tuple[str, pa.Array]:
    """Return the name in `OBJECTS` of the type of all values, or "json", and the values as Arrow has them."""
    import pyarrow as pa

    names = {type(value).__name__ for value in values if type(value) in (str, bytes, int, bool)}
    if len(names) == 1 and len({type(value) for value in values}) == 1:
        (name,) = names
        try:
            return name, pa.array(values, getattr(pa, OBJECTS[name])())
        except (OverflowError, UnicodeError, pa.ArrowException):
            pass  # integers past 2**63, or lone surrogates
    return "json", pa.array([json.dumps(to_json(value, what)) for value in values], pa.large_string())


def _decoded(spec: Any, held: pa.Array) -> Any:
    """Return the array of pandas or NumPy that `_encoded` was given."""
    import pandas as pd

    if "category" in spec:
        categories = pd.Index(_decoded(spec["category"], held.dictionary), copy=False)
        dtype = pd.CategoricalDtype(categories, ordered=spec["ordered"])
        codes = held.indices.to_numpy(zero_copy_only=False)
        return pd.Categorical.from_codes(codes, dtype=dtype)
    if "period" in spec:
        return pd.arrays.PeriodArray(_numbers(held, np.int64), dtype=pd.PeriodDtype(spec["period"]))
    if "interval" in spec:
        left, right = (_decoded(spec[end], held.field(end)) for end in ("left", "right"))
        return pd.arrays.IntervalArray.from_arrays(left, right, closed=spec["interval"])
    if "zoned" in spec:
        unit, zone = spec["zoned"]
        ticks: Any = pd.array(_numbers(held, np.int64).view(np.dtype(f"M8[{unit}]")))
        return ticks.tz_localize("UTC").tz_convert(zone)
    if "string" in spec:
        return pd.StringDtype(spec["string"], np.nan if spec["nan"] else pd.NA).__from_arrow__(held)
    if "arrow" in spec:
        return pd.arrays.ArrowExtensionArray(held)
    if "nullable" in spec:
        nullable: Any = pd.api.types.pandas_dtype(spec["nullable"])
        return pd.array(_numbers(held, nullable.numpy_dtype), dtype=nullable)
    values: Any
    if "objects" in spec:
        plain = held.to_pylist()
        if spec["objects"] == "json":
            plain = [from_json(json.loads(text)) for text in plain]
        values = np.empty(len(plain), object)
        values[:] = plain
    else:
        dtype = np.dtype(spec["numpy"])
        if dtype.kind not in "biufmM":  # an empty column may have floats
            raise ValueError(f"{dtype} is no type of ids")
        if dtype.kind in "mM":
            return pd.array(_numbers(held, np.int64).view(dtype))
        values = _numbers(held, dtype)
    return pd.arrays.NumpyExtensionArray(values) if spec["wrapped"] else values


def _numbers(held: pa.Array, dtype: Any) -> Any:
    """Return an Arrow array of numbers as a NumPy array of exactly this type, without a copy except of booleans."""
    numbers = held.to_numpy(zero_copy_only=False)
    if numbers.dtype != dtype:
        raise ValueError(f"{numbers.dtype} instead of {dtype}")
    return numbers


def _series(array: Any) -> pd.Series:
    import pandas as pd

    return pd.Series(array, dtype=array.dtype)
