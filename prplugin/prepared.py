"""Implementations behind `Graph`: a graph in this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import fields
from typing import Any, Protocol

from prplugin.errors import InvalidOptionError
from prplugin.frames import dask, matrices
from prplugin.frames.base import full_name, is_a
from prplugin.local import LocalGraph
from prplugin.methods.estimates import Estimate
from prplugin.options import EdgeOptions, GivenByVertex, Options
from prplugin.progress import Watch
from prplugin.result.ranking import Ranking
from prplugin.types.compressed import Compressed

__all__ = ["PreparedGraph", "prepare", "read_file"]


class PreparedGraph(Protocol):
    """Implementation of `prplugin.Graph`: `LocalGraph`, or `DistributedGraph` on the workers of a cluster."""

    @property
    def n(self) -> int:
        """Number of vertices."""

    @property
    def m(self) -> int:
        """Number of directed edges."""

    def vertices(self) -> Any:
        """Return the ids in the order of the ranks."""

    def csr(self) -> Compressed:
        """Return the out-edges by source."""

    def csc(self) -> Compressed:
        """Return the in-edges by target."""

    def estimate(self) -> Estimate:
        """Estimate memory and time of a ranking by each method."""

    def facts(self) -> dict[str, str]:
        """Return properties for the representation of `Graph`, in addition to the counts."""

    def update(self, add: Any, remove: Any) -> None:
        """Remove and add edges; on any error, change nothing."""

    def rank(self, options: Options, given: GivenByVertex, watch: Watch) -> Ranking:
        """Compute the ranks of the vertices."""


def prepare(edges: Any, how: EdgeOptions, *, lasting: bool) -> PreparedGraph:
    """Read edges: a Dask frame on the workers if a client is active, others in this process.

    Accepted are frames, paths, graphs of NetworkX and igraph, and sparse matrices.

    Parameters
    ----------
    lasting : bool
        Whether more than one ranking may follow.
    """
    if dask.accepts(edges) and (client := dask.client()) is not None:
        from prplugin.distributed.run import DistributedGraph  # imports distributed, which has a client

        return DistributedGraph(client, edges, how, lasting=lasting)
    if isinstance(edges, (str, os.PathLike)):
        from prplugin.io.formats import is_text

        if is_text(os.fspath(edges)):
            return read_file(edges, how, lasting=lasting)
    if is_a(edges, "networkx", "Graph"):
        _refuse_all_but(("weight",), edges, how)
        return LocalGraph.from_networkx(edges, "weight" if how.weight is None else how.weight)
    if is_a(edges, "igraph", "Graph"):
        _refuse_all_but(("weight",), edges, how)
        weights: Any = "weight" if how.weight is None else how.weight
        return LocalGraph.from_igraph(edges, weights)
    if matrices.is_sparse(edges):
        _refuse_all_but((), edges, how)
        return LocalGraph.from_csr(edges, None, None)
    return LocalGraph.read(edges, how, lasting=lasting)


def read_file(path: str | os.PathLike[str], how: EdgeOptions, *, lasting: bool, **text: Any) -> LocalGraph:
    """Read edges from a file; `text` holds the arguments of `prplugin.io.read_edges` about text formats."""
    from prplugin.io import read_edges  # imports pyarrow

    source, destination = (_as_list(end) for end in (how.source, how.destination))
    if how.time is not None:
        raise InvalidOptionError(
            f"time= supports frames and Parquet files only: read {os.fspath(path)} into a frame first."
        )
    file = read_edges(os.fspath(path), source, destination, how.weight, **text)
    arguments = file.graph_arguments()
    if how.vertices is not None:
        if arguments["vertices"] is not None:
            raise InvalidOptionError(f"{os.fspath(path)} names all vertices itself: leave out vertices=.")
        arguments["vertices"] = how.vertices
    arguments["directed"] &= how.directed
    options = EdgeOptions(**arguments, duplicates=how.duplicates)
    return LocalGraph.read(file.frame, options, lasting=lasting, unused_weight=file.unused_weight)


def _as_list(end: Hashable | list[Hashable]) -> list[Hashable] | None:
    return end if end is None or isinstance(end, list) else [end]


def _refuse_all_but(allowed: tuple[str, ...], graph: Any, how: EdgeOptions) -> None:
    """Raise if options other than `allowed`, which apply to frames, are given for a graph or a matrix."""
    for argument in fields(EdgeOptions):
        given = getattr(how, argument.name)
        default = given is argument.default or (isinstance(given, str) and given == argument.default)
        if argument.name not in allowed and not default:
            raise InvalidOptionError(
                f"{argument.name}= is for the edges of a frame: {full_name(graph)} has edges of its own. Leave it out."
            )
