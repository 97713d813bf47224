"""The files of a ledger while a service has them: watched, tidied up, and backed up."""

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from fractions import Fraction
from pathlib import Path

import pytest

import thinveil
from services import Process, asking, served
from test_durable import ask
from thinveil.commands.main import run
from thinveil.curator.curator import Curator
from thinveil.curator.service import app
from thinveil.curator.service.accounts import Accounts
from thinveil.curator.service.ledger import care as ledger_care
from thinveil.curator.service.ledger import file as ledger_file
from thinveil.curator.service.ledger import seal as ledger_seal
from thinveil.errors import LedgerError, OutputError
from thinveil.report.text.streams import LogLines

pytest.importorskip("fastapi")

DATA = thinveil.people(60)
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder():
    """Return a folder in memory, where there is one: each commit waits for the disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as made:
        yield Path(made)


@pytest.fixture
def accounts(folder):
    made = Accounts(DATA, thinveil.idp(), folder / "ledger")
    made.admit([("ada", Fraction(1))])
    yield made
    made.close()


@pytest.fixture
def drawn(monkeypatch):
    """Return what is drawn."""
    batches = []
    release = Curator.release

    def noted(self, batch):
        batches.append(batch)
        return release(self, batch)

    monkeypatch.setattr(Curator, "release", noted)
    return batches


def beside(path, end):
    return Path(f"{path}{end}")


def copied(path, folder):
    """Copy all files as they are."""
    folder.mkdir()
    for end in ("", "-wal", "-seal"):
        shutil.copy(beside(path, end), folder / f"{path.name}{end}")
    return folder / path.name


def gone(end):
    def act(path, old):
        beside(path, end).unlink()

    return act


def moved(end):
    def act(path, old):
        beside(path, end).rename(beside(path, f"{end}.away"))

    return act


def replaced(end):
    """The same content in another file, as an editor leaves it."""

    def act(path, old):
        other = beside(path, f"{end}.new")
        shutil.copy(beside(path, end), other)
        other.replace(beside(path, end))

    return act


def older(*ends):
    """An older copy, as mv leaves it."""

    def act(path, old):
        for end in ends:
            os.replace(beside(old, end), beside(path, end))

    return act


def overwritten(*ends):
    """An older copy, as cp leaves it: in the same file."""

    def act(path, old):
        for end in ends:
            shutil.copy(beside(old, end), beside(path, end))

    return act


def cut(end, size=0):
    def act(path, old):
        os.truncate(beside(path, end), size)

    return act


def spoilt(path, old):
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"spoilt")


def written(path, old):
    """By another program that knows SQLite."""
    base = sqlite3.connect(path)
    base.execute("UPDATE analysts SET budget = '1000'")
    base.commit()
    base.close()


LOST = {
    "ledger gone": gone(""),
    "ledger moved": moved(""),
    "ledger replaced": replaced(""),
    "ledger replaced by an older one": older(""),
    "all replaced by older ones": older("", "-wal", "-seal"),
    "ledger overwritten by an older one": overwritten(""),
    "all overwritten by older ones": overwritten("", "-wal", "-seal"),
    "ledger cut to nothing": cut(""),
    "ledger cut": cut("", 5000),
    "ledger spoilt": spoilt,
    "log cut to nothing": cut("-wal"),
    "log cut": cut("-wal", 5000),
    "log overwritten by an older one": overwritten("-wal"),
    "seal gone": gone("-seal"),
    "seal moved": moved("-seal"),
    "seal replaced": replaced("-seal"),
    "seal overwritten by an older one": overwritten("-seal"),
    "seal cut to nothing": cut("-seal"),
    "edited by another program": written,
}
MENDED = {
    "log gone": gone("-wal"),
    "log moved": moved("-wal"),
    "log replaced": replaced("-wal"),
    "index of the log gone": gone("-shm"),
    "index of the log replaced": replaced("-shm"),
}
"""What is lost although the service still has it open, and can write down again."""


@pytest.mark.parametrize("what", [*LOST, *MENDED])
def test_nothing_is_drawn_once_a_file_is_not_as_it_was_left(accounts, folder, drawn, what):
    path = accounts.ledger.path
    ask(accounts, "a")
    old = copied(path, folder / "old")
    ask(accounts, "b")
    accounts.tidy()
    answered = [ask(accounts, key) for key in "cd"]
    before = accounts.statement(accounts.analysts[0])
    drawn.clear()
    {**LOST, **MENDED}[what](path, old)
    with pytest.raises(LedgerError, match=r"gone|taken its place|changed by somebody else"):
        ask(accounts, "e")
    assert not accounts.recording
    if what in LOST:
        for key in "ec":
            with pytest.raises(LedgerError):
                ask(accounts, key)
        with pytest.raises(LedgerError):
            accounts.statement(accounts.analysts[0])
        assert drawn == []
        if what.startswith(("ledger replaced", "all replaced")):  # what took the place is not ours
            there = {end: beside(path, end).read_bytes() for end in ("", "-wal", "-seal")}
            accounts.close()
            assert there == {end: beside(path, end).read_bytes() for end in there}
        return
    assert accounts.statement(accounts.analysts[0]) == before
    again = [ask(accounts, key) for key in "cd"]
    assert [each.values.tobytes() for each in again] == [each.values.tobytes() for each in answered]
    assert drawn == []
    ask(accounts, "e")
    accounts.close()
    assert ledger_care.check(path).entries == 6


@pytest.mark.parametrize("end", ["", "-seal"])
def test_a_file_that_is_back_where_it_was_is_used_again(accounts, end):
    path = accounts.ledger.path
    ask(accounts, "a")
    moved(end)(path, None)
    for _ in range(3):
        with pytest.raises(LedgerError):
            ask(accounts, "b")
        assert not (end == "" and path.exists()), "no new ledger is made"
    beside(path, f"{end}.away").rename(beside(path, end))
    assert not ask(accounts, "b").again
    assert ask(accounts, "a").again


def test_a_link_that_leads_elsewhere_is_noticed(folder):
    for name in ("one", "two"):
        (folder / name).mkdir()
    path = folder / "link"
    path.symlink_to(folder / "one" / "ledger")
    (folder / "one" / "ledger").touch()
    accounts = Accounts(DATA, thinveil.idp(), path)
    accounts.admit([("ada", Fraction(1))])
    ask(accounts, "a")
    assert {each.name for each in (folder / "one").iterdir()} == {
        "ledger", "ledger-wal", "ledger-shm", "ledger-seal",
    }  # fmt: skip
    shutil.copy(folder / "one" / "ledger", folder / "two" / "ledger")
    path.unlink()
    path.symlink_to(folder / "two" / "ledger")
    with pytest.raises(LedgerError, match="taken its place"):
        ask(accounts, "b")
    path.unlink()
    path.symlink_to(folder / "one" / "ledger")
    assert not ask(accounts, "b").again
    accounts.close()


def test_modes_of_files_are_no_reason_to_stop(accounts):
    for end in ("", "-wal", "-seal"):
        beside(accounts.ledger.path, end).chmod(0o400)
    assert not ask(accounts, "a").again
    accounts.tidy()
    assert not ask(accounts, "b").again


@pytest.mark.parametrize("end", ["", "-wal", "-seal"])
def test_what_is_lost_between_commit_and_reply_is_not_answered(accounts, monkeypatch, end):
    """The batch is recorded, somewhere; but nobody would find it there."""
    ask(accounts, "a")
    write = ledger_seal.SealFile.write

    def lost(self, seal):
        write(self, seal)
        beside(accounts.ledger.path, end).unlink()

    monkeypatch.setattr(ledger_seal.SealFile, "write", lost)
    with pytest.raises(LedgerError, match="gone"):
        ask(accounts, "b")


def test_a_log_that_cannot_be_written_down_is_not_let_go(accounts):
    """The service has the only copy: it goes on trying."""
    ask(accounts, "a")
    path = accounts.ledger.path
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM service").fetchall()
    beside(path, "-wal").unlink()
    for _ in range(3):
        with pytest.raises(LedgerError):
            ask(accounts, "b")
    reader.close()
    assert not ask(accounts, "b").again
    assert ask(accounts, "a").again


def test_another_program_that_writes_in_between_is_noticed(accounts, monkeypatch):
    ask(accounts, "a")
    ledger = accounts.ledger
    monkeypatch.setattr(ledger._watch, "look", lambda *ours: None)
    written(ledger.path, None)
    with pytest.raises(LedgerError, match="written to by somebody else"):
        ask(accounts, "b")
    with pytest.raises(LedgerError, match="cut or edited"):
        ask(accounts, "b")


# -- as a service ------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["ledger gone", "log cut to nothing", "log gone"])
def test_a_service_refuses_and_says_why_in_its_log(folder, caplog, what):
    caplog.set_level("INFO", "thinveil.service")
    with served(DATA, thinveil.idp(), folder) as service:
        assert service.ask(asking("a")).status_code == 200
        {**LOST, **MENDED}[what](folder / "ledger", None)
        refused = service.ask(asking("b"))
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
        assert str(folder) not in refused.text
        assert service.get("/health").json() == {"status": "ok", "recording": False}
        assert "nothing is answered until it is back" in caplog.text
        assert service.ask(asking("a")).status_code == (200 if what in MENDED else 503)
        assert service.ask(asking("b")).status_code == (200 if what in MENDED else 503)


def test_a_ledger_is_tidied_up_between_batches(folder, monkeypatch):
    monkeypatch.setattr(app, "TIDY", 0.01)
    with served(DATA, thinveil.idp(), folder) as service:
        assert service.ask(asking("a")).status_code == 200
        for _ in range(1000):
            if not (folder / "ledger-wal").stat().st_size:
                break
            threading.Event().wait(0.01)
        alone = folder / "alone"  # without its log: it is all there
        shutil.copy(folder / "ledger", alone)
        shutil.copy(folder / "ledger-seal", folder / "alone-seal")
        assert ledger_care.check(alone).accounts[0].batches == 1
        (folder / "ledger").unlink()
        for _ in range(1000):
            if not service.get("/health").json()["recording"]:
                break
            threading.Event().wait(0.01)
        assert not service.get("/health").json()["recording"], "nobody asked, and it was noticed"


def test_the_log_stays_small_under_load(accounts, monkeypatch):
    monkeypatch.setattr(ledger_file, "LARGEST_LOG", 50_000)
    log, sizes = beside(accounts.ledger.path, "-wal"), []
    for number in range(30):
        ask(accounts, f"k{number}", epsilon=1e-6)
        sizes.append(log.stat().st_size)
    assert max(sizes) < 2 * 50_000
    assert sizes.count(0) > 2
    reader = sqlite3.connect(accounts.ledger.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM service").fetchall()  # the log must stay while this is read
    for number in range(30, 50):
        ask(accounts, f"k{number}", epsilon=1e-6)
    assert log.stat().st_size > 50_000
    reader.close()
    accounts.tidy()
    assert log.stat().st_size == 0


def test_memory_does_not_list_what_the_file_has(accounts):
    """A service runs for months: what stands in its file does not stand in memory, too."""
    ask(accounts, "first", epsilon=1e-6)
    (analyst,) = accounts.analysts
    spent = accounts.statement(analyst).spent
    for number in range(20):
        ask(accounts, f"k{number}", epsilon=1e-6)
    curator, now = accounts._accounts[analyst.number]
    assert curator.ledger.events == ()
    assert curator.ledger.spent == now.spent == 21 * spent


def test_no_room_to_tidy_up_is_no_reason_to_refuse(accounts, monkeypatch):
    monkeypatch.setattr(ledger_file, "LARGEST_LOG", 1)
    tables = accounts.ledger._tables
    asked = tables.asked

    def full(statement, *values):
        if "checkpoint" in statement:
            raise LedgerError("there is no room")
        return asked(statement, *values)

    monkeypatch.setattr(tables, "asked", full)
    assert not ask(accounts, "a").again
    assert not ask(accounts, "b").again
    assert accounts.recording


def test_a_log_of_requests_that_cannot_be_written_is_no_reason_to_refuse(monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    line = logging.LogRecord("thinveil.service", logging.INFO, "", 0, "analyst=ada", None, None)
    LogLines().emit(line)


# -- backups -----------------------------------------------------------------------------------


def test_a_backup_under_load_is_whole(accounts, folder):
    stop = threading.Event()
    failed: list[BaseException] = []
    answered: list[int] = []

    def load():
        try:
            while not stop.is_set():
                ask(accounts, f"k{len(answered)}", epsilon=1e-9)
                answered.append(0)
        except BaseException as error:
            failed.append(error)

    loading = threading.Thread(target=load)
    loading.start()
    try:
        for number in range(10):
            before = len(answered)
            copy = folder / f"copy{number}"
            standing = ledger_care.backup(accounts.ledger.path, copy)
            assert before <= standing.accounts[0].batches <= len(answered) + 1
            assert ledger_care.check(copy) == standing
            assert ledger_care.check(accounts.ledger.path).entries >= standing.entries
            assert not beside(copy, "-wal").exists()
            for end in ("", "-seal"):
                assert beside(copy, end).stat().st_mode & 0o777 == 0o600
    finally:
        stop.set()
        loading.join()
    assert failed == []
    accounts.close()
    restored = Accounts(DATA, thinveil.idp(), folder / "copy9")
    assert ask(restored, "k0", epsilon=1e-9).again
    restored.close()


def test_a_backup_replaces_nothing_and_leaves_nothing_where_it_fails(accounts, folder, monkeypatch):
    path = accounts.ledger.path
    for end in ("", "-wal", "-shm", "-seal"):
        taken = folder / f"taken{end}"
        taken.write_text("kept")
        with pytest.raises(OutputError, match="exists already"):
            ledger_care.backup(path, folder / "taken")
        assert taken.read_text() == "kept"
        taken.unlink()
    with pytest.raises(OutputError, match="exists already"):
        ledger_care.backup(path, path)
    with pytest.raises(OutputError, match="No such file"):
        ledger_care.backup(path, folder / "no" / "copy")
    accounts.close()
    written(path, None)
    with pytest.raises(LedgerError, match="cut or edited"):
        ledger_care.backup(path, folder / "copy")
    assert not [each for each in folder.iterdir() if "copy" in each.name]


def test_the_command_says_how_accounts_stand_and_no_token(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    accounts = Accounts(DATA, thinveil.idp(), Path("ledger"))
    tokens = accounts.admit([("ada", Fraction(1)), ("eve", Fraction(1, 2))])
    ask(accounts, "a")
    assert run(["ledger", "check", "ledger"]) == 0
    said = capsys.readouterr().out
    assert "Neither cut nor edited: 3 entries\n  ada: spent 0.02 of 1 in 1 batch\n" in said
    assert "bytes of it are in ledger-wal" in said
    assert run(["ledger", "backup", "ledger", "copy"]) == 0
    accounts.close()
    written(Path("ledger"), None)
    assert run(["ledger", "check", "ledger"]) == 1
    assert run(["ledger", "backup", "ledger", "other"]) == 1
    assert "was cut or edited: its entry 1" in capsys.readouterr().err
    assert run(["ledger", "reseal", "ledger"]) == 0
    assert run(["ledger", "check", "ledger"]) == 0
    for words in (["check", "ledger", "copy"], ["backup", "ledger"], ["reseal"], ["x", "ledger"]):
        assert run(["ledger", *words]) == 2
    said = capsys.readouterr()
    assert not any(token in said.out + said.err for token in tokens.values())


def test_a_service_is_backed_up_while_it_runs(folder):
    """Two processes: locks of one process do not keep it from itself."""
    with Process(folder, "--budget", "0.5", "--ledger", "ledger") as process:
        assert process.ask(asking("a")).status_code == 200
        words = ["ledger", "backup", "ledger", "copy"]
        done = subprocess.run(
            [sys.executable, "-m", "thinveil", *words], cwd=folder, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "analyst: spent 0.01 of 0.5 in 1 batch" in done.stdout
        assert process.ask(asking("b")).status_code == 200
    assert ledger_care.check(folder / "copy").accounts[0].batches == 1
