"""Results against those who share a folder: what stands there stays, and no result is lost."""

from __future__ import annotations

import csv
import errno
import importlib
import io
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thinveil
from thinveil.commands.main import run
from thinveil.errors import OutputError
from thinveil.files import OURS, csv_rows, replacing, write_file
from worlds import examples

TABLE = "age,job\n30,nurse\n41,clerk\n41,nurse\n52,cook\n"
AUDIT = ("audit", "t.csv", "--trials", "0", "--no-comparison")
COMPARE = ("compare", "t.csv", "--people", "2", "--mechanism", "idp", "--most-repeats", "9")
RESULTS = {
    "run": (*AUDIT, "--json", "r"),
    "report": (*AUDIT, "--report", "r"),
    "comparison": (*COMPARE, "--json", "r"),
    "picture": (*COMPARE, "--figure", "r.svg"),
    "theory": ("theory", "--json", "r"),
    "health": ("doctor", "--json", "r"),
    "columns": ("schema", "t.csv", "--json", "r"),
    "draft": ("schema", "t.csv", "--output", "r"),
    "reproduction": ("reproduce", "sensitivity", "--json", "r"),
    "": (*AUDIT, "--output", "r"),
}
"""For each kind of result a command that writes it."""
QUICK = ("run", "report", "comparison", "columns", "draft", "")


@pytest.fixture(autouse=True)
def _shared_folder(tmp_path, monkeypatch):
    """A folder in which everybody may write, and a user who forbids nobody anything."""
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o777)
    Path("t.csv").write_text(TABLE)
    before = os.umask(0)
    yield
    os.umask(before)


def left() -> list[str]:
    return sorted(name for name in os.listdir() if name.startswith(".thinveil-"))


def private(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "kind",
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.nightly) for each in RESULTS],
)
def test_every_result_is_private_and_replaces_its_like_alone(kind, capsys):
    line = list(RESULTS[kind])
    path = Path("r.svg" if kind == "picture" else "r")
    assert run(line) == 0
    assert private(path), "under umask 0"
    first = path.read_bytes()
    if kind:
        assert [each for each, mark in OURS.items() if mark.match(first)] == [kind]
        assert run(line) == 0, "the same command again"
        assert private(path)
    for foreign in ("mine", "{}", "<svg></svg>", json.dumps({"format": 1}), TABLE):
        path.write_text(foreign)
        capsys.readouterr()
        assert run(line) == 2
        assert "exists already and was not written by thinveil" in (said := capsys.readouterr().err)
        assert "--overwrite" in said
        assert path.read_text() == foreign
    path.write_text('{"thinveil": "0.1"' if kind != "health" else "# Drafted from the table. ")
    assert run(line) == 2
    assert "exists already and is a result of another kind" in capsys.readouterr().err
    path.unlink()
    path.symlink_to("t.csv")
    assert run(line) == 2, "a link planted before"
    assert "t.csv" not in line or run([*line, "--overwrite"]) == 2, "a link to what is read"
    path.unlink()
    Path("victim").write_text("victim")
    path.symlink_to("victim")
    assert run(line) == 2
    assert run([*line, "--overwrite"]) == 0
    assert private(path), "the link itself was replaced"
    path.unlink()
    os.link("victim", path)
    assert run(line) == 2, "a hard link to somebody's file"
    assert run([*line, "--overwrite"]) == 0
    assert (Path("victim").read_text(), Path("t.csv").read_text()) == ("victim", TABLE)
    path.write_text("")
    assert run(line) == 0, "an empty file, as mktemp makes it"
    assert left() == []


