"""Decorators of the public functions: errors that name the intended argument, and types for type checkers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from prplugin.errors import InvalidOptionError
from prplugin.options import GRAPH_ARGUMENTS, RANK_ARGUMENTS, MethodOptions
from prplugin.suggestions import suggest_argument

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
    def __call__(self, edges: Any, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Any: ...


def preserves_frame_type(function: Callable[Concatenate[Any, Arguments], Any]) -> _FrameFunction[Arguments]:
    """Declare to type checkers that the function returns a frame of the type of its first argument."""
    return cast("_FrameFunction[Arguments]", function)


def explain_unknown_arguments(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Replace the TypeError for an unknown argument by an InvalidOptionError that suggests the intended argument."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            raised_inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            message = "" if raised_inside else _explanation(function.__qualname__, signature, args, kwargs)
            if not message:
                raise
            raise InvalidOptionError(message) from None

    return call


def _explanation(name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return a message that names the invalid argument and suggests the intended one, or "" if there is none."""
    name = name.removesuffix(".__init__").replace("Constructors.", "Graph.")
    parameters = [argument for argument in signature.parameters if argument != "self"]
    has_var_keyword = any(argument.kind is argument.VAR_KEYWORD for argument in signature.parameters.values())
    by_position = [
        argument.name for argument in signature.parameters.values() if argument.kind is argument.POSITIONAL_OR_KEYWORD
    ]
    if len(args) > len(by_position):
        given = args[len(by_position)]
        example = f"alpha={given!r}" if isinstance(given, float) else "alpha=0.85"
        positional = ", ".join(argument for argument in by_position if argument != "self")
        accepted = f"{positional} by position and the others" if positional else "arguments"
        return f"{name} takes {accepted} by name: {example}."
    for given in kwargs:
        if given not in parameters and not has_var_keyword:
            owners = {
                "Graph and pagerank": GRAPH_ARGUMENTS,
                "Graph.rank and pagerank": (*RANK_ARGUMENTS, *MethodOptions.__annotations__),
            }
            return f"{name} has no argument {given!r}.{suggest_argument(given, parameters, owners)}"
    return ""
