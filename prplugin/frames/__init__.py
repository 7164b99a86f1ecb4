"""Adapters for dataframe and graph libraries. No other package depends on these libraries.

An adapter is one file: a module with the functions of `FrameAdapter`, listed in `FIRST_ADAPTERS` or `LAST_ADAPTERS`.
Ids are read, compared and written by `prplugin.frames.ids.Ids`.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from prplugin.errors import InvalidEdgesError, InvalidOptionError, errors_of, full_name, listed
from prplugin.frames import cudf, dask, narwhals, pandas, parquet, proxies
from prplugin.frames.columns import Columns, Frame, positions, resolve
from prplugin.frames.groups import by_side
from prplugin.frames.lists import FRAMES
from prplugin.frames.reading import reading_to
from prplugin.frames.remedies import advising, library_of, remedy
from prplugin.frames.suggested import index_levels
from prplugin.frames.vertices import Vertices
from prplugin.options import EdgeOptions
from prplugin.types.arrays import MemorySpace, memory_space_of, on_host
from prplugin.types.edges import Coo, Grouped

if TYPE_CHECKING:
    from prplugin.frames.times import Clock


class FrameAdapter(Protocol):
    """Reads edges from the frames of one library; implemented by a module or an object.

    It imports the library only in `open_frame` and `read`. `Any` stands for types of the library.
    """

    def accepts(self, frame: object, /) -> bool:
        """Return whether this adapter reads an object."""

    def memory_space_of(self, frame: object, /) -> MemorySpace:
        """Return the memory space of the edges that `read` returns."""

    def open_frame(self, frame: object, /) -> tuple[Any, list[Hashable]]:
        """Return the frame in the form that `read` takes, and its column labels."""

    def read(
        self, frame: object, columns: Columns, how: EdgeOptions, *, edge_list: bool = False, lasting: bool = True
    ) -> tuple[Coo | Grouped, Vertices]:
        """Factorize the endpoints; return the edges by position, and the vertices in the order of the result.

        Integer ids are in ascending order. Other ids are in the order of first appearance: row by row, source before
        destination, then ``how.vertices``.

        `how`: Options, of which those of columns are not used. Only packed edges have the reverse edges, if undirected.
        `edge_list`: Whether `Coo` in the order of the rows are required instead of `Grouped`.
        `lasting`: Whether the edges outlive the frame. If not, they may alias its columns.

        Raises InvalidEdgesError: if ids are null, floating-point or of mixed kinds, or weights are not finite and
        non-negative.
        """


FIRST_ADAPTERS: tuple[FrameAdapter, ...] = (pandas, cudf, proxies)
"""Adapters that are asked first whether they accept a frame, in this order."""

LAST_ADAPTERS: tuple[FrameAdapter, ...] = (dask, parquet.PATHS, parquet.DATASETS, narwhals.WRAPPED, narwhals, FRAMES)
"""Adapters that are asked last, in this order: see `prplugin.sources.SOURCES`."""


def adapter_for(frame: object) -> FrameAdapter:
    """Return the first adapter that accepts a frame."""
    for adapter in (*FIRST_ADAPTERS, *LAST_ADAPTERS):
        if adapter.accepts(frame):
            return adapter
    raise unsupported(frame)


def unsupported(frame: object) -> InvalidEdgesError:
    """Return the error for edges that no adapter accepts."""
    return InvalidEdgesError(
        "edges must be a DataFrame of cuDF, pandas, polars or Dask, another table that narwhals or Arrow knows, "
        f"a list of such frames, or the path of a Parquet file, not {full_name(frame)}. {_conversion_hint(frame)}"
    )


def _conversion_hint(given: object) -> str:
    if isinstance(given, type):
        return f"It is the class {given.__qualname__}: pass a frame of it."
    if isinstance(given, (list, tuple)) and not given:
        return "It is empty: pass one frame or more, of which one may be without rows."
    shape: tuple[int, ...] = getattr(given, "shape", ())
    if isinstance(given, dict) and given:
        return _hint_for_dict(given)
    if len(shape) == 2 and shape[0] == shape[1] and shape[1] not in (2, 3):
        return f"For an adjacency matrix use {remedy('array as matrix')}."
    rows: Any = list(given) if isinstance(given, (list, set, frozenset)) else given if len(shape) == 2 else []
    if len(rows) and isinstance(rows[0], dict):
        return f"For a dict per edge use {remedy('frame of a dict')}."
    width = shape[1] if len(shape) == 2 else len(rows[0]) if len(rows) and isinstance(rows[0], (tuple, list)) else 0
    if width in (2, 3):
        pairs = "frame of a set of pairs" if isinstance(given, (set, frozenset)) else "frame of pairs"
        hint = f"For pairs use {remedy(pairs)}."
        if width == 3:
            hint = f"For pairs and weights pass {remedy('frame of weighted pairs')}."
        return hint if shape != (width, width) else f"{hint} For an adjacency matrix use {remedy('array as matrix')}."
    if len(levels := index_levels(given)) > 1:
        return (
            f"{listed([repr(level) for level in levels])} are levels of its index: pass {remedy('rows of a series')}, "
            f"and if its values are weights, {remedy('values as weights')}."
        )
    return "Put the two endpoints of each edge in two columns of a frame."


def _hint_for_dict(given: dict[Any, Any]) -> str:
    """Return a sentence on a dict of columns, or one of the neighbours of each vertex."""
    rows = list(given.values())
    if all(isinstance(row, dict) for row in rows):
        weighted = all(isinstance(weight, Real) for row in rows for weight in row.values())
        which = "frame of dicts by vertex" if weighted else "frame of lists by vertex"
        return f"For neighbours by vertex pass {remedy(which)}."
    if all(isinstance(row, (list, tuple, set, frozenset)) for row in rows):
        cells = [cell for row in rows for cell in row]
        own = sum(isinstance(cell, Hashable) and cell in given for cell in cells)
        if len({*map(len, rows)}) > 1 or own > len(cells) / 2:
            return f"For neighbours by vertex pass {remedy('frame of lists by vertex')}."
    return f"For columns by name use {remedy('frame of a dict')}."


# --- edges to add and to remove ---------------------------------------------------------------------------------------


class FrameEdges(NamedTuple):
    """Edges of a frame on the host, with endpoints as positions among the distinct vertices of the frame."""

    edges: Coo
    vertices: Vertices


def read_edges(
    frame: Frame, schema: EdgeOptions, clock: Clock | None, memory_space: MemorySpace, *, removed: bool
) -> FrameEdges:
    """Read edges to the host, from columns named as in the graph; edges to remove may lack weights and times.

    `schema`: Options of the graph. Without `source` and `destination`, columns are found by default names.
    `memory_space`: Memory space of the graph and of its vertex ids.
    """
    if memory_space == "host":
        if "cudf.pandas" in sys.modules:
            frame = proxies.unwrap(frame, on_gpu=False)
        frame = on_host(frame.compute() if type(frame).__module__.partition(".")[0] == "dask_cudf" else frame)
    part = "remove" if removed else "add"
    with advising(library_of(frame), part):
        return _read_part(frame, schema, clock, memory_space, part)


def _read_part(
    frame: Frame, schema: EdgeOptions, clock: Clock | None, memory_space: MemorySpace, part: str
) -> FrameEdges:
    adapter = adapter_for(frame)
    opened, labels = adapter.open_frame(frame)
    weight, time = schema.weight, schema.time
    if part == "remove" and not any(positions(labels, name) for name in (weight, time) if name is not None):
        weight = time = None
    clock = None if time is None else clock
    columns = resolve(labels, schema.source, schema.destination, weight, time, clock, opened, part, schema.by)
    columns = columns._replace(missing=schema.missing, bipartite=schema.bipartite)
    with reading_to("host"):
        edges, vertices = adapter.read(opened, columns, EdgeOptions(), edge_list=True, lasting=True)
    assert isinstance(edges, Coo)
    if schema.bipartite:
        edges, vertices = by_side(edges, vertices, columns)
    if memory_space_of(edges.source) != memory_space:  # a frame of another library
        vertices = vertices.on_device()
    return FrameEdges(edges.on_host(), vertices)


# --- sizes of a frame before it is read ---------------------------------------------------------------------------


def sizes_of(
    edges: object, source: Hashable | list[Hashable], destination: Hashable | list[Hashable], weight: Hashable
) -> tuple[int, Literal["int32", "int64", "string"], MemorySpace]:
    """Return the number of rows of a frame, the type of its ids, and the memory space of its edges.

    For a lazy frame only the number of rows is computed.
    """
    adapter = adapter_for(edges)
    frame, labels = adapter.open_frame(edges)
    columns = resolve(labels, source, destination, weight, frame=frame)
    if len(columns.source) > 1:
        raise InvalidOptionError(
            "memory for vertices of several columns cannot be estimated without the graph: see Graph.estimate()."
        )
    rows, types = rows_and_types(frame)
    sizes = [_bytes_of_integer(types[position]) for position in (*columns.source, *columns.destination)]
    return rows, "string" if 0 in sizes else "int32" if max(sizes) <= 4 else "int64", adapter.memory_space_of(edges)


def rows_and_types(frame: Frame) -> tuple[int, list[Any]]:
    """Return the number of rows of a frame from `FrameAdapter.open_frame`, and the type of each column."""
    if isinstance(frame, (list, tuple)):  # of frames with the same columns
        counts, types = zip(*map(rows_and_types, frame), strict=True)
        return sum(counts), types[0]
    if hasattr(frame, "count_rows"):  # a dataset of pyarrow
        return frame.count_rows(), frame.schema.types
    if hasattr(frame, "__len__") and hasattr(frame, "dtypes"):  # pandas, cuDF and Dask
        return len(frame), list(frame.dtypes)
    if hasattr(frame, "num_rows"):  # a table of pyarrow
        return frame.num_rows, frame.schema.types
    import narwhals as nw  # imported by the adapter of the frame

    with errors_of(f"the number of rows of edges, of type {full_name(frame)},"):
        frame = nw.from_native(frame)
        rows = len(frame) if isinstance(frame, nw.DataFrame) else frame.select(nw.len()).collect().item()
        return rows, list(frame.collect_schema().values())


def _bytes_of_integer(dtype: Any) -> int:
    """Return the size in bytes of an integer type of NumPy, pandas, pyarrow or narwhals; 0 for other types."""
    if hasattr(dtype, "kind"):
        return int(dtype.itemsize) if dtype.kind in "iu" else 0
    name = str(dtype).lower()  # int64, UInt32
    bits = name.removeprefix("u").removeprefix("int")
    return int(bits) // 8 if bits.isdecimal() else 0
