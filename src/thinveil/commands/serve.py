"""thinveil serve: a curator behind HTTP, to be audited from elsewhere."""

from __future__ import annotations

import logging
import os
import re
import shlex
import socket
from collections.abc import Mapping
from contextlib import closing
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from thinveil.auditing.network.origins import loopback
from thinveil.auditing.options import Options
from thinveil.auditing.targets import Target
from thinveil.commands.shared.common import (
    consoles,
    names_between,
    open_table,
    place_options,
    reading_options,
    schema_option,
    settings,
)
from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.serving import listener_at, run_until_ended, server_of
from thinveil.curator.service.accounts import Accounts
from thinveil.curator.service.analysts import analyst_named, budget_of
from thinveil.curator.service.app import app_of, curators_thread
from thinveil.curator.service.door import LARGEST_BATCH, RATE, Settings
from thinveil.curator.service.pacing import Pace
from thinveil.errors import MissingExtra, OutputError, UsageError
from thinveil.files import create_private
from thinveil.language.texts import many
from thinveil.passwords import shown
from thinveil.report.text.screen import Text
from thinveil.report.text.streams import LogFormat, LogLines, say

PORT: Final = 8321
LONGEST_SPELL: Final = 60_000
"""Of --answer-after: half of what our client waits for a reply."""
FIRST: Final = "analyst"
"""The name of the analyst whom --budget is for."""
_CURATOR: Final = ("mechanism", "cache")
"""The first and the last of the options that describe a curator."""


@click.command("serve", cls=Command)
@click.argument("table", required=False)
@settings(*_CURATOR)
@click.option("--budget", metavar="EPS", help=f"Of the first analyst, called {FIRST}. [1]")
@click.option("--analyst", multiple=True, metavar="NAME=BUDGET", help="Another analyst.")
@click.option("--new-token", multiple=True, metavar="NAME", help="Replace an analyst's token.")
@click.option("--token-file", metavar="FILE", help="Write tokens there and do not print them.")
@click.option("--ledger", metavar="FILE", help="What was spent and answered. [TABLE.ledger, here]")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=PORT, show_default=True, help="0 chooses a free one.")
@click.option("--rate", default=RATE, show_default=True, help="Requests a second, each analyst.")
@click.option("--largest-batch", default=LARGEST_BATCH, show_default=True, help="Answers at once.")
@click.option(
    "--answer-after",
    type=float,
    default=0.0,
    metavar="MS",
    help="Answer each batch after a whole multiple of so many milliseconds.",
)
@schema_option
@place_options
@reading_options
def command(table: str | None, **given: Any) -> None:
    """Answer questions about TABLE over HTTP, up to a budget.

    TABLE is a file or the address of a database, as for thinveil audit; without it, the embedded
    synthetic people are asked about. Each analyst has a token; it
    is printed once. Whatever was spent stays spent: it stands in the ledger file.

    \b
    Examples:
      thinveil serve
      thinveil people --records 60 --output people.csv
      thinveil serve people.csv --k 3 --budget 0.5 --ledger k3.ledger
      thinveil serve people.csv --analyst ada=0.1 --ledger ada.ledger
    """
    if any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise MissingExtra("A service", "service")  # before a ledger is made and a token is lost
    limits = _settings(given)
    console, notices = consoles(None)
    options = Options(**{name: given[name] for name in names_between(*_CURATOR)})
    path = Path(given["ledger"] or f"{_name_of(given['inside'] or table or 'people')}.ledger")
    if given["token_file"] and os.path.lexists(given["token_file"]):
        raise UsageError(f"--token-file {given['token_file']} exists already: choose another name")
    host, port = given["host"], given["port"]
    listening = listener_at(host, port, f"--host {host} --port {port}")
    with curators_thread() as worker, closing(listening) as listener:
        accounts = worker.submit(_accounts, table, given, options, path, notices).result()
        with closing(accounts):
            tokens = accounts.admit(_budgets(given, accounts))
            tokens |= {name: accounts.renew(name) for name in given["new_token"]}
            app = app_of(accounts, limits, worker)
            if given["token_file"] and tokens:
                _write_tokens(Path(given["token_file"]), tokens)
            _say(console, listener, accounts, tokens, given)
            _run(app, listener)


