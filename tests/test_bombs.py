"""Small files that unpack to a great deal end in a clear error, before the memory does."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import thinveil
from bombs import BOMBS, lists, pages, prefixes, repeated, texts
from thinveil.commands.main import run
from thinveil.curator.tables.kinds import limits
from thinveil.errors import DataError, RecordError, SchemaError, TranscriptError, UsageError
from thinveil.lab.tables import from_file
from thinveil.language.schema_file import MOST_SCHEMA
from thinveil.verdicts.record import MOST_RESULT, read_run
from worlds import sweep

pytest.importorskip("pyarrow")

FEW = str(4 / 1024)  # 4 MiB, in GiB
TEXTS = [name for name in BOMBS if name.startswith("text.")]
NEEDS = {".xlsx": "python_calamine", ".zsav": "pyreadstat"}
LOADING = """
import resource, sys
import thinveil
from thinveil.errors import ThinveilError
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
for path in sys.argv[2:]:
    try:
        thinveil.load(path)
        print(path, "was read")
    except ThinveilError as error:
        print(error)
status = open("/proc/self/status").read()  # unlike getrusage, it knows nothing of the parent
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs a system that tells the peak of memory"
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")


def bomb(name: str) -> str:
    if needed := NEEDS.get(Path(name).suffix):
        pytest.importorskip(needed)
    content = BOMBS[name]()
    assert len(content) < 700_000
    Path(name).write_bytes(content)
    return name


@pytest.mark.parametrize("name", [*sorted(BOMBS.keys() - TEXTS), *sweep(TEXTS, 4)])
def test_what_unpacks_to_more_than_the_bound_is_refused(name, monkeypatch):
    path = bomb(name)
    monkeypatch.setenv(limits.VARIABLE, FEW)
    with pytest.raises(DataError) as refused:
        thinveil.load(path)
    said = str(refused.value)
    assert path in said
    bounds = (
        r"more than (4|2) MiB of memory.*THINVEIL_MOST_UNPACKED=16",
        "line 1 has more than 4,194,304 characters",
        "more than 100,000 cells",
    )
    assert any(re.search(each, said) for each in bounds), said


@pytest.mark.parametrize("name", sweep(["zeros.parquet", "text.csv.gz", "zeros.arrow"], 2))
def test_a_raised_bound_lets_them_in(name, monkeypatch):
    path = bomb(name)
    monkeypatch.setenv(limits.VARIABLE, "0.5")
    assert thinveil.load(path).records == 1_000_000


@needs_proc
def test_memory_stays_small_under_a_bomb():
    """Each would take gigabytes: before, some ended the process, and others filled the memory."""
    names = ["repeated.parquet", "nulls.arrow", "line.csv.gz", "far.xlsx"]
    pytest.importorskip("python_calamine")
    for name in names:
        bomb(name)
    words = [sys.executable, "-c", LOADING, str(6 * 2**30), *names]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *said, peak = done.stdout.splitlines()
    assert [name in each for name, each in zip(names, said, strict=True)] == [True] * 4
    assert "was read" not in done.stdout
    assert int(peak) < 500  # MiB; a process that read nothing has 100


@needs_proc
@pytest.mark.nightly
@pytest.mark.parametrize("name", BOMBS)
def test_memory_stays_within_a_few_times_the_bound(name, monkeypatch):
    path = bomb(name)
    monkeypatch.setenv(limits.VARIABLE, str(64 / 1024))
    words = [sys.executable, "-c", LOADING, str(6 * 2**30), path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) < 100 + 8 * 64


def test_the_bound_is_half_of_the_memory_at_most_4_gib(monkeypatch):
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    sizes = {"SC_PHYS_PAGES": 3 * 2**19, "SC_PAGE_SIZE": 2**12}
    monkeypatch.setattr("os.sysconf", sizes.__getitem__)
    assert limits.most_unpacked() == 3 * 2**30
    sizes["SC_PHYS_PAGES"] = 2**24
    assert limits.most_unpacked() == 4 * 2**30
    monkeypatch.setenv(limits.VARIABLE, "16")
    assert limits.most_unpacked() == 2**34
    for wrong in ("", "x", "-1", "0", "nan", "inf", "1e400"):
        monkeypatch.setenv(limits.VARIABLE, wrong)
        with pytest.raises(UsageError, match="must be a number of GiB"):
            limits.most_unpacked()


@pytest.mark.parametrize("name", sweep(["repeated.parquet", "text.csv.xz"], 2))
def test_the_lab_has_a_bound_of_its_own(name, monkeypatch):
    monkeypatch.setenv(limits.VARIABLE, "64")
    monkeypatch.setattr("thinveil.lab.tables.MOST_UNPACKED", 2**22)
    with pytest.raises(DataError) as refused:
        from_file(BOMBS[name](), name)
    said = str(refused.value)
    assert re.search(
        r"more than 4 MiB of memory.*: give it on the command line, thinveil lab", said
    )
    assert limits.VARIABLE not in said


