"""Comparison of personalized queries on prepared graphs, as in retrieval over knowledge graphs.

The graphs are undirected and random, with skewed sources and weights between 0.1 and 1.1. Parallel edges add up; no
vertex is isolated, and there are no self-loops, which igraph counts twice in an undirected graph. alpha is 0.5, and the
reset distribution covers half of the vertices, given as an array by position. Graphs and matrices are built beforehand.
prplugin proves an L1 error of 1e-6, including rounding, and its ranks are read from `ranking.ranks`. igraph is
`personalized_pagerank` with PRPACK, which has no tolerance; OMP_WAIT_POLICY is "passive" unless it is set. NetworkX
reads its graph anew in every call and is measured on the smallest graph alone. SciPy is a loop on the normalized
matrix, stopped once alpha / (1 - alpha) times the L1 change of a step is at most 1e-6. On the GPU, cuGraph ranks a
`MultiGraph` of both directions, stored transposed, with ``tol=1e-6``. "prplugin, one by one" answers many queries in as
many calls, and prplugin all of them in one call with ``seeds=``. "ratio" is the time of the library divided by that of
prplugin; "minimum" is the smallest sample, and "minimum ratio" the ratio of both. All results are compared before any
is timed; "L1 distance" is the largest L1 distance of the library's ranks to those of prplugin.

Queries from one vertex are on directed graphs of hosts of 200 vertices, without weights and at alpha 0.85; a part of
the links leaves the host. On real graphs they are from 25 sources of edges, drawn once. "prplugin, all edges" is
``method="native"`` with the same arguments.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.iterations import cugraph_graph
from benchmarks.measure import Timed, alternately
from benchmarks.run import Part
from prplugin.gpu import runtime
from prplugin.types.arrays import MemorySpace, synchronize, to_host, to_memory

KEYS = ("vertices", "edges", "processor", "queries", "library")

COLUMNS = (
    "vertices", "edges", "processor", "queries", "library", "library ms", "prplugin ms", "ratio", "library minimum ms",
    "prplugin minimum ms", "minimum ratio", "method", "iterations", "L1 distance", "note",
)  # fmt: skip

PACKAGES = ("igraph",)

SIZES = (2_000, 10_000), (10_354, 146_239), (100_000, 1_000_000)

HOSTS = (100_000, 500_000, 0.1), (100_000, 500_000, 1.0), (2_000_000, 10_000_000, 0.1), (2_000_000, 10_000_000, 1.0)
"""Vertices, edges and the fraction of links that leave their host of `HOST` vertices."""

HOST, FEW_ALPHA = 200, 0.85

REAL = "cnr-2000", "soc-Epinions1"
"""A crawl, and a social network without locality."""

QUESTIONS: dict[str, dict[str, Any]] = {
    "alpha 0.85": {"alpha": FEW_ALPHA},
    "alpha 0.5": {"alpha": 0.5},
    "tol=1e-3": {"tol": 1e-3},
    "top=10, certified": {"top": 10, "certified": True},
}

DRAWN = 25

MOST_IN_IGRAPH = 1_000_000
"""Largest number of edges of a graph that is built in igraph, from Python objects."""

QUERIES, QUICK_QUERIES = 1_000, 50

ALPHA, TOL = 0.5, 1e-6

MAX_DISTANCE = 1e-5

PROCESSORS: dict[MemorySpace, str] = {"host": "CPU", "device": "GPU"}


class Library(NamedTuple):
    """One query on a prepared graph, and a function from its result to the ranks by vertex, on the host."""

    query: Callable[[], Any]
    ranks: Callable[[Any], np.ndarray] = np.asarray


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per processor and graph for single queries, and one per processor for many queries."""
    sizes = SIZES[:1] if quick else SIZES
    many = (*SIZES[0], QUICK_QUERIES) if quick else (*SIZES[1], QUERIES)
    found = []
    for space, processor in PROCESSORS.items():
        if space == "device" and runtime.unavailable_reason():
            continue
        for n, m in sizes:
            runs = 5 if quick else min(60, max(5, 3_000_000 // m))
            found.append(Part(f"{n:,} vertices, {processor}", partial(_single, n, m, space, runs)))
        for n, m, leaving in HOSTS[:1] if quick else HOSTS:
            if space == "host":
                found.append(
                    Part(f"one seed of {n:,}, {leaving:.0%} leave", partial(_few, n, m, leaving, 3 if quick else 9))
                )
        if data is not None and space == "host" and not quick:
            files = [data / "graphs" / f"{name}.parquet" for name in REAL]
            found += [Part(f"one vertex of {file.stem}", partial(_questions, file)) for file in files]
        found.append(Part(f"{many[2]:,} queries, {processor}", partial(_many, *many, space, 1 if quick else 3)))
    return found


def _single(n: int, m: int, space: MemorySpace, runs: int) -> Iterator[dict[str, Any]]:
    """Yield the times of one query of each library, alternating with prplugin."""
    edges, [reset] = _edges(n, m), _resets(n, 1)
    graph, query = _graph(edges, space), to_memory(reset, space)
    libraries = {"prplugin": Library(lambda: _ranked(graph, personalization=query), to_host)}
    known = {"vertices": n, "edges": m, "processor": PROCESSORS[space], "queries": 1}
    for name, prepare in (ON_HOST if space == "host" else ON_DEVICE).items():
        if name == "NetworkX" and (n, m) != SIZES[0]:
            continue
        try:
            libraries[name] = prepare(edges, n, reset)
        except ModuleNotFoundError as error:
            yield known | {"library": name, "note": str(error)}
    distances = check({name: library.ranks(library.query()) for name, library in libraries.items()})
    ranking = graph.rank(alpha=ALPHA, tol=TOL, personalization=query)
    how = {"method": ranking.method, "iterations": ranking.iterations}
    own, *others = alternately(*(library.query for library in libraries.values()), runs=runs)
    for name, other in zip(list(libraries)[1:], others, strict=True):
        yield _row({**known, **how, "library": name, "L1 distance": distances[name]}, other, own)


def _few(n: int, m: int, leaving: float, runs: int) -> Iterator[dict[str, Any]]:
    """Yield the times of queries from one vertex each, in turn from `runs` vertices, on a graph of hosts."""
    import prplugin

    random = np.random.default_rng(0)
    source = np.concatenate([np.arange(n), random.integers(0, n, m - n)])  # no vertex is dangling
    random.shuffle(source)
    leaves = random.random(m) < leaving
    target = np.where(leaves, random.integers(0, n, m), source // HOST * HOST + random.integers(0, HOST, m)) % n
    edges = pd.DataFrame({"src": source, "dst": target})
    graph = prplugin.Graph(edges, vertices=range(n))
    seeds = itertools.cycle(source[:runs].tolist())
    given = {"alpha": FEW_ALPHA, "tol": TOL}
    libraries = {
        "prplugin": lambda seed: graph.rank(personalization=[seed], **given).ranks,
        "prplugin, all edges": lambda seed: graph.rank(personalization=[seed], method="native", **given).ranks,
        "SciPy": _scipy_from_one(edges, n),
    }
    if m <= MOST_IN_IGRAPH:
        try:
            libraries["igraph"] = _igraph_from_one(edges, n)
        except ModuleNotFoundError as error:
            yield {"library": "igraph", "note": str(error)}
    first = int(source[0])
    distances = check({name: np.asarray(query(first)) for name, query in libraries.items()})
    ranking = graph.rank(personalization=[first], **given)
    known = {
        "vertices": n, "edges": m, "processor": "CPU", "queries": f"1 vertex, {leaving:.0%} of links leave",
        "method": ranking.method, "iterations": ranking.iterations,
    }  # fmt: skip
    for name in list(libraries)[1:]:
        # Both of a pair get the same seed.
        pairs = itertools.chain.from_iterable((seed, seed) for seed in seeds)
        own, other = alternately(*(partial(_next, libraries[one], pairs) for one in ("prplugin", name)), runs=runs)
        yield _row({**known, "library": name, "L1 distance": distances[name]}, other, own)


def _questions(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the times of queries from one vertex of a real graph each, alternating with rankings of all edges."""
    import prplugin

    edges = pd.read_parquet(path, columns=["src", "dst"])
    graph = prplugin.Graph(edges)
    drawn = edges.iloc[:, 0].sample(DRAWN, random_state=0).tolist()
    for name, question in QUESTIONS.items():
        seeds = itertools.cycle(seed for seed in drawn for _ in range(2))

        def ask(method: str, seeds: Iterator[int] = seeds, question: dict[str, Any] = question) -> Any:
            return graph.rank(personalization=[next(seeds)], method=method, **question)

        graph.rank(personalization=drawn[:1], **question)
        own, other = alternately(partial(ask, "auto"), partial(ask, "native"), runs=DRAWN, warm=True)
        known = {
            "vertices": graph.number_of_vertices, "edges": graph.number_of_edges, "processor": "CPU",
            "queries": f"1 vertex of {path.stem}, {name}", "library": "prplugin, all edges",
        }  # fmt: skip
        yield _row(known, other, own)


def _next(query: Callable[[int], Any], seeds: Iterator[int]) -> Any:
    return query(next(seeds))


def _scipy_from_one(edges: pd.DataFrame, n: int) -> Callable[[int], Any]:
    import scipy.sparse

    degrees = np.bincount(edges["src"], minlength=n)
    shares = 1.0 / degrees[edges["src"]]
    matrix = scipy.sparse.csr_array((shares, (edges["dst"], edges["src"])), shape=(n, n))
    dangling = degrees == 0

    def query(seed: int) -> np.ndarray:
        x = np.zeros(n)
        x[seed] = 1
        while True:
            y = FEW_ALPHA * (matrix @ x)
            y[seed] += FEW_ALPHA * x[dangling].sum() + 1 - FEW_ALPHA
            if FEW_ALPHA / (1 - FEW_ALPHA) * np.abs(y - x).sum() <= TOL:
                return y
            x = y

    return query


def _igraph_from_one(edges: pd.DataFrame, n: int) -> Callable[[int], Any]:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import igraph

    graph = igraph.Graph(n, list(zip(edges["src"].tolist(), edges["dst"].tolist(), strict=True)), directed=True)
    return lambda seed: graph.personalized_pagerank(damping=FEW_ALPHA, reset_vertices=[seed], implementation="prpack")


def _many(n: int, m: int, count: int, space: MemorySpace, runs: int) -> Iterator[dict[str, Any]]:
    """Yield the times of many queries one by one and in one call, alternating."""
    graph, resets = _graph(_edges(n, m), space), to_memory(_resets(n, count), space)

    def one_by_one() -> list[Any]:
        return [_ranked(graph, personalization=reset) for reset in resets]

    def together() -> Any:
        return _ranked(graph, seeds=resets)

    name = "prplugin, one by one"
    distances = check({"prplugin": to_host(together()), name: np.stack([to_host(ranks) for ranks in one_by_one()])})
    ranking = graph.rank(alpha=ALPHA, tol=TOL, seeds=resets)
    steps = ranking.each_iterations
    other, own = alternately(one_by_one, together, runs=runs, warm=True)
    yield _row(
        {
            "vertices": n, "edges": m, "processor": PROCESSORS[space], "queries": count,
            "library": name, "method": ranking.method, "iterations": f"{steps.min()} to {steps.max()}",
            "L1 distance": distances[name],
        },
        other,
        own,
    )  # fmt: skip


def check(ranks: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the L1 distance of each result to the first one; if it has several rankings, the largest distance.

    Raises
    ------
    ValueError
        If any two are more than `MAX_DISTANCE` apart.
    """

    def distance(one: str, other: str) -> float:
        return float(np.abs(ranks[one] - ranks[other]).sum(axis=-1).max())

    for one, other in itertools.combinations(ranks, 2):
        if not distance(one, other) <= MAX_DISTANCE:
            raise ValueError(
                f"the ranks of {one} and {other} are {distance(one, other):.3g} apart in L1, "
                f"more than {MAX_DISTANCE:g}."
            )
    first = next(iter(ranks))
    return {name: distance(first, name) for name in ranks}


def _edges(n: int, m: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    source = (n * random.random(m) ** 2).astype(np.int64)
    target = np.concatenate([np.arange(n), random.integers(0, n, m - n)])  # no vertex is isolated
    source = np.where(source == target, (source + 1) % n, source)
    return pd.DataFrame({"src": source, "dst": target, "weight": random.random(m) + 0.1})


def _resets(n: int, count: int) -> np.ndarray:
    random = np.random.default_rng(1)
    resets = np.zeros((count, n))
    for reset in resets:
        reset[random.choice(n, n // 2, replace=False)] = 1 - random.random(n // 2)
    return resets


def _both_ways(edges: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([edges, edges.rename(columns={"src": "dst", "dst": "src"})], ignore_index=True)


def _graph(edges: pd.DataFrame, space: MemorySpace) -> Any:
    import prplugin

    if space == "device":
        import cudf

        edges = cudf.from_pandas(edges)
    return prplugin.Graph(edges, weight="weight", directed=False)


def _ranked(graph: Any, **given: Any) -> Any:
    ranks = graph.rank(alpha=ALPHA, tol=TOL, **given).ranks
    synchronize("host" if isinstance(ranks, np.ndarray) else "device")
    return ranks


def _igraph(edges: pd.DataFrame, n: int, reset: np.ndarray) -> Library:
    # Its OpenMP threads otherwise spin while they wait: on two busy cores a query then takes eight times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import igraph

    graph = igraph.Graph(n, list(zip(edges["src"].tolist(), edges["dst"].tolist(), strict=True)))
    weights = edges["weight"].tolist()
    return Library(
        lambda: graph.personalized_pagerank(damping=ALPHA, reset=reset, weights=weights, implementation="prpack")
    )


def _networkx(edges: pd.DataFrame, n: int, reset: np.ndarray) -> Library:
    import networkx as nx

    graph = nx.MultiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(edges.itertuples(index=False))
    given = dict(enumerate(reset.tolist()))
    return Library(
        # It stops below n * tol; at alpha 0.5 the error is at most the last change.
        lambda: nx.pagerank(graph, alpha=ALPHA, personalization=given, tol=TOL / n, backend="networkx"),
        lambda ranks: np.fromiter(ranks.values(), float, n),
    )


def _scipy(edges: pd.DataFrame, n: int, reset: np.ndarray) -> Library:
    import scipy.sparse

    both = _both_ways(edges)
    weights = np.bincount(both["src"], both["weight"], n)
    normalized = (both["weight"] / weights[both["src"]]).to_numpy()
    matrix = scipy.sparse.csr_array((normalized, (both["dst"], both["src"])), shape=(n, n))

    def query() -> np.ndarray:
        v = reset / reset.sum()
        x = v
        while True:
            y = ALPHA * (matrix @ x) + (1 - ALPHA) * v
            if ALPHA / (1 - ALPHA) * np.abs(y - x).sum() <= TOL:
                return y
            x = y

    return Library(query)


def _cugraph(edges: pd.DataFrame, n: int, reset: np.ndarray) -> Library:
    import cudf
    import cugraph

    both = cudf.from_pandas(_both_ways(edges)).astype({"src": "int32", "dst": "int32"})
    graph = cugraph_graph(both, weight="weight")
    vertices = np.flatnonzero(reset)
    given = cudf.DataFrame({"vertex": vertices.astype(np.int32), "values": reset[vertices]})

    def query() -> Any:
        frame = cugraph.pagerank(graph, alpha=ALPHA, personalization=given, tol=TOL, max_iter=1000)
        synchronize("device")
        return frame

    return Library(query, lambda frame: frame.sort_values("vertex")["pagerank"].to_numpy())


ON_HOST = {"igraph": _igraph, "NetworkX": _networkx, "SciPy": _scipy}
ON_DEVICE = {"cuGraph": _cugraph}


def _row(known: dict[str, Any], other: Timed, own: Timed) -> dict[str, Any]:
    least = min(other.seconds), min(own.seconds)
    return {
        **known,
        "library ms": 1e3 * other.median,
        "prplugin ms": 1e3 * own.median,
        "ratio": other.median / own.median,
        "library minimum ms": 1e3 * least[0],
        "prplugin minimum ms": 1e3 * least[1],
        "minimum ratio": least[0] / least[1],
        "samples": {"library": other.seconds, "prplugin": own.seconds},
    }
