"""The command line: ``prplugin rank``, ``verify``, ``methods`` and ``demo``.

Heavy imports are local to the command that needs them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

import prplugin
from prplugin.cli.failures import Failure, OneLineErrors
from prplugin.cli.options import graph_options, method_options, rank_options
from prplugin.errors import InvalidOptionError
from prplugin.options import Options
from prplugin.progress import watching
from prplugin.tables import upward

if TYPE_CHECKING:
    from prplugin.io import EdgeFile

__all__ = ["main"]

SHOWN = 10
"""How many of the highest ranks are printed."""


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(prplugin.__version__, prog_name="prplugin")
def main() -> None:
    """Rank the vertices of a graph by PageRank, with a proved error bound."""
    if hasattr(sys.stdout, "reconfigure"):
        # A vertex may have a name that the terminal has no letters for.
        sys.stdout.reconfigure(errors="backslashreplace")


@main.command()
@graph_options
@rank_options
def rank(edges: str, output: str | None, quiet: bool, top: int | None, **given: Any) -> None:
    """Rank the vertices of the graph in EDGES, a file, or - for standard input.

    EDGES is Parquet, CSV, TSV, SNAP text (.txt, .edges) or Matrix Market (.mtx), with .gz or .zst after it or not.
    """
    from prplugin.cli.tables import print_line, print_ranks, summary
    from prplugin.io import check_output, is_standard_output, write_frame
    from prplugin.result.ranking import highest

    options = {name: given.pop(name) for name in ("alpha", "tol", "max_iter", "stop", "dtype", "method")}
    options["scale"] = 1 if given.pop("scale") == "1" else "n"
    own = method_options(given.pop("given_to_method"))
    with _usage_errors():
        _check(Options(**options, method_options=own))
        if output is not None:
            check_output(output)

    file, graph, began = _load(edges, given, quiet=quiet)
    shown = SHOWN if output is not None else top or SHOWN
    ranking = graph.rank(**options, **own, top=top if output is not None else shown, progress=not quiet)
    seconds = time.perf_counter() - began

    frame = ranking.frame
    if output is not None:
        write_frame(frame, output)
    if quiet:
        return
    line = summary(graph, ranking, seconds, file.unused_weight)
    if output is not None and is_standard_output(output):
        click.echo(line, err=True)
        return
    print_ranks(frame.iloc[highest(frame["pagerank"].to_numpy(), shown)])
    print_line(line)
    if output is not None:
        print_line(f"{len(frame):,} ranks written to {output}")


@main.command()
@graph_options
def verify(edges: str, quiet: bool, alpha: float, tol: float, **given: Any) -> None:
    """Compare every method, NetworkX and cuGraph on the graph in EDGES.

    Each must be as near to a reference as the proved errors of both allow: exit status 1 if one is not.
    """
    from prplugin.cli.tables import print_line, print_table
    from prplugin.cli.verification import checks_of

    with _usage_errors():
        Options(alpha=alpha, tol=tol)
    file, graph, _ = _load(edges, given, quiet=quiet)
    checks = checks_of(graph, file, not given["undirected"], given["duplicates"], alpha, tol, progress=not quiet)
    if not quiet:
        rows = []
        for check in checks:
            if (found := check.found) is not None:
                iterations = "" if found.iterations is None else str(found.iterations)
                figures = [f"{found.seconds:.3g}", upward(found.error_bound), f"{check.distance:.1e}"]
                rows.append([check.name, iterations, *figures, "yes" if check.agrees else "NO"])
        print_table(["", "iterations", "seconds", "error at most", "distance to reference", "agrees"], rows, text=1)
        for check in checks:
            if check.note:
                print_line(f"{check.name}: {check.note}")
    if wrong := [check.name for check in checks if check.agrees is False]:
        raise Failure(f"{edges}: further from the reference than the proved errors allow: {', '.join(wrong)}.")


@main.command()
@click.argument("edges", required=False)
@click.option("--json", "as_json", is_flag=True, help="As a list of objects.")
def methods(edges: str | None, as_json: bool) -> None:
    """List every method, with whether it can run here and why not.

    With EDGES, a file of edges that needs no options: whether it can run on that graph, the estimate by which
    --method auto chooses among those that it may, and its choice.
    """
    from prplugin.cli.tables import print_line, print_table
    from prplugin.graph.adjacency import Adjacency
    from prplugin.io import read_edges
    from prplugin.io.formats import check_standard_output
    from prplugin.local import LocalGraph
    from prplugin.machine import this_machine
    from prplugin.methods.registry import candidates, choose
    from prplugin.methods.registry import methods as known
    from prplugin.options import EdgeOptions

    machine = this_machine()
    adjacency: Adjacency | None = None
    chosen = None
    if edges is not None:
        file = read_edges(edges)
        how = EdgeOptions(**file.graph_arguments())
        adjacency = LocalGraph.read(file.frame, how, lasting=True).adjacency
        chosen = choose("auto", adjacency, machine, {}).name
    found = []
    for name, module in known().items():
        reason = module.unavailable_reason(adjacency, machine)
        entry = {"name": name, "runs": reason is None, "reason": reason, "summary": str(module.__doc__).split("\n")[0]}
        if adjacency is not None:
            entry["seconds"] = module.cost(adjacency, machine) if name in candidates(adjacency) else None
            entry["chosen"] = name == chosen
        found.append(entry)
    if as_json:
        check_standard_output()
        click.echo(json.dumps(found, indent=2))
        return
    head = ["method", "here", "what it is"]
    rows = [[e["name"], "runs" if e["runs"] else f"cannot run: {e['reason']}", e["summary"]] for e in found]
    if adjacency is not None:
        head.insert(2, "estimate s")
        for row, entry in zip(rows, found, strict=True):
            row.insert(2, "" if entry["seconds"] is None else f"{entry['seconds']:.2g}")
    print_table(head, rows, text=len(head))
    if chosen is not None:
        print_line(f"auto takes {chosen}: the least estimate")


@main.command()
@click.option("--top", type=click.IntRange(min=1), default=SHOWN, help="How many to print.")
@click.option("--edges", metavar="FILE", help="Also write the edges, as `prplugin rank` reads them.")
def demo(top: int, edges: str | None) -> None:
    """Rank the installed Python modules by who imports them.

    Every Python has this graph: its standard library and packages, without their tests. An edge is a name that one
    module imports from another.
    """
    from prplugin.cli.imports import installed_imports
    from prplugin.cli.tables import print_line, print_ranks, summary
    from prplugin.io import check_output, write_frame

    if edges is not None:
        check_output(edges)
    with watching(True):
        imports = installed_imports()
    if edges is not None:
        write_frame(imports.frame, edges)
    began = time.perf_counter()
    graph = prplugin.Graph(imports.frame)
    ranking = graph.rank(top=top, progress=True)
    seconds = time.perf_counter() - began
    print_ranks(ranking.frame)
    print_line(summary(graph, ranking, seconds))
    unresolved = f"; {imports.unresolved:,} relative imports lead out of their package" if imports.unresolved else ""
    print_line(f"the imports of {imports.files:,} files; {imports.unreadable:,} more could not be parsed{unresolved}")


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Report options that are invalid whatever the file as wrong usage: exit status 2."""
    try:
        yield
    except InvalidOptionError as error:
        raise click.UsageError(str(error)) from error


