"""Readers of Parquet files as one table, or one row group at a time. Imports pandas.

Row groups are read in two passes. The first pass collects the vertices and their degrees, the second stores the edges.
Host memory then holds one row group, the id and the degrees of each vertex (for integer ids in a hash table, of which a
quarter to a half is in use), and 4 bytes per edge (8 for 2**31 or more vertices), plus 8 for a weight, plus 4 if an
edge list is required, for ``directed=False`` or `duplicates`.

The narwhals adapter reads the table or each row group, so that ids are compared, and errors reported, in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from prplugin.cpu import library
from prplugin.errors import InvalidEdgesError, OutOfMemoryError, PageRankError, counted, listed, path_errors
from prplugin.frames import arrow, narwhals
from prplugin.frames.columns import Column, Columns, same_kind
from prplugin.frames.host_columns import decode_arrow
from prplugin.frames.ids import HOST
from prplugin.frames.parts import EdgeList, Part, Sink, integer_part, read_twice
from prplugin.frames.vertex_index import IndexFactorizer, VertexIndex
from prplugin.frames.vertices import Vertices
from prplugin.machine import bytes_available
from prplugin.options import EdgeOptions
from prplugin.progress import counting
from prplugin.types.edges import Coo, Grouped

PEAK = 4  # upper estimate of the peak memory of reading and factorizing a table, in multiples of its size


def table_of(files: list[File], common: list[pa.Field | None], *, at_once: bool) -> pa.Table | None:
    """Return all row groups as one table; None if memory does not suffice, or if their types differ.

    With `at_once`, available memory is not checked, and different types raise InvalidEdgesError.
    """
    max_bytes, rows = bytes_available() / PEAK, sum(file.rows for file in files)
    tables: list[pa.Table] = []
    total_bytes = total_rows = 0
    count = counting(rows, "rows")
    for file in files:
        for table in file.tables(common):
            tables.append(table)
            total_bytes, total_rows = total_bytes + table.nbytes, total_rows + table.num_rows
            count(total_rows)
            if at_once and table.schema != tables[0].schema:
                raise InvalidEdgesError(
                    f"{file.where} has other types than the files before it: cast the files to one type."
                )
            if not at_once and (table.schema != tables[0].schema or total_bytes * rows > max_bytes * total_rows):
                return None
    return pa.concat_tables(tables) if tables else None


# --- files ----------------------------------------------------------------------------------------------------------


def open_paths(paths: list[str]) -> ds.Dataset:
    """Open a file or a folder, or several as one; raise InvalidEdgesError if there is no Parquet to read."""

    def dataset(path: str | list[str]) -> ds.Dataset:
        try:  # folders named `key=value` add columns that the files do not have
            return ds.dataset(path, format="parquet", partitioning="hive")
        except pa.ArrowTypeError:  # the files have columns of these names, of another type
            return ds.dataset(path, format="parquet")

    local = [path for path in paths if "://" not in path]
    for path in local:
        with path_errors(path):
            os.stat(path)
    where = f"edges are the path {listed([repr(path) for path in paths])}"
    try:
        if len(paths) == 1:
            found = dataset(paths[0])
        else:
            found = dataset([file for path in paths for file in (dataset(path).files if path in local else [path])])
    except MemoryError as error:
        raise OutOfMemoryError(f"{where}, and memory ran out while it was opened: {error}") from error
    except UnicodeError as error:
        raise InvalidEdgesError(f"{where}, where a name or the schema of a file is not UTF-8: {error}.") from error
    except (OSError, pa.ArrowException) as error:
        text = "prplugin.Graph.from_file(path, format='csv') reads text whatever its name"
        remedy = "Pass the files of Parquet in it, as a list" if os.path.isdir(paths[0]) else text
        raise InvalidEdgesError(f"{where}, where no Parquet can be read: {error}. {remedy}.") from error
    if not found.files:
        raise InvalidEdgesError(f"{where}, a folder in which there is no Parquet file.")
    return found


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

    @property
    def plain_schema(self) -> pa.Schema:
        """The schema with types of values instead of dictionaries."""
        return pa.schema([field.with_type(_plain(field.type)) for field in self.schema])

    def group_bytes(self) -> list[int]:
        """Return the sizes of the columns in each row group, before and after decompression, in bytes."""
        return [
            sum(each.total_compressed_size + each.total_uncompressed_size for each in group) for group in self._chunks()
        ]

    def extremes(self, position: int) -> list[tuple[Any, Any]]:
        """Return the smallest and the largest value of a column in each row group; None where they are not stored."""
        found = [group[position].statistics for group in self._chunks()]
        return [(each.min, each.max) if each is not None and each.has_min_max else (None, None) for each in found]

    def _chunks(self) -> list[list[Any]]:
        metadata = self.fragment.metadata
        places = {metadata.schema.column(place).path: place for place in range(metadata.num_columns)}
        positions = [places[name] for name in self.schema.names]
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        return [[group.column(position) for position in positions] for group in groups]

    def not_for_cudf(self) -> str | None:
        """Return why cuDF may read other values than Arrow, or None."""
        if type(self.fragment.filesystem).__name__ != "LocalFileSystem":
            return f"{self.where} is not on a local disk"
        own = self.fragment.physical_schema
        for field in self.schema:
            if field.name not in own.names:
                return f"column {field.name!r} is in the names of folders"
            if int96_columns(self.fragment.metadata, [field.name]):
                return f"column {field.name!r} is of INT96 times"
            kind = _plain(own.field(field.name).type)
            naive = pa.types.is_timestamp(kind) and kind.tz is None
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            number = pa.types.is_integer(kind) or kind in (pa.float32(), pa.float64()) or pa.types.is_boolean(kind)
            if not (naive or text or number):
                return f"column {field.name!r} is of type {kind}"
        return None

    def tables(self, common: list[pa.Field | None]) -> Iterator[pa.Table]:
        """Yield the row groups as tables, cast to the types from `files_of`."""
        by_name = {name: ds.field((name,)) for name in self.schema.names}
        own, scan = self.fragment, _scan_options(self.fragment.format)
        with errors_of(own):
            in_nanoseconds = [field.name for field in self.schema if getattr(field.type, "unit", "") == "ns"]
            if times := int96_columns(own.metadata, in_nanoseconds):
                groups = [group.id for group in own.row_groups]
                again = IN_MILLISECONDS.make_fragment(own.path, own.filesystem, row_groups=groups)
                for part in again.split_by_row_group():
                    refuse_far_times(part.to_table(columns=times, **scan), self.where)
            for part in own.split_by_row_group():
                table = part.to_table(columns=by_name, schema=self.schema, **scan)
                columns = [self._cast(*pair) for pair in zip(table.columns, common, strict=True)]
                triples = zip(common, self.schema, columns, strict=True)
                fields = [(field or own).with_type(column.type) for field, own, column in triples]
                yield pa.table(columns, pa.schema(fields))

    def _cast(self, column: pa.ChunkedArray, field: pa.Field | None) -> pa.ChunkedArray:
        if pa.types.is_dictionary(column.type):  # dictionaries differ between row groups
            column = decode_arrow(column, "")
        if field is None or column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except pa.ArrowException as error:
            raise InvalidEdgesError(
                f"column {field.name!r} of {self.where} ({column.type}) holds values that {field.type}, the type in "
                f"common with other files, does not: {error}. Cast the files to one type."
            ) from error


IN_MILLISECONDS = ds.ParquetFileFormat(coerce_int96_timestamp_unit="ms")
"""Reads INT96 times of every year; by default Arrow reads them as nanoseconds, modulo 2**64."""

MOST_MILLISECONDS = 2**63 // 10**6  # of times that nanoseconds of 64 bits hold


def int96_columns(metadata: pq.FileMetaData, names: Sequence[Hashable]) -> list[str]:
    """Return those of the columns that are stored as INT96, as Spark, Hive and Impala store times."""
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return [column.path for column in columns if column.physical_type == "INT96" and column.path in names]


def refuse_far_times(table: pa.Table, where: str) -> None:
    """Raise for INT96 times, read in milliseconds, that nanoseconds of 64 bits do not hold."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        far = column.filter(pc.greater_equal(pc.abs(column.cast(pa.int64())), MOST_MILLISECONDS))
        if len(far):
            raise InvalidEdgesError(
                f"column {name!r} of {where} has {counted(len(far), 'INT96 time')} before 1677 or after 2262, which "
                f"nanoseconds of 64 bits do not hold, the first {far[0].cast(pa.string())}. Read microseconds, and "
                "pass the table: pyarrow.parquet.read_table(path, coerce_int96_timestamp_unit='us')."
            )


