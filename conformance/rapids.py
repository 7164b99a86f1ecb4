"""cuDF and cuGraph, where they and a GPU are: imported late, which takes seconds, and quietly, for they warn a lot."""

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
    "NoFormError",
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


class NoFormError(Exception):
    """Why cuDF cannot hold a frame."""


@contextmanager
def quietly() -> Iterator[None]:
    """Let the libraries warn of their own affairs unheard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cache
def missing(name: str) -> str | None:
    """Say why "cudf" or "cugraph" cannot be used here, or None; it is imported only where there is a GPU."""
    if find_spec(name) is None:
        return f"{name} is not installed"
    if reason := runtime.unavailable_reason():
        return f"{name} cannot run: {reason}"
    try:
        module(name)
    except Exception as error:  # those of its libraries are of many classes
        return f"{name} does not import: {type(error).__name__}: {error}"
    return None


def module(name: str) -> Any:
    """Import "cudf" or "cugraph"."""
    with quietly():
        return importlib.import_module(name)


def as_cudf(value: Any) -> Any:
    """Return a frame, Series or Index of pandas as one of cuDF, and anything else as it is.

    Raises
    ------
    NoFormError
        If cuDF has no type for a column.
    """
    if not isinstance(value, (pd.DataFrame, pd.Series, pd.Index)):
        return value
    try:
        with quietly():
            return module("cudf").from_pandas(value, nan_as_null=False)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise NoFormError(f"{type(error).__name__}: {error}".splitlines()[0]) from error


def on_host(value: Any) -> Any:
    """Return a frame or Series of cuDF as one of pandas, an array of CuPy as one of NumPy, and these as they are."""
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
    """Make a graph of a frame of pandas or cuDF, stored as PageRank wants it.

    Parameters
    ----------
    multi : bool
        Keep parallel edges, as cuGraph's `MultiGraph` does.
    vertices : Series, array or list, optional
        All vertices, where some are isolated.
    """
    with quietly():
        made = getattr(module("cugraph"), "MultiGraph" if multi else "Graph")(directed=directed)
        frame = as_cudf(edges)
        if vertices is not None:
            vertices = as_cudf(pd.Series(vertices))
        made.from_cudf_edgelist(
            frame, source=source, destination=destination, weight=weight, store_transposed=True, vertices=vertices
        )
    return made


def pagerank(graph: Any, **options: Any) -> tuple[pd.DataFrame, bool]:
    """Rank by `cugraph.pagerank`; also give its word on whether it converged."""
    with quietly():
        ranks, converged = module("cugraph").pagerank(graph, fail_on_nonconvergence=False, **options)
        return ranks.to_pandas(), bool(converged)


def by_position(ranks: pd.DataFrame, vertices: pd.Index) -> np.ndarray | str:
    """Put ranks in the order of the vertices, or say which vertices are too many or too few."""
    positions = vertices.get_indexer(index_of(ranks.drop(columns="pagerank")))
    if (positions < 0).any() or (np.bincount(positions, minlength=len(vertices)) != 1).any():
        return f"ranks {len(ranks):,} vertices of other names than the graph's {len(vertices):,}"
    spread = np.zeros(len(vertices))
    spread[positions] = ranks["pagerank"].to_numpy(np.float64)
    return spread


def index_of(ids: pd.DataFrame) -> pd.Index:
    """Return ids as an index: integers of any width, others as Python has them, whatever column they come in."""
    columns = [ids[name] if ids[name].dtype.kind in "iu" else ids[name].astype(object) for name in ids]
    if len(columns) > 1:
        return pd.MultiIndex.from_arrays(columns)
    return pd.Index(columns[0], dtype=columns[0].dtype)
