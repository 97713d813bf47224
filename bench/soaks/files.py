"""Damaged files: whatever is in a CSV or Parquet file, there is a verdict or a clear error."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.soaks.fuzzing.mutating import damaged
from bench.soaks.fuzzing.tables import whole_csv, whole_parquet
from thinveil.commands.main import run


@dataclass
class Outcome:
    """How damaged files were received: how often with each exit code, and what broke."""

    files: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


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
