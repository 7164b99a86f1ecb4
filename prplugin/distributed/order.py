"""Vertices to return, and the certified order of the highest ranks, over all ranks of the program.

Each rank selects candidates among its own vertices, and the ranks exchange them. All ranks then have the same
candidates, and continue as a single process does: see `prplugin.solver.top_k` and `prplugin.graph.equal_ranks`. Where
these need edges or values of a vertex, its owner sends them. All functions and methods are collective.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prplugin.cpu.sums import total
from prplugin.distributed.communicator import Communicator, all_reduce_sum
from prplugin.distributed.shard import Shard, of_ghosts
from prplugin.graph.equal_ranks import EqualRanks
from prplugin.solver.certificate import Certificate, U
from prplugin.solver.top_k import Equal, OrderProof
from prplugin.types.array_module import Scalar
from prplugin.types.arrays import Array, highest, namespace, to_host
from prplugin.types.edges import Csc, Floats, Integers


class Asked(NamedTuple):
    """The vertices that are asked for.

    `among`: Their positions in the graph, in order, the same on all ranks; None: all that are not excluded.
    `rows`: Positions of those that this rank owns, among its own vertices; None: all of them.
    `places`: Their places in `among`, or else their positions in the graph. Vertices of equal ranks are in this order.
    All that this rank owns are a range: an array of so many on the host takes longer than iterations on a GPU.
    """

    among: Integers | None
    rows: Integers | None
    places: Integers | range

    @classmethod
    def of(cls, own: range, among: Integers | None, excluded: Integers | None) -> Asked:
        """Select from `among`, or from all, all but the excluded. `own`: The positions that this rank owns."""
        if among is not None:
            among = among if excluded is None else among[~np.isin(among, excluded)]
            places = np.flatnonzero((among >= own.start) & (among < own.stop))
            return cls(among, among[places] - own.start, places)
        if excluded is None:
            return cls(None, None, own)
        places = np.arange(own.start, own.stop)
        rows = np.flatnonzero(~np.isin(places, excluded))
        return cls(None, rows, places[rows])

    def of_own(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return the values of the vertices asked for, of this rank's."""
        return values if self.rows is None else values[namespace(values).asarray(self.rows)]

    def highest(self, communicator: Communicator, ranks: Array, top: int) -> Integers:
        """Return the positions of the `top` highest ranks over all ranks of the program, in descending order."""
        own = self.of_own(ranks)
        found = to_host(highest(own, top)) if own.size else np.empty(0, np.int64)
        places, _ = self._falling(communicator, own, found)
        return places[:top] if self.among is None else self.among[places[:top]]

    def candidates(
        self, communicator: Communicator, ranks: Floats, k: int, width: float, relative: float
    ) -> tuple[Integers, Floats]:
        """Return places and values of the k + 1 highest ranks, and of those `width` or `relative` below the k-th."""
        own, most = self.of_own(ranks), np.empty(0)
        if own.size:
            most = to_host(own[highest(own, k + 1)])
        most = -np.sort(-np.concatenate(communicator.all_gather(most)))
        lowest = 0.0
        if most.size > k:
            kth = float(most[k - 1])
            lowest = min(float(most[k]), kth - min(width, relative * kth))
        return self._falling(communicator, own, to_host(namespace(own).flatnonzero(own >= lowest)))

    def _falling(self, communicator: Communicator, own: Array, found: Integers) -> tuple[Integers, Floats]:
        """Exchange some of the ranks of this rank's vertices; return places and ranks of all, in descending order."""
        own_places = self.places.start + found if isinstance(self.places, range) else self.places[found]
        sent = own_places, to_host(own[namespace(own).asarray(found)])
        places, values = map(np.concatenate, zip(*communicator.all_gather(sent), strict=True))
        falling = np.lexsort((places, -values))
        return places[falling], values[falling]


class SharedOrderProof(OrderProof):
    """An `OrderProof` that all ranks make together, with the same result."""

    def __init__(self, communicator: Communicator, asked: Asked, k: int | None, equal: Equal, tol: float) -> None:
        self._communicator, self._vertices = communicator, asked
        count = sum(communicator.all_gather(len(asked.places)))
        super().__init__(k or count or 1, equal, tol, asked.among if count else np.empty(0, np.int64))

    def _margin(self, ranks: Floats, certificate: Certificate, bound: float) -> float:
        # The sum over the ranks rounds once more per rank, each time by at most U times a sum that is below 2.
        sum_ = all_reduce_sum(self._communicator, float(total(ranks)))
        return certificate.of_vertex(bound + 2 * self._communicator.size * U, sum_)

    def _candidates(self, ranks: Floats, width: float, relative: float) -> tuple[Integers, Floats]:
        return self._vertices.candidates(self._communicator, ranks, self._k, width, relative)


class SharedEqualRanks(EqualRanks):
    """`EqualRanks` of the whole graph, by searches that all ranks make together: owners send edges and values."""

    def __init__(self, communicator: Communicator, shard: Shard, vectors: Sequence[Floats], alpha: float) -> None:
        super().__init__(shard.adjacency, lambda: vectors, shard.m, alpha=alpha)
        self._communicator, self._owners_of = communicator, shard.owners_of
        self._own = own = shard.owned_by(communicator.rank)
        positions = namespace(shard.adjacency.out_weight).arange(own.start, own.stop)
        self._positions = of_ghosts(communicator, shard.ghost_sources, positions)

    def _in_edges(self, a: int, b: int) -> list[tuple[Integers, Floats | None]] | None:
        of_ranks = self._communicator.all_gather([self._own_in_edges(vertex) for vertex in (a, b)])
        first, second = (next(row for row in rows if row is not None) for rows in zip(*of_ranks, strict=True))
        return [first, second] if first[0].size == second[0].size else None

    def _own_in_edges(self, vertex: int) -> tuple[Integers, Floats | None] | None:
        if vertex not in self._own:
            return None
        offsets, sources, weights = self._adjacency.get(Csc)
        row = vertex - self._own.start
        run = slice(*to_host(offsets[row : row + 2]).tolist())
        return to_host(self._positions[sources[run]]), None if weights is None else to_host(weights[run])

    def _at(self, array: Array | Mapping[int, float], rows: list[int]) -> list[float]:
        assert not isinstance(array, Mapping)
        wanted = np.array(rows, np.int64)
        owner = self._owners_of(wanted)
        own = namespace(array).asarray(wanted[owner == self._communicator.rank] - self._own.start)
        values = np.empty(wanted.size)
        for rank, sent in enumerate(self._communicator.all_gather(to_host(array[own]))):
            values[owner == rank] = sent
        found: list[float] = values.tolist()
        return found
