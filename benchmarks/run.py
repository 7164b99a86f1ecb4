"""Runner of benchmarks, which shows progress, stores each row immediately, and resumes interrupted runs.

A benchmark is a module with these attributes, the last six of which are optional:

- `parts(data, quick)`, which returns its `Part`s, or `rows(data, quick)` if it has only one part;
- `COLUMNS` of its table, or `TABLES`, columns by title; a row then has the title of its table as "table";
- `KEYS`: columns that identify a row; default: those with text;
- `summary(results)`: a text and a table;
- `figure(results)`, or `figures(results)`, which returns figures by name;
- `files(results)`: further text files by name;
- `PACKAGES`: additional packages whose versions the report lists;
- `end()`, called after all parts, also after an error.
"""

from __future__ import annotations

import gc
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks import report
from conformance.circumstances import circumstances

ROOT = Path(__file__).parents[1]
CODE = ("prplugin", "benchmarks", "conformance")
SUFFIXES = {".py", ".cpp", ".hpp", ".cu", ".cuh"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Unit of work of a run; a resumed run skips finished parts.

    Attributes
    ----------
    name : str
    rows : function
        Yields its rows.
    size : float
        Its duration relative to other parts.
    """

    name: str
    rows: Callable[[], Iterable[Row]]
    size: float = 1.0


def chosen(parts: list[Part], only: Sequence[str]) -> list[Part]:
    """Return the parts whose name contains one of the given texts; all without any."""
    return [part for part in parts if not only or any(text in part.name for text in only)]


def run(
    name: str, benchmark: Any, data: Path | None, quick: bool, options: dict[str, Any], output: Path, command: str
) -> list[Row]:
    """Run the parts that an interrupted run has not finished, store each row immediately, and write the report.

    An interrupted run is resumed if machine, versions, code and command are the same.

    Parameters
    ----------
    options : dict
        Options of this benchmark.
    output : path
        Folder of the files that are written.
    command : str
        Command line, for the report.
    """
    began, console = time.perf_counter(), Console(width=160)
    packages = getattr(benchmark, "PACKAGES", ())
    about = {**circumstances(command, packages), "code": _fingerprint()}
    file = output / f"{name}.json"
    results, done = _interrupted(file, about)
    parts = _parts(benchmark, data, quick, options)
    remaining = [part for part in parts if part.name not in done]
    if done:
        console.log(f"{name}: {len(parts) - len(remaining)} of {len(parts)} parts were finished by an interrupted run")
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
        task = bar.add_task(name, total=sum(part.size for part in remaining))
        for number, part in enumerate(remaining, len(parts) - len(remaining) + 1):
            bar.update(task, description=f"{name}, {number} of {len(parts)}: {part.name}")
            for row in part.rows():
                results.append({**report.complete(benchmark, row), "part": part.name})
                console.log(report.format_row(benchmark, results[-1]), markup=False)
                _save(file, benchmark, about, results, done, finished=False)
            gc.collect()  # release the memory of the part
            done.append(part.name)
            about |= circumstances(command, packages)  # all packages are loaded now, and have versions
            bar.advance(task, part.size)
    _save(file, benchmark, about, results, done, finished=True)
    report.write(benchmark, name, about, results, output)
    report.show(console, benchmark, results)
    console.print(f"{name} took {timedelta(seconds=round(time.perf_counter() - began))}")
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
    temporary = file.with_suffix(".part")
    temporary.write_text(json.dumps(kept, indent=1) + "\n")
    temporary.replace(file)  # atomic: after an interrupt, the file is the old or the new one


def _interrupted(file: Path, about: dict[str, Any]) -> tuple[list[Row], list[str]]:
    """Return the rows and names of the parts that an interrupted run of the same kind has finished."""
    try:
        before = json.loads(file.read_text())
    except (OSError, ValueError):
        return [], []
    same = all(before.get(what) == about[what] for what in ("command", "commit", "machine", "code"))
    # A package without metadata has a version only after its import.
    same = same and about["versions"].items() <= before["versions"].items()
    if before.get("finished", True) or not same:
        return [], []
    done = before["parts"]
    return [row for row in before["rows"] if row["part"] in done], done


def _fingerprint() -> str:
    """Return a hash of the code, which also identifies uncommitted changes."""
    known = hashlib.sha256()
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES):
        known.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return known.hexdigest()[:16]
