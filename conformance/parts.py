"""Results of a part of the suite, in a file with one line of JSON per unit, written as soon as the unit is done.

An interrupted part is continued after its last complete line. `joined` reads the files of all parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conformance.against_cugraph import Comparison
from conformance.compare import Result
from conformance.probes import Finding
from conformance.work import UnitResult

__all__ = ["PartError", "PartFile", "joined"]


class PartError(Exception):
    """A file of results cannot be continued or joined."""


class PartFile:
    """File of a part.

    Attributes
    ----------
    path : Path
    done : dict
        Results of an earlier run, by number of the unit.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """Create the file, or continue a file of the same command, commit, machine and units."""
        self.path = path
        self.done: dict[int, UnitResult] = {}
        if path.exists():
            before, self.done = _read(path)
            if differ := _differences(before, about):
                raise PartError(f"{path} is of {differ}: delete it, or choose another --output.")
        path.parent.mkdir(parents=True, exist_ok=True)
        # An incomplete last line is omitted.
        path.write_text(_line(about) + "".join(_line(_plain(*item)) for item in self.done.items()), encoding="utf-8")

    def add(self, number: int, result: UnitResult) -> None:
        """Append the result of a unit."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(_plain(number, result)))


def joined(folder: Path) -> tuple[dict[str, Any], dict[int, UnitResult]]:
    """Return the circumstances of the parts in a folder, and their results by number of the unit."""
    paths = sorted(folder.glob("part-*.jsonl"))
    if not paths:
        raise PartError(f"{folder} has no part-*.jsonl.")
    about, done = _read(paths[0])
    for path in paths[1:]:
        other, results = _read(path)
        if differ := _differences(about, other):
            raise PartError(f"{path} and {paths[0]} are of {differ}.")
        done |= results
    if len(paths) > 1:
        about["environment"]["command"] += f", in {len(paths)} parts"
    return about, done


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the differences between two parts that prevent joining them, as text; empty if there are none."""
    names = [
        name for name in ("command", "commit", "machine") if one["environment"][name] != other["environment"][name]
    ]
    names = [f"another {name}" for name in names]
    return " and ".join([*names, *["another number of units"] * (one["units"] != other["units"])])


def _read(path: Path) -> tuple[dict[str, Any], dict[int, UnitResult]]:
    """Read a file, except for an incomplete last line."""
    about, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines(True) if line[-1] == "\n"]
    return about, {line["unit"]: _result(line) for line in lines}


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(content) + "\n"


def _plain(number: int, result: UnitResult) -> dict[str, Any]:
    return {
        "unit": number,
        "references": result.reference_results,
        "results": [asdict(found) for found in result.results],
        "comparisons": [asdict(found) for found in result.comparisons],
        "findings": [finding._asdict() for finding in result.findings],
    }


def _result(line: Mapping[str, Any]) -> UnitResult:
    return UnitResult(
        [(name, outcome) for name, outcome in line["references"]],
        [Result(**found) for found in line["results"]],
        [Comparison(**found) for found in line["comparisons"]],
        [Finding(**found) for found in line["findings"]],
    )
