"""All runs that pages watch: a bounded number, and none for a tab that is gone."""

from __future__ import annotations

import gc
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from thinveil.errors import ThinveilError, UsageError
from thinveil.lab.session import Session
from thinveil.lab.setting import Setting

MOST: Final = 16
"""So many runs are kept at once."""
IDLE: Final = 60.0
"""Seconds after which a run that nobody watches is stopped and forgotten."""


class Gone(ThinveilError):
    """A run is not known here any more."""


@dataclass(slots=True)
class _Kept:
    session: Session
    seen: float
    watchers: int = 0


@dataclass(slots=True)
class Sessions:
    """The runs by their names, which nobody can guess.

    So many are kept, and one without a watcher for so many idle seconds.
    """

    most: int = MOST
    idle: float = IDLE
    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self._kept)

    def open(self, setting: Setting) -> str:
        """Begin a run; the oldest ones that nobody watches make room."""
        session = Session(setting)
        with self._lock:
            if len(self._kept) >= self.most:
                alone = [name for name, each in self._kept.items() if not each.watchers]
                if not alone:
                    raise UsageError(
                        f"{self.most} runs are being watched already: close a tab of this page"
                    )
                self._drop(min(alone, key=lambda name: self._kept[name].seen))
            name = secrets.token_urlsafe(12)
            self._kept[name] = _Kept(session, self.clock())
        session.start()
        return name

    def __getitem__(self, name: str) -> Session:
        """Return a run that is still known."""
        with self._lock:
            return self._known(name).session

    @contextmanager
    def watching(self, name: str) -> Iterator[Session]:
        """Keep a run alive for as long as somebody watches it."""
        with self._lock:
            kept = self._known(name)
            kept.watchers += 1
        try:
            yield kept.session
        finally:
            with self._lock:
                kept.watchers -= 1
                kept.seen = self.clock()

    @property
    def watchers(self) -> int:
        """How many streams are open."""
        with self._lock:
            return sum(each.watchers for each in self._kept.values())

    def close(self, name: str) -> None:
        """Stop a run and forget it, if it is known."""
        with self._lock:
            if name in self._kept:
                self._drop(name)

    def close_all(self) -> None:
        """Stop and forget all runs."""
        with self._lock:
            for name in list(self._kept):
                self._drop(name)

    def sweep(self) -> None:
        """Stop and forget the runs that nobody has watched for a while."""
        with self._lock:
            now = self.clock()
            for name, each in list(self._kept.items()):
                if not each.watchers and now - each.seen > self.idle:
                    self._drop(name)
        if not gc.isenabled():  # the driver holds it back while attacks run, paused ones too
            gc.collect()

    def _known(self, name: str) -> _Kept:
        if name not in self._kept:
            raise Gone("this run is not known here any more: press Reset and start another")
        return self._kept[name]

    def _drop(self, name: str) -> None:
        self._kept.pop(name).session.pace.do("stop")

    def to_plain(self) -> dict[str, Any]:
        """Return how many runs there are, and how many are under way."""
        with self._lock:
            alive = sum(not each.session.done for each in self._kept.values())
            return {"kept": len(self._kept), "running": alive}
