"""The options that commands share, and how their words become arguments of `pagerank`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

import click

from prplugin.options import Options

__all__ = ["graph_options", "method_options", "rank_options"]


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Join click options into one decorator; they show in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


graph_options = _together(
    click.argument("edges"),
    click.option(
        "-s",
        "--source",
        multiple=True,
        metavar="COLUMN",
        help="Where edges leave. Several times, if a vertex has several columns.",
    ),
    click.option(
        "-d",
        "--destination",
        multiple=True,
        metavar="COLUMN",
        help="Where edges arrive. Neither given: src/dst, source/destination, source/target or from/to.",
    ),
    click.option(
        "-w",
        "--weight",
        metavar="COLUMN",
        help="Weights of at least 0. Not given: each edge counts 1, but values in a Matrix Market file are weights.",
    ),
    click.option("--unweighted", is_flag=True, help="Leave the values of a Matrix Market file aside."),
    click.option(
        "--undirected",
        is_flag=True,
        help="Each row is an edge both ways; those of a symmetric Matrix Market file always are.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["sum", "first", "last", "error"]),
        default="sum",
        show_default=True,
        help="What becomes of rows with the same two ends.",
    ),
    click.option(
        "--format",
        type=click.Choice(["parquet", "csv", "tsv", "snap", "mtx"]),
        help="What EDGES holds. Not given: by the end of its name; standard input is TSV.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of text names the columns. Not given: it does unless it is all numbers. "
        "Without, they are source, destination and, if it is a number, weight.",
    ),
    click.option(
        "--ids",
        type=click.Choice(["auto", "integer", "string"]),
        default="auto",
        show_default=True,
        help="What the ids in text are. auto: integers, if most of the first hundred lines have such. "
        "Integers know no leading zeros: 007 is 7.",
    ),
    click.option("--alpha", type=float, default=0.85, show_default=True, help="Damping."),
    click.option(
        "--tol",
        type=float,
        default=1e-6,
        show_default=True,
        help="The error to prove, summed over all vertices; or what --stop compares with.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
)

rank_options = _together(
    click.option(
        "--top",
        type=click.IntRange(min=1),
        help="How many of the highest ranks to print, or with --output to write. Not given: print 10, write all.",
    ),
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Also write the ranks: .parquet, .csv, .tsv or .jsonl, with .gz or .zst after it or not. "
        "-: TSV on standard output, in place of the table.",
    ),
    click.option(
        "--method",
        default="auto",
        show_default=True,
        help="By name: see `prplugin methods`. auto: the least estimate; measured: the fastest as timed on this graph.",
    ),
    click.option(
        "--option",
        "given_to_method",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the method, such as threads=2. May be repeated.",
    ),
    click.option("--max-iter", type=int, help="Budget of iterations. Not given: as many as --tol needs."),
    click.option(
        "--stop",
        type=click.Choice(["error", "delta", "vertex", "networkx"]),
        default="error",
        show_default=True,
        help="What --tol is for: the proved error; the change in a step; the change of each vertex; "
        "the change in a step over the number of vertices.",
    ),
    click.option("--scale", type=click.Choice(["1", "n"]), default="1", show_default=True, help="What ranks sum to."),
    click.option(
        "--dtype",
        type=click.Choice(["float64", "float32"]),
        default="float64",
        show_default=True,
        help="Of the ranks.",
    ),
)


def method_options(given: Collection[str]) -> dict[str, Any]:
    """Read options of the form NAME=VALUE: a number, true, false or null; anything else is a string.

    Raises click.UsageError: if one has another form, or is an option of the command itself.
    """
    options: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--option takes NAME=VALUE, not {pair!r}.")
        if name in (*Options.__slots__, "progress", "personalization", "dangling", "nstart"):
            raise click.UsageError(f"{name} is no option of a method: see --help.")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options
