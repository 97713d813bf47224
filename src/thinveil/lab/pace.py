"""How fast an attack may ask: pause, resume, step, stop and speed, from any thread."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from thinveil.errors import UsageError

TICK: Final = 0.05
"""Seconds between two portions of a round that is shown as it is asked."""
FASTEST: Final = 100_000
NO_LIMIT: Final = 0
"""The speed of an attack that nobody slows down."""

QUICK: Final = 100
"""From this speed on nobody reads single questions."""
HASTE: Final = 8
"""How many times as fast a quick attack goes while nothing of it can be seen."""

ACTIONS: Final[dict[str, dict[str, Any]]] = {
    "pause": {"paused": True},
    "resume": {"paused": False},
    "round": {"paused": True, "step": "round"},
    "question": {"paused": True, "step": "question"},
    "stop": {"stopped": True},
}
"""What can be done: let nothing more through, go on, let one round (or what is left of it) or one
question through and then wait, and end the attack at its next question."""


class Pace:
    """Lets so many questions a second through, a portion at a time; 0 is as fast as it goes.

    It may be paused at first. A hasty one lets a quick attack go faster still, until `calm`.
    """

    def __init__(self, speed: float = NO_LIMIT, paused: bool = False, hasty: bool = False) -> None:
        self._changed = threading.Condition()
        self._speed = speed_of(speed)
        self._paused = paused
        self._stopped = False
        self._step: str | None = None
        self._due = 0.0
        self._hasty = hasty

    @property
    def paused(self) -> bool:
        """Whether nothing is let through."""
        return self._paused

    def do(self, action: str) -> None:
        """Do one of `ACTIONS`."""
        self._set(**ACTIONS[action])

    def set_speed(self, speed: float) -> None:
        """Change the speed."""
        self._set(speed=speed_of(speed))

    def calm(self) -> None:
        """Go at the chosen speed from now on: there is something to see."""
        if self._hasty:
            self._set(hasty=False)

    def _set(self, **changed: Any) -> None:
        with self._changed:
            for name, value in changed.items():
                setattr(self, f"_{name}", value)
            self._due = 0.0
            self._changed.notify_all()

    def allow(self, wanted: int) -> int:
        """Wait until something may be asked; return how many of the wanted questions.

        Raises:
            KeyboardInterrupt: The attack was stopped; the driver ends it with what was found.
        """
        with self._changed:
            while True:
                if self._stopped:
                    raise KeyboardInterrupt
                if self._step is not None:
                    step, self._step = self._step, None
                    return wanted if step == "round" else 1
                if self._paused:
                    self._changed.wait()
                    continue
                if self._speed == NO_LIMIT:
                    return wanted
                speed = self._speed * (HASTE if self._hasty and self._speed >= QUICK else 1)
                portion = min(wanted, max(1, round(speed * TICK)))
                now = time.monotonic()
                if self._due == 0.0:
                    self._due = now + portion / speed
                if now >= self._due:
                    self._due = 0.0
                    return portion
                self._changed.wait(self._due - now)


def speed_of(speed: object) -> float:
    """Read a speed."""
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 <= speed <= FASTEST:
        raise UsageError(f"the speed is a number of questions a second, from 0 to {FASTEST:,}")
    return float(speed)
