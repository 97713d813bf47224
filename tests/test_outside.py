"""What comes from outside is read, or ends in a clear error: never "this is a bug"."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.__main__ import SOAKS
from bench.soaks import whole
from bench.soaks.fuzzing import running

import thinveil
from thinveil.commands.main import run
from thinveil.curator.curator import Curator
from thinveil.errors import (
    DataError,
    FieldError,
    RecordError,
    SchemaError,
    ThinveilError,
    TranscriptError,
    UsageError,
)
from thinveil.language.claims import idp
from thinveil.language.schema_file import parse_schema
from thinveil.language.wire.facts import facts_from_plain, facts_to_plain
from thinveil.language.wire.packing import packed, unpacked
from thinveil.report.html.masking import without_places
from thinveil.verdicts.record import read_run

FRAME = struct.Struct("<cIQ16s")
DEEP = "[" * 100_000


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The transcript of a run on the embedded people that ended early."""
    path = tmp_path_factory.mktemp("recorded") / "t"
    thinveil.audit(transcript=path, max_queries=40, origin={"table": None})
    return path.read_bytes()


def resumed(content: bytes, capsys: pytest.CaptureFixture[str]) -> str:
    """Resume a transcript by the command and in Python; return what the command says."""
    Path("t").write_bytes(content)
    with pytest.raises(TranscriptError):
        thinveil.audit(resume="t")
    capsys.readouterr()
    assert run(["audit", "--resume", "t"]) == 1
    said = capsys.readouterr().err
    assert "bug" not in said
    assert "\nTraceback" not in said
    return said


def reframed(content: bytes, change) -> bytes:
    """Change the answers of all frames, and make their checksums right again."""
    line, _, rest = content.partition(b"\n")
    frames, at = [line, b"\n"], 0
    while at < len(rest):
        kind, size, number, digest = FRAME.unpack_from(rest, at)
        answers = rest[at + FRAME.size :][:size]
        answers = change(answers) if answers else answers
        data = FRAME.pack(kind, len(answers), number, digest) + answers
        frames += [data, struct.pack("<I", zlib.crc32(data))]
        at += FRAME.size + size + 4
    return b"".join(frames)


@pytest.mark.parametrize(
    "header",
    [
        DEEP,
        '{"format": ' + DEEP,
        "[1]",
        "null",
        '"x"',
        '{"format": "thinveil transcript 2"}',
        '{"format": ["thinveil transcript 2"], "run": "a", "fingerprint": "b", "options": {}}',
        *(
            '{"format": "thinveil transcript 2", "run": "a", "fingerprint": "b", "options": '
            f"{each}}}"
            for each in ("[]", '"x"', "5", "null", "true", DEEP, "9" * 5_000)
        ),
        '{"format": "thinveil transcript 2", "run": 5, "fingerprint": "b", "options": {}}',
    ],
)
def test_a_header_that_is_no_header(header, capsys):
    said = resumed(header.encode() + b"\n", capsys)
    assert said == "Error: t is not a transcript that this version reads\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", "1"), ("k", 1.0), ("k", True), ("k", None), ("people", 3), ("people", [3]),
        ("people", [{"age": 40}]), ("columns", "ward"), ("columns", [None]), ("precision", []),
        ("precision", {"age": []}), ("epsilon", 5), ("cache", 1), ("seed", "0"), ("attack", []),
        ("mechanism", None), ("max_queries", "40"), ("epsilons", [1]), ("order", {"a": "b"}),
        ("mechanism", "none of ours"), ("epsilon_per_query", "1e999999999"),
    ],
)  # fmt: skip
def test_recorded_options_of_another_kind(recorded, name, value, capsys):
    line, _, rest = recorded.partition(b"\n")
    header = json.loads(line)
    header["options"][name] = value
    said = resumed(json.dumps(header).encode() + b"\n" + rest, capsys)
    assert said.startswith("Error: t")


