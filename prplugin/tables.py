"""Tables for consoles, for the text of a `repr`, and as HTML for notebooks."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Container
from decimal import ROUND_CEILING, Context
from typing import IO, Any, NamedTuple

NOTEBOOK_WIDTH = 100  # width in characters of output in a notebook, which does not wrap preformatted text

UNLIMITED = 1 << 16  # width in characters of output to files, large enough to avoid truncation and wrapping


class Display(NamedTuple):
    """Representation of an object: a title, a table, and a remark below it.

    The header is omitted if `head` is empty. The columns at the positions in `left` are aligned to the left.
    """

    title: str
    head: list[str]
    rows: list[list[str]]
    left: Container[int] = ()
    remark: str = ""

    def text(self) -> str:
        """Return the representation as plain text."""
        lines = [self.title]
        if self.rows:
            file = io.StringIO()
            console(file).print(table(self.head, self.rows, self.left, ruled=False))
            lines += [line.rstrip() for line in file.getvalue().splitlines()]
        return "\n".join([*lines, self.remark] if self.remark else lines)

    def html(self) -> str:
        """Return the representation as HTML."""
        from html import escape  # lazy import: it takes as long as a small ranking

        def row(cells: list[str], tag: str) -> str:
            sides = ("left" if position in self.left else "right" for position in range(len(cells)))
            pairs = zip(cells, sides, strict=True)
            return "".join(f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for cell, side in pairs)

        content = f"<p>{escape(self.title)}</p>"
        if self.rows:
            body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in self.rows)
            head = f"<thead><tr>{row(self.head, 'th')}</tr></thead>" if self.head else ""
            content += f"<table>{head}<tbody>{body}</tbody></table>"
        return f"<div>{content}<p>{escape(self.remark)}</p></div>" if self.remark else f"<div>{content}</div>"


class Displayed:
    """Base class of objects that `_display` represents, as text or, in a notebook, as HTML."""

    def _display(self) -> Display:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._display().text()

    def _repr_html_(self) -> str:
        return self._display().html()


def console(file: IO[str] | None) -> Any:
    """Return a rich console that writes to a file, or if it is None to standard output or a notebook's cell.

    Lines are wrapped on a terminal and in a notebook only.
    """
    from rich.console import Console

    terminal = file is not None and file.isatty()
    built = Console(
        width=None if terminal else UNLIMITED,
        file=file,
        highlight=False,
        color_system="auto" if (file or sys.stdout).isatty() else None,
        # In a notebook, rich would otherwise display output for a file in the cell.
        force_jupyter=None if file is None else False,
    )
    if built.is_jupyter:
        built.width = NOTEBOOK_WIDTH
    return built


def table(head: list[str], rows: list[list[str]], left: Container[int], *, ruled: bool = True) -> Any:
    """Return a rich table; the columns at the positions in `left` are aligned to the left, the others to the right.

    The header is omitted if `head` is empty.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    built = Table(
        box=box.SIMPLE_HEAD if ruled else None, show_header=bool(head), show_edge=False, pad_edge=False, padding=(0, 1)
    )
    for position, name in enumerate(head or [""] * len(rows[0])):
        built.add_column(Text(name), justify="left" if position in left else "right", overflow="fold")
    for row in rows:
        built.add_row(*map(Text, row))  # rich would interpret a str such as [red] as markup
    return built


def upward(bound: float) -> str:
    """Format a proved bound with two digits, rounded up."""
    if not math.isfinite(bound) or bound == 0:
        return f"{bound:g}"
    return f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal(bound):.1e}"
