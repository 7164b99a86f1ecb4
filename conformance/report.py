"""Report of the results in Markdown, JSON and SVG, with everything that is needed to reproduce them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure

from conformance.compare import Result
from conformance.derivation import ratios
from conformance.references import Case
from conformance.report_cugraph import section
from conformance.shapes import SHAPES
from conformance.tables import short, table

if TYPE_CHECKING:
    from conformance.against_cugraph import Comparison
    from conformance.probes import Finding

__all__ = ["ReferenceResult", "reference_results", "save"]

ReferenceResult: TypeAlias = tuple[str, float | str]
"""Name of a reference, and its error or the reason why it has no solution."""

ROOT = Path(__file__).parents[1]

CASE = """\
A case consists of a graph, options, a method and a dtype of the result. Graph and options are varied so that every pair
of their values occurs in a case. The error is the L1 distance to the most exact reference; error / tol includes only
cases that request an error of at most tol. *Refused*: the tolerance is smaller than float32 or nondeterministic sums
can prove, so the method has to refuse it. *Unavailable*: the method cannot rank the graph. *Unsupported*: the frame
library cannot represent the frame. GPU methods get cuDF frames if cuDF is installed. With `--quick`, a case runs with a
quarter of the methods and dtypes, and the next case of its graph with the next quarter, so that every graph runs with
all of them. At alpha = 0.999, `warp` and `persistent` are the only GPU methods that run, since all GPU methods share
the loop and the end of each step."""

FORCED = """\
The same checks run on every shape, from random ranks, with options that the defaults seldom choose. The references
include cuGraph if it is installed; the distance to its ranks is in the L1 norm, at a tolerance of 1e-6."""

FIGURES = (
    "cases", "failures", "refused", "unavailable", "unsupported", "largest error / bound", "largest error / tol",
)  # fmt: skip
"""Columns of the figures of several cases."""

DERIVATION = """\
Bounds as prplugin computes them, divided by those of `conformance/bounds.py`, which follow from
[the documentation](../../docs/semantics.md#its-terms) in rational arithmetic, over the same measurements. A ratio below
1 or above 1.001 is a failure."""

REFERENCE = """\
The error of a reference is bounded by its residual, which is computed by a scatter in extended precision. The residual
of every ranking is checked in the same way. The error of published values is the tolerance stated for each rank."""


def reference_results(case: Case) -> list[ReferenceResult]:
    """Return the error of each reference on a case, or the reason why it has no solution."""
    references: list[ReferenceResult] = [
        (name, solution if isinstance(solution, str) else solution.error) for name, solution in case.solutions.items()
    ]
    return references if case.published is None else [*references, ("published", float(case.published.tolerance.max()))]


def save(
    folder: Path,
    results: list[Result],
    references: list[ReferenceResult],
    methods: dict[str, str | None],
    environment: dict[str, Any],
    comparisons: Sequence[Comparison] = (),
    experiments: Sequence[Finding] = (),
) -> Path:
    """Write KIND.md, KIND.json and KIND.svg, where KIND is "cpu" or the GPU, and return the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    device = environment["machine"]["device"]
    kind = "cpu" if device is None else re.sub(r"[^a-z0-9]+", "-", device.lower().removeprefix("nvidia "))
    content = _json(results, methods, environment, comparisons, experiments)
    (folder / f"{kind}.json").write_text(content, encoding="utf-8")
    if any(result.error is not None for result in results):
        _plot(results).savefig(folder / f"{kind}.svg", metadata={"Date": None})
    markdown = folder / f"{kind}.md"
    cugraph_section = section(comparisons, tuple(SHAPES), experiments)
    text = _markdown(results, references, methods, environment, f"{kind}.svg", cugraph_section)
    markdown.write_text(text, encoding="utf-8")
    return markdown


# --- files --------------------------------------------------------------------------------------------------------


def _markdown(
    results: list[Result],
    references: list[ReferenceResult],
    methods: dict[str, str | None],
    environment: dict[str, Any],
    plot: str,
    cugraph_section: list[str],
) -> str:
    machine = environment["machine"]
    parts = [machine["processor"], f"{machine['cores']} cores", *filter(None, [machine["device"]])]
    failed = [result for result in results if result.failures]
    derived = ratios()
    failures = [f"- `{result.name}`: {'; '.join(result.failures)}" for result in failed]
    failures += [f"- Bound of {r.name}: {r.least} to {r.largest} times the derived one" for r in derived if r.failed]
    by_default = [result for result in results if not result.options]
    lines = [
        "# Conformance",
        "",
        f"{len(results):,} cases, {len(failed):,} {'failure' if len(failed) == 1 else 'failures'}.",
        "",
        f"- Command: `{environment['command']}`",
        f"- Commit: {environment['commit']}",
        f"- Machine: {', '.join(parts)}",
        f"- Versions: {', '.join(f'{name} {number}' for name, number in environment['versions'].items())}",
        "",
        CASE,
        "",
        *table(
            ["method", "frame", "result", *FIGURES],
            [_row(*key, list(group)) for key, group in _grouped(by_default)],
        ),
        "",
        *_absent(methods),
        *_notes(results),
        "",
        *_forced(results),
        "## References",
        "",
        REFERENCE,
        "",
        *table(["reference", "cases", "largest error", "not solved"], _references(references)),
        "",
        "## Error against bound",
        "",
        f"![True error against error bound]({plot})",
        "",
        "## Bounds derived a second time",
        "",
        DERIVATION,
        "",
        *table(
            ["bound of", "measurements", "smallest ratio - 1", "largest ratio - 1"],
            [[r.name, str(r.measurements), f"{r.least - 1:.1g}", f"{r.largest - 1:.1g}"] for r in derived],
        ),
        "",
        "## Failures",
        "",
        *(failures or ["None."]),
        "",
        *cugraph_section,
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _json(
    results: list[Result],
    methods: dict[str, str | None],
    environment: dict[str, Any],
    comparisons: Sequence[Comparison],
    experiments: Sequence[Finding],
) -> str:
    """Return JSON with one case per line and numbers rounded to four significant digits."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if item not in (None, [], {}, "")}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if isinstance(value, float):
            return float(f"{value:.4g}") if math.isfinite(value) else str(value)
        return value

    def lines(items: Sequence[dict[str, Any]]) -> str:
        return "[\n" + ",\n".join(json.dumps(plain(item)) for item in items) + "\n]"

    head = json.dumps({**environment, "methods": methods}, indent=1)
    parts = {"cases": lines([asdict(result) for result in results])}
    if comparisons:
        parts["cugraph"] = lines([asdict(comparison) for comparison in comparisons])
        parts["probes"] = lines([finding._asdict() for finding in experiments])
    return head[:-2] + "".join(f',\n "{name}": {part}' for name, part in parts.items()) + "}\n"


def _plot(results: list[Result]) -> Figure:
    """Plot the error over the bound on logarithmic axes, one panel per method; errors of 0 are drawn at 1e-19."""
    names = list(dict.fromkeys(result.method for result in results))
    columns = min(3, len(names))
    figure = Figure(figsize=(4.5 * columns, 4.2 * -(-len(names) // columns)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(-(-len(names) // columns), columns, sharex=True, sharey=True)).ravel()
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    for panel, name in zip(panels, names, strict=False):
        for dtype, color in (("float64", "tab:blue"), ("float32", "tab:orange")):
            ranked = [r for r in results if (r.method, r.dtype) == (name, dtype) and r.error is not None]
            bounds, errors = [r.bound for r in ranked], [max(r.error or 0.0, 1e-19) for r in ranked]
            panel.scatter(bounds, errors, s=9, alpha=0.5, color=color, label=dtype, linewidths=0, rasterized=True)
        panel.plot([1e-16, 4], [1e-16, 4], color="black", linewidth=0.8, label="error = bound")
        panel.set(xscale="log", yscale="log", title=name, xlabel="error_bound", ylabel="true error (L1)")
    panels[0].legend(loc="lower right", fontsize="small")
    return figure


# --- rows ---------------------------------------------------------------------------------------------------------


def _grouped(results: list[Result]) -> Iterable[tuple[tuple[str, str, str], Iterable[Result]]]:
    def key(result: Result) -> tuple[str, str, str]:
        return result.method, result.library, result.dtype

    return groupby(sorted(results, key=key), key)


def _row(name: str, library: str, dtype: str, results: list[Result]) -> list[str]:
    outcomes = Counter(result.outcome for result in results)
    to_bound = [r.error / r.bound for r in results if r.error is not None and r.bound]
    to_tol = [r.error / r.tol for r in results if r.error is not None and r.tol]
    return [
        f"`{name}`",
        library,
        dtype,
        str(len(results)),
        str(sum(bool(result.failures) for result in results)),
        str(outcomes["refused"]),
        str(outcomes["unavailable"]),
        str(outcomes["unsupported"]),
        short(max(to_bound, default=None)),
        short(max(to_tol, default=None)),
    ]


def _absent(methods: dict[str, str | None]) -> list[str]:
    """Return a line for each reason why methods did not run."""
    names: dict[str, list[str]] = {}
    for name, reason in methods.items():
        if reason:
            names.setdefault(reason, []).append(f"`{name}`")
    return [f"- {', '.join(of_reason)} did not run: {reason}" for reason, of_reason in names.items()]


def _forced(results: list[Result]) -> list[str]:
    """Return the section on forced options, or none."""

    def key(result: Result) -> tuple[str, str]:
        return result.method, result.options

    groups = [list(group) for _, group in groupby(sorted((r for r in results if r.options), key=key), key)]
    rows = []
    for group in groups:
        distances = [result.errors["cugraph"][0] for result in group if "cugraph" in result.errors]
        figures = _row(group[0].method, "", "", group)[3:]
        rows.append([f"`{group[0].method}`", group[0].options, *figures, short(max(distances, default=None))])
    if not rows:
        return []
    columns = ["method", "options", *FIGURES, "largest distance to cuGraph"]
    return ["## Forced options", "", FORCED, "", *table(columns, rows), ""]


def _notes(results: list[Result]) -> list[str]:
    """Return lines on unavailable methods, with the first case of each, and on unsupported frames."""
    unavailable = [result for result in results if result.outcome == "unavailable"]
    lines = []
    for method, count in Counter(result.method for result in unavailable).items():
        first = next(result for result in unavailable if result.method == method)
        lines.append(f"- `{method}` was unavailable for {count} of its cases, first `{first.case}`: {first.note}")
    unsupported = [result for result in results if result.outcome == "unsupported"]
    return [*lines, *dict.fromkeys(f"- `{r.case}` is not supported by {r.library}: {r.note}" for r in unsupported)]


def _references(references: list[ReferenceResult]) -> list[list[str]]:
    rows = []
    for name in dict.fromkeys(name for name, _ in references):
        errors = [outcome for other, outcome in references if other == name and isinstance(outcome, float)]
        reasons = Counter(outcome for other, outcome in references if other == name and isinstance(outcome, str))
        unsolved = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
        rows.append([name, str(len(errors)), short(max(errors, default=None)), unsolved])
    return rows