@pytest.mark.parametrize(
    "origin",
    [
        [], 5, "x", {"table": 5}, {"table": None, "schema": {}}, {"table": None, "engine": []},
        {"table": None, "sheet": 5}, {"table": None, "drop": 5}, {"table": None, "drop": [None]},
        {"table": None, "missing": {"a": 1}, "comment": 3}, {"table": None, "steps": 7},
        {"table": None, "separator": 5}, {"table": None, "header": "1"},
    ],
)  # fmt: skip
def test_recorded_places_of_another_kind(recorded, origin, capsys):
    line, _, rest = recorded.partition(b"\n")
    header = json.loads(line)
    header["options"]["origin"] = origin
    Path("t").write_bytes(json.dumps(header).encode() + b"\n" + rest)
    assert run(["audit", "--resume", "t"]) in (1, 2)
    assert "bug" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda answers: b"z" + answers[1:], "are no answers"),  # a tag that nobody wrote
        (lambda answers: b"\0", "are no answers"),
        (lambda answers: b"d" + answers[1:4], "are no answers"),
        (lambda answers: b"i123", "are no answers"),
    ],
)
def test_recorded_answers_that_are_none(recorded, change, said, capsys):
    """The checksums are right: somebody wrote it so."""
    Path("t").write_bytes(reframed(recorded, change))
    with pytest.raises(ThinveilError, match=said):
        thinveil.audit(resume="t")
    assert run(["audit", "--resume", "t"]) == 1
    assert "bug" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        lambda answers: b"d" + struct.pack("<d", float("nan")) * (len(answers) - 1),
        lambda answers: answers[:1],
        lambda answers: answers + answers[-1:],
    ],
)
def test_recorded_answers_that_end_the_run(recorded, change, capsys):
    Path("t").write_bytes(reframed(recorded, change))
    assert thinveil.audit(resume="t").run.ending == "target"
    assert run(["audit", "--resume", "t"]) == 1
    assert "bug" not in capsys.readouterr().err


def test_answers_are_packed_with_a_tag():
    for values in (np.array([1.0, 0.0]), np.array([1e5, 3.0]), np.array([0.5]), np.array([])):
        assert unpacked(packed(values)).tolist() == values.tolist()
    for data in (b"", b"z", b"d1", b"i12", b"\0"):
        with pytest.raises(ValueError, match=r"packed here|multiple of"):
            unpacked(data)


def plain_facts() -> dict[str, Any]:
    return facts_to_plain(Curator(thinveil.people(20), idp()).facts)


@pytest.mark.parametrize("records", [10**30, 2**63, 2**53 + 1, -(10**30), 0, True, 1.5, "20"])
def test_more_records_than_anybody_counts(records):
    with pytest.raises(FieldError):
        facts_from_plain({**plain_facts(), "records": records})


@pytest.mark.parametrize(
    "policies",
    [{"cache": {}}, {"cache": 1}, {"min_epsilon": True}, {"min_epsilon": "x"}, {"x": 1}, [], 5],
)
def test_policies_of_another_kind(policies):
    with pytest.raises(FieldError):
        facts_from_plain({**plain_facts(), "policies": policies})


@pytest.mark.parametrize("step", ["1e999999999", "1e-999999999", "1e401", "nan", "-1", "1" * 600])
@pytest.mark.parametrize("kind", ["integer", "decimal", "double", "date", "datetime", "time"])
def test_steps_beyond_all_numbers(step, kind):
    facts = plain_facts()
    facts["attributes"][0].update(kind=kind, step=step)
    with pytest.raises(FieldError):
        facts_from_plain(facts)
    with pytest.raises(SchemaError):
        parse_schema(f'[[attribute]]\nname = "a"\nkind = "{kind}"\nstep = "{step}"\n')


@pytest.mark.parametrize("bound", ["1e999999999", "1e-999999999", "9" * 4_000, "nan", "1e99999"])
def test_bounds_beyond_all_numbers(bound):
    text = f'[[attribute]]\nname = "a"\nkind = "decimal"\nstep = 1\nlower = 0\nupper = "{bound}"\n'
    with pytest.raises(SchemaError, match="attribute 'a'"):
        parse_schema(text)


