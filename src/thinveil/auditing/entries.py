"""What an entry of the table of options says, and how single values of options are read."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from thinveil.errors import UsageError

USUAL_CONFIDENCE: Final = "0.999"
"""How sure statements are meant to be, unless told otherwise."""

Kind = Literal["text", "number", "whole", "flag", "names", "numbers", "pairs", "people"]
"""What an option holds; numbers are kept as text, so that none of their digits is lost."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the table says of an option, beyond its name and its usual value.

    Args:
        help: A line for the command line; empty where the name says it, or there is no such line.
        kind: What it holds.
        metavar: What stands for its value there.
        flag: Its name on the command line, where it is another.
        choices: All values that it may have, where they are few.
        repeated: Whether it may be given several times there, as all pairs may.
        quiet: Whether a command line that leaves it out decides by itself.
        curators: Whether it describes a curator of ours: a service or a plug-in brings its own.
        attacks: The attacks that have a use for it; empty where all have.
    """

    help: str = ""
    kind: Kind = "text"
    metavar: str | None = None
    flag: str | None = None
    choices: tuple[str, ...] = ()
    repeated: bool = False
    quiet: bool = False
    curators: bool = False
    attacks: tuple[str, ...] = ()


def confidence_of(text: object) -> float:
    """Read a confidence such as 0.999.

    Raises:
        UsageError: It does not lie between a half and one.
    """
    with suppress(ValueError):
        if 0.5 <= (value := float(str(text))) < 1:
            return value
    raise UsageError(f"--confidence must be at least 0.5 and below 1, not {text}")


def number(text: object, what: str) -> float:
    """Read a plain number.

    Raises:
        UsageError: It is none.
    """
    with suppress(ValueError):
        if math.isfinite(value := float(str(text))):
            return value
    raise UsageError(f"{what} must be a number")