def _accounts(
    table: str | None, given: Mapping[str, Any], options: Options, path: Path, notices: Console
) -> Accounts:
    """Open the table and its ledger."""
    data = open_table({**given, "table": table}, notices)
    if isinstance(data, Target):
        raise UsageError("this command needs the table itself: give a file or a database")
    return Accounts(data, options.claim(), path, options.policies())


def _name_of(table: str) -> str:
    """Return a name for the ledger of a table: a file's own, or the end of an address."""
    return re.sub(r"[^\w.-]+", "-", Path(shown(table)).stem).strip("-.") or "table"


def _settings(given: Mapping[str, Any]) -> Settings:
    if not 0 < given["rate"] < float("inf"):
        raise UsageError("--rate: must be a number above zero")
    if not 1 <= given["largest_batch"] <= 2**31:
        raise UsageError("--largest-batch: must be at least 1, and at most 2^31")
    if not 0 <= given["answer_after"] <= LONGEST_SPELL:
        raise UsageError(f"--answer-after: must be a number from 0 to {LONGEST_SPELL:,}")
    pace = Pace(given["answer_after"] / 1000)
    return Settings(largest_batch=given["largest_batch"], rate=given["rate"], pace=pace)


def _budgets(given: Mapping[str, Any], accounts: Accounts) -> list[tuple[str, Fraction]]:
    """Return who shall be let in; the first analyst only at first, or where it is asked for."""
    others = [analyst_named(text) for text in given["analyst"]]
    if given["budget"] is not None:
        return [(FIRST, budget_of(given["budget"], "--budget")), *others]
    if accounts.analysts or FIRST in dict(others):
        return others
    return [(FIRST, Fraction(1)), *others]


def _write_tokens(path: Path, tokens: Mapping[str, str]) -> None:
    """Write tokens to a file that only its owner can read; a line each, the first one first."""
    try:
        with os.fdopen(create_private(path), "w") as lines:
            lines.writelines(f"{token}\n" for token in tokens.values())
    except OSError as error:
        raise OutputError(f"--token-file {path}: {error.strerror}") from None


def _say(
    console: Console,
    listener: socket.socket,
    accounts: Accounts,
    tokens: Mapping[str, str],
    given: Mapping[str, Any],
) -> None:
    """Print where the service is and, once, how to get in."""
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    facts = accounts.facts
    lines = [
        f"Answering questions about {many(facts.records, 'record')} under {facts.claim.name}",
        f"  address   {address}",
        f"  manual    {address}/docs",
        f"  ledger    {accounts.ledger.path.absolute()}",
        *(
            f"  analyst   {each.name}, budget {float(each.budget):g}, "
            f"spent {float(accounts.statement(each).spent):.6g}"
            for each in accounts.analysts
        ),
    ]
    if tokens and given["token_file"]:
        lines += ["", f"The tokens of {', '.join(tokens)} are in {given['token_file']}"]
    elif tokens:
        for name, token in tokens.items():
            lines += ["", f"The token of {name}, shown this once:"]
            lines += [f"  export THINVEIL_TOKEN={shlex.quote(token)}"]
        lines += [f"  thinveil audit {address}"]
    else:
        lines += ["", "Tokens were shown when they were made; --new-token NAME makes another"]
    if not loopback(host):
        warning = f"Warning: {host} can be reached from other machines, and tokens travel unsealed"
        console.print(Text(warning, style="yellow"))
    say(*lines)


def _run(app: Any, listener: socket.socket) -> None:
    """Serve until somebody ends it."""
    shown = LogLines()
    shown.setFormatter(LogFormat("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("thinveil.service", logging.INFO), ("uvicorn.error", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(shown)
        logger.propagate = False
    server = server_of(app, timeout_keep_alive=75, timeout_graceful_shutdown=30)
    run_until_ended(server, listener)
