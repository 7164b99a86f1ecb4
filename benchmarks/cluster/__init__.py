"""Comparison with cugraph.dask on the GPUs of one host.

Both take one `dask_cudf` frame of int32 ids, persisted on the workers of one `LocalCUDACluster(protocol="tcp")`, and
return one. Calls alternate, after a warm-up, with garbage collection in between. cuGraph's `MultiGraph` counts every
row, as prplugin does by default. cuGraph runs with ``tol=1e-6``; prplugin's `tol` is halved until its error is no
larger than cuGraph's; both use float32. Errors are L1 distances to a ranking on one GPU in float64, proved to 1e-10.
The time per iteration is the difference of two runs: cuGraph's of 5 and 35 iterations, since its float32 iterates stop
changing before 105; prplugin's with ``tol=1e-2`` and the default, by the time that workers spend iterating. "ratio" is
cuGraph's time divided by prplugin's. Communication includes a worker's wait for the others.

Without a GPU the frames are pandas partitions on the processes of one `LocalCluster`, without a comparison.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cluster import _local, _model, _sides
from benchmarks.cluster._figure import figure
from benchmarks.cluster._local import end
from benchmarks.measure import alternately
from benchmarks.run import Part

if TYPE_CHECKING:
    from benchmarks.cluster._local import Workers

__all__ = ["KEYS", "PACKAGES", "TABLES", "end", "figure", "parts", "summary"]

FRAME_TO_RANKS, STEP = "Frame to ranks", "Time per iteration"

TABLES = {
    FRAME_TO_RANKS: (
        "graph", "workers", "edges", "cuGraph s", "prplugin s", "ratio", "method", "iterations", "tol", "cuGraph error",
        "prplugin error", "error bound", "note",
    ),
    STEP: ("graph", "workers", "cuGraph ms", "prplugin ms", "ratio", "communication", "MB sent", "note"),
}  # fmt: skip

KEYS = ("table", "graph", "workers")
PACKAGES = ("dask", "distributed", "dask_cuda", "dask_cudf", "raft_dask")

ON_GPUS, ON_GPUS_QUICK = (22, 24), (18,)
ALONE = 26
"""The scale that is ranked by ours alone, on all GPUs."""

ON_HOST, ON_HOST_QUICK = (16, 18), (14,)

RUNS, SLOW_RUNS, SLOW = 5, 3, 2.0
"""Of each side; fewer where a round takes as many seconds."""

STEPS, MORE = 5, 30
"""Iterations of cuGraph's shorter run, and by how many the longer one is longer."""

ROUGH, FINE = 1e-2, 1e-6
"""The tol of our shorter run, and of the longer one."""

