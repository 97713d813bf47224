"""What commands on tables share: the options that describe a curator and how to read a table."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from typing import Any, TypeVar

import click
from rich.console import Console

from thinveil.attacker.evidence.error_budget import MOST_REPEATS, USUAL_ERROR
from thinveil.auditing.options import UNIVERSES
from thinveil.auditing.sources import ENGINES, kind_of, opened, reading
from thinveil.auditing.targets import Target
from thinveil.commands.outputs import check_outputs as check_outputs
from thinveil.commands.outputs import consoles as consoles
from thinveil.commands.outputs import json_option as json_option
from thinveil.commands.outputs import write_json as write_json
from thinveil.curator.database.addresses import shown
from thinveil.curator.tables.dataset import Dataset, Held
from thinveil.errors import UsageError
from thinveil.language.claims import MECHANISMS, POSTS
from thinveil.language.plugins import mechanism_names
from thinveil.language.schema_file import read_schema

_F = TypeVar("_F", bound=Callable[..., Any])


def known_mechanism(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return the names of mechanisms; plug-ins are looked for only where one is none of ours."""
    for name in [value] if isinstance(value, str) else value:
        if name not in MECHANISMS and name not in mechanism_names():
            names = mechanism_names()
            near = get_close_matches(name, names, 1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            raise click.BadParameter(
                f"there is no mechanism {name!r}{meant}; choose from {', '.join(names)}"
            )
    return value


def mechanism_options(command: _F) -> _F:
    """Add the options that describe a curator: its mechanism and its policies."""
    for option in reversed(
        (
            click.option(
                "--mechanism",
                callback=known_mechanism,
                metavar="NAME",
                default="idp",
                show_default=True,
                help=f"One of {', '.join(MECHANISMS)}; or a plug-in's.",
            ),
            click.option("--k", default=1, show_default=True, help="The group size of IDP."),
            click.option(
                "--offset", metavar="A", help="Noise at scale (A + sensitivity) / epsilon."
            ),
            click.option("--post", type=click.Choice(POSTS), help="Round noisy answers."),
            click.option(
                "--universe",
                type=click.Choice(UNIVERSES[::-1]),
                default="unbounded",
                show_default=True,
            ),
            click.option(
                "--min-epsilon", metavar="EPS", help="Refuse answers with a smaller share."
            ),
            click.option(
                "--max-queries", type=int, metavar="N", help="Give at most so many answers."
            ),
            click.option(
                "--cache",
                is_flag=True,
                help="Give the same question the same answer, charged once.",
            ),
        )
    ):
        command = option(command)
    return command


def care_options(command: _F) -> _F:
    """Add the options that say how sure an attack must be."""
    for option in (
        click.option(
            "--most-repeats",
            default=MOST_REPEATS,
            show_default=True,
            help="Answers to one question before it counts as undecidable.",
        ),
        click.option(
            "--error",
            metavar="P",
            default=str(USUAL_ERROR),
            show_default=True,
            help="Chance of any error in a whole attack, where answers must be repeated.",
        ),
    ):
        command = option(command)
    return command


def reading_options(command: _F) -> _F:
    """Add the options that say how a text file is to be read."""
    for option in (
        click.option(
            "--missing",
            multiple=True,
            metavar="TEXT",
            help="A text that means a missing value, besides empty, NULL and NaN.",
        ),
        click.option("--encoding", default="utf-8", help="Of a text file. [utf-8]"),
        click.option("--quote", default='"', help="The quotation mark of a text file."),
        click.option(
            "--separator", help="Between the fields of a text file; found out unless given."
        ),
    ):
        command = option(command)
    return command


def open_table(origin: Mapping[str, Any], notices: Console) -> Held | Target:
    """Open a table or a target as the options say; without one, the embedded people."""
    schema = read_schema(origin["schema"]) if origin.get("schema") else None
    with notices.status("opening the table") if notices.is_interactive else nullcontext():
        return opened(
            origin.get("table"),
            schema,
            origin.get("inside"),
            origin.get("engine") or "auto",
            origin.get("patience"),
            **reading(origin),
        )


def load_table(origin: Mapping[str, Any], notices: Console) -> Dataset:
    """Read a table into memory as the options say; without one, return the embedded people.

    Raises:
        UsageError: It is in a database or behind a service.
    """
    if kind_of(origin.get("table"), "memory") not in ("people", "file"):
        raise UsageError("this command works in memory: give a file, or export a sample to one")
    held = open_table({**origin, "engine": "memory"}, notices)
    assert isinstance(held, Dataset)
    return held


def place_options(command: _F) -> _F:
    """Add the options that say where in a database a table is, and what counts a file."""
    for option in (
        click.option("--table", "inside", metavar="NAME", help="The table in a database."),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default="auto",
            show_default=True,
            help="What counts a file: auto leaves files that do not fit in memory to DuckDB.",
        ),
    ):
        command = option(command)
    return command


def pair(text: str, names: Sequence[str], option: str) -> tuple[str, str]:
    """Split COLUMN=VALUE; a column's own name may hold an equals sign.

    Raises:
        UsageError: There is no equals sign, or no such column.
    """
    fitting = [name for name in names if text.startswith(f"{name}=")]
    if fitting:
        name = max(fitting, key=len)
        return name, text[len(name) + 1 :]
    name, equals, _ = text.partition("=")
    if not equals:
        raise UsageError(f"{option} {text}: write COLUMN=VALUE")
    raise UsageError(
        f"{option}: there is no column {name!r}; the columns are {', '.join(map(repr, names[:20]))}"
    )


def pairs(texts: Sequence[str], names: Sequence[str], option: str) -> dict[str, str]:
    """Split several COLUMN=VALUE, each column once."""
    split: dict[str, str] = {}
    for text in texts:
        name, value = pair(text, names, option)
        if name in split:
            raise UsageError(f"{option}: the column {name!r} is given twice")
        split[name] = value
    return split


def command_line(ctx: click.Context) -> str:
    """Return the command line for a result to name, without passwords."""
    return shlex.join(["thinveil", *(shown(each) for each in ctx.obj or ())])
