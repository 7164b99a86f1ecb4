"""Values that other projects publish for their own tests: one JSON file a case, where their folder is at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from conformance.compare import Case, Published
from conformance.equation import equation, with_vectors
from conformance.references import solutions

__all__ = ["ABSENT", "files", "graphs", "read"]

ABSENT = "published values are not here: set PRPLUGIN_DATA to their folder"

TOL = 1e-6
"""Of the ranks that are compared with converged values: a hundredth of what these are published to, or less."""


def files() -> list[Path]:
    """Find the cases: in $PRPLUGIN_DATA/expected, else in shared/data/expected beside the repository; else none."""
    return _found("expected/*.json")


def graphs() -> list[Path]:
    """Find real graphs, in graphs beside the cases: Parquet files with the columns src, dst and perhaps weight."""
    return _found("graphs/*.parquet")


def _found(pattern: str) -> list[Path]:
    places = [os.environ.get("PRPLUGIN_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for place in places:
        if place and (found := sorted(Path(place).glob(pattern))):
            return found
    return []


def read(file: Path) -> Case:
    """Make a case of a file. Nodes become positions: one file has both 3 and "3" among its ids."""
    content = json.loads(file.read_text(encoding="utf-8"))
    nodes = content["nodes"]
    position = {(type(node), node): place for place, node in enumerate(nodes)}
    endpoints = [[position[type(node), node] for node in edge] for edge in content["edges"]]
    frame = pd.DataFrame(endpoints, columns=["src", "dst"])
    graph: dict[str, Any] = {"directed": content["directed"], "vertices": list(range(len(nodes)))}
    if content["weights"] is not None:
        frame["weight"] = content["weights"]
        graph["weight"] = "weight"
    personalization = _vector(content["personalization"], nodes)
    dangling = _vector(content["dangling"], nodes)
    meaning = equation(frame, **graph, alpha=content["alpha"])
    meaning = with_vectors(meaning, personalization, dangling, None)
    rank = {
        "alpha": content["alpha"],
        "personalization": personalization,
        "dangling": dangling,
        "scale": 1,
        "top": None,
        "stop": "error",
        "tol": TOL,
    }
    if content["iterations"] is not None:
        rank |= {"tol": 0, "max_iter": content["iterations"]}
    expected = np.array(content["expected"])
    relative = content["tolerance_kind"] == "rel"
    tolerance = content["published_tolerance"] * (expected if relative else np.ones_like(expected))
    return Case(file.stem, frame, graph, rank, meaning, solutions(meaning), Published(expected, tolerance))


def _vector(given: Any, nodes: list[Any]) -> dict[int, float] | None:
    """Read a vector: values by the spelling of a node, or a word for one; as positions."""
    if given is None or given == "v":
        return None
    if given == "uniform":
        return dict.fromkeys(range(len(nodes)), 1.0)
    spelled = {str(node): place for place, node in enumerate(nodes)}
    if len(spelled) < len(nodes):
        raise ValueError("two nodes are spelled the same: a vector by node would be ambiguous")
    return {spelled[node]: value for node, value in given.items()}
