"""What `Graph` is made of, and where a frame of edges is read: in this process, or on the workers of a cluster."""

from __future__ import annotations

from typing import Any, Protocol

from prplugin.frames import dask
from prplugin.local import LocalGraph
from prplugin.methods.estimates import Estimate
from prplugin.options import EdgeOptions, GivenByVertex, Options
from prplugin.progress import Watch
from prplugin.result.ranking import Ranking
from prplugin.types.compressed import Compressed

__all__ = ["PreparedGraph", "prepare"]


class PreparedGraph(Protocol):
    """What `Graph` is made of: a graph in this process (`LocalGraph`), or on the workers of a cluster."""

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
        """Estimate bytes and seconds of each method."""

    def facts(self) -> dict[str, str]:
        """Return what `Graph` shows of itself, besides the counts."""

    def rank(self, options: Options, given: GivenByVertex, watch: Watch) -> Ranking:
        """Rank the vertices."""


def prepare(edges: Any, how: EdgeOptions, *, lasting: bool) -> PreparedGraph:
    """Read edges where they are: on the workers of a cluster that is in use, else into this process."""
    if dask.accepts(edges) and (client := dask.client()) is not None:
        from prplugin.distributed.run import DistributedGraph  # imports distributed, which has a client

        return DistributedGraph(client, edges, how, lasting=lasting)
    return LocalGraph.read(edges, how, lasting=lasting)
