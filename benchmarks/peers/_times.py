"""Times of ours and of a peer, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.measure import Timed, alternately
from benchmarks.peers._cases import FRAME_TO_FRAME
from benchmarks.peers._fit import Fitted, Posed
from prplugin.machine import this_machine

__all__ = ["COLUMNS", "TITLE", "about", "row", "runs_of"]

TITLE = "Times"
COLUMNS = (
    "graph", "edges", "peer", "what", "error asked", "peer s", "prplugin s", "ratio", "method", "peer passes",
    "prplugin passes", "peer error", "prplugin error", "peer threads", "prplugin threads", "note",
)  # fmt: skip

LIMIT = 15.0
"""Seconds of a peer's call beyond which it is not called again."""


def about(here: Posed, mine: Fitted) -> dict[str, Any]:
    """Say what is ours whatever the peer."""
    tol = max(fit.tol for fit in mine.fits.values())
    return {
        "edges": len(here.frame),
        "method": mine.graph.rank(alpha=here.case.alpha, tol=tol).method,
        "prplugin threads": this_machine().threads,
    }


def row(here: Posed, mine: Fitted, theirs: Fitted, asked: float, what: str) -> dict[str, Any]:
    """Time both."""
    their_fit, our_fit = theirs.fits[asked], mine.fits[asked]
    known = {
        "peer passes": their_fit.passes or "",
        "prplugin passes": our_fit.passes,
        "peer error": their_fit.error,
        "prplugin error": our_fit.error,
        "peer threads": theirs.side.threads or this_machine().threads,
        "tol": {"peer": their_fit.tol, "ours": our_fit.tol},
    }
    if their_fit.error > asked:
        return known | {"note": f"comes no nearer than {their_fit.error:.1e}"}
    peer, own = _in_turn(*(_call(here, side, asked, what) for side in (theirs, mine)))
    return known | {
        "peer s": peer.median,
        "prplugin s": own.median,
        "ratio": peer.median / own.median,
        "samples": {"peer": peer.seconds, "ours": own.seconds},
        "note": f"called once: more than {LIMIT:g} s" if len(peer.seconds) == 1 else "",
    }


def runs_of(seconds: float) -> int:
    """Say how often to run what takes so long."""
    return 5 if seconds < 3 else 2


def _call(here: Posed, fitted: Fitted, asked: float, what: str) -> Callable[[], object]:
    alpha, tol = here.case.alpha, fitted.fits[asked].tol
    if what == FRAME_TO_FRAME:
        return partial(fitted.side.frame_to_frame, here.frame, alpha, tol)
    return partial(fitted.side.rank, fitted.graph, alpha, tol)


def _in_turn(theirs: Callable[[], object], ours: Callable[[], object]) -> list[Timed]:
    began = time.perf_counter()
    theirs()
    took = time.perf_counter() - began
    if took > LIMIT:
        return [Timed([took]), *alternately(ours, runs=runs_of(0))]
    ours()
    return alternately(theirs, ours, runs=runs_of(time.perf_counter() - began), warm=True)
