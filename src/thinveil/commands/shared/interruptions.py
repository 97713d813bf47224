"""Ctrl-C while there is nothing to lose: before a command has begun, and after it has ended.

Inside a command, an interruption is Python's own KeyboardInterrupt, and the command says what it
has found so far. While modules are imported there is nothing to say yet, and a KeyboardInterrupt
in the middle of a library may come out as anything; so the process just ends, without a traceback.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

from thinveil.errors import EXIT_EARLY

_code = EXIT_EARLY


def at_once(code: int = EXIT_EARLY) -> None:
    """Let an interruption end this process at once, with an exit code.

    A process that ignores interruptions, such as a job in a script's background, goes on to.
    """
    global _code
    _code = code
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def as_usual() -> None:
    """Let an interruption be a KeyboardInterrupt again, where `at_once` changed that."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    if _code == EXIT_EARLY:
        os.write(2, b"Interrupted.\n")
    os._exit(_code)
