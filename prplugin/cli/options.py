"""The options that commands share, and their conversion to arguments of `pagerank`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, get_args

import click

from prplugin.io.formats import INPUT_FORMATS
from prplugin.options import Duplicates, Options, Stop

__all__ = ["graph_options", "method_options", "rank_options"]


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Join click options into one decorator; they show in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _choice(name: str, choices: Sequence[str], default: str | None, meaning: str) -> Callable[[Any], Any]:
    return click.option(name, type=click.Choice(choices), default=default, help=meaning)


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
        help="Where edges arrive. Neither given: src/dst, source/destination, source/target or from/to, in any case.",
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
    _choice("--duplicates", get_args(Duplicates), "sum", "What becomes of rows with the same two ends."),
    _choice(
        "--format",
        list(INPUT_FORMATS),
        None,
        "What EDGES holds. Not given: by the end of its name; standard input is TSV.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of text names the columns. Not given: it does unless it is all numbers. "
        "Without, they are source, destination and, if it is a number, weight.",
    ),
    _choice(
        "--ids",
        ["auto", "integer", "string"],
        "auto",
        "What the ids in text are. auto: integers, if most of the first hundred lines have such. "
        "Integers know no leading zeros: 007 is 7.",
    ),
    click.option("--alpha", type=float, default=0.85, help="Damping."),
    click.option(
        "--tol",
        type=float,
        default=1e-6,
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
    _choice(
        "--stop",
        get_args(Stop),
        "error",
        "What --tol is for: the proved error; the change in a step; the change of each vertex; "
        "the change in a step over the number of vertices.",
    ),
    _choice("--scale", ["1", "n"], "1", "What ranks sum to."),
    _choice("--dtype", ["float64", "float32"], "float64", "Of the ranks."),
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
