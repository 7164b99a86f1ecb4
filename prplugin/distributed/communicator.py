"""How ranks reach one another: all that the program of a rank knows of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from prplugin.errors import PageRankError, merged

__all__ = ["Communicator", "agreed", "all_agreed", "largest", "offsets_of_ranks", "summed"]

T = TypeVar("T")


class Communicator(Protocol):
    """The ranks 0 .. size - 1 of a program, all of which call the same functions in the same order.

    `sent`: Bytes that this rank has sent to others, about.
    `seconds`: That it has waited for others, and for what they sent.
    """

    rank: int
    size: int

    @property
    def sent(self) -> int: ...

    @property
    def seconds(self) -> float: ...

    def exchange(self, pieces: Sequence[Any]) -> list[Any]:
        """Send piece r to rank r, and give what each rank sent here: arrays, or what can be pickled, of any size.

        On the host what comes may be read-only.
        """

    def gather(self, value: Any) -> list[Any]:
        """Give what every rank has brought, in their order, to all of them: a few bytes each, in host memory."""

    def swap(self, arrays: Sequence[Any]) -> list[Any]:
        """Do what `exchange` does with arrays of one type and dimension, which may lie on the GPU, and stay there."""


def summed(communicator: Communicator, values: Any) -> Any:
    """Add up arrays or numbers of all ranks, in the order of the ranks: the same bits on each."""
    first, *others = communicator.gather(values)
    return sum(others, start=first)


def largest(communicator: Communicator, value: int) -> int:
    """Give the greatest of the numbers that ranks bring."""
    values: list[int] = communicator.gather(value)
    return max(values)


def offsets_of_ranks(communicator: Communicator, count: int) -> list[int]:
    """Give where the items of each rank begin, where each has so many, and how many there are in all."""
    offsets = [0]
    for one in communicator.gather(count):
        offsets.append(offsets[-1] + one)
    return offsets


def all_agreed(communicator: Communicator, do: Callable[[], T]) -> list[T]:
    """Call a function on every rank, and give what each got; if it refuses something on one, all raise the same error.

    Raises PageRankError: The first that a rank raised, in the order of ranks; where it speaks of rows, of those of all
    ranks.
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
    """Do the same with a function whose result is for this rank alone."""
    done: list[T] = []
    all_agreed(communicator, lambda: done.append(do()))
    return done[0]
