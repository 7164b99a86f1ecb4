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
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prplugin.errors import PageRankError
from prplugin.frames import cudf
from prplugin.frames.columns import Columns
from prplugin.frames.vertices import Boundary, Vertices, ids_in
from prplugin.gpu import runtime
from prplugin.machine import this_machine
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, GroupedEdges

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

MOST_ROWS = 2**31 - 1
"""Limit of cuDF."""

GPUS = Path("/dev/nvidiactl"), Path("/dev/dxg")
"""Device files of the drivers for Linux and for its subsystem in Windows."""

_memory_space: ContextVar[MemorySpace | None] = ContextVar("memory_space", default=None)


class NotReadError(Exception):
    """The reason why cuDF does not read a file."""


@contextmanager
def reading_to(memory_space: MemorySpace | None) -> Iterator[None]:
    """Read files within the block to one memory space; None: to that of the GPU if that takes less time."""
    token = _memory_space.set(memory_space)
    try:
        yield
    finally:
        _memory_space.reset(token)


def unavailable_reason(size: int) -> str | None:
    """Return why files of `size` bytes are not read to device memory, or None. Does not import cuDF."""
    wanted = _memory_space.get()
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
    logger.info("%s is read on the host: %s", path, str(reason).rstrip("."))


class InPandas(Boundary):
    """Returns results of a graph in device memory as pandas frames."""

    def wrap(self, frame: Any) -> Any:
        return frame.to_pandas()


class _InPandas:
    """Adapter of cuDF frames that were read from a file."""

    accepts = staticmethod(cudf.accepts)
    memory_space_of = staticmethod(cudf.memory_space_of)
    open_frame = staticmethod(cudf.open_frame)

    def read(self, frame: Any, columns: Columns, vertices: object, **how: bool) -> Any:
        edges, known = cudf.read(frame, columns, vertices, **how)
        return edges, replace(known, boundary=InPandas())


IN_PANDAS = _InPandas()
"""Adapter of cuDF frames that were read from a file."""


def read(
    files: list[File], columns: Columns, vertices: object, *, edge_list: bool
) -> tuple[Edges | GroupedEdges, Vertices]:
    """Factorize the endpoints of files of `prplugin.frames.row_groups.File`, which have only the columns in use.

    Raises NotReadError: if the host has to read them; also for invalid edges, whose errors the host raises.
    """
    try:
        frame, own_types = frame_of(files)
        if own_types is not None and vertices is not None:
            raise NotReadError("its columns do not fit in the GPU's memory, and vertices= is given")
        with ids_in("device").active():
            edges, known = cudf.read_on_device(frame, columns, vertices, edge_list=edge_list)
            if own_types is not None:
                pairs = zip(known.columns, columns.source, columns.destination, strict=True)
                ids = [column.astype(np.result_type(own_types[one], own_types[other])) for column, one, other in pairs]
                known = replace(known, columns=ids)
    except MemoryError as error:
        raise NotReadError(f"the GPU's memory ran out ({error})") from error
    except PageRankError as error:
        raise NotReadError(error) from error
    return edges, replace(known, boundary=InPandas())


def frame_of(files: list[File]) -> tuple[Any, list[np.dtype[Any]] | None]:
    """Read files to one cuDF frame.

    If the columns do not fit in device memory at once, one row group is read at a time, and integers are held in a type
    of the width that their values need: return their own types, too.
    """
    schema = files[0].plain_schema
    names, rows = schema.names, sum(file.rows for file in files)
    for file in files:
        if (reason := file.not_for_cudf()) or file.plain_schema.types != schema.types:
            raise NotReadError(reason or f"{file.where} has other types than the files before it")
    if rows > MOST_ROWS:
        raise NotReadError(f"cuDF reads at most {MOST_ROWS:,} rows, and there are {rows:,}")
    sizes = [group for file in files for group in file.group_bytes()]
    # Pages before and after decompression, and the columns.
    if runtime.fits(sum(sizes) + PEAK * rows * sum(map(_width, schema.types))):
        with suppress(MemoryError), ids_in("device").active():
            return _checked(_read([file.fragment.path for file in files], names), schema), None
    return _by_row_groups(files, rows)


def _by_row_groups(files: list[File], rows: int) -> tuple[Any, list[np.dtype[Any]] | None]:
    """Read one row group at a time to arrays of all rows."""
    import cupy  # availability was checked by `unavailable_reason`
    import pyarrow as pa

    schema = files[0].plain_schema
    if any(not pa.types.is_integer(kind) and not pa.types.is_floating(kind) for kind in schema.types):
        raise NotReadError("its columns do not fit in the GPU's memory, and are not all numbers")
    given = [np.dtype(kind.to_pandas_dtype()) for kind in schema.types]
    held = [_narrowest(files, position, dtype) for position, dtype in enumerate(given)]
    ids = ids_in("device")
    with ids.active():
        arrays = [cupy.empty(rows, dtype) for dtype in held]
        row = 0
        for file in files:
            for group in range(file.fragment.metadata.num_row_groups):
                part = _checked(_read([file.fragment.path], schema.names, row_groups=[[group]]), schema)
                for array, name in zip(arrays, schema.names, strict=True):
                    if part[name].null_count:
                        raise NotReadError(f"column {name!r} has nulls")
                    array[row : row + len(part)] = part[name].values
                row += len(part)
        frame = ids.frame_of(schema.names, arrays)
    return frame, None if held == given else given


def _narrowest(files: list[File], position: int, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return int32 for int64 whose values are in its range by the statistics of all row groups, else the same type."""
    if dtype != np.int64:
        return dtype
    limits = np.iinfo(np.int32)
    for file in files:
        for low, high in file.extremes(position):
            if low is None or low < limits.min or high > limits.max:
                return dtype
    return np.dtype(np.int32)


def _read(paths: list[str], names: list[str], **how: Any) -> Any:
    import cudf as library  # a lazy import, which takes seconds

    try:
        return library.read_parquet(paths, columns=names, use_pandas_metadata=False, **how)
    except (RuntimeError, ValueError, TypeError, NotImplementedError, OverflowError) as error:
        raise NotReadError(f"cuDF cannot read it ({error})") from error


def _checked(frame: Any, schema: pa.Schema) -> Any:
    """Return a frame of cuDF; raise NotReadError for columns that are not those of the schema."""
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
