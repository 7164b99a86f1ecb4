"""Run the suite: `python -m conformance [--output DIR] [--jobs N] [--quick]`."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

try:
    import matplotlib  # noqa: F401
    import networkx  # noqa: F401
    import scipy  # noqa: F401
except ModuleNotFoundError as error:
    raise SystemExit(f"python -m conformance: {error}. Install the extra: pip install -e '.[conformance]'") from None

from conformance import published, report
from conformance.circumstances import circumstances
from conformance.compare import available
from conformance.probes import findings
from conformance.work import JOBS, Done, Unit, all_done, units
from prplugin.methods.registry import methods


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(__file__).with_name("results"),
    help="Folder for the report; conformance/results if not given.",
)
@click.option("--jobs", type=click.IntRange(1), default=JOBS, show_default=True, help="Processes to spread cases over.")
@click.option("--quick", is_flag=True, help="Each case by a part of the methods, so that every graph meets each.")
@click.option("--method", "only", multiple=True, type=click.Choice(sorted(methods())), help="Only this; repeatable.")
def main(output: Path, jobs: int, quick: bool, only: tuple[str, ...]) -> None:
    """Compare every method that can run here with independent references, and write a report.

    Methods on the GPU get cuDF frames where cuDF is, and are set beside cuGraph where that is. Exits 1 if a case fails.
    """
    able = {name: unavailable_reason for name, unavailable_reason in available().items() if name in (only or methods())}
    todo = units()
    console = Console(stderr=True)
    done: dict[Unit, Done] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("conformance", total=len(todo))
        try:
            for unit, result in all_done(todo, jobs, quick, only):
                done[unit] = result
                for line in _failures(result):
                    print(f"FAILED {line}", flush=True)
                progress.update(task, advance=1, description=str(unit)[:40].ljust(40))
                if not console.is_terminal and len(done) % 50 == 0:
                    console.print(f"{len(done):,} of {len(todo):,} graphs and options")
        except KeyboardInterrupt:
            console.print(f"[yellow]Interrupted[/] after {len(done):,} of {len(todo):,} graphs and options")
    if not published.files():
        console.print(f"[yellow]Skipped:[/] {published.ABSENT}")
    found = [answer for unit in todo if unit in done for answer in done[unit].answers]
    results = [result for unit in todo if unit in done for result in done[unit].results]
    besides = [one for unit in todo if unit in done for one in done[unit].besides]
    asked = findings() if besides and len(done) == len(todo) else []
    # Last: what was imported by now has versions to tell.
    cut = "" if len(done) == len(todo) else f", interrupted after {len(done):,} of {len(todo):,} graphs and options"
    words = [*["--quick"] * quick, *(f"--method {name}" for name in only)]
    about = circumstances(" ".join(["python -m conformance", *words]) + cut)
    markdown = report.save(output, results, found, able, about, besides, asked)
    failed = sum(len(_failures(one)) for one in done.values())
    print(f"{len(results) + len(besides):,} cases, {failed:,} failed: {markdown}")
    sys.exit(1 if failed or cut else 0)


def _failures(done: Done) -> list[str]:
    return [f"{one.name}: {'; '.join(one.failures)}" for one in (*done.results, *done.besides) if one.failures]


if __name__ == "__main__":
    main(prog_name="python -m conformance")
