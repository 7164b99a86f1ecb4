from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from prplugin.gpu.runtime import unavailable_reason

# The default profile draws the same few examples in every run, so that a new failure is due to a change of the code.
# `--hypothesis-profile=thorough` draws four times as many, and different ones in every run unless
# `--hypothesis-seed` is given.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("thorough", derandomize=False, deadline=None, max_examples=100)
settings.load_profile("repeatable")

LEFT_OUT = pytest.StashKey[int]()
"""Number of the tests that need a GPU, where there is none."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Make pytest-xdist run the tests of a file in one process: they share fixtures and compiled kernels.

    Compilations by NVRTC share nothing and together take longer than any other file, so they are distributed one by one.
    Files keep their order: sorted by numbers of tests, the few slow ones of Dask would begin last.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False

    class FileScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if "test_every_variant_compiles[" in nodeid else file

    return FileScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that need a GPU if there is none: to skip each of thousands takes many seconds."""
    if unavailable_reason() is None:
        return
    left_out = [item for item in items if item.get_closest_marker("gpu")]
    config.stash[LEFT_OUT] = len(left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("gpu")]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the main process of pytest-xdist how many tests this worker has left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep what a worker has left out: each collects all tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", 0)


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection, which would traverse them in every call of gc.collect."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Undo `pytest_collection_finish`: modules must be freed at exit."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report in one line how many tests were left out because there is no GPU."""
    if left_out := terminalreporter.config.stash.get(LEFT_OUT, 0):
        terminalreporter.line(f"{left_out:,} GPU tests were left out: {unavailable_reason()}")


@pytest.fixture
def set_available_bytes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that lets the machine have so many bytes of available memory."""
    return lambda size: monkeypatch.setattr("prplugin.machine.bytes_available", lambda: size)


@pytest.fixture
def hide_kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that lets the package be as without compiled kernels, for the given reason."""
    return lambda reason: monkeypatch.setattr("prplugin.cpu.library.unavailable_reason", lambda: reason)


@pytest.fixture
def group_in_numpy(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that lets edges be read and grouped by NumPy, though methods have their compiled kernels."""
    return lambda: monkeypatch.setattr("prplugin.cpu.library.is_available", lambda: False)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real graphs and published values; skip the test if there is none."""
    folders = [os.environ.get("PRPLUGIN_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for folder in folders:
        if folder and (Path(folder) / "graphs").is_dir():
            return Path(folder)
    pytest.skip("there is no folder of real graphs and published values: set PRPLUGIN_DATA to it")
