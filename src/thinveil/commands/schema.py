"""thinveil schema TABLE: draft a schema file for editing."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.text import Text

from thinveil.commands.common import (
    check_outputs,
    consoles,
    json_option,
    reading_options,
    write_json,
)
from thinveil.curator.drafting import draft_schema
from thinveil.errors import OutputError
from thinveil.language.schema_file import write_schema

_COMMENTS = (
    "Drafted from the table. It says what you assume everybody knows.",
    "Check every line: widen bounds to what is public, add categories that could occur,",
    "delete lower and upper where the attack should find them by itself.",
)


@click.command("schema")
@click.argument("table")
@click.option("--output", metavar="FILE", help="Write the draft there instead of printing it.")
@reading_options
@json_option
def command(
    table: str,
    output: str | None,
    separator: str | None,
    quote: str,
    encoding: str,
    missing: tuple[str, ...],
    json_file: str | None,
) -> None:
    """Draft a schema file for TABLE: names, kinds, steps, categories and roomy bounds.

    \b
    Examples:
      thinveil schema people.csv
      thinveil schema people.csv --output people.toml
    """
    check_outputs([table], output=output, json=json_file)
    _, notices = consoles(json_file)
    schema = draft_schema(
        table, separator=separator, quote=quote, encoding=encoding, missing=missing
    )
    text = write_schema(schema, _COMMENTS)
    if output:
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputError(f"cannot write {output}: {error.strerror}") from None
        again = "".join(f" --missing {shlex.quote(each)}" for each in missing)
        line = f"thinveil audit {shlex.quote(table)} --schema {shlex.quote(output)}{again}"
        notices.print(Text(f"Wrote {output}. Edit it, then: {line}"))
    elif json_file != "-":
        click.echo(text, nl=False)
    write_json(
        json_file,
        [{"name": each.name, "kind": each.kind, "public": each.describe()} for each in schema],
    )