@pytest.mark.parametrize("cell", ["1e999999999", "1e-999999999", "9" * 5_000, "-0", "1e400"])
def test_cells_beyond_all_numbers(cell, capsys):
    Path("a.csv").write_text(f"a,b\n{cell},1\n2,1\n")
    assert run(["audit", "a.csv", "--max-queries", "50"]) in (0, 1, 3)
    assert "bug" not in capsys.readouterr().err


@pytest.mark.parametrize("value", [10**400, "x", [], {}, True])
@pytest.mark.parametrize("name", ["queries", "epsilon_claimed", "seconds", "claim"])
def test_results_of_another_kind(name, value, capsys):
    assert run(["audit", "--attack", "membership", "--known", "age=40", "--json", "r.json"]) == 0
    content = json.loads(Path("r.json").read_text())
    Path("r.json").write_text(json.dumps({**content, name: value}))
    with pytest.raises(RecordError, match="not as this version writes results"):
        read_run("r.json")
    assert run(["report", "r.json"]) == 1
    assert "bug" not in capsys.readouterr().err


def test_results_that_make_no_page(capsys):
    assert run(["audit", "--attack", "membership", "--known", "age=40", "--json", "r.json"]) == 0
    content = json.loads(Path("r.json").read_text())
    Path("half.json").write_text(json.dumps({**content, "reason": "\ud800"}))
    assert run(["report", "half.json"]) == 1
    assert "half.json is not JSON" in capsys.readouterr().err
    words = ["--mechanism", "idp", "--sample", "20", "--people", "2", "--json", "c.json"]
    assert run(["compare", *words]) == 0
    content = json.loads(Path("c.json").read_text())
    Path("c.json").write_text(json.dumps({**content, "asked_for": []}))
    capsys.readouterr()
    assert run(["report", "r.json", "--comparison", "c.json"]) == 1
    assert "r.json or c.json: its figures do not fit together" in capsys.readouterr().err


def test_an_archive_whose_file_has_no_name():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", "a\n1\n2\n")
    Path("a.zip").write_bytes(file.getvalue().replace(b"a.csv", b"\0.csv"))
    with pytest.raises(DataError, match="damaged, locked, or cut off"):
        thinveil.load("a.zip")


def test_arrow_files_are_checked_before_they_are_believed():
    """Offsets beyond the buffer would be read as if they were texts."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"name of it": ["abc", "de", "fgh"]})
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    content = file.getvalue()
    offsets = struct.pack("<4i", 0, 3, 5, 8)
    assert offsets in content
    Path("a.arrow").write_bytes(content.replace(offsets, struct.pack("<4i", 0, 3, 5, 2**30)))
    with pytest.raises(DataError, match="not a file of Arrow, or a damaged one"):
        thinveil.load("a.arrow")
    Path("a.arrow").write_bytes(content.replace(b"name of it", b"name \xff\xff it"))
    with pytest.raises(DataError, match="not a file of Arrow, or a damaged one"):
        thinveil.load("a.arrow")


def test_a_table_is_read_by_texts_alone():
    Path("a.csv").write_text("a,b\n1,2\n3,4\n")
    for how in ({"drop": 5}, {"only": [5]}, {"sheet": 5}, {"steps": 3}, {"comment": b"#"}):
        with pytest.raises(UsageError, match="give"):
            thinveil.load("a.csv", **how)


@pytest.mark.parametrize("reader", [each for each in running.READERS if each != "ledgers"])
def test_hostile_content_is_read_or_refused(reader):
    """A few seeded cases of the fuzz; `python -m bench soak` runs 27,700."""
    pytest.importorskip("python_calamine")
    outcome = running.fuzzed(reader, seed=8, count=6)
    assert outcome.broken == []


@pytest.mark.parametrize("piece", ["a", "a.", "x-", "~", "[", ":"])
def test_long_texts_of_a_result_are_masked_at_once(piece):
    """Each took minutes: looked through from every place on."""
    text = piece * 200_000
    assert without_places(text) in (text, text[1:])


def test_the_bench_runs_every_soak_there_is():
    assert list(SOAKS) == list(whole.PARTS)
    assert list(running.CASES) == list(running.READERS)
    assert sum(running.CASES.values()) >= 20_000
