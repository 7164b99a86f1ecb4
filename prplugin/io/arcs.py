"""Read lists of arcs and of all vertices: Matrix Market coordinates, DIMACS' shortest paths, and LDBC Graphalytics.

The header of the first two announces how many arcs follow, and vertices are 1..n, including isolated ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from prplugin.errors import InvalidEdgesError
from prplugin.io.comments import Comments
from prplugin.io.formats import COMPRESSIONS, Properties, without_compression
from prplugin.io.selection import EdgeFile, Selection
from prplugin.io.text import TextColumn, read_columns
from prplugin.io.text_blocks import Block, blocks, check_memory, first_record

FIELDS = {"pattern": 2, "real": 3, "double": 3, "integer": 3}
"""Number of fields per entry, by the type of the values in the banner."""

VERTEX_BYTES = 24  # lower bound of the bytes per vertex: id, rank and out-weight
PROBLEM = re.compile(rb"p[ \t]+sp[ \t]+(\d{1,18})[ \t]+(\d{1,18})[ \t]*")
OTHER = re.compile(rb"(?m)^[^acp\s].*|^[acp](?![ \t\r\n]).*|^a[ \t]+[#%].*")

VERTEX_FILE = re.compile(r"graph\.(.+)\.vertex-file")


def read_matrix_market(selection: Selection, compression: str | None) -> EdgeFile:
    """Read a square matrix, whose rows are sources; see `prplugin.io.read_edges`.

    R. F. Boisvert, R. Pozo and K. A. Remington, "The Matrix Market exchange formats: initial design", NIST IR 5935,
    1996.
    """
    comments = Comments("%")
    text = blocks(selection.path, compression, None, comments)
    first = next(text)
    values, symmetric = _banner(selection.name, next(iter(comments.leading), ""))
    size = first_record(chain([first], text))
    if size is None:
        raise InvalidEdgesError(f"{selection.name} has no size line: it is cut short.")
    block, start, line = size
    n, entries = _size(block, start, line.strip())

    def check(block: Block, columns: list[TextColumn]) -> None:
        rows, targets, *weights = (column.parts[-1].to_numpy() for column in columns)
        if symmetric and (upper := np.flatnonzero(rows < targets)).size:
            entry = f"entry ({rows[upper[0]]}, {targets[upper[0]]}) is above the diagonal."
            what = "A symmetric matrix lists only its lower triangle. Drop it, or write 'general' in the banner."
            block.fault_of(upper[0], f"{entry} {what}")
        if values == "integer" and weights and (fractional := np.flatnonzero(weights[0] != np.floor(weights[0]))).size:
            what = f"column 'weight' has {weights[0][fractional[0]]}, and the banner announces integers."
            block.fault_of(fractional[0], f"{what} Write 'real' in it.")

    names = ["source", "destination", "weight"][: FIELDS[values]]
    text = chain([block.part(start + len(line))], text)
    file = _arcs(selection, (block, start), names, (n, entries, "entries"), text, check)
    return replace(file, directed=not symmetric)


def read_dimacs(selection: Selection, compression: str | None) -> EdgeFile:
    """Read a graph of the 9th DIMACS implementation challenge: lines ``p sp n m`` and ``a source target weight``.

    Lines that begin with c are comments; see `prplugin.io.read_edges`.
    """
    text = _dimacs_records(blocks(selection.path, compression, None))
    if (found := first_record(text)) is None:
        raise InvalidEdgesError(f"{selection.name} has no line 'p sp', and no arcs: it is cut short.")
    block, start, line = found
    problem = PROBLEM.fullmatch(line.strip())
    if problem is None:
        block.fault(
            start, f"it is not 'p sp', the number of vertices and the number of arcs: {line[:60].decode('latin-1')!r}."
        )
    arcs = _without_letter(chain([block.part(start + len(line))], text))
    announced = int(problem[1]), int(problem[2]), "arcs"
    return _arcs(selection, (block, start), ["source", "destination", "weight"], announced, arcs)


def _arcs(
    selection: Selection, header: tuple[Block, int], names: Sequence[str], announced: tuple[int, int, str],
    text: Iterator[Block], check: Callable[[Block, list[TextColumn]], None] | None = None,
) -> EdgeFile:  # fmt: skip
    """Read the arcs after a header, of which `announced` has the numbers of vertices and of arcs, and their name."""
    (block, start), (n, count, noun) = header, announced
    check_memory(VERTEX_BYTES * n, f"{block.name}, line {block.line_at(start):,}: it announces {n:,} vertices")
    found = selection.resolved(names, "weight" if len(names) == 3 and not selection.unweighted else None)
    columns = [TextColumn(position, names[position], "integer", zeros=True, largest=n) for position in (0, 1)]
    if found.weight is not None:
        columns.append(TextColumn(2, "weight", "weight"))
    frame, _ = read_columns(text, len(names), columns, check and (lambda block: check(block, columns)))
    if len(frame) != count:
        block.fault(start, f"it announces {count:,} {noun}, but {len(frame):,} follow.")
    return EdgeFile(frame, found, np.arange(1, n + 1))


def _banner(name: str, line: str) -> tuple[str, bool]:
    banner = line[:1024].lower().split()
    fault = ""
    if len(banner) != 5 or banner[0] != "%%matrixmarket":
        fault = "it is not the banner of a Matrix Market file, %%MatrixMarket matrix coordinate ..."
    else:
        kind, layout, values, symmetry = banner[1:]
        if kind != "matrix" or layout != "coordinate":
            fault = f"a {kind} in {layout} format cannot be ranked: only 'matrix coordinate' is read."
        elif values not in FIELDS:
            fault = f"a matrix of {values} values cannot be ranked: they must be pattern, real or integer."
        elif symmetry not in ("general", "symmetric"):
            fault = f"a {symmetry} matrix cannot be ranked: it must be general or symmetric."
    if fault:
        raise InvalidEdgesError(f"{name}, line 1: {fault}")
    return values, symmetry == "symmetric"


def _size(block: Block, start: int, line: bytes) -> tuple[int, int]:
    shown = repr(line[:60].decode("latin-1"))
    if not re.fullmatch(rb"\d+\s+\d+\s+\d+", line):
        block.fault(start, f"it is not a size line, rows columns entries: {shown}.")
    if len(line) > 4000 or max(map(int, line.split())) >= 2**63:
        block.fault(start, f"{shown} has a number of more than 64 bits.")
    rows, columns, entries = map(int, line.split())
    if rows != columns:
        block.fault(start, f"the matrix is {rows:,} x {columns:,}; an adjacency matrix is square.")
    return rows, entries


def _dimacs_records(text: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks without comments; raise for lines of no known kind."""
    for block in text:
        if other := OTHER.search(block.text):
            shown = other[0][:60].decode("latin-1").strip()
            block.fault(
                other.start(), f"a line begins with c, p or a, a blank and a number, but this one is {shown!r}."
            )
        yield replace(block, text=re.sub(rb"(?m)^c.*", b"", block.text))


