"""Parquet files read by cuDF: when, and how, also one row group at a time. cuDF is imported only when it is used.

Files are read to device memory if cuDF is loaded or installed, a GPU is there, and the call does not name a method of
the CPU. The import of cuDF takes seconds: unless it is loaded, or the call names a method of the GPU, only files of
`MIN_BYTES_PER_CORE` times the cores or more are worth it. Everything else is read on the host, and the reason is
logged.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import PageRankError, printable
from prplugin.frames import cudf
from prplugin.frames.columns import ColumnInfo, Columns, Frame
from prplugin.frames.reading import memory_space
from prplugin.frames.vertices import Boundary, Vertices, ids_in
from prplugin.gpu import runtime
from prplugin.machine import this_machine
from prplugin.options import EdgeOptions
from prplugin.types.edges import MAX_NARROW, Coo, Grouped

if TYPE_CHECKING:
    import pyarrow as pa

    from prplugin.frames.row_groups import File

logger = logging.getLogger(__name__)

MIN_BYTES_PER_CORE = 110_000_000
"""Size of files, per core of the host, from which cuDF is imported to read them.

On 16 cores and an H100 the import took 2.9 s, and ranking a file of 67 million edges 0.87 s on the host and 0.074 s on
the GPU: the host takes as long at 3.6 such files, of 0.53 GB each.
"""

PEAK = 2
"""Peak memory of reading columns, besides their pages, in multiples of their size."""

INTEGERS = "int8", "int16", "int32", "int64"

GPUS = Path("/dev/nvidiactl"), Path("/dev/dxg")
"""Device files of the drivers for Linux and for its subsystem in Windows."""


class NotReadError(Exception):
    """The reason why cuDF does not read a file."""


def unavailable_reason(size: int) -> str | None:
    """Return why files of `size` bytes are not read to device memory, or None. Does not import cuDF."""
    wanted = memory_space.get()
    if wanted == "host":
        return "the call reads on the host"
    if "cudf.pandas" in sys.modules:
        return "cudf.pandas is in use"
    if "cudf" not in sys.modules:
        if find_spec("cudf") is None:
            return "cuDF is not installed"
        if not any(path.exists() for path in GPUS) or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
            return "there is no NVIDIA GPU"
        least = MIN_BYTES_PER_CORE * this_machine().threads
        if wanted is None and size < least:
            return f"cuDF is not loaded, and its import pays for files of {least:,} bytes or more, not {size:,}"
    return runtime.unavailable_reason()


def log_fallback(path: str, reason: object) -> None:
    """Log why a file is read on the host."""
    logger.info("%s is read on the host: %s", printable(path), str(reason).rstrip("."))


class InPandas(Boundary):
    """Returns results of a graph in device memory as pandas frames."""

    def wrap(self, frame: Frame) -> Any:
        return frame.to_pandas()


def read(files: list[File], columns: Columns, how: EdgeOptions, *, edge_list: bool) -> tuple[Coo | Grouped, Vertices]:
    """Factorize the endpoints of files of `prplugin.frames.row_groups.File`, which have only the columns in use.

    Integer ids whose edges do not fit at once are read some row groups at a time.

    Raises NotReadError: if the host has to read them; also for invalid edges, whose errors the host raises.
    """
    from prplugin.frames import pieces  # imports pandas, which cuDF needs

    schema, rows = _common_schema(files), sum(file.rows for file in files)
    ids = [schema.types[position] for position in (*columns.source, *columns.destination)]
    integers = len(ids) == 2 and all(str(kind).removeprefix("u") in INTEGERS for kind in ids)
    found = None
    try:
        if _fit(files) and not (integers and not pieces.fit_at_once(rows, weighted=columns.weight is not None)):
            with suppress(MemoryError), ids_in("device").active():
                whole = _read([file.fragment.path for file in files], schema)
                found = cudf.read_in_context(whole, columns, how, edge_list=edge_list)
        if found is None:
            if not integers:
                raise NotReadError("its edges do not fit in the GPU's memory, and its ids are no column of integers")
            found = pieces.read(partial(_frames, files, schema), columns, rows, how, _infos(files, columns))
    except MemoryError as error:
        raise NotReadError(f"the GPU's memory ran out ({error})") from error
    except PageRankError as error:
        raise NotReadError(error) from error
    return found[0], replace(found[1], boundary=InPandas())


def _infos(files: list[File], columns: Columns) -> list[list[list[ColumnInfo]]] | None:
    """Return the `ColumnInfo` of the ids of each file by the statistics of its row groups, or None without these."""
    found = []
    for file in files:
        ends = []
        for position in (columns.source[0], columns.destination[0]):
            dtype = np.dtype(file.plain_schema.types[position].to_pandas_dtype())
            known = file.extremes(position)
            if any(low is None for low, _ in known):
                return None
            sample = np.array([min(low for low, _ in known), max(high for _, high in known)] if known else [], dtype)
            ends.append([ColumnInfo("integer", file.rows, dtype, sample, file.where)])
        found.append(ends)
    return found


def _frames(files: list[File], schema: pa.Schema) -> Iterator[Frame]:
    """Yield consecutive row groups of all files as frames of at most `pieces.READ` rows, or of one row group."""
    from prplugin.frames import pieces

    some: dict[str, list[int]] = {}
    rows = 0

    def frame() -> Any:
        return _read(list(some), schema, row_groups=list(some.values()))

    for file in files:
        metadata = file.fragment.metadata
        for group in range(metadata.num_row_groups):
            more = metadata.row_group(group).num_rows
            if some and rows + more > pieces.READ:
                yield frame()
                some, rows = {}, 0
            some.setdefault(file.fragment.path, []).append(group)
            rows += more
    if some:
        yield frame()


def _fit(files: list[File]) -> bool:
    """Return whether one frame holds the rows, and memory the columns and pages before and after decompression."""
    sizes = [group for file in files for group in file.group_bytes()]
    rows = sum(file.rows for file in files)
    return rows <= MAX_NARROW and runtime.fits(sum(sizes) + PEAK * rows * sum(map(_width, files[0].plain_schema.types)))


def _common_schema(files: list[File]) -> pa.Schema:
    schema = files[0].plain_schema
    for file in files:
        if (reason := file.not_for_cudf()) or file.plain_schema.types != schema.types:
            raise NotReadError(reason or f"{file.where} has other types than the files before it")
    return schema


def _read(paths: list[str], schema: pa.Schema, **how: object) -> Any:
    """Return a frame of cuDF; raise NotReadError for columns that are not those of the schema."""
    import cudf as library  # a lazy import, which takes seconds

    try:
        frame = library.read_parquet(paths, columns=schema.names, use_pandas_metadata=False, **how)
    except (RuntimeError, ValueError, TypeError, NotImplementedError, OverflowError) as error:
        raise NotReadError(f"cuDF cannot read it ({error})") from error
    if list(frame) != schema.names:
        raise NotReadError(f"cuDF reads the columns {list(frame)}, not {schema.names}")
    for name, kind in zip(schema.names, schema.types, strict=True):
        found = frame[name].dtype
        same = found.kind in "OTU" if _is_text(kind) else found == np.dtype(kind.to_pandas_dtype())
        if not same:
            raise NotReadError(f"cuDF reads column {name!r} as {found}, not {kind}")
    return frame


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in ("string", "large_string")


def _width(kind: pa.DataType) -> int:
    """Return the bytes per value of a column of cuDF; of text, its offset and 16 characters."""
    return 20 if _is_text(kind) else max(1, kind.bit_width // 8)
