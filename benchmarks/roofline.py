"""Memory traffic of each GPU kernel compared with the bandwidth.

"required" is the least number of bytes that a kernel has to move, by the formulas in `benchmarks/traffic.py`. DRAM and
L2 are the bytes counted by ncu in a separate run. Percentages of memory are relative to the bandwidth of a copy of
1 GiB in the same run, percentages of L2 to the peak reported by ncu. Times are ncu's if available, else measured by two
events, which adds some microseconds. A row adds up all launches of a kernel in a case; an iteration is one launch
of one step. Occupancy is the percentage of the resident warps that a multiprocessor supports, and the limiter is the
resource that prevents more blocks.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import ncu
from benchmarks.traffic import kernel_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "figures", "rows"]

COLUMNS = (
    "graph", "case", "kernel", "launches", "us by events", "us by ncu", "required MB", "DRAM MB", "L2 MB",
    "required, % of memory", "DRAM, % of memory", "% of L2", "occupancy %", "limiter", "note",
)  # fmt: skip

TIME_LIMIT = 200
"""Seconds after which a run is terminated; the cases that it has reported are kept."""

MIN_DRAWN = 1.0
"""Least required MB of the kernels in the figures."""


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Time all cases in one process, profile them in another, and merge the results."""
    arguments = ["--quick"] * quick + ([] if data is None else ["--data", str(data)])
    timed, failure = _run_workload([], arguments)
    copy = next((line["copy"] for line in timed if "copy" in line), None)
    counted, reason = _profiled(arguments)
    for line in timed:
        if "case" in line:
            yield from _rows_of(line, counted.get((line["graph"], line["case"]), []), copy, reason)
    if failure:
        yield {"note": failure}


def _run_workload(before: list[str], arguments: list[str]) -> tuple[list[dict[str, Any]], str]:
    """Run the workload, as arguments of a command if given; return its reports and the reason of a failure."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "reported"
        child = [sys.executable, "-m", "benchmarks.roofline_workload", "--output", str(output), *arguments]
        failure = _run_command([*before, *child])
        lines = output.read_text().splitlines() if output.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")], failure


def _run_command(command: list[str]) -> str:
    """Run a command within `TIME_LIMIT`; return the reason of a failure, else an empty string."""
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1],
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return str(error)
    with process:
        try:
            output, errors = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return f"ended after {TIME_LIMIT} seconds"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # including its child processes
    last_line = (errors.strip() or output.strip() or "no output").splitlines()[-1]
    return f"exit status {process.returncode}: {last_line}"[:200] if process.returncode else ""


def _profiled(arguments: list[str]) -> tuple[dict[tuple[str, str], list[dict[str, Any]]], str]:
    """Return the counters of each launch by case, and the reason if some or all are missing."""
    program = ncu.find()
    if program is None:
        return {}, "ncu is not installed"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        reported, failure = _run_workload(ncu.command(program, log, kernel_names(), []), [*arguments, "--profile"])
        text = log.read_text() if log.exists() else ""
    profiles = ncu.parse(text)
    if not profiles:
        return {}, "; ".join(filter(None, [ncu.failure_reason(text), failure]))
    passes = ncu.passes(text)
    return _matched(reported, profiles), failure or (f"ncu took {passes} passes" if passes > 1 else "")


def _matched(
    reported: list[dict[str, Any]], profiles: list[dict[str, Any]]
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Assign profiles to launches: the k-th launch of a function gets the k-th profile of that name.

    Functions whose numbers of launches and profiles differ get none.
    """
    cases = [line for line in reported if "case" in line]
    launched = Counter(_function(launch) for line in cases for launch in line["launches"])
    counted = Counter(profile["kernel"] for profile in profiles)
    waiting: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for profile in profiles:
        if counted[profile["kernel"]] == launched[profile["kernel"]]:
            waiting[profile["kernel"]].append(profile)
    return {
        (line["graph"], line["case"]): [
            {**(queue.popleft() if (queue := waiting[_function(launch)]) else {}), "kernel": launch["kernel"]}
            for launch in line["launches"]
        ]
        for line in cases
    }


def _function(launch: dict[str, Any]) -> str:
    return str(launch["kernel"].partition(".")[2])


