"""Options shared by the commands, and their conversion to arguments of `pagerank`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import click

from prplugin.errors import ColumnNotFoundError, InvalidOptionError
from prplugin.io import as_rows, read_edges, read_values
from prplugin.io.formats import NAMES, ROWS, by_suffix, input_format
from prplugin.options import RANK_ARGUMENTS, Duplicates, EdgeOptions, Unknowns
from prplugin.progress import lines
from prplugin.stopping import STOPS

if TYPE_CHECKING:
    from prplugin import Graph

SHOWN = 10  # number of the highest ranks that are printed

Decorator: TypeAlias = Callable[[Callable[..., object]], Callable[..., object]]

SEEDS = object()
"""Item of --exclude that --exclude-seeds adds: a vertex may have the name "seeds"."""


def _together(*options: Decorator) -> Decorator:
    """Combine click options into one decorator; `--help` lists them in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def _choice(name: str, choices: Sequence[str], default: str | None, meaning: str) -> Decorator:
    return click.option(name, type=click.Choice(choices), default=default, help=meaning)


def _columns(short: str, name: str, meaning: str) -> Decorator:
    help_ = f"{meaning} In text also its position, from 1. Repeat it if vertices have several columns."
    return click.option(short, name, multiple=True, metavar="COLUMN", help=help_, callback=_listed)


