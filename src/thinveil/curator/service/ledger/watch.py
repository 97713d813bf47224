"""Whether the files of a ledger are still those that were opened, as they were left.

A file that was removed, replaced or renamed is written to all the same by who has it open. So
names are looked up again: the file must be the same one (device and inode, which no other file
gets while it is open), and of the size and time that our own last writing left.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thinveil.curator.service.ledger.seal import seal_of_ledger
from thinveil.errors import LedgerError

LEDGER, LOG, INDEX, SEAL = "", "-wal", "-shm", "-seal"
"""The files of a ledger, by the ends of their names; the index of the log is only a help."""
ALL: Final = (LEDGER, LOG, INDEX, SEAL)
_WHAT_TO_DO: Final = "nothing is answered until it is back; stop the service before files are moved"


@dataclass(frozen=True, slots=True)
class _Seen:
    file: tuple[int, int]
    content: tuple[int, int]


class Watch:
    """Remembers the files of a ledger, and tells when somebody else touched them."""

    def __init__(self, path: Path) -> None:
        beside = os.path.realpath(path)
        self._paths = {end: f"{beside}{end}" for end in (LOG, INDEX)}
        self._paths |= {LEDGER: os.path.abspath(path), SEAL: str(seal_of_ledger(path))}
        self._seen: dict[str, _Seen] = {}

    def begin(self) -> None:
        """Take the files as they are now."""
        self._seen = {end: self._look(end) for end in ALL}

    def look(self, *ours: str) -> None:
        """Compare all files with what they were; those that we wrote to may have grown.

        Raises:
            LedgerError: One of them is gone, is another one, or was changed by somebody else.
        """
        now = {end: self._look(end) for end in ALL}
        for end, seen in now.items():
            before = self._seen[end]
            if seen.file != before.file:
                raise self._lost(end, "another file has taken its place")
            if seen.content != before.content and end not in (INDEX, *ours):
                raise self._lost(end, "it was changed by somebody else")
        self._seen = now

    def same(self, end: str) -> None:
        """Compare one file, whatever is in it.

        Raises:
            LedgerError: It is gone, or another one.
        """
        if self._look(end).file != self._seen[end].file:
            raise self._lost(end, "another file has taken its place")

    def size(self, end: str) -> int:
        """Return how many bytes a file had when it was last looked at."""
        return self._seen[end].content[0]

    def _look(self, end: str) -> _Seen:
        try:
            found = os.stat(self._paths[end])
        except OSError:
            raise self._lost(end, "it is gone") from None
        return _Seen((found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns))

    def _lost(self, end: str, how: str) -> LedgerError:
        return LedgerError(f"{self._paths[end]}: {how}: {_WHAT_TO_DO}")
