"""Run a benchmark part by part: a bar with the time left, every row kept at once, nothing run twice after an interrupt.

A benchmark is a module with

- `parts(data, quick)`: its `Part`s; or `rows(data, quick)`, which is then one part;
- `COLUMNS` of its table, or `TABLES`: the columns of each by its title, which a row has as "table";
- perhaps `KEYS`: the columns by which `compare` tells rows apart; if not given, those that hold words;
- perhaps `summary(results)`: some words, and a table of its own;
- perhaps `figure(results)`, or `figures(results)`: several by name;
- perhaps `PACKAGES`, whose versions the report gives too;
- perhaps `end()`, called after all parts, whatever comes of them.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks import report
from conformance.circumstances import circumstances

__all__ = ["Part", "Row", "run"]

ROOT = Path(__file__).parents[1]
CODE = ("prplugin", "benchmarks", "conformance")
SUFFIXES = {".py", ".cu", ".cuh"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """What is run as a whole, or not again.

    Attributes
    ----------
    name : str
    rows : function
        Gives its rows, one after the other.
    size : float
        How long it takes beside other parts.
    """

    name: str
    rows: Callable[[], Iterable[Row]]
    size: float = 1.0


def run(
    name: str, benchmark: Any, data: Path | None, quick: bool, options: dict[str, Any], output: Path, command: str
) -> list[Row]:
    """Run what an interrupted run has left, write rows as they come, and report.

    A run goes on where one was interrupted on the same machine, with the same versions, code and command.

    Parameters
    ----------
    options : dict
        Of this benchmark alone.
    output : path
        The folder of its files.
    command : str
        That is being carried out.
    """
    console = Console(width=160)
    packages = getattr(benchmark, "PACKAGES", ())
    about = {**circumstances(command, packages), "code": _fingerprint()}
    file = output / f"{name}.json"
    results, done = _interrupted(file, about)
    parts = _parts(benchmark, data, quick, options)
    left = [part for part in parts if part.name not in done]
    if done:
        console.log(f"{name}: {len(parts) - len(left)} of {len(parts)} parts are there from a run that was interrupted")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with ExitStack() as stack:
        bar = stack.enter_context(Progress(*columns, console=console, transient=True, speed_estimate_period=3600))
        stack.callback(getattr(benchmark, "end", lambda: None))
        task = bar.add_task(name, total=sum(part.size for part in left))
        for number, part in enumerate(left, len(parts) - len(left) + 1):
            bar.update(task, description=f"{name}, {number} of {len(parts)}: {part.name}")
            for row in part.rows():
                results.append({**row, "part": part.name})
                console.log(report.line(benchmark, row), markup=False)
                _save(file, benchmark, about, results, done, finished=False)
            gc.collect()  # what it held is free for the next
            done.append(part.name)
            about |= circumstances(command, packages)  # by now all is loaded whose versions are asked for
            bar.advance(task, part.size)
    _save(file, benchmark, about, results, done, finished=True)
    report.write(benchmark, name, about, results, output)
    report.show(console, benchmark, results)
    return results


def _parts(benchmark: Any, data: Path | None, quick: bool, options: dict[str, Any]) -> list[Part]:
    if hasattr(benchmark, "parts"):
        parts: list[Part] = benchmark.parts(data, quick, **options)
        return parts
    return [Part("all", lambda: benchmark.rows(data, quick, **options))]


def _save(
    file: Path, benchmark: Any, about: dict[str, Any], results: list[Row], done: list[str], *, finished: bool
) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = {
        **about,
        "finished": finished,
        "parts": done,
        "keys": list(report.keys(benchmark, results)),
        "rows": results,
    }
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(kept, indent=1) + "\n")
    beside.replace(file)  # whoever interrupts leaves the old or the new one


def _interrupted(file: Path, about: dict[str, Any]) -> tuple[list[Row], list[str]]:
    """Return the rows of the parts that an interrupted run like this one has finished, and their names."""
    try:
        before = json.loads(file.read_text())
    except (OSError, ValueError):
        return [], []
    same = all(before.get(what) == about[what] for what in ("command", "commit", "machine", "code"))
    # What a folder holds without its package's papers has a version only once it is imported.
    same = same and about["versions"].items() <= before["versions"].items()
    if before.get("finished", True) or not same:
        return [], []
    done = before["parts"]
    return [row for row in before["rows"] if row["part"] in done], done


def _fingerprint() -> str:
    """Return a hash of the code: a commit does not tell one changed tree from another."""
    known = hashlib.sha256()
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES):
        known.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return known.hexdigest()[:16]
