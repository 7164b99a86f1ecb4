"""Memory traffic of each GPU kernel compared with the bandwidth.

"required" is the least number of bytes that a kernel has to move, by the formulas in `benchmarks/traffic.py`. DRAM and
L2 are the bytes counted by ncu in a separate run. Percentages of memory are relative to the bandwidth of a copy of
1 GiB in the same run, those of L2 to the peak reported by ncu. Times are ncu's where available, else measured between
two events, which adds some microseconds. A row adds up all launches of a kernel in a case; an iteration is one launch
of one step. Occupancy is the share of the warps that a multiprocessor can hold, and the limiter what prevents more
blocks.
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

__all__ = ["COLUMNS", "figure", "rows"]

COLUMNS = (
    "graph", "case", "kernel", "launches", "us by events", "us by ncu", "required MB", "DRAM MB", "L2 MB",
    "required, % of memory", "DRAM, % of memory", "% of L2", "occupancy %", "limiter", "note",
)  # fmt: skip

PATIENCE = 200
"""Seconds after which a run is ended; what it had told by then is kept."""

SHOWN = 1.0
"""MB that a kernel must move to be drawn."""


def rows(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    """Time all cases in one process, count in another, and put both together."""
    arguments = ["--quick"] * quick + ([] if data is None else ["--data", str(data)])
    timed, failure = _told([], arguments)
    copy = next((line["copy"] for line in timed if "copy" in line), None)
    counted, why = _counted(arguments)
    for line in timed:
        if "case" in line:
            yield from _rows_of(line, counted.get((line["graph"], line["case"]), []), copy, why)
    if failure:
        yield _row({"note": failure})


def _told(before: list[str], arguments: list[str]) -> tuple[list[dict[str, Any]], str]:
    """Run the workload, by way of a command or not; give what it told, and why it told no more."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "told"
        child = [sys.executable, "-m", "benchmarks.roofline_workload", "--output", str(output), *arguments]
        failure = _ran([*before, *child])
        lines = output.read_text().splitlines() if output.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")], failure


def _ran(command: list[str]) -> str:
    """Run a command to its end, or to that of our patience; say what went wrong, if anything did."""
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1],
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return str(error)
    with process:
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return f"ended after {PATIENCE} seconds"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # with what it has started
    said = (errors.strip() or output.strip() or "nothing said").splitlines()[-1]
    return f"exit status {process.returncode}: {said}"[:200] if process.returncode else ""


def _counted(arguments: list[str]) -> tuple[dict[tuple[str, str], list[dict[str, Any]]], str]:
    """Return what ncu counted for each launch of each case, nothing for some or all; and why."""
    program = ncu.find()
    if program is None:
        return {}, "no ncu here"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        told, failure = _told(ncu.command(program, log, kernel_names(), []), [*arguments, "--profile"])
        text = log.read_text() if log.exists() else ""
    profiles = ncu.parse(text)
    if not profiles:
        return {}, "; ".join(filter(None, [ncu.why_not(text), failure]))
    passes = ncu.passes(text)
    return _matched(told, profiles), failure or (f"ncu took {passes} passes" if passes > 1 else "")


