"""Facts about the machine that the choice of a method rests on."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["COMPILED_FROM", "Machine", "this_machine"]

COMPILED_FROM = 1 << 20
"""Edges from which Numba's kernels are worth the start of Numba, and once a machine their compilation.

Measured in docs/decisions/0002-numpy-below-numba-above.md.
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a method may use.

    Attributes
    ----------
    threads : int
        How many threads this process may run at once.
    """

    threads: int


def this_machine() -> Machine:
    """Look at the machine that this process runs on, and at the share of it that the process may use."""
    try:
        threads = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity
        threads = os.cpu_count() or 1
    return Machine(threads=threads)
