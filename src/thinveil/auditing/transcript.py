"""Every batch and its answers, kept, so that a broken run can go on.

A transcript is a line of JSON (the header) and then frames. Before batch number i is sent,
a frame with its number and digest is written; after it was answered, a frame with its
answers. Each frame carries a checksum. Replaying the answers into a fresh attack brings it
to the same point; an answered batch is never sent again, an unanswered one is sent again
under the same key.

Answers are doubles, or one or four bytes each where all of a batch are whole numbers that
fit. The first version of the format had doubles only; its files are read and continued.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import secrets
import shutil
import struct
import tempfile
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from thinveil.errors import TranscriptError
from thinveil.files import create_private, held_alone, reopened
from thinveil.language.queries import Floats
from thinveil.language.wire.packing import DOUBLES, packed, unpacked

_log = logging.getLogger(__name__)

FORMAT: Final = "thinveil transcript 2"
_FIRST_FORMAT: Final = "thinveil transcript 1"  # answers without a tag, always doubles
_FRAME: Final = struct.Struct("<cIQ16s")  # kind, bytes of answers, number, digest of the batch
_CHECK: Final = struct.Struct("<I")
_SENT: Final = b"S"
_ANSWERED: Final = b"A"
_SYNC_SECONDS: Final = 2.0
_IN_MEMORY: Final = 64 * 2**20  # bytes of a transcript without a name, before it moves to a disk
_CHUNK: Final = 2**20
_HEADER: Final = 2**26  # the most bytes of a header, 64 MiB: half a million people may be known


@dataclass(frozen=True, slots=True)
class Header:
    """Whose transcript it is: the target's fingerprint, the options and a random run id."""

    fingerprint: str
    options: Mapping[str, Any]
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    format: str = FORMAT

    def line(self) -> bytes:
        """Return the header as the first line of a transcript."""
        names = ("format", "run", "fingerprint", "options")
        return json.dumps({name: getattr(self, name) for name in names}).encode() + b"\n"


