"""The command line: ``prplugin rank``, ``save``, ``update``, ``verify``, ``methods`` and ``demo``.

Heavy imports are local to the command that needs them.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import prplugin
from prplugin.calls import unknown_argument
from prplugin.cli.failures import Failure, OneLineErrors
from prplugin.cli.options import (
    PROGRESS,
    SEEDS,
    SHOWN,
    changed_edges,
    criteria,
    edge_options,
    given_by_vertex,
    graph_options,
    method_options,
    quiet_option,
    rank_options,
    time_options,
)
from prplugin.cli.tables import counts, notes, print_contributions, print_ranks, print_reasons, show, summary
from prplugin.errors import InvalidOptionError, listed
from prplugin.folders import check_target, is_saved
from prplugin.frames.reading import reading_to
from prplugin.io import EdgeFile, as_rows, check_output, is_standard_output, read_edges, write_frame
from prplugin.io.formats import check_standard_output, described
from prplugin.machine import this_machine
from prplugin.methods.registry import check_options, is_option, options_of
from prplugin.methods.registry import methods as known
from prplugin.options import RANK_ARGUMENTS, EdgeOptions, Options, check_choice
from prplugin.progress import ProgressOption, watching
from prplugin.saving import load
from prplugin.sources import of_file, reading_for
from prplugin.tables import table, upward

if TYPE_CHECKING:
    from prplugin.io.adjacency import AdjacencyFile


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(prplugin.__version__, prog_name="prplugin")
def main() -> None:
    """Rank the vertices of a graph by PageRank, with a proved error bound."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # for ids that the terminal's encoding does not have


@main.command()
@edge_options
@time_options
@criteria
@rank_options
def rank(edges: tuple[str, ...], output: str | None, **given: Any) -> None:
    """Rank the vertices of the graph in EDGES: a file, several files of rows, a saved graph, or - for standard input.

    EDGES is Parquet, Feather, JSON Lines, CSV, TSV, SNAP text (.txt, .edges), Matrix Market (.mtx), DIMACS (.gr), METIS
    (.graph) or Ligra (.adj), also compressed (.gz, .zst, .bz2, .xz, .zip); WebGraph (.graph with .properties), GAP
    (.sg, .wsg), LDBC Graphalytics (.properties, .v, .e), a folder of Parquet or of Common Crawl, or a folder that
    `prplugin save` or Graph.save has written, which needs none of the options about edges. A graph of LDBC Graphalytics
    is ranked by the rule of that benchmark, unless --alpha, --tol or --max-iter is given.
    """
    options, by_vertex = _asked(given, output, edges)
    shown = _shown(given, by_vertex, output)
    with reading_for(edges, options["method"]):
        file, graph, began = _load(edges, quiet=shown["quiet"], **given)
    if file is not None and file.rule is not None and all(_is_default(name) for name in file.rule):
        options |= file.rule
    _rank(graph, file, began, options, by_vertex, output, **shown)


@main.command()
@click.argument("graph", metavar="GRAPH")
@click.option("--add", metavar="EDGES", multiple=True, help="File of edges to add. May be repeated.")
@click.option("--remove", metavar="EDGES", multiple=True, help="File of edges to remove first. May be repeated.")
@criteria
@rank_options
def update(graph: str, add: tuple[str, ...], remove: tuple[str, ...], output: str | None, **given: Any) -> None:
    """Change the edges of the saved graph in the folder GRAPH, rank it, and save it with its ranks.

    The ranking starts from the ranks of the last update with the same --alpha, --personalization and --dangling; its
    error bound is proved as always. Files of edges have the columns of those from which the graph was saved; in files
    of edges to remove, weights and times may be absent. An edge to remove that the graph does not have is an error.
    After any error the folder is as before.
    """
    if not add and not remove:
        raise click.UsageError("nothing to change: pass --add, --remove, or both.")
    if not is_saved(graph):
        raise click.UsageError(f"{graph} is not a saved graph: make it with prplugin save EDGES {graph}.")
    options, by_vertex = _asked(given, output, [graph, *add, *remove])
    shown, began = _shown(given, by_vertex, output), time.perf_counter()
    changed = prplugin.Graph._of(loaded := load(graph, in_pandas=True))
    schema = loaded.state().schema
    changes = {
        name: changed_edges(paths, schema, changed, removed=name == "remove")
        for name, paths in (("add", add), ("remove", remove))
    }
    changed.update(**changes)
    _rank(changed, None, began, options, by_vertex, output, graph, **shown)


