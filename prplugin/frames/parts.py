"""What is known of a column of ids of which each of several workers holds a part.

`_pandas_parts` and `_cudf_parts` hold what workers do with their parts; both have the same functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Facts", "Shared", "Typed"]


@dataclass(frozen=True)
class Typed:
    """What is known of the type of a column, where there is no column.

    Attributes
    ----------
    dtype : type
    """

    dtype: Any


@dataclass(frozen=True)
class Facts:
    """A column of ids in one part of a frame.

    Attributes
    ----------
    kind : str
        "integer", "string", ...; "empty" if it has no ids and no type either.
    rows : int
    like : Typed
    sample : array
        The least and the greatest integer; of other kinds the first id. Empty if there are none.
    """

    kind: str
    rows: int
    like: Any
    sample: Any


@dataclass(frozen=True)
class Shared:
    """A column of vertices, as all parts and both ends have it.

    Attributes
    ----------
    kind : str
    common : array
        Of the type in which ids are compared, with at most one of them.
    likes : list of Typed
        Those of the parts that have rows, and one at least for each end.
    """

    kind: str
    common: Any
    likes: list[Any]