class Transcript:
    """Records a run, and replays what was recorded before.

    Its file is made when the first batch is sent. Without a path it is kept in memory until `save`,
    and from some size on in a temporary file without a name. `notice` is what the user should know
    of one that was resumed; it is `empty` where nothing was ever recorded.
    """

    def __init__(self, header: Header, path: Path | None = None) -> None:
        self.header = header
        self.path = path
        self.notice = ""
        self._rest: Path | None = None
        self._kept: IO[bytes] = io.BytesIO()
        self._file: int | None = None
        self._synced = time.monotonic()
        self._recorded: list[tuple[bytes, int, int]] = []
        self._unanswered: tuple[int, bytes] | None = None
        self._resumed: int | None = None
        self._seen: os.stat_result | None = None
        self._new = path is not None
        self.empty = True
        self._hash = hashlib.sha256()
        if path is not None and path.exists():
            raise _exists(path)

    def _create(self) -> None:
        """Make the file, with the header as its first line; not before there is a frame."""
        assert self.path is not None
        self._new = False
        try:
            self._file = create_private(self.path)
        except FileExistsError:
            raise _exists(self.path) from None
        except OSError as error:
            raise TranscriptError(f"cannot write {self.path}: {error.strerror}") from None
        _lock(self._file, self.path)
        _log.info("keeping the transcript in %s", self.path)
        try:
            self._write(self.header.line())
        except TranscriptError:  # not even the header fits: nothing was asked, nothing is kept
            os.close(self._file)
            self._file = None
            self.path.unlink(missing_ok=True)
            raise

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
        header, start = _read(path)
        transcript = Transcript(header)
        transcript.path = path
        try:
            with path.open("rb") as file:
                transcript._seen = os.fstat(file.fileno())
                whole = file.seek(0, os.SEEK_END)
                end = transcript._parse(file, start, whole)
        except OSError as error:
            raise _unreadable(path, error) from None
        transcript._resumed = end
        transcript.empty = not transcript._recorded
        _log.info("%s holds %d answered batches", path, len(transcript._recorded))
        if end < whole:
            transcript._rest = _damaged(path)
            transcript.notice = (
                f"the end of {path} was damaged: it is cut back to the last whole batch, number "
                f"{len(transcript._recorded)}, and the rest is kept in {transcript._rest}"
            )
        return transcript

    def _reopen(self) -> None:
        """Get ready to write behind the last whole frame; keep a damaged tail elsewhere."""
        assert self.path is not None
        assert self._resumed is not None
        assert self._seen is not None
        end, self._resumed = self._resumed, None
        try:
            if self._rest is not None:
                with (
                    self.path.open("rb") as file,
                    open(create_private(self._rest), "wb") as rest,
                ):
                    file.seek(end)
                    shutil.copyfileobj(file, rest)
            self._file = reopened(self.path, self._seen)
            _lock(self._file, self.path)
            os.ftruncate(self._file, end)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise TranscriptError(f"cannot write {self.path}: {error.strerror}") from None

    def _parse(self, file: IO[bytes], position: int, whole: int) -> int:
        """Find the frames from a position on; return where the last sound one ends."""
        file.seek(position)
        while position + _FRAME.size + _CHECK.size <= whole:
            frame = file.read(_FRAME.size)
            kind, size, number, digest = _FRAME.unpack(frame)
            start = position + _FRAME.size
            end = start + size + _CHECK.size
            if kind not in (_SENT, _ANSWERED) or number != len(self._recorded) + 1 or end > whole:
                break
            check = zlib.crc32(frame)
            for left in range(size, 0, -_CHUNK):
                check = zlib.crc32(file.read(min(left, _CHUNK)), check)
            if file.read(_CHECK.size) != _CHECK.pack(check):
                break
            if kind == _ANSWERED:
                self._recorded.append((digest, start, size))
            else:
                self._unanswered = (number, digest)
            position = end
        return position

    def replay(self, number: int, digest: bytes) -> Floats | None:
        """Return the recorded answers of a batch, or None if it has to be asked.

        Raises:
            TranscriptError: The attack asks something else than what was recorded.
        """
        if number > len(self._recorded):
            return None
        recorded, start, size = self._recorded[number - 1]
        if recorded != digest:
            raise _differs(number)
        assert self.path is not None
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                tag = DOUBLES if self.header.format == _FIRST_FORMAT else None
                values = unpacked(file.read(size), tag)
        except OSError as error:
            raise _unreadable(self.path, error) from None
        except ValueError:
            raise TranscriptError(
                f"{self.path}: what is recorded of batch {number} are no answers: somebody else "
                "wrote it, or another version of thinveil"
            ) from None
        self._heard(digest, values)
        return values

    def left_out(self, number: int, digest: bytes) -> bool:
        """Tell whether another batch than this one was recorded under this number."""
        return number <= len(self._recorded) and self._recorded[number - 1][0] != digest

    @property
    def sha256(self) -> str:
        """A hash over all questions and answers of the run so far, replayed ones included.

        It depends on neither the run's random name nor how often the run was resumed.
        """
        return self._hash.hexdigest()

    def _heard(self, digest: bytes, values: Floats) -> None:
        self._hash.update(digest)
        self._hash.update(np.ascontiguousarray(values, "<f8").data)

    def sent(self, number: int, digest: bytes) -> None:
        """Note that a batch is about to be sent.

        Raises:
            TranscriptError: Another batch was sent under this number before.
        """
        if self._unanswered is not None and self._unanswered[0] == number:
            if self._unanswered[1] != digest:
                raise _differs(number)
            self._unanswered = None
        self._frame(_SENT, number, digest)

    def got(self, number: int, digest: bytes, values: Floats) -> None:
        """Note the answers of a batch."""
        self._heard(digest, values)
        if self.header.format == _FIRST_FORMAT:
            self._frame(_ANSWERED, number, digest, values.astype("<f8", copy=False).tobytes())
        else:
            self._frame(_ANSWERED, number, digest, packed(values))

    def _frame(self, kind: bytes, number: int, digest: bytes, *parts: bytes) -> None:
        head = _FRAME.pack(kind, sum(map(len, parts)), number, digest)
        check = 0
        for part in (head, *parts):
            check = zlib.crc32(part, check)
        self._write(b"".join((head, *parts, _CHECK.pack(check))))
        self.empty = False

    def _write(self, data: bytes) -> None:
        if self._resumed is not None:
            self._reopen()
        elif self._new:
            self._create()
        if self._file is None:
            self._keep(data)
            return
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            raise TranscriptError(
                f"cannot write {self.path}: {error.strerror}; what is recorded there is whole, and "
                "nothing more is asked: make room on the disk"
            ) from None

    def _keep(self, data: bytes) -> None:
        """Keep data without a name, in memory while it is small."""
        try:
            self._kept.write(data)
            if isinstance(self._kept, io.BytesIO) and self._kept.tell() > _IN_MEMORY:
                file = tempfile.TemporaryFile()  # noqa: SIM115, `close` closes it
                file.write(self._kept.getbuffer())
                self._kept = file
        except OSError as error:
            raise TranscriptError(
                f"cannot write to a temporary file: {error.strerror}; name a transcript on a disk "
                "with more room"
            ) from None

    def save(self, path: Path) -> None:
        """Write a transcript kept without a name to a file."""
        if self.path is not None:
            return
        fresh = Transcript(self.header, path)
        self._kept.seek(0)
        while chunk := self._kept.read(_CHUNK):
            fresh._write(chunk)
        fresh.close()
        self.path = path

    def close(self) -> None:
        """Bring everything to the disk and let go of the file."""
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None
        self._kept.close()


def _read(path: Path) -> tuple[Header, int]:
    """Return a transcript's header, and where its frames start."""
    try:
        with path.open("rb") as file:
            line = file.readline(_HEADER)
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        fields = json.loads(line)
        if fields["format"] not in (FORMAT, _FIRST_FORMAT) or not line.endswith(b"\n"):
            raise ValueError
        header = Header(fields["fingerprint"], fields["options"], fields["run"], fields["format"])
        if not isinstance(header.options, dict) or not isinstance(header.run, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TranscriptError(f"{path} is not a transcript that this version reads") from None
    return header, len(line)


def _unreadable(path: Path, error: OSError) -> TranscriptError:
    return TranscriptError(f"cannot read {path}: {error.strerror}")


def _exists(path: Path) -> TranscriptError:
    return TranscriptError(
        f"{path} exists already: choose another name, or continue it with --resume"
    )


def _damaged(path: Path) -> Path:
    """Return a name that nothing has, for what is cut off."""
    name = path.with_name(path.name + ".damaged")
    return name.with_name(f"{name.name}-{secrets.token_hex(4)}") if os.path.lexists(name) else name


def _differs(number: int) -> TranscriptError:
    return TranscriptError(
        f"batch {number} differs from the recorded one: the transcript belongs to another table, "
        "other options or another version"
    )


def _lock(file: int, path: Path) -> None:
    """Keep a second run from writing to the same transcript."""
    if not held_alone(file):
        raise TranscriptError(f"{path} is in use by another run")
