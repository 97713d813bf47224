"""A ledger that was cut or edited is told when it is opened; an honest crash is not."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from thinveil.curator.curator import Release
from thinveil.curator.service.ledger import care as ledger_care
from thinveil.curator.service.ledger import file as ledger_file
from thinveil.curator.service.ledger.base import Tables
from thinveil.curator.service.ledger.chain import linked, start
from thinveil.curator.service.ledger.file import LedgerFile
from thinveil.curator.service.ledger.seal import Seal, SealFile, read_seal, seal_of_ledger
from thinveil.errors import LedgerError, OutputError
from thinveil.language.wire.packing import packed

MEMORY = Path("/dev/shm")
NAMES = ("", "-wal", "-seal")
FORMAT_1 = """
CREATE TABLE service (id TEXT NOT NULL, format INTEGER NOT NULL, promise BLOB NOT NULL);
CREATE TABLE analysts (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seal BLOB NOT NULL,
    budget TEXT NOT NULL
);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY, analyst INTEGER NOT NULL REFERENCES analysts, key TEXT NOT NULL,
    digest BLOB NOT NULL, queries INTEGER NOT NULL, cost TEXT NOT NULL, answers BLOB NOT NULL,
    remembered BLOB, UNIQUE (analyst, key)
);
"""
"""The tables as thinveil made them before there was a chain."""


def drawn(number=0):
    return Release(
        np.arange(3.0) + number, Fraction(1, 100),
        keys=np.full((2, 3), number, np.uint64), firsts=np.arange(3.0),
    )  # fmt: skip


def record(ledger, number):
    analyst = ledger.analysts()[number % 2]
    ledger.record(analyst, f"key-{number}", bytes([number % 256]) * 32, drawn(number))


@pytest.fixture(scope="module")
def folders():
    """Return a folder in memory, where there is one: each commit waits for the disk."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(folders):
    return Path(tempfile.mkdtemp(dir=folders))


@pytest.fixture(scope="module")
def original(folders):
    """Return a closed ledger: two analysts, a replaced token, six batches."""
    path = folders / "original"
    ledger = LedgerFile(path, "promise")
    for name in ("ada", "eve"):
        ledger.admit(name, name.encode() * 10, Fraction(1))
    for number in range(6):
        if number == 3:
            ledger.renew(ledger.analysts()[1], b"new" * 10)
        record(ledger, number)
    ledger.close()
    return path


@pytest.fixture
def path(original, tmp_path):
    for end in ("", "-seal"):
        shutil.copy(f"{original}{end}", f"{tmp_path / 'ledger'}{end}")
    return tmp_path / "ledger"


def edit(path, *statements):
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("PRAGMA foreign_keys = OFF")
    for statement in statements:
        base.execute(statement)
    base.close()


def held(path):
    """Return everything that a ledger says, as far as it matters."""
    ledger = LedgerFile(path, "promise")
    try:
        return [
            (
                repr(each), each.seal, ledger.totals(each),
                [ledger.find(each, f"key-{n}") is not None for n in range(6)],
                [(keys.tobytes(), firsts.tobytes()) for keys, firsts in ledger.remembered(each)],
            )
            for each in ledger.analysts()
        ]  # fmt: skip
    finally:
        ledger.close()


def refused(path, words=None):
    """Open a ledger in vain, and check it in vain; return what is said."""
    with pytest.raises(LedgerError, match=words) as told:
        LedgerFile(path, "promise")
    with pytest.raises(LedgerError):
        ledger_care.check(path)
    return str(told.value)


