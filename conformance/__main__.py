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
from conformance.work import JOBS, Unit, UnitResult, run_units, units
from prplugin.methods.registry import methods


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(__file__).with_name("results"),
    help="Folder for the report; conformance/results if not given.",
)
@click.option("--jobs", type=click.IntRange(1), default=JOBS, show_default=True, help="Number of worker processes.")
@click.option("--quick", is_flag=True, help="Run each case with some of the methods, and each graph with all of them.")
@click.option(
    "--method", "only", multiple=True, type=click.Choice(sorted(methods())), help="Run only this method; repeatable."
)
def main(output: Path, jobs: int, quick: bool, only: tuple[str, ...]) -> None:
    """Compare every method that can run here with independent references, and write a report.

    GPU methods get cuDF frames if cuDF is installed, and are compared with cuGraph if that is installed. Exit with 1 if
    a case fails.
    """
    reasons = {name: reason for name, reason in available().items() if name in (only or methods())}
    all_units = units()
    console = Console(stderr=True)
    done: dict[Unit, UnitResult] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("conformance", total=len(all_units))
        try:
            for unit, result in run_units(all_units, jobs, quick, only):
                done[unit] = result
                for line in _failures(result):
                    print(f"FAILED {line}", flush=True)
                progress.update(task, advance=1, description=str(unit)[:40].ljust(40))
                if not console.is_terminal and len(done) % 50 == 0:
                    console.print(f"{len(done):,} of {len(all_units):,} graphs and options")
        except KeyboardInterrupt:
            console.print(f"[yellow]Interrupted[/] after {len(done):,} of {len(all_units):,} graphs and options")
    if not published.files():
        console.print(f"[yellow]Skipped:[/] {published.ABSENT}")
    reference_results = [entry for unit in all_units if unit in done for entry in done[unit].reference_results]
    results = [result for unit in all_units if unit in done for result in done[unit].results]
    comparisons = [comparison for unit in all_units if unit in done for comparison in done[unit].comparisons]
    experiments = findings() if comparisons and len(done) == len(all_units) else []
    # Last, because only imported packages have a version.
    count = f"{len(done):,} of {len(all_units):,} graphs and options"
    interruption = "" if len(done) == len(all_units) else f", interrupted after {count}"
    options = [*["--quick"] * quick, *(f"--method {name}" for name in only)]
    environment = circumstances(" ".join(["python -m conformance", *options]) + interruption)
    markdown = report.save(output, results, reference_results, reasons, environment, comparisons, experiments)
    failed = sum(len(_failures(unit_result)) for unit_result in done.values())
    print(f"{len(results) + len(comparisons):,} cases, {failed:,} failed: {markdown}")
    sys.exit(1 if failed or interruption else 0)


def _failures(unit_result: UnitResult) -> list[str]:
    return [
        f"{result.name}: {'; '.join(result.failures)}"
        for result in (*unit_result.results, *unit_result.comparisons)
        if result.failures
    ]


if __name__ == "__main__":
    main(prog_name="python -m conformance")
