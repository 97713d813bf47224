"""Every file that is written comes from here: whole or not at all, and for its owner alone.

Atomic replacement: the content goes to a new file beside the target, under a name that nobody
can guess, reaches the disk, and only then takes the target's place. Whoever reads sees the old
file or the new one. What thinveil did not write keeps its place unless the user says otherwise;
a link is never followed, so that nobody who may write to a shared folder can send a result
elsewhere.

Files that grow, such as transcripts and ledgers, only begin here: `create_private`.
"""

from __future__ import annotations

import csv
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from thinveil.errors import OutputError, ThinveilError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

PRIVATE: Final = 0o600
"""The mode of everything that is written: only its owner may read it."""
UTF8: Final = ("utf-8", "backslashreplace")
"""How texts are encoded: a service can name a column by half a character (a lone surrogate)."""
PDF_MARK: Final = b"\xf4\xe8\xe9\xee"
"""The letters "thin" with their high bits set: the second line of a PDF is four such bytes."""
OURS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "run": re.compile(rb'\A\{\s*"format": \d+,\s*"claim": \{'),
    "comparison": re.compile(rb'\A\{\s*"mechanisms": \[\s*(\],\s*"asked_for": |\{\s*"claim": \{)'),
    "reproduction": re.compile(
        rb'\A\{\s*"rows": \[\s*(\],\s*"provenance": \{|\{\s*"experiment": ")'
    ),
    "theory": re.compile(rb'\A\{\s*"records": \d+,\s*"domain": \[[^]]*\],\s*"actual": \['),
    "health": re.compile(rb'\A\{\s*"thinveil": "'),
    "columns": re.compile(rb'\A\[\s*\{\s*"name": "[^\n]*",\s*"kind": "\w+",\s*"public": "'),
    "report": re.compile(
        rb'\A<!DOCTYPE html>.{,999}?<meta name="generator" content="thinveil">', re.S
    ),
    "draft": re.compile(rb"\A# Drafted from the table\. "),
    "picture": re.compile(
        rb"\A(\x89PNG\r\n\x1a\n.{29}tEXtSoftware\0thinveil"
        rb"|<svg [^>]*><metadata>thinveil</metadata>"
        rb"|%PDF-1\.\d\n%" + PDF_MARK + rb"\n)",
        re.S,
    ),
}
"""How results of each kind begin: by that a file is known to be one of ours."""
_BLANK: Final = (  # what a spreadsheet may skip: spaces, quotes, what is not drawn
    r"\s\0-\x1f\"'\x7f-\xa0\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe0f\ufeff"
)
_SIGN: Final = "[=+\\-@＝＋－＠﹦﹢﹣﹫]"  # noqa: RUF001, some read the wide and small ones alike
_FORMULA: Final = re.compile(rf"[\t\r\n]|[{_BLANK}]*{_SIGN}")
_INSIDE: Final = re.compile(
    rf"(?<![;{_BLANK}])[;{_BLANK}]+(?={_SIGN})"
)  # once for each run of them
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.A)
_FOREIGN: Final = "was not written by thinveil"
_ANOTHER: Final = "is a result of another kind"
_HEAD: Final = 4096  # bytes in which a mark must stand
_CHUNK: Final = 1 << 20
_STREAM: Final = re.compile(r"/dev/std(?:(?P<out>out)|(?P<err>err))|/(?:dev|proc/self)/fd/(\d+)")
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_BYTES: Final = getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(
    path: str | Path,
    named: str = "",
    *,
    kind: str = "",
    overwrite: bool = False,
    spare: bool = False,
) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends, and leaves nothing if it fails.

    Devices, pipes and names such as /dev/stdout are written to as they are.

    Args:
        path: Where the file shall be.
        named: What an error calls it, such as "--json a.json"; the path without it.
        kind: Which file of ours it may replace, a name of `OURS`; else only an empty one or one
            with the same content.
        overwrite: Whether it may replace any other file, and a link as such.
        spare: Whether the content goes to a new name beside the target where that is taken, so
            that it is not lost; the error says where it is.

    Raises:
        OutputError: It cannot be written, or not there.
    """
    whole, named = Path(path), named or str(path)
    try:
        if is_stream(whole):
            with _stream(whole) as stream:
                yield stream
            return
        part = whole.with_name(_random_name())
        try:
            with open(create_private(part), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _place(part, whole, named, kind, overwrite, spare)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        sync_folder(whole)
    except OSError as error:
        raise OutputError(f"{named}: {error.strerror}") from None


def write_file(
    path: str | Path,
    content: str | bytes,
    named: str = "",
    *,
    kind: str = "",
    overwrite: bool = False,
    spare: bool = False,
) -> None:
    """Write a file as `replacing` does; text as UTF-8, half a character with its number.

    Raises:
        OutputError: It cannot be written, or not there.
    """
    with replacing(path, named, kind=kind, overwrite=overwrite, spare=spare) as file:
        file.write(content.encode(*UTF8) if isinstance(content, str) else content)


def create_private(path: Path) -> int:
    """Make a file that was not there, for its owner alone; return its descriptor.

    Raises:
        FileExistsError: Something has the name already, be it a link that leads nowhere.
        OSError: It cannot be made.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BYTES, PRIVATE)


