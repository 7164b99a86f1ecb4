"""Graphs of the papers: real ones by their usual names in the data folder, and generated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import require
from prplugin.gpu import runtime
from prplugin.graph.dedup import with_reverse_edges
from prplugin.graph.edges import Edges
from prplugin.io import read_edges
from prplugin.io.formats import COMPRESSIONS, ROWS
from prplugin.options import EdgeOptions
from prplugin.sources import of_file
from prplugin.types.arrays import MemorySpace
from prplugin.types.edges import Coo, Integers, index_dtype

BYTES_PER_EDGE, BYTES_PER_VERTEX = 90, 200
"""Upper bounds for generating or reading a graph, sorting it, and iterating."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkGraph:
    """Graph that can be generated or read.

    Attributes
    ----------
    name : str
    vertices, edges : int
        Numbers as generated, or as stated by the paper.
    make : function
        Returns the graph.
    memory_space : MemorySpace
        Memory space of the graph.
    """

    name: str
    vertices: int
    edges: int
    make: Callable[[], Edges]
    memory_space: MemorySpace = "host"

    def adjacency(self) -> Edges:
        """Generate or read the graph.

        Raises
        ------
        InsufficientMemoryError
            If the available memory does not suffice.
        """
        needed = BYTES_PER_EDGE * self.edges + BYTES_PER_VERTEX * self.vertices
        for space in {"host", self.memory_space}:  # methods of the CPU need a host copy
            require(needed, space, self.name)  # type: ignore[arg-type]
        return self.make()


def memory_space() -> MemorySpace:
    """Return the memory space of generated graphs: the device if cuDF is installed."""
    return "host" if runtime.unavailable_reason() or find_spec("cudf") is None else "device"


def generated(
    name: str,
    n: int,
    m: int,
    make: Callable[[MemorySpace], Any],
    weight: str | None = None,
    *,
    directed: bool = True,
) -> BenchmarkGraph:
    """Return a generated graph of the vertices 0 to n - 1, isolated ones included.

    Parameters
    ----------
    make : function
        Returns its frame in a memory space.
    weight : str, optional
        Column of weights.
    directed : bool
        If False, each row of the frame is an edge both ways; there are m of these.
    """
    there = memory_space()

    def adjacency() -> Edges:
        frame = make(there)
        source, target = (frame[end].values.astype(index_dtype(n)) for end in ("src", "dst"))
        weights = None if weight is None else frame[weight].values.astype(float)
        edges = Coo(source, target, weights, n)
        return Edges(edges if directed else with_reverse_edges(edges))

    return BenchmarkGraph(name=name, vertices=n, edges=m, make=adjacency, memory_space=there)


def real(
    data: Path | None,
    name: str,
    vertices: int,
    edges: int,
    *,
    files: tuple[str, ...] = (),
    directed: bool = True,
    weight: str | None = None,
) -> BenchmarkGraph | None:
    """Return a graph of the data folder; None if its file is absent.

    Parameters
    ----------
    vertices, edges : int
        Numbers as stated by its source.
    files : tuple of str
        Alternative names of its file, without suffix.
    directed : bool
        If False, each row of the file is an edge both ways.
    weight : str, optional
        Column of weights.
    """
    path = find_file(data, (name, *files))
    if path is None:
        return None

    def adjacency() -> Edges:
        file = read_edges(str(path), weight=weight, unweighted=weight is None)
        return of_file(file, path, EdgeOptions(directed=directed), lasting=True).adjacency

    return BenchmarkGraph(name=name, vertices=vertices, edges=edges, make=adjacency)


def find_file(data: Path | None, names: tuple[str, ...]) -> Path | None:
    """Return the first file with one of these names in the folder, its subfolder "graphs", or a folder of that name."""
    return next(_files(data, names), None) if data is not None else None


def _files(data: Path, names: tuple[str, ...]) -> Iterator[Path]:
    endings = [ending for known in ROWS.values() for ending in known]
    for name in names:
        for folder in (data, data / "graphs", data / name, data / "graphs" / name):
            for ending in endings:
                for compression in ("", *COMPRESSIONS):
                    if (path := folder / f"{name}{ending}{compression}").is_file():
                        yield path


def rows_of_pairs(edges: Coo) -> tuple[Integers, Integers] | None:
    """Return one row per undirected edge, as line 6 of Algorithm 2 of Kim 2013 reads them; None if it is directed."""
    source, target = edges.source, edges.destination
    forward, backward = source <= target, source > target
    if np.count_nonzero(source < target) != np.count_nonzero(backward):
        return None
    ends, others = source[forward], target[forward]
    loops = ends == others
    keys = np.sort(ends[~loops].astype(np.int64) * edges.n + others[~loops])
    if not np.array_equal(keys, np.sort(target[backward].astype(np.int64) * edges.n + source[backward])):
        return None
    return ends, others
