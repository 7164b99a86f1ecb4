"""Exceptions. Every message names the column or option, the count, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


PACKAGE = __name__.partition(".")[0]


class PageRankError(Exception):
    """Base of every error that prplugin raises on purpose."""

    refused: RefusedRows | None = None
    """Rows that the message lists, or None."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints: the frames up to the call of prplugin, and the message.

        The message is for the caller, who needs the line of the call. IPython calls this where it exists. Debuggers
        and the interpreter itself show every frame.
        """
        from IPython.core.getipython import get_ipython  # it is IPython that calls

        outer = []
        entry = self.__traceback__
        while entry is not None and entry.tb_frame.f_globals.get("__name__", "").partition(".")[0] != PACKAGE:
            outer.append(entry)
            entry = entry.tb_next
        shown = None
        for entry in reversed(outer):
            shown = TracebackType(shown, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
        shell: Any = get_ipython()  # type: ignore[no-untyped-call,unused-ignore]
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, shown, tb_offset=1)
        return lines


@dataclass(eq=False, repr=False)
class RefusedRows:
    """Rows that an error message lists; those of several parts of a frame can be merged.

    `format_message`: Returns the message.
    `rows`: The first few of the `count` rows, counted from 0.
    `contents`: Values in these rows.
    """

    format_message: Callable[[RefusedRows], str]
    count: int
    rows: list[int]
    contents: list[str]

    def padded(self, items: Sequence[object]) -> list[object]:
        """Pad a list of the first few items to `count` items, for `listed`."""
        return [*items, *[""] * (self.count - len(items))]


def refusal(error: type[PageRankError], refused: RefusedRows) -> PageRankError:
    """Return an error whose message lists rows."""
    refusing = error(refused.format_message(refused))
    refusing.refused = refused
    return refusing


@contextmanager
def rows_of_frame(rows: NDArray[np.integer]) -> Iterator[None]:
    """Convert the row numbers of errors, of the selection `rows` of a frame, to those of the frame."""
    try:
        yield
    except PageRankError as error:
        if (refused := error.refused) is None:
            raise
        raise refusal(type(error), replace(refused, rows=rows[refused.rows].tolist())) from None


def merged(errors: list[PageRankError]) -> PageRankError:
    """Merge the errors of several parts: return the first one, with the rows of all parts if it lists rows."""
    first = errors[0].refused
    if first is None:
        return errors[0]
    of_same_type = [e.refused for e in errors if type(e) is type(errors[0]) and e.refused is not None]
    mergeable = [refused for refused in of_same_type if _format_of(refused) == _format_of(first)]
    rows: list[tuple[int, str]] = []
    for refused in mergeable:
        rows += zip(refused.rows, refused.contents or [""] * len(refused.rows), strict=True)
    rows.sort()
    shown = rows if len(mergeable) == 1 else rows[:5]
    count = sum(refused.count for refused in mergeable)
    numbers, values = [row for row, _ in shown], [value for _, value in shown]
    return refusal(type(errors[0]), RefusedRows(first.format_message, count, numbers, values))


def _format_of(refused: RefusedRows) -> Any:
    """Return the function that formats the message and its arguments, for comparison."""
    function: Any = refused.format_message
    return getattr(function, "func", function), getattr(function, "args", ())


class PageRankWarning(UserWarning):
    """A ranking takes very long; the message says how to make it faster."""


class InvalidEdgesError(PageRankError, ValueError):
    """The edge frame, its columns or its vertices are invalid."""


class InvalidOptionError(PageRankError, ValueError):
    """Invalid argument, or a tolerance that cannot be attained."""


class ColumnNotFoundError(PageRankError, KeyError):
    """The frame lacks a named column, or has no known pair of endpoint columns."""

    __str__ = Exception.__str__  # KeyError returns the repr of the message, in quotes


class VertexNotFoundError(PageRankError, KeyError):
    """A ranking does not have the rank of a vertex, or `Rankings` a seed."""

    __str__ = Exception.__str__


class MethodUnavailableError(PageRankError):
    """A method requested by name cannot run on this graph or machine."""


class OutOfMemoryError(MethodUnavailableError, MemoryError):
    """The GPU or this machine has too little memory."""


class MissingLibraryError(PageRankError, ImportError):
    """An optional library that is needed is not installed."""


class WorkerLostError(PageRankError):
    """A worker of a Dask cluster was lost during a call; the next call uses the remaining workers."""


class NotConvergedError(PageRankError):
    """The maximum number of iterations was reached before the stopping rule was met.

    Attributes
    ----------
    ranking : Ranking
        The last iterate, with its `error_bound`.
    """

    def __init__(self, message: str, ranking: Any) -> None:
        super().__init__(message)
        self.ranking = ranking

    def __reduce__(self) -> tuple[type[NotConvergedError], tuple[str, Any]]:
        return type(self), (self.args[0], self.ranking)


@contextmanager
def errors_of(source: str, kind: type[PageRankError] = InvalidEdgesError) -> Iterator[None]:
    """Return a context manager in which errors of other libraries, and of the user's code, become ours, as causes.

    `source`: What is computed, such as "edges, a polars.LazyFrame,".
    """
    try:
        yield
    except (PageRankError, MemoryError):
        raise
    except Exception as error:
        raise kind(f"{source} cannot be computed: {type(error).__name__}: {error}") from error


# --- paths ------------------------------------------------------------------------------------------------------------


def file_error(error: OSError, name: str, kind: type[PageRankError] = InvalidEdgesError) -> PageRankError:
    """Return an error of `kind` about a file that is also an OSError of the class and with the number of `error`."""
    what = f"{name or repr(name)}: {os.strerror(error.errno or 0)}"
    if error.errno == errno.ENOENT and not os.path.isabs(name):
        with suppress(OSError):  # the folder may be gone
            what += f" in {os.getcwd()}"
    return _of_system(kind, type(error), what, error.errno, name)


def _of_system(
    kind: type[PageRankError], system: type[OSError], what: str, number: int | None, name: str
) -> PageRankError:
    def reduce(error: Exception) -> tuple[object, ...]:
        return _of_system, (kind, system, error.args[0], number, name)

    members: dict[str, Any] = {"__str__": Exception.__str__, "__reduce__": reduce, "__module__": kind.__module__}
    found: Any = type(kind.__name__, (kind, system), members)(what)
    found.errno, found.filename = number, name
    error: PageRankError = found
    return error


@contextmanager
def path_errors(name: str, kind: type[PageRankError] = InvalidEdgesError) -> Iterator[None]:
    """Raise errors of the operating system about a file as errors of `kind`; a name that no file has, too."""
    try:
        if b"\0" in os.fsencode(name):
            raise kind(f"{name!r} is no path: it has a zero byte.")
    except UnicodeEncodeError as error:
        raise kind(f"{name!r} is no path: {error}.") from error
    try:
        yield
    except OSError as error:
        if isinstance(error, PageRankError) or error.errno is None:  # None: raised by a library
            raise
        raise file_error(error, name, kind) from error


def system_error(what: str, error: OSError, kind: type[PageRankError] = InvalidEdgesError) -> PageRankError:
    """Return an error of `kind`, and of the class of `error`, for an action that the operating system has refused."""
    return _of_system(kind, type(error), f"{what}: {error.strerror or error}.", error.errno, error.filename)


def overflow_error(label: str, vertices: Sequence[object]) -> InvalidEdgesError:
    """Return the error for vertices whose out-weight overflows float64; `label` names the weights."""
    return InvalidEdgesError(
        f"{label}: the weights that leave {counted(len(vertices), 'vertex', 'vertices')} ({listed(vertices)}) sum to "
        f"more than float64 holds. Divide {label} by its greatest value."
    )


def printable(text: str) -> str:
    """Return text without what is not UTF-8, such as bytes of a file name, which no log or terminal can show."""
    return text.encode("utf-8", "backslashreplace").decode()


def listed(items: Sequence[object] | NDArray[np.generic], shown: int = 5) -> str:
    """Join the first few items for a message: ``3, 7, 9 and 12 more``."""
    head = ", ".join(str(item) for item in items[:shown])
    rest = len(items) - shown
    return f"{head} and {rest:,} more" if rest > 0 else head


def full_name(value: object) -> str:
    """Return the qualified name of the type of a value, for messages."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: ``1 row``, ``1,200 rows``, ``2 vertices``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
