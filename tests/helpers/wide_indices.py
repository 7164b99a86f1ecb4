"""Graphs of 64-bit vertex positions, which otherwise need 2**31 vertices."""

from __future__ import annotations

import numpy as np


def use_wide_indices(monkeypatch) -> None:
    """Make graphs on the host with 64-bit positions of vertices."""
    for module in ("graph.factorize", "cpu.factorize", "cpu.group"):
        monkeypatch.setattr(f"prplugin.{module}.index_dtype", lambda n: np.dtype(np.int64))
