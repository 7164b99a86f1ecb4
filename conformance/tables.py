"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["short", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in [head, ["---"] * len(head), *rows]]


def short(value: float | None) -> str:
    """Format a number to two digits, and None as an empty string."""
    return "" if value is None else f"{value:.2g}"
