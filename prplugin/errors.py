"""What prplugin raises. Every message names the column or option, the count, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prplugin.result.ranking import Ranking

__all__ = [
    "ColumnNotFoundError",
    "InvalidEdgesError",
    "InvalidOptionError",
    "MethodUnavailableError",
    "MissingLibraryError",
    "NotConvergedError",
    "OutOfMemoryError",
    "PageRankError",
    "PageRankWarning",
    "RefusedRows",
    "WorkerLostError",
    "refusal",
]


class PageRankError(Exception):
    """Base of every error that prplugin raises on purpose."""

    refused: RefusedRows | None = None
    """The rows that the message speaks of, where it speaks of rows."""


@dataclass(frozen=True)
class RefusedRows:
    """Rows of which a message names the first few; what is found in parts of a frame makes one message so.

    Attributes
    ----------
    say : function of a RefusedRows
        Gives the message.
    count : int
        How many there are.
    rows : list of int
        The first few, counted from 0.
    held : list of str
        What they hold.
    """

    say: Callable[[RefusedRows], str]
    count: int
    rows: list[int]
    held: list[str]

    def padded(self, items: Sequence[object]) -> list[object]:
        """Lengthen a list of the first few to the count of all, for `listed`."""
        return [*items, *[""] * (self.count - len(items))]


def refusal(error: type[PageRankError], refused: RefusedRows) -> PageRankError:
    """Make an error of rows."""
    made = error(refused.say(refused))
    made.refused = refused
    return made


class PageRankWarning(UserWarning):
    """A ranking takes very long, and something can be done about it."""


class InvalidEdgesError(PageRankError, ValueError):
    """The edge frame, its columns or its vertices cannot be ranked as they are."""


class InvalidOptionError(PageRankError, ValueError):
    """An argument has a value that means nothing, or nothing that can be kept."""


class ColumnNotFoundError(PageRankError, KeyError):
    """A named column is not in the frame, or no known pair of columns is."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument; a sentence should read as one.
        return str(self.args[0])


class MethodUnavailableError(PageRankError):
    """A method that was asked for by name cannot run on this graph or machine."""


class OutOfMemoryError(MethodUnavailableError, MemoryError):
    """Memory ran out, of the GPU or of this machine, though the graph or the plan was thought to fit."""


class MissingLibraryError(PageRankError, ImportError):
    """A library that this needs, and that prplugin does not bring along, is not installed."""


class WorkerLostError(PageRankError):
    """A worker of a Dask cluster was lost while it was needed; another call works with those that are left."""


class NotConvergedError(PageRankError):
    """The step budget ran out before the stopping rule was met.

    Attributes
    ----------
    ranking : Ranking
        What had been reached: its ranks, and an `error_bound` that holds for them.
    """

    def __init__(self, message: str, ranking: Ranking) -> None:
        super().__init__(message)
        self.ranking = ranking

    def __reduce__(self) -> tuple[type[NotConvergedError], tuple[str, Ranking]]:
        return type(self), (self.args[0], self.ranking)


def listed(items: Sequence[object] | NDArray[Any], shown: int = 5) -> str:
    """Join the first few items for a message: ``3, 7, 9 and 12 more``."""
    head = ", ".join(str(item) for item in items[:shown])
    rest = len(items) - shown
    return f"{head} and {rest:,} more" if rest > 0 else head


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Give a count its noun: ``1 row``, ``1,200 rows``, ``2 vertices``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
