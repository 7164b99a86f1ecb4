from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

from prplugin.gpu.runtime import missing

# By default the same few examples in every run, so that a failure is due to a change. `--hypothesis-profile=thorough`
# draws four times as many, others in every run unless `--hypothesis-seed` is given.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("thorough", derandomize=False, deadline=None, max_examples=100)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-xdist run the tests of a file in one process: they share fixtures and compiled kernels."""
    if config.getoption("dist", "no") == "load":
        config.option.dist = "loadfile"


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection, which would traverse them in every call of gc.collect."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Undo `pytest_collection_finish`: modules must be freed at exit."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line how many tests were skipped for want of a GPU."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "gpu" in report.keywords]
    if skipped and (reason := missing()):
        terminalreporter.line(f"{len(skipped):,} tests for the GPU were skipped: {reason}")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real graphs and published values, where there is one."""
    places = [os.environ.get("PRPLUGIN_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for place in places:
        if place and (Path(place) / "graphs").is_dir():
            return Path(place)
    pytest.skip("real graphs and published values are not here: set PRPLUGIN_DATA to their folder")
