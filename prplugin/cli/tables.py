"""Print tables on standard output; ids are never cut."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from prplugin.errors import PageRankError, counted, path_errors
from prplugin.io.formats import STANDARD_OUTPUT, check_standard_output
from prplugin.result.groups import GroupRankings
from prplugin.result.ranking import Rankings
from prplugin.tables import console, table, upward
from prplugin.types.arrays import highest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from prplugin import Graph, Ranking
    from prplugin.io import EdgeFile
    from prplugin.io.adjacency import AdjacencyFile

GROUPS = 10  # number of groups of which ranks are printed

WIDTH = 80  # width in characters of wrapped text if standard output is not a terminal


def print_ranks(ranking: Ranking, shown: int) -> None:
    """Print the highest ranks, per seed or of each of the first groups, and whether their order is proved."""
    frame = ranking.frame
    ranks, rows = frame["pagerank"].to_numpy(), []
    ends = np.cumsum(ranking._counts if isinstance(ranking, Rankings) else [len(frame)]).tolist()
    more = len(ends) - GROUPS if isinstance(ranking, GroupRankings) else 0
    for begin, end in pairwise([0, *(ends[:GROUPS] if more > 0 else ends)]):
        chosen = frame.iloc[begin + highest(ranks[begin:end], shown)]
        for position, (*ids, rank) in enumerate(chosen.itertuples(index=False, name=None), 1):
            names = [text if (text := str(name)).isprintable() else repr(text) for name in ids]
            rows.append([str(position), *names, f"{rank:.6g}"])
    show(table(["", *map(str, frame.columns)], rows, left=range(1, frame.shape[1])))
    if more > 0:
        show(f"and {counted(more, 'more group')}; --output writes all")
    if ranking._order is not None:
        show(f"order of the {ranking._order.rows.size:,} highest: {'' if ranking.certified else 'not '}proved")
        for tie in ranking.ties:
            status = "proved equal" if tie.equal else "order not proved"
            show(f"places {tie.places.start + 1:,} to {tie.places.stop:,}: {status}")


def print_contributions(ranking: Ranking, vertex: object, shown: int) -> None:
    """Print the largest contributions to the rank of a vertex."""
    frame = ranking.contributions(vertex, shown)
    rows = [
        [*map(str, row[:-3]), *(f"{number:.6g}" for number in row[-3:])]
        for row in frame.itertuples(index=False, name=None)
    ]
    show("")
    show(table(list(map(str, frame.columns)), rows, left=range(len(frame.columns) - 3)))


def show(what: str | RenderableType, *, wrapped: bool = False) -> None:
    """Print a line or a table."""
    from rich.text import Text

    with path_errors(STANDARD_OUTPUT, PageRankError):
        check_standard_output()
        width = WIDTH if wrapped and not sys.stdout.isatty() else None
        console(sys.stdout).print(Text(what) if isinstance(what, str) else what, width=width)


def print_reasons(reasons: Mapping[str, str]) -> None:
    """Print each reason once, after the names that it applies to."""
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, other in reasons.items() if other == reason]
        show(f"{', '.join(names)}: {reason}", wrapped=True)


def dropped_rows(count: int) -> str:
    """Return a phrase about rows dropped for a missing endpoint."""
    return f"{counted(count, 'row')} with a missing endpoint dropped"


def notes(file: EdgeFile | AdjacencyFile | None) -> str:
    """Return phrases about what was read of a file, each with a semicolon; none for a saved graph."""
    if file is None:
        return ""
    unused, dropped = file.columns.unused_weight, file.dropped
    phrases = [*file.notes, *[dropped_rows(dropped)] * bool(dropped)]
    phrases += [] if unused is None else [f"column {unused!r} is not used (--weight {shlex.quote(str(unused))})"]
    return "".join(f"{phrase}; " for phrase in phrases)


def counts(graph: Graph) -> str:
    """Return a phrase about the size of a graph."""
    return f"{counted(graph.number_of_vertices, 'vertex', 'vertices')}, {counted(graph.number_of_edges, 'edge')}"


def summary(graph: Graph, ranking: Ranking, seconds: float, file: EdgeFile | AdjacencyFile | None = None) -> str:
    """Return one line: graph, method, error bound, what was read of a file, and time."""
    rate = graph.number_of_edges / max(seconds, 1e-9)
    speed = f"{rate / 1e6:,.3g} million" if rate >= 1e6 else f"{float(f'{rate:.3g}'):,.0f}"
    return (
        f"{counts(graph)}; {ranking.method}, {counted(ranking.iterations, 'iteration')}; "
        f"error at most {upward(ranking.error_bound)} (proved); {notes(file)}{seconds:.3g} s, {speed} edges/s"
    )
