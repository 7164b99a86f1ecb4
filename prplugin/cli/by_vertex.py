"""Convert vertices and values by vertex from the command line to arguments of `Graph.rank`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from prplugin import Graph
from prplugin.errors import ColumnNotFoundError, InvalidOptionError
from prplugin.io import read_values
from prplugin.io.columns import INTEGER
from prplugin.io.formats import INPUT_FORMATS, by_suffix


def given_by_vertex(option: str, items: Sequence[str], graph: Graph) -> Any:
    """Return the argument for the items of an option: VERTEX=VALUE pairs, vertices for --seeds, or one file.

    A file has the columns `vertex` (the source's columns if a vertex has several) and, optionally, `values` and `seed`.
    """
    if not items:
        return None
    ids = graph.vertices
    kinds = {name: _kind(ids[name].dtype) for name in ids.columns} if ids.ndim == 2 else {"vertex": _kind(ids.dtype)}
    if any(by_suffix(item, INPUT_FORMATS)[0] for item in items):
        if len(items) > 1:
            raise click.UsageError(f"{option} takes one file and no further values.")
        return _from_file(option, items[0], kinds)
    if len(kinds) > 1:
        raise click.UsageError(f"{option}: vertices have several columns. Pass a file with the columns {_and(kinds)}.")
    kind = kinds["vertex"]
    if option == "--seeds":
        return [_vertex(option, item, kind) for item in items]
    values: dict[str | int, float] = {}
    for item in items:
        name, equals, number = item.rpartition("=")
        try:
            value = float(number if equals else "")
        except ValueError:
            raise click.UsageError(f"{option} takes VERTEX=VALUE or a file such as values.csv, not {item!r}.") from None
        vertex = _vertex(option, name, kind)
        if vertex in values:
            raise click.UsageError(f"{option} names vertex {name!r} twice.")
        values[vertex] = value
    return values


def _kind(dtype: Any) -> str:
    return {"i": "integer", "u": "integer", "O": "string", "T": "string"}.get(dtype.kind, str(dtype))


def _vertex(option: str, text: str, kind: str) -> str | int:
    if kind == "string":
        return text
    if kind != "integer":
        raise click.UsageError(f"{option}: ids are of type {kind}. Pass them in a Parquet file.")
    if not INTEGER.fullmatch(text):
        raise InvalidOptionError(f"{option}: the ids of this graph are integers without leading zeros, not {text!r}.")
    return int(text)


def _from_file(option: str, path: str, kinds: dict[str, str]) -> Any:
    frame = read_values(path, kinds | {"values": "weight", "seed": "string"})
    if absent := [name for name in kinds if name not in frame.columns]:
        raise ColumnNotFoundError(f"{path}: {option} needs a column {_and(absent)}.")
    if len(frame.columns) > len(kinds):
        return frame
    return list(frame.itertuples(index=False, name=None)) if len(kinds) > 1 else frame["vertex"].tolist()


def _and(names: Sequence[str] | dict[str, str]) -> str:
    return " and ".join(map(repr, names))