def _without_letter(text: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks without the letter a."""
    for block in text:
        if again := re.search(rb"(?m)^p", block.text):
            block.fault(again.start(), "it is a second line 'p sp'.")
        yield replace(block, text=re.sub(rb"(?m)^a ", b"", block.text))


# --- LDBC Graphalytics ------------------------------------------------------------------------------------------------


def read_graphalytics(selection: Selection, compression: str | None) -> EdgeFile:
    """Read a graph of LDBC Graphalytics by the name of any of its files; see `prplugin.io.read_edges`.

    "The LDBC Graphalytics benchmark", version 1.0.5, section 2.2. A line of .v is a vertex; one of .e is its two ends,
    and perhaps properties, separated by blanks; an undirected graph has each edge once. Damping factor and number of
    iterations in the .properties are those of the algorithm `pr`: section 2.3.3.
    """
    path, _ = without_compression(selection.path)
    end = Path(selection.path).suffix if compression else ""
    vertices, edges = path.with_suffix(f".v{end}"), path.with_suffix(f".e{end}")
    described = path if path.suffix.lower() == ".properties" else path.with_suffix(".properties")
    directed, rule, weight = True, None, "weight"
    if path == described or described.is_file():
        properties = Properties.read(str(described))
        prefix = next((f"graph.{found[1]}." for key in properties.items if (found := VERTEX_FILE.fullmatch(key))), None)
        if prefix is None:
            properties.refuse("it has no property graph.NAME.vertex-file, as one of LDBC Graphalytics has.")
        vertices, edges = (_beside(properties, described, f"{prefix}{kind}-file") for kind in ("vertex", "edge"))
        directed = properties.boolean(f"{prefix}directed")
        weight = properties.text(f"{prefix}edge-properties.names", weight).split(",")[0].strip() or weight
        rule = _rule(properties, prefix)
    ids = _vertices(vertices)
    file = _edges(selection, edges, weight)
    for name in (*file.columns.source_names, *file.columns.destination_names):
        if (unknown := file.frame[name][~file.frame[name].isin(ids)]).size:
            raise InvalidEdgesError(f"{edges}: vertex {unknown.iloc[0]} of an edge is not in {vertices}.")
    if not directed:
        _check_once(file, edges)
    return replace(file, vertices=ids, directed=directed, rule=rule)


def _beside(properties: Properties, described: Path, key: str) -> Path:
    """Return the path of a file that properties name, which must be below their folder."""
    name = Path(properties.text(key))
    if name.is_absolute() or name.drive or ".." in name.parts:
        properties.refuse(f"{key} is {str(name)!r}, and must be a file beside it or in a folder below.")
    return described.parent / name


def _check_once(file: EdgeFile, path: Path) -> None:
    """Raise if an undirected edge is listed twice, in one direction or in both."""
    source, destination = (
        file.frame[names[0]].to_numpy() for names in (file.columns.source_names, file.columns.destination_names)
    )
    same, rises = source[1:] == source[:-1], destination[1:] > destination[:-1]
    if (source <= destination).all() and ((source[1:] > source[:-1]) | (same & rises)).all():
        return  # sorted, as the benchmark's own files are
    pairs = pd.DataFrame({"low": np.minimum(source, destination), "high": np.maximum(source, destination)})
    if (repeated := np.flatnonzero(pairs.duplicated())).size:
        row = int(repeated[0])
        raise InvalidEdgesError(
            f"{path}, edge {row + 1:,}: the edge between {source[row]} and {destination[row]} is listed before, and an "
            "undirected graph has each edge once. Drop one of the two, or write directed = true."
        )


def _blocks(path: Path) -> Iterator[Block]:
    return blocks(str(path), COMPRESSIONS.get(path.suffix.lower()), None)


def _vertices(path: Path) -> Any:
    """Return the ids of all vertices; raise for a repeated one."""
    frame, _ = read_columns(_blocks(path), 1, [TextColumn(0, "vertex", "integer")])
    if (repeated := frame["vertex"][frame["vertex"].duplicated()]).size:
        raise InvalidEdgesError(f"{path} has vertex {repeated.iloc[0]} twice.")
    return frame["vertex"].to_numpy()


def _edges(selection: Selection, path: Path, weight: str) -> EdgeFile:
    """Read two or three columns; the weights only if they are named."""
    text = _blocks(path)
    first = next(text)
    width = next((len(record.split()) for _, record in first.records()), 2)
    names = ["source", "destination", weight, *(f"property{position}" for position in range(3, width))][:width]
    selection = replace(selection, path=str(path))
    columns = selection.resolved(names)
    read = [TextColumn(position, names[position], "integer") for position in (0, 1)]
    if columns.weight is not None:
        read.append(TextColumn(columns.weight, names[columns.weight], "weight"))
    frame, _ = read_columns(chain([first], text), width, read)
    return EdgeFile(frame, columns)


def _rule(properties: Properties, prefix: str) -> Mapping[str, object] | None:
    """Return the options of the benchmark's ranking: so many iterations of the power method from equal ranks."""
    damping, iterations = f"{prefix}pr.damping-factor", f"{prefix}pr.num-iterations"
    if damping not in properties.items or iterations not in properties.items:
        return None
    try:
        alpha = float(properties.text(damping))
    except ValueError:
        properties.refuse(f"{damping} is {properties.text(damping)!r}, and must be a number.")
    return {"alpha": alpha, "tol": 0.0, "max_iter": properties.integer(iterations)}
