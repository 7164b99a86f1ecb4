"""Verdicts of committed pages, recomputed from the tables of the page."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import report
from benchmarks.run import Row

VERDICTS = re.compile(r"(?:Of the paper's|None of the paper's)[^\n]*\n")
CLAIMS = re.compile(r"\| claim \|.*\n(?:\|.*\n)+")
NUMBER = re.compile(r"-?[\d,]+")


def rejudge(path: Path, benchmark: ModuleType) -> None:
    """Rewrite the verdicts of a page from its tables."""
    path.write_text(rejudged(path.read_text(), benchmark))


def rejudged(page: str, benchmark: ModuleType) -> str:
    """Return a page with the verdicts that follow from its tables, otherwise unchanged."""
    words, claims = benchmark.summary(rows_of_page(page, benchmark))
    first = words.partition("\n")[0]
    page, paragraphs = VERDICTS.subn(lambda _: f"{first}\n", page, count=1)
    table = report.table(tuple(claims[0]), claims)
    page, tables = CLAIMS.subn(lambda _: f"{table}\n", page, count=1)
    if (paragraphs, tables) != (1, 1):
        raise ValueError("the page has no verdicts")
    return page


def rows_of_page(page: str, benchmark: ModuleType) -> list[Row]:
    """Return the rows of all tables of a page, with the digits of the page."""
    rows = []
    for section in page.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        lines = [line for line in body.splitlines() if line.startswith("|")]
        columns = _cells(lines[0])
        for line in lines[2:]:
            values = map(_value, _cells(line))
            rows.append(report.complete(benchmark, {"table": title} | dict(zip(columns, values, strict=True))))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _value(cell: str) -> Any:
    if NUMBER.fullmatch(cell):
        return int(cell.replace(",", ""))
    try:
        return float(cell)
    except ValueError:
        return cell
