"""Counts of the calls that the CUDA driver receives, by CUPTI: from this package, CuPy and cuDF alike."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

DRIVER_API = 1
ENTER = 0


class CallbackData(ctypes.Structure):
    """The leading fields of ``CUpti_CallbackData``."""

    _fields_ = (("site", ctypes.c_int), ("name", ctypes.c_char_p))


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Count the calls of each driver function within the block; skip the test where CUPTI is not installed."""
    pathfinder = pytest.importorskip("cuda.pathfinder")
    try:
        cupti = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cupti").abs_path)
    except pathfinder.DynamicLibNotFoundError as error:
        pytest.skip(f"it needs CUPTI: {error}")
    calls: Counter[str] = Counter()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(CallbackData))
    def count(user, domain, function, data):
        if data.contents.site == ENTER:
            calls[data.contents.name.decode()] += 1

    subscriber = ctypes.c_void_p()
    assert cupti.cuptiSubscribe(ctypes.byref(subscriber), count, None) == 0
    try:
        assert cupti.cuptiEnableDomain(1, subscriber, DRIVER_API) == 0
        yield calls
    finally:
        cupti.cuptiUnsubscribe(subscriber)
