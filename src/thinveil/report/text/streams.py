"""The one door to the standard streams: whatever passes shows its control characters.

Names, values, names of files and texts of a service are other people's. At a terminal, characters
in them that are no letters write to the clipboard, move the cursor or turn the line around. Here
they become what Python would write for them. Colours, bars and tables are drawn in `screen`.

Nothing heavy is imported here, so that --help is there at once.
"""

from __future__ import annotations

import io
import logging
import sys
from contextlib import suppress
from typing import Any, TextIO, cast

import click

from thinveil.language.texts import one_line, visible


def say(*lines: str, err: bool = False) -> None:
    """Print lines, each of them one line whatever stands in it.

    Args:
        *lines: The lines.
        err: Whether they go to the error stream.
    """
    click.echo("\n".join(map(one_line, lines)), err=err)


def pour(text: str, err: bool = False) -> None:
    """Print a text of many lines that ends as it should: JSON, TOML, CSV, a page of help.

    Args:
        text: The text; its line breaks and tabs are ours.
        err: Whether it goes to the error stream.
    """
    click.echo(visible(text), nl=False, err=err)


class Guarded:
    """A standard stream whose writers are not ours: warnings, tracebacks, help, other libraries.

    Everything but `write` is the stream's own. What was made safe already goes to `bare`.
    """

    def __init__(self, bare: TextIO) -> None:
        self.bare = bare

    def write(self, text: str) -> int:
        """Write a text with its control characters shown."""
        self.bare.write(visible(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)


def guard() -> None:
    """Put the door before this process's standard streams.

    What a stream cannot encode becomes a question mark: a poor terminal must not lose a result.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
            setattr(sys, name, cast("TextIO", Guarded(stream)))


class LogLines(logging.Handler):
    """Writes to whatever the error stream is now; a progress bar puts itself below it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record: one line, and below it what went wrong.

        Where that cannot be written, be it that the disk is full, what is logged goes on.
        """
        with suppress(OSError):
            if sys.stderr is not None:
                print(visible(self.format(record)), file=sys.stderr, flush=True)


class LogFormat(logging.Formatter):
    """Keeps each message to one line, so that nobody can write a second one into a log."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  as logging calls it
        """Return the line of a record."""
        return one_line(super().formatMessage(record))
