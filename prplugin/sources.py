"""Kinds of input of `prplugin.Graph` and `prplugin.pagerank`: frames, files, matrices, graphs of other libraries."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from prplugin.errors import InvalidOptionError, MethodUnavailableError, full_name, rows_of_frame
from prplugin.folders import is_saved
from prplugin.frames import FIRST_ADAPTERS, LAST_ADAPTERS, FrameAdapter, adapter_for, dask, unsupported
from prplugin.frames.columns import Frame
from prplugin.frames.lists import FRAMES
from prplugin.frames.reading import reading_to
from prplugin.frames.remedies import advising, library_of
from prplugin.local import LocalGraph
from prplugin.methods.registry import methods
from prplugin.options import EdgeOptions, FileOptions, refuse, refuse_all_but
from prplugin.streams.state import GraphState
from prplugin.types.arrays import is_a, is_sparse

if TYPE_CHECKING:
    from prplugin.distributed.run import DistributedGraph
    from prplugin.io import EdgeFile
    from prplugin.io.adjacency import AdjacencyFile

PreparedGraph: TypeAlias = "LocalGraph | DistributedGraph"
"""Implementation of `prplugin.Graph`."""

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

SAVED = "a saved graph"  # name of the kind of input, for messages


class Source(NamedTuple):
    """A kind of input: a function that says whether it is given, and one that reads it."""

    accepts: Callable[[object], bool]
    read: Callable[..., PreparedGraph]  # with the arguments edges, how and lasting


def prepare(edges: object, how: EdgeOptions, file: FileOptions, *, lasting: bool) -> PreparedGraph:
    """Read edges as the first of `SOURCES` that accepts them. `lasting`: whether more than one ranking may follow."""
    if isinstance(edges, os.PathLike):
        edges = text_of(edges)
    given = file.given()
    with advising(library_of(edges)):
        for source in SOURCES:
            if source.accepts(edges):
                if given and source.read != read_file:
                    what = SAVED if source.read == load_saved else full_name(edges)
                    refuse(given, f"says how to read a file of edges, not {what}")
                if source.read is not _read_on_cluster:
                    refuse({"workers": how.workers}, "selects workers of a Dask cluster, and the edges are on none")
                return source.read(edges, how, lasting=lasting, **given)
        raise unsupported(edges)


def reading_for(edges: object, method: str) -> AbstractContextManager[None]:
    """Return a context manager in which paths, and lazy frames, are read in the memory space of a method, by name."""
    if not (isinstance(edges, (str, os.PathLike, list, tuple)) or is_a(edges, "polars", "LazyFrame")):
        return nullcontext()
    if method not in methods():  # "auto", or an error that is raised later
        return reading_to(None)
    return reading_to("device" if methods().runs_on(method) == "gpu" else "host")


def _of_frames(adapter: FrameAdapter) -> Source:
    return Source(adapter.accepts, partial(LocalGraph.read, adapter=adapter))


def _of_graphs(library: str, name: str, weights: tuple[Hashable, ...]) -> Source:
    return Source(partial(is_a, module=library, name=name), partial(_read_nodes, f"read_{library}", weights))


def _read_on_cluster(edges: Frame, how: EdgeOptions, *, lasting: bool) -> DistributedGraph:
    if how.bipartite:
        raise MethodUnavailableError(
            "bipartite= is not supported on the workers of a Dask cluster: pass edges.compute(), or close the client."
        )
    if how.by is not None:
        from prplugin.distributed.group_graph import GroupedGraph  # imports distributed, as the client did

        return GroupedGraph(dask.client(), edges, how, _read_parts, lasting=lasting)
    from prplugin.distributed.run import DistributedGraph

    return DistributedGraph(dask.client(), edges, how, _read_parts, lasting=lasting)


def _read_parts(frames: list[Frame], how: EdgeOptions, *, lasting: bool = True) -> LocalGraph:
    """Read frames on a worker of a cluster."""
    return LocalGraph.read(frames, replace(how, workers=None), FRAMES, lasting=lasting)


def load_saved(path: str | os.PathLike[str], how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    """Load a saved graph; raise for options, of which it takes none."""
    refuse_all_but((), SAVED, how)
    from prplugin import saving  # lazy import: few calls need it

    return saving.load(path)


def _is_path(edges: object) -> bool:
    """Return whether edges are a path, or several."""
    paths = edges if isinstance(edges, (list, tuple)) else [edges]
    return bool(paths) and all(isinstance(path, (str, os.PathLike)) for path in paths)


def text_of(path: str | os.PathLike[str]) -> str:
    """Return a path as text."""
    from prplugin.io.formats import path_of  # lazy imports of what few calls need, as below

    return path_of(path)


def _read_nodes(
    reader: str, weights: tuple[Hashable, ...], graph: object, how: EdgeOptions, *, lasting: bool
) -> LocalGraph:
    """Read a graph of another library. `weights`: the default of `weight`; empty if the graph has its own weights."""
    refuse_all_but(("weight",) if weights else (), full_name(graph), how)
    return of_nodes(reader, graph, *(weights if how.weight is None else (how.weight,)))


def of_nodes(reader: str, graph: object, *arguments: object) -> LocalGraph:
    """Read a graph of another library by the function of `prplugin.frames.nodes` with this name."""
    from prplugin.frames import nodes

    began = time.perf_counter()
    found: nodes.NodeGraph = getattr(nodes, reader)(graph, *arguments)
    schema = EdgeOptions(weight="weight" if found.adjacency.weighted else None, directed=found.directed)
    return LocalGraph(GraphState(found.adjacency, found.vertices, schema), found.label, began=began)


def _read_matrix(matrix: object, how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    refuse_all_but(("bipartite", "directed") if how.bipartite else (), full_name(matrix), how)
    return LocalGraph.from_csr(matrix, None, None, None, how)


def read_file(path: Paths, how: EdgeOptions, *, lasting: bool, **options: Any) -> LocalGraph:
    """Read edges from files; `options` are further arguments of `prplugin.io.read_edges`."""
    source, destination, by = (
        labels if labels is None or isinstance(labels, list) else [labels]
        for labels in (how.source, how.destination, how.by)
    )
    from prplugin.io import read_edges

    file = read_edges(path, source, destination, how.weight, missing=how.missing, by=by, time=how.time, **options)
    return of_file(file, path, how, lasting=lasting)


def of_file(file: EdgeFile | AdjacencyFile, path: Paths, how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    """Return the graph of files that have been read; of `how`, the columns are those of the files."""
    from prplugin.io import EdgeFile

    columns = file.columns
    if how.time is not None and not (isinstance(file, EdgeFile) and file.vertices is None):
        raise InvalidOptionError(f"time= supports frames and files of rows, and {path} is a whole graph.")
    if how.vertices is not None and not (isinstance(file, EdgeFile) and file.vertices is None):
        raise InvalidOptionError(f"{path} names all vertices itself: omit vertices=.")
    by = columns.source_names[: columns.by] or None
    how = replace(how, **columns.id_names, by=by, weight=columns.weight_name, time=columns.time_name)
    facts: Any = {"unused_weight": columns.unused_weight, "lasting": lasting}
    if isinstance(file, EdgeFile):
        vertices = file.vertices if how.vertices is None else how.vertices
        bipartite = file.bipartite or how.bipartite
        how = replace(how, directed=file.directed and how.directed, bipartite=bipartite, vertices=vertices)
        with nullcontext() if file.kept is None else rows_of_frame(file.kept):
            return LocalGraph.read(file.frame, how, adapter_for(file.frame), **facts)
    if how.bipartite:
        raise InvalidOptionError(f"bipartite=True supports frames and files of rows, and {path} is a whole graph.")
    began = time.perf_counter()
    adjacency = file.graph(directed=how.directed, duplicates=how.duplicates)
    how = how if adjacency.weighted else replace(how, weight=None)
    return LocalGraph(GraphState(adjacency, file.vertices, how), "column 'weight'", began=began, **facts)


def _read_frames(edges: Iterator[object], how: EdgeOptions, *, lasting: bool) -> LocalGraph:
    """Read frames that can be iterated only once."""
    frames = list(edges)
    if not FRAMES.accepts(frames):
        raise unsupported(edges)
    return LocalGraph.read(frames, how, FRAMES, lasting=lasting)


SOURCES = (
    *map(_of_frames, FIRST_ADAPTERS),
    Source(lambda edges: dask.accepts(edges) and dask.client() is not None, _read_on_cluster),
    Source(is_saved, load_saved),
    Source(_is_path, read_file),
    _of_graphs("networkx", "Graph", ("weight",)),
    _of_graphs("igraph", "Graph", ("weight",)),
    _of_graphs("rustworkx", "PyDiGraph", (None,)),
    _of_graphs("rustworkx", "PyGraph", (None,)),
    _of_graphs("networkit", "Graph", ()),
    Source(is_sparse, _read_matrix),
    *map(_of_frames, LAST_ADAPTERS),
    Source(lambda edges: isinstance(edges, Iterator) and not hasattr(edges, "read"), _read_frames),  # no open file
)
"""All kinds of input, in the order in which they are asked whether they accept edges."""
