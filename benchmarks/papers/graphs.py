"""The papers' graphs: real ones by their usual names in the user's folder, and generated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import prplugin
from benchmarks.memory import require
from prplugin.gpu import runtime
from prplugin.graph.adjacency import Adjacency
from prplugin.io import read_edges
from prplugin.io.formats import COMPRESSIONS, INPUT_FORMATS
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Edges, index_dtype

__all__ = ["Named", "found", "generated", "memory_space", "real"]

BYTES_AN_EDGE, BYTES_A_VERTEX = 90, 200
"""That it takes at most to generate or read a graph, to sort it, and to iterate."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """A graph that can be had.

    Attributes
    ----------
    name : str
    vertices, edges : int
        As generated, or as the paper counts them.
    make : function
        Gives it.
    memory_space : MemorySpace
        Where it will lie.
    """

    name: str
    vertices: int
    edges: int
    make: Callable[[], Adjacency]
    memory_space: MemorySpace = "host"

    def adjacency(self) -> Adjacency:
        """Make it.

        Raises
        ------
        NoRoomError
            Before that, if memory does not do.
        """
        needed = BYTES_AN_EDGE * self.edges + BYTES_A_VERTEX * self.vertices
        for side in {"host", self.memory_space}:  # the methods of the CPU need it there
            require(needed, side, self.name)  # type: ignore[arg-type]
        return self.make()


def memory_space() -> MemorySpace:
    """Say where graphs are generated: on the GPU where cuDF is."""
    return "host" if runtime.unavailable_reason() or find_spec("cudf") is None else "device"


def generated(name: str, n: int, m: int, make: Callable[[MemorySpace], Any], weight: str | None = None) -> Named:
    """Name a generated graph of the vertices 0 to n - 1, isolated ones included.

    Parameters
    ----------
    make : function
        Gives its frame in a place.
    weight : str, optional
        The column of weights.
    """
    there = memory_space()

    def adjacency() -> Adjacency:
        frame = make(there)
        source, target = (frame[end].values.astype(index_dtype(n)) for end in ("src", "dst"))
        weights = None if weight is None else frame[weight].values.astype(float)
        return Adjacency(Edges(source, target, weights, n))

    return Named(name=name, vertices=n, edges=m, make=adjacency, memory_space=there)


def real(
    data: Path | None,
    name: str,
    vertices: int,
    edges: int,
    *,
    files: tuple[str, ...] = (),
    directed: bool = True,
    weight: str | None = None,
) -> Named | None:
    """Name a graph of the user's; None if there is no file of it.

    Parameters
    ----------
    vertices, edges : int
        As its source counts them.
    files : tuple of str
        What its file is called, but for the ending, if not as the graph.
    directed : bool
        False: the file has each edge once, and it is one both ways.
    weight : str, optional
        The column of weights.
    """
    path = found(data, (name, *files))
    if path is None:
        return None

    def adjacency() -> Adjacency:
        file = read_edges(str(path), weight=weight, unweighted=weight is None)
        arguments = file.graph_arguments()
        arguments["directed"] &= directed
        return prplugin.Graph(file.frame, **arguments)._graph.adjacency

    return Named(name=name, vertices=vertices, edges=edges, make=adjacency)


def found(data: Path | None, names: tuple[str, ...]) -> Path | None:
    """Find a file by one of these names: in the folder, in its "graphs", or in one of its own, as SuiteSparse packs."""
    return next(_files(data, names), None) if data is not None else None


def _files(data: Path, names: tuple[str, ...]) -> Iterator[Path]:
    endings = [ending for known in INPUT_FORMATS.values() for ending in known]
    for name in names:
        for folder in (data, data / "graphs", data / name, data / "graphs" / name):
            for ending in endings:
                for compression in ("", *COMPRESSIONS):
                    if (path := folder / f"{name}{ending}{compression}").is_file():
                        yield path
