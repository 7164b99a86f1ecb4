"""Which methods the tests run: all of them, each skipped with its reason where it cannot run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prplugin.gpu.runtime import missing
from prplugin.machine import this_machine
from prplugin.methods.registry import methods

__all__ = ["GPU_METHODS", "METHODS", "examples", "param", "same_ranks"]


def param(name: str, *others: Any) -> Any:
    """A method and whatever goes with it, marked and skipped as the method asks."""
    method = methods()[name]
    marks = [pytest.mark.gpu] if method.runs_on == "gpu" else []
    if reason := method.unavailable_reason(None, this_machine()):
        marks.append(pytest.mark.skip(reason=f"{name}: {reason}"))
    return pytest.param(name, *others, marks=marks, id="-".join(map(str, (name, *others))))


METHODS = [param(name) for name in methods()]
GPU_METHODS = {name for name, method in methods().items() if method.runs_on == "gpu"}


def examples(count: int) -> int:
    """Draw a tenth of the examples where the GPU's methods run as well, of which some time kernels for each."""
    return count if missing() else count // 10


def same_ranks(method: str, one: Any, other: Any) -> bool:
    """Say whether ranks are the same to the bit, as a method's are, or all but so where it says that they vary."""
    if getattr(methods()[method], "nondeterministic", False):
        return bool(np.abs(one - other).sum() < 1e-14)
    return bool(one.tobytes() == other.tobytes())