EVERYTHING = "analyst, key, digest, queries, cost, answers, remembered, link"
EDITS = {
    "cost": ["UPDATE batches SET cost = '0' WHERE number = 5"],
    "every cost": ["UPDATE batches SET cost = '1/1000'"],
    "answers": ["UPDATE batches SET answers = zeroblob(length(answers)) WHERE number = 7"],
    "digest": ["UPDATE batches SET digest = zeroblob(32) WHERE number = 7"],
    "questions": ["UPDATE batches SET queries = 2 WHERE number = 9"],
    "key": ["UPDATE batches SET key = 'other' WHERE number = 9"],
    "kind of a value": ["UPDATE batches SET digest = CAST(digest AS TEXT) WHERE number = 4"],
    "whose batch": ["UPDATE batches SET analyst = 2 WHERE number = 3"],
    "remembered": ["UPDATE batches SET remembered = NULL WHERE number = 4"],
    "remembered, in part": ["UPDATE batches SET remembered = zeroblob(72) WHERE number = 4"],
    "link": ["UPDATE batches SET link = zeroblob(32) WHERE number = 4"],
    "no link": ["UPDATE batches SET link = NULL"],
    "first batch gone": ["DELETE FROM batches WHERE number = 3"],
    "middle batch gone": ["DELETE FROM batches WHERE number = 5"],
    "last batch gone": ["DELETE FROM batches WHERE number = 9"],
    "all batches gone": ["DELETE FROM batches"],
    "all after one gone": ["DELETE FROM batches WHERE number > 5", "DELETE FROM tokens"],
    "everything gone": [f"DELETE FROM {name}" for name in ("batches", "tokens", "analysts")],
    "two batches swapped": [
        "UPDATE batches SET number = 99 WHERE number = 4",
        "UPDATE batches SET number = 4 WHERE number = 5",
        "UPDATE batches SET number = 5 WHERE number = 99",
    ],
    "numbers moved on": ["UPDATE batches SET number = -(number + 1)",
                         "UPDATE batches SET number = -number"],
    "batch twice": [f"INSERT INTO batches ({EVERYTHING}) "
                    + f"SELECT {EVERYTHING.replace('key', 'key || 2')} FROM batches LIMIT 1"],
    "last batch twice": [f"INSERT INTO batches (number, {EVERYTHING}) SELECT 10, "
                         + f"{EVERYTHING.replace('key', 'key || 2')} FROM batches "
                         + "ORDER BY number DESC LIMIT 1"],
    "budget": ["UPDATE analysts SET budget = '1000' WHERE name = 'ada'"],
    "token": ["UPDATE analysts SET seal = zeroblob(30) WHERE name = 'ada'"],
    "name": ["UPDATE analysts SET name = 'eva' WHERE name = 'eve'"],
    "names swapped": ["UPDATE analysts SET name = 'x' WHERE number = 1",
                      "UPDATE analysts SET name = 'ada' WHERE number = 2",
                      "UPDATE analysts SET name = 'eve' WHERE number = 1"],
    "analyst gone": ["DELETE FROM analysts WHERE number = 2"],
    "another analyst": ["INSERT INTO analysts VALUES (99, 'mallory', zeroblob(32), '9', NULL)"],
    "another analyst, linked": ["INSERT INTO analysts SELECT 99, 'm', seal, budget, link "
                                "FROM analysts WHERE number = 1"],
    "replaced token": ["UPDATE tokens SET seal = zeroblob(30)"],
    "old token back": ["DELETE FROM tokens"],
    "another token": ["INSERT INTO tokens VALUES (99, 1, zeroblob(32), zeroblob(32))"],
    "promise": ["UPDATE service SET promise = zeroblob(16)"],
    "service": ["UPDATE service SET id = '0123456789abcdef0123456789abcdef'"],
    "format": ["UPDATE service SET format = 1"],
    "later format": ["UPDATE service SET format = 3"],
    "kind of a name": ["UPDATE service SET id = CAST(id AS BLOB)"],
    "long name": ["UPDATE service SET id = id || id || id"],
    "kind of a promise": ["UPDATE service SET promise = 'text'"],
    "kind of a budget": ["UPDATE analysts SET budget = x'ff' WHERE number = 1"],
    "kind of a cost": ["UPDATE batches SET cost = x'ff' WHERE number = 5"],
    "kind of a layout": ["PRAGMA writable_schema = ON",
                         "UPDATE sqlite_master SET sql = CAST(sql AS BLOB)"],
    "two services": ["INSERT INTO service SELECT * FROM service"],
    "no service": ["DELETE FROM service"],
    "trigger": ["CREATE TRIGGER t AFTER INSERT ON batches BEGIN "
                "UPDATE batches SET cost = '0' WHERE number = new.number; END"],
    "view": ["CREATE VIEW v AS SELECT 1"],
    "table": ["CREATE TABLE more (x)"],
    "table gone": ["DROP TABLE tokens"],
    "index": ["CREATE INDEX i ON batches (cost)"],
    "column": ["ALTER TABLE batches ADD COLUMN extra"],
    "another constraint": ["ALTER TABLE tokens RENAME TO old",
                           "CREATE TABLE tokens (number INTEGER PRIMARY KEY, analyst, seal, link)",
                           "INSERT INTO tokens SELECT * FROM old", "DROP TABLE old"],
    "before there was a chain": ["ALTER TABLE batches DROP COLUMN link", "DROP TABLE tokens",
                                 "ALTER TABLE analysts DROP COLUMN link",
                                 "UPDATE service SET format = 1"],
}  # fmt: skip


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_is_told(path, what):
    assert len(held(path)) == 2
    edit(path, *EDITS[what])
    refused(path)


