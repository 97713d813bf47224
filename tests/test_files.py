"""Files are written whole or not at all, for their owner alone, and never through a link."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from thinveil.errors import OutputError
from thinveil.files import create_private, private_opener, replacing, write_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("content", ["é\n", b"\x00\xff\r\n", ""])
def test_text_and_bytes_arrive_as_they_are(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "result"
    write_file(path, content)
    whole = content.encode() if isinstance(content, str) else content
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]


def test_private_files_are_for_their_owner_also_where_a_public_one_stood(tmp_path: Path) -> None:
    path = tmp_path / "result"
    before = os.umask(0o022)
    try:
        write_file(path, "old")
        assert mode(path) == 0o644
        with replacing(path, private=True) as file:
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
        with replacing(tmp_path / "a"):
            seen |= {each.name for each in tmp_path.iterdir()} - {"a"}
    assert len(seen) == 3


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_replaced_and_never_followed(tmp_path: Path, there: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    if there:
        elsewhere.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(elsewhere)
    write_file(link, "result", private=True)
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
    with pytest.raises(OSError, match="symbolic links"):
        open(link, "ab", opener=private_opener)  # noqa: SIM115
    with open(tmp_path / "other", "ab", opener=private_opener):
        assert mode(tmp_path / "other") == 0o600


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
        write_file(tmp_path / name, "x")
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
        write_file(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError), replacing(tmp_path / "x") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_streams_are_written_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_file("/dev/stdout", "out", private=True)
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


def test_the_pipe_of_somebody_else_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(os, "getuid", lambda: -1)
    write_file(pipe, "mine")
    assert pipe.is_file()
