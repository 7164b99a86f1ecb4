"""Timing two things fairly: warmed up, in turn, with every sample kept."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Timed", "alternately"]


@dataclass
class Timed:
    """The samples of one thing, and its last result."""

    seconds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def median(self) -> float:
        """The middle sample."""
        return statistics.median(self.seconds)


def alternately(*things: Callable[[], Any], runs: int, warm: bool = False) -> list[Timed]:
    """Time things in turn, A B A B ..., after one round that is not counted unless they are warm already."""
    timed = [Timed() for _ in things]
    for run in range(warm, runs + 1):
        for thing, record in zip(things, timed, strict=True):
            began = time.perf_counter()
            record.result = thing()
            if run:
                record.seconds.append(time.perf_counter() - began)
    return timed