def test_an_entry_that_was_changed_is_named(path):
    edit(path, *EDITS["cost"])
    assert "entry 5 is not the one that was written" in refused(path, "cut or edited")
    edit(path, "DELETE FROM batches WHERE number > 4", "DELETE FROM tokens")
    assert "ledger reseal" in refused(path, "it ends after 4 entries, and 9 were written")


def test_an_index_that_leads_elsewhere_is_told(path):
    """A key is looked up in an index: it must not lead to the answers of another batch."""
    whole = path.read_bytes()
    places = [place for place in range(len(whole)) if whole.startswith(b"key-4", place)]
    assert len(places) == 2
    for place in places:  # in the table, and in its index
        path.write_bytes(whole[:place] + b"key-9" + whole[place + 5 :])
        refused(path)


def test_a_flipped_bit_is_told_or_changes_nothing(path):
    """Some bits of a page are used by nobody."""
    before, whole, rng, told = held(path), path.read_bytes(), random.Random(5), 0
    used = [place for place, byte in enumerate(whole) if byte]  # the rest is mostly free
    for _ in range(60):
        spoilt = bytearray(whole)
        spoilt[rng.choice(used)] ^= 1 << rng.randrange(8)
        path.write_bytes(spoilt)
        try:
            assert held(path) == before
        except LedgerError:
            told += 1
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
    assert told > 40


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_a_file_that_was_cut_is_told(path, share):
    os.truncate(path, int(path.stat().st_size * share))
    refused(path)


# -- the seal and the ledger -----------------------------------------------------------------


def saved(path, folder):
    """Copy all files as they are at this moment, as a crash would leave them."""
    folder.mkdir()
    for end in NAMES:
        if os.path.exists(f"{path}{end}"):
            shutil.copy(f"{path}{end}", folder / f"{path.name}{end}")
    return folder / path.name


def grown(path, entries):
    ledger = LedgerFile(path, "promise")
    for number in range(100, 100 + entries):
        record(ledger, number)
    return ledger


def test_an_older_copy_of_the_ledger_is_told(path, tmp_path):
    old = saved(path, tmp_path / "old")
    grown(path, 1).close()
    shutil.copy(old, path)
    refused(path, "it ends after 9 entries, and 10 were written")


def test_a_log_that_was_lost_after_a_crash_is_told(path, tmp_path):
    ledger = grown(path, 3)
    crashed = saved(path, tmp_path / "crashed")
    ledger.close()
    ledger = LedgerFile(saved(crashed, tmp_path / "whole"), "promise")
    assert [ledger.totals(each)[0] for each in ledger.analysts()] == [5, 4]
    ledger.close()
    log = Path(f"{crashed}-wal")
    for length in (log.stat().st_size - 4200, 40, 0):
        os.truncate(log, length)
        refused(crashed, r"it ends after \d+ entries")
        assert log.stat().st_size == length  # nothing is touched where it is refused
    log.unlink()
    refused(crashed, "it ends after 9 entries, and 12 were written")


def test_a_seal_that_is_lost_damaged_or_of_another_ledger_is_told(path, tmp_path):
    seal = seal_of_ledger(path)
    kept = seal.read_bytes()
    other = LedgerFile(tmp_path / "other", "promise")
    other.close()
    foreign = seal_of_ledger(tmp_path / "other").read_bytes()
    for content, words in (
        (b"", "damaged"),
        (kept[:4096], "damaged"),
        (kept[:-1], "damaged"),
        (kept + b"\0", "damaged"),
        (bytes(8192), "damaged"),
        (kept.translate(bytes([*range(1, 256), 0])), "damaged"),
        (kept[:4096] + foreign[:4096], "damaged"),
        (foreign, "another ledger"),
    ):
        seal.write_bytes(content)
        assert "thinveil ledger reseal" in refused(path, words)
    seal.unlink()
    assert "thinveil ledger reseal" in refused(path, "is gone")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(kept)
    seal.symlink_to(elsewhere)
    refused(path, "seal cannot be read")
    seal.unlink()
    seal.write_bytes(kept)
    assert len(held(path)) == 2