def test_the_bound_of_the_lab_is_256_mib():
    with pytest.raises(DataError, match="more than 256 MiB"):
        from_file(repeated(), "a.parquet")


def test_commands_end_in_one_line(capsys, monkeypatch):
    Path("a.parquet").write_bytes(repeated())
    for words in (["audit", "a.parquet"], ["schema", "a.parquet"], ["compare", "a.parquet"]):
        assert run([*words, *(["--engine", "memory"] if words[0] == "audit" else [])]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "a.parquet: it unpacks to more than" in said


def test_what_arrow_can_nest_is_not_even_read(monkeypatch):
    Path("a.parquet").write_bytes(lists())
    monkeypatch.setenv(limits.VARIABLE, FEW)
    with pytest.raises(DataError, match="column 'a' has the type list<"):
        thinveil.load("a.parquet")


def test_duckdb_is_given_nothing_that_fills_its_memory(monkeypatch):
    pytest.importorskip("duckdb")
    from thinveil.auditing.sources import opened

    monkeypatch.setenv(limits.VARIABLE, FEW)
    for name, said in {
        "texts.parquet": "more than 4 MiB of memory",
        "prefixes.parquet": "texts that are too long for DuckDB: read the file into memory",
    }.items():
        Path(name).write_bytes({"texts.parquet": texts, "prefixes.parquet": prefixes}[name]())
        with pytest.raises(DataError, match=said):
            opened(name, engine="duckdb")
    free = type("Usage", (), {"free": 2**20})
    monkeypatch.setattr("shutil.disk_usage", lambda path: free)
    with pytest.raises(DataError, match="1,000,000 rows would take more memory and disk than"):
        opened(bomb("zeros.parquet"), engine="duckdb")


def test_what_a_parquet_file_says_of_its_size_is_not_believed(monkeypatch):
    """The sums in the footer are made small; what the pages say tells."""
    import pyarrow.parquet as pq

    content = pages()
    column = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    true = _varint(column.total_uncompressed_size)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:].replace(true, _varint(500, len(true)))
    Path("a.parquet").write_bytes(content[:start] + footer)
    source = pq.ParquetFile("a.parquet")
    assert source.metadata.row_group(0).column(0).total_uncompressed_size == 500
    monkeypatch.setenv(limits.VARIABLE, "0.01")
    with pytest.raises(DataError, match=r"more than 10\.2 MiB of memory"):
        thinveil.load("a.parquet")


def _varint(number: int, length: int = 0) -> bytes:
    """Write a number as Thrift's compact protocol does, in at least so many bytes."""
    number *= 2  # zigzag
    digits: list[int] = []
    while number or len(digits) < length or not digits:
        digits.append(number & 127)
        number >>= 7
    return bytes([*(each | 128 for each in digits[:-1]), digits[-1]])


def test_tables_that_are_too_wide_are_refused():
    Path("a.csv").write_text(",".join(f"c{n}" for n in range(70_000)) + "\n1\n")
    with pytest.raises(DataError, match=r"70,000 columns, and more than 65,536 are not read"):
        thinveil.load("a.csv")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("#" * (MOST_SCHEMA + 1), "has more than 8 MiB"),
        ("a" + ".a" * 100_000 + " = 1", "line 2 has more than 200 dots before its value"),
        ("x = {a" + ".a" * 100_000 + " = 1}", "line 2 has more than 200 dots"),
        ("a = " + "[" * 100_000, "not a TOML file"),
        ("a = " + "9" * 5_000, "not a TOML file"),
        ('[[attribute]]\nname = "a"\nkind = "decimal"\nstep = 1e999999999', "between 1e-400"),
        ('[[attribute]]\nname = "a"\nkind = "date"\nstep = 1e999999999', "between 1e-400"),
        ('[[attribute]]\nname = "a"\nkind = "double"\nstep = "1e-999999999"', "between 1e-400"),
        (f'[[attribute]]\nname = "a"\nkind = "decimal"\nstep = "{"1" * 600}"', "between 1e-400"),
    ],
)
def test_schemas_that_take_forever_are_refused(line, said, capsys):
    Path("a.csv").write_text("a\n1\n2\n")
    Path("s.toml").write_text(f"\n{line}\n")
    with pytest.raises(SchemaError, match=said):
        thinveil.read_schema("s.toml")
    assert run(["audit", "a.csv", "--schema", "s.toml"]) == 1
    assert "bug" not in capsys.readouterr().err


def test_results_and_transcripts_have_bounds():
    for path, most in (("r.json", MOST_RESULT), ("t.transcript", 2**26)):
        with Path(path).open("wb") as file:
            file.truncate(most + 1)
    with pytest.raises(RecordError, match="has more than 64 MiB"):
        read_run("r.json")
    with pytest.raises(TranscriptError, match="not a transcript"):
        thinveil.audit(resume="t.transcript")


def test_deep_json_is_no_result():
    Path("r.json").write_text(json.dumps({"a": 0}).replace("0", "[" * 100_000))
    with pytest.raises(RecordError, match="is not JSON"):
        read_run("r.json")
