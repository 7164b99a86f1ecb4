"""Decorators of the public functions: errors that name the intended argument, and types for type checkers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from traceback import clear_frames
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from prplugin.errors import InvalidOptionError, OutOfMemoryError, PageRankError, listed
from prplugin.methods.registry import all_options, is_option
from prplugin.options import GRAPH_ARGUMENTS, RANK_ARGUMENTS
from prplugin.suggestions import suggest_argument
from prplugin.types.arrays import SPACE

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Collected_co = TypeVar("Collected_co", covariant=True)


class _Lazy(Protocol[Collected_co]):
    def collect(self) -> Collected_co: ...


class _Relation(Protocol):
    def fetch_arrow_table(self) -> Any: ...


class _Columns(Protocol):
    @property
    def columns(self) -> Any: ...


Frame = TypeVar("Frame", bound=_Columns)


class _FrameFunction(Protocol[Arguments]):
    """A function that takes a frame and returns one of the same type; for a lazy frame, the type of its `collect`."""

    __name__: str

    @overload
    def __call__(self, edges: _Relation, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Any: ...
    @overload
    def __call__(self, edges: _Lazy[Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result: ...
    @overload
    def __call__(self, edges: Frame, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Frame: ...
    @overload
    def __call__(self, edges: object, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Any: ...


def preserves_frame_type(function: Callable[Concatenate[Any, Arguments], object]) -> _FrameFunction[Arguments]:
    """Declare to type checkers that the function returns a frame of the type of its first argument."""
    return cast("_FrameFunction[Arguments]", function)


OF_RANK = "Graph.rank and pagerank"

_arguments: dict[str, tuple[str, ...]] = {
    "Graph and pagerank": GRAPH_ARGUMENTS,
    OF_RANK: RANK_ARGUMENTS,
}
"""Arguments of the public functions, by their names; `explain_unknown_arguments` adds those that it decorates."""


def explain_unknown_arguments(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Raise InvalidOptionError for an unknown argument instead of TypeError, and suggest the intended argument."""
    parameters = inspect.signature(function).parameters.values()
    name = function.__qualname__.removesuffix(".__init__").replace("Constructors.", "Graph.")
    by_position = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_name = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    takes_options = any(each.kind is each.VAR_KEYWORD for each in parameters)
    own = _arguments[name] = (*by_position, *by_name)

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            for given in kwargs:
                if given not in own and not (takes_options and is_option(given)):
                    raise unknown_argument(given, name, own, takes_options=takes_options)
            if len(args) > len(by_position):
                raise InvalidOptionError(_too_many(name, by_position, by_name, args[len(by_position)]))
            return function(*args, **kwargs)
        except PageRankError as error:
            _hide_frames(error)
            raise
        except MemoryError as error:
            clear_frames(error.__traceback__)  # frees the arrays of these frames, even if the error is kept
            raise OutOfMemoryError(
                f"{SPACE['host']} ran out in {name}: {error}. Graph.estimate says what each method needs; values by "
                "vertex, given or returned, take 8 to 16 bytes more per vertex, and per seed."
            ) from error

    return call


REPEATED = PageRankError, FileNotFoundError, PermissionError, IsADirectoryError
"""Causes of errors whose messages repeat all that they say."""


def _hide_frames(error: BaseException) -> None:
    """Mark the frames of a traceback from the public call on, which IPython and pytest then leave out.

    The message is for the caller, who needs the line of the call. Debuggers still have every frame. A cause
    that the message repeats is not shown either: it is in `__context__`.
    """
    if error.__cause__ is None or isinstance(error.__cause__, REPEATED):
        error.__cause__ = None  # also suppresses the context
    chained: BaseException | None = error
    while chained is not None:
        traceback = chained.__traceback__
        while traceback is not None:
            traceback.tb_frame.f_locals["__tracebackhide__"] = True
            traceback = traceback.tb_next
        chained = chained.__cause__ or (None if chained.__suppress_context__ else chained.__context__)


def unknown_argument(given: str, name: str, own: Collection[str], *, takes_options: bool) -> InvalidOptionError:
    """Return the error for an argument that the function `name`, with the arguments `own`, does not have."""
    fault, options = f"{name} has no argument {given!r}.", all_options()
    if takes_options:
        fault = f"{given!r} is neither an argument of {name} nor an option of any method."
        own = (*own, *options)
    owners = {**_arguments, OF_RANK: (*RANK_ARGUMENTS, *options)}
    return InvalidOptionError(fault + suggest_argument(given, own, owners))


def _too_many(name: str, by_position: list[str], by_name: list[str], given: object) -> str:
    """Return the message about an argument that is passed by position."""
    positional = ", ".join(argument for argument in by_position if argument not in ("self", "cls"))
    if not by_name:
        return f"{name} takes {f'no arguments but {positional}' if positional else 'no arguments'}."
    accepted = f"{positional} by position and the others" if positional else "arguments"
    is_alpha = "alpha" in by_name and isinstance(given, float)
    return f"{name} takes {accepted} by name: {f'alpha={given!r}' if is_alpha else listed(by_name, 10)}."
