"""Comparison with cugraph.dask on the GPUs of one host.

Both take one `dask_cudf` frame of int32 ids, persisted on the workers of one `LocalCUDACluster(protocol="tcp")`, and
return one. Calls alternate, after a warm-up, with garbage collection in between. cuGraph's `MultiGraph` counts every
row, as prplugin does by default. cuGraph runs with ``tol=1e-6``; prplugin's `tol` is halved until its error is no
larger than cuGraph's; both use float32. Errors are L1 distances to a ranking on one GPU in float64, proved to 1e-10.
The time per iteration is the difference of two runs: cuGraph's of 5 and 35 iterations, since its float32 iterates stop
changing before 105; prplugin's with ``tol=1e-2`` and the default, by the time that workers spend iterating. "ratio" is
cuGraph's time divided by prplugin's. Communication includes a worker's wait for the others. "workers" rank, of those of
the "cluster": all, by ``workers=``, or one, as by default. "empty tasks" is the time of as many tasks that do nothing,
which Dask itself takes.

Frames of pandas, on the processes of one `LocalCluster`, are measured in the same way, without a comparison.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cluster import _libraries, _local, _model
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
        "graph", "cluster", "workers", "edges", "cuGraph s", "prplugin s", "ratio", "empty tasks ms", "method",
        "iterations", "tol", "cuGraph error", "prplugin error", "error bound", "note",
    ),
    STEP: ("graph", "cluster", "workers", "cuGraph ms", "prplugin ms", "ratio", "communication", "MB sent", "note"),
}  # fmt: skip

KEYS = ("table", "graph", "cluster", "workers")
PACKAGES = ("dask", "distributed", "dask_cuda", "dask_cudf", "raft_dask")

ON_GPUS, ON_GPUS_QUICK = (22, 24), (18,)
ALONE = 26
"""Scale of the graph that only prplugin ranks, on all GPUs."""

ON_CPUS, ON_CPUS_QUICK = (18,), (14,)

RUNS, SLOW_RUNS, SLOW = 5, 3, 2.0
"""Runs of each library; fewer if a round takes more than `SLOW` seconds."""

STEPS, MORE = 5, 30
"""Iterations of cuGraph's shorter run, and additional ones of the longer run."""

ROUGH, FINE = 1e-2, 1e-6
"""Tolerances of the shorter and the longer run of prplugin."""

STEP_RUNS = 9


def parts(data: Path | None, quick: bool) -> list[Part]:
    """Return one part per graph and number of workers, in descending number: a cluster is used for all its graphs.

    Beside the graphs of strong scaling, those of weak scaling have twice the edges on twice the workers.
    """
    found = []
    for gpus in (True, False)[not _local.has_gpus() :]:
        scales = (ON_GPUS_QUICK if quick else ON_GPUS) if gpus else (ON_CPUS_QUICK if quick else ON_CPUS)
        counts = _local.counts(gpus)
        for count in counts[::-1]:
            parts = dict.fromkeys(scales, _of_graph)
            more = {scales[0] + count.bit_length() - 1: _of_prplugin}
            if gpus and not quick and count == counts[-1]:
                more[ALONE] = _of_prplugin
            for scale, of in sorted((more | parts).items()):
                name = f"{graph_name(scale, gpus)} on {count}"
                found.append(Part(name, partial(of, scale, count, gpus), 2.0 ** (scale - scales[0]) if gpus else 1.0))
    return found


def graph_name(scale: int, gpus: bool) -> str:
    """Return the name of a graph, which says whether its frame is on GPUs."""
    return f"R-MAT {scale}" if gpus else f"R-MAT {scale}, CPUs"


def _of_graph(scale: int, count: int, gpus: bool) -> Iterator[dict[str, Any]]:
    workers = _local.workers(count, gpus)
    edges, names = workers.rmat(scale), {"graph": graph_name(scale, gpus), "cluster": count}
    about = {**names, "workers": count}
    measurements: dict[str, Callable[[Any], Iterable[dict[str, Any]]]] = {
        FRAME_TO_RANKS: lambda peer: _frame_to_ranks(about, workers, edges, scale, peer),
        STEP: lambda peer: _step(about, edges, peer),
    }
    for table, measure in measurements.items():
        rows = list(
            _rows_or_reason({**about, "table": table}, lambda measure=measure: measure(_libraries.peer(workers)))
        )
        yield from rows
        if rows[-1]["note"]:  # prplugin alone, if cuGraph may have failed
            yield from _rows_or_reason({**about, "table": table}, lambda measure=measure: measure(None))
    if count > 1:
        yield from _of_prplugin(scale, count, gpus, ranking=1)


