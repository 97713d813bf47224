"""Damaged files: whatever is in a CSV or Parquet file, there is a verdict or a clear error."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from thinveil import people
from thinveil.commands.main import run

TEXTS = (
    b"", b'"', b'""', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff\xfe",
    b"\xef\xbb\xbf", b"NaN", b"inf", b"-inf", b"1e999", b"1e-999", b"0x1F", b"9" * 24, b"-0",
    b"+1", b"2024-02-30", b"2024-12-31T23:59:60", b"0001-01-01", b"99999-01-01", b"=1+1",
    b"\xf0\x9f\x99\x82", b"1,5", b"1.5.5", b"--", b" ", b"\\", b"NULL", b"null", b"true",
    b"\xd9\xa3", b"1_000", b"e", b".",
)  # fmt: skip
"""Bits of text that have broken readers of text files before."""


@dataclass
class Outcome:
    """How damaged files were received: how often with each exit code, and what broke."""

    files: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def whole_csv(rng: np.random.Generator) -> bytes:
    """Return a small table with all kinds of columns, as text."""
    separator = [",", ";", "\t"][rng.integers(3)]
    lines = [["id", "name", "born", "seen", "pay", "kids"]]
    lines += [
        [
            str(number - 5),
            ["ann", '"b, c"', "", "d d", "é"][rng.integers(5)],
            f"19{rng.integers(10, 99)}-0{rng.integers(1, 9)}-11",
            f"2024-01-0{rng.integers(1, 9)}T0{rng.integers(0, 9)}:00:00",
            ["", f"{rng.integers(0, 9999) / 100}"][rng.integers(2)],
            str(rng.integers(0, 4)),
        ]
        for number in range(int(rng.integers(2, 30)))
    ]
    end = ["\n", "\r\n"][rng.integers(2)]
    return (end.join(separator.join(line) for line in lines) + end).encode()


def whole_parquet(rng: np.random.Generator) -> bytes:
    """Return a small table as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = people(int(rng.integers(2, 40)))
    columns = list(zip(*data.rows(), strict=True))
    table = pa.table({n: list(c) for n, c in zip(data.schema.names, columns, strict=True)})
    file = io.BytesIO()
    pq.write_table(table, file, compression=["none", "snappy"][rng.integers(2)])
    return file.getvalue()


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with a few changes: bytes flipped, cut, doubled, swapped or put in."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(0, len(data) + 1))
        more = int(rng.integers(1, 40))
        kind = rng.integers(6)
        if kind == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at : at + more]
        elif kind == 2:
            data[at:at] = TEXTS[rng.integers(len(TEXTS))]
        elif kind == 3:
            data[at:at] = data[at : at + more]
        elif kind == 4 and rng.integers(4) == 0:
            del data[at:]
        else:
            data[at : at + more] = rng.integers(0, 256, more, np.uint8).tobytes()
    return bytes(data)


def damaged_files(seed: int, count: int) -> Outcome:
    """Audit so many damaged files, and draft a schema for each; note what broke."""
    rng = np.random.default_rng(seed)
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            parquet = rng.integers(3) == 0
            content = damaged(whole_parquet(rng) if parquet else whole_csv(rng), rng)
            path = Path(folder) / ("table.parquet" if parquet else "table.csv")
            path.write_bytes(content)
            engine = ["memory", "memory", "memory", "duckdb"][rng.integers(4)]
            outcome.files += 1
            for words in (
                ["schema", str(path)],
                ["audit", str(path), "--max-queries", "3000", "--engine", engine,
                 "--transcript", str(Path(folder) / f"{number}.transcript")],
            ):  # fmt: skip
                said, errors = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
                    code = run(words)
                outcome.codes[code] += 1
                bad = code not in (0, 1, 2, 3) or (code in (1, 2) and not errors.getvalue().strip())
                if bad or "unexpected" in errors.getvalue() or "Traceback" in errors.getvalue():
                    where = f"seed {seed}, file {number}: {' '.join(words[:1] + words[4:6])}"
                    outcome.broken.append(f"{where}: exit {code}: {errors.getvalue()[-300:]}")
    return outcome
