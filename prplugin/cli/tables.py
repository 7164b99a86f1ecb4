"""Print tables on standard output; nothing is cut where it is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import TYPE_CHECKING

from prplugin.cli.figures import per_second
from prplugin.io.formats import STANDARD_OUTPUT, check_standard_output, errors_named
from prplugin.tables import console, table, upward

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from prplugin import Graph, Ranking

__all__ = ["print_line", "print_ranks", "print_table", "summary"]


def print_ranks(frame: pd.DataFrame) -> None:
    """Print ranks in their order."""
    names = [str(name) for name in frame.columns]
    rows = [
        [str(place), *(_name(value) for value in row[:-1]), f"{row[-1]:.6g}"]
        for place, row in enumerate(frame.itertuples(index=False, name=None), 1)
    ]
    print_table(["", *names], rows, text=len(names) - 1, numbered=True)


def print_table(head: list[str], rows: list[list[str]], *, text: int, numbered: bool = False) -> None:
    """Print a table; align the first `text` columns to the left, after that of the row number if there is one."""
    _print(table(head, rows, left=range(numbered, text + numbered)))


def print_line(line: str) -> None:
    """Print one line."""
    from rich.text import Text

    _print(Text(line))


def summary(graph: Graph, ranking: Ranking, seconds: float, unused_weight: Hashable = None) -> str:
    """Return one line on the graph, the method, the error bound, a column of weights that is not used, and the time."""
    unused = "" if unused_weight is None else f"column {unused_weight!r} is not used (--weight {unused_weight}); "
    n, m = graph.number_of_vertices, graph.number_of_edges
    return (
        f"{n:,} vertices, {m:,} edges; {ranking.method}, {ranking.iterations} iterations; "
        f"error at most {upward(ranking.error_bound)} (proved); "
        f"{unused}{seconds:.3g} s, {per_second(m, seconds)} edges/s"
    )


def _name(value: object) -> str:
    """Return an id as text, with escapes if it is not printable."""
    text = str(value)
    return text if text.isprintable() else repr(text)


def _print(what: RenderableType) -> None:
    with errors_named(STANDARD_OUTPUT):
        check_standard_output()
        console(sys.stdout).print(what)
