"""The results as Markdown, JSON and a picture, with all that is needed to run them again."""

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

from conformance.compare import Case, Result
from conformance.report_cugraph import section
from conformance.shapes import SHAPES
from conformance.tables import short, table

if TYPE_CHECKING:
    from conformance.against_cugraph import Beside
    from conformance.probes import Finding

__all__ = ["Answer", "answers", "save"]

Answer: TypeAlias = tuple[str, float | str]
"""A reference, and its own error or the reason why it has no solution."""

ROOT = Path(__file__).parents[1]

CASE = """\
A case is a graph, options, a method and a type of the result; every two values of any two options and graphs meet in
one. The error is the L1 distance to the most exact reference; error / tol is over the cases that ask for a proved error
of at most tol. *Refused*: a tolerance finer than float32 can hold, or than sums in the order of arrival can prove:
it has to be refused. *Unfit*: the method says that the graph is not for it. *No form*: the frame library has none for
the frame. Methods on the GPU get cuDF frames where cuDF is.
With `--quick`, a case is put to a quarter of the methods and types, the next case of its graph to the next quarter, so
that every graph meets all of them. Where alpha is 0.999, `warp` and `persistent` stand for the others on the GPU, which
share the loop and the end of each step."""

REFERENCE = """\
A reference's own error is proved by its residual, computed by a scatter in extended precision, which also checks every
ranking. That of published values is the tolerance that their publisher states, for each rank."""


def answers(case: Case) -> list[Answer]:
    """Say for each reference how exact its solution of a case is, or why it has none."""
    found: list[Answer] = [
        (name, solution if isinstance(solution, str) else solution.error) for name, solution in case.solutions.items()
    ]
    return found if case.published is None else [*found, ("published", float(case.published.tolerance.max()))]


def save(
    folder: Path,
    results: list[Result],
    found: list[Answer],
    methods: dict[str, str | None],
    about: dict[str, Any],
    besides: Sequence[Beside] = (),
    findings: Sequence[Finding] = (),
) -> Path:
    """Write KIND.md, KIND.json and KIND.svg, KIND being "cpu" or the name of the GPU; return the first."""
    folder.mkdir(parents=True, exist_ok=True)
    device = about["machine"]["device"]
    kind = "cpu" if device is None else re.sub(r"[^a-z0-9]+", "-", device.lower().removeprefix("nvidia "))
    (folder / f"{kind}.json").write_text(_json(results, methods, about, besides, findings), encoding="utf-8")
    if any(result.error is not None for result in results):
        _picture(results).savefig(folder / f"{kind}.svg", metadata={"Date": None})
    markdown = folder / f"{kind}.md"
    text = _markdown(results, found, methods, about, f"{kind}.svg", section(besides, tuple(SHAPES), findings))
    markdown.write_text(text, encoding="utf-8")
    return markdown


# --- the three files ----------------------------------------------------------------------------------------------


def _markdown(
    results: list[Result],
    found: list[Answer],
    methods: dict[str, str | None],
    about: dict[str, Any],
    picture: str,
    beside_cugraph: list[str],
) -> str:
    machine = about["machine"]
    parts = [machine["processor"], f"{machine['cores']} cores", *filter(None, [machine["device"]])]
    failed = [result for result in results if result.failures]
    lines = [
        "# Conformance",
        "",
        f"{len(results):,} cases, {len(failed):,} {'failure' if len(failed) == 1 else 'failures'}.",
        "",
        f"- Command: `{about['command']}`",
        f"- Commit: {about['commit']}",
        f"- Machine: {', '.join(parts)}",
        f"- Versions: {', '.join(f'{name} {number}' for name, number in about['versions'].items())}",
        "",
        CASE,
        "",
        *table(
            [
                "method",
                "frame",
                "result",
                "cases",
                "failures",
                "refused",
                "unavailable",
                "no form",
                "largest error / bound",
                "largest error / tol",
            ],
            [_row(*key, list(group)) for key, group in _grouped(results)],
        ),
        "",
        *[f"- `{name}` did not run: {reason}" for name, reason in methods.items() if reason],
        *_notes(results),
        "",
        "## References",
        "",
        REFERENCE,
        "",
        *table(["reference", "cases", "largest own error", "not solved"], _references(found)),
        "",
        "## Error against bound",
        "",
        f"![True error against proved bound]({picture})",
        "",
        "## Failures",
        "",
        *([f"- `{result.name}`: {'; '.join(result.failures)}" for result in failed] or ["None."]),
        "",
        *beside_cugraph,
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _json(
    results: list[Result],
    methods: dict[str, str | None],
    about: dict[str, Any],
    besides: Sequence[Beside],
    findings: Sequence[Finding],
) -> str:
    """Write one case a line, numbers to four digits."""

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

    head = json.dumps({**about, "methods": methods}, indent=1)
    parts = {"cases": lines([asdict(result) for result in results])}
    if besides:
        parts["cugraph"] = lines([asdict(found) for found in besides])
        parts["probes"] = lines([finding._asdict() for finding in findings])
    return head[:-2] + "".join(f',\n "{name}": {part}' for name, part in parts.items()) + "}\n"


def _picture(results: list[Result]) -> Figure:
    """Draw the error over the bound, both logarithmic, a panel a method; errors of 0 lie on the lower edge."""
    names = list(dict.fromkeys(result.method for result in results))
    columns = min(3, len(names))
    figure = Figure(figsize=(4.5 * columns, 4.2 * -(-len(names) // columns)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(-(-len(names) // columns), columns, sharex=True, sharey=True)).ravel()
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    for panel, name in zip(panels, names, strict=False):
        for dtype, colour in (("float64", "tab:blue"), ("float32", "tab:orange")):
            ranked = [r for r in results if (r.method, r.dtype) == (name, dtype) and r.error is not None]
            bounds, errors = [r.bound for r in ranked], [max(r.error or 0.0, 1e-19) for r in ranked]
            panel.scatter(bounds, errors, s=9, alpha=0.5, color=colour, label=dtype, linewidths=0)
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
        str(outcomes["no form"]),
        short(max(to_bound, default=None)),
        short(max(to_tol, default=None)),
    ]


def _notes(results: list[Result]) -> list[str]:
    """Say of each method that was unavailable why, with one case of several; and which frames have no form."""
    unavailable = [one for one in results if one.outcome == "unavailable"]
    lines = []
    for method, count in Counter(one.method for one in unavailable).items():
        first = next(one for one in unavailable if one.method == method)
        lines.append(f"- `{method}` was unavailable for {count} of its cases, first `{first.case}`: {first.note}")
    formless = [one for one in results if one.outcome == "no form"]
    return [*lines, *dict.fromkeys(f"- `{one.case}` has no form in {one.library}: {one.note}" for one in formless)]


def _references(found: list[Answer]) -> list[list[str]]:
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        errors = [answer for other, answer in found if other == name and isinstance(answer, float)]
        reasons = Counter(answer for other, answer in found if other == name and isinstance(answer, str))
        unsolved = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
        rows.append([name, str(len(errors)), short(max(errors, default=None)), unsolved])
    return rows
