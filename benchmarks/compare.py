"""Changes between two runs that exceed the noise: ``python -m benchmarks compare A.json B.json``.

Rows are matched by their key columns, samples by their names. The noise of a run is half the interquartile range of its
samples relative to their median; with fewer than five samples, half their range. Medians differ beyond the noise if
they differ by more than the sum of both runs' noise and by at least 3 %, since times vary by that much between
processes, which samples of one process do not show. A single sample is not judged.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COLUMNS = ("row", "what", "A", "B", "B / A", "noise %", "verdict")

LEAST_NOISE = 0.03
MIN_FOR_QUARTILES = 5
VERDICTS = ("changed", "same", "not judged", "only in A", "only in B")

Samples = dict[tuple[str, str], list[float]]


def compared(first: Path, second: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the differences of environment, and one row per measurement: changes first, largest first."""
    run_a, run_b = (json.loads(path.read_text()) for path in (first, second))
    samples_a, samples_b = _samples(run_a), _samples(run_b)
    rows = []
    for key in dict.fromkeys([*samples_a, *samples_b]):
        row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {"row": key[0], "what": key[1]}
        runs = {"A": samples_a, "B": samples_b}
        medians = {run: statistics.median(samples[key]) for run, samples in runs.items() if key in samples}
        row |= medians
        if len(medians) == 1:
            row["verdict"] = f"only in {next(iter(medians))}"
        else:
            row["B / A"] = medians["B"] / medians["A"] if medians["A"] else math.inf
            verdict, noise = beyond_noise(samples_a[key], samples_b[key])
            row |= {"noise %": "" if noise is None else 100 * noise, "verdict": verdict}
        rows.append(row)
    rows.sort(key=lambda row: (VERDICTS.index(row["verdict"]), -abs(math.log(row["B / A"] or 1))))
    return differences(run_a, run_b), rows


def beyond_noise(one: list[float], other: list[float]) -> tuple[str, float | None]:
    """Return "changed", "same" or "not judged", and the smallest relative difference that counts as a change."""
    if min(len(one), len(other)) < 2:
        return "not judged", None
    noise = max(_noise(one) + _noise(other), LEAST_NOISE)
    low, high = sorted((statistics.median(one), statistics.median(other)))
    return ("changed" if high > low * (1 + noise) else "same"), noise


def _noise(samples: list[float]) -> float:
    if len(samples) < MIN_FOR_QUARTILES:
        spread = max(samples) - min(samples)
    else:
        quartiles = statistics.quantiles(samples, n=4, method="inclusive")
        spread = quartiles[2] - quartiles[0]
    return spread / 2 / statistics.median(samples) if spread else 0.0


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return one line per difference of machine, versions, commit and command."""
    flat = [
        {
            "command": about["command"],
            "commit": about["commit"],
            **{f"machine: {name}": value for name, value in about["machine"].items()},
            **{f"version of {name}": value for name, value in about["versions"].items()},
        }
        for about in (one, other)
    ]
    names = dict.fromkeys([*flat[0], *flat[1]])
    return [
        f"{name}: {flat[0].get(name, 'none')} -> {flat[1].get(name, 'none')}"
        for name in names
        if flat[0].get(name) != flat[1].get(name)
    ]


def _samples(run: dict[str, Any]) -> Samples:
    """Return all samples of a run by row and name."""
    found: Samples = {}
    for row in run["rows"]:
        keys = run.get("keys") or [name for name, value in row.items() if isinstance(value, str) and name != "note"]
        title = ", ".join(str(row[key]) for key in ("table", *keys) if row.get(key, "") != "")
        for name, samples in _numbers(row.get("samples"), ""):
            key, number = (title, name), 1
            while key in found:  # rows with equal keys are numbered
                number += 1
                key = f"{title} ({number})", name
            found[key] = samples
    return found


def _numbers(samples: Any, name: str) -> Iterator[tuple[str, list[float]]]:
    """Yield nested lists of numbers with their names; a list of lists is split into its columns."""
    if isinstance(samples, dict):
        for inner, value in samples.items():
            yield from _numbers(value, f"{name} {inner}".strip())
    elif isinstance(samples, list) and samples and all(isinstance(value, list) for value in samples):
        for column, values in enumerate(zip(*samples, strict=True), 1):
            yield from _numbers(list(values), f"{name} column {column}".strip())
    elif isinstance(samples, list) and samples and all(isinstance(value, (int, float)) for value in samples):
        yield name or "seconds", samples