def test_every_byte_of_a_seal_counts(path):
    """The older of the two is as it was one entry before: a ledger may be one ahead of it."""
    seal = seal_of_ledger(path)
    kept, now = seal.read_bytes(), read_seal(seal)
    for place in (0, 20, 60, 85, 95, 130):
        spoilt = bytearray(kept)
        spoilt[now.length % 2 * 4096 + place] ^= 1
        seal.write_bytes(spoilt)
        assert read_seal(seal).length == now.length - 1
        assert len(held(path)) == 2
        assert read_seal(seal) == now  # written again
        spoilt[(now.length + 1) % 2 * 4096 + place] ^= 1
        seal.write_bytes(spoilt)
        refused(path, "damaged")
        seal.write_bytes(kept)


def test_an_older_seal_is_told(path, tmp_path):
    old = seal_of_ledger(path).read_bytes()
    grown(path, 2).close()
    seal_of_ledger(path).write_bytes(old)
    refused(path, "an old one")


def test_old_copies_of_both_cannot_be_told(path, tmp_path):
    """What docs/service.md says of a backup that is put back: all since then is forgotten."""
    old = saved(path, tmp_path / "old")
    grown(path, 3).close()
    for end in ("", "-seal"):
        shutil.copy(f"{old}{end}", f"{path}{end}")
    assert len(held(path)) == 2


def test_a_seal_without_its_ledger_makes_no_new_one(path):
    path.unlink()
    with pytest.raises(LedgerError, match="gone or empty, and its seal is there"):
        LedgerFile(path, "promise")
    assert not path.exists()
    path.touch()
    with pytest.raises(LedgerError, match="gone or empty, and its seal is there"):
        LedgerFile(path, "promise")
    path.unlink()
    seal_of_ledger(path).unlink()
    LedgerFile(path, "promise").close()


def test_nobody_links_entries_without_the_key(path):
    """An entry more than the seal says is what a crash leaves, so it must be a genuine one."""
    tables = Tables(path)
    rows = tables.asked("SELECT number, seal, link FROM analysts ORDER BY number")
    ends = tables.asked("SELECT link FROM batches ORDER BY number DESC LIMIT 1")
    identity = tables.identity()
    tables.close()
    for key in (b"", bytes(32), identity[0].encode(), identity[2]):
        chain = start(key, *identity)
        row = (10, 1, b"x" * 32)
        for head in (chain.head, ends[0][0], rows[0][2]):
            link = linked(key, type(chain)(9, head, 9), "tokens", row).head
            edit(path, f"INSERT INTO tokens VALUES (10, 1, X'{row[2].hex()}', X'{link.hex()}')")
            refused(path, "entry 10 is not the one")
            edit(path, "DELETE FROM tokens WHERE number = 10")


def test_links_of_different_rows_differ():
    rows = [
        (1, "a", "bc"), (1, "ab", "c"), (1, "a", b"bc"), (1, b"a", "bc"), (1, "a", None),
        (1, "a", "None"), (1, "a", b""), (1, "a", ""), (11, "a", "bc"), (1, b"ab", b"c"),
        (1, b"a", b"bc"), (1, 2, 3), (1, "2", 3), (1, 2, "3"), (1, "a", (2,)), (1, 2.0, 3),
    ]  # fmt: skip
    empty = start(b"k" * 32, "s", 2, b"p")
    heads = {linked(b"k" * 32, empty, table, row).head for row in rows for table in ("x", "y")}
    assert len(heads) == 2 * len(rows)


# -- honest crashes ----------------------------------------------------------------------------


class Crash(BaseException):
    """A process that ends here and now."""


def crashing(monkeypatch, where, name, path, folder, *, after):
    """Have a step save all files and end everything, before it is taken or after it."""
    step = getattr(where, name)

    def broken(*given, **more):
        if after:
            step(*given, **more)
        saved(path, folder)
        raise Crash

    monkeypatch.setattr(where, name, broken)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["sealed", "committed"])