def _matched(told: list[dict[str, Any]], profiles: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return each launch of each case its profile: the k-th of a function has the k-th that ncu saw of that name.

    None has one of which ncu saw more, or fewer, than were told of.
    """
    cases = [line for line in told if "case" in line]
    launched = Counter(_function(launch) for line in cases for launch in line["launches"])
    counted = Counter(profile["kernel"] for profile in profiles)
    waiting: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for profile in profiles:
        if counted[profile["kernel"]] == launched[profile["kernel"]]:
            waiting[profile["kernel"]].append(profile)
    return {
        (line["graph"], line["case"]): [
            {**(of_it.popleft() if (of_it := waiting[_function(launch)]) else {}), "kernel": launch["kernel"]}
            for launch in line["launches"]
        ]
        for line in cases
    }


def _function(launch: dict[str, Any]) -> str:
    return str(launch["kernel"].partition(".")[2])


def _rows_of(
    line: dict[str, Any], counted: list[dict[str, Any]], copy: float | None, why: str
) -> Iterator[dict[str, Any]]:
    """Return a row for each kernel of a case, and one that says why there are no more."""
    launches = line["launches"]
    about = {"graph": line["graph"], "case": line["case"]}
    if [launch["kernel"] for launch in counted] != [launch["kernel"] for launch in launches]:
        counted = []
    for kernel in dict.fromkeys(launch["kernel"] for launch in launches):
        places = [place for place, launch in enumerate(launches) if launch["kernel"] == kernel]
        yield _row(
            {**about, "kernel": kernel, "note": why}
            | _summed([launches[place] for place in places], [counted[place] for place in places if counted], copy)
        )
    if "why" in line:
        yield _row({**about, "note": line["why"]})


def _summed(launches: list[dict[str, Any]], counted: list[dict[str, Any]], copy: float | None) -> dict[str, Any]:
    """Add up the launches of a kernel."""
    found: dict[str, Any] = {"launches": len(launches), "samples": [launch["seconds"] for launch in launches]}
    seconds = None
    if all(launch["seconds"] for launch in launches):
        seconds = sum(statistics.median(launch["seconds"]) for launch in launches)
        found["us by events"] = seconds * 1e6
    must = None
    if all(launch["bytes"] is not None for launch in launches):
        must = sum(launch["bytes"] for launch in launches)
        found["required MB"] = must / 1e6
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
    if must is not None and seconds:
        found |= _percentage("required, % of memory", must, seconds, copy)
    return found


def _total(counted: list[dict[str, Any]], name: str) -> float:
    return float(sum(profile[name] for profile in counted))


def _percentage(column: str, moved: float, seconds: float, copy: float | None) -> dict[str, float]:
    return {column: 100 * moved / seconds / copy} if copy and seconds else {}


def _limiter(profile: dict[str, Any]) -> str:
    """Say what allows the fewest blocks."""
    limits = {name: profile[name] for name in ncu.LIMITS if name in profile}
    least = min(limits.values(), default=0)
    return ", ".join(name for name, limit in limits.items() if limit == least)


def _row(known: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS, "") | known


def figure(results: list[dict[str, Any]]) -> Figure:
    """Draw what each kernel moves a second, over what the memory does, a panel a graph."""
    from matplotlib.figure import Figure

    shown = [row for row in results if row["required, % of memory"] != "" and row["required MB"] >= SHOWN]
    names = list(dict.fromkeys(row["graph"] for row in shown))
    drawing = Figure(figsize=(9, 1 + 0.28 * len(shown) + 0.8 * len(names)), layout="constrained")
    if not names:
        return drawing
    sizes = [sum(row["graph"] == name for row in shown) + 2 for name in names]
    panels = drawing.subplots(len(names), 1, squeeze=False, sharex=True, height_ratios=sizes)
    for (panel,), name in zip(panels, names, strict=True):
        of_it = [row for row in shown if row["graph"] == name][::-1]
        panel.barh(
            range(len(of_it)), [row["required, % of memory"] for row in of_it], color="tab:blue", label="required"
        )
        for column, mark, label in (
            ("DRAM, % of memory", "k|", "moved to and from memory"),
            ("% of L2", "r.", "of the L2's peak"),
        ):
            points = [(row[column], place) for place, row in enumerate(of_it) if row[column] != ""]
            if points:
                panel.plot(*zip(*points, strict=True), mark, markersize=7, label=label)
        panel.axvline(100, color="black", linewidth=0.8)
        panel.set_yticks(range(len(of_it)), [f"{row['case']}: {row['kernel']}" for row in of_it], fontsize="small")
        panel.set_title(name, fontsize="medium")
        panel.tick_params(labelbottom=True)
    drawing.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=3, fontsize="small")
    panels[-1, 0].set_xlabel("bytes per second, % of a copy's")
    return drawing
