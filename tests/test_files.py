"""Files are written whole or not at all, for their owner alone, and never through a link."""

from __future__ import annotations

import ast
import os
import re
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import thinveil
from thinveil import files
from thinveil.errors import OutputError
from thinveil.files import create_private, replacing, sync_folder, write_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("content", ["é\n", b"\x00\xff\r\n", ""])
def test_text_and_bytes_arrive_as_they_are(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "result"
    write_file(path, content)
    whole = content.encode() if isinstance(content, str) else content
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]


def test_files_are_for_their_owner_also_where_a_public_one_stood(tmp_path: Path) -> None:
    path = tmp_path / "result"
    before = os.umask(0)
    try:
        path.write_text("old")
        assert mode(path) == 0o666
        with replacing(path, overwrite=True) as file:
            [part] = set(tmp_path.iterdir()) - {path}
            assert mode(part) == 0o600  # from the first byte on
            file.write(b"new")
            file.flush()
            assert path.read_text() == "old"
    finally:
        os.umask(before)
    assert (mode(path), path.read_text()) == (0o600, "new")


def test_names_that_are_as_long_as_can_be(tmp_path: Path) -> None:
    write_file(tmp_path / ("a" * 255), "x")


def test_temporary_names_cannot_be_guessed(tmp_path: Path) -> None:
    seen = set()
    for _ in range(3):
        with replacing(tmp_path / "a", overwrite=True):
            seen |= {each.name for each in tmp_path.iterdir()} - {"a"}
    assert len(seen) == 3


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_never_followed_and_replaced_only_where_asked(
    tmp_path: Path, there: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    if there:
        elsewhere.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(elsewhere)
    with pytest.raises(OutputError, match="exists already and is a link: choose another name"):
        write_file(link, "result")
    assert link.is_symlink()
    write_file(link, "result", overwrite=True)
    assert not link.is_symlink()
    assert link.read_text() == "result"
    assert elsewhere.exists() is there
    assert not there or elsewhere.read_text() == "precious"


def test_files_that_grow_begin_new_private_and_without_a_link(tmp_path: Path) -> None:
    path = tmp_path / "grows"
    os.close(create_private(path))
    assert mode(path) == 0o600
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for taken in (path, link):
        with pytest.raises(FileExistsError):
            create_private(taken)


def test_a_folder_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid() == 0:  # nothing is forbidden to the superuser

        def refuse(*_: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match=r"^--json x: Permission denied$"):
            write_file(tmp_path / "x", "y", "--json x")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("name", ["missing/x", "folder"])
def test_places_where_no_file_can_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="directory"):
        write_file(tmp_path / name, "x", overwrite=True)
    assert [each.name for each in tmp_path.rglob("*")] == ["folder"]


@pytest.mark.parametrize("failed", ["replace", "fsync"])
@pytest.mark.parametrize("kind", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_crash_in_between_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: str, kind: BaseException
) -> None:
    path = tmp_path / "result"
    path.write_text("old")

    def crash(*_: object) -> None:
        raise kind

    monkeypatch.setattr(os, failed, crash)
    expected = OutputError if isinstance(kind, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_file(path, "new", overwrite=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError), replacing(tmp_path / "x") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_streams_are_written_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_file("/dev/stdout", "out")
    write_file("/dev/null", "gone")
    assert capfd.readouterr().out == "out"
    assert Path("/dev/null").is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "through")
    reader.join(10)
    assert read == ["through"]


def test_the_pipe_of_somebody_else_is_no_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(os, "getuid", lambda: -1)
    with pytest.raises(OutputError, match="exists already and is no file"):
        write_file(pipe, "mine")
    write_file(pipe, "mine", overwrite=True)
    assert pipe.is_file()


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_a_file_behind_a_stream_keeps_what_it_has(tmp_path: Path, name: str) -> None:
    """`--json /dev/stdout >> log`: to open the name anew would empty the log."""
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as stream:
        write_file(name.format(stream.fileno()), "result\n")
        stream.write("after\n")
    assert log.read_text() == "before\nresult\nafter\n"
    with pytest.raises(OutputError, match="Bad file descriptor"):
        write_file("/dev/fd/987", "x")
    with pytest.raises(OutputError):
        write_file(f"/dev/fd/../..{log}", "x")
    assert log.read_text().startswith("before")


