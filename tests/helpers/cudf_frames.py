"""cuDF and CuPy where they can be used, and the marks of tests that need them."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from subprocesses import run_python

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cudf
        import cupy
    cupy.cuda.runtime.getDeviceCount()
    missing = None
except Exception as error:  # without a GPU cuDF raises errors of many types
    cudf = cupy = None
    missing = f"cuDF cannot be used here: {type(error).__name__}: {error}"


REQUIRES_CUDF = [
    pytest.mark.gpu,
    pytest.mark.skipif(missing is not None, reason=str(missing)),
    pytest.mark.filterwarnings("default"),  # cuDF raises warnings of its own
]


def on_gpu(frame):
    return cudf.from_pandas(frame)


def as_list(column):
    return column.to_pandas().tolist()


def run(*arguments):
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return run_python(*arguments, env={**os.environ, "PYTHONPATH": paths})
