"""Ordinary uses on one GPU, compared with cuGraph.

Each row is one use: a frame of edges, or a graph prepared from it, and one call. Calls of both libraries alternate,
after a warm-up, and allocate from the same RMM pool. cuGraph runs with ``tol=1e-6`` on a `MultiGraph`, which counts
every row as prplugin does; prplugin's `tol` is halved until its error is no larger than cuGraph's. Errors are L1
distances to a power iteration in float64 by cuSPARSE. Where both compute in float64, the row says so. "frame" is a
complete call from edges to a frame of ranks. "prepared" is the ranking and its frame on a graph that exists. "update"
adds or removes a thousandth of the edges and ranks the changed graph, where cuGraph builds it anew. With many seeds,
cuGraph is called once per seed, and errors are those of the first seed. Where it does not converge, its time is that of
as many iterations as the note says. "ratio" is cuGraph's time divided by prplugin's.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.against_cugraph import CUGRAPH_MAX_ITER, CUGRAPH_TOL, RUNS, SLOW, SLOW_RUNS
from benchmarks.generate import cube, local_web, purchases, rmat, uniform, weighted
from benchmarks.measure import alternately, take_memory_from_a_pool, timed
from benchmarks.reference import reference
from benchmarks.run import Part
from prplugin.errors import PageRankError

COLUMNS = (
    "graph", "use", "edges", "cuGraph ms", "prplugin ms", "ratio", "method", "iterations", "cuGraph error",
    "prplugin error", "error bound", "note",
)  # fmt: skip

KEYS = ("graph", "use")

PAIR = 3
"""Least component of vertices of two columns: an id is (id % PAIR, id)."""

SPREAD = 1_000_003
"""Factor by which dense ids become scattered int64 ids."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """One call on a graph.

    Attributes
    ----------
    start : {"frame", "prepared", "update"}
    ids : {"int32", "int64", "scattered", "str", "pair"}
        scattered: over a range of a million times their number; pair: two columns of int32.
    weight : str, optional
        Type of the weights.
    teleport : int
        Number of vertices of the personalization; 0: uniform.
    seeds : int
        Number of rankings from one seed each in one call.
    top : int, optional
        Number of ranks returned.
    """

    start: Literal["frame", "prepared", "update"] = "frame"
    ids: Literal["int32", "int64", "scattered", "str", "pair"] = "int32"
    weight: Literal["float32", "float64", "int32"] | None = None
    directed: bool = True
    alpha: float = 0.85
    teleport: int = 0
    seeds: int = 0
    top: int | None = None
    certified: bool = False

    @property
    def label(self) -> str:
        """The use as text."""
        words = (
            (self.start, True),
            (f"{self.ids} ids", self.ids != "int32"),
            (f"{self.weight} weights", self.weight),
            ("undirected", not self.directed),
            (f"alpha {self.alpha}", self.alpha != 0.85),
            (f"teleport to {self.teleport}", self.teleport),
            (f"{self.seeds} seeds", self.seeds),
            (f"top {self.top}", self.top),
            ("certified", self.certified),
            ("float64", self.dtype == "float64"),
        )
        return ", ".join(word for word, applies in words if applies)

    @property
    def dtype(self) -> str:
        """Type in which both libraries compute."""
        return "float64" if self.weight == "float64" else "float32"


FRAME, PREPARED = Use(), Use(start="prepared")
BOTH = FRAME, PREPARED
UNDIRECTED = Use(directed=False)
ONE_SEED, MANY_TELEPORTS = Use(start="prepared", teleport=1), Use(start="prepared", teleport=1000)


def graphs(data: Path | None, quick: bool) -> Iterator[tuple[str, Callable[[], Any], tuple[Use, ...]]]:
    """Yield name, constructor of the cuDF frame of dense int32 ids, and uses of each graph."""
    for n, m in ((20, 100), (2000, 10_000), (20_000, 100_000), (200_000, 1_000_000), (800_000, 4_000_000)):
        yield f"uniform {n:,} x {m:,}", partial(uniform, n, m, memory_space="device"), BOTH
        if quick:
            return
    if data is not None:
        for name in ("soc-Epinions1", "cnr-2000"):
            yield name, partial(_real, data, name), (*BOTH, Use(alpha=0.99))
    yield "path of 4M", partial(_line, 4_200_000), (FRAME, UNDIRECTED)
    yield "star out of a hub", partial(_star, 4_200_000), (FRAME,)  # undirected: cuGraph takes 12 s to not converge
    yield "grid 160 x 160 x 160", partial(cube, 160, memory_space="device"), (UNDIRECTED,)
    yield "communities of 50", partial(_communities, 400_000, 20_000_000), (FRAME, Use(alpha=0.99))
    yield "repeated edges, 10,000 vertices", partial(uniform, 10_000, 50_000_000, memory_space="device"), BOTH
    yield "dense, 1,000 vertices", partial(uniform, 1000, 500_000, memory_space="device"), BOTH
    yield (
        "purchases 5M x 200k, 40M",
        partial(purchases, 5_000_000, 200_000, 40_000_000, memory_space="device"),
        (FRAME, UNDIRECTED),
    )
    yield "local web 4M x 64M", partial(local_web, 4_000_000, 64_000_000, memory_space="device"), (FRAME,)
    yield "R-MAT 20", partial(rmat, 20, memory_space="device"), (
        *BOTH, UNDIRECTED, Use(ids="int64"), Use(ids="scattered"), Use(ids="str"), Use(ids="pair"),
        Use(weight="float32"), Use(weight="int32"), ONE_SEED, MANY_TELEPORTS, Use(start="update"), Use(top=100),
        Use(top=100, certified=True), Use(start="prepared", seeds=64, top=100),
    )  # fmt: skip
    yield "R-MAT 21, 8 edges per vertex", partial(rmat, 21, 8, memory_space="device"), (FRAME,)
    yield "R-MAT 22", partial(rmat, 22, memory_space="device"), (
        *BOTH, UNDIRECTED, Use(ids="scattered"), Use(weight="float32"), Use(weight="float64"),
        Use(start="prepared", weight="float32"), Use(start="prepared", weight="float64"), ONE_SEED, MANY_TELEPORTS,
        Use(teleport=1), Use(start="update"),
    )  # fmt: skip
    yield "R-MAT 24", partial(rmat, 24, memory_space="device"), BOTH
    yield "R-MAT 26", partial(rmat, 26, memory_space="device"), (FRAME,)


def parts(data: Path | None, quick: bool, only: tuple[str, ...] = ()) -> list[Part]:
    """Return one part per graph; a use that fails becomes a row with the reason."""
    found = []
    for name, make, uses in graphs(data, quick):
        wanted = [use for use in uses if not only or any(word in f"{name}, {use.label}" for word in only)]
        if wanted:
            found.append(Part(name, partial(_of_graph, name, make, wanted)))
    return found


def summary(results: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Return the least and the median ratio as a sentence, and the rows of least ratio."""
    ranked = sorted((row for row in results if row.get("ratio", "") != ""), key=lambda row: row["ratio"])
    if not ranked:
        return "", []
    median = statistics.median(row["ratio"] for row in ranked)
    sentence = f"Least ratio of {len(ranked)} uses {ranked[0]['ratio']:.3g}, median {median:.3g}."
    return sentence, [{name: row[name] for name in ("graph", "use", "ratio")} for row in ranked[:10]]


