"""Run a benchmark by name, print its table, and keep it with all that is needed to run it again."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import (
    against_cugraph,
    against_networkx,
    cold_start,
    kernels,
    overlap,
    peers,
    roofline,
    step_cost,
)
from conformance.circumstances import circumstances

BENCHMARKS = {
    "cold": cold_start, "cugraph": against_cugraph, "kernels": kernels, "networkx": against_networkx,
    "overlap": overlap, "peers": peers, "roofline": roofline, "steps": step_cost,
}  # fmt: skip


@click.command()
@click.argument("name", type=click.Choice(sorted(BENCHMARKS)))
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder of real graphs; else PRPLUGIN_DATA, else shared/data beside the repository.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), default=Path(__file__).parent / "results", show_default="results/"
)
@click.option("--quick", is_flag=True, help="Only the small graphs.")
@click.option("--split", type=click.IntRange(0), help="Of overlap: the N whose timeline is drawn.")
@click.option("--only", multiple=True, help="Of cugraph and peers: cases in whose name this occurs; may be repeated.")
def main(name: str, data: Path | None, output: Path, quick: bool, split: int | None, only: tuple[str, ...]) -> None:
    """Run benchmark NAME; write its table as Markdown and JSON, and its figure if it has one."""
    benchmark = BENCHMARKS[name]
    if split is not None and benchmark is not overlap:
        raise click.UsageError("--split is an option of overlap alone.")
    if only and benchmark not in (against_cugraph, peers):
        raise click.UsageError("--only is an option of cugraph and peers.")
    options: dict[str, Any] = ({} if split is None else {"split": split}) | ({"only": only} if only else {})
    words = [name, *["--quick"] * quick, *([] if split is None else [f"--split {split}"])]
    words += [f"--only {shlex.quote(word)}" for word in only]
    data = data or _real_graphs()
    console = Console(width=220)
    about: dict[str, Any] = {}
    results = []
    for row in benchmark.rows(data, quick, **options):
        console.log("  ".join(_shown(row[column]) for column in _tables(benchmark)[row.get("table", "")]))
        results.append(row)
        # By now all is loaded whose versions are asked for; and what is written stays if the run is interrupted.
        about = about or circumstances(f"python -m benchmarks {' '.join(words)}", getattr(benchmark, "PACKAGES", ()))
        _save(output, name, about, results)
    for title, columns in _tables(benchmark).items():
        table = Table(*columns, title=title or None)
        for row in _of(title, results):
            table.add_row(*(_shown(row[column]) for column in columns))
        console.print(table)
    if hasattr(benchmark, "summary"):
        console.print(benchmark.summary(results)[0])
    if hasattr(benchmark, "figure"):
        benchmark.figure(results).savefig(output / f"{name}.png", dpi=150)


def _save(output: Path, name: str, about: dict[str, Any], results: list[dict[str, Any]]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.json").write_text(json.dumps({**about, "rows": results}, indent=1) + "\n")
    (output / f"{name}.md").write_text(_markdown(BENCHMARKS[name], about, results))


def _markdown(benchmark: Any, about: dict[str, Any], results: list[dict[str, Any]]) -> str:
    machine, versions = about["machine"], about["versions"]
    lines = [
        f"# {benchmark.__doc__.splitlines()[0]}",
        "",
        f"`{about['command']}`, commit {about['commit']}, {machine['processor']}, {machine['cores']} cores"
        + (f", {machine['device']}; " if machine["device"] else "; ")
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ". Medians; every sample is in the JSON file beside this one.",
    ]
    for title, columns in _tables(benchmark).items():
        lines += ["", *([f"## {title}", ""] if title else []), *_table(columns, _of(title, results))]
    if hasattr(benchmark, "summary"):
        sentence, rows = benchmark.summary(results)
        lines += ["", sentence, "", *(_table(tuple(rows[0]), rows) if rows else [])]
    return "\n".join(lines) + "\n"


def _table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> list[str]:
    return [
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(_shown(row[column]) for column in columns) + " |" for row in rows),
    ]


def _tables(benchmark: Any) -> dict[str, tuple[str, ...]]:
    """Give the columns of each table by its title, which the only one of most benchmarks has not."""
    return getattr(benchmark, "TABLES", None) or {"": benchmark.COLUMNS}


def _of(title: str, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in results if row.get("table", "") == title]


def _real_graphs() -> Path | None:
    """Find the folder of real graphs: PRPLUGIN_DATA, else shared/data beside the repository."""
    places = [os.environ.get("PRPLUGIN_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    return next((Path(place) for place in places if place and (Path(place) / "graphs").is_dir()), None)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
