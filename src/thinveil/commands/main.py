"""The entry point: finds the command, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Final

import click
from click.shell_completion import CompletionItem

from thinveil.commands.shared import interruptions
from thinveil.commands.shared.grouped import Context
from thinveil.errors import EXIT_EARLY, EXIT_ERROR, EXIT_USAGE, ThinveilError
from thinveil.language.texts import one_line
from thinveil.passwords import redacted
from thinveil.report.text.streams import guard, pour, say

_COMMANDS: Final = {
    "audit": "Attack a table through a mechanism and say what was learned.",
    "compare": "Try the same attacks on all mechanisms, side by side.",
    "completion": "Print a script that lets a shell complete commands and options.",
    "doctor": "Say what is installed, what is missing and what is broken.",
    "lab": "Open a page on which a table is attacked before everybody's eyes.",
    "ledger": "Check, back up or seal anew what a service keeps.",
    "people": "Write a table of made-up people as CSV, to try things out on.",
    "report": "Turn the result of an audit into a page to hand on.",
    "reproduce": "Run the paper's experiments and compare every figure.",
    "schema": "Draft a schema file for a table.",
    "serve": "Answer questions about a table over HTTP, up to a budget.",
    "theory": "Walk through the paper's definitions in a small world.",
}


VERBOSITY: Final = "thinveil.verbosity"
"""Where the contexts of a command line keep how often -v was said."""


class _Lazy(click.Group):
    """Knows the commands by name and imports one only when it is run."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = _loaded(cmd_name)
        if ctx.resilient_parsing:
            from thinveil.commands.completion import complete_values

            complete_values(command)
        interruptions.as_usual()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table; nothing is imported for it."""
        names = [
            CompletionItem(name, help=about)
            for name, about in sorted(_COMMANDS.items())
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@cache
def _loaded(name: str) -> click.Command:
    """Import a command and give it the option -v, which all of them take."""
    command: click.Command = importlib.import_module(f"thinveil.commands.{name}").command
    command.params.append(_verbose())
    return command


def _log(ctx: click.Context, param: click.Parameter, value: int) -> None:
    """Show logs as often as -v was said, before the command and after it together."""
    if not value or ctx.resilient_parsing:
        return
    from thinveil.commands.shared.logs import show

    said = ctx.meta.get(VERBOSITY, 0)
    ctx.meta[VERBOSITY] = said + value
    if said:
        ctx.meta[f"{VERBOSITY}.end"]()
    ctx.meta[f"{VERBOSITY}.end"] = show(said + value)
    ctx.find_root().call_on_close(ctx.meta[f"{VERBOSITY}.end"])


def _verbose() -> click.Option:
    return click.Option(
        ["-v", "--verbose"],
        count=True,
        expose_value=False,
        callback=_log,
        help="Log what is done to standard error; -vv each round. Never a value.",
    )


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from thinveil import __version__

        say(f"thinveil {__version__}")
        ctx.exit()


_EXIT_CODES: Final = (
    "Exit codes: 0 the command ran to its end, 1 an error, 2 wrong usage, 3 ended early (cap "
    "reached or interrupted) with what was found so far. A command's own --help has examples."
)


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EXIT_CODES,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version and exit.",
)
def cli() -> None:
    """Show how much a data release that claims a relaxed form of differential privacy gives away.

    \b
    Examples:
      thinveil audit
      thinveil people --records 60 --output people.csv
      thinveil audit people.csv --attack membership --known age=40
      thinveil audit people.csv --report people.html
      thinveil compare people.csv
      thinveil reproduce all --data bank-full.csv
      thinveil doctor
    """


cli.params.append(_verbose())


def _say(message: str, error: BaseException, arguments: Sequence[str]) -> None:
    """Print a message and what else is to be said about an error."""
    # click turns an interruption into its own Abort; the notes stay on the original
    said = [error, error.__cause__, error.__context__]
    notes = [note for each in said if each for note in getattr(each, "__notes__", ())]
    say(*(redacted(each, arguments) for each in (message, *dict.fromkeys(notes))), err=True)


def _show(wrong: click.ClickException, arguments: Sequence[str]) -> None:
    """Print what click has to say; it repeats words of the command line."""
    said = io.StringIO()
    wrong.show(said)
    fit = one_line(redacted(wrong.message, arguments))
    pour(said.getvalue().replace(wrong.message, fit), err=True)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        given = list(arguments)  # the object of all contexts: a result names its command line
        code = cli.main(given, prog_name="thinveil", standalone_mode=False, obj=tuple(given))
        if sys.stdout is not None:
            sys.stdout.flush()  # what cannot be written is found here, not after the end
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as wrong:
        _show(wrong, arguments)
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt) as stop:
        _say("Interrupted.", stop, arguments)
        return EXIT_EARLY
    except ThinveilError as error:
        _say(f"Error: {error}", error, arguments)
        return error.exit_code
    except MemoryError:
        say("Error: there is not enough memory for this: give less, or more memory", err=True)
        return EXIT_ERROR
    except BrokenPipeError:
        return EXIT_ERROR  # whoever read our output went away
    except OSError as error:
        say(f"Error: cannot read or write: {error.strerror}", err=True)
        return EXIT_ERROR
    except Exception as error:
        if os.environ.get("THINVEIL_DEBUG"):
            raise
        doctor = "; thinveil doctor looks at what is installed"
        say(
            f"Error: something unexpected went wrong ({type(error).__name__}). This is a bug; "
            "THINVEIL_DEBUG=1 shows where, which may include confidential values"
            + (doctor if isinstance(error, ImportError) else ""),
            err=True,
        )
        return EXIT_ERROR


def main() -> None:
    """Run the command line of this process."""
    guard()
    code = run(sys.argv[1:])
    interruptions.at_once(code)  # all is said: what is left is to let go
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # nobody reads it: keep the interpreter from complaining at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)
