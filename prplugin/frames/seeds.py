"""The values of many seeds, as users give them and frames hold them: the same for every frame library."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from prplugin.errors import InvalidOptionError, counted, listed
from prplugin.types.arrays import namespace
from prplugin.types.edges import Floats, Integers

__all__ = [
    "SEED",
    "Labels",
    "SeedValues",
    "are_many",
    "parted",
    "refuse_absent_seeds",
    "refuse_repeated_seeds",
    "seed_names",
]

SEED = "seed"
"""The column of a frame that tells seeds apart, in arguments and results."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What seeds are called in the result.

    Attributes
    ----------
    rows : array of k positions, or None
        Seeds that are vertices.
    column : column of k labels, or None
        Others, as the adapter holds columns.
    """

    rows: Integers | None = None
    column: Any = None


@dataclass(frozen=True, slots=True)
class SeedValues:
    """Values by vertex of several seeds, as given.

    Attributes
    ----------
    bounds : array of k + 1 int64, on the host
        Those of seed j are ``bounds[j]:bounds[j + 1]``.
    rows : array of positions
    values : array of float64
        Finite and at least 0.
    labels : Labels
    """

    bounds: Integers
    rows: Integers
    values: Floats
    labels: Labels


def are_many(given: Any, names: list[Hashable]) -> bool:
    """Say whether these are meant as the values of several seeds; `names` are of the vertices' columns."""
    return isinstance(given, (list, tuple)) or (SEED in getattr(given, "columns", ()) and SEED not in names)


def parted(given: Any, names: list[Hashable], what: str, single: tuple[Any, ...], frames: Any) -> Any:
    """Tell how the values of many seeds are given; None if they are those of one.

    Parameters
    ----------
    names : list of column labels
        Of the vertices.
    single : tuple of types
        What holds the values of one seed.
    frames : type, or tuple of types

    Returns
    -------
    list, tuple, frame or None
        A list of the values of one seed each; a tuple of vertices that are seeds; a frame with a column of seeds.
    """
    if isinstance(given, frames):
        return given if SEED in given.columns and SEED not in names else None
    if not isinstance(given, (list, tuple)):
        return None
    if not given:
        raise InvalidOptionError(f"{what} is an empty list: it must name at least one seed.")
    odd = [place for place, item in enumerate(given) if not isinstance(item, single)]
    if 0 < len(odd) < len(given):
        raise InvalidOptionError(
            f"{what} is a list of seeds by their values, a dict, a Series or a frame each, but "
            f"{counted(len(odd), 'entry is', 'entries are')} not: {listed([repr(given[place]) for place in odd])}. "
            "Write {vertex: 1} for a seed that is a vertex, or list vertices alone."
        )
    return tuple(given) if odd else list(given)


def seed_names(names: list[Hashable], labels: Labels) -> list[Hashable]:
    """Name the columns of seeds in the result: `seed`, or the vertices' names with that before them.

    Raises
    ------
    InvalidOptionError
        If the vertices have columns of such names.
    """
    seeds: list[Hashable] = [SEED] if labels.rows is None or len(names) == 1 else [f"{SEED}_{name}" for name in names]
    if taken := [name for name in seeds if name in names]:
        raise InvalidOptionError(
            f"the result of many seeds has a column {taken[0]!r}, and so have the vertices of this graph: rename "
            "it there."
        )
    return seeds


def refuse_absent_seeds(absent: Integers, what: str) -> None:
    """Raise if there are rows without a seed."""
    if absent.size:
        raise InvalidOptionError(
            f"{what} has {counted(absent.size, 'row')} without a seed: {listed(absent)} (counted from 0). Drop or fill "
            "them."
        )


def refuse_repeated_seeds(rows: Integers, described: Callable[[Integers], list[str]], what: str) -> None:
    """Raise if a vertex is a seed more than once.

    Parameters
    ----------
    rows : array of positions
    described : function
        Spells out the ids of some entries.
    """
    xp = namespace(rows)
    order = xp.argsort(rows, kind="stable")  # after the first of equal ones come the later
    again = xp.sort(order[1:][rows[order[1:]] == rows[order[:-1]]])
    if again.size:
        raise InvalidOptionError(
            f"{what} names {counted(int(xp.unique(rows[again]).size), 'seed')} more than once: "
            f"{listed(described(again))}. Drop all but one."
        )