def _scan_options(format_of_file: ds.ParquetFileFormat) -> dict[str, object]:
    """Return arguments of a scan that compares the checksums of pages that have some; none if the user has set his."""
    plain = format_of_file.default_fragment_scan_options == ds.ParquetFragmentScanOptions()
    return {"fragment_scan_options": CHECKED} if plain else {}


CHECKED = ds.ParquetFragmentScanOptions(page_checksum_verification=True)


@contextmanager
def errors_of(fragment: ds.ParquetFileFragment) -> Iterator[None]:
    """Raise errors of Arrow about a file of a dataset as errors that name it."""
    try:
        yield
    except PageRankError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"memory ran out while file {fragment.path!r} was read: {error}") from error
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise InvalidEdgesError(f"file {fragment.path!r} cannot be read as Parquet: {error}") from error


def files_of(dataset: ds.Dataset, columns: Columns, used: list[int]) -> tuple[list[File], list[pa.Field | None]]:
    """Return the files of a dataset, and the field to which row groups are cast for each column in `used`.

    The common type has the largest width of integers and floats, the finest unit of times and the most digits of
    decimals, so that no value changes. Weights, and integers without a common type, keep their types, and their field
    is None.
    """
    schema = [dataset.schema.field(position) for position in used]
    names = [field.name for field in schema]
    files = [_file(dataset, fragment, columns, names) for fragment in dataset.get_fragments()]
    return files, [_common_field(files, position, field, columns) for position, field in enumerate(schema)]


