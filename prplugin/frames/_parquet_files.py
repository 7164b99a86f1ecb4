"""Files of a Parquet dataset: common types of their columns, and row groups cast to these types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from prplugin.errors import InvalidEdgesError
from prplugin.frames import _pandas_ids, _pandas_kinds, narwhals
from prplugin.frames.columns import Columns


@dataclass(frozen=True)
class File:
    """A Parquet file, with the schema of the columns in use."""

    fragment: Any  # pyarrow.dataset.ParquetFileFragment
    schema: pa.Schema
    rows: int

    @property
    def where(self) -> str:
        """Name of the file, for messages."""
        return f"file {self.fragment.path!r}"

    def tables(self, common: list[pa.Field | None]) -> Iterator[pa.Table]:
        """Yield the row groups as tables, cast to the types from `files_of`."""
        with _errors_of(self.fragment):
            parts = self.fragment.split_by_row_group()
        for part in parts:
            with _errors_of(self.fragment):
                table = part.to_table(
                    columns={name: ds.field((name,)) for name in self.schema.names}, schema=self.schema
                )
            columns = [self._cast(*pair) for pair in zip(table.columns, common, strict=True)]
            fields = [
                (field or own).with_type(column.type)
                for field, own, column in zip(common, self.schema, columns, strict=True)
            ]
            yield pa.table(columns, pa.schema(fields))

    def _cast(self, column: pa.ChunkedArray, field: pa.Field | None) -> pa.ChunkedArray:
        if pa.types.is_dictionary(column.type):  # dictionaries differ between row groups
            column = _pandas_ids.decode_arrow(column, "")
        if field is None or column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except pa.ArrowException as error:
            raise InvalidEdgesError(
                f"column {field.name!r} of {self.where} ({column.type}) holds values that {field.type}, the type in "
                f"common with other files, does not: {error}. Cast the files to one type."
            ) from error


@contextmanager
def _errors_of(fragment: Any) -> Iterator[None]:
    """Convert errors of Arrow to `InvalidEdgesError` with the name of the file."""
    try:
        yield
    except MemoryError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise InvalidEdgesError(f"file {fragment.path!r} cannot be read as Parquet: {error}") from error


def files_of(dataset: ds.Dataset, columns: Columns, used: list[int]) -> tuple[list[File], list[pa.Field | None]]:
    """Return the files of a dataset, and the field to which row groups are cast for each column in `used`.

    The common type has the largest width of integers and floats, the finest unit of times and the most digits of
    decimals, so that no value changes. Weights, and integers without a common type, keep their
    types, and their field is None.

    Raises ColumnNotFoundError: if a file lacks a column.
    Raises InvalidEdgesError: if a file cannot be read, or has a column more than once, or the kinds of ids differ
    between files.
    """
    schema = [dataset.schema.field(position) for position in used]
    names = [field.name for field in schema]
    files = [_file(dataset, fragment, columns, names) for fragment in dataset.get_fragments()]
    return files, [_common_field(files, position, field, columns) for position, field in enumerate(schema)]


def _file(dataset: ds.Dataset, fragment: Any, columns: Columns, names: list[str]) -> File:
    with _errors_of(fragment):
        schema, rows = fragment.physical_schema, fragment.metadata.num_rows
    keys = ds.get_partition_keys(fragment.partition_expression)
    folders = [key for key in keys if key not in schema.names]
    columns.within([*schema.names, *folders], f"file {fragment.path!r}")
    if duplicated := [name for name in names if name in keys and name in schema.names]:
        if any(name in folders for name in names):
            raise InvalidEdgesError(
                f"column {duplicated[0]!r} is in file {fragment.path!r} and in the name of its folder, too: rename one."
            )
        # Without the partition expression Arrow reads these columns from the file, not from the folder name.
        fragment = dataset.format.make_fragment(fragment.path, fragment.filesystem)
    if isinstance(dataset.partitioning, ds.HivePartitioning):
        for position in {*columns.source, *columns.destination}:
            if (name := names[position]) in folders:
                _require_canonical_folder_name(name, keys[name], fragment.path)
    found = [dataset.schema.field(name) if name in folders else schema.field(name) for name in names]
    return File(fragment, pa.schema(found), rows)


def _require_canonical_folder_name(name: str, value: object, path: str) -> None:
    """Raise if a folder name is not the canonical form of its integer: Arrow reads src=007 and src=7 as one id."""
    if isinstance(value, int) and f"{name}={value}" not in path.split("/"):
        raise InvalidEdgesError(
            f"column {name!r} has the id {value} from the name of the folder of file {path!r}, which is not "
            "written so: different names could be one vertex. Read them as strings: pass a dataset with "
            f"partitioning=pyarrow.dataset.partitioning(pyarrow.schema({{{name!r}: 'string'}}), flavor='hive')."
        )


def _common_field(files: list[File], position: int, field: pa.Field, columns: Columns) -> pa.Field | None:
    """Return the field of the dataset's schema in the common type of the files; None to keep the types of the files."""
    label = f"column {field.name!r}"
    if position == columns.weight:
        _refuse_weights_in_part(files, position, label)
        return None
    members = [(file.schema.field(position).type, file.where, file.rows) for file in files]
    if not members or field.type != members[0][0]:  # a schema given by the user, not that of the first file
        members.append((field.type, "the dataset's schema", 1))
    members = [member for member in members if member[2]] or members[:1]
    file_labels = [f"{label} of {where} ({kind})" for kind, where, _ in members]
    _pandas_kinds.common_kind(members, file_labels, lambda member, file_label: _kind(member[0], file_label))
    common = _common_type([_plain(kind) for kind, _, _ in members])
    return None if common is None else field.with_type(common)


