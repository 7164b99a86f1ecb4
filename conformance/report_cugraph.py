"""The part of the report that sets every method beside cuGraph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance.tables import short, table

if TYPE_CHECKING:
    from conformance.against_cugraph import Beside
    from conformance.probes import Finding

__all__ = ["section"]

TEXT = """\
Every method on the GPU that is fit, with its default options and to both types of the result, beside `cugraph.pagerank`
on the same cuDF frame, called as its users call it: alpha 0.85, `tol=1e-10`, `max_iter=1000`, `store_transposed=True`.
No rank may be further than 1.1e-7 from cuGraph's: a tenth of the 1.1e-6 that cuGraph's own tests allow, which also let
1 % of the vertices miss it. Where cuGraph computes in float32 (no weights, or weights of that type) and is itself off
by more than ours from a float64 reference, the case says so, and ours is held to the reference, within the same 1.1e-7
a vertex and its own error bound. *Apart*: the greatest distance of one rank. *L1*: all errors together, to the
reference.
*Proved*: cuGraph's by the residual of its ranks, ours by `error_bound`; the worst method's."""

COLUMNS = ("apart", "cuGraph: L1", "proved", "a vertex", "ours: L1", "proved", "a vertex")

PROBES = """\
What each side did with the same small graph, as it came out in this run. 0 -> 1 -> 2 unless weights are given; then 0
points at 1 and 2, which point back."""


def section(besides: Sequence[Beside], shapes: Sequence[str], findings: Sequence[Finding]) -> list[str]:
    """Return the lines of the part, or none where cuGraph did not run."""
    if not besides:
        return []
    of_shapes = [found for found in besides if found.graph in shapes]
    real = [found for found in besides if found.graph not in shapes]
    apart = [found for found in of_shapes if found.verdict != "agree"]
    failures = [f"- `{found.graph}`, {found.way}: {'; '.join(found.failures)}" for found in besides if found.failures]
    rankings, noun = sum(found.rankings for found in besides), "failure" if len(failures) == 1 else "failures"
    return [
        "## Beside cuGraph",
        "",
        f"{rankings:,} rankings of {len(besides):,} cases, {len(failures):,} {noun}.",
        "",
        TEXT,
        "",
        "### Shapes, by the way of asking",
        "",
        *table(["way", "shapes", "outcomes", *COLUMNS], _by_way(of_shapes)),
        "",
        "### Real graphs",
        "",
        *table(["graph", "vertices", "edges", "way", *COLUMNS, "verdict"], [_row(found, size=True) for found in real]),
        "",
        "### Shapes on which the two are apart, or cuGraph was not asked or could not",
        "",
        *table(["graph", "way", *COLUMNS, "verdict"], [_row(found, size=False) for found in apart]),
        "",
        "### Failures beside cuGraph",
        "",
        *(failures or ["None."]),
        "",
        "### What cuGraph gets wrong, or does not say",
        "",
        PROBES,
        "",
        *table(["asked", "cuGraph", "prplugin"], [list(finding) for finding in findings]),
        "",
    ]


def _figures(found: Beside) -> tuple[float | None, ...]:
    return (
        found.apart,
        found.theirs_l1,
        found.theirs_proved,
        found.theirs_vertex,
        found.ours_l1,
        found.ours_proved,
        found.ours_vertex,
    )


def _by_way(besides: Sequence[Beside]) -> list[list[str]]:
    rows = []
    for way in dict.fromkeys(found.way for found in besides):
        those = [found for found in besides if found.way == way]
        outcomes = Counter(found.verdict for found in those)
        worst = [
            max((figure for figure in column if figure is not None), default=None)
            for column in zip(*map(_figures, those), strict=True)
        ]
        spelled = "; ".join(f"{count} {verdict}" for verdict, count in outcomes.most_common())
        rows.append([way, str(len(those)), spelled, *map(short, worst)])
    return rows


def _row(found: Beside, *, size: bool) -> list[str]:
    sizes = [f"{found.n:,}", f"{found.m:,}"] if size else []
    verdict = found.verdict + (f": {found.refusal}" if found.refusal not in ("", found.verdict) else "")
    return [found.graph, *sizes, found.way, *map(short, _figures(found)), verdict]