@pytest.mark.parametrize(
    ("suffix", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<svg")]
)
def test_pictures_say_whose_they_are(suffix, begins):
    from thinveil.report.charts.files import save

    spec: Any = {"data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {}}
    for _ in range(2):
        save(spec, path := Path(f"p.{suffix}"))
    assert path.read_bytes().startswith(begins)
    assert private(path)
    path.write_bytes(begins + b"somebody else's")
    with pytest.raises(OutputError, match="exists already"):
        save(spec, path)


def test_what_took_the_name_during_the_run_keeps_it_and_nothing_is_lost(monkeypatch, capsys):
    """The adversary waits until the run began, and then plants links, files and a pipe."""
    module = importlib.import_module("thinveil.commands.audit")
    Path("victim").write_text("victim")
    real, names = module.audit, ("x.json", "x.html", "x.csv")

    def planting(*given: Any, **how: Any) -> Any:
        Path("x.json").symlink_to("victim")
        Path("x.html").write_text("theirs")
        os.link("victim", "x.csv")
        return real(*given, **how)

    monkeypatch.setattr(module, "audit", planting)
    line = [*AUDIT, "--json", "x.json", "--report", "x.html", "--output", "x.csv"]
    assert run(line) == 1
    told = capsys.readouterr()
    assert "recovered all 4 records" in told.out
    assert "The report is in x.html" not in told.err
    where = dict(re.findall(r"(x\.\w+) exists already and .*: the result is in (\S+)", told.err))
    assert sorted(where) == sorted(names)
    assert all(private(Path(each)) for each in where.values())
    assert json.loads(Path(where["x.json"]).read_text())["exact"]
    assert Path(where["x.csv"]).read_text().count("\n") == 5
    assert "</html>" in Path(where["x.html"]).read_text()
    assert (Path("victim").read_text(), Path("x.html").read_text()) == ("victim", "theirs")
    assert Path("x.json").is_symlink()
    assert left() == []


def test_a_link_planted_while_a_file_is_written():
    Path("victim").write_text("victim")
    writing = replacing("r", kind="run")
    writing.__enter__().write(b"new")
    Path("r").symlink_to("victim")
    with pytest.raises(OutputError, match="is a link"):
        writing.__exit__(None, None, None)
    assert (Path("victim").read_text(), left()) == ("victim", [])


def test_what_is_read_is_never_written_over():
    """Not even where the user asks for it: a database is named by its address."""
    with closing(sqlite3.connect("base")) as base:
        base.execute("CREATE TABLE t AS SELECT 1 AS age UNION ALL SELECT 2")
        base.commit()
    whole = Path("base").read_bytes()
    for name in ("base", "./base", os.path.abspath("base")):
        assert run(["audit", "sqlite://base", "--trials", "0", "--json", name, "--overwrite"]) == 2
        assert run(["schema", f"sqlite://{name}", "--output", "base", "--overwrite"]) == 2
    assert Path("base").read_bytes() == whole


@pytest.mark.parametrize(
    ("kind", "foreign"),
    [
        ("reproduction", '{"rows": [], "total": 0}'),
        ("comparison", '{"mechanisms": [], "cars": 4}'),
        ("theory", '{"records": 12, "domain": ["example.org"]}'),
    ],
)
def test_json_of_others_does_not_look_like_ours(kind, foreign):
    assert OURS[kind].match(foreign.encode()) is None


def test_a_transcript_that_became_a_link_is_not_followed(monkeypatch):
    """The owner of a shared folder swaps it after it was read, before it is written."""
    assert run([*AUDIT, "--transcript", "a"]) == 0
    os.truncate("a", os.path.getsize("a") - 11)
    Path("victim").write_text("precious" * 99)
    module = importlib.import_module("thinveil.auditing.transcript")
    real = module.Transcript._reopen

    def planting(transcript: Any) -> None:
        Path("a").unlink()
        Path("a").symlink_to("victim")
        real(transcript)

    monkeypatch.setattr(module.Transcript, "_reopen", planting)
    assert run(["audit", "--resume", "a"]) == 1
    assert Path("victim").read_text() == "precious" * 99


@pytest.mark.parametrize("look", ["kept", "_alike"])
def test_a_result_is_not_lost_to_a_name_that_changes_hands(look, monkeypatch):
    """A link takes the place of a file between two looks at it."""

    def swapped(*_: object) -> str:
        raise OSError(errno.ELOOP, "Too many levels of symbolic links")

    Path("r").write_text("theirs")
    monkeypatch.setattr(f"thinveil.files.{look}", swapped)
    with pytest.raises(OutputError, match="changes while it is looked at: the result is in r-"):
        write_file("r", "mine", spare=True)
    [beside] = Path().glob("r-*")
    assert (beside.read_text(), Path("r").read_text(), left()) == ("mine", "theirs", [])


def test_files_of_other_users_are_not_ours(monkeypatch, capsys):
    assert run(list(RESULTS["columns"])) == 0
    if os.getuid() == 0:
        os.chown("r", 12345, -1)
    else:
        monkeypatch.setattr("thinveil.commands.shared.outputs.owner_in", lambda folder: 12345)
    assert run(list(RESULTS["columns"])) == 2
    assert "belongs to another user" in capsys.readouterr().err


def test_transcripts_and_tokens_are_never_written_over(capsys):
    for option in ("--transcript", "--report"):
        Path("kept").symlink_to("nowhere")
        assert run([*AUDIT, option, "kept", *["--overwrite"] * (option == "--transcript")]) == 2
        assert "exists already" in capsys.readouterr().err
        Path("kept").unlink()


def test_a_damaged_end_goes_to_a_file_of_its_own():
    """The adversary made the file that the rest would have been appended to, readable for all."""
    assert run([*AUDIT, "--transcript", "a"]) == 0
    whole = Path("a").read_bytes()
    Path("a").write_bytes(whole[:-11] + b"garbage")
    Path("a.damaged").write_text("theirs")
    assert run(["audit", "--resume", "a"]) == 0
    assert Path("a.damaged").read_text() == "theirs"
    [rest] = Path().glob("a.damaged-*")
    assert private(rest)
    assert rest.read_bytes().endswith(b"garbage")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no/x", "no file can be"),
        (".", "no file can be"),
        ("x/", "no file can be"),
        ("y" * 300, "long"),
    ],
)
def test_places_without_room_are_told_before_the_run(name, said, capsys):
    for line in (["theory", "--json", name], ["people", "--records", "2", "--output", name]):
        assert run(line) == 2
        assert said in capsys.readouterr().err


