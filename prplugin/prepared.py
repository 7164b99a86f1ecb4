"""Read the input of `Graph` and `pagerank` into a graph in this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from prplugin.errors import InvalidOptionError, counted
from prplugin.frames import dask, matrices
from prplugin.frames.base import full_name, is_a
from prplugin.frames.nodes import read_igraph, read_networkx
from prplugin.local import LocalGraph
from prplugin.options import EdgeOptions
from prplugin.tables import Display

if TYPE_CHECKING:
    from prplugin.distributed.run import DistributedGraph

PreparedGraph: TypeAlias = "LocalGraph | DistributedGraph"
"""Implementation of `prplugin.Graph`."""


def prepare(edges: Any, how: EdgeOptions, *, lasting: bool) -> PreparedGraph:
    """Read a frame, a path, a graph of NetworkX or igraph, or a sparse matrix.

    A Dask frame is read on the workers if a client is active, all other input in this process.
    `lasting`: Whether more than one ranking may follow.
    """
    if dask.accepts(edges) and (client := dask.client()) is not None:
        from prplugin.distributed.run import DistributedGraph  # imports distributed, as the client did

        return DistributedGraph(client, edges, how, lasting=lasting)
    if isinstance(edges, (str, os.PathLike)):
        from prplugin.io.formats import is_text

        if is_text(os.fspath(edges)):
            return read_file(edges, how, lasting=lasting)
    readers: dict[str, Any] = {"networkx": read_networkx, "igraph": read_igraph}
    for library, read in readers.items():
        if is_a(edges, library, "Graph"):
            _refuse_all_but(("weight",), edges, how)
            return LocalGraph.from_nodes(read, edges, "weight" if how.weight is None else how.weight)
    if matrices.is_sparse(edges):
        _refuse_all_but((), edges, how)
        return LocalGraph.from_csr(edges, None, None)
    return LocalGraph.read(edges, how, lasting=lasting)


def display(graph: PreparedGraph) -> Display:
    """Return the representation of a `prplugin.Graph`."""
    title = f"Graph of {counted(graph.n, 'vertex', 'vertices')} and {counted(graph.m, 'directed edge')}"
    return Display(title, [], [list(fact) for fact in graph.facts().items()], left=[0, 1])


def read_file(path: str | os.PathLike[str], how: EdgeOptions, *, lasting: bool, **text: Any) -> LocalGraph:
    """Read edges from a file; `text` holds the arguments of `prplugin.io.read_edges` about text formats."""
    from prplugin.io import read_edges  # imports pyarrow

    source, destination = (
        labels if labels is None or isinstance(labels, list) else [labels] for labels in (how.source, how.destination)
    )
    if how.time is not None:
        raise InvalidOptionError(
            f"time= supports frames and Parquet files only: read {os.fspath(path)} into a frame first."
        )
    file = read_edges(os.fspath(path), source, destination, how.weight, **text)
    arguments = file.graph_arguments()
    if how.vertices is not None:
        if arguments["vertices"] is not None:
            raise InvalidOptionError(f"{os.fspath(path)} names all vertices itself: omit vertices=.")
        arguments["vertices"] = how.vertices
    arguments["directed"] &= how.directed
    options = EdgeOptions(**arguments, duplicates=how.duplicates)
    return LocalGraph.read(file.frame, options, lasting=lasting, unused_weight=file.columns.unused_weight)


def _refuse_all_but(allowed: tuple[str, ...], graph: Any, how: EdgeOptions) -> None:
    """Raise if options other than `allowed` are given for a graph or a matrix; they apply to frames only."""
    for argument in fields(EdgeOptions):
        given = getattr(how, argument.name)
        default = given is argument.default or (isinstance(given, str) and given == argument.default)
        if argument.name not in allowed and not default:
            raise InvalidOptionError(f"{argument.name}= applies to frames only, not to {full_name(graph)}: omit it.")
