"""Read web graphs: of WebGraph in the BV format, files .graph, .properties and perhaps .offsets, and of Common Crawl.

P. Boldi and S. Vigna, "The WebGraph framework I: compression techniques", WWW 2004. `prplugin/cpu/webgraph.cpp` has the
format. Property files are those of the Java library and of webgraph-rs.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from prplugin.cpu import kernels, library
from prplugin.cpu.group import add_degrees
from prplugin.cpu.sorting import offsets_of
from prplugin.errors import InvalidEdgesError, InvalidOptionError, MethodUnavailableError, path_errors
from prplugin.frames.vertices import Vertices
from prplugin.graph.edges import Edges
from prplugin.io.adjacency import AdjacencyFile, arc_columns, numbered, read_rows
from prplugin.io.formats import COMPRESSIONS, WEBGRAPH_SUFFIXES, Properties, part_files
from prplugin.io.selection import Selection
from prplugin.io.text_blocks import check_memory
from prplugin.machine import mapping_on, this_machine
from prplugin.methods.engines.packed_rows import Rows, joined, too_many
from prplugin.types.edges import Compressed, Coo, Grouped, Integers, index_dtype

EDGE_BYTES = 24  # lower bound of the bytes per edge to build the graph
SEPARATORS = csv.ParseOptions(delimiter="\t", quote_char=False)
PIECE_BITS = 1 << 18  # bits of records per piece of work: a tenth of a millisecond
MOST_PIECES = 1 << 12
RANGE = 1 << 26  # arcs that are decoded before they are packed
VERTEX_BYTES = 24  # bytes per vertex while a graph is read: positions, offsets and degrees
FLAG = re.compile(r"(OUTDEGREES|REFERENCES|BLOCK_COUNT|BLOCKS|INTERVALS|RESIDUALS|OFFSETS)_([A-Z]+)([1-7]?)")
DEFAULTS = {"REFERENCES": "UNARY", "RESIDUALS": "ZETA"}  # GAMMA for the others
CODES = "UNARY", "GAMMA", "DELTA", "ZETA", "NIBBLE", "GOLOMB"
"""Codes of natural numbers in the order of webgraph.cpp; a kernel gets the position here plus 8 times the parameter."""

PARTS = "OUTDEGREES", "REFERENCES", "BLOCK_COUNT", "BLOCKS", "INTERVALS", "RESIDUALS"
"""Parts of a record, each with its own code, in the order of webgraph.cpp; named as in a property file."""

FAULTS = (
    "",
    "the file ends within its record",
    "its out-degree exceeds the number of vertices, or is another one than before",
    "it refers to a vertex outside the window",
    "it copies more successors than the vertex that it refers to has",
    "it has more successors than its out-degree",
    "it has a successor that is no vertex",
    "it has a successor twice",
    "the length of its record is not the one in the .offsets file",
)
"""Faults of records, by the number that a kernel writes."""

BLOCK = 1 << 20  # bytes that Arrow parses at a time, and of the longest line


class Parameters(NamedTuple):
    """Content of a property file: sizes, codes by part of a record (as in `PARTS`) and parameters."""

    n: int
    m: int
    codes: Integers
    offsets_code: int
    window: int
    shortest: int


def read(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a graph; see `prplugin.io.read_edges`."""
    if compression is not None:
        raise InvalidOptionError(f"{selection.name}: a WebGraph file is not compressed again: decompress it first.")
    if (reason := library.unavailable_reason()) is not None:
        raise MethodUnavailableError(f"{selection.name}: its format is read by compiled kernels, and {reason}.")
    path = Path(selection.path)
    base = str(path.with_suffix("") if path.suffix in WEBGRAPH_SUFFIXES else path)
    if selection.packed and arc_columns(selection, weighted=False).source == [1]:
        adjacency = _lists(base).packed()
        names = names_beside(base, adjacency.n) or numbered(adjacency.n)
        return AdjacencyFile(adjacency, names, arc_columns(selection, weighted=False))
    rows = decode(base)
    return read_rows(selection, rows, names=names_beside(base, rows.offsets.size - 1))


def decode(base: str) -> Compressed:
    """Decode the successors of all vertices of a graph, given the name of its files without suffix."""
    lists = _lists(base)
    return Compressed(lists.offsets, lists.decoded(0, lists.bounds.size - 1), None)


