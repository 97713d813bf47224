"""What commands on tables share: the options that describe a curator and how to read a table."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from rich.console import Console

from thinveil.attacker.strategies import strategy_names
from thinveil.auditing.options import TABLE, flag_of, usual
from thinveil.auditing.sources import ENGINES, kind_of, opened, reading
from thinveil.auditing.targets import Target
from thinveil.commands.shared.outputs import busy
from thinveil.commands.shared.outputs import check_outputs as check_outputs
from thinveil.commands.shared.outputs import consoles as consoles
from thinveil.commands.shared.outputs import json_option as json_option
from thinveil.commands.shared.outputs import note as note
from thinveil.commands.shared.outputs import overwrite_option as overwrite_option
from thinveil.commands.shared.outputs import write_json as write_json
from thinveil.commands.shared.outputs import write_result as write_result
from thinveil.curator.tables.dataset import Dataset, Held
from thinveil.curator.tables.reading import DATES, NO_REMARKS
from thinveil.errors import UsageError
from thinveil.language.claims import MECHANISMS, claim_named
from thinveil.language.plugins import mechanism_names
from thinveil.language.schema_file import read_schema
from thinveil.language.texts import nearest
from thinveil.passwords import shown

_F = TypeVar("_F", bound=Callable[..., Any])

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # no generic class before click 8.2


_RELAXED: Final = {"individual": "idp", "bootstrap": "bdp", "idp": "", "bdp": "", "textb": ""}
_HONEST: Final = (
    "dp", "differential", "privacy", "laplac", "gauss", "geometric", "cauchy", "exponential",
    "honest", "control",
)  # fmt: skip
"""Words in the names of relaxed and of full differential privacy, as people write them."""


def known_mechanism(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return the names of mechanisms; plug-ins are looked for only where one is none of ours."""
    for name in [value] if isinstance(value, str) else value:
        if name not in MECHANISMS and name not in mechanism_names():
            near = _meant(name)
            meant = f" (did you mean {near}?)" if near else ""
            names = ", ".join(mechanism_names())
            raise click.BadParameter(f"there is no mechanism {name!r}{meant}; choose from {names}")
    return value


def _meant(name: str) -> str:
    """Return the mechanism that a wrong name may stand for; empty where there is none.

    Whoever asks for differential privacy or for honest noise is offered controls only, and nothing
    that leaks: dp is not idp.
    """
    asked = "-".join(re.findall("[a-z]+", name.lower()))
    controls = [each for each in MECHANISMS if claim_named(each).control]
    near, names = get_close_matches(asked, controls, 1), list(mechanism_names())
    relaxed = [word for word in _RELAXED if word in asked]
    if not relaxed and (near or any(word in asked.replace("-", "") for word in _HONEST)):
        names = controls
    begun = [_RELAXED[word] for word in relaxed if _RELAXED[word]]
    begun += [each for each in names if asked and each.startswith(asked)]
    within = [each for each in names if asked and asked in each]
    return next(iter(begun or within or get_close_matches(asked, names, 1)), "")


class _Strategy(_Choice):
    """The name of a strategy; plug-ins are looked for only where it is none of ours."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or refuse it."""
        known = value in self.choices or value not in strategy_names()
        return super().convert(value, param, ctx) if known else str(value)


def setting(name: str, **more: Any) -> Callable[[_F], _F]:
    """Return a decorator that adds an option of the table; `more` says what is otherwise here."""
    entry, default = TABLE[name], usual(name)
    how: dict[str, Any] = {"help": entry.help or None, "metavar": entry.metavar}
    if entry.kind == "flag":
        how["is_flag"] = True
    elif entry.repeated or entry.kind == "pairs":
        how["multiple"] = True
    elif type(default) in (int, str) and not entry.quiet:
        how |= {"default": default, "show_default": True}
    if entry.kind == "whole":
        how["type"] = int
    elif name == "strategy":
        how["type"] = _Strategy(entry.choices)
    elif entry.choices:
        how["type"] = click.Choice(entry.choices)
    elif name == "mechanism":
        how["callback"] = known_mechanism
    return click.option(flag_of(name), name, **(how | more))


def _added(*options: Callable[[Any], Any]) -> Callable[[_F], _F]:
    """Return a decorator that adds options, the last one on top."""

    def add(command: _F) -> _F:
        for option in options:
            command = option(command)
        return command

    return add


def settings(first: str, last: str) -> Callable[[_F], _F]:
    """Return a decorator that adds all options of the table from one to another."""
    return _added(*map(setting, reversed(names_between(first, last))))


def names_between(first: str, last: str) -> list[str]:
    """Return the names of the table from one to another."""
    names = list(TABLE)
    return names[names.index(first) : names.index(last) + 1]


schema_option = click.option(
    "--schema", metavar="FILE", help="A schema file, or bank. (thinveil schema TABLE)"
)


