"""The reference of the command line, docs/commands.md: what each command says to --help.

python tools/reference.py        # writes the page anew
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from thinveil.commands.main import cli

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
WIDTH = 78
"""What click writes for on a terminal of 80 columns, or more."""
HEAD = """\
# Every command

What `--help` says. `-v` and `-h`, which all commands take, stand with `thinveil` alone.
[The command line](command-line.md) has exit codes, environment variables, completion and logs.
"""
SHARED = re.compile(r"(\n\nOptions:)?\n  -v, --verbose .*?\n  -h, --help .*", re.DOTALL)
"""The end of all but the first: the options -v and -h."""


def said(command: click.Command, above: click.Context | None = None) -> str:
    """Return what a command says to --help."""
    name = "thinveil" if above is None else command.name
    settings = {**command.context_settings, "terminal_width": WIDTH}
    context = command.context_class(command, above, name, **settings)
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    return "\n".join(lines)


def reference() -> str:
    """Return the page as it should be now."""
    above = click.Context(cli, info_name="thinveil", **cli.context_settings)
    helps = [("thinveil", said(cli))]
    for name in cli.list_commands(above):
        command = cli.get_command(above, name)
        assert command is not None
        helps.append((f"thinveil {name}", SHARED.sub("", said(command, above))))
    return HEAD + "".join(f"\n## {name}\n\n```text\n{text}\n```\n" for name, text in helps)


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")
