"""Command line of the benchmarks: run one by name, write its report, compare two runs."""

from __future__ import annotations

import json
import os
import shlex
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

try:
    import matplotlib  # noqa: F401
    import networkx  # noqa: F401
    import scipy  # noqa: F401
except ModuleNotFoundError as error:
    raise SystemExit(f"python -m benchmarks: {error}. Install the extra: pip install -e '.[benchmarks]'") from None

from benchmarks import (
    against_cugraph,
    against_networkx,
    changing,
    cluster,
    compare,
    crawl,
    everyday,
    gap,
    kernels,
    peers,
    report,
    retrieval,
    scaling,
    seeds,
    step_cost,
    uses,
    webgraph,
)
from benchmarks.papers import bowen, kim, kumar, swaroop, tweetrank, wu
from benchmarks.papers import pages as verdict_pages
from benchmarks.run import run

PAPERS = {"kim": kim, "kumar": kumar, "wu": wu, "bowen": bowen, "swaroop": swaroop}

BENCHMARKS = {
    **PAPERS, "changing": changing, "cluster": cluster, "crawl": crawl,
    "cugraph": against_cugraph, "everyday": everyday, "gap": gap, "kernels": kernels,
    "networkx": against_networkx, "peers": peers, "retrieval": retrieval,
    "scaling": scaling, "seeds": seeds, "steps": step_cost,
    "tweetrank": tweetrank, "uses": uses, "webgraph": webgraph,
}  # fmt: skip

ALL = *PAPERS, "peers"
"""Benchmarks that ``python -m benchmarks all`` runs."""

ONLY = click.option("--only", multiple=True, help="Run only cases whose name contains this; may be repeated.")
LIST = click.option(
    "--list", "listed", is_flag=True, help="List the names of all rows, for --only, without running any."
)

SCALE = click.option("--scale", type=click.IntRange(4, 30), help="Binary logarithm of the number of vertices.")
REFERENCE = click.option("--reference", type=click.Path(exists=True), help="GAP's program pr, compiled here.")

OPTIONS = {
    **dict.fromkeys(("kim", "wu", "bowen", "cugraph", "crawl", "uses"), ONLY),
    "gap": lambda command: SCALE(REFERENCE(command)),
    "peers": lambda command: LIST(ONLY(command)),
    "seeds": ONLY,
    "all": click.argument("some", nargs=-1, type=click.Choice(ALL)),
}
"""Additional options by benchmark."""


@click.group()
def main() -> None:
    """Run a benchmark; write its tables as Markdown and JSON, and its figures as SVG."""


def _running(every: tuple[str, ...]) -> Callable[..., None]:
    def command(
        data: Path | None, output: Path, quick: bool, listed: bool = False, some: tuple[str, ...] = (), **options: Any
    ) -> None:
        names = some or every
        if listed:
            for name in names:
                click.echo("\n".join(BENCHMARKS[name].names(data or _real_graphs(), quick)))
            return
        options = {name: value for name, value in options.items() if value not in (None, ())}
        words = ["--quick"] * quick + ["--data DIR"] * (data is not None)
        for name, value in options.items():
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{name} {shlex.quote(str(item))}" for item in values]
        failed = []
        click.echo(f"{', '.join(names)}: the report is written to {output.resolve()}", err=True)
        for name in names:
            line = " ".join(["python -m benchmarks", name, *words])
            try:
                run(name, BENCHMARKS[name], data or _real_graphs(), quick, options, output, line)
            except Exception:  # the remaining benchmarks still run
                if len(names) == 1:
                    raise
                traceback.print_exc()
                failed.append(name)
        if failed:
            raise click.ClickException(f"{', '.join(failed)} failed; the others finished.")

    return command


def _real_graphs() -> Path | None:
    """Return the folder of real graphs, PRPLUGIN_DATA or else shared/data next to the repository, or None."""
    folders = [os.environ.get("PRPLUGIN_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    return next((Path(folder) for folder in folders if folder and (Path(folder) / "graphs").is_dir()), None)


def _add(name: str, names: tuple[str, ...], help_: str) -> None:
    decorators = [
        click.option(
            "--data",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Folder of real graphs under their usual names, as SNAP text, Matrix Market or Parquet; "
            "default: PRPLUGIN_DATA, or shared/data next to the repository.",
        ),
        click.option(
            "--output",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path("benchmark-results"),
            show_default=True,
            help="Folder for the report; an interrupted run resumes from it.",
        ),
        click.option("--quick", is_flag=True, help="Run on small graphs only."),
        *([OPTIONS[name]] if name in OPTIONS else []),
    ]
    command: Any = _running(names)
    for decorate in reversed(decorators):
        command = decorate(command)
    main.command(name, help=help_, short_help=help_.partition("\n")[0])(command)


for _name, _module in BENCHMARKS.items():
    _add(_name, (_name,), _module.__doc__)
_add("all", ALL, f"Run {', '.join(ALL)}, in this order, or those that are named.")


@main.command("compare", help=compare.__doc__)
@click.argument("first", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("second", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--every", is_flag=True, help="Also show values that did not change.")
def _compare(first: Path, second: Path, every: bool) -> None:
    console = Console(width=160)
    differences, rows = compare.compared(first, second)
    for difference in differences:
        console.print(difference, highlight=False, markup=False)
    shown = [row for row in rows if every or row["verdict"] != "same"]
    table = Table(*compare.COLUMNS)
    for row in shown:
        table.add_row(*(escape(report.format_value(row[column])) for column in compare.COLUMNS))
    console.print(table)
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in compare.VERDICTS}
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count))


@main.command("pages")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def _pages(files: tuple[Path, ...]) -> None:
    """Rewrite the page and the figures of runs from their JSON files, or the verdicts in the page of a paper (.md)."""
    for file in files:
        if file.stem not in (PAPERS if file.suffix == ".md" else BENCHMARKS):
            raise click.ClickException(f"{file.name} is not named after any of {', '.join(BENCHMARKS)}.")
        if file.suffix == ".md":
            verdict_pages.rejudge(file, PAPERS[file.stem])
            continue
        about = json.loads(file.read_text())
        benchmark = BENCHMARKS[file.stem]
        results = [report.complete(benchmark, row) for row in about["rows"]]
        report.write(benchmark, file.stem, about, results, file.parent)


if __name__ == "__main__":
    main()