def _of_prplugin(scale: int, count: int, gpus: bool, ranking: int | None = None) -> Iterator[dict[str, Any]]:
    """Rank a graph on `ranking` workers, or all, without a comparison."""
    workers = _local.workers(count, gpus)
    edges, ranking = workers.rmat(scale), ranking or count
    about = {"graph": graph_name(scale, gpus), "cluster": count, "workers": ranking}

    def frame_to_ranks() -> Iterator[dict[str, Any]]:
        (own,) = alternately(partial(_libraries.ours, edges, 1e-6, ranking), runs=SLOW_RUNS)
        graph = _libraries.Graph(edges, ranking)
        yield _frame_to_ranks_row(about, workers, edges, [], own.seconds, graph.rank(1e-6), 1e-6)

    yield from _rows_or_reason({**about, "table": FRAME_TO_RANKS}, frame_to_ranks)
    if ranking == count:
        yield from _rows_or_reason({**about, "table": STEP}, lambda: _step(about, edges, None))


def _frame_to_ranks(
    about: dict[str, Any], workers: Workers, edges: Any, scale: int, peer: Any
) -> Iterator[dict[str, Any]]:
    exact = _libraries.Reference(workers, scale)
    their_error = None if peer is None else exact.distance(peer.frame_to_ranks(edges))
    ranking, error, tol = _match_error(_libraries.Graph(edges, workers.count), exact, their_error)
    calls: list[Callable[[], Any]] = [partial(_libraries.ours, edges, tol, workers.count)]
    if peer is not None:
        calls.insert(0, partial(peer.frame_to_ranks, edges))
    (first,) = alternately(lambda: [call() for call in calls], runs=1, warm=True)
    runs = SLOW_RUNS if first.median > SLOW else RUNS
    *theirs, own = alternately(*calls, runs=runs, warm=True, before=workers.collect_garbage)
    row = _frame_to_ranks_row(about, workers, edges, [each.seconds for each in theirs], own.seconds, ranking, tol)
    yield {**row, "prplugin error": error, "cuGraph error": "" if their_error is None else their_error}


def _frame_to_ranks_row(
    about: dict[str, Any], workers: Workers, edges: Any, theirs: list[list[float]], own: list[float], ranking: Any,
    tol: float,
) -> dict[str, Any]:  # fmt: skip
    return _row(
        FRAME_TO_RANKS,
        {
            **about,
            **_times("s", 1.0, theirs, own),
            "edges": _local.rows_of(edges),
            "empty tasks ms": 1e3 * workers.seconds_of_empty_tasks(about["workers"]),
            "method": ranking.method,
            "iterations": ranking.iterations,
            "tol": tol,
            "error bound": ranking.error_bound,
            "stages": dict(ranking.stages),
        },
    )


def _match_error(graph: Any, exact: Any, limit: float | None) -> tuple[Any, float, float]:
    """Halve tol until the error is no larger than the limit; without a limit use the default."""
    tol = 1e-6 if limit is None else 8 * limit
    while True:
        ranking = graph.rank(tol)
        error = exact.distance(ranking.frame)
        if limit is None or error <= limit or tol < 1e-12:
            return ranking, error, tol
        tol /= 2


def _step(about: dict[str, Any], edges: Any, peer: Any) -> Iterator[dict[str, Any]]:
    """Yield the time per iteration of both libraries, and the fraction of communication."""
    graph = _libraries.Graph(edges, about["workers"])
    graph.rank(FINE)  # compiles
    own, fractions, sent = [], [], 0.0
    for _ in range(STEP_RUNS):
        short, long = graph.rank(ROUGH), graph.rank(FINE)
        more = long.iterations - short.iterations
        took, talked = (
            long.stages.get(what, 0.0) - short.stages.get(what, 0.0) for what in ("iterations", "communication")
        )
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
            "fractions of communication": fractions,
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


def _rows_or_reason(about: dict[str, Any], find: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield rows; on an exception yield a row with its message, so that the remaining cases still run."""
    try:
        yield from find()
    except Exception as error:  # libraries raise exceptions of many types
        yield _row(about["table"], {**about, "note": f"{type(error).__name__}: {error}"[:300]})


def summary(results: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Report speed-ups over one worker and the times predicted by the model of docs/scaling.md."""
    whole = [row for row in results if row["cluster"] == row["workers"]]
    steps = [row for row in whole if row["table"] == STEP and row["prplugin ms"] != ""]
    seconds = {
        (row["graph"], row["workers"]): row["prplugin s"]
        for row in whole
        if row["table"] == FRAME_TO_RANKS and row["prplugin s"] != ""
    }
    words = (
        "Strong scaling: speed-up over one worker, which runs what one process runs. Weak scaling: the time per "
        "iteration of one worker divided by that of several, of a graph with as many times the edges. The predicted "
        "time is one worker's time per iteration divided by the number of workers, plus the time to send the data at "
        "the rate measured on the largest graph."
    )
    return words, _model.compare(steps, seconds)
