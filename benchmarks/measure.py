"""Timing two things fairly: warmed up, in turn, with every sample kept."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Timed", "alternately", "repeatedly", "sampled"]

PATIENCE = 10


@dataclass
class Timed:
    """The samples of one thing, and its last result."""

    seconds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def median(self) -> float:
        """The middle sample."""
        return statistics.median(self.seconds)


def alternately(
    *things: Callable[[], Any], runs: int, warm: bool = False, before: Callable[[], object] | None = None
) -> list[Timed]:
    """Time things in turn, A B A B ..., after one round that is not counted unless they are warm already.

    What is called before each is not counted either: it clears away what the other one has left.
    """
    timed = [Timed() for _ in things]
    for run in range(warm, runs + 1):
        for thing, record in zip(things, timed, strict=True):
            if before is not None:
                before()
            began = time.perf_counter()
            record.result = thing()
            if run:
                record.seconds.append(time.perf_counter() - began)
    return timed


def repeatedly(thing: Callable[[], Any], *, runs: int, limit: float) -> list[float]:
    """Sample the seconds of a thing, as `sampled` does."""

    def once() -> float:
        began = time.perf_counter()
        thing()
        return time.perf_counter() - began

    return sampled(once, runs=runs, limit=limit)


def sampled(once: Callable[[], float], *, runs: int, limit: float) -> list[float]:
    """Collect the seconds that something says it took, after once that is not counted.

    As many as `runs`, or fewer as soon as those counted take `limit` seconds together; one at least. Where the first
    takes more than `PATIENCE` times that, it is the one sample.
    """
    first = once()
    if first > PATIENCE * limit:
        return [first]
    seconds = [once()]
    while len(seconds) < runs and sum(seconds) < limit:
        seconds.append(once())
    return seconds


def in_a_process(script: str, *words: str, **environment: str) -> list[float]:
    """Run a script in a fresh process of this Python, with more in its environment; give the seconds that it prints.

    Raises
    ------
    RuntimeError
        With the end of what it complains of, if it fails.
    """
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-200:])
    seconds: list[float] = json.loads(done.stdout)
    return seconds
