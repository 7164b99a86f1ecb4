"""Read graphs of LDBC Graphalytics: a file of vertices (.v), one of edges (.e), and their .properties.

"The LDBC Graphalytics benchmark", version 1.0.5, section 2.2. A line of .v is a vertex; one of .e is its two ends, and
perhaps properties, separated by blanks; an undirected graph has each edge once. Damping factor and number of iterations
are those of the algorithm `pr`: section 2.3.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from prplugin.errors import InvalidEdgesError
from prplugin.io.blocks import blocks
from prplugin.io.formats import COMPRESSIONS, Properties
from prplugin.io.selection import EdgeFile, Selection
from prplugin.io.text import Column, read_columns

VERTEX_FILE = re.compile(r"graph\.(.+)\.vertex-file")


def read(selection: Selection, compression: str | None) -> EdgeFile:
    """Read a graph by the name of any of its files; see `prplugin.io.read_edges`."""
    path = Path(selection.path)
    path = path.with_suffix("") if compression else path
    suffix = path.suffix.lower()
    end = next((end for end, known in COMPRESSIONS.items() if known == compression), "")
    vertices, edges = path.with_suffix(f".v{end}"), path.with_suffix(f".e{end}")
    described = path if suffix == ".properties" else path.with_suffix(".properties")
    directed, rule, weight = True, None, "weight"
    if suffix == ".properties" or described.is_file():
        properties = Properties.read(str(described))
        prefix = next((f"graph.{found[1]}." for key in properties.items if (found := VERTEX_FILE.fullmatch(key))), None)
        if prefix is None:
            properties.refuse("it has no property graph.NAME.vertex-file, as one of LDBC Graphalytics has.")
        folder = described.parent
        vertices, edges = (folder / properties.text(f"{prefix}{kind}-file") for kind in ("vertex", "edge"))
        directed = _boolean(properties, f"{prefix}directed")
        weight = properties.text(f"{prefix}edge-properties.names", weight).split(",")[0].strip() or weight
        rule = _rule(properties, prefix)
    ids = _vertices(vertices)
    file = _edges(selection, edges, weight)
    for name in (*file.columns.source_names, *file.columns.destination_names):
        if (unknown := file.frame[name][~file.frame[name].isin(ids)]).size:
            raise InvalidEdgesError(f"{edges}: vertex {unknown.iloc[0]} of an edge is not in {vertices}.")
    return replace(file, vertices=ids, directed=directed, rule=rule)


def _compression(path: Path) -> str | None:
    return COMPRESSIONS.get(path.suffix.lower())


def _vertices(path: Path) -> Any:
    """Return the ids of all vertices; raise for a repeated one."""
    frame, _ = read_columns(blocks(str(path), _compression(path), None), 1, [Column(0, "vertex", "integer")])
    if (repeated := frame["vertex"][frame["vertex"].duplicated()]).size:
        raise InvalidEdgesError(f"{path} has vertex {repeated.iloc[0]} twice.")
    return frame["vertex"].to_numpy()


def _edges(selection: Selection, path: Path, weight: str) -> EdgeFile:
    """Read two or three columns; the weights only if they are named."""
    text = blocks(str(path), _compression(path), None)
    first = next(text)
    width = next((len(record.split()) for _, record in first.records()), 2)
    names = ["source", "destination", weight, *(f"property{position}" for position in range(3, width))][:width]
    selection = replace(selection, path=str(path))
    columns = selection.resolved(names)
    read = [Column(position, names[position], "integer") for position in (0, 1)]
    if columns.weight is not None:
        read.append(Column(columns.weight, names[columns.weight], "weight"))
    frame, _ = read_columns(chain([first], text), width, read)
    return EdgeFile(frame, columns)


def _boolean(properties: Properties, key: str) -> bool:
    """Return the value of a key, true or false."""
    text = properties.text(key).lower()
    if text not in ("true", "false"):
        properties.refuse(f"{key} is {text!r}, and must be true or false.")
    return text == "true"


def _rule(properties: Properties, prefix: str) -> Mapping[str, Any] | None:
    """Return the options of the benchmark's ranking: so many iterations of the power method from equal ranks."""
    damping, iterations = f"{prefix}pr.damping-factor", f"{prefix}pr.num-iterations"
    if damping not in properties.items or iterations not in properties.items:
        return None
    try:
        alpha = float(properties.text(damping))
    except ValueError:
        properties.refuse(f"{damping} is {properties.text(damping)!r}, and must be a number.")
    return {"alpha": alpha, "tol": 0.0, "max_iter": properties.integer(iterations)}
