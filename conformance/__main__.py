"""Run the suite: `python -m conformance [--output DIR] [--jobs N] [--quick]`; in parts: `--part K/N`, then `--join`."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

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
from conformance.derivation import ratios
from conformance.parts import PartError, PartFile, joined
from conformance.work import JOBS, Unit, UnitResult, run_units, units
from prplugin.methods.registry import methods


class _Part(click.ParamType):
    """K/N with 1 <= K <= N."""

    name = "K/N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return K and N."""
        found = re.fullmatch(r"(\d+)/(\d+)", str(value))
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            self.fail(f"{value!r} is not K/N with 1 <= K <= N.", param, ctx)
        return int(found[1]), int(found[2])


@click.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("conformance-results"),
    show_default=True,
    help="Folder for the report.",
)
@click.option("--jobs", type=click.IntRange(1), default=JOBS, show_default=True, help="Number of worker processes.")
@click.option("--quick", is_flag=True, help="Run each case with some methods only, but each graph with all methods.")
@click.option(
    "--method", "only", multiple=True, type=click.Choice(sorted(methods())), help="Run only this method; repeatable."
)
@click.option("--only", "case", help="Run only the graphs and options whose names contain this text.")
@click.option(
    "--part",
    type=_Part(),
    help="Run part K of N, and store each result in --output immediately, without a report. An interrupted part is "
    "continued.",
)
@click.option("--join", is_flag=True, help="Run nothing, but write the report of the parts stored in --output.")
def main(
    output: Path, jobs: int, quick: bool, only: tuple[str, ...], case: str | None, part: tuple[int, int] | None,
    join: bool,
) -> None:  # fmt: skip
    """Compare every method that can run here with independent references, and write a report.

    GPU methods get cuDF frames if cuDF is installed, and are compared with cuGraph if cuGraph is installed. The exit
    status is 1 if a case fails.
    """
    if join:
        try:
            about, results = joined(output)
        except PartError as error:
            raise click.ClickException(str(error)) from error
        _finish(output, about, results)
    click.echo(f"conformance: the report is written to {output.resolve()}", err=True)
    began = time.perf_counter()
    end = click.get_current_context().call_on_close
    end(lambda: click.echo(f"took {timedelta(seconds=round(time.perf_counter() - began))}", err=True))
    reasons = {name: reason for name, reason in available().items() if name in (only or methods())}
    all_units = _named(case)
    named = [] if case is None else [f"--only {shlex.quote(case)}"]
    command = " ".join(["python -m conformance", *["--quick"] * quick, *(f"--method {name}" for name in only), *named])
    about = {"environment": circumstances(command), "methods": reasons, "units": len(all_units)}
    chosen = dict(enumerate(all_units))
    done: dict[int, UnitResult] = {}
    file = None
    if part is not None:
        k, n = part
        chosen = {number: unit for number, unit in chosen.items() if number % n == k - 1}
        try:
            file = PartFile(output / f"part-{k}-of-{n}.jsonl", about)
        except PartError as error:
            raise click.ClickException(str(error)) from error
        done |= {number: result for number, result in file.done.items() if number in chosen}
    numbers = {unit: number for number, unit in chosen.items() if number not in done}
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("conformance", total=len(chosen), completed=len(done))
        try:
            for unit, result in run_units(list(numbers), jobs, quick, only):
                done[numbers[unit]] = result
                if file is not None:
                    file.add(numbers[unit], result)
                for line in _failures(result):
                    print(f"FAILED {line}", flush=True)
                progress.update(task, advance=1, description=str(unit)[:40].ljust(40))
                if not console.is_terminal and len(done) % 50 == 0:
                    console.print(f"{len(done):,} of {len(chosen):,} graphs and options")
        except KeyboardInterrupt:
            console.print(f"[yellow]Interrupted[/] after {len(done):,} of {len(chosen):,} graphs and options")
    if not published.files():
        console.print(f"[yellow]Skipped:[/] {published.ABSENT}")
    if file is not None:
        failed = sum(len(_failures(result)) for result in done.values())
        print(f"{len(done):,} of {len(chosen):,} graphs and options, {failed:,} failed: {file.path}")
        sys.exit(1 if failed or len(done) < len(chosen) else 0)
    about["environment"] = circumstances(command)  # again, because only imported packages have a version
    _finish(output, about, done)


def _named(case: str | None) -> list[Unit]:
    """Return the units whose names contain a text; all for None."""
    found = [unit for unit in units() if case is None or case in str(unit)]
    if not found:
        names = "\n".join(sorted({*map(str, units())}))
        raise click.UsageError(f"--only {case!r} is in no name of these graphs and options:\n{names}")
    return found


def _finish(output: Path, about: Mapping[str, Any], done: Mapping[int, UnitResult]) -> NoReturn:
    """Write the report of the results, given by number of the unit, and exit."""
    in_order = [done[number] for number in sorted(done)]
    results = [result for unit in in_order for result in unit.results]
    comparisons = [comparison for unit in in_order for comparison in unit.comparisons]
    environment = about["environment"]
    interrupted = len(done) < about["units"]
    if interrupted:
        count = f"{len(done):,} of {about['units']:,} graphs and options"
        environment = environment | {"command": f"{environment['command']}, interrupted after {count}"}
    markdown = report.save(
        output,
        results,
        [entry for unit in in_order for entry in unit.reference_results],
        about["methods"],
        environment,
        comparisons,
        [finding for unit in in_order for finding in unit.findings],
    )
    failed = sum(len(_failures(unit)) for unit in in_order) + sum(bound.failed for bound in ratios())
    print(f"{len(results) + len(comparisons):,} cases, {failed:,} failed: {markdown}")
    sys.exit(1 if failed or interrupted else 0)


def _failures(unit_result: UnitResult) -> list[str]:
    return [
        f"{result.name}: {'; '.join(result.failures)}"
        for result in (*unit_result.results, *unit_result.comparisons)
        if result.failures
    ]


if __name__ == "__main__":
    main(prog_name="python -m conformance")
