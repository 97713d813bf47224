"""Schemas, results, transcripts and ledgers, with damage or odd values in them."""

from __future__ import annotations

import sqlite3
import struct
import tempfile
import tomllib
import zlib
from contextlib import closing, suppress
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np

from bench.soaks.fuzzing.cases import Case, broken, commanded, tree_of, written
from bench.soaks.fuzzing.mutating import LEAVES, bent, damaged, in_json, in_toml
from thinveil import audit, idp, load, people, read_schema
from thinveil.auditing.transcript import Transcript
from thinveil.curator.service.accounts import Accounts
from thinveil.language.queries import batch_of
from thinveil.language.schema_file import write_schema
from thinveil.language.wire.json import Asked

_FRAME = struct.Struct("<cIQ16s")  # kind, bytes of answers, number, digest of the batch


def schema_files(rng: np.random.Generator, folder: Path) -> Case:
    """A schema with damage in its text, or with odd values; a table is read by it."""
    own = load(_sample(folder)).schema
    schema = (people(20).schema, read_schema("bank"), own, own, own)[rng.integers(5)]
    if rng.integers(2):
        content = damaged(write_schema(schema).encode(), rng)
    else:
        content = in_toml(bent(tomllib.loads(write_schema(schema)), rng))
    path = written(folder, "schema.toml", content)

    def read() -> None:
        found = read_schema(path)
        write_schema(found)
        [each.describe() for each in found]
        load(_sample(folder), found)

    return read


def _sample(folder: Path) -> Path:
    rows = "".join(
        f"a{n % 4},{n},{n}.25,1e-{n},2024-01-{n + 1:02},2024-01-01T10:00:{n:02},10:{n:02}\n"
        for n in range(20)
    )
    return written(folder, "sample.csv", b"text,whole,real,tiny,day,moment,clock\n" + rows.encode())


@cache
def _results() -> tuple[bytes, bytes, bytes]:
    """Return results as the commands write them: two runs and a comparison."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        for words in (
            ["audit", "--attack", "column", "--column", "ward", "--trials", "20"],
            ["audit", "--attack", "attribute", "--known", "age=40", "--column", "job"],
            ["compare", "--mechanism", "idp", "--sample", "20", "--people", "4"],
        ):
            path.unlink(missing_ok=True)
            commanded([*words, "--json", str(path)])
            found.append(path.read_bytes())
    return found[0], found[1], found[2]


def results(rng: np.random.Generator, folder: Path) -> Case:
    """The JSON of a run, damaged or with odd values; a report is made of it."""
    content = _results()[rng.integers(2)]
    content = (
        damaged(content, rng) if rng.integers(3) == 0 else in_json(bent(tree_of(content), rng))
    )
    path = written(folder, "run.json", content)
    return partial(commanded, ["report", str(path), "--output", str(folder / "run.html")])


def comparisons(rng: np.random.Generator, folder: Path) -> Case:
    """The JSON of a comparison; a report is made of it and a sound run."""
    content = _results()[2]
    content = (
        damaged(content, rng) if rng.integers(3) == 0 else in_json(bent(tree_of(content), rng))
    )
    path = written(folder, "compare.json", content)
    beside = written(folder, "run.json", _results()[0])
    words = ["--comparison", str(path), "--output", str(folder / "run.html")]
    return partial(commanded, ["report", str(beside), *words])


@cache
def _recorded() -> bytes:
    """Return the transcript of a run that ended early."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        origin = {"table": None, "schema": None, "inside": None, "engine": "auto"}
        audit(transcript=path, max_queries=60, origin=origin)
        return path.read_bytes()


def _frames(content: bytes) -> list[tuple[bytes, int, bytes, bytes]]:
    found, at = [], 0
    while at < len(content):
        kind, size, number, digest = _FRAME.unpack_from(content, at)
        found.append((kind, number, digest, content[at + _FRAME.size :][:size]))
        at += _FRAME.size + size + 4
    return found


