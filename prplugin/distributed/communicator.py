"""Communication between the ranks of a distributed program: the protocol, and collective operations on top of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from prplugin.errors import PageRankError, merged

__all__ = ["Communicator", "agreed", "all_agreed", "largest", "offsets_of_ranks", "summed"]

T = TypeVar("T")


class Communicator(Protocol):
    """The ranks 0 .. size - 1 of a program, all of which call the same functions in the same order.

    `sent`: approximate number of bytes that this rank has sent to others.
    `seconds`: time that this rank has spent waiting for others and for their data.
    """

    rank: int
    size: int

    @property
    def sent(self) -> int: ...

    @property
    def seconds(self) -> float: ...

    def exchange(self, pieces: Sequence[Any]) -> list[Any]:
        """Send piece r to rank r, and return what each rank sent here: arrays or picklable objects of any size.

        Received host arrays may be read-only.
        """

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order, to all of them: a few bytes each, in host memory."""

    def swap(self, arrays: Sequence[Any]) -> list[Any]:
        """Do as `exchange` does with arrays of one type and dimension, which stay on the GPU if they are there."""


def summed(communicator: Communicator, values: Any) -> Any:
    """Add up arrays or numbers of all ranks, in the order of the ranks: the same bits on each."""
    first, *others = communicator.gather(values)
    return sum(others, start=first)


def largest(communicator: Communicator, value: int) -> int:
    """Return the greatest of the numbers of all ranks."""
    values: list[int] = communicator.gather(value)
    return max(values)


def offsets_of_ranks(communicator: Communicator, count: int) -> list[int]:
    """Return the prefix sums of all ranks' counts: where each rank's items begin, and the total."""
    offsets = [0]
    for one in communicator.gather(count):
        offsets.append(offsets[-1] + one)
    return offsets


def all_agreed(communicator: Communicator, do: Callable[[], T]) -> list[T]:
    """Call a function on every rank, and return all results; if it refuses something on one, all raise the same error.

    Raises PageRankError: the first that a rank raised, in the order of ranks; where it names rows, those of all ranks.
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
    """Do as `all_agreed` does, but return this rank's result alone, which the others do not receive."""
    done: list[T] = []
    all_agreed(communicator, lambda: done.append(do()))
    return done[0]
