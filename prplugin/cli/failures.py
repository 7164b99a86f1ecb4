"""Report every failure of a command in one line on standard error."""

from __future__ import annotations

import ast
import errno
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

import click

from prplugin.errors import NotConvergedError, PageRankError, counted, path_errors
from prplugin.io.formats import STANDARD_OUTPUT
from prplugin.suggestions import MEANT, plain
from prplugin.tables import upward

QUOTES = "'\""
QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
"""Pattern of a text as `repr` shows it."""


class Failure(click.ClickException):
    """An error that ends the command with one line on standard error and exit status 1."""

    exit_code = 1

    def show(self, file: IO[str] | None = None) -> None:
        """Print the line, unless standard error is closed."""
        with suppress(OSError):
            click.echo("prplugin: " + " ".join(self.message.split()), err=True)


class Command(click.Command):
    """Command that suggests its own option for a name that other libraries use, such as --damping."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            own = {name: option for param in self.params for option in param.opts for name in [plain(option)]}
            argument, remark = MEANT.get(plain(error.option_name), ("", ""))
            if argument == "directed":
                argument, remark = "undirected", ""
            if plain(argument) not in own or error.option_name.count("-") < 2:
                raise
            meant = f"{error.message.rstrip('.')}. Did you mean {own[plain(argument)]}? {remark}".rstrip()
            raise click.NoSuchOption(error.option_name, meant, ctx=ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its errors name its options."""
        try:
            return super().invoke(ctx)
        except NotConvergedError:
            raise
        except PageRankError as error:
            error.args = (self._in_options(str(error)), *error.args[1:])
            raise
        except click.UsageError as error:
            raise click.UsageError(self._in_options(error.message), ctx) from error

    def _in_options(self, message: str) -> str:
        """Replace calls and arguments of Python in a message by options of this command, but nothing in quotes."""
        options = {str(param.name): param for param in self.params if isinstance(param, click.Option)}
        argument = rf"\b({'|'.join([*options, 'directed'])})=({QUOTED}|\w+(?:\.\w+)*)?"

        def replaced(found: re.Match[str]) -> str:
            if found[0][0] in QUOTES:
                return found[0]
            return " ".join(_in_option(options, *pair.groups()) for pair in re.finditer(argument, found[0]))

        message = message.replace("pagerank(edges, source, destination)", "--source and --destination")
        return re.sub(rf"(?<![^\s(]){argument}(?:, {argument})*|(?<!\w){QUOTED}", replaced, message)


def _in_option(options: Mapping[str, click.Option], name: str, value: str | None) -> str:
    """Return an argument of Python, and perhaps its value, as an option."""
    if (name, value) == ("directed", "False") and "undirected" in options:
        name, value = "undirected", "True"
    if (name, value) == ("exclude", "'seeds'"):
        name, value = "exclude_seeds", "True"
    if name not in options:
        return f"{name}={value or ''}"
    option = options[name]
    if option.is_flag:
        return (option.secondary_opts if value == "False" and option.secondary_opts else option.opts)[-1]
    if value is None:
        return option.opts[-1]
    return f"{option.opts[-1]} {shlex.quote(str(ast.literal_eval(value))) if value[0] in QUOTES else value}"


class OneLineErrors(click.Group):
    """Group of commands that converts their errors to `Failure`."""

    command_class = Command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the command line."""
        with _in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and flush standard output."""
        with _in_one_line():
            result = super().invoke(ctx)
            if sys.stdout is not None:
                with path_errors(STANDARD_OUTPUT, PageRankError):
                    sys.stdout.flush()  # here, where a full disk or a closed pipe can still be reported
            return result


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.Exit as done:
        if done.exit_code == 0 and sys.stdout is None:
            # click has discarded the output of --help or --version
            raise Failure(f"{STANDARD_OUTPUT}: {os.strerror(errno.EBADF)}") from done
        raise
    except (PageRankError, OSError, MemoryError, KeyboardInterrupt) as error:
        _discard_unwritable_output()
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise click.exceptions.Exit(1) from error  # the reader has closed the pipe, as `head` does
        raise Failure(_explained(error)) from error


def _explained(error: BaseException) -> str:
    if isinstance(error, NotConvergedError):
        return (
            f"not converged: after {counted(error.ranking.iterations, 'iteration')} the error is at most "
            f"{upward(error.ranking.error_bound)}. Allow more with --max-iter, or a larger --tol."
        )
    if isinstance(error, OSError) and not isinstance(error, PageRankError):
        return ": ".join(map(str, filter(None, [error.filename, error.strerror or error])))
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return str(error) if isinstance(error, PageRankError) else f"out of memory: {error}".removesuffix(": ")


def _discard_unwritable_output() -> None:
    """Discard buffered standard output that cannot be written, since the interpreter would retry at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
