"""Values that other projects publish for their own tests: one JSON file per case, if their folder is available."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from conformance.equation import equation, with_vectors
from conformance.references import Case, Published, solutions

__all__ = ["ABSENT", "files", "graphs", "read"]

ABSENT = "published values are missing: set PRPLUGIN_DATA to their folder"

TOL = 1e-6
"""Tolerance of ranks that are compared with converged values: at most a hundredth of the published tolerance."""


def files() -> list[Path]:
    """Return the files in the folder `expected` of $PRPLUGIN_DATA or of the default folder, if there are any."""
    return _find("expected/*.json")


def graphs() -> list[Path]:
    """Return real graphs in the folder `graphs`: Parquet files with the columns src, dst and optionally weight."""
    return _find("graphs/*.parquet")


def _find(pattern: str) -> list[Path]:
    folders = [os.environ.get("PRPLUGIN_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for folder in folders:
        if folder and (found := sorted(Path(folder).glob(pattern))):
            return found
    return []


def read(file: Path) -> Case:
    """Return the case of a file. Ids are positions, because one file has the nodes 3 and "3"."""
    content = json.loads(file.read_text(encoding="utf-8"))
    nodes = content["nodes"]
    position = {(type(node), node): index for index, node in enumerate(nodes)}
    endpoints = [[position[type(node), node] for node in edge] for edge in content["edges"]]
    frame = pd.DataFrame(endpoints, columns=["src", "dst"])
    graph: dict[str, Any] = {"directed": content["directed"], "vertices": list(range(len(nodes)))}
    if content["weights"] is not None:
        frame["weight"] = content["weights"]
        graph["weight"] = "weight"
    personalization = _vector(content["personalization"], nodes)
    dangling = _vector(content["dangling"], nodes)
    problem = equation(frame, **graph, alpha=content["alpha"])
    problem = with_vectors(problem, personalization, dangling, None)
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
    return Case(file.stem, frame, graph, rank, problem, solutions(problem), Published(expected, tolerance))


def _vector(given: Any, nodes: list[Any]) -> dict[int, float] | None:
    """Return a vector by position; in a file it is a dict by the text of a node, "uniform", or "v" for the default."""
    if given is None or given == "v":
        return None
    if given == "uniform":
        return dict.fromkeys(range(len(nodes)), 1.0)
    position_of_text = {str(node): index for index, node in enumerate(nodes)}
    if len(position_of_text) < len(nodes):
        raise ValueError("two nodes have the same text: a vector by node is ambiguous")
    return {position_of_text[node]: value for node, value in given.items()}
