"""Latency of personalized questions to one prepared graph: p50 and p99 of client threads, by size, tolerance and form.

``python -m benchmarks.latency`` prints a table in Markdown; it needs an otherwise idle machine. To bind it to some
cores, run it by ``taskset -c 0,1``. The graphs have random endpoints and weights, and the reset covers a fifth of the
vertices. "together" collects the questions of 2 ms in one call, by the recipe of docs/retrieval.md.
"""

from __future__ import annotations

import queue
import re
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import prplugin
from prplugin.machine import this_machine

SIZES = (2_000, 10_000), (50_000, 400_000), (100_000, 1_000_000)
SECONDS, QUICK_SECONDS = 10.0, 0.2
CLIENTS = 1, 8

FORMS: dict[str, dict[str, Any]] = {
    "tol 1e-6": {"tol": 1e-6},
    "tol 1e-3": {"tol": 1e-3},
    "top 20, certified": {"top": 20, "certified": True},
    "together": {},
}


def collector() -> Any:
    """Return the class of the recipe in docs/retrieval.md."""
    page = (Path(__file__).parents[1] / "docs" / "retrieval.md").read_text(encoding="utf-8")
    source = re.search(r"^class Collector:\n(?:(?: .*)?\n)+", page, re.MULTILINE)
    assert source is not None
    names = {"queue": queue, "threading": threading, "time": time, "Future": Future, "prplugin": prplugin}
    exec(source[0], names)
    return names["Collector"]


def latencies(ask: Callable[[Any], object], questions: list[Any], clients: int, seconds: float) -> np.ndarray[Any, Any]:
    """Return the seconds of each question that some threads ask one after another, for a time."""
    found: list[float] = []
    end = time.perf_counter() + seconds

    def run(client: int) -> None:
        number = client
        while (began := time.perf_counter()) < end:
            ask(questions[number % len(questions)])
            found.append(time.perf_counter() - began)
            number += clients

    threads = [threading.Thread(target=run, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.array(found)


def main(quick: bool = False) -> None:
    """Print the table."""
    random = np.random.default_rng(0)
    print(f"{this_machine().threads} cores, prplugin {prplugin.__version__}, pandas {pd.__version__}\n")
    print("| vertices | edges | form | clients | questions | p50 ms | p99 ms | questions/s |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for n, m in SIZES[:1] if quick else SIZES:
        ends = random.integers(0, n, (m, 2))
        edges = pd.DataFrame({"src": ends[:, 0], "dst": ends[:, 1], "weight": 0.1 + random.random(m)})
        graph = prplugin.Graph(edges, weight="weight", directed=False, vertices=range(n))
        questions = [np.where(random.random(n) < 0.2, random.random(n), 0.0) for _ in range(32)]
        for form, options in FORMS.items():
            ask = collector()(graph, alpha=0.5).ranks if form == "together" else None

            def alone(reset: Any, options: dict[str, Any] = options, graph: prplugin.Graph = graph) -> object:
                return graph.rank(alpha=0.5, personalization=reset, **options).frame

            for clients in CLIENTS:
                seconds = QUICK_SECONDS if quick else SECONDS
                taken = 1e3 * latencies(ask or alone, questions, clients, seconds)
                p50, p99 = np.percentile(taken, [50, 99])
                figures = f"{taken.size} | {p50:.3g} | {p99:.3g} | {taken.size / seconds:.3g}"
                print(f"| {n:,} | {m:,} | {form} | {clients} | {figures} |", flush=True)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
