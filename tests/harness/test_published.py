"""Comparison of every method with the values that NetworkX, NetworKit, LAGraph and LDBC publish for their tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from method_params import METHODS

from conformance import published
from conformance.compare import DTYPES, compare, library_for

FILES = published.files() or [pytest.param(None, marks=pytest.mark.skip(reason=published.ABSENT))]


@pytest.mark.filterwarnings("default")  # cuDF raises warnings of its own
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem if file else "missing")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_ranks_agree_with_published_values(method: str, dtype: str, file: Path) -> None:
    result = compare(published.read(file), method, dtype, library_for(method))
    assert result.outcome == "ranked"
    assert not result.failures


def test_published_values_are_in_the_data_folder(data_dir: Path) -> None:
    assert {file.parent for file in published.files()} == {data_dir / "expected"}