def held_alone(file: int) -> bool:
    """Keep other processes from taking hold of an open file, where systems can; tell if it is ours.

    It is let go when the file is closed, or with the process, however that ends.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def csv_rows(
    file: SupportsWrite[str], rows: Iterable[Sequence[object]], *, ending: str, safe: bool
) -> None:
    """Write rows as CSV, with formulas made harmless where asked (CSV injection).

    A spreadsheet takes a cell for a formula that begins with =, +, - or @, also in full width or
    behind spaces and quotes, and one that begins with a tab or a line break may become one. Such
    a cell gets an apostrophe in front, unless it is a plain number. Where a spreadsheet splits
    cells at semicolons, tabs and line breaks, too, what follows begins a cell of its own: it gets
    one likewise. (The rules of OWASP's page on CSV injection.) A file that begins with ID is a
    sheet of another format to Excel (SYLK), formulas and all: its first line is quoted.
    """
    plain, quoted = (csv.writer(file, lineterminator=ending, quoting=how) for how in (0, 1))
    for number, row in enumerate(rows):
        cells = [_harmless(cell) for cell in row] if safe else row
        sheet = safe and number == 0 and str(cells[0]).startswith("ID")
        (quoted if sheet else plain).writerow(cells)


def _harmless(cell: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    if cell is None or _NUMBER.fullmatch(text := str(cell)):
        return cell
    text = _INSIDE.sub(lambda run: run[0] + "'" * bool(re.search(r"[;\t\r\n]", run[0])), text)
    return f"'{text}" if _FORMULA.match(text) else text


def read_up_to(path: str | Path, most: int, wrong: type[ThinveilError]) -> bytes:
    """Read a file that is small where it is what it should be.

    Args:
        path: The file, or a pipe.
        most: The most bytes that it may have.
        wrong: The error that says that it has more.

    Raises:
        OSError: It cannot be read.
    """
    with Path(path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise wrong(f"{path}: it has more than {most >> 20} MiB, which is not read")
    return content


def owner_in(folder: Path) -> int:
    """Return who owns what is made in a folder: a file is made for a moment, under a random name.

    Not every file system gives files to the user who makes them.

    Raises:
        OSError: No file can be made there.
    """
    part = folder / _random_name()
    made = create_private(part)
    try:
        return os.fstat(made).st_uid
    finally:
        os.close(made)
        part.unlink()


def kept(path: Path, kind: str, owner: int) -> str:
    """Say why what has a name must keep it; empty where nothing would be lost.

    Args:
        path: The name; a link is not followed.
        kind: Which results of ours may be replaced, a name of `OURS`; "" for none.
        owner: Who owns what we write there.

    Raises:
        OSError: There can be no file of that name, or it cannot be looked at.
    """
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return "is a link"
        if not stat.S_ISREG(mode):
            return "is no file"
        file = _opened(path)
    except FileNotFoundError:
        return ""
    except PermissionError:
        return "cannot be read"
    with file:
        found = os.fstat(file.fileno())
        if found.st_uid != owner:
            return "belongs to another user"
        head = b"" if found.st_size == 0 else file.read(_HEAD)
    if not head or (kind and OURS[kind].match(head)):
        return ""
    return _ANOTHER if any(mark.match(head) for mark in OURS.values()) else _FOREIGN


def sync_folder(path: Path) -> None:
    """Make sure that the name of a file outlasts a loss of power, where systems can.

    A folder that may be written to but not read, and some network drives, cannot be synced.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        folder = os.open(path.absolute().parent, os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(folder)


def is_stream(path: Path) -> bool:
    """Tell whether a name stands for a stream: a standard one, a device, or a pipe of ours.

    Somebody else's pipe is a file that is not ours: its owner would read along.
    """
    if _STREAM.fullmatch(str(path)):
        return True
    try:
        return _flows(path.lstat())
    except OSError:
        return False


def _flows(found: os.stat_result) -> bool:
    mine = stat.S_ISFIFO(found.st_mode) and found.st_uid == os.getuid()
    return mine or stat.S_ISCHR(found.st_mode)


def _stream(path: Path) -> BinaryIO:
    """Open a stream to write on where it is: a file that it leads to keeps what it has."""
    if number := _STREAM.fullmatch(str(path)):
        for each in filter(None, (sys.stdout, sys.stderr)):
            each.flush()
        return open(os.dup(1 if number["out"] else 2 if number["err"] else int(number[3])), "wb")
    file = os.open(path, os.O_WRONLY | _NO_LINK | _BYTES)
    return open(_right(file, _flows(os.fstat(file))), "wb")


def reopened(path: Path, seen: os.stat_result) -> int:
    """Open for writing the file that was read before, and none that took its name since.

    Raises:
        OSError: It cannot be written, or is another one.
    """
    file = os.open(path, os.O_WRONLY | _BYTES)
    return _right(file, os.path.samestat(os.fstat(file), seen))


def _right(file: int, right: bool) -> int:
    if not right:
        os.close(file)
        raise FileExistsError(errno.EEXIST, "something else took its name")
    return file


def _random_name() -> str:
    return f".thinveil-{secrets.token_hex(8)}"


def _place(part: Path, whole: Path, named: str, kind: str, overwrite: bool, spare: bool) -> None:
    """Give a whole file its name: a new one, or that of a file that may be replaced."""
    if overwrite:
        os.replace(part, whole)
        return
    try:
        _name(part, whole)
        return
    except FileExistsError:
        why = _against(part, whole, kind)
    if not why:
        os.replace(part, whole)
        return
    taken = f"{named} exists already and {why}"
    if not spare:
        how = "overwrite it (--overwrite; in Python, overwrite=True)"
        raise OutputError(f"{taken}: choose another name, or {how}")
    beside = whole.with_name(f"{whole.stem[:50]}-{secrets.token_hex(4)}{whole.suffix[:12]}")
    _name(part, beside)
    raise OutputError(f"{taken}: the result is in {beside}")


def _against(part: Path, whole: Path, kind: str) -> str:
    """Say why a file may not take the place of another; empty where it may."""
    try:
        why = kept(whole, kind, part.stat().st_uid)
        return "" if why in (_FOREIGN, _ANOTHER) and _alike(part, whole) else why
    except OSError:  # somebody swaps it for a link between two looks
        return "changes while it is looked at"


def _name(part: Path, whole: Path) -> None:
    """Give a file a name that nothing has: a hard link, which is made whole or not at all.

    Where there are no links, the name is taken by an empty file first.

    Raises:
        FileExistsError: Something has the name.
    """
    try:
        os.link(part, whole)
    except FileExistsError:
        raise
    except OSError:
        os.close(create_private(whole))
        try:
            os.replace(part, whole)
        except BaseException:
            whole.unlink(missing_ok=True)
            raise


def _opened(path: Path) -> BinaryIO:
    """Open a file for reading, but no link; something that is no file keeps nobody waiting."""
    return open(os.open(path, os.O_RDONLY | _NO_LINK | _NO_WAIT | _BYTES), "rb")


def _alike(one: Path, other: Path) -> bool:
    """Tell whether two files have the same content."""
    with _opened(one) as first, _opened(other) as second:
        if os.fstat(first.fileno()).st_size != os.fstat(second.fileno()).st_size:
            return False
        while chunk := first.read(_CHUNK):
            if chunk != second.read(_CHUNK):
                return False
    return True
