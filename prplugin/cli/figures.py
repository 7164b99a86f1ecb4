"""Format rates."""

from __future__ import annotations

__all__ = ["per_second"]


def per_second(count: int, seconds: float) -> str:
    """Return a rate in three digits: ``12.3 million``, ``4,560``."""
    rate = count / seconds if seconds > 0 else 0.0
    if rate >= 1e6:
        return f"{rate / 1e6:,.3g} million"
    return f"{float(f'{rate:.3g}'):,.0f}"
