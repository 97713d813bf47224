"""What cases of all readers share: where they write, what they break, how they run a command."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.soaks.fuzzing.mutating import damaged, overwritten
from thinveil.commands.main import run
from thinveil.errors import ThinveilError

Case = Callable[[], object]
"""Reads something: well, or it raises a ThinveilError, and nothing else."""
Maker = Callable[[np.random.Generator, Path], Case]
"""Makes a case from a generator and an empty folder."""
CANARY = "Kanarienvogel"
"""A value of the table that no message may hold."""


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def broken(content: bytes, rng: np.random.Generator) -> bytes:
    return (damaged if rng.integers(2) else overwritten)(content, rng)


def tree_of(content: bytes) -> Any:
    return json.loads(content)


class Refused(ThinveilError):
    """A command said that something is wrong, in good order."""


def commanded(words: list[str]) -> None:
    """Run a command; what must not be is an error, as a reader's is.

    Raises:
        Refused: It ended with a clear error.
    """
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = run(words)
    text = errors.getvalue()
    assert code in (0, 1, 2, 3), f"exit {code}"
    assert code not in (1, 2) or text.strip(), "no word of what was wrong"
    assert "unexpected" not in text, text[-300:]
    assert "Traceback" not in text, text[-300:]
    assert all(each.isprintable() or each in "\n\r" for each in text), "control characters"
    assert CANARY not in text, f"the message shows a value: {text[-300:]}"
    if code in (1, 2):
        raise Refused(text)
