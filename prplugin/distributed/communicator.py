"""Communication between the ranks of a distributed program: protocol, and collective operations based on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from prplugin.errors import PageRankError, merged

__all__ = ["Communicator", "agreed", "all_agreed", "largest", "offsets_of_ranks", "summed"]

T = TypeVar("T")


class Communicator(Protocol):
    """Connects the ranks 0 .. size - 1 of a program. All ranks call the same operations in the same order.

    Attributes
    ----------
    rank, size : int
        This rank, and the number of ranks.
    sent : int
        Approximate number of bytes that this rank has sent to others.
    seconds : float
        Time that this rank has waited for others and for their data.
    """

    rank: int
    size: int

    @property
    def sent(self) -> int: ...

    @property
    def seconds(self) -> float: ...

    def exchange(self, pieces: Sequence[Any]) -> list[Any]:
        """Send piece r to rank r, and return the pieces received, by rank (all-to-all).

        Pieces are arrays or picklable objects of any size. Received host arrays may be read-only.
        """

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in the order of ranks, on every rank (all-gather).

        Values are small objects in host memory.
        """

    def swap(self, arrays: Sequence[Any]) -> list[Any]:
        """Exchange arrays of one dtype, of one dimension each. Arrays in device memory stay there."""


def summed(communicator: Communicator, values: Any) -> Any:
    """Return the sum of the values of all ranks, added in the order of ranks: the same bits on every rank."""
    first, *others = communicator.gather(values)
    return sum(others, start=first)


def largest(communicator: Communicator, value: int) -> int:
    """Return the maximum of the values of all ranks."""
    values: list[int] = communicator.gather(value)
    return max(values)


def offsets_of_ranks(communicator: Communicator, count: int) -> list[int]:
    """Return the offsets of the items of each rank, and their total: size + 1 prefix sums of the counts."""
    offsets = [0]
    for one in communicator.gather(count):
        offsets.append(offsets[-1] + one)
    return offsets


def all_agreed(communicator: Communicator, do: Callable[[], T]) -> list[T]:
    """Call a function on every rank; return the results of all ranks, or raise the same error on all ranks.

    Raises
    ------
    PageRankError
        If the function raises one on some rank: the first in the order of ranks, merged over ranks if it is about rows.
    """
    done, error = None, None
    try:
        done = do()
    except PageRankError as raised:
        error = raised
    everyone = communicator.gather((done, error))
    errors = [error for _, error in everyone if error is not None]
    if errors:
        raise merged(errors)
    return [done for done, _ in everyone]


def agreed(communicator: Communicator, do: Callable[[], T]) -> T:
    """Call a function on every rank; return this rank's result, or raise the same error on all ranks."""
    done: list[T] = []
    all_agreed(communicator, lambda: done.append(do()))
    return done[0]