def _rows_of(
    line: dict[str, Any], counted: list[dict[str, Any]], copy: float | None, reason: str
) -> Iterator[dict[str, Any]]:
    """Yield one row per kernel of a case, and one with the reason of a failure."""
    launches = line["launches"]
    about = {"graph": line["graph"], "case": line["case"]}
    if [launch["kernel"] for launch in counted] != [launch["kernel"] for launch in launches]:
        counted = []
    for kernel in dict.fromkeys(launch["kernel"] for launch in launches):
        places = [place for place, launch in enumerate(launches) if launch["kernel"] == kernel]
        known = {**about, "kernel": kernel, "note": reason}
        yield known | _summed(
            [launches[place] for place in places], [counted[place] for place in places if counted], copy
        )
    if "reason" in line:
        yield {**about, "note": line["reason"]}


def _summed(launches: list[dict[str, Any]], counted: list[dict[str, Any]], copy: float | None) -> dict[str, Any]:
    """Return the columns of a kernel, summed over its launches."""
    found: dict[str, Any] = {"launches": len(launches), "samples": [launch["seconds"] for launch in launches]}
    seconds = None
    if all(launch["seconds"] for launch in launches):
        seconds = sum(statistics.median(launch["seconds"]) for launch in launches)
        found["us by events"] = seconds * 1e6
    required = None
    if all(launch["bytes"] is not None for launch in launches):
        required = sum(launch["bytes"] for launch in launches)
        found["required MB"] = required / 1e6
    if counted and all("seconds" in profile for profile in counted):
        seconds = _total(counted, "seconds")
        found |= {"us by ncu": seconds * 1e6, "profiles": counted}
        if all({"read", "written"} <= profile.keys() for profile in counted):
            moved = _total(counted, "read") + _total(counted, "written")
            found["DRAM MB"] = moved / 1e6
            found |= _percentage("DRAM, % of memory", moved, seconds, copy)
        if all("L2" in profile for profile in counted):
            found["L2 MB"] = _total(counted, "L2") / 1e6
        for column, name in (("% of L2", "L2 %"), ("occupancy %", "occupancy %")):
            if seconds and all(name in profile for profile in counted):
                found[column] = sum(profile[name] * profile["seconds"] for profile in counted) / seconds
        found["limiter"] = _limiter(counted[0])
    if required is not None and seconds:
        found |= _percentage("required, % of memory", required, seconds, copy)
    return found


def _total(counted: list[dict[str, Any]], name: str) -> float:
    return float(sum(profile[name] for profile in counted))


def _percentage(column: str, moved: float, seconds: float, copy: float | None) -> dict[str, float]:
    return {column: 100 * moved / seconds / copy} if copy and seconds else {}


def _limiter(profile: dict[str, Any]) -> str:
    """Return the resource that allows the fewest resident blocks."""
    limits = {name: profile[name] for name in ncu.LIMITS if name in profile}
    least = min(limits.values(), default=0)
    return ", ".join(name for name, limit in limits.items() if limit == least)


def figures(results: list[dict[str, Any]]) -> dict[str, Figure]:
    """Draw the bandwidth of each kernel relative to that of a copy, one figure per graph."""
    shown = [row for row in results if row["required, % of memory"] != "" and row["required MB"] >= MIN_DRAWN]
    graphs = dict.fromkeys(row["graph"] for row in shown)
    return {
        graph.lower().replace(" ", "-"): _draw_graph(graph, [row for row in shown if row["graph"] == graph])
        for graph in graphs
    }


def _draw_graph(graph: str, rows: list[dict[str, Any]]) -> Figure:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(8, 1.6 + 0.2 * len(rows)), layout="constrained")
    panel = drawing.subplots()
    panel.barh(range(len(rows)), [row["required, % of memory"] for row in rows], color="tab:blue", label="required")
    for column, mark, label in (
        ("DRAM, % of memory", "k|", "DRAM, counted by ncu"),
        ("% of L2", "r.", "L2, % of its peak"),
    ):
        points = [(row[column], place) for place, row in enumerate(rows) if row[column] != ""]
        if points:
            panel.plot(*zip(*points, strict=True), mark, markersize=7, label=label)
    panel.axvline(100, color="black", linewidth=0.8)
    panel.set_yticks(range(len(rows)), [f"{row['case']}: {row['kernel']}" for row in rows], fontsize="small")
    panel.set(title=graph, xlabel="bandwidth, % of that of a copy", ylim=(len(rows) - 0.4, -0.6))
    drawing.legend(loc="outside lower right", ncols=3, fontsize="small")
    return drawing
