"""Text that prplugin shows to users: error messages and explanations of rankings."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import prplugin

__all__ = ["error_message", "explanation"]


def error_message(call: Callable[[], Any]) -> str:
    """Return the message of the `PageRankError` that a call raises."""
    with pytest.raises(prplugin.PageRankError) as caught:
        call()
    return str(caught.value)


def explanation(ranking: Any) -> str:
    """Return the text that `explain` writes."""
    file = io.StringIO()
    ranking.explain(file)
    return file.getvalue()
