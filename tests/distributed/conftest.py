"""Fixtures of tests of frames of Dask, on CPUs and GPUs."""

from __future__ import annotations

import pytest


@pytest.fixture
def on_all_workers(request, monkeypatch):
    """Let all workers rank, although one would suffice, unless a test is about that choice."""
    if "one_worker" not in request.fixturenames:
        monkeypatch.setattr("prplugin.distributed.workers.MOST_THREADS", 0)


@pytest.fixture
def one_worker():
    """Let the package choose the number of workers."""
