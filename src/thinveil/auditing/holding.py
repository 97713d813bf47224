"""An interruption waits until an attack has thought to the end: half a thought tells nothing.

What an attack has found so far is told from its state, and that fits together whenever it asks.
In the middle of a thought it need not: a level of groups may be searched, and the next not there.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Hold:
    """Holds back the first Ctrl-C that comes while an attack thinks; the second comes through.

    Where signals are somebody else's (in a thread, or where a program has a handler of its own),
    nothing is held.
    """

    def __init__(self) -> None:
        self.forced = False
        self._thinking = self._came = False

    @contextmanager
    def taken(self) -> Iterator[Hold]:
        """Take the signal for as long as a run lasts.

        Raises:
            KeyboardInterrupt: It was interrupted while the attack thought its last.
        """
        ours = threading.current_thread() is threading.main_thread()
        if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield self
            return
        try:
            signal.signal(signal.SIGINT, self._interrupted)
            yield self
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.end()

    def begin(self) -> None:
        """From here on the attack thinks."""
        self._thinking = True

    def end(self) -> None:
        """The attack has thought to the end.

        Raises:
            KeyboardInterrupt: It was interrupted on the way.
        """
        self._thinking = False
        if self._came:
            self._came = False
            raise KeyboardInterrupt

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self._thinking and not self._came:
            self._came = True
            return
        self.forced = self._thinking
        raise KeyboardInterrupt
