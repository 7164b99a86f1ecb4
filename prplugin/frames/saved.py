"""Vertices of a saved graph: their ids as an Arrow file, and what else makes results of the same kind, as JSON.

Everything that saving needs to know of `Vertices` is here. pandas and pyarrow are imported when ids are first used.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import InvalidOptionError, MissingLibraryError
from prplugin.folders import Folder
from prplugin.frames.columns import Column, Dtype, Frame
from prplugin.frames.dask import OnePartition
from prplugin.frames.device_files import InPandas
from prplugin.frames.groups import GroupedVertices
from prplugin.frames.literals import from_json, to_json
from prplugin.frames.matrices import OnHost
from prplugin.frames.narwhals import Output
from prplugin.frames.proxies import Proxies
from prplugin.frames.vertices import Boundary, Labels, Vertices, ids_in
from prplugin.types.array_module import Ranks
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Integers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FILE = "vertices.arrow"  # file of the ids

OBJECTS: dict[type, str] = {str: "large_string", bytes: "large_binary", int: "int64", bool: "bool"}
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
        return replace, (self._vertices,)  # an equal copy

    # Rankings hold these two methods, and may never call them.

    def write(self, ranks: Ranks, rows: Integers | None, labels: Labels | None = None) -> Frame:
        return self._vertices.write(ranks, rows, labels)

    def plain_ids(self, rows: Integers) -> list[Hashable]:
        return self._vertices.plain_ids(rows)

    @cached_property
    def _vertices(self) -> Vertices:
        return self._read()


def write(vertices: Vertices, folder: Path) -> dict[str, Any]:
    """Write the ids to `FILE`; return what `read` needs beside them, as JSON has it.

    Raise InvalidOptionError for ids or labels that can only be restored by pickle.
    """
    import pyarrow as pa

    with vertices.active():
        ids = [vertices.ids.to_host(column) for column in vertices.series]
        columns = [_encoded(array, f"column {name!r} of ids") for array, name in zip(ids, vertices.names, strict=True)]
    table = pa.table([array for _, array in columns], names=[str(place) for place in range(len(columns))])
    with pa.OSFile(os.fsencode(folder / FILE), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(table.num_rows, 1))
    return {
        "names": [to_json(name, "the label of a column") for name in vertices.names],
        "kinds": vertices.kinds,
        "by": getattr(vertices, "by", 0),
        "columns": [spec for spec, _ in columns],
        "in_cudf": vertices.memory_space == "device",
        "boundary": _encoded_boundary(vertices.boundary, [array.dtype for array in ids]),
    }


def read(facts: dict[str, Any], folder: Folder, n: int, memory_space: MemorySpace, *, in_pandas: bool) -> Any:
    """Return the vertices of a saved graph of n vertices, in the memory space of its edges.

    Ids are read and checked at their first use.

    `in_pandas`: Whether results are pandas frames, whatever the edges were.
    """
    folder.buffer(FILE)
    facts = facts | {"boundary": "pandas"} if in_pandas else facts
    return SavedVertices(n, lambda: _read(facts, folder, n, memory_space))


def _read(facts: dict[str, Any], folder: Folder, n: int, memory_space: MemorySpace) -> Vertices:
    import pyarrow as pa

    try:
        folder.verify([FILE])
        names, kinds, specs = [from_json(name) for name in facts["names"]], facts["kinds"], facts["columns"]
        table = pa.ipc.open_file(pa.py_buffer(folder.buffer(FILE))).read_all()
        table.validate(full=True)
        if table.num_rows != n or not 0 < table.num_columns == len(names) == len(kinds) == len(specs):
            raise ValueError(f"{FILE} has {table.num_rows:,} rows of {table.num_columns} columns")
        ids = [_decoded(spec, _chunk(column)) for spec, column in zip(specs, table.columns, strict=True)]
        _check(ids, kinds)
        in_cudf = facts["in_cudf"] and memory_space == "device"
        boundary = _decoded_boundary(facts["boundary"], [array.dtype for array in ids], in_cudf=in_cudf)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, pa.ArrowException) as error:
        raise folder.damaged(error) from error
    by = facts.get("by", 0)
    vertices = GroupedVertices(names, ids, kinds, by=by) if by else Vertices(names, ids, kinds)
    if in_cudf:
        return replace(vertices.on_device(), boundary=boundary or Boundary())
    return replace(vertices, boundary=boundary or OnHost(memory_space))


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.null_count or column.num_chunks > 1:
        raise ValueError(f"a column of {FILE} has nulls or several chunks")
    return column.chunk(0) if column.num_chunks else column.combine_chunks()


def _check(columns: list[Column], kinds: list[str]) -> None:
    """Raise ValueError for ids of other kinds, or for integers that do not ascend."""
    ids = ids_in("host")
    found = [ids.kind_of(ids.as_column(column), "the ids") if len(column) else None for column in columns]
    if any(kind not in (None, expected) for kind, expected in zip(found, kinds, strict=True)):
        raise ValueError(f"ids of kind {found} instead of {kinds}")
    if kinds == ["integer"]:
        integers = ids.integers(columns[0])
        if bool((integers[1:] <= integers[:-1]).any()):
            raise ValueError("integer ids that do not ascend")


# --- libraries of results -------------------------------------------------------------------------------------------


def _encoded_boundary(boundary: Boundary, dtypes: list[Dtype]) -> Any:
    """Return the library of the results as JSON has it: None for that of the ids, cuDF or pandas."""
    if isinstance(boundary, Output):
        types = zip(boundary.fields, boundary.dtypes, dtypes, strict=True)
        return {
            "backend": boundary.backend.value,
            "from_native": boundary.from_native and boundary.from_native.__module__.removesuffix(".translate"),
            "fields": [_encoded_field(field) if field and known == dtype else None for field, known, dtype in types],
        }
    if isinstance(boundary, OnePartition):
        return "dask"
    if isinstance(boundary, InPandas):
        return "pandas"
    return "cudf.pandas" if isinstance(boundary, Proxies) and boundary.proxied else None


def _decoded_boundary(facts: Any, dtypes: list[Dtype], *, in_cudf: bool) -> Boundary | None:
    """Return the conversions to the library of the results, if it is not that of the ids."""
    if facts == "pandas":
        return InPandas() if in_cudf else None
    if facts is None or facts == "cudf.pandas":
        return Proxies(in_cudf, proxied=True) if facts and "cudf.pandas" in sys.modules else None
    if facts == "dask":
        if find_spec("dask") is None:
            raise _missing("Dask")
        return OnePartition()
    import narwhals as nw

    backend, module, from_native = nw.Implementation(facts["backend"]), facts["from_native"], None
    if module is not None:
        if not re.fullmatch(r"narwhals(\.stable(\.v\d+)?)?", module):
            raise ValueError(f"{module!r} is no module of narwhals")
        try:
            from_native = importlib.import_module(module).from_native
        except ImportError as error:
            raise _missing(f"{module}, which this version of narwhals lacks") from error
    try:
        backend.to_native_namespace()
    except ImportError as error:
        raise _missing(backend.value) from error
    fields = [None if field is None else _decoded_field(field) for field in facts["fields"]]
    return Output(fields, dtypes, backend, from_native)


def _missing(library: str) -> MissingLibraryError:
    return MissingLibraryError(f"the graph was made from a frame of {library}: install it.")


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


def _encoded(array: pd.api.extensions.ExtensionArray, what: str) -> tuple[Any, pa.Array]:
    """Return how to restore an array of ids of any pandas type, as JSON has it, and the array that Arrow has."""
    import pandas as pd
    import pyarrow as pa

    array, like = array.to_numpy() if type(array) is pd.arrays.NumpyExtensionArray else array, None
    try:
        spec, held = _spec_and_array(array, what)
        held = held.combine_chunks() if isinstance(held, pa.ChunkedArray) else held
        like = _decoded(spec, held[:0])
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        if isinstance(error, InvalidOptionError):
            raise
    if like is None or like.dtype != array.dtype:
        raise InvalidOptionError(
            f"{what} has the type {array.dtype}, which cannot be saved without pickle. Cast it, for instance to "
            "strings, before you make the graph."
        )
    return spec, held


def _spec_and_array(array: pd.api.extensions.ExtensionArray, what: str) -> tuple[Any, Any]:
    import pandas as pd
    import pyarrow as pa

    dtype = array.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        spec, categories = _encoded(array.categories.array, f"{what}, its categories,")
        ordered = bool(dtype.ordered)
        held = pa.DictionaryArray.from_arrays(array.codes, categories, ordered=ordered)
        return {"category": spec, "ordered": ordered}, held
    if isinstance(dtype, pd.IntervalDtype):
        ends = [_encoded(end.array, what) for end in (array.left, array.right)]
        held = pa.StructArray.from_arrays([end for _, end in ends], ["left", "right"])
        return {"interval": dtype.closed, "ends": [spec for spec, _ in ends]}, held
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        values = np.asarray(array).tolist()
        if len(kinds := {*map(type, values)}) == 1 and kinds <= OBJECTS.keys():
            with suppress(OverflowError, UnicodeError, pa.ArrowException):  # integers past 2**63, or lone surrogates
                return {"json": False}, pa.array(values, OBJECTS[kinds.pop()])
        return {"json": True}, pa.array([json.dumps(to_json(value, what)) for value in values], "large_string")
    if isinstance(dtype, pd.StringDtype):
        spec = {"string": dtype.storage, "nan": dtype.na_value is not pd.NA}
        return spec, pa.array(array, None if dtype.storage == "pyarrow" else "large_string")
    return {"dtype": None if isinstance(dtype, pd.ArrowDtype) else str(dtype)}, pa.array(pd.Series(array, copy=False))


def _decoded(spec: dict[str, Any], held: pa.Array) -> Any:
    """Return the array of pandas or NumPy that `_encoded` was given."""
    import pandas as pd

    if "category" in spec:
        categories = pd.Index(_decoded(spec["category"], held.dictionary), copy=False)
        codes = held.indices.to_numpy(zero_copy_only=False)
        return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(categories, ordered=spec["ordered"]))
    if "interval" in spec:
        left, right = (_decoded(end, held.field(place)) for place, end in enumerate(spec["ends"]))
        return pd.arrays.IntervalArray.from_arrays(left, right, closed=spec["interval"])
    if "json" in spec:
        objects = held.to_pylist()
        values = np.empty(len(objects), object)
        values[:] = [from_json(json.loads(text)) for text in objects] if spec["json"] else objects
        return values
    dtype: Any
    if "string" in spec:
        dtype = pd.StringDtype(spec["string"], np.nan if spec["nan"] else pd.NA)
    else:
        dtype = pd.ArrowDtype(held.type) if spec["dtype"] is None else pd.api.types.pandas_dtype(spec["dtype"])
    if not isinstance(dtype, np.dtype):
        return dtype.__from_arrow__(held)
    numbers = held.to_numpy(zero_copy_only=False)
    if numbers.dtype != dtype or dtype.kind == "O":
        raise ValueError(f"{numbers.dtype} instead of {dtype}")
    return pd.array(numbers) if dtype.kind in "mM" else numbers
