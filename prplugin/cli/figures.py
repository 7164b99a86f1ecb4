"""Format bounds and rates."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context

__all__ = ["per_second", "upward"]


def upward(bound: float) -> str:
    """Return a proved bound in two digits, rounded up."""
    if not math.isfinite(bound) or bound == 0:
        return f"{bound:g}"
    return f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal(bound):.1e}"


def per_second(count: int, seconds: float) -> str:
    """Return a rate in three digits: ``12.3 million``, ``4,560``."""
    rate = count / seconds if seconds > 0 else 0.0
    if rate >= 1e6:
        return f"{rate / 1e6:,.3g} million"
    return f"{float(f'{rate:.3g}'):,.0f}"
