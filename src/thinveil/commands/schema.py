"""thinveil schema TABLE: draft a schema file for editing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console

from thinveil.auditing.sources import kind_of
from thinveil.commands.shared.common import (
    check_outputs,
    consoles,
    json_option,
    note,
    open_table,
    overwrite_option,
    place_options,
    reading_options,
    write_json,
)
from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.outputs import overwriting
from thinveil.curator.database.table import DatabaseTable
from thinveil.curator.tables.drafting import draft_of_database, drafted
from thinveil.curator.tables.reading import Reading, listed
from thinveil.errors import UsageError
from thinveil.files import write_file
from thinveil.language.schema import Schema
from thinveil.language.schema_file import write_schema
from thinveil.language.texts import quoted
from thinveil.passwords import shown
from thinveil.report.text.screen import Text
from thinveil.report.text.streams import pour

_COMMENTS = (
    "Drafted from the table. It says what you assume everybody knows.",
    "Check every line: widen bounds to what is public, add categories that could occur,",
    "delete lower and upper where the attack should find them by itself.",
)


def _draft(origin: Mapping[str, Any], notices: Console) -> Schema:
    """Draft a schema for what the options mean: a file, or a table in a database."""
    kind = kind_of(origin["table"], origin["engine"])
    if kind == "file":
        if origin["inside"]:
            raise UsageError("--table: only a database has tables by name")
        if origin["no_temporary_tables"]:
            raise UsageError("--no-temporary-tables: only a database has some; leave it out")
        schema, remarks = drafted(origin["table"], Reading.of(origin))
        for each in remarks.all():
            note(notices, each)
        return schema
    if kind != "database":
        raise UsageError("a service or a plug-in brings its own schema; there is none to draft")
    table = open_table(origin, notices)
    assert isinstance(table, DatabaseTable)
    with table:
        return draft_of_database(table)


def _said_again(given: Mapping[str, Any]) -> str:
    """Return the options that say how the table is read, for the next command line."""
    words = []
    for name, value in Reading.of(given).plain().items():
        flag = f"--{name.replace('_', '-')}"
        if name in ("missing", "not_missing"):
            words += [word for each in value for word in (flag, each)]
        elif value is True:
            words.append(flag)
        else:
            words += [flag, listed(value) if isinstance(value, tuple) else str(value)]
    return "".join(f" {quoted(word)}" for word in words)


@click.command("schema", cls=Command)
@click.argument("table")
@click.option("--output", metavar="FILE", help="Write the draft there instead of printing it.")
@place_options
@reading_options
@json_option
@overwrite_option
def command(table: str, output: str | None, json_file: str | None, **given: Any) -> None:
    """Draft a schema file for TABLE: names, kinds, steps, categories and roomy bounds.

    \b
    Examples:
      thinveil people --records 60 --output people.csv
      thinveil schema people.csv
      thinveil schema people.csv --output people.toml
      thinveil schema postgresql://localhost/census --table people
    """
    check_outputs([table], output=(output, "draft"), json=(json_file, "columns"))
    _, notices = consoles(json_file)
    schema = _draft({**given, "table": table}, notices)
    text = write_schema(schema, _COMMENTS)
    if output:
        # a draft that was edited is the user's work: only the same one is written again
        write_file(output, text, f"--output {output}", overwrite=overwriting())
        again = f" --table {quoted(given['inside'])}" if given["inside"] else ""
        again += _said_again(given)
        line = f"thinveil audit {quoted(shown(table))} --schema {quoted(output)}{again}"
        notices.print(Text(f"Wrote {output}. Edit it, then: {line}"))
    elif json_file != "-":
        pour(text)
    write_json(
        json_file,
        [{"name": each.name, "kind": each.kind, "public": each.describe()} for each in schema],
        "columns",
    )
