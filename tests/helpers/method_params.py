"""Parameter sets for tests of every method; a method that cannot run here is skipped with the reason."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from prplugin.gpu.runtime import unavailable_reason
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = ["GPU_METHODS", "METHODS", "examples", "param", "same_ranks"]


def param(name: str, *others: Any, slow: bool = False) -> Any:
    """Return a parameter set that begins with a method, marked `gpu` or skipped as the method requires."""
    method = methods()[name]
    marks = [pytest.mark.slow] if slow else []
    if method.runs_on == "gpu":
        marks.append(pytest.mark.gpu)
    if reason := _unavailable_reason(name):
        marks.append(pytest.mark.skip(reason=f"{name}: {reason}"))
    return pytest.param(name, *others, marks=marks, id="-".join(map(str, (name, *others))))


@cache
def _unavailable_reason(name: str) -> str | None:
    return methods()[name].unavailable_reason(None, this_machine())


METHODS = [param(name) for name in methods()]
GPU_METHODS = {name for name, method in methods().items() if method.runs_on == "gpu"}


def examples(count: int) -> int:
    """Return how many examples hypothesis draws: `count` with the profile `thorough`, a quarter of it by default.

    With a GPU, a tenth of that: some GPU methods time kernels for each example.
    """
    drawn = count * settings.default.max_examples // 100
    return max(2, drawn if unavailable_reason() else drawn // 10)


def same_ranks(method: str, one: Any, other: Any) -> bool:
    """Return whether ranks have the same bits, or differ only by rounding if the method is nondeterministic."""
    if getattr(methods()[method], "nondeterministic", False):
        return bool(np.abs(one - other).sum() < 1e-14)
    return bool(one.tobytes() == other.tobytes())
