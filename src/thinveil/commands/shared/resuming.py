"""Going on with a run: a transcript says where, but does not decide who gets a token."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from thinveil.auditing.sources import elsewhere
from thinveil.auditing.transcript import Transcript
from thinveil.errors import TranscriptError, UsageError
from thinveil.language.texts import quoted
from thinveil.report.text.streams import say

_LONGEST: Final = 200
"""Addresses longer than this are not asked about: they could fill the screen."""


def recorded_origin(path: Path, source: str | None) -> dict[str, Any]:
    """Return where a transcript was recorded, or where the user says that it is now.

    Others may have written the file: where what it names would get a token or a password, the
    user must name it, or agree.
    """
    origin = Transcript.read_header(path).options.get("origin")
    places = ("table", "schema", "inside", "engine", "spark")
    if (
        not isinstance(origin, Mapping)
        or not all(isinstance(origin.get(each), str | None) for each in places)
        or not isinstance(origin.get("no_temporary_tables"), bool | None)
    ):
        raise TranscriptError(f"{path} does not say which table it was recorded on")
    if source is not None:
        return {**origin, "table": source}
    address = elsewhere(origin.get("table"))
    question = f"{path} leads to {address}. Send your token or password there?"
    if address and not (len(address) <= _LONGEST and _agreed(question)):
        go_on = f"thinveil audit {quoted(address)} --resume {quoted(str(path))}"
        raise UsageError(
            f"{path} leads to {address}, which would get your token or password, and may be "
            f"anybody's: if it is yours, name it:  {go_on}"
        )
    return {**origin}


def _agreed(question: str) -> bool:
    """Ask at a terminal, where anything but yes is no; elsewhere nobody agrees."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        return False
    say(f"{question} [y/N]", err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