def _plain(kind: pa.DataType) -> pa.DataType:
    return _plain(kind.value_type) if pa.types.is_dictionary(kind) else kind


def _kind(kind: pa.DataType, label: str) -> str:
    """Return the kind of ids of an Arrow type, as in `prplugin.frames._pandas_kinds.kind_of`."""
    kind = _plain(kind)
    if pa.types.is_floating(kind):
        return "float"
    return _pandas_kinds.kind_of(narwhals.series(pa.chunked_array([], kind), label), label)


def _common_type(kinds: list[pa.DataType]) -> pa.DataType | None:
    """Return the type that holds all values of types of one kind; None for integers without a common type."""
    kinds = [kind for kind in kinds if not pa.types.is_null(kind)] or kinds[:1]
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(pa.types.is_integer(kind) for kind in kinds):
        common = np.result_type(*(kind.to_pandas_dtype() for kind in kinds))
        return pa.from_numpy_dtype(common) if common.kind in "iu" else None
    kinds = [kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind for kind in kinds]
    kinds = [_VIEWS.get(kind, kind) for kind in kinds]
    zone = next((kind.tz for kind in kinds if pa.types.is_timestamp(kind)), None)
    kinds = [pa.timestamp(kind.unit, zone) if pa.types.is_timestamp(kind) else kind for kind in kinds]
    schemas = [pa.schema([("ids", kind)]) for kind in kinds]
    return pa.unify_schemas(schemas, promote_options="permissive").field(0).type


_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def _refuse_weights_in_part(files: list[File], position: int, label: str) -> None:
    """Raise if weights are numeric in some files but not in all."""
    kinds = [(_plain(file.schema.field(position).type), file.where) for file in files]
    others = [(kind, where) for kind, where in kinds if not _is_number(kind)]
    if others and len(others) < len(kinds):
        kind, where = next((kind, where) for kind, where in kinds if _is_number(kind))
        raise InvalidEdgesError(
            f"{label} of {where} ({kind}) holds numbers, but {label} of {others[0][1]} ({others[0][0]}) does not: "
            "cast it, for instance to float64."
        )


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    return any(test(kind) for test in tests)
