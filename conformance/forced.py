"""Options of the methods that `method="auto"` and the defaults seldom choose; they run on every shape.

They set splits between GPU and CPU, segments of the host, saved schedules, thresholds, lanes, launch configurations,
and the smallest pieces and chunks. To add an option, add it to `FORCED`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import prplugin
from conformance.references import Case
from prplugin.papers.segmented import Schedule, Segment

__all__ = ["FORCED", "Forced"]

Options: TypeAlias = dict[str, Any]

MANY = 1 << 40
"""Threshold that exceeds the in-degree of every vertex."""


class Forced(NamedTuple):
    """Options of a method: their text, and a function that returns them from a case and a folder for files.

    `rule`: Arguments of `rank` instead of the case's, for a form of a paper. It follows the rule by its own iterates,
    in float32, so that only the error bound is checked; and it refuses weights and personalization.
    """

    text: str
    options: Callable[[Case, Path], Options]
    rule: Options | None = None


def _fixed(**options: Any) -> Forced:
    text = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return Forced(text, lambda case, folder: options)


RULES: tuple[Options, ...] = (
    {"stop": "error", "tol": 1e-5}, {"stop": "delta", "tol": 1e-4}, {"stop": "vertex", "tol": 1e-4},
    {"stop": "networkx", "tol": 1e-5}, {"stop": "error", "tol": 0, "max_iter": 3},
)  # fmt: skip
"""Stopping rules of the forms of the papers."""


def _forms(**options: Any) -> list[Forced]:
    """Return a form of a paper, by default "paper", with every rule."""
    options = {"form": "paper"} | options
    return [_fixed(**options)._replace(text=_fixed(**options, **rule).text, rule=rule) for rule in RULES]


@lru_cache(maxsize=1)
def _schedule(case: Case) -> Schedule:
    """Return the measured schedule of a case, from which others are derived."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.json"
        prplugin.Graph(case.frame, **case.graph).rank(alpha=0.85, method="segmented", save=path)
        return Schedule.load(path)


def _saved(case: Case, folder: Path) -> Options:
    path = folder / "schedule.json"
    _schedule(case).save(path)
    return {"schedule": path}


def _on_the_host(segments: slice) -> Callable[[Case, Path], Options]:
    """Return a function that returns the measured schedule with these segments on the host."""

    def options(case: Case, folder: Path) -> Options:
        schedule = _schedule(case)
        placed = list(schedule.segments)
        placed[segments] = [Segment(method="host", threads=2) for _ in placed[segments]]
        return {"schedule": replace(schedule, segments=tuple(placed)), "cpu": True}

    return options


FORCED: Mapping[str, Iterable[Forced]] = {
    "binned": [
        _fixed(thresholds=(0, 0)), _fixed(thresholds=(0, 1)), _fixed(thresholds=(1, 2)),
        _fixed(thresholds=(2, MANY)), _fixed(thresholds=(MANY, MANY)), *_forms(),
    ],
    "block": [_fixed(threads=32, blocks=1), _fixed(threads=1024), *_forms()],
    "cpu-split": [
        *(_fixed(split=split) for split in (0, 1, 2, "all", [2, 1, 0], ["all", 1, "all"])),
        _fixed(split=1, threads=1), _fixed(split=1, block_threads=1000),
        _fixed(split=1, by_degree=True), _fixed(split=[2, 1, 0], by_degree=True),
        *_forms(split=2), _fixed(form="paper")._replace(rule=RULES[0]),
    ],
    "dense": [*(_fixed(threads=threads) for threads in (8, 16, 32, 1024)), *_forms()],
    "edge": [_fixed(threads=32, blocks=1), _fixed(threads=1000, blocks=1000), *_forms()],
    "expanded": [_fixed(piece_bytes=256, threads=32), _fixed(piece_bytes=32768, threads=1024)],
    "node": [
        _fixed(threads=32, blocks=1), _fixed(threads=1000, blocks=1000),
        *(forced for form in ("paper", "bowen", "wu") for forced in _forms(form=form)),
    ],
    "native": [_fixed(threads=1), _fixed(threads=3)],
    "propagation-blocking": [_fixed(tile=32, piece=32), _fixed(tile=32), _fixed(piece=32)],
    "segmented": [
        _fixed(segments=1), _fixed(segments=3), _fixed(cpu=True),
        Forced("a schedule saved and loaded", _saved),
        Forced("every second segment on the host", _on_the_host(slice(None, None, 2))),
        Forced("the others on the host", _on_the_host(slice(1, None, 2))),
        Forced("all segments on the host", _on_the_host(slice(None))),
        *_forms(segments=2), *_forms(segments=2, cpu=True),
    ],
    "streamed": [
        _fixed(chunk_bytes=1), _fixed(chunk_bytes=20_000),
        Forced("chunk_bytes=1, in a file", lambda case, folder: {"chunk_bytes": 1, "directory": folder}),
    ],
    "warp": [*(_fixed(lanes=lanes) for lanes in (4, 8, 16, 32)), _fixed(lanes=4, threads=32, blocks=1),
        *_forms(), *_forms(form="wu"), *_forms(form="wu", lanes=64),
    ],
}  # fmt: skip
"""Options by method."""
