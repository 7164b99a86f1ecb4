"""Section of the report that compares every GPU method with cuGraph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance.tables import short, table

if TYPE_CHECKING:
    from conformance.against_cugraph import Comparison
    from conformance.probes import Finding

__all__ = ["section"]

TEXT = """\
Every available GPU method is compared with `cugraph.pagerank` on the same cuDF frame, with default options and both
dtypes of the result. cuGraph is called with alpha 0.85, `tol=1e-10`, `max_iter=1000` and `store_transposed=True`. No
rank may differ by more than 1.1e-7 from cuGraph's: a tenth of the 1.1e-6 that cuGraph's own tests allow, which also
exempt 1 % of the vertices. If cuGraph computes in float32 (without weights, or with float32 weights) and has a larger
error than prplugin, the verdict says so, and prplugin is compared with a float64 reference: within 1.1e-7 per vertex,
and within its error bound. *Difference*: largest difference of a rank. *L1*: L1 distance to the reference. *Bound*:
bound of that distance, from the residual for cuGraph, `error_bound` for prplugin. *Vertex*: largest error of a rank.
The figures of prplugin are the maxima over all methods."""

COLUMNS = ("difference", "cuGraph: L1", "bound", "vertex", "prplugin: L1", "bound", "vertex")

PROBES = """\
The table shows the outcome of each library on the same small graph in this run. The graph is 0 -> 1 -> 2 or, with
weights, 0 -> 1, 0 -> 2, 1 -> 0, 2 -> 0."""


def section(comparisons: Sequence[Comparison], shapes: Sequence[str], experiments: Sequence[Finding]) -> list[str]:
    """Return the lines of the section, or none if cuGraph did not run."""
    if not comparisons:
        return []
    of_shapes = [found for found in comparisons if found.graph in shapes]
    real = [found for found in comparisons if found.graph not in shapes]
    other = [found for found in of_shapes if found.verdict != "agree"]
    failed = [found for found in comparisons if found.failures]
    failures = [f"- `{found.graph}`, {found.call}: {'; '.join(found.failures)}" for found in failed]
    rankings, noun = sum(found.rankings for found in comparisons), "failure" if len(failures) == 1 else "failures"
    return [
        "## Comparison with cuGraph",
        "",
        f"{rankings:,} rankings of {len(comparisons):,} cases, {len(failures):,} {noun}.",
        "",
        TEXT,
        "",
        "### Shapes, by call of cuGraph",
        "",
        *table(["call", "shapes", "outcomes", *COLUMNS], _by_call(of_shapes)),
        "",
        "### Real graphs",
        "",
        *table(["graph", "vertices", "edges", "call", *COLUMNS, "verdict"], [_row(found, size=True) for found in real]),
        "",
        "### Shapes without agreement",
        "",
        *table(["graph", "call", *COLUMNS, "verdict"], [_row(found, size=False) for found in other]),
        "",
        "### Failures of the comparison",
        "",
        *(failures or ["None."]),
        "",
        "### Invalid or ambiguous input",
        "",
        PROBES,
        "",
        *table(["experiment", "cuGraph", "prplugin"], [list(experiment) for experiment in experiments]),
        "",
    ]


def _figures(found: Comparison) -> tuple[float | None, ...]:
    return (
        found.difference,
        found.cugraph_l1,
        found.cugraph_bound,
        found.cugraph_vertex,
        found.prplugin_l1,
        found.prplugin_bound,
        found.prplugin_vertex,
    )


def _by_call(comparisons: Sequence[Comparison]) -> list[list[str]]:
    rows = []
    for call in dict.fromkeys(found.call for found in comparisons):
        of_call = [found for found in comparisons if found.call == call]
        outcomes = Counter(found.verdict for found in of_call)
        worst = [
            max((figure for figure in column if figure is not None), default=None)
            for column in zip(*map(_figures, of_call), strict=True)
        ]
        text = "; ".join(f"{count} {verdict}" for verdict, count in outcomes.most_common())
        rows.append([call, str(len(of_call)), text, *map(short, worst)])
    return rows


def _row(found: Comparison, *, size: bool) -> list[str]:
    sizes = [f"{found.n:,}", f"{found.m:,}"] if size else []
    verdict = found.verdict + (f": {found.reason}" if found.reason not in ("", found.verdict) else "")
    return [found.graph, *sizes, found.call, *map(short, _figures(found)), verdict]
