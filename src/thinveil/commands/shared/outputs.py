"""Where results go: consoles and JSON files, the same for all commands.

Nothing heavy is imported here, so that a command which needs no table starts at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from thinveil.errors import OutputError, UsageError
from thinveil.files import is_stream, kept, owner_in, write_file
from thinveil.language.texts import in_json
from thinveil.report.text.streams import pour

if TYPE_CHECKING:
    from rich.console import Console

_F = TypeVar("_F", bound=Callable[..., Any])

NEVER: Final = "never"
"""The kind of files that are not even overwritten where somebody asks for it: they would lose
answers or tokens."""
_OVERWRITE: Final = "thinveil.overwrite"
_UNWRITTEN: Final = "thinveil.unwritten"


def consoles(json_file: str | None) -> tuple[Console, Console]:
    """Return the console for results and the one for progress and notices.

    Where the JSON goes to standard output, people read the error stream instead.
    """
    from thinveil.report.text.screen import screen

    return screen(stderr=json_file == "-"), screen(stderr=True, soft_wrap=True)


def note(notices: Console, text: str) -> None:
    """Say something that the user should know."""
    notices.print(f"Note: {text}", style="yellow", highlight=False)


def busy(notices: Console, doing: str) -> AbstractContextManager[object]:
    """Show on a terminal what is being done, for as long as it takes."""
    return notices.status(doing) if notices.is_interactive else nullcontext()


def json_option(command: _F) -> _F:
    """Add --json FILE to a command."""
    return click.option(
        "--json", "json_file", metavar="FILE", help="Write the result as JSON; - for stdout."
    )(command)


def overwrite_option(command: _F) -> _F:
    """Add --overwrite to a command; `overwriting` tells whether it was given."""
    return click.option(
        "--overwrite",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="Replace any file but a transcript.",
    )(command)


def safe_csv_option(command: _F) -> _F:
    """Add --safe-csv to a command that writes CSV."""
    said = "Make formulas in the CSV harmless."
    return click.option("--safe-csv", is_flag=True, help=said)(command)


def _remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_OVERWRITE] = True


def overwriting() -> bool:
    """Tell whether the command that runs may replace any file that it was told to write."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(_OVERWRITE))


def check_outputs(inputs: Sequence[str | None], **outputs: tuple[str | Path | None, str]) -> None:
    """Make sure before a long run that results can be written and overwrite nothing else.

    Args:
        inputs: Files that the command reads, or addresses of databases in files.
        **outputs: Files that it writes, by the name of their option, each with the kind of result
            that it may replace: a name of `files.OURS`, "" for none, or `NEVER`.
    """
    read = [form for each in inputs if each for form in (each, each.partition("://")[2]) if form]
    taken = {Path(path).resolve() for path in read}
    for option, (name, kind) in outputs.items():
        if not name or (option == "json" and name == "-"):
            continue
        said, path = f"--{option.replace('_', '-')} {name}", Path(name)
        try:
            folder = path.absolute().parent
            if path.is_dir() or str(name).endswith(os.sep) or not folder.is_dir():
                raise UsageError(f"{said}: no file can be written there")
            if path.resolve() in taken:
                raise UsageError(f"{said}: this file is in use for something else")
            if not is_stream(path):
                _check_place(said, path, kind)
        except OSError as error:
            raise UsageError(f"{said}: {error.strerror}") from None
        taken.add(path.resolve())


def _check_place(said: str, path: Path, kind: str) -> None:
    """Make sure that a file can be made, and that what has its name may be replaced."""
    owner = owner_in(path.absolute().parent)
    if kind == NEVER:
        if os.path.lexists(path):
            raise UsageError(f"{said} exists already: choose another name")
    elif (why := kept(path, kind, owner)) and not overwriting():
        raise UsageError(
            f"{said} exists already and {why}: choose another name, or give --overwrite"
        )


@contextmanager
def deferring() -> Iterator[list[OutputError]]:
    """Where a result cannot be written, go on: the others are written, then the error is said.

    What is yielded holds the error, if there was one.
    """
    mine: list[OutputError] = []
    try:
        yield mine
    except OutputError as error:
        mine.append(error)
        ctx = click.get_current_context()
        errors = ctx.meta.setdefault(_UNWRITTEN, [])
        if not errors:
            ctx.call_on_close(partial(_say_late, errors))
        errors.append(error)


def _say_late(errors: list[OutputError]) -> None:
    """End the command with the first of some errors, and say the others with it."""
    raised = sys.exc_info()[1]
    for each in errors if raised else errors[1:]:
        (raised or errors[0]).add_note(f"Error: {each}")
    if not raised:
        raise errors[0]


def write_result(option: str, path: str, content: str | bytes, kind: str) -> bool:
    """Write a result where the user wants it; tell whether it is there.

    Where something else took its name meanwhile, it goes to a name beside, and the command ends
    with an error that says so, after everything else is done.
    """
    with deferring() as failed:
        rules = {"overwrite": overwriting(), "spare": True}
        write_file(path, content, f"--{option} {path}", kind=kind, **rules)
    return not failed


def write_json(json_file: str | None, content: Any, kind: str) -> None:
    """Write a result as JSON where the user wants it.

    Args:
        json_file: The file; "-" is standard output.
        content: The result.
        kind: Which files of ours it may replace, a name of `files.OURS`.
    """
    if not json_file:
        return
    text = in_json(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"
    if json_file == "-":
        pour(text)
        return
    write_result("json", json_file, text, kind)
