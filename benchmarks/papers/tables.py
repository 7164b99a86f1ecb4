"""Rows of the papers' tables, and what has become of the papers' claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.report import shown
from benchmarks.run import Row

__all__ = ["Claim", "absent_together", "or_why", "row", "verdicts"]


def row(table: str, columns: tuple[str, ...], known: Row) -> Row:
    """Put what is known into the columns of a table; what is known beyond them, only the JSON file keeps."""
    return {"table": table} | dict.fromkeys(columns, "") | known


def or_why(known: Row, find: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """Give rows, and one with the reason where something stops them: the others go on."""
    try:
        yield from find()
    except ModuleNotFoundError as error:
        yield known | {"note": f"{error.name} is not here"}
    except Exception as error:  # of many libraries, and of many types
        yield known | {"note": " ".join(str(error).split())[:300] or type(error).__name__}


def absent_together(rows: Iterable[Row]) -> Iterator[Row]:
    """Give rows; of those that were not timed and differ by no more than "what", one at the end that names them all."""
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


LEVEL = 0.03
"""Logarithm of a ratio within which two things are level."""

HOLDS, TURNED = "holds", "reversed"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """That one thing is ahead of another.

    Attributes
    ----------
    what : str
    paper : float, optional
        How many times as well it does; None where the paper only says, or draws, that it is ahead.
    where : str
        The section, table or figure that says so.
    found : function
        Gives the same of the rows here; None if they do not have it.
    ahead, behind, level : str
        What decides it where it holds, where it is turned round, and where there is no difference.
    figures : function
        Says what of the rows shows that.
    same : function
        Says whether the two are one and the same here, so that what they differ by is noise.
    """

    what: str
    paper: float | None
    where: str
    found: Callable[[list[Row]], float | None]
    ahead: str = ""
    behind: str = ""
    level: str = ""
    figures: Callable[[list[Row]], str] = lambda results: ""
    same: Callable[[list[Row]], bool] = lambda results: False


def verdicts(claims: Iterable[Claim], results: list[Row]) -> tuple[str, list[dict[str, Any]]]:
    """Say of each claim whether it holds, or whether the other thing is ahead today, and why, from the rows alone."""
    rows = [_judged(claim, results) for claim in claims]
    seen = [line for line in rows if line["found"] != ""]
    turned = [line for line in seen if line["verdict"] == TURNED]
    if not seen:
        return f"None of the paper's {len(rows)} claims was measured.", rows
    holding = sum(line["verdict"] == HOLDS for line in seen)
    words = f"Of the paper's {len(rows)} claims, {len(seen)} were measured; {holding} hold."
    if turned:
        told = [
            f"{line['the claim']} ({shown(line['paper'])} in the paper, {line['found']:.3g} here): {line['why']}"
            for line in turned
        ]
        words += " Reversed: " + " ".join(told)
    return words, rows


def _judged(claim: Claim, results: list[Row]) -> dict[str, Any]:
    found = claim.found(results)
    verdict, why = "not measured", ""
    if found is not None:
        if abs(math.log(found)) < LEVEL or claim.same(results):
            verdict, why = "no difference", claim.level
        else:
            verdict, why = (HOLDS, claim.ahead) if found > 1 else (TURNED, claim.behind)
        why = " ".join(filter(None, (why, claim.figures(results))))
    return {
        "the claim": claim.what,
        "paper": "ahead" if claim.paper is None else claim.paper,
        "where": claim.where,
        "found": "" if found is None else found,
        "verdict": verdict,
        "why": why,
    }
