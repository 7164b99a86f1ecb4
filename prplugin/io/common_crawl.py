"""Read the web graphs of Common Crawl: folders of `vertices` and `edges` in gzip parts, and names of their BV files.

A vertex is a line ``id TAB reversed host name [TAB number of hosts]``, an edge a line ``from TAB to``. Names are the
ids of the result, in the order of the numbers.
"""

from __future__ import annotations

import glob
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from prplugin.errors import InvalidEdgesError, InvalidOptionError
from prplugin.frames.vertices import Vertices
from prplugin.graph.adjacency import Adjacency
from prplugin.io.adjacency import AdjacencyFile, arc_columns
from prplugin.io.blocks import check_memory
from prplugin.io.formats import COMPRESSIONS, errors_named, part_files
from prplugin.io.selection import Selection
from prplugin.machine import this_machine
from prplugin.types.edges import Edges, index_dtype

EDGE_BYTES = 24
"""Lower bound of the bytes per edge to build the graph."""

SEPARATORS = csv.ParseOptions(delimiter="\t", quote_char=False)


def read(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a folder; see `prplugin.io.read_edges`."""
    folder = Path(selection.path)
    files = {kind: part_files(folder, kind) if folder.is_dir() else [] for kind in ("vertices", "edges")}
    if not all(files.values()):
        raise InvalidOptionError(
            f"{folder} is no folder of Common Crawl: one has folders vertices and edges of parts (.gz), or files that "
            "end in -vertices.txt.gz and -edges.txt.gz."
        )
    columns = arc_columns(selection, weighted=False)
    names = _names(files["vertices"], str(folder / "vertices"))
    n = len(names)
    parts: list[tuple[Any, Any]] = []
    for path, batches in _parts(files["edges"], {"f0": pa.int64(), "f1": pa.int64()}):
        for batch in batches:
            ends = [column.to_numpy() for column in batch]
            for end in ends:
                if end.size and not 0 <= end.min() <= end.max() < n:
                    wrong = end[(end < 0) | (end >= n)][0]
                    raise InvalidEdgesError(f"{path} has vertex {wrong:,}, and the vertices are 0 to {n - 1:,}.")
            parts.append((ends[0].astype(index_dtype(n)), ends[1].astype(index_dtype(n))))
            m = sum(part[0].size for part in parts)
            check_memory(EDGE_BYTES * m, f"{path}: {m:,} edges have been read")
    source, destination = (
        np.concatenate([part[end] for part in parts]) if parts else np.empty(0, index_dtype(n))
        for end in (columns.source[0], columns.destination[0])
    )
    return AdjacencyFile(Adjacency(Edges(source, destination, None, n)), _vertices(names), columns)


def names_beside(base: str, n: int) -> Vertices | None:
    """Return the vertices of a BV graph with `n` vertices from a file of names beside it, or None.

    Those of BASE.graph and BASE-t.graph are BASE-vertices.txt.gz, or the parts in a folder `vertices`.
    """
    path = Path(base.removesuffix("-t"))
    files = sorted(path.parent.glob(f"{glob.escape(path.name)}-vertices.txt*"))
    files = files or sorted(path.parent.glob("vertices/*.gz"))
    if not files:
        return None
    names = _names(files, str(files[0]))
    if len(names) != n:
        raise InvalidEdgesError(f"{files[0]} names {len(names):,} vertices, but {base}.graph has {n:,}.")
    return _vertices(names)


def _names(files: Sequence[Path], where: str) -> pa.ChunkedArray:
    """Return the names of the vertices 0..n-1."""
    ids, names = [np.empty(0, np.int64)], []
    for path, batches in _parts(files, {"f0": pa.int64(), "f1": pa.string()}):
        for batch in batches:
            ids.append(batch[0].to_numpy())
            names.append(batch[1])
            check_memory(
                2 * sum(part.nbytes for part in names), f"{path}: {sum(map(len, names)):,} names have been read"
            )
    numbers, found = np.concatenate(ids), pa.chunked_array(names, pa.string())
    n = numbers.size
    if not (numbers == np.arange(n)).all():
        order = np.argsort(numbers, kind="stable")
        if not (numbers[order] == np.arange(n)).all():
            raise InvalidEdgesError(f"{where}: the {n:,} vertices are not numbered 0 to {n - 1:,}, each once.")
        found = found.take(pa.array(order))
    if not (n < 2 or pc.all(pc.less(found[:-1], found[1:])).as_py()) and pc.count_distinct(found).as_py() < n:
        raise InvalidEdgesError(f"{where}: some of the {n:,} vertices have the same name.")
    return found


def _vertices(names: pa.ChunkedArray) -> Vertices:
    return Vertices(["vertex"], [names.to_pandas().array], ["string"])


def _parts(files: Sequence[Path], types: Mapping[str, pa.DataType]) -> Iterator[tuple[Path, list[pa.RecordBatch]]]:
    """Yield the columns f0 and f1 of each file, in order; as many files are read at a time as there are cores."""
    ahead = this_machine().threads
    with ThreadPoolExecutor(ahead) as pool:
        running: deque[tuple[Path, Future[list[pa.RecordBatch]]]] = deque()
        for path in files:
            running.append((path, pool.submit(_batches, path, types)))
            if len(running) > ahead:
                first, future = running.popleft()
                yield first, future.result()
        for first, future in running:
            yield first, future.result()


def _batches(path: Path, types: Mapping[str, pa.DataType]) -> list[pa.RecordBatch]:
    """Read a file; raise InvalidEdgesError with its name."""
    try:
        with errors_named(str(path)), open(path, "rb") as file:
            compression = COMPRESSIONS.get(path.suffix)
            stream = pa.CompressedInputStream(file, compression) if compression else file
            reader = csv.open_csv(
                stream,
                csv.ReadOptions(autogenerate_column_names=True, use_threads=False),
                SEPARATORS,
                csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
            )
            return list(reader)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if "Empty CSV file" in str(error):
            return []
        raise InvalidEdgesError(f"{path}: a damaged part, or none of lines with tabs: {error}") from error
