"""Comparison with CPU libraries at equal measured error.

"frame to frame" is a call from a pandas frame of edges to a frame of ranks, factorization of ids included; "compute
alone" starts from a graph object that the library has already built. An error is the L1 distance to a power iteration
in float64 by SciPy. Each library runs with the largest tolerance, found by doubling and halving, whose error is no
larger than required, and on all cores if it can. Times are medians of alternating calls. "ratio" is the peer's time
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

from benchmarks.peers import _memory, _times
from benchmarks.peers._cases import ALONE, ASKED, FRAME_TO_FRAME, Case, cases
from benchmarks.peers._figure import figure
from benchmarks.peers._fit import Fitted, PreparedCase, fit_tolerances, prepare_case
from benchmarks.peers._libraries import PEERS, ours, peer
from benchmarks.run import Part

__all__ = ["PACKAGES", "TABLES", "figure", "names", "parts", "peer"]

PACKAGES = "pyarrow", "graphblas", "suitesparse_graphblas", "networkit", "igraph", "sknetwork", "graph_mate"
"""Packages of the compared libraries and of the factorization whose versions a report lists."""

OURS = "ours"

TABLES = {table.TITLE: table.COLUMNS for table in (_times, _memory)}


def names(data: Path | None, quick: bool) -> list[str]:
    """Return the names of all rows: case, library and measurement."""
    return [f"{case.name}, {library}, {way}" for case in cases(data, quick) for library, way in _ways()]


def parts(data: Path | None, quick: bool, only: tuple[str, ...] = ()) -> list[Part]:
    """Return one part per case.

    Parameters
    ----------
    only : tuple of str
        Select rows whose name contains one of these words, in any case. Default: all rows.

    Raises
    ------
    ValueError
        If no row matches.
    """

    def wanted(name: str) -> bool:
        return not only or any(word.casefold() in name.casefold() for word in only)

    found = []
    for case in cases(data, quick):
        ways = [(name, way) for name, way in _ways() if wanted(f"{case.name}, {name}, {way}")]
        if ways:
            about = {"graph": case.name}
            compare = partial(_compare_peers, case, ways, about)
            found.append(Part(case.name, partial(_rows_or_reason, about, compare), len(ways)))
    if not found:
        raise ValueError(f"no row has {' or '.join(map(repr, only))} in its name: see --list")
    return found


def _ways() -> list[tuple[str, str]]:
    """Return pairs of library and measurement, one per group of rows of a case."""
    return [(OURS, _memory.WHAT), *((name, way) for name in PEERS for way in (FRAME_TO_FRAME, ALONE))]


def _rows_or_reason(about: dict[str, Any], find: Callable[[], Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield rows; on an exception yield a row with its message, so that the remaining cases still run."""
    try:
        yield from find()
    except FileNotFoundError as error:
        yield _row(_times, about, {"note": str(error)})
    except ModuleNotFoundError as error:
        yield _row(_times, about, {"note": f"{error}: pip install 'prplugin[peers]'"})
    except Exception as error:  # libraries raise exceptions of many types
        yield _row(_times, about, {"note": f"{type(error).__name__}: {error}"[:200]})


def _compare_peers(case: Case, ways: list[tuple[str, str]], about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    prepared = prepare_case(case)
    own = fit_tolerances(ours(), prepared)
    about |= _times.about(prepared, own)
    if (OURS, _memory.WHAT) in ways:
        for held in _memory.rows(prepared, own):
            yield _row(_memory, about, held)
    for name in PEERS:
        if wanted := {way for library, way in ways if library == name}:
            known = about | {"peer": name}
            yield from _rows_or_reason(known, partial(_compare, prepared, own, name, wanted, known))


def _compare(
    prepared: PreparedCase, own: Fitted, name: str, ways: set[str], about: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    library = peer(name)
    if library.most_edges is not None and len(prepared.frame) > library.most_edges:
        yield _row(_times, about, {"note": f"not run on more than {library.most_edges:,} edges"})
        return
    theirs = fit_tolerances(library, prepared)
    for asked in ASKED:
        for what in (FRAME_TO_FRAME, ALONE):
            if what in ways:
                timed = _times.row(prepared, own, theirs, asked, what)
                yield _row(_times, about, {"what": what, "required error": asked, **timed})


def _row(table: ModuleType, about: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return a row with all columns of its table; additional values are stored in the JSON file only."""
    about = {column: about.get(column, "") for column in table.COLUMNS}
    return {"table": table.TITLE, **about, **found}
