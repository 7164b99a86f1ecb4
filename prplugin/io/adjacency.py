"""Graphs from files that hold adjacency lists, which go on as CSR or CSC rather than as rows of a frame.

GAP's serialized graphs, and text of METIS and Ligra: numbers in lines with any number of fields.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prplugin.cpu import kernels, library
from prplugin.cpu.sorting import offsets_of, rows_of, run_starts
from prplugin.errors import InvalidEdgesError, InvalidOptionError, path_errors
from prplugin.frames.columns import Columns, resolve
from prplugin.frames.matrices import check_offsets, check_vertices, checked_weights
from prplugin.frames.vertices import Vertices
from prplugin.graph.dedup import drop_duplicates, with_reverse_edges
from prplugin.graph.edges import Edges, sum_out_weight
from prplugin.io.formats import STANDARD_STREAM
from prplugin.io.numbers import NumberText
from prplugin.io.selection import EdgeFile, Selection
from prplugin.io.text_blocks import check_memory, content
from prplugin.machine import this_machine
from prplugin.options import Duplicates
from prplugin.types.arrays import Array
from prplugin.types.edges import ANY, Compressed, Coo, Floats, Integers, index_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HEADER_BYTES = 17  # bytes of the header of a file of GAP
WORDS = (b"AdjacencyGraph", b"WeightedAdjacencyGraph")

HEADER = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+([01]{1,3})(?:[ \t]+(\d{1,4}))?)?[ \t\r]*(?:\n|\Z)")
LONGEST_HEADER = 1 << 16

FORWARD, BACKWARD, BOTH = 1, 2, 3  # sums of arcs that are wanted


@dataclass(frozen=True)
class AdjacencyFile:
    """A graph from a file of adjacency lists; `columns` are those of its arcs, "source", "destination" and "weight"."""

    adjacency: Edges
    vertices: Vertices
    columns: Columns
    dropped: int = 0
    rule: Mapping[str, object] | None = None
    notes: tuple[str, ...] = ()

    def graph(self, *, directed: bool, duplicates: Duplicates) -> Edges:
        """Return the graph with the options of `prplugin.Graph`."""
        if directed and duplicates == "sum":
            return self.adjacency
        edges = drop_duplicates(replace(self.adjacency.get(Coo), extent=ANY), duplicates, directed=directed)
        return Edges(edges if directed else with_reverse_edges(edges))

    def as_rows(self) -> EdgeFile:
        """Return the arcs as a frame of ids."""
        import pandas as pd

        edges, ids = self.adjacency.get(Coo), np.asarray(self.vertices.write_ids())
        frame = pd.DataFrame({"source": ids[edges.source], "destination": ids[edges.destination]})
        weight = None if edges.weights is None else "weight"
        if weight is not None:
            frame[weight] = edges.weights
        return EdgeFile(frame, resolve(list(frame), "source", "destination", weight))


def arc_columns(selection: Selection, *, weighted: bool) -> Columns:
    """Return the selected columns of the arcs; the weights of the file are the default ones."""
    weights = ["weight"] if weighted else []
    columns = selection.resolved(
        ["source", "destination", *weights], "weight" if weighted and not selection.unweighted else None
    )
    if sorted((*columns.source, *columns.destination)) != [0, 1]:
        raise InvalidOptionError(f"{selection.name}: the two ends of its arcs are 'source' and 'destination'.")
    return columns


def read_rows(
    selection: Selection, rows: Compressed, *, names: Vertices | None = None, first: int = 0, symmetric: bool = False
) -> AdjacencyFile:
    """Return the graph of valid lists by source; the vertices are `names`, by default integers from `first` on.

    A user who names the columns the other way round gets the transposed graph: lists by target need not be grouped. Nor
    need lists that are `symmetric`.
    """
    columns = arc_columns(selection, weighted=rows.weights is not None)
    offsets, indices, weights = rows
    label = f"{selection.name}: its list of weights"
    weights = checked_weights(None if columns.weight is None else weights, indices.size, label)
    rows, n = Compressed(offsets, indices, weights), offsets.size - 1
    if columns.source == [1]:
        adjacency = Edges.of_in_edges(rows, *sum_out_weight(indices, weights, n, ANY))
    else:
        adjacency = Edges.of(rows, by_target=False, symmetric=symmetric)
    return AdjacencyFile(adjacency, numbered(n, first) if names is None else names, columns)


def numbered(n: int, first: int = 0) -> Vertices:
    """Return the vertices `first` to first + n - 1."""
    return Vertices(["vertex"], [np.arange(first, first + n)], ["integer"])


# --- arcs that are listed twice ---------------------------------------------------------------------------------------


class Arc(NamedTuple):
    """An arc, by position, that one of two lists lacks. `listed`: whether it is in the first."""

    source: int
    target: int
    weight: float | None
    listed: bool

    def described(self, first: int) -> str:
        """Return the arc in words, with vertices counted from `first`."""
        weight = "" if self.weight is None else f" of weight {self.weight:g}"
        return f"the arc from vertex {self.source + first:,} to {self.target + first:,}{weight}"

    def where(self, directed: bool) -> str:
        """Return which list has the arc, and which has not."""
        if not directed:
            return "there, but not its reverse"
        return "among the out-edges alone" if self.listed else "among the in-edges alone"


class ArcSums(NamedTuple):
    """Sums of the hashes of arcs and of their reverses, modulo 2**64, and the first entry that is at fault, or None."""

    forward: int
    backward: int
    fault: int | None


def arc_sums(rows: Compressed, threads: int, wanted: int = BOTH, *, simple: bool = False) -> ArcSums:
    """Return the sums of valid rows that are wanted; with `simple`, a row must not have itself, nor an entry twice."""
    offsets, indices, weights = rows
    n, m = offsets.size - 1, indices.size
    parts = min(threads, max(1, m // max(n, 1))) if simple else threads  # scratch as long as the indices, at most
    bounds = np.searchsorted(offsets, m * np.arange(parts + 1) // parts).astype(np.int64)
    bounds[0], bounds[-1] = 0, n
    scratch = np.zeros((parts, n if simple else 0), indices.dtype)
    sums, faults = np.empty((parts, 2), np.int64), np.empty(parts, np.int64)
    weights = None if weights is None else np.ascontiguousarray(weights, np.float64)
    kernels.check_arcs(offsets, np.ascontiguousarray(indices), weights, bounds, scratch, sums, faults, wanted, threads)
    forward, backward = (sums.view(np.uint64).sum(axis=0, dtype=np.uint64)).tolist()
    return ArcSums(forward, backward, next((fault for fault in faults.tolist() if fault >= 0), None))


def unmatched(out_edges: Compressed, in_edges: Compressed, sums: ArcSums | None = None) -> Arc | None:
    """Return the first arc of lists by source that lists by target lack, or the reverse; None if they have the same.

    `out_edges` and `in_edges` may be one, for an undirected graph. `sums`: Those of `out_edges`, if known.
    """
    if library.is_available():
        threads = this_machine().threads_for(out_edges.indices.size)
        if in_edges is not out_edges:
            same = arc_sums(out_edges, threads, FORWARD).forward == arc_sums(in_edges, threads, BACKWARD).backward
        else:
            sums = sums or arc_sums(out_edges, threads)
            same = sums.forward == sums.backward
        if same:
            return None
    one, other = _sorted(out_edges, by_target=False), _sorted(in_edges, by_target=True)
    differ = reduce(np.logical_or, (a != b for a, b in zip(one, other, strict=True)))
    if not differ.any():
        return None
    place = int(np.flatnonzero(differ)[0])
    found, instead = ([column[place] for column in columns] for columns in (one, other))
    is_listed = found < instead
    source, target, *weight = found if is_listed else instead
    if in_edges is out_edges and not is_listed:
        source, target = target, source
    return Arc(int(source), int(target), float(weight[0]) if weight else None, is_listed)


def _sorted(rows: Compressed, *, by_target: bool) -> list[Array]:
    """Return sources, targets and perhaps weights of lists, in ascending order."""
    ends = [rows.indices, rows_of(rows.offsets)] if by_target else [rows_of(rows.offsets), rows.indices]
    columns = ends if rows.weights is None else [*ends, rows.weights]
    order = np.lexsort(columns[::-1])
    return [column[order] for column in columns]


def _fault_of_neighbors(rows: Compressed) -> tuple[int | None, ArcSums | None]:
    """Return the first entry that is the vertex itself or a neighbor listed before, and the sums, if computed."""
    if library.is_available():
        sums = arc_sums(rows, this_machine().threads_for(rows.indices.size), simple=True)
        return sums.fault, sums
    sources = rows_of(rows.offsets)
    order = np.lexsort([rows.indices, sources])
    repeated = order[1:][~run_starts(sources[order], rows.indices[order])[1:]]
    wrong = np.append(repeated, np.flatnonzero(rows.indices == sources))
    return int(wrong.min()) if wrong.size else None, None


# --- GAP --------------------------------------------------------------------------------------------------------------


def read_gap(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a serialized graph of the GAP benchmark suite: .sg, and .wsg with weights.

    S. Beamer, K. Asanovic and D. Patterson, "The GAP benchmark suite", arXiv:1508.03619, and `src/reader.h` of its
    code. In the byte order of x86: one byte that is 1 if the graph is directed, the numbers of arcs m and of vertices n
    (int64), n + 1 offsets (int64) and m targets (int32; in .wsg pairs of target and weight); and if it is directed,
    offsets and sources of the in-edges likewise. Of an unweighted directed graph these are used as they lie.
    """
    name = selection.name
    path = selection.path
    if compression is not None or (not os.path.isfile(path) and (path == STANDARD_STREAM or _is_stream(path))):
        raise InvalidOptionError(f"{name}: a serialized graph of GAP is an uncompressed file: decompress it first.")
    weighted = Path(name).suffix.lower() == ".wsg"
    with path_errors(name), open(selection.path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES or header[0] > 1:
            raise InvalidEdgesError(
                f"{name} is no serialized graph of GAP: its first byte is 0 or 1, and two numbers follow."
            )
        directed, (m, n) = bool(header[0]), np.frombuffer(header[1:], "<i8").tolist()
        entry_bytes = 8 if weighted else 4
        list_bytes = 8 * (n + 1) + entry_bytes * m
        expected = HEADER_BYTES + (1 + directed) * list_bytes
        if not (0 <= n < 2**31 and m >= 0 and size == expected):
            kind = f"a {'directed' if directed else 'undirected'} graph of {n:,} vertices and {m:,} arcs"
            raise InvalidEdgesError(
                f"{name} has {size:,} bytes, but {kind}, as it announces, takes {expected:,}. It is cut short or "
                "damaged, or has ids of 64 bits."
            )
        check_memory((1 + directed) * list_bytes + 8 * m, f"{name} announces {m:,} arcs")
        columns = arc_columns(selection, weighted=weighted)
        out_edges = _rows(selection, file, _offsets(selection, file, n, m), m, weighted=weighted)
        in_edges = out_edges
        if directed:
            in_edges = _rows(selection, file, _offsets(selection, file, n, m), m, weighted=weighted)
    if (arc := unmatched(out_edges, in_edges)) is not None:
        lists = "lists of out-edges and of in-edges differ" if directed else "arcs are not those of an undirected graph"
        raise InvalidEdgesError(
            f"{name}: its {lists}: {arc.described(0)} is {arc.where(directed)}. The file is damaged."
        )
    # Weights are read by source, in the order of the file, so that rounding does not depend on which list is used.
    if directed and not weighted and columns.source == [0]:
        adjacency = Edges.of_in_edges(in_edges, np.diff(out_edges.offsets).astype(np.float64))
        return AdjacencyFile(adjacency, numbered(n), columns)
    return read_rows(selection, out_edges, symmetric=not directed)


def _is_stream(path: str) -> bool:
    return os.path.exists(path) and not os.path.isdir(path)


def _offsets(selection: Selection, file: IO[bytes], n: int, m: int) -> Integers:
    offsets = np.fromfile(file, "<i8", n + 1)  # a map of the file would not be aligned
    check_offsets(offsets, m, f"{selection.name}: its list of offsets", "the number of arcs")
    return offsets


def _rows(selection: Selection, file: IO[bytes], offsets: Integers, m: int, *, weighted: bool) -> Compressed:
    """Read and check a list after its offsets; `read_rows` checks its weights."""
    entries = np.fromfile(file, "<i4", 2 * m if weighted else m)
    indices = np.ascontiguousarray(entries[::2]) if weighted else entries
    check_vertices(indices, offsets.size - 1, f"{selection.name}: its list of arcs")
    return Compressed(offsets, indices, entries[1::2] if weighted else None)


# --- text -------------------------------------------------------------------------------------------------------------


def open_text(
    selection: Selection, compression: str | None, check: Callable[[NumberText], object], *, by_line: bool
) -> NumberText:
    """Return the text of a file, mapped to memory or decompressed.

    `check` is called with the first `LONGEST_HEADER` bytes, before more than a piece of a stream is read.
    """

    def check_start(start: Any) -> None:
        check(NumberText(selection.name, np.frombuffer(start, np.uint8)[:LONGEST_HEADER], by_line=by_line))

    path = Path(selection.path)
    with path_errors(selection.name):
        text: Any
        if compression is None and path.is_file() and path.stat().st_size:
            text = np.memmap(path, np.uint8, "r")
            check_start(text[:LONGEST_HEADER])
        else:
            text = np.frombuffer(content(selection.path, compression, check_start), np.uint8)
    return NumberText(selection.name, text, by_line=by_line)


def as_vertices(selection: Selection, ids: Floats, n: int, first: int) -> Integers:
    """Return ids, of `first` to first + n - 1, as positions."""
    label = f"{selection.name}: its list of arcs"
    check_vertices(_whole(ids, label), n, label, first)
    positions: Integers = (ids - first).astype(index_dtype(n))
    return positions


def _whole(numbers: Floats, label: str) -> Floats:
    """Return the numbers; raise for one that is no integer."""
    if (fractions := np.flatnonzero(numbers != np.floor(numbers))).size:
        raise InvalidEdgesError(f"{label} has {numbers[fractions[0]]:g} in entry {fractions[0]}, which is no integer.")
    return numbers


def read_ligra(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a graph of Ligra or of the Problem Based Benchmark Suite: AdjacencyGraph or WeightedAdjacencyGraph.

    J. Shun and G. E. Blelloch, "Ligra: a lightweight graph processing framework for shared memory", PPoPP 2013. After
    the word follow, in any lines, the numbers of vertices n and of arcs m, n offsets, m targets and, if weighted, m
    weights.
    """
    text = open_text(selection, compression, _word, by_line=False)
    line = _word(text)
    weighted = line.strip() == WORDS[1]
    values = text.numbers(len(line) + 1)[0]
    if values.size < 2:
        text.fault(text.bytes.size, "the numbers of vertices and of arcs are missing: the file is cut short.")
    n, m = values[:2].tolist()
    expected = 2 + n + m * (1 + weighted)
    if values.size != expected or n != int(n):
        text.fault(
            text.bytes.size,
            f"{n:,.15g} vertices and {m:,.15g} arcs{', weighted,' if weighted else ''} take {expected:,.15g} numbers, "
            f"but the file has {values.size:,}.",
        )
    n, m = int(n), int(m)
    offsets = np.append(_whole(values[2 : 2 + n], f"{selection.name}: its list of offsets"), m).astype(np.int64)
    check_offsets(offsets, m, f"{selection.name}: its list of offsets", "the number of arcs")
    indices = as_vertices(selection, values[2 + n : 2 + n + m], n, 0)
    return read_rows(selection, Compressed(offsets, indices, values[2 + n + m :] if weighted else None))


def _word(text: NumberText) -> bytes:
    """Return the first line of a file of Ligra."""
    line = bytes(text.bytes[:64]).split(b"\n")[0]
    if line.strip() not in WORDS:
        text.fault(0, "the first line of a file of Ligra is AdjacencyGraph or WeightedAdjacencyGraph.")
    return line


def read_metis(selection: Selection, compression: str | None) -> AdjacencyFile:
    """Read a graph of METIS, as KaHIP, NetworKit and others write them, too.

    G. Karypis, "METIS: a software package for partitioning unstructured graphs", manual of version 5.1, section 4.1.
    The first line that is no comment (%) has the numbers of vertices and of edges, perhaps three digits that say
    whether there are sizes and weights of vertices and weights of edges, and the number of weights per vertex. Each
    further line has the neighbors of a vertex, from 1, after its size and weights; each edge is listed by both ends.
    """
    text = open_text(selection, compression, _check_start, by_line=True)
    header, end = _header(text)
    n, edges = int(header[1]), int(header[2])
    sizes, vertex_weights, weighted = (digit == "1" for digit in (header[3] or b"").decode().zfill(3))
    values, starts = text.numbers(end, n)
    if starts.size - 1 < n or starts[n] != values.size:
        lines = starts.size - 1 if starts.size - 1 < n else int(np.searchsorted(starts, values.size))
        text.fault(text.bytes.size, f"the header announces {n:,} vertices, but {lines:,} lines follow.")
    starts = starts[: n + 1]
    skipped = sizes + (int(header[4] or 1) if vertex_weights else 0)
    fields = np.diff(starts) - skipped
    if (wrong := np.flatnonzero((fields < 0) | (weighted & fields % 2 != 0))).size:
        expected = f"{skipped} numbers of the vertex" if skipped else "no numbers of the vertex"
        expected += " and pairs of neighbor and weight" if weighted else " and its neighbors"
        text.fault(
            _position(text, end, int(wrong[0])),
            f"vertex {int(wrong[0]) + 1:,} has {int(fields[wrong[0]]) + skipped:,} numbers, but the header announces "
            f"{expected}.",
        )
    if skipped:
        first = starts[:-1][rows_of(starts)]
        values = values[np.arange(values.size) - first >= skipped]
    offsets = offsets_of(fields // 2 if weighted else fields)
    if int(offsets[-1]) != 2 * edges:
        text.fault(
            text.bytes.size,
            f"the header announces {edges:,} edges, so {2 * edges:,} neighbors, but the lines have "
            f"{int(offsets[-1]):,}.",
        )
    indices = as_vertices(selection, values[::2] if weighted else values, n, 1)
    rows = Compressed(offsets, indices, np.ascontiguousarray(values[1::2]) if weighted else None)
    fault, sums = _fault_of_neighbors(rows)
    if fault is not None:
        vertex = int(np.searchsorted(offsets, fault, "right")) - 1
        what = "is its own neighbor" if indices[fault] == vertex else f"has neighbor {int(indices[fault]) + 1:,} twice"
        text.fault(_position(text, end, vertex), f"vertex {vertex + 1:,} {what}.")
    if (arc := unmatched(rows, rows, sums)) is not None:
        weight = "" if arc.weight is None else f" with weight {arc.weight:g}"
        text.fault(
            _position(text, end, arc.source),
            f"vertex {arc.source + 1:,} lists {arc.target + 1:,}{weight}, but vertex {arc.target + 1:,} does not list "
            f"{arc.source + 1:,}{' with this weight' if weight else ''}: each edge is listed by both ends.",
        )
    return read_rows(selection, rows, first=1, symmetric=True)


def _check_start(start: NumberText) -> None:
    """Raise unless the start of a file has a header, or only comments and a part of a line."""
    begin = start.first_line()
    if begin == 0 or b"\n" in bytes(start.bytes[begin:]):
        _header(start)


def _header(text: NumberText) -> tuple[re.Match[bytes], int]:
    """Return the header below the comments, and its end in the file."""
    begin = text.first_line()
    header = HEADER.match(bytes(text.bytes[begin : begin + LONGEST_HEADER]))
    if header is None:
        text.fault(
            begin,
            "it is not the header of a METIS file, two to four integers. (A .graph file of WebGraph needs its "
            ".properties file beside it.)",
        )
    return header, begin + header.end()


def _position(text: NumberText, first: int, line: int) -> int:
    """Return the position of a line, counted from 0 after the header and without comments."""
    lines = re.finditer(rb"(?m)^(?!%)", bytes(text.bytes[first:]))
    return first + next(islice(lines, line, None)).start()
