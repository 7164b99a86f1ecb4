"""Rows of the papers' tables, and grades of the papers' claims."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.papers.claims import Claim
from benchmarks.report import format_value
from benchmarks.run import Row


def row(table: str, columns: tuple[str, ...], known: Row) -> Row:
    """Return a row with all columns of a table; additional values are stored in the JSON file only."""
    return {"table": table} | dict.fromkeys(columns, "") | known


def rows_or_reason(known: Row, find: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """Yield rows; on an exception yield a row with its message, so that the remaining cases still run."""
    try:
        yield from find()
    except ModuleNotFoundError as error:
        yield known | {"note": f"{error.name} is not installed"}
    except Exception as error:  # libraries raise exceptions of many types
        yield known | {"note": " ".join(str(error).split())[:300] or type(error).__name__}


def merge_absent(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield timed rows, then the others, merged where they differ only in "what"."""
    absent: dict[str, Row] = {}
    for found in rows:
        if "samples" in found:
            yield found
            continue
        others = repr({column: value for column, value in found.items() if column != "what"})
        if others in absent:
            absent[others]["what"] += f"; {found['what']}"
        else:
            absent[others] = found
    yield from absent.values()


REACHED, CONFIRMED, DIRECTION = "reached", "confirmed", "direction only"
REVERSED, HARDWARE = "reversed", "hardware"
OTHER_DATA, NOT_MEASURED, UNTESTABLE = "other data", "not measured yet", "not testable here"
GRADES = REACHED, CONFIRMED, DIRECTION, REVERSED, HARDWARE

TOLERANCE = 0.2
"""A ratio at least 1 - TOLERANCE times the paper's has reached it; a similar one is within that factor both ways."""

NO_GPU = "this run had no GPU."


class ClaimTest(NamedTuple):
    """Test of a claim by the rows of a run.

    Attributes
    ----------
    ratios : function
        Returns the ratio by graph.
    figures : function
        Returns the measurements as text.
    """

    ratios: Callable[[list[Row]], Mapping[str, float]]
    figures: Callable[[list[Row]], str] = lambda results: ""


def grade(ratio: float, claim: Claim) -> str:
    """Compare a ratio with the paper's; without one, only its direction can be confirmed."""
    least = 1 - TOLERANCE
    if claim.similar:
        held = _distance(ratio, claim.ratio) <= 1 / least
    elif claim.ratio is None:
        held = ratio > (least if claim.best else 1)
    elif not (held := ratio >= least * claim.ratio) and ratio > 1:
        return DIRECTION
    if not held:
        return claim.contrary
    return CONFIRMED if claim.ratio is None else REACHED


def _distance(ratio: float, paper: float | None) -> float:
    """Return the factor between a ratio and the paper's, at least 1."""
    relative = ratio / (paper or 1.0)
    return max(relative, 1 / relative) if relative > 0 else math.inf


def _ratio_of(claim: Claim, ratios: Mapping[str, float]) -> float:
    """Return the ratio that a claim is graded by: of the worst graph, of the best, or the median."""
    values = ratios.values()
    if claim.scope == "every":
        return max(values, key=lambda ratio: _distance(ratio, claim.ratio)) if claim.similar else min(values)
    return max(values) if claim.scope == "up to" else statistics.median(values)


def verdicts(
    claims: Iterable[Claim], tests: Mapping[str, ClaimTest], results: list[Row]
) -> tuple[str, list[dict[str, Any]]]:
    """Judge each claim by the graphs of its scope, and count the claims about hardware apart."""
    rows = [_judged(claim, tests.get(claim.key), results) for claim in claims]
    graded = [line for line in rows if line["verdict"] in GRADES]
    words = f"Of the paper's {len(rows)} claims, {len(graded)} can be tested with this run"
    counted = []
    for kind in dict.fromkeys(line["kind"] for line in graded):
        counts = Counter(line["verdict"] for line in graded if line["kind"] == kind)
        several = ", ".join(f"{counts[verdict]} {verdict}" for verdict in GRADES if counts[verdict])
        counted.append(f"{kind}: {several}")
    words += f"; {'; '.join(counted)}." if counted else "."
    for verdict, label in (
        (REVERSED, "Reversed"), (HARDWARE, "Reversed by the hardware"), (DIRECTION, "Direction only"),
    ):  # fmt: skip
        listed = [
            f"{line['claim']} ({_shown_ratio(line['paper'])} in the paper, {line['measured']:.3g} here)"
            for line in rows
            if line["verdict"] == verdict
        ]
        if listed:
            words += f" {label}: {'; '.join(listed)}."
    return words, rows


def _shown_ratio(ratio: object) -> str:
    return "no figure" if ratio == "" else format_value(ratio)


def _judged(claim: Claim, test: ClaimTest | None, results: list[Row]) -> dict[str, Any]:
    ratios = {} if test is None else test.ratios(results)
    here: float | str = ""
    spread, verdict = "", UNTESTABLE
    note = claim.untestable
    if not note and not ratios:
        verdict, note = NOT_MEASURED, NO_GPU if _without_gpu(results) else "this run did not measure it."
    if ratios:
        here = _ratio_of(claim, ratios)
        verdict, note = grade(here, claim), ""
        if claim.sets and not ratios.keys() & set(claim.sets):
            verdict = OTHER_DATA
        spread = next(iter(ratios))
        if len(ratios) > 1:
            least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
            spread = f"{ratios[least]:.3g} ({least}) to {ratios[most]:.3g} ({most})"
            ahead = sum(value > 1 for value in ratios.values())
            if 0 < ahead < len(ratios) and not claim.similar:
                note = f"Above 1 on {ahead} of {len(ratios)} graphs."
    if test is not None:
        note = " ".join(filter(None, (claim.why if verdict == claim.contrary else "", note, test.figures(results))))
    return {
        "claim": claim.what,
        "kind": claim.kind,
        "paper": "" if claim.ratio is None else float(claim.ratio),
        "section": claim.where,
        "measured": here,
        "range over graphs": spread,
        "verdict": verdict,
        "note": note,
    }


def _without_gpu(results: list[Row]) -> bool:
    return any("needs an NVIDIA GPU" in str(line.get("note", "")) for line in results)