def test_a_link_that_takes_the_name_of_a_pipe_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, pipe = tmp_path / "victim", tmp_path / "pipe"
    victim.write_text("precious")
    monkeypatch.setattr(files, "is_stream", lambda path: True)  # it was one a moment ago
    for plant in (pipe.symlink_to, pipe.hardlink_to):
        plant(victim)
        with pytest.raises(OutputError):
            write_file(pipe, "x")
        pipe.unlink()
    assert victim.read_text() == "precious"


def test_a_folder_that_cannot_be_synced_has_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that may be written to and not read, as for parcels; and a network drive."""

    def refused(path: Path, flags: int, *mode: int) -> int:
        if flags & os.O_DIRECTORY:
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *mode)

    def odd(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(22, "Invalid argument")

    opened = os.open
    monkeypatch.setattr(os, "open", refused)
    write_file(tmp_path / "a", "x")
    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "fsync", odd)
    write_file(tmp_path / "b", "x")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "b"]
    monkeypatch.setattr(os, "fsync", lambda number: exec("raise OSError(5, 'I/O error')"))
    with pytest.raises(OSError, match="I/O error"):
        sync_folder(tmp_path / "a")


def test_half_a_character_is_written_with_its_number(tmp_path: Path) -> None:
    write_file(tmp_path / "x", "a\ud800b\U0001f600")
    assert (tmp_path / "x").read_text("utf-8") == "a\\ud800b\U0001f600"


ROOT = Path(thinveil.__file__).parent
ALLOWED = {
    ("auditing/transcript.py", "open(create_private(self._rest), 'wb')"),
    ("auditing/transcript.py", "os.ftruncate(self._file, end)"),
    ("curator/database/spark/executors.py", "open(create_private(draft), 'wb')"),
    ("curator/service/ledger/seal.py", "os.open(self.path, os.O_RDWR | os.O_NOFOLLOW)"),
    ("commands/main.py", "os.open(os.devnull, os.O_WRONLY)"),
    ("commands/doctor.py", "page.write_text"),  # a page of help
    ("commands/shared/grouped.py", "super().write_text"),
}
"""A descriptor of a file that was made here, a seal that is written in its place, nothing at all,
and texts that are no files."""
WRITES = re.compile(
    r".*\b(write_text|write_bytes|to_csv|to_parquet|savefig|mktemp|mkstemp|touch|symlink_to|"
    r"hardlink_to|NamedTemporaryFile|SpooledTemporaryFile)|os\.(replace|renames?|link|symlink|mkfifo|"
    r"mknod|f?truncate|creat)|shutil\.(copy\w*|move)|(?!.*\barchive\b).*\bopen"
)


def writes(source: str) -> list[str]:
    """Return what a module calls to write files by itself."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not WRITES.fullmatch(ast.unparse(node.func)):
            continue
        name, call = ast.unparse(node.func), ast.unparse(node)
        if name == "os.open":
            found += [call] if re.search("O_(WRONLY|RDWR|CREAT|APPEND|TRUNC)", call) else []
        elif name.endswith("open"):
            behind = 1 if name in ("open", "io.open") else 0
            modes = [each.value for each in node.keywords if each.arg == "mode"]
            modes += node.args[behind : behind + 1]
            words = [str(each.value) for each in modes if isinstance(each, ast.Constant)]
            found += [call] if any(map(re.compile("[wax+]").search, words)) else []
        elif name != "shutil.copyfileobj":
            found.append(name if name.endswith(("write_text", "touch")) else call)
    return found


def test_one_place_writes_files() -> None:
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        calls = {(name, each) for each in writes(path.read_text("utf-8"))}
        assert name == "files.py" or calls <= ALLOWED, calls
    assert len(writes((ROOT / "files.py").read_text("utf-8"))) > 6


@pytest.mark.parametrize(
    "line",
    ["open('x', 'w')", "open(x, mode='ab')", "Path('x').open('w+')", "p.write_text('x')",
     "p.write_bytes(b'x')", "frame.to_csv('x')", "figure.savefig('x')", "os.replace(a, b)",
     "tempfile.NamedTemporaryFile()", "os.open(p, os.O_WRONLY)", "shutil.copyfile(a, b)",
     "open('x', 'rb+')", "io.open(x, 'xb')", "p.touch()"],
)  # fmt: skip
def test_the_guard_sees_another_place(line: str) -> None:
    assert writes(line)
    assert not writes(
        "open('x'); open('x', 'rb'); p.open(encoding='utf-8'); os.open(p, os.O_RDONLY)"
    )