def test_a_crash_while_a_batch_is_recorded_needs_nobody(path, tmp_path, monkeypatch, step, after):
    ledger = grown(path, 0)
    if step == "sealed":
        crashing(monkeypatch, SealFile, "write", path, tmp_path / "crashed", after=after)
    else:
        asked = Tables.asked

        def commit(self, statement, *values):
            if statement != "COMMIT":
                return asked(self, statement, *values)
            if after:
                asked(self, statement, *values)
            saved(path, tmp_path / "crashed")
            raise Crash

        monkeypatch.setattr(Tables, "asked", commit)
    with pytest.raises(Crash):
        record(ledger, 100)
    monkeypatch.undo()
    ledger.close()
    left = LedgerFile(tmp_path / "crashed" / "ledger", "promise")
    there = left.find(left.analysts()[0], "key-100") is not None
    assert there is (after or step == "sealed")
    assert read_seal(seal_of_ledger(left.path)).length == 9 + there
    record(left, 100 + there)
    left.close()


def test_a_seal_half_written_when_the_power_went_needs_nobody(path, tmp_path):
    grown(path, 1).close()
    seal = seal_of_ledger(path)
    now, whole = read_seal(seal), seal.read_bytes()
    for written in range(0, 152, 8):
        torn = Seal(now.key, now.service, now.length + 1, b"h" * 32).to_bytes()[:written]
        place = (now.length + 1) % 2 * 4096
        seal.write_bytes(whole[:place] + torn + whole[place + written :])
        assert len(held(path)) == 2


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (ledger_file, "_make"),
        (ledger_file, "_settle"),
        (Tables, "create"),
        (LedgerFile, "_seal_first"),
        (SealFile, "make"),
        (LedgerFile, "_verify"),
    ],
)
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_while_a_ledger_is_made_needs_nobody(tmp_path, monkeypatch, where, name, after):
    path = tmp_path / "ledger"
    crashing(monkeypatch, where, name, path, tmp_path / "crashed", after=after)
    with pytest.raises(Crash):
        LedgerFile(path, "promise")
    monkeypatch.undo()
    for left in (path, tmp_path / "crashed" / "ledger"):
        ledger = LedgerFile(left, "promise")
        ledger.admit("ada", b"5" * 32, Fraction(1))
        ledger.close()


KILLED = """
import os, random, signal, sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from fractions import Fraction
from test_ledger_edited import LedgerFile, record
folder, kills, rng = Path({folder!r}), {kills}, random.Random(7)
recorded = ahead = 0
for kill in range(kills):
    path = folder / f"ledger{{kill // 50}}"  # all of a ledger is read at each start
    if kill % 50 == 0:
        ledger = LedgerFile(path, "promise")
        for name in ("ada", "eve"):
            ledger.admit(name, name.encode() * 10, Fraction(1))
        ledger.close()
        number = 0
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        ledger = LedgerFile(path, "promise")
        os.write(tell, b"!")
        while True:
            record(ledger, number)
            os.write(tell, b".")
            number += 1
            if number % 20 == 0:
                ledger.tidy()
    os.close(tell)
    os.read(told, 1)
    time.sleep(rng.random() * {pause})
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    noted = number
    while found := os.read(told, 1 << 16):
        noted += len(found)
    os.close(told)
    ledger = LedgerFile(path, "promise")  # without a complaint
    there = sum(ledger.totals(each)[0] for each in ledger.analysts())
    ledger.close()
    assert noted <= there <= noted + 1, "a recorded batch is gone"
    ahead += there - noted
    recorded += there - number
    number = there
print(kills, recorded, ahead)
"""


