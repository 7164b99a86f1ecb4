"""Access to cuDF and cuGraph by lazy imports, which take seconds, with their warnings suppressed."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from prplugin.gpu import runtime

__all__ = [
    "UnsupportedFrameError",
    "as_cudf",
    "by_position",
    "graph",
    "index_of",
    "missing",
    "module",
    "on_host",
    "pagerank",
    "quietly",
]


class UnsupportedFrameError(Exception):
    """Raised if cuDF cannot represent a frame."""


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress the warnings of the libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cache
def missing(name: str) -> str | None:
    """Return why "cudf" or "cugraph" cannot be used here, or None; import it only if there is a GPU."""
    if find_spec(name) is None:
        return f"{name} is not installed"
    if reason := runtime.unavailable_reason():
        return f"{name} cannot run: {reason}"
    try:
        module(name)
    except Exception as error:  # errors of its libraries have many classes
        return f"{name} does not import: {type(error).__name__}: {error}"
    return None


def module(name: str) -> Any:
    """Import and return "cudf" or "cugraph"."""
    with quietly():
        return importlib.import_module(name)


def as_cudf(value: Any) -> Any:
    """Return a pandas frame, Series or Index as a cuDF one, and anything else unchanged.

    Raises
    ------
    UnsupportedFrameError
        If cuDF has no dtype for a column.
    """
    if not isinstance(value, (pd.DataFrame, pd.Series, pd.Index)):
        return value
    try:
        with quietly():
            return module("cudf").from_pandas(value, nan_as_null=False)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise UnsupportedFrameError(f"{type(error).__name__}: {error}".splitlines()[0]) from error


def on_host(value: Any) -> Any:
    """Return a cuDF frame or Series as a pandas one, a CuPy array as a NumPy one, and others unchanged."""
    if hasattr(value, "to_pandas"):
        with quietly():
            return value.to_pandas()
    return value.get() if type(value).__module__.startswith("cupy") else value


# --- cuGraph ------------------------------------------------------------------------------------------------------


def graph(
    edges: Any,
    source: Any = "src",
    destination: Any = "dst",
    *,
    weight: str | None = None,
    directed: bool = True,
    multi: bool = False,
    vertices: Any = None,
) -> Any:
    """Return a cuGraph graph of a pandas or cuDF frame, stored transposed as PageRank requires.

    Parameters
    ----------
    multi : bool
        Keep parallel edges, as cuGraph's `MultiGraph` does.
    vertices : Series, array or list, optional
        All vertices, if some are isolated.
    """
    with quietly():
        built = getattr(module("cugraph"), "MultiGraph" if multi else "Graph")(directed=directed)
        frame = as_cudf(edges)
        if vertices is not None:
            vertices = as_cudf(pd.Series(vertices))
        built.from_cudf_edgelist(
            frame, source=source, destination=destination, weight=weight, store_transposed=True, vertices=vertices
        )
    return built


def pagerank(graph: Any, **options: Any) -> tuple[pd.DataFrame, bool]:
    """Return the ranks of `cugraph.pagerank`, and whether it reports convergence."""
    with quietly():
        ranks, converged = module("cugraph").pagerank(graph, fail_on_nonconvergence=False, **options)
        return ranks.to_pandas(), bool(converged)


def by_position(ranks: pd.DataFrame, vertices: pd.Index) -> np.ndarray | str:
    """Return ranks in the order of the vertices, or a message if their vertices differ."""
    positions = vertices.get_indexer(index_of(ranks.drop(columns="pagerank")))
    if (positions < 0).any() or (np.bincount(positions, minlength=len(vertices)) != 1).any():
        return f"ranks {len(ranks):,} vertices that are not the graph's {len(vertices):,}"
    ordered = np.zeros(len(vertices))
    ordered[positions] = ranks["pagerank"].to_numpy(np.float64)
    return ordered


def index_of(ids: pd.DataFrame) -> pd.Index:
    """Return ids as an index: integers keep their dtype, others become Python objects."""
    columns = [ids[name] if ids[name].dtype.kind in "iu" else ids[name].astype(object) for name in ids]
    if len(columns) > 1:
        return pd.MultiIndex.from_arrays(columns)
    return pd.Index(columns[0], dtype=columns[0].dtype)