def _file(dataset: ds.Dataset, fragment: ds.ParquetFileFragment, columns: Columns, names: list[str]) -> File:
    with errors_of(fragment):
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
    hive = isinstance(dataset.partitioning, ds.HivePartitioning)
    for name in {names[position] for position in (*columns.source, *columns.destination)} & {*folders}:
        # Arrow reads src=007 and src=7 as one id.
        if hive and isinstance(value := keys[name], int) and f"{name}={value}" not in fragment.path.split("/"):
            raise InvalidEdgesError(
                f"column {name!r} has the id {value} from the name of the folder of file {fragment.path!r}, which is "
                "not written so: different names could be one vertex. Read them as strings: pass a dataset with "
                f"partitioning=pyarrow.dataset.partitioning(pyarrow.schema({{{name!r}: 'string'}}), flavor='hive')."
            )
    found = [dataset.schema.field(name) if name in folders else schema.field(name) for name in names]
    return File(fragment, pa.schema(found), rows)


def _common_field(files: list[File], position: int, field: pa.Field, columns: Columns) -> pa.Field | None:
    """Return the field of the dataset's schema in the common type of the files; None to keep the types of the files."""
    label = f"column {field.name!r}"
    if position == columns.weight:
        return None
    members = [(file.schema.field(position).type, file.where, file.rows) for file in files]
    if not members or field.type != members[0][0]:  # a schema given by the user, not that of the first file
        members.append((field.type, "the dataset's schema", 1))
    members = [member for member in members if member[2]] or members[:1]
    labelled = [(kind, f"{label} of {where} ({kind})") for kind, where, _ in members]
    same_kind([_kind(*pair) for pair in labelled], [where for _, where in labelled])
    common = _common_type([_plain(kind) for kind, _ in labelled])
    return None if common is None else field.with_type(common)


def _plain(kind: pa.DataType) -> pa.DataType:
    return _plain(kind.value_type) if pa.types.is_dictionary(kind) else kind


def _kind(kind: pa.DataType, label: str) -> str:
    """Return the kind of ids of an Arrow type, as in `prplugin.frames.ids.Ids.kind_of`."""
    kind = _plain(kind)
    if pa.types.is_floating(kind):
        return "float"
    return HOST.kind_of(arrow.series(pa.chunked_array([], kind), label), label)


def _common_type(kinds: list[pa.DataType]) -> pa.DataType | None:
    """Return the type that holds all values of types of one kind; None for integers without a common type."""
    kinds = [kind for kind in kinds if not pa.types.is_null(kind)] or kinds[:1]
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(pa.types.is_integer(kind) for kind in kinds):
        common = np.result_type(*(kind.to_pandas_dtype() for kind in kinds))
        return pa.from_numpy_dtype(common) if common.kind in "iu" else None
    kinds = [decode_arrow(pa.chunked_array([], kind), "").type for kind in kinds]  # Arrow unifies no encodings
    zone = next((kind.tz for kind in kinds if pa.types.is_timestamp(kind)), None)
    kinds = [pa.timestamp(kind.unit, zone) if pa.types.is_timestamp(kind) else kind for kind in kinds]
    schemas = [pa.schema([("ids", kind)]) for kind in kinds]
    return pa.unify_schemas(schemas, promote_options="permissive").field(0).type


