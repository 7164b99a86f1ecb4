"""Comparison with CPU libraries at equal measured error.

"frame to frame" is a call from a pandas frame of edges to a frame of ranks, factorization of ids included; "compute
alone" starts from a graph object that the library has already built. An error is the L1 distance to a power iteration
in float64 by SciPy. Each library runs with the largest tolerance, found by doubling and halving, whose error is no
larger than asked, and on all cores if it can. Times are medians of alternating calls. "ratio" is the peer's time
divided by prplugin's. "SciPy loop" is a power iteration on a compressed SciPy matrix, with ids factorized by
`pandas.factorize`; "SciPy loop, tuned" factorizes them with Arrow and builds the matrix without sorting rows or summing
parallel edges. Each module of `benchmarks/peers` documents how its library is called, and which alternatives were
tried. "peak MB" is the largest amount of memory that prplugin holds in addition to the user's frame, Arrow's included;
"limit MB" is 2 * the two columns + 40 bytes per vertex.

``--list`` names all rows. ``--only WORDS``, which may be repeated, selects rows whose name contains the words:
``--only python-graphblas``, ``--only "R-MAT 20, sparse int64 ids, igraph"``, ``--only memory``. A run that was
interrupted continues with the cases that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import cold_start
from benchmarks.peers import _busy, _memory, _threads, _times
from benchmarks.peers._cases import ALONE, ASKED, FRAME_TO_FRAME, Case, cases
from benchmarks.peers._figure import figure
from benchmarks.peers._fit import Fitted, Posed, fitted, posed
from benchmarks.peers._sides import PEERS, ours, peer
from benchmarks.run import Part

__all__ = ["PACKAGES", "TABLES", "figure", "names", "parts", "peer"]

PACKAGES = "pyarrow", "graphblas", "suitesparse_graphblas", "networkit", "igraph", "sknetwork", "graph_mate"
"""Of the peers, and what numbers ids for them."""

OURS = "ours"
FIRST_CALL = "first call, ours and SciPy loop"
FIRST_CALL_TITLE = "The first call in a fresh process, with kernels on disk and without"

TABLES = {
    **{table.TITLE: table.COLUMNS for table in (_times, _memory, _threads, _busy)},
    FIRST_CALL_TITLE: cold_start.COLUMNS,
}


def names(data: Path | None, quick: bool) -> list[str]:
    """Name all rows: case, peer and way; those of the first call are one."""
    rows = [f"{case.name}, {whose}, {way}" for case in cases(data, quick) for whose, way in _ways(case)]
    return [*rows, FIRST_CALL]


def parts(data: Path | None, quick: bool, only: tuple[str, ...] = ()) -> list[Part]:
    """Return the cases, and the first call.

    Parameters
    ----------
    only : tuple of str
        Rows in whose name one of these occurs, in upper or lower case. Not given: all.

    Raises
    ------
    ValueError
        If there are none.
    """

    def wanted(name: str) -> bool:
        return not only or any(word.casefold() in name.casefold() for word in only)

    found = []
    for case in cases(data, quick):
        ways = [(whose, way) for whose, way in _ways(case) if wanted(f"{case.name}, {whose}, {way}")]
        if ways:
            about = {"graph": case.name}
            found.append(Part(case.name, partial(_or_why, about, partial(_beside_peers, case, ways, about)), len(ways)))
    if wanted(FIRST_CALL):
        found.append(Part(FIRST_CALL, partial(_first_calls, data, quick), 5))
    if not found:
        raise ValueError(f"no row has {' or '.join(map(repr, only))} in its name: see --list")
    return found


def _ways(case: Case) -> list[tuple[str, str]]:
    """Name whose rows there are of a case, and of which way."""
    own = [(OURS, _memory.WHAT), *[(OURS, _busy.WHAT)] * bool(case.details)]
    details = (_threads.WHAT, _busy.WHAT)
    return own + [(name, way) for name in PEERS for way in (FRAME_TO_FRAME, ALONE, *details * (name in case.details))]


def _first_calls(data: Path | None, quick: bool) -> Iterator[dict[str, Any]]:
    for row in cold_start.rows(data, quick):
        yield {"table": FIRST_CALL_TITLE, **row}


def _or_why(about: dict[str, Any], find: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Return rows, and one with the reason where something stops them: the others go on."""
    try:
        yield from find()
    except FileNotFoundError as error:
        yield _row(_times, about, {"note": str(error)})
    except ModuleNotFoundError as error:
        yield _row(_times, about, {"note": f"{error}: pip install 'prplugin[peers]'"})
    except Exception as error:  # of a peer, and of many types
        yield _row(_times, about, {"note": f"{type(error).__name__}: {error}"[:200]})


def _beside_peers(case: Case, ways: list[tuple[str, str]], about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    here = posed(case)
    mine = fitted(ours(), here)
    about |= _times.about(here, mine)
    if (OURS, _memory.WHAT) in ways:
        for held in _memory.rows(here, mine):
            yield _row(_memory, about, held)
    if (OURS, _busy.WHAT) in ways:
        yield _row(_busy, about, {"error asked": ASKED[0], **_busy.row(here, mine, ASKED[0])})
    for name in PEERS:
        if own := {way for whose, way in ways if whose == name}:
            yield from _or_why(about | {"peer": name}, partial(_beside, here, mine, name, own, about | {"peer": name}))


def _beside(here: Posed, mine: Fitted, name: str, ways: set[str], about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    side = peer(name)
    if side.most_edges is not None and len(here.frame) > side.most_edges:
        yield _row(_times, about, {"note": f"not asked of more than {side.most_edges:,} edges"})
        return
    theirs = fitted(side, here)
    for asked in ASKED:
        for what in (FRAME_TO_FRAME, ALONE):
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
