"""Every file that is written comes from here: whole or not at all, and private where asked.

Atomic replacement: the content goes to a new file beside the target, under a name that nobody
can guess, reaches the disk, and only then takes the target's place. Whoever reads sees the old
file or the new one. A link that stands in the target's place is replaced, never followed, so
that nobody who may write to a shared folder can send a result elsewhere.

Files that grow, such as transcripts and ledgers, only begin here: `create_private`.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from thinveil.errors import OutputError

PRIVATE: Final = 0o600
"""The mode of what only its owner may read."""
PUBLIC: Final = 0o666
"""The mode of everything else; the user's umask takes away from it."""
_STREAMS: Final = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_BYTES: Final = getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(path: str | Path, named: str = "", *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends, and leaves nothing if it fails.

    Devices, pipes and names such as /dev/stdout are written to as they are.

    Args:
        path: Where the file shall be; what is there is replaced.
        named: What an error calls it, such as "--json a.json"; the path without it.
        private: Whether only the owner may read it, also where another file stood before.

    Raises:
        OutputError: It cannot be written.
    """
    whole = Path(path)
    try:
        if _is_stream(whole):
            with whole.open("wb") as stream:
                yield stream
            return
        part = whole.with_name(f".thinveil-{secrets.token_hex(8)}")
        try:
            with open(_create(part, PRIVATE if private else PUBLIC), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, whole)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        sync_folder(whole)
    except OSError as error:
        raise OutputError(f"{named or path}: {error.strerror}") from None


def write_file(
    path: str | Path, content: str | bytes, named: str = "", *, private: bool = False
) -> None:
    """Write a file as `replacing` does; text as UTF-8.

    Raises:
        OutputError: It cannot be written.
    """
    with replacing(path, named, private=private) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def create_private(path: Path) -> int:
    """Make a file that was not there, for its owner alone; return its descriptor.

    Raises:
        FileExistsError: Something has the name already, be it a link that leads nowhere.
        OSError: It cannot be made.
    """
    return _create(path, PRIVATE)


def private_opener(path: str, flags: int) -> int:
    """Open a file, new ones for their owner alone, and no link: for `open(opener=...)`."""
    return os.open(path, flags | _NO_LINK, PRIVATE)


def sync_folder(path: Path) -> None:
    """Make sure that the name of a file outlasts a loss of power, where systems can."""
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.absolute().parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _create(path: Path, mode: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BYTES, mode)


def _is_stream(path: Path) -> bool:
    """Tell whether a name stands for a stream: a standard one, a device, or a pipe of ours.

    Somebody else's pipe is replaced as a file is: its owner would read along.
    """
    if str(path).startswith(_STREAMS):
        return True
    try:
        found = path.lstat()
    except OSError:
        return False
    mine = stat.S_ISFIFO(found.st_mode) and found.st_uid == os.getuid()
    return mine or stat.S_ISCHR(found.st_mode)
