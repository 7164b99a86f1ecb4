"""Run the suite: `python -m conformance [--output DIR]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformance import published, report
from conformance.circumstances import circumstances
from conformance.compare import DTYPES, Case, Result, available, compare, prepare
from conformance.options import choices


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(__file__).with_name("results"),
    help="Folder for the report; conformance/results if not given.",
)
def main(output: Path) -> None:
    """Compare every method that can run here with independent references, and write a report.

    Exits 1 if a case fails.
    """
    about = circumstances("python -m conformance")
    methods = available()
    console = Console(stderr=True)
    results: list[Result] = []
    found: list[report.Answer] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("conformance", total=len(choices()) + len(published.files()))
        for case in _cases():
            progress.update(task, description=case.name[:40].ljust(40))
            found += report.answers(case)
            results += [
                compare(case, method, dtype) for method, unfit in methods.items() if unfit is None for dtype in DTYPES
            ]
            progress.advance(task)
    if not published.files():
        console.print(f"[yellow]Skipped:[/] {published.ABSENT}")
    markdown = report.save(output, results, found, methods, about)
    failed = [result for result in results if result.failures]
    for result in failed:
        print(f"FAILED {result.method}-{result.dtype}-{result.case}: {'; '.join(result.failures)}")
    print(f"{len(results):,} cases, {len(failed):,} failed: {markdown}")
    sys.exit(1 if failed else 0)


def _cases() -> Iterator[Case]:
    for choice in choices():
        yield prepare(choice)
    for file in published.files():
        yield published.read(file)


if __name__ == "__main__":
    main(prog_name="python -m conformance")
