"""Every method against the values that NetworkX, NetworKit, LAGraph and LDBC publish for their own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import METHODS

from conformance import published
from conformance.compare import DTYPES, compare, library_for

FILES = published.files() or [pytest.param(None, marks=pytest.mark.skip(reason=published.ABSENT))]


@pytest.mark.filterwarnings("default")  # cuDF warns of itself
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem if file else "absent")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_published(method: str, dtype: str, file: Path) -> None:
    result = compare(published.read(file), method, dtype, library_for(method))
    assert result.outcome == "ranked"
    assert not result.failures


def test_the_folder_that_the_other_tests_find_has_published_values(data_dir: Path) -> None:
    assert {file.parent for file in published.files()} == {data_dir / "expected"}