class Lists(NamedTuple):
    """The lists of a graph, found but not decoded.

    `positions`, `offsets`: First bit, and first arc, of each list, and the end of the last.
    `bounds`: First vertex of each piece of work, and n; no list of a piece refers to another piece.
    """

    name: str
    form: Parameters
    graph: Any
    positions: Integers
    offsets: Integers
    bounds: Integers

    def decoded(self, first: int, last: int) -> Integers:
        """Decode the lists of the pieces `first` to last - 1."""
        form, bounds = self.form, self.bounds[first : last + 1]
        # The kernel gets offsets in the range, and reads no others.
        of_range = self.offsets[bounds[0] : bounds[-1] + 1]
        begin, m = int(of_range[0]), int(of_range[-1] - of_range[0])
        # Intervals as pairs of numbers, and a copy of the successors.
        widest = int(np.diff(of_range).max(initial=0))
        parts, width = min(this_machine().threads_for(m), bounds.size - 1), (3 if form.shortest == 1 else 2) * widest
        dtype = index_dtype(form.n)
        # Of the scratch memory of other parts few pages are touched.
        check_memory(dtype.itemsize * (m + width), f"{self.name} has {m:,} arcs")
        indices, scratch = np.empty(m, dtype), np.empty((parts, width), dtype)
        faults = np.zeros((bounds.size - 1, 3), np.int64)
        of_range -= begin
        kernels.bv_decode(
            self.graph, form.codes, form.window, form.shortest, self.positions, self.offsets, bounds, indices, scratch,
            faults,
        )  # fmt: skip
        of_range += begin
        _refuse(self.name, faults)
        return indices

    def packed(self) -> Edges:
        """Pack the lists as in-edges; about `RANGE` arcs at a time are in memory."""
        if reason := too_many(self.form.n):
            raise InvalidOptionError(reason)
        n, m, bounds, out_degree = self.form.n, int(self.offsets[-1]), self.bounds, np.zeros(self.form.n, np.int64)
        cuts = np.searchsorted(self.offsets[bounds], np.arange(0, m, RANGE), "right") - 1

        def ranges() -> Iterator[Rows]:
            for first, last in pairwise(np.unique([0, *cuts.tolist(), bounds.size - 1]).tolist()):
                sources = self.decoded(first, last)
                add_degrees(sources, out_degree[None])
                row = int(bounds[first])
                offsets = self.offsets[row : bounds[last] + 1]
                yield Rows(offsets - offsets[0], sources, None, first=row, vertices=n)

        rows = joined(ranges(), this_machine().threads_for(m))
        return Edges(Grouped(rows, out_degree, m))


def _lists(base: str) -> Lists:
    form = _format(Properties.read(base + ".properties"))
    name, graph = base + ".graph", mapped(base + ".graph")
    n = form.n
    if n > 8 * graph.size:
        raise InvalidEdgesError(
            f"{base}.properties announces {n:,} vertices, for which {name} of {graph.size:,} bytes is too short."
        )
    check_memory(VERTEX_BYTES * n, f"{base}.properties announces {n:,} vertices")
    threads = this_machine().threads_for(form.m)
    file = graph, form.codes, form.window
    positions, degrees = np.zeros(n + 1, np.int64), np.empty(n, index_dtype(n))
    if known := Path(base + ".offsets").exists():
        _read_positions(base, form, positions, 8 * graph.size)
    bounds = _pieces(positions) if known else np.array([0, n])
    faults = np.zeros((bounds.size - 1, 3), np.int64)
    kernels.bv_degrees(*file, form.shortest, known, positions, bounds, degrees, faults, threads)
    _refuse(name, faults)
    offsets = offsets_of(degrees)
    m = int(offsets[-1])
    if m != form.m:
        raise InvalidEdgesError(f"{base}.properties announces {form.m:,} arcs, but {name} has {m:,}.")
    bounds = _pieces(positions)
    kernels.bv_cuts(*file, positions, bounds)
    return Lists(name, form, graph, positions, offsets, bounds)


def mapped(path: str) -> Integers:
    """Map the bytes of a file; an empty file cannot be mapped."""
    with path_errors(path), open(path, "rb") as file:
        return np.memmap(file, np.uint8, "r") if Path(path).stat().st_size else np.empty(0, np.uint8)


def _read_positions(base: str, form: Parameters, positions: Integers, bits: int) -> None:
    """Read the .offsets file; it holds the differences of the n + 1 positions."""
    name, n = base + ".offsets", form.n
    count = kernels.bv_positions(mapped(name), form.offsets_code, positions)
    if count <= n:
        raise InvalidEdgesError(f"{name} is cut short or damaged: it holds {count:,} of {n + 1:,} positions.")
    if positions[0] != 0 or positions[-1] > bits:
        raise InvalidEdgesError(
            f"{name} places the {n:,} records at bits {positions[0]:,} to {positions[-1]:,} of {base}.graph, which has "
            f"{bits:,}. One of the two is damaged; without {name} the positions are found anew."
        )