def test_a_folder_that_may_not_be_written_to_is_told_before_the_run(monkeypatch, capsys):
    def refuse(folder: Path) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("thinveil.commands.shared.outputs.owner_in", refuse)
    monkeypatch.setattr("thinveil.commands.theory.tour", None)
    assert run(["theory", "--json", "x"]) == 2
    assert "--json x: Read-only file system" in capsys.readouterr().err


def test_a_name_that_is_no_text_is_a_name():
    odd = os.fsdecode(b"\xff\xfe.json")
    for _ in range(2):
        assert run(["schema", "t.csv", "--json", odd]) == 0
    assert private(Path(odd))


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_file_systems_without_hard_links(monkeypatch, code):
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    write_file("a", "1")
    assert (private(Path("a")), Path("a").read_text()) == (True, "1")
    with pytest.raises(OutputError, match="exists already"):
        write_file("a", "2")
    with pytest.raises(OutputError, match="the result is in a-"):
        write_file("a", "2", spare=True)
    [beside] = Path().glob("a-*")
    assert (Path("a").read_text(), beside.read_text(), left()) == ("1", "2", [])


def test_runs_that_write_one_file_at_once():
    """Four writers, twenty times each: whoever reads sees one whole result."""
    texts = ['{\n  "thinveil": "' + letter * 100_000 for letter in "abcd"]
    write_file("r", texts[0])
    torn, done = [], threading.Event()

    def read() -> None:
        while not done.is_set():
            torn.extend([1] * (Path("r").read_text() not in texts))

    def write(text: str) -> None:
        for _ in range(20):
            write_file("r", text, kind="health")

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    reader = threading.Thread(target=read)
    for each in (reader, *writers):
        each.start()
    for each in writers:
        each.join()
    done.set()
    reader.join()
    assert (torn, left(), private(Path("r"))) == ([], [], True)


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from thinveil.files import write_file
texts = ['{"thinveil": "' + letter * 300_000 for letter in "ab"]
draw, path, seen = random.Random(18), Path("r"), set()
for turn in range(int(sys.argv[1])):
    if turn % 2:
        path.unlink(missing_ok=True)
    before = path.exists()
    if not (child := os.fork()):
        while True:
            for text in texts:
                write_file(path, text, kind="health")
    time.sleep(draw.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert path.exists() or not before
    if path.exists():
        assert (text := path.read_text()) in texts, len(text)
        seen.add(text)
        assert path.stat().st_mode & 0o777 == 0o600
    for part in Path().glob(".thinveil-*"):
        assert part.stat().st_mode & 0o777 == 0o600
        part.unlink()
assert len(seen) == 2 or turn < 100
print("whole")
"""


@pytest.mark.parametrize("kills", [10, pytest.param(500, marks=pytest.mark.soak)])
def test_kills_leave_the_old_file_or_the_new_one(kills):
    line = [sys.executable, "-c", KILLED, str(kills)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("whole\n", "")


# Spreadsheets.

EVIL = (
    "=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠A1",  # noqa: RUF001
    " =1", '"=1', "'=1", "\ufeff=1", "\u200b=1", "\0=1", "-2+3+cmd|' /C calc'!A0", "=HYPERLINK(A1)",
    "a;=1", "a\t@A1", "a\n=1", 'a;"=1', "a; =1", "-", "+", "=", "@", "-3;=1", "\t", "--1", "-1e",
    "+-1", "\x01=1", "\x1b=1", "\xa0=1", "\xad=1", "\u202e=1", "\u2066=1", "﹦1+1", "﹣1", "﹫A1",
    "a;\x01=1", "a\v;=1", "; ;\t=1",
)  # fmt: skip
PLAIN = (
    "-3",
    "+1.5",
    "-0.25",
    "1e-7",
    "-1E+9",
    ".5",
    "a-b",
    "a=b",
    "x@y",
    "",
    "2020-01-02",
    "?",
    "5.",
)
PIECES = "=+-@;,\t\n\r\"' a1.\uff1d\uff0d\ufeff|"
_STARTS = re.compile(
    '[\\s\0\x01\x1b"\xad\u200b-\u200f\u202e\u2060\u2066\ufeff]*[=+\\-@＝＋－＠﹦﹢﹣﹫]'  # noqa: RUF001
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(,.*)?", re.ASCII | re.DOTALL)


def written(rows: list[list[object]], safe: bool = True) -> str:
    csv_rows(text := io.StringIO(), rows, ending="\r\n", safe=safe)
    return text.getvalue()


def split(text: str, delimiter: str, quote: str | None) -> list[list[str]]:
    lines = io.StringIO(text, newline="")
    return list(csv.reader(lines, delimiter=delimiter, quotechar=quote, quoting=0 if quote else 3))


def formulas(text: str) -> list[str]:
    """Return the cells that begin a formula, however a spreadsheet splits the lines."""
    cells = [
        cell
        for delimiter, quote in product(",;\t", ('"', None))
        if quote or delimiter != ","
        for row in split(text, delimiter, quote)
        for cell in row
    ]
    return [cell for cell in cells if _STARTS.match(cell) and not _NUMBER.fullmatch(cell)]


@pytest.mark.parametrize("cell", EVIL)
def test_no_cell_of_a_safe_csv_is_a_formula(cell):
    """The adversary chose values and names of columns; the victim opens a spreadsheet."""
    rows: list[list[object]] = [[cell, "b"], [1, cell], [None, f"{cell}{cell}"]]
    assert formulas(written(rows)) == []
    changed = list(csv.reader(io.StringIO(written(rows), newline="")))
    assert [[each.replace("'", "") for each in row] for row in changed] == [
        [str("" if each is None else each).replace("'", "") for each in row] for row in rows
    ], "nothing but apostrophes was added"
    assert written(rows, safe=False).count("'") == cell.count("'") * 4


def test_a_safe_csv_is_no_sheet_of_another_format():
    """Excel takes a file that begins with ID for SYLK, where ;E begins a formula."""
    rows: list[list[object]] = [["ID;PWXL;N;E", "b"], ["C;X1;Y1;ESUM(1)", 2], ["ID", None]]
    assert written(rows).startswith('"ID;PWXL;N;E","b"\r\nC;')
    assert list(csv.reader(io.StringIO(written(rows)))) == [
        ["" if each is None else str(each) for each in row] for row in rows
    ]
    assert written(rows, safe=False).startswith("ID;PWXL")
    assert written([["id", "ID"]]) == "id,ID\r\n"


def test_long_runs_of_blanks_are_read_once():
    """A cell of a million tabs took hours where each of them began anew."""
    assert written([["\t" * 1_000_000 + "a"]]).count("'") == 1


@pytest.mark.parametrize("cell", PLAIN)
def test_plain_cells_stay_as_they_are(cell):
    assert written([[cell, 1, -2, None]]) == written([[cell, 1, -2, None]], safe=False)


@examples(800)
@given(st.lists(st.lists(st.text(PIECES, max_size=6), min_size=1, max_size=3)))
def test_no_text_makes_a_formula(rows):
    assert formulas(written(rows)) == []


def test_commands_write_safe_csv_on_request():
    Path("t.csv").write_text("=age,job\n30,=1+1\n41,-3x\n41,nurse\n52,cook\n")
    assert run([*AUDIT, "--output", "plain.csv"]) == 0
    assert run([*AUDIT, "--output", "safe.csv", "--safe-csv"]) == 0
    plain, safe = (Path(f"{name}.csv").read_bytes() for name in ("plain", "safe"))
    assert formulas(plain.decode())
    assert formulas(safe.decode()) == []
    assert safe.replace(b"'", b"") == plain
    assert run([*AUDIT, "--transcript", "a"]) == 0
    assert run(["audit", "--resume", "a", "--output", "again.csv", "--safe-csv"]) == 0
    assert Path("again.csv").read_bytes() == safe
    people = ["people", "--records", "9", "--output"]
    assert run([*people, "p.csv"]) == run([*people, "q.csv", "--safe-csv"]) == 0
    assert Path("p.csv").read_bytes() == Path("q.csv").read_bytes()
    assert private(Path("p.csv"))


def test_in_python_a_report_replaces_a_report(capsys):
    verdict = thinveil.audit(thinveil.people(6))
    for _ in range(2):
        verdict.report("a.html")
    assert private(Path("a.html"))
    Path("a.html").write_text("mine")
    with pytest.raises(OutputError, match="overwrite=True"):
        verdict.report("a.html")
    assert (Path("a.html").read_text(), left()) == ("mine", [])
    verdict.report("a.html", overwrite=True)
    assert Path("a.html").read_text() != "mine"
