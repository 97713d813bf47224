"""Every batch and its answers, kept, so that a broken run can go on.

A transcript is a line of JSON (the header) and then frames. Before batch number i is sent,
a frame with its number and digest is written; after it was answered, a frame with its
answers. Each frame carries a checksum. Replaying the answers into a fresh attack brings it
to the same point; an answered batch is never sent again, an unanswered one is sent again
under the same key.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from thinveil.errors import TranscriptError
from thinveil.language.queries import Floats

FORMAT: Final = "thinveil transcript 1"
_FRAME: Final = struct.Struct("<cIQ16s")  # kind, bytes of answers, number, digest of the batch
_CHECK: Final = struct.Struct("<I")
_SENT: Final = b"S"
_ANSWERED: Final = b"A"
_SYNC_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Header:
    """Whose transcript it is: the target's fingerprint, the options and a random run id."""

    fingerprint: str
    options: Mapping[str, Any]
    run: str = field(default_factory=lambda: secrets.token_hex(8))

    def line(self) -> bytes:
        """Return the header as the first line of a transcript."""
        fields = {
            "format": FORMAT,
            "run": self.run,
            "fingerprint": self.fingerprint,
            "options": dict(self.options),
        }
        return json.dumps(fields).encode() + b"\n"


class Transcript:
    """Records a run, in memory or in a file, and replays what was recorded before.

    Args:
        header: What the transcript is about.
        path: Where to keep it; None keeps it in memory until `save`. The file is made when
            the first batch is sent.

    Attributes:
        notice: What the user should know about a transcript that was resumed.
        empty: Whether nothing was ever recorded here.
    """

    def __init__(self, header: Header, path: Path | None = None) -> None:
        self.header = header
        self.path = path
        self.notice = ""
        self._frames = bytearray()
        self._file: int | None = None
        self._synced = time.monotonic()
        self._recorded: list[tuple[bytes, bytes]] = []
        self._unanswered: tuple[int, bytes] | None = None
        self._resumed: tuple[int, bytes] | None = None
        self._new = path is not None
        self.empty = True
        if path is not None and path.exists():
            raise _exists(path)

    def _create(self) -> None:
        """Make the file, with the header as its first line; not before there is a frame."""
        assert self.path is not None
        self._new = False
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise _exists(self.path) from None
        except OSError as error:
            raise TranscriptError(f"cannot write {self.path}: {error.strerror}") from None
        _lock(self._file, self.path)
        self._write(self.header.line())

    @staticmethod
    def read_header(path: Path) -> Header:
        """Return what a transcript is about, and change nothing.

        Raises:
            TranscriptError: There is no usable transcript at this path.
        """
        return _read(path)[0]

    @staticmethod
    def resume(path: Path) -> Transcript:
        """Open a transcript to go on with it.

        A tail that was not written whole is left out, and `notice` says so; the file itself
        changes only when the run goes on.

        Raises:
            TranscriptError: There is no usable transcript at this path.
        """
        header, start, content = _read(path)
        transcript = Transcript(header)
        transcript.path = path
        end = start + transcript._parse(content[start:])
        transcript._resumed = (end, content[end:])
        transcript.empty = not transcript._recorded
        if end < len(content):
            transcript.notice = (
                f"the end of {path} was damaged: it is cut back to the last whole batch, number "
                f"{len(transcript._recorded)}, and the rest is kept in {_damaged(path)}"
            )
        return transcript

    def _reopen(self) -> None:
        """Get ready to write behind the last whole frame; keep a damaged tail elsewhere."""
        assert self.path is not None
        assert self._resumed is not None
        end, tail = self._resumed
        self._resumed = None
        try:
            if tail:
                with _damaged(self.path).open("ab") as rest:
                    rest.write(tail)
            self._file = os.open(self.path, os.O_WRONLY)
            _lock(self._file, self.path)
            os.ftruncate(self._file, end)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise TranscriptError(f"cannot write {self.path}: {error.strerror}") from None

    def _parse(self, frames: bytes) -> int:
        """Read whole frames; return how many bytes of them are sound."""
        position = 0
        while position + _FRAME.size + _CHECK.size <= len(frames):
            kind, size, number, digest = _FRAME.unpack_from(frames, position)
            end = position + _FRAME.size + size
            if kind not in (_SENT, _ANSWERED) or end + _CHECK.size > len(frames):
                break
            (check,) = _CHECK.unpack_from(frames, end)
            if check != zlib.crc32(frames[position:end]):
                break
            if number != len(self._recorded) + 1:
                break
            if kind == _ANSWERED:
                self._recorded.append((digest, frames[position + _FRAME.size : end]))
            else:
                self._unanswered = (number, digest)
            position = end + _CHECK.size
        return position

    @property
    def answered(self) -> int:
        """How many batches were recorded with their answers when this was opened."""
        return len(self._recorded)

    def replay(self, number: int, digest: bytes) -> Floats | None:
        """Return the recorded answers of a batch, or None if it has to be asked.

        Raises:
            TranscriptError: The attack asks something else than what was recorded.
        """
        if number > len(self._recorded):
            return None
        recorded, answers = self._recorded[number - 1]
        if recorded != digest:
            raise _differs(number)
        return np.frombuffer(answers, dtype="<f8").astype(np.float64, copy=False)

    def sent(self, number: int, digest: bytes) -> None:
        """Note that a batch is about to be sent.

        Raises:
            TranscriptError: Another batch was sent under this number before.
        """
        if self._unanswered is not None and self._unanswered[0] == number:
            if self._unanswered[1] != digest:
                raise _differs(number)
            self._unanswered = None
        self._frame(_SENT, number, digest, b"")

    def got(self, number: int, digest: bytes, values: Floats) -> None:
        """Note the answers of a batch."""
        self._frame(_ANSWERED, number, digest, values.astype("<f8", copy=False).tobytes())

    def _frame(self, kind: bytes, number: int, digest: bytes, answers: bytes) -> None:
        self.empty = False
        frame = _FRAME.pack(kind, len(answers), number, digest) + answers
        self._write(frame + _CHECK.pack(zlib.crc32(frame)))

    def _write(self, data: bytes) -> None:
        if self._resumed is not None:
            self._reopen()
        elif self._new:
            self._create()
        if self._file is None:
            self._frames += data
            return
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            raise TranscriptError(f"cannot write {self.path}: {error.strerror}") from None

    def save(self, path: Path) -> None:
        """Write a transcript kept in memory to a file, and keep it there from now on."""
        if self.path is not None:
            return
        kept = bytes(self._frames)
        fresh = Transcript(self.header, path)
        fresh._write(kept)
        fresh.close()
        self.path = path

    def close(self) -> None:
        """Bring everything to the disk and let go of the file."""
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None


def _read(path: Path) -> tuple[Header, int, bytes]:
    """Return a transcript's header, where its frames start, and its whole content."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TranscriptError(f"cannot read {path}: {error.strerror}") from None
    line = content.partition(b"\n")[0]
    try:
        fields = json.loads(line)
        if fields["format"] != FORMAT:
            raise ValueError
        header = Header(fields["fingerprint"], fields["options"], fields["run"])
    except (ValueError, KeyError, TypeError):
        raise TranscriptError(f"{path} is not a transcript that this version reads") from None
    return header, len(line) + 1, content


def _exists(path: Path) -> TranscriptError:
    return TranscriptError(
        f"{path} exists already: choose another name, or continue it with --resume"
    )


def _damaged(path: Path) -> Path:
    return path.with_name(path.name + ".damaged")


def _differs(number: int) -> TranscriptError:
    return TranscriptError(
        f"batch {number} differs from the recorded one: the transcript belongs to another table, "
        "other options or another version"
    )


def _lock(file: int, path: Path) -> None:
    """Keep a second run from writing to the same transcript, where the system can."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise TranscriptError(f"{path} is in use by another run") from None