# --- row groups -----------------------------------------------------------------------------------------------------


def read(
    files: list[File], common: list[pa.Field | None], columns: Columns, how: EdgeOptions, *, edge_list: bool
) -> tuple[Coo | Grouped, Vertices]:
    """Factorize the endpoints, one row group at a time."""
    # An empty table of the common types; int64 for columns whose files keep their types (weights, some integers).
    schema = [field or pa.field(str(position), pa.int64()) for position, field in enumerate(common)]
    no_edges, additional = narwhals.read(pa.schema(schema).empty_table(), columns, how, edge_list=True)
    no_vertices = replace(additional, columns=[ids[:0] for ids in additional.columns])
    compiled, weighted = library.is_available(), columns.weight is not None
    labels = [label for end in columns.id_labels() for label in end]
    ends = [field.type for end in (*columns.source, *columns.destination) if (field := common[end]) is not None]
    integers = _common_type(ends) if len(ends) == 2 and all(map(pa.types.is_integer, ends)) else None
    no_more = replace(how, vertices=None)
    ids: list[Column]
    factorizer: Any

    def sink_of(_: object, m: int) -> Sink:
        if edge_list or not compiled:
            return EdgeList(factorizer.degrees.shape[1], m, weighted=weighted)
        from prplugin.cpu.group import CscBuilder

        return CscBuilder(*factorizer.degrees, weighted=weighted)

    def with_vertices(table: pa.Table) -> Part:
        edges, own = narwhals.read(table, columns, no_more, edge_list=True)
        assert isinstance(edges, Coo)
        return Part(edges.source, edges.destination, edges.weights, own)

    if how.vertices is None and integers is not None and len(columns.source) == 1 and compiled:
        from prplugin.cpu.factorize import PartwiseFactorizer

        dtype = np.dtype(integers.to_pandas_dtype())
        factorizer = PartwiseFactorizer(dtype, sum(file.rows for file in files))
        part_of = lambda table: integer_part(HOST, arrow.as_frame(table), columns, labels, dtype)  # noqa: E731
        edges, found = read_twice(_passes(files, common, part_of), factorizer, sink_of)
        ids = [HOST.integers_like(found, [no_vertices.columns[0].dtype])]
    else:
        factorizer = IndexFactorizer(VertexIndex(no_vertices, labels))
        assert isinstance(no_edges, Coo)
        more = no_edges.source, no_edges.destination, None, additional
        edges, ids = read_twice(_passes(files, common, with_vertices), factorizer, sink_of, more)
    output: Any = no_vertices.boundary
    fields = narwhals.fields_of_vertices(common, columns, how.vertices)
    output = replace(output, fields=fields, dtypes=[column.dtype for column in ids])
    return edges, replace(no_vertices, columns=ids, boundary=output)


def _passes(
    files: list[File], common: list[pa.Field | None], part_of: Callable[[pa.Table], Part]
) -> Callable[[], Iterator[Part]]:
    """Return what `read_twice` calls for each of its two passes, which count the rows of both."""
    rows = sum(file.rows for file in files)
    count, earlier = counting(2 * rows, "rows, each read twice"), iter((0, rows))

    def parts() -> Iterator[Part]:
        before = next(earlier)
        return _parts(files, common, part_of, lambda row: count(before + row))

    return parts


def _parts(
    files: list[File], common: list[pa.Field | None], part_of: Callable[[pa.Table], Part], read: Callable[[int], None]
) -> Iterator[Part]:
    """Yield the row groups; name them in errors about them."""
    row = 0
    for file in files:
        for table in file.tables(common):
            try:
                yield part_of(table)  # errors of who takes it are not raised here
            except PageRankError as error:
                if not row and len(files) == 1:
                    raise
                place = f"in the row group that begins with row {row:,}, from which rows are counted here, of "
                raise type(error)(f"{place * bool(row)}{file.where}: {error}") from error
            row += table.num_rows
            read(row)
