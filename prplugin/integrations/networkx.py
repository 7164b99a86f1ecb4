"""NetworkX backend: ``nx.pagerank(G, backend="prplugin")``.

Reading a graph from NetworkX's dicts takes far longer than ranking it. NetworkX caches the result of `convert_from_nx`
in ``G.__networkx_cache__`` until G changes, and `ConvertedGraph` caches a `prplugin.Graph` per weight attribute. Views
are not cached.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import networkx as nx
import numpy as np

from prplugin.api import Graph
from prplugin.errors import InvalidEdgesError, InvalidOptionError, NotConvergedError
from prplugin.frames.nodes import compressed, empty
from prplugin.gpu import runtime
from prplugin.types.edges import Floats, Integers

ON_GPU_FROM = 1 << 16
"""Number of edges from which the GPU is used, if CuPy is loaded: benchmarks/results/networkx-h200.md."""


RANK_ARGUMENTS = inspect.signature(Graph.rank).parameters


@dataclass(eq=False, repr=False)
class ConvertedGraph:
    """A NetworkX graph as CSR arrays.

    `offsets`, `indices`: CSR by source: the neighbours of node i are ``indices[offsets[i]:offsets[i + 1]]``.
    An undirected graph has each edge in both directions, except that a self-loop occurs once.
    `weights`: Maps each requested attribute to its values per edge: an array of float64, a list if some are not
    numbers, or None if all are the default 1.
    """

    __networkx_backend__: ClassVar = "prplugin"

    nodes: list[Hashable]
    offsets: Integers
    indices: Integers
    weights: Mapping[Hashable, Floats | list[object] | None]
    directed: bool
    multigraph: bool
    _graphs: dict[Hashable, Graph] = field(default_factory=dict)

    def is_directed(self) -> bool:
        """Return whether the graph is directed."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Return whether several edges may join two nodes."""
        return self.multigraph

    def graph(self, weight: Hashable) -> Graph:
        """Return the graph weighted by an attribute, or unweighted for None; built at the first call."""
        if weight not in self._graphs:
            weights = None if weight is None else self.weights[weight]
            if weights is not None:
                weights = np.asarray(weights, dtype=float)  # raises the error of NetworkX for non-numbers
            arrays = [self.offsets, self.indices, weights]
            if _use_gpu(self.indices.size):
                import cupy

                arrays = [None if array is None else cupy.asarray(array) for array in arrays]
            try:
                self._graphs[weight] = Graph.from_csr(*arrays)
            except InvalidEdgesError as error:
                raise NotImplementedError(f"attribute {weight!r} of the edges: {error}") from error
        return self._graphs[weight]

    def values_of_nodes(self, what: str, given: Mapping[Hashable, object]) -> Floats:
        """Return a value per node, 0 by default. Keys that are not nodes are ignored, as in NetworkX."""
        values = np.array([given.get(node, 0) for node in self.nodes], dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            total = values.sum()
        if total != 0 and not ((values >= 0).all() and total < np.inf):
            raise NotImplementedError(f"{what} has values that prplugin refuses: negative, NaN, or of infinite sum.")
        return values


def pagerank(
    G: object,  # noqa: N803  # NetworkX's name
    alpha: float = 0.85,
    personalization: Mapping[Hashable, object] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Mapping[Hashable, object] | None = None,
    weight: Hashable = "weight",
    dangling: Mapping[Hashable, object] | None = None,
    *,
    method: str = "auto",
    **method_options: object,
) -> dict[Hashable, float]:
    """Rank as `networkx.pagerank` does: the same iterations, stopping rule and exceptions.

    Parameters
    ----------
    G : ConvertedGraph or networkx.Graph
    alpha, personalization, max_iter, tol, nstart, weight, dangling
        As for `networkx.pagerank`.
    method, **method_options
        As for `prplugin.pagerank`.

    Raises
    ------
    networkx.PowerIterationFailedConvergence
        If no step of `max_iter` changes the ranks by less than n * `tol` in L1, or if `nstart` or `dangling` sums to 0
        over the nodes, for which NetworkX computes NaN until `max_iter`.
    ZeroDivisionError
        If `personalization` sums to 0 over the nodes.
    NotImplementedError
        For input that NetworkX accepts and prplugin refuses, such as ``alpha=1`` and negative weights.
    InvalidOptionError
        For an argument of `Graph.rank` that NetworkX does not have, such as `top`.
    """
    if others := [name for name in method_options if name in RANK_ARGUMENTS]:
        raise InvalidOptionError(
            f"networkx.pagerank has no argument {others[0]!r}: leave it out, or pass it to "
            "prplugin.Graph.from_networkx(G).rank()."
        )
    if not isinstance(alpha, Real) or not 0 <= float(alpha) < 1:
        raise NotImplementedError(f"alpha must be at least 0 and less than 1, not {alpha!r}.")
    if callable(weight):
        raise NotImplementedError("weight must be the name of an attribute, not a function.")
    if isinstance(G, nx.Graph):
        G = convert_from_nx(G, edge_attrs=None if weight is None else {weight: 1})  # noqa: N806
    n = len(G.nodes)
    if n == 0:
        return {}
    graph = G.graph(weight)
    given = {"nstart": nstart, "personalization": personalization, "dangling": dangling}
    vectors = {what: None if values is None else G.values_of_nodes(what, values) for what, values in given.items()}
    zero = {what for what, vector in vectors.items() if vector is not None and vector.sum() == 0}
    if "personalization" in zero:
        raise ZeroDivisionError
    steps = len(range(max_iter))
    if zero or not tol > 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    try:
        ranking = graph.rank(
            alpha=alpha,
            tol=min(tol, 3 / n),  # the L1 change of a step is at most 2, so the first one meets any larger `tol`
            max_iter=steps,
            stop="networkx",
            method=method,
            **vectors,
            **method_options,
        )
    except NotConvergedError as error:
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    return dict(zip(G.nodes, ranking.ranks.tolist(), strict=True))


def can_run(name: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool | str:
    """Return True if `pagerank` supports these arguments, else the reason why NetworkX must not dispatch to it."""
    # NetworkX does not show a reason that is returned here. Unsupported arguments of `pagerank` therefore raise there.
    return True if name == "pagerank" else f"prplugin has no {name}"


def convert_from_nx(
    graph: nx.Graph,
    *,
    edge_attrs: Mapping[Hashable, object] | None = None,
    node_attrs: Mapping[Hashable, object] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> ConvertedGraph:
    """Convert a graph of NetworkX.

    `edge_attrs`: Maps each edge attribute to read to its default value.
    `node_attrs`, `preserve_edge_attrs`, `preserve_node_attrs`, `preserve_graph_attrs`, `name`, `graph_name`: Part of
    the dispatch interface. PageRank needs no other attributes.
    """
    if preserve_edge_attrs or preserve_node_attrs or node_attrs:
        raise NotImplementedError("prplugin keeps the nodes, the edges and their weights, and no other attributes.")
    nodes, offsets, indices, edges = compressed(graph)
    weights = {name: _values(edges, name, default) for name, default in (edge_attrs or {}).items()}
    return ConvertedGraph(nodes, offsets, indices, weights, graph.is_directed(), graph.is_multigraph())


def convert_to_nx(obj: object, *, name: str | None = None) -> Any:
    """Convert back to a NetworkX graph with the edge attributes that were read; return other objects unchanged."""
    if not isinstance(obj, ConvertedGraph):
        return obj
    graph = empty(obj)
    graph.add_nodes_from(obj.nodes)
    sources = np.repeat(np.arange(len(obj.nodes)), np.diff(obj.offsets))
    once = np.flatnonzero(sources <= obj.indices) if not obj.is_directed() else np.arange(sources.size)
    columns = {name: values for name, values in obj.weights.items() if values is not None}
    for edge in once.tolist():
        attributes = {name: values[edge] for name, values in columns.items()}
        graph.add_edges_from([(obj.nodes[sources[edge]], obj.nodes[obj.indices[edge]], attributes)])
    return graph


def _values(edges: Callable[[], Iterable[Any]], name: Hashable, default: object) -> Any:
    """Return the values of an edge attribute: float64, a list if some are not numbers, or None if all are 1."""
    if default == 1 and not any(edges()):
        return None
    values = [attributes.get(name, default) for attributes in edges()]
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        return values  # as in NetworkX, each ranking raises the error, not the cached conversion


def _use_gpu(m: int) -> bool:
    """Return whether to use the GPU: the graph is large enough, CuPy is loaded, and there is a GPU."""
    return m >= ON_GPU_FROM and "cupy" in sys.modules and runtime.unavailable_reason() is None