def _pieces(positions: Integers) -> Integers:
    bits = int(positions[-1])
    count = max(1, min(MOST_PIECES, bits // PIECE_BITS))
    bounds = np.searchsorted(positions, np.arange(count + 1) * (bits // count)).astype(np.int64)
    bounds[0], bounds[-1] = 0, positions.size - 1
    return bounds


def _refuse(name: str, faults: Integers) -> None:
    for fault, vertex, position in faults[faults[:, 0] > 0].tolist():
        raise InvalidEdgesError(
            f"{name}, vertex {vertex:,}, byte {position // 8:,}: {FAULTS[fault]}. The file is damaged, or "
            "belongs to another .properties file."
        )


def _format(properties: Properties) -> Parameters:
    kind = properties.text("graphclass", "BVGraph").removeprefix("class ").rpartition(".")[2]
    if kind != "BVGraph":
        properties.refuse(f"a graph of class {kind} is not read, only a BVGraph: store it as one, by WebGraph's tools.")
    if (order := properties.text("endianness", "big")) != "big":
        properties.refuse(f"its bits are in {order}-endian order, and only big-endian order is read: convert it.")
    version = properties.integer("version", 0)
    if version > 1:
        properties.refuse(f"version {version} is not known; 0 and 1 are.")
    k = properties.integer("zetak", 3)
    codes: dict[str, int] = {}
    for flag in filter(None, re.split(r"\s*\|\s*", properties.text("compressionflags", "").strip())):
        found = FLAG.fullmatch(flag)
        if found is None or found[2] not in CODES or (found[3] and found[2] != "ZETA"):
            properties.refuse(f"code {flag} is not known. Known codes are {', '.join(CODES)}.")
        codes[found[1]] = _code(properties, found[2], int(found[3] or k))
    if "endianness" in properties.items and "BLOCKS" in codes:  # webgraph-rs has one code for both
        codes.setdefault("BLOCK_COUNT", codes["BLOCKS"])
    usual = {part: _code(properties, DEFAULTS.get(part, "GAMMA"), k) for part in (*PARTS, "OFFSETS")}
    codes = usual | codes
    return Parameters(
        properties.integer("nodes"), properties.integer("arcs"),
        np.array([codes[part] for part in PARTS], np.int64), codes["OFFSETS"],
        properties.integer("windowsize", 7), properties.integer("minintervallength", 4),
    )  # fmt: skip


def _code(properties: Properties, name: str, k: int) -> int:
    if name == "ZETA" and not 1 <= k <= 7:
        properties.refuse(f"the parameter k of zeta codes is {k}, and must be 1 to 7.")
    if name == "GOLOMB" and k < 1:
        properties.refuse(f"the modulus of Golomb codes (zetak) is {k}, and must be at least 1.")
    return CODES.index(name) + (8 * k if name in ("ZETA", "GOLOMB") else 0)


# --- Common Crawl -----------------------------------------------------------------------------------------------------


def read_common_crawl(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a folder of `vertices` and `edges` in gzip parts.

    A vertex is a line ``id TAB reversed host name [TAB number of hosts]``, an edge a line ``from TAB to``. Names are
    the ids of the result, in the order of the numbers.
    """
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
    parts: list[tuple[Integers, Integers]] = []
    m = 0
    for path, batches in _parts(files["edges"], {"f0": pa.int64(), "f1": pa.int64()}):
        for batch in batches:
            ends = [column.to_numpy() for column in batch]
            for end in ends:
                if end.size and not 0 <= end.min() <= end.max() < n:
                    wrong = end[(end < 0) | (end >= n)][0]
                    raise InvalidEdgesError(f"{path} has vertex {wrong:,}, and the vertices are 0 to {n - 1:,}.")
            parts.append((ends[0].astype(index_dtype(n)), ends[1].astype(index_dtype(n))))
            m += ends[0].size
            check_memory(EDGE_BYTES * m, f"{path}: {m:,} edges have been read")
    source, destination = (
        np.concatenate([part[end] for part in parts]) if parts else np.empty(0, index_dtype(n))
        for end in (columns.source[0], columns.destination[0])
    )
    return AdjacencyFile(Edges(Coo(source, destination, None, n)), _vertices(names), columns)


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
    n = size = 0
    for path, batches in _parts(files, {"f0": pa.int64(), "f1": pa.string()}):
        for batch in batches:
            ids.append(batch[0].to_numpy())
            names.append(batch[1])
            n, size = n + len(batch), size + batch[1].nbytes
            check_memory(2 * size, f"{path}: {n:,} names have been read")
    numbers, found = np.concatenate(ids), pa.chunked_array(names, pa.string())
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
    at_once = this_machine().threads
    with mapping_on(at_once) as run:
        for first in range(0, len(files), at_once):
            some = files[first : first + at_once]
            yield from zip(some, run(partial(_batches, types=types), some), strict=True)


def _batches(path: Path, types: Mapping[str, pa.DataType]) -> list[pa.RecordBatch]:
    # Files of Arrow's own: its threads may outlive a read, and would need the interpreter for a file of Python.
    opened = partial(pa.input_stream, str(path), COMPRESSIONS.get(path.suffix))
    try:
        with path_errors(str(path)):
            with opened() as stream:
                start = stream.read(BLOCK)
            if len(start) < BLOCK:  # Arrow finds no row in a single line without a line end
                return _parsed(pa.BufferReader(start + b"\n"), types) if start.strip(b"\r\n") else []
            return _parsed(opened(), types)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidEdgesError(f"{path}: a damaged part, or none of lines with tabs: {error}") from error


def _parsed(stream: Any, types: Mapping[str, pa.DataType]) -> list[pa.RecordBatch]:
    reading = csv.ReadOptions(autogenerate_column_names=True, use_threads=False, block_size=BLOCK)
    converting = csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[])
    return list(csv.open_csv(stream, reading, SEPARATORS, converting))