def _of_graph(name: str, make: Callable[[], Any], uses: list[Use]) -> Iterator[dict[str, Any]]:
    take_memory_from_a_pool()
    edges = make().astype("int32")
    for use in uses:
        about = {"graph": name, "use": use.label, "edges": len(edges)}
        try:
            yield {**about, **_measured(edges, use)}
        except Exception as error:  # libraries raise exceptions of many types
            yield {**about, "note": f"{type(error).__name__}: {error}"[:200]}
        gc.collect()


def _measured(dense: Any, use: Use) -> dict[str, Any]:
    import prplugin

    if use.weight is not None:
        dense = weighted(dense)
        if use.weight == "int32":
            dense["weight"] = (dense["weight"] * 1000).astype("int32") + 1
        dense = dense.astype({"weight": use.weight})
    ids = _distinct(dense)
    teleports = ids[:: max(1, ids.size // (use.teleport or use.seeds or 1))][: use.teleport or use.seeds]
    batch = dense.iloc[::1000] if use.start == "update" else None
    exact = _exact(dense, use, teleports[: use.teleport or 1] if use.teleport or use.seeds else None)
    frame, added = (None if edges is None else _with_ids(edges, use) for edges in (dense, batch))
    ends = (["src", "src2"], ["dst", "dst2"]) if use.ids == "pair" else ("src", "dst")
    weight = None if use.weight is None else "weight"
    notes: set[str] = set()
    theirs = partial(_cugraph_call, frame, added, ends, weight, use, _ids_of(teleports, use), notes)
    ours = partial(_our_call, frame, added, ends, weight, use, _ids_of(teleports, use))
    theirs_full, ours_full = (partial(call, full=True) for call in (theirs, ours))
    limit = _distance(theirs_full()(), exact, use)
    tol, best = 1e-5, None
    while best is None or (best[1] > limit and tol > 1e-12):
        tol /= 1 if best is None else 2
        try:
            ranking = ours_full(tol=tol)()
        except PageRankError:  # the tolerance cannot be proved
            if best is None:
                raise
            break
        best = ranking, _distance(ranking.frame, exact, use), tol
    ranking, error, tol = best
    del exact
    peer, own = theirs(), ours(tol=tol)
    seconds = timed(partial(_synchronized, peer))[0] + timed(partial(_synchronized, own))[0]
    runs = SLOW_RUNS if seconds > SLOW else min(max(RUNS[0], int(SLOW / seconds)), RUNS[1])
    their_times, our_times = alternately(partial(_synchronized, peer), partial(_synchronized, own), runs=runs)
    return {
        "cuGraph ms": their_times.median * 1e3,
        "prplugin ms": our_times.median * 1e3,
        "ratio": their_times.median / our_times.median,
        "method": ranking.method,
        "iterations": ranking.iterations if isinstance(ranking, prplugin.Ranking) else max(ranking.iterations),
        "cuGraph error": limit,
        "prplugin error": error,
        "error bound": float(np.max(ranking.error_bound)),
        "note": ", ".join(notes),
        "samples": {"cuGraph": their_times.seconds, "ours": our_times.seconds},
    }


# --- calls ----------------------------------------------------------------------------------------------------------


def _cugraph_call(
    frame: Any, added: Any, ends: tuple[Any, Any], weight: str | None, use: Use, teleports: Any, notes: set[str],
    full: bool = False,
) -> Callable[[], Any]:  # fmt: skip
    """Return a function that ranks with cuGraph, `full` for the ranks of all vertices of the first ranking.

    It adds to `notes` that it did not converge.
    """
    import cudf
    import cugraph

    def graph() -> Any:
        found = cugraph.MultiGraph(directed=use.directed)
        found.from_cudf_edgelist(
            frame, source=ends[0], destination=ends[1], edge_attr=weight, store_transposed=True
        )  # fmt: skip
        return found

    given = [None]
    if use.teleport or use.seeds:
        count = use.teleport or use.seeds
        groups = [teleports] if use.teleport else [teleports.iloc[at : at + 1] for at in range(1 if full else count)]
        given = [cudf.DataFrame({"vertex": group, "values": np.ones(len(group), np.float32)}) for group in groups]
    prepared = graph() if use.start == "prepared" else None

    def call() -> Any:
        ranked = prepared or graph()
        for personalization in given:
            ranks, converged = cugraph.pagerank(
                ranked, alpha=use.alpha, personalization=personalization, tol=CUGRAPH_TOL, max_iter=CUGRAPH_MAX_ITER,
                fail_on_nonconvergence=False,
            )  # fmt: skip
            if not converged:
                notes.add(f"cuGraph does not converge in {CUGRAPH_MAX_ITER:,} iterations")
            if use.top is not None and not full:
                ranks = ranks.nlargest(use.top, "pagerank")
        return ranks

    return call


def _our_call(
    frame: Any, added: Any, ends: tuple[Any, Any], weight: str | None, use: Use, teleports: Any, full: bool = False,
    tol: float = 1e-5,
) -> Callable[[], Any]:  # fmt: skip
    """Return a function that ranks with prplugin, `full` for a `Ranking` of all vertices of the first ranking."""
    import prplugin

    given = {"source": ends[0], "destination": ends[1], "weight": weight, "directed": use.directed}
    options: dict[str, Any] = {"alpha": use.alpha, "dtype": use.dtype, "tol": tol}
    if use.teleport:
        options["personalization"] = teleports.to_arrow().to_pylist()
    elif use.seeds:
        seeds = teleports.to_arrow().to_pylist()
        options |= {"personalization": seeds[:1]} if full else {"seeds": seeds}
    if use.top is not None and not full:
        options |= {"top": use.top, "certified": use.certified}
    if full:
        return lambda: prplugin.Graph(frame, **given).rank(**options)
    if use.start == "frame":
        return lambda: prplugin.pagerank(frame, **given, **options)
    graph, has_batch = prplugin.Graph(frame, **given), False

    def call() -> Any:
        nonlocal has_batch
        if use.start == "update":
            graph.update(**{"remove" if has_batch else "add": added})
            has_batch = not has_batch
        return graph.rank(**options).frame

    return call


def _synchronized(call: Callable[[], Any]) -> Any:
    import cupy

    result = call()
    cupy.cuda.runtime.deviceSynchronize()
    return result


# --- ids and errors -------------------------------------------------------------------------------------------------


def _distinct(edges: Any) -> Any:
    import cupy

    return cupy.unique(cupy.concatenate([edges["src"].values, edges["dst"].values]))


def _with_ids(edges: Any, use: Use) -> Any:
    """Return the frame with the ids of the use."""
    import cudf

    found = cudf.DataFrame({end: _ids_of(edges[end].values, use) for end in ("src", "dst")})
    if use.ids == "pair":
        found = found.assign(**{f"{end}2": edges[end] for end in ("src", "dst")})
    return found if use.weight is None else found.assign(weight=edges["weight"])


def _ids_of(dense: Any, use: Use) -> Any:
    """Return the ids of vertices as a Series; of two columns, the first."""
    import cudf

    given = cudf.Series(dense)
    match use.ids:
        case "int64":
            return given.astype("int64")
        case "scattered":
            return given.astype("int64") * SPREAD
        case "str":
            return given.astype("str")
        case "pair":
            return given % PAIR
    return given


def _exact(dense: Any, use: Use, teleports: Any) -> Any:
    """Return the exact rank of each dense id."""
    import cudf

    if not use.directed:
        loops = dense["src"] == dense["dst"]
        reverse = dense[~loops].rename(columns={"src": "dst", "dst": "src"})
        dense = cudf.concat([dense, reverse], ignore_index=True)
    weight = None if use.weight is None else "weight"
    dense = dense if weight is None else dense.astype({"weight": "float64"})
    return reference(dense, multi=True, weight=weight, alpha=use.alpha, teleports=teleports)


def _distance(ranks: Any, exact: Any, use: Use) -> float:
    """Return the L1 distance of a frame of ranks to the exact ones."""
    import cupy

    names = [name for name in ranks.columns if name != "pagerank"]
    ids = ranks[names[-1]]
    if len(names) == 2:  # cuGraph's columns are in the order of the frame's
        ids = ranks[names[int(ranks[names[0]].max() < ranks[names[1]].max())]]
    elif use.ids == "str":
        ids = ids.astype("int64")
    places = ids.astype("int64").values // (SPREAD if use.ids == "scattered" else 1)
    found = cupy.zeros(exact.size)
    found[places] = ranks["pagerank"].values
    return float(cupy.abs(found - exact).sum())


# --- graphs ---------------------------------------------------------------------------------------------------------


def _real(data: Path, name: str) -> Any:
    import cudf

    return cudf.read_parquet(data / "graphs" / f"{name}.parquet")[["src", "dst"]]


def _line(n: int) -> Any:
    """Return the edges of a path of n vertices in random order of ids."""
    import cudf
    import cupy

    order = cupy.argsort(cupy.random.default_rng(1).random(n))
    return cudf.DataFrame({"src": order[:-1], "dst": order[1:]})


def _star(n: int) -> Any:
    import cudf
    import cupy

    return cudf.DataFrame({"src": cupy.zeros(n - 1, np.int32), "dst": cupy.arange(1, n, dtype=np.int32)})


def _communities(n: int, m: int, size: int = 50) -> Any:
    """Return random edges of which nine of ten end in the community of their source."""
    import cudf
    import cupy

    random = cupy.random.default_rng(1)
    source, other = random.integers(0, n, m), random.integers(0, n, m)
    own = source // size * size + random.integers(0, size, m)
    return cudf.DataFrame({"src": source, "dst": cupy.where(random.random(m) < 0.9, own, other)})
