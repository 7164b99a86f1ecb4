"""Alternating times of prplugin and another library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.measure import Timed, alternately, timed
from benchmarks.peers._cases import FRAME_TO_FRAME
from benchmarks.peers._fit import Fitted, PreparedCase
from prplugin.machine import this_machine

TITLE = "Times"
COLUMNS = (
    "graph", "edges", "peer", "what", "required error", "peer s", "prplugin s", "ratio", "method", "peer passes",
    "prplugin passes", "peer error", "prplugin error", "peer threads", "prplugin threads", "note",
)  # fmt: skip

LIMIT = 15.0
"""Seconds of a call of the other library above which it is not repeated."""


def about(prepared: PreparedCase, own: Fitted) -> dict[str, Any]:
    """Return the columns that are the same for all libraries."""
    tol = max(fit.tol for fit in own.fits.values())
    return {
        "edges": len(prepared.frame),
        "method": own.graph.rank(alpha=prepared.case.alpha, tol=tol).method,
        "prplugin threads": this_machine().threads,
    }


def row(prepared: PreparedCase, own: Fitted, theirs: Fitted, asked: float, what: str) -> dict[str, Any]:
    """Return the row of one library, one measurement and one required error."""
    their_fit, our_fit = theirs.fits[asked], own.fits[asked]
    known = {
        "peer passes": their_fit.passes or "",
        "prplugin passes": our_fit.passes,
        "peer error": their_fit.error,
        "prplugin error": our_fit.error,
        "peer threads": theirs.library.threads or this_machine().threads,
        "tol": {"peer": their_fit.tol, "ours": our_fit.tol},
    }
    if their_fit.error > asked:
        return known | {"note": f"its error is at least {their_fit.error:.1e}"}
    peer, ours = _in_turn(*(_call(prepared, library, asked, what) for library in (theirs, own)))
    return known | {
        "peer s": peer.median,
        "prplugin s": ours.median,
        "ratio": peer.median / ours.median,
        "samples": {"peer": peer.seconds, "ours": ours.seconds},
        "note": f"called once: more than {LIMIT:g} s" if len(peer.seconds) == 1 else "",
    }


def runs_of(seconds: float) -> int:
    """Return the number of runs for a call of this duration."""
    return 5 if seconds < 3 else 2


def _call(prepared: PreparedCase, fitted: Fitted, asked: float, what: str) -> Callable[[], object]:
    alpha, tol = prepared.case.alpha, fitted.fits[asked].tol
    if what == FRAME_TO_FRAME:
        return partial(fitted.library.frame_to_frame, prepared.frame, alpha, tol)
    return partial(fitted.library.rank, fitted.graph, alpha, tol)


def _in_turn(theirs: Callable[[], object], ours: Callable[[], object]) -> list[Timed]:
    took, _ = timed(theirs)
    if took > LIMIT:
        return [Timed([took]), *alternately(ours, runs=runs_of(0))]
    return alternately(theirs, ours, runs=runs_of(took + timed(ours)[0]), warm=True)
