from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so that a failure is due to a change; HYPOTHESIS_PROFILE=search draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real graphs and published values, where there is one."""
    places = [os.environ.get("PRPLUGIN_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for place in places:
        if place and (Path(place) / "graphs").is_dir():
            return Path(place)
    pytest.skip("real graphs and published values are not here: set PRPLUGIN_DATA to their folder")
