"""Exceptions. Every message names the column or option, the count, and what to do."""

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
    "merged",
    "refusal",
]


class PageRankError(Exception):
    """Base of every error that prplugin raises on purpose."""

    refused: RefusedRows | None = None
    """The rows that the message speaks of, where it speaks of rows."""


@dataclass(frozen=True)
class RefusedRows:
    """Rows of which a message names the first few; those of several parts of a frame can be merged.

    `say`: returns the message.
    `rows`: the first few of the `count` rows, counted from 0.
    `held`: what they hold.
    """

    say: Callable[[RefusedRows], str]
    count: int
    rows: list[int]
    held: list[str]

    def padded(self, items: Sequence[object]) -> list[object]:
        """Lengthen a list of the first few to the count of all, for `listed`."""
        return [*items, *[""] * (self.count - len(items))]


def refusal(error: type[PageRankError], refused: RefusedRows) -> PageRankError:
    """Return an error about rows."""
    made = error(refused.say(refused))
    made.refused = refused
    return made


def merged(errors: list[PageRankError]) -> PageRankError:
    """Return one error for those of several parts: the first, about the rows of all parts if it is about rows."""
    first = errors[0].refused
    if first is None:
        return errors[0]
    alike = [e.refused for e in errors if type(e) is type(errors[0]) and e.refused is not None]
    alike = [refused for refused in alike if _saying(refused) == _saying(first)]
    rows: list[tuple[int, str]] = []
    for refused in alike:
        rows += zip(refused.rows, refused.held or [""] * len(refused.rows), strict=True)
    rows.sort()
    shown = rows if len(alike) == 1 else rows[:5]
    count = sum(refused.count for refused in alike)
    return refusal(
        type(errors[0]), RefusedRows(first.say, count, [row for row, _ in shown], [what for _, what in shown])
    )


def _saying(refused: RefusedRows) -> Any:
    say: Any = refused.say
    return getattr(say, "func", say), getattr(say, "args", ())


class PageRankWarning(UserWarning):
    """A ranking takes very long, and something can be done about it."""


class InvalidEdgesError(PageRankError, ValueError):
    """The edge frame, its columns or its vertices cannot be ranked as they are."""


class InvalidOptionError(PageRankError, ValueError):
    """Invalid argument, or a tolerance that cannot be attained."""


class ColumnNotFoundError(PageRankError, KeyError):
    """A named column is not in the frame, or no known pair of columns is."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument; a sentence should read as one.
        return str(self.args[0])


class MethodUnavailableError(PageRankError):
    """A method that was asked for by name cannot run on this graph or machine."""


class OutOfMemoryError(MethodUnavailableError, MemoryError):
    """The memory of the GPU or of this machine does not suffice."""


class MissingLibraryError(PageRankError, ImportError):
    """An optional library that is needed is not installed."""


class WorkerLostError(PageRankError):
    """A worker of a Dask cluster was lost during a call; the next call uses those that are left."""


class NotConvergedError(PageRankError):
    """The budget of iterations ran out before the stopping rule was met.

    Attributes
    ----------
    ranking : Ranking
        The last iterate, with its `error_bound`.
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
    """Return a count with its noun: ``1 row``, ``1,200 rows``, ``2 vertices``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
