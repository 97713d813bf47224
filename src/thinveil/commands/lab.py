"""thinveil lab: a page on which a table is attacked before everybody's eyes."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import webbrowser
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from thinveil.commands.shared.common import consoles, load_table, reading_options, schema_option
from thinveil.commands.shared.grouped import Command
from thinveil.commands.shared.serving import listener_at, run_until_ended, server_of
from thinveil.curator.tables.reading import Reading
from thinveil.errors import OutputError
from thinveil.lab.app import app_of, check_extra, new_key
from thinveil.lab.signpost import Signpost
from thinveil.lab.tables import Table, Tables, cut
from thinveil.report.text.streams import say

HOST: Final = "127.0.0.1"
PORT: Final = 8322


@click.command("lab", cls=Command)
@click.argument("table", required=False)
@click.option("--port", default=PORT, show_default=True, help="0 chooses a free one.")
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
@schema_option
@reading_options
def command(table: str | None, **given: Any) -> int:
    """Open a page on which a table is attacked before everybody's eyes.

    TABLE is a file, as for thinveil audit; the page also offers made-up people, and opens files
    itself. Only this machine can reach the page, and nothing leaves it. Ctrl-C ends it.

    \b
    Examples:
      thinveil lab
      thinveil people --records 60 --output people.csv
      thinveil lab people.csv
      thinveil lab --port 0 --no-browser
    """
    check_extra()
    _, notices = consoles(None)
    tables = Tables(None if table is None else _own(table, given, notices))
    port = given["port"]
    with closing(listener_at(HOST, port, f"--port {port}", "; 0 chooses one")) as listener:
        key = new_key()
        address = f"http://{HOST}:{listener.getsockname()[1]}/#key={key}"
        say("The lab is open at", f"  {address}", "Ctrl-C ends it.")
        signpost = Signpost(address)
        try:
            wanted = not given["no_browser"] and _has_display()
            _serve(key, tables, listener, signpost, wanted)
        finally:
            signpost.take_down()
    return 0


def _own(table: str, given: dict[str, Any], notices: Console) -> Table:
    """Read the table that was given on the command line."""
    name = Path(table).name
    told = "".join(f", {key}={value!r}" for key, value in Reading.of(given).plain().items())
    data = load_table({**given, "table": table}, notices)
    return cut(data, name, f"thinveil.load({name!r}{told})")


def _has_display() -> bool:
    """Tell whether there is a screen that a browser could open on."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open_browser(signpost: Signpost) -> None:
    """Open a browser, which gets the key by a private file and not by an argument."""
    try:
        page = signpost.put_up()
    except OutputError as error:
        why = f"no private file can be made for it ({error})"
        say(f"No browser was opened, for {why}: open the address yourself", err=True)
        return
    # a browser in the terminal would never come back
    threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()


def _serve(
    key: str, tables: Tables, listener: socket.socket, signpost: Signpost, browser: bool
) -> None:
    """Serve until somebody ends it; perhaps open a browser first."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    app = app_of(
        key,
        tables,
        leaving=lambda: server.should_exit,
        opened=lambda: _open_browser(signpost) if browser else None,
        entered=signpost.take_down,
    )
    server = server_of(app, timeout_graceful_shutdown=5)
    run_until_ended(server, listener)