def _check(options: Options) -> None:
    """Raise for a method or an option of a method that does not exist, before any file is read."""
    from prplugin.methods.registry import check_options
    from prplugin.methods.registry import methods as known

    if options.method in ("auto", "measured"):
        return
    if options.method not in known():
        names = ", ".join(["auto", "measured", *known()])
        raise InvalidOptionError(f"there is no method {options.method!r}: there are {names}.")
    check_options(known()[options.method], options.method_options)


def _load(path: str, given: dict[str, Any], *, quiet: bool) -> tuple[EdgeFile, prplugin.Graph, float]:
    """Read the edges and build the graph; also return when building began. Errors name the file."""
    from prplugin.io import read_edges
    from prplugin.io.formats import described

    how = {name: given[name] for name in ("weight", "format", "header", "ids", "unweighted")}
    with watching(not quiet) as watch:
        file = read_edges(path, list(given["source"]) or None, list(given["destination"]) or None, **how)
        watch.stage("vertices")
        began = time.perf_counter()
        arguments = file.graph_arguments() | {"duplicates": given["duplicates"]}
        if given["undirected"]:
            arguments["directed"] = False
        try:
            return file, prplugin.Graph(file.frame, **arguments), began
        except prplugin.PageRankError as error:
            raise type(error)(f"{described(path)}: {error}") from error