def _shown(given: dict[str, Any], by_vertex: dict[str, Any], output: str | None) -> dict[str, Any]:
    """Take what is shown beside the ranks out of the values of options."""
    shown = {name: given.pop(name) for name in ("quiet", "explain", "why")}
    if shown["why"] is not None and (by_vertex["seeds"] or (output is not None and is_standard_output(output))):
        other = "--personalization instead of --seeds" if by_vertex["seeds"] else "a file to --output"
        raise click.UsageError(f"--why prints what contributes to a rank of one ranking: pass {other}.")
    return shown


def _asked(given: dict[str, Any], output: str | None, read: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take the arguments of `Graph.rank` out of the values of options; return them, and those by vertex as given."""
    names = "personalization", "seeds", "among", "exclude", "dangling"
    by_vertex: dict[str, Any] = {name: given.pop(name) or None for name in names}
    if given.pop("exclude_seeds"):
        by_vertex["exclude"] = (*(by_vertex["exclude"] or ()), SEEDS)
    options = {name: given.pop(name) for name in RANK_ARGUMENTS if name in given}
    options["scale"] = 1 if options["scale"] == "1" else "n"
    arguments = method_options(given.pop("method_option_pairs"))
    options["top"] = options["top"] or (SHOWN if output is None or options["certified"] else None)
    with _usage_errors():
        exclude = "seeds" if SEEDS in (by_vertex["exclude"] or ()) else by_vertex["exclude"]
        _check_method(Options(**options, **by_vertex | {"exclude": exclude}, method_options=arguments))
        if output is not None:
            check_output(output, [*read, *(str(item) for items in by_vertex.values() for item in items or ())])
    return options | arguments, by_vertex


def _rank(
    graph: prplugin.Graph, file: EdgeFile | AdjacencyFile | None, began: float, options: dict[str, Any],
    by_vertex: dict[str, Any], output: str | None, folder: str | None = None, *, quiet: bool, explain: bool,
    why: str | None,
) -> None:  # fmt: skip
    """Rank the graph, save it to a folder if one is given, and write and print the ranks."""
    values = {name: given_by_vertex(f"--{name}", items or (), graph.vertices) for name, items in by_vertex.items()}
    ranking = graph.rank(**options, **values, progress=_progress(quiet=quiet))
    if folder is not None:
        graph.save(folder)
    seconds = time.perf_counter() - began

    if output is not None:
        write_frame(ranking.frame, output)
    if quiet:
        return
    line = summary(graph, ranking, seconds, file)
    only_ranks = output is not None and is_standard_output(output)
    if only_ranks:
        click.echo(line, err=True)
    else:
        print_ranks(ranking, SHOWN if output is not None else options["top"])
        show(line)
        if folder is not None:
            show(f"graph and ranks saved to {folder}")
        if output is not None:
            show(f"{len(ranking.frame):,} ranks written to {output}")
    if why is not None:
        named = given_by_vertex("--why", [why], graph.vertices)
        if not isinstance(named, list) or len(named) != 1:
            raise click.UsageError(f"--why explains the rank of one vertex: leave one, without values, in {why}.")
        print_contributions(ranking, named[0], options["top"] or SHOWN)
    if explain:
        click.echo(err=only_ranks)
        ranking.explain(sys.stderr if only_ranks else sys.stdout)


@main.command()
@edge_options
@time_options
@click.argument("graph", metavar="GRAPH")
@click.option(
    "--packed", is_flag=True, help="Pack the edges, in 1 to 2.7 bytes each, which `rank` decodes as it iterates."
)
@quiet_option
def save(edges: tuple[str, ...], graph: str, packed: bool, quiet: bool, **given: Any) -> None:
    """Save the graph in EDGES, a file as for `rank`, to the folder GRAPH, which `rank` maps to memory.

    GRAPH is a new or empty folder, or a saved graph, which is replaced.
    """
    check_target(graph)
    with reading_to("host"):  # the graph is mapped to host memory
        file, built, began = _load(edges, quiet=quiet, in_pandas=False, packed=packed, **given)
    built.save(graph, packed=packed)
    if not quiet:
        size = sum(path.stat().st_size for path in Path(graph).iterdir())
        seconds = time.perf_counter() - began
        show(f"{counts(built)} saved to {graph}: {size / 1e6:,.3g} MB; {notes(file)}{seconds:.3g} s")


@main.command()
@graph_options
def verify(edges: tuple[str, ...], quiet: bool, alpha: float, tol: float, **given: Any) -> None:
    """Compare every method, NetworkX and cuGraph on the graph in EDGES.

    The exit status is 1 if the L1 distance of any of them to a reference exceeds the sum of both error bounds.
    """
    from prplugin.cli.verification import checks_of

    if given["by"]:
        raise click.UsageError("verify compares methods on one graph: leave out --by.")
    with _usage_errors():
        Options(alpha=alpha, tol=tol)
    with reading_to("host"):  # methods of both processors rank it
        file, graph, _ = _load(edges, quiet=quiet, **given)
    if file is None:
        raise click.UsageError(f"{edges[0]} is a saved graph: verify reads the file of edges from which it was made.")
    checks = checks_of(
        graph,
        as_rows(file),
        not given["undirected"],
        given["duplicates"],
        alpha,
        tol,
        progress=_progress(quiet=quiet),
    )
    if not quiet:
        rows = []
        for check in checks:
            if (found := check.found) is not None:
                iterations = "" if found.iterations is None else str(found.iterations)
                figures = [f"{found.seconds:.3g}", upward(found.error_bound), f"{check.distance:.1e}"]
                rows.append([check.name, iterations, *figures, "yes" if check.agrees else "NO"])
        show(table(["", "iterations", "seconds", "bound", "distance", "agrees"], rows, left=[0]))
        print_reasons({check.name: check.note for check in checks if check.note})
    if not quiet and (read := notes(file).removesuffix("; ")):
        show(read)
    if wrong := [check.name for check in checks if check.agrees is False]:
        raise Failure(f"{_name(edges)}: the distance to the reference exceeds the error bounds: {', '.join(wrong)}.")


@main.command()
@click.argument("edges", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the methods as a JSON list of objects.")
@click.option("--method", "name", metavar="NAME", help="Print the description of one method, and of its options.")
def methods(edges: tuple[str, ...], as_json: bool, name: str | None) -> None:
    """List all methods and their options, those that can run here first, and the reason for each that cannot.

    With EDGES, a file of edges that needs no options, also print the estimated seconds of each method on that graph,
    and the choice of --method auto.
    """
    if name is not None:
        with _usage_errors():
            check_choice("method", name, tuple(known()))
        show("\n\n".join(str(inspect.getdoc(documented)) for documented in (known()[name], known()[name].prepare)))
        if forms := getattr(known()[name], "forms", {}):
            values = {
                form: ", ".join(f"{key}={value!r}" for key, value in forms[form].values.items()) for form in forms
            }
            rows = [[f"{form!r}", forms[form].listing, values[form]] for form in forms]
            show(table(["form", "paper and listing", "its values of options"], rows, left=range(3)), wrapped=True)
        return
    machine = this_machine()
    estimate = prplugin.Graph.from_file(_one_or_all(edges)).estimate() if edges else None
    found = []
    for each, module in known().items():
        reason = module.unavailable_reason(None, machine) if estimate is None else estimate[each].reason
        entry: dict[str, Any] = {"name": each, "runs": reason is None, "reason": reason, "options": options_of(module)}
        entry["summary"] = str(module.__doc__).split("\n")[0]
        if estimate is not None:
            entry["seconds"] = estimate[each].seconds if reason is None else None
            entry["chosen"] = estimate[each].chosen
        found.append(entry)
    found.sort(key=lambda entry: not entry["runs"])
    if as_json:
        check_standard_output()
        click.echo(json.dumps(found, indent=2))
        return
    head = ["method", "here", *([] if estimate is None else ["estimate s"]), "options", "summary"]
    rows = []
    for entry in found:
        seconds = ["" if entry["seconds"] is None else f"{entry['seconds']:.2g}"] if "seconds" in entry else []
        here = "yes" if entry["runs"] else "no"
        rows.append([entry["name"], here, *seconds, ", ".join(entry["options"]), entry["summary"]])
    show(table(head, rows, left=range(len(head))), wrapped=True)
    print_reasons({entry["name"]: entry["reason"] for entry in found if not entry["runs"]})
    if estimate is not None and estimate.chosen is not None:
        show(f"auto chooses {estimate.chosen.method}: the least estimate")


@main.command()
@click.option("--top", type=click.IntRange(min=1), default=SHOWN, help="Number of ranks to print.")
@click.option("--edges", metavar="FILE", help="Also write the edges to a file that `prplugin rank` reads.")
def demo(top: int, edges: str | None) -> None:
    """Rank the modules of Python's standard library by their imports.

    Each name that a module imports from another one is an edge.
    """
    from prplugin.cli.imports import imports

    if edges is not None:
        check_output(edges)  # before the modules are parsed
    frame, files, unreadable = imports()
    if edges is not None:
        write_frame(frame, edges)
    began = time.perf_counter()
    graph = prplugin.Graph(frame)
    ranking = graph.rank(top=top)
    seconds = time.perf_counter() - began
    print_ranks(ranking, top)
    show(summary(graph, ranking, seconds))
    show(f"the imports of {files:,} files; {unreadable:,} more could not be parsed")


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Report options that are invalid for any file as wrong usage: exit status 2."""
    try:
        yield
    except InvalidOptionError as error:
        raise click.UsageError(str(error)) from error


def _progress(*, quiet: bool) -> ProgressOption:
    """Return what receives the progress of the running command."""
    reported: ProgressOption = click.get_current_context().meta.get(PROGRESS, not quiet)
    return reported


def _is_default(parameter: str) -> bool:
    """Return whether an option of the running command was not given."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.DEFAULT


def _check_method(options: Options) -> None:
    """Raise if the method or an option of it does not exist, before any file is read."""
    for name in options.method_options:
        if not is_option(name):
            raise unknown_argument(name, "pagerank", RANK_ARGUMENTS, takes_options=True)
    check_choice("method", options.method, ("auto", *known()))
    if options.method in known():
        check_options(known()[options.method], options.method_options)


def _one_or_all(edges: tuple[str, ...]) -> str | tuple[str, ...]:
    return edges[0] if len(edges) == 1 else edges


def _name(edges: tuple[str, ...]) -> str:
    return listed([*map(described, edges)])


def _load(
    edges: tuple[str, ...], *, quiet: bool, in_pandas: bool = True, packed: bool = False, **given: Any
) -> tuple[EdgeFile | AdjacencyFile | None, prplugin.Graph, float]:
    """Read the edges and build the graph; also return the time at which reading began. Errors name the file.

    `in_pandas`: Whether results are pandas frames even if the path is a saved graph of another library.
    `given`: Values of `edge_options`, which are wrong usage if the path is a saved graph.
    """
    path, began = _one_or_all(edges), time.perf_counter()
    if is_saved(path):
        if wrong := [name for name in given if not _is_default(name)]:
            raise click.UsageError(f"--{wrong[0]} describes edges, and {path} is a saved graph, which has it: omit it.")
        return None, prplugin.Graph._of(load(path, in_pandas=in_pandas)), began
    vertices, directed, duplicates = given.pop("vertices"), not given.pop("undirected"), given.pop("duplicates")
    bipartite = given.pop("bipartite")
    times = {name: given.pop(name) for name in ("time", "half_life", "window") if name in given}
    with watching(_progress(quiet=quiet)) as watch:
        with reading_to("host") if vertices else nullcontext():  # their types are those of the ids of a frame
            file = read_edges(path, packed=packed, time=times.get("time"), **given)
        watch.stage("vertices")
        more = None
        if vertices:
            if not isinstance(file, EdgeFile) or file.vertices is not None:
                raise InvalidOptionError(f"{_name(edges)} names all vertices itself: omit --vertices.")
            file = as_rows(file)
            names = file.columns.vertex_names
            ids = file.frame[file.columns.source_names].set_axis(names, axis=1)
            more = given_by_vertex("--vertices", vertices, ids if len(names) > 1 else ids[names[0]])
        with _usage_errors():
            options = EdgeOptions(directed=directed, vertices=more, duplicates=duplicates, bipartite=bipartite, **times)
        try:
            return file, prplugin.Graph._of(of_file(file, _name(edges), options, lasting=True)), began
        except prplugin.PageRankError as error:
            raise type(error)(f"{_name(edges)}: {error}") from error
