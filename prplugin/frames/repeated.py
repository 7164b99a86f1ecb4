"""Positions of vertices that call after call names, such as the passages of each question of a service."""

from __future__ import annotations

from collections import deque
from collections.abc import Sized
from typing import Any, NamedTuple

import numpy as np

from prplugin.options import Unknown, excluded_by_seed
from prplugin.types.edges import Integers

MOST = 8
"""Number of arguments whose positions are kept; threads may name others."""

SHORTEST = 64
"""Number of vertices below which resolving them again takes about as long as finding them here."""


class _Kept(NamedTuple):
    what: tuple[str, bool]
    given: Any
    copy: Any  # of what can be altered; None for what cannot
    positions: Integers
    ignored: int


class Repeated:
    """The vertices that arguments of one graph named last, with their positions.

    What cannot be altered, an index of pandas or a tuple, is known by its identity. Lists of strings and arrays of
    numbers, which can, are compared with a copy: at 10,000 vertices that takes 0.03 ms, and resolving them 4 ms.
    """

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque(maxlen=MOST)

    def __reduce__(self) -> Any:
        """Copy and pickle it empty."""
        return Repeated, ()

    def find(self, given: object, what: str, unknown: Unknown) -> Integers | None:
        """Return the positions of vertices that were named before, and count the ignored ones; else None."""
        key = what, unknown.ignores(what)
        for kept in tuple(self._kept):
            if kept.what == key and (given is kept.given if kept.copy is None else _equal(given, kept.copy)):
                if kept.ignored:
                    unknown.counts[what] = unknown.counts.get(what, 0) + kept.ignored
                return kept.positions
        return None

    def names_seeds(self, given: object) -> bool:
        """Return whether `exclude` names vertices that each ranking has of its own; a list that is kept does not."""
        return bool(self.find(given, "exclude", Unknown()) is None and excluded_by_seed(given))

    def keep(self, given: object, what: str, unknown: Unknown, positions: Integers, ignored: int) -> None:
        """Keep the positions of vertices that a later call may name."""
        if not isinstance(given, Sized) or len(given) < SHORTEST:
            return
        copy: object = None
        if isinstance(given, np.ndarray) and given.dtype.kind in "iu":
            copy = given.copy()
        elif isinstance(given, list):
            if any(type(each) is not str for each in given):
                return
            copy = given.copy()
        elif not _is_constant(given):
            return
        self._kept.append(
            _Kept((what, unknown.ignores(what)), given if copy is None else None, copy, positions, ignored)
        )


def _equal(given: object, copy: object) -> bool:
    """Return whether vertices are those of the copy, in the same order and of the same type."""
    if isinstance(copy, np.ndarray):
        return isinstance(given, np.ndarray) and given.dtype == copy.dtype and np.array_equal(given, copy)
    return type(given) is type(copy) and given == copy  # lists of strings


def _is_constant(given: object) -> bool:
    """Return whether it is a tuple of what cannot be altered, or an index of pandas."""
    if type(given) is tuple:
        try:
            hash(given)
        except TypeError:
            return False
        return True
    import pandas as pd  # loaded with every graph of ids

    return isinstance(given, pd.Index)
