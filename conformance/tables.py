"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["short", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in [head, ["---"] * len(head), *rows]]


def short(value: float | None) -> str:
    """Spell a number to two digits, and None as nothing."""
    return "" if value is None else f"{value:.2g}"
