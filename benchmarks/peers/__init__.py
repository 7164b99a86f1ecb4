"""Beside the CPU's other libraries, at the same measured error: ``python -m benchmarks peers [--only NAME]``.

"Frame to frame" is from a pandas frame of edges to one of ranks, numbering of ids included; "compute alone" is from a
graph of the library's own to ranks. An error is the distance in L1 to a power iteration in float64 by SciPy. Each side
computes with the loosest tolerance of its own, by doublings and halvings, whose error is no larger than asked, and on
all cores if it can. Times are medians of calls in turn, ours and the peer's; "at least" is the ratio that we set out to
reach. Each peer is a module here that says how it is fed, and what else was tried. Memory is the most that ours holds
beside the user's frame, Arrow's included; the limit is 2 * the two columns + 40 bytes a vertex.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.peers import _busy, _threads, _times
from benchmarks.peers._cases import ALONE, ASKED, WHOLE, Case, cases
from benchmarks.peers._figure import figure
from benchmarks.peers._fit import Fitted, Posed, fitted, posed
from benchmarks.peers._sides import PEERS, ours, peer

__all__ = ["PACKAGES", "TABLES", "figure", "peer", "rows"]

PACKAGES = "pyarrow", "graphblas", "suitesparse_graphblas", "networkit", "igraph", "sknetwork", "graph_mate"
"""Of the peers, and what numbers ids for them."""

TABLES = {table.TITLE: table.COLUMNS for table in (_times, _threads, _busy)}


def rows(data: Path | None, quick: bool, only: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """Give the rows of all tables, a case at a time; what cannot be had is a row that says why.

    Parameters
    ----------
    only : tuple of str
        Rows in whose case, peer and way ("frame to frame", "compute alone", "threads", "busy core") one of these
        occurs. Not given: all.
    """
    for case in cases(data, quick):
        wanted = {
            name: {
                way
                for way in (WHOLE, ALONE, *[_threads.WHAT, _busy.WHAT] * (name in case.details))
                if not only or any(word in f"{case.name}, {name}, {way}" for word in only)
            }
            for name in PEERS
        }
        if any(wanted.values()):
            about = {"graph": case.name}
            yield from _or_why(about, partial(_beside_peers, case, wanted, about))
        gc.collect()


def _or_why(about: dict[str, Any], find: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Give rows, and one with the reason where something stops them: the others go on."""
    try:
        yield from find()
    except FileNotFoundError as error:
        yield _row(_times, about, {"note": str(error)})
    except ModuleNotFoundError as error:
        yield _row(_times, about, {"note": f"{error}: pip install 'prplugin[peers]'"})
    except Exception as error:  # of a peer, and of many types
        yield _row(_times, about, {"note": f"{type(error).__name__}: {error}"[:200]})


def _beside_peers(case: Case, wanted: dict[str, set[str]], about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    here = posed(case)
    mine = fitted(ours(), here)
    about |= _times.about(here, mine)
    if any(_busy.WHAT in ways for ways in wanted.values()):
        yield _row(_busy, about, {"error asked": ASKED[0], **_busy.row(here, mine, ASKED[0])})
    for name, ways in wanted.items():
        if ways:
            yield from _or_why(about | {"peer": name}, partial(_beside, here, mine, name, ways, about | {"peer": name}))


def _beside(here: Posed, mine: Fitted, name: str, ways: set[str], about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    side = peer(name)
    if side.most_edges is not None and len(here.frame) > side.most_edges:
        yield _row(_times, about, {"note": f"not asked of more than {side.most_edges:,} edges"})
        return
    theirs = fitted(side, here)
    for asked in ASKED:
        for what in (WHOLE, ALONE):
            if what in ways:
                timed = _times.row(here, mine, theirs, asked, what)
                yield _row(_times, about, {"what": what, "error asked": asked, **timed})
    about |= {"error asked": ASKED[0]}
    if theirs.fits[ASKED[0]].error > ASKED[0]:
        return
    if _threads.WHAT in ways:
        for timed in _threads.rows(here, mine, theirs, ASKED[0]):
            yield _row(_threads, about, timed)
    if _busy.WHAT in ways:
        yield _row(_busy, about, _busy.row(here, theirs, ASKED[0]))


def _row(table: ModuleType, about: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Put what is known of a row into the columns of its table, and beside them what only the JSON file keeps."""
    about = {column: about.get(column, "") for column in table.COLUMNS}
    return {"table": table.TITLE, **about, **found}