def _framed(kind: bytes, number: int, digest: bytes, answers: bytes, size: int) -> bytes:
    data = _FRAME.pack(kind, size, number, digest) + answers
    return data + struct.pack("<I", zlib.crc32(data))


def transcripts(rng: np.random.Generator, folder: Path) -> Case:
    """A transcript with damage, with odd options, or with odd frames whose checksums are right."""
    content = _recorded()
    line, _, rest = content.partition(b"\n")
    kind = rng.integers(4)
    if kind == 0:
        content = damaged(content, rng)
    elif kind == 1:
        content = in_json(bent(tree_of(line), rng)) + b"\n" + rest
    else:
        frames = []
        for each in _frames(rest):
            tag, number, digest, answers = each
            size = len(answers)
            if rng.integers(12) == 0:
                change = rng.integers(6)
                tag = bytes(rng.integers(0, 256, 1, np.uint8)) if change == 0 else tag
                number = int(rng.integers(0, 2**63)) if change == 1 else number
                digest = broken(digest, rng)[:16].ljust(16) if change == 2 else digest
                answers = broken(answers, rng) if change > 2 and answers else answers
                size = int(rng.integers(0, 2**32)) if change == 5 else len(answers)
            frames.append(_framed(tag, number, digest, answers, size))
        content = line + b"\n" + b"".join(frames)
    path = written(folder, "run.transcript", content)
    if rng.integers(2):
        return partial(commanded, ["audit", "--resume", str(path)])

    def read() -> None:
        with closing(Transcript.resume(path)) as found:
            for number, _ in enumerate(range(5), start=1):
                digest = found._recorded[number - 1][0] if number <= len(found._recorded) else b""
                found.replay(number, digest)
        audit(resume=path)

    return read


def ledgers(rng: np.random.Generator, folder: Path) -> Case:
    """A ledger with odd values in its tables, or with damage in its file."""
    data = people(20)
    path = folder / "ledger"
    path.unlink(missing_ok=True)
    accounts = Accounts(data, idp(), path)
    accounts.admit([("ann", Fraction(1))])
    [ann] = accounts.analysts
    asked = Asked("one", batch_of([([{0: (0, 50)}], 3)] * 4).stamped(("k", 1), 1e-3))
    accounts.answer(ann, asked)
    accounts.close()
    if rng.integers(3):
        with closing(sqlite3.connect(path)) as base:
            for _ in range(int(rng.integers(1, 3))):
                _edit(base, rng)
            base.commit()
    else:
        path.write_bytes(broken(path.read_bytes(), rng))

    def read() -> None:
        with closing(Accounts(data, idp(), path)) as again:
            for each in again.analysts:
                again.statement(each).to_plain()
                again.answer(each, asked)

    return read


def _edit(base: sqlite3.Connection, rng: np.random.Generator) -> None:
    """Put an odd value somewhere into a ledger."""
    columns = [
        *(("service", each) for each in ("id", "format", "promise")),
        *(("analysts", each) for each in ("number", "name", "seal", "budget")),
        *(("batches", each) for each in ("analyst", "key", "digest", "queries")),
        *(("batches", each) for each in ("cost", "cost", "answers", "answers", "remembered")),
    ]
    table, column = columns[rng.integers(len(columns))]
    plain = [each for each in LEAVES if isinstance(each, int | float | str) or each is None]
    value: object = plain[rng.integers(len(plain))]
    odd: list[object] = [
        b"",
        b"z",
        b"d123",
        rng.bytes(24),
        "1/0",
        "nan",
        "1e999999999",
        "-1",
        "1_0/3",
        " 1 ",
    ]
    if rng.integers(2):
        value = odd[rng.integers(len(odd))]
    with suppress(sqlite3.Error, OverflowError, UnicodeError):
        base.execute("PRAGMA ignore_check_constraints = ON")
        base.execute(f"UPDATE {table} SET {column} = ?", (value,))