def killed(folder, kills, pause):
    """Kill a process that records, again and again; return how much was recorded in all."""
    script = KILLED.format(
        tests=str(Path(__file__).parent), folder=str(folder), kills=kills, pause=pause
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_a_ledger_that_is_killed_opens_again_without_a_word(tmp_path):
    kills, recorded, _ = killed(tmp_path, 8, 0.05)
    assert kills == 8
    assert recorded > 0


@pytest.mark.soak
def test_a_ledger_that_is_killed_a_thousand_times_opens_again(tmp_path):
    kills, recorded, ahead = killed(tmp_path, 1000, 0.04)
    assert kills == 1000
    assert recorded > 1000
    assert ahead > 0  # some were killed between the commit and the seal, or before they could tell


def test_no_room_for_the_seal_is_no_room(path, monkeypatch):
    ledger = grown(path, 0)

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(LedgerError, match="No space left"):
        record(ledger, 100)
    with pytest.raises(LedgerError, match="No space left"):
        ledger.reopen()
    monkeypatch.setattr(os, "pwrite", lambda *given: 10)
    with pytest.raises(LedgerError, match="no room"):
        ledger.reopen()
    monkeypatch.undo()
    ledger.reopen()
    assert ledger.find(ledger.analysts()[0], "key-100") is not None
    ledger.close()
    assert read_seal(seal_of_ledger(path)).length == 10


# -- sealed anew -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["cost", "middle batch gone", "another analyst", "old token back"])
def test_an_edited_ledger_is_used_as_it_is_once_it_is_sealed_anew(path, what):
    edit(path, *EDITS[what])
    refused(path)
    standing = ledger_care.reseal(path)
    assert ledger_care.check(path) == standing
    grown(path, 1).close()
    edit(path, "UPDATE batches SET cost = '0' WHERE key = 'key-5'")
    refused(path, "cut or edited")


def test_a_lost_seal_is_made_anew_under_another_key(path):
    before = read_seal(seal_of_ledger(path))
    seal_of_ledger(path).unlink()
    assert ledger_care.reseal(path).entries == 9
    after = read_seal(seal_of_ledger(path))
    assert after.service == before.service
    assert after.key != before.key
    assert seal_of_ledger(path).stat().st_mode & 0o777 == 0o600
    assert len(held(path)) == 2


def test_a_ledger_of_before_is_refused_until_it_is_sealed(tmp_path):
    path = tmp_path / "ledger"
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode = WAL")
    base.executescript(FORMAT_1)
    promise = ledger_file._sealed("5" * 32, "promise")
    base.execute("INSERT INTO service VALUES (?, 1, ?)", ("5" * 32, promise))
    for number, name in enumerate(("ada", "eve"), 1):
        base.execute(
            "INSERT INTO analysts VALUES (?, ?, ?, '1')", (number, name, name.encode() * 9)
        )
    for number in range(1, 6):
        answers = packed(np.arange(3.0))
        base.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, 3, '1/100', ?, NULL)",
            (number, 1 + number % 2, f"key-{number}", b"d" * 32, answers),
        )
    base.commit()
    base.close()
    assert "thinveil ledger reseal" in refused(path, "before thinveil sealed ledgers")
    with pytest.raises(LedgerError, match="another table"):
        LedgerFile(path, "another promise")
    assert ledger_care.reseal(path).entries == 7
    ledger = LedgerFile(path, "promise")
    eve = ledger.analysts()[1]
    assert (eve.name, eve.seal, ledger.totals(eve)) == ("eve", b"eve" * 9, (3, 9, Fraction(3, 100)))
    ledger.renew(eve, b"new")
    record(ledger, 100)
    assert ledger.analysts()[1].seal == b"new"
    ledger.close()
    assert ledger_care.check(path).entries == 9
    edit(path, "DELETE FROM batches WHERE number = 2")
    refused(path, "cut or edited")


def test_what_is_no_ledger_cannot_be_sealed(path, tmp_path):
    (tmp_path / "text").write_text("a,b\n" * 500)
    for wrong in (tmp_path / "text", tmp_path / "nothing", tmp_path):
        for care in (ledger_care.reseal, ledger_care.check):
            with pytest.raises(LedgerError):
                care(wrong)
    for wrong in (
        "UPDATE batches SET cost = 'much'",
        "UPDATE analysts SET budget = '1/0'",
        "CREATE TRIGGER t AFTER INSERT ON batches BEGIN DELETE FROM batches; END",
    ):
        edit(path, wrong)
        with pytest.raises(LedgerError):
            ledger_care.reseal(path)
        edit(path, "DROP TRIGGER IF EXISTS t")
    ledger = LedgerFile(tmp_path / "new", "promise")
    with pytest.raises(LedgerError, match="in use"):
        ledger_care.reseal(tmp_path / "new")
    with pytest.raises(OutputError, match="exists already"):
        ledger_care.backup(tmp_path / "new", path)
    ledger.close()


def test_of_two_services_that_are_as_new_one_gets_the_ledger(tmp_path, monkeypatch):
    """Both find no ledger; the second is quicker wherever it can be."""
    path, second = tmp_path / "ledger", []
    make = SealFile.make

    def overtaken(self, seal, **more):
        monkeypatch.undo()
        second.append(LedgerFile(path, "promise"))
        make(self, seal, **more)

    monkeypatch.setattr(SealFile, "make", overtaken)
    with pytest.raises(LedgerError, match="in use by another service"):
        LedgerFile(path, "promise")
    second[0].admit("ada", b"5" * 32, Fraction(1))
    second[0].close()
    assert ledger_care.check(path).entries == 1
