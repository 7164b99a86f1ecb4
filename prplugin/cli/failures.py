"""Whatever goes wrong in a command ends in one line on standard error."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from prplugin.cli.figures import upward
from prplugin.errors import NotConvergedError, PageRankError
from prplugin.io.formats import STANDARD_OUTPUT, errors_named

__all__ = ["Failure", "OneLineErrors"]


class Failure(click.ClickException):
    """Ends the command with one line on standard error and exit status 1."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        """Print the line, if there is anywhere to print it."""
        with suppress(OSError):
            click.echo("prplugin: " + " ".join(self.message.split()), err=True)


class OneLineErrors(click.Group):
    """Commands whose errors each become a `Failure`."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line, and print the help if it asks for that."""
        with _in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, up to the last byte on standard output."""
        with _in_one_line():
            result = super().invoke(ctx)
            with errors_named(STANDARD_OUTPUT):
                _flush_stdout()  # here, where a full disk or a closed pipe can still be reported
            return result


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.Exit as done:
        if done.exit_code == 0 and sys.stdout is None:
            # --help and --version, which click has printed nowhere
            raise Failure(f"{STANDARD_OUTPUT}: {os.strerror(errno.EBADF)}") from done
        raise
    except (PageRankError, OSError, MemoryError, KeyboardInterrupt) as error:
        _give_up_unwritable_stdout()
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise click.exceptions.Exit(1) from error  # the reader has gone, as that of `| head` does
        raise Failure(_explained(error)) from error


def _explained(error: BaseException) -> str:
    match error:
        case NotConvergedError():
            return (
                f"not converged: after {error.ranking.iterations} iterations the error is at most "
                f"{upward(error.ranking.error_bound)}. Allow more with --max-iter, or a larger --tol."
            )
        case KeyboardInterrupt():
            return "interrupted"
        case MemoryError() if not isinstance(error, PageRankError):
            return f"out of memory: {error}" if str(error) else "out of memory"
        case OSError():
            what = error.strerror or str(error)
            return f"{error.filename}: {what}" if error.filename else what
    return str(error)


def _flush_stdout() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _give_up_unwritable_stdout() -> None:
    """Let what standard output still holds go nowhere if it cannot be written: the interpreter would try once more."""
    try:
        _flush_stdout()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