def _listed(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    """Split A,B,.. as a line of CSV, so that a name may hold a comma in quotation marks."""
    lines = (io.StringIO(each, newline="") for each in value)
    rows = (row for line in lines for row in csv.reader(line, skipinitialspace=True))
    return tuple(name for row in rows for name in row)


def _line(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Read the number of a line, or "none"."""
    if value is None or value.isdecimal():
        return None if value is None else int(value)
    if value.lower() == "none":
        return 0
    raise click.BadParameter("give the number of a line, from 1, or none")


reading_options = _added(
    click.option("--sheet", metavar="NAME", help="The sheet of a spreadsheet. [the first]"),
    click.option(
        "--dates", type=click.Choice(DATES), help="How 01/02/1990 is read. [found out, and said]"
    ),
    click.option(
        "--not-missing", multiple=True, metavar="TEXT", help="A value, though it looks missing."
    ),
    click.option(
        "--missing",
        multiple=True,
        metavar="TEXT",
        help="A text that means a missing value, besides empty, NULL and NaN.",
    ),
    click.option(
        "--drop", multiple=True, callback=_listed, metavar="A,B,..", help="Columns to leave out."
    ),
    click.option(
        "--only", multiple=True, callback=_listed, metavar="A,B,..", help="Columns to read. [all]"
    ),
    click.option(
        "--keep-unnamed",
        is_flag=True,
        help="Keep columns without a name, though they count the rows or are empty.",
    ),
    click.option(
        "--comment", metavar="MARK", help="What lines that are no data begin with. [found out]"
    ),
    click.option(
        "--header",
        callback=_line,
        metavar="LINE|none",
        help="The line with the columns' names. [found out]",
    ),
    click.option("--encoding", metavar="NAME", help="Of a text file. [found out]"),
    click.option("--quote", metavar="MARK", help="Around fields; '' for none. [found out]"),
    click.option("--separator", metavar="MARK", help="Between fields. [found out]"),
)
"""Adds the options that say how a table is to be read: the fields of `Reading`."""
place_options = _added(
    click.option("--table", "inside", metavar="NAME", help="The table in a database."),
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="auto",
        show_default=True,
        help="What counts a file: auto leaves files that do not fit in memory to DuckDB.",
    ),
    click.option(
        "--spark",
        default="auto",
        show_default=True,
        metavar="WAY[:HOST]",
        help="How Spark counts: auto, standing, jobs, sql; HOST is this machine to its executors.",
    ),
    click.option(
        "--no-temporary-tables",
        is_flag=True,
        help="Make none in a database; each statement then scans the table.",
    ),
)
"""Adds the options that say where in a database a table is, and what counts a file."""


def open_table(
    origin: Mapping[str, Any], notices: Console, verdicts: Console | None = None
) -> Held | Target:
    """Open a table or a target as the options say; without one, the embedded people.

    What was assumed is said at once, but not where the verdict will say it on the same screen:
    there, only what may be worth stopping for is, and the verdict says what can be done.
    """
    schema = read_schema(origin["schema"]) if origin.get("schema") else None
    engine, patience = origin.get("engine") or "auto", origin.get("patience")
    where = (origin.get("table"), schema, origin.get("inside"), engine, patience)
    how: dict[str, Any] = {
        **reading(origin),
        "spark": origin.get("spark") or "auto",
        "temporary_tables": not origin.get("no_temporary_tables"),
    }
    notes = partial(note, notices)
    with busy(notices, "opening the table") as shown:
        told: list[Callable[[str], None]] = [getattr(shown, "update", lambda _: None)]
        how["say"] = lambda text: told[-1](text)
        held = opened(*where, tell=notes, **how)
    told.append(notes)  # what a database says later, while it is counted
    remarks = getattr(held, "remarks", NO_REMARKS)
    again = verdicts is not None and verdicts.is_interactive and notices.is_interactive
    brief = [each.partition(". If ")[0] for each in remarks.doubts]
    for each in brief if again else remarks.all():
        note(notices, each)
    return held


def load_table(
    origin: Mapping[str, Any], notices: Console, verdicts: Console | None = None
) -> Dataset:
    """Read a table into memory as the options say; without one, return the embedded people."""
    if kind_of(origin.get("table"), "memory") not in ("people", "file"):
        raise UsageError("this command works in memory: give a file, or export a sample to one")
    held = open_table({**origin, "engine": "memory"}, notices, verdicts)
    assert isinstance(held, Dataset)
    return held


def pair(text: str, names: Sequence[str], option: str) -> tuple[str, str]:
    """Split COLUMN=VALUE; a column's own name may hold an equals sign."""
    fitting = [name for name in names if text.startswith(f"{name}=")]
    if fitting:
        name = max(fitting, key=len)
        return name, text[len(name) + 1 :]
    name, equals, _ = text.partition("=")
    if not equals:
        raise UsageError(f"{option} {text}: write COLUMN=VALUE")
    meant = nearest(name, names)
    hint = f" (did you mean {meant}?)" if meant else ""
    known = ", ".join(map(repr, names[:20]))
    raise UsageError(f"{option}: there is no column {name!r}{hint}; the columns are {known}")


def refuse_left_out(
    option: str, texts: Iterable[str], names: Sequence[str], given: Mapping[str, Any]
) -> None:
    """Refuse a column (NAME, or NAME=VALUE) in an option that --drop or --only leave out."""
    for text in texts:
        if any(text == name or text.startswith(f"{name}=") for name in names):
            continue
        for name in given["drop"]:
            if text == name or text.startswith(f"{name}="):
                raise UsageError(f"{option}: the column {name!r} is left out by --drop")
        if given["only"]:
            name = text.partition("=")[0]
            raise UsageError(f"{option}: the column {name!r} is not among those of --only")


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