STEP_RUNS = 31


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Each graph on each count of workers, from the most to one: one cluster serves all graphs of its count."""
    counts = _local.counts()
    gpus = _local.on_gpus()
    scales = (ON_GPUS_QUICK if quick else ON_GPUS) if gpus else (ON_HOST_QUICK if quick else ON_HOST)
    found = [
        Part(f"R-MAT {scale} on {count}", partial(_of_graph, scale, count), 2.0 ** (scale - scales[0]))
        for count in counts[::-1]
        for scale in scales
    ]
    if gpus and not quick:
        found.insert(len(scales), Part(f"R-MAT {ALONE} on {counts[-1]}", partial(_alone, ALONE, counts[-1]), 4.0))
    return found


def _of_graph(scale: int, count: int) -> Iterator[dict[str, Any]]:
    workers = _local.workers(count)
    edges = workers.rmat(scale)
    about = {"graph": f"R-MAT {scale}", "workers": count}
    asked: dict[str, Callable[[Any], Iterable[dict[str, Any]]]] = {
        FRAME_TO_RANKS: lambda peer: _frame_to_ranks(about, workers, edges, scale, peer),
        STEP: lambda peer: _step(about, edges, peer),
    }
    for table, ask in asked.items():
        rows = list(_or_why({**about, "table": table}, lambda ask=ask: ask(_sides.peer(workers))))
        yield from rows
        if rows[-1]["note"]:  # ours, without what may have failed of cuGraph's
            yield from _or_why({**about, "table": table}, lambda ask=ask: ask(None))


def _alone(scale: int, count: int) -> Iterator[dict[str, Any]]:
    """Rank a graph by ours alone, without anything to compare with."""
    edges = _local.workers(count).rmat(scale)
    about = {"graph": f"R-MAT {scale}", "workers": count}

    def frame_to_ranks() -> Iterator[dict[str, Any]]:
        (own,) = alternately(partial(_sides.ours, edges, 1e-6), runs=SLOW_RUNS)
        yield _frame_to_ranks_row(about, edges, [], own.seconds, _sides.Graph(edges).rank(1e-6), 1e-6)

    yield from _or_why({**about, "table": FRAME_TO_RANKS}, frame_to_ranks)
    yield from _or_why({**about, "table": STEP}, lambda: _step(about, edges, None))


def _frame_to_ranks(
    about: dict[str, Any], workers: Workers, edges: Any, scale: int, peer: Any
) -> Iterator[dict[str, Any]]:
    exact = _sides.Reference(workers, scale)
    their_error = None if peer is None else exact.distance(peer.frame_to_ranks(edges))
    ranking, error, tol = _no_worse(_sides.Graph(edges), exact, their_error)
    sides: list[Callable[[], Any]] = [partial(_sides.ours, edges, tol)]
    if peer is not None:
        sides.insert(0, partial(peer.frame_to_ranks, edges))
    (first,) = alternately(lambda: [side() for side in sides], runs=1, warm=True)
    runs = SLOW_RUNS if first.median > SLOW else RUNS
    *theirs, own = alternately(*sides, runs=runs, warm=True, before=workers.tidy)
    row = _frame_to_ranks_row(about, edges, [each.seconds for each in theirs], own.seconds, ranking, tol)
    yield {**row, "prplugin error": error, "cuGraph error": "" if their_error is None else their_error}


def _frame_to_ranks_row(
    about: dict[str, Any], edges: Any, theirs: list[list[float]], own: list[float], ranking: Any, tol: float
) -> dict[str, Any]:
    return _row(
        FRAME_TO_RANKS,
        {
            **about,
            **_times("s", 1.0, theirs, own),
            "edges": _local.rows_of(edges),
            "method": ranking.method,
            "iterations": ranking.iterations,
            "tol": tol,
            "error bound": ranking.error_bound,
            "stages": dict(ranking.stages),
        },
    )


def _no_worse(graph: Any, exact: Any, limit: float | None) -> tuple[Any, float, float]:
    """Rank with a tol halved until the error is no larger than the limit; with the default if there is none."""
    tol = 1e-6 if limit is None else 8 * limit
    while True:
        ranking = graph.rank(tol)
        error = exact.distance(ranking.frame)
        if limit is None or error <= limit or tol < 1e-12:
            return ranking, error, tol
        tol /= 2


def _step(about: dict[str, Any], edges: Any, peer: Any) -> Iterator[dict[str, Any]]:
    """Time an iteration of both, and what of ours is communication."""
    graph = _sides.Graph(edges)
    graph.rank(FINE)  # compiles
    own, fractions, sent = [], [], 0.0
    for _ in range(STEP_RUNS):
        short, long = graph.rank(ROUGH), graph.rank(FINE)
        more = long.iterations - short.iterations
        took, talked = (long.stages[what] - short.stages[what] for what in ("iterations", "communication"))
        own.append(took / more)
        fractions.append(talked / took)
        sent = (max(long.bytes_sent) - max(short.bytes_sent)) / more
    theirs = [] if peer is None else [peer.iteration(edges, STEPS, MORE, STEP_RUNS)]
    yield _row(
        STEP,
        {
            **about,
            **_times("ms", 1e3, theirs, own),
            "communication": statistics.median(fractions),
            "MB sent": sent / 1e6,
            "vertices": graph.n,
            "shares of communication": fractions,
        },
    )


def _times(unit: str, scale: float, theirs: list[list[float]], own: list[float]) -> dict[str, Any]:
    found: dict[str, Any] = {f"prplugin {unit}": scale * statistics.median(own), "samples": {"prplugin": own}}
    for samples in theirs:
        median = scale * statistics.median(samples)
        found |= {f"cuGraph {unit}": median, "ratio": median / found[f"prplugin {unit}"]}
        found["samples"]["cuGraph"] = samples
    return found


def _row(table: str, known: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(TABLES[table], "") | known | {"table": table}


def _or_why(about: dict[str, Any], find: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Return rows, and one with the reason where something stops them: the others go on."""
    try:
        yield from find()
    except Exception as error:  # of either side, and of many types
        yield _row(about["table"], {**about, "note": f"{type(error).__name__}: {error}"[:300]})


def summary(results: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Say how much faster more workers are, and what the model of docs/scaling.md makes of it."""
    steps = [row for row in results if row["table"] == STEP and row["prplugin ms"] != ""]
    seconds = {
        (row["graph"], row["workers"]): row["prplugin s"]
        for row in results
        if row["table"] == FRAME_TO_RANKS and row["prplugin s"] != ""
    }
    words = (
        "Strong scaling: speed-up over one worker. The predicted time is one worker's time per iteration divided by "
        "the number of workers, plus the time to send the data at the rate measured on the largest graph."
    )
    return words, _model.beside(steps, seconds)
