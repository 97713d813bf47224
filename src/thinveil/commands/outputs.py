"""Where results go: consoles and JSON files, the same for all commands.

Nothing heavy is imported here, so that a command which needs no table starts at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from thinveil.errors import UsageError
from thinveil.files import write_file

if TYPE_CHECKING:
    from rich.console import Console

_F = TypeVar("_F", bound=Callable[..., Any])


def consoles(json_file: str | None) -> tuple[Console, Console]:
    """Return the console for results and the one for progress and notices.

    Where the JSON goes to standard output, people read the error stream instead.
    """
    return _console(stderr=json_file == "-"), _console(stderr=True, soft_wrap=True)


def _console(*, stderr: bool, soft_wrap: bool = False) -> Console:
    """Return a console that keeps to what the user and the terminal say.

    With NO_COLOR, and where the output is no terminal, there are no escape codes. FORCE_COLOR
    asks for colours alone: bars and spinners that move need a real terminal.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    moving = stream is not None and stream.isatty()
    return Console(
        stderr=stderr,
        soft_wrap=soft_wrap,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        force_interactive=None if moving else False,
    )


def note(notices: Console, text: str) -> None:
    """Say something that the user should know."""
    notices.print(f"Note: {text}", style="yellow", markup=False, highlight=False)


def busy(notices: Console, doing: str) -> AbstractContextManager[object]:
    """Show on a terminal what is being done, for as long as it takes."""
    return notices.status(doing) if notices.is_interactive else nullcontext()


def json_option(command: _F) -> _F:
    """Add --json FILE to a command."""
    return click.option(
        "--json", "json_file", metavar="FILE", help="Write the result as JSON; - for stdout."
    )(command)


def check_outputs(inputs: Sequence[str | None], **outputs: str | None) -> None:
    """Make sure before a long run that results can be written and overwrite no input.

    Args:
        inputs: Files that the command reads.
        **outputs: Files that it writes, by the name of their option.
    """
    taken = {Path(path).resolve() for path in inputs if path}
    for option, name in outputs.items():
        if not name or (option == "json" and name == "-"):
            continue
        path = Path(name)
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise UsageError(f"--{option} {name}: no file can be written there")
        if path.resolve() in taken:
            raise UsageError(f"--{option} {name}: this file is in use for something else")
        if option != "json" and path.exists():
            raise UsageError(f"--{option} {name} exists already: choose another name")
        taken.add(path.resolve())


def write_json(json_file: str | None, content: Any, private: bool = False) -> None:
    """Write a result as JSON where the user wants it, private where it may hold values."""
    if not json_file:
        return
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    if json_file == "-":
        click.echo(text, nl=False)
        return
    write_file(json_file, text, f"--json {json_file}", private=private)