def _listed(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> list[str] | None:
    return list(values) or None


def _by_vertex(name: str, metavar: str, meaning: str) -> Decorator:
    return click.option(
        name, multiple=True, metavar=metavar, help=f"{meaning} May be repeated, or name a file of them."
    )


PROGRESS = "prplugin.progress"
"""Key of the function that receives the progress, in what click keeps for the running command."""


def _print_progress(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print lines about the progress until the command ends; on a terminal there is a bar."""
    if asked and not sys.stderr.isatty():
        context.meta[PROGRESS] = context.with_resource(lines(sys.stderr))


quiet_option = _together(
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    click.option(
        "--progress",
        is_flag=True,
        expose_value=False,
        callback=_print_progress,
        help="Where standard error is no terminal, print a line about the progress to it every few seconds.",
    ),
)

edge_options = _together(
    click.argument("edges", nargs=-1, required=True),
    _columns("-s", "--source", "Column of the sources."),
    _columns(
        "-d",
        "--destination",
        "Column of the targets. Default of both: src/dst, source/destination, source/target or from/to, without "
        "regard to case.",
    ),
    click.option(
        "-w",
        "--weight",
        metavar="COLUMN",
        help="Column of non-negative weights, in text also its position. Default: every edge counts 1; weights of "
        "Matrix Market, DIMACS, METIS, Ligra and GAP are used.",
    ),
    click.option(
        "--by",
        metavar="COLUMN",
        multiple=True,
        callback=_listed,
        help="Rank the rows of each value of this column as a graph of their own; ranks of the first ten are printed. "
        "May be repeated.",
    ),
    click.option("--unweighted", is_flag=True, help="Ignore the weights that such a file has."),
    _by_vertex("--vertices", "VERTEX", "More vertices of the graph, such as isolated ones."),
    click.option("--bipartite", is_flag=True, help="Ids of the two columns are of different vertices."),
    click.option("--undirected", is_flag=True, help="Each row is an edge in both directions."),
    _choice(
        "--duplicates",
        get_args(Duplicates),
        "sum",
        "Rows with the same endpoints: count all, keep the first or the last, or fail.",
    ),
    _choice(
        "--format",
        NAMES,
        None,
        "Format of EDGES. Default: by name and content; standard input is TSV if its first line has a tab, else CSV.",
    ),
    click.option(
        "--delimiter",
        metavar="CHAR",
        callback=lambda context, option, value: "\t" if value == r"\t" else value,
        help=r"Character between fields of text. Default: in CSV a comma, or a semicolon if the first line has more "
        r"semicolons; in TSV a tab (\t); in SNAP text spaces and tabs.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of text is a header. Default: unless it is all numbers. "
        "Without a header the columns are source, destination and, if numeric, weight.",
    ),
    click.option(
        "--comment",
        metavar="CHARS",
        help="Characters with which comments begin. Default: none in CSV and TSV; in SNAP text # and %, below the "
        "first edge only where a blank follows.",
    ),
    click.option(
        "--skip", metavar="LINES", type=click.IntRange(min=0), default=0, help="Skip the first lines of text."
    ),
    click.option(
        "--null", metavar="TEXT", multiple=True, help=r"Text of a missing value, such as \N or NA. May be repeated."
    ),
    _choice(
        "--ids",
        ["auto", "integer", "string"],
        "auto",
        "Type of the ids in text. auto: integer if the ids of most of the first hundred lines are integers. "
        "integer: 007, +7 and 7.0 are 7.",
    ),
    _choice(
        "--missing",
        ["error", "drop"],
        "error",
        "Rows with a missing endpoint, empty or --null in text, null or NaN in Parquet: fail, or drop and count them.",
    ),
)

time_options = _together(
    click.option("--time", metavar="COLUMN", help="Column of the times of edges, in Parquet."),
    click.option(
        "--half-life",
        metavar="SPAN",
        callback=lambda context, option, value: _span(value),
        help="Halve the weight of an edge for each span of its age: 7D, 36h, or a number where times are numbers.",
    ),
    click.option(
        "--window",
        metavar="SPAN",
        callback=lambda context, option, value: _span(value),
        help="Ignore edges that are not younger than this span.",
    ),
)


def _span(text: str | None) -> Any:
    """Return a span of time as a number if it is one."""
    try:
        return text if text is None else json.loads(text)
    except ValueError:
        return text


criteria = _together(
    click.option("--alpha", type=float, default=0.85, help="Damping factor."),
    click.option(
        "--tol", type=float, default=1e-6, help="L1 error to prove, or the threshold of the rule chosen by --stop."
    ),
    quiet_option,
)

graph_options = _together(edge_options, criteria)

rank_options = _together(
    click.option(
        "--top",
        type=click.IntRange(min=1),
        help=f"Number of highest ranks to print, or to write with --output. Default: print {SHOWN}, write all.",
    ),
    click.option(
        "--certified",
        is_flag=True,
        help=f"Prove the order of the --top highest ranks (default {SHOWN}), and stop as soon as it is proved.",
    ),
    _by_vertex(
        "--personalization",
        "VERTEX[=VALUE]",
        "Teleport distribution; vertices without values share it equally. Default: uniform.",
    ),
    _by_vertex("--seeds", "VERTEX", "Compute one ranking per seed, with teleports to that vertex only."),
    _by_vertex("--among", "VERTEX", "Return the ranks of these vertices only."),
    _by_vertex("--exclude", "VERTEX", "Do not return these vertices."),
    click.option(
        "--exclude-seeds", is_flag=True, help="Do not return the seeds of a ranking, nor its personalization."
    ),
    _choice(
        "--unknown",
        get_args(Unknowns),
        "error",
        "Vertices of these options that the graph lacks: fail, or ignore them. --exclude always ignores them.",
    ),
    _by_vertex("--dangling", "VERTEX[=VALUE]", "Distribution of the dangling mass. Default: as --personalization."),
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Also write the ranks: .parquet, .csv, .tsv, .jsonl, or .txt and NAME-PR (lines of vertex and rank, as "
        "LDBC Graphalytics has them), or compressed (.gz, .zst). "
        "-: TSV on standard output instead of the table.",
    ),
    click.option("--why", metavar="VERTEX", help="Print also what contributes most to the rank of VERTEX."),
    click.option("--explain", is_flag=True, help="Print the stages, methods, reasons and error bounds."),
    click.option(
        "--method",
        default="auto",
        help="Name of a method (see `prplugin methods`), or auto (least estimated cost).",
    ),
    click.option(
        "--option",
        "method_option_pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="Option of the method, such as threads=2. May be repeated.",
    ),
    click.option("--max-iter", type=int, help="Maximum number of iterations. Default: as many as --tol needs."),
    _choice(
        "--stop",
        STOPS,
        "error",
        "Quantity that --tol bounds: the proved L1 error, the L1 change per iteration, the change of each rank, or "
        "the L1 change divided by the number of vertices.",
    ),
    _choice("--scale", ["1", "n"], "1", "Sum of the ranks."),
    _choice("--dtype", ["float64", "float32"], "float64", "Type of the ranks."),
)


def method_options(pairs: Collection[str]) -> dict[str, Any]:
    """Parse options of the form NAME=VALUE; VALUE is a number, true, false or null, and otherwise a string."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--option takes NAME=VALUE, not {pair!r}.")
        if name in RANK_ARGUMENTS:
            raise click.UsageError(f"{name} is not an option of a method: see --help.")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def given_by_vertex(option: str, items: Sequence[str], ids: Any) -> Any:
    """Return the argument for the items of an option: vertices, VERTEX=VALUE pairs, or one file.

    `ids`: Column of ids, or frame of several, of the types of the graph's vertices. An item that is one of them is that
    vertex, also if it looks like a pair or names a file; but --vertices adds others, so that its items may be a file.
    A file has the columns `vertex` (the source's columns if a vertex has several) and, optionally, `values` and `seed`.
    """
    if SEEDS in items:
        others = given_by_vertex(option, [item for item in items if item is not SEEDS], ids)
        if others is not None and not isinstance(others, list):
            raise click.UsageError(
                "--exclude has vertices by seed: add the seeds to that file instead of --exclude-seeds."
            )
        return "seeds" if others is None else [*others, "seeds"]
    if not items:
        return None
    kinds = {name: _kind(ids[name].dtype) for name in ids.columns} if ids.ndim == 2 else {"vertex": _kind(ids.dtype)}
    kind = next(iter(kinds.values()))
    is_known = len(kinds) == 1 and kind == "string" and option != "--vertices"
    known = {*ids[ids.isin(items)]} if is_known else set()
    if any(by_suffix(item, ROWS)[0] and item not in known for item in items):
        if len(items) > 1:
            raise click.UsageError(f"{option} takes one file and no further values.")
        return _from_file(option, items[0], kinds)
    if len(kinds) > 1:
        columns = " and ".join(map(repr, kinds))
        raise click.UsageError(f"{option}: vertices have several columns. Pass a file with the columns {columns}.")
    has_values = option in ("--personalization", "--dangling")
    bare = [item for item in items if not has_values or item in known or "=" not in item]
    if len(bare) == len(items):
        return [_vertex(option, item, kind) for item in items]
    values: dict[str | int, float] = {}
    for item in items:
        name, _, number = item.rpartition("=")
        try:
            value = float(number if item not in bare else "")
        except ValueError:
            message = f"{option} takes VERTEX=VALUE, vertices alone, or a file such as values.csv, not {item!r}."
            raise click.UsageError(message) from None
        vertex = _vertex(option, name, kind)
        if vertex in values:
            raise click.UsageError(f"{option} names vertex {name!r} twice.")
        values[vertex] = value
    return values


def changed_edges(paths: Sequence[str], schema: EdgeOptions, graph: Graph, *, removed: bool) -> Any:
    """Return the edges in the files of an update, or None; ids in text are of the kind of the graph's."""
    if not paths:
        return None
    if {input_format(path)[0].name for path in paths} == {"parquet"}:
        return paths[0] if len(paths) == 1 else list(paths)
    ids = graph.vertices
    dtypes = [ids.dtype] if ids.ndim == 1 else [*ids.dtypes][schema.bipartite :]  # without that of sides
    kinds = {_kind(dtype) for dtype in dtypes}
    is_text = all(input_format(path)[0].reader == "text.read" for path in paths)
    text: dict[str, Any] = {}
    if is_text and kinds <= {"integer", "string"}:
        text["ids"] = "string" if "string" in kinds else "integer"
    given = [schema.source, schema.destination, schema.by]
    source, destination, by = (names if names is None or isinstance(names, list) else [names] for names in given)
    try:
        file = read_edges(list(paths), source, destination, schema.weight, by=by, time=schema.time, **text)
    except ColumnNotFoundError:
        if not removed or (schema.weight is None and schema.time is None):
            raise
        file = read_edges(list(paths), source, destination, by=by, **text)  # edges to remove may be without weights
    frame = as_rows(file).frame
    if text and len(kinds) > 1:
        for names in (file.columns.source_names, file.columns.destination_names):
            for name, dtype in zip(names, dtypes, strict=True):
                if _kind(dtype) == "integer":
                    frame[name] = _integers(frame[name], dtype)
    return frame


def _integers(column: Any, dtype: Any) -> Any:
    """Return a column of text as integers."""
    try:
        return column.astype(dtype)
    except (ValueError, OverflowError) as error:
        raise InvalidOptionError(
            f"column {column.name!r} has ids that are not of the graph's type, {dtype}."
        ) from error


def _kind(dtype: Any) -> str:
    return {"i": "integer", "u": "integer"}.get(dtype.kind, "string" if dtype.kind in "OTU" else str(dtype))


def _vertex(option: str, text: str, kind: str) -> str | int:
    if kind == "string":
        return text
    if kind != "integer":
        raise click.UsageError(f"{option}: ids are of type {kind}. Pass them in a Parquet file.")
    from prplugin.io.text import INTEGER  # imports pandas

    if not INTEGER.fullmatch(text):
        raise InvalidOptionError(f"{option}: the ids of this graph are integers without leading zeros, not {text!r}.")
    return int(text)


def _from_file(option: str, path: str, kinds: dict[str, str]) -> Any:
    frame = read_values(path, kinds | {"values": "weight", "seed": "string"})
    if absent := [name for name in kinds if name not in frame.columns]:
        raise ColumnNotFoundError(f"{path}: {option} needs a column {' and '.join(map(repr, absent))}.")
    if len(frame.columns) > len(kinds):
        return frame
    return list(frame.itertuples(index=False, name=None)) if len(kinds) > 1 else frame["vertex"].tolist()
