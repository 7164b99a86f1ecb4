"""Report of a benchmark: lines and tables on the terminal, a Markdown page, and figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def format_row(benchmark: Any, row: dict[str, Any]) -> str:
    """Format a row as one line."""
    return "  ".join(filter(None, (format_value(row[column]) for column in _tables(benchmark)[row.get("table", "")])))


def show(console: Console, benchmark: Any, results: list[dict[str, Any]]) -> None:
    """Print all tables, and the summary."""
    for title, columns in _tables(benchmark).items():
        _print(console, title, columns, _rows_of(title, results))
    words, rows = _summary(benchmark, results)
    console.print(words, highlight=False, markup=False)
    if rows:
        _print(console, "", tuple(rows[0]), rows)


def _print(console: Console, title: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    printed = Table(*columns, title=title or None)
    for row in rows:
        printed.add_row(*(escape(format_value(row[column])) for column in columns))
    console.print(printed)


def write(benchmark: Any, name: str, about: dict[str, Any], results: list[dict[str, Any]], output: Path) -> None:
    """Write the page, the figures and the other files of a run."""
    drawn = _figures(benchmark, results)
    page = _markdown(benchmark, about, results, [f"{name}{end}" for end in drawn])
    (output / f"{name}.md").write_text(page)
    for end, text in getattr(benchmark, "files", lambda results: {})(results).items():
        (output / f"{name}-{end}").write_text(text)
    _save_figures(drawn, output, name)


def complete(benchmark: Any, row: dict[str, Any]) -> dict[str, Any]:
    """Add the columns that a row lacks, as empty cells."""
    return dict.fromkeys(_tables(benchmark)[row.get("table", "")], "") | row


def _markdown(benchmark: Any, about: dict[str, Any], results: list[dict[str, Any]], drawn: list[str]) -> str:
    """Return the page: environment, summary, figures and all tables."""
    machine, versions = about["machine"], about["versions"]
    head, _, more = benchmark.__doc__.partition("\n")
    lines = [
        f"# {head.rstrip('.')}",
        "",
        f"`{about['command']}`, commit {about['commit']}, {machine['processor']}, {machine['cores']} cores"
        + (f", {machine['device']}; " if machine["device"] else "; ")
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ". Medians; the JSON file of the run has every sample.",
        *([more.rstrip()] if more.strip() else []),
    ]
    words, rows = _summary(benchmark, results)
    for part in (words, table(tuple(rows[0]), rows) if rows else ""):
        lines += ["", part] if part else []
    lines += [word for name in drawn for word in ("", f"![{name}]({name}.svg)")]
    for title, columns in _tables(benchmark).items():
        if rows_of_table := _rows_of(title, results):
            lines += ["", *([f"## {title}", ""] if title else []), table(columns, rows_of_table)]
    return "\n".join(lines) + "\n"


def table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(format_value(row[column]) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _figures(benchmark: Any, results: list[dict[str, Any]]) -> dict[str, Figure]:
    """Return the figures of a benchmark by file name suffix."""
    if hasattr(benchmark, "figures"):
        drawn: dict[str, Figure] = benchmark.figures(results)
        return {f"-{name}": figure for name, figure in drawn.items()}
    return {"": benchmark.figure(results)} if hasattr(benchmark, "figure") else {}


def _save_figures(drawn: dict[str, Figure], output: Path, name: str) -> None:
    """Write each figure as SVG, with the same bytes for the same rows."""
    if not drawn:
        return
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        for end, figure in drawn.items():
            path = output / f"{name}{end}.svg"
            figure.savefig(path, metadata={"Date": None})
            path.write_text(compact_svg(path.read_text()))


def compact_svg(text: str) -> str:
    """Return an SVG of Matplotlib in half the bytes: round coordinates to 0.01 points, and set the font once."""
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text).replace("> <", "><").strip()
    text = re.sub(r" font-family: [^;\"]*;", "", text)
    text = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", text)
    text = text.replace("</style>", "text{font-family: 'DejaVu Sans', sans-serif}</style>", 1)

    def rounded(tag: re.Match[str]) -> str:
        return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag[0])

    return re.sub(r"<[^>]*>", rounded, text).replace(" </", "</") + "\n"


def keys(benchmark: Any, results: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the columns that identify a row."""
    if hasattr(benchmark, "KEYS"):
        named: tuple[str, ...] = benchmark.KEYS
        return named
    columns = dict.fromkeys(column for of_table in _tables(benchmark).values() for column in of_table)
    return tuple(
        column
        for column in columns
        if column != "note" and all(isinstance(row.get(column, ""), str) for row in results)
    )


def _summary(benchmark: Any, results: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    if not hasattr(benchmark, "summary"):
        return "", []
    words, rows = benchmark.summary(results)
    return words, rows


def _tables(benchmark: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns of each table by title; the title is empty if there is only one table."""
    return getattr(benchmark, "TABLES", None) or {"": benchmark.COLUMNS}


def _rows_of(title: str, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in results if row.get("table", "") == title]


def format_value(value: object) -> str:
    """Format the value of a cell."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
