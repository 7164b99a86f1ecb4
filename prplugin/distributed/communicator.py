"""Communication between the ranks of a distributed program: protocol, and collective operations based on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from prplugin.errors import PageRankError, merged

T = TypeVar("T")


class Communicator(Protocol):
    """Connects the ranks 0 .. size - 1 of a program. All ranks call the same operations in the same order.

    `bytes_sent` is the approximate number of bytes that this rank has sent to others, and `wait_seconds` the time for
    which it has waited for others and for their data.
    """

    rank: int
    size: int
    bytes_sent: int
    wait_seconds: float

    def all_to_all(self, pieces: Sequence[Any]) -> list[Any]:
        """Send piece r to rank r, and return the pieces received, by rank.

        Pieces are arrays or picklable objects of any size. Received host arrays may be read-only.
        """

    def all_gather(self, value: object) -> list[Any]:
        """Return the values of all ranks on every rank, in the order of ranks. Values are small host objects."""

    def all_to_all_arrays(self, arrays: Sequence[Any]) -> list[Any]:
        """Exchange vectors of one dtype and memory space. Those in device memory are not copied to the host."""


def all_reduce_sum(communicator: Communicator, values: object) -> Any:
    """Return the sum of the values of all ranks, added in the order of ranks: the same bits on every rank."""
    first, *others = communicator.all_gather(values)
    return sum(others, start=first)


def gather_results(communicator: Communicator, do: Callable[[], T]) -> list[T]:
    """Call a function on every rank; return the results of all ranks, or raise the same error on all ranks.

    A `PageRankError` on some ranks is raised on all: the first in the order of ranks, merged if it is about rows.
    """
    done, error = None, None
    try:
        done = do()
    except PageRankError as raised:
        error = raised
    results = communicator.all_gather((done, error))
    errors = [error for _, error in results if error is not None]
    if errors:
        raise merged(errors)
    return [done for done, _ in results]


def call_on_all(communicator: Communicator, do: Callable[[], T]) -> T:
    """Call a function on every rank; return this rank's result, or raise the same error on all ranks."""
    done: list[T] = []
    gather_results(communicator, lambda: done.append(do()))
    return done[0]
